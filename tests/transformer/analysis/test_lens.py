"""The logit lens, attention rollout and direct logit attribution, against numbers written out here."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.kit.numbers.rounding import near
from transformer import AblateHead, compiled_reverser, observe
from transformer.analysis.findings import Attention
from transformer.analysis.heads.rollout import depth, evenly, rollout
from transformer.analysis.sample import sample, say
from transformer.analysis.stream.attribution import BIASES, EMBEDDING, direct_logits
from transformer.analysis.stream.lens import lens, logit_lens, stages
from transformer.compiled import compiled_config
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.masks import parse
from transformer.model import build

QUESTION = np.array([3, 1, 4, 1])
SHAPES = {
    "decoder": ("reverse", {}),
    "post-norm": ("reverse", {"norm": "post"}),
    "no norm": ("reverse", {"norm": "none", "positions": "alibi"}),
    "no feed-forward": ("reverse", {"d_ff": 0, "positions": "rotary"}),
    "encoder": ("reverse-aligned", {"positions": "none"}),
    "encoder-decoder": ("reverse-translate", {"positions": "sinusoidal"}),
    "encoder-decoder, post-norm, no feed-forward": ("reverse-translate", {"norm": "post", "d_ff": 0}),
    "one layer": ("reverse-translate", {"n_layers": 1}),
    "RMSNorm": ("reverse", {"norm_kind": "rms"}),
    "encoder-decoder, post-norm, RMSNorm": ("reverse-translate", {"norm": "post", "norm_kind": "rms"}),
}


def made(shape):
    """A model, untrained but with every bias and gain something else than it began with, and its task."""
    task, changes = SHAPES[shape]
    model_config = ModelConfig(**{"n_layers": 2, "n_heads": 2, "d_model": 8, "d_ff": 16, **changes})
    config = RunConfig(task=TaskConfig(task=task, length=5), model=model_config)
    model = build(config).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 1:
                weight.add_(torch.randn(weight.shape, generator=generator) / 2)
    return model, config.build_task()


def passed(model, task, question=QUESTION):
    batch = task.encode([question])
    source = None if batch.source is None else torch.from_numpy(batch.source)
    return observe(model, torch.from_numpy(batch.tokens), source=source)


# --- the logit lens


@pytest.mark.parametrize("shape", SHAPES)
def test_the_last_stage_is_what_the_model_says(shape):
    model, task = made(shape)
    seen = passed(model, task)
    assert logit_lens(model, seen)[-1] == near(seen.logits)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stage_is_the_stream_through_the_last_norm_and_the_unembedding(shape):
    """The stream is added up here from what the parts say that they write; norm and softmax are numpy's."""
    model, task = made(shape)
    seen = passed(model, task)
    weights = {name: value.detach().numpy().astype(np.float64) for name, value in model.named_parameters()}
    sites = {name: value.numpy().astype(np.float64) for name, value in seen.sites.items()}
    sites = {name: value[0] if value.ndim == 3 else value for name, value in sites.items()}

    def normed(x, name):
        if f"{name}.weight" not in weights:
            return x
        centred = x - (x.mean(-1, keepdims=True) if f"{name}.bias" in weights else 0)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return centred / deviation * weights[f"{name}.weight"] + weights.get(f"{name}.bias", 0)

    stack = "encoder" if shape == "encoder" else "decoder"
    x = sites[f"{stack}.token_embedding"] + sites.get(f"{stack}.position_embedding", 0)
    streams = [x]
    for layer in range(model.config.n_layers):
        for part, norm in (
            ("self_attention", "around_self"),
            ("cross_attention", "around_cross"),
            ("feed_forward", "around_feed_forward"),
        ):
            path = f"{stack}.{layer}"
            if f"{path}.{part}.out" in sites:
                x = normed(x + sites[f"{path}.{part}.out"], f"{path}.{norm}.after")
                streams.append(x)
    logits = normed(np.stack(streams), "final_norm") @ weights["unembedding.weight"].T + weights["unembedding.bias"]
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    found = lens(model, task, QUESTION)
    np.testing.assert_allclose(np.take_along_axis(expected, found.tokens, axis=-1), found.shares, atol=1e-5)
    np.testing.assert_array_equal(np.sort(found.tokens, axis=-1), np.broadcast_to(np.arange(12), expected.shape))


def test_the_stages_are_where_the_stream_changes():
    kinds = {shape: [s.split(".", 1)[1] for s in stages(passed(*made(shape)))] for shape in SHAPES}
    assert kinds["decoder"] == ["0.resid_pre", "0.resid_mid", "0.resid_post", "1.resid_mid", "1.resid_post"]
    assert kinds["encoder"] == kinds["decoder"]
    assert kinds["no feed-forward"] == ["0.resid_pre", "0.resid_mid", "1.resid_mid"]
    assert kinds["one layer"] == ["0.resid_pre", "0.resid_mid", "0.resid_cross", "0.resid_post"]
    assert kinds["encoder-decoder, post-norm, no feed-forward"] == [
        *("0.resid_pre", "0.resid_mid", "0.resid_cross", "1.resid_mid", "1.resid_cross")
    ]
    assert all(site.startswith("decoder.") for site in stages(passed(*made("encoder-decoder"))))


def test_the_compiled_reverser_knows_nothing_before_its_head_has_read_and_all_after():
    found = lens(compiled_reverser(4), compiled_config(4).build_task(), QUESTION)
    assert found.stages == ("decoder.0.resid_pre", "decoder.0.resid_mid")
    before, after = found.of_target[:, 4:]
    assert before == near([1 / 12] * 4)  # ten symbols, SEP and PAD, all alike
    assert found.rank[0, 4:].tolist() == [12] * 4
    e = np.exp(1.0)
    assert after == near([e / (e + 11)] * 4)
    assert found.rank[1, 4:].tolist() == [1] * 4
    assert found.likeliest[1, 4:].tolist() == [1, 4, 1, 3]
    assert found.right[1, 4:].all()
    assert [found.settled(position) for position in (4, 5, 6, 7)] == [1] * 4
    assert found.settled(3) == 0  # that a separator follows, its place alone decides


def test_rank_and_settling_are_counts():
    model, task = made("decoder")
    found = lens(model, task, QUESTION)
    for position, target in enumerate(found.targets):
        said = []
        for stage in range(len(found.stages)):
            row = found.shares[stage, position][found.tokens[stage, position].argsort()].tolist()
            assert found.rank[stage, position] == sum(p >= row[target] for p in row)
            said.append(row.index(max(row)))
        first = found.settled(position)
        assert set(said[first:]) == {said[-1]}
        assert first == 0 or said[first - 1] != said[-1]


def test_its_own_words_are_read_in_place_of_the_right_ones():
    model, task = made("encoder-decoder")
    said = say(model, task, QUESTION)
    found, seen = lens(model, task, QUESTION, said=said), sample(model, task, QUESTION, said=said)
    assert found.read.tolist() == [task.separator, *said[:-1]]
    assert tuple(task.vocabulary[token] for token in found.likeliest[-1]) == seen.predicted
    assert found.targets.tolist() == QUESTION[::-1].tolist()


# --- rollout


def attentions_of(shape, mask=None):
    model, task = made(shape)
    if mask is not None:
        model.visible.copy_(torch.from_numpy(parse(mask).matrix(model.n_ctx)))
    return sample(model, task, QUESTION).attentions


def by_hand(attentions, n_layers):
    """Rollout as sums over single cells, in the order of section 3.1; with an encoder, over both sides' slots."""

    def half(pattern, i, own, read):
        weights = np.mean([head[i] for head in pattern], axis=0)
        row = 0.5 * own[i] + 0.5 * sum(weights[j] * read[j] for j in range(len(weights)))
        return row / row.sum()

    def step(site, own, read):
        pattern = attentions[site].pattern
        return np.array([half(pattern, i, own, read) for i in range(pattern.shape[1])])

    both = any("cross" in site for site in attentions)
    stack = "decoder" if any(site.startswith("decoder") for site in attentions) else "encoder"
    n_tokens = attentions[f"{stack}.0.self_attention"].pattern.shape[1]
    n_source = attentions["encoder.0.self_attention"].pattern.shape[1] if both else 0
    every = np.eye(n_source + n_tokens)
    source, tokens = every[:n_source], every[n_source:]
    if both:
        for layer in range(sum(site.startswith("encoder") for site in attentions)):
            source = step(f"encoder.{layer}.self_attention", source, source)
    for layer in range(n_layers):
        tokens = step(f"{stack}.{layer}.self_attention", tokens, tokens)
        if both:
            tokens = step(f"decoder.{layer}.cross_attention", tokens, source)
    return tokens


@pytest.mark.parametrize("shape", SHAPES)
def test_rollout_is_the_product_of_the_layers_and_its_rows_sum_to_1(shape):
    attentions = attentions_of(shape)
    for layer in range(depth(attentions)):
        found = rollout(attentions, layer)
        np.testing.assert_allclose(found, by_hand(attentions, layer + 1), atol=1e-6)
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(rollout(attentions), found)


def test_rollout_of_one_layer_is_half_the_mean_of_heads_and_half_the_identity():
    attentions = attentions_of("decoder")
    pattern = attentions["decoder.0.self_attention"].pattern
    np.testing.assert_allclose(rollout(attentions, 0), (pattern[0] + pattern[1]) / 4 + np.eye(8) / 2, atol=1e-6)


def test_rollout_of_two_layers_with_known_patterns():
    """Query 1 reads key 0 in layer 0, query 2 reads key 1 in layer 1: a quarter of query 2 has come from token 0."""
    first = np.array([[1.0, 0, 0], [1, 0, 0], [0, 0, 1]])
    second = np.array([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]])
    attentions = attention_stack(first, second)
    expected = [[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]
    np.testing.assert_allclose(rollout(attentions), expected)


def attention_stack(*patterns):
    """Layers of one head, every key visible to it that it looks at."""
    names = tuple("abc")
    found = {}
    for layer, pattern in enumerate(patterns):
        site = f"decoder.{layer}.self_attention"
        found[site] = Attention(site, np.zeros((1, 3, 3)), pattern > 0, pattern[None], names, names)
    return found


def test_a_query_that_sees_nothing_keeps_what_it_has():
    first = np.array([[1.0, 0, 0], [0, 0, 0], [0.5, 0.5, 0]])
    assert rollout(attention_stack(first, first))[1].tolist() == [0, 1, 0]
    assert evenly(attention_stack(first))["decoder.0.self_attention"].pattern[0].tolist() == first.tolist()


@pytest.mark.parametrize("mask", ["causal", "sliding-window:1", "prefix:2"])
@pytest.mark.parametrize("shape", ["decoder", "encoder", "encoder-decoder"])
def test_rollout_is_above_0_where_the_masks_leave_a_path(shape, mask):
    attentions = attentions_of(shape, mask)
    queries = len(next(reversed(attentions.values())).queries)
    visible = parse(mask).matrix(queries) | np.eye(queries, dtype=bool)
    if shape == "encoder-decoder":  # cross-attention lets all of the source in, at once
        reach = np.hstack([np.ones((queries, 4), dtype=bool), np.linalg.matrix_power(visible.astype(int), 2) > 0])
    else:
        reach = np.linalg.matrix_power(visible.astype(int), 2) > 0
    np.testing.assert_array_equal(rollout(attentions) > 0, reach)
    np.testing.assert_array_equal(rollout(evenly(attentions)) > 0, reach)


def test_looking_evenly_is_one_over_what_is_seen():
    even = evenly(attentions_of("decoder"))["decoder.1.self_attention"].pattern[0]
    np.testing.assert_allclose(even, np.tril(np.ones((8, 8))) / np.arange(1, 9)[:, None])


def test_attention_that_is_told_apart_by_heads_counts_as_their_mean():
    attentions = attentions_of("decoder")
    swapped = {site: replace(each, pattern=each.pattern[::-1]) for site, each in attentions.items()}
    np.testing.assert_allclose(rollout(swapped), rollout(attentions), atol=1e-7)


# --- direct logit attribution


@pytest.mark.parametrize("shape", SHAPES)
def test_what_the_parts_write_sums_to_the_logits(shape):
    model, task = made(shape)
    seen = passed(model, task)
    total = sum(part.double() for part in direct_logits(model, seen).values())
    np.testing.assert_allclose(total.numpy(), seen.logits.numpy(), atol=1e-4)


def test_the_parts_are_all_that_writes():
    model, task = made("encoder-decoder")
    heads = [f"decoder.{i}.{kind}_attention.{h}" for i in (0, 1) for kind in ("self", "cross") for h in (0, 1)]
    expected = {EMBEDDING, BIASES, *heads, "decoder.0.feed_forward", "decoder.1.feed_forward"}
    assert set(direct_logits(model, passed(model, task))) == expected


def test_what_a_head_of_the_last_layer_writes_is_what_is_missing_without_it():
    """Without a norm and with nothing after it, silencing a head takes away exactly what it wrote."""
    config = RunConfig(
        task=TaskConfig(length=4), model=ModelConfig(n_layers=2, n_heads=2, d_model=8, d_ff=0, norm="none")
    )
    model, task = build(config).eval(), config.build_task()
    tokens = torch.from_numpy(task.encode([QUESTION]).tokens)
    seen = observe(model, tokens)
    for head in (0, 1):
        without = observe(model, tokens, (AblateHead("decoder.1.self_attention.z", head),))
        written = direct_logits(model, seen)[f"decoder.1.self_attention.{head}"]
        np.testing.assert_allclose(written.numpy(), (seen.logits - without.logits).numpy(), atol=1e-5)


def test_the_head_of_the_compiled_reverser_writes_the_answer_alone():
    model, task = compiled_reverser(4), compiled_config(4).build_task()
    written = direct_logits(model, passed(model, task))
    head = written["decoder.0.self_attention.0"][0, 4:].numpy()
    np.testing.assert_allclose(head, np.eye(12)[[1, 4, 1, 3]], atol=1e-6)
    for name in (EMBEDDING, BIASES):
        assert not written[name][0, 4:].any()
