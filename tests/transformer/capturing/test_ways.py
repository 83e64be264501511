"""However attention is written, its pattern is seen as [batch, head, query, key], or it is said why not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.kit.foreign.ways import BATCH, D_HEAD, HEADS, LENGTH, WAYS, WIDTH, PatternsWritten, Way, weigh
from tests.kit.numbers.rounding import near
from transformer import Change, capture, capture_changed
from transformer.capturing.changes import ChangeError

CAUSAL = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
EACH = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
WITHOUT_W_O = ("NothingAfterwards", "NormedAndGated")


def made(way: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return way().eval()


@EACH
@pytest.mark.parametrize("batch", [BATCH, 1])
@torch.no_grad()
def test_the_pattern_is_the_one_told_head_by_head(way: Callable[[], Way], batch: int) -> None:
    model = way().eval()
    x = model.reads()
    x = x[:, :batch] if type(model).__name__ == "PositionsFirst" else x[:batch] if x.dim() == 3 else x
    plain = model(x)
    seen = capture(model, x)
    assert torch.equal(seen.output, plain) if model.exact else seen.output == near(plain)
    (name,) = seen.attentions()
    assert seen[f"{name}.pattern"] == near(model.expected(x))
    assert seen[f"{name}.pattern"] @ seen[f"{name}.value"] == near(seen[f"{name}.z"])
    if f"{name}.scores" in seen.sites:
        assert seen[f"{name}.scores"].softmax(-1) == near(model.expected(x))
    assert (seen.unseen, seen.remarks) == ((), ())


@EACH
@torch.no_grad()
def test_one_head_is_removed_and_another_mask_is_put_in(way: Callable[[], Way]) -> None:
    model = made(way)
    assert isinstance(model, Way)
    x = model.reads()
    (name,) = capture(model, x).attentions()
    for head in range(HEADS):
        found = capture_changed(model, Change(frozenset({(name, head)})), x)
        others = [each for each in range(HEADS) if each != head]
        assert not found[f"{name}.z"][:, head].any()
        assert found[f"{name}.z"][:, others].any()
        if way.__name__ not in WITHOUT_W_O:
            own = made(way)
            own.o.weight[:, head * D_HEAD : (head + 1) * D_HEAD] = 0
            assert found.output == near(own(x))
    masked = capture_changed(model, Change(mask=CAUSAL), x)
    assert masked[f"{name}.pattern"] == near(model.expected(x, CAUSAL))
    blind = CAUSAL.clone()
    blind[2] = False
    assert not capture_changed(model, Change(mask=blind), x)[f"{name}.z"][:, :, 2].any()


# --- heads that share their keys, one query for all, queries that are learned


class Shared(Way):
    """Query heads share their keys: all of them, or two by two in an axis of their own."""

    groups = 1

    def __init__(self) -> None:
        super().__init__()
        self.k, self.v = (nn.Linear(WIDTH, self.groups * D_HEAD) for _ in range(2))

    def expected(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        query, key = (each(x).unflatten(-1, (-1, D_HEAD)).transpose(1, 2) for each in (self.q, self.k))
        return torch.stack([weigh(query[:, i], key[:, i * self.groups // HEADS]) for i in range(HEADS)], 1)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.q(x).unflatten(-1, (HEADS, -1)).transpose(1, 2), self.k(x), self.v(x)
        pattern = (torch.einsum("bhqd,bkd->bhqk", query, key) / math.sqrt(D_HEAD)).softmax(-1)
        return self.join(torch.einsum("bhqk,bkd->bhqd", pattern, value))


class TwoByTwo(Shared):
    groups = 2

    def forward(self, x: Tensor) -> Tensor:
        query = self.q(x).unflatten(-1, (2, 2, -1)).permute(0, 2, 3, 1, 4)
        key, value = (each(x).unflatten(-1, (2, -1)).transpose(1, 2)[:, :, None] for each in (self.k, self.v))
        return self.o((weigh(query, key) @ value).permute(0, 3, 1, 2, 4).flatten(2))


class LastQuery(Way):
    def expected(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().expected(x)[:, :, -1:]

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        return self.join(weigh(query[:, :, -1:], key) @ value)


class Pooling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scores, self.out = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 3)

    def expected(self, x: Tensor) -> Tensor:
        return self.scores(x).softmax(1).transpose(1, 2)[:, None]

    def forward(self, x: Tensor) -> Tensor:
        return self.out((self.scores(x).squeeze(-1).softmax(-1).unsqueeze(-1) * x).sum(1))


class OneQueryForAllHeads(Shared):
    """The last token asks, in all heads at once: [batch, head, key] weighs values that the heads share."""

    def expected(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().expected(x)[:, :, -1:]

    def forward(self, x: Tensor) -> Tensor:
        query = self.q(x[:, -1]).unflatten(-1, (HEADS, -1))
        return self.o((weigh(query, self.k(x)) @ self.v(x)).flatten(1)[:, None])


class ValuesInPieces(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        pattern = weigh(query, key)
        return self.join(torch.cat([pattern @ each for each in value.chunk(2, -1)], -1))


class LearnedQueries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.queries, self.out = nn.Parameter(torch.randn(3, WIDTH)), nn.Linear(WIDTH, WIDTH)

    def expected(self, x: Tensor) -> Tensor:
        return (self.queries @ x.transpose(1, 2)).softmax(-1)[:, None]

    def forward(self, x: Tensor) -> Tensor:
        return self.out((self.queries @ x.transpose(1, 2)).softmax(-1) @ x)


@pytest.mark.parametrize(
    "way", [Shared, TwoByTwo, LastQuery, OneQueryForAllHeads, ValuesInPieces, Pooling, LearnedQueries]
)
@torch.no_grad()
def test_queries_and_keys_may_be_fewer(way: type[Way]) -> None:
    model, x = made(way), torch.randn(BATCH, LENGTH, WIDTH)
    seen = capture(model, x)
    (name,) = seen.attentions()
    assert seen[f"{name}.pattern"] == near(model.expected(x))
    assert seen.unseen == ()


# --- rows that do not sum to 1


class One(nn.Module):
    """One head on x itself; each kind does something to its pattern."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.pattern(x) @ x)

    def pattern(self, x: Tensor) -> Tensor:
        return (x @ x.transpose(-2, -1)).softmax(-1)


class Mixer(One):
    """Attention in a class that does not call itself so."""


class OverQueries(One):
    def pattern(self, x: Tensor) -> Tensor:
        return (x @ x.transpose(-2, -1)).softmax(-2)


class MaskedAfter(One):
    def pattern(self, x: Tensor) -> Tensor:
        return super().pattern(x) * CAUSAL


class Sink(One):
    def __init__(self) -> None:
        super().__init__()
        self.sink = nn.Parameter(torch.ones(1))

    def pattern(self, x: Tensor) -> Tensor:
        scores = x @ x.transpose(-2, -1) / WIDTH
        return torch.cat([scores, self.sink.expand(*scores.shape[:-1], 1)], dim=-1).softmax(-1)[..., :-1]


class NothingToSee(One):
    def pattern(self, x: Tensor) -> Tensor:
        seen = CAUSAL & (torch.arange(LENGTH) >= 2)
        return (x @ x.transpose(-2, -1)).masked_fill(~seen, -torch.inf).softmax(-1)


class OffByOne(One):
    """One is added to the sum of the exponentials (Miller, 2023, "Attention Is Off By One")."""

    def pattern(self, x: Tensor) -> Tensor:
        powers = (x @ x.transpose(-2, -1) / WIDTH).exp()
        return powers / (1 + powers.sum(-1, keepdim=True))


class OffByOneAfterwards(OffByOne):
    def forward(self, x: Tensor) -> Tensor:
        powers = (x @ x.transpose(-2, -1) / WIDTH).exp()
        return self.out(powers @ x / (1 + powers.sum(-1, keepdim=True)))


class Difference(One):
    def pattern(self, x: Tensor) -> Tensor:
        return super().pattern(x) - 0.25 * (x @ x.transpose(-2, -1) / WIDTH).softmax(-1)


class TalkingHeads(One):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.tensor([[2.0]]))

    def pattern(self, x: Tensor) -> Tensor:
        return torch.einsum("bhqk,hg->bgqk", super().pattern(x)[:, None], self.mix)[:, 0]


@pytest.mark.parametrize(
    ("kind", "remark"),
    [
        (Mixer, ""),
        (OverQueries, "its columns sum to 1 and its rows do not: its softmax is taken over the queries"),
        (
            MaskedAfter,
            "its rows sum to .* to 1.00: its weights are changed, or heads are summed, between .* the values",
        ),
        (Sink, "its rows sum to .*: the rest goes to a column that belongs to no value, as to a sink"),
        (NothingToSee, "rows 0, 1 are NaN, as of queries that may see no key"),
        (OffByOne, "its rows sum to .*: its exponentials are divided by something else than their sum"),
        (OffByOneAfterwards, "its rows sum to .*: its exponentials are divided by something else than their sum"),
        (Difference, "its rows sum to 0.75: patterns are added or subtracted between the softmax and the values"),
        (TalkingHeads, "its rows sum to 2.00: patterns, or heads, are mixed between the softmax and the values"),
    ],
)
@torch.no_grad()
def test_the_pattern_is_what_weighs_the_values_and_it_is_said_where_its_rows_do_not_sum_to_1(kind, remark: str) -> None:
    model, x = made(kind), torch.randn(BATCH, LENGTH, WIDTH)
    seen = capture(model, x)
    torch.testing.assert_close(seen[f"{kind.__name__}.pattern"], model.pattern(x)[:, None], equal_nan=True)
    assert seen.unseen == ()
    assert len(seen.remarks) == bool(remark)
    for sentence in seen.remarks:
        assert re.fullmatch(f"{kind.__name__}: {remark}\\.", sentence), sentence


# --- what is no matrix over tokens, or none that can be seen


class Window(One):
    """Each query sees two neighbours on each side: [batch, query, 5]."""

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(LENGTH)[:, None] + torch.arange(-2, 3)
        outside, near_by = (places < 0) | (places >= LENGTH), x[:, places.clamp(0, LENGTH - 1)]
        scores = torch.einsum("bqd,bqwd->bqw", x, near_by).masked_fill(outside, -torch.inf)
        return self.out(torch.einsum("bqw,bqwd->bqd", scores.softmax(-1), near_by))


class WindowAttention(Window):
    pass


class Pairs(One):
    """Each pair of tokens has values of its own."""

    def forward(self, x: Tensor) -> Tensor:
        pairs = x[:, None] + x[:, :, None].sin()
        return self.out(torch.einsum("bqk,bqkd->bqd", self.pattern(x), pairs))


class Blocks(One):
    def forward(self, x: Tensor) -> Tensor:
        x = x.unflatten(1, (2, -1))
        return self.out(((x @ x.transpose(-2, -1)).softmax(-1) @ x).flatten(1, 2))


class BlocksInTheBatch(One):
    def forward(self, x: Tensor) -> Tensor:
        x = x.unflatten(1, (2, -1)).flatten(0, 1)
        return super().forward(x).unflatten(0, (-1, 2)).flatten(1, 2)


class BlocksFused(BlocksInTheBatch):
    def forward(self, x: Tensor) -> Tensor:
        x = x.unflatten(1, (2, -1)).flatten(0, 1)
        return self.out(functional.scaled_dot_product_attention(x, x, x)).unflatten(0, (-1, 2)).flatten(1, 2)


class BlocksOfPyTorch(BlocksInTheBatch):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        x = x.unflatten(1, (2, -1)).flatten(0, 1)
        return self.inner(x, x, x)[0].unflatten(0, (-1, 2)).flatten(1, 2)


class QueriesInTurns(One):
    def forward(self, x: Tensor) -> Tensor:
        turns = ((each @ x.transpose(-2, -1)).softmax(-1) @ x for each in x.chunk(2, 1))
        return self.out(torch.cat(tuple(turns), 1))


class LinearAttention(One):
    def forward(self, x: Tensor) -> Tensor:
        query = key = functional.elu(x) + 1
        return self.out(query @ (key.transpose(1, 2) @ x))


class ExponentialAttention(One):
    """Exponentials that nothing divides."""

    def forward(self, x: Tensor) -> Tensor:
        return self.out((x @ x.transpose(-2, -1) / WIDTH).exp() @ x)


class MemoryAttention(One):
    """The values are learned: nothing of the input is weighed."""

    def __init__(self) -> None:
        super().__init__()
        self.keys, self.values = (nn.Parameter(torch.randn(5, WIDTH)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.out((x @ self.keys.T).softmax(-1) @ self.values)


class UnusedAttention(One):
    def forward(self, x: Tensor) -> Tensor:
        self.pattern(x)
        return self.out(x)


class SilentAttention(One):
    def forward(self, x: Tensor) -> Tensor:
        return x


class VmappedAttention(One):
    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.vmap(lambda each: self.pattern(each) @ each)(x))


class TwoSteps(One):
    """Softmaxes over features and over keys, one after the other: no pattern over tokens is made."""

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x.softmax(-1) @ (x.softmax(1).transpose(1, 2) @ x))


class OverFeatures(One):
    def forward(self, x: Tensor) -> Tensor:
        return self.out(((x.transpose(1, 2) @ x).softmax(-1) @ x.transpose(1, 2)).transpose(1, 2))


class SoftArgmax(One):
    """Constants are weighed."""

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x + x.softmax(-1) @ torch.linspace(0, 1, WIDTH)[:, None])


class Router(One):
    """A mixture of experts: a softmax that weighs what each position has of its own, in a class of another name."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(WIDTH, 3), nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        each = torch.stack([expert(x) for expert in self.experts], -2)
        return self.out(torch.einsum("bne,bned->bnd", self.gate(x).softmax(-1), each))


class Classifier(One):
    def forward(self, x: Tensor) -> Tensor:
        return self.out(x).softmax(-1)


class OneQueryAfterTheOther(One):
    """Of each query the keys that were there by then, as in generation."""

    def forward(self, x: Tensor) -> Tensor:
        found = []
        for at in range(1, LENGTH + 1):
            shares = torch.einsum("bd,bkd->bk", x[:, at - 1], x[:, :at]).softmax(-1)
            found.append(torch.einsum("bk,bkd->bd", shares, x[:, :at]))
        return self.out(torch.stack(found, dim=1))


class OverChannels(One):
    """A convolution reads what channels make of each other (Fu et al., 2019, "Dual Attention Network")."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        channels = x.transpose(1, 2)
        return self.last((channels @ channels.transpose(1, 2)).softmax(-1) @ channels + channels).transpose(1, 2)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Window, "A softmax was called in it, and what it gives was not seen to weigh anything over tokens."),
        (WindowAttention, "each place has keys of its own there, as in a window: that is no matrix over tokens."),
        (Pairs, "each place has keys of its own there, as in a window: that is no matrix over tokens."),
        (Blocks, "attention within blocks or windows, each a matrix of its own."),
        (BlocksInTheBatch, "attention within 4 blocks, windows or frames of the input, each a matrix of its own."),
        (BlocksFused, "attention within 4 blocks, windows or frames of the input, each a matrix of its own."),
        (BlocksOfPyTorch, "attention within 4 blocks, windows or frames of the input, each a matrix of its own."),
        (OneQueryAfterTheOther, "its queries are taken in turns, each turn a matrix of its own."),
        (QueriesInTurns, "its queries are taken in turns, each turn a matrix of its own."),
        (LinearAttention, "It was called, and no softmax was: it is written without one, or computes it by a kernel"),
        (ExponentialAttention, "An exponential weighs values in it, and its rows do not sum to 1 where it does."),
        (MemoryAttention, "It weighs vectors that are learned, or constants, and nothing of the input."),
        (UnusedAttention, "A softmax was called in it, and what it gives was not seen to weigh anything over tokens."),
        (SilentAttention, "No function of PyTorch's met its weights: it was not called, or computes by a kernel of"),
        (VmappedAttention, "It runs through torch.vmap or the like, where one sequence cannot be told from another."),
        (
            TwoSteps,
            "values are weighed in two steps, one pattern after the other, so no single matrix says what",
        ),
        (OverFeatures, "queries and keys are features, not positions: that is no matrix over tokens."),
        (OverChannels, "queries and keys are features, not positions: that is no matrix over tokens."),
        (SoftArgmax, "It weighs vectors that are learned, or constants, and nothing of the input."),
        (Router, "A softmax was called in it, and what it gives was not seen to weigh anything over tokens."),
        (Classifier, "A softmax was called in it, and what it gives was not seen to weigh anything over tokens."),
    ],
)
def test_what_is_no_pattern_over_tokens_is_not_shown_and_it_is_said_why(kind: type[One], sentence: str) -> None:
    model, x = made(kind), torch.randn(BATCH, LENGTH, WIDTH)
    with torch.no_grad():
        plain = model(x)
    seen = capture(model, x)
    assert torch.equal(seen.output, plain)
    assert seen.attentions() == ()
    assert [sentence in each for each in seen.unseen] == [True], seen.unseen


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_scripted_says_so() -> None:
    x = torch.randn(BATCH, LENGTH, WIDTH)
    for sealed in (torch.jit.trace(made(Mixer), x), nn.Sequential(torch.jit.trace(made(Mixer), x))):
        (sentence,) = capture(sealed, x).unseen
        assert "It is scripted or traced (torch.jit)" in sentence


@torch.no_grad()
def test_what_is_compiled_is_seen_as_it_was_written() -> None:
    model, x = made(WAYS[0]), torch.randn(BATCH, LENGTH, WIDTH)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    seen = capture(compiled, x)
    (name,) = seen.attentions()
    assert seen[f"{name}.pattern"] == near(model.expected(x))
    assert torch.compiler.is_compiling() is False
    assert torch.equal(compiled(x), seen.output)


@pytest.mark.filterwarnings("ignore:flex_attention called without:UserWarning")
@torch.no_grad()
def test_a_score_function_of_ones_own_is_seen_through_its_kernel() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    class Flexible(Way):
        def forward(self, x: Tensor) -> Tensor:
            query, key, value = self.by_head(x)
            return self.join(
                flex_attention(query, key, value, lambda score, b, h, q, k: torch.where(q >= k, score, -torch.inf))
            )

    model, x = made(Flexible), torch.randn(BATCH, LENGTH, WIDTH)
    seen = capture(model, x)
    assert seen["Flexible.pattern"] == near(model.expected(x, CAUSAL))
    changed = capture_changed(model, Change(frozenset({("Flexible", 1)})), x)
    model.o.weight[:, D_HEAD : 2 * D_HEAD] = 0
    assert changed.output == near(model(x))


def test_dropout_that_a_kernel_does_in_evaluation_mode_too_is_said() -> None:
    class Always(One):
        def forward(self, x: Tensor) -> Tensor:
            return self.out(functional.scaled_dot_product_attention(x, x, x, dropout_p=0.1))

    (remark,) = capture(made(Always), torch.randn(BATCH, LENGTH, WIDTH)).remarks
    assert "drop weights at random in evaluation mode too (dropout_p=0.1)" in remark


# --- what a reader wrote, and broke


class Cached(One):
    """Keys and values lie in a buffer that each pass writes anew, or into."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.in_place = in_place
        self.register_buffer("kept", torch.zeros(BATCH, LENGTH, WIDTH), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.in_place:
            self.kept[:, :] = x
        else:
            self.kept = torch.cat([self.kept, x], 1)[:, -LENGTH:]
        return self.out((x @ self.kept.transpose(1, 2)).softmax(-1) @ self.kept)


@pytest.mark.parametrize("in_place", [True, False])
@torch.no_grad()
def test_a_buffer_that_a_pass_writes_is_no_constant_and_its_address_is_nobody_elses(in_place: bool) -> None:
    model = nn.Sequential(Cached(in_place), Cached(in_place)).eval()
    for _ in range(30):
        assert capture(model, torch.randn(BATCH, LENGTH, WIDTH)).attentions() == ("0", "1")


class Halves(Way):
    """Two patterns in one softmax's heads, one taken from the other: differential attention."""

    def __init__(self) -> None:
        super().__init__()
        self.o = nn.Linear(2 * D_HEAD, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        pattern = weigh(query, key)
        return self.join((0.5 * pattern[:, :2] - 0.25 * pattern[:, 2:]) @ value[:, :2])


class Sum(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        return self.join((0.5 * weigh(query, key) + 0.5 * weigh(key, query)) @ value)


class Twice(Way):
    """A pattern weighs two things, as values and places (Shaw et al., 2018, section 3.1)."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        pattern = weigh(query, key)
        return self.join(pattern @ value + pattern @ value.flip(-1))


class IntoGiven(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        z = torch.empty_like(value)
        torch.matmul(weigh(query, key), value, out=z)
        return self.join(z)


@pytest.mark.parametrize("way", [Halves, Sum, Twice, ValuesInPieces, IntoGiven])
@torch.no_grad()
def test_a_change_reaches_all_that_a_pattern_comes_from_and_all_that_it_weighs(way: type[Way]) -> None:
    model, x = made(way), torch.randn(BATCH, LENGTH, WIDTH)
    (name,) = capture(model, x).attentions()
    masked = capture_changed(model, Change(mask=CAUSAL), x)
    assert not masked[f"{name}.pattern"].masked_select(~CAUSAL).any()
    changed = capture_changed(model, Change(frozenset({(name, 0)})), x).output
    model.o.weight[:, :D_HEAD] = 0
    assert changed == near(model(x))


@pytest.mark.parametrize("kind", ["behind the softmax", "less its logarithm"])
def test_a_mask_that_cannot_be_put_in_is_refused(kind: str) -> None:
    class Own(One):
        def pattern(self, x: Tensor) -> Tensor:
            if kind == "behind the softmax":
                return super().pattern(x) * CAUSAL
            scores = x @ x.transpose(-2, -1) / WIDTH
            return (scores - scores.logsumexp(-1, keepdim=True)).exp()

    with pytest.raises(ChangeError, match="makes its pattern in a way into which no other mask can be put"):
        capture_changed(made(Own), Change(mask=CAUSAL.T), torch.randn(BATCH, LENGTH, WIDTH))


class LatentHeads(Way):
    """Keys and values of all heads are one latent vector, which each head reads by weights of its own (DeepSeek)."""

    def __init__(self) -> None:
        super().__init__()
        self.latent = nn.Linear(WIDTH, 5)
        self.up_k, self.up_v = (nn.Parameter(torch.randn(HEADS, D_HEAD, 5)) for _ in range(2))

    def expected(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        query, latent = self.parts(x)[0], self.latent(x)
        keys = torch.stack([latent @ each.T for each in self.up_k], 2)
        return weigh(query.transpose(1, 2), keys.transpose(1, 2))

    def forward(self, x: Tensor) -> Tensor:
        query, latent = self.parts(x)[0], self.latent(x)
        query = torch.einsum("bshd,hdc->bshc", query, self.up_k)
        pattern = (torch.einsum("bshc,btc->bsht", query, latent) / math.sqrt(D_HEAD)).softmax(-1)
        z = torch.einsum("bsht,btc->bshc", pattern, latent)
        return self.o(torch.einsum("bshc,hdc->bshd", z, self.up_v).flatten(2))


@torch.no_grad()
def test_heads_that_weights_of_their_own_read_are_heads() -> None:
    model, x = made(LatentHeads), torch.randn(BATCH, LENGTH, WIDTH)
    assert isinstance(model, Way)
    assert capture(model, x)["LatentHeads.pattern"] == near(model.expected(x))


@pytest.mark.parametrize(
    ("multiply", "seen"),
    [
        (lambda pattern, x: torch.tensordot(pattern[0], x[0], 1)[None], ""),
        (lambda pattern, x: torch.inner(pattern[0], x[0].T)[None], ""),
        (lambda pattern, x: torch.baddbmm(x, pattern, x, beta=0.5, alpha=2), ""),
        (lambda pattern, x: x[0].clone().addmm_(pattern[0], x[0])[None], ""),
        (lambda pattern, x: torch.addbmm(x[0], pattern, x)[None], ""),
        (lambda pattern, x: torch.addmv(x[0, :, 0], pattern[0], x[0, :, 1])[:, None].expand(-1, WIDTH)[None], ""),
        (lambda pattern, x: torch.linalg.multi_dot([pattern[0], x[0], x[0].T, x[0]])[None], ""),
        (lambda pattern, x: torch.einsum("bqk,bkd,de->bqe", pattern, x, torch.eye(WIDTH)), ""),
        (lambda pattern, x: torch.einsum("bqk,bqd,bkd", pattern, x, x)[None, None, None].expand(1, 1, WIDTH), ""),
        (lambda pattern, x: torch.einsum(pattern, [0, 1, 2], x, [0, 2, 3], [0, 1, 3]), ""),
        (
            lambda pattern, x: (
                x.new_zeros(pattern.shape).scatter_add(2, torch.zeros_like(pattern, dtype=torch.long), pattern) @ x
            ),
            "scatter_add",
        ),
        (lambda pattern, x: torch.index_put(pattern * 0, (torch.arange(1),), pattern, True) @ x, "index_put"),
        (
            lambda pattern, x: functional.conv1d(pattern, x[..., :1]).transpose(1, 2).expand(1, -1, WIDTH),
            "a convolution",
        ),
    ],
)
def test_a_product_is_followed_or_it_is_said_where_a_pattern_went_beside_other_attention_too(multiply, seen) -> None:
    class Odd(One):
        def forward(self, x: Tensor) -> Tensor:
            return self.out(multiply(self.pattern(x), x))

    found = capture(nn.Sequential(made(Mixer), made(Odd)), torch.randn(1, LENGTH, WIDTH))
    assert found.attentions() == (("0",) if seen else ("0", "1"))
    said = (f"1: what a softmax in it gives goes into {seen}, and is not followed there.",) if seen else ()
    assert found.unseen == said


class WithGradients(Way):
    """It asks for a gradient on its way."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        out = self.join(weigh(query, key) @ value).detach()
        with torch.enable_grad():
            shift = torch.zeros_like(out, requires_grad=True)
        return out - torch.autograd.grad(((out + shift) ** 2).sum(), shift)[0]


class DrawsAtRandom(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        return self.join(weigh(query, key) @ value) + torch.rand_like(x)


@pytest.mark.parametrize("way", [WithGradients, DrawsAtRandom])
def test_a_change_is_the_only_difference_of_a_pass_that_differentiates_or_draws_at_random(way: type[Way]) -> None:
    model, x = made(way), torch.randn(BATCH, LENGTH, WIDTH)
    torch.manual_seed(1)
    plain = model(x)
    torch.manual_seed(1)
    seen = capture(model, x)
    assert torch.equal(seen.output, plain)
    assert seen[f"{way.__name__}.pattern"] == near(model.expected(x).detach())
    torch.manual_seed(1)
    assert torch.equal(capture_changed(model, Change(mask=torch.ones_like(CAUSAL)), x).output, plain)


def test_a_model_made_in_inference_mode_is_seen_there() -> None:
    with torch.inference_mode():
        model, x = made(PatternsWritten), torch.randn(BATCH, LENGTH, WIDTH)
        assert capture(model, x)["PatternsWritten.pattern"] == near(model.expected(x))


def test_a_change_leaves_a_gpu_alone_on_which_the_model_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: object) -> None:
        raise AssertionError("the GPU is asked for its random numbers")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_rng_state", begin)
    model, x = made(PatternsWritten), torch.randn(BATCH, LENGTH, WIDTH)
    assert capture_changed(model, Change(mask=CAUSAL), x).attentions() == ("PatternsWritten",)
