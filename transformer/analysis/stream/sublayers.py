"""The sub-layers of a block: what each reads of the residual stream, and the norms around it."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.blocks import Block, Norms
from transformer.model import Transformer


@dataclass(frozen=True)
class Sublayer:
    """One sub-layer of one block, by the sites around it."""

    around: Norms
    reads: str
    """The site of the stream that it reads, before any LayerNorm: "decoder.0.resid_pre"."""
    out: str
    """The site of what it computes: "decoder.0.self_attention.out"."""
    after: str
    """The site of the stream after it: "decoder.0.resid_mid"."""


def sublayer_of(model: Transformer, path: str) -> Sublayer:
    """The sub-layer "decoder.0.self_attention". Raises KeyError where the block has none of that name."""
    block_path, _, name = path.rpartition(".")
    block = model.get_submodule(block_path)
    assert isinstance(block, Block)
    around = {"self_attention": block.around_self}
    sites = {"self_attention": ("resid_pre", "resid_mid")}
    if block.cross:
        around["cross_attention"], sites["cross_attention"] = block.around_cross, ("resid_mid", "resid_cross")
    if block.feeds:
        around["feed_forward"] = block.around_feed_forward
        sites["feed_forward"] = ("resid_cross" if block.cross else "resid_mid", "resid_post")
    if name not in sites:
        raise KeyError(f"no sub-layer {path!r}: there are {', '.join(sites)}")
    reads, after = sites[name]
    return Sublayer(around[name], f"{block_path}.{reads}", f"{path}.out", f"{block_path}.{after}")
