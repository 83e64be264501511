"""The house stands as it is drawn: imports point one way, plug-ins are found, PyTorch waits until it is needed."""

import ast
import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dashboard.view.pages import PAGES
from tests.kit.checkout import ROOT, script, tracked
from tests.kit.waiting import PATIENCE
from transformer import edits, masks, mistakes, norms, positions, tasks
from transformer.analysis.health import checks
from transformer.foundation.checks import UserError
from transformer.foundation.registry import PlugInError, Registry, folder_names

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MOST_MODULES = 15
REGISTRIES = {
    "positions": positions.ENCODINGS,
    "norms": norms.NORMS,
    "masks": masks.MASKS,
    "tasks": tasks.TASKS,
    "edits": edits.EDITS,
    "mistakes": mistakes.MISTAKES,
    "analysis/health/checks": checks.CHECKS,
}


def ruff(rules: str, *folders: str) -> list[dict[str, Any]]:
    """What ruff finds by these rules, whatever is left out elsewhere."""
    words = ["check", "--isolated", "--no-cache", "--output-format", "json", "--select", rules, *folders]
    done = subprocess.run([sys.executable, "-m", "ruff", *words], cwd=ROOT, capture_output=True, text=True)
    return json.loads(done.stdout)


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


# --- imports point one way


def test_the_contracts_say_what_the_house_needs():
    """A contract that is gone is broken by nobody."""
    contracts = [c for c in PROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "forbidden"]
    forbidden = {
        (source, target) for c in contracts for source in c["source_modules"] for target in c["forbidden_modules"]
    }
    assert forbidden >= {("transformer", target) for target in ("plotly", "streamlit", "dashboard")}
    assert forbidden >= {("dashboard.figures", target) for target in ("torch", "streamlit", "transformer")}


def test_what_needs_no_pytorch_does_not_import_it():
    """The first screen, the list of runs, the help, links, every task and every mask are there before PyTorch is."""
    code = (
        "import sys, numpy as np\n"
        "import transformer.__main__, transformer.config, transformer.training.runs, dashboard.view.link\n"
        "import transformer.analysis.accuracy.ceilings, transformer.analysis.intervals\n"
        "from transformer.masks import MASKS; from transformer.tasks import TASKS\n"
        "for name in MASKS.names(): MASKS[name]().matrix(4)\n"
        "for name in TASKS.names(): TASKS[name](length=3).batch(np.random.default_rng(0), 2)\n"
        "print(*({'torch', 'streamlit', 'plotly', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_no_test_imports_a_test():
    """What tests share lies in tests/kit and in conftest.py: a test that is moved or renamed breaks no other."""
    imports = re.compile(r"^\s*(?:from|import) [\w.]*\btest_\w+|^\s*from \.", re.MULTILINE)
    found = [path for path in files("tests") if imports.search(path.read_text("utf-8"))]
    assert found == []


# --- plug-ins are found


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_file_in_the_folder_is_a_plug_in(kind):
    """No file is left out, in the folder or in one of its folders, and each is what its name says."""
    files = {path.stem.replace("_", "-"): path for path in (ROOT / "transformer" / kind).rglob("[!_]*.py")}
    registry = REGISTRIES[kind]
    assert registry.names() == tuple(sorted(files))
    assert len(files) >= 2
    for name, path in files.items():
        found = registry[name]
        assert issubclass(found, registry.base)
        assert found.__module__ == ".".join(path.relative_to(ROOT).with_suffix("").parts)


MASK = """
from dataclasses import dataclass
from transformer.masks import Mask

@dataclass(frozen=True)
class New(Mask):
    def visible(self, query, key, padding):
        return query > key
"""
NEW = {
    "positions": (
        "from transformer.positions import PositionalEncoding\n"
        "class New(PositionalEncoding): title = description = 'new'\n",
        "RunConfig(model=ModelConfig(positions='brand-new')).to_dict()",
    ),
    "norms": (
        "from transformer.norms import rms\nclass New(rms.RMSNorm): gains = 'one'\n",
        "RunConfig(model=ModelConfig(norm_kind='brand-new')).to_dict()",
    ),
    "masks": (MASK, "RunConfig(model=ModelConfig(mask='brand-new')).to_dict()"),
    "tasks": (
        "from transformer.tasks._layouts import Aligned\nclass New(Aligned):\n    law, verb = 'y = x', 'copies'\n"
        "    def answer(self, question): return question\n",
        "RunConfig(task=TaskConfig(task='brand-new')).to_dict()",
    ),
    "edits/places": (
        "from dataclasses import dataclass\nfrom transformer.edits import PlacesEdit\n"
        "@dataclass(frozen=True)\nclass New(PlacesEdit):\n    title = 'something else'\n"
        "    def apply(self, value): return 2 * value\n",
        "[edits.parse_edit('brand-new').write(), edits.kinds()[-1]]",
    ),
    "analysis/health/checks": (
        "from transformer.analysis.health.case import Check, Finding\nclass New(Check):\n"
        "    order, label, law, formula = 99, 'New', 'It is small.', '1'\n"
        "    def look(self, case): return Finding(True, 'It is.')\n",
        "[check.name for check in checks.checks()]",
    ),
    "mistakes/mask": (
        "from transformer.mistakes import MaskMistake\nclass New(MaskMistake): title = 'Nothing'\n",
        "[mistakes.MISTAKES['brand-new'].name, mistakes.MISTAKES['brand-new'].kind]",
    ),
}
"""Files that are dropped into folders, and how each is then used."""


@pytest.mark.nightly
def test_a_new_file_is_found_and_nothing_else_need_be_touched(tmp_path):
    """A file of each kind, dropped into a copy of the package, is known to the registry, the config and the links."""
    shutil.copytree(ROOT / "transformer", tmp_path / "transformer")
    code = (
        "from transformer import config, edits, masks, mistakes, norms, positions, tasks\n"
        "from transformer.analysis.health import checks\n"
        "from transformer.config import ModelConfig, RunConfig, TaskConfig\n"
        "print(config.__file__)\n"
        "registries = positions.ENCODINGS, norms.NORMS, masks.MASKS, tasks.TASKS, edits.EDITS, mistakes.MISTAKES\n"
        "for found in (*registries, checks.CHECKS):\n"
        "    assert found['brand-new'].__name__ == 'New', found.names()\n"
        "    assert not any('private' in name for name in found.names())\n"
    )
    for kind, (content, use) in NEW.items():
        (tmp_path / "transformer" / kind / "brand_new.py").write_text(content)
        (tmp_path / "transformer" / kind / "_private.py").write_text("raise SystemExit('never imported')\n")
        code += f"print({use})\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    place, *used = done.stdout.splitlines()
    assert str(tmp_path) in place
    assert len(used) == len(NEW)
    assert all("'brand-new'" in line for line in used)


def test_a_plug_in_that_is_not_one_is_refused_with_a_sentence(tmp_path, monkeypatch):
    package = tmp_path / "some_masks"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "nothing.py").write_text("from transformer.masks.causal import Causal\n")
    (package / "two.py").write_text(MASK + MASK.replace("New", "Newer"))
    (package / "two_words.py").write_text(MASK)
    (package / "half.py").write_text("from transformer.masks import Mask\nclass Half(Mask): pass\n")
    (package / "lost.py").write_text("import no_such_library\n")
    (package / "typed.py").write_text("class New(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    registry = Registry(masks.Mask, "some_masks", str(package))
    assert registry.names() == folder_names(package) == (*("half", "lost", "nothing", "two", "two-words", "typed"),)
    assert registry["two-words"].__name__ == "New"
    for name, error, sentence in (
        ("half", PlugInError, r"some_masks\.half cannot be used: it does not define `visible`"),
        (
            "lost",
            PlugInError,
            r"some_masks\.lost cannot be read: ModuleNotFoundError: No module named 'no_such",
        ),
        ("nothing", PlugInError, r"some_masks\.nothing cannot be used: it must define exactly one Mask, and defines 0"),
        ("two", PlugInError, r"some_masks\.two cannot be used: it must define exactly one Mask, and defines 2"),
        ("typed", PlugInError, r"some_masks\.typed cannot be read: SyntaxError: invalid syntax"),
        ("three", KeyError, "no mask named 'three': choose one of half, lost, nothing, two, two-words, typed"),
    ):
        with pytest.raises(error, match=sentence):
            _ = registry[name]
    for name, error in (("typed", PlugInError), ("three", KeyError)):
        with pytest.raises(error, match=re.escape(name)):
            registry.read(name)


def test_what_is_wrong_with_what_was_asked_for_is_said_in_a_sentence():
    """The dashboard says a `UserError` where it is raised; any other fault of the library is a traceback there."""

    def kinds(error: type[Exception]) -> list[type[Exception]]:
        return [error, *(each for kind in error.__subclasses__() for each in kinds(kind))]

    ours = [error for error in kinds(ValueError) if error.__module__.startswith("transformer.")]
    assert len(ours) > 10
    assert [error for error in ours if not issubclass(error, UserError)] == []


# --- the text


PASSING = {"sleep", "monotonic", "perf_counter", "wait_for_timeout"}
"""What a test calls that depends on time passing."""
IN_TIME = {
    "kit/waiting.py": "the one wait for a state",
    "kit/killing.py": "processes are killed at random moments of each phase",
    "transformer/training/test_kills.py": "and servers",
    "transformer/checking/test_bench.py": "code that is slow enough to meet another thread's",
    "dashboard/app_pages/text/test_writing.py": "a text that takes its time",
    "dashboard/app_pages/learn/test_corners.py": "a replay that begins now",
    "dashboard/server/rooms/test_redis.py": "a look at a lease, again and again",
    "dashboard/server/test_descriptors.py": "a look at descriptors, again and again",
    "dashboard/server/test_news.py": "a look at looks, again and again",
    "house/test_deploy.py": "a buffer holds a step of a room for longer than anything else does",
    "house/test_processes.py": "a pause is at least so long",
    "browser/lectures/test_lectures.py": "keys that come as fast as hands are, or a little slower",
    "browser/house/test_steps.py": "keys that come faster than a page is drawn",
    "browser/training/test_live_training.py": "and here",
    "browser/training/test_news.py": "a page is left alone while nothing is new",
}


def test_no_test_waits_for_time_to_pass():
    """A busy machine is not a broken one: tests wait for a state, with `wait_for`."""
    found = set()
    for path in files("tests"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if any(f".{name}(" in text for name in PASSING) else ():
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="clock"))):
                    pass
                case ast.Call(func=ast.Attribute(attr=name)) if name in PASSING:
                    found.add(path.relative_to(ROOT / "tests").as_posix())
    assert found == IN_TIME.keys()


def test_every_name_of_the_library_is_bound():
    """`make lint` does not say so here, where the names of axes stand in annotations as words, between quotes."""

    def stands_in_quotes(found: dict[str, Any]) -> bool:
        place = found["location"]
        line = Path(found["filename"]).read_text("utf-8").splitlines()[place["row"] - 1]
        return line[: place["column"] - 1].count('"') % 2 == 1

    found = ruff("F821", "transformer")
    assert len(found) > 100
    assert [each["message"] for each in found if not stands_in_quotes(each)] == []


def test_what_is_wrong_or_removed_has_one_mark_everywhere():
    texts = [path.read_text("utf-8") for kind in ("py", "js") for path in (ROOT / "dashboard").rglob(f"*.{kind}")]
    assert any("✕" in text for text in texts)
    assert not set("✗✘✖╳☓") & set("".join(texts))


def test_no_folder_has_more_modules_than_one_looks_through():
    """Of Python or JavaScript; `__init__.py` is a folder's caption and does not count."""
    folders = Counter(
        path.parent.relative_to(ROOT).as_posix()
        for top in ("transformer", "dashboard", "tests", "benchmarks")
        for path in (ROOT / top).rglob("*")
        if path.suffix in (".py", ".js") and path.name != "__init__.py"
    )
    assert {folder: modules for folder, modules in folders.items() if modules > MOST_MODULES} == {}
    beside = [
        path for path in (ROOT / "dashboard").iterdir() if path.name not in ("__pycache__", "py.typed", ".streamlit")
    ]
    assert len(beside) <= MOST_MODULES


def test_every_module_and_every_folder_says_what_it_is():
    """A folder does in its `__init__.py`."""
    assert ruff("D100,D104,INP001", "transformer", "dashboard") == []


def test_no_page_is_named_but_in_the_table_of_pages():
    """Streamlit finds a page's script by its path, and `AppTest` by its file's name: both come from the address."""
    found = {path for path in files("dashboard/app_pages") if path.stem == path.parent.name}
    assert found == {Path(page.script) for page in PAGES.values()}


HERE = "|".join(f"/{folder}/" for folder in ("work", "root", "home", "Users"))
BINARY = {".safetensors", ".npz", ".webp", ".png", ".xz", ".woff2"}
REGISTRY = "|".join(
    re.escape(host)
    for host in ("pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".", "unpkg" + ".", "jsdelivr" + ".")
)


def test_nothing_names_the_machine_it_was_written_on_nor_where_packages_come_from():
    """Paths of one machine are of no use on another, and the dashboard loads nothing from anywhere else."""
    named = re.compile(rf"(?<![\w.~-])(?:{HERE})|{REGISTRY}")
    texts = {path: path.read_text(encoding="utf-8", errors="ignore") for path in tracked() if path.suffix not in BINARY}
    assert [f"{path}: {found[0]}" for path, text in texts.items() for found in named.finditer(text)] == []


def test_the_picture_of_the_storeys_is_that_of_the_code():
    """Made by `python docs/storeys.py`."""
    storeys = script("docs/storeys.py")
    assert storeys.OUT.read_text("utf-8") == storeys.drawing()
