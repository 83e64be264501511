"""Its layers, and its attention when it is changed: numbers worked out by hand on the model itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import transformers
from torch.nn import functional

from tests.kit.pages import array, link, open_page, trace

TEXT = "The king is dead, long live the king, the king!"


def opened(folder: Path) -> tuple[transformers.GPT2LMHeadModel, torch.Tensor]:
    """The model, as the library itself opens it, and the tokens of the text."""
    model = transformers.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")["input_ids"]


# --- its layers


@torch.no_grad()
def test_the_lens_is_the_models_own_last_steps_after_each_layer_and_the_rollout_half_of_each(models: Path) -> None:
    model, tokens = opened(models / "small-gpt2")
    output = model(tokens, output_hidden_states=True, output_attentions=True)
    stages = [model.lm_head(model.transformer.ln_f(stream[0])) for stream in output.hidden_states[:2]]
    stages.append(output.logits[0])
    app = open_page("stream", imported="small-gpt2", imported_input=TEXT)
    expected = torch.stack(stages).softmax(-1).max(-1).values.numpy()
    np.testing.assert_allclose(array(trace(app, "imported-lens", "values")["z"]), expected, atol=1e-5)
    total = tokens.shape[1]
    same = [int((stage.argmax(-1) == stages[-1].argmax(-1)).sum()) for stage in stages]
    half = next(i for i, count in enumerate(same) if 2 * count >= total)
    where = ("the embedding", "layer 0", "layer 1")[half]
    many = f"all of its {total}" if same[half] == total else f"{same[half]} of its {total}"
    title = f"After {where} it would already say {many} words."
    if half == 2:
        title = f"Half of its {total} words come only in its last layer."
    assert app.title[0].value == title
    first, second = ((each[0].mean(0) + torch.eye(total)) / 2 for each in output.attentions)
    found = array(trace(app, "imported-rollout", "values")["z"])
    np.testing.assert_allclose(np.nan_to_num(found), (second @ first).numpy(), atol=1e-5)


def test_without_an_unembedding_there_is_no_lens() -> None:
    app = open_page("stream", imported="small-bert")
    assert app.title[0].value == "From which tokens each position comes, through its 2 layers."
    assert app.info[0].value.startswith("There is no logit lens of this model")


# --- its attention


@torch.no_grad()
def without(folder: Path, removed: list[tuple[int, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of the whole model, and with some heads' slices zeroed before the output projection."""
    model, tokens = opened(folder)
    whole = model(tokens).logits[0]
    for layer, head in removed:

        def zeroed(module: torch.nn.Module, given: tuple[torch.Tensor], head: int = head) -> tuple[torch.Tensor]:
            z = given[0].clone()
            z[..., 8 * head : 8 * head + 8] = 0
            return (z,)

        model.transformer.h[layer].attn.c_proj.register_forward_pre_hook(zeroed)
    return whole, model(tokens).logits[0]


def divergence(before: torch.Tensor, after: torch.Tensor) -> np.ndarray:
    p, q = before.double().log_softmax(-1), after.double().log_softmax(-1)
    return functional.kl_div(q, p, log_target=True, reduction="none").sum(-1).numpy()


def test_the_output_moves_as_it_does_without_the_heads_and_the_map_is_what_each_removal_alone_does(
    models: Path,
) -> None:
    before, after = without(models / "small-gpt2", [(0, 1), (1, 3)])
    removed = "decoder.0.self_attention.1,decoder.1.self_attention.3"
    app = open_page("ablation", imported="small-gpt2", imported_input=TEXT, removed=removed)
    moved = array(trace(app, "imported-change", "measured")["y"])
    np.testing.assert_allclose(moved, divergence(before, after), rtol=1e-3, atol=1e-7)
    flips = int((before.argmax(-1) != after.argmax(-1)).sum())
    assert app.title[0].value == (f"Without heads 0.1 and 1.3, {flips} of its {len(before)} words change.")
    assert any(each.value.startswith(f"{flips} of {len(before)} likeliest words change.") for each in app.caption)
    found = array(trace(app, "imported-removal", "values")["z"])
    for layer, head in [(0, 0), (1, 2)]:
        expected = divergence(*without(models / "small-gpt2", [(layer, head)])).mean()
        np.testing.assert_allclose(found[layer, head], expected, rtol=1e-3, atol=1e-7)


def test_another_mask_is_what_its_self_attention_sees(models: Path) -> None:
    app = open_page("ablation", imported="small-bert", seen_mask="causal")
    assert app.title[0].value.startswith("Under the causal mask, its vectors change by ")
    cells = array(trace(app, "imported-masked", "values")["z"])
    n = len(cells)
    assert np.isnan(cells[np.triu_indices(n, 1)]).all()
    np.testing.assert_allclose(np.nan_to_num(cells).sum(-1), 1, atol=1e-5)


def test_what_a_link_names_in_vain_is_left_out() -> None:
    app = open_page("ablation", imported="small-gpt2", removed="decoder.9.self_attention.0", seen_mask="nonsense")
    assert len(app.warning) == 2
    assert "removed" not in link(app)
    assert "seen_mask" not in link(app)
