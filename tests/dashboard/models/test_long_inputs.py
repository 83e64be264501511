"""Long inputs from afar: one token of each block is poked, and neighbours are patched together.

Numbers are compared with loops over single tokens, by plain calls of the model, and with patches of single places.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.whole_model.information.blocks import Grain, factor_of
from dashboard.app_pages.whole_model.information.figures import Moved, moved_strip
from dashboard.app_pages.whole_model.information.influence import words_to_try
from tests.kit import texts
from tests.kit.models import untrained as unpolished
from tests.kit.pages import array, figures, link, open_page, trace
from transformer import checkpoints, observe
from transformer.analysis.interventions.influence import gradients, poke
from transformer.analysis.interventions.patching import patching
from transformer.config import RunConfig, TaskConfig
from transformer.edits import Patch
from transformer.model import Transformer
from transformer.tasks import Question, Task
from transformer.training.runs import Run

LONG = 300
"""Tokens of the long passage: 43 blocks of seven."""
FACTOR = 7


def config() -> RunConfig:
    small = texts.config(n_heads=2, d_model=16, d_ff=16)
    return replace(small, task=replace(small.task, length=LONG))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader of long passages, its weights as they were drawn."""
    root = tmp_path_factory.mktemp("runs")
    texts.untrained(root / "reader", config())
    return root


@pytest.fixture(autouse=True)
def root(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("dashboard.models.menu.ROOT", made)
    monkeypatch.setattr("dashboard.models.menu.FIRST", "reader")
    return made


@pytest.fixture(scope="module")
def reader(made: Path) -> Transformer:
    return checkpoints.load(Run(made / "reader").snapshot())[0]


@pytest.fixture(scope="module")
def task() -> Task:
    return config().build_task()


@pytest.fixture(scope="module")
def passage(task: Task) -> Question:
    (drawn,) = task.draw(np.random.default_rng(0), 1, LONG)
    return drawn


def logits_of(model: Transformer, read: list[int]) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([read]))[0].numpy()


def moves_by_hand(model: Transformer, read: list[int], slot: int, tokens: range) -> np.ndarray:
    """The greatest |Δlogit| of every output when a slot holds each of some tokens: one call each."""
    before, found = logits_of(model, read), []
    for token in tokens:
        after = logits_of(model, [*read[:slot], token, *read[slot + 1 :]])
        found.append(np.abs(after - before).max(axis=1))
    return np.max(found, axis=0)


def slopes_by_hand(model: Transformer, read: list[int], output: int) -> np.ndarray:
    """How long the gradient of an output's greatest logit is, slot by slot, with PyTorch's own hook."""
    leaves: list[torch.Tensor] = []

    def begin(_module: object, _inputs: object, embedded: torch.Tensor) -> torch.Tensor:
        leaves.append(embedded.detach().requires_grad_())
        return leaves[0]

    hook = model.embedding.register_forward_hook(begin)
    model(torch.tensor([read]))[0, output].max().backward(inputs=leaves)
    hook.remove()
    scale = model.config.d_model**0.5 if model.config.scale_embeddings else 1.0
    return (leaves[0].grad[0].norm(dim=-1) / scale).numpy()


def said(app: AppTest) -> str:
    return "\n".join(each.value for each in (*app.title, *app.markdown, *app.caption))


# --- blocks


@pytest.mark.parametrize(("n_source", "n_tokens", "factor"), [(0, 9, 1), (0, 10, 3), (5, 7, 2), (4, 4, 4), (7, 3, 5)])
def test_a_block_is_the_greatest_of_its_cells_and_holds_the_slot_that_is_poked(
    n_source: int, n_tokens: int, factor: int
) -> None:
    rng = np.random.default_rng(factor)
    source, read, outputs = (
        ["a" * int(n) for n in rng.integers(1, 9, size)] for size in (n_source, n_tokens, n_tokens)
    )
    values = rng.random((n_tokens, n_source + n_tokens))
    parts = [list(range(at, min(at + factor, n_source))) for at in range(0, n_source, factor)]
    parts += [[n_source + p for p in range(at, min(at + factor, n_tokens))] for at in range(0, n_tokens, factor)]
    rows = [list(range(at, min(at + factor, n_tokens))) for at in range(0, n_tokens, factor)]
    grain = Grain.of(source, read, outputs, factor, words=True)
    assert [grain.column(slot) for slot in range(n_source + n_tokens)] == [i for i, p in enumerate(parts) for _ in p]
    assert grain.by_row(values).tolist() == [
        [max(values[i, j] for i in row) for j in range(n_source + n_tokens)] for row in rows
    ]
    assert grain.by_block(values).tolist() == [
        [max(values[i, j] for i in row for j in part) for part in parts] for row in rows
    ]
    assert grain.by_block(values > 0.9).tolist() == [
        [any(values[i, j] > 0.9 for i in row for j in part) for part in parts] for row in rows
    ]
    names = [*source, *read]
    for poked, part in zip(grain.poked, parts, strict=True):
        assert poked == next(slot for slot in part if len(names[slot]) == max(len(names[each]) for each in part))
    assert len(grain.column_labels) == len(grain.column_places) == len(parts)
    last = n_source + n_tokens - 1
    assert grain.poking(last).poked == (*grain.poked[:-1], last)
    firsts = Grain.of(source, read, outputs, factor, words=False)
    assert (list(firsts.poked), list(firsts.standing)) == ([part[0] for part in parts], [row[0] for row in rows])


def test_places_of_blocks_count_from_one_on_either_side() -> None:
    grain = Grain.of("abcde", "fgh", "xyz", 2, words=False)
    assert grain.column_places == ["1–2 of the source", "3–4 of the source", "5 of the source", "1–2", "3"]
    assert (grain.row_places, grain.n_source_columns) == (["1–2", "3"], 3)
    assert (grain.place(4), grain.place(6)) == ("'e' at 5 of the source", "'g' at 2")


@pytest.mark.parametrize(
    ("parts", "affordable", "factor"),
    [([128], 1e9, 1), ([129], 1e9, 3), ([512], 1e9, 11), ([512], 38.1, 14), ([100], 99.9, 3), ([64, 65], 1e9, 3)],
)
def test_blocks_are_as_small_as_can_be_afforded_and_seen(parts: list[int], affordable: float, factor: int) -> None:
    assert factor_of(parts, affordable) == factor
    assert factor_of([7, 5], 0.1) == 7  # at least one of either side


def test_of_a_text_the_wanted_word_is_tried_alone_unless_it_is_common() -> None:
    assert words_to_try(900, 3.9, None) == words_to_try(900, 3.9, 2) == (0, 1, 2)
    assert words_to_try(900, 3.9, 700) == (700,)
    assert words_to_try(900, 0.2, None) == (0,)


# --- the library


def test_some_slots_and_some_outputs_are_columns_and_rows_of_all(reader: Transformer, task: Task) -> None:
    (short,) = task.draw(np.random.default_rng(1), 1, 40)
    batch = task.encode([short])
    whole, slopes = poke(reader, batch, [0, 1]), gradients(reader, batch)
    some, rows = [2, 9, 33], [0, 5, 39, 17]
    part = poke(reader, batch, [0, 1], slots=some)
    assert part.poked.tolist() == some
    np.testing.assert_allclose(part.moves, whole.moves[:, :, some], atol=1e-5)
    np.testing.assert_array_equal(part.said_after, whole.said_after[:, :, some])
    later = np.arange(40)[:, None] < np.array(some)
    assert not part.moves[:, later].any()
    assert (part.moves.max(axis=0)[~later] > 0).all()
    np.testing.assert_allclose(gradients(reader, batch, outputs=rows), slopes[rows], atol=1e-6)


def test_places_patched_together_are_patches_of_each_at_once(reader: Transformer, task: Task) -> None:
    """Each block by one run with a patch for every single place of it."""
    (clean,) = task.draw(np.random.default_rng(2), 1, 30)
    other = clean.copy()
    other[12] = (other[12] + 3) % 60
    seen = patching(reader, task, clean, other, runs=20.0)
    sites, columns = seen.recovered.shape
    assert (seen.first, seen.factor) == (13, -(-17 // (20 // sites)))  # SEP is read first, so the change is at 13
    assert columns == -(-17 // seen.factor)
    runs = [observe(reader, torch.from_numpy(task.encode([each]).tokens)) for each in (clean, other)]
    (wanted, unwanted), tokens = ([run.logits[0].argmax(-1) for run in runs], runs[1].tokens)
    places = torch.nonzero(wanted != unwanted)[:, 0]
    assert len(places) == seen.compared

    def measure(logits: torch.Tensor) -> float:
        rows = logits[0].double()
        return float(np.mean([rows[p, wanted[p]] - rows[p, unwanted[p]] for p in places]))

    high, low = (measure(run.logits) for run in runs)
    for row, site in enumerate(seen.sites):
        for column in range(columns):
            block = range(13 + column * seen.factor, min(13 + (column + 1) * seen.factor, 30))
            edits = tuple(Patch.of(site, runs[0][site], position=place) for place in block)
            expected = (measure(observe(reader, tokens, edits).logits) - low) / (high - low)
            assert seen.recovered[row, column] == pytest.approx(expected, abs=1e-4)
    assert not seen.recovered[0, 1:].any()  # the embedding differs at one token, and all else brings back exactly 0
    fine = patching(reader, task, clean, other)
    assert (fine.first, fine.factor, fine.recovered.shape) == (0, 1, (sites, 30))
    assert not fine.recovered[:, :13].any()
    assert fine.recovered[0, 13] == pytest.approx(1, abs=1e-4)
    narrow = patching(reader, task, clean, other, columns=5)
    assert narrow.recovered.shape == (sites, 5)


# --- the strip


def test_neighbours_that_do_not_move_share_a_box_in_a_long_strip() -> None:
    hidden, still = Moved("a", "a", 0, True, True), Moved("a", "a", 0, False, True)
    near, loud = Moved("a", "a", 1e-3, False, False), Moved("a", "b", 1e-3, False, False)
    leak = Moved("a", "a", 1e-3, True, False)
    html = moved_strip([*[hidden] * 20, loud, near, loud, *[near] * 9, *[still] * 4, leak, leak])
    places = re.findall(r'line-height:18px">([\d–]+)<', html)
    assert places == ["1–20", "21", "22", "23", "24–32", "33–36", "37", "38"]
    assert html.count(">a→b<") == 2
    assert html.count("leak ") == 2
    assert "at 1 to 20 cannot move; at 21 a becomes b" in html
    short = moved_strip([hidden] * 20)
    assert len(re.findall(r'line-height:18px">([\d–]+)<', short)) == 20


# --- the page


def test_a_long_passage_is_poked_block_by_block_and_attention_is_shown_in_the_same_blocks(
    reader: Transformer, task: Task, passage: Question
) -> None:
    typed, read = task.typed(passage), [task.separator, *passage[:-1].tolist()]
    names = [task.vocabulary[token] for token in read]
    blocks = [range(at, min(at + FACTOR, LONG)) for at in range(0, LONG, FACTOR)]
    longest = [max(block, key=lambda p: (names[p][0].isalpha(), len(names[p]), -p)) for block in blocks]
    slot = next(place for place in blocks[9] if names[place][0].isalpha() and place != longest[9])
    poked = [*longest[:9], slot, *longest[10:]]
    head = {"beside": "head", "head": "decoder.1.self_attention.1"}
    app = open_page("information", run="reader", input=typed, poked=str(slot + 1), **head)
    assert "One in 7 of the 300 tokens is replaced" in said(app)
    moves = moves_by_hand(reader, read, slot, range(6))
    title = app.title[0].value.replace("\\", "")
    assert f"'{names[slot]}' at {slot + 1} moves {LONG - slot} of {LONG} outputs" in title
    assert f"most the one at {moves.argmax() + 1}" in title
    assert f"All {sum(poked):,} pairs of a replaced token and an output" in said(app)  # those before it, for each
    drawn = array(trace(app, "moves", "values")["z"])
    assert drawn.shape == (43, 43)
    for column in (0, 9, 20, 42):
        by_hand = moves_by_hand(reader, read, poked[column], range(6))
        rows = np.array([by_hand[block.start : block.stop].max() for block in blocks])
        hidden = np.array([block.stop <= poked[column] for block in blocks])
        assert not rows[hidden].max(initial=0) > 1e-4
        np.testing.assert_array_equal(np.isnan(drawn[:, column]), hidden)
        np.testing.assert_allclose(drawn[~hidden, column], rows[~hidden], atol=2e-4)
    words = [task.vocabulary[token] for token in logits_of(reader, read).argmax(-1)]
    output = max(blocks[30], key=lambda p: (words[p][0].isalpha(), len(words[p]), -p))
    leaning = array(trace(app, "slopes", "values")["z"])
    np.testing.assert_allclose(leaning[30, :30], slopes_by_hand(reader, read, output)[poked[:30]], rtol=1e-3, atol=1e-6)
    strip = next(element.value for element in app.get("html") if "outputs: at 1" in element.value)
    assert f"at 1 to {slot} cannot move" in strip
    pattern = observe(reader, torch.tensor([read]))["decoder.1.self_attention.pattern"]
    drawn = array(trace(app, "beside", "values")["z"])
    for row, column in ((0, 0), (42, 3), (17, 16)):
        block = pattern[0, 1, 7 * row : 7 * row + 7, 7 * column : 7 * column + 7]
        assert drawn[row, column] == pytest.approx(float(block.max()), abs=1e-5)
    np.testing.assert_array_equal(np.isnan(drawn), np.triu(np.ones((43, 43), dtype=bool), 1))
    menu = app.selectbox(key="control-poked")
    assert len(menu.options) == LONG, "every token is offered"
    menu.set_value(5).run()
    assert link(app)["poked"] == "5"
    assert "at 5 moves 296 of 300 outputs" in app.title[0].value


@pytest.mark.daily(1)
@pytest.mark.parametrize("task_name", ["copy", "reverse-translate"])
def test_a_long_row_of_symbols_is_poked_in_blocks(made: Path, task_name: str) -> None:
    unpolished(made / task_name, TaskConfig(task=task_name, length=70), n_layers=1)
    app = open_page("information", run=task_name)
    assert not app.warning
    columns = 47 if task_name == "copy" else 48
    drawn = array(trace(app, "moves", "values")["z"])
    assert drawn.shape == (columns if task_name == "copy" else 24, columns)
    assert "One in 3 of the 140 tokens is replaced: the first of its block" in said(app)
    parting = [shape for shape in figures(app)["slopes"]["layout"]["shapes"] if shape["x0"] == shape["x1"] == 23.5]
    assert bool(parting) == (task_name == "reverse-translate")
    app.text_input(key="control-input").set_value("3 1").run()
    assert "pairs" not in said(app)
    assert set(figures(app)) == {"moves", "slopes", "beside"}


def test_a_leak_in_a_long_row_is_named_and_outlined(made: Path) -> None:
    unpolished(made / "leaky", TaskConfig(task="copy", length=70), n_layers=1, mask="full")
    app = open_page("information", run="leaky")
    assert app.title[0].value.startswith("The mask leaks: the output at ")
    assert "pairs of an output and a replaced token must be 0 and are not; their cells are outlined." in said(app)
    assert "leaks" in {each.get("name") for each in figures(app)["moves"]["data"]}


def test_a_long_passage_is_patched_in_blocks(task: Task, passage: Question) -> None:
    app = open_page("edits", run="reader", input=task.typed(passage))
    recovered = array(trace(app, "edits-patching", "values")["z"])
    factor = int(re.search(r"Each column patches (\d+) neighbouring positions at once", said(app))[1])
    left_out = re.search(r"Left out: positions 1 to (\d+) are the same in both runs", said(app))
    first = int(left_out[1]) if left_out else 0
    assert recovered.shape[1] == -(-(LONG - first) // factor) <= 128
    assert recovered[0].max() == pytest.approx(1, abs=1e-4)
    assert re.search(r"It has '.+' for '.+' at \d+\.", said(app).replace("\\", ""))
    text = trace(app, "edits-patching", "values")["text"][0]
    assert re.search(rf" at {first + 1}–{first + factor}: [\d.]+ of the logit difference comes back", text[0])
