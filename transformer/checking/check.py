"""Check a file, or a folder of them."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import torch

from transformer.checking import signatures
from transformer.checking.bench import LONGEST_SOURCE, Bench, Described
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings
from transformer.checking.isolation.limits import Limits
from transformer.checking.isolation.process import IsolationError, Remote, Warm, require_isolation
from transformer.checking.kinds import attention, decoder, mask, module, piece, positions, targets
from transformer.checking.verdict import Verdict, together
from transformer.foundation.checks import UserError, reason
from transformer.foundation.foreign import quoted, read_bytes, shortened

JUDGES: dict[str, Callable[[Bench, Described], Findings]] = {
    "attention": attention.judge,
    "module": module.judge,
    "positions": positions.judge,
    "mask": mask.judge,
    "decoder": decoder.judge,
    "targets": targets.judge,
    "piece": piece.judge,
}


SHORTEST = 1.0
"""Seconds for which each of several definitions may compute at least, where they share the time of their file."""


class CheckError(UserError):
    """What was to be checked is not there; the message is one sentence."""


def judge(bench: Bench, described: Described, kind: str = "", *, trying: bool = True) -> tuple[str, Findings]:
    """Judge what is on a bench; its kind, by its names, or found by `trying`, where none is given.

    Raises Refused where it cannot be run, or is of no kind.
    """
    if not kind:
        try:
            kind = "piece" if piece.meant(described) else signatures.guess(described, counting=trying)
        except Refused as unnamed:
            if not trying:
                raise
            return _judge_by_trying(bench, described, unnamed)
    return kind, JUDGES[kind](bench, described)


def _judge_by_trying(bench: Bench, described: Described, unnamed: Refused) -> tuple[str, Findings]:
    """The first kind as which it is right. Raises `unnamed` where there is none: anything is wrong as some kind."""
    for kind in ("module", "positions", "decoder") if described.is_class else ("attention", "mask", "positions"):
        try:
            findings = JUDGES[kind](bench, described)
        except Refused:
            continue
        if not findings.wrong and not findings.undecided:
            findings.conventions.insert(0, f"Its name does not say what it is: it does what a check of {kind} wants.")
            return kind, findings
    raise unnamed


def check(
    path: Path, name: str = "", kind: str = "", limits: Limits | None = None, warm: Warm | None = None
) -> Verdict:
    """Check what `name` is in a file; without a name, the only function or class in it.

    The code runs in a process of its own, under `limits`. Raises CheckError where there is no such file, and
    IsolationError where no process can be isolated. `warm` may be used for one file after the other.
    """
    source = _read(path)
    folder = path.resolve().parent
    return check_source(source, path.name, name, kind, limits, warm, folder=folder)


def check_source(
    source: bytes,
    file: str,
    name: str = "",
    kind: str = "",
    limits: Limits | None = None,
    warm: Warm | None = None,
    *,
    folder: Path | None = None,
    required: Sequence[str] = (),
) -> Verdict:
    """Check the source of a file. Modules in `folder` can be imported.

    Without a name everything is judged that the file defines and whose kind its names say, in one verdict. Raises
    CheckError for one that is too large, and IsolationError, and runs nothing of it, where one of the `required`
    PROMISES cannot be kept.
    """
    if kind and kind not in JUDGES:
        raise CheckError(f"the kind must be one of {', '.join(JUDGES)}, not {quoted(kind)}")
    if len(source) > LONGEST_SOURCE:
        raise CheckError(f"{shortened(file)} is not checked: it is larger than {LONGEST_SOURCE // 2**20} MB")
    limits, begun = limits or Limits(), time.monotonic()
    with one_thread(), nullcontext(warm) if warm is not None else Warm() as process:
        bench = partial(process.bench, readable=[folder] if folder else [])
        opened = partial(_verdict, bench, source, file, folder=str(folder or ""), required=required)
        verdict, several = opened(name, kind, limits)
        if several and not name:
            share = dataclasses.replace(limits, seconds=max(SHORTEST, limits.seconds / len(several)))
            verdicts = [opened(one, kind, share, trying=False)[0] for one in several]
            named = [one for one in verdicts if not one.not_run.startswith(signatures.UNNAMED)]
            if any(not one.not_run for one in named):
                unnamed = [one.name for one in verdicts if one not in named]
                return together(named, unnamed, round(time.monotonic() - begun, 3))
            if len(named) == 1:  # its names say what it is, and what it raises tells more than that there are several
                return named[0]
            if named:
                why = " ".join(f"{one.name}: {one.not_run}" for one in named)
                verdict = dataclasses.replace(verdict, not_run=f"None of what the file defines could be run. {why}")
    return verdict


@contextmanager
def one_thread() -> Iterator[None]:
    """While it is entered, PyTorch computes on one thread: on small matrices several wait for each other, and where
    the processor is shared, forty times as long as they compute.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _verdict(
    bench_of: Callable[[Limits], AbstractContextManager[Remote]],
    source: bytes,
    file: str,
    name: str,
    kind: str,
    limits: Limits,
    *,
    folder: str,
    required: Sequence[str],
    trying: bool = True,
) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict on one definition, and the names of all where the file has several and none was named."""
    begun, found, described, not_run = time.monotonic(), Findings(), None, ""
    kept: tuple[str, ...] = ()
    several: tuple[str, ...] = ()
    try:
        with bench_of(limits) as bench:
            kept = bench.kept
            if missing := [each for each in required if each not in kept]:
                raise IsolationError(f"this machine cannot isolate what the code does with {', '.join(missing)}")
            described = bench.open(source, file, name, folder)
            kind, found = judge(bench, described, kind, trying=trying)
    except Refused as refused:
        not_run, several = str(refused), _several(refused)
    except UserError:
        raise
    except Exception as error:  # the code is a stranger's, and so is what it gives to be judged
        not_run = f"The check itself stopped with an error: {reason(error)}."
    divergence = found.divergence
    verdict = Verdict(
        file=shortened(file, 200),
        name=shortened(described.name if described else name),
        kind=kind,
        not_run=not_run,
        mistake="" if not_run else found.mistake,
        wrong=() if not_run else tuple(found.wrong),
        undecided="" if not_run or found.wrong else found.undecided,
        conventions=() if not_run else tuple(found.conventions),
        notes=() if not_run else tuple(found.notes),
        tried=() if not_run else tuple(found.tried),
        stages=divergence.stages if divergence and not not_run else (),
        first=divergence.first if divergence and not not_run else None,
        isolated=kept,
        seconds=round(time.monotonic() - begun, 3),
    )
    return verdict, several


def _several(refused: Refused) -> tuple[str, ...]:
    """What a file defines that defines several things; nothing where that is not why it is refused, or not all."""
    if refused.fault is None or refused.fault.name != "several" or refused.fault.words[0].endswith("…"):
        return ()
    return tuple(refused.fault.words[0].split(", "))


def check_many(
    folder: Path, name: str = "", kind: str = "", limits: Limits | None = None, side_by_side: int | None = None
) -> Iterator[Verdict]:
    """Check every .py file below a folder, several side by side; verdicts as they are ready.

    Each file stands alone: it can import nothing from the folder, and nothing that it does ends the check of another.
    Raises CheckError where there is no such folder, and IsolationError where no process can be isolated.
    """
    require_isolation()
    if not folder.is_dir():
        raise CheckError(f"there is no folder {shortened(str(folder))}")
    files = sorted(path for path in folder.rglob("*.py") if not _passed_over(path.relative_to(folder)))
    if not files:
        raise CheckError(f"there is no .py file below {shortened(str(folder))}")
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    many = min(side_by_side or len(cores), len(files))
    spare: SimpleQueue[Warm] = SimpleQueue()
    with one_thread(), ExitStack() as closing:
        for number in range(many):
            spare.put(closing.enter_context(Warm(cores[number % len(cores)])))

        def one(path: Path) -> Verdict:
            warm = spare.get()
            shown = path.relative_to(folder).as_posix()
            try:
                return check_source(_read(path), shown, name, kind, limits, warm)
            except UserError as error:
                return Verdict(file=shortened(shown, 200), name=name, kind=kind, not_run=_sentence(str(error)))
            finally:
                spare.put(warm)

        with ThreadPoolExecutor(many, thread_name_prefix="check") as pool:
            for done in as_completed([pool.submit(one, path) for path in files]):
                yield done.result()


def _passed_over(path: Path) -> bool:
    return any(part.startswith((".", "__pycache__")) or part in ("venv", "site-packages") for part in path.parts)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _read(path: Path) -> bytes:
    """A file's bytes. Raises CheckError."""
    shown = shortened(str(path))
    if path.suffix == ".ipynb":
        raise CheckError(f"{shown} is a notebook: save its code as a .py file first")
    try:
        return read_bytes(path, LONGEST_SOURCE)
    except ValueError as error:
        raise CheckError(f"{shown} is not checked: {error}") from None
    except OSError as error:
        raise CheckError(f"{shown} cannot be read: {error.strerror or type(error).__name__}") from None
