"""Races and standings: what is trained, how far it is, and sentences that the numbers bear out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from dashboard.app_pages.training.runs.comparison import Course, Label, Standing, labels, standing
from dashboard.app_pages.training.runs.races import first_of, headline, meaning, outcome, races
from tests.kit import claims, texts
from tests.kit.claims.laws.training import HEADLINE, Field, Ran
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.foundation.claims import Claim
from transformer.training.library import changes
from transformer.training.runs import Run, State

ROOT = Path(__file__).resolve().parents[4] / "checkpoints"
FINISHED = State("finished")


def config(task: dict | None = None, training: dict | None = None, **model: object) -> RunConfig:
    return RunConfig(
        task=TaskConfig(**(task or {})), model=ModelConfig(**model), training=TrainingConfig(**(training or {}))
    )


# --- what is raced


def test_a_race_begins_where_the_panel_stands_and_changes_one_thing():
    start = config(positions="none", mask="full", n_heads=2, training={"seed": 7})
    found = races(start)
    assert [(each.name, [changes(made, each.configs[0]) for made in each.configs[1:]]) for each in found] == [
        ("learned positions or none", [["positions learned → none"]]),
        ("1 head or 4", [["heads 1 → 4"]]),
        ("mask causal or none", [["mask causal → full"]]),
        ("seeds 7, 8 and 9", [["seed 7 → 8"], ["seed 7 → 9"]]),
    ]
    assert start in found[0].configs
    assert start in found[2].configs
    assert start in found[3].configs
    assert changes(found[1].configs[0], start) == ["heads 2 → 1"]
    assert not any(each.problem for each in found)


def test_what_the_positions_decide_is_decided_anew():
    sinusoidal, none = races(config(positions="sinusoidal"))[0].configs
    assert sinusoidal == config(positions="sinusoidal")
    assert none == config(positions="none")
    assert sinusoidal.training.decay_after != none.training.decay_after


def test_what_cannot_be_trained_says_why():
    _, heads, _, seeds = races(config(d_model=6, n_heads=2, training={"seed": 2**31 - 2}))
    assert heads.problem == "d_model (6) must be divisible by n_heads (4)"
    assert seeds.problem.startswith("seed must be between 0 and 2147483647")
    assert heads.configs == seeds.configs == ()


# --- how it goes


@pytest.mark.parametrize("name", ["reverse", "reverse-aligned-causal", "reverse-translate"])
def test_a_course_is_what_the_file_says(name: str):
    run = Run(ROOT / name)
    read = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    course = Course(run).update()
    assert course.steps == [line["step"] for line in read]
    assert course.losses == [line["loss"] for line in read]
    assert course.seconds == [line["seconds"] for line in read]
    probes = [line for line in read if "accuracy" in line]
    assert [course.steps[i] for i in course.measured] == [line["step"] for line in probes]
    answer = 4 if "aligned" in name else 8  # the last eight of sixteen targets or of eight, or four of eight
    np.testing.assert_allclose(course.shares, [np.mean(line["accuracy"][-answer:]) for line in probes])
    assert course.solved
    assert course.probed == max(line["probed"] for line in probes)


def test_a_course_grows_with_its_file_and_begins_anew_with_another(tmp_path: Path):
    run = Run.create(tmp_path / "run", config(task={"length": 2}))
    path, course = run.folder / "metrics.jsonl", Course(run)
    assert course.update().steps == []

    def line(step: int) -> str:
        values = {"step": step, "loss": 2.0, "seconds": step / 10, "learning_rate": 0.1, "gradient_norm": 1.0}
        return json.dumps(values | ({"accuracy": [0, 0, 0.5, 1]} if step % 2 else {})) + "\n"

    with path.open("a") as file:
        for step in range(1, 40):
            text = line(step)
            cut = step % 7 + 1
            file.write(text[:cut])
            file.flush()
            assert course.update().steps == list(range(1, step))
            file.write(text[cut:])
            file.flush()
            assert course.update().steps == list(range(1, step + 1))
        file.write("nonsense\n{}\n" + line(40))
    assert course.update().steps == list(range(1, 41))
    assert course.shares == [0.75] * 20
    assert course.probed == 512  # what an old run says nothing about
    run.cut_metrics(10)
    assert course.update().steps == list(range(1, 11))
    path.write_text('[]\n7\n{"step": 1}\n' + line(2))
    assert course.update().steps == Course(run).update().steps == [2]
    path.unlink()
    assert Course(run).update().steps == []


def test_what_sets_runs_apart(tmp_path: Path):
    called = [("learned positions", "with learned positions"), ("no positions", "without positions")]
    called.append(("ALiBi positions", "with ALiBi positions"))
    runs = [Run.create(tmp_path / each, config(positions=each)) for each in ("learned", "none", "alibi")]
    for pair in (slice(0, 2), slice(1, 3)):
        assert labels(runs[pair]) == [Label(*each) for each in called[pair]]


def test_what_differs_in_more_is_called_by_its_name(tmp_path: Path):
    made = [config(), config(n_heads=1), config(n_heads=1, mask="full"), config(), config(norm="post")]
    runs = [Run.create(tmp_path / f"run {i}", each) for i, each in enumerate(made)]
    for chosen, called in {
        (0, 1): ["4 heads", "1 head"],
        (1, 2): ["mask causal", "no mask"],
        (0, 4): ["run 0", "run 4"],
        **{each: [f"run {i}" for i in each] for each in ((), (0,), (0, 3), (0, 1, 2), (0, 1, 3))},
    }.items():
        assert [label.text for label in labels([runs[i] for i in chosen])] == called
    assert labels(runs[:1])[0].phrase == "by run 0"


# --- in words


def stand(label: str, step: int = 30, seconds: float = 0.4, solved: bool = True, **options: object) -> Standing:
    values = {"state": FINISHED, "share": 1.0 if solved else 0.43, "config": config(), "evaluation": None} | options
    return Standing(
        name=label, label=Label(label, f"with {label}"), step=step, seconds=seconds, solved=solved, **values
    )


def lost(label: str, **options: object) -> Standing:
    """One that took all its steps in vain."""
    return stand(label, 2000, 14.0, False, **options)


A, LEAKY = stand("a"), config(mask="full")
RUNNING, QUEUED, PAUSED, STOPPED = (State(each) for each in ("running", "queued", "paused", "stopped"))


@pytest.mark.parametrize(
    ("standings", "said"),
    [
        ([], "Nothing to compare yet."),
        ([A], "A: solved at step 30 after 0.4 s."),
        ([lost("a")], "A: not solved in 2000 steps and 14.0 s: 0.43 of the second half right."),
        ([A, stand("b", 35)], "Both solve it. The first does so at step 30, with a."),
        ([A, stand("b")], "Both solve it at step 30."),
        ([A, stand("b", 35), stand("c")], "All 3 solve it. The first do so at step 30, with a and with c."),
        ([A, lost("b")], "Solved with a at step 30; with b, not in 2000 steps."),
        ([A, lost("b"), lost("c")], "Solved with a at step 30; 2 runs do not."),
        ([lost("a"), lost("b")], "Neither solves it: both have 0.43 of the second half right."),
        ([lost("a"), lost("b", share=0.44)], "Neither solves it: the best has 0.44 of the second half right, with b."),
        (
            [lost("a"), lost("b", share=0.44), lost("c", share=0.4401)],
            "None of the 3 solves it: the best have 0.44 of the second half right, with b and with c.",
        ),
        (
            [lost("a"), lost("b", share=0.998), lost("c")],
            "None of the 3 solves it: the best has 0.998 of the second half right, with b.",
        ),
        ([lost("a", share=None), lost("b", share=None)], "Neither solves it."),
        (
            [lost(each, config=config(training={"solved_at": 2.0})) for each in "ab"],
            "Every run took all its steps: both have 0.43 of the second half right.",
        ),
        (
            [lost("a", config=config(training={"solved_at": 2.0}), state=state) for state in (FINISHED, STOPPED)],
            "1 of 2 runs took all its steps: both have 0.43 of the second half right.",
        ),
        ([A, stand("b", 35), lost("c")], "First solved with a at step 30; with c, not in 2000 steps."),
        ([A, lost("b", config=config(task={"length": 9}))], "1 of 2 runs has solved its task."),
        # meanwhile
        ([lost("a", state=RUNNING)], "Not solved yet: it still trains."),
        ([lost("a", state=RUNNING), lost("b", state=QUEUED)], "Not solved yet: 2 of 2 runs have not ended."),
        ([lost("a", state=PAUSED), lost("b")], "Not solved yet: 1 of 2 runs has not ended."),
        ([lost("a", state=RUNNING), lost("b", state=RUNNING)], "Not solved yet: 2 of 2 runs still train."),
        ([A, lost("b", state=RUNNING)], "Solved with a at step 30; 1 of 2 runs still trains."),
        (
            [stand("a", state=State("measuring")), stand("b")],
            "Solved with a and with b at step 30; the results are being measured.",
        ),
        ([stand("a", config=LEAKY), lost("b", state=RUNNING)], "Not solved yet: 1 of 2 runs still trains."),
    ],
)
def test_the_headline(standings: list[Standing], said: str):
    assert headline(standings, "steps") == said


def drawn_at_random(rng: np.random.Generator) -> tuple[list[Standing], Field]:
    """Some runs, as the page knows them and as the laws do."""
    reads, other, clock = rng.random() < 0.3, rng.random() < 0.2, str(rng.choice(["steps", "seconds"]))
    ended, to_the_end = rng.random() < 0.5, rng.random() < 0.3
    training = {"solved_at": 2.0} if to_the_end else {}
    tasks = [texts.config().task if reads else config().task]
    tasks.append(replace(tasks[0], length=tasks[0].length - 1))
    standings, ran = [], []
    for index in range(rng.integers(2 if ended else 1, 5)):
        status = str(rng.choice(["finished", "finished", "stopped"] if ended else ["running", "paused", "measuring"]))
        leaky, step, seconds = rng.random() < 0.3, int(rng.integers(28, 31)), float(rng.choice([0.301, 0.299, 0.4]))
        solved = bool(rng.random() < rng.choice([0.1, 0.9])) and not reads and not to_the_end
        share = float(rng.choice([0.43, 0.4301, 0.44, 0.998, np.nan]))
        perplexity = float(rng.choice([21.04, 21.0, 30.0, np.nan])) if reads else None
        task = tasks[int(other and index > 0)]
        made = replace(config(mask="full" if leaky else "causal", training=training), task=task)
        known = {
            "share": None if np.isnan(share) or reads else share,
            "perplexity": None if perplexity is None or np.isnan(perplexity) else perplexity,
        }
        standings.append(stand(f"r{index}", step, seconds, solved, state=State(status), config=made, **known))
        ran.append(
            Ran(f"with r{index}", status, solved, step, seconds, task=str(task), reads=reads, cheats=leaky,
                to_the_end=to_the_end, **known)
        )  # fmt: skip
    return standings, Field(tuple(ran), clock)


def test_what_is_said_of_runs_drawn_at_random_is_true_of_them(heard: list[Claim]):
    rng = np.random.default_rng(0)
    for _ in range(400):
        standings, field = drawn_at_random(rng)
        headline(standings, field.clock)
        claims.judge(cast("Any", field), heard[-1])
    headline([], "steps")
    claims.judge(cast("Any", Field((), "steps")), heard[-1])
    said_of_one = {"not_solved", "solved", "leaks"}  # these judge the runs of the grid
    assert all(law.met for law in claims.LAWS[HEADLINE] if law.holds.__name__ not in said_of_one)


def test_the_clock_decides_who_is_first():
    fast, few = stand("fast", 40, 0.3), stand("few", 30, 0.5)
    assert first_of([fast, few], "steps") == [few]
    assert first_of([fast, few], "seconds") == [fast]
    assert headline([fast, few], "seconds") == "Both solve it. The first does so after 0.30 s, with fast."


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"solved": True}, "solved at step 30 after 0.4 s"),
        ({"solved": True, "state": QUEUED}, "waiting for its turn"),
        ({"state": RUNNING}, "at step 30 after 0.4 s, 0.43 of the second half right"),
        ({"share": None, "state": RUNNING}, "at step 30 after 0.4 s"),
        ({"state": State("paused")}, "paused at step 30"),
        (
            {"state": State("stopped", reason="stopped by hand at step 30")},
            "stopped by hand at step 30: 0.43 of the second half right",
        ),
        ({"share": None, "state": State("failed", reason="the loss is nan")}, "the loss is nan"),
        ({"share": None, "state": State("lost")}, "lost"),
        (
            {"solved": True, "config": LEAKY},
            "right, because its mask shows it the answers, at step 30 after 0.4 s",
        ),
    ],
)
def test_what_became_of_it(options: dict, said: str):
    assert outcome(stand("a", **{"solved": False} | options)) == said


def evaluated(made: RunConfig, first: int, second: int) -> Standing:
    """A standing with a measurement of the reversal of eight symbols: right so often in either half, of 1000."""
    correct = [first] * 7 + [1000] + [second] * 8
    evaluation = {"correct": correct, "sequences": 1000, "exact_match": 0.0, "second_half": second / 1000}
    return stand("no mask", config=made, evaluation=evaluation)


def test_a_leak_is_the_headline_and_is_explained():
    honest, leaking = evaluated(config(), 100, 1000), evaluated(LEAKY, 560, 1000)
    assert not honest.leaks
    assert leaking.leaks
    assert headline([honest, leaking], "steps") == (
        "No mask: second half 1.00, first half 0.56, chance 0.10: your mask leaks."
    )
    assert meaning(honest) == "Second half 1.00, first half 0.10 = chance: the mask holds."
    assert "Under the mask full a query sees the very token that it has to say next" in meaning(leaking)
    assert meaning(stand("a")) == ""


@pytest.mark.parametrize(("second", "layers", "said"), [(930, 2, True), (490, 2, False), (930, 1, False)])
def test_a_race_without_positions_is_explained_where_it_beats_the_bag(second: int, layers: int, said: bool):
    each = replace(evaluated(config(positions="none", n_layers=layers), 100, second), share=second / 1000)
    assert ("one layer can reach at most 0.40" in meaning(each)) == said


def test_a_window_says_how_much_can_be_known():
    """Position i of eight says what stands at 9 - i: two layers that see their neighbours reach that from 4 and 5."""
    correct = [100, 100, 100, 1000, 1000, 100, 100, 100]
    evaluation = {"correct": correct, "sequences": 1000, "exact_match": 0.0, "second_half": 0.325}
    made = config(task={"task": "reverse-aligned"}, mask="sliding-window:1")
    each = stand("window", config=made, evaluation=evaluation)
    assert not each.cheats
    assert each.reachable == pytest.approx((1 + 3 * 0.1) / 4)
    assert meaning(each).endswith("the mask holds. Under its mask at most 0.33 of the second half can be right.")


@pytest.mark.parametrize("name", ["reverse", "reverse-sinusoidal", "reverse-aligned", "reverse-translate"])
def test_a_shipped_run_stands_where_its_files_say(name: str):
    run = Run(ROOT / name)
    each = standing(Course(run).update(), Label(name, f"by {name}"))
    last = json.loads((run.folder / "metrics.jsonl").read_text().splitlines()[-1])
    evaluation = json.loads((run.folder / "evaluation.json").read_text())
    assert (each.step, each.seconds, each.solved) == (last["step"], last["seconds"], True)
    answer = evaluation["accuracy_by_position"][-4 if "aligned" in name else -8 :]
    assert each.share == pytest.approx(np.mean(answer))
    assert headline([each], "steps") == f"{name}: solved at step {last['step']} after {last['seconds']:.1f} s."
    assert meaning(each)[1:] == evaluation["verdict"][1:] + "."


def test_a_run_that_has_only_been_queued_has_a_standing(tmp_path: Path):
    run = Run.create(tmp_path / "run", config())
    each = standing(Course(run).update(), Label("run", "by run"))
    assert (each.step, each.share, each.solved, each.state.status) == (0, None, False, "queued")
    (run.folder / "state.json").write_text(json.dumps({"status": "queued", "heartbeat": 0.0}))
    assert outcome(standing(Course(run), Label("run", "by run"))) == "it was still queued: the process is gone"
