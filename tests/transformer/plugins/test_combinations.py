"""Every plug-in beside every other: models that cover all pairs of settings, and what must hold of each of them.

Which settings there are is read from the folders of plug-ins, so a new one is met here with all the others. Encodings
and norms of strangers are among them.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest
import torch

from tests.kit import strangers
from tests.kit.claims.combinations import at_random, covering, ids, pairs
from tests.kit.heads_by_hand import mapped
from transformer import masks
from transformer.analysis.assumptions import NotCovered
from transformer.analysis.findings import Head
from transformer.analysis.heads.circuits import circuits
from transformer.analysis.heads.measure import heads_of
from transformer.analysis.heads.score_terms import split_scores, splittable
from transformer.analysis.machine.plan import plan_model, size_of
from transformer.analysis.sample import lay_out, observe_batch
from transformer.analysis.stream.attribution import direct_logits
from transformer.analysis.stream.lens import logit_lens
from transformer.analysis.stream.norms import normalise
from transformer.config import ATTENTIONS, ConfigError, ModelConfig, RunConfig, TaskConfig
from transformer.edits.heads.zero import AblateHead
from transformer.model import Transformer, build
from transformer.normalisation import Normalisation
from transformer.norms import NORMS
from transformer.observation import Observation, observe
from transformer.positions import ENCODINGS, described
from transformer.tasks import TASKS

LENGTH = 4
SETTINGS: dict[str, tuple[Any, ...]] = {
    "made_for": tuple((task, each) for task in TASKS.names() for each in TASKS[task].architectures if each != "gru"),
    "positions": (*ENCODINGS.names(), *strangers.ENCODINGS),
    "norm": ("pre", "post", "none"),
    "norm_kind": (*NORMS.names(), *strangers.NORMS),
    "mask": tuple(str(masks.MASKS[name]()) for name in masks.rules()),
    "residual": (True, False),
    "d_ff": (0, 12),
    "tied": (False, True),
    "scale_embeddings": (True, False),
}
RECURRENT: dict[str, tuple[Any, ...]] = {
    "made_for": tuple((task, "gru") for task in TASKS.names() if "gru" in TASKS[task].architectures),
    "attention": ATTENTIONS,
    "affine": (True, False),
}
MORE = 400
"""Combinations drawn at random that are tried by night."""


@pytest.fixture(autouse=True)
def _strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    strangers.lend(monkeypatch, ENCODINGS, *strangers.ENCODINGS)
    strangers.lend(monkeypatch, NORMS, *strangers.NORMS)


def made(row: dict[str, Any]) -> tuple[Any, RunConfig]:
    """A model of these settings whose weights are all random, in double precision."""
    (task, architecture), shape = row["made_for"], {name: value for name, value in row.items() if name != "made_for"}
    sizes = {"architecture": architecture, "n_layers": 2, "n_heads": 2, "d_model": 8, **shape}
    config = RunConfig(task=TaskConfig(task=task, length=LENGTH, symbols=6), model=ModelConfig(**sizes))
    network, generator = build(config).eval(), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.4 * torch.randn(weight.shape, generator=generator))
    return network.double(), config


DAILY = [*covering(SETTINGS)]
NIGHTLY = [row for row in at_random(SETTINGS, MORE) if row not in DAILY]
EACH = pytest.mark.parametrize(
    "row", [*DAILY, *(pytest.param(row, marks=pytest.mark.nightly) for row in NIGHTLY)], ids=ids
)


def test_every_two_values_meet() -> None:
    for settings, rows in ((SETTINGS, DAILY), (RECURRENT, [*covering(RECURRENT)])):
        met = set().union(*map(pairs, rows))
        for one, other in itertools.combinations(sorted(settings), 2):
            for a, b in itertools.product(settings[one], settings[other]):
                assert ((one, a), (other, b)) in met


@EACH
@torch.no_grad()
def test_what_is_told_apart_adds_up_to_the_pass(row: dict[str, Any]) -> None:
    model, config = made(row)
    task = config.build_task()
    question = np.array([3, 1, 4, 1])
    seen = observe_batch(model, lay_out(task, question))
    patterns_are_shares_of_what_may_be_seen(seen)
    terms_sum_to_scores(model, seen)
    parts_sum_to_logits(model, seen)
    torch.testing.assert_close(logit_lens(model, seen)[-1], seen.logits, rtol=0, atol=1e-9)
    heads_sum_to_attention(model, seen)
    steps_end_at_the_norm(model, task, question)
    circuits_are_what_the_straight_way_does(model, seen)
    boxes_own_all_weights(model, config, question)


def patterns_are_shares_of_what_may_be_seen(seen: Observation) -> None:
    for site in seen.attentions():
        pattern, mask = seen[f"{site}.pattern"], seen[f"{site}.mask"].expand_as(seen[f"{site}.pattern"])
        some = mask.any(dim=-1).double()
        torch.testing.assert_close(pattern.sum(dim=-1), some, rtol=0, atol=1e-12)
        assert not pattern[~mask].any()


def terms_sum_to_scores(model: Transformer, seen: Observation) -> None:
    heads = splittable(model)
    assert bool(heads) == (described(model.config.positions).told in ("vectors", "bias"))
    for site in dict.fromkeys(head.site for head in heads):
        total = split_scores(model, seen, site).sum(dim=0)
        torch.testing.assert_close(total, seen[f"{site}.scores"], rtol=0, atol=1e-9)


def parts_sum_to_logits(model: Transformer, seen: Observation) -> None:
    if not model.config.residual:
        with pytest.raises(NotCovered, match="no residual connections"):
            direct_logits(model, seen)
        return
    total = torch.stack([*direct_logits(model, seen).values()]).sum(dim=0)
    torch.testing.assert_close(total, seen.logits, rtol=0, atol=1e-8)


def heads_sum_to_attention(model: Transformer, seen: Observation) -> None:
    for site in seen.attentions():
        attention = model.get_submodule(site)
        total = attention.contributions(seen[f"{site}.z"]).sum(dim=1) + attention.out.bias
        torch.testing.assert_close(total, seen[f"{site}.out"], rtol=0, atol=1e-9)


def steps_end_at_the_norm(model: Transformer, task: Any, question: np.ndarray) -> None:
    for site in dict.fromkeys(head.site for head in heads_of(model)):
        if model.config.norm == "none":
            with pytest.raises(ConfigError, match="no norms"):
                normalise(model, task, question, site, 1)
            continue
        found = normalise(model, task, question, site, 1)
        shift, gain = 0 if found.shift is None else found.shift, 1 if found.gain is None else found.gain
        np.testing.assert_allclose(found.standard * found.divisor, found.centred, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.standard * gain + shift, found.after, rtol=0, atol=1e-9)


class ByHand(torch.nn.Module):
    """What of a norm is linear, worked out in NumPy."""

    def __init__(self, norm: Normalisation) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(mapped(x.numpy(), self.norm))


def straightened(model: Transformer, head: Head) -> Transformer:
    """A copy in which nothing but this head writes, with neither biases nor positions, and with norms that do not
    divide: what it does when it runs is the direct path."""
    copied = copy.deepcopy(model)
    copied.positions = ENCODINGS["none"](n_ctx=model.n_ctx, d_model=8, n_heads=2)
    for name, weight in copied.named_parameters():
        others_write = name.endswith((".out.weight", ".down.weight")) and not name.startswith(head.site)
        if name.endswith("bias") or others_write:
            weight.zero_()
    for parent in [*copied.modules()]:
        for name, norm in [*parent.named_children()]:
            if isinstance(norm, Normalisation):
                setattr(parent, name, ByHand(norm))
    return copied


def circuits_are_what_the_straight_way_does(model: Transformer, seen: Observation) -> None:
    for site in seen.attentions():
        head = Head(site, 1)
        if not model.config.residual:
            with pytest.raises(NotCovered, match="no residual connections"):
                circuits(model, head)
            continue
        found, straight = circuits(model, head), straightened(model, head)
        read = {name.split(".")[0]: value for name, value in TOKENS.items()}
        source = read["encoder"] if model.config.architecture == "encoder-decoder" else None
        passed = observe(straight, read["decoder"], source=source)
        asking = read["encoder"] if source is not None and site.startswith("encoder") else read["decoder"]
        asked = source if source is not None and site.endswith("cross_attention") else asking
        expected = found.qk_tokens[np.ix_(asking[0], asked[0])]
        np.testing.assert_allclose(passed[f"{site}.scores"][0, 1], expected, rtol=0, atol=1e-8)
        if found.ov_tokens is None:
            assert (site.split(".")[0], model.config.architecture) == ("encoder", "encoder-decoder")
            continue
        others = AblateHead(f"{site}.z", 0)
        whole = observe(straight, read["decoder"], (others,), source=source)
        without = observe(straight, read["decoder"], (others, AblateHead(f"{site}.z", 1)), source=source)
        added = (whole.logits - without.logits)[0, :, :-1].numpy()
        says = passed[f"{site}.pattern"][0, 1].numpy() @ found.ov_tokens[asked[0]]
        np.testing.assert_allclose(added, says, rtol=0, atol=1e-7)


TOKENS = {"decoder": torch.tensor([[3, 1, 4, 5]]), "encoder": torch.tensor([[2, 0, 4, 4]])}


def boxes_own_all_weights(model: Any, config: RunConfig, question: np.ndarray) -> None:
    plan = plan_model(config.model, size_of(config.build_task(), question))
    owned = {box.weights: box.parameters for box in plan.boxes}  # two stacks share their embedding
    assert sum(owned.values()) == sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize("row", [*covering(RECURRENT)], ids=ids)
@torch.no_grad()
def test_a_recurrent_network_s_patterns_are_shares(row: dict[str, Any]) -> None:
    model, config = made(row)
    seen = observe_batch(model, lay_out(config.build_task(), np.array([3, 1, 4, 1])))
    patterns_are_shares_of_what_may_be_seen(seen)
    assert bool(seen.attentions()) == (row["attention"] != "none")
    assert heads_of(model) or row["attention"] == "none"
