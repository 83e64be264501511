"""One attention head, calculated in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from transformer import observe
from transformer.analysis.findings import Head
from transformer.analysis.heads.inside import Inside
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import Transformer, build

SEP = 10
SELF, CROSS = "decoder.0.self_attention", "decoder.1.cross_attention"
QUESTION = np.array([3, 1, 4, 1, 5])
MODELS = {
    "decoder, learned": ("reverse", {}, "decoder.1.self_attention"),
    "decoder, rotary, post-norm": ("reverse", {"positions": "rotary", "norm": "post"}, "decoder.1.self_attention"),
    "decoder, alibi, no norm, no feed-forward": ("sort", {"positions": "alibi", "norm": "none", "d_ff": 0}, SELF),
    "decoder, no positions, a window": ("copy", {"positions": "none", "mask": "sliding-window:1"}, SELF),
    "encoder, sinusoidal": ("reverse-aligned", {"positions": "sinusoidal"}, "encoder.0.self_attention"),
    "across, learned": ("reverse-translate", {}, CROSS),
    "across, alibi, post-norm": ("reverse-translate", {"positions": "alibi", "norm": "post"}, CROSS),
    "across, rotary": ("reverse-translate", {"positions": "rotary"}, CROSS),
    "encoder of two, alibi": ("reverse-translate", {"positions": "alibi"}, "encoder.1.self_attention"),
}


def random_model(task: str, length: int = 6, **model: Any) -> tuple[Transformer, RunConfig]:
    """A model whose biases and gains are random too, so that nothing is right because it is zero."""
    sizes = {"n_layers": 2, "n_heads": 2, "d_model": 8, "d_ff": 12, **model}
    config = RunConfig(task=TaskConfig(task=task, length=length), model=ModelConfig(**sizes))
    network = build(config).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.4 * torch.randn_like(weight))
    return network, config


def read_by_hand(task: str, question: list[int], said: list[int]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Tokens and source as the model reads them, `said` in place of the right answer."""
    if task == "reverse-aligned":
        return torch.tensor([question]), None
    if task == "reverse-translate":
        return torch.tensor([[SEP, *said[:-1]]]), torch.tensor([question])
    return torch.tensor([[*question, SEP, *said[:-1]]]), None


def divided_by(x: np.ndarray, norm: torch.nn.Module) -> np.ndarray:
    """What a norm divides each vector by: √(size² + ε); 1 where there is none.

    The size of a shipped norm is its paper's formula; of another it is its own, which its plug-in's contract proves.
    """
    if getattr(norm, "kind", None) is None:
        return np.ones_like(x[..., :1])
    name = type(norm.kind).__module__.rpartition(".")[2]
    if name == "layer":
        size = x.std(axis=-1, keepdims=True)
    elif name == "rms":
        size = np.sqrt((x**2).mean(axis=-1, keepdims=True))
    else:
        size = norm.kind.size(torch.from_numpy(x)).numpy()
    return np.sqrt(size**2 + 1e-5)


def normed(x: np.ndarray, norm: torch.nn.Module) -> np.ndarray:
    """What a norm with these weights makes of each vector by itself; without a norm each stays as it is."""
    shift = 0 if getattr(norm, "bias", None) is None else double(norm.bias)
    return mapped(x, norm) / divided_by(x, norm) + shift


def mapped(x: np.ndarray, norm: torch.nn.Module) -> np.ndarray:
    """What of it is linear, and made by its weights alone: each vector centred, where it centres, times the gain."""
    weights = {name: double(weight) for name, weight in norm.named_parameters()}
    centred = x - x.mean(axis=-1, keepdims=True) if weights_centre(norm) else x
    return centred * weights.get("weight", 1)


def weights_centre(norm: torch.nn.Module) -> bool:
    """Does it take off the mean, as it says of itself? No norm does not."""
    kind = getattr(norm, "kind", None)
    return kind is not None and bool(kind.centres)


def double(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def by_hand(model: Transformer, tokens: torch.Tensor, source: torch.Tensor | None, head: Head, place: int) -> dict:
    """Attention of one query in double precision, from the residual streams of a pass: loops and complex numbers."""
    seen = observe(model, tokens, source=source)
    site, layer = head.site, head.site.rpartition(".")[0]
    across = site.endswith("cross_attention")
    block, attention = model.get_submodule(layer), model.get_submodule(site)
    around = block.around_cross if across else block.around_self
    before = double(seen[f"{layer}.{'resid_mid' if across else 'resid_pre'}"])[0]
    asking = normed(before, around.before)
    asked = double(seen["encoder.memory"])[0] if across else asking
    width = attention.d_head
    rows = slice(head.index * width, (head.index + 1) * width)

    def project(layer: torch.nn.Linear, x: np.ndarray) -> np.ndarray:
        return np.array([double(layer.weight)[rows] @ one + double(layer.bias)[rows] for one in x])

    def turn(x: np.ndarray) -> np.ndarray:
        """Rotary: each pair of numbers is a complex one, turned by position × 10000^(-2i/d)."""
        if model.config.positions != "rotary" or across:
            return x
        pairs = x[:, 0::2] + 1j * x[:, 1::2]
        angles = np.outer(np.arange(len(x)), 10_000.0 ** (-2 * np.arange(width // 2) / width))
        turned = pairs * np.exp(1j * angles)
        return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)

    queries, key, value = (
        turn(project(attention.query, asking)),
        turn(project(attention.key, asked)),
        project(attention.value, asked),
    )
    dots = np.array([sum(q * k for q, k in zip(queries[place], each, strict=True)) for each in key])
    bias = np.zeros(len(key))
    if model.config.positions == "alibi" and not across:
        bias = -(2.0 ** (-8 * (head.index + 1) / model.config.n_heads)) * np.abs(np.arange(len(key)) - place)
    may_see = np.ones(len(key), dtype=bool)
    if not across and not site.startswith("encoder"):
        offset = np.arange(len(key)) - place
        may_see = np.abs(offset) <= 1 if model.config.mask == "sliding-window:1" else offset <= 0
    scores = dots / math.sqrt(width) + bias
    exponentials = np.array([math.exp(s - scores[may_see].max()) if m else 0.0 for s, m in zip(scores, may_see)])  # noqa: B905
    pattern = exponentials / exponentials.sum()
    z = sum(p * v for p, v in zip(pattern, value, strict=True))
    written = double(attention.out.weight)[:, rows] @ z
    out = double(seen[f"{site}.out"])[0, place]
    return {
        "every_query": queries,
        "query": queries[place],
        "key": key,
        "dots": dots,
        "scaled": dots / math.sqrt(width),
        "scores": scores,
        "visible": may_see,
        "largest": scores[may_see].max(),
        "exponentials": exponentials,
        "total": exponentials.sum(),
        "pattern": pattern,
        "value": value,
        "weighted": np.outer(pattern, np.ones(width)) * value,
        "z": z,
        "output_weight": double(attention.out.weight)[:, rows].T,
        "written": written,
        "output_bias": double(attention.out.bias),
        "others": out - written - double(attention.out.bias),
        "before": before[place],
        "after": before[place] + out,
    }


# --- what is left out


def inside_of(head: Head, n_keys: int = 3, d_head: int = 2) -> Inside:
    """Some numbers, for what depends on names and sizes only."""
    rng = np.random.default_rng(0)
    row, pattern = rng.normal(size=n_keys), rng.dirichlet(np.ones(n_keys))
    key, value, wide = rng.normal(size=(n_keys, d_head)), rng.normal(size=(n_keys, d_head)), rng.normal(size=8)
    return Inside(
        head, 0, ("<b>",) * n_keys, ("<i>&",) * n_keys, False, "", every_query=key, query=key[0], key=key, dots=row,
        scaled=row, bias=None, scores=row, visible=np.ones(n_keys, bool), largest=row.max(),
        exponentials=np.exp(row - row.max()), total=1.0, pattern=pattern, value=value,
        weighted=pattern[:, None] * value, z=value[0],
        output_weight=rng.normal(size=(d_head, 8)), written=wide, others=wide, output_bias=wide, out=wide, before=wide,
        after=wide,
    )  # fmt: skip
