"""The plan of a model, box by box: parameters, shapes, vectors and movements against the model's own weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from tests.kit import strangers
from tests.kit.models import QUESTION, TASK_OF, config_of, plans, size_of
from transformer.analysis.findings import Head
from transformer.analysis.machine.movement import moved
from transformer.analysis.machine.plan import Plan, plan_block, plan_head, plan_model
from transformer.analysis.machine.vectors import vectors
from transformer.config import RunConfig
from transformer.model import build
from transformer.norms import NORMS
from transformer.positions import ENCODINGS

PLACES = ("pre", "post", "none")
POSITIONS, KINDS = (*ENCODINGS.names(), *strangers.ENCODINGS), (*NORMS.names(), *strangers.NORMS)


@pytest.fixture(autouse=True)
def _strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    strangers.lend(monkeypatch, ENCODINGS, *strangers.ENCODINGS)
    strangers.lend(monkeypatch, NORMS, *strangers.NORMS)


def boxes_own_all(plan: Plan, network: torch.nn.Module) -> None:
    """Each box counts the parameters below its name, and together they own all."""
    sizes = {name: value.numel() for name, value in network.named_parameters()}
    for box in plan.boxes:
        own = [size for name, size in sizes.items() if box.weights and name.startswith(box.weights)]
        assert sum(own) == box.parameters, box
    assert {box.weights for box in plan.boxes if box.weights}
    owned = {name for name in sizes if any(box.weights and name.startswith(box.weights) for box in plan.boxes)}
    assert owned == set(sizes)


def vectors_have_the_shapes(plan: Plan, network: torch.nn.Module, config: RunConfig) -> None:
    found = vectors(network, config.build_task(), QUESTION, plan, 2)
    shapes = {box.name: box.shape[1:] for box in plan.boxes if box.kind not in ("tokens", "told")}
    assert {name: value.shape for name, value in found.items()} == shapes


@pytest.mark.daily(5)
@pytest.mark.parametrize(
    ("architecture", "norm", "positions"),
    [
        (tuple(TASK_OF)[(i + j) % 3], norm, positions)
        for (i, norm), (j, positions) in itertools.product(enumerate(PLACES), enumerate(POSITIONS))
    ],
)
def test_every_plan_has_the_models_parameters_and_shapes(architecture: str, norm: str, positions: str) -> None:
    """All pairs of architecture, norm and encoding; with all parts, without some, and with a shared matrix."""
    kinds = itertools.cycle(KINDS[POSITIONS.index(positions) % len(KINDS) :] + KINDS)
    for depth in (1, 2, 3, 6):
        bare = depth % 2 == 0
        kind = next(kinds)
        parts = {"residual": not bare, "d_ff": 0 if bare else 24, "tied": depth == 3, "norm_kind": kind}
        config = config_of(architecture, n_layers=depth, norm=norm, positions=positions, **parts)
        network = build(config).eval()
        whole, *others = plans(config)
        stacks = 2 if architecture == "encoder-decoder" else 1
        assert sum(box.kind == "block" for box in whole.boxes) == depth * stacks
        boxes_own_all(whole, network)
        for plan in others:
            if plan.level == "block":
                block = ".".join(plan.boxes[0].name.split(".")[:2])
                own = sum(box.parameters for box in plan.boxes if box.kind != "memory")
                assert own == whole[block].parameters
        for plan in [whole, *others] if depth <= 2 else []:
            vectors_have_the_shapes(plan, network, config)
            for arrow in plan.arrows:
                assert arrow.shape == plan[arrow.start].shape
                assert plan.names.index(arrow.start) < plan.names.index(arrow.end)


@pytest.mark.daily(3)
@pytest.mark.parametrize("attention", ["none", "uniform", "dot", "additive"])
@pytest.mark.parametrize("depth", [1, 3])
def test_the_plan_of_a_gru_has_its_parameters_and_shapes(attention: str, depth: int) -> None:
    config = config_of("gru", attention=attention, n_layers=depth)
    network, (plan,) = build(config).eval(), plans(config)
    boxes_own_all(plan, network)
    vectors_have_the_shapes(plan, network, config)


@pytest.mark.parametrize("norm", PLACES)
def test_each_vector_is_worked_out_anew_from_the_one_before(norm: str) -> None:
    """One block of a decoder, step by step with the raw weights: each box from what enters it."""
    config = config_of("decoder", norm=norm)
    network, place = build(config).eval(), 6
    weights = network.state_dict()
    plan = plan_block(config.model, size_of(config), "decoder.1")
    arrays = vectors(network, config.build_task(), QUESTION, plan, place)
    found = {name: torch.from_numpy(value) for name, value in arrays.items()}

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


def twice(config: RunConfig) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """A model's weights, and others that begin as the same."""
    weights = build(config).state_dict()
    one, other = ({name: value.clone() for name, value in weights.items()} for _ in range(2))
    return one, other


def test_what_moved_is_told_box_by_box() -> None:
    config = config_of("decoder")
    before, after = twice(config)
    after["decoder.1.feed_forward.up.weight"] *= 1.5
    after["decoder.0.self_attention.key.weight"][8:] += 0.25  # the second head's rows
    size = size_of(config)

    def changed(plan: Plan) -> set[str]:
        return {name for name, share in moved(plan, before, after).items() if share}

    assert changed(plan_model(config.model, size)) == {"decoder.0", "decoder.1"}
    assert changed(plan_block(config.model, size, "decoder.0")) == {"decoder.0.self_attention.1"}
    head = Head("decoder.0.self_attention", 1)
    assert changed(plan_head(config.model, size, head)) == {"decoder.0.self_attention.1.key"}
    own = [value for name, value in before.items() if name.startswith("decoder.1.")]
    length = sum(float(value.square().sum()) for value in own) ** 0.5
    share = 0.5 * float(before["decoder.1.feed_forward.up.weight"].norm()) / length
    assert moved(plan_model(config.model, size), before, after)["decoder.1"] == pytest.approx(share)


def test_a_shared_matrix_moves_with_both_boxes_that_use_it() -> None:
    """The bias alone begins at 0: set beside nothing but itself it would move by hundreds of percent."""
    config = config_of("decoder", tied=True)
    before, after = twice(config)
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
