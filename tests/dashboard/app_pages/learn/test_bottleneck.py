"""The bottleneck: what is said and drawn of three models of one size, the page, and training them anew."""

from __future__ import annotations

import json
import math
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dashboard.app_pages.learn.bottleneck import figures, measurement
from dashboard.models import menu
from dashboard.models.background import Measuring
from dashboard.view import training as view_training
from tests.kit.experiments.bottleneck import SHAPES, SMALL, found_of, made, own_words, small
from tests.kit.pages import array, link, open_page, press, trace
from tests.kit.pages import figures as drawn
from transformer import checkpoints
from transformer.config import ConfigError, RunConfig
from transformer.experiments import bottleneck_runs
from transformer.experiments.bottleneck import KINDS, Bottleneck
from transformer.training.runs import Run

ROOT = Path(__file__).parents[4]
SHIPPED = ROOT / "checkpoints" / "bottleneck.json"


class TestWords:
    def test_it_forgets_where_its_interval_lies_below_both_others(self) -> None:
        forgets = measurement.headline(found_of([100, 90, 3], [100, 99, 98], [97, 98, 99]))
        assert forgets == "One vector forgets. Right at length 3: GRU 0.03, with attention 0.98, transformer 0.99."
        for gru, transformer in ((97, 99), (50, 20)):
            said = measurement.headline(found_of([1, 1, gru], [1, 1, 98], [1, 1, transformer]))
            assert not said.startswith("One vector forgets")

    def test_the_reach_ends_where_half_is_first_missed(self) -> None:
        said = measurement.reach(found_of([100, 50, 49], [49, 100, 100], [50, 50, 50]))
        for words in ("one vector up to length 2", "GRU with attention never", "transformer up to length 3"):
            assert words in said

    def test_the_end_that_is_lost_is_named(self) -> None:
        exact = [100] * 8 + [20]
        first = measurement.forgotten(found_of(exact, exact, exact, lost="first read"), 9)
        assert first.startswith("One vector forgets what it read first: 1.00 of what it read last is right")
        assert first.endswith("0.20 of what it read first (3 positions each).")
        last = measurement.forgotten(found_of(exact, exact, exact, lost="last read"), 9)
        assert last.startswith("One vector forgets what it read last")
        for length in (9, 1):
            assert "neither" in measurement.forgotten(found_of(exact, exact, exact), length)

    def test_the_burden_is_in_bits(self) -> None:
        said = measurement.burden(found_of([1] * 12, [1] * 12, [1] * 12), 12)
        assert f"{12 * math.log(2) / math.log(2):.0f} bits in its 6 numbers, 2.0 bits a number" in said


class TestFigures:
    def test_lines_and_intervals_are_the_counts(self) -> None:
        found = found_of([90, 50, 0], [100, 99, 98], [97, 98, 99])
        figure = figures.exact_by_length_curves(measurement.exact_lines(found), chance=0.5)
        curves = {trace.name: trace for trace in figure.data}
        np.testing.assert_allclose(curves["GRU, one vector"].y, [0.9, 0.5, 0.0], atol=1e-6)
        np.testing.assert_allclose(curves["transformer"].y, [0.97, 0.98, 0.99], atol=1e-6)
        np.testing.assert_allclose(curves["chance"].y, [0.5, 0.25, 0.125])
        band = curves["GRU, one vector, 95 % interval"].y
        z, n, p = 1.959964, 100, 0.5  # Wilson's interval, at length 2
        middle, half = (p + z * z / 2 / n), z * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
        assert band[1] == pytest.approx((middle + half) / (1 + z * z / n), abs=1e-6)
        assert band[4] == pytest.approx((middle - half) / (1 + z * z / n), abs=1e-6)

    def test_the_three_keep_their_looks_on_both_charts(self) -> None:
        found = found_of([90, 50, 0], [100, 99, 98], [97, 98, 99])
        both = [
            figures.exact_by_length_curves(measurement.exact_lines(found), chance=0.5),
            figures.right_by_place_curves(measurement.place_lines(found, 3), chance=0.5),
        ]
        looks = [
            {t.name: (t.line.color, t.line.dash, t.marker.symbol) for t in figure.data if t.mode == "lines+markers"}
            for figure in both
        ]
        assert looks[0] == looks[1]
        assert all(len(set(each)) == 3 for each in zip(*looks[0].values(), strict=True))
        assert [shape.y0 for shape in both[1].layout.shapes] == [0.5]
        assert list(both[1].layout.xaxis.tickvals) == [1, 3]


@pytest.mark.skipif(not SHIPPED.is_file(), reason="no shipped measurement")
class TestPage:
    def test_its_numbers_are_the_file_s(self) -> None:
        app, values = open_page("bottleneck", spoken="16"), json.loads(SHIPPED.read_text())
        for each, name in zip(values["contestants"], measurement.NAMES.values(), strict=True):
            for key, counts in (("by-length", each["exact"]), ("by-place", each["right"][12])):
                line = array(trace(app, key, name)["y"])
                np.testing.assert_allclose(line, np.array(counts) / values["sequences"], atol=1e-6)
            assert any(f"{each['parameters']:,}" in markdown.value for markdown in app.markdown)
        shares = [each["exact"][-1] / values["sequences"] for each in values["contestants"]]
        assert "at length 32" in app.title[0].value
        said = [float(number) for number in re.findall(r"\b[01]\.\d+", app.title[0].value)]
        np.testing.assert_allclose(said, shares, atol=0.005)

    def test_the_alignments_are_softmaxes_worked_out_here(self) -> None:
        """GRU states from PyTorch's own layers, then softmax(q · k), row by row."""
        model, _ = checkpoints.load(Run(ROOT / "checkpoints" / "bottleneck-gru-attention").snapshot())
        app, question = open_page("bottleneck", spoken="12", input="3 1 4 1 5 9 2 6"), [3, 1, 4, 1, 5, 9, 2, 6]
        said = own_words(model, question, separator=10)
        pattern = alignment(model, torch.tensor([question]), torch.tensor([[10, *said[:-1]]]))[0]
        np.testing.assert_allclose(array(trace(app, "alignment", "values")["z"]), pattern, atol=1e-5)
        questions = np.random.default_rng([0, 2]).integers(0, 10, (256, 12))
        read = np.hstack([np.full((256, 1), 10), questions[:, :0:-1]])
        mean = alignment(model, torch.tensor(questions), torch.tensor(read)).mean(axis=0)
        np.testing.assert_allclose(array(trace(app, "mean-alignment", "values")["z"]), mean, atol=1e-5)
        beside = [sum(mean[row, 11 - row + by] for row in range(12) if 11 - row + by < 12) / 12 for by in range(4)]
        assert max(beside) == beside[2]
        looks = f"looks 2 tokens after the one it should output: {beside[2]:.2f} of its attention is there"
        assert f"length 12 the decoder {looks}, and {beside[0]:.2f} on that one." in charts_words(app)

    def test_an_input_of_another_task_gives_way_to_the_example(self) -> None:
        for typed, question in (("3 1", "3 1"), ("", "3 1 4 1 5"), ("the king", "3 1 4 1 5")):
            app = open_page("bottleneck", run="reverse", input=typed, spoken="5")
            assert app.main.text_input(key="control-input").value == question
            assert f"Length {len(question.split())}: " in charts_words(app)

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("content", [None, "{"])
    def test_without_a_file_it_says_so_and_offers_to_make_one(self, content, tmp_path: Path, monkeypatch) -> None:
        path = tmp_path / "bottleneck.json"
        if content is not None:
            path.write_text(content)
        monkeypatch.setitem(measurement.FILES, "shipped", path)
        app = open_page("bottleneck")
        assert any("cannot be shown" in error.value for error in app.error)
        assert any(button.label == "Train again" for button in app.button)

    def test_weights_that_are_gone_are_said(self, tmp_path: Path, monkeypatch) -> None:
        found = Bottleneck.load(SHIPPED)
        others = tuple(replace(each, snapshot="f" * 16) for each in found.contestants)
        replace(found, contestants=others).save(tmp_path / "own.json")
        monkeypatch.setitem(measurement.FILES, "own", tmp_path / "own.json")
        app = open_page("bottleneck", trio="own")
        assert "are gone" in charts_words(app)
        assert sorted(drawn(app)) == ["by-length", "by-place"]

    def test_what_a_link_names_in_vain_falls_back(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setitem(measurement.FILES, "own", tmp_path / "away.json")
        app = open_page("bottleneck", trio="own", spoken="3")
        assert len(app.warning) == 2
        assert link(app) == {"run": "reverse"}
        assert "at length 32" in app.title[0].value


def charts_words(app: Any) -> str:
    """Everything that is said below the pictures."""
    return "\n".join(caption.value for caption in app.caption)


@torch.no_grad()
def alignment(model: Any, source: torch.Tensor, read: torch.Tensor) -> np.ndarray:
    """float [sequence, query, key]: what a GRU with attention looks at while it reads these tokens."""
    core = model.core
    states, last = core.encoder.layers[0](model.embedding(source))
    asking, _ = core.decoder.layers[0](model.embedding(read), last)
    query, key = core.attention.query(asking).numpy(), core.attention.key(states).numpy()
    scores = np.einsum("sqd,skd->sqk", query, key)
    grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


class TestTrainingAnew:
    @pytest.fixture
    def here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A folder of runs, and plans that cost nothing."""
        monkeypatch.setattr(bottleneck_runs, "TASK", SMALL)
        monkeypatch.setattr(bottleneck_runs, "MODELS", SHAPES)
        monkeypatch.setattr(menu, "ROOT", tmp_path)
        monkeypatch.setitem(measurement.FILES, "own", tmp_path / "own.json")
        return tmp_path

    def test_the_newest_of_each_kind_are_the_three(self, here: Path) -> None:
        planned = bottleneck_runs.plan()
        assert measurement.trio() == []
        for kind, config in planned.items():
            assert measurement.trio() == []
            made(here / f"old-{kind}", config)
            made(here / bottleneck_runs.FOLDERS[kind], config)  # the shipped ones do not count
        made(here / "other", small("gru"))
        assert [run.name for run in measurement.trio()] == [f"old-{kind}" for kind in KINDS]
        made(here / "new", planned["gru-attention"]).add_details(created=time.time() + 1)
        assert [run.name for run in measurement.trio()] == ["old-gru", "new", "old-transformer"]

    def test_they_are_due_once_all_are_finished_and_nothing_younger_was_measured(self, here: Path) -> None:
        runs = [made(here / kind, config) for kind, config in bottleneck_runs.plan().items()]
        assert (measurement.is_due(runs), measurement.is_measured(runs)) == (True, False)
        measurement.FILES["own"].write_text("{}")
        os.utime(measurement.FILES["own"], (time.time() + 60,) * 2)  # the clock of files may be a tick behind
        assert (measurement.is_due(runs), measurement.is_measured(runs)) == (False, True)
        os.utime(measurement.FILES["own"], (time.time() - 60,) * 2)
        assert (measurement.is_due(runs), measurement.is_measured(runs)) == (True, False)
        runs[2].set_state("stopped", 0)
        for nothing in (runs, []):
            assert (measurement.is_due(nothing), measurement.is_measured(nothing)) == (False, False)

    def test_the_progress_is_that_of_all_steps(self, here: Path) -> None:
        runs = [made(here / kind, config) for kind, config in bottleneck_runs.plan(100).items()]
        for run, (status, step) in zip(runs, [("finished", 100), ("running", 50), ("queued", 0)], strict=True):
            run.set_state(status, step)
        share, words = measurement.progress(runs)
        assert share == pytest.approx(0.5)
        assert words == "GRU, one vector done, GRU with attention step 50, transformer waits"

    def test_a_click_puts_three_runs_into_the_queue_and_what_cannot_begin_is_a_sentence(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun: list[RunConfig] = []

        def start(configs: list[RunConfig]) -> list[Any]:
            if begun:
                raise ConfigError("there is no room")
            begun.extend(configs)
            return []

        monkeypatch.setattr(view_training, "start", start)
        app = open_page("bottleneck")
        for warnings in ([], ["The training could not start: there is no room."]):
            assert [warning.value for warning in press(app, "Train again").warning] == warnings
        assert begun == list(bottleneck_runs.plan().values())

    def test_three_that_are_finished_are_measured_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[tuple[Any, ...]] = []
        runs = [made(tmp_path / kind, config) for kind, config in bottleneck_runs.plan().items()]
        monkeypatch.setattr(measurement, "trio", lambda: runs)
        monkeypatch.setitem(measurement.FILES, "own", tmp_path / "own.json")
        monkeypatch.setattr(Measuring, "start", lambda self, *options: asked.append(options))
        monkeypatch.setattr(Measuring, "running", property(lambda self: bool(asked)))
        app = open_page("bottleneck")
        assert asked == [(tmp_path / "own.json", *(f"--runs={tmp_path / kind}" for kind in KINDS))]
        labels = [button.label for button in app.button]
        assert ("Stop all three" in labels, "Train again" in labels) == (True, False)
        app.run()
        assert len(asked) == 1

    def test_a_training_that_was_cut_off_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        runs = [made(tmp_path / kind, config, "stopped") for kind, config in bottleneck_runs.plan().items()]
        monkeypatch.setattr(measurement, "trio", lambda: runs)
        app = open_page("bottleneck")
        assert "The last training ended early: gru, it was cut off." in charts_words(app)
        assert any(button.label == "Train again" for button in app.button)
