"""A model without residual connections: what its blocks hand on, and who refuses to read it as a sum of writes."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.kit.pages import ROOT, open_page
from transformer import checkpoints
from transformer.__main__ import main
from transformer.analysis.findings import Head
from transformer.analysis.heads.circuits import circuits
from transformer.analysis.heads.inside import look_inside
from transformer.analysis.stream.attribution import direct_logits
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.observation import observe
from transformer.training.recording import record
from transformer.training.runs import Run

NONE = "this model has no residual connections"
TASK_OF = {"decoder": "reverse", "encoder": "reverse-aligned", "encoder-decoder": "reverse-translate"}
SMALL = {"n_layers": 2, "n_heads": 2, "d_model": 16}


def config(architecture="decoder", **model) -> RunConfig:
    shape = ModelConfig(architecture=architecture, **{**SMALL, "d_ff": 24, **model})
    return RunConfig(task=TaskConfig(task=TASK_OF[architecture], length=4), model=shape)


def seen_by(one: RunConfig):
    model, task = build(one).eval(), one.build_task()
    batch = task.batch(np.random.default_rng(0), 3)
    source = None if batch.source is None else torch.from_numpy(batch.source)
    return model, observe(model, torch.from_numpy(batch.tokens), source=source)


CASES = list(itertools.product(TASK_OF, ("pre", "post", "none"), (0, 24)))


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("architecture", "norm", "d_ff"), CASES)
def test_a_sub_layer_adds_to_its_stream_and_without_them_makes_it_anew_bit_for_bit(architecture, norm, d_ff, residual):
    model, seen = seen_by(config(architecture, norm=norm, d_ff=d_ff, residual=residual))
    for stack in (name for name in ("encoder", "decoder") if hasattr(model, name)):
        x = seen[f"{stack}.token_embedding"] + seen[f"{stack}.position_embedding"]
        for layer, block in enumerate(getattr(model, stack)):
            path = f"{stack}.{layer}"
            assert torch.equal(x, seen[f"{path}.resid_pre"])
            steps = [("self_attention", block.around_self, "resid_mid")]
            steps += [("cross_attention", block.around_cross, "resid_cross")] if block.cross else []
            steps += [("feed_forward", block.around_feed_forward, "resid_post")] if d_ff else []
            for name, norms, after in steps:
                made = seen[f"{path}.{name}.out"]
                x = norms.after(x + made if residual else made)
                assert torch.equal(x, seen[f"{path}.{after}"]), (path, name)
            assert torch.equal(x, seen[f"{path}.resid_post"])


def test_the_same_seed_draws_the_same_weights_and_gradients_reach_them_all():
    one, other = (build(config(residual=residual)) for residual in (True, False))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    tokens = torch.tensor([[1, 2, 3, 4, 10, 4, 3, 2]])
    other(tokens).square().sum().backward()
    # A key's bias adds the same to all scores of a query, which the softmax ignores.
    still = {name for name, weight in other.named_parameters() if not weight.grad.abs().max() > 1e-7}
    assert {re.sub(r"\d+", "n", name) for name in still} <= {"decoder.n.self_attention.key.bias"}


# --- the setting


def test_a_card_without_the_field_is_a_model_with_them():
    card = json.loads((ROOT / "checkpoints" / "reverse-translate" / "run.json").read_text())
    card["config"]["model"].pop("residual", None)
    assert RunConfig.from_dict(card["config"]).model.residual


def test_the_field_is_kept(tmp_path):
    one = config(residual=False)
    assert RunConfig.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    checkpoints.save(tmp_path / "m.safetensors", build(one), one)
    model, read = checkpoints.load(tmp_path / "m.safetensors")
    assert not read.model.residual
    assert not any(block.residual for block in model.decoder)
    recurrent = ModelConfig(architecture="gru", residual=False)
    assert RunConfig(task=TaskConfig(task="reverse-translate"), model=recurrent).model.residual


def test_the_command_line_trains_without(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ["--length", "3", "--n-layers", "1", "--n-heads", "1", "--d-model", "8", "--d-ff", "0", "--max-steps", "1"]
    assert main(["train", "--no-residual", "--device", "cpu", *small, "--out", "a"]) == 0
    assert not Run(Path("a")).config.model.residual


# --- what reads the stream as a sum


def test_what_needs_a_sum_refuses_with_a_sentence():
    model, seen = seen_by(config(residual=False))
    with pytest.raises(ConfigError, match=f"{NONE}: its logits are no sum"):
        direct_logits(model, seen)
    with pytest.raises(ConfigError, match=f"{NONE}: no straight way"):
        circuits(model, Head("decoder.0.self_attention", 0))
    model, seen = seen_by(config())
    torch.testing.assert_close(sum(direct_logits(model, seen).values()), seen.logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("residual", [True, False])
def test_inside_a_head_the_parts_add_up_to_the_new_stream(residual):
    one = config(norm="none", residual=residual)
    model, question = build(one).eval(), np.array([3, 1, 4, 1])
    inside = look_inside(model, one.build_task(), question, Head("decoder.1.self_attention", 1), 5)
    batch = one.build_task().encode([question])
    seen = observe(model, torch.from_numpy(batch.tokens))
    np.testing.assert_allclose(inside.after, seen["decoder.1.resid_mid"][0, 5], atol=1e-6)
    parts = inside.before + inside.written + inside.others + inside.output_bias
    np.testing.assert_allclose(inside.after, parts, atol=1e-5)
    assert inside.residual == residual
    assert bool(np.any(inside.before)) == residual


@pytest.fixture(scope="module")
def without(tmp_path_factory) -> Path:
    """A folder with a run of a few steps, without residual connections."""
    root = tmp_path_factory.mktemp("runs")
    model = ModelConfig(**SMALL, d_ff=24, residual=False)
    training = TrainingConfig(max_steps=2, device="cpu")
    run = Run.create(root / "without", RunConfig(model=model, training=training))
    for _ in record(run):
        pass
    return root


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("page", "query", "said"),
    [
        ("layers", {}, ["rollout counts half of each stream", "its logits are no sum"]),
        ("information", {}, ["rollout counts half of each stream"]),
        *((page, {}, []) for page in ("overview", "heads", "masks", "edits", "order", "accuracy")),
        *(("questions", {"asked": number}, []) for number in "1345"),
        ("inside", {"operation": "add"}, ["no straight way leads from its embeddings"]),
    ],
)
def test_every_page_opens_and_says_what_it_cannot_show(page, query, said, without, monkeypatch):
    monkeypatch.setattr("dashboard.models.menu.ROOT", without)
    app = open_page(page, run="without", **query)
    assert not app.error
    told = [info.value for info in app.info if NONE in info.value.lower()]
    assert len(told) == len(said)
    for sentence, words in zip(told, said, strict=True):
        assert sentence.startswith("This model has no residual connections: ")
        assert words in sentence
    if page == "inside":  # its last step says that nothing is kept
        written = [element.value for element in app.markdown]
        assert any("what was there is gone" in text for text in written)
        assert any(r"x \leftarrow \sum_h" in text for text in written)
