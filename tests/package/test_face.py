"""The public face: each name that the packages offer is explained, on one page, and one version and licence hold."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import tomllib
from datetime import date
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

import dashboard
import transformer

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OFFERED = {"transformer": transformer.__all__, "dashboard": getattr(dashboard, "__all__", [])}
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- the reference


def test_the_reference_is_what_the_docstrings_say(reference: ModuleType) -> None:
    assert reference.OUT.read_text(encoding="utf-8") == reference.page(), "run python docs/reference.py"


def test_the_reference_leaves_no_name_out() -> None:
    titles = re.findall(r"^#### (\w+)$", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(titles) == sorted([*OFFERED["transformer"], *OFFERED["dashboard"]])


@pytest.mark.parametrize(("package", "name"), [(package, name) for package in OFFERED for name in OFFERED[package]])
def test_every_name_is_explained_and_its_signature_is_the_real_one(
    package: str, name: str, reference: ModuleType
) -> None:
    """The page's signatures are read from the sources; these are asked of Python itself."""
    offer = next(each for each in reference.offers(package) if each.name == name)
    found = getattr(importlib.import_module(package), name)
    assert inspect.getdoc(found) == ast.get_docstring(offer.node)
    first = (inspect.getdoc(found) or "").split("\n\n")[0]
    assert len(first.split()) >= 5
    if isinstance(found, type) and issubclass(found, Exception):
        return
    tree = ast.parse(f"def {reference.signature(offer)}: ...").body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = [*tree.args.posonlyargs, *tree.args.args, *filter(None, [tree.args.vararg]), *tree.args.kwonlyargs]
    arguments += filter(None, [tree.args.kwarg])
    assert [each.arg for each in arguments] == list(inspect.signature(found).parameters)


def test_what_the_pages_for_users_import_is_on_offer() -> None:
    """`from transformer import …` in a page for users names what the reference explains."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = [
        (package, name.strip())
        for page in pages
        for package, names in re.findall(
            r"^from (transformer|dashboard)[\w.]* import (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        for name in names.split(",")
    ]
    assert ("transformer", "observe") in found
    assert [(package, name) for package, name in found if name not in OFFERED[package]] == []


# --- version, licence, citation


def test_one_version_is_semantic_and_the_changelog_begins_with_it() -> None:
    assert "version" in PROJECT["dynamic"]
    assert VERSION.fullmatch(transformer.__version__)
    newest = re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == transformer.__version__


def test_the_licence_is_mit_and_names_its_holder() -> None:
    text = " ".join((ROOT / "LICENSE").read_text(encoding="utf-8").split())
    holder = PROJECT["authors"][0]["name"]
    assert PROJECT["license"] == "MIT"
    assert re.match(rf"MIT License Copyright \(c\) \d{{4}} {holder} Permission is hereby granted, free of charge", text)
    assert text.endswith(
        "ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."
    )
    assert PROJECT["license-files"] == ["LICENSE", "docs/licences.md"]


def test_the_licences_name_the_works_that_are_shipped() -> None:
    """The plays of which the run `shakespeare` has parts, as the run itself names them."""
    packed = np.load(ROOT / "checkpoints" / "shakespeare" / "text.npz")["titles"].tobytes()
    (count,) = np.frombuffer(packed[:4], "<u4")
    lengths = np.frombuffer(packed[4 : 4 + 4 * count], "<u4")
    text, titles = packed[4 + 4 * count :].decode("utf-8"), []
    for length in lengths:
        titles, text = [*titles, text[:length]], text[length:]
    assert len(titles) == 3
    shown = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8").lower()
    assert [title for title in titles if title.lower() not in shown] == []


def test_the_citation_file_has_what_its_format_requires() -> None:
    """CFF 1.2.0, schema.json: four keys are required; of an entity its name, of a person a name."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    known = "abstract authors cff-version date-released keywords license message title type version"
    assert set(cited) <= set(known.split())
    assert cited["cff-version"] == "1.2.0"
    assert cited["type"] in ("software", "dataset")
    assert [author["name"] for author in cited["authors"]] == [each["name"] for each in PROJECT["authors"]]
    assert all(isinstance(cited[key], str) and cited[key] for key in ("message", "title", "abstract"))
    assert len(set(cited["keywords"])) == len(cited["keywords"]) > 0
    assert (str(cited["version"]), cited["license"]) == (transformer.__version__, PROJECT["license"])
    assert isinstance(cited.get("date-released", date.today()), date)
