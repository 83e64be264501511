"""One query of one head, opened up: against attention written anew with numpy."""

import math

import numpy as np
import pytest

from dashboard.app_pages.attention.inside.anatomy import MOST_KEYS, Anatomy
from dashboard.app_pages.attention.inside.steps import STAGES, headline, sentence
from dashboard.app_pages.attention.inside.tables import step_table
from tests.kit.heads_by_hand import (
    CROSS,
    MODELS,
    QUESTION,
    SELF,
    by_hand,
    inside_of,
    normed,
    random_model,
    read_by_hand,
)
from transformer import observe
from transformer.analysis.findings import Head
from transformer.analysis.heads.inside import look_inside
from transformer.edits import OverrideMask


@pytest.mark.parametrize("name", MODELS)
def test_every_step_is_what_is_computed_by_hand(name: str) -> None:
    task, changes, site = MODELS[name]
    model, config = random_model(task, **changes)
    said = [2, 7, 1, 8, 2]
    tokens, source = read_by_hand(task, QUESTION.tolist(), said)
    n = (source if source is not None and site.startswith("encoder") else tokens).shape[1]
    for head, place in ((Head(site, 0), 0), (Head(site, 1), n - 1)):
        found = look_inside(model, config.build_task(), QUESTION, head, place, said=np.array(said))
        for field, expected in by_hand(model, tokens, source, head, place).items():
            np.testing.assert_allclose(getattr(found, field), expected, atol=2e-5, err_msg=f"{field} of {head}")
        assert found.rotated == ("rotary" in name and site != CROSS)
        assert (found.bias is not None) == ("alibi" in name and site != CROSS)
        assert found.norm_behind == ("LayerNorm" if "post-norm" in name else "")
        assert found.strongest == int(found.pattern.argmax())


@pytest.mark.parametrize("name", MODELS)
def test_what_a_pass_records_is_shown_to_the_last_bit(name: str) -> None:
    task_name, changes, site = MODELS[name]
    model, config = random_model(task_name, **changes)
    task = config.build_task()
    tokens, source = read_by_hand(task_name, QUESTION.tolist(), task.answer(QUESTION).tolist())
    seen = observe(model, tokens, source=source)
    found = look_inside(model, task, QUESTION, Head(site, 1), 2)
    for field in ("query", "z", "scores", "pattern", "key", "value"):
        recorded = seen[f"{site}.{field}"][0, 1].numpy()
        assert np.array_equal(getattr(found, field), recorded if field in ("key", "value") else recorded[2]), field
    assert np.array_equal(found.out, seen[f"{site}.out"][0, 2].numpy())
    assert np.array_equal(found.scaled if found.bias is None else found.scaled + found.bias, found.scores)
    layer = site.rpartition(".")[0]
    after = seen[f"{layer}.{'resid_cross' if site == CROSS else 'resid_mid'}"][0, 2].numpy()
    norm = model.get_submodule(layer).get_submodule("around_cross" if site == CROSS else "around_self").after
    np.testing.assert_allclose(normed(found.after.astype(float), norm), after, atol=1e-5)
    np.testing.assert_allclose(found.written + found.others + found.output_bias, found.out, atol=1e-5)
    keys = source if source is not None and ("cross" in site or "enc" in site) else tokens
    assert found.keys == tuple(task.vocabulary[token] for token in keys[0])


def test_a_query_that_may_see_nothing_writes_nothing_and_says_so() -> None:
    model, config = random_model("reverse")
    nothing = OverrideMask.of(np.zeros((10, 10), dtype=bool))
    found = look_inside(model, config.build_task(), QUESTION, Head(SELF, 0), 5, edits=(nothing,))
    assert found.strongest is None
    assert math.isnan(found.largest)
    assert found.total == 0
    for field in ("exponentials", "pattern", "weighted", "z", "written"):
        assert not getattr(found, field).any()
    assert headline(found) == "Query 'SEP' at 6 may see nothing: it attends to nothing, and its head writes nothing."
    anatomy = Anatomy(found)
    for stage in anatomy.stages:
        assert "nan" not in sentence(found, stage)
        assert "nan" not in str([block.texts for block in step_table(anatomy, stage).blocks])
    for stage in ("mask", "exp", "sum", "divide", "weigh", "project"):
        assert sentence(found, stage) == STAGES[stage].blind
    assert len(anatomy.thumbs()) == len(anatomy.stages) == 12


def test_a_head_or_query_that_is_not_there_is_an_error() -> None:
    model, config = random_model("reverse")
    task = config.build_task()
    with pytest.raises(KeyError, match="no head 2"):
        look_inside(model, task, QUESTION, Head(SELF, 2), 0)
    with pytest.raises(KeyError, match="no site"):
        look_inside(model, task, QUESTION, Head("decoder.7.self_attention", 0), 0)
    with pytest.raises(IndexError, match="no query at 10"):
        look_inside(model, task, QUESTION, Head(SELF, 0), 10)


def numbers(rows) -> np.ndarray:
    return np.array([[float(text.replace("−", "-")) for text in row] for row in rows])


def test_of_many_keys_and_dimensions_the_heaviest_are_shown_and_the_rest_add_up() -> None:
    found = inside_of(Head(SELF, 0), n_keys=512, d_head=40)
    anatomy = Anatomy(found)
    most = sorted(np.argsort(-found.pattern)[: MOST_KEYS - 1].tolist())
    assert anatomy.keys.tolist() == most
    table = step_table(anatomy, "divide")
    assert [label.place for label in table.labels] == [*(key + 1 for key in most), None, None]
    assert table.labels[-2].text == "496 others"
    rest = 1 - found.pattern[most].sum()
    shares = numbers(table.blocks[-1].texts)[:, 0]
    assert shares[-2] == pytest.approx(rest, abs=5e-5)
    assert sum(shares[:-1]) == pytest.approx(1, abs=1e-3)
    assert f"the others share {rest:.4f}" in table.note
    least, best = int(found.pattern.argmin()), int(found.pattern.argmax())
    chosen = Anatomy(found, least)
    assert least in chosen.keys
    assert "15 keys that are looked at most and the chosen one, of 512" in chosen.keys_note()
    for stage in ("keys", "dot", "divide", "weigh"):
        assert [label.place for label in step_table(chosen, stage, least).labels if label.chosen] == [least + 1]
    dot = step_table(anatomy, "dot")
    for row, key in enumerate([best, *(key for key in most if key != best)], start=2):  # below the query and that key
        cells = [block.texts[row][: len(block.headings)] for block in dot.blocks[:2]]
        products = sum(numbers([texts]).sum() for texts in cells)
        assert products == pytest.approx(float(found.query @ found.key[key]), abs=0.09)
    assert "12 dimensions" in dot.note
    for stage, whole, kept in (
        ("weigh", found.pattern @ found.value, anatomy.giving),
        ("project", found.z @ found.output_weight, anatomy.writing),
    ):
        parts = numbers(step_table(anatomy, stage).blocks[1].texts)
        np.testing.assert_allclose(parts[:-1].sum(axis=0), whole[kept], atol=0.1)
