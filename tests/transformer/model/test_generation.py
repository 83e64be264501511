"""A text that goes on: the cache changes nothing, what is told of each token is true, draws are as likely as said."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig
from transformer.generation import TOP, Cache, distribution, generate, window_start
from transformer.masks.painted import Painted
from transformer.model import Transformer, build
from transformer.observation import observe
from transformer.positions import ENCODINGS
from transformer.sampling import Sampling

D_VOCAB, N_CTX, PAD = 13, 10, 12
PAINTED = str(Painted.of(np.random.default_rng(0).random((N_CTX, N_CTX)) < 0.5))
MASKS = ("causal", "hide:2", "block:3", "prefix:4", "sliding-window:2", "random:50:1", "full", "anti-causal", PAINTED)


def small(*, seed=0, d_vocab=D_VOCAB, **settings) -> Transformer:
    shape = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 2, "mask": "causal", "architecture": "decoder"}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(ModelConfig(**{**shape, **settings}), d_vocab=d_vocab, n_ctx=N_CTX).eval()


def constant(*probabilities) -> Transformer:
    """A model that gives these probabilities, whatever it has read; the last one is the padding's."""
    model = small(d_vocab=len(probabilities), n_layers=1, d_ff=0)
    with torch.no_grad():
        model.unembedding.weight.zero_()
        model.unembedding.bias.copy_(torch.tensor(probabilities).log())
    return model


def prompt(*tokens):
    return torch.tensor(tokens)


def tokens(said):
    return [one.token for one in said]


def windows(length, more):
    """What is read before each new token, by hand: a text too long for the context loses the older half of it."""
    first = 0
    for end in range(length, length + more):
        while end - first > N_CTX:
            first += N_CTX // 2
        yield slice(first, end)


def agrees(model, text, more, sampling):
    """Cached, uncached and one plain forward pass a token: the same text, told of in the same way."""
    cached, uncached = (list(generate(model, text, more, sampling, cached=way)) for way in (True, False))
    assert tokens(cached) == tokens(uncached)
    whole = [*text.tolist(), *tokens(cached)]
    for one, other, window in zip(cached, uncached, windows(len(text), more), strict=True):
        logits = model(torch.tensor([whole[window]])).detach()[0, -1].double().numpy()
        expected = np.exp(logits) / np.exp(logits).sum()
        for said in (one, other):
            assert said.probability == pytest.approx(expected[said.token], abs=1e-6)
            assert said.nats == pytest.approx(-math.log(expected[said.token]), abs=1e-4)
            np.testing.assert_allclose(said.alternatives.probabilities, expected[said.alternatives.tokens], atol=1e-6)
    return whole


# --- with a cache and without


@pytest.mark.daily(5)
@pytest.mark.parametrize("mask", ["causal", "prefix:4", "full"])
@pytest.mark.parametrize("positions", ENCODINGS.names())
def test_the_cache_changes_nothing_under_any_encoding(positions, mask):
    whole = agrees(small(positions=positions, mask=mask), prompt(3, 1, 4), 14, Sampling(seed=1))
    assert len(set(whole[3:])) > 3


@pytest.mark.daily(5)
@pytest.mark.parametrize("mask", MASKS)
def test_the_cache_changes_nothing_under_any_mask(mask):
    agrees(small(mask=mask, positions="rotary"), prompt(3, 1), 14, Sampling(seed=2))


@pytest.mark.parametrize(
    "settings",
    [{"norm": "post"}, {"norm": "none"}, {"residual": False}, {"d_ff": 0}, {"scale_embeddings": False}, {"n_heads": 1}],
    ids=str,
)
def test_the_cache_changes_nothing_in_any_shape(settings):
    agrees(small(**settings), prompt(5, 9, 2, 6), 8, Sampling(temperature=1.5))


def test_padding_in_a_prompt_is_seen_by_nobody_either_way():
    model, text = small(), prompt(3, PAD, 4, PAD)
    whole = agrees(model, text, 5, Sampling())
    last = observe(model, torch.tensor([whole[:-1]]))["decoder.1.self_attention.pattern"]
    assert (last[..., [1, 3]] == 0).all()


def test_a_prompt_longer_than_the_context_is_read_from_its_newer_half():
    agrees(small(), torch.arange(27) % 12, 8, Sampling())


@pytest.mark.parametrize(
    ("mask", "length", "more", "read"),
    [
        ("causal", 3, 18, [3, *[1] * 7, 6, *[1] * 4, 6, *[1] * 4]),
        ("prefix:4", 4, 3, [4, 1, 1]),
        ("full", 2, 3, [2, 3, 4]),
        ("prefix:4", 2, 4, [2, 3, 4, 1]),
    ],
)
def test_each_token_is_read_once_while_the_window_stands_but_where_it_may_see_the_newest(mask, length, more, read):
    model, counts = small(mask=mask), []
    model.embedding.register_forward_pre_hook(lambda _, given: counts.append(given[0].shape[1]))
    list(generate(model, torch.zeros(length, dtype=torch.long), more))
    assert counts == read


def test_the_cache_gives_the_logits_of_a_whole_pass():
    model, text = small(positions="alibi").double(), [3, 1, 4, 1, 5, 9, 2, 6]
    cache = Cache(model)
    with torch.no_grad():
        for end in range(1, len(text) + 1):
            expected = model(torch.tensor([text[:end]]))[0, -1]
            torch.testing.assert_close(cache.next_logits(text[:end]), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("length", "n_ctx", "start"),
    [(1, 10, 0), (10, 10, 0), (11, 10, 5), (15, 10, 5), (16, 10, 10), (8, 7, 3), (10, 7, 3), (11, 7, 6), (5, 1, 4)],
)
def test_the_window_drops_half_of_the_context_at_once(length, n_ctx, start):
    assert window_start(length, n_ctx) == start


# --- what is drawn from


def shares_of(probabilities, **sampling):
    return distribution(torch.tensor(probabilities).log(), Sampling(**sampling)).tolist()


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ({}, [0.1, 0.4, 0.2, 0.3]),
        ({"top_k": 1}, [0, 1, 0, 0]),
        ({"top_k": 2}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_k": 9}, [0.1, 0.4, 0.2, 0.3]),
        ({"top_p": 0.01}, [0, 1, 0, 0]),
        ({"top_p": 0.39}, [0, 1, 0, 0]),
        ({"top_p": 0.41}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_p": 0.75}, [0, 4 / 9, 2 / 9, 3 / 9]),
        ({"top_p": 0.95}, [0.1, 0.4, 0.2, 0.3]),
        # of the three likeliest the first two have 7/9: more than 0.75 of what top_k has left
        ({"top_k": 3, "top_p": 0.75}, [0, 4 / 7, 0, 3 / 7]),
        ({"temperature": 0.5}, [1 / 30, 16 / 30, 4 / 30, 9 / 30]),
        # after the temperature: 16/30 and 9/30 together are 0.83
        ({"temperature": 0.5, "top_p": 0.8}, [0, 16 / 25, 0, 9 / 25]),
        *(({"temperature": cold}, [0, 1, 0, 0]) for cold in (0, 1e-300)),
    ],
    ids=str,
)
def test_known_distributions_are_cut_right(sampling, expected):
    assert shares_of([0.1, 0.4, 0.2, 0.3], **sampling) == pytest.approx(expected, abs=1e-6)


def test_of_equally_likely_tokens_the_first_come_first():
    assert shares_of([0.25] * 4, top_k=2) == pytest.approx([0.5, 0.5, 0, 0])
    assert shares_of([0.25] * 4, top_p=0.7) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])


@given(
    st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=12, unique=True),
    st.floats(0.1, 3),
    st.integers(0, 12),
    st.floats(0.05, 1),
)
def test_any_distribution_is_cut_as_a_loop_would(logits, temperature, top_k, top_p):
    weights = [math.exp(logit / temperature) for logit in logits]
    left = sorted(range(len(logits)), key=lambda token: -weights[token])[: top_k or None]
    total, nucleus, covered = sum(weights[token] for token in left), [], 0.0
    for token in left:
        if covered < top_p * total - 1e-9:
            nucleus.append(token)
        covered += weights[token]
    kept = sum(weights[token] for token in nucleus)
    expected = [weights[token] / kept if token in nucleus else 0.0 for token in range(len(logits))]
    found = distribution(torch.tensor(logits), Sampling(temperature=temperature, top_k=top_k, top_p=top_p))
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


def test_a_hot_draw_is_nearly_even_and_keeps_the_order():
    hot = shares_of([0.1, 0.4, 0.2, 0.3], temperature=100)
    assert hot == pytest.approx([0.25] * 4, abs=0.005)
    assert hot[1] > hot[3] > hot[2] > hot[0]


# --- what is drawn


def test_draws_are_as_frequent_as_they_are_likely_and_know_nothing_of_each_other():
    """Chi-square over the tokens and over pairs of neighbours; bounds exceeded once in 1000 seeds (3, 9 degrees)."""
    expected, more = np.array([0.1, 0.4, 0.2, 0.3]), 401
    said = tokens(generate(constant(*expected, 1e-9), prompt(0), more, Sampling(seed=3)))
    counts = np.bincount(said, minlength=4)
    assert ((counts - more * expected) ** 2 / (more * expected)).sum() < 16.27
    pairs = np.zeros((4, 4))
    for pair in itertools.pairwise(said):
        pairs[pair] += 1
    likely = np.outer(counts, counts) / more
    assert ((pairs - likely) ** 2 / likely).sum() < 27.88


def test_seeds_are_independent_of_each_other():
    """The first draw of many seeds is spread as one seed's draws are."""
    model, expected = constant(0.1, 0.4, 0.2, 0.3, 1e-9), np.array([0.1, 0.4, 0.2, 0.3])
    said = [next(generate(model, prompt(0), 1, Sampling(seed=seed))).token for seed in range(200)]
    assert ((np.bincount(said, minlength=4) - 200 * expected) ** 2 / (200 * expected)).sum() < 16.27


def test_only_what_the_cuts_leave_is_drawn_and_with_the_probability_that_is_told():
    said = list(generate(constant(0.1, 0.4, 0.2, 0.3, 1e-9), prompt(0), 60, Sampling(top_k=2)))
    assert {one.token for one in said} == {1, 3}
    for one in said:
        assert one.probability == pytest.approx({1: 0.4, 3: 0.3}[one.token], abs=1e-6)
        assert one.drawn_with == pytest.approx({1: 4 / 7, 3: 3 / 7}[one.token], abs=1e-6)
        assert one.alternatives.tokens.tolist() == [1, 3, 2, 0]
        assert one.alternatives.drawn_with == pytest.approx([4 / 7, 3 / 7, 0, 0], abs=1e-6)


def test_alternatives_are_the_ten_likeliest():
    (said,) = generate(constant(*(np.arange(1, 15) / 105)), prompt(0), 1)
    assert said.alternatives.tokens.tolist() == list(range(12, 12 - TOP, -1))
    assert said.alternatives.probabilities == pytest.approx(np.arange(13, 13 - TOP, -1) / 105, abs=1e-6)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0), Sampling(top_k=1), Sampling(top_p=0.5)])
def test_padding_is_never_drawn_however_likely(sampling):
    said = list(generate(constant(0.02, 0.03, 0.95), prompt(0), 30, sampling))
    assert {one.token for one in said} <= {0, 1}
    for one in said:
        assert one.alternatives.tokens.tolist() == [1, 0]
        assert one.probability == pytest.approx({0: 0.02, 1: 0.03}[one.token], abs=1e-6)
        assert one.alternatives.drawn_with.sum() == pytest.approx(1)


def test_barred_tokens_are_never_drawn_and_leave_their_share_to_the_others():
    model = constant(0.5, 0.2, 0.2, 0.05, 0.05)
    said = list(generate(model, prompt(1), 200, Sampling(seed=3), never=(0, 3)))
    assert set(tokens(said)) == {1, 2}
    for one in said:
        assert one.probability == pytest.approx(0.2)
        assert one.drawn_with == pytest.approx(0.5)
        assert one.alternatives.tokens[0] == 0
        assert one.alternatives.drawn_with[0] == 0


def test_the_seed_decides_and_nothing_else():
    model, text, sampling = small(), prompt(3, 1, 4), Sampling(seed=5)
    with torch.random.fork_rng(devices=[]):
        said = tokens(generate(model, text, 12, sampling))
        torch.manual_seed(99)
        state = torch.random.get_rng_state()
        assert tokens(generate(model, text, 12, sampling)) == said
        assert torch.equal(torch.random.get_rng_state(), state)
    assert len({tuple(tokens(generate(model, text, 6, Sampling(seed=seed)))) for seed in range(8)}) == 8


@pytest.mark.parametrize("broken_off", [1, 9, 20])
def test_a_text_that_is_taken_up_again_goes_on_as_it_would_have(broken_off):
    model, text, sampling = small(), prompt(3, 1, 4), Sampling(seed=6)
    whole = tokens(generate(model, text, 24, sampling))
    rest = tokens(generate(model, torch.tensor([*text, *whole[:broken_off]]), 24 - broken_off, sampling))
    assert whole[:broken_off] + rest == whole


def test_two_texts_at_once_do_not_disturb_each_other():
    model = small()
    alone = [tokens(generate(model, prompt(start), 14)) for start in (3, 7)]
    both = list(zip(*(generate(model, prompt(start), 14) for start in (3, 7)), strict=True))
    assert [tokens(said) for said in zip(*both, strict=True)] == alone


def test_at_temperature_0_the_likeliest_follows_as_in_continuing_greedily():
    model = small(seed=4)
    torch.nn.init.constant_(model.unembedding.bias[-1:].detach(), -100)  # greedily, padding could be said
    expected = model.continue_greedily(prompt(3, 1).unsqueeze(0), 8)[0].tolist()
    assert tokens(generate(model, prompt(3, 1), 8, Sampling(temperature=0))) == expected


def test_a_model_is_asked_without_dropout_and_left_in_its_mode():
    model, text = small(dropout=0.5).train(), prompt(3, 1)
    said = []
    for one in generate(model, text, 6):
        assert model.training
        assert torch.is_grad_enabled()
        said.append(one.token)
    assert said == tokens(generate(small(), text, 6))


# --- what cannot be


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"temperature": -0.1}, "temperature must be between 0 and 100, not -0.1"),
        ({"temperature": math.nan}, "temperature must be between 0 and 100, not nan"),
        ({"temperature": math.inf}, "temperature must be between 0 and 100, not inf"),
        ({"top_k": -1}, r"top_k must be between 0 \(all\) and 1000000, not -1"),
        ({"top_p": 0}, "top_p must be above 0 and at most 1, not 0"),
        ({"top_p": 1.01}, "top_p must be above 0 and at most 1, not 1.01"),
        ({"top_p": math.nan}, "top_p must be above 0 and at most 1, not nan"),
        ({"seed": -1}, "seed must be between 0 and 2147483647, not -1"),
    ],
    ids=str,
)
def test_sampling_that_cannot_be_is_refused_in_a_sentence(settings, sentence):
    with pytest.raises(ConfigError, match=f"^{sentence}$"):
        Sampling(**settings)


@pytest.mark.parametrize(
    ("text", "more", "sentence"),
    [
        ((), 3, "a prompt needs at least one token"),
        ((1, D_VOCAB), 3, "the prompt has tokens that the model does not know: it knows 0 to 12"),
        ((-1,), 3, "the prompt has tokens that the model does not know: it knows 0 to 12"),
        ((1,), -1, "tokens must be 0 or more, not -1"),
    ],
    ids=str,
)
def test_a_prompt_that_cannot_be_is_refused_at_once(text, more, sentence):
    with pytest.raises(ConfigError, match=f"^{sentence}$"):
        generate(small(), torch.tensor(text, dtype=torch.long), more)


def test_something_must_be_left_to_draw():
    with pytest.raises(ConfigError, match="no token left"):
        generate(constant(0.5, 0.3, 0.2), prompt(1), 1, never=(0, 1))


@pytest.mark.parametrize(
    ("task", "architecture", "named"),
    [
        ("reverse-aligned", "encoder", "an encoder"),
        ("reverse-translate", "encoder-decoder", "an encoder-decoder"),
        ("reverse-translate", "gru", "a GRU"),
    ],
)
def test_only_a_decoder_goes_on(task, architecture, named):
    model = build(RunConfig(task=TaskConfig(task=task), model=ModelConfig(architecture=architecture, d_model=16)))
    with pytest.raises(ConfigError, match=f"^only a decoder goes on with a text, and this model is {named}$"):
        generate(model, prompt(1), 1)


def test_nothing_is_written_where_nothing_is_asked_for():
    assert list(generate(small(), prompt(1), 0)) == []
