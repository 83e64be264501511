"""What tables and strips give away: every digit on the screen is a saved number's, and those are the model's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashboard.app_pages.attention.inside.anatomy import Anatomy
from dashboard.app_pages.attention.inside.tables import step_table
from dashboard.components.payload import unpack
from dashboard.components.sheet import Axis, Series, pack_sheet
from dashboard.figures.html.tokens import Token
from dashboard.parts.tokens import token_series
from tests.kit.heads_by_hand import MODELS, QUESTION, by_hand, inside_of, random_model, read_by_hand
from tests.kit.pages import PI, answer, network, open_page
from transformer.analysis.findings import Head
from transformer.analysis.heads.inside import look_inside

KEYS = Axis("key", np.arange(1, 4), ("a", "b", "c"))
NUMBERS = Series("pattern", np.array([0.25, 0.5, 0.25]), (KEYS,))


def column(said: dict[str, Any], body: bytes) -> np.ndarray:
    """A column of the message, read as the browser reads it."""
    if said["dtype"] == "<U":
        return np.array(said["data"], dtype=str)
    return np.frombuffer(body, said["dtype"], said["count"], said["offset"])


def arrays(message: bytes) -> dict[str, np.ndarray]:
    """What a message gives away, by name, in its shape; what stands beside a series is called `series.name`."""
    header, body = unpack(message)
    found = {}
    for series in header["series"]:
        shape = [len(column(dim["at"], body)) for dim in series["dims"]]
        found[series["name"]] = column(series["values"], body).reshape(shape)
        for beside in series["extra"]:
            found[f"{series['name']}.{beside['name']}"] = column(beside, body).reshape(shape)
    return found


def sheets(app: Any) -> dict[str, bytes]:
    """The messages of the sheets on a page, by key."""
    messages = [element.proto.bytes for element in app.get("bidi_component")]
    return {header["key"]: each for each in messages if "series" in (header := unpack(each)[0])}


@pytest.mark.parametrize(
    "values",
    [
        np.array([[0.1, np.nan, np.inf], [1e-45, -0.0, -np.inf]], dtype=np.float32),
        np.array([[0.1, np.nan, np.inf], [5e-324, -0.0, -np.inf]]),
        np.array([[1, -2, 3], [4, 5, 2**31 - 1]]),
        np.array([[True, False, True], [False, True, False]]),
        np.array([["a", "", '"<b>'], ["é", "😀", "\n"]]),
        np.arange(12, dtype=np.float64).reshape(3, 4).T[::2],
    ],
)
def test_every_kind_of_value_arrives_to_the_last_bit(values: np.ndarray) -> None:
    rows = Axis("row", np.array([np.nan, 1.0]))
    first = Series("odd", np.array([True, False, True]), (KEYS,))  # three bytes: the next begins at no 8
    found = arrays(pack_sheet([first, Series("x", values, (rows, KEYS))], key="k", alt="Six values."))["x"]
    assert found.shape == (2, 3)
    if values.dtype.kind == "f":
        assert found.tobytes() == values.tobytes()
    else:
        np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    ("series", "alt", "sentence"),
    [
        (NUMBERS, " ", "needs alt"),
        (Series("x", np.zeros((2, 3)), (KEYS,)), "x", r"x is \[2, 3\], its axes are \[3\]"),
        (Series("x", np.zeros(3), (KEYS,), {"mask": np.ones(2, bool)}), "x", r"mask is \[2\], its axes are \[3\]"),
        (Series("x", np.zeros(1), (Axis("key", np.arange(1), ("a", "b")),)), "x", "2 tokens for the 1 places of key"),
    ],
)
def test_numbers_that_do_not_fit_are_refused_in_words(series: Series, alt: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        pack_sheet([series], key="k", alt=alt)


@pytest.mark.parametrize("case", ["decoder, alibi, no norm, no feed-forward", "across, rotary", "encoder, sinusoidal"])
def test_the_steps_give_away_every_number_of_the_query(case: str) -> None:
    task, options, site = MODELS[case]
    model, config = random_model(task, **options)
    said = list(range(5))
    head = Head(site, 1)
    inside = look_inside(model, config.build_task(), QUESTION, head, 3, said=np.array(said))
    found = arrays(pack_sheet(Anatomy(inside).series(), key="k", alt="Steps."))
    tokens, source = read_by_hand(task if task.startswith("reverse-") else "reverse", QUESTION.tolist(), said)
    real = by_hand(model, tokens, source, head, 3)
    fields = {"query": "query", "keys": "key", "dots": "dots", "scaled": "scaled", "scores": "scores", "total": "total",
              "exponentials": "exponentials", "pattern": "pattern", "values": "value", "z": "z", "written": "written",
              "new_stream": "after"}  # fmt: skip
    for name, field in fields.items():
        np.testing.assert_allclose(found[name], real[field], rtol=2e-5, atol=2e-5, err_msg=name)
    np.testing.assert_array_equal(found["pattern.mask"], real["visible"])
    if "alibi" in case:
        np.testing.assert_allclose(found["scaled"] + found["bias"], real["scores"], rtol=2e-5, atol=2e-5)
    assert ("bias" in found) == ("alibi" in case)


@pytest.mark.parametrize(("n_keys", "d_head"), [(5, 4), (40, 24)])
def test_every_digit_of_a_table_is_that_of_a_saved_number(n_keys: int, d_head: int) -> None:
    anatomy = Anatomy(inside_of(Head("decoder.0.self_attention", 0), n_keys, d_head))
    for stage in anatomy.stages:
        table = step_table(anatomy, stage)
        found = arrays(pack_sheet(table.series(), key="k", alt=stage, note=table.note))
        shown = [block for block in table.blocks if any(any(row) for row in block.texts)]
        numbers = [name for name in found if not name.endswith(".mask")]
        assert len(shown) == len(numbers)
        for block, name in zip(shown, numbers, strict=True):
            values = found[name].reshape(len(table.labels), len(block.headings))
            if values.dtype.kind == "U":
                assert values.tolist() == [list(row) for row in block.texts]
                continue
            for text, value in zip(np.ravel(block.texts), values.ravel(), strict=True):
                assert (text == "") == np.isnan(value)
                if text:
                    decimals = len(text.partition(".")[2])
                    assert float(text.replace("−", "-")) == float(f"{value:.{decimals}f}")


def test_a_table_names_its_rows_by_their_places_and_leaves_out_what_is_still_to_come() -> None:
    anatomy = Anatomy(inside_of(Head("decoder.0.self_attention", 0), n_keys=3))
    assert [series.name for series in step_table(anatomy, "mask").series()] == ["dots", "scaled", "may_see"]
    assert " ".join(series.name for series in step_table(anatomy, "scale").series()) == "dots scaled pattern undivided"
    (rows,) = step_table(anatomy, "divide").series()[0].axes
    np.testing.assert_array_equal(rows.places, [1, 2, 3, np.nan])
    assert (rows.name, rows.tokens) == ("key", ("<i>&", "<i>&", "<i>&", "Σ"))
    dims = step_table(anatomy, "project").series()[1].axes
    assert [axis.name for axis in dims] == ["d_head", "d_model"]
    np.testing.assert_array_equal(dims[0].places, [0, 1, np.nan])
    assert dims[1].places.tolist() == anatomy.writing.tolist()
    (rows, _) = step_table(anatomy, "add").series()[0].axes
    assert (rows.name, rows.places.tolist(), rows.tokens[4]) == ("row", [1, 2, 3, 4, 5], "= new stream")


def test_tokens_say_what_is_right() -> None:
    line = [Token("3", "right", "3"), Token("4", "wrong", "1"), Token("?", "open")]
    found = arrays(pack_sheet([token_series("out", line)], key="k", alt="Tokens."))
    assert found["out"].tolist() == ["3", "4", "?"]
    assert found["out.verdict"].tolist() == ["right", "wrong", "open"]
    assert found["out.answer"].tolist() == ["3", "1", ""]
    assert token_series("in", [Token("3")]).beside == {}
    assert token_series("in", []).values.shape == (0,)


def test_the_table_and_the_steps_on_the_page_give_away_the_same_query() -> None:
    messages = sheets(open_page("inside", run="reverse", operation="divide", head="decoder.0.self_attention.2"))
    table, steps = arrays(messages["inside-numbers"]), arrays(messages["inside-steps"])
    model, config = network("reverse")
    tokens, _ = read_by_hand("reverse", PI, answer(model, config, PI))
    real = by_hand(model, tokens, None, Head("decoder.0.self_attention", 2), 8)
    for name in ("dots", "scaled", "exponentials", "pattern"):
        np.testing.assert_array_equal(table[name][:16], steps[name])
        np.testing.assert_allclose(steps[name], real[name], rtol=1e-4, atol=1e-5)
    assert table["may_see"].tolist() == ["yes" if seen else "no" for seen in real["visible"]] + [""]
    assert table["pattern"][16] == pytest.approx(1, abs=1e-6)
    assert unpack(messages["inside-numbers"])[0]["alt"].startswith("'6' at 8: 1.0000 / ")


def test_the_strips_under_a_mask_say_what_changes() -> None:
    app = open_page("masks", run="reverse-aligned", mask="causal")
    message = sheets(app)["mask-tokens"]
    found = arrays(message)
    assert found["before.answer"].tolist() == found["after.answer"].tolist() == [str(token) for token in PI[::-1]]
    change = int((found["before"] != found["after"]).sum())
    assert unpack(message)[0]["alt"].startswith(f"{change} of 8 predictions flip")
    for strip in ("before", "after"):
        assert ((found[strip] == found[f"{strip}.answer"]) == (found[f"{strip}.verdict"] == "right")).all()
