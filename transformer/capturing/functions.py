"""PyTorch's own functions of attention, seen as they are called: fused attention, multi-head attention, softmax.

PyTorch hands every call of its functions on this thread to a `TorchFunctionMode` first. Each door does the call as it
was asked for, or as a change asks (`changes.py`), and looks at what it was given beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from inspect import signature
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from transformer.attention import masked_softmax
from transformer.capturing.following import Weighing
from transformer.capturing.products import product
from transformer.capturing.proof import FORBIDDEN
from transformer.capturing.record import Notes

Attend = Callable[..., Any]


class Calls(TorchFunctionMode):
    """While it is entered, the calls of attention on this thread are written down."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self.notes = notes

    def __torch_function__(
        self, func: Attend, types: Iterable[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if self.notes.paused:
            return func(*args, **(kwargs or {}))
        door = DOORS.get(func) or (_flexible if getattr(func, "__name__", "") == "flex_attention" else None)
        if door is None:
            return self.notes.following.call(func, args, kwargs or {})
        return door(self.notes, func, *args, **(kwargs or {}))


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
    scores; what it takes below FORBIDDEN is forbidden.
    """
    query, key, value = query.detach().clone(), *(_shared(each.detach(), query) for each in (key, value))
    exact = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(exact) @ key.to(exact).transpose(-2, -1) * scale
    if added is None:
        pattern = masked_softmax(scores, allowed)
    else:
        # A row that a finite number forbids as a whole is still divided among its keys; one of minus infinity is not.
        finite = added > -torch.inf
        pattern = masked_softmax(scores + added, finite if allowed is None else finite & allowed)
        seen = added > FORBIDDEN
        scores = scores + added.masked_fill(~seen, 0.0)
        allowed = seen if allowed is None else seen & allowed
    found = {"query": query, "key": key, "value": value, "scores": scores}
    if allowed is not None:
        found["mask"] = allowed.clone().expand_as(scores)
    return {**found, "pattern": pattern, "z": pattern @ value.to(exact)}


def _shared(each: Tensor, query: Tensor) -> Tensor:
    """A copy of keys or values, repeated for the query heads that share them."""
    return each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) if query.dim() > 2 else each.clone()


def of_four(tensor: Tensor) -> Tensor:
    """[batch, head, …] of anything with more or fewer axes in front; one head where there are three."""
    if tensor.dim() > 4:
        return tensor.flatten(0, -4)
    return tensor.unsqueeze(1) if tensor.dim() == 3 else tensor[(None,) * (4 - tensor.dim())]


def _numbers(mask: Tensor | None) -> Tensor | None:
    """A mask that is added to scores; none where it only says yes and no."""
    return None if mask is None or mask.dtype == torch.bool else mask


def _fused(
    notes: Notes,
    attend: Attend,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Fused attention; its heads are joined afterwards, so one is removed from its result."""
    module = notes.caller()
    if query.is_nested or key.is_nested:
        notes.miss(module, "its sequences are nested tensors of unequal lengths, which are not read")
        return attend(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    number = len(notes.following.weighings)
    call = notes.kernel_call(number)
    if call.masked:
        attn_mask, is_causal = call.added(_numbers(attn_mask), query), False
    result = attend(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    result = notes.change_result(number, call.rows(result))
    if is_causal:
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    added = _numbers(attn_mask)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    found = opened(query, key, value, scale, allowed=attn_mask if added is None else None, added=added)
    found["pattern"] = call.rows(found["pattern"])
    found["z"] = notes.change_result(number, call.rows(found["z"]))
    if dropout_p > 0:
        notes.remark(
            module,
            f"it asks its kernel to drop weights at random in evaluation mode too (dropout_p={dropout_p:g}); the "
            "pattern is the one before that",
        )
    _follow_kernel(notes, module, found, result)
    return result


def _follow_kernel(notes: Notes, module: nn.Module | None, found: dict[str, Tensor], result: Tensor) -> None:
    """Follow the result of a kernel that does it all; `found` is what it computes, laid out as its result is."""
    pattern, value, z = (found.pop(kind) for kind in ("pattern", "value", "z"))
    weighs = product(torch.matmul, (pattern, value), {})
    assert weighs is not None
    notes.following.weigh(Weighing(module, None, pattern, value, z, weighs, 0, None, more=found), result)


def _flexible(notes: Notes, attend: Attend, query: Tensor, key: Tensor, value: Tensor, *args: Any, **named: Any) -> Any:
    """PyTorch's attention with a score function of one's own: asked once more, for values that tell the keys apart."""
    module, number = notes.caller(), len(notes.following.weighings)
    if notes.kernel_call(number).masked:
        notes.miss(module, "it attends by flex_attention, whose mask is a function")
    result, *more = attend(query, key, value, *args, **named)
    one_hot = torch.eye(key.shape[-2], dtype=value.dtype, device=value.device).expand(*value.shape[:-1], -1)
    pattern = attend(query, key, one_hot, *args, **named)[0]
    shared = query.shape[-3] // key.shape[-3]
    key, value = (each.detach().repeat_interleave(shared, -3) for each in (key, value))
    result = notes.change_result(number, result)
    found = {"query": query.detach().clone(), "key": key, "value": value, "pattern": pattern, "z": result.clone()}
    _follow_kernel(notes, module, found, result)
    return (result, *more)


_MULTI_HEAD = signature(functional.multi_head_attention_forward)


def _multi_head(notes: Notes, attend: Attend, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
    """PyTorch's multi-head attention in one function, which may keep its pattern to itself: it is computed beside it.

    With keys that are none of the sequence's it is asked once more, for the pattern alone.
    It joins its heads itself: one is removed by what W_O makes of it.
    """
    asked = _MULTI_HEAD.bind(*args, **kwargs)
    asked.apply_defaults()
    given = asked.arguments
    query, key, heads = given["query"], given["key"], given["num_heads"]
    own_keys = given["add_zero_attn"] or any(given[name] is not None for name in KEYS_OF_ITS_OWN)
    call = notes.call(notes.caller(), len(query), len(key), crosses=not _same(query, key))
    if call.masked:
        mask = call.added(_numbers(given["attn_mask"]), query)
        given.update(attn_mask=mask, key_padding_mask=None, is_causal=False)
    by_head = given["out_proj_weight"].T.unflatten(0, (heads, -1))
    if (changed := call.heads(by_head)) is not by_head:
        given["out_proj_weight"] = changed.flatten(0, 1).T
    result, weights = attend(*asked.args, **asked.kwargs)
    if call.blind is not None and not own_keys:  # such a query hands on nothing, so its result is the bias of W_O
        nothing = given["out_proj_bias"]
        rows = call.blind.view(-1, *(1,) * (result.dim() - 1))
        result = torch.where(rows, result.new_zeros(()) if nothing is None else nothing, result)
    if own_keys:
        given.update(training=False, need_weights=True, average_attn_weights=False)
        pattern: Tensor = attend(*asked.args, **asked.kwargs)[1]
        found = {"pattern": of_four(pattern[None] if pattern.dim() == 3 else pattern)}
    else:
        found = _projected(given)
        found["pattern"] = call.rows(_mask_scores(given, found["scores"]).softmax(dim=-1))
        found["z"] = call.heads(found["pattern"] @ found["value"])
        found |= _allowed(given, found["pattern"])
    notes.write(call, **found)
    return result, weights


KEYS_OF_ITS_OWN = ("bias_k", "bias_v", "static_k", "static_v")
"""Arguments that bring other keys than those of the sequence."""


def _same(query: Tensor, key: Tensor) -> bool:
    return query is key or (query.shape == key.shape and torch.equal(query, key))


def _mask_scores(
    given: Mapping[str, Any], scores: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head query key"]:
    """Scores as softmax reads them: minus infinity where a mask forbids, and what masks of numbers add."""
    for mask in _spread(given, scores):
        scores = scores.masked_fill(mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def _spread(given: Mapping[str, Any], pattern: Float[Tensor, "batch head query key"]) -> Iterator[Tensor]:
    """The masks of multi-head attention, in which True forbids, so that they spread to a pattern's shape."""
    if (mask := given["attn_mask"]) is not None:
        yield mask.reshape(-1, *(pattern.shape[1:] if mask.dim() == 3 else (1, *mask.shape)))
    if (padding := given["key_padding_mask"]) is not None:
        yield padding.reshape(-1, 1, 1, pattern.shape[-1])


def _allowed(given: Mapping[str, Any], pattern: Float[Tensor, "batch head query key"]) -> dict[str, Tensor]:
    """The mask of multi-head attention, in which True forbids; nothing where it has none."""
    masks = [each if each.dtype == torch.bool else each <= FORBIDDEN for each in _spread(given, pattern)]
    return {"mask": ~reduce(torch.logical_or, masks).expand_as(pattern)} if masks else {}


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


DOORS: dict[Attend, Attend] = {
    functional.scaled_dot_product_attention: _fused,
    functional.multi_head_attention_forward: _multi_head,
}
"""What stands in for each of PyTorch's functions of attention: it calls the function, and looks."""
