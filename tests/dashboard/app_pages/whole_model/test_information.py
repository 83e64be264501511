"""Poking and gradients: against loops, finite differences and a model that looks ahead, and what the page says."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard import theme
from dashboard.app_pages.whole_model.information.figures import Axes, Moved, Words, influence_heatmap, moved_strip
from dashboard.app_pages.whole_model.information.influence import symbols_to_try
from dashboard.app_pages.whole_model.information.matrices import Matrix
from dashboard.models.budget import OPERATIONS, passes
from tests.kit.figures import decoded, sent
from tests.kit.models import untrained as unpolished
from tests.kit.pages import PI, RUNS, SEP, answer, array, figures, laid_out, link, network, open_page, trace
from tests.kit.waiting import PATIENCE
from transformer import checkpoints, observe
from transformer.analysis.accuracy.ceilings import honest_reach, leaks, reach
from transformer.analysis.interventions.influence import Pokes, gradients, poke
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.masks import parse
from transformer.model import Transformer, build
from transformer.tasks import Batch
from transformer.training.runs import Run

DIGITS = range(10)


def read_by(run: str, question: list[int]) -> tuple[Transformer, torch.Tensor, torch.Tensor | None]:
    """A model and what it reads when it reads its own words."""
    model, config = network(run)
    said = answer(model, config, question)
    tokens, source, _ = laid_out(config, np.array([question]))
    if config.task.task == "reverse":
        tokens = torch.tensor([[*question, SEP, *said[:-1]]])
    elif source is not None:
        tokens = torch.tensor([[SEP, *said[:-1]]])
    return model, tokens, source


def logits_of(model: Transformer, slots: list[int], n_source: int) -> np.ndarray:
    """One plain call, in float64."""
    with torch.no_grad():
        source = torch.tensor([slots[:n_source]]) if n_source else None
        return model(torch.tensor([slots[n_source:]]), source)[0].numpy()


def poked_by_hand(model: Transformer, tokens: torch.Tensor, source: torch.Tensor | None) -> np.ndarray:
    """The greatest |Δlogit| of each symbol in each place, one call each: [candidate, output, slot]."""
    n_source = 0 if source is None else source.shape[1]
    slots = ([] if source is None else source[0].tolist()) + tokens[0].tolist()
    before = logits_of(model, slots, n_source)
    moves = np.zeros((10, tokens.shape[1], len(slots)))
    for symbol in DIGITS:
        for slot in range(len(slots)):
            changed = [*slots[:slot], symbol, *slots[slot + 1 :]]
            for output, (row, old) in enumerate(zip(logits_of(model, changed, n_source), before, strict=True)):
                moves[symbol, output, slot] = max(abs(a - b) for a, b in zip(row, old, strict=True))
    return moves


def untrained(architecture: str, **options: object) -> tuple[Transformer, Batch, RunConfig]:
    """A small model with weights as drawn, five symbols to read, and its config."""
    task = {"decoder": "reverse", "encoder": "reverse-aligned", "encoder-decoder": "reverse-translate"}[architecture]
    settings = {"d_model": 16, "n_heads": 2, "n_layers": 2, "d_ff": 32, **options}
    config = RunConfig(task=TaskConfig(task=task, length=6), model=ModelConfig(architecture=architecture, **settings))
    return build(config), config.build_task().encode([np.array([3, 1, 4, 1, 5])]), config


VARIANTS = [
    ("decoder", {"positions": "rotary", "norm": "pre"}),
    ("decoder", {"positions": "alibi", "norm": "none", "d_ff": 0, "mask": "sliding-window:1"}),
    ("encoder", {"positions": "sinusoidal", "norm": "post"}),
    ("encoder-decoder", {"positions": "learned"}),
]


# --- the library


@pytest.mark.daily(2)
@pytest.mark.parametrize(("architecture", "options"), VARIANTS)
def test_poking_is_what_a_call_for_each_symbol_in_each_place_finds(architecture: str, options: dict) -> None:
    model, batch, _ = untrained(architecture, **options)
    tokens, source = torch.from_numpy(batch.tokens), None if batch.source is None else torch.from_numpy(batch.source)
    found = poke(model, batch, DIGITS)
    by_hand = poked_by_hand(model.double(), tokens, source)
    np.testing.assert_allclose(found.moves, by_hand, atol=2e-5)
    np.testing.assert_allclose(found.greatest(), by_hand.max(axis=0), atol=2e-5)
    assert found.greatest().max() > 0.1
    n_source = 0 if source is None else 5
    slots = [*([] if source is None else source[0].tolist()), *tokens[0].tolist()]
    assert found.read.tolist() == slots
    before, after = logits_of(model, slots, n_source), logits_of(model, [*slots[:2], 9, *slots[3:]], n_source)
    said = before.argmax(-1)
    shares, shares_after = (np.exp(each) / np.exp(each).sum(-1, keepdims=True) for each in (before, after))
    rows = np.arange(len(said))
    assert found.said.tolist() == said.tolist()
    assert found.said_after[9, :, 2].tolist() == after.argmax(-1).tolist()
    np.testing.assert_allclose(found.probability, shares[rows, said], atol=1e-5)
    np.testing.assert_allclose(found.probability_after[9, :, 2], shares_after[rows, said], atol=1e-5)


@pytest.mark.parametrize("run", RUNS)
def test_what_no_path_leads_to_is_exactly_zero_and_the_rest_is_not(run: str) -> None:
    model, config = network(run)
    batch = config.build_task().encode([np.array(PI)])
    moved, slopes = poke(model, batch, DIGITS).greatest(), gradients(model, batch)
    later = np.triu(np.ones((8, 8), dtype=bool), 1)
    forbidden = {
        "reverse-aligned": np.zeros((8, 8), dtype=bool),
        "reverse-aligned-causal": later,
        "reverse-translate": np.hstack([np.zeros((8, 8), dtype=bool), later]),
    }.get(run, np.triu(np.ones((16, 16), dtype=bool), 1))
    assert not moved[forbidden].any()
    assert not slopes[forbidden].any()
    assert leaks(moved, honest_reach(config)) == []
    np.testing.assert_array_equal(honest_reach(config), ~forbidden)
    if run != "compiled":  # whose weights are mostly zeros
        assert (moved[~forbidden] > 0).all()
        assert (slopes[~forbidden] > 0).all()


@pytest.mark.parametrize(("architecture", "options"), VARIANTS)
def test_gradients_are_finite_differences_of_the_embedding(architecture: str, options: dict) -> None:
    """Central differences in float64. A token's own row of the embedding is moved, so each slot gets one of its own."""
    model, _, config = untrained(architecture, **options)
    batch = config.build_task().encode([np.array([3, 1, 4, 0, 5])])
    source, tokens = ([] if batch.source is None else batch.source[0].tolist()), batch.tokens[0].tolist()
    slots, model = source + tokens, model.double()
    found = gradients(model, batch)
    said = logits_of(model, slots, len(source)).argmax(-1)
    scale, step = np.sqrt(16) if config.model.scale_embeddings else 1.0, 1e-6
    assert found.shape == (len(tokens), len(slots))
    for place in (0, 2, len(source)):
        if slots.count(slots[place]) > 1:
            continue  # the same row of the embedding twice: its slots cannot be told apart this way
        slopes = np.zeros((len(tokens), 16))
        for dimension in range(16):
            ends = []
            for sign in (1, -1):
                with torch.no_grad():
                    model.embedding.weight[slots[place], dimension] += sign * step / scale
                ends.append(logits_of(model, slots, len(source))[np.arange(len(tokens)), said])
                with torch.no_grad():
                    model.embedding.weight[slots[place], dimension] -= sign * step / scale
            slopes[:, dimension] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(found[:, place], np.sqrt((slopes**2).sum(-1)), rtol=1e-5, atol=1e-8)


def test_a_model_that_looks_ahead_is_found_and_named() -> None:
    """Its config says causal; one cell of the mask it really uses is open, for output 3 towards token 5."""
    model, batch, config = untrained("decoder", n_layers=1)
    honest = reach(config.build_task(), parse("causal"), 1, 5)
    assert leaks(poke(model, batch, DIGITS).greatest(), honest) == []
    model.visible[2, 4] = True
    (leak,) = leaks(poke(model, batch, DIGITS).greatest(), honest)
    assert (leak.output, leak.slot) == (2, 4)
    slots = batch.tokens[0].tolist()
    before = logits_of(model, slots, 0)[2]
    moved = max(np.abs(logits_of(model, [*slots[:4], s, *slots[5:]], 0)[2] - before).max() for s in DIGITS)
    assert leak.value == pytest.approx(moved, abs=1e-5)
    assert [(each.output, each.slot) for each in leaks(gradients(model, batch), honest)] == [(2, 4)]
    model.visible[0, 1] = True
    found = leaks(poke(model, batch, DIGITS).greatest(), honest)
    assert {(each.output, each.slot) for each in found} == {(0, 1), (2, 4)}
    assert found[0].value >= found[1].value


def test_padding_is_not_poked_and_moves_nothing() -> None:
    model, _, config = untrained("decoder")
    task = config.build_task()
    padded = task.encode([np.array([3, 1, 4])], pad_to=6)
    alone = poke(model, task.encode([np.array([3, 1, 4])]), DIGITS).greatest()
    found, slopes = poke(model, padded, DIGITS).greatest(), gradients(model, padded)
    np.testing.assert_allclose(found[:6, :6], alone, atol=1e-5)
    assert not found[:, 6:].any()
    assert not slopes[:6, 6:].any()
    with pytest.raises(ValueError, match="padding"):
        poke(model, padded, [0, 11])
    with pytest.raises(ValueError, match="one sequence"):
        poke(model, task.encode([np.array([3]), np.array([4])]), DIGITS)


def test_a_part_of_the_slots_in_small_passes_is_the_same_and_it_is_told_how_much_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, batch, _ = untrained("decoder")
    whole, slopes = poke(model, batch, DIGITS), gradients(model, batch)
    monkeypatch.setattr("transformer.analysis.interventions.influence.CELLS", 300)  # three sequences a pass
    shares: list[float] = []
    some = poke(model, batch, [7, 2], slots=[4, 0, 9], told=shares.append)  # six sequences, three at a time
    assert shares == pytest.approx([1 / 2, 1])
    np.testing.assert_allclose(some.moves, whole.moves[[7, 2]][:, :, [4, 0, 9]], atol=1e-5)
    assert not some.moves[:, :4, 0].any()
    np.testing.assert_allclose(gradients(model, batch), slopes, atol=1e-5)


def test_dropout_is_off_and_the_model_is_left_as_it_was() -> None:
    model, batch, _ = untrained("decoder", dropout=0.5)
    expected = gradients(model.eval(), batch), poke(model, batch, DIGITS).moves
    model.train()
    np.testing.assert_array_equal(gradients(model, batch), expected[0])
    np.testing.assert_array_equal(poke(model, batch, DIGITS).moves, expected[1])
    assert model.training
    assert all(weight.grad is None for weight in model.parameters())


# --- the figures


@pytest.mark.parametrize("palette", [theme.LIGHT, theme.DARK])
def test_a_forbidden_cell_is_hatched_unless_it_moved(palette: theme.Palette) -> None:
    values = np.array([[0.5, 0.0, 0.25], [0.0, 2.0, 0.0], [0.0, 1.0, 1.5]])
    allowed = np.tril(np.ones((3, 3), dtype=bool))
    axes = Axes(
        ["a", "b", "<"], ["x", "y", "z"], ["'a' at 1", "'b' at 2", "'<' at 3"], ["'x' at 1", "'y' at 2", "'z' at 3"]
    )
    words = Words("{output} moves by {value} with {slot}", "no path to {output} from {slot}")
    figure = influence_heatmap(values, allowed, axes, words, poked=1, palette=palette)
    drawn, grey = decoded(sent(figure, "values")["z"]), decoded(sent(figure, "forbidden")["z"])
    assert np.isnan(drawn).tolist() == [[False, True, False], [False, False, True], [False, False, False]]
    assert (np.isnan(drawn) != np.isnan(grey)).all()
    assert (sent(figure, "values")["zmin"], sent(figure, "values")["zmax"]) == (0, 2)
    assert drawn[1, 0] == 0
    leak = decoded(sent(figure, "leaks")["x"])
    assert np.nanmin(leak) > 1.5
    assert np.nanmax(leak) < 2.5
    text = sent(figure, "values")["text"]
    assert text[2][1] == "'&lt;' at 3 moves by 1 with 'y' at 2"
    assert text[0][1] == "no path to 'a' at 1 from 'y' at 2"
    held = influence_heatmap(np.tril(values), allowed, axes, words, palette=palette)
    assert "leaks" not in [each.name for each in held.data]


def test_the_strip_says_what_was_said_and_what_is_said_now() -> None:
    html = moved_strip(
        [Moved("<", "<", 0.0, True, True), Moved("3", "7", -0.98, False, False), Moved("4", "4", 0.001, False, False)]
    )
    assert "at 1 &lt; did not move, hidden by the mask; at 2 3 becomes 7, probability −0.98; at 3 4 stays" in html
    assert ">3→7<" in html
    assert html.count("≈0</span>") == 1
    assert html.count("repeating-linear-gradient") == 1
    assert "a leak" in moved_strip([Moved("3", "3", 0.2, True, False)])


# --- the page


def words(app: AppTest) -> str:
    return " ".join(element.value for element in app.markdown)


def test_while_it_is_measured_the_page_says_what_and_how_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.models.background.AT_ONCE", 0.0)
    begun, go_on = threading.Event(), threading.Event()

    def slow(*args: Any, told: Callable[[float], object], **options: Any) -> Pokes:
        told(0.25)
        begun.set()
        assert go_on.wait(PATIENCE)
        return poke(*args, told=told, **options)

    monkeypatch.setattr("transformer.analysis.interventions.influence.poke", slow)
    app = open_page("information", run="reverse", input="2 7 1 8 2 8 1 8")
    assert app.title[0].value == "Which outputs move when a token is replaced?"
    assert begun.wait(PATIENCE)
    app.run()
    (bar,) = app.get("progress")
    assert (bar.value, bar.text) == (25, "Replacing 16 tokens in turn, each by 10 symbols: 25 % done")
    assert {"Replace a token", "Replacement"} <= {each.label for each in (*app.selectbox, *app.get("button_group"))}
    go_on.set()
    monkeypatch.setattr("dashboard.models.background.AT_ONCE", PATIENCE)
    app.run()
    assert not app.exception
    assert not app.get("progress")
    assert app.title[0].value.startswith("Replacing '2' at 5 moves")


@pytest.mark.daily(2)
@pytest.mark.parametrize("run", ["reverse", "reverse-aligned", "reverse-aligned-causal", "reverse-translate"])
def test_the_matrices_are_those_counted_by_hand(run: str) -> None:
    model, tokens, source = read_by(run, PI)
    by_hand = poked_by_hand(model.double(), tokens, source)
    greatest = by_hand.max(axis=0)
    app = open_page("information", run=run)
    drawn = array(trace(app, "moves", "values")["z"])
    there = np.isfinite(drawn)
    np.testing.assert_allclose(drawn[there], greatest[there], atol=2e-4)
    assert (greatest[~there] == 0).all()
    column = greatest[:, 4]  # the fifth token of the question is poked unless the link says otherwise
    place = "'5' at 5 of the source" if source is not None else "'5' at 5"
    most, count = int(column.argmax()), int((column > 1e-9).sum())
    due = laid_out(network(run)[1], np.array([PI]))[2][0, most]
    said = f"Replacing {place} moves {count} of {len(column)} outputs: most the one at {most + 1}"
    assert app.title[0].value == f"{said}, whose right token is '{due}'."
    assert run == "reverse-aligned-causal" or due == 5
    hidden = int((~there).sum())
    assert (f"All {hidden} hatched cells are exactly 0" in words(app)) == bool(hidden)
    assert ("No cell is forbidden" in words(app)) == (run == "reverse-aligned")
    before = "Nothing before position 5 moved: the mask holds."
    assert (before in words(app)) == (run not in ("reverse-aligned", "reverse-translate"))


@pytest.mark.daily(1)
@pytest.mark.parametrize("run", ["reverse", "reverse-translate"])
def test_one_replacement_moves_what_it_moves(run: str) -> None:
    model, tokens, source = read_by(run, PI)
    slots = ([] if source is None else source[0].tolist()) + tokens[0].tolist()
    n_source = 0 if source is None else 8
    app = open_page("information", run=run, poked="2", replacement="8")
    by_hand = poked_by_hand(model.double(), tokens, source)[8]
    drawn = array(trace(app, "moves", "values")["z"])
    np.testing.assert_allclose(drawn[np.isfinite(drawn)], by_hand[np.isfinite(drawn)], atol=2e-4)
    before, after = (logits_of(model, each, n_source) for each in (slots, [slots[0], 8, *slots[2:]]))
    names = [*map(str, DIGITS), "SEP", "PAD"]
    flipped = [(i, a, b) for i, (a, b) in enumerate(zip(before.argmax(-1), after.argmax(-1), strict=True)) if a != b]
    strip = next(element.value for element in app.get("html") if "outputs: at 1" in element.value)
    assert re.findall(r">([^<>]+→[^<>]+)<", strip) == [f"{names[a]}→{names[b]}" for _, a, b in flipped]
    assert len(flipped) >= 1
    frame = app.dataframe[0].value
    order = np.argsort(-by_hand[:, 1], kind="stable")[:6]
    order = [place for place in order if by_hand[place, 1] > 0]
    assert frame["output at"].tolist() == [place + 1 for place in order]
    np.testing.assert_allclose(frame["|Δlogit|"], by_hand[order, 1], atol=2e-4)
    shares, changed = (np.exp(each) / np.exp(each).sum(-1, keepdims=True) for each in (before, after))
    said = before.argmax(-1)[order]
    change = changed[order, said] - shares[order, said]
    np.testing.assert_allclose(frame["Δ"], change, atol=1e-4)
    written = pa.ipc.open_stream(app.dataframe[0].proto.arrow_data.styler.display_values).read_pandas()
    signs = np.array([{"−": -1, "+": 1}[text[0]] for text in written["Δ"]])  # a minus as long as the plus
    assert all(signs[np.abs(change) > 0.001] == np.sign(change)[np.abs(change) > 0.001])


def test_a_token_in_its_own_place_moves_nothing() -> None:
    app = open_page("information", run="reverse", poked="3", replacement="4")
    assert app.title[0].value == "Replacing '4' at 3 by '4' moves no output."
    assert "'4' at 3 is '4' already, so nothing can move." in words(app)


def test_padding_that_an_untrained_model_reads_is_not_poked(root: Path) -> None:
    """Its first words are made to be padding: the unembedding's bias says nothing else."""
    unpolished(root / "padded", TaskConfig(task="reverse", length=3))
    path = root / "padded" / "snapshots" / "step-000000.safetensors"
    model, config = checkpoints.load(path)
    with torch.no_grad():
        model.unembedding.bias[11] = 1000
    checkpoints.save(path, model, config)
    app = open_page("information", poked="5")
    assert app.title[0].value == "'PAD' at 5 is padding, and padding is not replaced."
    assert "Another token in its place would change the mask as well" in words(app)
    moves = array(trace(app, "moves", "values")["z"])
    assert not moves[4:, 4:][np.isfinite(moves[4:, 4:])].any()


def test_the_head_in_focus_stands_over_all_slots() -> None:
    app = open_page("information", run="reverse-translate", beside="head", head="decoder.1.cross_attention.0")
    model, tokens, source = read_by("reverse-translate", PI)
    pattern = observe(model, tokens, source=source)["decoder.1.cross_attention.pattern"][0, 0].numpy()
    drawn = array(trace(app, "beside", "values")["z"])
    np.testing.assert_allclose(drawn[:, :8], pattern, atol=1e-5)
    assert np.isnan(drawn[:, 8:]).all()
    app = open_page("information", run="reverse-translate", beside="head", head="encoder.0.self_attention.0")
    assert "beside" not in figures(app)
    assert "Choose a head of the decoder" in app.info[0].value


def test_clicking_a_token_pokes_it() -> None:
    app = open_page("information", run="reverse-translate")
    app.segmented_control(key="control-poked").set_value(10).run()
    assert link(app) == {"run": "reverse-translate", "poked": "10"}
    assert app.title[0].value.startswith("Replacing '6' at 2 moves 7 of 8 outputs")
    assert app.session_state["control-poked-source"] is None
    app.segmented_control(key="control-poked-source").set_value(5).run()
    assert link(app) == {"run": "reverse-translate"}
    app.segmented_control(key="control-poked-source").set_value(None).run()  # pressed again
    assert app.session_state["control-poked-source"] == 5
    app.segmented_control(key="control-poked").set_value(10).run()
    app.selectbox(key="control-run").set_value("reverse").run()
    assert link(app) == {"run": "reverse"}


def test_a_mask_that_shows_the_answer_is_said_to_leak(root: Path) -> None:
    """Trained under the mask "full" each output of a continuation is shown the token that it is to say."""
    unpolished(root / "leaky", TaskConfig(task="reverse", length=3), mask="full")
    model, _ = checkpoints.load(Run(root / "leaky").snapshot())
    said = [int(model(torch.tensor([[1, 2, 3, SEP]]))[0, -1].argmax())]
    for _ in range(2):
        said.append(int(model(torch.tensor([[1, 2, 3, SEP, *said]]))[0, -1].argmax()))
    moves = poked_by_hand(model.double(), torch.tensor([[1, 2, 3, SEP, *said[:2]]]), None).max(axis=0)
    ahead = np.triu(moves, 1)
    output, slot = np.unravel_index(ahead.argmax(), ahead.shape)
    name = [*map(str, DIGITS), "SEP"][[1, 2, 3, SEP, *said[:2]][slot]]
    app = open_page("information", input="1 2 3")
    assert app.title[0].value == (
        f"The mask leaks: the output at {output + 1} moves by {ahead.max():.3g} when '{name}' at {slot + 1} is "
        "replaced, which it must not know."
    )
    assert "15 of 15 cells must be 0 and are not; they are outlined." in words(app)
    assert "leaks" in {each.get("name") for each in figures(app)["moves"]["data"]}


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ({"task": "copy", "length": 20}, {"positions": "rotary", "n_layers": 4, "mask": "sliding-window:2"}),
        ({"task": "reverse-translate", "length": 3, "min_length": 1}, {"d_ff": 0, "norm": "none"}),
        ({"task": "reverse-aligned", "length": 1}, {"architecture": "decoder", "positions": "none", "n_layers": 1}),
    ],
)
def test_it_opens_on_every_kind_of_model(root: Path, task: dict[str, Any], changes: dict[str, Any]) -> None:
    unpolished(root / "one", TaskConfig(**task), **changes)
    for query in ({}, {"input": "1", "beside": "head", "poked": "1"}):
        app = open_page("information", **query)
        assert not app.warning
        assert set(figures(app)) == {"moves", "slopes", "beside"}
        # Two tokens to either side: a continuation is then shown what it is to say.
        leaking = changes.get("mask") == "sliding-window:2"
        assert app.title[0].value.startswith("The mask leaks: ") == leaking


def test_a_model_too_large_tries_fewer_symbols() -> None:
    small, large = ModelConfig(d_model=16, n_heads=2), ModelConfig(d_model=512, n_heads=8, n_layers=12, d_ff=2048)
    assert symbols_to_try(36, passes(small, 36, 64) / 64, None) == tuple(range(36))
    few = symbols_to_try(36, passes(large, 36, 64) / 64, 7)
    assert 7 in few
    assert len(few) < 36
    weights = 12 * (4 * 512 * 512 + 2 * 512 * 2048)
    assert (len(few) - 1) * 64 * 64 * 2 * weights <= max(OPERATIONS, 64 * 64 * 2 * weights)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[0, 0.5], [2.0, 1.0]], "Largest value: 'b' at 2 moves by 2."),
        ([[0, 1.2341], [1.2339, 1.0]], "2 cells have the largest value; the first: 'a' at 1 moves by 1.23."),
        ([[0, 0], [0, 0]], "All values are 0."),
    ],
)
def test_the_greatest_value_is_named_and_of_several_that_no_digit_tells_apart_the_first(
    values: list[list[float]], words: str
) -> None:
    cells, rows = np.array(values), ["'a' at 1", "'b' at 2"]
    every = np.ones_like(cells, dtype=bool)
    axes = Axes(("a", "b"), ("a", "b"), rows, rows)
    assert Matrix(cells, every, ~every, axes, Words("{output} moves by {value}", ""), 0).greatest() == words
