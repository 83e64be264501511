"""The section "Compare the heads": its figures, its sentences, and the page's numbers counted from the weights."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import pytest

from dashboard import theme
from dashboard.app_pages.attention.heads import measured
from dashboard.app_pages.attention.heads.words import (
    examples,
    likeness_sentence,
    most_read,
    named_sentence,
    scatter_sentence,
    telling,
)
from dashboard.components.payload import unpack
from dashboard.figures.heads import Axis, likeness_heatmap, metrics_scatter
from dashboard.figures.kit.labels import LINE, PLOT, SIDES, label_sides
from dashboard.figures.kit.numbers import interval
from dashboard.models.menu import menu
from dashboard.models.model import Model
from tests.dashboard.app_pages.conftest import Made
from tests.kit.claims import judge
from tests.kit.claims.world import World
from tests.kit.figures import decoded, sent
from tests.kit.pages import ROOT, RUNS, array, figures, link, network, open_page, press, sample, shown, trace, words
from tests.kit.waiting import PATIENCE
from transformer.analysis.findings import Head
from transformer.analysis.heads.kinds import KINDS, Kinds, cells_of
from transformer.analysis.heads.measure import measure_heads, measure_removal
from transformer.analysis.heads.metrics import METRICS, Estimate, HeadMetrics
from transformer.foundation.claims import Claim
from transformer.observation import observe
from transformer.training.runs import Run

NAN = float("nan")
ORDER = ["expected", "self", "mixed"]
TITLES = [metric.title for metric in METRICS.values()]


def axis(mean: list[float], half: float = 0.1, **rest) -> Axis:
    means = np.array(mean)
    return Axis(
        **{"title": "first", "unit": "share", "even": None} | rest, mean=means, low=means - half, high=means + half
    )


# --- the scatter


def test_a_head_is_a_point_with_two_intervals() -> None:
    x, y = axis([0.2, 0.8, 0.5]), axis([1.0, 2.0, 3.0], 0.5, title="entropy", unit="bits")
    figure = metrics_scatter(x, y, ["0.0", "0.1", "0.2"], ["mixed", "self", "mixed"], ORDER, focus=1)
    mixed, alone, focus = (sent(figure, name) for name in ("mixed", "self", "focus"))
    np.testing.assert_allclose(decoded(mixed["x"]), [0.2, 0.5], atol=1e-6)
    np.testing.assert_allclose(decoded(mixed["y"]), [1.0, 3.0])
    np.testing.assert_allclose(decoded(alone["error_x"]["array"]), [0.1], atol=1e-6)
    np.testing.assert_allclose(decoded(alone["error_y"]["arrayminus"]), [0.5])
    assert mixed["customdata"] == [0, 2]
    assert alone["customdata"] == [1]
    assert (focus["x"], focus["y"], focus["hoverinfo"]) == ([0.8], [2.0], "skip")
    assert alone["hovertext"] == [
        "head 0.1, self<br>first 0.800 share (0.700 to 0.900)<br>entropy 2.000 bits (1.500 to 2.500)"
    ]
    assert mixed["marker"]["symbol"] != alone["marker"]["symbol"]
    assert mixed["marker"]["color"] != alone["marker"]["color"]


def test_a_head_without_both_numbers_has_no_point() -> None:
    x, y = axis([NAN, 0.5, 0.4]), axis([0.1, NAN, 0.3])
    figure = metrics_scatter(x, y, ["0.0", "0.1", "0.2"], ["mixed"] * 3, ORDER, focus=0)
    assert [each.name for each in figure.data] == ["mixed"]
    assert sent(figure, "mixed")["customdata"] == [2]


def test_a_share_has_the_whole_scale_and_all_points_are_on_the_plot() -> None:
    assert axis([0.5]).range == (-0.04, 1.04)
    low, high = axis([-0.3, 0.2], unit="accuracy").range
    assert low < -0.4
    assert high > 0.3
    low, high = axis([1.0], unit="bits", even=3.0).range
    assert low < 0
    assert high > 3


def test_what_looking_evenly_gives_is_a_dotted_line() -> None:
    figure = metrics_scatter(axis([0.5], even=0.25), axis([0.2], even=0.125), ["0.0"], ["self"], ORDER)
    lines = [each for each in figure.data if each.name == "looking evenly"]
    assert [tuple(line.x) for line in lines] == [(0.25, 0.25), (-0.04, 1.04)]
    assert [tuple(line.y) for line in lines] == [(-0.04, 1.04), (0.125, 0.125)]
    assert [line.showlegend for line in lines] == [True, False]


@pytest.mark.parametrize("n", [1, 5, 24])
def test_labels_cover_neither_points_nor_each_other(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.random(n), rng.random(n)
    sides = label_sides(x, y, [f"{i // 4}.{i % 4}" for i in range(n)], first=0)
    assert sides[0]
    assert sum(map(bool, sides)) >= 0.75 * n
    points = np.stack([x * PLOT[0], y * PLOT[1]], axis=1)
    middles = [point + SIDES[side] for point, side in zip(points, sides, strict=True) if side]
    for i, one in enumerate(middles):
        assert all(abs(one[0] - other[0]) >= LINE or abs(one[1] - other[1]) >= LINE for other in middles[:i])
        assert not any(abs(one[0] - point[0]) < LINE and abs(one[1] - point[1]) < LINE / 2 for point in points)


def test_among_many_heads_only_the_one_in_focus_has_its_label() -> None:
    for means in ([0.5] * 144, list(np.linspace(0, 1, 144))):
        labels = [str(i) for i in range(144)]
        figure = metrics_scatter(axis(means), axis(means), labels, ["mixed"] * 144, ORDER, focus=77)
        assert [text for text in sent(figure, "mixed")["text"] if text] == ["77"]


# --- the map


def test_the_map_has_a_fixed_scale_and_no_number_where_there_is_none() -> None:
    alike = np.array([[1.0, 0.25, NAN], [0.25, 1.0, NAN], [NAN, NAN, 1.0]])
    figure = likeness_heatmap(alike, ["enc 0.0", "enc 0.1", "dec 0.0"], focus=2)
    cells = sent(figure, "alike")
    np.testing.assert_allclose(decoded(cells["z"]), alike)
    assert (cells["zmin"], cells["zmax"]) == (0, 1)
    assert cells["meta"] == {"pairs": ["enc 0.0", "enc 0.1", "dec 0.0"]}
    assert cells["hovertemplate"] == "heads %{text}: %{z:.2f}<extra></extra>"
    np.testing.assert_array_equal(np.isnan(decoded(sent(figure, "incomparable")["z"])), np.isfinite(alike))
    numbers = sent(figure, "numbers")
    assert numbers["text"] == ["1.00", "0.25", "0.25", "1.00", "1.00"]
    assert (numbers["x"], numbers["y"]) == ([0, 1, 0, 1, 2], [0, 0, 1, 1, 2])
    assert figure.layout.yaxis.range == (2.5, -0.5)
    frame = figure.layout.shapes[0]
    assert (frame.y0, frame.y1) == (1.5, 2.5)


def test_a_large_map_has_no_numbers() -> None:
    figure = likeness_heatmap(np.eye(9), [str(i) for i in range(9)])
    assert [each.name for each in figure.data] == ["alike"]


@pytest.mark.parametrize("palette", [theme.LIGHT, theme.DARK])
def test_letters_can_be_read_on_every_share(palette: theme.Palette) -> None:
    for share in np.linspace(0, 1, 101):
        ground, letters = theme.share_colours(float(share), palette)
        assert theme.contrast(ground, letters) >= 4.0
    assert theme.share_colours(0.0, palette)[1] == palette.text
    assert theme.share_colours(1.0, palette)[1] == palette.background


# --- words


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["mixed"], "The one head is mixed: no single name fits."),
        (["mixed"] * 3, "All 3 heads are mixed: no single name fits any of them."),
        (["expected"], "Head 0 reads the expected key."),
        (["mixed", "expected", "mixed"], "Head 1 reads the expected key; 2 are mixed."),
        (
            ["self", "previous", "self", "mixed"],
            "Head 1 looks at the token before; heads 0 and 2 look at themselves; 1 is mixed.",
        ),
        (["first"] * 3, "Heads 0, 1 and 2 look at the first key."),
        (["uniform"] * 5 + ["mixed"], "5 heads look evenly at all they may see; 1 is mixed."),
        (["mixed"] * 2, "Both heads are mixed: no single name fits any of them."),
    ],
)
def test_the_sentence_counts_the_names(names: list[str], words: str) -> None:
    assert named_sentence([str(i) for i in range(len(names))], names) == words
    assert named_sentence(["0.0"], ["mixed"], choice=False).startswith("No query sees more than one key here")


@pytest.mark.parametrize(
    ("drops", "said"),
    [
        ([0.0, 0.2, 0.1], "Head 1 stands highest: drop when removed 0.200 ± 0.000, expected key 0.500 ± 0.000."),
        ([0.0, 0.2, 0.20004], "Heads 1 and 2 stand highest: drop when removed 0.200 each."),
        ([0.0] * 5, "5 heads stand highest: drop when removed 0.000 each."),
        (
            [0.1, 0.1, NAN],
            "Heads 0 and 1 stand highest: drop when removed 0.100 each. 1 of 3 heads are left out, because one of the "
            "two metrics is not defined for them.",
        ),
    ],
)
def test_heads_that_no_digit_tells_apart_stand_highest_together(drops: list[float], said: str) -> None:
    means, shares = np.array(drops), np.full(len(drops), 0.5)
    heads = tuple(Head("decoder.0.self_attention", index) for index in range(len(drops)))
    estimates = {"drop": Estimate(means, means, means, 8), "expected": Estimate(shares, shares, shares, 8)}
    found = HeadMetrics(heads, 8, estimates, {}, {}, np.zeros((len(drops), len(drops))))
    assert scatter_sentence(found, [str(head.index) for head in heads], "expected", "drop") == said


def test_an_interval_is_written_out() -> None:
    assert interval(0.9934, 0.0012) == "0.993 ± 0.001"
    assert interval(-0.0021, 0.0148) == "−0.002 ± 0.015"
    assert interval(-0.0001, 0.0) == "0.000 ± 0.000"
    assert interval(NAN, NAN) == "–"


# --- the page


@pytest.mark.daily(1)
@pytest.mark.parametrize("run", RUNS)
def test_the_table_and_both_figures_are_what_is_measured(run: str) -> None:
    """Loops and cleared weights are held against the measurements by the library's tests."""
    model, config = network(run)
    metrics = measure_heads(model, config.build_task())
    shares, drops = metrics.estimates["expected"].mean, measure_removal(model, config.build_task()).mean
    app = open_page("heads", run=run)
    table = app.dataframe[0].value
    assert list(table.columns) == ["head", "does", *TITLES]
    for name, metric in METRICS.items():
        expected = drops if name == "drop" else metrics.estimates[name].mean
        np.testing.assert_allclose(table[metric.title].to_numpy(dtype=float), expected, atol=1e-5)

    drawn = {}
    for each in figures(app)["find-scatter"]["data"]:
        for index, a, b in zip(each.get("customdata", ()), array(each["x"]), array(each["y"]), strict=False):
            drawn[index] = (float(a), float(b))
    known = [i for i, share in enumerate(shares) if not np.isnan(share)]
    assert sorted(drawn) == known
    for i in known:
        assert drawn[i] == pytest.approx((shares[i], drops[i]), abs=1e-5)
    highest = max(known, key=lambda i: drops[i])
    (said,) = (c.value for c in app.caption if "stands highest" in c.value)
    assert said.startswith(f"Head {table['head'][highest]} stands highest: drop when removed {drops[highest]:.3f} ±")
    assert any(c.value.startswith("Means over 256 fresh sequences with 95 % intervals") for c in app.caption)
    if run == "compiled":
        assert any(c.value == "There are no two heads to compare." for c in app.caption)
    else:
        drawn = trace(app, "find-alike", "alike")
        alike, order = array(drawn["z"]), [list(table["head"]).index(label) for label in drawn["meta"]["pairs"]]
        np.testing.assert_allclose(alike, metrics.alike[np.ix_(order, order)], atol=1e-5)
        pairs = alike[np.triu_indices(len(alike), 1)]
        best = f"{np.nanmax(pairs):.2f}"
        several = sum(f"{each:.2f}" == best for each in pairs) > 1
        ends = f"are most alike, {best} each: " if several else f"are most alike: {best}. "
        assert any(ends in c.value for c in app.caption)


def test_the_axes_are_part_of_the_link(alone: Made) -> None:
    alone({"length": 4})
    query = {"run": "one", "across": "entropy", "up": "distance"}
    app = open_page("heads", **query)
    assert link(app) == query
    table = app.dataframe[0].value
    points = [each for each in figures(app)["find-scatter"]["data"] if "customdata" in each]
    for each in points:
        np.testing.assert_allclose(array(each["x"]), table["entropy"][each["customdata"]], atol=1e-5)
        np.testing.assert_allclose(array(each["y"]), table["distance"][each["customdata"]], atol=1e-5)
    app.selectbox(key="control-up").set_value("self").run()
    assert link(app) == query | {"up": "self"}
    app.selectbox(key="control-up").set_value("drop").run()
    assert link(app) == {"run": "one", "across": "entropy"}


def test_any_step_of_the_film_is_measured() -> None:
    """Before training no head has a name, and none is worth much."""
    app = open_page("heads", run="reverse", step="0")
    assert set(app.dataframe[0].value["does"]) == {"mixed"}


MEASURED = "dashboard.app_pages.attention.heads.measured"


@pytest.fixture(scope="module")
def of_a_text() -> tuple[Kinds, HeadMetrics]:
    """What the page counts of the heads of the shipped model of a text; the library's tests hold it against loops."""
    choice = menu()["shakespeare"]
    model = Model.of(choice, choice.snapshots[-1])
    return measured.kinds(model).result(PATIENCE), measured.head_metrics(model).result(PATIENCE)


def test_what_takes_long_is_shown_when_it_is_there(alone: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    model, config = alone({"length": 4})
    task = config.build_task()
    metrics: Future[HeadMetrics] = Future()
    drop: Future[Estimate] = Future()
    monkeypatch.setattr("dashboard.models.background.AT_ONCE", 0.0)
    monkeypatch.setattr(f"{MEASURED}.head_metrics", lambda model: metrics)
    monkeypatch.setattr(f"{MEASURED}.removal", lambda model: drop)
    app = open_page("heads", run="one")
    assert not app.dataframe
    assert "Measuring every head" in words(app)
    metrics.set_result(measure_heads(model, task))
    app.run()
    assert list(app.dataframe[0].value.columns) == ["head", "does", *TITLES[:-1]]
    assert "Removing each head" in words(app)
    drop.set_result(measure_removal(model, task))
    app.run()
    assert list(app.dataframe[0].value.columns) == ["head", "does", *TITLES]
    assert "Removing each head" not in words(app)


def test_what_comes_while_the_page_is_drawn_is_shown_in_all_of_its_places(
    of_a_text: tuple[Kinds, HeadMetrics], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says above that it is measured, and the table below must then not stand there as if it were over."""
    kinds: Future[Kinds] = Future()
    metrics: Future[HeadMetrics] = Future()
    metrics.set_result(of_a_text[1])

    def measured_now(of: object) -> Future[HeadMetrics]:
        if not kinds.done():
            kinds.set_result(of_a_text[0])
        return metrics

    monkeypatch.setattr("dashboard.models.background.AT_ONCE", 0.0)
    monkeypatch.setattr(f"{MEASURED}.kinds", lambda of: kinds)
    monkeypatch.setattr(f"{MEASURED}.head_metrics", measured_now)
    app = open_page("heads", run="shakespeare")
    assert "being measured" in words(app)
    assert "Measuring on which tokens" in words(app)  # its timer draws all anew
    assert not app.dataframe
    app.run()
    assert "being measured" not in words(app)
    assert len(app.dataframe) == 1


def test_where_removing_takes_long_the_reader_asks_for_it(alone: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    alone({"length": 4})
    monkeypatch.setattr("dashboard.models.heads.removal_takes_long", lambda self: True)
    app = open_page("heads", run="one")
    assert list(app.dataframe[0].value.columns) == ["head", "does", *TITLES[:-1]]
    assert app.selectbox(key="control-up").value == "entropy"
    app.toggle(key="control-removal").set_value(True).run()
    assert link(app) == {"run": "one", "removal": "1"}
    assert list(app.dataframe[0].value.columns) == ["head", "does", *TITLES]
    asked = open_page("heads", run="one", up="drop")
    assert not asked.warning
    assert list(asked.dataframe[0].value.columns) == ["head", "does", *TITLES]


# --- a model of a text


def test_heads_of_a_text_are_called_by_the_tokens_that_they_prefer(of_a_text: tuple[Kinds, HeadMetrics]) -> None:
    kinds, metrics = of_a_text[0], of_a_text[1].without("expected")
    head, label = Head("decoder.3.self_attention", 3), "3.3"
    app = open_page("heads", run="shakespeare", head=str(head))
    table = app.dataframe[0].value.set_index("head")["does"]
    named = [each for each in kinds.heads if kinds.leaning(each)]
    assert len(named) > 4
    for each in kinds.heads:
        kind = kinds.leaning(each)
        share = "" if kind is None else f" {kinds.share[kind].mean[kinds.heads.index(each)]:.2f}"
        assert table[each.short] == (f"{KINDS[kind]}{share}" if kind else "mixed")
    many = sum(metrics.name(each) == "mixed" for each in named)
    assert any(f"{many} heads look more than evenly at one kind of token" in m.value for m in app.markdown)
    figure = figures(app)["find-scatter"]
    assert {"token before", "word before", "line starts", "mixed"} <= {
        trace["name"].removeprefix("the ") for trace in figure["data"] if trace.get("name")
    }
    i = kinds.heads.index(head)
    own, even = kinds.share["line"].mean[i], kinds.even["line"][i]
    said = f"Where a word asks, head {label} has {own:.2f} of its attention on line starts"
    assert [each.value for each in app.title] == [f"{said}."]
    assert any(f"A head that looks evenly would have {even:.2f} on line starts." in c.value for c in app.caption)


def words_read() -> tuple[list[int], list[str]]:
    _, config, tokens, _ = sample("shakespeare")
    return tokens[0].tolist(), [config.build_task().vocabulary[token] for token in tokens[0].tolist()]


def shakespeares(head: str) -> np.ndarray:
    """The pattern of a head on the passage that the page opens with, float [query, key]."""
    site, _, index = head.rpartition(".")
    model, _, tokens, _ = sample("shakespeare")
    seen = observe(model, tokens)
    return seen[f"{site}.pattern"][0, int(index)].numpy()


def test_heads_of_different_kinds_are_compared_on_the_same_word() -> None:
    tokens, names = words_read()
    task = network("shakespeare")[1].build_task()
    cells = cells_of(np.array([tokens]), task.vocabulary, task.separator)
    site = "decoder.{}.self_attention.{}".format
    heads = {site(2, 2): "previous", site(2, 1): "word", site(3, 3): "line"}
    patterns = [shakespeares(head) for head in heads]
    app = open_page("heads", run="shakespeare", together="1", query="31")
    assert app.title[0].value == "3 heads read 3 different things: the token before, the word before and line starts."

    def same_word(asked: int) -> None:
        messages = [unpack(element.proto.bytes) for element in app.get("bidi_component")]
        passages = [each for each in messages if str(each[0].get("key")).startswith("heads-passage")]
        assert len(passages) == 3
        for pattern, (header, body), (head, kind) in zip(patterns, passages, heads.items(), strict=True):
            assert header["chosen"] == asked
            shown = np.frombuffer(body, "<f4", len(tokens), header["ground"]["values"])
            np.testing.assert_allclose(shown[: asked + 1], pattern[asked, : asked + 1], atol=1e-5)
            reads = f"**Head {Head.parse(head).short} reads {KINDS[kind]}** (0."
            assert any(each.value.startswith(reads) for each in app.markdown)

    same_word(30)
    app.button(key="example-word").click().run()
    assert link(app)["head"] == "decoder.2.self_attention.1"
    assert "together" not in link(app)
    app.button(key="example-together").click().run()
    assert link(app)["together"] == "1"
    assert "query" not in link(app)
    place = telling([(each, cells[kind][0]) for each, kind in zip(patterns, heads.values(), strict=True)], names)
    assert place is not None
    same_word(place)


@pytest.mark.parametrize("run", ["shakespeare", "compiled"])
def test_of_other_words_another_query_is_shown_and_of_digits_each_place_has_its_part(run: str) -> None:
    app = open_page("heads", run=run, query="7")
    press(app, "Draw another")
    assert link(app).get("query") == (None if run == "shakespeare" else "7")


@pytest.mark.daily(1)
@pytest.mark.parametrize(("query", "by_row"), [(None, False), (7, True)])
def test_of_a_passage_the_tokens_are_named_and_tinted_that_a_query_looks_at_most(
    query: int | None, by_row: bool, heard: list[Claim]
) -> None:
    head, (tokens, names) = "decoder.3.self_attention.3", words_read()
    task, pattern = network("shakespeare")[1].build_task(), shakespeares(head)
    late = [place for place, name in enumerate(names) if place >= 8 and any(map(str.isalnum, name))]
    place = max(late, key=lambda place: pattern[place].max()) if query is None else query - 1
    row = pattern[place]
    asked = ({} if query is None else {"query": str(query)}) | ({"by_row": "1"} if by_row else {})
    app = open_page("heads", run="shakespeare", head=head, **asked)
    (said,) = [m.value for m in app.markdown if m.value.startswith("Here '")]
    assert f"at {place + 1} looks most at" in said
    (claimed,) = {each for each in heard if each.name.endswith("most_read")}
    assert claimed.sentence == shown(said)
    judge(World.of(Run(ROOT / "checkpoints" / "shakespeare"), "heads"), claimed)
    messages = [unpack(element.proto.bytes) for element in app.get("bidi_component")]
    header, body = next(message for message in messages if message[0].get("key") == "heads-passage")
    assert header["alt"] == said.replace("\\", "")
    assert header["chosen"] == place
    assert (header["ground"]["low"], header["ground"]["high"]) == (0, pytest.approx(row.max()) if by_row else 1)
    assert "".join(header["tokens"]) == "SEP " + "".join(task.piece(token) for token in task.example[:-1])
    drawn = np.frombuffer(body, "<f4", len(tokens), header["ground"]["values"])
    np.testing.assert_allclose(drawn[: place + 1], row[: place + 1], atol=1e-5)
    assert np.isnan(drawn[place + 1 :]).all()
    for key, says in enumerate(header["says"]):
        assert (f"gives {row[key]:.2f} to '" if key <= place else "may not see '") in says
        assert says.endswith(f"' at {key + 1}")


def test_what_a_query_looks_at_most_is_told_in_words_and_beside_the_first_only_what_has_some_weight() -> None:
    row, sees = np.array([1.0, 0.0]), np.array([True, False])
    assert most_read(row, sees, "ab", "b", 1) == "Here 'b' at 2 looks most at 'a' at 1 (1.00)."
    assert most_read(row * 0, sees & False, "ab", "a", 0) == "Here 'a' at 1 may see nothing."

    sees = np.ones(4, dtype=bool)
    said = most_read(np.array([0.04, 0.6, 0.05, 0.31]), sees, "abcd", "d", 3)
    assert said == "Here 'd' at 4 looks most at 'b' at 2 (0.60), 'd' at 4 (0.31) and 'c' at 3 (0.05)."
    assert most_read(np.array([0.04, 0.96, 0, 0]), sees, "abcd", "d", 3).endswith("looks most at 'b' at 2 (0.96).")
    told = most_read(np.array([0.2, 0.301, 0.299, 0.2]), sees, "abcd", "d", 3)
    assert told.endswith("at 'b' at 2 (0.30), 'c' at 3 (0.30), 'a' at 1 (0.20) and 'd' at 4 (0.20).")
    even = np.full(6, 0.1)
    assert most_read(even, even > 0, "abcdef", "f", 5).endswith("looks most at 6 tokens (0.10 each).")
    even[2] = 0.5
    assert most_read(even, even > 0, "abcdef", "f", 5).endswith(
        "looks most at 'c' at 3 (0.50) and 5 tokens (0.10 each)."
    )


def test_a_head_of_a_text_is_offered_for_each_kind_of_token_that_heads_prefer() -> None:
    """Of two that prefer the same kind it is the one farther beyond an even look; one without a preference is none."""
    made_up = [Head("decoder.0.self_attention", index) for index in range(4)]
    shares = {"same": [0.5, 0.6, 0.1, 0.1], "word": [0.1, 0.1, 0.7, 0.1]}
    even = {"same": [0.1, 0.3, 0.1, 0.1], "word": [0.1, 0.1, 0.2, 0.1]}
    estimates = {name: Estimate(*[np.array(each)] * 3, 64) for name, each in shares.items()}
    kinds = Kinds(tuple(made_up), 64, estimates, {name: np.array(each) for name, each in even.items()})
    assert examples(kinds) == {"word": made_up[2], "same": made_up[0]}


def test_the_query_that_shows_a_kind_is_a_word_that_gives_it_most() -> None:
    names = ("SEP", "to", "␣", "be", "to")
    pattern = np.eye(5)
    pattern[4] = [0.1, 0.6, 0.1, 0.1, 0.1]
    pattern[1] = [0.7, 0.3, 0.0, 0.0, 0.0]
    same = np.zeros((5, 5), dtype=bool)
    same[4, 1] = True
    assert telling([(pattern, same)], names) == 4
    before = np.eye(5, k=-1, dtype=bool)
    assert telling([(pattern, before)], names) == 1
    pattern[2] = [0.0, 1.0, 0.0, 0.0, 0.0]
    assert telling([(pattern, before)], names) == 1  # more of a blank's attention is no example
    blank = np.zeros((5, 5), dtype=bool)
    blank[4, 2] = True
    assert telling([(pattern, blank)], names) is None  # its most goes elsewhere
    two = np.eye(5)  # that both show is more than that one gives all
    pattern[4], two[4], two[1] = [0.1, 0.4, 0.2, 0.2, 0.1], [0.1, 0.1, 0.1, 0.4, 0.3], [1, 0, 0, 0, 0]
    assert telling([(pattern, same), (two, before)], names) == 4
    late = np.tril(np.ones((12, 12))) / np.arange(1, 13)[:, None] + 0.5 * np.eye(12, k=-1)
    assert telling([(late, np.eye(12, k=-1, dtype=bool))], ("a",) * 12) == 8  # the first eight have little choice


def test_the_title_speaks_of_the_head_that_was_chosen():
    unchosen, chosen = (
        open_page("heads", run="reverse"),
        open_page("heads", run="reverse", head="decoder.0.self_attention.1"),
    )
    assert not unchosen.title[0].value.startswith("Head 0.1 ")
    assert chosen.title[0].value.startswith("Head 0.1 puts ")


@pytest.mark.parametrize(
    ("cosines", "said"),
    [
        ([0.9], "Heads 0.0 and 0.1 are the only two to compare: their likeness is 0.90."),
        ([0.9, 0.1, 0.2], "Heads 0.0 and 0.1 are most alike: 0.90."),
        ([0.899, 0.1, 0.9], "These pairs of heads are most alike, 0.90 each: 0.0 and 0.1; 0.1 and 0.2."),
        ([0.9, 0.9, 0.9], "All 3 pairs of heads are about equally alike: 0.90 each."),
        ([0.5] * 5 + [0.1], "5 of 6 pairs of heads are most alike: 0.50 each."),
        ([], "There are no two heads to compare."),
        ([NAN], "No query sees more than one key here, so no two heads can be told apart."),
    ],
)
def test_pairs_of_heads_that_are_as_much_alike_are_named_together(cosines: list[float], said: str) -> None:
    n = {0: 1, 1: 2, 3: 3, 6: 4}[len(cosines)]
    alike = np.eye(n)
    alike[np.triu_indices(n, 1)] = cosines
    heads = tuple(Head("decoder.0.self_attention", index) for index in range(n))
    metrics = HeadMetrics(heads, 4, {}, {}, {}, alike)
    assert likeness_sentence(metrics, [head.short for head in heads]) == said


def test_heads_of_different_kinds_are_not_compared() -> None:
    heads = tuple(Head(f"{stack}.0.self_attention", 0) for stack in ("encoder", "decoder"))
    metrics = HeadMetrics(heads, 4, {}, {}, {}, np.array([[1, NAN], [NAN, 1]]))
    assert likeness_sentence(metrics, ["enc 0.0", "dec 0.0"]) == "There are no two heads to compare."
