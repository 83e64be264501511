"""The health strip: quiet on every page, loud when a law is broken, and true in every number it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.frame import health as frame_health
from dashboard.models import menu
from dashboard.models import model as models_model
from dashboard.parts import redrawing, waiting
from dashboard.view import session
from dashboard.view.pages import PAGES
from tests.kit.pages import PI, RUNS, State, answer, laid_out, link, network, open_page
from tests.kit.strangers import lend
from transformer import attention, observe
from transformer.analysis.health import case
from transformer.analysis.health.checks import CHECKS, checks
from transformer.config import RunConfig

PAD = 11
NAMES = [check.name for check in checks()]
KEPT, BROKEN, SILENT = (
    ":green[:material/check_circle:]",
    ":red[:material/cancel:]",
    ":gray[:material/do_not_disturb_on:]",
)


@pytest.fixture
def forgetting() -> Iterator[None]:
    """Caches that hold nothing of a spoilt model, before and after."""
    caches = (frame_health._checkup, models_model._network)
    for cached in caches:
        cached.clear()
    yield
    for cached in caches:
        cached.clear()


def strip(app: AppTest) -> str:
    """The label of the strip's popover."""
    labels = [block.proto.popover.label for block in app.get("popover")]
    (label,) = (label for label in labels if ":material/" in label)
    return label


def said(app: AppTest) -> str:
    """All that the opened strip says."""
    return "\n".join(element.value for element in (*app.sidebar.markdown, *app.sidebar.caption))


@pytest.mark.daily(3)
@pytest.mark.parametrize("run", RUNS)
def test_the_strip_has_a_mark_for_each_law_whatever_the_page(run: str) -> None:
    marks = [KEPT] * len(NAMES)
    if run.startswith("reverse-aligned"):
        marks[NAMES.index("free")] = SILENT
    if run == "reverse-aligned":
        marks[NAMES.index("probe")] = SILENT
    for page in ("masks", "positions", "runs") if run == "reverse" else ("overview",):
        app = open_page(page, run=run)
        assert strip(app) == f"Health {''.join(marks)}"
        assert not app.error


def test_a_check_of_one_file_is_marked_counted_and_linked(forgetting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    lend(monkeypatch, CHECKS, "small")
    app = open_page(run="reverse", health="small")
    assert strip(app) == f"Health {KEPT * (len(NAMES) + 1)}"
    assert link(app) == {"run": "reverse", "health": "small"}
    assert app.button_group(key="control-health").options[NAMES.index("rows") + 1].endswith(" Small weights")
    assert "The greatest weight is" in said(app)
    assert f"Health: all {len(NAMES) + 1} laws hold." in said(app)


def test_a_link_opens_a_law_and_a_click_another() -> None:
    app = open_page(run="reverse", health="probe")
    assert link(app) == {"run": "reverse", "health": "probe"}
    assert "bit for bit" in said(app)
    app.button_group(key="control-health").set_value("free").run()
    assert link(app) == {"run": "reverse", "health": "free"}
    assert "one pass over the same tokens" in said(app)
    app.switch_page(PAGES["masks"].script).run()
    assert link(app)["health"] == "free"
    assert "without any edits and under its own mask (causal)." in said(app)


@pytest.mark.parametrize("health", ["bar", "rows,probe", "Probe"])
def test_a_law_that_there_is_not_is_named_once(health: str) -> None:
    app = open_page(run="reverse", health=health)
    (notice,) = (warning.value for warning in app.warning)
    assert f"no health law “{health}”" in notice
    assert link(app) == {"run": "reverse"}
    app.run()
    assert not app.warning


def mixed(config: RunConfig) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The padded batch of the checks, by hand: eight sequences from 8 symbols down to 4, the first the input."""
    x = np.random.default_rng([config.training.seed, 3]).integers(0, 10, (8, 8))
    x[0] = PI
    parts = [laid_out(config, x[row : row + 1, :n]) for row, n in enumerate((8, 7, 7, 6, 6, 5, 5, 4))]

    def padded(tensors: list[torch.Tensor]) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence([each[0] for each in tensors], batch_first=True, padding_value=PAD)

    sources = [source for _, source, _ in parts if source is not None]
    return padded([tokens for tokens, _, _ in parts]), padded(sources) if sources else None


@pytest.mark.parametrize("run", RUNS)
def test_the_worst_row_is_the_worst(run: str) -> None:
    model, config = network(run)
    tokens, source = mixed(config)
    seen = observe(model, tokens, source=source)
    app = open_page(run=run, health="rows")
    table, text = app.dataframe[0].value, said(app)
    rows = {site: seen[f"{site}.pattern"].numpy() for site in seen.attentions()}
    off = {site: np.abs(pattern.astype(np.float64).sum(-1) - 1) for site, pattern in rows.items()}
    assert f"Of {sum(each.size for each in off.values()):,} rows" in text
    layer, head, kind, sequence, query = re.findall(
        r"head (\d)\.(\d)(?: \((.*?)\))?, sequence (\d), query “\w+” at (\d+)", text
    )[0]
    stack = {"encoder self-attention": "encoder", "": model.config.architecture}.get(kind, "decoder")
    site = f"{stack}.{layer}.{'cross' if 'cross' in kind else 'self'}_attention"
    place = int(sequence) - 1, int(head), int(query) - 1
    np.testing.assert_allclose(table["weight"], rows[site][place], atol=1e-6)
    keys = source if source is not None and (stack == "encoder" or "cross" in kind) else tokens
    names = [*"0123456789", "SEP", "PAD"]
    assert list(table["key"]) == [f"“{names[key]}” at {i}" for i, key in enumerate(keys[place[0]].tolist(), start=1)]
    assert abs(off[site][place] - max(each.max() for each in off.values())) < 1e-6
    assert "allowed at most 1e-05" in text


@pytest.mark.parametrize("run", ["reverse", "reverse-translate", "compiled"])
def test_free_speech_is_shown_as_it_is_spoken(run: str) -> None:
    model, config = network(run)
    app = open_page(run=run, health="free")
    sequence = int(re.findall(r"below, sequence (\d)", said(app))[0]) - 1
    drawn = np.random.default_rng([config.training.seed, 3]).integers(0, 10, (8, 8))
    question = drawn[sequence].tolist() if sequence else PI
    table = app.dataframe[0].value
    assert [int(token) for token in table["said by itself"]] == answer(model, config, question)
    assert list(table["said by itself"]) == list(table["likeliest in one pass"])


def test_a_broken_law_is_loud_on_every_page_and_says_by_how_much(forgetting: None, monkeypatch) -> None:
    monkeypatch.setattr(attention, "masked_softmax", lambda scores, mask: scores.softmax(-1).masked_fill(~mask, 0))
    model, config = network("reverse")
    tokens, _ = mixed(config)
    with torch.no_grad():
        seen = observe(model, tokens)
    worst = max(float((1 - seen[f"decoder.{layer}.self_attention.pattern"].sum(-1)).max()) for layer in (0, 1))
    marks = [BROKEN if name in ("rows", "probe", "padding", "free") else KEPT for name in NAMES]
    for page in ("masks", "overview"):
        app = open_page(page, run="reverse")
        assert strip(app) == f":red[**4 of {len(NAMES)} broken**] {''.join(marks)}"
        (alarm,) = (error.value for error in app.error)
        assert alarm.startswith("**Rows sum to 1** is broken.")
        assert alarm.endswith("Also broken: No hidden influence, Padding ignored, One by one = one pass.")
    app = open_page(run="reverse", health="rows")
    assert f"**Worst deviation {worst:.2g}**, allowed at most 1e-05" in said(app)
    assert f"Health: 4 of {len(NAMES)} laws are broken." in said(app)


def test_before_the_page_is_painted_nothing_is_checked(forgetting: None, monkeypatch) -> None:
    monkeypatch.setattr(session, "BEHIND", 0.5)
    app = open_page("heads", run="reverse")
    assert not app.get("popover")
    assert not app.dataframe
    assert any("Health: waiting for its check" in caption.value for caption in app.sidebar.caption)
    assert any("about to be measured" in caption.value for caption in app.caption)
    choice = menu.menu()["reverse"]
    app.session_state.seen = models_model.Model.of(choice, choice.snapshots[-1])
    assert strip(app.run()) == f"Health {KEPT * len(NAMES)}"
    assert app.dataframe


@pytest.mark.parametrize("there", [False, True])
def test_the_second_look_waits_for_pytorch(there: bool, monkeypatch) -> None:
    monkeypatch.setattr(session, "BEHIND", 0.5)
    monkeypatch.setattr(waiting, "torch", lambda: object() if there else None)
    monkeypatch.setattr(session, "chosen", lambda: "this model")
    said = [("", "There is no such head."), ("done", "a is back.")]
    seen: dict[str, object] = {}
    monkeypatch.setattr(session.st, "session_state", State(said=said))
    monkeypatch.setattr(session.st, "rerun", lambda: seen.update(asked=True))
    monkeypatch.setattr(session.st, "fragment", lambda draw: lambda *told: (draw(*told), draw(*told)))
    monkeypatch.setattr(redrawing, "ask_for_news", lambda *told: None)
    waiting.after_first_look()
    assert seen == ({"asked": True} if there else {})
    assert ("seen" in session.st.session_state) == there
    assert session.notices() == (["There is no such head."] if there else [])
    assert session.notices("done") == (["a is back."] if there else [])


def test_what_cannot_be_checked_says_why_and_the_page_stands(forgetting: None, monkeypatch) -> None:
    monkeypatch.setattr(case, "MOST_WEIGHTS", 1000)
    app = open_page(run="reverse")
    assert app.title[0].value == "This transformer reads eight digits and writes them backwards."
    assert not app.error
    assert any("Health not checked: to check" in caption.value for caption in app.sidebar.caption)
