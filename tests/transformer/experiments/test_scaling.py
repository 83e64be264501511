"""The division by the root of d_head: trained and counted again by hand, its file, and its sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dashboard.app_pages.learn.mistakes import scaling as page
from transformer.config import ModelConfig, RunConfig
from transformer.experiments.scaling import Scaling, ScalingError, Trial
from transformer.experiments.scaling_measure import FRESH, carry_out, plan
from transformer.mistakes import MISTAKES
from transformer.model import build
from transformer.observation import observe
from transformer.presets import QUICK
from transformer.training.loop import Training

SHIPPED = Path(__file__).parents[3] / "checkpoints" / "scaling.json"
TINY = replace(plan((16,), (3,), (1, 2)), sequences=8, rates=(1e-2,), layers=1)


def test_both_codes_are_trained_as_planned_and_come_back_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    *_, found = carry_out(TINY, path)
    assert found.complete
    assert Scaling.load(path) == found
    for trial in found.trials:
        steps = TINY.steps[-1]
        recipe = replace(QUICK, seed=3, device="cpu", max_steps=steps, evaluate_every=steps, solved_at=2.0)
        config = RunConfig(model=ModelConfig(d_model=16, n_layers=1), training=recipe)
        task, model = config.build_task(), build(config)
        batch = task.fresh(np.random.default_rng(FRESH), 8, task.length)
        scores = observe(model, torch.from_numpy(batch.tokens))["decoder.0.self_attention.scores"].double().numpy()
        left = []
        for sequence in scores * (1 if trial.scaled else 2):  # 16 numbers in 4 heads: the root is 2
            for head in sequence:
                for query in range(1, len(head)):
                    powers = np.exp(head[query, : query + 1])
                    shares = powers / powers.sum()
                    left.append((1 - sum(shares**2)) / (1 - 1 / (query + 1)))
        assert trial.gradient == pytest.approx(np.mean(left), abs=1e-4)  # it is kept with four digits
        training = Training(model if trial.scaled else MISTAKES["scale-missing"].mistaken(model), config)
        for share in trial.accuracy:
            training.take_step()
            with torch.no_grad():
                said = training.model(torch.from_numpy(batch.tokens)).argmax(dim=-1).numpy()
            right = [
                a == b for a, b, asked in zip(said.flat, batch.targets.flat, batch.is_answer.flat, strict=True) if asked
            ]
            assert share == pytest.approx(sum(right) / len(right), abs=1.5 / len(right))  # one near tie


def test_the_shipped_file_is_whole() -> None:
    found = Scaling.load(SHIPPED)
    assert found.complete
    assert replace(plan(), versions=found.versions, trials=found.trials) == found


def made(wide: float) -> Scaling:
    """Two widths and two seeds: all right with the scale, without it 0.99 at 16 and `wide` at 32."""
    found = replace(plan((16, 32), (0, 1), (60, 150)), rates=(1e-2,))
    for seed in found.seeds:
        for width, share in ((16, 0.99), (32, wide)):
            found = found.with_trial(Trial(width, True, 1e-2, seed, 0.9, (1.0, 1.0)))
            found = found.with_trial(Trial(width, False, 1e-2, seed, 0.5, (share, share)))
    return found


class TestSentences:
    def test_a_width_is_named_where_every_seed_is_behind(self) -> None:
        assert page.behind(made(0.5), 1e-2) == [32]
        said = page.accuracy_sentence(made(0.5), 1e-2)
        assert "0.50 and not 1.00 at width 32. At 16 there is no such difference." in said

    def test_one_seed_that_is_as_good_leaves_no_difference(self) -> None:
        found = made(0.5)
        found = replace(found, trials=(*found.trials[:-1], replace(found.trials[-1], accuracy=(1.0, 1.0))))
        assert page.behind(found, 1e-2) == []
        assert "no width shows a difference" in page.accuracy_sentence(found, 1e-2)

    def test_they_are_true_of_the_shipped_file(self) -> None:
        found = Scaling.load(SHIPPED)
        table = {
            (trial.width, trial.scaled, trial.seed): trial.accuracy[found.steps.index(60)]
            for trial in found.trials
            if trial.rate == found.rates[0]
        }
        for width in found.widths:
            with_, without = ([table[width, scaled, seed] for seed in found.seeds] for scaled in (True, False))
            clear = max(without) < min(with_) and np.mean(with_) - np.mean(without) >= 0.05
            assert (width in page.behind(found, found.rates[0])) == clear
        said = page.accuracy_sentence(found, found.rates[0])
        for width in page.behind(found, found.rates[0]):
            numbers = [np.mean([table[width, scaled, seed] for seed in found.seeds]) for scaled in (False, True)]
            assert f"{numbers[0]:.2f} and not {numbers[1]:.2f} at width {width}" in said


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda text: "{", "not JSON"),
        (lambda text: text.replace("scaling/1", "scaling/9"), "another version"),
        (lambda text: text.replace('"gradient":0.5', '"gradient":1.5'), "are no shares"),
        (lambda text: text.replace('"gradient":0.5', '"gradient":NaN'), "are no shares"),
        (lambda text: text.replace('"width":32', '"width":16'), "do not match its plan"),
        (lambda text: text.replace("[1.0,1.0]", "[1.0]"), "do not match its steps"),
        (lambda text: text.replace('"trials":[{', '"trials":[{"more":1,'), "damaged"),
    ],
)
def test_a_harmed_file_is_a_sentence(harm: Callable[[str], str], words: str, tmp_path: Path) -> None:
    path = tmp_path / "scaling.json"
    made(0.5).save(path)
    Scaling.load(path)
    path.write_text(harm(path.read_text()))
    with pytest.raises(ScalingError, match=words):
        Scaling.load(path)
