"""Is this folder, which came from somebody else, a run that every page can read? Nothing in it is believed.

A run of one's own is written by this program and is what it says. One that was packed elsewhere may be damaged, of
another version, or made to do harm: here its files are read the way they will be used, once, before it is let in.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.film.film import Film
from transformer.analysis.findings import Attention, Example, Head
from transformer.config import RunConfig
from transformer.text import shelf
from transformer.text.corpus import Excerpt
from transformer.text.perplexity import COUNTING
from transformer.text.shelf import TEXT_FILE
from transformer.training.library import LibraryError
from transformer.training.runs import FORMAT, LIVE, Run, State

MOST_WORDS = 4 * 2**20
"""Bytes in the largest of the small JSON files."""
MOST_NUMBERS = 256 * 2**20
"""Bytes that an example or a film may take once its arrays are unpacked."""
STATUSES = (*LIVE, "finished", "stopped", "failed", "lost")
LATEST = 1e11
"""A Unix time beyond this is none."""
_SITE = re.compile(r"(encoder|decoder)\.(\d{1,2})\.(self|cross)_attention", re.ASCII)
_BROKEN = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
    MemoryError,
    EOFError,
    OSError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a file that is not what it should be can end in."""


def inspect(run: Run) -> State:
    """Read a whole run folder, and return its state as it is stored. Raises LibraryError with what is wrong."""
    _read(run, TEXT_FILE, _excerpt)
    config = _read(run, "run.json", _config)
    _require(config is not None, "this is no run: it has no run.json")
    assert config is not None
    state = _read(run, "state.json", _state) or State("stopped", reason="it came without a state")
    _read(run, "metrics.jsonl", lambda path: _metrics(path, config))
    _read(run, "evaluation.json", lambda path: _evaluation(path, config))
    _read(run, "example.npz", lambda path: _example(path, config))
    _read(run, "film.npz", lambda path: _film(path, config))
    _read(run, "resume.safetensors", lambda path: _header(path, "attention-lab-training/1"))
    _snapshots(run, config)
    return state


def _read(run: Run, name: str, look: Callable[[Path], Any]) -> Any:
    """Look at a file, if it is there. Raises LibraryError when it does not hold what it should."""
    path = run.folder / name
    if not path.is_file():
        return None
    try:
        return look(path)
    except LibraryError:
        raise
    except _BROKEN as error:
        what = f"it has no {_short(error)}" if isinstance(error, KeyError) else _short(error)
        raise LibraryError(f"its {name} cannot be used: {what}") from None


def _json(text: str) -> dict[str, Any]:
    value = json.loads(text)
    _require(isinstance(value, dict), "a part of this run is no record")
    found: dict[str, Any] = value
    return found


def _config(path: Path) -> RunConfig:
    card = _json(path.read_text())
    version = card.get("format")
    _require(version == FORMAT, f"the run is of another version ({_short(version)}); this program reads {FORMAT}")
    _number(card.get("created", 0), 0, LATEST)
    _whole(card.get("processes", 1))
    for name in ("device", "stepping"):
        _text(card.get(name, ""))
    shelf.bring(path.parent, card["config"])
    return RunConfig.from_dict(card["config"])


def _excerpt(path: Path) -> Excerpt:
    _slim(path)
    return Excerpt.load(path)


def _state(path: Path) -> State:
    state = State(**_json(path.read_text()))
    _expect(state.status in STATUSES, f"nobody knows the status {_short(state.status)}")
    _whole(state.step)
    _whole(state.memory)
    _text(state.reason)
    _text(state.host)
    _number(state.heartbeat, 0, LATEST)
    return state


def _metrics(path: Path, config: RunConfig) -> None:
    """Every whole line; one that was cut short at the end is left out by whoever reads them."""
    task, last = config.build_task(), 0
    targets = len(task.target_names(task.length))
    for number, text in enumerate(path.read_text().split("\n")[:-1], 1):
        line = _json(text)
        step = _whole(line["step"])
        _expect(step > last, f"line {number} is out of order")
        last = step
        for name in ("loss", "learning_rate", "gradient_norm", "seconds"):
            _number(line[name])
        _number(line.get("milliseconds", 0.0))
        _expect(isinstance(line.get("solved", False), bool), f"line {number} is neither solved nor not")
        _number(line.get("held_out_loss", 0.0))
        if "accuracy" in line:
            _expect(len(line["accuracy"]) == targets, f"line {number} is of another task")
            for share in line["accuracy"]:
                _number(share, 0, 1)
            _expect(_whole(line.get("probed", 1)) > 0, f"line {number} was measured on nothing")


def _evaluation(path: Path, config: RunConfig) -> None:
    stored = _json(path.read_text())
    measured = Accuracy.from_evaluation(stored, config.build_task())
    _expect(_whole(stored["sequences"]) > 0, "it was measured on nothing")
    for count in stored["correct"]:
        _expect(_whole(count) <= measured.sequences, "more is right than was measured")
    _expect(measured.correct.shape == (len(measured.names),), "it is of another task")
    for name in ("exact_match", "second_half", "first_half"):
        if name != "first_half" or stored.get(name) is not None:  # a short answer may have no first half
            _number(stored[name], 0, 1)
    if not config.build_task().lawful:
        _number(stored["perplexity"], 1, math.inf)
        _number(stored["nats"], 0, math.inf)
        _whole(stored["read"])
        for name in COUNTING if "baselines" in stored else ():
            _number(stored["baselines"][name], 1, math.inf)
    for name in ("verdict", "snapshot"):
        _text(stored.get(name, ""))


def _example(path: Path, config: RunConfig) -> None:
    _slim(path)
    example, task = Example.load(path), config.build_task()
    seen, attentions = example.sample, example.sample.attentions
    tokens = len(seen.read)
    _text(example.snapshot)
    _expect(len(example.question) in task.lengths and len(example.said) == len(example.question), "it is of no length")
    symbols = np.concatenate([example.question, example.said])
    _expect(np.issubdtype(symbols.dtype, np.integer) and symbols.min() >= 0, "it holds no symbols")
    _expect(symbols.max() < task.d_vocab, "it holds other symbols")
    _expect(all(len(part) == tokens for part in (seen.predicted, seen.targets, seen.is_answer)), "its parts differ")
    _expect(all(map(_texts, (seen.question, seen.read, seen.predicted, seen.targets))), "it holds no tokens")
    _expect(set(example.survey.patterns) == set(attentions), "its heads are of another model")
    _expect(bool(attentions) == config.model.attends, "it has no heads" if config.model.attends else "it has heads")
    _whole(example.survey.sequences)
    for site, attention in attentions.items():
        _attention(site, attention, example.survey.patterns[site], config)
    for head, share in example.survey.expected_share.items():
        _head(head, set(attentions), config)
        _number(share)
    _expect(bool(example.survey.expected_share) == config.model.attends, "no head was looked at")


def _attention(site: str, attention: Attention, mean: np.ndarray, config: RunConfig) -> None:
    shape = (config.model.n_heads, len(attention.queries), len(attention.keys))
    _site(site, config)
    _expect(_texts(attention.queries) and _texts(attention.keys), "it holds no tokens")
    fits = attention.pattern.shape == attention.scores.shape == mean.shape == shape
    _expect(
        fits and attention.mask.shape == shape[1:] and attention.mask.dtype == bool, "its heads are of another model"
    )
    numbers = (attention.pattern, attention.scores, mean)
    _expect(all(np.issubdtype(values.dtype, np.floating) for values in numbers), "its heads hold no numbers")


def _film(path: Path, config: RunConfig) -> None:
    _slim(path)
    film, task = Film.load(path), config.build_task()
    _text(film.snapshot)
    _expect(film.names == task.target_names(task.length), "it is of another task")
    _expect(film.groups == task.groups(task.length), "it is of another task")
    _expect(_whole(film.sequences) > 0, "it was measured on nothing")
    _whole(film.surveyed)
    _number(film.chance, 0, 1)
    _expect(_texts(film.question) and _texts(film.read), "it holds no tokens")
    _expect(film.correct.min() >= 0 and film.correct.max() <= film.sequences, "more is right than was measured")
    _expect(len(film.pictured) > 0 and bool(film.readings) == config.model.attends, "it shows nothing")
    for site, reading in film.readings.items():
        _site(site, config)
        _expect(_texts(reading.queries) and _texts(reading.keys), "it holds no tokens")
        _expect(reading.levels.shape[1] == config.model.n_heads, "its heads are of another model")
    for head in film.shares:
        _head(head, set(film.readings), config)


def _snapshots(run: Run, config: RunConfig) -> None:
    """All weights have one shape, which is that of the config, and say so themselves; the last are truly loaded, and
    the first, which may be drawn anew."""
    snapshots = run.snapshots()
    _require(bool(snapshots), "the run has no weights: there is no snapshot")
    names = [f"snapshots/{path.name}" for path in snapshots.values()]
    found = [_read(run, name, lambda path: _weights(path, config)) for name in names]
    stored = found[1:] if found[0] is None and 0 in snapshots else found
    _require(all(shapes == stored[0] for shapes in stored), "its snapshots are of different models")

    from transformer.checkpoints import load  # PyTorch, which has been imported by now wherever somebody waits

    for name in [*(names[:1] if found[0] is None else []), names[-1]]:
        _read(run, name, load)


def _weights(path: Path, config: RunConfig) -> dict[str, tuple[int, ...]] | None:
    """The shapes of a snapshot's weights; none where they are the initial ones, which are not stored."""
    metadata, shapes = _header(path, "attention-lab/1")
    stored = RunConfig.from_dict(_json(metadata["config"]))
    _expect(stored == config, "its weights were trained with other settings")
    initial = metadata.get("weights") == "initial"
    _expect(not (initial and shapes), "it holds weights, and says that it holds none")
    return None if initial else shapes


def _header(path: Path, version: str) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
    """What a safetensors file says of itself; the format's own reader checks that it is whole."""
    try:
        with safe_open(str(path), framework="np") as file:
            metadata = file.metadata() or {}
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"it is not a whole safetensors file ({error})") from None
    _expect(metadata.get("format") == version, f"its format is {metadata.get('format')!r} and not {version}")
    return metadata, shapes


def _slim(path: Path) -> None:
    """An archive of arrays that unpacks to a sane size."""
    with zipfile.ZipFile(path) as stored:
        _expect(sum(entry.file_size for entry in stored.infolist()) <= MOST_NUMBERS, "it unpacks to too much")


def _site(site: str, config: RunConfig) -> None:
    match = _SITE.fullmatch(site)
    _expect(match is not None and int(match[2]) < config.model.n_layers, f"this model has no {_short(site)}")


def _head(head: Head, sites: set[str], config: RunConfig) -> None:
    _expect(head.site in sites and 0 <= head.index < config.model.n_heads, f"this model has no head {_short(head)}")


def _texts(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, str) for value in values)


def _text(value: Any) -> None:
    _expect(isinstance(value, str), f"{_short(value)} is no text")


def _whole(value: Any) -> int:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    _expect(good, f"{_short(value)} is no count")
    found: int = value
    return found


def _number(value: Any, low: float = -math.inf, high: float = math.inf) -> None:
    """A number; where it is bounded, that also rules out what is none (nan), which a failed training may hold."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    good = good and (isinstance(value, float) or abs(value) < 2**63)
    bounded = low > -math.inf or high < math.inf
    _expect(good and (not bounded or low <= value <= high), f"{_short(value)} is no number that could stand here")


def _expect(condition: bool | np.bool_, what: str) -> None:
    """What has to hold inside a file; `_read` says of which."""
    if not condition:
        raise ValueError(what)


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise LibraryError(sentence)


def _short(value: Any) -> str:
    """A foreign value, safe to repeat: printable, on one line, not long."""
    text = "".join(c if c.isprintable() else " " for c in str(value))
    return f"{text[:100]}…" if len(text) > 100 else text
