"""The page "The machine": boxes, shapes, parameters and vectors against the model's own weights and passes."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard import theme
from dashboard.app_pages.look_inside.machine import words
from dashboard.app_pages.look_inside.machine.figures import Link, Stage, machine_figure
from dashboard.view.pages import PAGES
from dashboard.view.settings import FIELDS
from tests.kit.pages import PI, SEP, array, figures, link, network, open_page, press_counted, trace
from transformer import checkpoints, observe
from transformer.analysis.findings import Head
from transformer.analysis.machine.movement import moved
from transformer.analysis.machine.plan import Plan, Size, blocks, plan_block, plan_head, plan_model
from transformer.analysis.machine.vectors import vectors
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import build
from transformer.training.runs import Run


def said(app: AppTest) -> str:
    return " ".join(element.value for element in (*app.markdown, *app.caption))


QUESTION = np.array([1, 2, 3, 4, 5])
TASKS = {"decoder": "reverse", "encoder": "reverse-aligned", "encoder-decoder": "reverse-translate"}


def config_of(architecture: str, **model: object) -> RunConfig:
    shape = {"n_layers": 2, "n_heads": 2, "d_model": 16, "d_ff": 24, **model}
    task = TaskConfig(task=TASKS.get(architecture, "reverse-translate"), length=5)
    return RunConfig(task=task, model=ModelConfig(architecture=architecture, **shape))  # type: ignore[arg-type]


def size_of(config: RunConfig) -> Size:
    task = config.build_task()
    tokens = len(task.encode([QUESTION]).tokens[0])
    return Size(tokens, len(QUESTION) if task.has_source else 0, task.d_vocab, task.n_ctx)


def plans(config: RunConfig) -> list[Plan]:
    """The model, each of its blocks, and the last head of each attention."""
    size, found = size_of(config), [plan_model(config.model, size_of(config))]
    for block in blocks(config.model):
        found.append(plan_block(config.model, size, block))
        heads = [box.name for box in found[-1].boxes if box.kind == "head" and box.slot[0] == box.slot[1] - 1]
        found += [plan_head(config.model, size, Head.parse(name)) for name in heads]
    return found


EVERY = [
    pytest.param(architecture, norm, positions, id=f"{architecture}-{norm}-{positions}")
    for architecture, norm, positions in itertools.product(
        TASKS, ("pre", "post", "none"), ("learned", "sinusoidal", "rotary", "alibi", "none")
    )
]


@pytest.mark.daily(5)
@pytest.mark.parametrize(("architecture", "norm", "positions"), EVERY)
def test_every_plan_has_the_models_parameters_and_shapes(architecture: str, norm: str, positions: str) -> None:
    """Of every architecture, norm and encoding, of depth 1 to 6, with all parts and without some."""
    for depth in range(1, 7):
        bare = depth % 2 == 0
        config = config_of(
            architecture,
            n_layers=depth,
            norm=norm,
            positions=positions,
            residual=not bare,
            d_ff=0 if bare else 24,
            tied=depth == 3,
        )
        network = build(config).eval()
        weights = dict(network.named_parameters())
        whole, *others = plans(config)
        assert sum(box.kind == "block" for box in whole.boxes) == depth * (
            2 if architecture == "encoder-decoder" else 1
        )
        owners: dict[str, int] = {}
        for box in {box.weights: box for box in whole.boxes}.values():
            own = {
                name: value.numel() for name, value in weights.items() if box.weights and name.startswith(box.weights)
            }
            assert sum(own.values()) == box.parameters, box
            owners |= own
        assert sum(owners.values()) == sum(value.numel() for value in weights.values())
        for plan in others:
            if plan.level == "block":
                block = ".".join(plan.boxes[0].name.split(".")[:2])
                own_boxes = [box for box in plan.boxes if box.kind != "memory"]
                assert sum(box.parameters for box in own_boxes) == whole[block].parameters
        if depth > 2:
            continue
        for plan in [whole, *others]:
            found = vectors(network, config.build_task(), QUESTION, plan, 2)
            assert {name: value.shape for name, value in found.items()} == {
                box.name: box.shape[1:] for box in plan.boxes if box.kind != "tokens"
            }
            for arrow in plan.arrows:
                assert arrow.shape == plan[arrow.start].shape
                assert plan.names.index(arrow.start) < plan.names.index(arrow.end)


@pytest.mark.daily(3)
@pytest.mark.parametrize("attention", ["none", "uniform", "dot", "additive"])
@pytest.mark.parametrize("depth", [1, 3])
def test_the_plan_of_a_gru_has_its_parameters(attention: str, depth: int) -> None:
    config = config_of("gru", attention=attention, n_layers=depth)
    network = build(config).eval()
    plan = plan_model(config.model, size_of(config))
    for box in plan.boxes:
        own = [value for name, value in network.named_parameters() if box.weights and name.startswith(box.weights)]
        assert sum(value.numel() for value in own) == box.parameters, box
    once = {box.weights: box.parameters for box in plan.boxes}
    assert sum(once.values()) == sum(value.numel() for value in network.parameters())
    found = vectors(network, config.build_task(), QUESTION, plan, 3)
    assert {name: value.shape for name, value in found.items()} == {
        box.name: box.shape[1:] for box in plan.boxes if box.kind != "tokens"
    }


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
def test_each_vector_is_worked_out_anew_from_the_one_before(norm: str) -> None:
    """One block of a decoder, step by step with the raw weights: each box from what enters it."""
    config = config_of("decoder", norm=norm)
    network, place = build(config).eval(), 6
    weights = network.state_dict()
    plan = plan_block(config.model, size_of(config), "decoder.1")
    found = {
        name: torch.from_numpy(value)
        for name, value in vectors(network, config.build_task(), QUESTION, plan, place).items()
    }

    def normed(x: torch.Tensor, name: str) -> torch.Tensor:
        scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return (x - x.mean()) / (x.var(unbiased=False) + 1e-5).sqrt() * scale + shift

    road = found["decoder.1.resid_pre"]
    joined = torch.cat([found[f"decoder.1.self_attention.{index}"] for index in range(2)])
    torch.testing.assert_close(found["decoder.1.self_attention.z"], joined)
    wrote = joined @ weights["decoder.1.self_attention.out.weight"].T + weights["decoder.1.self_attention.out.bias"]
    torch.testing.assert_close(found["decoder.1.self_attention.out"], wrote)
    after = road + wrote
    if norm == "pre":
        name = "decoder.1.around_self.before"
        torch.testing.assert_close(found[name], normed(road, name), rtol=1e-4, atol=1e-5)
    if norm == "post":
        torch.testing.assert_close(found["decoder.1.resid_mid.sum"], after)
        after = normed(after, "decoder.1.around_self.after")
    torch.testing.assert_close(found["decoder.1.resid_mid"], after, rtol=1e-4, atol=1e-5)
    read = normed(after, "decoder.1.around_feed_forward.before") if norm == "pre" else after
    name = "decoder.1.feed_forward"
    hidden = (read @ weights[f"{name}.up.weight"].T + weights[f"{name}.up.bias"]).clamp(min=0)
    fed = hidden @ weights[f"{name}.down.weight"].T + weights[f"{name}.down.bias"]
    torch.testing.assert_close(found[name], fed, rtol=1e-4, atol=1e-5)
    end = after + fed
    if norm == "post":
        end = normed(end, "decoder.1.around_feed_forward.after")
    torch.testing.assert_close(found["decoder.1.resid_post"], end, rtol=1e-4, atol=1e-4)


def test_the_shares_of_all_heads_and_the_bias_are_what_attention_writes() -> None:
    config = config_of("decoder")
    network, task, size = build(config).eval(), config.build_task(), size_of(config)
    heads = [Head("decoder.0.self_attention", index) for index in range(2)]
    shares = [vectors(network, task, QUESTION, plan_head(config.model, size, head), 4)[f"{head}.out"] for head in heads]
    whole = vectors(network, task, QUESTION, plan_block(config.model, size, "decoder.0"), 4)
    bias = network.state_dict()["decoder.0.self_attention.out.bias"].numpy()
    np.testing.assert_allclose(sum(shares) + bias, whole["decoder.0.self_attention.out"], rtol=1e-4, atol=1e-5)


def test_what_moved_is_told_box_by_box() -> None:
    config = config_of("decoder")
    before = {name: value.clone() for name, value in build(config).state_dict().items()}
    after = {name: value.clone() for name, value in before.items()}
    after["decoder.1.feed_forward.up.weight"] *= 1.5
    after["decoder.0.self_attention.key.weight"][8:] += 0.25  # the second head's rows
    shares = moved(plan_model(config.model, size_of(config)), before, after)
    assert {name for name, share in shares.items() if share} == {"decoder.0", "decoder.1"}
    own = [value for name, value in before.items() if name.startswith("decoder.1.")]
    length = sum(float(value.square().sum()) for value in own) ** 0.5
    assert shares["decoder.1"] == pytest.approx(0.5 * float(before["decoder.1.feed_forward.up.weight"].norm()) / length)
    inside = moved(plan_block(config.model, size_of(config), "decoder.0"), before, after)
    assert {name for name, share in inside.items() if share} == {"decoder.0.self_attention.1"}
    parts = moved(plan_head(config.model, size_of(config), Head("decoder.0.self_attention", 1)), before, after)
    assert {name for name, share in parts.items() if share} == {"decoder.0.self_attention.1.key"}


def test_a_shared_matrix_moves_with_both_boxes_that_use_it() -> None:
    """The bias alone begins at 0: set beside nothing but itself it would move by hundreds of percent."""
    config = config_of("decoder", tied=True)
    before = {name: value.clone() for name, value in build(config).state_dict().items()}
    after = {name: value.clone() for name, value in before.items()}
    for name in ("embedding.weight", "unembedding.weight"):
        after[name] *= 1.25
    after["unembedding.bias"] += 0.5
    shares = moved(plan_model(config.model, size_of(config)), before, after)
    matrix, bias = before["embedding.weight"].norm(), before["unembedding.bias"]
    change = ((0.25 * matrix) ** 2 + 0.5**2 * len(bias)) ** 0.5
    assert shares["decoder.token_embedding"] == pytest.approx(0.25)
    assert shares["logits"] == pytest.approx(float(change / (matrix**2 + bias.square().sum()) ** 0.5))


def test_there_is_no_plan_of_what_is_not_there() -> None:
    config = config_of("decoder")
    with pytest.raises(KeyError):
        plan_block(config.model, size_of(config), "decoder.7")
    with pytest.raises(KeyError):
        plan_head(config.model, size_of(config), Head("decoder.0.cross_attention", 0))
    with pytest.raises(IndexError):
        vectors(build(config), config.build_task(), QUESTION, plan_model(config.model, size_of(config)), 11)


# --- the words


@pytest.mark.parametrize("architecture", [*TASKS, "gru"])
def test_every_box_has_a_sentence_and_a_page(architecture: str) -> None:
    for residual, norm in ((True, "pre"), (False, "post")):
        config = config_of(architecture, residual=residual, norm=norm)
        found = plans(config) if architecture != "gru" else [plan_model(config.model, size_of(config))]
        for plan in found:
            assert words.headline(config.model, plan, size_of(config), 1234).endswith(".")
            for box in plan.boxes:
                sentence = words.sentence_of(config.model, size_of(config), box)
                assert re.search(r"[a-z}]\.$|\d\.$|\)\.$", sentence), sentence
                address, fields = words.opens(config.model, box)
                assert address in PAGES
                assert set(fields) <= set(FIELDS)
                if config.model.recurrent:
                    assert not PAGES[address].transformer


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("run", "level"),
    [
        ("reverse-translate", "decoder.1"),
        ("reverse-translate", "encoder.0"),
        ("reverse", ""),
        ("bottleneck-gru-attention", ""),
    ],
)
def test_what_a_click_opens_is_there(run: str, level: str) -> None:
    """Each page shows what was clicked: no notice says that there is no such thing."""
    _, config = network(run)
    task = config.build_task()
    size = Size(16, 8 if task.has_source else 0, task.d_vocab, task.n_ctx)
    plan = plan_block(config.model, size, level) if level else plan_model(config.model, size)
    found = {}
    for box in plan.boxes:
        if box.kind != "head" or box.slot[0] == 3:
            address, fields = words.opens(config.model, box)
            found[box.name] = (address, tuple(sorted((name, value) for name, value in fields.items() if value)))
    for address, fields in set(found.values()):
        app = open_page(address, run=run, **dict(fields))
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


def test_it_opens_on_the_whole_and_its_numbers_are_the_models() -> None:
    app = open_page("machine", run="reverse")
    model, _ = network("reverse")
    total = sum(value.numel() for value in model.parameters())
    assert app.title[0].value == f"16 tokens pass 2 blocks: {total:,} parameters."
    assert trace(app, "machine", "words")["text"] == [" ".join([*map(str, PI), "SEP", *map(str, PI[::-1][:-1])])]
    assert "the page opens on 'SEP' at 9, where the answer begins" in said(app)
    counts = trace(app, "machine", "parameters")["text"]
    assert sum(int(count.split()[0].replace(",", "")) for count in counts) == total
    seen = observe(model, torch.tensor([[*PI, SEP, *PI[::-1][:-1]]]))
    drawn = array(trace(app, "machine", "decoder block 1")["z"])[0]
    np.testing.assert_allclose(drawn, seen["decoder.1.resid_post"][0, 8], rtol=1e-3, atol=1e-4)
    probabilities = array(trace(app, "machine", "softmax: probabilities")["z"])[0]
    np.testing.assert_allclose(probabilities, seen.logits[0, 8].softmax(-1), rtol=1e-3, atol=1e-5)


def test_it_opens_where_the_answer_begins_and_the_tokens_stand_in_their_box() -> None:
    read = [*map(str, PI), "SEP", *map(str, PI[::-1][:-1])]
    app = open_page("machine", run="reverse-translate")
    assert trace(app, "machine", "words")["text"] == [" ".join(read[:8]), " ".join(read[8:])]
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
    assert [each for each in titles if each.startswith("cross ")] == [
        "cross 1.0",
        "cross 1.1",
        "cross 1.2",
        "cross 1.3",
    ]
    app = open_page("machine", run="reverse-translate", zoom="head", head="decoder.1.cross_attention.2")
    assert app.title[0].value == "Head 1.2 is one of 4 in its layer: 16 of the 64 numbers are its own."
    model, _ = network("reverse-translate")
    tokens = torch.tensor([[SEP, *PI[::-1][:-1]]])
    seen = observe(model, tokens, source=torch.tensor([PI]))
    drawn = array(trace(app, "machine", "mask, softmax: the pattern")["z"])[0]
    pattern = seen["decoder.1.cross_attention.pattern"][0, 2, 0]
    np.testing.assert_allclose(drawn, pattern, rtol=1e-3, atol=1e-5)
    app = open_page(
        "machine",
        run="reverse-translate",
        zoom="head",
        head="decoder.1.cross_attention.2",
        box="decoder.1.cross_attention.2.pattern",
    )
    most = int(pattern.argmax())
    assert f"it looks most at '{PI[most]}' at {most + 1}, with {float(pattern.max()):.2f} of its attention." in said(
        app
    )


def test_what_training_moved_is_told_between_two_kept_steps() -> None:
    app = open_page("machine", run="reverse", step="20", tinted="1")
    run = Run(Path("checkpoints/reverse"))
    (old, _), (new, _) = (checkpoints.load(run.snapshot(step)) for step in (13, 20))
    own = {name: value for name, value in old.state_dict().items() if name.startswith("decoder.1.")}
    change = sum(float((new.state_dict()[name] - value).square().sum()) for name, value in own.items()) ** 0.5
    share = change / sum(float(value.square().sum()) for value in own.values()) ** 0.5
    assert f"moved {100 * share:.3g} %" in trace(app, "machine", "parameters")["text"]
    assert "From step 13 to step 20 training moved “" in said(app)


def test_what_moved_is_told_for_one_step() -> None:
    """The kept steps lie farther and farther apart."""
    assert words.a_step({"a": 0.02, "b": 0.005}, 100, 120) == "That is at most 0.1 % a step."


def test_a_training_under_way_is_drawn_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is said to be live: between its two last kept steps each box has moved as its weights have."""
    run = Run(Path("checkpoints/reverse"))
    monkeypatch.setattr("dashboard.view.training.watched", lambda: run)
    monkeypatch.setattr("transformer.training.runs.State.live", property(lambda _: True))
    app = open_page("machine", run="reverse")
    before, step = list(run.snapshots())[-2:]
    (old, _), (new, _) = (checkpoints.load(run.snapshot(each)) for each in (before, step))
    was, now = (
        torch.cat([values.flatten() for name, values in model.state_dict().items() if name.startswith("unembedding.")])
        for model in (old, new)
    )
    share = float((now - was).norm() / was.norm())
    assert f"moved {100 * share:.3g} %" in trace(app, "machine-live", "parameters")["text"]
    assert f"From step {before} to step {step} training moved “" in said(app)
    assert "reverse is in training. Below, its boxes show" in said(app)


@pytest.mark.daily(1)
@pytest.mark.parametrize("run", ["compiled", "shakespeare", "bottleneck-gru", "bottleneck-gru-attention"])
def test_it_opens_for_every_kind_of_model(run: str) -> None:
    app = open_page("machine", run=run)
    assert app.title[0].value.endswith(" parameters.")
    assert "machine" in figures(app)


def test_a_network_without_blocks_has_none_to_open() -> None:
    app = open_page("machine", run="bottleneck-gru", zoom="block")
    assert any("block" in warning.value for warning in app.warning)
