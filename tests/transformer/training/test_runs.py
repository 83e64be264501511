"""A run is a folder that tells the truth at every instant: while it trains, after any kind of end, and when damaged."""

import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import pytest
import torch

from tests.kit.runs import tiny
from tests.kit.waiting import PATIENCE
from transformer import checkpoints
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.foundation import atomic_files
from transformer.model import build
from transformer.training import library, lock, recording, runs
from transformer.training.exchange.inspection import faults
from transformer.training.listing import list_runs, unreadable
from transformer.training.loop import TrainingError
from transformer.training.recording import evaluate, record
from transformer.training.runs import Control, Run, RunError, new_folder

CONFIG = tiny(max_steps=7)


@pytest.fixture
def run(tmp_path) -> Run:
    return Run.create(tmp_path / "a-run", CONFIG, device="a device")


def contents(run: Run) -> set[str]:
    """Its files; TensorBoard's own have tests of their own."""
    found = {str(path.relative_to(run.folder)) for path in run.folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith("tensorboard")}


# --- while it trains, and when it has ended


def test_a_new_run_is_queued_and_says_what_it_is(run):
    assert run.name == "a-run"
    assert run.config == CONFIG
    assert run.card["device"] == "a device"
    assert abs(run.created - time.time()) < PATIENCE
    assert run.state.status == "queued"
    assert run.state.live
    assert run.metrics() == []
    assert run.snapshots() == {}
    assert run.evaluation is None
    with pytest.raises(RunError, match="the run a-run has no weights yet"):
        run.snapshot()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> tuple[Run, list]:
    """A run that has ended, and what could be read at each of its steps: the step, and what its folder said."""
    run, seen = Run.create(tmp_path_factory.mktemp("recorded") / "a-run", CONFIG), []
    for step in record(run):
        checkpoints.load(run.snapshot(0))
        seen.append((step, run.state.status, [line["step"] for line in run.metrics()], min(run.snapshots())))
    return run, seen


def test_a_recorded_run_leaves_everything_and_nothing_else(recorded):
    run, seen = recorded
    small = {"run.json", "state.json", "metrics.jsonl", "evaluation.json", "example.npz", "lock"}
    assert contents(run) == small | {f"snapshots/step-{step:06d}.safetensors" for step in range(8)}
    assert (run.state.status, run.state.step, run.state.live) == ("finished", 7, False)
    assert run.state.reason == "all 7 steps taken; not solved to 99.9%"
    lines = run.metrics()
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6, 7]
    assert [line["loss"] for line in lines] == [step.loss for step, *_ in seen]
    assert [line["step"] for line in lines if "accuracy" in line] == [1, 5, 7]
    assert all(len(line["accuracy"]) == 6 for line in lines if "accuracy" in line)
    assert all({"learning_rate", "gradient_norm", "seconds"} <= set(line) for line in lines)


def test_the_folder_can_be_read_at_every_step(recorded):
    for number, (_, *said) in enumerate(recorded[1], 1):
        assert said == ["running", list(range(1, number + 1)), 0]


def test_the_evaluation_is_that_of_the_last_weights(recorded):
    run, _ = recorded
    model, config = checkpoints.load(run.snapshot())
    assert config == run.config
    assert run.evaluation == json.loads(json.dumps(evaluate(model, config))) | {"snapshot": run.digest()}
    assert run.evaluation["positions"] == ["x2", "x3", "SEP", "y1", "y2", "y3"]
    assert run.evaluation["weights"] == checkpoints.weights_hash(model)
    assert run.evaluation["weights"] != checkpoints.weights_hash(checkpoints.load(run.snapshot(0))[0])
    with pytest.raises(RunError, match="has no step 8; it has 0, 1, 2, 3, 4, 5, 6, 7"):
        run.snapshot(8)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"max_steps": 1}, "its only step taken; not solved to 99.9%"),
        ({"max_steps": 300, "solved_at": 0.0}, r"solved at step 5, after \d+\.\d s"),
    ],
)
def test_a_run_that_has_ended_says_how(tmp_path, settings, reason):
    run = Run.create(tmp_path / "run", tiny(**settings))
    list(record(run))
    assert run.state.status == "finished"
    assert re.fullmatch(reason, run.state.reason)


def test_a_stop_is_honoured_after_the_step_it_is_in(run):
    taken = []
    for step in record(run):
        taken.append(step.step)
        if step.step == 3:
            run.request_stop()
    assert taken == [1, 2, 3]
    assert run.state.status == "stopped"
    assert run.state.reason == "stopped by hand at step 3"
    assert list(run.snapshots()) == [0, 1, 2, 3]
    assert run.evaluation is not None


def test_whoever_stops_listening_leaves_a_reason(run):
    steps = record(run)
    for _ in range(2):
        next(steps)
    steps.close()
    assert (run.state.status, run.state.reason) == ("stopped", "interrupted at step 2")


def test_a_failure_leaves_its_sentence(run, monkeypatch):
    """Weights that are no numbers from the start: the loss is none either, at step 1."""

    def poisoned(config):
        model = build(config)
        with torch.no_grad():
            model.unembedding.bias.fill_(math.nan)
        return model

    monkeypatch.setattr(recording, "build", poisoned)
    with pytest.raises(TrainingError):
        list(record(run))
    assert run.state.status == "failed"
    assert run.state.reason == "the loss is no longer a number at step 1, learning rate 0.005: try a smaller rate"


def test_a_device_that_is_not_there_is_a_failure_with_its_sentence(tmp_path):
    run = Run.create(tmp_path / "nowhere", tiny(device="cuda:63"))
    with pytest.raises(ConfigError):
        list(record(run))
    assert run.state.status == "failed"
    assert run.state.reason.startswith("there is no cuda:63 here: auto would use ")


# --- silent, damaged, missing


@pytest.mark.parametrize("status", ["running", "measuring"])
@pytest.mark.parametrize("host", ["another machine", ""])
def test_a_run_elsewhere_that_shows_no_life_is_lost(run, status, host):
    for age, expected in ((runs.SILENT_AFTER / 2, status), (1.5 * runs.SILENT_AFTER, "lost")):
        state = {"status": status, "step": 40, "reason": "", "heartbeat": time.time() - age, "host": host}
        (run.folder / "state.json").write_text(json.dumps(state))
        assert run.state.status == expected
    assert run.state.reason == "stopped at step 40: the process is gone"
    assert run.state.step == 40
    assert not run.state.live


def test_a_queued_run_whose_queue_is_gone_is_lost(run):
    for age, expected in ((runs.SILENT_AFTER / 2, "queued"), (1.5 * runs.SILENT_AFTER, "lost")):
        state = {"status": "queued", "heartbeat": time.time() - age, "host": socket.gethostname()}
        (run.folder / "state.json").write_text(json.dumps(state))
        assert run.state.status == expected
    assert run.state.reason == "it was still queued: the process is gone"
    assert run.resumable


def test_a_run_of_this_machine_is_lost_in_the_instant_in_which_nobody_holds_it(run):
    with lock.hold(run.folder):
        run.set_state("running", 40)
        assert run.state.status == "running"
        assert run.waiting
    assert run.state.status == "lost"
    assert not run.waiting


def test_a_paused_run_is_never_lost(run):
    run.set_state("paused", 40)
    assert run.state.status == "paused"
    assert not run.waiting
    assert run.resumable


def test_a_run_is_under_way_while_it_is_queued_or_held(run):
    run.set_state("queued", 0)
    assert run.under_way  # though nobody holds it yet
    for status in ("running", "measuring", "paused"):
        with lock.hold(run.folder):
            run.set_state(status, 40)
            assert run.under_way
        assert not run.under_way  # a paused run that its process has left is only a folder
    run.set_state("finished", 40)
    assert not run.under_way


def test_only_one_can_hold_a_folder(run, monkeypatch):
    monkeypatch.setattr(lock, "PATIENCE", 0.05)
    with lock.hold(run.folder), pytest.raises(RunError, match="another process is training a-run"):
        next(record(run))
    next(record(run))


@pytest.mark.parametrize("status", ["finished", "stopped", "failed"])
def test_a_run_that_has_ended_is_never_lost(run, status):
    state = {"status": status, "step": 40, "reason": "why", "heartbeat": 0.0}
    (run.folder / "state.json").write_text(json.dumps(state))
    assert run.state.status == status
    assert run.state.reason == "why"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"nonsense": 1}', '{"status": "running", "heartbeat": "x"}'])
def test_a_state_that_cannot_be_read_is_lost(run, text):
    (run.folder / "state.json").write_text(text)
    assert run.state.status == "lost"
    assert run.state.reason


def line(step: int, **values) -> str:
    return json.dumps({"step": step, "loss": 2.0, "learning_rate": 0.1, "gradient_norm": 1.0, "seconds": 0.1} | values)


def test_half_a_line_of_metrics_is_left_out(run):
    last = line(3)
    (run.folder / "metrics.jsonl").write_text(f"{line(1)}\n{line(2)}\n{last[:20]}")
    assert [line["step"] for line in run.metrics()] == [1, 2]
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write(f"{last[20:]}\n")
    assert [line["step"] for line in run.metrics()] == [1, 2, 3]


UNUSABLE = {
    "a list": b"[1]",
    "a number": b"7",
    "null": b"null",
    "nested": b"[" * 100_000,
    "endless": b"9" * 5000,
    "no UTF-8": b'{"step": 1\xff}',
    "empty": b"{}",
    "a step of 10^400": line(10**400).encode(),
    "a step of 1e400": line(1).replace('"step": 1', '"step": 1e400').encode(),
    "a text for a step": line(1).replace('"step": 1', '"step": "1"').encode(),
    "null for a step": line(1).replace('"step": 1', '"step": null').encode(),
    "deep": line(1).encode()[:-1] + b', "accuracy": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a step before": line(2).encode(),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_line_of_metrics_that_cannot_be_used_is_left_out_and_named(run, kind):
    """The others stand; `inspect`, the page and an upload say which line it was."""
    lines = [line(2).encode(), UNUSABLE[kind], line(3, loss=math.nan).encode()]
    (run.folder / "metrics.jsonl").write_bytes(b"".join(each + b"\n" for each in lines))
    assert [line["step"] for line in run.metrics()] == [2, 3]
    (fault,) = faults(run)
    assert fault.startswith("its metrics.jsonl cannot be used: line 2: ")
    assert len(fault) < 200
    run.cut_metrics(2)
    assert [line["step"] for line in run.metrics()] == [2]
    assert faults(run) == []


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("state.json", '{"status": "running", "heartbeat": 1' + "0" * 400 + "}", "it has a number of 401 digits"),
        ("state.json", '{"status": "running", "heartbeat": 1e400}', "inf is no number that could stand here"),
        ("state.json", "\xff", "it is not JSON"),
        ("control.json", "", "it is not JSON"),
        ("control.json", "[]", "it is no record"),
        ("control.json", '{"dance": true}', "Control.__init__() got an unexpected keyword argument 'dance'"),
        ("control.json", '{"pace": "fast"}', "fast is no number that could stand here"),
        ("control.json", '{"pause_at": "3"}', "3 is no count"),
        ("control.json", '{"stop": "yes"}', "yes is neither to stop nor not"),
        ("evaluation.json", '{"sequences": 1, "correct": 7}', "it counts nothing"),
    ],
)
def test_a_small_file_that_cannot_be_used_is_named_and_the_run_stands(run, name, content, why):
    (run.folder / name).write_text(content)
    assert faults(run) == [f"its {name} cannot be used: {why}"]
    assert run.state.status == ("lost" if name == "state.json" else "queued")
    assert run.evaluation is None
    assert run.control == Control()
    assert [each.name for each in list_runs(run.folder.parent)] == ["a-run"]


def test_other_files_among_the_snapshots_are_no_steps(run):
    for name in ("step-000010.safetensors", "step-000002.safetensors", ".step-000011.safetensors.1.tmp", "notes.txt"):
        (run.folder / "snapshots" / name).touch()
    for name in ("step-x.safetensors", f"step-{'9' * 200}.safetensors"):
        (run.folder / "snapshots" / name).touch()
    (run.folder / "snapshots" / "step-000012.safetensors").mkdir()
    assert list(run.snapshots()) == [2, 10]
    assert run.snapshot().name == "step-000010.safetensors"


def test_weights_of_another_model_are_refused_by_name(recorded, tmp_path):
    run, other = Run(shutil.copytree(recorded[0].folder, tmp_path / "a-run")), tiny(max_steps=7, seed=1)
    checkpoints.save(run.snapshot(), build(other), other)
    with pytest.raises(RunError, match="cannot be used in the run a-run: its weights were trained with other settings"):
        run.network()
    assert any("trained with other settings" in fault for fault in faults(run))
    run.network(0)


@pytest.mark.skipif(sys.platform == "darwin", reason="that system takes no such names")
def test_a_folder_whose_name_is_no_text_is_left_out(run):
    run.folder.rename(os.fsdecode(os.fsencode(run.folder) + b"-\xff"))
    assert list_runs(run.folder.parent) == []
    assert unreadable(run.folder.parent) == ["the name of the folder a-run-? is no UTF-8 text: rename it"]


def test_what_killed_processes_left_half_written_is_swept_by_whoever_takes_the_run_up(run):
    """Every hidden file that `write_whole` makes, by processes that are gone; what one that lives writes is left."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    lives, hour = os.getppid(), time.time() - 2 * atomic_files.ABANDONED
    left = [
        run.folder / "snapshots" / f".step-000001.safetensors.{gone.pid}-7.tmp",
        *(run.folder / f".{name}.{gone.pid}-7.tmp" for name in ("state.json", "run.json", "resume.safetensors")),
        run.folder / f".state.json.{os.getpid()}-7.tmp",
        run.folder / f".state.json.{10**30}-7.tmp",
        run.folder / f".old.json.{lives}-7.tmp",
    ]
    kept = [run.folder / f".control.json.{lives}-7.tmp", run.folder / ".notes.tmp"]
    for path in (*left, *kept):
        path.touch()
    os.utime(left[-1], (hour, hour))
    for _ in record(run):
        assert not [path for path in left if path.exists()]
    assert sorted(run.folder.rglob(".*.tmp")) == sorted(kept)


def test_a_queued_run_with_a_heartbeat_from_the_future_is_lost_and_can_go_on(run):
    """As after the clock was set back; a heartbeat a few seconds ahead is another machine's clock."""
    for ahead, status in ((5.0, "queued"), (3600.0, "lost")):
        state = json.loads((run.folder / "state.json").read_text()) | {"heartbeat": time.time() + ahead}
        (run.folder / "state.json").write_text(json.dumps(state))
        assert run.state.status == status
    assert run.resumable
    assert library.delete(run).name == "a-run"


@pytest.mark.parametrize(
    "card",
    [
        "",
        "{",
        "[]",
        "\x00\xff",
        "{}",
        '{"format": "another/9"}',
        '{"format": "attention-lab-run/1"}',
        '{"format": "attention-lab-run/1", "config": []}',
        '{"format": "attention-lab-run/1", "config": {"task": 1, "model": 2, "training": 3}}',
        '{"format": "attention-lab-run/1", "config": {"task": {"task": "knit"}, "model": {}, "training": {}}}',
        '{"format": "attention-lab-run/1", "config": {"task": {}, "model": {"mask": 3}, "training": {}}}',
    ],
)
def test_a_damaged_card_leaves_its_run_out_with_a_reason_and_no_other(tmp_path, card):
    for name in ("good", "also-good", "bad"):
        Run.create(tmp_path / name, tiny())
    (tmp_path / "bad" / "run.json").write_bytes(card.encode("latin-1"))
    (tmp_path / "no-run").mkdir()
    (tmp_path / "file.txt").touch()
    assert [run.name for run in list_runs(tmp_path)] == ["good", "also-good"]
    with pytest.raises(RunError) as refusal:
        _ = Run(tmp_path / "bad").config
    assert unreadable(tmp_path) == [str(refusal.value)]
    assert "bad" in str(refusal.value)


def test_runs_are_listed_oldest_first_whatever_their_cards_say_of_their_age(tmp_path):
    """What is wrong with an age is said of the run, and costs it no more than its age."""
    ages = (("young", 200.0), ("old", 100.0), ("ageless", "yesterday"), ("endless", 1e300), ("unborn", None))
    for name, created in ages:
        run = Run.create(tmp_path / name, tiny())
        (run.folder / "run.json").write_text(json.dumps({**run.card, "created": created}))
    assert [run.name for run in list_runs(tmp_path)] == ["ageless", "endless", "unborn", "old", "young"]
    assert faults(Run(tmp_path / "ageless")) == [
        "a detail in its run.json cannot be used: yesterday is no number that could stand here"
    ]
    assert faults(Run(tmp_path / "old")) == []


def test_a_config_with_a_number_of_400_digits_is_one_sentence(run):
    card = run.card
    card["config"]["model"]["d_model"] = 10**400
    (run.folder / "run.json").write_text(json.dumps(card))
    assert list_runs(run.folder.parent) == []
    assert unreadable(run.folder.parent) == ["the run.json of a-run cannot be used: it has a number of 401 digits"]


def test_there_are_no_runs_in_a_folder_that_is_not_there(tmp_path):
    assert list_runs(tmp_path / "nowhere") == unreadable(tmp_path / "nowhere") == []


def test_a_run_is_not_made_twice(recorded):
    run, _ = recorded
    before = {name: (run.folder / name).read_bytes() for name in contents(run)}
    with pytest.raises(RunError, match=r"there is a run in .* already"):
        Run.create(run.folder, tiny(seed=1))
    assert {name: (run.folder / name).read_bytes() for name in contents(run)} == before


def test_a_run_is_not_made_where_it_cannot_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot be made"):
        Run.create(tmp_path / "file" / "run", tiny())


def test_new_folders_have_names_of_their_own_that_say_what_is_in_them(tmp_path):
    config = RunConfig()
    names = []
    for _ in range(3):
        folder = new_folder(tmp_path, config)
        assert not folder.exists()
        Run.create(folder, config)
        names.append(folder.name)
    assert names == ["reverse-8-2x4-learned-1", "reverse-8-2x4-learned-2", "reverse-8-2x4-learned-3"]
    assert new_folder(tmp_path / "nowhere", config).name == "reverse-8-2x4-learned-1"


# --- settings that cannot be

NONSENSE = [
    ("model", "mask", 3, "mask must be text, not 3"),
    ("model", "mask", "triangular", "no mask named 'triangular': choose one of"),
    ("model", "n_layers", 2.5, "n_layers must be a whole number, not 2.5"),
    ("model", "n_heads", 5, r"d_model (64) must be divisible by n_heads (5)"),
    ("model", "d_model", True, "d_model must be a whole number, not True"),
    ("model", "scale_embeddings", 1, "scale_embeddings must be true or false, not 1"),
    ("model", "residual", 1, "residual must be true or false, not 1"),
    ("model", "dropout", math.nan, "dropout must be at least 0 and less than 1, not nan"),
    ("model", "positions", None, "positions must be text, not None"),
    ("model", "positions", "braille", "positions must be one of alibi, learned"),
    ("model", "architecture", "encoder-decoder", "the task reverse is for the architecture decoder or encoder, not"),
    ("model", "norm", "batch", "norm must be pre, post or none, not 'batch'"),
    ("training", "batch_size", 99999999, "batch_size must be between 1 and 65536, not 99999999"),
    ("model", "n_layers", 49, "n_layers must be between 1 and 48, not 49"),
    ("task", "length", "8", "length must be a whole number, not '8'"),
    ("task", "length", 0, "length must be between 1 and 2048, not 0"),
    ("task", "min_length", 9, "min_length must be between 1 and length (8), not 9"),
    ("task", "task", "knit", "no task named 'knit': choose one of copy, reverse"),
    ("task", "symbols", 37, "symbols must be between 2 and 36, not 37"),
    ("training", "learning_rate", "fast", "learning_rate must be a number, not 'fast'"),
    ("training", "learning_rate", 0, "learning_rate must be above 0 and at most 10, not 0"),
    ("training", "seed", -1, "seed must be between 0 and"),
    ("training", "colour", "red", "the settings are incomplete or of another version"),
]

READ_THEM = """
import json, sys
from transformer.config import ConfigError, RunConfig
for settings in json.load(sys.stdin):
    try:
        RunConfig.from_dict({"task": {}, "model": {}, "training": {}} | settings)
        print("accepted")
    except ConfigError as error:
        print(json.dumps(str(error)))
assert "torch" not in sys.modules
"""


def test_settings_that_cannot_be_are_refused_with_a_sentence():
    """In a process of its own, where nobody checks types but the settings themselves; and without PyTorch."""
    settings = [{part: {name: value}} for part, name, value, _ in NONSENSE]
    read = subprocess.run([sys.executable, "-c", READ_THEM], input=json.dumps(settings), capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    said = [json.loads(line) if line != "accepted" else line for line in read.stdout.splitlines()]
    assert len(said) == len(NONSENSE)
    for sentence, (part, name, value, expected) in zip(said, NONSENSE, strict=True):
        assert sentence.startswith(expected), (part, name, value)
        assert "\n" not in sentence


def test_settings_are_read_as_they_are_written():
    config = RunConfig(
        task=TaskConfig(task="sort", length=5, min_length=2, symbols=7),
        model=ModelConfig(mask="prefix:3", positions="rotary", norm="post", dropout=0.25),
        training=TrainingConfig(seed=9, learning_rate=3e-4),
    )
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_config_says_what_auto_was():
    resolved = {
        name: RunConfig(task=TaskConfig(task=name)).model
        for name in ("reverse", "reverse-aligned", "reverse-translate")
    }
    assert [(model.architecture, model.mask) for model in resolved.values()] == [
        ("decoder", "causal"),
        ("encoder", "full"),
        ("encoder-decoder", "causal"),
    ]
