"""Follow what comes out of a softmax until it weighs values, and what was weighed until heads are joined.

Whether a softmax is attention is told by what is done with it, and by no name: the tensor that it gives, however it is
turned and changed on the way, is multiplied with values, and its keys are summed over. Which axis holds the heads is
told by the result: their parts stand beside each other in the last axis of what is joined.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch._C._functorch import is_batchedtensor  # nothing public tells what torch.vmap made of a tensor
from torch.nn import functional

from transformer.capturing.products import ALONE, Letters, Product, arrange_axes, product, spread

if TYPE_CHECKING:
    from transformer.capturing.record import Notes

Function = Callable[..., Any]
Axes = tuple[tuple[int, ...], tuple[int, ...]]
NOTHING = -1
"""The label of a place that holds nothing of what is followed."""
CHANGED = -1
"""The version of scores that are not what softmax is of."""
ENDS = 4
"""Of the tensors that what was weighed ends in, so many are looked at."""


@dataclass(eq=False)
class Root:
    """One call of a softmax, or of an exponential that may become one."""

    module: nn.Module | None
    scores: Tensor
    """What it was given."""
    version: int
    """Of the scores: later work in place raises it."""
    over: int
    """The axis that a softmax sums to 1; the last one of an exponential."""
    exponential: bool
    refused: str = ""
    """Why what it gives was not taken for attention; empty where nothing but that it weighs nothing is known."""
    swallowed: bool = False
    """Did what it gives go where it is not followed?"""


@dataclass(eq=False)
class Weighing:
    """A pattern meets its values: their product sums over the keys."""

    module: nn.Module | None
    """Which attends."""
    root: Root | None
    """The softmax that the pattern comes from; None of a kernel that does it all."""
    pattern: Tensor
    """As it is used, a copy; so are the values and the result."""
    value: Tensor
    result: Tensor
    product: Product
    one: int
    """Which operand of the product is the pattern."""
    labels: Tensor | None
    """Where each number of the pattern stood in what the softmax gave; None where it stands there still."""
    start: int = 0
    """Of the labels of the result."""
    more: dict[str, Tensor] = field(default_factory=dict)
    """What else a kernel tells: query, key, scores, mask, laid out as the pattern is."""
    mixed: bool = False
    """Was the pattern multiplied with others, or were its heads, after the softmax?"""
    others: tuple[Weights, ...] = ()
    """Patterns that were added to this one, or taken from it."""
    ends: list[tuple[Tensor, Axes]] = field(default_factory=list)
    """Labels of what the result was when something was computed of it; the axes that learned weights sum over, and
    those along which each place has weights of its own."""
    fed: list[Weighing] = field(default_factory=list)
    """Whose values its result is, as it stands."""
    latest: Tensor | None = None
    """Labels of the last tensor that held the result."""

    @property
    def keys(self) -> Letters:
        return self.product.summed_letters(self.one)

    @property
    def result_letters(self) -> Letters:
        return self.product.result

    @property
    def sizes(self) -> dict[int, int]:
        """The size of each axis by its letter."""
        pairs = zip(self.product.letters[self.one], self.pattern.shape, strict=True)
        others = zip(self.product.letters[1 - self.one], self.value.shape, strict=True)
        return {letter: size for letter, size in (*others, *pairs) if letter != ALONE}

    @property
    def own(self) -> Letters:
        """The letters of the pattern that the result keeps."""
        return tuple(each for each in self.product.letters[self.one] if each in self.product.result)

    @property
    def alone(self) -> Letters:
        """Of these the ones that the values have not: queries, and heads that share their values."""
        return tuple(each for each in self.own if each not in self.product.letters[1 - self.one])

    @property
    def has_queries(self) -> bool:
        """Do several queries share their keys?"""
        return any(self.sizes[each] > 1 for each in self.alone)

    @property
    def is_of_pairs(self) -> bool:
        """Has each of as many places as there are keys its own values, as with one for each pair of tokens?"""
        keys = math.prod(self.sizes[each] for each in self.keys)
        return keys > 1 and any(self.sizes[each] == keys for each in self.own if each not in self.alone)


@dataclass(frozen=True)
class Weights:
    """A tensor that comes from a softmax."""

    root: Root
    labels: Tensor | None = None
    logarithm: bool = False
    exponential: bool = False
    divided: bool = False
    """Were exponentials divided since?"""
    mixed: bool = False
    """Were heads, or patterns, multiplied with each other since?"""
    others: tuple[Weights, ...] = ()
    """Patterns that were added to it, or taken from it, place by place."""


@dataclass(frozen=True)
class Summands:
    """A pattern times values, not summed yet; or exponentials times values, summed and not divided yet."""

    weights: Weights
    product: Product
    one: int
    divided: bool = True
    """Is it a sum that has yet to be divided by the sum of its weights, where it is False?"""


@dataclass(frozen=True)
class Fixed:
    """A tensor that is learned, or a constant: nothing of the input is in it."""

    constant: bool


@dataclass(frozen=True)
class Weighed:
    """A tensor that holds results of weighing."""

    labels: Tensor
    of: tuple[Weighing, ...]


Tag = Weights | Summands | Weighed | Fixed


@dataclass(frozen=True)
class Owned:
    """A weight or buffer of a module. It is held, so that its address stays its own when the module lets it go."""

    tensor: Tensor
    module: str
    version: int
    learned: bool
    """A parameter; else a buffer."""

    @property
    def is_as_it_was(self) -> bool:
        """Was nothing written into it since, as into a cache?"""
        return self.tensor._version == self.version


class Following:
    """What is followed through one pass, on one thread."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.tags: dict[int, tuple[weakref.ref[Tensor], Tag]] = {}
        self.roots: list[Root] = []
        self.weighings: list[Weighing] = []
        self.places = 0
        self.owners = {
            id(tensor): Owned(tensor, name, tensor._version, isinstance(tensor, nn.Parameter))
            for name, module in notes.modules.items()
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False))
        }
        self.used: set[str] = set()
        """The modules of which a weight was met."""

    def call(self, function: Function, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Do a call of one of PyTorch's functions, and follow what goes through it."""
        if function in SOFTMAXES:
            return self._begin(function, args, named)
        met: list[tuple[Tensor, Tag]] = []
        fixed: list[Fixed | None] = []
        for tensor in _tensors(args, named):
            if (owner := self.owners.get(id(tensor))) is not None:
                self.used.add(owner.module)
            if (tag := self._tag(tensor)) is not None and not isinstance(tag, Fixed):
                met.append((tensor, tag))
            fixed.append(self._fixed(tensor))
        if function in EXPONENTIALS:
            return self._raise(function, args, named, met)
        if not met:
            result = function(*args, **named)
            if all(fixed) and (all(each.constant for each in fixed if each) or _moves(function)):
                for each in result if isinstance(result, list | tuple) else (result,):
                    self._keep(each, Fixed(constant=all(one.constant for one in fixed if one)))
            return result
        return self._pass(function, args, named, met)

    def weigh(self, weighing: Weighing, result: Tensor) -> None:
        """Follow a result of weighing from here on."""
        labels = torch.arange(self.places, self.places + result.numel(), device=result.device).view(result.shape)
        weighing.start, weighing.latest = self.places, labels
        self.places += result.numel()
        self.weighings.append(weighing)
        self.notes.written.append(weighing)
        self._keep(result, Weighed(labels, (weighing,)))

    # --- where it begins

    def _begin(self, function: Function, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        scores = args[0] if args else named.get("input")
        over = named.get("dim", args[1] if len(args) > 1 else None)
        if not isinstance(scores, Tensor) or scores.is_nested or scores.dim() < 2 or not isinstance(over, int):
            return function(*args, **named)
        root = self._root(scores, over % scores.dim(), exponential=False)
        if (changed := self.notes.change_scores(len(self.roots) - 1, scores)) is not scores:
            args, named = (changed, *args[1:]), {name: each for name, each in named.items() if name != "input"}
            root.scores, root.version = changed, changed._version
        result = function(*args, **named)
        if function is functional.softmin:
            root.version = CHANGED
        self._keep(result, Weights(root, logarithm=function in LOGARITHMS))
        return result

    def _raise(self, function: Function, args: Sequence[Any], named: Mapping[str, Any], met: list[Any]) -> Any:
        """An exponential: of the logarithm of a softmax it is the softmax, of anything else it may become one."""
        if met and isinstance(met[0][1], Weights) and met[0][1].logarithm:
            result = function(*args, **named)
            self._keep(result, Weights(met[0][1].root, met[0][1].labels))
            return result
        scores = args[0] if args else named.get("input")
        if not isinstance(scores, Tensor) or scores.is_nested or scores.dim() < 2 or not scores.is_floating_point():
            return function(*args, **named)
        root = self._root(scores, scores.dim() - 1, exponential=True)
        if (changed := self.notes.change_scores(len(self.roots) - 1, scores)) is not scores:
            result = function(changed)
            root.scores, root.version = changed, changed._version
        else:
            result = function(*args, **named)
        self._keep(result, Weights(root, exponential=True))
        return result

    def _root(self, scores: Tensor, over: int, *, exponential: bool) -> Root:
        root = Root(self.notes.caller(), scores, scores._version, over, exponential)
        self.roots.append(root)
        return root

    # --- how it goes on

    def _pass(self, function: Function, args: Sequence[Any], named: Mapping[str, Any], met: list[Any]) -> Any:
        try:
            found = product(function, args, named)
        except (RuntimeError, ValueError, IndexError, KeyError):
            found = None  # sparse tensors, or an equation that is read another way
        if found is not None:
            return self._multiply(function, args, named, met, found)
        first = met[0][1]
        if isinstance(first, Summands) and first.divided and function in SUMS:
            return self._sum(function, args, named, first)
        if isinstance(first, Summands) and not first.divided and function in DIVISIONS and len(args) == 2:
            return self._divide(function, args, first)
        result = function(*args, **named)
        if getattr(function, "__name__", "") in LAYOUTS:
            self._lay_out(function, args, named, met, result)
        elif isinstance(result, Tensor) and result.is_floating_point():
            self._go_on(function, args, met, result)
        if not isinstance(result, Tensor) or self._tag(result) is None:
            self._lose(function, met)
            self._end(met, ((), ()))
        return result

    def _lose(self, function: Function, met: list[Any]) -> None:
        """Remember where a pattern went that is not followed there."""
        name = getattr(function, "__name__", "")
        for _, tag in met:
            if isinstance(tag, Weights) and name in SWALLOW and not tag.root.refused:
                tag.root.refused, tag.root.swallowed = SWALLOWED.format(SWALLOW[name]), True

    def _go_on(self, function: Function, args: Sequence[Any], met: list[Any], result: Tensor) -> None:
        """Keep following what is changed place by place, and a pattern that is multiplied with values so."""
        name = getattr(function, "__name__", "")
        if name in FRESH or (name in SWALLOW and name not in CONVOLUTIONS):
            return
        for tensor, tag in met:
            if isinstance(tag, Summands):
                continue
            if result.shape == tensor.shape:
                if isinstance(tag, Weights):
                    divides = function in DIVISIONS and args[0] is tensor
                    rest = [one for each, one in met if each is not tensor and isinstance(one, Weights)]
                    others = (*tag.others, *(each for one in rest for each in (replace(one, others=()), *one.others)))
                    mixed = tag.mixed or name in CONVOLUTIONS
                    tag = replace(tag, divided=tag.divided or divides, mixed=mixed, others=others)
                self._keep(result, tag)
                return
            if isinstance(tag, Weights) and not tag.logarithm and function in TIMES and len(args) == 2:
                one, other = args
                if isinstance(one, Tensor) and isinstance(other, Tensor):
                    *letters, kept = spread(one, other)
                    found = Product((one, other), (letters[0], letters[1]), kept)
                    self._keep(result, Summands(tag, found, 0 if one is tensor else 1))
                    return

    def _lay_out(
        self, function: Function, args: Sequence[Any], named: Mapping[str, Any], met: list[Any], result: Any
    ) -> None:
        """Turn the labels as the tensor was turned."""
        kinds = {type(tag) for _, tag in met}
        if len(kinds) > 1 or kinds == {Summands}:
            return
        if kinds == {Weights} and len({id(tag.root) for _, tag in met}) > 1:
            return
        given = [result] if isinstance(result, Tensor) else result
        if not isinstance(given, list | tuple) or not all(isinstance(each, Tensor) for each in given):
            return  # a size, or a type
        known = {id(tensor): self._labels(tensor, tag) for tensor, tag in met}
        joins = getattr(function, "__name__", "") in JOINS
        fill = {"value": NOTHING} if getattr(function, "__name__", "") == "pad" else {}
        args = args[:2] if fill else args
        named = {name: each for name, each in named.items() if name not in ("mode", "value")} if fill else named

        def labels(value: Any) -> Any:
            if isinstance(value, Tensor):
                own = known.get(id(value))
                return own if own is not None else torch.full_like(value, NOTHING, dtype=torch.long) if joins else value
            return type(value)(map(labels, value)) if type(value) in (list, tuple) else value

        try:
            turned = function(*labels(tuple(args)), **{name: labels(each) for name, each in named.items()} | fill)
        except (RuntimeError, TypeError, ValueError, IndexError):
            return  # whole numbers cannot be turned so, as where a tensor is viewed as another type
        for tensor, places in zip(given, [turned] if isinstance(turned, Tensor) else turned, strict=True):
            tag = met[0][1]
            if isinstance(tag, Weights):
                self._keep(tensor, replace(tag, labels=places))
            else:
                of = tuple(dict.fromkeys(each for _, one in met for each in one.of))
                self._keep(tensor, Weighed(places, of))

    def _labels(self, tensor: Tensor, tag: Weights | Weighed) -> Tensor:
        if tag.labels is not None:
            return tag.labels
        return torch.arange(tensor.numel(), device=tensor.device).view(tensor.shape)

    # --- where it ends

    def _multiply(
        self, function: Function, args: Sequence[Any], named: Mapping[str, Any], met: list[Any], found: Product
    ) -> Any:
        tags = [self._tag(operand) for operand in found.operands]
        patterns = [at for at, tag in enumerate(tags) if isinstance(tag, Weights) and not tag.logarithm]
        for at, tag in enumerate(tags):
            if isinstance(tag, Weighed):
                self._end([(found.operands[at], tag)], self._by_weights(found, at))
        if not patterns or not found.summed_letters(patterns[0]):
            return function(*args, **named)
        at = patterns[0]
        tag = tags[at]
        assert isinstance(tag, Weights)
        pattern, value = found.operands[at], found.operands[1 - at]
        if len(patterns) == 2:  # of two patterns one is made
            result = function(*args, **named)
            self._keep(result, replace(tag, labels=None, mixed=True))
            return result
        if is_batchedtensor(pattern) or is_batchedtensor(value):
            tag.root.refused = "it runs through torch.vmap or the like, where one sequence cannot be told from another"
            return function(*args, **named)
        if self._fixed(value):
            result = function(*args, **named)
            if _sums_to_one(pattern, found, at):
                tag.root.refused = "it weighs vectors that are learned, or constants, and nothing of the input"
            elif result.shape == pattern.shape:  # heads are mixed
                self._keep(result, replace(tag, mixed=True))
            return result
        if tag.exponential and not _are_shares(tag, pattern, found, at):
            tag.root.refused = "an exponential weighs values in it, and its rows do not sum to 1 where it does"
            result = function(*args, **named)
            self._keep(result, Summands(tag, found, at, divided=False))
            return result
        changed = self.notes.change_pattern(len(self.weighings), pattern)
        if changed is not pattern:
            args = tuple(changed if each is pattern else each for each in args)
            named = {name: changed if each is pattern else each for name, each in named.items()}
        result = self._note_weighing(tag, changed, value, function(*args, **named), found, at)
        return named["out"].copy_(result) if isinstance(named.get("out"), Tensor) else result

    def _by_weights(self, found: Product, one: int) -> Axes:
        """The axes that learned weights sum over, and those along which each place has weights of its own."""
        if self._fixed(found.operands[1 - one]) is None:
            return (), ()
        letters, other = found.letters[one], found.letters[1 - one]
        summed = tuple(found.summed_axes(one))
        shared = tuple(axis for axis, each in enumerate(letters) if each in other and each in found.result)
        return summed, shared if summed else ()

    def _sum(self, function: Function, args: Sequence[Any], named: Mapping[str, Any], tag: Summands) -> Any:
        """The product of a pattern and values, place by place, is summed over some axes."""
        whole = args[0] if args else named["input"]
        over = named.get("dim", named.get("axis", args[1] if len(args) > 1 else None))
        result = function(*args, **named)
        found, at = tag.product, tag.one
        axes = {each % whole.dim() for each in (over if isinstance(over, list | tuple) else [over]) if each is not None}
        kept = tuple(each for axis, each in enumerate(found.result) if axis not in axes)
        found = Product(found.operands, found.letters, kept)
        if not found.summed_letters(at) or result.dim() != len(kept):
            return result
        pattern, value = found.operands[at], found.operands[1 - at]
        if tag.weights.exponential and not _are_shares(tag.weights, pattern, found, at):
            tag.weights.root.refused = "an exponential weighs values in it, and its rows do not sum to 1 where it does"
            return result
        changed = self.notes.change_pattern(len(self.weighings), pattern)
        if changed is not pattern:
            result = function(changed * value, *args[1:], **{name: named[name] for name in named if name != "input"})
        return self._note_weighing(tag.weights, changed, value, result, found, at)

    def _divide(self, function: Function, args: Sequence[Any], tag: Summands) -> Any:
        """What exponentials weighed is divided by one number for each query: by it they would have been divided."""
        result, found, at = function(*args), tag.product, tag.one
        pattern, value = found.operands[at], found.operands[1 - at]
        own = [each for each in found.letters[at] if each in found.result]
        total = args[1]
        if not isinstance(total, Tensor) or result.dim() != len(found.result):
            return result
        total = total.reshape((1,) * (result.dim() - total.dim()) + total.shape)
        sizes = dict(zip(found.result, result.shape, strict=True))
        letters = tuple(each if size > 1 else ALONE for each, size in zip(found.result, total.shape, strict=True))
        if any(each not in own for each in letters if each != ALONE):
            return result
        rows = arrange_axes(total, letters, found.letters[at], {each: sizes.get(each, 1) for each in found.letters[at]})
        divided = pattern / rows
        sums = divided.sum(found.summed_axes(at))
        if not _at_most_one(sums):
            return result
        tag.weights.root.refused = ""
        changed = self.notes.change_pattern(len(self.weighings), divided)
        if changed is not divided:  # rows of zeros
            seen = changed.sum(found.summed_axes(at)) > 0
            result = result.where(arrange_axes(seen, tuple(own), found.result, sizes), 0.0)
        return self._note_weighing(tag.weights, changed, value, result, found, at)

    def _note_weighing(
        self, tag: Weights, pattern: Tensor, value: Tensor, result: Tensor, found: Product, at: int
    ) -> Tensor:
        result = self.notes.change_result(len(self.weighings), result)
        before = self._tag(value)
        weighing = Weighing(
            module=tag.root.module,
            root=tag.root,
            pattern=pattern.detach().clone(),
            value=value.detach().clone(),
            result=result.detach().clone(),
            product=found,
            one=at,
            labels=tag.labels,
            mixed=tag.mixed,
            others=tag.others,
        )
        self.weigh(weighing, result)
        for each in before.of if isinstance(before, Weighed) else ():
            each.fed.append(weighing)
        return result

    def _end(self, met: list[Any], axes: Axes) -> None:
        """What was weighed is no more than what something else is computed of."""
        for _, tag in met:
            if isinstance(tag, Weighed):
                for weighing in tag.of:
                    if len(weighing.ends) < ENDS:
                        weighing.ends.append((tag.labels, axes))

    # --- what is known of a tensor

    def _fixed(self, tensor: Tensor) -> Fixed | None:
        """Is a tensor learned or constant? A buffer into which something is written is neither."""
        if (owner := self.owners.get(id(tensor))) is not None:
            return Fixed(constant=not owner.learned) if owner.is_as_it_was else None
        tag = self._tag(tensor)
        return tag if isinstance(tag, Fixed) else None

    def _tag(self, tensor: Tensor) -> Tag | None:
        kept = self.tags.get(id(tensor))
        return kept[1] if kept is not None and kept[0]() is tensor else None

    def _keep(self, tensor: Any, tag: Tag) -> None:
        if not isinstance(tensor, Tensor):
            return
        self.tags[id(tensor)] = (weakref.ref(tensor), tag)
        if isinstance(tag, Weighed):
            for weighing in tag.of:
                weighing.latest = tag.labels


def _tensors(args: Sequence[Any], named: Mapping[str, Any]) -> Iterator[Tensor]:
    """The tensors that a function is given, alone or in a list."""
    for value in (*args, *named.values()):
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (each for each in value if isinstance(each, Tensor))


def _moves(function: Function) -> bool:
    """Does a function move or copy numbers, and change none?"""
    name = getattr(function, "__name__", "")
    return name in LAYOUTS or name in COPIES


def _sums_to_one(pattern: Tensor, found: Product, one: int) -> bool:
    """Do the weights of each query sum to 1 over the keys, or are there none?"""
    exact = pattern.to(torch.promote_types(pattern.dtype, torch.float32))
    return bool(sums_to_one(exact.sum(found.summed_axes(one)), pattern.dtype))


def _are_shares(tag: Weights, pattern: Tensor, found: Product, one: int) -> bool:
    """Do exponentials weigh as shares do: their rows sum to 1, or to less after they were divided by something?"""
    return _sums_to_one(pattern, found, one) or (tag.divided and _at_most_one(pattern.sum(found.summed_axes(one))))


def _at_most_one(sums: Tensor) -> bool:
    """Is each of these sums a share of something, but for rounding, or no number?"""
    return bool((((sums > 0) & (sums < 1.001)) | sums.isnan()).all())


def sums_to_one(sums: Tensor, dtype: torch.dtype) -> Tensor:
    """Is each of these sums 1, to the rounding of weights of this type, or 0, or no number?"""
    near = (sums - 1).abs() <= 1e-5 + 2 * torch.finfo(dtype).eps
    return (near | (sums == 0) | sums.isnan()).all()


SOFTMAXES = frozenset({
    functional.softmax, torch.softmax, torch.special.softmax, Tensor.softmax, functional.gumbel_softmax,
    functional.softmin,
    functional.log_softmax, torch.log_softmax, torch.special.log_softmax, Tensor.log_softmax,
})  # fmt: skip
LOGARITHMS = frozenset({functional.log_softmax, torch.log_softmax, torch.special.log_softmax, Tensor.log_softmax})
EXPONENTIALS = frozenset({torch.exp, Tensor.exp, Tensor.exp_, torch.exp2, Tensor.exp2, Tensor.exp2_})
TIMES = frozenset({torch.mul, torch.multiply, Tensor.mul, Tensor.multiply, Tensor.__mul__, Tensor.__rmul__})
SUMS = frozenset({torch.sum, Tensor.sum})
SWALLOW = {
    "baddbmm": "torch.baddbmm", "addbmm": "torch.addbmm", "addmm": "torch.addmm", "addmv": "torch.addmv",
    "multi_dot": "torch.linalg.multi_dot", "linalg_multi_dot": "torch.linalg.multi_dot", "chain_matmul": "chain_matmul",
    "einsum": "an einsum of three", "scatter": "scatter", "scatter_": "scatter", "index_put_": "index_put",
    "__setitem__": "a part of another tensor", "conv1d": "a convolution", "conv2d": "a convolution",
}  # fmt: skip
"""Functions that a pattern is not followed into, and what they are called."""
CONVOLUTIONS = frozenset({"conv1d", "conv2d"})
"""They mix heads where they leave the shape."""
SWALLOWED = "what a softmax in it gives goes into {}, and is not followed there"
DIVISIONS = frozenset({
    torch.div, torch.divide, torch.true_divide, Tensor.div, Tensor.divide, Tensor.__truediv__, Tensor.div_,
    Tensor.__itruediv__,
})  # fmt: skip
JOINS = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"})
LAYOUTS = JOINS | {
    "view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "permute", "transpose", "swapaxes", "swapdims",
    "movedim", "moveaxis", "t", "adjoint", "squeeze", "unsqueeze", "expand", "expand_as", "broadcast_to", "contiguous",
    "clone", "detach", "chunk", "split", "tensor_split", "unbind", "narrow", "select", "index_select", "__getitem__",
    "__get__", "repeat", "repeat_interleave", "tile", "roll", "flip", "split_with_sizes",
    "unsafe_chunk", "unsafe_split", "pad",
}  # fmt: skip
"""Functions that move numbers and change none. A property that is a view, as `x.T`, is called `__get__`."""
COPIES = frozenset({"to", "float", "half", "bfloat16", "double", "type", "type_as", "cpu", "cuda", "long", "int"})
FRESH = frozenset({
    "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones",
    "new_empty", "new_full",
})  # fmt: skip
"""Functions that give a tensor of the same shape and nothing of what is in it."""
