"""Ways in which people write one attention, each with its pattern told independently, head by head."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

BATCH, LENGTH, WIDTH, HEADS = 2, 6, 16, 4
D_HEAD = WIDTH // HEADS


class Way(nn.Module):
    """Multi-head attention; each way is another `forward`."""

    exact = True
    """Is what it returns the same to the bit when it is looked at?"""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value [batch, position, head, d_head]."""
        query, key, value = (project(x).unflatten(-1, (HEADS, -1)) for project in (self.q, self.k, self.v))
        return query, key, value

    def by_head(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same [batch, head, position, d_head]."""
        query, key, value = (each.transpose(-3, -2) for each in self.parts(x))
        return query, key, value

    def reads(self) -> Tensor:
        """An input of this way."""
        return torch.randn(BATCH, LENGTH, WIDTH)

    def expected(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The pattern [batch, head, query, key], head by head."""
        x = x if x.dim() == 3 else x[None]
        found = []
        for head in range(HEADS):
            rows = slice(head * D_HEAD, (head + 1) * D_HEAD)
            query, key = (functional.linear(x, each.weight[rows], each.bias[rows]) for each in (self.q, self.k))
            scores = torch.einsum("bqd,bkd->bqk", query, key) / math.sqrt(D_HEAD)
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            powers = scores.exp()
            found.append(powers / powers.sum(-1, keepdim=True))
        return torch.stack(found, 1)

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def join(self, z: Tensor) -> Tensor:
        """W_O on z [batch, head, position, d_head]."""
        return self.o(z.transpose(-3, -2).flatten(-2))


def weigh(query: Tensor, key: Tensor, over: int = -1) -> Tensor:
    return (query @ key.transpose(-2, -1) / math.sqrt(D_HEAD)).softmax(over)


class FoldedIntoTheBatch(Way):
    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        query, key, value = (each.reshape(batch * HEADS, length, -1) for each in self.by_head(x))
        return self.join(torch.bmm(weigh(query, key), value).view(batch, HEADS, length, -1))


class FoldedAndBack(FoldedIntoTheBatch):
    """Four axes for the mask, three for the softmax, four for whoever asks, three for the values: fairseq's way."""

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        query, key, value = (each.reshape(batch * HEADS, length, -1) for each in self.by_head(x))
        scores = (torch.bmm(query, key.transpose(1, 2)) / math.sqrt(D_HEAD)).view(batch, HEADS, length, length)
        pattern = functional.softmax(scores.view(batch * HEADS, length, length), dim=-1)
        pattern = pattern.view(batch, HEADS, length, length).view(batch * HEADS, length, length)
        pattern = functional.dropout(pattern, 0.1, self.training)
        return self.join(torch.bmm(pattern, value).view(batch, HEADS, length, -1))


class HeadsBeforeTheBatch(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (torch.cat(each(x).chunk(HEADS, -1)) for each in (self.q, self.k, self.v))
        return self.o(torch.cat((weigh(query, key) @ value).chunk(HEADS), -1))


class FoldedFused(FoldedIntoTheBatch):
    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        query, key, value = (each.reshape(batch * HEADS, length, -1) for each in self.by_head(x))
        z = functional.scaled_dot_product_attention(query, key, value)
        return self.join(z.view(batch, HEADS, length, -1))


class FiveAxesFused(Way):
    def forward(self, x: Tensor) -> Tensor:
        return self.join(
            functional.scaled_dot_product_attention(*(each.unsqueeze(1) for each in self.by_head(x))).squeeze(1)
        )


class HeadsLast(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.parts(x)
        pattern = torch.softmax(torch.einsum("bqhd,bkhd->bqkh", query, key) / math.sqrt(D_HEAD), dim=2)
        return self.o(torch.einsum("bqkh,bkhd->bqhd", pattern, value).flatten(2))


class Dots(Way):
    """An ellipsis for the batch, and W_O by an einsum over heads."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.parts(x)
        pattern = (torch.einsum("...qhd,...khd->...hqk", query, key) / math.sqrt(D_HEAD)).softmax(-1)
        z = torch.einsum("...hqk, ...khd -> ...qhd", pattern, value)
        return torch.einsum("bqhd,hdo->bqo", z, self.o.weight.T.unflatten(0, (HEADS, -1))) + self.o.bias


class PositionsFirst(Way):
    def reads(self) -> Tensor:
        return torch.randn(LENGTH, BATCH, WIDTH)

    def expected(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().expected(x.transpose(0, 1), mask)

    def forward(self, x: Tensor) -> Tensor:
        length, batch, _ = x.shape
        folded = (each(x).reshape(length, batch * HEADS, -1).transpose(0, 1) for each in (self.q, self.k, self.v))
        query, key, value = folded
        z = torch.bmm(weigh(query, key), value)
        return self.o(z.transpose(0, 1).reshape(length, batch, -1))


class NoBatch(Way):
    def reads(self) -> Tensor:
        return torch.randn(LENGTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        return self.join(weigh(query, key) @ value)


class NoBatchFused(NoBatch):
    def forward(self, x: Tensor) -> Tensor:
        return self.join(functional.scaled_dot_product_attention(*self.by_head(x)))


class HeadByHead(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.parts(x)
        heads = (weigh(query[:, :, head], key[:, :, head]) @ value[:, :, head] for head in range(HEADS))
        return self.o(torch.cat(tuple(heads), dim=-1))


class SequenceBySequence(Way):
    def forward(self, x: Tensor) -> Tensor:
        found = []
        for each in x:
            query, key, value = self.by_head(each)
            found.append((weigh(query, key) @ value).transpose(0, 1).flatten(1))
        return self.o(torch.stack(found))


class OneHead(nn.Module):
    def __init__(self, whole: Way, head: int) -> None:
        super().__init__()
        rows = slice(head * D_HEAD, (head + 1) * D_HEAD)
        for name in "qkv":
            own, theirs = nn.Linear(WIDTH, D_HEAD), getattr(whole, name)
            own.weight, own.bias = nn.Parameter(theirs.weight[rows]), nn.Parameter(theirs.bias[rows])
            setattr(self, name, own)

    def forward(self, x: Tensor) -> Tensor:
        return weigh(self.q(x), self.k(x)) @ self.v(x)


class ModuleByModule(Way):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(OneHead(self, head) for head in range(HEADS))

    def forward(self, x: Tensor) -> Tensor:
        return self.o(torch.cat([head(x) for head in self.heads], dim=-1))


class ProductThenSum(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        return self.join((weigh(query, key)[..., None] * value[:, :, None]).sum(-2))


class ValuesFirst(Way):
    """Positions last, as in a picture's channels: v times the pattern turned."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (each.transpose(-2, -1) for each in self.by_head(x))
        pattern = weigh(query.transpose(-2, -1), key.transpose(-2, -1))
        return self.join((value @ pattern.transpose(-2, -1)).transpose(-2, -1))


class ExponentialOverSum(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        scores = query @ key.transpose(-2, -1) / math.sqrt(D_HEAD)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        return self.join(powers / powers.sum(-1, keepdim=True) @ value)


class DividedAfterwards(Way):
    """Exponentials weigh the values, and their sum divides what comes out."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        scores = query @ key.transpose(-2, -1) / math.sqrt(D_HEAD)
        powers = (scores - scores.amax(-1, keepdim=True)).exp()
        return self.join(torch.einsum("bhqk,bhkd->bhqd", powers, value) / powers.sum(-1)[..., None])


class LogarithmAndBack(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        return self.join((query @ key.transpose(-2, -1) / math.sqrt(D_HEAD)).log_softmax(-1).exp() @ value)


class NormedAndGated(Way):
    """What a head hands on is changed before heads are joined."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(D_HEAD), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        gate = self.gate(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        return self.join(self.norm(weigh(query, key) @ value) * gate.sigmoid())


class ChangedAfterwards(Way):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        pattern = weigh(query, key)
        z = pattern @ value
        out = self.join(z)
        for each in (query, key, value, pattern, z):
            each.zero_()
        return out


class NothingAfterwards(Way):
    """No W_O: what is joined is what it returns."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        return (weigh(query, key) @ value).transpose(1, 2).flatten(2)


class AddedToNothing(FoldedIntoTheBatch):
    exact = False

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        query, key, value = (each.reshape(batch * HEADS, length, -1) for each in self.by_head(x))
        z = torch.baddbmm(x.new_empty(1, 1, 1), weigh(query, key), value, beta=0, alpha=1)
        return self.join(z.view(batch, HEADS, length, -1))


class OneEinsum(Way):
    """Values and W_O in one einsum of three."""

    exact = False

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        by_head = self.o.weight.T.unflatten(0, (HEADS, -1))
        return torch.einsum("hdo,...hkd,bhqk->bqo", by_head, value, weigh(query, key)) + self.o.bias


class OneInputWeighed(Way):
    """Every head weighs the input itself, and reads it by weights of its own, in one einsum of three."""

    exact = False

    def forward(self, x: Tensor) -> Tensor:
        query, key, _ = self.by_head(x)
        by_head = self.o.weight.view(WIDTH, HEADS, -1).permute(1, 2, 0).repeat(1, HEADS, 1)
        return torch.einsum("bhqk,bkd,hdo->bqo", weigh(query, key), x, by_head) + self.o.bias


class PatternsStacked(Way):
    def pattern(self, x: Tensor) -> Tensor:
        query, key, _ = self.by_head(x)
        return torch.stack([weigh(query[:, head], key[:, head]) for head in range(HEADS)], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.join(self.pattern(x) @ self.by_head(x)[2])


class PatternsWritten(PatternsStacked):
    def pattern(self, x: Tensor) -> Tensor:
        query, key, _ = self.by_head(x)
        pattern = x.new_zeros(LENGTH, LENGTH, len(x), HEADS).permute(2, 3, 0, 1)
        for head in range(HEADS):
            pattern[:, head] = weigh(query[:, head], key[:, head])
        return pattern


class ResultsWritten(Way):
    def forward(self, x: Tensor) -> Tensor:
        (query, key, value), z = self.by_head(x), torch.empty_like(x)
        for head in range(HEADS):
            z[..., head * D_HEAD : (head + 1) * D_HEAD].copy_(weigh(query[:, head], key[:, head]) @ value[:, head])
        return self.o(z)


class ValuesWritten(Way):
    """Values lie in a cache that is longer than the sequence."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        cache = x.new_zeros(len(x), HEADS, 2 * LENGTH, D_HEAD)
        cache[:, :, :LENGTH] = value
        return self.join(weigh(query, key) @ cache[:, :, :LENGTH])


class HeadsInTheQueries(Way):
    """Two heads share their keys, and stand behind each other in the axis of queries."""

    groups = 2

    def expected(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        query, key, _ = self.by_head(x)
        scores = query @ key[:, : self.groups].repeat_interleave(HEADS // self.groups, 1).transpose(2, 3)
        scores = scores / math.sqrt(D_HEAD)
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.by_head(x)
        folded = query.unflatten(1, (self.groups, -1)).flatten(2, 3)
        z = weigh(folded, key[:, : self.groups]) @ value[:, : self.groups]
        return self.join(z.view(query.shape))


class QueriesOfHeadsFused(HeadsInTheQueries):
    """All heads of a position behind each other, by a fused kernel."""

    groups = 1

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.parts(x)
        z = functional.scaled_dot_product_attention(query.flatten(1, 2), key[:, :, 0], value[:, :, 0])
        return self.o(z.view(x.shape))


WAYS: tuple[Callable[[], Way], ...] = (
    FoldedIntoTheBatch, FoldedAndBack, HeadsBeforeTheBatch, FoldedFused, FiveAxesFused, HeadsLast, Dots, PositionsFirst,
    NoBatch, NoBatchFused, HeadByHead, SequenceBySequence, ModuleByModule, ProductThenSum, ValuesFirst,
    ExponentialOverSum, DividedAfterwards, LogarithmAndBack, NormedAndGated, ChangedAfterwards, NothingAfterwards,
    AddedToNothing, OneEinsum, OneInputWeighed, PatternsStacked, PatternsWritten, ResultsWritten, ValuesWritten,
    HeadsInTheQueries, QueriesOfHeadsFused,
)  # fmt: skip
