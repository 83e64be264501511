"""The sub-layers of a model: what each reads of the residual stream, and the norms around it and past it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from transformer.analysis.assumptions import norm_of
from transformer.blocks import Block, Norms
from transformer.model import Transformer


@dataclass(frozen=True)
class Sublayer:
    """One sub-layer of one block, by the sites around it."""

    around: Norms
    reads: str
    """The site of the stream that it reads, before any norm: "decoder.0.resid_pre"."""
    out: str
    """The site of what it computes: "decoder.0.self_attention.out"."""
    after: str
    """The site of the stream after it: "decoder.0.resid_mid"."""


def sublayers_of(block: Block) -> dict[str, Norms]:
    """The sub-layers of a block, in the order of the data's way, and the norms around each."""
    found = {"self_attention": block.around_self}
    if block.cross:
        found["cross_attention"] = block.around_cross
    if block.feeds:
        found["feed_forward"] = block.around_feed_forward
    return found


def map_before(model: Transformer, path: str, vectors: Tensor) -> Tensor:
    """Vectors of the embedding as the sub-layer `path` reads them on the straight way, past all sub-layers before it.

    Each norm on that way does its linear part, centring and gain, without the division. `path` may be
    "encoder.memory": what cross-attention looks at. Float [*batch, d_model].
    """
    stack = path.split(".")[0]
    for name, around in _around(model, stack):
        if name == path:
            return norm_of(around.before).centre_and_scale(vectors)
        vectors = norm_of(around.after).centre_and_scale(vectors)
    return norm_of(model.get_submodule("memory_norm")).centre_and_scale(vectors)


def map_after(model: Transformer, path: str, vectors: Tensor) -> Tensor:
    """What the sub-layer `path` writes, as the unembedding reads it on the straight way, past all those after it."""
    reached = False
    for name, around in _around(model, path.split(".")[0]):
        reached |= name == path
        if reached:
            vectors = norm_of(around.after).centre_and_scale(vectors)
    return norm_of(model.final_norm).centre_and_scale(vectors)


def _around(model: Transformer, stack: str) -> Iterator[tuple[str, Norms]]:
    """The sub-layers of a stack, in the order of the data's way, and the norms around each."""
    for index, block in enumerate(getattr(model, stack)):
        assert isinstance(block, Block)
        for name, around in sublayers_of(block).items():
            yield f"{stack}.{index}.{name}", around


def sublayer_of(model: Transformer, path: str) -> Sublayer:
    """The sub-layer "decoder.0.self_attention". Raises KeyError where the block has none of that name."""
    block_path, _, name = path.rpartition(".")
    block = model.get_submodule(block_path)
    assert isinstance(block, Block)
    around = sublayers_of(block)
    if name not in around:
        raise KeyError(f"no sub-layer {path!r}: there are {', '.join(around)}")
    reads, after = {
        "self_attention": ("resid_pre", "resid_mid"),
        "cross_attention": ("resid_mid", "resid_cross"),
        "feed_forward": ("resid_cross" if block.cross else "resid_mid", "resid_post"),
    }[name]
    return Sublayer(around[name], f"{block_path}.{reads}", f"{path}.out", f"{block_path}.{after}")
