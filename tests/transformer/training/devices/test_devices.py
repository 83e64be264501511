"""Where a training is carried out: a GPU that cannot be used disturbs nobody, and everybody is told why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.gpus import sitecustomize as gpu
from tests.kit.runs import reached, tiny
from tests.kit.waiting import PATIENCE, wait_for
from transformer.__main__ import main
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.foundation import gpus, machine
from transformer.training import device as device_module
from transformer.training.device import choose_device, look
from transformer.training.devices import step_times
from transformer.training.devices.found import MUCH, Device, Devices, work
from transformer.training.queue import worker as worker_module
from transformer.training.queue.pool import FOUND, READY, Pool
from transformer.training.queue.worker import Lookout
from transformer.training.runs import Run

SMALL = ["--length", "3", "--n-layers", "1", "--n-heads", "2", "--d-model", "16", "--d-ff", "0", "--max-steps", "2"]
CPU, CARD = Device("cpu", "CPU, 2 cores"), Device("cuda:0", "GT 710")
LARGE = RunConfig(model=ModelConfig(d_model=512))
FAULTS = {
    "unusable": "CUDA error: no kernel image is available for execution on the device",
    "full": "CUDA out of memory",
    "taken": "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
}
"""What is wrong with a GPU that is seen, in one sentence."""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, with nothing remembered, and out of any team."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(device_module, "_given_up", {})


# --- what auto takes


def devices(cpu: float = 0, card: float = 0, fault: str = "", tried: bool = True) -> Devices:
    return Devices((Device("cpu", CPU.title, "", True, cpu), Device("cuda:0", CARD.title, fault, tried, card)))


@pytest.mark.parametrize(
    ("there", "config", "expected"),
    [
        (Devices((CPU,)), None, ("cpu", "")),
        (Devices((CPU,), missing="its driver is too old"), None, ("cpu", "its driver is too old")),
        (devices(), None, ("cuda:0", "")),
        (devices(fault="CUDA error"), LARGE, ("cpu", "GT 710 cannot be used (CUDA error)")),
        (
            devices(3, 1),
            None,
            ("cuda:0", "a step of the default model takes 1.0 ms there, and 3.0 ms on the CPU, 2 cores"),
        ),
        (devices(3, 9), RunConfig(), ("cpu", "a step of the default model takes 3.0 ms there, and 9.0 ms on GT 710")),
        (devices(3, 9), LARGE, ("cuda:0", "a step of this model is more than 8 times the work of the default one’s")),
    ],
)
def test_auto_takes_the_gpu_where_it_can_be_used_and_is_not_slower(there, config, expected) -> None:
    device, why = there.auto(config)
    assert (device.name, why) == expected


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(["", "broken"])), max_size=4),
    st.sampled_from([0.0, 1.0, 5.0]),
    st.sampled_from([0.0, 1.0, 5.0]),
    st.sampled_from([None, RunConfig(), LARGE]),
)
def test_auto_takes_what_has_computed_and_says_why_it_leaves_a_gpu(cards, cpu, card, config) -> None:
    found = [Device(f"cuda:{i}", f"card {i}", fault, tried, card) for i, (tried, fault) in enumerate(cards)]
    there = Devices((Device("cpu", CPU.title, milliseconds=cpu), *found))
    taken, why = there.auto(config)
    assert taken.usable
    assert bool(why) or taken.name != "cpu" or not any(each.fault or each.usable for each in found)
    assert Devices.read(json.loads(json.dumps(there.record()))) == there


def test_work_grows_with_weights_batch_and_length() -> None:
    assert work(LARGE) > MUCH * work(RunConfig())
    assert work(RunConfig(training=TrainingConfig(batch_size=64))) == 2 * work(RunConfig())
    assert work(RunConfig(task=TaskConfig(length=9))) > work(RunConfig())


@pytest.mark.parametrize(
    "wrong", [{}, {"all": [], "missing": ""}, {"all": [{"name": "cpu"}], "missing": ""}, {"all": 3, "missing": ""}]
)
def test_what_are_no_devices_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"device|CPU"):
        Devices.read(wrong)


# --- a GPU that is seen and cannot be used, and one that is not even seen


@pytest.mark.parametrize("kind", FAULTS)
def test_a_gpu_that_cannot_be_used_leaves_the_cpu_and_a_reason(kind: str, monkeypatch, capsys) -> None:
    gpu.install(torch, kind, monkeypatch.setattr)
    why = f"{gpu.TITLE} cannot be used ({FAULTS[kind]})"
    assert main(["train", *SMALL, "--out", "run"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told.count(f"device auto: {why}") == 1
    run = Run(Path("run"))
    assert (run.state.status, run.card["why_there"]) == ("finished", why)
    assert run.card["device"].startswith("CPU")
    assert main(["evaluate", "run", "--sequences", "9"]) == 0
    assert capsys.readouterr().err == f"device auto: {why}\n"
    for command in (["train", *SMALL, "--out", "other"], ["evaluate", "run"]):
        assert main([*command, "--device", "cuda"]) == 2
        assert capsys.readouterr().err == f"error: cuda cannot be used: {gpu.TITLE}: {FAULTS[kind]}\n"
    assert not Path("other").exists()


def test_a_driver_that_is_too_old_is_said_and_no_gpu_at_all_is_not(monkeypatch, capsys) -> None:
    why = "The NVIDIA driver on your system is too old (found version 11040)"
    gpu.install(torch, "old driver", monkeypatch.setattr)
    assert look().missing == why
    assert choose_device("auto").why == why
    with pytest.raises(ConfigError, match=r"there is no cuda here: The NVIDIA driver .*: auto would use CPU"):
        choose_device("cuda")
    gpu.install(torch, "none", monkeypatch.setattr)
    assert look() == Devices((Device("cpu", look().all[0].title),))
    assert choose_device("auto").why == ""


def test_a_gpu_that_failed_at_its_first_steps_is_given_up(monkeypatch) -> None:
    """It computes a product, and no more."""
    monkeypatch.setattr(device_module, "gpu_count", lambda: 2)
    monkeypatch.setattr(device_module, "describe_device", lambda device: f"the {device}")
    monkeypatch.setattr(torch, "ones", lambda *size, device: torch.full(size, 1.0))
    found = look()
    assert [(each.name, each.usable, each.tried) for each in found.all[1:]] == [
        ("cuda:0", True, True),
        ("cuda:1", False, False),
    ]
    assert choose_device("auto").device == torch.device("cuda")
    device_module.give_up(found.all[1], "out of memory")
    assert [each.fault for each in look().all[1:]] == ["out of memory", ""]
    assert choose_device("auto").device == torch.device("cuda:1")


# --- the training process


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    words: list[str] = []
    monkeypatch.setattr(worker_module, "_say", words.append)
    return words


def told(said: list[str]) -> list[Devices]:
    return [Devices.read(json.loads(word.removeprefix(FOUND))) for word in said]


def test_a_worker_tells_of_a_gpu_once_and_again_where_it_is_news(said: list[str], monkeypatch) -> None:
    gpu.install(torch, "full", monkeypatch.setattr)
    lookout = Lookout()
    lookout.go_on(lambda: True)
    assert not said, "who is called away has not looked yet"
    for _ in range(2):
        lookout.go_on()
    assert [each.all[1].fault for each in told(said)] == [FAULTS["full"]]
    gpu.install(torch, "taken", monkeypatch.setattr)
    lookout.go_on()
    assert [each.all[1].fault for each in told(said)] == [FAULTS["full"], FAULTS["taken"]]
    assert lookout.well, "it could not be used before either"


def test_a_gpu_is_warmed_up_piece_by_piece_and_timed_once(said: list[str], monkeypatch) -> None:
    steps: list[str] = []
    usable(monkeypatch)
    monkeypatch.setattr(worker_module, "_take_steps", lambda device, most: steps.append(device))
    monkeypatch.setattr(step_times, "measure", lambda device: {"cpu": 3.0, "cuda:0": 1.0}[device])
    Lookout().go_on(iter([False, True]).__next__)
    assert steps == [], "a run that is called for does not wait for the whole of it"
    for _ in range(2):
        lookout = Lookout()
        lookout.go_on()
        assert [each.milliseconds for each in told(said)[-1].all] == [3.0, 1.0]
        assert lookout.well
        monkeypatch.setattr(step_times, "measure", None)
    assert steps == ["cuda:0", "cuda:0"]
    assert [len(each.all) for each in told(said)] == [2, 2, 2, 2]
    assert machine.recall(step_times.FILE)
    monkeypatch.setattr(device_module, "driver", lambda: "a new driver")
    assert look().all[1].milliseconds == 0


def usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a GPU be seen that computes."""
    monkeypatch.setattr(device_module, "gpu_count", lambda: 1)
    monkeypatch.setattr(device_module, "describe_device", lambda device: f"a {device.type}")
    monkeypatch.setattr(torch, "ones", lambda *size, device: torch.full(size, 1.0))


@pytest.mark.parametrize("looked_before", [False, True])
def test_a_driver_that_nobody_has_thought_of_ends_no_worker(looked_before: bool, said: list[str], monkeypatch) -> None:
    """Where the first look fails the CPU is told, and why: else a page would go on saying that a GPU is looked for."""

    def fails() -> None:
        raise (OSError if looked_before else RuntimeError)("no driver has said so before. Some advice")

    usable(monkeypatch)
    lookout = Lookout()
    if looked_before:
        lookout.look()
    monkeypatch.setattr(device_module, "look", fails)
    lookout.go_on()
    (found,) = told(said)
    if looked_before:
        assert not lookout.well
    else:
        assert [each.name for each in found.all] == ["cpu"]
        assert found.auto()[1] == "no driver has said so before"


@pytest.mark.parametrize("when", ["at its first steps", "later"])
def test_a_worker_whose_gpu_breaks_is_not_well(when: str, said: list[str], monkeypatch) -> None:
    usable(monkeypatch)

    def fails(*_: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nadvice")

    broken = fails if when == "at its first steps" else lambda *_: None
    monkeypatch.setattr(worker_module, "_take_steps", broken)
    monkeypatch.setattr(step_times, "measure", lambda device: 1.0)
    lookout = Lookout()
    lookout.go_on()
    assert lookout.well == (when == "later")
    if when == "later":
        monkeypatch.setattr(torch, "ones", lambda *size, device: fails())
        assert not lookout.well
    assert told(said)[-1].all[1].fault == "CUDA error: an illegal memory access was encountered"
    assert told(said)[-1].auto()[0].name == "cpu"


def test_a_step_is_timed_on_the_cpu(monkeypatch) -> None:
    for name in ("FIRST", "BLOCKS", "STEPS"):
        monkeypatch.setattr(step_times, name, 2)
    assert 0 < step_times.measure("cpu") < 1000 * PATIENCE


@pytest.mark.nightly
def test_a_pool_trains_beside_a_gpu_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real processes: what names no GPU is trained, what names it fails with a sentence, and none is started anew."""
    for name, value in gpu.environment("unusable").items():
        monkeypatch.setenv(name, value)
    pool = Pool(1)
    auto, named = (Run.create(tmp_path / name, tiny(device=name)) for name in ("auto", "cuda"))
    why = FAULTS["unusable"]
    try:
        pool.submit(auto)
        reached(auto, "finished")
        assert auto.card["why_there"] == f"{gpu.TITLE} cannot be used ({why})"
        found = wait_for("a worker has told of its devices", lambda: pool.devices)
        assert [(each.name, each.fault) for each in found.all] == [("cpu", ""), ("cuda:0", why)]
        pool.submit(named)
        reached(named, "failed")
        assert named.state.reason == f"cuda cannot be used: {gpu.TITLE}: {why}"
        assert pool.trouble == ""
    finally:
        pool.close()


@pytest.mark.nightly
def test_a_worker_is_ready_before_it_looks_for_a_gpu(tmp_path: Path) -> None:
    """Its first words, and what is asked of CUDA before and after them."""
    log = tmp_path / "log"
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "transformer.training.queue.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **gpu.environment("unusable", log)},
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        words = (line.strip() for line in process.stdout if line.strip())
        assert next(words) == READY
        assert next(words).startswith(FOUND.strip())
        process.stdin.close()
    asked = [line.split()[3] for line in log.read_text().splitlines()]
    assert {Path(each).name for each in asked if "torch" not in each} == {"device.py"}


# --- several processes, and processes that leave the GPU alone


@pytest.mark.parametrize(("rank", "together", "count"), [(0, 2, 1), (1, 2, 1), (3, 1, 3)])
def test_more_processes_than_gpus_is_a_sentence(rank: int, together: int, count: int, monkeypatch, capsys) -> None:
    environment = {"RANK": rank, "WORLD_SIZE": 4, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": together}
    for name, value in environment.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr("transformer.training.team.gpu_count", lambda: count)
    for device in ("auto", "cuda"):
        assert main(["train", *SMALL, "--device", device, "--out", "run"]) == 2
        assert capsys.readouterr().err == (
            f"error: each process needs a GPU of its own, and {max(together, rank + 1)} processes share "
            f"{count} GPU{'s' if count > 1 else ''} here: start fewer, or train on the CPU (--device cpu)\n"
        )
    assert not Path("run").exists()


@pytest.mark.parametrize("before", [None, "", "1,2"])
def test_gpus_are_hidden_from_a_process_and_shown_to_those_it_starts(before: str | None, monkeypatch) -> None:
    monkeypatch.setattr(gpus, "_shown", [])
    monkeypatch.setenv(gpus.VISIBLE, "set, so that it is put back")
    if before is None:
        monkeypatch.delenv(gpus.VISIBLE)
    else:
        monkeypatch.setenv(gpus.VISIBLE, before)
    as_it_was = dict(os.environ)
    assert gpus.environment() == as_it_was
    for _ in range(2):
        gpus.hide()
        assert os.environ[gpus.VISIBLE] == ""
        assert gpus.environment() == as_it_was
