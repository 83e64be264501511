"""A page as lines of text: what stands on it in order, and each picture and table as a few numbers.

The lines are made to be compared by eye. Of an array they keep the shape, the mean ± the standard deviation, an "order"
(a weighted sum that is another when values change places), the least and the greatest value, each to four digits of the
greatest. Of many texts they keep the first, the last, a checksum of the words, and mean and order of the numbers in
them; of all else that a figure holds, such as its colours, a checksum. No checksum is of a number.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import unescape
from itertools import groupby
from math import floor, log10, prod
from typing import Any

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

from dashboard.components.payload import unpack

NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+−]?\d+)?")
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b")
LONGEST, SHORT = 90, 24
"""Letters of a text that is kept whole where it may be cut, and of one among many."""
MOST_PLACES = 13
"""Places behind the point: a number that would need as many is written with an exponent."""
FEW, MANY = 6, 3
"""Values of an array that are kept one by one; traces of a figure from which on alike ones stand in one line."""
MASKED = (
    (r"retrained \d+\.\d+ s", "retrained … s"),
    (r"steps and \d+\.\d+ s", "steps and … s"),
    (r"[\d,]+ tokens/s", "… tokens/s"),
    (r"Trains on .*", "Trains on …"),
    (r"--out \S+/", "--out …/"),
    (r"\d(?:\.\d+)? × 10⁻(?:¹[⁰¹²³⁴⁵⁶⁷⁸⁹]|[⁶⁷⁸⁹])", "… × 10⁻…"),
    (r"\b[0-9a-f]{64}\b", "digest"),
    (r"Save the film \(\d+ kB\)", "Save the film (… kB)"),
)
"""What changes from one run to the next, with the files of the code, or by rounding on another machine; and what stands
in its place."""


def masked(text: str) -> str:
    """A text without what is measured by the clock and the like; an icon that is repeated stands there once."""
    for pattern, instead in MASKED:
        text = re.sub(pattern, instead, text)
    return re.sub(r"(:\w+\[:material/\w+:\])\1+", lambda found: f"{found[1]} × {len(found[0]) // len(found[1])}", text)


# --- numbers and texts


def numbers(values: Any, places: int = MOST_PLACES) -> str:
    """An array in a few numbers, with at most so many places behind the point."""
    found = np.asarray(values)
    shape = "×".join(map(str, found.shape))
    whole = found.dtype.kind in "bui"
    flat = found.ravel().astype(np.float64)
    known = flat[np.isfinite(flat)]
    if not len(known):
        return f"{shape} empty"
    write = _writer(float(np.abs(known).max()), whole, places)
    gaps = f", {len(flat) - len(known)} empty" if len(known) < len(flat) else ""
    steps = np.diff(flat)
    if found.ndim < 2 and len(flat) <= FEW:
        return f"{shape or 1}: {' '.join('–' if np.isnan(each) else write(each) for each in flat)}"
    if whole and len(known) == len(flat) and np.all(steps == steps[0]):
        return f"{shape}: {write(flat[0])} to {write(flat[-1])} by {write(steps[0])}"
    mean, order = _mean_and_order(flat, places)
    ends = f"{write(known.min())} to {write(known.max())}"
    spread = _writer(float(np.abs(known).max()), False, places)(known.std())
    return f"{shape}: {mean} ± {spread}, order {order}, {ends}{gaps}"


def _mean_and_order(flat: np.ndarray, places: int = MOST_PLACES) -> tuple[str, str]:
    known = np.isfinite(flat)
    write = _writer(float(np.abs(flat[known]).max()), False, places)
    order = (np.cos(np.arange(len(flat)))[known] * flat[known]).sum() / len(flat) ** 0.5
    return write(flat[known].mean()), write(order)


def in_short(values: Sequence[float], places: int = MOST_PLACES) -> str:
    """Some numbers that stand beside something else: how many, their mean, their order.

    These have no more places behind the point than the numbers themselves were rounded to, where they were: if one is
    rounded to the other side, the mean moves by less than its last digit.
    """
    flat = np.array(values, dtype=np.float64)
    if len(flat) <= 2:
        return " and numbers " + " ".join(f"{each:.4g}" for each in flat) if len(flat) else ""
    mean, order = _mean_and_order(flat, places)
    return f" and {len(flat)} numbers: {mean}, {order}"


def _writer(greatest: float, whole: bool, places: int = MOST_PLACES) -> Callable[[float], str]:
    """How the numbers of an array are written whose greatest is known: to four digits of it, at least two of them
    behind the point."""
    if whole:
        return lambda value: str(int(value))
    digits = min(places, max(2, 3 - floor(log10(greatest)))) if greatest > 0 else 2
    if digits == MOST_PLACES:
        return lambda value: f"{value:.3e}"
    return lambda value: f"{round(value, digits) + 0.0:.{digits}f}"


def texts(values: Sequence[str]) -> str:
    """Some texts: one by one where they are few and short, else the first, the last, a checksum and their numbers."""
    whole = " ".join(f"“{masked(each)}”{f' × {many}' if many > 1 else ''}" for each, many in _runs(values))
    if len(whole) <= LONGEST:
        return f"{len(values)}: {whole}"
    ends = f"“{cut(masked(values[0]), SHORT)}” … “{cut(masked(values[-1]), SHORT)}”"
    return f"{len(values)}: {ends}, {words(whole)}"


def _runs(values: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The texts, and how often each is repeated without a break; one with a rounded number stands alone.

    Whether two such are the same hangs on their last digit.
    """
    for text, same in groupby(values):
        many = len(list(same))
        yield from [(text, 1)] * many if re.search(r"\d\.\d", text) else [(text, many)]


def cut(text: str, letters: int = LONGEST) -> str:
    """The beginning of a text that is too long."""
    return text if len(text) <= letters else f"{text[:letters]}…"


def words(text: str) -> str:
    """A checksum of a text without its numbers, and its numbers in short."""
    found = NUMBER.findall(COLOUR.sub("", text))
    places = min((places_of(each) for each in found if "." in each), default=MOST_PLACES)
    short = in_short([float(each.replace(",", "").replace("−", "-")) for each in found], max(2, places))
    return f"words {checksum(skeleton(text))}{short}" if text else ""


def places_of(number: str) -> int:
    """Digits of a written number behind its point."""
    return len(number.partition("e")[0].partition(".")[2])


def checksum(text: str) -> str:
    """Eight letters that stand for a text: no digit is among them, so that nobody takes a part of it for a number."""
    return f"{zlib.crc32(text.encode()):08x}".translate(str.maketrans("0123456789", "ghijklmnop"))


def skeleton(text: str) -> str:
    """A text with a mark in place of each number and each colour."""
    return NUMBER.sub("#", COLOUR.sub("colour", text))


# --- figures


def figure(found: Mapping[str, Any]) -> list[str]:
    """A Plotly figure, as JSON: a line for its layout, and one for each trace or for many that are alike."""
    layout = {name: value for name, value in found["layout"].items() if name != "template"}
    said = [_flat(value) for path, value in leaves(layout) if path.endswith((".text", "ticktext", ".title"))]
    flat = [text for each in said for text in each if isinstance(text, str)]
    lines = [f"  layout: texts {texts(flat)}; {_rest(leaves(layout))}"]
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for each in found["data"]:
        inside = dict(leaves(each))
        shown = [path for path, value in inside.items() if _is_shown(path, value)]
        groups[each.get("type", "scatter"), *shown].append(inside)
    for (kind, *shown), alike in groups.items():
        together = [alike] if len(alike) >= MANY else [[each] for each in alike]
        lines += [_traces(kind, shown, traces) for traces in together]
    return lines


def _traces(kind: str, shown: Sequence[str], traces: Sequence[Mapping[str, Any]]) -> str:
    """Some traces of one kind: their arrays, one after the other where they are more than one."""
    names = [each["name"] for each in traces if each.get("name")]
    if len(traces) == 1:
        called, joined = " ".join([kind, *(f"“{name}”" for name in names)]), traces[0]
    else:
        called = f"{len(traces)} × {kind} {texts(names)}"
        joined = {path: [value for each in traces for value in _flat(each[path])] for path in shown}
    parts = [f"{path} {_array(joined[path])}" for path in shown]
    other = _rest((path, value) for each in traces for path, value in each.items() if path not in (*shown, "name"))
    return f"  {called}: {'; '.join([*parts, other])}"


def _is_shown(path: str, value: Any) -> bool:
    """Is it an array of numbers, or of texts that can be read?"""
    if not isinstance(value, list):
        return isinstance(value, np.ndarray)
    if "colorscale" in path or not value:
        return False
    is_style = path.startswith(("marker", "textfont", "textposition"))
    return not (is_style and any(isinstance(each, str) for each in _flat(value)))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """What is inside a JSON value, by path; a list of numbers or texts, and a packed array, is one."""
    if isinstance(value, Mapping):
        if "bdata" in value:
            flat = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
            yield path, flat.reshape([int(n) for n in str(value.get("shape", flat.size)).split(",")])
            return
        for name in sorted(value):
            yield from leaves(value[name], f"{path}.{name}" if path else name)
    elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        for each in value:
            yield from leaves(each, f"{path}[]")
    else:
        yield path, value


def _array(value: Any) -> str:
    """A list or an array of numbers, or of texts."""
    if isinstance(value, np.ndarray):
        return numbers(value)
    flat = list(_flat(value))
    if all(each is None or isinstance(each, int | float) for each in flat):
        whole = all(isinstance(each, int) for each in flat)
        try:
            return numbers(np.array(value, dtype=np.int64 if whole else np.float64))
        except ValueError:  # rows of different lengths
            return numbers(np.array(flat, dtype=np.float64))
    return texts(["" if each is None else str(each) for each in flat])


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | np.ndarray):
        for each in value if isinstance(value, list) else value.tolist():
            yield from _flat(each)
    else:
        yield value


def _rest(found: Iterable[tuple[str, Any]]) -> str:
    """All the rest as one checksum, and its numbers in short."""
    flat = [(path, each) for path, value in found for each in _flat(value) if not isinstance(value, np.ndarray)]
    single = [float(each) for _, each in flat if isinstance(each, int | float)]
    other = json.dumps([(path, each) for path, each in flat if not isinstance(each, int | float)])
    return f"style {checksum(skeleton(other))}{in_short(single)}"


# --- components


def component(header: Mapping[str, Any], body: bytes) -> list[str]:
    """What the message of a component says in words, and its arrays; nothing where it shows nothing."""
    if "alt" not in header:
        return []
    if "revision" in header:
        said = {name: value for name, value in header.items() if name not in ("revision", "plotly")}
        return [f"plot {header['revision']}: {_said(said)}", *figure(json.loads(body))]
    kind, arrays = next(found for sign, found in KINDS.items() if sign in header)
    lines = [f"{kind}: {_said({name: value for name, value in header.items() if name != 'series'})}"]
    return lines + [f"  {name} {digest}" for name, digest in arrays(header, body)]


def _said(header: Mapping[str, Any]) -> str:
    """What is said of a picture in words, and the other texts and numbers beside it."""
    other = {name: value for name, value in header.items() if name not in ("alt", "tokens")}
    flat = [masked(each) if isinstance(each, str) else each for _, value in leaves(other) for each in _flat(value)]
    alt = masked(header["alt"])
    found = words(" ".join([alt, *(each for each in flat if isinstance(each, str))]))
    return f"{cut(alt)} {found}{in_short([each for each in flat if isinstance(each, int | float)])}"


def _read(body: bytes, kind: str, offset: int, *shape: int) -> str:
    return numbers(np.frombuffer(body, kind, prod(shape), offset).reshape(shape))


def _levels(body: bytes, offset: int, *shape: int) -> str:
    """Numbers from 0 to 1 that were rounded to 255 levels, to hundredths: one level is less."""
    return numbers(np.frombuffer(body, "u1", prod(shape), offset).reshape(shape) / 255, places=2)


def _grid(header: Mapping[str, Any], body: bytes) -> Iterator[tuple[str, str]]:
    masks = set()
    for each in header["panels"]:
        place = each["pattern"], each["rows"], each["columns"]
        yield f"head {each['name']}", _read(body, "<f4", *place) if header["exact"] else _levels(body, *place)
        if each.get("mask") not in {None, *masks}:
            masks.add(each["mask"])
            yield f"mask of head {each['name']} and others", _read(body, "u1", each["mask"], *place[1:])


def _film(header: Mapping[str, Any], body: bytes) -> Iterator[tuple[str, str]]:
    steps = len(header["patternSteps"])
    for each in header["panels"]:
        shape = steps, each["rows"], each["columns"]
        yield f"head {each['name']}", _levels(body, each["patterns"], *shape)
    for name in ("steps", "values"):
        yield f"loss {name}", _read(body, "<f4", header["loss"][name], header["loss"]["count"])
    shape = len(header["accuracySteps"]), len(header["names"])
    yield "accuracy", _read(body, "<f4", header["accuracy"], *shape)


def _painter(header: Mapping[str, Any], body: bytes) -> Iterator[tuple[str, str]]:
    side = header["n"]
    bits = np.unpackbits(np.frombuffer(body, "u1"), count=side * side)
    yield "cells", numbers(bits.reshape(side, side))


def _passage(header: Mapping[str, Any], body: bytes) -> Iterator[tuple[str, str]]:
    many = len(header["tokens"])
    if "ground" in header:
        yield header["ground"]["title"], _read(body, "<f4", header["ground"]["values"], many)
    if "arcs" in header:
        yield "arcs", _read(body, "<f4", header["arcs"], many)
    yield "tokens", texts(header["tokens"])


def _glances(header: Mapping[str, Any], body: bytes) -> Iterator[tuple[str, str]]:
    yield "weights", _read(body, "<f4", header["weights"], len(header["heads"]), len(header["tokens"]))


def _sheet(header: Mapping[str, Any], body: bytes) -> Iterator[tuple[str, str]]:
    def said(each: Mapping[str, Any]) -> str:
        return texts(each["data"]) if "data" in each else _read(body, each["dtype"], each["offset"], each["count"])

    for series in header["series"]:
        columns = [*(each["at"] for each in series["dims"]), series["values"], *series["extra"]]
        shape = "×".join(each["name"] for each in series["dims"])
        digest = "; ".join(f"{each['name']} {each['dtype']} {said(each)}" for each in columns)
        yield f"series {series['name']} ({shape})", digest


def _arcs(header: Mapping[str, Any], body: bytes) -> Iterator[tuple[str, str]]:
    yield "question", texts(header["question"])
    yield "answer", texts([each["text"] for each in header["said"]])
    if looks := header.get("looks"):
        yield "pattern", _read(body, "<f4", looks["pattern"], *looks["shape"])
        for name in ("rows", "places"):
            yield name, numbers(np.array(looks[name]))


KINDS: dict[str, tuple[str, Callable[[Mapping[str, Any], bytes], Iterator[tuple[str, str]]]]] = {
    "patternSteps": ("film", _film),
    "panels": ("head grid", _grid),
    "squares": ("painter", _painter),
    "weights": ("glances", _glances),
    "separator": ("arcs", _arcs),
    "says": ("passage", _passage),
    "series": ("sheet", _sheet),
}
"""By the field of a message that tells of which kind it is, the kind and its arrays; the first that fits counts."""


# --- elements


def table(frame: pd.DataFrame) -> list[str]:
    """A table: its shape, and a line for each column."""
    lines = [f"table of {len(frame)} rows, {len(frame.columns)} columns"]
    for name in frame.columns:
        column = frame[name]
        is_number = column.dtype.kind in "biuf"
        said = numbers(column.to_numpy()) if is_number else texts([str(each) for each in column])
        lines.append(f"  {name} ({column.dtype}) {'times' if column.dtype.kind == 'M' else said}")
    return lines


def markup(html: str) -> str:
    """HTML of our own: its text, and a checksum of all of it."""
    html = re.sub(r"(?s)<style.*?</style>", "", html)
    html = re.sub(r", line \d+</div>", ", line …</div>", html)
    plain = " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())
    return f"html: {cut(plain)}; {words(html)}" if html.strip() else ""


def origin(html: str) -> str:
    """What a page says of the origin of its numbers, for whatever is saved: whose numbers they are."""
    said = json.loads(unescape(html.partition('data-origin="')[2].partition('"')[0]))
    makers = ", ".join(f"{each['run']} at step {each['step']}" for each in said["makers"])
    return f"origin: {makers}"


def _options(found: Sequence[Any]) -> str:
    shown = [str(each) for each in found]
    if len(shown) > 2 * FEW:
        shown = [*shown[:FEW], "…", shown[-1]]
    return f" of {len(found)}: {', '.join(shown)}"


def widget(element: Any, full: bool) -> str:
    """A widget: its label and its value, and where all of it is asked for its options, ends and help."""
    proto = element.proto
    value = getattr(element, "value", None)
    if hasattr(element, "formatted_values"):
        value = ", ".join(element.formatted_values)
    elif hasattr(element, "format_func") and isinstance(value, list):
        value = ", ".join(map(element.format_func, value))
    elif hasattr(element, "format_func") and value is not None:
        value = element.format_func(value)
    line = f"{element.type} “{masked(proto.label)}”"
    if element.type not in ("button", "download_button", "file_uploader"):
        line += f" = {value}"
    if getattr(proto, "disabled", False):
        line += " (disabled)"
    if not full:
        return line
    if getattr(element, "options", None) and proto.label != "Device":
        line += _options(element.options)
    if hasattr(proto, "min") and hasattr(proto, "step"):
        line += f" from {proto.min:.10g} to {proto.max:.10g} by {proto.step:.10g}"
    return f"{line}, help: {proto.help}" if getattr(proto, "help", "") else line


def lines(block: Any, full: bool) -> list[str]:
    """Everything in a block of a page, in order. With `full`, of widgets everything, else their values alone."""
    found: list[str] = []
    for element in block.children.values():
        if hasattr(element, "children"):
            label = element.proto.popover.label if element.type == "popover" else getattr(element, "label", "")
            found += [f"{element.type} “{masked(label)}”"] if label else []
            found += lines(element, full)
        elif element.type == "bidi_component":
            found += component(*unpack(element.proto.bytes))
        elif element.type == "html":
            said = origin(element.value) if "data-origin" in element.value else markup(element.value)
            found += [said] if said else []
        elif element.type in ("dataframe", "table"):
            found += table(element.value)
        elif element.type == "metric":
            found.append(f"metric: {element.label} = {element.value} {element.delta}".rstrip())
        elif element.type == "progress":
            found.append(f"progress: {element.value} {element.text}")
        elif element.type == "page_link":
            found.append(f"page_link: {element.label} → {element.proto.page}")
        elif hasattr(element, "disabled") or element.type in ("download_button", "file_uploader"):
            found.append(widget(element, full))
        elif element.type != "space":
            found.append(f"{element.type}: {masked(str(element.value))}")
    return found


PANEL = "subheader: Train another"
"""The heading under which the training panel stands in the sidebar."""


def shown(app: AppTest, page_full: bool, sidebar_full: bool) -> dict[str, list[str]]:
    """A page and what stands beside it, of the widgets everything or their values alone. Where the sidebar is not asked
    for in full the training panel, which is the same on every page, is left out, but for what it complains of."""
    beside = [line for line in lines(app.sidebar, sidebar_full) if not line.startswith("origin")]  # as on the page
    if not sidebar_full:
        first = beside.index(PANEL)
        last = next((i for i, line in enumerate(beside) if line.startswith("popover")), len(beside))
        panel = [line for line in beside[first:last] if line.startswith(("error", "warning", "info"))]
        beside = beside[:first] + panel + beside[last:]
    return {"page": lines(app.main, page_full), "sidebar": beside}
