"""What a user sees, recorded: 60 links, the link grammar, the command line, the files of a run, and the downloads.

`recorded.json.xz` beside this file (`xz -dc` reads it) says what the code showed when it was recorded, and
`test_recorded.py` compares it with what it shows now. After a change that is meant, record anew and read it:

    .venv/bin/python -m tests.house.recording --write

Without `--write` it compares, and says what differs: structure and words exactly, numbers as numbers (`_is_close`).
All of it takes minutes. Names after that ask for some of it alone, and the other records stay as they are: a page
(`corners`), a whole link, a setting (`corner_width`), a section (`parameters`).

Recorded is what stays the same from one run to the next, on every processor. Masked or left out are: what the clock
measures (the seconds of a training on the spot, tokens a second), versions, the time in a page's origin, the dates of a
table, the line numbers of code that is shown, the size of the film's file (it holds code), the folders of this machine
and its devices, the digests of weights, the name of a file for TensorBoard, what is rounding alone (below 10⁻⁵), and
the style sheet. Nothing is recorded that only the clock ends: the races of encodings and of residual connections,
passes that are timed, and small models that are not solved before their budget is spent.

Of a page that trains a model no number is recorded: a training doubles its rounding every few steps, and no two
processors agree beyond the third digit.

A decision hangs on rounding where two things are equal to seven digits: which answer is the likeliest, which head has
the greatest weight. Such a tie flips a word or a count, and no tolerance helps: show another input in the link.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import dataclasses
import difflib
import io
import json
import lzma
import os
import re
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl, urlencode

import numpy as np
import pytest
import streamlit as st
import torch
from safetensors import safe_open
from streamlit.delta_generator import DeltaGenerator
from streamlit.testing.v1 import AppTest

from dashboard.components.payload import unpack
from dashboard.view.link import View, from_query
from tests.house.digests import NUMBER, component, markup, masked, places_of, shown
from tests.kit.waiting import PATIENCE
from transformer.__main__ import main as command_line
from transformer.training.exchange import archive
from transformer.training.runs import Run

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("recorded.json.xz")
SHIPPED = (
    *("reverse", "reverse-aligned", "reverse-aligned-causal", "reverse-sinusoidal", "reverse-translate"),
    *("bottleneck-gru", "bottleneck-gru-attention", "bottleneck-transformer", "shakespeare"),
)
"""The runs that are looked at; whatever else lies beside them on somebody's machine is not seen."""


# --- the links

D0, D1, X1 = "decoder.0.self_attention", "decoder.1.self_attention", "decoder.1.cross_attention"
STAIRCASE = "painted:16:wADAAOAA-AD4AHwAPwAfAA-AB-AD4AHwAPwAfAA-AB8"
"""A painted mask of 16 positions."""
LOOK = "8x8xff02040810204080"
"""A painted pattern of 8 queries and 8 keys."""
VERSE = "To+be,+or+not+to+be,+that+is+the+question:"
LONG = "+".join([f"{VERSE}+Whether+'tis+nobler+in+the+mind+to+suffer+The+slings+and+arrows+of+outrageous"] * 5)
"""Passages of a text, of some tokens and of more than 128: those are shown from afar."""
LINKS = (
    "overview?run=reverse",
    f"overview?run=reverse&step=0&input=9+8+7+6+5+4+3+2&head={D0}.1&query=12",
    "overview?run=nope&step=3&input=hello&layers=0&foo=<b>&task=bar&positions=bar&train_mask=bar&device=bar&head=bar",
    "overview?run=reverse&task=sort&positions=alibi&layers=3&width=65&train_mask=prefix:3&min_length=4&pace=key&gain=0.3",
    f"heads?run=reverse&head={D1}.2&against=run:reverse-sinusoidal&across=entropy&up=drop&query=12",
    "heads?run=reverse&mean=1&by_row=1&health=probe",
    f"inside?run=reverse&head={D0}.2&query=12&operation=divide",
    "machine?run=reverse&zoom=block&block=decoder.1&box=decoder.1.feed_forward&query=12&step=20&tinted=1",
    f"machine?run=reverse-translate&zoom=head&head={X1}.2",
    "machine?run=bottleneck-gru-attention&input=3+1+4+1+5",
    "block?run=reverse&query=12",
    "block?run=reverse-translate&part=feed_forward&block=decoder.1&query=3",
    "block?run=reverse&part=dropout&dropped=0.3&dropout_seed=2",
    "block?run=reverse&part=parameters&step=20",
    "block?run=reverse&part=logits&query=12&softened=0.5",
    "tokens?run=shakespeare&cut_window=8&cut_at=2",
    "layers?run=reverse&query=12&stage=decoder.1.resid_mid&likeliest=1&through=0",
    "positions?run=reverse&answer=1",
    "positions?run=reverse&encoding=sinusoidal&pe_width=32&pe_length=40&base=100&dimensions=3,5,8&cursor=7&shift=4"
    "&scaled=0",
    "positions?run=reverse&encoding=alibi&pe_heads=8&slope=3&pe_length=30",
    f"order?run=reverse&order=swap:2,10&head={D0}.1",
    f"masks?run=reverse&mask={STAIRCASE}&live=0&input=3+1+4&head={D1}.1",
    f"edits?run=reverse&edits=zero:{D1}.3~-swap:3,5~scale:{D0}.0:0.5~places-shuffle:1&other=2+7+1+8+2+8+1+8",
    f"film?run=reverse&step=13&head={D0}.1",
    "accuracy?run=reverse&sequences=1024&depth=confusion&confused=8&step=20",
    f"accuracy?run=reverse&sequences=256&depth=head&head={D1}.2&edits=zero:{D0}.2",
    "runs?run=reverse&compare=reverse,reverse-translate,reverse-sinusoidal&measure=loss&clock=seconds",
    "populations?run=reverse",
    "lengths?run=reverse&longer=11",
    "corners?run=reverse&corner_attention=scaled-dot&corner_affine=0&corner_width=3&corner_most=4&corner_noise=0.15"
    "&corner_forcing=0.25&corner_seed=4&corner_step=20&corner_given=3&corner_walk=upper+left,+anticlockwise",
    "corners?run=reverse&corner_part=forcing&corner_case=corners-none",
    "context?run=reverse&hand=scores&stretch=2.0&turned=30&walk_start=2&walk_turn=anticlockwise&walk_given=5"
    "&walk_target=2&scores_trained=additive&scores=cosine",
    "questions?run=reverse&asked=1&unrolled=12&stacked=3",
    "questions?run=reverse&asked=2&n_queries=4&n_keys=6&n_values=6&d_query=3&d_key=3&d_value=5&d_stream=7",
    "questions?run=reverse&asked=3",
    "questions?run=reverse&asked=4&deep=4&deep_rate=0.001",
    "questions?run=reverse&asked=5",
    "bottleneck?run=reverse&spoken=12&input=3+1+4+1+5+9+2+6",
    "order?run=reverse-sinusoidal&order=places-shift:3",
    "masks?run=reverse-aligned&mask=causal&retrain=causal&target=3",
    f"edits?run=reverse-aligned&edits=painted:encoder.1.self_attention.0:{LOOK}~mean:encoder.0.self_attention.1",
    "accuracy?run=reverse-aligned-causal&depth=hardest&sequences=1024",
    f"heads?run=reverse-translate&head={X1}.0&against=head:decoder.0.cross_attention.1&across=entropy",
    f"inside?run=reverse-translate&head={X1}.0&query=3&operation=keys",
    f"information?run=reverse-translate&poked=3&replacement=7&beside=head&head={X1}.0&query=4",
    "accuracy?run=reverse-translate&sequences=1024&depth=symbol",
    "inside?run=compiled&input=1+2+3&operation=dot",
    "film?run=compiled",
    "reading?run=compiled",
    "writing?run=compiled",
    "overview?run=bottleneck-gru&architecture=gru&task=reverse-translate&attention=additive&affine=0"
    "&teacher_forcing=0.5",
    "layers?run=bottleneck-gru",
    "mistakes?run=reverse&mistake=normal-draw",
    "exercises?run=reverse",
    f"edits?run=reverse&exercise=two-heads&edits=zero:{D0}.0~zero:{D0}.2",
    "check?run=reverse",
    "imported?run=reverse&imported=nobody",
    "stream?run=reverse",
    "ablation?run=reverse",
    "heads?run=bottleneck-gru-attention&input=3+1+4+1+5+9+2+6+5+3&against=step:0",
    "information?run=bottleneck-gru-attention&input=3+1+4+1+5+9&poked=2",
    "film?run=bottleneck-gru-attention",
    "edits?run=bottleneck-transformer&input=3+1+4+1+5+9&edits=patch-step:decoder.0.cross_attention.0:0"
    "~patch-input:decoder.0.cross_attention.1:2_7_1_8_2_8~-unplaced&other=2+7+1+8+2+8",
    "accuracy?run=bottleneck-transformer&depth=length&measured_length=12&sequences=256",
    f"overview?run=shakespeare&query=7&input={VERSE}&task=text&length=256",
    f"heads?run=shakespeare&input={LONG}&head={D1}.2&window=40,30&query=60",
    f"inside?run=shakespeare&head={D1}.2&operation=weigh&input={VERSE}",
    f"layers?run=shakespeare&input={VERSE}&query=8",
    "positions?run=shakespeare",
    "order?run=shakespeare&order=places-shuffle:2",
    f"masks?run=shakespeare&mask=hide:3&input={VERSE}&target=5",
    f"information?run=shakespeare&input={VERSE}&poked=4&replacement=birds",
    f"edits?run=shakespeare&edits=zero:{D0}.2~shift:{D1}.0:1&input={VERSE}",
    "film?run=shakespeare",
    "accuracy?run=shakespeare&depth=confusion&measured_length=128",
    "runs?run=shakespeare&compare=shakespeare,bottleneck-gru",
    "writing?run=shakespeare&prompt=KING.++&temperature=1.1&top_k=40&top_p=0.9&writing_seed=3&written=40&word=12"
    f"&head={D1}.2",
    f"reading?run=shakespeare&read_work=2&read_place=40&read_word=9&repeated=passages&head={D1}.2",
    "lectures?run=reverse",
    "heads?run=reverse&query=9&lecture=attention&lecture_step=4",
    "accuracy?run=reverse&lecture=masks&lecture_step=1&predict=1",
)
"""Pages and their parameters: every page at least once, with what is hardest on it; ordered by model."""
TRAINING = (
    *("lengths?", "corners?", "context?", "questions?run=reverse&asked=5"),
    "masks?run=reverse-aligned&mask=causal&retrain=causal",
)
"""How the links begin whose pages train a model on the spot."""


def shipped(folder: Path) -> Path:
    """A folder in which the shipped runs are, and no others."""
    for name in SHIPPED:
        (folder / name).symlink_to(ROOT / "checkpoints" / name)
    return folder


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """However busy the machine, a page is drawn with all that is measured for it; and only the shipped runs are there,
    and no texts."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        runs, texts = Path(folder) / "runs", Path(folder) / "texts"
        runs.mkdir()
        monkeypatch.setenv("ATTENTION_LAB_CACHE", str(texts))
        monkeypatch.setattr("dashboard.models.menu.ROOT", shipped(runs))
        monkeypatch.setattr("dashboard.view.session.BEHIND", 0.0)
        monkeypatch.setattr("dashboard.models.background.AT_ONCE", PATIENCE)
        monkeypatch.setattr("dashboard.models.walks.corners.AT_ONCE", PATIENCE)
        monkeypatch.setattr("dashboard.app_pages.text.writing.draft.AT_ONCE", PATIENCE)
        yield


def opened(link: str) -> AppTest:
    """A page, as this link opens it. Its script has the name of its address, wherever it lies in `app_pages`."""
    page, _, query = link.partition("?")
    main = ROOT / "dashboard" / "frame" / "main.py"
    places = (path for path in main.parents[1].rglob(f"app_pages/**/{page}.py") if path.parent.name == page)
    app = AppTest.from_file(str(main), default_timeout=PATIENCE)
    for name, value in parse_qsl(query):
        app.query_params[name] = value
    app.switch_page(str(next(places))).run()
    assert not app.exception, app.exception[0].value
    return app


def view(link: str) -> dict[str, Any]:
    """What a link shows, and the address that the page has written; without numbers where the page trained a model."""
    app = opened(link)
    address = {name: values[0] if isinstance(values, list) else values for name, values in app.query_params.items()}
    page = link.partition("?")[0]
    is_first = link == next(each for each in LINKS if each.startswith(f"{page}?"))
    found = shown(app, is_first, page == "overview")
    if link.startswith(TRAINING):
        st.cache_resource.clear()  # else the next page that shows this model would not train it
        found = {place: [NUMBER.sub("#", line) for line in lines] for place, lines in found.items()}
    return {"address": urlencode(sorted(address.items())), **found}


# --- the link grammar


def parameter(name: str) -> str:
    """A parameter of a link: its kind and default, and what it may be, found by trying."""
    field = next(field for field in dataclasses.fields(View) if field.name == name)
    return f"{field.type}, {field.default!r}: {_allowed(field)}"


def _allowed(field: dataclasses.Field[Any]) -> str:
    def is_read(text: str) -> bool:
        return not from_query({field.name: text})[1]

    if field.type == "bool":
        return " ".join(text for text in ("0", "1", "true", "2", "") if is_read(text))
    if str(field.type).startswith(("int", "float")):
        whole = not str(field.type).startswith("float")
        known = next(value for value in (field.default, 1, 2, 10, 100, 0) if value is not None and is_read(str(value)))
        low, high = (_last(lambda n, side=side: is_read(str(n)), known, side * 2**33, whole) for side in (-1, 1))
        return f"{low:.10g} to {high:.10g}"
    letters = _last(lambda n: is_read("a" * n), 1, 100_000, True)
    odd = {"line ends": "a\nb", "no-break spaces": "a\u00a0b", "NUL": "a\0b"}
    return ", ".join([f"{letters:g} letters", *(name for name, text in odd.items() if is_read(text))])


def _last(is_fine: Callable[[float], bool], inside: float, outside: float, whole: bool) -> float:
    """The last number on the way from one that is fine to one that is not, by halving; it may be negative or broken."""
    for _ in range(100):
        middle = (inside + outside) / 2 if not whole else (int(inside) + int(outside)) // 2
        if middle in (inside, outside):
            break
        inside, outside = (middle, outside) if is_fine(middle) else (inside, middle)
    return float(f"{inside:.6g}") if not whole else inside


# --- the command line

COMMANDS = ("", "train", "resume", "evaluate", "list", "corpus", "lengths", "corners", "generate", "bottleneck")


def command_help(command: str) -> list[str]:
    """The help of a command, as wide as it likes, without its frame and the name of the program."""
    with mock.patch.dict(os.environ, {"COLUMNS": "1000", "NO_COLOR": "1", "TERM": "dumb"}):
        lines = _printed(*command.split(), "--help")
    return [re.sub(r"python -m (dashboard|transformer)\b|attention-lab(?= [A-Za-z])", "…", line) for line in lines]


def _plain(text: str) -> list[str]:
    """Lines without frames, runs of spaces, and the folder of this checkout."""
    text = re.sub(r"[─╭╮╰╯│]+", " ", text.replace(str(ROOT), "…"))
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


OUTPUTS = (
    "list",
    "evaluate reverse-aligned-causal --sequences 512 --device cpu --json",
    "evaluate reverse --sequences 512 --device cpu",
    "generate shakespeare --prompt KING. --tokens 30 --seed 1",
)
"""Commands whose answer is recorded; "list" lists the shipped runs."""


def command_output(command: str) -> list[str]:
    """What a command prints."""
    with tempfile.TemporaryDirectory() as folder:
        words = command.split()
        if words == ["list"]:
            words.append(str(shipped(Path(folder))))
        return _printed(*words)


def _printed(*words: str) -> list[str]:
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
        assert command_line(list(words)) == 0, words
    return _plain(printed.getvalue())


# --- the files of a run

TINY = ("--n-layers", "1", "--n-heads", "2", "--d-model", "16", "--d-ff", "8", "--max-steps", "6", "--device", "cpu")
RUNS = {
    "law": ("--task", "reverse", "--length", "3"),
    "gru": ("--task", "reverse-translate", "--length", "3", "--architecture", "gru"),
    "text": ("--task", "text", "--length", "8", "--min-count", "1", "--text", "play.txt"),
}
"""Small runs that are trained for their files alone."""
PLAY = "".join(
    f"  THE {number} PLAY\n\n\nACT 1\n\n" + "To see, to touch, to know the way of words,\n" * 40
    for number in ("FIRST", "SECOND")
)


def run_files(kind: str) -> dict[str, Any]:
    """The files of a run of a kind, what is in each, and what of it travels in an archive."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        Path("play.txt").write_text(PLAY, encoding="utf-8")
        _printed("train", *RUNS[kind], *TINY, "--out", "a-run")
        folder = Path("a-run")
        files: dict[str, Any] = {}
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            found = file_format(path)
            alike = next((name for name, each in files.items() if found and each == found), None)
            name = re.sub(r"tfevents\..*", "tfevents.…", path.relative_to(folder).as_posix())
            files[name] = f"as {alike}" if alike else found
        return {"files": files, "archive": _listing(archive.pack(Run(folder)))}


def file_format(path: Path) -> Any:
    """The keys of a file and what kind of value each has."""
    if path.suffix == ".json":
        return kinds(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix == ".jsonl":
        return kinds([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
    if path.suffix == ".npz":
        with np.load(path) as found:
            kept = {name: found[name] for name in sorted(found)}
            # A text is as long as its numbers happen to be.
            kind = {name: "text" if each.dtype.kind == "U" else str(each.dtype) for name, each in kept.items()}
            return {name: f"{kind[name]} {list(each.shape)}" for name, each in kept.items()}
    if path.suffix == ".safetensors":
        with safe_open(path, "pt") as found:
            tensors = {name: found.get_slice(name) for name in sorted(found.keys())}
            said = {name: f"{each.get_dtype()} {each.get_shape()}" for name, each in tensors.items()}
            return {"tensors": said, "metadata": sorted(found.metadata() or {})}
    return ""


def kinds(value: Any, path: str = "") -> dict[str, str]:
    """The paths of a JSON value, each with the kinds that stand there."""
    found: dict[str, set[str]] = defaultdict(set)

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for name, each in value.items():
                walk(each, f"{path}.{name}" if path else name)
        elif isinstance(value, list):
            for each in value:
                walk(each, f"{path}[]")
        else:
            found[path].add(type(value).__name__)

    walk(value, path)
    return {path: " or ".join(sorted(names)) for path, names in found.items()}


def _listing(packed: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(packed)) as found:
        return [
            f"{each.filename}, {'deflated' if each.compress_type else 'stored'}, {each.date_time}"
            for each in found.infolist()
        ]


# --- the downloads

GIVEN = ("film?run=reverse", "film?run=shakespeare", "runs?run=reverse")
"""Pages with a button that hands out a file which Python makes."""


def downloads(link: str) -> dict[str, list[str]]:
    """The files that a page's buttons hand out: name, type, and what is in each."""
    asked: list[tuple[str, str, Callable[[], bytes]]] = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        button = DeltaGenerator.download_button

        def noted(self: DeltaGenerator, label: str, data: Any, file_name: str, mime: str, **options: Any) -> Any:
            asked.append((file_name, mime, data))
            return button(self, label, data, file_name, mime, **options)

        monkeypatch.setattr(DeltaGenerator, "download_button", noted)
        opened(link)
    assert asked, f"{link} has nothing to download"
    return {f"{name}, {mime}": _contents(mime, make()) for name, mime, make in asked}


def _contents(mime: str, data: bytes) -> list[str]:
    if mime == "application/zip":
        return _listing(data)
    html = data.decode()
    message = re.search(r'id="film-message">([^<]*)<', html)
    assert message is not None
    without = re.sub(r"(?s)<script.*?</script>|<meta[^>]*>", "", html)
    return [markup(masked(without)), *component(*unpack(base64.b64decode(message[1])))]


# --- all of it, and the difference

ROUNDING = 1e-5
"""What is less is taken for rounding alone: numbers of the order of 1, in 32 bits."""

SECTIONS: dict[str, tuple[tuple[str, ...], Callable[[str], Any]]] = {
    "links": (LINKS, view),
    "parameters": (tuple(field.name for field in dataclasses.fields(View)), parameter),
    "help": (COMMANDS, command_help),
    "output": (OUTPUTS, command_output),
    "runs": (tuple(RUNS), run_files),
    "downloads": (GIVEN, downloads),
}
"""What is recorded: the names in each section, and what makes the record of a name."""


def read_recordings(file: Path = FILE) -> dict[str, dict[str, Any]]:
    """What the file says, by section and name."""
    found: dict[str, dict[str, Any]] = json.loads(lzma.decompress(file.read_bytes()))
    return found


def difference(before: Any, now: Any) -> list[str]:
    """The lines in which two records differ, "-" before and "+" now; none where all is the same but for rounding."""
    old, new = ([line.strip().rstrip(",") for line in _lines(record)] for record in (before, now))
    words = [[NUMBER.sub("#", line) for line in lines] for lines in (old, new)]
    found: list[str] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        pairs = list(zip(old[a:b], new[c:d], strict=True)) if kind == "equal" else []
        changed = [pair for pair in pairs if not _same(*pair)] if pairs else [(line, "") for line in old[a:b]]
        found += [f"{sign} {line}" for pair in changed for sign, line in zip("-+", pair, strict=True) if line]
        found += [] if pairs else [f"+ {line}" for line in new[c:d]]
    return found


def _lines(value: Any) -> list[str]:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).splitlines()


def _same(one: str, other: str) -> bool:
    before, now = NUMBER.findall(one), NUMBER.findall(other)
    return len(before) == len(now) and all(a == b or _is_close(a, b) for a, b in zip(before, now, strict=True))


def _is_close(one: str, other: str) -> bool:
    """Are two written numbers the same but for rounding? That is one unit of the last digit that both show.

    Two processors differ in the seventh digit, so that one rounds up what the other rounds down; more it cannot be. A
    whole number has to be equal, and one with a single digit behind the point, such as the name "head 1.3".
    """
    a, b = (float(text.replace(",", "").replace("−", "-")) for text in (one, other))
    places = min(places_of(text) for text in (one, other))
    exponent = max(int(text.partition("e")[2].replace("−", "-") or 0) for text in (one, other))
    room = 1.001 * 10.0 ** (exponent - places) if places >= 2 else 0.0
    return abs(a - b) <= room or max(abs(a), abs(b)) < ROUNDING


def sections_of(asked: Sequence[str]) -> dict[str, list[str]]:
    """The names of the records that are asked for, by section; all where nothing is. Raises ValueError for no record.

    A page asks for its links and downloads.
    """
    found: dict[str, list[str]] = {section: [] for section in SECTIONS}
    unknown = set(asked)
    for section, (names, _) in SECTIONS.items():
        for name in names:
            if known := {section, name, name.partition("?")[0]}.intersection(asked):
                unknown -= known
            if known or not asked:
                found[section].append(name)
    if unknown:
        raise ValueError(f"nothing is recorded of {', '.join(sorted(unknown))}")
    return found


def main(write: bool, asked: Sequence[str] = (), file: Path = FILE) -> int:
    """Record all, or what is asked for; say what differs from what was recorded, and write it where that is wanted."""
    torch.set_num_threads(1)
    before = read_recordings(file) if file.is_file() else {}
    wanted, changed = sections_of(asked), 0
    found: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    with settled():
        for section, (names, make) in SECTIONS.items():
            kept = before.get(section, {})
            for name in names:
                if name not in wanted[section]:
                    found[section] |= {name: kept[name]} if name in kept else {}
                    continue
                found[section][name] = make(name)
                lines = difference(kept.get(name), found[section][name])
                if lines:
                    changed += 1
                    print("\n    ".join([f"{section}: {name}", *lines]), flush=True)
    print(f"{changed} of {sum(map(len, wanted.values()))} records differ.")
    if write:
        file.write_bytes(lzma.compress(("\n".join(_lines(found)) + "\n").encode(), preset=9 | lzma.PRESET_EXTREME))
    return 0 if write else min(1, changed)


if __name__ == "__main__":
    options = argparse.ArgumentParser(prog="python -m tests.house.recording", description="Compare what a user sees.")
    options.add_argument("--write", action="store_true", help="record what differs")
    options.add_argument("asked", nargs="*", metavar="NAME", help="a page, link, setting or section; nothing is all")
    given = options.parse_args()
    try:
        sections_of(given.asked)
    except ValueError as error:
        options.error(str(error))
    sys.exit(main(given.write, given.asked))
