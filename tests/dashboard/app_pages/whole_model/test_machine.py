"""The page "The machine": its words, its boxes and its numbers against the model's own passes and weights."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from dashboard import theme
from dashboard.app_pages.whole_model.machine import words
from dashboard.app_pages.whole_model.machine.figures import Link, Stage, machine_figure
from dashboard.view.link import FIELDS
from dashboard.view.pages import PAGES
from tests.dashboard.app_pages.conftest import Made
from tests.kit.claims import judge
from tests.kit.claims.world import World
from tests.kit.models import TASK_OF, config_of, plans, size_of
from tests.kit.pages import PI, array, link, open_page, press_counted, sample, trace
from tests.kit.pages import words as said
from transformer import checkpoints, observe
from transformer.analysis.machine.plan import Box, Plan, Size, plan_block, plan_model
from transformer.foundation.claims import Claim
from transformer.training.runs import Run

# --- the words


@pytest.mark.parametrize("architecture", [*TASK_OF, "gru"])
def test_every_box_has_a_sentence_and_a_page(architecture: str) -> None:
    for residual, norm in ((True, "pre"), (False, "post")):
        config = config_of(architecture, residual=residual, norm=norm)
        for plan in plans(config):
            assert words.headline(config.model, plan, size_of(config), 1234).endswith(".")
            for box in plan.boxes:
                sentence = words.sentence_of(config.model, size_of(config), box)
                assert re.search(r"[a-z}]\.$|\d\.$|\)\.$", sentence), sentence
                address, fields = words.opens(config.model, box)
                assert address in PAGES
                assert set(fields) <= set(FIELDS)
                if config.model.recurrent:
                    assert not PAGES[address].transformer


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("architecture", "level"),
    [("encoder-decoder", "decoder.1"), ("encoder-decoder", "encoder.0"), ("gru", ""), ("decoder", "")],
)
def test_what_a_click_opens_is_there(architecture: str, level: str, alone: Made) -> None:
    """Each page shows what was clicked: no notice says that there is no such thing."""
    _, config = alone({"task": TASK_OF.get(architecture, "reverse-translate"), "length": 3}, architecture=architecture)
    task = config.build_task()
    size = Size(6, 3 if task.has_source else 0, task.d_vocab, task.n_ctx)
    plan = plan_block(config.model, size, level) if level else plan_model(config.model, size)
    found = {}
    for box in plan.boxes:
        if box.kind != "head" or box.slot[0] == 1:
            address, fields = words.opens(config.model, box)
            found[box.name] = (address, tuple(sorted((name, value) for name, value in fields.items() if value)))
    kinds = {(address, dict(fields).get("part"), tuple(dict(fields))): fields for address, fields in found.values()}
    for (address, *_), fields in kinds.items():
        app = open_page(address, run="one", **dict(fields))
        assert not app.warning, (address, fields)
    if level == "decoder.1":
        ways = dict(found["decoder.1.cross_attention.out"][1])
        assert ways == {"part": "heads", "block": "decoder.1", "sublayer": "cross_attention", "joint": "mix"}
        norm = dict(found["decoder.1.around_feed_forward.before"][1])
        assert norm == {"part": "norm", "block": "decoder.1", "sublayer": "feed_forward"}
        assert found["decoder.1.resid_cross"] == ("layers", (("stage", "decoder.1.resid_cross"),))


# --- the figure


@pytest.mark.parametrize("palette", [theme.LIGHT, theme.DARK])
def test_boxes_strips_and_the_road_stand_where_they_belong(palette: theme.Palette) -> None:
    values = np.array([0.5, -2.0, 1.0])
    stages = [
        Stage("one", "One", "12 parameters", "It is one.", 0, 0, (0, 1), values, True),
        Stage("left", "L", "3 parameters", "Left.", 1, 0, (0, 2), values, True, moved=1.0),
        Stage("right", "R", "3 parameters", "Right.", 1, 0, (1, 2), None, True, text="3 1 <", moved=0.5),
        Stage("two", "<b>", "", "It is two.", 2, 0, (0, 1), np.array([0.25, 0.75]), False),
    ]
    links = [
        Link(0, 1, "[4, 3]", False),
        Link(0, 2, "[4, 3]", False),
        Link(1, 3, "[4, 2]", False),
        Link(0, 3, "[4, 3]", True),
    ]
    figure = json.loads(machine_figure(stages, links, "two", palette=palette).to_json())
    drawn = {each["name"]: each for each in figure["data"]}
    boxes = drawn["boxes"]
    assert boxes["customdata"] == ["one", "left", "right", "two"]
    assert [y - 0.43 for y in boxes["y"]] == pytest.approx([0, 1, 1, 2])
    left, right = ((boxes["base"][at], boxes["base"][at] + boxes["x"][at]) for at in (1, 2))
    assert left[1] < right[0]
    assert boxes["marker"]["line"]["width"] == [1, 1, 1, 3.5]
    tints = figure["layout"]["shapes"]
    assert [(tint["y0"], tint["fillcolor"].split(",")[-1]) for tint in tints] == [(1.08, "0.400)"), (1.08, "0.200)")]
    assert drawn["titles"]["text"] == ["One", "L", "R", "&lt;b&gt;"]
    assert drawn["words"]["text"] == ["3 1 &lt;"]
    assert right[0] < drawn["words"]["x"][0] < right[1]
    assert 1.08 < drawn["words"]["y"][0] < 1.78
    assert (drawn["One"]["zmin"], drawn["One"]["zmax"]) == (-2, 2)
    assert (drawn["&lt;b&gt;"]["zmin"] if "&lt;b&gt;" in drawn else drawn["<b>"]["zmin"]) == 0
    road = drawn["residual stream"]
    assert [y for y in road["y"] if y is not None] == pytest.approx([0.43, 0.43, 2.43, 2.43])
    assert max(x for x in road["x"][1:3]) < min(boxes["base"])
    assert drawn["shapes"]["text"] == ["[4, 3]", "[4, 2]"]


# --- the page


READ = [*map(str, PI), "SEP", *map(str, PI[::-1][:-1])]


def test_it_opens_on_the_whole_where_the_answer_begins_and_its_numbers_are_the_models() -> None:
    app = open_page("machine", run="reverse")
    model, _, tokens, _ = sample("reverse")
    total = sum(value.numel() for value in model.parameters())
    assert app.title[0].value == f"16 tokens pass 2 blocks: {total:,} parameters."
    assert trace(app, "machine", "words")["text"] == [" ".join(READ)]
    assert "the page opens on 'SEP' at 9, where the answer begins" in said(app)
    counts = trace(app, "machine", "parameters")["text"]
    assert sum(int(count.split()[0].replace(",", "")) for count in counts) == total
    seen = observe(model, tokens)
    drawn = array(trace(app, "machine", "decoder block 1")["z"])[0]
    np.testing.assert_allclose(drawn, seen["decoder.1.resid_post"][0, 8], rtol=1e-3, atol=1e-4)
    probabilities = array(trace(app, "machine", "softmax: probabilities")["z"])[0]
    np.testing.assert_allclose(probabilities, seen.logits[0, 8].softmax(-1), rtol=1e-3, atol=1e-5)


def test_the_tokens_that_each_stack_reads_stand_in_its_box_and_a_text_has_no_answer() -> None:
    app = open_page("machine", run="reverse-translate")
    assert trace(app, "machine", "words")["text"] == [" ".join(READ[:8]), " ".join(READ[8:])]
    assert "the page opens on 'SEP' at 1, where the answer begins" in said(app)
    app = open_page("machine", run="shakespeare")
    (text,) = trace(app, "machine", "words")["text"]
    assert len(text) == words.LETTERS
    assert text.startswith("SEP ")
    assert "where the answer begins" not in said(app)


def test_next_steps_through_the_boxes_and_the_link_follows() -> None:
    app = open_page("machine", run="reverse", query="3")
    press_counted(app, "box-on")
    assert link(app)["box"] == "decoder.token_embedding"
    assert "For '4' at 3: its length is" in said(app)
    press_counted(app, "box-on", times=2)  # faster than pages are drawn
    assert link(app)["box"] == "decoder.0"
    press_counted(app, "box-back", times=9)
    assert "box" not in link(app)


def test_a_block_and_a_head_are_opened_by_a_link() -> None:
    app = open_page("machine", run="reverse-translate", zoom="block", block="decoder.1")
    assert app.title[0].value.startswith("Decoder block 1 has 66,752 of the model’s 235,788 parameters")
    titles = trace(app, "machine", "titles")["text"]
    assert [each for each in titles if each.startswith("cross ")] == [f"cross 1.{head}" for head in range(4)]
    app = open_page(
        "machine",
        run="reverse-translate",
        zoom="head",
        head="decoder.1.cross_attention.2",
        box="decoder.1.cross_attention.2.pattern",
    )
    assert app.title[0].value == "Head 1.2 is one of 4 in its layer: 16 of the 64 numbers are its own."
    model, _, tokens, source = sample("reverse-translate")
    pattern = observe(model, tokens, source=source)["decoder.1.cross_attention.pattern"][0, 2, 0]
    drawn = array(trace(app, "machine", "mask, softmax: the pattern")["z"])[0]
    np.testing.assert_allclose(drawn, pattern, rtol=1e-3, atol=1e-5)
    most = int(pattern.argmax())
    looks = f"it looks most at '{PI[most]}' at {most + 1}, with {float(pattern.max()):.2f} of its attention."
    assert looks in said(app)


def movement(run: Run, before: int, after: int, part: str) -> str:
    """By how much of its length a part of a run has moved, as the page writes it."""
    was, now = (
        torch.cat([value.flatten() for name, value in model.state_dict().items() if name.startswith(part)])
        for model, _ in (checkpoints.load(run.snapshot(step)) for step in (before, after))
    )
    return f"moved {100 * float((now - was).norm() / was.norm()):.3g} %"


def test_what_training_moved_is_told_between_two_kept_steps() -> None:
    app = open_page("machine", run="reverse", step="20", tinted="1")
    said_of = trace(app, "machine", "parameters")["text"]
    assert movement(Run(Path("checkpoints/reverse")), 13, 20, "decoder.1.") in said_of
    assert "From step 13 to step 20 training moved “" in said(app)


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.0, 0.0, 0.0), "nothing moved."),
        ((0.5, 0.25, 0.1), "training moved “a” most: by 50 %, and “c” least: by 10 % of its length, ‖W′ − W‖ / ‖W‖."),
        (
            (0.10001, 0.1, 0.0),
            "training moved “a” and “b” most: by 10 % each, and “c” least: by 0 % of its length, ‖W′ − W‖ / ‖W‖.",
        ),
        ((0.1, 0.1, 0.1), "training moved “a”, “b” and “c” by 10 % each of its length, ‖W′ − W‖ / ‖W‖."),
        ((0.1,), "training moved “a” by 10 % of its length, ‖W′ − W‖ / ‖W‖."),
    ],
)
def test_what_moved_as_much_is_named_together(shares: tuple[float, ...], said: str) -> None:
    boxes = [Box(name, "block", name, (1,), 0) for name in "abc"]
    assert words.movement(Plan("model", boxes), dict(zip("abc", shares, strict=False)), 3, 5) == (
        f"From step 3 to step 5 {said}"
    )


def test_what_moved_is_told_for_one_step() -> None:
    """The kept steps lie farther and farther apart."""
    said = "Divided by the 20 steps, the most is 0.1 % a step."
    assert words.a_step({"a": 0.02, "b": 0.005}, 100, 120) == said
    assert words.a_step({"a": 0.02}, 100, 101) == words.a_step({"a": 0.0}, 100, 120) == ""


@pytest.mark.parametrize(
    ("kind", "values", "says"),
    [
        ("pattern", (0.2, 0.8, 0.0), "it looks most at 'b' at 2, with 0.80 of its attention."),
        ("pattern", (0.499, 0.501, 0.0), "it looks most at 'a' at 1 and 'b' at 2, with 0.50 of its attention each."),
        ("pattern", (0.2, 0.2, 0.2, 0.2, 0.2), "it looks most at 5 of 5 keys, with 0.20 of its attention each."),
        ("pattern", (0.0, 0.0, 0.0), "it may see nothing."),
        ("softmax", (0.25, 0.5, 0.25), "the likeliest token is 'b', with probability 0.500."),
        ("softmax", (0.5, 0.0001, 0.4999), "the likeliest tokens are 'a' and 'c', with probability 0.500 each."),
        ("softmax", (0.2,) * 5, "the likeliest are 5 of 5 tokens, with probability 0.200 each."),
        ("scores", (0.2, -0.5, 0.1), "3 scores. The largest in size is −0.50, for 'b' at 2."),
        ("scores", (0.2, -0.5), "2 scores. The largest in size is −0.50, for the key at 2."),
        ("unembedding", (1.0, 1.001, 0.1), "3 logits. The largest in size are 1.00 for 'a' and 1.00 for 'b'."),
        ("head", (3.0, -4.0), "its length is 5.00. The largest in size is −4.00, in dimension 1."),
    ],
)
def test_a_vector_is_told_by_what_stands_out_of_it(kind: str, values: tuple[float, ...], says: str) -> None:
    box, names = Box("box", kind, "box", (1,), 0), "abcde"[: 3 if len(values) < 4 else 5]
    assert words.vector_words(np.array(values), box, names, "'3' at 1") == f"For '3' at 1: {says}"


@pytest.mark.parametrize(
    "view",
    [
        {"box": "logits"},
        {"zoom": "head", "head": "decoder.1.self_attention.2", "box": "decoder.1.self_attention.2.scores"},
    ],
)
def test_scores_and_logits_are_those_of_the_weights(view: dict[str, str], heard: list[Claim]) -> None:
    open_page("machine", run="reverse", **view)
    (said,) = {each for each in heard if each.name == "parts/claims.largest_in_size"}
    judge(World.of(Run(Path("checkpoints/reverse")), "machine", **view), said)


def test_a_training_under_way_is_drawn_below(monkeypatch: pytest.MonkeyPatch, heard: list[Claim]) -> None:
    """A run that is said to be live: between its two last kept steps each box has moved as its weights have."""
    run = Run(Path("checkpoints/reverse"))
    monkeypatch.setattr("dashboard.view.training.watched", lambda: run)
    monkeypatch.setattr("transformer.training.runs.State.live", property(lambda _: True))
    app = open_page("machine", run="reverse")
    before, step = list(run.snapshots())[-2:]
    assert movement(run, before, step, "unembedding.") in trace(app, "machine-live", "parameters")["text"]
    assert f"From step {before} to step {step} training moved “" in said(app)
    assert "reverse is in training. Below, its boxes show" in said(app)
    (once,) = {each for each in heard if each.name.endswith("words.a_step")}
    assert once.sentence
    judge(World.of(run, "machine"), once)


def test_a_network_without_blocks_has_none_to_open() -> None:
    app = open_page("machine", run="bottleneck-gru", zoom="block")
    assert any("block" in warning.value for warning in app.warning)
