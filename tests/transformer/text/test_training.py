"""Learning to read: what it costs to read, half precision, the falling rate, one matrix for both ends, going on."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.kit import texts
from transformer import checkpoints
from transformer.analysis.accuracy.reading import reading
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build, stretched
from transformer.text import shelf
from transformer.text.tokens import split
from transformer.training import resume
from transformer.training.loop import Training, learning_rate, train
from transformer.training.runs import Run
from transformer.training.stepping import EagerStep, Inputs

TIED = texts.config().model
TINY = {"n_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 16}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return texts.trained(tmp_path_factory.mktemp("text") / "run", texts.config())


def by_hand(run: Run) -> list[float]:
    """What each token that was held out costs the run's model: works, windows and cross-entropy done anew."""
    first, second, third = ("  THE " + part for part in texts.TEXT.split("  THE ")[1:])
    counted = Counter(token for work in (first, third) for token in split(work, "words"))
    names = sorted((t for t in counted if counted[t] >= 2), key=lambda t: (-counted[t], t))
    tokens = [names.index(t) if t in names else len(names) for t in split(second, "words")]
    model, _ = checkpoints.load(run.snapshot())
    costs = []
    for start in range(0, len(tokens) - 31, 32):
        window = torch.tensor(tokens[start : start + 32])
        said = model(torch.cat([torch.tensor([len(names) + 1]), window[:-1]])[None])[0]
        costs += functional.cross_entropy(said, window, reduction="none").tolist()
    return costs


# --- what reading costs


def test_the_perplexity_of_a_run_is_that_of_all_that_is_held_out(run):
    costs, found = by_hand(run), run.evaluation
    assert found["read"] == len(costs)
    assert found["nats"] == pytest.approx(sum(costs) / len(costs), rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(sum(costs) / len(costs)), rel=1e-4)
    assert found["verdict"].endswith(f"perplexity {math.exp(sum(costs) / len(costs)):.1f}")
    json.dumps(found, allow_nan=False)


def test_each_token_has_its_own_cost_and_is_right_where_it_is_the_likeliest(run):
    model, config = checkpoints.load(run.snapshot())
    batch = config.build_task().held_out()
    found = reading(model, batch)
    assert np.allclose(found.nats.ravel(), by_hand(run), atol=1e-5)
    with torch.no_grad():
        said = torch.cat([model(torch.from_numpy(row)[None]) for row in batch.tokens]).numpy()
    assert np.array_equal(found.right, said.argmax(axis=-1) == batch.targets)


def test_who_knows_nothing_is_as_unsure_as_the_vocabulary_is_large():
    config = texts.config()
    model, task = build(config).eval(), config.build_task()
    with torch.no_grad():
        for weight in (model.unembedding.weight, model.unembedding.bias):
            weight.zero_()
    assert reading(model, task.held_out()).perplexity == pytest.approx(task.d_vocab, rel=1e-5)


def test_a_text_that_repeats_itself_is_soon_read_better_than_by_counting(run):
    measured = [line["held_out_loss"] for line in run.metrics() if "held_out_loss" in line]
    assert len(measured) == 4  # the first step, and every twentieth
    learned = (texts.play("THE FIRST PLAY", 4), texts.play("THE THIRD PLAY", 4))
    counted = Counter(token for work in learned for token in split(work, "words"))
    entropy = -sum(n / counted.total() * math.log(n / counted.total()) for n in counted.values())
    assert measured[-1] < 0.5 * entropy < entropy < measured[0]
    assert run.evaluation["nats"] == pytest.approx(measured[-1], abs=0.1)  # both have read nearly the same


def test_a_run_of_a_text_brings_its_words_along(run, monkeypatch):
    excerpt = shelf.excerpt(texts.key(), "words", 2)
    monkeypatch.setattr(shelf, "_excerpts", {})
    monkeypatch.setattr(shelf, "folder", lambda: run.folder / "no texts here")
    config = run.config
    task = config.build_task()
    assert task.known.vocabulary == excerpt.vocabulary
    assert len(task.fresh(np.random.default_rng(0), 4).tokens) == 4


# --- going on


def numbers(step) -> tuple:
    return step.step, step.loss, step.learning_rate, step.gradient_norm, step.held_out_loss


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_training_that_was_written_down_goes_on_to_the_bit(tmp_path, precision):
    config = texts.config(**TINY, dropout=0.2)
    config = replace(config, training=replace(config.training, max_steps=6, evaluate_every=2, precision=precision))
    unbroken = [numbers(step) for step in train(build(config), config)]
    first = Training(build(config), config)
    taken = [numbers(first.take_step()) for _ in range(3)]
    resume.save(tmp_path / "resume.safetensors", first)
    second = Training(build(config), config)
    resume.restore(tmp_path / "resume.safetensors", second)
    taken += [numbers(second.take_step()) for _ in range(3)]
    assert taken == unbroken


# --- half precision


CONFIGS = {
    "a text": lambda: texts.config(**TINY),
    "a text, ALiBi": lambda: texts.config(**TINY, positions="alibi"),
    "post-norm": lambda: RunConfig(model=ModelConfig(**TINY, norm="post")),
    "encoder-decoder": lambda: RunConfig(task=TaskConfig(task="reverse-translate"), model=ModelConfig(**TINY)),
    "a GRU": lambda: RunConfig(
        task=TaskConfig(task="reverse-translate", length=4), model=ModelConfig(architecture="gru", d_model=16)
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_step_in_half_precision_is_nearly_the_same_step_and_keeps_full_weights(name):
    config = CONFIGS[name]()
    batch = config.build_task().batch(np.random.default_rng(0), 8)
    taken = {}
    for precision in ("float32", "bfloat16"):
        settings = replace(config.training, precision=precision, clip=0.0)
        model = build(config)
        step = EagerStep(model, torch.optim.SGD(model.parameters(), lr=0.0), settings)
        loss, norm = step(Inputs.of(batch, settings, torch.device("cpu")))
        gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        assert {p.dtype for p in model.parameters()} == {gradient.dtype} == {loss.dtype} == {torch.float32}
        taken[precision] = float(loss), float(norm), gradient
    (loss, norm, gradient), (half_loss, half_norm, half_gradient) = taken["float32"], taken["bfloat16"]
    assert half_loss == pytest.approx(loss, rel=0.02)
    assert half_loss != loss
    assert half_norm == pytest.approx(norm, rel=0.1)
    assert functional.cosine_similarity(gradient, half_gradient, dim=0) > 0.99


def test_training_in_half_precision_learns_as_well():
    ends = []
    for precision in ("float32", "bfloat16"):
        config = texts.config(**TINY)
        config = replace(config, training=replace(config.training, max_steps=20, precision=precision))
        *_, last = train(build(config), config)
        ends.append(last.held_out_loss)
    assert ends[1] == pytest.approx(ends[0], rel=0.05)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"precision": "float16"}, "precision must be float32 or bfloat16, not 'float16'"),
        ({"decay": "cosine"}, "decay must be inverse or linear, not 'cosine'"),
    ],
)
def test_what_is_not_known_is_refused_with_a_sentence(settings, sentence):
    with pytest.raises(ConfigError, match=f"^{sentence}$"):
        TrainingConfig(**settings)


# --- the rate


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        # Two steps of warm-up, full until step 4, then a line that would be at nothing one step after the last.
        ({"warmup_steps": 2, "decay_after": 4}, [5, 10, 10, 10, 50 / 6, 40 / 6, 30 / 6, 20 / 6, 10 / 6]),
        ({"decay_after": 100}, [10.0] * 9),
    ],
)
def test_a_linear_fall_by_hand(settings, rates):
    config = TrainingConfig(learning_rate=10, decay="linear", max_steps=9, **settings)
    assert [learning_rate(config, step) for step in range(1, 10)] == pytest.approx(rates)


def test_who_asks_for_a_linear_fall_gets_one():
    for positions in ("learned", "sinusoidal"):
        config = RunConfig(
            model=ModelConfig(positions=positions),
            training=TrainingConfig(decay="linear", max_steps=10, learning_rate=1),
        )
        rates = [learning_rate(config.training, step) for step in range(1, 11)]
        assert rates == pytest.approx([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert RunConfig(training=TrainingConfig(decay="linear", decay_after=0)).training.decay_after == 0


# --- one matrix for both ends


@pytest.mark.parametrize("task", ["reverse", "reverse-aligned", "reverse-translate"])
def test_tied_is_one_matrix_that_both_uses_teach(task):
    config = RunConfig(task=TaskConfig(task=task), model=ModelConfig(**TINY, tied=True))
    model, untied = build(config), build(replace(config, model=replace(config.model, tied=False)))
    assert model.unembedding.weight is model.embedding.weight
    assert sum(p.numel() for p in untied.parameters()) - sum(p.numel() for p in model.parameters()) == 12 * 16
    untied.load_state_dict(model.state_dict())
    batch = config.build_task().batch(np.random.default_rng(0), 8)
    for one in (model, untied):
        settings = replace(config.training, clip=0.0)
        step = EagerStep(one, torch.optim.SGD(one.parameters(), lr=0.0), settings)
        step(Inputs.of(batch, settings, torch.device("cpu")))
    both = untied.embedding.weight.grad + untied.unembedding.weight.grad
    torch.testing.assert_close(model.embedding.weight.grad, both)


def test_tied_weights_start_as_long_as_embeddings_do():
    weight = build(texts.config(d_model=64)).embedding.weight
    assert weight.std().item() == pytest.approx(64**-0.5, rel=0.05)


def test_a_tied_matrix_is_stored_once_and_is_one_again_when_it_is_read(tmp_path):
    from safetensors import safe_open

    config = texts.config()
    model = build(config)
    checkpoints.save(tmp_path / "m.safetensors", model, config)
    with safe_open(str(tmp_path / "m.safetensors"), framework="np") as file:
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert set(model.state_dict()) - set(stored) == {"unembedding.weight"}
    found, _ = checkpoints.load(tmp_path / "m.safetensors")
    assert found.unembedding.weight is found.embedding.weight
    assert all(torch.equal(found.state_dict()[name], value) for name, value in model.state_dict().items())
    assert checkpoints.weights_hash(found) == checkpoints.weights_hash(model)
    longer = stretched(found, 40)
    assert longer.unembedding.weight is longer.embedding.weight


def test_half_a_checkpoint_is_half_as_large_and_three_digits_good(tmp_path):
    config = texts.config()
    model = build(config).eval()
    sizes = {}
    for half in (False, True):
        path = tmp_path / f"{half}.safetensors"
        checkpoints.save(path, model, config, half=half)
        sizes[half] = path.stat().st_size
    assert sizes[True] < 0.6 * sizes[False]
    found, again = checkpoints.load(path)
    assert again == config
    for name, value in model.state_dict().items():
        assert found.state_dict()[name].dtype == value.dtype == torch.float32
        assert torch.equal(found.state_dict()[name], value.half().float())
        torch.testing.assert_close(found.state_dict()[name], value, rtol=2**-11, atol=1e-7)
    tokens = torch.from_numpy(config.build_task().batch(np.random.default_rng(0), 2).tokens)
    torch.testing.assert_close(found(tokens), model(tokens), atol=0.02, rtol=0)


def test_a_checkpoint_with_one_matrix_too_many_or_too_few_is_refused(tmp_path):
    config = texts.config()
    apart = replace(config, model=replace(config.model, tied=False))
    path = tmp_path / "m.safetensors"
    for stored, said in ((apart, config), (config, apart)):
        weights = {k: v.clone() for k, v in build(stored).state_dict().items()}
        if stored.model.tied:
            weights.pop("unembedding.weight")
        metadata = {"format": checkpoints.FORMAT, "config": json.dumps(said.to_dict())}
        path.write_bytes(checkpoints.packed(weights, metadata))
        with pytest.raises(checkpoints.CheckpointError, match="do not fit the model"):
            checkpoints.load(path)
