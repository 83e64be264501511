"""The logit lens of models of others, beside a computation of its own; nothing where a model has other last steps."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.kit.foreign.folders import made
from tests.kit.foreign.modules import left_as_it_was
from transformer.capturing.foreign import foreign
from transformer.capturing.lens import lens

TYPED = "3 1 4 1 5 9 2 6"


def hooked(model: Any, norm: nn.Module, blocks: nn.ModuleList, scale: float, given: Any) -> tuple[list[Tensor], Tensor]:
    """The logits after each layer by hooks on a copy of the model, and its own logits."""
    streams: list[Tensor] = []
    handles = [blocks[0].register_forward_pre_hook(lambda module, args: streams.append(args[0]))]
    for block in blocks:
        handles.append(
            block.register_forward_hook(
                lambda module, args, out: streams.append(out[0] if isinstance(out, tuple) else out)
            )
        )
    with torch.no_grad():
        own = model(*given.args, **given.named).logits[0]
        for handle in handles:
            handle.remove()
        return [model.get_output_embeddings()(norm(stream[0]) * scale) for stream in streams], own


PLACES: dict[str, tuple[str, str, float]] = {
    "GPT2LMHeadModel": ("transformer.ln_f", "transformer.h", 1.0),
    "LlamaForCausalLM": ("model.norm", "model.layers", 1.0),
    "MistralForCausalLM": ("model.norm", "model.layers", 1.0),
    "T5ForConditionalGeneration": ("decoder.final_layer_norm", "decoder.block", 32**-0.5),
    "BartForConditionalGeneration": ("", "model.decoder.layers", 1.0),
}


@pytest.mark.parametrize("kind", PLACES)
def test_it_is_the_last_steps_taken_after_each_layer(kind: str) -> None:
    model = made(kind)
    for value in model.parameters():  # norms do something, and layers differ
        nn.init.normal_(value, 1.0 if value.dim() == 1 else 0.0, 0.3, generator=torch.Generator().manual_seed(1))
    model.tie_weights()
    one = foreign(kind, model)
    given = one.given(TYPED, "7 8 9")
    norm, blocks, scale = PLACES[kind]
    other = copy.deepcopy(model)
    found_norm = other.get_submodule(norm) if norm else nn.Identity()
    logits, own = hooked(other, found_norm, other.get_submodule(blocks), scale, given)
    torch.testing.assert_close(logits[-1], own, atol=1e-3, rtol=1e-4)
    seen = lens(one, given)
    assert seen is not None
    assert seen.layers == ("embedding", "layer 0", "layer 1")
    assert seen.names == given.names
    final = own.argmax(-1)
    for layer, of_layer in enumerate(logits):
        shares = of_layer.softmax(-1)
        np.testing.assert_array_equal(seen.tokens[layer], of_layer.argmax(-1))
        np.testing.assert_allclose(seen.probabilities[layer], shares.max(-1).values, rtol=1e-3)
        np.testing.assert_allclose(seen.of_final[layer], shares[range(len(final)), final], rtol=1e-3, atol=1e-7)
        ordered = of_layer.argsort(-1, descending=True)
        np.testing.assert_array_equal(seen.ranks[layer], 1 + (ordered == final[:, None]).int().argmax(-1))
        assert seen.words[layer] == tuple(map(str, seen.tokens[layer]))
    assert (seen.ranks[-1] == 1).all()
    assert (seen.ranks[0] > 1).any()


def test_the_model_is_afterwards_what_it_was() -> None:
    model = made("GPT2LMHeadModel")
    one = foreign("gpt2", model)
    with left_as_it_was(model):
        assert lens(one, one.given(TYPED)) is not None


OTHERS = ("BertModel", "BertForMaskedLM", "BertForSequenceClassification", "GPT2ForSequenceClassification")


@pytest.mark.parametrize("kind", [*OTHERS, "ViTForImageClassification", ""])
def test_there_is_none_where_the_last_steps_are_others(kind: str) -> None:
    """BERT's head for masked words has a layer of its own before it reads off the words."""
    one = foreign(kind, made(kind) if kind else nn.Embedding(20, 4))
    assert lens(one, one.given() if one.says == "picture" else one.given(TYPED)) is None


def test_a_norm_that_is_not_the_last_step_is_noticed() -> None:
    """What is behind the norm is part of the model's own words; the lens would leave it out."""
    model: Any = made("LlamaForCausalLM")
    inside = model.forward
    model.forward = lambda *args, **named: _doubled(inside(*args, **named))
    one = foreign("llama", model)
    assert lens(one, one.given(TYPED)) is None


def _doubled(output: Any) -> Any:
    output.logits = 2 * output.logits
    return output
