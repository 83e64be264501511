"""The bottleneck: three models of one size trained alike, counted against loops written here, and the file."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dashboard.app_pages.learn.bottleneck import measurement
from tests.kit.experiments.bottleneck import SHAPES, SMALL, found_of, made, own_words, small
from transformer import checkpoints
from transformer.__main__ import main
from transformer.experiments import bottleneck_runs
from transformer.experiments.bottleneck import KINDS, Bottleneck, BottleneckError
from transformer.experiments.bottleneck_measure import compare, measure
from transformer.model import build
from transformer.network import Network
from transformer.training import loop
from transformer.training.loop import Training
from transformer.training.runs import Run

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "checkpoints" / "bottleneck.json"


class TestPlan:
    def test_they_are_of_one_size(self) -> None:
        """Counted from the layers' own shapes: GRUs have 3 (d_in + d + 2) d numbers a layer, attention 3 d (d + 1)."""
        sizes = {
            kind: sum(w.numel() for w in build(config).parameters()) for kind, config in bottleneck_runs.plan().items()
        }
        vocabulary = 12
        for kind, attends in (("gru", False), ("gru-attention", True)):
            d = bottleneck_runs.MODELS[kind].d_model
            features = 2 * d if attends else d
            counted = vocabulary * d + 2 * 3 * d * (2 * d + 2) + attends * 3 * d * (d + 1) + vocabulary * (features + 1)
            assert sizes[kind] == counted
        assert max(sizes.values()) <= 1.1 * min(sizes.values())
        assert tuple(sizes) == KINDS

    def test_they_have_one_budget_and_never_stop_early(self) -> None:
        configs = list(bottleneck_runs.plan(30).values())
        assert len({(c.task, c.training.max_steps, c.training.batch_size, c.training.seed) for c in configs}) == 1
        assert all(c.training.solved_at > 1 for c in configs)
        assert {c.task.min_length for c in configs} == {4}
        assert {c.task.length for c in configs} == {32}
        assert {c.training.teacher_forcing for c in configs} == {1.0}

    def test_they_learn_from_the_very_same_sequences(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[tuple[torch.Tensor, ...]] = []

        class Spied(loop.Inputs):
            @classmethod
            def of(cls, *arguments: Any) -> loop.Inputs:
                made = super().of(*arguments)
                seen.append((made.source, made.tokens, made.targets))
                return made

        monkeypatch.setattr(bottleneck_runs, "TASK", SMALL)
        monkeypatch.setattr(loop, "Inputs", Spied)
        batches = []
        for config in bottleneck_runs.plan(4).values():
            seen.clear()
            training = Training(build(config), config)
            while not training.done:
                training.take_step()
            batches.append(list(seen))
        assert [len(each) for each in batches] == [4, 4, 4]
        for others in batches[1:]:
            for one, other in zip(batches[0], others, strict=True):
                assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
        assert not torch.equal(batches[0][0][0], batches[0][1][0])


class TestMeasure:
    @pytest.mark.parametrize("kind", KINDS)
    def test_it_counts_what_a_model_says_by_itself(self, kind: str) -> None:
        config = small(kind)
        model = build(config).eval()
        exact, right = measure(model, config.build_task(), sequences=40, seed=3)
        assert [len(row) for row in right] == [1, 2, 3]
        for length in (1, 2, 3):
            questions = np.random.default_rng([3, 1, length]).integers(0, 2, (40, length)).tolist()
            said = [own_words(model, question, separator=2) for question in questions]
            hits = [
                [a == b for a, b in zip(one, question[::-1], strict=True)]
                for one, question in zip(said, questions, strict=True)
            ]
            assert exact[length - 1] == sum(all(row) for row in hits)
            assert right[length - 1] == tuple(sum(row[place] for row in hits) for place in range(length))

    def test_help_would_be_seen(self) -> None:
        """A model that says what it read last, whatever it is: helped it would be right where neighbours agree."""

        class Parrot(Network):
            def forward(self, tokens, source=None, trace=None):
                said = torch.where(tokens < 2, tokens, 1)
                return torch.nn.functional.one_hot(said, self.d_vocab).float()

        model = Parrot(small("transformer").model, d_vocab=4, n_ctx=3)
        model.register_parameter("somewhere", torch.nn.Parameter(torch.zeros(1)))
        exact, right = measure(model, small("transformer").build_task(), sequences=64, seed=0)
        questions = np.random.default_rng([0, 1, 3]).integers(0, 2, (64, 3))
        assert exact[2] == int((questions == 1).all(axis=1).sum())
        assert right[2] == tuple((questions[:, ::-1] == 1).sum(axis=0).tolist())

    def test_three_runs_of_one_task_are_compared_and_nothing_else(self, tmp_path: Path) -> None:
        runs = {kind: made(tmp_path / kind, small(kind)) for kind in KINDS}
        found = compare([runs["transformer"], runs["gru"], runs["gru-attention"]], sequences=8)
        assert [each.run for each in found.contestants] == list(KINDS)
        assert found.of("gru").snapshot == runs["gru"].digest()
        assert list(found.lengths) == [1, 2, 3]
        other = made(tmp_path / "other", replace(small("gru"), task=replace(SMALL, length=2)))
        for wrong in (
            [runs["gru"]],
            [*runs.values(), runs["gru"]],
            [other, runs["gru-attention"], runs["transformer"]],
        ):
            with pytest.raises(BottleneckError, match="three runs on one task"):
                compare(wrong, sequences=8)


class TestFile:
    FOUND = found_of([90, 50, 0], [100, 99, 98], [97, 98, 99])

    def test_it_comes_back_as_it_was_written(self, tmp_path: Path) -> None:
        self.FOUND.save(tmp_path / "found.json")
        assert Bottleneck.load(tmp_path / "found.json") == self.FOUND
        assert self.FOUND.exact("gru").tolist() == [90, 50, 0]
        assert self.FOUND.right("transformer", 2).tolist() == [98, 98]

    @pytest.mark.parametrize(
        ("harm", "words"),
        [
            (lambda text: text.replace("bottleneck/1", "bottleneck/2"), "another version"),
            (lambda text: text.replace('"exact":[90', '"exact":[-1'), "run-gru do not fit"),
            (lambda text: text.replace('"exact":[90', '"exact":[true'), "run-gru do not fit"),
            (lambda text: text.replace('"exact":[90,', '"exact":['), "run-gru do not fit"),
            (lambda text: text.replace('"sequences":100', '"sequences":99'), "do not fit 99"),
            (lambda text: text.replace('"attention":"none"', '"attention":"dot"'), "not hold the three"),
            (lambda text: text.replace('"contestants":[', '"contestants":[4,'), "damaged"),
            (lambda text: text.replace('"versions":{"torch":"2"}', '"versions":7'), "damaged"),
            (lambda text: text.replace('"d_model":6', '"d_model":"6"'), "damaged"),
        ],
    )
    def test_what_is_none_is_refused_with_a_sentence(self, harm, words: str, tmp_path: Path) -> None:
        path = tmp_path / "found.json"
        self.FOUND.save(path)
        whole = path.read_text()
        assert harm(whole) != whole
        path.write_text(harm(whole))
        with pytest.raises(BottleneckError, match=words):
            Bottleneck.load(path)

    def test_the_command_line_trains_measures_and_measures_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(bottleneck_runs, "TASK", SMALL)
        monkeypatch.setattr(bottleneck_runs, "MODELS", SHAPES)
        path = tmp_path / "own.json"
        assert main(["bottleneck", "--out", str(path), "--steps", "2"]) == 0
        found = Bottleneck.load(path)
        assert [each.config.training.max_steps for each in found.contestants] == [2, 2, 2]
        assert "lengths 1 to 3" in capsys.readouterr().out
        again = [f"--runs={tmp_path / each.run}" for each in found.contestants]
        assert main(["bottleneck", "--out", str(tmp_path / "again.json"), *again]) == 0
        assert Bottleneck.load(tmp_path / "again.json").contestants == found.contestants
        assert main(["bottleneck", "--out", str(path), again[0]]) == 2
        assert "three runs on one task" in capsys.readouterr().err


@pytest.mark.skipif(not SHIPPED.is_file(), reason="no shipped measurement")
class TestShipped:
    FOUND = Bottleneck.load(SHIPPED) if SHIPPED.is_file() else found_of([0], [0], [0])

    def test_it_is_of_the_shipped_runs_and_they_are_the_planned_ones(self) -> None:
        planned = bottleneck_runs.plan()
        for kind in KINDS:
            each = self.FOUND.of(kind)
            assert each.run == bottleneck_runs.FOLDERS[kind]
            run = Run(ROOT / "checkpoints" / each.run)
            assert each.snapshot == run.digest()
            assert each.config == run.config == planned[kind]
            assert each.seconds == pytest.approx(run.metrics()[-1]["seconds"], abs=0.1)
            weights = checkpoints.load(run.snapshot())[0].state_dict().values()
            assert each.parameters == sum(math.prod(weight.shape) for weight in weights)
        sizes = [each.parameters for each in self.FOUND.contestants]
        assert max(sizes) <= 1.1 * min(sizes)

    @pytest.mark.nightly
    @pytest.mark.parametrize("kind", KINDS)
    def test_it_holds_on_other_sequences(self, kind: str) -> None:
        """Whole answers and places, said again token by token from the logits; four standard errors of both counts."""
        model, sequences = (
            checkpoints.load(Run(ROOT / "checkpoints" / bottleneck_runs.FOLDERS[kind]).snapshot())[0],
            512,
        )
        for length in (4, 13, 32):
            source = torch.from_numpy(np.random.default_rng([7, length]).integers(0, 10, (sequences, length)))
            read = torch.full((sequences, 1), 10)
            with torch.no_grad():
                for _ in range(length):
                    read = torch.cat([read, model(read, source)[:, -1:].argmax(dim=-1)], dim=1)
            right = (read[:, 1:] == source.flip(1)).numpy()
            whole = self.FOUND.exact(kind)[length - 4]
            counts = [
                (right.all(axis=1).sum(), whole),
                *zip(right.sum(axis=0), self.FOUND.right(kind, length), strict=True),
            ]
            for here, there in counts:
                share = (here + there) / (sequences + self.FOUND.sequences)
                spread = math.sqrt(max(share * (1 - share), 1e-3) * (1 / sequences + 1 / self.FOUND.sequences))
                assert abs(here / sequences - there / self.FOUND.sequences) <= 4.5 * spread, (length, here, there)

    def test_the_story_is_told_by_the_numbers(self) -> None:
        shares = {kind: self.FOUND.exact(kind)[-1] / self.FOUND.sequences for kind in KINDS}
        assert shares["gru"] < 0.05
        assert min(shares["gru-attention"], shares["transformer"]) > 0.5
        assert measurement.headline(self.FOUND).startswith("One vector forgets")
        assert self.FOUND.sequences >= 512
        for kind in KINDS:  # all of them have learned to reverse, at the shortest
            assert self.FOUND.exact(kind)[0] > 0.9 * self.FOUND.sequences
