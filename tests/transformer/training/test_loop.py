"""Training: what is computed in a step, that it repeats, that it solves, and that it says when it cannot go on."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.accuracy.result import verdict
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.training.loop import TrainingError, learning_rate, train
from transformer.training.stepping import target_weights, weighted_loss

ONE_HEAD = ModelConfig(n_layers=1, n_heads=1, d_ff=0, query_key_gain=0.3)
TINY = ModelConfig(n_layers=1, n_heads=2, d_model=16, d_ff=16)


def tiny(**training) -> RunConfig:
    return RunConfig(task=TaskConfig(length=4), model=TINY, training=TrainingConfig(**{"max_steps": 12, **training}))


def trained(config: RunConfig):
    model = build(config)
    return model, list(train(model, config))


def losses(config: RunConfig) -> list[float]:
    return [step.loss for step in trained(config)[1]]


# --- one step


def test_the_loss_is_the_weighted_mean_of_what_each_target_costs():
    generator = torch.Generator().manual_seed(0)
    logits, weights = torch.randn(3, 5, 7, generator=generator), torch.rand(3, 5, generator=generator)
    targets = torch.randint(0, 7, (3, 5), generator=generator)
    total = 0.0
    for row in range(3):
        for place in range(5):
            powers = [math.exp(x) for x in logits[row, place].tolist()]
            total -= float(weights[row, place]) * math.log(powers[int(targets[row, place])] / sum(powers))
    assert weighted_loss(logits, targets, weights).item() == pytest.approx(total / float(weights.sum()), rel=1e-5)


def test_targets_without_weight_teach_nothing():
    logits = torch.zeros(1, 2, 4, requires_grad=True)
    loss = weighted_loss(logits, torch.tensor([[1, 3]]), torch.tensor([[1.0, 0.0]]))
    assert loss.item() == pytest.approx(math.log(4))
    loss.backward()
    assert (logits.grad[0, 1] == 0).all()


def test_weights_are_one_for_answers_less_for_questions_and_nothing_for_padding():
    task = TaskConfig(length=3)
    batch = RunConfig(task=task).build_task().encode([np.array([1, 2, 3]), np.array([4])])
    weights = target_weights(batch, TrainingConfig(prompt_weight=0.25))
    assert weights.tolist() == [[0.25, 0.25, 0.25, 1, 1, 1], [0.25, 1, 0, 0, 0, 0]]
    assert weights.dtype == np.float32


@pytest.mark.parametrize(
    ("warmup", "step", "rate"),
    [(0, 1, 0.02), (0, 999, 0.02), (4, 1, 0.005), (4, 2, 0.01), (4, 4, 0.02), (4, 5, 0.02), (1, 1, 0.02)],
)
def test_the_rate_rises_in_a_straight_line_and_stays(warmup, step, rate):
    assert learning_rate(TrainingConfig(learning_rate=0.02, warmup_steps=warmup), step) == pytest.approx(rate)


def test_the_rate_is_the_one_that_is_used():
    """AdamW's first step moves each weight by about the rate, whatever its gradient is."""
    config = tiny(max_steps=1, warmup_steps=10, learning_rate=0.01)
    model = build(config)
    before = model.unembedding.bias.detach().clone()
    (step,) = train(model, config)
    assert step.learning_rate == pytest.approx(0.001)
    torch.testing.assert_close((model.unembedding.bias - before).abs().max().item(), 0.001, atol=1e-5, rtol=0)


@pytest.mark.parametrize("task", ["reverse", "reverse-aligned", "reverse-translate"])
def test_the_loss_starts_as_that_of_a_guess(task):
    (first,) = losses(RunConfig(task=TaskConfig(task=task), training=TrainingConfig(max_steps=1)))
    assert math.log(12) - 0.2 < first < math.log(12) + 1.0


@pytest.mark.parametrize(("weight", "least", "most"), [(0.0, 0.0, 0.35), (1.0, 0.8, 1.0)])
def test_a_prompt_is_learned_only_with_weight(weight, least, most):
    """With the mask off, x2..x4 stand in sight of their queries: they are copied when they count, and only then."""
    model = ModelConfig(**{**vars(TINY), "d_model": 32, "mask": "full"})
    training = TrainingConfig(max_steps=80, prompt_weight=weight, solved_at=2, evaluate_every=80)
    _, steps = trained(RunConfig(task=TaskConfig(length=4), model=model, training=training))
    assert least <= steps[-1].accuracy[:3].mean() <= most


# --- the generator


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_same_seed_is_the_same_curve_bit_for_bit_and_the_global_generator_is_left_alone(dropout):
    before, curves = torch.random.get_rng_state(), []
    for seed in (0, 0, 1):
        config = tiny(seed=seed, max_steps=6)
        curves.append(losses(replace(config, model=replace(config.model, dropout=dropout))))
    assert curves[0] == curves[1]
    assert len(set(curves[0])) == 6
    assert all(a != b for a, b in zip(curves[0], curves[2], strict=True))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_how_often_accuracy_is_measured_does_not_touch_what_is_learned():
    (_, often), (_, seldom) = (trained(tiny(evaluate_every=every)) for every in (1, 12))
    assert [step.loss for step in often] == [step.loss for step in seldom]
    assert [step.step for step in seldom if step.accuracy is not None] == [1, 12]
    assert all(step.accuracy is not None for step in often)


def test_a_few_steps_can_be_taken_and_the_modes_are_as_promised():
    model = build(tiny())
    steps = train(model, tiny())
    first = next(steps)
    assert first.accuracy.shape == (8,)
    assert model.training
    assert [step.step for step in (first, *itertools.islice(steps, 3))] == [1, 2, 3, 4]
    *_, last = steps
    assert last.step == 12
    assert not model.training
    assert first.seconds < last.seconds


def test_gradients_are_clipped_but_their_norm_is_told_unclipped():
    told, used = [], []
    for clip in (0.0, 1e-3):
        model, (step,) = trained(tiny(clip=clip, max_steps=1))
        told.append(step.gradient_norm)
        used.append(float(torch.stack([weight.grad.norm() for weight in model.parameters()]).norm()))
    assert told[0] == pytest.approx(told[1])
    assert told[0] > 0.1
    assert used == pytest.approx([told[0], 1e-3], rel=1e-3)


def test_a_training_of_which_nobody_knows_the_length_stops_at_the_best_guess():
    """At y2 of a causal reversal in place x1 is the answer, if the sequence ends there; x2, if one more comes."""
    config = RunConfig(
        task=TaskConfig(task="reverse-aligned", length=3, min_length=2, symbols=2),
        model=ModelConfig(**{**vars(TINY), "architecture": "decoder", "mask": "causal"}),
        training=TrainingConfig(max_steps=400, learning_rate=3e-3),
    )
    model, steps = trained(config)
    assert steps[-1].solved
    found = accuracy_by_position(model, config.build_task(), sequences=1000)
    assert verdict(found, config).endswith("the mask holds")


# --- solving


@pytest.mark.daily(1)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_default_is_solved_soon_and_stops_by_itself(seed):
    config = RunConfig(training=TrainingConfig(seed=seed))
    model, steps = trained(config)
    assert steps[-1].solved
    assert not any(step.solved for step in steps[:-1])
    measured = [step.accuracy[8:].mean() >= 0.999 for step in steps if step.accuracy is not None]
    assert measured[-2:] == [True, True]  # twice in a row, and not before
    assert not any(a and b for a, b in itertools.pairwise(measured[:-1]))
    assert len(steps) <= 200
    found = accuracy_by_position(model, config.build_task(), sequences=2000)
    assert found.of("second half") > 0.99
    assert verdict(found, config).endswith("= chance: the mask holds")


TO_SOLVE = {
    "aligned": (TaskConfig(task="reverse-aligned", length=5), ModelConfig(), ""),
    "translate": (TaskConfig(task="reverse-translate", length=5), ModelConfig(), ""),
    "copy": (TaskConfig(task="copy", length=5), ModelConfig(), ""),
    "varying lengths": (TaskConfig(length=4, min_length=2), ModelConfig(), ""),
    # A decoder that sees the future says x2..x8 by looking at them: beyond what is honest.
    "a leak": (TaskConfig(), ModelConfig(mask="full"), "your mask leaks"),
    "aligned, causal": (
        TaskConfig(task="reverse-aligned"),
        ModelConfig(mask="causal"),
        "second half 1.00, first half 0.10 = chance: the mask holds",
    ),
}


@pytest.mark.daily(2)
@pytest.mark.parametrize(("task", "model", "said"), TO_SOLVE.values(), ids=TO_SOLVE)
def test_what_can_be_known_is_learned(task, model, said):
    rate = 3e-3 if task.min_length else 5e-3
    config = RunConfig(task=task, model=model, training=TrainingConfig(max_steps=400, learning_rate=rate))
    network, steps = trained(config)
    assert steps[-1].solved
    for length in config.build_task().lengths:
        found = accuracy_by_position(network, config.build_task(), sequences=1000, length=length)
        assert found.of(config.build_task().part) > 0.95, length
    assert verdict(found, config).endswith(said)
    if "chance" in said:
        low, high = found.interval()
        assert (low[:4] < 0.13).all()
        assert (high[:4] > 0.07).all()


def test_the_loss_ends_at_the_floor_and_not_below():
    config = RunConfig(model=ONE_HEAD, training=TrainingConfig(max_steps=150, solved_at=2, evaluate_every=150))
    _, steps = trained(config)
    assert len(steps) == 150
    end, floor = np.mean([step.loss for step in steps[-30:]]), ceilings.loss_floor(config)
    assert floor - 0.02 < end < floor + 0.1


# --- going wrong


def test_a_loss_that_is_no_number_ends_training_with_a_sentence():
    model = build(tiny())
    steps = train(model, tiny(learning_rate=0.125))
    next(steps)
    with torch.no_grad():
        model.unembedding.bias.fill_(math.nan)
    with pytest.raises(
        TrainingError,
        match=r"no longer a number at step 2, learning rate 0\.125 \(the gradient's norm was .*\): try a smaller rate",
    ) as end:
        next(steps)
    assert "\n" not in str(end.value)


def test_nothing_to_know_is_never_solved():
    """Under a mask through which no answer can arrive, training runs to its end instead of stopping at once."""
    config = RunConfig(
        task=TaskConfig(task="reverse-aligned", length=4),
        model=ModelConfig(**{**vars(TINY), "mask": "sliding-window:0"}),
        training=TrainingConfig(max_steps=12, solved_at=0.0),
    )
    _, steps = trained(config)
    assert len(steps) == 12
    assert not steps[-1].solved
