"""The page "Inside a head": the digits on it against attention written anew, its steps, its links, its code."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from dashboard.app_pages.attention.inside.circuits import copy_sentence, position_sentence, token_sentence
from dashboard.app_pages.attention.inside.steps import OF_A_KEY, STAGES, asked, code, mixture, most_mixed, sentence
from dashboard.figures.kit.numbers import share_text
from dashboard.parts.prose import code_around
from tests.dashboard.app_pages.conftest import Made
from tests.kit.heads_by_hand import CROSS, MODELS, QUESTION, SELF, by_hand, inside_of, random_model, read_by_hand
from tests.kit.numbers.cells import Cells, close, html
from tests.kit.pages import (
    ROOT,
    RUNS,
    SEP,
    answer,
    array,
    figures,
    is_off,
    link,
    open_page,
    press_counted,
    sample,
    trace,
    words,
)
from transformer.analysis.findings import Head
from transformer.analysis.heads.inside import look_inside


def rows_of(app: Any) -> dict[str, list[str]]:
    """The rows of the page's table by their label."""
    return {row[0]: row[1:] for row in Cells(html(app)).rows[2:]}


read = lru_cache(maxsize=1)(sample)


@lru_cache(maxsize=32)
def truth(run: str, head: Head, place: int) -> tuple[dict, list[int]]:
    """The numbers of a shipped run on its sample, by hand, and the tokens that are the keys."""
    model, _, tokens, source = read(run)
    keys = source if source is not None and head.site.endswith("cross_attention") else tokens
    return by_hand(model, tokens, source, head, place), keys[0].tolist()


def patterns(run: str, head: Head) -> np.ndarray:
    """The pattern of every query, float [query, key]."""
    places = read(run)[2].shape[1]
    return np.array([truth(run, head, place)[0]["pattern"] for place in range(places)])


def dimensions_shown(d_head: int) -> int:
    """All of a narrow head; of a wider one so many as fit beside a column for the others."""
    return d_head if d_head <= 16 else 12


WORKERS = {
    "reverse": "decoder.0.self_attention.2",
    "reverse-aligned": "encoder.0.self_attention.1",
    "reverse-translate": "decoder.0.cross_attention.3",
    "compiled": "decoder.0.self_attention.0",
}


@pytest.mark.daily(1)
@pytest.mark.parametrize("run", WORKERS)
def test_the_digits_on_the_page_are_those_of_the_run(run: str) -> None:
    head = Head.parse(WORKERS[run])
    place = 3
    real, tokens = truth(run, head, place)
    names = [f"{'SEP' if token == SEP else token} at {i + 1}" for i, token in enumerate(tokens)]
    app = open_page("inside", run=run, head=str(head), query=str(place + 1), operation="dot")
    shown = lambda rows: [int(text) for text in Cells(html(app)).rows[1][1 : 1 + rows]]  # noqa: E731
    wide = dimensions_shown(len(real["query"]))
    dims = shown(wide)
    close(rows_of(app)[f"q at {place + 1}"][:wide], real["query"][dims])
    for name, key, dot in zip(names, real["key"], real["dots"], strict=True):
        close(rows_of(app)[name][:wide], (real["query"] * key)[dims])
        close(rows_of(app)[name][-1:], np.array([dot]))
    app = open_page("inside", run=run, head=str(head), query=str(place + 1), operation="divide")
    for i, name in enumerate(names):
        dot, scaled, may, exponential, share = rows_of(app)[name]
        close(
            [dot, scaled, exponential, share],
            np.array([real[f][i] for f in ("dots", "scaled", "exponentials", "pattern")]),
        )
        assert may == ("yes" if real["visible"][i] else "no")
    close(rows_of(app)["Σ"][-2:], np.array([real["total"], 1.0]))
    app = open_page("inside", run=run, head=str(head), query=str(place + 1), operation="weigh")
    dims = [int(text) for text in Cells(html(app)).rows[1][2:]]
    for name, may, share, weighted in zip(names, real["visible"], real["pattern"], real["weighted"], strict=True):
        assert (name in rows_of(app)) == bool(may)
        if may:
            close(rows_of(app)[name], np.array([share, *weighted[dims]]))
    hidden = int((~np.array(real["visible"], dtype=bool)).sum())
    assert any(f"Not shown: {hidden} key" in each.value for each in app.caption) == bool(hidden)
    close(rows_of(app)["z"][1:], real["z"][dims])
    app = open_page("inside", run=run, head=str(head), query=str(place + 1), operation="project")
    table = rows_of(app)
    dims = [int(text) for text in Cells(html(app)).rows[1][2:]]
    for i in (int(label) for label in table if label.isdecimal()):
        close(table[str(i)], np.array([real["z"][i], *(real["z"][i] * real["output_weight"][i, dims])]))
    close(table["Σ"][1:], real["written"][dims])
    app = open_page("inside", run=run, head=str(head), query=str(place + 1), operation="add")
    dims = shown(16)
    assert set(dims) == set(np.argsort(-np.abs(real["written"]), kind="stable")[:16]) or run == "compiled"
    for name, field in ((f"head {head.short}", "written"), ("+ other heads", "others"), ("+ bias b_O", "output_bias"),
                        ("+ stream", "before"), ("= new stream", "after")):  # fmt: skip
        close(rows_of(app)[name], real[field][dims])


@pytest.mark.daily(2)
@pytest.mark.parametrize(("stage", "field"), [("query", "every_query"), ("keys", "key"), ("values", "value")])
def test_the_vectors_on_the_page_are_those_of_the_run(stage: str, field: str) -> None:
    real, tokens = truth("reverse", Head.parse(WORKERS["reverse"]), 8)
    app = open_page("inside", run="reverse", operation=stage)
    table = rows_of(app)
    for i, token in enumerate(tokens):
        close(table[f"{'SEP' if token == SEP else token} at {i + 1}"][-16:], real[field][i])
    if stage == "query":
        assert html(app).count("outline:") == 1
    elif stage == "keys":
        close(table["q at 9"], real["query"])


def test_of_many_values_those_are_weighed_one_by_one_that_weigh_most() -> None:
    head, place = Head.parse(WORKERS["reverse"]), 15
    real, _ = truth("reverse", head, place)
    app = open_page("inside", run="reverse", head=str(head), query=str(place + 1), operation="weigh")
    table = Cells(html(app)).rows
    dims = [int(text) for text in table[1][2:]]
    most = np.sort(np.argsort(-real["pattern"], kind="stable")[:7])
    assert [int(row[0].rpartition(" ")[2]) - 1 for row in table[2:9]] == most.tolist()
    rest = np.setdiff1d(np.arange(16), most)
    assert [row[0] for row in table[9:]] == ["9 others", "z"]
    close(table[9][1:], np.array([real["pattern"][rest].sum(), *real["weighted"][rest][:, dims].sum(axis=0)]))
    close(table[10][2:], real["z"][dims])
    share = real["pattern"][rest].sum()
    said = f"The 7 keys that are looked at most, of 16; the others share {share:.4f}."
    assert any(said in each.value for each in app.caption)


@pytest.mark.daily(2)
@pytest.mark.parametrize("run", WORKERS)
def test_the_weighted_sum_is_written_out_and_the_query_that_mixes_most_is_offered(run: str) -> None:
    head = Head.parse(WORKERS[run])
    app = open_page("inside", run=run, head=str(head), operation="weigh")
    rows = patterns(run, head)
    ranked = np.sort(rows, axis=1)[:, ::-1]
    best = int((ranked[:, 1] + ranked[:, 2]).argmax())
    buttons = [button for button in app.button if button.key == "mixture"]
    shares = [share for share in ranked[best, :3] if share >= 0.1]
    if len(shares) < 2:
        assert not buttons
        return
    (button,) = buttons
    numbers = " + ".join(share_text(share) for share in shares)
    assert button.label.endswith(f"at {best + 1}: it mixes {len(shares)} values, {numbers}")
    app = button.click().run()
    assert not app.exception
    assert link(app)["query"] == str(best + 1)
    assert not [button for button in app.button if button.key == "mixture"]
    _, tokens = truth(run, head, best)
    keys = np.argsort(-rows[best], kind="stable")[:3]
    terms = [f"{share_text(rows[best, key])} · v('{'SEP' if tokens[key] == SEP else tokens[key]}' at {key + 1})"
             for key in keys if rows[best, key] >= 0.005]  # fmt: skip
    assert any(each.value.startswith(f"z = {' + '.join(terms)}") for each in app.markdown)


def test_of_a_head_that_copies_no_mixture_is_offered() -> None:
    pattern = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.4, 0.3, 0.3, 0], [0.97, 0.01, 0.01, 0.01]])
    assert most_mixed(pattern) == 2
    assert mixture(pattern[2], "a", 2) == "Show 'a' at 3: it mixes 3 values, 0.40 + 0.30 + 0.30"
    assert mixture(pattern[1], "a", 1) == "Show 'a' at 2: it mixes 2 values, 0.50 + 0.50"
    assert mixture(pattern[0], "a", 0) == mixture(pattern[3], "a", 3) == ""
    assert most_mixed(np.ones((2, 1))) == 0


def test_a_long_sequence_under_alibi_shows_the_keys_that_are_looked_at_most(alone: Made) -> None:
    model, config = alone({"length": 20}, positions="alibi", norm="post", n_layers=1, d_model=40)
    app = open_page("inside", run="one", head="decoder.0.self_attention.1", query="33", operation="bias")
    question = config.build_task().example.tolist()
    tokens, _ = read_by_hand("reverse", question, answer(model, config, question))
    real = by_hand(model, tokens, None, Head(SELF, 1), 32)
    most = np.sort(np.argsort(-real["pattern"])[:16])
    table = Cells(html(app)).rows[2:]
    assert [int(row[0].rpartition(" ")[2]) - 1 for row in table[:16]] == most.tolist()
    for row, key in zip(table, most, strict=False):
        close(row[1:4], np.array([real["dots"][key], real["scaled"][key], real["scores"][key]]))
        assert row[4:] == ["", "", ""]
    assert table[16][0] == "24 others"
    assert app.selectbox(key="control-query").value == 33
    rest = 1 - real["pattern"][most].sum()
    assert any(f"of 40; the others share {rest:.4f}" in caption.value for caption in app.caption)
    assert any("The bias of ALiBi positions, the same for all tokens" in caption.value for caption in app.caption)


@pytest.mark.daily(3)
@pytest.mark.parametrize("run", RUNS)
def test_the_title_reads_the_strongest_key_of_the_first_answer(run: str) -> None:
    app = open_page("inside", run=run)
    task = read(run)[1].task.task
    head = Head.parse(str(app.session_state["control-head"]))
    place = 8 if task == "reverse" else 0
    real, tokens = truth(run, head, place)
    best = int(real["pattern"].argmax())
    asking = "SEP" if task != "reverse-aligned" else "3"
    title = f"Query '{asking}' at {place + 1} reads '{tokens[best]}' at {best + 1} with {real['pattern'][best]:.2f}"
    if run == "reverse-aligned-causal":
        assert app.title[0].value == "Query '3' at 1 can only read '3' at 1: it may see nothing else."
    else:
        assert app.title[0].value == f"{title}: here is why."
    assert link(app) == {"run": run}


def test_the_steps_are_gone_through_by_button_and_kept_in_the_link() -> None:
    """All but the bias, which this model lacks."""
    app = open_page("inside", run="compiled")
    assert is_off(app, "operation-back")
    names = [name for name in STAGES if name != "bias"]
    for place in (1, 4, len(names) - 1):
        press_counted(app, "operation-on", times=place - names.index(link(app).get("operation", names[0])))
        assert link(app) == {"run": "compiled", "operation": names[place]}
        assert app.session_state["control-operation"] == names[place]
    assert is_off(app, "operation-on")
    press_counted(app, "operation-back", times=len(names) - 1)
    assert link(app) == {"run": "compiled"}


def test_an_early_step_of_training_and_a_short_input_can_be_opened() -> None:
    app = open_page("inside", run="reverse", step="0", input="7", operation="weigh")
    assert not app.warning
    assert app.title[0].value.startswith("Query 'SEP' at 2 reads ")
    assert set(rows_of(app)) == {"7 at 1", "SEP at 2", "z"}


def test_another_head_keeps_the_step_and_the_query_where_it_asks_from_the_same_tokens() -> None:
    app = open_page("inside", run="reverse-translate", query="3", key="2", operation="keys")
    app.selectbox(key="control-head").set_value(Head.parse("decoder.0.self_attention.1")).run()
    kept = {"run": "reverse-translate", "operation": "keys"}
    assert link(app) == kept | {"head": "decoder.0.self_attention.1", "query": "3"}
    app.selectbox(key="control-head").set_value(Head.parse("encoder.0.self_attention.1")).run()
    assert link(app) == kept | {"head": "encoder.0.self_attention.1"}
    assert app.title[0].value.startswith("Query '6' at 8 reads ")
    assert any("not by the unembedding" in each.value for each in app.info)


def test_the_circuits_of_the_compiled_head_are_what_was_written_by_hand() -> None:
    app = open_page("inside", run="compiled")
    place = np.arange(16)
    mirror = np.where((place[:, None] >= 8) & (place[None, :] == 15 - place[:, None]), 200.0, 0.0)
    drawn = {key: array(trace(app, key, "values")["z"]) for key in figures(app) if key.startswith("circuit-")}
    np.testing.assert_allclose(drawn["circuit-positions"], mirror, rtol=1e-5)
    assert not drawn["circuit-tokens"].any()
    np.testing.assert_allclose(drawn["circuit-output"], np.eye(11))
    assert "All are 0: this head asks for no token." in words(app)
    assert "For 10 of 10 symbols, looking at one adds most to its own logit: this head copies." in words(app)


# --- the code beside each step


@pytest.mark.parametrize("site", [SELF, CROSS])
@pytest.mark.parametrize("stage", STAGES)
def test_the_line_beside_a_step_stands_in_our_source(site: str, stage: str) -> None:
    name, mark = code(inside_of(Head(site, 0)), stage)
    lines, first, marked = code_around(name, mark)
    source = (ROOT / (name.partition(":")[0].replace(".", "/") + ".py")).read_text().splitlines()
    assert [line.strip() for line in source[first - 1 : first - 1 + len(lines)]] == [line.strip() for line in lines]
    assert mark in lines[marked]
    assert lines[marked] == lines[marked].rstrip()
    assert 1 <= len(lines) <= 3


@pytest.mark.daily(1)
@pytest.mark.parametrize("run", WORKERS)
def test_what_the_division_does_to_this_query_is_worked_out_by_hand(run: str) -> None:
    head, place = Head.parse(WORKERS[run]), 5
    real, _ = truth(run, head, place)
    app = open_page("inside", run=run, head=str(head), query=str(place + 1), operation="scale")
    (said,) = [each.value for each in app.markdown if "without the division" in each.value]
    spreads = r"the (\d+) keys that this query may see have ([\d.]+); divided, ([\d.]+)"
    numbers = re.search(rf"{spreads}\. .*weight is ([\d.]+); .* would be ([\d.]+)\.$", said)
    assert numbers is not None, said
    spread, after, divided, undivided = map(float, numbers.groups()[1:])
    dots = real["dots"][real["visible"]]
    weights = np.exp(dots - dots.max())
    assert int(numbers[1]) == len(dots)
    assert spread == pytest.approx(dots.std(), abs=0.006)
    assert after == pytest.approx(dots.std() / math.sqrt(len(real["query"])), abs=0.006)
    assert divided == pytest.approx(real["pattern"].max(), abs=0.006)
    assert undivided == pytest.approx((weights / weights.sum()).max(), abs=0.006)
    for i, (row, seen) in enumerate(zip(Cells(html(app)).rows[2:], real["visible"], strict=False)):
        power = math.exp(real["dots"][i] - dots.max()) if seen else 0.0
        close(row[1:], np.array([real[f][i] for f in ("dots", "scaled", "pattern")] + [power / weights.sum()]))


def test_a_query_is_offered_whose_weights_the_division_changes_most() -> None:
    model, _, tokens, source = read("reverse")
    found = {}
    for head in (Head(f"decoder.{layer}.self_attention", index) for layer in range(2) for index in range(4)):
        last = by_hand(model, tokens, source, head, 15)  # it sees all, and every query is in it
        for place, query in enumerate(last["every_query"]):
            dots = last["key"][: place + 1] @ query
            weights = [np.exp((dots - dots.max()) / by) for by in (math.sqrt(len(query)), 1)]
            found[head, place] = tuple((each / each.sum()).max() for each in weights)
    head, place = max(found, key=lambda each: found[each][1] - found[each][0])
    divided, bare = found[head, place]
    app = open_page("inside", run="reverse", operation="scale")
    (button,) = [button for button in app.button if button.key == "undivided"]
    assert button.label.startswith(
        f"Show head {head.short}, query '{tokens[0, place]}' at {place + 1}: its largest weight is "
    )
    assert button.label.endswith(f" {divided:.2f}, and {bare:.2f} without the division")
    app = button.click().run()
    assert link(app) == {"run": "reverse", "operation": "scale", "head": str(head), "query": str(place + 1)}
    assert not [button for button in app.button if button.key == "undivided"]


def test_a_query_that_sees_one_key_is_not_divided_in_words() -> None:
    app = open_page("inside", run="compiled", operation="scale", query="1")
    assert any("This query sees one key only: its weight is 1, whatever is divided." in m.value for m in app.markdown)


@pytest.mark.daily(1)
@pytest.mark.parametrize("run", WORKERS)
def test_a_dot_product_is_written_out_for_the_key_that_is_chosen(run: str) -> None:
    head, place = Head.parse(WORKERS[run]), 5
    real, tokens = truth(run, head, place)
    for key in (0, len(tokens) - 1):
        app = open_page("inside", run=run, head=str(head), query=str(place + 1), operation="dot", key=str(key + 1))
        (said,) = [each.value for each in app.markdown if "stands in the third" in each.value]
        name = f"'{'SEP' if tokens[key] == SEP else tokens[key]}' at {key + 1}: "
        written, total = said.removeprefix(name).split(", its factors rounded")[0].replace("−", "-").split(" = ")
        close([total], real["dots"][key : key + 1])
        products = real["query"] * real["key"][key]
        *terms, rest = written.split(" + ")
        assert rest == f"{len(products) - 3} smaller products"
        pairs = [[float(factor.strip("()")) for factor in term.split(" × ")] for term in terms]
        largest = np.sort(np.argsort(-np.abs(products), kind="stable")[:3])
        np.testing.assert_allclose(pairs, np.stack([real["query"][largest], real["key"][key][largest]], 1), atol=0.006)
        wide = dimensions_shown(len(products))
        shown = [int(text) for text in Cells(html(app)).rows[1][1 : 1 + wide]]
        close(rows_of(app)[f"k at {key + 1}"][:wide], real["key"][key][shown])


def test_the_key_that_is_chosen_is_part_of_the_link() -> None:
    app = open_page("inside", run="reverse", operation="exp")
    assert app.selectbox(key="control-key").value == 8  # the key that the query at 9 looks at most
    app.selectbox(key="control-key").set_value(3).run()
    assert link(app) == {"run": "reverse", "operation": "exp", "key": "3"}
    assert any(each.value.startswith("'4' at 3: exp(") for each in app.markdown)
    app.selectbox(key="control-key").set_value(8).run()
    assert link(app) == {"run": "reverse", "operation": "exp"}


@pytest.mark.parametrize("name", MODELS)
def test_the_arithmetic_that_is_said_of_a_key_is_right_also_of_one_that_may_not_be_seen(name: str) -> None:
    task, changes, site = MODELS[name]
    model, config = random_model(task, len(QUESTION), **changes)
    for place in range(len(QUESTION)):
        found = look_inside(model, config.build_task(), QUESTION, Head(site, 1), place)
        keys = "the one key" if found.visible.sum() == 1 else f"the {found.visible.sum()} keys"
        total = f"Over {keys} that may be seen, the exponentials add up to {found.total:.4f}."
        assert sentence(found, "sum") == total
        for stage in set(OF_A_KEY) & {"scale", "exp", "divide"}:
            for key in range(len(found.keys)):
                said = sentence(found, stage, key)
                if stage in ("exp", "divide") and not found.visible[key]:
                    assert said.startswith(f"{asked(found, key)} may not be seen")
                    assert "is 0. " in said if stage == "exp" else said.endswith("attention is 0.")
                    assert found.exponentials[key] == found.pattern[key] == 0
                    continue
                assert ("step Mask takes it out" in said) == (stage == "scale" and not found.visible[key])
                small = found.exponentials[key] < 0.00005
                assert ("< 0.0001" in said) == (stage != "scale" and small)
                if stage != "scale" and small:
                    continue
                if stage == "scale":
                    assert f": {found.dots[key]:.4f} / √" in said.replace("−", "-")
                left, right = re.split(r"(?<=\d)[.,] ", said.partition(": ")[2])[0].replace("−", "-").split(" = ")
                sides = [eval(re.sub(r"√(\d+)", r"\1 ** 0.5", side), {"exp": math.exp}) for side in (left, right)]
                assert sides[0] == pytest.approx(sides[1], abs=3e-4, rel=1e-3), said


# --- the words of circuits


def test_how_positions_fit_is_said_of_all_that_fit_as_well() -> None:
    fit, seen = np.array([[1.0, 0.5], [0.25, 0.251]]), np.ones((2, 2), dtype=bool)
    ends = "that can be seen the best key is where the answer stands."
    answers = np.array([[False, False], [False, True]])
    assert position_sentence(fit, seen, answers) == (
        f"Of what it may see, the query at 2 fits the keys at 1 and 2 best; for 0 of 1 answer {ends}"
    )
    answers = np.array([[True, False], [True, True]])
    assert position_sentence(fit, seen, answers) == (
        f"Of what it may see, the query at 1 fits the key at 1 best; for 2 of 2 answers {ends}"
    )
    many = np.zeros((1, 6))
    assert position_sentence(many, many == 0, many == 0) == (
        f"Of what it may see, the query at 1 fits 6 keys best, all alike; for 1 of 1 answer {ends}"
    )
    assert position_sentence(fit, seen, None) == "Of what may be seen, the query at 1 and the key at 1 fit best: 1.00."
    assert position_sentence(fit, ~np.eye(2, dtype=bool) & seen, ~seen) == (
        "Of what may be seen, the query at 1 and the key at 2 fit best: 0.50."
    )
    assert position_sentence(0 * fit - 0.001, seen, None) == (
        "Of what may be seen, 4 pairs of a query and a key fit best: 0.00 each."
    )
    assert position_sentence(fit, ~seen, answers) == "No query may see a key."


def test_no_token_is_said_to_fit_best_that_another_equals() -> None:
    names = ("a", "b")
    ends = "of 2 tokens the best key is the token itself."
    assert token_sentence(np.zeros((2, 2)), names) == "All are 0: this head asks for no token."
    assert token_sentence(np.array([[1.0, 0.5], [0.2, 0.2]]), names) == (
        f"Query 'a' and key 'a' fit best: 1.00; for 1 {ends}"
    )
    assert token_sentence(np.array([[0.1, 0.101], [0.0, 0.05]]), names) == (
        f"2 pairs of a query and a key fit best: 0.10 each; for 1 {ends}"
    )


def test_a_head_copies_where_each_symbol_adds_most_to_its_own_logit() -> None:
    own, all_alike = np.eye(3), np.zeros((3, 3))
    said = "symbols, looking at one adds most to its own logit"
    assert copy_sentence(own, (0, 1, 2), 2) == f"For 2 of 2 {said}: this head copies."
    assert copy_sentence(own[[1, 0]], (0, 1), 2) == f"For 0 of 2 {said}."
    assert copy_sentence(all_alike, (0, 1, 2), 3) == f"For 0 of 3 {said}."
