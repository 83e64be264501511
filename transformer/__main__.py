"""The command line: train, resume, evaluate and list runs, and let them write. `python -m transformer --help`.

Its options are the fields of the config records, so it can do what the dashboard can. Bad input is one line on stderr
and exit code 2; a training that fails is one line and exit code 1.
"""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, ArgumentCollection, Group, Parameter

from transformer import __version__
from transformer.commands.check import check
from transformer.commands.corpus import corpus, resolved
from transformer.commands.ending import exit_code
from transformer.commands.generate import generate
from transformer.commands.measure import TRAINING, corners, lengths, scaling
from transformer.commands.sweep import sweep
from transformer.config import TEXT, ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.foundation.foreign import shortened
from transformer.foundation.program import program
from transformer.foundation.registry import folder_names
from transformer.foundation.words import listed
from transformer.tasks import TASKS
from transformer.text.perplexity import perplexity, said
from transformer.training.listing import Entry, listing
from transformer.training.runs import ROOT, Run, RunError, located, new_folder

if TYPE_CHECKING:
    from transformer.tasks import Task
    from transformer.training.device import Choice
    from transformer.training.loop import Step
    from transformer.training.team import Team


LONGEST_NUMBER = 40
"""Characters of the longest number: more digits than any setting has, and a float that holds it."""


def _at_its_word(command: App, names: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Take what was typed at its word: 2.5 layers are not rounded to 2, an empty name is not the folder one is in.

    Raises ConfigError, also for a number that is too long to be counted with and for a path that no system has.
    """
    for argument in arguments:
        for token in argument.tokens:
            if argument.hint in (int, int | None) and "." in token.value:
                raise ConfigError(f"{argument.name} must be a whole number, not {shortened(token.value)}")
            if argument.hint in (int, int | None, float, float | None) and len(token.value) > LONGEST_NUMBER:
                raise ConfigError(f"{argument.name} must be a number, not {shortened(token.value)}")
            if argument.hint is not bool and not token.value:
                raise ConfigError(f"{argument.name} must not be empty")
            if argument.hint in (Path, Path | None):
                _require_path(argument.name, token.value)


def _require_path(name: str, value: str) -> None:
    """Raises ConfigError for what can be the path of nothing: before a training whose end could not be written."""
    try:
        Path(value).lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ConfigError(f"{name} cannot be {shortened(value)}: {error.strerror}") from None


def example(*lines: str) -> str:
    """The end of a command's help: what may be typed, one line after the other."""
    return f"Example: {', then '.join(f'`{program()} {line}`' for line in lines)}"


app = App(
    name=program(),
    help="Train a transformer from scratch, measure it, and list what has been trained.",
    version=__version__,
    config=_at_its_word,
    suppress_keyboard_interrupt=False,
    help_epilogue="A run is a folder; the dashboard lists what is trained here: "
    f"`{program().replace('transformer', 'dashboard')} run`.",
)
TASK = Group("The task", help=f"The tasks are {listed([*TASKS.names(), TEXT])}.")
ENCODINGS = listed(folder_names(Path(__file__).parent / "positions"))
MODEL = Group("The model", help=f"The positional encodings are {ENCODINGS}.")
DEFAULT, AUTO = RunConfig(), ModelConfig()


@app.command(help_epilogue=example("train --task reverse --length 16 --positions sinusoidal --seed 3"))
def train(
    *,
    out: Path | None = None,
    task: Annotated[TaskConfig, Parameter(name="*", group=TASK)] = DEFAULT.task,
    model: Annotated[ModelConfig, Parameter(name="*", group=MODEL)] = AUTO,
    training: Annotated[TrainingConfig, Parameter(name="*", group=TRAINING)] = DEFAULT.training,
) -> int:
    """Train a model until it is solved, into a run folder.

    Parameters
    ----------
    out
        The run's folder; left out, a new one below checkpoints/.
    """
    config = RunConfig(task=resolved(task), model=model, training=training)

    from transformer.training.recording import details
    from transformer.training.team import join

    team, choice = join(training.device, config)
    if training.batch_size < team.size:
        raise ConfigError(f"a batch of {training.batch_size} cannot be shared by {team.size} processes")
    folder = Path(team.tell(str(out or new_folder(ROOT, config))))
    if team.leads:
        Run.create(folder, config, **details(choice.device), why_there=choice.why)
    code = _record(Run(folder), config, team, choice)
    team.part(code)
    return code


@app.command
def resume(run: str, *, device: str | None = None) -> int:
    """Go on with a training that was paused, stopped or cut off, from the exact state in which it was left.

    Parameters
    ----------
    run
        A run folder, or the name of one below checkpoints/.
    device
        auto, cpu, cuda, cuda:1, mps …; left out, what the run was begun with.
    """
    found = Run(located(run))
    config = found.config
    if not found.resumable:
        raise RunError(f"the run {found.name} cannot go on: it is {found.state.status}")

    from transformer.training.team import join

    team, choice = join(device or config.training.device, config)
    found.ask(stop=False, pause_at=None)
    code = _record(found, config, team, choice)
    team.part(code)
    return code


def _record(run: Run, config: RunConfig, team: Team, choice: Choice) -> int:
    """Train into a run's folder, with a line of progress; the exit code."""
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from transformer.training.device import describe_device
    from transformer.training.loop import TrainingError
    from transformer.training.recording import develop, record

    device, task = choice.device, config.build_task()
    torch.set_num_threads(1)
    columns = (
        TextColumn("step {task.completed:>5.0f}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True, quiet=not team.leads)
    where = describe_device(device) + (f", {team.size} processes" if team.size > 1 else "")
    if choice.why:
        console.print(f"device auto: {choice.why}", highlight=False, markup=False, soft_wrap=True)
    console.print(f"training on {where} into {run.folder}", highlight=False)
    try:
        with Progress(*columns, console=console) as progress:
            bar = progress.add_task("loss …", total=config.training.max_steps)
            measured = ""
            for step in record(run, team, choice, config):
                measured = _measured(step, task) or measured
                progress.update(bar, completed=step.step, description=f"loss {step.loss:.3f}{measured}")
    except TrainingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if team.leads:
        evaluation = run.evaluation or {}
        print(f"{run.state.reason}\n{evaluation.get('verdict', '')}")
        develop(run, device=device)
    return 0


def _measured(step: Step, task: Task) -> str:
    """What was measured at a step, for the line of progress; empty where nothing was."""
    if step.held_out_loss is not None:
        return f", held-out perplexity {said(perplexity(step.held_out_loss))}"
    if step.accuracy is not None:
        judged = [group == task.part for group in task.groups(task.length)]
        return f", {task.part} {float(step.accuracy[judged].mean()):.3f}"
    return ""


@app.command
def evaluate(
    run: str, *, sequences: int = 4096, device: str = "auto", json_: Annotated[bool, Parameter(name="--json")] = False
) -> int:
    """Measure a run, or a checkpoint file, on fresh sequences: accuracy by position; of a text, the perplexity.

    Parameters
    ----------
    run
        A run folder, the name of one below checkpoints/, or a .safetensors file.
    sequences
        How many fresh sequences; a text is read to the end of what was held out of it.
    device
        auto, cpu, cuda, mps …
    json_
        Print one JSON object instead of a table.
    """
    if not 1 <= sequences <= 1_000_000:
        raise ConfigError(f"sequences must be between 1 and 1000000, not {sequences}")
    path = located(run)

    from transformer.checkpoints import NoNumbers, load
    from transformer.commands.devices import named_device
    from transformer.training.recording import evaluate as measure

    if path.is_dir():
        model, config = Run(path).network(device=named_device(device)), Run(path).config
    else:
        model, config = load(path, named_device(device))
    try:
        found = measure(model, config, sequences)
    except NoNumbers as error:  # the file is what was asked for; the model in it is broken
        print(f"error: {error}", file=sys.stderr)
        return 1
    if json_:
        print(json.dumps(found))
        return 0
    if "perplexity" in found:
        print(f"{found['verdict']}, {found['nats']:.3f} nats a token, {found['read']:,} tokens that were held out")
        return 0
    print(f"{'':>4}  {'right':<5}  {'95 % interval':<16}  most")
    for name, share, low, high, most in zip(
        found["positions"], found["accuracy_by_position"], found["low"], found["high"], found["ceiling"], strict=True
    ):
        print(f"{name:>4}  {share:.3f}  ({low:.3f} to {high:.3f})  {most:.3f}  {'█' * round(40 * share)}")
    print(f"most: the ceiling, what can be right under the mask. chance {found['chance']:.3f}")
    print(f"exact match {found['exact_match']:.3f}, {sequences} sequences, 95 % intervals")
    print(found["verdict"])
    return 0


@app.command(name="list")
def list_(root: Path = ROOT) -> None:
    """List the runs below a folder: task, shape, step, accuracy, and where they stand.

    Parameters
    ----------
    root
        The folder that holds the runs.
    """
    if root != ROOT and not root.is_dir():  # our own is made with the first run
        raise RunError(f"there is no folder {root}")
    found = listing(root)
    for entry in found.readable:
        run, state = entry.run, entry.state
        model, task = entry.config.model, entry.config.task
        norm = f", {model.other_norm}" if model.other_norm else ""
        read = f"{task.text.rpartition('-')[0]} in {task.split}, " if task.text else ""
        print(
            f"{run.name:<32} {task.task} {read}{task.length}, {model.shape}"
            f"{'' if model.recurrent else f', {model.positions}, mask {model.mask_label}{norm}'}; "
            f"step {state.step}, {_known(entry)}, {state.status}"
            f"{', comes with the package' if run.packaged else ''}"
        )
    if not found.readable:
        print(f"no runs in {root}: make one with `{program()} train`")
    for fault in found.faults:
        print(f"left out: {fault}", file=sys.stderr)


def _known(entry: Entry) -> str:
    """What was measured when a run had ended."""
    task = entry.config.task
    if task.text:
        return "perplexity –" if entry.perplexity is None else f"perplexity {said(entry.perplexity)}"
    part = TASKS[task.task].parts[-1]
    return f"{part} –" if entry.second_half is None else f"{part} {entry.second_half:.3f}"


TEXTS = example("corpus shakespeare", "train --task text --text shakespeare --length 256")
app.command(corpus, help_epilogue=TEXTS)
app.command(lengths)
app.command(corners)
app.command(scaling)
app.command(generate, help_epilogue=example('generate shakespeare --prompt "ROMEO  " --tokens 200'))
app.command(check, help_epilogue=example("check my_attention.py:attention"))
app.command(sweep, help_epilogue=example("sweep --seeds 0-63 --positions learned,sinusoidal,rotary --n-heads 1,2,4"))


@app.command
def bottleneck(
    *, out: Path = ROOT / "bottleneck-own.json", runs: list[str] | None = None, steps: int | None = None
) -> int:
    """Train a GRU, a GRU with attention and a transformer alike, and measure what they reverse at each length.

    Three runs of one size: some ten minutes on two cores. The dashboard shows it on “The bottleneck”.

    Parameters
    ----------
    out
        The file, written once all three are measured; new runs stand beside it.
    runs
        Three trained runs that are measured only: folders, or names of runs below checkpoints/.
    steps
        Steps of each training; left out, as many as the shipped ones have.
    """
    from transformer.experiments.bottleneck_measure import compare
    from transformer.experiments.bottleneck_runs import STEPS, plan

    chosen = [Run(located(name)) for name in runs or ()]
    for config in () if chosen else plan(STEPS if steps is None else steps).values():
        folder = new_folder(out.parent, config)
        code = train(out=folder, task=config.task, model=config.model, training=config.training)
        if code:
            return code
        chosen.append(Run(folder))

    import torch

    torch.set_num_threads(1)
    found = compare(chosen)
    found.save(out)
    for each in found.contestants:
        shares = " ".join(f"{count / found.sequences:.2f}" for count in each.exact)
        print(f"{each.run}, {each.parameters} parameters, lengths {found.lengths[0]} to {found.lengths[-1]}: {shares}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code: 0, 1 when a training fails, 2 for bad input, 130 when interrupted."""
    return exit_code(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
