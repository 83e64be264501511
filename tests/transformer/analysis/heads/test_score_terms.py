"""The four terms of a score against products written out by hand, and what they say of heads that are known."""

import numpy as np
import pytest
import torch

from tests.kit.pages import PI, network
from tests.kit.terms_by_hand import by_hand, shares_by_hand, softmax
from transformer.analysis.batches import questions
from transformer.analysis.heads.score_terms import TERMS, measure_shares, split_question, split_scores, splittable
from transformer.analysis.sample import observe_batch
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import Transformer, build
from transformer.norms import NORMS

RUNS = ("reverse", "reverse-sinusoidal", "reverse-aligned", "reverse-aligned-causal", "reverse-translate", "compiled")
ENCODER = "encoder.0.self_attention"


def made(**model: object) -> tuple[Transformer, RunConfig]:
    """A small model, untrained, none of whose biases is zero."""
    config = RunConfig(task=TaskConfig(task="reverse-aligned", length=5), model=ModelConfig(d_model=16, **model))
    network, generator = build(config).eval(), torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.endswith("bias") or "norm" in name or "around" in name:
                weight.add_(torch.randn(weight.shape, generator=generator))
    return network, config


def less_mean(terms: np.ndarray, mask: np.ndarray) -> np.ndarray:
    found = np.zeros_like(terms)
    for i in range(terms.shape[-2]):
        seen = terms[..., i, mask[i]]
        found[..., i, mask[i]] = seen - seen.mean(axis=-1, keepdims=True)
    return found


@pytest.mark.parametrize("run", RUNS)
def test_the_four_terms_are_those_worked_out_by_hand_and_sum_to_the_scores(run: str) -> None:
    model, config = network(run)
    task = config.build_task()
    for site in dict.fromkeys(head.site for head in splittable(model)):
        stack = site.split(".")[0]
        batch = task.encode([np.array(PI)])
        read = batch.source if batch.source is not None and stack == "encoder" else batch.tokens
        split = split_question(model, task, np.array(PI), site)
        expected = by_hand(model, config, read[0], stack)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(split.terms, expected, atol=1e-5 * scale)
        seen = observe_batch(model, batch)
        np.testing.assert_allclose(split.terms.sum(0), seen[f"{site}.scores"][0], atol=1e-5 * scale)
        mask = seen[f"{site}.mask"][0, 0].expand(split.mask.shape).numpy()
        np.testing.assert_array_equal(split.mask, mask)
        np.testing.assert_allclose(split.apart, less_mean(expected, mask), atol=1e-5 * scale)
        np.testing.assert_allclose(split.pattern, softmax(expected.sum(0), mask), atol=1e-4)
        np.testing.assert_allclose(split.alone, softmax(expected[3], mask), atol=1e-4)
        assert split.queries == split.keys == tuple(task.vocabulary[token] for token in read[0])


@pytest.mark.parametrize(
    ("norm", "kind"), [*((n, k) for n in ("pre", "post") for k in NORMS.names()), ("none", "layer")]
)
@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "alibi"])
@torch.no_grad()
def test_in_double_precision_the_sum_is_exact_whatever_the_norm_and_the_biases(
    norm: str, kind: str, positions: str
) -> None:
    model, config = made(norm=norm, norm_kind=kind, positions=positions, d_ff=0)
    model.double()
    batch = config.build_task().encode([np.array([3, 1, 4, 1, 5])])
    seen = observe_batch(model, batch)
    terms = split_scores(model, seen, ENCODER)[:, 0]
    np.testing.assert_allclose(terms.sum(0), seen[f"{ENCODER}.scores"][0], rtol=0, atol=1e-12)
    # The fixed tables are made in single precision.
    np.testing.assert_allclose(terms, by_hand(model, config, batch.tokens[0], "encoder"), atol=1e-5)


@pytest.mark.parametrize("run", ["reverse", "reverse-translate"])
def test_shares_are_covariances_row_by_row(run: str) -> None:
    model, config = network(run)
    task = config.build_task()
    found = measure_shares(model, task, sequences=3)
    batch, _ = questions(task, 3, 8, 0)
    np.testing.assert_allclose(found.share.sum(axis=1), 1, atol=1e-6)
    for site in dict.fromkeys(head.site for head in found.heads):
        rows = [i for i, head in enumerate(found.heads) if head.site == site]
        share, distance = shares_by_hand(model, config, batch, site)
        np.testing.assert_allclose(found.share[rows], share, atol=1e-4)
        np.testing.assert_allclose(found.distance[rows], distance, atol=1e-4)


def test_the_hand_written_reverser_is_a_map_from_position_to_position() -> None:
    model, config = network("compiled")
    found = measure_shares(model, config.build_task(), sequences=16)
    np.testing.assert_allclose(found.share, [[0, 0, 0, 1]], atol=1e-9)
    np.testing.assert_allclose(found.distance, 0, atol=1e-7)


@torch.no_grad()
def test_without_position_vectors_all_is_content() -> None:
    """Known answers: with p and the biases zero only content–content is left; with t zero only position–position."""
    model, config = made(norm="none", d_ff=0)
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            weight.zero_()
    for gone, left in (("positions.table", "content–content"), ("embedding.weight", "position–position")):
        other = build(config).eval()
        other.load_state_dict(model.state_dict() | {gone: torch.zeros_like(model.state_dict()[gone])})
        share = measure_shares(other, config.build_task(), sequences=8).share
        np.testing.assert_allclose(share, np.eye(4)[[TERMS.index(left)] * 4], atol=1e-6)


def test_a_head_that_never_has_a_choice_has_no_shares() -> None:
    model, config = made(mask="block:1")
    found = measure_shares(model, config.build_task(), sequences=8)
    assert np.isnan([*found.share.flat, *found.distance.flat]).all()


def test_what_cannot_be_split_is_not_offered() -> None:
    translator, _ = network("reverse-translate")
    assert {head.site for head in splittable(translator)} == {ENCODER, "decoder.0.self_attention"}
    for positions in ("rotary", "none"):
        model, config = made(positions=positions)
        found = measure_shares(model, config.build_task(), sequences=8)
        assert (splittable(model), found.heads, found.share.shape) == ((), (), (0, 4))
    model, config = network("reverse")
    for site in ("decoder.1.self_attention", "decoder.0.cross_attention"):
        with pytest.raises(ValueError, match="no four terms"):
            split_question(model, config.build_task(), np.array(PI), site)


def test_padding_is_no_key_that_could_be_told_apart() -> None:
    model, config = network("reverse-aligned")
    batch = config.build_task().encode([np.array([3, 1, 4])], 8)
    seen = observe_batch(model, batch)
    assert seen[f"{ENCODER}.mask"][0, 0].expand(8, 8).sum(-1).tolist() == [3] * 8
    terms = split_scores(model, seen, ENCODER)[:, 0].numpy()
    np.testing.assert_allclose(terms.sum(0), seen[f"{ENCODER}.scores"][0], atol=1e-4)
    np.testing.assert_allclose(terms, by_hand(model, config, batch.tokens[0], "encoder"), atol=1e-4)
