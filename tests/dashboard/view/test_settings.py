"""The view and its way through the URL, and whose each of its fields is."""

import ast
import dataclasses
import itertools
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.view.link import FIELDS, View, from_query, limits, own_records
from dashboard.view.settings import Settings
from tests.kit.checkout import ROOT

VALUES = {
    "bool": st.booleans(),
    "str": st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60),
}


def field_values(field: dataclasses.Field) -> st.SearchStrategy:
    kind = str(field.type)
    if kind.startswith(("int", "float")):
        low, high = limits(field.name)
        return st.floats(low, high) if kind.startswith("float") else st.integers(low, high)
    return VALUES[kind]


@given(st.fixed_dictionaries({}, optional={name: field_values(field) for name, field in FIELDS.items()}))
def test_a_view_survives_the_url(values):
    """Defaults are left out."""
    view = View(**values)
    assert from_query(view.to_query()) == (view, [])
    assert set(view.to_query()) == {name for name, value in values.items() if value != FIELDS[name].default}


WHOLE, LEFT_OUT = "cannot be used: it must be a whole number from", "It was left out."
IN_VAIN = {
    "layers": ("0", f"The link's layers=“0” {WHOLE} 1 to 12. Its default 2 stands instead."),
    "corner_width": ("5/3", f"The link's corner_width=“5/3” {WHOLE} 1 to 32. Its default 4 stands instead."),
    "step": ("-1", f"The link's step=“-1” {WHOLE} 0 to 10000000. {LEFT_OUT}"),
    "mean": ("yes", "The link's mean=“yes” cannot be used: it must be 0 or 1. Its default 0 stands instead."),
    "sidebar": ("", "The link's sidebar=“” cannot be used: it must be 0 or 1. Its default 1 stands instead."),
    "learning_rate": (
        "nan",
        "The link's learning_rate=“nan” cannot be used: it must be a number from 1e-05 to 1. Its default 0.005 stands "
        "instead.",
    ),
    "length": ("1e9", f"The link's length=“1e9” {WHOLE} 1 to 512. Its default 8 stands instead."),
    "run": (
        "x" * 500,
        f"The link's run=“{'x' * 29}…” cannot be used: it must be a text of at most 200 printable letters. {LEFT_OUT}",
    ),
    "positions": (
        "a\x00b",
        "The link's positions=“a?b” cannot be used: it must be a text of at most 200 printable letters. Its default "
        "learned stands instead.",
    ),
    "input": (
        "1" * 9000,
        f"The link's input=“{'1' * 29}…” cannot be used: it must be a text of at most 8192 letters. {LEFT_OUT}",
    ),
    "corner_widht": ("5", "The link's “corner_widht” means nothing here. It was left out. Is corner_width meant?"),
    "<script>alert(1)</script>": ("1", "The link's “<script>alert(1)</script>” means nothing here. It was left out."),
}
"""What a link says, and the notice."""


@pytest.mark.parametrize("name", IN_VAIN)
def test_a_notice_says_what_a_link_asked_for_what_may_be_and_what_stands(name):
    text, words = IN_VAIN[name]
    assert from_query({name: text}) == (View(), [words])


@given(st.sampled_from([*FIELDS]), st.text(max_size=80))
def test_a_notice_says_true_limits(name, text):
    """What it says may be in a link is what `from_query` takes."""
    field = FIELDS[name]
    view, notices = from_query({name: text})
    assert len(notices) <= 1
    assert len("".join(notices)) < 200
    if notices:
        assert view == View()
        found = re.search(
            r"it must be (?:a (?:whole )?number from (\S+) to (\S+)\. |0 or 1\.|a text of at most (\d+) )", *notices
        )
        assert found
        if found[1]:
            assert tuple(map(float, found.group(1, 2))) == pytest.approx(limits(name))
            assert not any(from_query({name: each})[1] for each in found.group(1, 2))
        assert (found[3] is not None) == (field.type == "str")
        default = re.search(r"Its default (.*) stands", *notices)
        assert default is None or from_query({name: default[1]}) == (View(), [])


def test_a_link_of_very_many_names_is_read_at_once():
    """No name is compared with all fields where there are more of them than fields."""
    _, notices = from_query({f"layer_{i}": "1" for i in range(10_000)})
    assert not any("meant" in each for each in notices)


def test_what_a_field_may_be_stands_where_it_is_declared():
    """A field without it would be read with no limits at all."""
    expected = {"bool": set(), "str": {"longest", "passage", "of_model"}}
    for name, field in FIELDS.items():
        assert set(field.metadata) == expected.get(field.type, {"limits", "of_model"}), name
        if "limits" in field.metadata and field.default is not None:
            low, high = limits(name)
            assert low <= field.default <= high, name


# --- whose a field is


DASHBOARD = ROOT / "dashboard"
DECLARED = ("settings.py", "link.py")
CHANGES = ("update", "open_run", "with_", "View")
"""Calls whose keywords are fields."""


def called(call: ast.Call) -> str:
    """The name of what is called, without its module or object; empty for what has none."""
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def is_view(node: ast.AST, names: set[str]) -> bool:
    """Is this the view, or what a page keeps for itself of it?"""
    if isinstance(node, ast.Call):
        own = called(node) in ("mine", "of") and ast.unparse(node).endswith("Settings)")
        return own or called(node) in ("settings", "View") or called(node).endswith("Settings")
    if isinstance(node, ast.Name):
        return node.id in names
    return isinstance(node, ast.Attribute) and node.attr == "view"


def views(nodes: list[ast.AST]) -> set[str]:
    """The names that a module gives to the view, or to a part of it."""
    found = set()
    for node in nodes:
        if (
            isinstance(node, ast.arg)
            and node.annotation
            and ast.unparse(node.annotation).endswith(("View", "Settings"))
        ):
            found.add(node.arg)
        if isinstance(node, ast.Assign):
            target, value = node.targets[-1], node.value
            several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=False) if several else [(target, value)]
            found |= {name.id for name, is_given in pairs if isinstance(name, ast.Name) and is_view(is_given, set())}
    return found


def keys(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Dict):
            yield from (key.value for key in node.keys if isinstance(key, ast.Constant))


def named(nodes: list[ast.AST], takers: dict[str, int]) -> Iterator[str]:
    """The fields that a module reads, changes or binds to a widget: by `takers`, functions that are given a field."""
    names = views(nodes)
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_view(node.value, names):
            yield node.attr
        if isinstance(node, ast.Call):
            given = node.args[takers[called(node)] :][:1] if called(node) in takers else []
            yield from (each.value for each in given if isinstance(each, ast.Constant))
            for keyword in node.keywords:
                if called(node) in CHANGES and keyword.arg:
                    yield keyword.arg
                elif called(node) in CHANGES or keyword.arg == "also":
                    yield from keys(ast.walk(keyword.value))


def place(path: Path) -> str:
    """The page's folder of a file, or the storey."""
    storey, *inside = path.relative_to(DASHBOARD).parts
    return "/".join(inside[:2] if len(inside) > 2 else inside[:1]) if storey == "app_pages" else storey


@lru_cache
def places() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Where each field is named; and where else a dictionary has it as a key, as one has that opens another page.

    Lectures name any field, in their files and of the pages that they speak of: they are left out.
    """
    files = [path for path in DASHBOARD.rglob("*.py") if path.name not in DECLARED and place(path) != "lectures"]
    trees = {path: list(ast.walk(ast.parse(path.read_text("utf-8")))) for path in files}
    takers = {"limits": 0, "longest": 0}
    for node in itertools.chain(*trees.values()):
        if isinstance(node, ast.FunctionDef) and "field" in (names := [each.arg for each in node.args.args]):
            takers[node.name] = names.index("field")
    found, opened = defaultdict(set), defaultdict(set)
    for path, nodes in trees.items():
        for name in named(nodes, takers):
            found[name].add(place(path))
        for name in keys(nodes):
            opened[name].add(place(path))
    return found, opened


STOREYS = {path.name for path in DASHBOARD.iterdir()} - {"app_pages"}


def test_what_one_page_alone_needs_is_declared_by_that_page():
    """Else it goes into a file `settings.py` of the page's folder; so `Settings` cannot grow again."""
    found, opened = places()
    where = {field.name: found[field.name] | opened[field.name] for field in dataclasses.fields(Settings)}
    assert {name: at for name, at in where.items() if len(at) < 2 and not at & STOREYS} == {}


def test_what_a_page_keeps_for_itself_is_named_by_that_page_only():
    """What another page or the frame needs as well belongs to `Settings`."""
    found, _ = places()
    for record in own_records():
        page = {place(Path(sys.modules[record.__module__].__file__))}
        assert {
            field.name: found[field.name] for field in dataclasses.fields(record) if found[field.name] != page
        } == {}


def test_a_page_s_settings_import_nothing_at_the_start_but_what_a_field_is():
    """Lectures import them too, and the server does so before it shows anything."""
    for path in DASHBOARD.glob("app_pages/**/settings.py"):
        taken = {node.module for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)}
        assert taken <= {"__future__", "dataclasses", "typing", "dashboard.view.fields"}, path


ONE = """from dataclasses import dataclass
from dashboard.view.fields import number_field, text_field
"""
NEW = (
    ONE
    + """
@dataclass(frozen=True)
class OverviewSettings:
    {name}: int = number_field(4, 1, 32)
"""
)
NEWS, CORNERS = "overview.settings.OverviewSettings", "learn.corners.settings.CornersSettings"
SETTINGS_OF_A_PAGE = {
    "new": (NEW.format(name="brand_new"), ["7 []"]),
    "another page's": (NEW.format(name="corner_width"), ["“corner_width” is declared twice", NEWS, CORNERS]),
    "everybody's": (NEW.format(name="run"), ["“run” is declared twice", NEWS, "dashboard.view.settings.Settings"]),
    "a method's": (NEW.format(name="of"), ["“of” is declared twice", NEWS, "dashboard.view.settings.Settings"]),
    "none": (ONE, ["dashboard.app_pages.overview.settings declares no frozen dataclass"]),
    "not frozen": (NEW.format(name="brand_new").replace("(frozen=True)", ""), ["declares no frozen dataclass"]),
}


@pytest.mark.parametrize(("written", "said"), SETTINGS_OF_A_PAGE.values(), ids=SETTINGS_OF_A_PAGE)
def test_one_file_is_a_setting_of_a_page_and_a_name_that_is_taken_is_said_at_the_start(tmp_path, written, said):
    shutil.copytree(DASHBOARD, tmp_path / "dashboard", ignore=shutil.ignore_patterns("web", "__pycache__", "plotly"))
    (tmp_path / "dashboard/app_pages/overview/settings.py").write_text(written)
    code = (
        "from dashboard.view.link import from_query\n"
        "from dashboard.app_pages.overview.settings import OverviewSettings\n"
        "view, notices = from_query({'brand_new': '7'})\n"
        "print(view.of(OverviewSettings).brand_new, notices)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    last = (done.stderr or done.stdout).splitlines()[-1]
    assert [part for part in said if part not in last] == [], last


def test_a_record_that_is_no_part_of_a_view_is_not_read_from_it():
    with pytest.raises(TypeError, match="Nobodys is no part of a view"):
        View().of(dataclasses.make_dataclass("Nobodys", [("run", str, "")]))
