"""Laws of the recurrent networks, against the equations written out by hand, and their way through the product.

By hand means numpy in double precision, one sequence, one step and one number after the other.
"""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.kit.numbers.rounding import near
from tests.kit.recurrent_by_hand import (
    PAD,
    SEP,
    SITE,
    configured,
    logits_by_hand,
    mapped,
    numbers,
    said_by_hand,
    states_by_hand,
)
from transformer import checkpoints
from transformer.__main__ import main
from transformer.analysis.accuracy import by_position
from transformer.analysis.accuracy.by_position import accuracy_by_position, predictions
from transformer.analysis.film.film import Film
from transformer.analysis.film.take import film
from transformer.analysis.findings import Example
from transformer.analysis.heads.detail import detail
from transformer.analysis.heads.measure import heads_of, measure_heads, measure_removal
from transformer.analysis.heads.survey import survey
from transformer.analysis.health.examine import examine
from transformer.analysis.interventions.influence import gradients, poke
from transformer.analysis.sample import sample, say
from transformer.config import ATTENTIONS, ModelConfig, RunConfig, TrainingConfig
from transformer.edits import OverrideMask
from transformer.edits.heads.zero import AblateHead
from transformer.edits.patterns.painted import ForcePattern
from transformer.model import build
from transformer.observation import observe
from transformer.recurrent import Alignment, Recurrent
from transformer.recurrent.scoring import cosine, dot, scaled_dot, uniform
from transformer.training.exchange.inspection import inspect
from transformer.training.loop import Training
from transformer.training.recording import develop, record
from transformer.training.runs import Run, new_folder

ATTENTION = pytest.mark.parametrize("attention", ATTENTIONS)
EVERY = pytest.mark.parametrize(("attention", "affine", "n_layers"), [*product(ATTENTIONS, (True, False), (1, 2))])
LOOKING = [name for name in ATTENTIONS if name != "none"]


def small(attention: str = "scaled-dot", **settings: object) -> Recurrent:
    model = build(configured(attention, **settings)).eval()
    assert isinstance(model, Recurrent)
    return model


def drawn(batch: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 10, (batch, length), generator=torch.Generator().manual_seed(seed))


@EVERY
def test_it_computes_what_the_equations_say(attention: str, affine: bool, n_layers: int) -> None:
    model = small(attention, affine=affine, n_layers=n_layers)
    source, tokens = [3, 1, 4, 1, PAD], [SEP, 1, 4, 1]
    expected, alpha = logits_by_hand(model, source, tokens)
    seen = observe(model, torch.tensor([tokens]), source=torch.tensor([source]))
    np.testing.assert_allclose(seen.logits[0].numpy(), expected, atol=2e-6)
    assert seen.attentions() == (() if attention == "none" else (SITE,))
    if attention != "none":
        np.testing.assert_allclose(seen[f"{SITE}.pattern"][0, 0].numpy(), alpha, atol=1e-6)


# --- attention


@pytest.mark.parametrize("affine", [True, False])
def test_with_uniform_scores_the_context_is_the_mean_of_the_values(affine: bool) -> None:
    torch.manual_seed(0)
    alignment = Alignment(6, "uniform", affine=affine)
    query, states = torch.randn(2, 3, 6), torch.randn(2, 5, 6)
    mean = alignment.value(states).mean(dim=1, keepdim=True)
    torch.testing.assert_close(alignment(query, states), mean.expand(-1, 3, -1))
    mask = torch.tensor([True, True, False, True, False])[None, None, None]
    kept = alignment.value(states[:, [0, 1, 3]]).mean(dim=1, keepdim=True)
    torch.testing.assert_close(alignment(query, states, mask), kept.expand(-1, 3, -1))


@pytest.mark.parametrize("scoring", LOOKING)
def test_attention_over_one_state_is_that_state(scoring: str) -> None:
    torch.manual_seed(0)
    alignment = Alignment(6, scoring, affine=False)
    query, state = torch.randn(2, 3, 6), torch.randn(2, 1, 6)
    assert alignment(query, state).detach() == near(state.expand(-1, 3, -1))


def test_the_scores_are_those_of_their_names() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(3, 6), torch.randn(4, 6)
    for i, j in product(range(3), range(4)):
        q, k = query[i].tolist(), key[j].tolist()
        product_ = sum(a * b for a, b in zip(q, k, strict=True))
        lengths = math.hypot(*q) * math.hypot(*k)
        assert float(dot(query, key)[i, j]) == pytest.approx(product_, abs=1e-5)
        assert float(scaled_dot(query, key)[i, j]) == pytest.approx(product_ / math.sqrt(6), abs=1e-5)
        assert float(cosine(query, key)[i, j]) == pytest.approx(product_ / lengths, abs=1e-5)
        assert float(uniform(query, key)[i, j]) == 0
    unit = [vectors / vectors.norm(dim=-1, keepdim=True) for vectors in (query, key)]
    torch.testing.assert_close(dot(*unit), cosine(query, key))  # the dot product of unit vectors is the cosine


def test_there_is_no_other_scoring() -> None:
    with pytest.raises(ValueError, match="scoring must be one of uniform, dot, scaled-dot, additive, not 'general'"):
        Alignment(6, "general")


# --- learning


@EVERY
@pytest.mark.parametrize("teacher_forcing", [1.0, 0.5])
@pytest.mark.daily(16)
def test_gradients_flow_to_every_parameter(attention: str, affine: bool, n_layers: int, teacher_forcing: float) -> None:
    model = small(attention, affine=affine, n_layers=n_layers, teacher_forcing=teacher_forcing).train()
    source = drawn(8, 5)
    tokens = torch.cat([torch.full((8, 1), SEP), source.flip(1)[:, :-1]], dim=1)
    torch.manual_seed(0)
    logits = model(tokens, source)
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), source.flip(1).flatten()).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        most = float(weight.grad.abs().max())
        if name == "core.attention.key.bias" and attention in ("dot", "scaled-dot"):
            assert most < 1e-6  # q·b is the same for every key, and a softmax does not feel what is
        else:
            assert most > 1e-6, name


def binomial_bounds(n: int, p: float, tail: float) -> tuple[int, int]:
    """The counts between which all but `tail` on either side lies, exactly."""
    ways = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)]
    below = np.cumsum([math.exp(way + k * math.log(p) + (n - k) * math.log(1 - p)) for k, way in enumerate(ways)])
    return int(np.searchsorted(below, tail)), int(np.searchsorted(below, 1 - tail))


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 1.0])
def test_the_teacher_helps_as_often_as_it_is_told(p: float) -> None:
    """Each place of each sequence for itself: counted in all, in each column, and for two neighbours together."""
    if p in (0, 1):
        assert (small(teacher_forcing=p).helped(torch.zeros(100, 5, dtype=torch.int64)) == bool(p)).all()
        return
    torch.manual_seed(0)
    helped = small(teacher_forcing=p).helped(torch.zeros(2000, 5, dtype=torch.int64)).numpy()
    low, high = binomial_bounds(10_000, p, 1e-6)
    assert low <= helped.sum() <= high
    assert high - low < 600  # a bound that says something
    low, high = binomial_bounds(2000, p, 1e-6)
    assert all(low <= count <= high for count in helped.sum(axis=0))
    low, high = binomial_bounds(2000, p * p, 1e-6)
    assert low <= (helped[:, 1] & helped[:, 2]).sum() <= high


@ATTENTION
@pytest.mark.parametrize("n_layers", [1, 2])
def test_what_is_read_in_training_is_what_help_says(attention: str, n_layers: int, monkeypatch) -> None:
    """With any pattern of help, a place reads the right token or the one said before it."""
    model = small(attention, n_layers=n_layers, teacher_forcing=0.5)
    source, tokens = drawn(3, 4), torch.cat([torch.full((3, 1), SEP), drawn(3, 3, seed=1)], dim=1)
    for help_ in ([True] * 4, [False] * 4, [True, False, True, False], [False, True, True, False]):
        helped = torch.tensor([help_] * 3)
        monkeypatch.setattr(model, "helped", lambda tokens, helped=helped: helped)
        found = model.train()(tokens, source).detach().numpy()
        for row in range(3):
            read = [SEP]
            for place in range(4):
                logits, _ = logits_by_hand(model, source[row].tolist(), read)
                np.testing.assert_allclose(found[row, place], logits[-1], atol=2e-6)
                if place < 3:
                    read.append(int(tokens[row, place + 1]) if help_[place + 1] else int(logits[-1].argmax()))


def test_with_full_help_training_is_evaluation() -> None:
    model, source = small(teacher_forcing=1.0), drawn(3, 5)
    assert torch.equal(model.train()(source, source), model.eval()(source, source))


@pytest.mark.daily(1)
@pytest.mark.parametrize("teacher_forcing", [0.5, 0.0])
def test_a_training_with_little_help_is_taken_up_to_the_bit(teacher_forcing: float, tmp_path) -> None:
    config = configured("none", teacher_forcing=teacher_forcing, max_steps=12, d_model=16)
    alone = [step.loss for step in steps_of(Training(build(config), config))]
    run = Run.create(tmp_path / "run", config)
    first = record(run)
    losses = [next(first).loss for _ in range(5)]
    first.close()
    torch.rand(7)  # whatever else draws from the global generator
    losses = losses[: max(run.snapshots())]
    losses += [step.loss for step in record(run)]
    assert losses == alone
    helped = configured("none", teacher_forcing=1.0, max_steps=12, d_model=16)
    assert [step.loss for step in steps_of(Training(build(helped), helped))] != alone


@pytest.mark.nightly
@pytest.mark.parametrize("attention", ["none", "scaled-dot"])
def test_it_learns_to_reverse_three_symbols_by_itself(attention: str) -> None:
    config = configured(attention, length=3, d_model=32, max_steps=150)
    model = build(config)
    before = accuracy_by_position(model.eval(), config.build_task(), sequences=500).mean
    assert (before < 0.3).all()
    for _ in steps_of(Training(model, config)):
        pass
    assert (accuracy_by_position(model.eval(), config.build_task(), sequences=500).mean > 0.9).all()


def steps_of(training: Training):
    while not training.done:
        yield training.take_step()


# --- speaking


@ATTENTION
@pytest.mark.parametrize("n_layers", [1, 2])
def test_it_says_by_itself_what_it_says_to_its_own_words(attention: str, n_layers: int) -> None:
    model = small(attention, n_layers=n_layers, seed=3)
    source = drawn(4, 5)
    said = model.greedy(source, SEP)
    assert said.tolist() == [said_by_hand(model, row) for row in source.tolist()]
    read = torch.cat([torch.full((4, 1), SEP), said[:, :-1]], dim=1)
    assert torch.equal(model(read, source).argmax(dim=-1), said)


@ATTENTION
@pytest.mark.parametrize("n_layers", [1, 2])
def test_padding_leaves_no_mark(attention: str, n_layers: int) -> None:
    model = small(attention, n_layers=n_layers)
    source, tokens = drawn(3, 3), torch.cat([torch.full((3, 1), SEP), drawn(3, 2)], dim=1)
    padded = torch.nn.functional.pad(source, (0, 2), value=PAD)
    torch.testing.assert_close(model(tokens, padded), model(tokens, source), atol=1e-6, rtol=0)
    assert torch.equal(model.greedy(padded, SEP)[:, :3], model.greedy(source, SEP))


def test_it_says_what_it_cannot_read() -> None:
    model = small()
    with pytest.raises(ValueError, match="6 tokens do not fit into a context of 5"):
        model(drawn(1, 6), drawn(1, 6))
    with pytest.raises(ValueError, match="needs a source"):
        model(drawn(1, 3))


# --- measuring


@pytest.mark.daily(2)
@ATTENTION
def test_nobody_helps_it_while_it_is_measured(attention: str, monkeypatch) -> None:
    """Trained with all help, and wrong often: what is counted is what it says to its own words, however it is cut."""
    config = configured(attention, min_length=2, seed=3)
    model, task = build(config).eval(), config.build_task()
    batch = task.batch(np.random.default_rng(0), 12)
    expected = [said_by_hand(model, [t for t in row if t != PAD]) for row in batch.source.tolist()]
    monkeypatch.setattr(by_position, "CELLS", 100)
    found = predictions(model, batch)
    assert [row[: len(own)] for row, own in zip(found.tolist(), expected, strict=True)] == expected
    right = accuracy_by_position(model, task, sequences=50, length=4)
    x = np.random.default_rng([0, 1]).integers(0, 10, (50, 4))
    said = np.array([said_by_hand(model, row) for row in x.tolist()])
    assert right.correct.tolist() == (said == x[:, ::-1]).sum(axis=0).tolist()
    assert right.exact == int((said == x[:, ::-1]).all(axis=1).sum())


def test_it_speaks_for_itself_under_edits_too() -> None:
    """Without its context vector: its part of the unembedding reads zeros."""
    config = configured("additive", seed=3)
    model, task = build(config).eval(), config.build_task()
    batch = task.batch(np.random.default_rng(0), 6)
    everything = OverrideMask.of(np.ones((1, 5), dtype=bool), f"{SITE}.mask")
    assert predictions(model, batch, [everything]).tolist() == predictions(model, batch).tolist()
    evenly = predictions(model, batch, [ForcePattern.of(np.ones((5, 5), dtype=bool), f"{SITE}.scores", 0)])
    model.core.attention.scoring = "uniform"
    assert evenly.tolist() == [said_by_hand(model, row) for row in batch.source.tolist()]
    model.core.attention.scoring = "additive"
    without = predictions(model, batch, [AblateHead(f"{SITE}.z", 0)])
    with torch.no_grad():
        model.unembedding.weight[:, : config.model.d_model] = 0
    assert without.tolist() == [said_by_hand(model, row) for row in batch.source.tolist()]


@pytest.mark.parametrize("attention", ["none", "scaled-dot"])
def test_it_is_surveyed_filmed_and_examined(attention: str, tmp_path) -> None:
    config = configured(attention, n_layers=2)
    model, task = build(config).eval(), config.build_task()
    sites = set() if attention == "none" else {SITE}
    found = survey(model, task, sequences=8)
    assert set(found.patterns) == {head.site for head in found.expected_share} == sites
    assert [str(head) for head in heads_of(model)] == [f"{site}.0" for site in sites]
    seen = sample(model, task, task.example)
    assert set(seen.attentions) == sites
    taken = film([(0, model), (5, model)], task, sequences=16, snapshot="a")
    assert set(taken.readings) == sites
    (tmp_path / "film.npz").write_bytes(taken.pack())
    assert Film.load(tmp_path / "film.npz").correct.tolist() == taken.correct.tolist()
    assert (taken.correct == accuracy_by_position(model, task, sequences=16).correct).all()
    example = Example(task.example, say(model, task, task.example), seen, found, "a")
    (tmp_path / "example.npz").write_bytes(example.pack())
    assert Example.load(tmp_path / "example.npz").sample.read == seen.read
    checkup = examine(model, task)
    assert not checkup.broken
    silent = {check.name for check, finding in checkup.findings if finding.holds is None}
    assert silent == (set() if sites else {"rows", "forbidden"})


@pytest.mark.parametrize("attention", LOOKING)
def test_its_one_head_is_measured_like_any_other(attention: str) -> None:
    config = configured(attention, seed=1)
    model, task = build(config).eval(), config.build_task()
    metrics = measure_heads(model, task, sequences=8)
    assert [str(head) for head in metrics.heads] == [f"{SITE}.0"]
    assert measure_removal(model, task, sequences=8).mean.shape == (1,)
    x = np.random.default_rng([0, 2]).integers(0, 10, (8, 5)).tolist()
    alphas = np.array([logits_by_hand(model, row, [SEP, *row[:0:-1]])[1] for row in x])
    share = np.mean([alphas[:, i, 4 - i].mean() for i in range(5)])
    assert metrics.estimates["expected"].mean[0] == pytest.approx(share, abs=1e-6)
    assert survey(model, task, sequences=8).foremost.short == "0.0"
    close = detail(model, task, task.example, SITE)
    inputs = [numbers(model.embedding.weight)[token] for token in task.example]
    (encoded,) = states_by_hand(model.core.encoder, inputs, [np.zeros(6)])
    norms = [np.linalg.norm(mapped(model.core.attention.value, h)) for h in encoded]
    np.testing.assert_allclose(close.value_norms[0], norms, atol=1e-6)


@ATTENTION
def test_it_can_be_poked_and_its_slopes_taken(attention: str) -> None:
    """A later token reaches no earlier output; every token of the source reaches all of them."""
    config = configured(attention)
    model, task = build(config).eval(), config.build_task()
    batch = task.encode([task.example])
    moved, slopes = poke(model, batch, (0, 5)).greatest(), gradients(model, batch)
    ahead = np.triu(np.ones((5, 5), dtype=bool), 1)
    for found in (moved, slopes):
        assert (found[:, 5:][ahead] == 0).all()
        assert (found[:, :5] > 0).all()


# --- a run


@pytest.mark.daily(1)
@pytest.mark.parametrize("attention", ["none", "additive"])
def test_a_run_of_it_is_made_kept_read_and_inspected(attention: str, tmp_path) -> None:
    config = configured(attention, max_steps=6, teacher_forcing=0.5)
    run = Run.create(new_folder(tmp_path, config), config)
    assert run.name == f"reverse-translate-5-gru-{attention}-1"
    assert [step.step for step in record(run)] == list(range(1, 7))
    assert develop(run)
    assert inspect(run).status == "finished"
    model, again = checkpoints.load(run.snapshot())
    assert again == run.config == config
    assert not model.training
    x = np.random.default_rng([1, 1]).integers(0, 10, (40, 5))
    said = np.array([said_by_hand(model, row) for row in x.tolist()])
    assert run.evaluation["sequences"] == 4096
    card = accuracy_by_position(model, config.build_task(), sequences=40, seed=1)
    assert card.correct.tolist() == (said == x[:, ::-1]).sum(axis=0).tolist()
    assert Film.load(run.folder / "film.npz").steps.tolist() == list(run.snapshots())


def test_the_command_line_trains_lists_and_measures_one(tmp_path, capsys) -> None:
    shape = ["--architecture", "gru", "--attention", "none", "--n-layers", "1", "--d-model", "7", "--length", "3"]
    rest = ["--max-steps", "6", "--teacher-forcing", "0.5", "--device", "cpu", "--out", str(tmp_path / "one")]
    assert main(["train", "--task", "reverse-translate", *shape, *rest]) == 0
    assert "all 6 steps taken" in capsys.readouterr().out
    assert main(["list", "--root", str(tmp_path)]) == 0
    assert "reverse-translate 3, GRU, no attention; step 6, answer" in capsys.readouterr().out
    assert main(["evaluate", str(tmp_path / "one"), "--sequences", "64", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["accuracy_by_position"]) == 3
    assert main(["train", "--architecture", "gru", *rest]) == 2
    assert "the task reverse is for the architecture decoder or encoder, not gru" in capsys.readouterr().err


# --- a config


def test_the_same_model_has_the_same_config() -> None:
    """What means nothing to it is not kept: whatever else a link or a card says, the run is the same."""
    plain = configured("none")
    shape = {"n_layers": 1, "d_model": 6, "n_heads": 4, "d_ff": 99, "positions": "rotary", "norm": "post"}
    rest = {"dropout": 0.5, "query_key_gain": 3.0, "mask": "sliding-window:1", "affine": False}
    odd = ModelConfig(architecture="gru", attention="none", **shape, **rest)
    assert RunConfig(task=plain.task, model=odd, training=plain.training) == plain
    helped = RunConfig(training=TrainingConfig(teacher_forcing=0.5), model=ModelConfig(attention="none", affine=False))
    assert helped == RunConfig()
    assert RunConfig.from_dict(plain.to_dict()) == plain
    assert configured("none", teacher_forcing=0.5) != plain
    assert configured("additive", affine=False) != configured("additive")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (configured("none").model, "GRU, no attention"),
        (configured("dot", affine=False, n_layers=2).model, "GRU, 2 layers, dot attention without maps"),
        (RunConfig().model, "decoder, 2 × 4 heads"),
    ],
)
def test_what_it_is_called(model: ModelConfig, name: str) -> None:
    assert model.shape == name
