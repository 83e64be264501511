"""Square corners, the task and its model: what a walk is, the rule that answers it, and what training makes of it."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from transformer.__main__ import main
from transformer.config import ATTENTIONS, ConfigError
from transformer.corners import CornerConfig, Walks, error, every_walk, floor, walks
from transformer.experiments.teacher_forcing import Forcing, ForcingError, Trial, shared
from transformer.experiments.teacher_forcing_measure import carry_out, plan
from transformer.foundation.foreign import MOST_WORDS
from transformer.recurrent.corners import build_walker, look_back, say_corners, train_corners
from transformer.recurrent.roll_out import roll_out

ROUND = [(-1.0, -1.0), (-1.0, 1.0), (1.0, 1.0), (1.0, -1.0)]
"""Clockwise, seen with y upwards."""


def drawn(size: int = 400, most: int = 6, noise: float = 0.0, seed: int = 0) -> Walks:
    return walks(np.random.default_rng(seed), size, most, noise)


def rule(source: np.ndarray, count: int) -> list[tuple[float, float]]:
    """The next two corners, by hand: snap to the signs, see which way round it goes, and go on."""
    places = [ROUND.index((math.copysign(1, x), math.copysign(1, y))) for x, y in source[:count].tolist()]
    turn = (places[1] - places[0]) % 4
    assert turn in (1, 3)
    return [ROUND[(places[-1] + turn * ahead) % 4] for ahead in (1, 2)]


def binomial_tail(hits: int, of: int, share: float) -> float:
    """How likely a count at least as far from its mean is: exact, both sides."""
    chances = [math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(of + 1)]
    return sum(chance for k, chance in enumerate(chances) if abs(k - of * share) >= abs(hits - of * share))


class TestTheWalk:
    def test_a_clean_one_visits_the_corners_in_order_clockwise_or_back_and_a_rule_by_hand_answers_it(self) -> None:
        found = drawn()
        for i in range(len(found.source)):
            count = int(found.given[i])
            visited = [tuple(point) for point in [*found.source[i, :count].tolist(), *found.target[i].tolist()]]
            first = ROUND.index(visited[0])
            assert first == found.start[i]
            assert rule(found.source[i], count) == visited[-2:]
            assert visited == [ROUND[(first + int(found.turn[i]) * step) % 4] for step in range(count + 2)]
            assert [tuple(point) for point in found.visited(i).tolist()] == visited

    def test_starts_turns_and_counts_are_equally_frequent(self) -> None:
        size = 1000
        found = drawn(size, most=5, seed=3)
        counts = [int((found.start == start).sum()) for start in range(4)]
        assert all(binomial_tail(count, size, 1 / 4) > 1e-4 for count in counts)
        assert binomial_tail(int((found.turn == 1).sum()), size, 1 / 2) > 1e-4
        assert set(found.given.tolist()) == {2, 3, 4, 5}
        assert all(binomial_tail(int((found.given == n).sum()), size, 1 / 4) > 1e-4 for n in (2, 3, 4, 5))

    def test_the_noise_has_its_deviation_and_no_direction(self) -> None:
        noise = 0.4
        found = drawn(2000, most=2, noise=noise)
        clean = np.array([found.visited(i) for i in range(len(found.source))])
        wobble = np.concatenate([found.source, found.target], axis=1) - clean
        n = wobble.size
        assert abs(wobble.mean()) < 4 * noise / math.sqrt(n)
        assert abs(wobble.std() / noise - 1) < 4 / math.sqrt(2 * n)
        x, y = wobble[..., 0].ravel(), wobble[..., 1].ravel()
        assert abs(np.corrcoef(x, y)[0, 1]) < 4 / math.sqrt(n / 2)

    def test_padding_is_zero_and_at_the_end_and_the_same_seed_draws_the_same(self) -> None:
        found, again, other = drawn(noise=0.2), drawn(noise=0.2), drawn(noise=0.2, seed=6)
        for source, real, count in zip(found.source, found.real, found.given, strict=True):
            assert real.tolist() == [True] * count + [False] * (6 - count)
            assert (source[count:] == 0).all()
            assert (source[:count] != 0).all()
        np.testing.assert_array_equal(found.source, again.source)
        np.testing.assert_array_equal(found.target, again.target)
        assert (found.target != other.target).any()

    def test_every_walk_is_there_once_and_goes_the_same_way_however_many_are_given(self) -> None:
        found = every_walk(most=5, noise=0.1)
        kinds = list(zip(found.start.tolist(), found.turn.tolist(), found.given.tolist(), strict=True))
        assert sorted(kinds) == sorted((s, t, n) for s in range(4) for t in (1, -1) for n in (2, 3, 4, 5))
        for start, turn, given in kinds:
            walk = found.which(start, turn, given)
            assert kinds[walk] == (start, turn, given)
            if given > 2:
                less = found.which(start, turn, given - 1)
                np.testing.assert_array_equal(found.source[walk, : given - 1], found.source[less, : given - 1])
                np.testing.assert_array_equal(found.source[walk, given - 1], found.target[less, 0])
        with pytest.raises(IndexError):
            found.which(0, 1, 6)
        with pytest.raises(ValueError, match="no alignment"):
            look_back(build_walker(CornerConfig()), found)


class TestTheRule:
    def test_it_is_off_by_the_noise_times_root_two(self) -> None:
        """2n squared normals: their root mean has a standard error of one part in √(8n), of n corners."""
        noise = 0.15
        found = drawn(2000, noise=noise)
        said = np.array([rule(s, int(n)) for s, n in zip(found.source, found.given, strict=True)], dtype=np.float32)
        distances = [
            math.dist(a, b) ** 2 for a, b in zip(said.reshape(-1, 2), found.target.reshape(-1, 2), strict=True)
        ]
        off = math.sqrt(sum(distances) / len(distances))
        assert error(said, found) == pytest.approx(off, rel=1e-5)
        assert abs(off / floor(noise) - 1) < 4 / math.sqrt(4 * len(distances))
        assert floor(noise) == pytest.approx(noise * 1.4142136)


class TestTheModel:
    @pytest.mark.parametrize("attention", ATTENTIONS)
    def test_padding_has_no_influence_on_what_is_said(self, attention: str) -> None:
        model, asked = build_walker(CornerConfig(attention=attention, d_model=5)).eval(), drawn(40, noise=0.1)
        dirty = replace(asked, source=np.where(asked.real[..., None], asked.source, np.float32(7)))
        np.testing.assert_array_equal(say_corners(model, asked), say_corners(model, dirty))
        for i in range(5):
            n = int(asked.given[i])
            alone = Walks(*(field[i : i + 1] for field in (asked.source[:, :n], asked.real[:, :n], asked.target)),
                          asked.start[i : i + 1], asked.turn[i : i + 1])  # fmt: skip
            np.testing.assert_allclose(say_corners(model, alone)[0], say_corners(model, asked)[i], atol=1e-6)

    @pytest.mark.parametrize("attention", [name for name in ATTENTIONS if name != "none"])
    def test_the_alignment_is_a_distribution_over_what_is_given(self, attention: str) -> None:
        model, asked = build_walker(CornerConfig(attention=attention, d_model=3)).eval(), drawn(40, noise=0.1)
        found = look_back(model, asked)
        assert found.shape == (40, 2, 6)
        np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-6)
        assert (found[~np.broadcast_to(asked.real[:, None], found.shape)] == 0).all()
        if attention == "uniform":
            for pattern, count in zip(found, asked.given, strict=True):
                np.testing.assert_allclose(pattern[:, :count], 1 / count, atol=1e-6)

    @torch.no_grad()
    def test_the_alignment_is_the_softmax_of_the_scores_by_hand(self) -> None:
        """Step by step with the model's own cells, for one walk of four given corners."""
        model = build_walker(CornerConfig(attention="scaled-dot", d_model=3, seed=2)).eval()
        asked = every_walk(most=4, noise=0.1)
        walk = asked.which(1, -1, 4)
        encoder, decoder, attention = model.core.encoder.layers[0], model.core.decoder.layers[0], model.core.attention
        states, state = encoder(torch.from_numpy(asked.source[walk : walk + 1]))
        read = torch.from_numpy(asked.source[walk, 3]).reshape(1, 1, 2)
        keys, values = attention.key(states[0]), attention.value(states[0])
        for target in range(2):
            left, state = decoder(read, state)
            scores = np.array([float(attention.query(left[0, 0]) @ key) / math.sqrt(3) for key in keys])
            alpha = np.exp(scores) / np.exp(scores).sum()
            np.testing.assert_allclose(look_back(model, asked)[walk, target], alpha, atol=1e-5)
            context = sum(float(weight) * value for weight, value in zip(alpha, values, strict=True))
            read = model.out(torch.cat([context, left[0, 0]]).float()).reshape(1, 1, 2)
            np.testing.assert_allclose(say_corners(model, asked)[walk, target], read[0, 0], atol=1e-5)

    @pytest.mark.parametrize("attention", ATTENTIONS)
    def test_a_roll_out_is_the_run_and_its_gates_make_its_states(self, attention: str) -> None:
        model, asked = build_walker(CornerConfig(attention=attention, d_model=3, seed=4)).eval(), drawn(6, noise=0.1)
        for walk in range(6):
            found = roll_out(model, asked, walk)
            assert len(found.encoder) == asked.given[walk]
            np.testing.assert_allclose(
                [cell.said for cell in found.decoder], say_corners(model, asked)[walk], atol=1e-6
            )
            cells = [*found.encoder, *found.decoder]
            assert (cells[0].before == 0).all()
            for cell, after in pairwise(cells):
                np.testing.assert_array_equal(cell.state, after.before)
                np.testing.assert_allclose(
                    cell.state, (1 - cell.update) * cell.new + cell.update * cell.before, atol=1e-6
                )
            np.testing.assert_array_equal(found.decoder[0].before, found.handed_over)
            np.testing.assert_array_equal(found.decoder[1].read, found.decoder[0].said)
            assert (found.decoder[0].context is None) == (attention == "none")

    def test_help_changes_the_second_corner_alone(self) -> None:
        model, asked = build_walker(CornerConfig(d_model=4)).eval(), drawn(50, noise=0.1)
        by_itself, helped = say_corners(model, asked), say_corners(model, asked, helped=True)
        np.testing.assert_array_equal(by_itself[:, 0], helped[:, 0])
        assert (by_itself[:, 1] != helped[:, 1]).any(axis=1).all()
        true_first = replace(asked, target=np.stack([by_itself[:, 0], asked.target[:, 1]], axis=1))
        np.testing.assert_allclose(say_corners(model, true_first, helped=True), by_itself, atol=1e-6)

    @pytest.mark.parametrize("attention", ATTENTIONS)
    def test_gradients_reach_every_parameter(self, attention: str) -> None:
        model, asked = build_walker(CornerConfig(attention=attention, d_model=4)), drawn(32, noise=0.1)
        said = model(torch.from_numpy(asked.source), torch.from_numpy(asked.real))
        (said - torch.from_numpy(asked.target)).square().mean().backward()
        # A softmax ignores what all keys share: with a dot product the keys' bias has no effect at all.
        still = {"core.attention.key.bias"} if attention in ("dot", "scaled-dot") else set()
        for name, parameter in model.named_parameters():
            if name not in still:
                assert parameter.grad is not None, name
                assert parameter.grad.abs().max() > 0, name

    def test_weights_are_drawn_within_pytorch_s_own_bounds(self) -> None:
        model = build_walker(CornerConfig(attention="additive", d_model=16))
        for name, parameter in model.named_parameters():
            width = 32 if name.startswith("out") else 16
            assert parameter.abs().max() <= 1 / math.sqrt(width), name
            assert parameter.abs().max() > 0.5 / math.sqrt(width), name

    def test_the_global_generator_is_left_alone_and_threads_do_not_meet(self) -> None:
        config = CornerConfig(attention="dot", d_model=4, seed=3)
        torch.manual_seed(1)
        expected = torch.rand(3)
        torch.manual_seed(1)
        alone = build_walker(config).state_dict()
        torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)
        found: list[dict[str, torch.Tensor]] = []
        threads = [threading.Thread(target=lambda: found.append(build_walker(config).state_dict())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert all(torch.equal(each[name], alone[name]) for each in found for name in alone)


SMALL = CornerConfig(attention="dot", d_model=8, steps=200, seed=1)


class TestTraining:
    def test_it_learns_and_the_same_seed_gives_the_same_numbers(self) -> None:
        steps = list(train_corners(build_walker(SMALL), every=100))
        assert [step.step for step in steps if step.error is not None] == [0, 100, 200]
        first, last = steps[0], steps[-1]
        assert first.error > 1
        assert floor(0.1) * 0.94 < last.error < 0.2
        assert last.helped_error < 0.2
        again = list(train_corners(build_walker(replace(SMALL, steps=20)), every=10))
        assert [step.loss for step in again][1:] == [step.loss for step in steps[1:21]]

    def test_what_is_measured_is_what_the_weights_say(self) -> None:
        """The weights of a step, loaded into another model, say the same of the walks that are drawn."""
        shown = every_walk(most=3)
        *_, last = train_corners(build_walker(replace(SMALL, most=3, steps=30)), every=15, shown=shown)
        other = build_walker(replace(SMALL, seed=9)).eval()
        other.load_state_dict(last.weights)
        np.testing.assert_array_equal(say_corners(other, shown), last.said)
        np.testing.assert_array_equal(look_back(other, shown), last.pattern)
        fresh = walks(np.random.default_rng([1, 1]), 512, 3, 0.1)
        off = say_corners(other, fresh) - fresh.target
        assert last.error == pytest.approx(math.sqrt((off.astype(np.float64) ** 2).sum() / 1024), rel=1e-5)
        three = [look_back(other, fresh)[i] for i in range(512) if fresh.given[i] == 3]
        np.testing.assert_allclose(last.mean_pattern[1], sum(three) / len(three), atol=1e-5)

    def test_help_is_given_with_its_probability(self) -> None:
        """At p = 0.5 the decoder reads the true corner half of the time; at 0 never, at 1 always."""
        for chance in (0.0, 0.5, 1.0):
            model = build_walker(CornerConfig(teacher_forcing=chance, steps=20))
            given: list[torch.Tensor] = []

            def noted(network, arguments, given=given) -> None:
                if network.training:
                    given.append(arguments[3])

            model.register_forward_pre_hook(noted)
            for _ in train_corners(model, every=20, fresh=8):
                pass
            read = torch.cat(given)[:, 0]
            assert len(read) == 20 * 32
            hits = int(read.sum())
            assert hits == chance * len(read) if chance != 0.5 else binomial_tail(hits, len(read), 0.5) > 1e-4


class TestTheSettings:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"attention": "cosine"}, "attention must be one of none, uniform"),
            ({"d_model": 0}, "d_model must be between 1 and 256, not 0"),
            ({"teacher_forcing": 1.5}, "teacher_forcing must be between 0 and 1, not 1.5"),
            ({"most": 1}, "most must be between 2 and 12, not 1"),
            ({"noise": -0.1}, "noise must be between 0 and 1"),
            ({"steps": 0}, "steps must be between"),
            ({"seed": -1}, "seed must be between"),
        ],
    )
    def test_what_cannot_be_trained_is_a_sentence(self, changes: dict[str, object], words: str) -> None:
        with pytest.raises(ConfigError, match=words):
            CornerConfig(**changes)


TINY = CornerConfig(steps=5, batch_size=4)


class TestTeacherForcing:
    def test_it_is_carried_out_as_planned_and_comes_back_from_its_file(self, tmp_path: Path) -> None:
        path = tmp_path / "found.json"
        planned = plan(replace(TINY, teacher_forcing=0.9, seed=7), chances=(0.0, 1.0), seeds=(0, 1))
        assert planned.config == TINY == shared(planned.config)
        sizes = [len(found.trials) for found in carry_out(planned, path)]
        assert sizes == [1, 2, 3, 4]
        found = Forcing.load(path)
        assert found.complete
        assert [(trial.chance, trial.seed) for trial in found.trials] == [(0, 0), (1, 0), (0, 1), (1, 1)]
        for trial in found.trials:
            config = replace(TINY, teacher_forcing=trial.chance, seed=trial.seed)
            model = build_walker(config)
            for _ in train_corners(model, every=5, fresh=2):
                pass
            asked = walks(np.random.default_rng([trial.seed, 1]), 4096, 2, 0.1)
            off = say_corners(model, asked) - asked.target
            assert trial.error == pytest.approx(math.sqrt((off**2).sum() / 8192), abs=1e-4)
            place = (0.0, 1.0).index(trial.chance), trial.seed
            assert found.errors()[place] == trial.error
            assert found.errors(helped=True)[place] == trial.helped_error

    def test_what_is_not_there_yet_is_no_number(self) -> None:
        found = Forcing(TINY, (0.0, 1.0), (0, 1), 4, {}).with_trial(Trial(1.0, 0, 0.5, 0.25, 1.0))
        np.testing.assert_array_equal(found.errors(), [[np.nan, np.nan], [0.5, np.nan]])
        assert not found.complete

    @pytest.mark.parametrize(
        ("harm", "words"),
        [
            (lambda text: "{", "not JSON"),
            (lambda text: "[1]", "it is no record"),
            (lambda text: text.replace("forcing/1", "forcing/9"), "another version"),
            (lambda text: text.replace('"error":0.5', '"error":-1'), "not valid numbers"),
            (lambda text: text.replace('"error":0.5', '"error":NaN'), "not valid numbers"),
            (lambda text: text.replace('"seed":3', '"seed":8'), "do not match its plan"),
            (lambda text: text.replace('"noise":0.1', '"noise":9'), "noise must be"),
            (lambda text: text.replace('"attention":"none"', '"attention":"look"'), "attention must be"),
            (lambda text: text.replace('"trials":[{', '"trials":[{"more":1,'), "damaged"),
            (lambda text: " " * (MOST_WORDS + 1), "too large"),
        ],
    )
    def test_a_harmed_file_is_a_sentence(self, harm, words: str, tmp_path: Path) -> None:
        path = tmp_path / "corners.json"
        Forcing(TINY, (0.0,), (3,), 4, {}).with_trial(Trial(0.0, 3, 0.5, 0.25, 1.0)).save(path)
        Forcing.load(path)
        path.write_text(harm(path.read_text()))
        with pytest.raises(ForcingError, match=words):
            Forcing.load(path)

    def test_the_command_writes_the_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
        monkeypatch.setattr("transformer.commands.measure.os.cpu_count", lambda: 1)
        path = tmp_path / "own.json"
        small = ["--steps", "1", "--batch-size", "2", "--attention", "dot", "--d-model", "3", "--no-affine"]
        assert main(["corners", "--out", str(path), *small]) == 0
        found = Forcing.load(path)
        assert found.complete
        assert found.config == CornerConfig(steps=1, batch_size=2, attention="dot", d_model=3, affine=False)
        assert "25 of 25  teacher forcing 1, seed 4" in capsys.readouterr().out

    def test_bad_input_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["corners", "--seed", "3"]) == 2
        assert "leave them out" in capsys.readouterr().err
