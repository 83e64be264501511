"""Beyond the trained length: the counting against models whose answers are known, and the file."""

from __future__ import annotations

import json
import lzma
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from transformer import compiled_reverser
from transformer.__main__ import main
from transformer.compiled import compiled_config
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.experiments.lengths import Fall, Lengths, LengthsError, in_order
from transformer.experiments.lengths_measure import carry_out, measure, plan, try_out
from transformer.masks.painted import Painted
from transformer.model import build, stretched
from transformer.tasks import TASKS
from transformer.training.loop import train

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "checkpoints" / "lengths.json.xz"
RELATIVE = ("sinusoidal", "rotary", "alibi", "none")


def small_plan() -> Lengths:
    """Five trainings of a few steps, on lengths 1 and 2."""
    planned = replace(plan(2, steps=3, seeds=(4,)), sequences=16)
    return replace(planned, config=replace(planned.config, model=ModelConfig(n_layers=1, d_model=16, n_heads=2)))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lengths, Path]:
    path = tmp_path_factory.mktemp("lengths") / "lengths.json"
    *_, found = carry_out(small_plan(), path)
    return found, path


class TestStretched:
    @pytest.mark.parametrize("positions", RELATIVE)
    def test_it_says_the_same_where_the_shorter_one_reaches(self, positions: str) -> None:
        model = build(RunConfig(task=TaskConfig(length=3), model=ModelConfig(positions=positions))).eval()
        tokens = torch.arange(6)[None]
        with torch.no_grad():
            assert torch.equal(stretched(model, 40)(tokens), model(tokens))
            assert stretched(model, 40)(torch.arange(12)[None].repeat(1, 3)).shape == (1, 36, 12)

    def test_learned_positions_end_where_their_table_does(self) -> None:
        model = build(RunConfig(task=TaskConfig(length=3)))
        with pytest.raises(ValueError, match="learned positions have no vector for position 7"):
            stretched(model, 7)
        assert torch.equal(stretched(model, 4).positions.get_parameter("table"), model.positions.table[:4])

    def test_a_painted_mask_ends_where_it_was_painted(self) -> None:
        mask = str(Painted.of(np.tril(np.ones((6, 6), dtype=bool))))
        model = build(RunConfig(task=TaskConfig(length=3), model=ModelConfig(positions="alibi", mask=mask)))
        with pytest.raises(ValueError, match="painted for 6"):
            stretched(model, 7)

    def test_it_leaves_the_generator_and_the_model_alone(self) -> None:
        model = build(RunConfig(task=TaskConfig(length=3), model=ModelConfig(positions="rotary")))
        before, state = [weight.clone() for weight in model.parameters()], torch.get_rng_state()
        longer_one = stretched(model, 30)
        assert torch.equal(torch.get_rng_state(), state)
        for weight in longer_one.parameters():
            weight.data.zero_()
        assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))


class TestMeasure:
    def test_the_compiled_reverser_is_exact_at_its_length_and_ends_there(self) -> None:
        exact, right = measure(compiled_reverser(4), compiled_config(4).build_task(), 6, sequences=64, seed=1)
        assert exact[3] == 64
        assert right[3] == (64, 64, 64, 64)
        assert exact[4:] == right[4:] == (None, None)

    @pytest.mark.parametrize("task", ["reverse", "reverse-aligned", "copy"])
    def test_it_counts_what_a_model_says_by_itself(self, task: str) -> None:
        """Counted again with a loop: the answer said one argmax after the other, nobody helping."""
        kind = TASKS[task](length=2, symbols=2)
        config = RunConfig(task=TaskConfig(task=task, length=2, symbols=2), model=ModelConfig(positions="rotary"))
        model = build(config).eval()
        exact, _ = measure(model, kind, 4, sequences=40, seed=3)
        questions = np.random.default_rng([3, 1]).integers(0, 2, (40, 4))
        wide, whole = stretched(model, 20), 0
        for x in questions.tolist():
            wanted = x if task == "copy" else x[::-1]
            if task == "reverse-aligned":
                said = wide(torch.tensor([x]))[0].argmax(-1).tolist()
            else:
                read = [*x, 2]
                for _ in x:
                    read.append(int(wide(torch.tensor([read]))[0, -1].argmax()))
                said = read[5:]
            whole += said == wanted
        assert exact[3] == whole

    def test_a_model_that_always_says_three_is_right_once_in_ten(self) -> None:
        model = build(RunConfig(task=TaskConfig(length=2), model=ModelConfig(positions="alibi"))).eval()
        with torch.no_grad():
            model.unembedding.weight.zero_()
            model.unembedding.bias.zero_()[3] = 1.0
        exact, right = measure(model, TASKS["reverse"](length=2), 5, sequences=200, seed=9)
        questions = np.random.default_rng([9, 1]).integers(0, 10, (200, 5))
        assert right[4] == tuple((questions[:, ::-1] == 3).sum(axis=0).tolist())
        assert exact[4] == (questions == 3).all(axis=1).sum()


class TestFall:
    """Whether a loss was still falling at the end."""

    def test_it_is_the_last_tenth_against_the_tenth_before(self) -> None:
        losses = [9.0] * 32 + [0.5, 0.7, 0.5, 0.7] + [0.3, 0.5, 0.3, 0.5]
        found = Fall.of(losses)
        assert found is not None
        assert found.nats == pytest.approx(0.2)
        # each has variance 4 · 0.1² / 3, so its mean has a quarter of that; two standard errors of the difference
        assert found.half == pytest.approx(2 * (2 * (0.04 / 3) / 4) ** 0.5)
        assert found.falling

    @pytest.mark.parametrize(
        ("nats", "half", "falling"),
        [
            (0.010, 0.0099, True),
            (0.010, 0.010, False),
            (0.0011, 0.0, True),
            (0.001, 0.0, False),
            (-0.5, 0.1, False),
        ],
    )
    def test_the_border(self, nats: float, half: float, falling: bool) -> None:
        assert Fall(nats, half).falling is falling

    def test_of_several_the_noise_shrinks(self) -> None:
        found = Fall.mean([Fall(0.1, 0.3), Fall(0.3, 0.4)])
        assert (found.nats, found.half) == (pytest.approx(0.2), pytest.approx(0.25))

    def test_too_few_steps_say_nothing(self) -> None:
        assert Fall.of([1.0] * 19) is None
        assert Fall.of([1.0] * 20) == Fall(0.0, 0.0)

    def test_a_trial_has_that_of_its_own_training(self) -> None:
        planned = replace(plan(1, steps=20, seeds=(4,)), sequences=4)
        shared = replace(planned.config, model=ModelConfig(n_layers=1, d_model=16, n_heads=2, positions="alibi"))
        shared = replace(shared, training=replace(shared.training, seed=4))
        found = try_out((replace(planned, config=shared), "alibi", 4))
        assert found.fall == Fall.of([step.loss for step in train(build(shared), shared)])
        assert found.fall is not None


class TestFile:
    def test_it_comes_back_as_it_was_written(self, measured: tuple[Lengths, Path]) -> None:
        found, path = measured
        assert Lengths.load(path) == found
        assert found.complete
        assert [trial.positions for trial in found.trials] == [*in_order()]
        assert in_order()[:5] == ("learned", *RELATIVE)
        assert np.isnan(found.exact("learned")[0, 2:]).all()
        assert np.isfinite(found.exact("rotary")).all()
        assert found.accuracy("learned", 3).shape == (1, 3)

    def test_compressed_it_is_the_same_in_less_room(self, measured: tuple[Lengths, Path], tmp_path: Path) -> None:
        found, path = measured
        packed = tmp_path / "lengths.json.xz"
        found.save(packed)
        assert Lengths.load(packed) == found
        assert lzma.decompress(packed.read_bytes()) == path.read_bytes()
        assert packed.stat().st_size < path.stat().st_size / 2

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "ends too early"),
            (b"{}" * 100, "not compressed by xz"),
            (lzma.compress(b"{}")[:-4], "ends too early"),
            (lzma.compress(b"[]"), "it is no record"),
            (lzma.compress(b" " * 50_000_000), "unpacks to more than 4 MB"),
            (
                lzma.compress(b"{}", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 2**30}]),
                "not compressed by xz",  # it asks for a gigabyte of memory
            ),
        ],
        ids=["nothing", "JSON", "cut off", "a list", "much in little", "greedy"],
    )
    def test_a_compressed_file_that_is_none_is_a_sentence(self, content: bytes, words: str, tmp_path: Path) -> None:
        path = tmp_path / "lengths.json.xz"
        path.write_bytes(content)
        with pytest.raises(LengthsError, match=words):
            Lengths.load(path)

    @pytest.mark.nightly
    def test_two_processes_find_what_one_finds(
        self, measured: tuple[Lengths, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A test of a page leaves that page's script there, and each process would begin by running it.
        monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
        found, _ = measured
        *_, other = carry_out(small_plan(), tmp_path / "lengths.json", processes=2)
        timeless = [[replace(trial, seconds=0.0) for trial in each.trials] for each in (found, other)]
        assert timeless[0] == timeless[1]

    def test_the_command_line_writes_one(self, tmp_path: Path, monkeypatch, capsys) -> None:
        monkeypatch.setattr("os.cpu_count", lambda: 1)
        monkeypatch.setattr("transformer.experiments.lengths_measure.SEQUENCES", 8)
        path = tmp_path / "own.json"
        assert main(["lengths", "--out", str(path), "--length", "1", "--steps", "1", "--seeds", "4,7-8"]) == 0
        planned = 3 * len(in_order())
        assert f"{planned} of {planned}" in capsys.readouterr().out
        assert (Lengths.load(path).longest, Lengths.load(path).seeds) == (3, (4, 7, 8))
        assert main(["lengths", "--out", str(path), "--length", "0"]) == 2
        assert "between 1 and 64" in capsys.readouterr().err
        assert main(["lengths", "--out", str(path), "--seeds", "3,3"]) == 2
        assert "name one twice" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("harm", "words"),
        [
            (lambda text: "", "not JSON"),
            (lambda text: text[: len(text) // 2], "not JSON"),
            (lambda text: "[" * 100_000, "nested too deeply"),
            (lambda text: "[1, 2]", "it is no record"),
            (lambda text: text.replace("lengths/1", "lengths/2"), "another version"),
            (lambda text: text.replace('"rotary"', '"lunar"'), "lunar"),
            (lambda text: text.replace('"sequences":16', '"sequences":0'), "damaged"),
            (lambda text: text.replace('"longest":6', '"longest":7'), "damaged"),
            (lambda text: text.replace('"exact":[', '"exact":[-1,'), "damaged"),
            (lambda text: text.replace('"seeds":[4]', '"seeds":[5]'), "trials"),
            (lambda text: text.replace('"n_layers":1', '"n_layers":"many"'), "damaged"),
            (lambda text: text.replace('"fall":null', '"fall":{"nats":"much"}', 1), "damaged"),
            (lambda text: text + " " * 5_000_000, "too large"),
        ],
    )
    def test_any_other_file_is_a_sentence(
        self, harm, words: str, measured: tuple[Lengths, Path], tmp_path: Path
    ) -> None:
        path = tmp_path / "broken.json"
        path.write_text(harm(measured[1].read_text()))
        with pytest.raises(LengthsError, match=words) as error:
            Lengths.load(path)
        assert "\n" not in str(error.value)

    def test_none_at_all_is_a_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(LengthsError, match=r"there is no file away\.json"):
            Lengths.load(tmp_path / "away.json")


@pytest.mark.skipif(not SHIPPED.is_file(), reason="no shipped measurement")
class TestShipped:
    def test_it_is_whole_and_honest(self) -> None:
        found = Lengths.load(SHIPPED)
        assert found.complete
        assert found.longest == 3 * found.trained
        assert found.config == plan().config
        assert found.seeds == tuple(range(64))
        assert np.isnan(found.exact("learned")[:, found.trained :]).all()
        for name in ("learned", "rotary"):  # what was trained on is learned
            assert found.exact(name)[:, found.trained - 1].mean() > 0.9
        for trial in found.trials:
            for whole, row in zip(trial.exact, trial.right, strict=True):
                assert (whole is None) == (row is None)
                assert row is None or whole <= min(row)
        assert json.loads(lzma.decompress(SHIPPED.read_bytes()))["versions"].keys() >= {"torch", "python"}
