"""The head in focus: what it is sent, what it is compared with, and long inputs in a window and from afar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest

from dashboard.components import head_grid
from dashboard.components.head_grid import HeadGrid, Panel, downsampled
from dashboard.components.payload import unpack
from dashboard.theme import LIGHT
from tests.kit.claims import judge
from tests.kit.claims.world import World
from tests.kit.pages import array, large_head, link, open_page, trace
from transformer import checkpoints
from transformer.analysis import sample as analysis_sample
from transformer.analysis.heads.detail import detail
from transformer.analysis.sample import sample, strongest
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.foundation.claims import Claim
from transformer.model import Transformer, build
from transformer.observation import observe
from transformer.training.runs import Run

ROOT = Path(__file__).resolve().parents[3]
SITE = "decoder.1.self_attention"
SEP = 10
PI = [3, 1, 4, 1, 5, 9, 2, 6]
TOKENS = torch.tensor([[*PI, SEP, *PI[:0:-1]]])


def open_heads(**query: str) -> AppTest:
    return open_page("heads", **query)


def header(app: AppTest, key: str) -> dict[str, Any]:
    """What the message of a figure begins with."""
    headers = [unpack(element.proto.bytes)[0] for element in app.get("bidi_component")]
    return next(each for each in headers if each.get("revision") == key)


def titles(app: AppTest) -> list[str]:
    """The names of the matrices."""
    written = [note["text"] for note in large_head(app)[0]["annotations"] if note["y"] == 1]
    return [text.removeprefix("<b>").removesuffix("</b>") for text in written if "<b>" in text]


def network(name: str = "reverse", step: int | None = None) -> Transformer:
    return checkpoints.load(Run(ROOT / "checkpoints" / name).snapshot(step))[0]


# --- what a reading writes


@pytest.mark.parametrize("task", ["reverse", "reverse-aligned", "reverse-translate"])
@pytest.mark.parametrize("changes", [{}, {"norm": "post", "positions": "rotary"}, {"norm": "none", "d_ff": 0}])
def test_a_contribution_is_the_length_of_what_is_written(task: str, changes: dict[str, Any]) -> None:
    """By hand: |pattern| times the length of (x W_V + b_V) W_O, a head's rows of W_O at a time."""
    config = RunConfig(task=TaskConfig(task=task, length=5), model=ModelConfig(n_heads=2, d_model=8, **changes))
    model, law = build(config).eval(), config.build_task()
    question = np.array([3, 1, 4, 1, 5])
    batch = law.encode([question])
    source = None if batch.source is None else torch.from_numpy(batch.source)
    seen = observe(model, torch.from_numpy(batch.tokens), source=source)
    for site in seen.attentions():
        block = model.get_submodule(site.rsplit(".", 1)[0])
        attention = model.get_submodule(site)
        if site.endswith("cross_attention"):
            looked_at = seen["encoder.memory"]
        else:
            looked_at = block.around_self.before(seen[f"{site.rsplit('.', 1)[0]}.resid_pre"])
        found = detail(model, law, question, site)
        pattern = seen[f"{site}.pattern"][0].numpy()
        np.testing.assert_array_equal(found.pattern, pattern)
        np.testing.assert_array_equal(found.mask, np.broadcast_to(seen[f"{site}.mask"][0, 0], pattern.shape[1:]))
        assert pattern.shape[1:] == (len(found.queries), len(found.keys))
        with torch.no_grad():
            value = (looked_at @ attention.value.weight.T + attention.value.bias)[0].numpy()
            weight = attention.out.weight.numpy()
        for head in range(2):
            rows = slice(4 * head, 4 * head + 4)
            written = np.linalg.norm(value[:, rows] @ weight[:, rows].T, axis=1)
            expected = pattern[head] * written[None, :]
            np.testing.assert_allclose(found.contribution(head), expected, rtol=1e-4, atol=1e-5)


# --- long inputs


@pytest.mark.parametrize("shape", [(4, 4), (5, 7), (1, 9), (8, 3)])
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_a_block_is_its_strongest_cell(shape: tuple[int, int], factor: int) -> None:
    cells = np.random.default_rng(0).random(shape, dtype=np.float32)
    rows, columns = (-(-size // factor) for size in shape)
    expected = np.array(
        [
            [cells[r * factor : (r + 1) * factor, c * factor : (c + 1) * factor].max() for c in range(columns)]
            for r in range(rows)
        ]
    )
    np.testing.assert_array_equal(downsampled(cells, factor), expected)
    np.testing.assert_array_equal(strongest(torch.from_numpy(cells)[None, None], factor)[0, 0].numpy(), expected)
    some = cells > 0.7
    visible = strongest(torch.from_numpy(some)[None, None], factor)[0, 0]
    assert visible.dtype == torch.bool
    np.testing.assert_array_equal(visible.numpy(), downsampled(some, factor))


def test_a_sample_of_a_long_input_is_downsampled_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    config = RunConfig(task=TaskConfig(length=8), model=ModelConfig(n_heads=2, d_model=8))
    model, task = build(config).eval(), config.build_task()
    whole = sample(model, task, np.array(PI))
    monkeypatch.setattr(analysis_sample, "WHOLE", 6)
    coarse = sample(model, task, np.array(PI))
    assert coarse.predicted == whole.predicted
    np.testing.assert_array_equal(coarse.confidence, whole.confidence)
    for site, attention in coarse.attentions.items():
        exact = whole.attentions[site]
        assert (attention.factor, attention.whole, exact.factor, exact.whole) == (3, (16, 16), 1, None)
        for head in range(2):
            np.testing.assert_array_equal(attention.pattern[head], downsampled(exact.pattern[head], 3))
        np.testing.assert_array_equal(attention.mask, downsampled(exact.mask, 3))
        assert attention.queries[:2] == ("1–3", "4–6")


def test_many_cells_are_downsampled_before_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_grid, "MOST_CELLS", 40)
    random = np.random.default_rng(0)
    cells, names = random.random((2, 7, 7), dtype=np.float32), tuple("abcdefg")
    panels = [Panel(f"0.{i}", "", 0, i, cells[i], np.tri(7, dtype=bool), names, names) for i in range(2)]
    header, body = unpack(HeadGrid(panels, key="grid", focus=None, alt="Heads.").pack(LIGHT))
    assert header["focus"] is None
    for panel, record in zip(panels, header["panels"], strict=True):
        assert (record["rows"], record["columns"], record["factor"], record["whole"]) == (4, 4, 2, [7, 7])
        values = np.frombuffer(body, "<f4", 16, record["pattern"]).reshape(4, 4)
        np.testing.assert_array_equal(values, downsampled(panel.pattern, 2))
        mask = np.frombuffer(body, np.uint8, 16, record["mask"]).reshape(4, 4)
        np.testing.assert_array_equal(mask, downsampled(panel.mask, 2))


def test_a_long_input_is_shown_in_a_window_and_from_afar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.parts.head_focus.LONG", 10)
    monkeypatch.setattr("dashboard.parts.head_focus.WINDOW", 6)
    monkeypatch.setattr("dashboard.parts.head_focus.FINEST", 8)
    seen = observe(network(), TOKENS)
    pattern, mask = seen[f"{SITE}.pattern"][0, 2].numpy(), np.tri(16, dtype=bool)
    large, values = large_head(open_heads(run="reverse", head=f"{SITE}.2", window="12,9"))
    inside = slice(8, 14), slice(5, 11)
    task = Run(ROOT / "checkpoints" / "reverse").config.build_task()
    written = detail(network(), task, np.array(PI), SITE).contribution(2)
    for name, cells in (("pattern", pattern), ("contribution", written)):
        np.testing.assert_allclose(values[name], np.where(mask, cells, np.nan)[inside], atol=1e-4)
    blocks_seen = downsampled(mask, 2)
    np.testing.assert_allclose(values["whole"], np.where(blocks_seen, downsampled(pattern, 2), np.nan), atol=1e-5)
    names = [str(token) if token != SEP else "SEP" for token in TOKENS[0].tolist()]
    assert large["tokens"] == {"x": names[5:11], "y": names[8:14]}
    assert "queries 9 to 14 of 16, keys 6 to 11 of 16" in large["note"]


@pytest.mark.parametrize("site", [SITE, "decoder.0.self_attention"])
def test_the_window_is_around_the_strongest_cell_of_the_pattern(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the contribution lies apart; it is shown of the same tokens."""
    monkeypatch.setattr("dashboard.parts.head_focus.LONG", 8)
    monkeypatch.setattr("dashboard.parts.head_focus.WINDOW", 2)
    task = Run(ROOT / "checkpoints" / "reverse").config.build_task()
    seen, found = observe(network(), TOKENS), detail(network(), task, np.array(PI), site)

    def strongest_cells(head: int) -> tuple[np.ndarray, np.ndarray]:
        """Those of the pattern and of the contribution, but for the first query, which has one key alone."""
        matrices = seen[f"{site}.pattern"][0, head].numpy(), found.contribution(head)
        return tuple(np.argwhere(cells == cells[1:].max())[-1] for cells in matrices)  # type: ignore[return-value]

    head = max(range(4), key=lambda head: abs(np.subtract(*strongest_cells(head))[0]))
    (row, column), (other, _) = strongest_cells(head)
    assert abs(row - other) > 2
    large, values = large_head(open_heads(run="reverse", head=f"{site}.{head}"))
    (bottom, top), (left, right) = large["yaxis"]["range"], large["xaxis"]["range"]
    assert top < row + 1 < bottom
    assert left < column + 1 < right
    shown = found.contribution(head)[int(top) : int(bottom), int(left) : int(right)]
    np.testing.assert_allclose(np.nan_to_num(values["contribution"]), shown, atol=1e-4)


def test_a_glance_from_afar_speaks_of_tokens_and_not_of_its_blocks(
    monkeypatch: pytest.MonkeyPatch, heard: list[Claim]
) -> None:
    monkeypatch.setattr("dashboard.parts.head_focus.LONG", 6)
    app = open_page(run="reverse", head=f"{SITE}.2", query="12")
    large, values = large_head(app)
    pattern = observe(network(), TOKENS)[f"{SITE}.pattern"][0, 2].numpy()
    np.testing.assert_allclose(np.nan_to_num(values["pattern"]), downsampled(pattern, 3), atol=1e-5)
    assert large["locked"] == 9  # the twelfth query is the last of the fourth block
    said = header(app, "overview-pattern")["alt"]
    (claimed,) = {each for each in heard if each.name.endswith("head_focus.strongest")}
    assert claimed.sentence
    assert said.endswith(claimed.sentence)
    judge(World.of(Run(ROOT / "checkpoints" / "reverse")), claimed)
    captions = [caption.value for caption in app.caption]
    assert any(text.startswith("Each cell: the strongest of 3 × 3. Row = query") for text in captions)
    assert any("Head 1.2: layer 1, head 2, counted from 0." in text for text in captions)


def test_a_click_locks_a_query_or_moves_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    clicks: Iterator[dict[str, Any]] = iter(
        [{}, {"lock": 3}, {"lock": -1}, {"window": {"row": 11, "column": 8}}, {"lock": 400}]
    )

    def clicked(*_: Any, key: str, on_click: Callable[[], None], **options: Any) -> None:
        st.session_state[key] = {"click": next(clicks)}
        on_click()

    app = open_heads(run="reverse", query="2")
    monkeypatch.setattr("dashboard.parts.head_focus.plot", clicked)
    for query, window in (("2", None), ("4", None), (None, None), (None, "12,9"), (None, "12,9")):
        found = {"run": "reverse", "query": query, "window": window}
        assert link(app.run()) == {name: value for name, value in found.items() if value}


@pytest.mark.daily(1)
@pytest.mark.parametrize("window", ["99,1", "x", "0,0", "1,2,3"])
def test_a_window_that_is_nowhere_falls_back_with_a_notice(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.parts.head_focus.LONG", 10)
    app = open_heads(run="reverse", window=window)
    assert [warning.value for warning in app.warning] == [
        f"There is no place “{window}” in this input; the window is on the strongest cell."
    ]
    assert link(app) == {"run": "reverse"}


# --- the difference


def pattern_of(model: Transformer, site: str = SITE, head: int = 2, x: Sequence[int] = PI) -> torch.Tensor:
    """What a head reads while the model says its own answer."""
    asked = torch.tensor([[*x, SEP]])
    said = model.continue_greedily(asked, 8)
    return observe(model, torch.cat([asked, said[:, :-1]], dim=1))[f"{site}.pattern"][0, head]


@pytest.mark.parametrize(
    ("against", "other"),
    [
        ("head:decoder.0.self_attention.1", lambda: pattern_of(network(), "decoder.0.self_attention", 1)),
        ("step:0", lambda: pattern_of(build(Run(ROOT / "checkpoints" / "reverse").config).eval())),
        ("run:reverse-sinusoidal", lambda: pattern_of(network("reverse-sinusoidal"))),
        ("input:0 0 1 2 3 4 5 6", lambda: pattern_of(network(), x=[0, 0, 1, 2, 3, 4, 5, 6])),
    ],
)
def test_a_head_is_compared(against: str, other: Callable[[], torch.Tensor]) -> None:
    app = open_heads(run="reverse", head=f"{SITE}.2", against=against)
    large, values = large_head(app)
    expected = (pattern_of(network()) - other()).numpy()
    np.testing.assert_allclose(np.nan_to_num(values["difference"]), expected, atol=1e-5)
    most = np.abs(expected).max()
    assert (large["coloraxis3"]["cmin"], large["coloraxis3"]["cmax"]) == (pytest.approx(-most), pytest.approx(most))
    makers = [maker["run"] for maker in header(app, "head-pattern").get("makers", [])]
    others = {"step:0": "reverse", "run:reverse-sinusoidal": "reverse-sinusoidal"}  # weights other than its own
    assert makers == (["reverse", others[against]] if against in others else [])


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("against", "reason"),
    [
        ("head:decoder.7.self_attention.1", "there is no head"),
        ("head:x", "there is no head"),
        ("step:12345", "no weights were kept of step 12345"),
        ("step:-1", "no weights were kept"),
        ("run:nope", "there is no run “nope”"),
        ("run:reverse-translate", "reverse-translate has a pattern of 8 × 8, this head one of 16 × 16"),
        ("run:reverse-aligned", "has no head"),
        ("input:3 1 4", "other input has a pattern of 6 × 6"),
        ("input:z", "z"),
        ("input", "type 1 to 8 symbols"),
        ("colour:blue", "“colour” is none of head, step, run, input"),
    ],
)
def test_what_cannot_be_compared_says_why(against: str, reason: str) -> None:
    app = open_heads(run="reverse", head="decoder.1.self_attention.3", against=against)
    (warning,) = (warning.value for warning in app.warning)
    assert warning.startswith("Nothing to compare with: ")
    assert reason in warning
    assert link(app) == {"run": "reverse", "head": "decoder.1.self_attention.3"}


def test_the_menus_choose_the_difference_and_take_it_away() -> None:
    app = open_heads(run="reverse")
    worker = large_head(app)[0]["name"]
    app.selectbox(key="control-against").select("head").run()
    first = next(name for name in app.selectbox(key="control-against-head").options if name != f"head {worker}")
    assert titles(app)[2] == f"Pattern − {first}"
    app.selectbox(key="control-against").select("step").run()
    assert titles(app)[2] == "Pattern − step 0"
    app.selectbox(key="control-against").select("input").run()
    app.text_input(key="control-against-input").set_value("nonsense").run()
    assert not app.exception
    assert "Nothing to compare with" in app.warning[0].value
    app.selectbox(key="control-against").select("").run()
    assert len(titles(app)) == 2
    assert link(app) == {"run": "reverse"}


# --- the view


def test_the_mean_and_the_scale_by_row_are_part_of_the_link() -> None:
    app = open_heads(run="reverse")
    app.toggle(key="control-by_row").set_value(True).run()
    _, values = large_head(app)
    scaled = array(trace(app, "head-pattern", "pattern")["z"])
    np.testing.assert_allclose(
        scaled, values["pattern"] / np.nanmax(values["pattern"], axis=1, keepdims=True), rtol=1e-5
    )
    app.toggle(key="control-mean").set_value(True).run()
    assert titles(app) == ["Mean pattern"]
    assert large_head(app)[0]["says"] is None
    assert list(large_head(app)[1]) == ["pattern"]
    assert link(app) == {"run": "reverse", "by_row": "1", "mean": "1"}


@pytest.mark.parametrize(("query", "locked"), [("9", 8), ("4000", None)])
def test_a_link_locks_a_query_and_the_picture_says_the_answer(query: str, locked: int | None) -> None:
    large, _ = large_head(open_heads(run="reverse", query=query))
    assert large["locked"] == locked
    assert large["says"][8:] == [str(token) for token in PI[::-1]]
