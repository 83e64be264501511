"""The public face: each name that the packages offer is explained, on one page, and one version and licence hold."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from datetime import date

import pytest
import yaml

import dashboard
import transformer
from tests.kit.checkout import ROOT, script
from transformer.text.corpus import Excerpt

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OFFERED = {"transformer": transformer.__all__, "dashboard": getattr(dashboard, "__all__", [])}
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")
REFERENCE = script("docs/reference.py")


# --- the reference


def test_the_reference_is_what_the_docstrings_say_and_leaves_no_name_out() -> None:
    page = REFERENCE.OUT.read_text(encoding="utf-8")
    assert page == REFERENCE.page(), "run python docs/reference.py"
    assert sorted(re.findall(r"^#### (\w+)$", page, re.MULTILINE)) == sorted(
        name for names in OFFERED.values() for name in names
    )


@pytest.mark.parametrize("package", OFFERED)
def test_every_name_is_explained_and_its_signature_is_the_real_one(package: str) -> None:
    """The page's signatures are read from the sources; these are asked of Python itself."""
    offers = {each.name: each for each in REFERENCE.offers(package)}
    for name in OFFERED[package]:
        offer, found = offers[name], getattr(importlib.import_module(package), name)
        assert found.__name__ == name
        assert inspect.getdoc(found) == ast.get_docstring(offer.node)
        assert len((inspect.getdoc(found) or "").split("\n\n")[0].split()) >= 5, name
        if isinstance(found, type) and issubclass(found, Exception):
            continue
        tree = ast.parse(f"def {REFERENCE.signature(offer)}: ...").body[0]
        assert isinstance(tree, ast.FunctionDef)
        arguments = [*tree.args.posonlyargs, *tree.args.args, tree.args.vararg, *tree.args.kwonlyargs, tree.args.kwarg]
        assert [each.arg for each in arguments if each] == list(inspect.signature(found).parameters)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Transformator'"):
        _ = importlib.import_module(package).Transformator


def test_what_the_pages_for_users_import_is_on_offer() -> None:
    """`from transformer import …` in a page for users names what the reference explains."""
    imports = re.compile(r"^from (transformer|dashboard)[\w.]* import (.+)$", re.MULTILINE)
    texts = [page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    found = [(package, names) for text in texts for package, names in imports.findall(text)]
    named = {(package, name.strip()) for package, names in found for name in names.split(",")}
    assert ("transformer", "observe") in named
    assert {(package, name) for package, name in named if name not in OFFERED[package]} == set()


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
    titles = Excerpt.load(ROOT / "checkpoints" / "shakespeare" / "text.npz").titles
    assert len(titles) == 3
    shown = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8").lower()
    assert [title for title in titles if title.lower() not in shown] == []


def test_the_citation_file_has_what_its_format_requires() -> None:
    """CFF 1.2.0, schema.json: four keys are required; of an entity its name, of a person a name."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    required, optional = {"cff-version", "message", "title", "authors"}, {"abstract", "date-released", "keywords"}
    assert required <= set(cited) <= required | optional | {"license", "type", "version"}
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "software")
    assert [author["name"] for author in cited["authors"]] == [each["name"] for each in PROJECT["authors"]]
    assert all(isinstance(cited[key], str) and cited[key] for key in ("message", "title", "abstract"))
    assert len(set(cited["keywords"])) == len(cited["keywords"]) > 0
    assert (str(cited["version"]), cited["license"]) == (transformer.__version__, PROJECT["license"])
    assert isinstance(cited.get("date-released", date.today()), date)
