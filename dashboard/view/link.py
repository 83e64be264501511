"""The whole view as one frozen record, and its way into the URL and back.

It has the fields of `Settings`, which the frame and several pages share, and those that each page declares for itself:
any dataclass in a file `settings.py` of its folder. These are found, and listed nowhere. A page takes its own by type,
`session.mine(CornersSettings).corner_width`; a widget, a link and a lecture name any field.

What equals its default is left out of the URL; what a URL says that cannot be used falls back, with a notice.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashboard.view.fields import in_link, read, words_of_limits
from dashboard.view.pages import PAGES, SCRIPTS
from dashboard.view.settings import Settings
from transformer.foundation.foreign import shortened

QUOTED = 30
"""The most letters of a link's name or value that a notice repeats."""
ALIKE = 0.8
"""How alike a name and a field's must be, of 1, to ask whether that was meant."""


def own_records() -> list[type]:
    """The records that pages declare for themselves, in the order of the menus. Raises TypeError for an empty file."""
    found: list[type] = []
    for page in PAGES.values():
        path = Path(page.script).with_name("settings.py")
        if path.exists():
            name = ".".join(path.relative_to(SCRIPTS.parents[1]).with_suffix("").parts)
            declared = [each for each in vars(importlib.import_module(name)).values() if is_of(name, each)]
            if not declared:
                raise TypeError(f"{name} declares no frozen dataclass")
            found += declared
    return found


def is_of(module: str, thing: Any) -> bool:
    """Is this a frozen dataclass that a module has declared itself, and not imported?"""
    declared = isinstance(thing, type) and dataclasses.is_dataclass(thing) and thing.__module__ == module
    return declared and thing.__dataclass_params__.frozen


def joined(own: Sequence[type]) -> type:
    """A class with the fields of `Settings` and then of these. Raises TypeError where two of them share a name."""
    places: dict[str, type] = dict.fromkeys(dir(Settings), Settings)
    for record in own:
        for name in (each for each in vars(record) if not each.startswith("__")):
            if name in places:
                one, other = (f"{each.__module__}.{each.__name__}" for each in (places[name], record))
                raise TypeError(f"“{name}” is declared twice for the view and its links: by {one} and by {other}")
            places[name] = record
    return type("Joined", (*reversed(own), Settings), {})  # the fields of the last class come first


if TYPE_CHECKING:
    Joined = Settings  # a page's own are read by type: see `Settings.of`
else:
    Joined = joined(own_records())


@dataclass(frozen=True)
class View(Joined):
    """What is looked at, and what would be trained next: `Settings`, and what each page keeps for itself."""


FIELDS = {field.name: field for field in dataclasses.fields(View)}
OF_MODEL = {name: field.default for name, field in FIELDS.items() if field.metadata.get("of_model")}
"""What is chosen inside a model, and means nothing in another: field and default."""


def limits(name: str) -> tuple[float, float]:
    """The least and the greatest value of a number of the view."""
    low, high = FIELDS[name].metadata["limits"]
    return low, high


def longest(name: str) -> int:
    """The most letters of a text of the view."""
    return int(FIELDS[name].metadata["longest"])


def from_query(query: Mapping[str, str]) -> tuple[View, list[str]]:
    """Read a URL's parameters. What cannot be used is left at its default and named in the notices."""
    values: dict[str, Any] = {}
    notices = []
    for name, text in query.items():
        if not (fault := fault_of(name, text)):
            values[name] = read(FIELDS[name], text)
            continue
        default = in_link(FIELDS[name].default) if name in FIELDS else ""
        stands = f"Its default {default} stands instead." if default else "It was left out."
        near = [] if name in FIELDS or len(query) > len(FIELDS) else get_close_matches(name, FIELDS, 1, ALIKE)
        notices.append(" ".join([f"The link's {fault}.", stands, *(f"Is {each} meant?" for each in near)]))
    return View(**values), notices


def fault_of(name: str, text: str) -> str:
    """Why a parameter of a link cannot be used, "layers=“0” cannot be used: it must be …"; empty where it can."""
    if name not in FIELDS:
        return f"“{shortened(name, QUOTED)}” means nothing here"
    try:
        read(FIELDS[name], text)
    except ValueError:
        return f"{name}=“{shortened(text, QUOTED)}” cannot be used: it must be {words_of_limits(FIELDS[name])}"
    return ""
