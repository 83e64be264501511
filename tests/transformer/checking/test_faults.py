"""Faults at the edges: each is right in the middle, and each check finds the one that it is for."""

import math
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from transformer.checking.bench import Local
from transformer.checking.check import judge

sys.path.insert(0, str(Path(__file__).parent / "variants"))
import decoder as decoders
import module as modules
import positions as tables

sys.path.pop(0)


def found(what):
    bench = Local(what)
    return judge(bench, bench.describe())[1]


def attend(q, k, v, mask, hide=-math.inf):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, hide)
    return scores.softmax(-1) @ v


def detached(q, k, v, mask=None):
    return attend(q.detach(), k, v, mask)


def in_place(q, k, v, mask=None):
    q /= math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-2, -1)
    return (scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(-1) @ v


def drops(q, k, v, mask=None):
    output = attend(q, k, v, mask)
    return output + 1e-2 * torch.rand(1) * (torch.initial_seed() != 0)


def square_only(q, k, v, mask=None):
    return attend(q, k, v, mask).view(*k.shape)


def hides_with_a_small_number(q, k, v, mask=None):
    return attend(q, k, v, mask, hide=-30.0)


def first_mask_for_all(q, k, v, mask=None):
    return attend(q, k, v, None if mask is None else mask[:1])


def own_precision(q, k, v, mask=None):
    return attend(q.float(), k.float(), v.float(), mask)


def softmax_that_overflows(q, k, v, mask=None):
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).exp()
    if mask is not None:
        scores = scores * mask
    return scores / scores.sum(-1, keepdim=True) @ v


def other_weights(q, k, v, mask=None):
    return attend(q, k, v, mask), (q @ k.transpose(-2, -1)).softmax(-1)


def scale_of_the_values(q, k, v, mask=None):
    return attend(q * (q.shape[-1] / v.shape[-1]) ** 0.5, k, v, mask)


def throws_its_mask_away(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1) @ v


def mean_weights(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = (scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(-1)
    return weights @ v, weights.mean(1)


def causal_attention(q, k, v):
    return attend(q, k, v, None)


def adds_ones_and_zeros(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return (scores if mask is None else scores + mask.float()).softmax(-1) @ v


def adds_any_mask(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return (scores if mask is None else scores + mask).softmax(-1) @ v


def always_drops_weights(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = nn.functional.dropout((scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(-1), 0.2)
    return weights @ v, weights


def other_weights_where_asked(q, k, v, mask=None, return_weights=False):
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    return (attend(q, k, v, mask), weights) if return_weights else attend(q, k, v, mask)


def hiding_with(hide):
    def attention(q, k, v, mask=None):
        return attend(q, k, v, mask, hide)

    return attention


NOTES = [
    (
        adds_any_mask,
        "A mask of truth values, or of ones and zeros, is added to the scores as well, and hides nothing: ",
    ),
    (own_precision, "In float16 the output is float32: something in the code has a precision of its own."),
    (softmax_that_overflows, "Scores beyond 100 give NaN: "),
    (mean_weights, "The weights that it returns are the mean over the heads, not those of each head."),
    (
        hiding_with(-math.inf),
        "A query that may see nothing gets NaN: −inf in the whole row makes softmax divide 0 by 0.",
    ),
    (
        hiding_with(-1e9),
        "A query that may see nothing reads all keys alike, also the hidden ones; the reference gives ",
    ),
]


# --- modules


class UnusedWeight(modules.Rotary):
    """Keys are made with the weights of the queries."""

    def __init__(self, dim, n_heads):
        super().__init__(dim, n_heads)
        self.unused, self.wk = self.wk, self.wq


class MixesTheBatch(modules.GroupedQueries):
    def forward(self, x, mask=None):
        return super().forward(x, mask) + x.mean()


class AlwaysDrops(modules.PackedByHead):
    def forward(self, hidden_states, mask=None):
        return nn.functional.dropout(super().forward(hidden_states, mask), 0.5)


class MaskedAttention(nn.Module):
    """Four layers and no mask; what happens between is what is wrong."""

    def __init__(self, dim, heads=8, dim_head=None):
        super().__init__()
        self.heads, inner = heads, heads * (dim_head or dim // heads)
        self.qkv, self.last = nn.Linear(dim, 3 * inner, bias=False), nn.Linear(inner, dim)

    def mix(self, q, k, v):
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        return self.last(self.mix(q, k, v).transpose(1, 2).flatten(2))


class CausalUnscaled(MaskedAttention):
    def mix(self, q, k, v):
        scores = q @ k.mT
        return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -1e9).softmax(-1) @ v


class OverQueries(MaskedAttention):
    def mix(self, q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -1e9).softmax(-2) @ v


class HeadOfAnotherScale(nn.Module):
    """One head, as wide as it is told; x is as wide as its own module says."""

    width = 20

    def __init__(self, head_size):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(self.width, head_size, bias=False) for _ in range(3))

    def forward(self, x):
        return (self.query(x) @ self.key(x).mT * x.shape[-1] ** -0.5).softmax(-1) @ self.value(x)


class OneOfSix(HeadOfAnotherScale):
    width = 24


class HeadsOfAnotherScale(nn.Module):
    """One head after the other, each in a module of its own."""

    def __init__(self, n_embd, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(OneOfSix(n_embd // num_heads) for _ in range(num_heads))
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class KeepsItsPastOutOfLine(modules.KeepsItsPast):
    """Its causal mask begins at the first key, also where the queries are those of the last tokens."""

    ahead = False


class TurnsQueriesAlone(modules.HandedRotations):
    def forward(self, x, start_pos, freqs_cis, mask=None):
        self.keys = None
        return super().forward(x, start_pos, freqs_cis, mask)

    def turned(self, x, freqs_cis):
        self.keys = x if self.keys is None else None
        return super().turned(x, freqs_cis) if self.keys is not None else x


class AddsWhatItMakesTwice(modules.NormAndResidualInside):
    def forward(self, x, mask=None):
        return 2 * (super().forward(x, mask) - x)


class ForgetsItsMask(modules.CausalSelfAttention):
    def forward(self, x, need_weights=False):
        if not need_weights:
            return super().forward(x)
        q, k, v = (part.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, -1))
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.c_proj((weights @ v).transpose(1, 2).flatten(2)), weights


class NeverLooksElsewhere(modules.CrossAttention):
    def forward(self, x, context=None):
        return super().forward(x)


class LooksAtItself(modules.CrossAttention):
    def forward(self, x, memory):
        return super().forward(x)


class ValuesOfTheKeys(modules.TwoMasks):
    def looked_at(self, key, value):
        return super().looked_at(key, key)


class OneMaskOrTheOther(modules.TwoMasks):
    both = False


class NeverReadsPadding(modules.TwoMasks):
    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        return super().forward(query, key, value, None, attn_mask)


class HidesThePastWhereAsked(modules.CrossAttention):
    def forward(self, x, is_causal=False):
        k, v = self.to_kv(x).chunk(2, dim=-1)
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (self.to_q(x), k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if is_causal:
            scores = scores.masked_fill(torch.ones_like(scores).tril().bool(), -math.inf)
        return self.to_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class AddsAMaskOfOnes(modules.BiasOfDistance):
    """Its bias is 1 where a key is not later, and 0 where it is: nothing is hidden."""

    def __init__(self, dim, heads=4):
        super().__init__(dim, heads)
        del self.relative
        self.relative = self.fixed

    def fixed(self, place):
        return (place <= 64).float()[..., None].expand(*place.shape, self.heads)


class PrefersFarKeys(AddsAMaskOfOnes):
    def fixed(self, place):
        return (place - 64).abs()[..., None] * 2.0 ** -torch.arange(self.heads)


class WindowOfAll(modules.ToldItsWindow):
    def seen(self, distance):
        return (distance <= 0) | (distance > -self.window_size)


class SeesOnlyItself(modules.ToldItsWindow):
    def seen(self, distance):
        return distance == 0


class TiledHeads(nn.Module):
    def __init__(self, d_model, n_heads, num_groups=2):
        super().__init__()
        self.h, self.g, self.d = n_heads, num_groups, d_model // n_heads
        self.q, self.o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.kv = nn.Linear(d_model, 2 * num_groups * self.d)

    def forward(self, x):
        q = self.q(x).unflatten(-1, (self.h, self.d)).transpose(1, 2)
        both = (part.unflatten(-1, (self.g, self.d)).transpose(1, 2) for part in self.kv(x).chunk(2, -1))
        k, v = (part.repeat(1, self.h // self.g, 1, 1) for part in both)
        return self.o(((q @ k.mT / self.d**0.5).softmax(-1) @ v).transpose(1, 2).flatten(2))


class ThreeTimesTheResidual(modules.NormAndResidualInside):
    def forward(self, x, mask=None):
        return super().forward(x, mask) + x * x.sign()


class CosineScores(modules.GroupedQueries):
    """Queries and keys are normalised: another formula, and not known to be wrong."""

    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.q_norm = nn.LayerNorm(d_model // n_heads)

    def forward(self, x):
        B, T, C = x.shape
        q = self.q_norm(self.q_proj(x).view(B, T, self.h, self.d_k)).transpose(1, 2)
        k, v = self.k_proj(x).unsqueeze(1), self.v_proj(x).unsqueeze(1)
        return self.out_proj(modules.attention(q, k, v)[0].transpose(1, 2).reshape(B, T, C))


class Convolved(nn.Module):
    """Its projections read three tokens each: none is a layer of x."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.qkv, self.heads = nn.Conv1d(d_model, 3 * d_model, 3, padding=1), n_heads

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x.mT).mT.chunk(3, -1))
        return ((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v).transpose(1, 2).flatten(2)


class OneMatrixForTheScores(nn.Module):
    """Queries and keys share one matrix, and softmax runs over the queries, behind a mask."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.scores, self.values = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        scores = self.scores(x) @ x.mT / 10
        return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -1e9).softmax(-2) @ self.values(x)


class CutByTheFirstAxis(tables.PositionalEncoding):
    def __init__(self, d_model, max_len=64):
        super().__init__(d_model, 0.0, max_len)

    def forward(self, x):
        return x + self.pe[0, : x.shape[0], None]


# --- positions, masks, decoders


class WholeTable(tables.PositionalEncoding):
    def __init__(self, d_model, max_len):
        super().__init__(d_model, 0.0, max_len)

    def forward(self, x):
        return x + self.pe


class LengthOfTheBatch(WholeTable):
    def forward(self, x):
        return x + self.pe[0, : x.shape[0]]


class NoBuffer(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        self.table = tables.sinusoidal_table(max_len, d_model)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


def causal_up_to_seven(n):
    return torch.ones(n, n).tril() if n < 8 else torch.ones(n, n)


def causal_mask(n):
    return torch.ones(n, n).triu()


def padding_mask(tokens, pad):
    return tokens >= 0


class Leaks(decoders.PreNorm):
    def forward(self, tokens):
        return super().forward(tokens) + 1e-2 * super().forward(tokens.flip(1))


class Probabilities(decoders.PreNorm):
    def forward(self, tokens):
        return super().forward(tokens).softmax(-1)


class MixesSequences(decoders.PreNorm):
    def forward(self, tokens):
        logits = super().forward(tokens)
        return logits + 0.1 * logits.cumsum(0)


class IdleLayer(decoders.PreNorm):
    def __init__(self, vocab_size, d_model, n_heads, n_layers):
        super().__init__(vocab_size, d_model, n_heads, n_layers)
        self.idle = nn.Linear(d_model, d_model)


class LosesTheStream(decoders.PreNorm):
    def __init__(self, vocab_size, d_model, n_heads, n_layers):
        super().__init__(vocab_size, d_model, n_heads, n_layers)
        for block in self.blocks:
            block.forward = lambda x, block=block: block.feed_forward(block.second(x + block.attention(block.first(x))))


class SamePositions(decoders.PreNorm):
    def places(self, tokens):
        return torch.zeros(tokens.shape[1], dtype=torch.long)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(self.places(tokens))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class PositionsByToken(SamePositions):
    def places(self, tokens):
        return tokens


class DropsAlways(decoders.PreNorm):
    def forward(self, tokens):
        return nn.functional.dropout(super().forward(tokens), 0.1)


class LossOfInputs(decoders.PreNorm):
    def loss(self, logits, tokens, targets):
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())

    def forward(self, tokens, targets=None):
        logits = super().forward(tokens)
        return logits, None if targets is None else self.loss(logits, tokens, targets)


class LossOfProbabilities(LossOfInputs):
    def loss(self, logits, tokens, targets):
        return super().loss(logits.softmax(-1), targets, tokens)


def get_batch_two_ahead(data, block_size):
    starts = torch.randint(len(data) - block_size - 2, (4,)).tolist()
    return tuple(torch.stack([data[i + ahead : i + ahead + block_size] for i in starts]) for ahead in (0, 2))


def shifted_targets(tokens):
    return tokens[:, 1:], tokens[:, :-1]


NOTES += [
    (CutByTheFirstAxis, "The table is cut by the first axis of x. Where x is [batch, position, d_model] nothing fails"),
    (NoBuffer, "In bfloat16 the output is not bfloat16: `register_buffer` lets the table move with the module."),
]
WRONG = [
    (detached, "No gradient reaches the query: "),
    (in_place, "The code changes its query in place: "),
    (drops, "Two calls with the same inputs differ: is dropout on?"),
    (square_only, "With 4 queries and 7 keys: It raises RuntimeError"),
    (hides_with_a_small_number, "With large scores the output differs from the reference by up to "),
    (first_mask_for_all, "With a mask of its own for each sequence the output differs from the reference by up to "),
    (other_weights, "The output is right, and the weights that it returns differ by up to "),
    (scale_of_the_values, "With values wider than the queries the output differs from the reference by up to "),
    (throws_its_mask_away, "What `masked_fill` returns is never read: it changes nothing in place. "),
    (throws_its_mask_away, "The mask is not used. "),
    (throws_its_mask_away, "The pattern differs: by up to "),
    (HeadsOfAnotherScale, "The scale is that of d_model. "),
    (HeadsOfAnotherScale, "The scores are divided by √24 = √d_model; they should be divided by √d_head = √4."),
    (
        KeepsItsPastOutOfLine,
        "With past_key_value, 2 tokens after 3 others give another output than all at once, by up ",
    ),
    (TurnsQueriesAlone, "Of equal tokens, the score of a query and a key does not depend on their distance alone: "),
    (LosesTheStream, "Behind the first attention the stream is lost: no layer's result is added to it. "),
    (SamePositions, "Every position gets the same vector of positions.weight: nothing tells the order."),
    (PositionsByToken, "The same position gets other vectors of positions.weight in another sequence: "),
    (DropsAlways, "Two calls with the same inputs differ: dropout is on also in evaluation."),
    (LossOfInputs, "The loss compares the logits with the tokens that are read, and not with the targets."),
    (LossOfProbabilities, "The loss is that of probabilities: `cross_entropy` takes logits, from before the softmax."),
    (get_batch_two_ahead, "What is to be predicted is not, at each position, the token that follows in the text."),
    (UnusedWeight, "No gradient reaches the weight unused.weight: it takes no part in the output."),
    (MixesTheBatch, "The sequences of a batch mix: "),
    (AlwaysDrops, ""),
    (causal_attention, "Its name says causal, and every query sees every key, the later ones too."),
    (adds_ones_and_zeros, "The mask is made numbers (`.float()`) and added to the scores, so ones and zeros hide "),
    (always_drops_weights, "Two calls with the same inputs differ: dropout is on at all times."),
    (always_drops_weights, "The weights that it returns are those after dropout: they do not add up to 1."),
    (other_weights_where_asked, "With return_weights=True the weights that it returns differ by up to "),
    (MaskedAttention, "Its name says masked, and every query sees every key, the later ones too."),
    (CausalUnscaled, "The scale is missing. "),
    (CausalUnscaled, "The scores are not divided at all; they should be divided by √d_head = √4."),
    (OverQueries, "Softmax runs over the queries. "),
    (OverQueries, "Softmax runs over dimension 2, the queries; it should run over the keys, the last."),
    (HeadOfAnotherScale, "The scores are divided by 4.472; they should be divided by √d_head = √8."),
    (ForgetsItsMask, "With need_weights=True the output differs from the reference by up to "),
    (NeverLooksElsewhere, "With context the output differs from the reference by up to "),
    (LooksAtItself, "With another sequence to look at the output differs from the reference by up to "),
    (LooksAtItself, "With 6 queries and 8 keys the output differs from the reference by up to "),
    (ValuesOfTheKeys, "With other values than keys the output differs from the reference by up to "),
    (
        OneMaskOrTheOther,
        "With key_padding_mask and the other mask together the output differs from the reference by up ",
    ),
    (NeverReadsPadding, "It takes key_padding_mask and never reads it."),
    (HidesThePastWhereAsked, "With is_causal=True the output holds NaN."),
    (AddsAMaskOfOnes, "A mask of two numbers is added to the scores, and the smaller one hides nothing: "),
    (PrefersFarKeys, "The bias that is added to the scores grows with the distance, so that far keys are preferred; "),
    (WindowOfAll, "WindowOfAll was made with a window of a few tokens, and the last query sees every key."),
    (SeesOnlyItself, "No position takes anything from another."),
    (SeesOnlyItself, "The pattern differs: by up to "),
    (TiledHeads, "Shared keys and values are tiled over the heads. "),
    (TiledHeads, "The heads read the shared keys and values in the order 0 1 0 1 …; it should be 0 0 1 1 …. "),
    (OneMatrixForTheScores, "Equal tokens give different outputs: the weights of a query do not add up to 1 over "),
    (WholeTable, "It takes no sequence that is shorter than the longest."),
    (LengthOfTheBatch, "It takes the length from the batch: x.shape[0] for x.shape[1]."),
    (causal_up_to_seven, "For 8 positions the mask is not causal."),
    (causal_up_to_seven, "For 33 positions the mask is not causal."),
    (causal_mask, "Read as “True where a query may see a key”: position 1 sees position 2, which comes later."),
    (causal_mask, "Read as “True where a key is hidden”: position 1 does not see position 1, itself."),
    (padding_mask, ""),
    (Leaks, "The future leaks: the logits at position 1 change with the token at position"),
    (MixesSequences, "The sequences of a batch mix: another sequence beside it changes what a sequence gives."),
    (IdleLayer, "No gradient reaches idle.weight: it takes no part in the logits."),
    (
        shifted_targets,
        "With 2 sequences of 6 tokens: tokens[:, :-1] should be read, and tokens[:, 1:] be predicted.",
    ),
]
MORE = (square_only, MixesTheBatch, AlwaysDrops, WholeTable, LengthOfTheBatch, causal_mask, padding_mask)
"""Faults of which more is said than stands in the table; of all others nothing."""
MISTAKES = {
    WholeTable: "encoding-of-maximal-length",
    LengthOfTheBatch: "length-from-the-batch",
    TiledHeads: "key-heads-tiled",
}
"""Of these faults, which mistake of the gallery they are."""


@pytest.mark.parametrize(("code", "sentence"), WRONG)
def test_a_fault_is_found(code, sentence):
    findings = found(code)
    assert [each for each in findings.wrong if each.startswith(sentence)]
    listed = tuple(each for fault, each in WRONG if fault is code)
    assert code in MORE or all(each.startswith(listed) for each in findings.wrong)
    assert code not in MISTAKES or findings.mistake == MISTAKES[code]


class HasNoWindow(modules.FusedCausal):
    """Its name, below, says that it has one."""


HasNoWindow.__name__ = "SlidingWindowAttention"


class RelativeTerms(nn.Module):
    """A product of queries and distances is added to the scores, as in Shaw et al."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h, self.places = n_heads, nn.Parameter(torch.randn(128, d_model // n_heads))
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def valued(self, key, value):
        return self.v(value)

    def forward(self, query, key, value):
        made = (self.q(query), self.k(key), self.valued(key, value))
        q, k, v = (each.unflatten(-1, (self.h, -1)).transpose(1, 2) for each in made)
        distance = torch.arange(k.shape[2]) - torch.arange(q.shape[2])[:, None] + 64
        scores = q @ k.mT + torch.einsum("bhqd,qkd->bhqk", q, self.places[distance])
        return self.o(((scores / q.shape[-1] ** 0.5).softmax(-1) @ v).transpose(1, 2).flatten(2))


class RelativeTermsOfKeysAlone(RelativeTerms):
    def valued(self, key, value):
        return self.v(key)


def changing(code, **methods):
    """The class with other methods."""
    return type("".join(methods) + code.__name__, (code,), methods)


def mixing(code, mixed):
    """The class with another way from scores to what is merged."""
    return changing(code, mixed=lambda self, scores, v: mixed(scores, v))


AddsItBehindANorm = changing(
    modules.NormAndResidualInside,
    forward=lambda self, x, mask=None: self.norm(
        (attended := modules.GroupedQueries.forward(self, x, mask)) + attended
    ),
)
TakesItAway = changing(
    modules.NormAndResidualInside,
    forward=lambda self, x, mask=None: x - modules.GroupedQueries.forward(self, x, mask),
)
OfTheNorm = changing(
    modules.NormAndResidualInside,
    forward=lambda self, x, mask=None: (y := self.norm(x)) + modules.GroupedQueries.forward(self, y, mask),
)
CosineOverTheRoot = changing(modules.CosineTimesTen, scores=lambda self, q, k: q @ k.mT / self.d**0.5)
NormsWithoutTheRoot = changing(modules.NormsQueriesAndKeys, scores=lambda self, q, k: q @ k.mT)
Turns, Norms, Shaw = modules.TurnsWithAnotherBase, modules.NormsQueriesAndKeys, modules.RelativeVectors
SameAxis = "it should be over the numbers of a head."
OfTheModel = "The scores are divided by 4.899; they should be divided by √d_head = √4."
OverQueriesThere = "Softmax runs over the queries. "
ADDED = [
    (changing(Norms, scores=lambda self, q, k: q @ k.mT / (self.h * self.d) ** 0.5), OfTheModel),
    (changing(Shaw, scores=lambda self, q, k: Shaw.scores(self, q, k) / self.h**0.5), OfTheModel),
    (changing(Turns, scores=lambda self, q, k: q @ k.mT / (self.h * self.d) ** 0.5), OfTheModel),
    (mixing(Norms, lambda scores, v: scores.softmax(-2) @ v), OverQueriesThere),
    (mixing(modules.CosineTimesTen, lambda scores, v: scores.softmax(-2) @ v), OverQueriesThere),
    (mixing(modules.RelativeTable, lambda scores, v: scores.softmax(-2) @ v), OverQueriesThere),
    (
        mixing(Norms, lambda scores, v: scores.softmax(-1).mT @ v),
        "The pattern is transposed where it weighs the values.",
    ),
    (mixing(Norms, lambda scores, v: scores.softmax(-1).softmax(-1) @ v), "Softmax is taken twice."),
    (mixing(Norms, lambda scores, v: scores.softmax(-1).tril() @ v), "The mask comes after the softmax. "),
    (
        changing(Norms, changed=lambda self, q, k, v: (self.q_norm(q), self.q_norm(q), v)),
        "The keys are made of the projection of the queries, and another projection is never read.",
    ),
    (
        changing(Norms, changed=lambda self, q, k, v: (self.q_norm(q), k := self.k_norm(k), k)),
        "The values are made of the projection of the keys, and another projection is never read.",
    ),
    (
        changing(
            modules.CosineTimesTen,
            changed=lambda self, q, k, v: (nn.functional.normalize(q, dim=2), nn.functional.normalize(k, dim=2), v),
        ),
        f"The queries are normalised over the positions; {SameAxis}",
    ),
    (
        changing(
            modules.CosineTimesTen,
            changed=lambda self, q, k, v: (nn.functional.normalize(q, dim=1), nn.functional.normalize(k, dim=1), v),
        ),
        f"The keys are normalised over the heads; {SameAxis}",
    ),
    (
        changing(Turns, changed=lambda self, q, k, v: (self.turn(q, 1), self.turn(k, 1), v)),
        "The queries are turned by the head’s index; it should be by each position.",
    ),
    (
        changing(Turns, changed=lambda self, q, k, v: (self.turn(q, 0), self.turn(k, 0), v)),
        "The keys are turned by the sequence’s index; it should be by each position.",
    ),
    (
        changing(Turns, changed=lambda self, q, k, v: (self.turn(q), self.turn(k), self.turn(v))),
        "The values are turned by their positions as well; only queries and keys should be.",
    ),
    (
        changing(Turns, changed=lambda self, q, k, v: (self.turn(q), k, v)),
        "Queries and keys are not turned alike, so that their product does not depend on the distance alone.",
    ),
    (
        changing(
            Shaw, distance=lambda self, length: (torch.arange(length) + torch.arange(length)[:, None]).clamp(max=6)
        ),
        "Its name says relative. What is added to the scores depends on the places of query and key, and not on ",
    ),
    (changing(modules.NormsOverAllHeads, looked_at=lambda self, x, context: x), "It takes context and never reads it."),
    (AddsWhatItMakesTwice, "What attention makes is added to itself, and x is lost: a residual connection adds x."),
    (AddsItBehindANorm, "What attention makes is added to itself, and x is lost: a residual connection adds x."),
    (TakesItAway, "What attention makes is taken away from x: a residual connection adds it."),
    (
        changing(modules.SlidingWindowWiderThanTheCheck, seen=lambda self, far: (far <= 0) | (far > -self.window_size)),
        "It has a window of 64 (`window_size`), and of 70 positions it hides none by it.",
    ),
    (
        changing(modules.Pooling, mixed=lambda self, q, k, v: (q @ k.mT / 24**0.5).softmax(-1) @ v),
        OfTheModel,
    ),
    (
        changing(modules.Pooling, mixed=lambda self, q, k, v: (q @ k.mT / 2).softmax(-2) @ v),
        "The weights of a vector do not add up to 1 over the positions: ",
    ),
    (
        changing(modules.Pooling, mixed=lambda self, q, k, v: (q @ k.mT / 2).softmax(-1) @ k),
        "No gradient reaches the weight v.weight: it takes no part in the output.",
    ),
    (
        changing(modules.Pooling, forward=lambda self, x: self.proj(self.queries(x.softmax(-1)))[:, 0]),
        "Nothing of x is in what it returns.",
    ),
    (
        changing(modules.AttentionPoolOfLayers, over=-1),
        "The weights of a vector do not add up to 1 over the positions: ",
    ),
]
WRONG.append((RelativeTermsOfKeysAlone, "It takes value and never reads it."))
UNDECIDED = [
    (HasNoWindow, "Its name says that it has a window, and of 640 positions it hides none. "),
    (Probabilities, "It returns probabilities, and no logits. Its loss would decide it: "),
    (ThreeTimesTheResidual, "What its last layer gives is right, and what it returns is something else"),
    (CosineScores, "Only the queries are normalised. Both, or neither, would decide it."),
    (OfTheNorm, "The attention is right. What is added to it is x as it was normalised, and x itself is lost: "),
    (CosineOverTheRoot, "Queries and keys have the length 1, and their product is multiplied by 0.5: "),
    (NormsWithoutTheRoot, "The scores are not divided by √d_head = √4. The gains of the norms may stand for it, "),
    (Convolved, "Its queries, keys and values were not found, so its output was compared with no reference: "),
]


@pytest.mark.parametrize(("code", "sentence"), ADDED)
def test_a_fault_beside_what_is_added_is_found(code, sentence):
    findings = found(code)
    assert [each for each in findings.wrong if each.startswith(sentence)]


@pytest.mark.parametrize(("code", "words"), UNDECIDED)
def test_what_was_compared_with_nothing_is_not_decided(code, words):
    findings = found(code)
    assert findings.wrong == []
    assert words in findings.undecided


@pytest.mark.parametrize(("code", "sentence"), NOTES)
def test_what_is_worth_knowing_is_a_note(code, sentence):
    findings = found(code)
    assert findings.wrong == []
    assert [each for each in findings.notes if each.startswith(sentence)]
