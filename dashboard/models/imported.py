"""Models that are not ours: where they lie, one of them opened, and what its attention does with an input.

Their names stand in one small file beside the runs; links and pages say a name and never where it lies. Besides it
there are the folders in ATTENTION_LAB_MODELS, the model that the server was started with (`--module`), and a sample.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dashboard.components.origin import Maker
from dashboard.models import background, menu
from dashboard.models.cache import cached, keyed_by_repr
from transformer.analysis.findings import Attention, Detail, Head
from transformer.analysis.heads.metrics import Metric
from transformer.capturing import sample
from transformer.capturing.metrics import METRICS as MEASURED
from transformer.foundation.atomic_files import sweep, write_whole
from transformer.foundation.checks import UserError
from transformer.foundation.foreign import read_record, shortened
from transformer.foundation.regular_files import open_file

if TYPE_CHECKING:
    from transformer.capturing.folders import Folder
    from transformer.capturing.foreign import Foreign, Given
    from transformer.capturing.lens import Lens
    from transformer.capturing.outputs import Answer
    from transformer.capturing.record import Captured

FILE = "imported.json"
FOLDERS, MODULE = "ATTENTION_LAB_MODELS", "ATTENTION_LAB_MODULE"
"""The environment variables: a folder whose folders are models, and "my_model:build", which makes one."""
MOST, LETTERS = 100, 60
"""Models in the list, and letters of a name."""
LONGEST = 512
"""Tokens that an input may have."""
METRICS = {
    **MEASURED,
    "induction": Metric(
        "induction",
        "share",
        "Share of its attention behind an earlier place of the same token, on the input’s tokens twice in a row",
    ),
}
"""What is measured of each head on an input, in the order of the table."""
_writing = threading.Lock()


class ListError(UserError):
    """What cannot be done with the list of imported models; the message is one sentence."""


@keyed_by_repr
@dataclass(frozen=True)
class Imported:
    """A model that is not ours, by its name. A file replaced on the disk makes it another one."""

    name: str
    where: str
    """Its folder; or "my_model:build", of the one that the server was started with and of the sample."""
    stamp: float = 0.0

    @property
    def is_module(self) -> bool:
        return self.where == module() or self.is_sample

    @property
    def is_sample(self) -> bool:
        return self.where == sample.BUILT

    def folder(self) -> Folder:
        """What its folder says, without reading any weights. Raises FolderError."""
        return _folder(self)

    def opened(self) -> Future[Foreign]:
        """The model itself, read behind the page. The future raises FolderError where it cannot be read."""
        return _opened(self)

    def maker(self) -> Maker:
        """Whose numbers these are, for whatever is saved of them."""
        return Maker(self.name, 0, _digest(self))


# --- the list


def place() -> Path:
    """The file with the list of those that were brought in."""
    return menu.ROOT / FILE


def module() -> str:
    """What the server was started with, as "my_model:build"; empty is nothing."""
    return os.environ.get(MODULE, "")


def listed() -> dict[str, Imported]:
    """All of them by name: the server's own first, those of the folder, those that were brought in, and the sample."""
    found = {module(): module()} if module() else {}
    if folders := os.environ.get(FOLDERS):
        found |= {path.name: str(path) for path in sorted(Path(folders).glob("*")) if (path / "config.json").is_file()}
    found |= {name: where for name, where in _read().items() if name not in found}
    found.setdefault(sample.NAME, sample.BUILT)
    return {name: Imported(name, where, _stamp(where)) for name, where in found.items()}


def bring_in(typed: str) -> str:
    """Put a folder, or a name in the local cache of Hugging Face, on the list; returns the name that it has there.

    Raises FolderError when it is no model that can be opened, ListError when the list cannot be changed.
    """
    from transformer.capturing.folders import located, look

    path = located(typed.strip()).resolve()
    look(path)
    is_path = os.path.isdir(os.path.expanduser(typed.strip()))
    called = shortened(path.name if is_path else typed.strip(), LETTERS)
    with _writing:
        book = _read()
        if (known := next((name for name, where in book.items() if where == str(path)), None)) is not None:
            return known
        if len(book) >= MOST:
            raise ListError(f"{MOST} models are on the list already: take one out first")
        taken = {*book, *listed()}
        name = next(each for each in (called, *(f"{called} {n}" for n in range(2, MOST + 2))) if each not in taken)
        _write({**book, name: str(path)})
    return name


def take_out(name: str) -> str:
    """Take a model out of the list; its folder stays as it is. Returns where it lies. Raises ListError."""
    with _writing:
        book = _read()
        if name not in book:
            raise ListError(f"“{shortened(name)}” is not on the list of models that were brought in")
        where = book.pop(name)
        _write(book)
    return where


def is_brought_in(name: str) -> bool:
    """Was it put on the list by hand, so that it can be taken out again?"""
    return name in _read()


def _read() -> dict[str, str]:
    try:
        book = read_record(place())["models"]
        return {str(name): str(where) for name, where in book.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ListError(f"{FILE} cannot be read as a list of models; it was left as it is") from None


def _write(book: dict[str, str]) -> None:
    try:
        place().parent.mkdir(parents=True, exist_ok=True)
        sweep(place().parent)
        write_whole(place(), json.dumps({"models": book}, ensure_ascii=False, indent=1).encode())
    except OSError as error:
        raise ListError(f"{FILE} cannot be written: {error.strerror or type(error).__name__}") from None


def _files(where: str) -> list[Path]:
    folder = Path(where)
    return sorted(path for each in ("*.json", "*.safetensors", "*.txt") for path in folder.glob(each))


def _stamp(where: str) -> float:
    """When the folder's files last changed; 0 where there are none."""
    return max((path.stat().st_mtime for path in _files(where) if path.exists()), default=0.0)


# --- a model


@cached(32)
def _folder(imported: Imported) -> Folder:
    from transformer.capturing.folders import look

    return look(Path(imported.where))


@cached(2)
def _opened(imported: Imported) -> Future[Foreign]:
    return background.MEASUREMENTS.submit(_open, imported)


def _open(imported: Imported) -> Foreign:
    if imported.is_module:
        from transformer.capturing.modules import built

        return built(imported.where)
    from transformer.capturing.folders import load, look

    return load(look(Path(imported.where)), LONGEST)


@cached(32)
def _digest(imported: Imported) -> str:
    """The SHA-256 of its weights' files, one after the other; empty for a module whose weights are nowhere written."""
    if imported.where == module():
        return ""
    folder = sample.FOLDER if imported.is_sample else Path(imported.where)
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with open_file(path) as file:
            while part := file.read(2**22):
                digest.update(part)
    return digest.hexdigest()


# --- what its attention does with an input


@dataclass(frozen=True)
class Input:
    """What is given to a model: a text, or token numbers; the decoder's text; or a picture, PNG or JPEG."""

    text: str = ""
    second: str = ""
    picture: bytes | None = None


@dataclass(frozen=True, eq=False)
class Look:
    """One pass over an input: what was given, what was seen of attention, and what the model made of it."""

    given: Given
    attentions: dict[str, Attention]
    """By the names that all pages use: "decoder.0.self_attention" …"""
    modules: dict[str, str]
    """The same, and what the model calls them."""
    value_norms: dict[str, np.ndarray]
    """‖value‖ of each key, float [head, key], where values were seen."""
    unseen: tuple[str, ...]
    """A sentence for each part that could not be seen, or is not over the input's own positions."""
    answer: Answer | None
    """None where the model returns what is neither logits nor an embedding."""

    @cached_property
    def heads(self) -> list[Head]:
        return [Head(site, i) for site, attention in self.attentions.items() for i in range(len(attention.pattern))]

    def renamed(self, names: dict[str, str]) -> Look:
        """The same with other names for its attentions."""
        return replace(
            self,
            attentions={names[site]: replace(each, site=names[site]) for site, each in self.attentions.items()},
            modules={names[site]: module for site, module in self.modules.items()},
            value_norms={names[site]: norms for site, norms in self.value_norms.items()},
        )

    def detail(self, head: Head) -> Detail | None:
        """The head's module, and what each reading writes, where values were seen."""
        norms, attention = self.value_norms.get(head.site), self.attentions[head.site]
        if norms is None:
            return None
        return Detail(attention.pattern, attention.mask, norms, attention.queries, attention.keys)


@cached(4)
def given(imported: Imported, asked: Input) -> Given:
    """The input as the model reads it. Raises UserError with a sentence for whoever typed it."""
    return _opened(imported).result().given(asked.text, asked.second, asked.picture)


@cached(4)
def look(
    imported: Imported, asked: Input, removed: tuple[tuple[str, int], ...] = (), mask: np.ndarray | None = None
) -> Look:
    """What its attention does with an input: as it is, or with heads removed and another mask.

    `removed` are heads, each by its module's own name and its number; `mask` is bool [query, key]. Raises UserError.
    """
    import torch

    from transformer.capturing.capture import capture
    from transformer.capturing.changes import Change, capture_changed

    model, handed = _opened(imported).result().model, given(imported, asked)
    if not removed and mask is None:
        return _looked(model, handed, capture(model, *handed.args, **handed.named))
    change = Change(frozenset(removed), None if mask is None else torch.from_numpy(mask))
    found = _looked(model, handed, capture_changed(model, change, *handed.args, **handed.named))
    # Whether a stack is called encoder or decoder may depend on its mask. It is called what it is called unchanged.
    names = {module: site for site, module in look(imported, asked).modules.items()}
    return found.renamed({site: names[module] for site, module in found.modules.items()})


def _looked(model: object, handed: Given, seen: Captured) -> Look:
    from transformer.capturing.foreign.fitting import remarks
    from transformer.capturing.heads import attentions, modules
    from transformer.capturing.outputs import answer
    from transformer.capturing.record import CaptureError

    found, names = attentions(seen, handed.names, handed.sources), modules(seen)
    try:
        said = answer(seen.output, model)
    except CaptureError:
        said = None
    unlike = (*seen.unseen, *seen.remarks, *remarks(seen, handed))
    return Look(handed, found, names, _norms(found, names, seen), unlike, said)


def _norms(found: dict[str, Attention], names: dict[str, str], seen: Captured) -> dict[str, np.ndarray]:
    norms = {}
    for site, attention in found.items():
        value = seen.sites.get(f"{names[site]}.value")
        if value is not None:
            each = value[0].float().norm(dim=-1)
            norms[site] = each.repeat_interleave(len(attention.pattern) // len(each), 0).numpy()
    return norms


@cached(4)
def metrics(imported: Imported, asked: Input) -> dict[str, np.ndarray]:
    """Every head on this input, by the names of METRICS: float [head]; nan where nothing of the kind can be asked."""
    from transformer.capturing.metrics import measure

    seen, handed = look(imported, asked), given(imported, asked)
    found = measure(seen.attentions, handed.tokens, handed.names, handed.separators)
    return {**found, "induction": _induction(imported, handed, len(seen.heads))}


def _induction(imported: Imported, handed: Given, heads: int) -> np.ndarray:
    """Every head on the input's own tokens, twice in a row."""
    from transformer.capturing.capture import capture
    from transformer.capturing.foreign.reading import Texts
    from transformer.capturing.heads import attentions
    from transformer.capturing.metrics import induction, repeated

    foreign = _opened(imported).result()
    if not isinstance(foreign.reader, Texts):
        return np.full(heads, np.nan)
    tokens, block = repeated(handed.tokens, handed.separators, min(foreign.longest, LONGEST))
    if block < 2:
        return np.full(heads, np.nan)
    seen = capture(foreign.model, foreign.reader.batch(tokens))
    return induction(attentions(seen, foreign.reader.names(tokens)), len(tokens) - 2 * block, block)


@cached(4)
def lens(imported: Imported, asked: Input) -> Lens | None:
    """What the model would say after each layer; None where its last steps are not a norm and an unembedding."""
    from transformer.capturing.lens import lens

    return lens(_opened(imported).result(), given(imported, asked))


@cached(16)
def seconds_of(imported: Imported, asked: Input) -> float:
    """How long one more pass over this input takes here."""
    from transformer.capturing.capture import capture

    handed, model = given(imported, asked), _opened(imported).result().model
    began = time.perf_counter()
    capture(model, *handed.args, **handed.named)
    return time.perf_counter() - began


class Removals:
    """Each head removed in turn, behind the page: how far it is, and in the end by how much the output changes."""

    def __init__(self, imported: Imported, asked: Input) -> None:
        heads = look(imported, asked).heads
        self.done, self.total = 0, len(heads)
        self.future = background.MEASUREMENTS.submit(self._work, imported, asked, heads)

    @property
    def share(self) -> float:
        return self.done / self.total

    def _work(self, imported: Imported, asked: Input, heads: Sequence[Head]) -> np.ndarray:
        from transformer.capturing.outputs import removals

        model, handed, found = _opened(imported).result().model, given(imported, asked), []
        for _, moved in removals(model, handed.args, handed.named, heads):
            found.append(float(np.nanmean(moved)))
            self.done += 1
        return np.array(found)


@cached(4)
def removals(imported: Imported, asked: Input) -> Removals:
    """What removing each head alone does to the model's own output: the mean over positions."""
    return Removals(imported, asked)


def by_module(heads: Sequence[Head], modules: dict[str, str]) -> tuple[tuple[str, int], ...]:
    """Heads as a change names them: by the model's own name of their module."""
    return tuple((modules[head.site], head.index) for head in heads)
