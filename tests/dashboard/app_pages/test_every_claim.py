"""What pages say of models is true of them: every claim, on models in which all plug-ins and settings meet.

The models are small and of every state: as they are drawn, half-way, and trained. Each page is opened on each, and
what its claims say is judged by laws that work it out from raw weights (tests/kit/claims/).

One page alone, on all these models, in minutes:

    .venv/bin/pytest tests/dashboard/app_pages/test_every_claim.py --page block
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.view.pages import PAGES
from tests.kit import claims, texts
from tests.kit.claims import LAWS
from tests.kit.claims.combinations import covering, ids
from tests.kit.claims.world import World
from tests.kit.pages import ROOT, open_page, sentences, shown
from tests.kit.runs import untrained
from tests.kit.waiting import PATIENCE
from transformer import checkpoints, masks
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.foundation.claims import Claim
from transformer.masks.painted import Painted
from transformer.norms import NORMS
from transformer.positions import ENCODINGS
from transformer.tasks import TASKS
from transformer.training.recording import develop, record
from transformer.training.runs import Run

claims.enter_all()

LENGTH, SYMBOLS, STEPS = 4, 5, 60
EMPTY = np.tril(np.ones((2 * LENGTH, 2 * LENGTH), dtype=bool)) & (np.arange(2 * LENGTH) != LENGTH)[:, None]
"""A causal mask under which the separator, where the answer begins, may see nothing."""
SETTINGS: dict[str, tuple[Any, ...]] = {
    "made_for": tuple((task, each) for task in TASKS.names() for each in TASKS[task].architectures if each != "gru"),
    "positions": ENCODINGS.names(),
    "norm": ("pre", "post", "none"),
    "norm_kind": NORMS.names(),
    "mask": tuple(str(masks.MASKS[name]()) for name in masks.rules()),
    "residual": (True, True, False),
    "d_ff": (0, 24),
    "lengths": ("fixed", "mixed"),
    "state": ("drawn", "half-way", "trained"),
}
ROWS = [*covering({name: tuple(dict.fromkeys(values)) for name, values in SETTINGS.items()})]
ALIGNED = {"made_for": ("reverse-aligned", "encoder"), "positions": "learned", "norm": "pre", "norm_kind": "layer"}
ALIGNED |= {"residual": True, "d_ff": 0, "lengths": "fixed", "state": "trained"}
CORNERS = [
    ALIGNED | {"mask": "full", "n_layers": 1, "n_heads": 1},
    ALIGNED | {"mask": "block:1"},
    ALIGNED | {"mask": "sliding-window:1", "state": "drawn"},
    ALIGNED | {"made_for": ("sort", "decoder"), "mask": "hide:2", "state": "half-way"},
    ALIGNED | {"made_for": ("reverse", "decoder"), "mask": str(Painted.of(EMPTY))},
    ALIGNED | {"made_for": ("copy", "decoder"), "mask": str(Painted.of(EMPTY)), "n_heads": 1, "state": "drawn"},
    ALIGNED | {"made_for": ("reverse", "encoder"), "mask": "anti-causal", "state": "drawn"},
    ALIGNED | {"mask": "full", "positions": "none"},
    ALIGNED | {"made_for": ("reverse-translate", "encoder-decoder"), "mask": "causal", "n_heads": 1, "length": 1},
]
"""Models of which a page says what it says of few: one head that does it all, queries that see one key or none, a mask
that shows answers, order that nothing tells, and one of everything."""
RECURRENT = [
    {"made_for": ("reverse-translate", "gru"), "attention": attention, "lengths": lengths, "state": state} | more
    for attention, lengths, state, more in (
        ("none", "fixed", "trained", {}),
        ("none", "mixed", "half-way", {"n_layers": 2}),
        ("additive", "fixed", "trained", {}),
        ("dot", "mixed", "trained", {"n_layers": 2, "affine": False}),
        ("scaled-dot", "mixed", "half-way", {}),
        ("uniform", "fixed", "drawn", {}),
        ("dot", "fixed", "drawn", {"length": 1}),
    )
]
"""Recurrent networks, with each attention and without one."""
BY_DAY = ROWS[:: len(ROWS) // 2]
OWN_MODELS = {"lengths", "bottleneck", "corners", "context", "questions", "mistakes", "lectures", "exercises"}
OTHERS = OWN_MODELS | {"tokens", "writing", "reading", "check", "imported", "stream", "ablation", "populations"}
"""Pages that do not speak of the model that is chosen, or only of one that reads a text or was brought in."""
ABOUT = sorted(PAGES.keys() - OTHERS)
PLAIN = {"lectures", "exercises"}
"""Pages whose titles are names of what they are for, and state nothing of a model."""
ANY_MODEL = {"imported", "stream", "ablation"}
"""Pages about a model that is not ours: your_model/test_every_claim_of_your_model.py judges them."""
NO_MODEL = {"populations", "mistakes", "check"}
"""Pages about many trainings, wrong code or a reader's own: tests of their own judge what their titles claim."""
VIEWS: dict[str, list[dict[str, str]]] = {
    "accuracy": [
        {"sequences": "512", "depth": depth}
        for depth in ("training", "head", "symbol", "length", "confusion", "hardest")
    ],
    "overview": [{"sequences": "512"}],
    "masks": [{"live": "0", "sequences": "512"}],
    "inside": [{"operation": step} for step in ("query", "keys", "values", "project", "scale")],
    "edits": [{"paired": "1"}, {"edits": "zero:{stack}.0.self_attention.0"}],
    "block": [
        *({"part": part} for part in ("heads", "norm", "feed_forward", "dropout", "parameters", "logits")),
        *({"part": "heads", "joint": step} for step in ("attend", "mix")),
    ],
    "information": [{}, {"poked": "1", "replacement": "0", "beside": "head"}],
    "machine": [
        {"tinted": "1", "box": "probabilities"},
        {"tinted": "1", "zoom": "block", "block": "{stack}.0", "box": "{stack}.0.self_attention.out"},
        {"zoom": "head", "head": "{stack}.0.self_attention.0", "box": "{stack}.0.self_attention.0.pattern"},
    ],
}
"""More of a page than its address alone shows, and fewer sequences where they are counted by hand."""
OF_RECURRENT: dict[str, list[dict[str, str]]] = {
    "accuracy": [{"sequences": "512", "depth": depth} for depth in ("training", "symbol", "length", "confusion")],
    "overview": [{"sequences": "512"}],
    "information": [{}, {"poked": "1", "replacement": "0"}],
    "machine": [{"tinted": "1"}],
}
"""The same of a recurrent network."""
OTHER_VIEWS: dict[str, list[dict[str, str]]] = {
    "tokens": [
        {},
        {"cut_by": "characters", "cut_window": "12", "cut_text": "The xyzzy,↵ who sees it"},
        {"cut_window": "2", "cut_text": "see it"},
        {"cut_text": "rain"},
    ],
    "writing": [
        {"prompt": "The king", "written": "24"},
        {"prompt": "The king", "written": "6", "temperature": "0.0"},
        {"prompt": "The king", "written": "1", "writing_seed": "3"},
        {"prompt": "The king", "written": "12", "word": "10", "head": "decoder.2.self_attention.1"},
        {"prompt": "The king", "written": "1", "word": "3"},
    ],
    "reading": [
        {},
        {"read_work": "2", "read_place": "300", "read_word": "3", "repeated": "passages"},
        {"read_what": "input", "input": "rain"},
        {"run": "reverse"},
    ],
    "context": [
        {},
        {"walk_given": "6", "walk_turn": "anticlockwise", "scores": "dot", "turned": "90"},
        {"walk_given": "5", "scores": "cosine", "walk_start": "2"},
        {"walk_given": "3", "scores": "uniform"},
        {"walk_given": "6", "stretch": "0.1"},
    ],
    "questions": [
        *({"asked": number} for number in "1245"),
        {"asked": "1", "unrolled": "5", "stacked": "4"},
        {"asked": "2", "n_queries": "1", "n_keys": "1", "n_values": "1"},
        {"asked": "2", "d_query": "3"},
        {"asked": "2", "n_keys": "1"},
        *({"asked": "3", "run": run} for run in ("reverse", "reverse-translate", "bottleneck-gru")),
        {"asked": "4", "deep": "1"},
        *({"asked": "5", "run": run} for run in ("reverse-translate", "reverse-aligned")),
    ],
    "corners": [
        {"corner_step": "0"},
        {"corner_seed": "3", "corner_width": "2", "corner_step": "30", "corner_roll": "d1"},
        {"corner_width": "1", "corner_roll": "e2"},
        {"corner_most": "3", "corner_attention": "dot", "corner_roll": "d2"},
        {"corner_attention": "uniform"},
        {"corner_part": "forcing"},
    ],
}
"""The same of the pages that are not opened on the models of the grid."""


OF_TEXTS = ("app_pages/training/accuracy/text.", "parts/text.")
"""Files that speak of a model that reads a text, on pages that speak of every model."""
TEXT_VIEWS: dict[str, list[dict[str, str]]] = {
    "accuracy": [
        {"sequences": "256"},
        {"measured_length": "1"},
        *({"sequences": "256", "depth": depth} for depth in ("symbol", "confusion", "hardest")),
    ],
    "masks": [{"mask": "sliding-window:3"}],
    "edits": [{}, {"edits": "zero:decoder.0.self_attention.1"}],
}
"""These pages of a model that reads a text."""


def config_of(row: dict[str, Any]) -> RunConfig:
    """The settings of a model of the grid."""
    task, architecture = row["made_for"]
    mixed = row["lengths"] == "mixed" and TASKS[task].may_vary()
    gru = architecture == "gru"
    plain = {"n_layers": 1, "n_heads": 1, "d_ff": 0, "positions": "none", "norm": "none"}
    shape = (plain if gru else {"n_layers": 2, "n_heads": 2}) | {
        name: value for name, value in row.items() if name not in ("made_for", "lengths", "state", "length")
    }
    return RunConfig(
        task=TaskConfig(task=task, length=row.get("length", LENGTH), symbols=SYMBOLS, min_length=2 if mixed else None),
        model=ModelConfig(architecture=architecture, d_model=16, **shape),
        training=TrainingConfig(max_steps=STEPS, device="cpu", learning_rate=1e-2),
    )


def made(folder: Path, row: dict[str, Any]) -> World:
    """A run of these settings, in its folder, at the step that the row asks for."""
    config = config_of(row)
    if row["state"] == "drawn":
        run = untrained(folder / "mine", config)
    else:
        run = Run.create(folder / "mine", config)
        for _ in record(run):
            pass
        for path in [path for number, path in enumerate([*run.snapshots().values()][:-1]) if number % 3]:
            path.unlink()  # a film of every third kept step says as much, and is taken sooner
    assert develop(run)
    steps = [*run.snapshots()]
    step = min(steps, key=lambda each: abs(each - STEPS / 2)) if row["state"] == "half-way" else steps[-1]
    model, config = checkpoints.load(run.snapshot(step))
    return World(run, step, config, model.double())


def open_views(world: World, page: str, heard: list[Claim]) -> Iterator[tuple[World, list[Claim], AppTest]]:
    """A page in each of its views, and what its claims say there."""
    for view in VIEWS.get(page, [{}]) if not world.sizes.recurrent else OF_RECURRENT.get(page, [{}]):
        named = {name: value.format(stack=world.stack) for name, value in view.items()}
        heard.clear()
        app = open_page(page, run="mine", step=str(world.step), **named)
        assert not app.warning, [shown(each.value) for each in app.warning]
        yield world.at(page, named), list(heard), app


ILL_WORDED = re.compile(
    r"\bnan\b|(?<![\d.,])(?<!× )(?<!1 of )\b1 (?:tokens|heads|steps|outputs|cells|vectors|layers|blocks|keys|"
    r"symbols|metrics|numbers)\b"
)
"""What no page says: a number that is none, and one thing in the plural."""


def false_of(world: World, heard: list[Claim], pages: Iterable[str], *, every_word: bool = False) -> list[str]:
    """What is false of what these pages say of a model, and each title of theirs that is no claim.

    Of `every_word` it is seen, too, that it is well worded.
    """
    found = []
    for page in pages:
        for here, said, app in open_views(world, page, heard):
            known, titles = {each.sentence for each in said}, {shown(each.value) for each in app.title}
            found += [f"{page}: the title is no claim: {title!r}" for title in titles - known]
            texts = sentences(app) if every_word else set()
            found += [f"{page}: {text[:200]!r}" for text in texts if ILL_WORDED.search(text)]
            for each in dict.fromkeys(said):
                try:
                    claims.judge(here, each)
                except AssertionError as error:
                    where = f"{page} {dict(here.view)}, {each.name}"
                    found.append(f"{where}: {each.sentence!r}\n    {str(error)[:600]}")
    return found


@pytest.fixture
def asked(request: pytest.FixtureRequest) -> list[str]:
    """The pages that `--page` names; none where all are judged."""
    named: list[str] = request.config.getoption("page")
    if unknown := [name for name in named if name not in ABOUT]:
        raise pytest.UsageError(f"{', '.join(unknown)}: the pages whose claims are judged are {', '.join(ABOUT)}")
    return named


@pytest.mark.parametrize("row", BY_DAY, ids=ids)
def test_what_every_page_says_of_a_model_is_true_of_it(
    row: dict[str, Any], root: Path, heard: list[Claim], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.models.menu.FIRST", "mine")
    false = false_of(made(root, row), heard, asked or ABOUT)
    assert not false, "\n".join(false)


@pytest.mark.nightly
def test_what_pages_say_is_true_of_all_models_and_each_of_its_forms_is_said(
    tmp_path: Path, heard: list[Claim], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each model is shown on every second page, the next one on the others; the corners on all, as all are on those
    that are `asked` for."""
    monkeypatch.setattr("dashboard.models.menu.FIRST", "mine")
    false = []
    for number, row in enumerate(CORNERS + RECURRENT + ROWS):
        root = tmp_path / f"{number}"
        monkeypatch.setattr("dashboard.models.menu.ROOT", root)
        pages = asked or (ABOUT if row in CORNERS else ABOUT[(number + 1) % 2 :: 2])
        if row in RECURRENT:
            pages = [page for page in asked or ABOUT if not PAGES[page].transformer]
        every_word = row in CORNERS
        false += [f"{ids(row)}\n  {each}" for each in false_of(made(root, row), heard, pages, every_word=every_word)]
    assert not false, "\n".join(false)
    elsewhere = tuple(map(folder_of, OTHERS))
    spoken = [*map(folder_of, asked)] or [name for name in LAWS if not name.startswith(elsewhere)]
    never = never_said(spoken, but=OF_TEXTS)
    assert not never, f"no model of the grid came to say these:\n{chr(10).join(never)}"


def folder_of(page: str) -> str:
    """Where the page's own claims stand, as their names begin."""
    return Path(PAGES[page].script).parent.relative_to(ROOT / "dashboard").as_posix() + "/"


def never_said(places: Iterable[str], but: tuple[str, ...] = ()) -> list[str]:
    """The laws of claims of these files or folders that judged no sentence, but those that a test of their own says."""
    names = [name for name in LAWS if name.startswith(tuple(places)) and not name.startswith(but)]
    return [law.called for name in names for law in LAWS[name] if not law.met and not law.rare]


def marked_functions() -> Iterator[str]:
    """The name of every function that is marked as a claim, read from the source: some stand in scripts of pages."""
    for path in (path for package in ("dashboard", "transformer") for path in (ROOT / package).rglob("*.py")):
        file = path.relative_to(ROOT).with_suffix("").as_posix().removeprefix("dashboard/")
        nodes: list[tuple[str, ast.AST]] = [("", ast.parse(path.read_text(encoding="utf-8")))]
        for inside, node in nodes:
            for each in ast.iter_child_nodes(node):
                name = f"{inside}{each.name}" if isinstance(each, ast.FunctionDef | ast.ClassDef) else ""
                if isinstance(each, ast.FunctionDef):
                    if any(isinstance(mark, ast.Name) and mark.id == "claim" for mark in each.decorator_list):
                        yield f"{file}.{name}"
                elif isinstance(each, ast.ClassDef):
                    nodes.append((f"{name}.", each))


def test_every_claim_has_its_laws_and_every_law_its_claim() -> None:
    assert {*marked_functions()} == {*LAWS}


@pytest.mark.nightly
@pytest.mark.parametrize("page", sorted(OTHERS - PLAIN - ANY_MODEL - NO_MODEL))
def test_what_every_other_page_says_is_true_and_its_title_is_a_claim(
    page: str, heard: list[Claim], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each of its views, in which each of its forms is said."""
    for place in ("app_pages.text.writing.draft", "models.walks.corners"):
        monkeypatch.setattr(f"dashboard.{place}.AT_ONCE", PATIENCE)
    usual, folder = "shakespeare" if page in ("tokens", "writing", "reading") else "reverse", folder_of(page)
    for view in OTHER_VIEWS.get(page, [{}]):
        heard.clear()
        run = Run(ROOT / "checkpoints" / view.get("run", usual))
        step = max(run.snapshots())
        model, config = checkpoints.load(run.snapshot(step))
        app = open_page(page, **{"run": run.name} | view)
        titles = {shown(each.value) for each in app.title}
        assert titles
        assert titles <= {each.sentence for each in heard}
        assert not app.warning, [shown(each.value) for each in app.warning]
        world = World(run, step, config, model.double(), page, tuple(view.items()))
        for each in dict.fromkeys(each for each in heard if each.name.startswith(folder)):
            claims.judge(world, each)
    never = never_said([folder])
    assert not never, f"no view of the page says these:\n{chr(10).join(never)}"


@pytest.mark.nightly
def test_what_pages_say_of_a_text_is_true_and_each_of_its_forms_is_said(
    tmp_path: Path, heard: list[Claim], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a small reader, as it is drawn and trained; the titles of these pages are claims."""
    monkeypatch.setattr("dashboard.models.menu.FIRST", "mine")
    for made in (texts.untrained, texts.trained):
        root = tmp_path / made.__name__
        monkeypatch.setattr("dashboard.models.menu.ROOT", root)
        run = made(root / "mine", texts.config())
        step = max(run.snapshots())
        model, config = checkpoints.load(run.snapshot(step))
        for page, view in ((page, view) for page, views in TEXT_VIEWS.items() for view in views):
            heard.clear()
            app = open_page(page, run="mine", **view)
            assert {shown(each.value) for each in app.title} <= {each.sentence for each in heard}
            assert not app.warning, [shown(each.value) for each in app.warning]
            world = World(run, step, config, model.double(), page, tuple(view.items()))
            for each in dict.fromkeys(each for each in heard if each.name.startswith(OF_TEXTS)):
                claims.judge(world, each)
    never = never_said(OF_TEXTS)
    assert not never, f"no view of these pages says these:\n{chr(10).join(never)}"


@pytest.mark.parametrize("page", sorted(PLAIN))
def test_a_plain_title_names_no_number(page: str) -> None:
    (title,) = {shown(each.value) for each in open_page(page).title}
    assert not re.search(r"\d", title)
