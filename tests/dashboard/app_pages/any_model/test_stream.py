"""Its layers: the lens and the rollout of an imported model, worked out here by other means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import transformers

from tests.kit.pages import array, open_page, trace

TEXT = "The king is dead, long live the king, the king!"


def test_the_lens_is_the_models_own_last_steps_after_each_layer(models: Path) -> None:
    folder = models / "small-gpt2"
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        output = model(tokens, output_hidden_states=True)
        embedding, first = output.hidden_states[0][0], output.hidden_states[1][0]
        stages = [model.lm_head(model.transformer.ln_f(stream)) for stream in (embedding, first)]
        expected = torch.stack([*stages, output.logits[0]]).softmax(-1).max(-1).values.numpy()
    app = open_page("stream", imported="small-gpt2", imported_input=TEXT)
    np.testing.assert_allclose(array(trace(app, "imported-lens", "values")["z"]), expected, atol=1e-5)
    same = [int((stage.argmax(-1) == output.logits[0].argmax(-1)).sum()) for stage in stages]
    total = tokens.shape[1]
    half = next(i for i, count in enumerate([*same, total]) if 2 * count >= total)
    said = ("the embedding", "layer 0", "layer 1")[half]
    count = [*same, total][half]
    assert app.title[0].value == f"After {said}, {count} of {total} words are those that it says in the end."


def test_the_rollout_multiplies_half_of_each_layer(models: Path) -> None:
    folder = models / "small-gpt2"
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        layers = [each[0].mean(0).double() for each in model(tokens, output_attentions=True).attentions]
    one = torch.eye(tokens.shape[1], dtype=torch.float64)
    expected = (layers[1] + one) / 2 @ (layers[0] + one) / 2
    app = open_page("stream", imported="small-gpt2", imported_input=TEXT)
    found = array(trace(app, "imported-rollout", "values")["z"])
    np.testing.assert_allclose(np.nan_to_num(found), expected.numpy(), atol=1e-5)


def test_without_an_unembedding_there_is_no_lens() -> None:
    app = open_page("stream", imported="small-bert")
    assert app.title[0].value == "Attention rolled out through 2 layers."
    assert app.info[0].value.startswith("There is no logit lens of this model")
