"""The title of the overview and the line below it."""

from __future__ import annotations

import numpy as np

from transformer.analysis.intervals import wilson
from transformer.config import RunConfig
from transformer.foundation.claims import claim
from transformer.foundation.words import counted
from transformer.tasks import Task

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@claim
def headline(config: RunConfig, step: int, length: int, right: np.ndarray, knowable: np.ndarray) -> str:
    """What kind of model this is and whether it does its task: it answered one question of this length.

    `right` and `knowable` are bool [answer]. A model is said to do its task where all that can be known is right. "Not
    well yet" is said where more is right than guessing would have, beyond a 95 % interval. Of a length that it was not
    trained on it is said so.
    """
    task = config.build_task()
    count, of = int((right & knowable).sum()), int(knowable.sum())
    name = _kind(config)
    if not of:
        return f"{name} reads {_symbols(task)}. No answer can be known here: the mask hides what it depends on."
    as_far = "" if of == len(right) else ", as far as its mask lets it see"
    if count == of:
        return f"{name} reads {_symbols(task)} and {_does(task)}{as_far}."
    if step and length not in task.lengths:
        return (
            f"{name} was trained on {_symbols(task)} only: of {_counted(length, task)}, {count} of {of} come out right."
        )
    guessed = float(task.blind(length)[task.answers(length)].mean())
    learned = "has begun to learn it" if wilson(count, of)[0] > guessed else "has not learned it yet"
    return f"{name} is to read {_symbols(task)} and {_aim(task)}{as_far}. It {learned}: {count} of {of} right."


@claim
def lineage(config: RunConfig, step: int, *, trained: bool, right: int, of: int) -> str:
    """Where the model has it from, in a line: how many examples it has seen, and how many answers are right here.

    Not `trained` is a model whose weights were written by hand.
    """
    here = f"Of this answer {right} of {counted(of, 'token')} {'is' if of == 1 else 'are'} right."
    if not trained:
        return f"Its weights were written by hand: it was never trained. {here}"
    if not step:
        return f"It has seen no example yet: its weights are random. {here}"
    examples = step * config.training.batch_size
    return f"Nobody told it how: it was shown {examples:,} examples, in {counted(step, 'step')}. {here}"


def _kind(config: RunConfig) -> str:
    return f"This {'recurrent network' if config.model.recurrent else 'transformer'}"


def _symbols(task: Task) -> str:
    """ "eight digits", "up to eight digits", "two to eight digits": what it reads."""
    least, most = task.lengths[0], _counted(task.lengths[-1], task)
    if len(task.lengths) == 1:
        return most
    return f"up to {most}" if least == 1 else f"{_number(least)} to {most}"


def _counted(length: int, task: Task) -> str:
    noun = "digit" if task.symbols <= 10 else "symbol"
    return f"{_number(length)} {noun}{'' if length == 1 else 's'}"


def _number(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def _aim(task: Task) -> str:
    """What is to be done with them: "write them backwards"."""
    return (task.aim or "answer").replace(" them", " it" if task.length == 1 else " them")


def _does(task: Task) -> str:
    first, _, rest = _aim(task).partition(" ")
    return f"{first}s {rest}" if task.aim else task.verb
