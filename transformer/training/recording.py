"""Training into a run folder: the loop's steps, written down as they happen."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator
from typing import Any

import torch

from transformer import checkpoints
from transformer.analysis.accuracy import accuracy_by_position
from transformer.analysis.findings import Example, verdict
from transformer.analysis.heads import survey
from transformer.analysis.sample import sample, say
from transformer.config import RunConfig
from transformer.model import Transformer, build
from transformer.training.device import describe_device, resolve_device
from transformer.training.loop import Step, TrainingError, train
from transformer.training.runs import Run

HEARTBEAT = 0.1
"""Seconds between two writings of the state while training."""
EVALUATION_SEQUENCES = 4096


def details(device: torch.device) -> dict[str, Any]:
    """What else a run's card says: on what it was trained, and with which versions."""
    return {
        "device": describe_device(device),
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
    }


def evaluate(model: Transformer, config: RunConfig, sequences: int = EVALUATION_SEQUENCES) -> dict[str, Any]:
    """What `evaluation.json` and the command line say of a model: accuracy by position, and the verdict."""
    task = config.build_task()
    accuracy = accuracy_by_position(model, task, sequences=sequences, seed=config.training.seed + 1)
    low, high = accuracy.interval()
    return {
        "sequences": accuracy.sequences,
        "positions": list(accuracy.names),
        "accuracy_by_position": accuracy.mean.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "correct": accuracy.correct.tolist(),
        "chance": accuracy.chance,
        "first_half": accuracy.of("first half") if "first half" in accuracy.groups else None,
        "second_half": accuracy.of("second half"),
        "exact_match": accuracy.exact / accuracy.sequences,
        "verdict": verdict(accuracy, config),
        "weights": checkpoints.weights_hash(model),
    }


def record(run: Run) -> Iterator[Step]:
    """Train what the run's card says, into its folder, yielding each step.

    The folder tells the truth at every instant: metrics are appended line by line, snapshots and the state are
    replaced whole, and an end of any kind leaves its reason. The last weights are always kept.
    """
    config = run.config
    step = 0
    try:
        device = resolve_device(config.training.device)
        model = build(config).to(device)
        _snapshot(run, model, config, 0)
        run.set_state("running", 0)
        last_beat = time.monotonic()
        stopped = False
        with (run.folder / "metrics.jsonl").open("a", buffering=1) as metrics:
            for entry in train(model, config):
                step = entry.step
                metrics.write(json.dumps(_line(entry)) + "\n")
                if time.monotonic() - last_beat >= HEARTBEAT:
                    run.set_state("running", step)
                    last_beat = time.monotonic()
                yield entry
                if run.stop_requested:
                    stopped = True
                    break
        model.eval()
        _snapshot(run, model, config, step)
        run.set_evaluation(evaluate(model, config) | {"snapshot": run.digest()})
        run.set_example(_example(model, config, run.digest()).pack())
        if stopped:
            run.set_state("stopped", step, f"stopped by hand at step {step}")
        elif entry.solved:
            run.set_state("finished", step, f"solved at step {step}, after {entry.seconds:.1f} s")
        else:
            run.set_state("finished", step, f"all {step} steps taken; not solved to {config.training.solved_at:.1%}")
    except (TrainingError, ValueError, OSError, RuntimeError) as error:
        run.set_state("failed", step, _sentence(error))
        raise
    except (KeyboardInterrupt, GeneratorExit):
        run.set_state("stopped", step, f"interrupted at step {step}")
        raise


def _example(model: Transformer, config: RunConfig, snapshot: str) -> Example:
    """The first look at a run, taken once."""
    task = config.build_task()
    said = say(model, task, task.example)
    return Example(task.example, said, sample(model, task, task.example, said=said), survey(model, task), snapshot)


def _snapshot(run: Run, model: Transformer, config: RunConfig, step: int) -> None:
    checkpoints.save(run.folder / "snapshots" / f"step-{step:06d}.safetensors", model, config)


def _line(entry: Step) -> dict[str, Any]:
    line: dict[str, Any] = {
        "step": entry.step,
        "loss": entry.loss,
        "learning_rate": entry.learning_rate,
        "gradient_norm": entry.gradient_norm,
        "seconds": round(entry.seconds, 4),
    }
    if entry.solved:
        line["solved"] = True
    if entry.accuracy is not None:
        line["accuracy"] = [round(float(value), 5) for value in entry.accuracy]
    return line


def _sentence(error: BaseException) -> str:
    """The first line of what went wrong, for a person."""
    text = str(error).strip().split("\n")[0] or type(error).__name__
    return text if isinstance(error, TrainingError | ValueError) else f"{type(error).__name__}: {text}"
