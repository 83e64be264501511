"""Models of the library transformers, seen by its own door: an attention function that it lets anybody register.

https://huggingface.co/docs/transformers/attention_interface. No module is patched and no hook is set. Which function a
model uses is a setting of the model; it is put back afterwards. The library is not needed: without it no model is its.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from transformer.capturing.functions import of_four, opened
from transformer.capturing.record import Notes

NAME = "attention-lab"
LOOKING: ContextVar[Notes | None] = ContextVar("looking", default=None)
"""Who looks, on this thread; nobody for all the others that call the same model meanwhile."""
UNLIKE = ("softcap", "s_aux")
"""What changes scores on their way into softmax: these are not written down then."""


@contextmanager
def door(model: object, notes: Notes) -> Iterator[None]:
    """Each attention of the Hugging Face models in `model` tells `notes` what it does; then they are as before."""
    if "transformers" not in sys.modules or not isinstance(model, nn.Module):
        yield
        return
    from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, eager_mask)
    theirs = [each for each in model.modules() if isinstance(each, PreTrainedModel)]
    outermost = [each for each in theirs if not any(each is not one and each in set(one.modules()) for one in theirs)]
    before = [(each.config, _chosen(each.config)) for each in theirs]
    looking = LOOKING.set(notes)
    try:
        for each in outermost:
            each.set_attn_implementation(NAME)
        yield
    finally:
        LOOKING.reset(looking)
        for config, chosen in before:
            config._attn_implementation = chosen


def _chosen(config: Any) -> dict[str, Any]:
    """Which attention function a model uses, and each of the models in it."""
    parts = {name: getattr(config, name) for name in config.sub_configs}
    return {"": config._attn_implementation} | {name: _chosen(part) for name, part in parts.items() if part is not None}


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **more: Any,
) -> tuple[Tensor, Tensor | None]:
    """What `attn_implementation="eager"` computes, by the model's own function for it, and a note of it.

    Returns the result [batch, query, head, d_head] and the pattern [batch, head, query, key].
    """
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    notes, fused = LOOKING.get(), ALL_ATTENTION_FUNCTIONS["sdpa"]
    own = getattr(sys.modules[type(module).__module__], "eager_attention_forward", fused)
    if notes is None:
        # A pass of another thread. It made its mask for the fused kernel if that was before the setting was changed.
        causal = getattr(module, "is_causal", False)
        of_fused = causal if attention_mask is None else attention_mask.dtype == torch.bool
        whose = fused if of_fused else own
        return whose(module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **more)
    call = notes.call(module, query.shape[-2], key.shape[-2])
    if (mask := call.added(attention_mask, query)) is not None:
        attention_mask = of_four(mask)
    with notes.pause():
        result, pattern = own(module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **more)
        bias = more.get("position_bias")
        scale = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
        added = attention_mask if bias is None else bias if attention_mask is None else bias + attention_mask
        found = opened(query, key, value, scale, added=added)
    z = call.heads(call.rows(result.transpose(1, 2)))
    pattern = pattern if pattern is None else call.rows(pattern)
    seen = call.rows(found["pattern"]) if pattern is None else pattern.clone()
    found |= {"z": z.clone(), "pattern": seen}  # the model may write into its own
    if any(more.get(name) is not None for name in UNLIKE):
        del found["scores"]
    notes.write(call, **found)
    return z.transpose(1, 2), pattern
