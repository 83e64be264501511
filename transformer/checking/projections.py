"""A student's projections, read off a recording, and our multi-head attention with the same weights.

How the weights are written down does not matter: a layer is found by least squares from what went in and what came out.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from transformer.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer.checking.around import ATTENTION_ALONE, Around
from transformer.checking.findings import mistakes, same
from transformer.checking.recording import Step
from transformer.mistakes import AttentionMistake, MaskMistake, Mistake, ModuleMistake
from transformer.positions import ENCODINGS, NO_POSITIONS, PositionalEncoding

LINEAR = ("linear", "matmul", "__matmul__", "__rmatmul__", "einsum", "addmm", "mm", "bmm", "baddbmm", "tensordot")

ANY, FIRST, NONE = ("input ",), ("input 0",), ("none",)
OTHERS = tuple(f"input {number}" for number in range(1, 10))
"""Arguments of a call, as a recording names them: all, that which is looked from, and those that are looked at."""
ADDING = ("add", "__add__", "__radd__", "add_", "__iadd__")


@dataclass(frozen=True)
class Projections:
    """The layers of one attention module, by what they made of x."""

    x: Tensor
    """[batch, position, d_model]"""
    n_heads: int
    parts: tuple[tuple[str, Tensor], ...]
    """Each projection of x, [batch, position, numbers], with the name of its weight."""
    before: Tensor | None
    """What the last layer reads, [batch, position, inner]; None where there is no last layer."""
    after: Tensor | None
    """What it makes of it, [batch, position, d_model]."""
    shared: bool = False
    """Does a layer read d_head numbers of x at a time, so that all heads share it?"""
    elsewhere: tuple[tuple[str, Tensor, Tensor], ...] = ()
    """What these layers read and made in another call, by the names of their weights: what is normalised does not tell
    all of a layer's weights."""

    @property
    def d_model(self) -> int:
        return self.x.shape[-1]

    @property
    def inner(self) -> int:
        """The numbers of all heads together; a head may be wider or narrower than d_model / n_heads."""
        if self.before is not None:
            return self.before.shape[-1]
        widths = [value.shape[-1] for _, value in self.parts]
        if len(widths) == 1:
            return widths[0] // 3
        if len(widths) == 2:
            return self.d_model if self.d_model in widths else min(widths)
        return max(widths, default=self.d_model) * (self.n_heads if len(widths) == 3 * self.n_heads > 3 else 1)

    @property
    def d_head(self) -> int:
        return self.inner // self.n_heads


@dataclass(frozen=True)
class Hypothesis:
    """Our module with the student's weights, and what else the student's code may do."""

    module: MultiHeadAttention
    positions: PositionalEncoding = NO_POSITIONS
    words: tuple[str, ...] = ()
    """The conventions by which the weights are arranged so."""
    beside: MultiHeadAttention | None = None
    """The same with shared keys and values each beside itself, where `module` repeats them as a whole; else None."""
    around: Around = ATTENTION_ALONE
    """What the student's module does besides."""

    @torch.no_grad()
    def run(self, x: Tensor, seen: Tensor | None, looked_at: Tensor | None = None, *, plain: bool = False) -> Tensor:
        """The output, [batch, query, d_model]; what is looked at is read as x is, or `plain`, as it comes."""
        read = self.around.read(x)
        other = read if looked_at is None else looked_at if plain else self.around.read(looked_at)
        return self.around.write(x, self.module(read, other, seen, self.positions))

    @torch.no_grad()
    def cross(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """What queries of one sequence make of the keys of another and of the values of a third; nothing is hidden."""
        m = self.module
        query, key, value = (m._split(layer(each)) for layer, each in ((m.query, x), (m.key, keys), (m.value, values)))
        query, key = (self.positions.rotate(each) for each in (query, key))
        bias = self.positions.bias(query.shape[-2], key.shape[-2])
        output: Tensor = m.out(m._merge(scaled_dot_product_attention(query, key, value, bias=bias)[0]))
        return output


def follow(steps: Sequence[Step], x: Tensor, n_heads: int, inputs: tuple[str, ...] = ANY) -> Projections:
    """The projections of x in a recording, up to the first layer that reads something else: the last of the module.

    `inputs` are the beginnings of the names of those arguments that x is.
    """
    parts: list[tuple[str, Tensor]] = []
    before = after = None
    shared = False
    for place, step in enumerate(steps):
        if step.name not in LINEAR or not step.parameter:
            continue
        source = read_by(step, steps)
        value = _rows(_with_bias(place, steps), x, n_heads)
        given = source is None and any(each.startswith(inputs) for each in step.sources)
        if given or (source is not None and _is(source, x)):
            if value is not None:
                parts.append((step.parameter, value))
        elif source is None:
            continue
        elif n_heads > 1 and source.shape[-1:] == step.value.shape[-1:] == (x.shape[-1] // n_heads,):
            shared = True
        elif parts and value is not None and value.shape == x.shape:
            before, after = _rows(source, x, n_heads), value
            break
    if before is None or before.shape[:2] != x.shape[:2]:
        before = after = None
    return Projections(x, n_heads, tuple(parts), before, after, shared and not parts)


def layers_of(steps: Sequence[Step], x: Tensor, other: Tensor, n_heads: int) -> tuple[tuple[str, Tensor, Tensor], ...]:
    """The layers in a recording of a call with x and another sequence: the name of each weight, what it read and made.

    Both are [batch, position, numbers]; layers that read something of another width are left out.
    """
    found = []
    for place, step in enumerate(steps):
        if step.name not in LINEAR or not step.parameter:
            continue
        source = read_by(step, steps)
        if source is None and any(each.startswith("input ") for each in step.sources):
            source = x if "input 0" in step.sources else other
        if source is None or source.dim() != 3 or source.shape[-1] != x.shape[-1]:
            continue
        source = source if len(source) == len(x) else source.transpose(0, 1)
        value = _rows(_with_bias(place, steps), source, n_heads)
        if value is not None:
            found.append((step.parameter, source, value))
    return tuple(found)


def _with_bias(place: int, steps: Sequence[Step]) -> Tensor:
    """What a layer makes, with the bias that is added in a step of its own."""
    for step in steps[place + 1 :]:
        if f"step {place}" in step.sources:
            return step.value if step.name in ADDING and step.parameter else steps[place].value
    return steps[place].value


def read_by(step: Step, steps: Sequence[Step]) -> Tensor | None:
    """What a layer reads; None where that is an argument of the call."""
    place = next((each.split(" ")[1] for each in step.sources if each.startswith("step ")), None)
    return None if place is None else steps[int(place)].value


def _is(source: Tensor, x: Tensor) -> bool:
    """Is it x, whichever of its first two axes comes first, or both put together?"""
    if source.numel() != x.numel() or source.shape[-1] != x.shape[-1]:
        return False
    turned = x.transpose(0, 1) if x.dim() > 2 else x
    return any(same(source.reshape(each.shape), each) for each in (x, turned))


def _rows(value: Tensor, x: Tensor, n_heads: int) -> Tensor | None:
    """A result as [batch, position, numbers], the heads' numbers one after the other.

    None for what has other axes, or numbers that are none: no layer can be read off them.
    """
    if not bool(value.isfinite().all()):
        return None
    batch, length = x.shape[:2]
    if value.shape[:3] == (batch, n_heads, length) and value.dim() == 4:
        value = value.transpose(1, 2)
    if value.shape[:2] == (length, batch):
        value = value.transpose(0, 1)
    if value.shape[:2] == (batch, length):
        return value.flatten(2)
    if value.dim() == 2 and len(value) == batch * length:
        return value.unflatten(0, (batch, length))
    return None


# --- which is which


def hypotheses(projections: Projections, n_ctx: int) -> Iterator[Hypothesis]:
    """Every way in which the projections may be meant, the likeliest first."""
    p = projections
    if not p.parts or p.inner == 0 or p.inner % p.n_heads or (p.before is None and p.inner > p.d_model):
        return
    if p.x.shape[:2].numel() <= 1 + max(p.d_model, p.inner):
        return  # more weights than a layer's results tell
    if next(triples(p), None) is None:
        return  # so many heads cannot have these layers
    encodings = tuple(_encodings(p, n_ctx))
    # Each layer is solved for once; orders and arrangements act on its results as they act on what it makes.
    layers = dataclasses.replace(p, parts=tuple(_solved(p)))
    last = torch.cat([torch.eye(p.inner, p.d_model), torch.zeros(1, p.d_model)])  # what is narrower ends in zeros
    if p.before is not None and p.after is not None:
        last = _layer(p.before, p.after)
    for arrangement, arrange, arrange_last in _arrangements(p):
        for packing, triple in triples(layers):
            beside: MultiHeadAttention | None = None
            for tiled in (False, True) if min(each.shape[-1] for each in triple) < p.inner else (False,):
                parts = [arrange(_spread(each, p, tiled))[0] for each in triple]
                if any(each.shape[-1] != p.inner for each in parts):
                    continue
                with torch.device("meta"):  # its weights are not drawn, but given
                    module = MultiHeadAttention(p.inner, p.n_heads)
                module.query, module.key, module.value = map(_linear, parts)
                module.out = _linear(torch.cat([arrange_last(last[:-1].T).T, last[-1:]]))
                module.eval().requires_grad_(False)
                for words, positions in encodings:
                    found = tuple(each for each in (arrangement, packing, words) if each)
                    yield Hypothesis(module, positions, found, beside)
                beside = module


def _solved(p: Projections) -> Iterator[tuple[str, Tensor]]:
    """The weights of each projection, by all that it read: [1, what it reads and 1 for the bias, results]."""
    widths = [value.shape[-1] for _, value in p.parts]
    together = _layer(p.x, torch.cat([value for _, value in p.parts], dim=-1)).split(widths, -1)
    for (name, value), weights in zip(p.parts, together, strict=True):
        more = [(x, y) for each, x, y in p.elsewhere if each == name and y.shape[-1] == value.shape[-1]]
        if more:
            read, made = zip((p.x, value), *more, strict=True)
            weights = _layer(*(torch.cat([each.flatten(0, 1) for each in side]) for side in (read, made)))
        yield name, weights[None]


def _layer(x: Tensor, y: Tensor) -> Tensor:
    """The weights of the layer that makes y of x, by least squares: [what it reads and 1 for the bias, results]."""
    rows, results = x.reshape(-1, x.shape[-1]).double(), y.reshape(-1, y.shape[-1]).double()
    given = torch.cat([rows, torch.ones(len(rows), 1, dtype=torch.float64)], dim=1)
    return torch.linalg.lstsq(given, results, driver="gelsy").solution.float()


def _linear(weights: Tensor) -> nn.Linear:
    """The layer of these weights, its bias last."""
    layer = skip_init(nn.Linear, len(weights) - 1, weights.shape[1])
    with torch.no_grad():
        layer.weight.copy_(weights[:-1].T)
        layer.bias.copy_(weights[-1])
    return layer


Arrange = Callable[[Tensor], Tensor]


def _arrangements(p: Projections) -> Iterator[tuple[str, Arrange, Arrange]]:
    """How the numbers of the heads lie in what is projected, and in what the last layer reads."""

    def beside(y: Tensor) -> Tensor:
        return y

    def interleaved(y: Tensor) -> Tensor:
        return y.unflatten(-1, (p.d_head, p.n_heads)).transpose(-2, -1).flatten(-2)

    yield "", beside, beside
    yield "The numbers of the heads are interleaved, [d_head, head].", interleaved, interleaved
    yield "The numbers of the heads are interleaved where they are merged, [d_head, head].", beside, interleaved
    yield "The numbers of the heads are interleaved where they are split, [d_head, head].", interleaved, beside


def _encodings(p: Projections, n_ctx: int) -> Iterator[tuple[str, PositionalEncoding]]:
    shape = {"n_ctx": n_ctx, "d_model": p.inner, "n_heads": p.n_heads}
    yield "", NO_POSITIONS
    if p.d_head % 2 == 0:
        rotary = ENCODINGS["rotary"](**shape)
        yield "Queries and keys are turned (rotary positions, pairs of neighbours).", rotary
        yield "Queries and keys are turned (rotary positions, pairs from both halves).", _Halves(rotary)
    yield "A bias by distance is added to the scores (ALiBi).", ENCODINGS["alibi"](**shape)


class _Halves(PositionalEncoding):
    """Rotary positions as in Llama: a pair is a dimension of the first half and one of the second."""

    def __init__(self, rotary: PositionalEncoding) -> None:
        super().__init__(n_ctx=rotary.n_ctx, d_model=rotary.d_model, n_heads=rotary.n_heads)
        self.rotary = rotary

    def rotate(self, x):
        turned = self.rotary.rotate(x.unflatten(-1, (2, -1)).transpose(-2, -1).flatten(-2))
        return turned.unflatten(-1, (-1, 2)).transpose(-2, -1).flatten(-2)


def triples(p: Projections) -> Iterator[tuple[str, Sequence[Tensor]]]:
    """Queries, keys and values among the projections, with words for how they are packed."""
    values, widths = [value for _, value in p.parts], [value.shape[-1] for _, value in p.parts]
    letters = [_letter(name) for name, _ in p.parts]
    if widths == [3 * p.inner]:
        (packed,) = values
        heads = packed.unflatten(-1, (p.n_heads, 3, p.d_head)).unbind(-2)
        numbers = packed.unflatten(-1, (p.inner, 3)).unbind(-1)
        words = "Queries, keys and values are packed in one layer"
        yield from _orders(f"{words}, [query, key, value].", packed.chunk(3, -1))
        yield from _orders(f"{words}, head by head.", [each.flatten(2) for each in heads])
        yield from _orders(f"{words}, number by number.", numbers)
    elif len(widths) == 1 and _is_shared((widths[0] - p.inner) // 2, p):
        few = (widths[0] - p.inner) // 2
        query, *both = values[0].split([p.inner, few, few], -1)
        for one, other in itertools.permutations(both):
            yield (
                "Queries, keys and values are packed in one layer; several heads share keys and values.",
                (
                    query,
                    one,
                    other,
                ),
            )
    elif len(widths) == 2:
        for query, both in itertools.permutations(values):
            few = both.shape[-1] // 2
            if query.shape[-1] != p.inner or both.shape[-1] % 2 or not _is_shared(few, p):
                continue
            words = "" if few == p.inner else " Several heads share keys and values."
            heads = both.unflatten(-1, (-1, 2, p.d_head)).unbind(-2)
            for key, value in (both.chunk(2, -1), [each.flatten(2) for each in heads]):
                yield f"Keys and values are packed in one layer.{words}", (query, key, value)
                yield f"Keys and values are packed in one layer.{words}", (query, value, key)
    elif len(widths) == 3 * p.n_heads and set(widths) == {p.d_head}:
        if not all(letters.count(letter) == p.n_heads for letter in "qkv"):
            letters = ["q", "k", "v"] * p.n_heads
        groups = [[value for one, value in zip(letters, values, strict=True) if one == letter] for letter in "qkv"]
        words = "Each head has layers of its own." if p.n_heads > 1 else ""
        yield from _orders(words, [torch.cat(group, dim=-1) for group in groups])
    elif len(widths) == 3 and max(widths) == p.inner and all(_is_shared(width, p) for width in widths):
        if sorted(letters) == ["k", "q", "v"]:
            values = [values[letters.index(letter)] for letter in "qkv"]
        words = "" if set(widths) == {p.inner} else "Several heads share keys and values."
        yield from _orders(words, values)


def _orders(words: str, parts: Sequence[Tensor]) -> Iterator[tuple[str, Sequence[Tensor]]]:
    for order in itertools.permutations(parts):
        yield words, order


def _is_shared(width: int, p: Projections) -> bool:
    """Are so many numbers whole heads, of which each serves as many as any other?"""
    return width > 0 and width % p.d_head == 0 and p.inner % width == 0


def _spread(value: Tensor, p: Projections, tiled: bool) -> Tensor:
    """The keys or values of a few heads, repeated for all that share them."""
    few = value.unflatten(-1, (-1, p.d_head))
    times = p.n_heads // few.shape[-2]
    spread = few.repeat(1, 1, times, 1) if tiled else few.repeat_interleave(times, dim=-2)
    return spread.flatten(-2)


def _letter(name: str) -> str:
    """q, k or v, if the name of a weight says so."""
    for part in reversed(name.lower().split(".")):
        if found := re.search(r"(query|key|value)|(?:^|_|^w|^to)(q|k|v)(?:_|$|s|p|w|l|m)", part):
            return (found.group(1) or found.group(2))[0]
    return ""


# --- mistakes with the same weights


def of_a_module() -> list[type[Mistake]]:
    """The mistakes of the gallery that a module can have."""
    return [each for base in (ModuleMistake, AttentionMistake, MaskMistake) for each in mistakes(base)]


@torch.no_grad()
def mistaken(
    module: MultiHeadAttention, x: Tensor, seen: Tensor | None, known: Sequence[type[Mistake]]
) -> Iterator[tuple[type[Mistake], Tensor]]:
    """Each of the mistakes `of_a_module` that these weights can have, and what it gives with them."""
    every = torch.ones(len(x), 1, x.shape[1], x.shape[1], dtype=torch.bool) if seen is None else seen
    query, key, value = (module._split(layer(x)) for layer in (module.query, module.key, module.value))
    right = module(x, x, seen)

    def usual(visible: Tensor) -> Tensor:
        """As most code has it: what is hidden gets the score -1e9."""
        scores = (query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5).masked_fill(~visible, -1e9)
        return scores.softmax(dim=-1) @ value

    makers: list[tuple[type[Mistake], Callable[[], Tensor]]] = []
    for each in known:
        if issubclass(each, ModuleMistake):
            makers.append((each, lambda each=each: each.wrong(module, x, every)))  # type: ignore[misc]
        elif issubclass(each, AttentionMistake):
            makers.append((each, lambda each=each: module.out(module._merge(each.wrong(query, key, value, every)[0]))))  # type: ignore[misc]
        elif seen is not None:
            makers.append((each, lambda each=each: module.out(module._merge(usual(each.wrong(x.shape[1]))))))  # type: ignore[misc]
    for each, make in makers:
        try:
            wrong = make()
        except (RuntimeError, TypeError, ValueError, AttributeError):
            continue  # this mistake cannot be made with these weights
        if wrong.shape == right.shape and not same(wrong, right):
            yield each, wrong
