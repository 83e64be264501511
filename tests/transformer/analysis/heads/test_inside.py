"""One query of one head, opened up: against attention written anew with numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dashboard.app_pages.look_inside.inside.anatomy import MOST_KEYS, Anatomy
from dashboard.app_pages.look_inside.inside.steps import STAGES, headline, sentence
from dashboard.app_pages.look_inside.inside.tables import step_table
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
@pytest.mark.parametrize("place", [0, -1])
def test_every_step_is_what_is_computed_by_hand(name: str, place: int) -> None:
    task, changes, site = MODELS[name]
    model, config = random_model(task, **changes)
    said = [2, 7, 1, 8, 2]
    tokens, source = read_by_hand(task, QUESTION.tolist(), said)
    n = (source if source is not None and site.startswith("encoder") else tokens).shape[1]
    for index in (0, 1):
        head = Head(site, index)
        found = look_inside(model, config.build_task(), QUESTION, head, place % n, said=np.array(said))
        for field, expected in by_hand(model, tokens, source, head, place % n).items():
            np.testing.assert_allclose(getattr(found, field), expected, atol=2e-5, err_msg=f"{field}, head {index}")
        assert found.rotated == ("rotary" in name and site != CROSS)
        assert (found.bias is not None) == ("alibi" in name and site != CROSS)
        assert found.normed == ("post-norm" in name)
        assert found.strongest == int(found.pattern.argmax())


@pytest.mark.parametrize("name", MODELS)
def test_what_a_pass_records_is_shown_to_the_last_bit(name: str) -> None:
    task, changes, site = MODELS[name]
    model, config = random_model(task, **changes)
    tokens, source = read_by_hand(task, QUESTION.tolist(), config.build_task().answer(QUESTION).tolist())
    seen = observe(model, tokens, source=source)
    found = look_inside(model, config.build_task(), QUESTION, Head(site, 1), 2)
    for field in ("query", "z", "scores", "pattern"):
        assert np.array_equal(getattr(found, field), seen[f"{site}.{field}"][0, 1, 2].numpy()), field
    for field in ("key", "value"):
        assert np.array_equal(getattr(found, field), seen[f"{site}.{field}"][0, 1].numpy()), field
    assert np.array_equal(found.out, seen[f"{site}.out"][0, 2].numpy())
    added = found.scaled if found.bias is None else found.scaled + found.bias
    assert np.array_equal(added, found.scores)
    layer = site.rpartition(".")[0]
    after = seen[f"{layer}.{'resid_cross' if site == CROSS else 'resid_mid'}"][0, 2].numpy()
    norm = model.get_submodule(layer).get_submodule("around_cross" if site == CROSS else "around_self").after
    np.testing.assert_allclose(normed(found.after.astype(float), norm), after, atol=1e-5)
    np.testing.assert_allclose(found.written + found.others + found.output_bias, found.out, atol=1e-5)
    vocabulary = config.build_task().vocabulary
    assert found.keys == tuple(
        vocabulary[t] for t in (source if source is not None and ("cross" in site or "enc" in site) else tokens)[0]
    )


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


def test_of_many_keys_and_dimensions_the_heaviest_are_shown_and_the_rest_add_up() -> None:
    found = inside_of(Head(SELF, 0), n_keys=512, d_head=40)
    anatomy = Anatomy(found)
    most = sorted(np.argsort(-found.pattern)[: MOST_KEYS - 1].tolist())
    assert anatomy.keys.tolist() == most
    table = step_table(anatomy, "divide")
    assert [label.place for label in table.labels] == [*(key + 1 for key in most), None, None]
    assert table.labels[-2].text == "496 others"
    rest = 1 - found.pattern[most].sum()
    shares = [float(row[0]) for row in table.blocks[-1].texts]
    assert shares[-2] == pytest.approx(rest, abs=5e-5)
    assert sum(shares[:-1]) == pytest.approx(1, abs=1e-3)
    assert f"the others share {rest:.4f}" in table.note
    least = int(found.pattern.argmin())
    chosen = Anatomy(found, least)
    assert least in chosen.keys
    assert least not in anatomy.keys
    assert "15 keys that are looked at most and the chosen one, of 512" in chosen.keys_note()
    for stage in ("keys", "dot", "divide", "weigh"):
        assert [label.place for label in step_table(chosen, stage, least).labels if label.chosen] == [least + 1]
    dot = step_table(anatomy, "dot")
    best = int(found.pattern.argmax())
    for row, key in enumerate([best, *(key for key in most if key != best)], start=2):  # below the query and that key
        cells = [
            float(block.texts[row][i].replace("−", "-")) for block in dot.blocks[:2] for i in range(len(block.headings))
        ]
        assert sum(cells) == pytest.approx(float(found.query @ found.key[key]), abs=0.09)
    assert "12 dimensions" in dot.note
    weighed = np.array(
        [[float(t.replace("−", "-")) for t in row] for row in step_table(anatomy, "weigh").blocks[1].texts]
    )
    np.testing.assert_allclose(weighed[:-1].sum(axis=0), (found.pattern @ found.value)[anatomy.giving], atol=0.1)
    projected = np.array(
        [[float(t.replace("−", "-")) for t in row] for row in step_table(anatomy, "project").blocks[1].texts]
    )
    np.testing.assert_allclose(projected[:-1].sum(axis=0), (found.z @ found.output_weight)[anatomy.writing], atol=0.1)
