"""PyTorch's own functions of attention, seen as they are called: fused attention, multi-head attention, softmax.

PyTorch hands every call of its functions on this thread to a `TorchFunctionMode` first. Each call is done as it was
asked for; what it was given is looked at beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from transformer.attention import masked_softmax
from transformer.capturing.record import Notes

Call = Callable[..., Any]
HEADS = ("attn", "attention", "head")
"""In the name of a class whose softmax of three axes is taken for one head's pattern."""


class Calls(TorchFunctionMode):
    """While it is entered, the calls of attention on this thread are written down."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self.notes = notes

    def __torch_function__(
        self, func: Call, types: Iterable[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        look = LOOKS.get(func)
        if look is not None and not self.notes.paused:
            look(self.notes, result, *args, **(kwargs or {}))
        return result


def opened(
    query: Float[Tensor, "*batch head query d_k"],
    key: Float[Tensor, "*batch key_head key d_k"],
    value: Float[Tensor, "*batch key_head key d_v"],
    scale: float,
    *,
    allowed: Bool[Tensor, "..."] | None = None,
    added: Float[Tensor, "..."] | None = None,
) -> dict[str, Tensor]:
    """What a fused kernel computes and does not tell: scores, mask, pattern and result, in single precision at least.

    Where fewer heads have keys than queries (grouped queries), each key's head is repeated for those that share it.
    `allowed` (True where a query may see a key) and `added` spread to the shape of the scores. `added` is added to the
    scores; what it takes to minus infinity, or to the lowest number there is, is forbidden.
    """
    query, key, value = (each.detach() for each in (query, key, value))
    key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    exact = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(exact) @ key.to(exact).transpose(-2, -1) * scale
    if added is not None:
        seen = added > torch.finfo(added.dtype).min / 2
        scores = scores + added.masked_fill(~seen, 0.0)
        allowed = seen if allowed is None else seen & allowed
    pattern = masked_softmax(scores, allowed)
    found = {"query": query, "key": key, "value": value, "scores": scores}
    if allowed is not None:
        found["mask"] = allowed.expand_as(scores)
    return {**found, "pattern": pattern, "z": pattern @ value.to(exact)}


def _of_four(tensor: Tensor) -> Tensor:
    """[batch, head, …] of anything with more or fewer axes in front; one head where there are three."""
    if tensor.dim() > 4:
        return tensor.flatten(0, -4)
    return tensor.unsqueeze(1) if tensor.dim() == 3 else tensor[(None,) * (4 - tensor.dim())]


def _fused(
    notes: Notes,
    result: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> None:
    if query.is_nested or key.is_nested:
        notes.miss(notes.caller(), "its sequences are nested tensors of unequal lengths, which are not read")
        return
    if is_causal:
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    allowed, added = (attn_mask, None) if attn_mask is None or attn_mask.dtype == torch.bool else (None, attn_mask)
    if query.dim() == 3:  # [batch, position, d]: one head
        query, key, value = (each.unsqueeze(1) for each in (query, key, value))
        allowed, added = (each if each is None or each.dim() < 3 else each.unsqueeze(1) for each in (allowed, added))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    found = opened(query, key, value, scale, allowed=allowed, added=added)
    notes.write(notes.caller(), **{kind: _of_four(each) for kind, each in found.items()})


_MULTI_HEAD = signature(functional.multi_head_attention_forward)


def _multi_head(notes: Notes, result: Any, *args: Any, **kwargs: Any) -> None:
    """PyTorch's multi-head attention in one function; it is asked once more, for the pattern alone."""
    asked = _MULTI_HEAD.bind(*args, **kwargs)
    asked.apply_defaults()
    given = asked.arguments
    given.update(training=False, need_weights=True, average_attn_weights=False)
    pattern: Tensor = functional.multi_head_attention_forward(*asked.args, **asked.kwargs)[1]  # type: ignore[assignment]
    found = {"pattern": _of_four(pattern[None] if pattern.dim() == 3 else pattern)}
    plain = all(given[name] is None for name in ("bias_k", "bias_v", "static_k", "static_v"))
    if plain and not given["add_zero_attn"]:
        found = _projected(given) | found
        found["z"] = found["pattern"] @ found["value"]
    notes.write(notes.caller(), **found)


def _projected(given: Mapping[str, Any]) -> dict[str, Tensor]:
    """Query, key, value and scores [batch, head, …] by the weights that the function was handed."""
    separate = [given[f"{one}_proj_weight"] for one in "qkv"]
    weights = separate if given["use_separate_proj_weight"] else given["in_proj_weight"].chunk(3)
    biases = (None,) * 3 if given["in_proj_bias"] is None else given["in_proj_bias"].chunk(3)
    query, key, value = (
        _split(
            functional.linear(given[name], weight.detach(), bias if bias is None else bias.detach()), given["num_heads"]
        )
        for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True)
    )
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return {"query": query, "key": key, "value": value, "scores": scores}


def _split(x: Float[Tensor, "position *batch d_model"], heads: int) -> Float[Tensor, "batch head position d_head"]:
    x = x.unsqueeze(1) if x.dim() == 2 else x
    return x.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)


def _softmax(notes: Notes, result: Tensor, *args: Any, **kwargs: Any) -> None:
    """Attention written out by hand: a softmax over the last of four axes; of three, where a class is named a head."""
    scores = args[0] if args else kwargs["input"]
    over = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if over not in (-1, result.dim() - 1) or not isinstance(scores, Tensor) or result.is_nested:
        return
    module = notes.caller()
    one_head = result.dim() == 3 and any(word in type(module).__name__.lower() for word in HEADS)
    if result.dim() >= 4 or one_head:
        notes.write(module, scores=_of_four(scores), pattern=_of_four(result))


LOOKS: dict[Call, Call] = {
    functional.scaled_dot_product_attention: _fused,
    functional.multi_head_attention_forward: _multi_head,
    functional.softmax: _softmax,
    torch.softmax: _softmax,
    Tensor.softmax: _softmax,
}
