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

from transformer.capturing.products import ALONE, Letters, Product, arrange_axes, product, spread, take_apart

if TYPE_CHECKING:
    from transformer.capturing.record import Notes

Function = Callable[..., Any]
Axes = tuple[tuple[int, ...], tuple[int, ...]]
Known = dict[int, Tensor]
"""Labels of tensors, by their addresses."""
NOTHING = -1
"""The label of a place that holds nothing of what is followed."""
CHANGED = -1
"""The version of scores that are not what softmax is of."""
BY_KEY = ("key", "value")
"""What a kernel tells that has no queries."""
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
    """What else a kernel tells: query, key, scores, mask, laid out as the pattern is, one axis in place of another."""
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
    shape: tuple[int, ...] = ()
    """Of the pattern as it was used, before an axis was read as two."""

    def __post_init__(self) -> None:
        self.shape = tuple(self.pattern.shape)

    def split(self, letter: int, sizes: tuple[int, int]) -> None:
        """Read an axis of the pattern that the result keeps as two, the slower one first, as heads and queries."""
        axis, kept = self.product.letters[self.one].index(letter), self.product.result.index(letter)
        new = max(*self.product.letters[0], *self.product.letters[1], *self.product.result) + 1

        def split_letters(letters: Letters) -> Letters:
            return tuple(one for each in letters for one in ((new, new + 1) if each == letter else (each,)))

        def split_labels(root: Root | None, labels: Tensor | None) -> Tensor | None:
            if labels is None and root is not None:
                labels = torch.arange(root.scores.numel(), device=root.scores.device).view(root.scores.shape)
            return labels if labels is None else labels.unflatten(axis, sizes)

        self.labels = split_labels(self.root, self.labels)
        self.others = tuple(replace(each, labels=split_labels(each.root, each.labels)) for each in self.others)
        self.pattern, self.result = self.pattern.unflatten(axis, sizes), self.result.unflatten(kept, sizes)
        self.more = {kind: each if kind in BY_KEY else each.unflatten(axis, sizes) for kind, each in self.more.items()}
        one, other = map(split_letters, self.product.letters)
        self.product = Product(self.product.operands, (one, other), split_letters(self.product.result))

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
    version: int = 0
    """Later work in place raises it."""


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
        return version_of(self.tensor) == self.version


class Following:
    """What is followed through one pass, on one thread."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.tags: dict[int, tuple[weakref.ref[Tensor], Tag]] = {}
        self.roots: list[Root] = []
        self.weighings: list[Weighing] = []
        self.places = 0
        self.owners = {
            id(tensor): Owned(tensor, name, version_of(tensor), isinstance(tensor, nn.Parameter))
            for name, module in notes.modules.items()
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False))
        }
        self.written: list[Tensor] = []
        """Tensors into which something was written. They are held, so that their views find them."""
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
                    if isinstance(each, Tensor):
                        self._keep(each, Fixed(all(one.constant for one in fixed if one), version_of(each)))
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
            root.scores, root.version = changed, version_of(changed)
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
            root.scores, root.version = changed, version_of(changed)
        else:
            result = function(*args, **named)
        self._keep(result, Weights(root, exponential=True))
        return result

    def _root(self, scores: Tensor, over: int, *, exponential: bool) -> Root:
        root = Root(self.notes.caller(), scores, version_of(scores), over, exponential)
        self.roots.append(root)
        return root

    # --- how it goes on

    def _pass(self, function: Function, args: Sequence[Any], named: Mapping[str, Any], met: list[Any]) -> Any:
        name = getattr(function, "__name__", "")
        pattern = next((each for each, tag in met if isinstance(tag, Weights) and not tag.logarithm), None)
        if pattern is not None:
            apart = take_apart(function, args, named, pattern, lambda one, *given, **more: self.call(one, given, more))
            if apart is not None:
                return apart
        if name in WRITES and not named and args[3:] != (True,):  # which adds what it writes
            return self._write(function, args, met)
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
        if name in LAYOUTS:
            self._lay_out(function, args, named, met, result)
        elif isinstance(result, Tensor) and result.is_floating_point():
            self._go_on(function, args, met, result)
        if not isinstance(result, Tensor) or self._tag(result) is None:
            self._lose(function, met)
            self._end(met, self._by_convolution(name, args) if name in CONVOLUTIONS else ((), ()))
        return result

    def _by_convolution(self, name: str, args: Sequence[Any]) -> Axes:
        """The axis of channels, where a convolution with learned weights sums over it."""
        if len(args) < 2 or self._fixed(args[1]) is None:
            return (), ()
        return (args[0].dim() - 1 - int(name[-2]),), ()

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
            if isinstance(tag, Summands) or (isinstance(tag, Weighed) and name in CONVOLUTIONS):
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
        given = [result] if isinstance(result, Tensor) else result
        if not isinstance(given, list | tuple) or not all(isinstance(each, Tensor) for each in given):
            return  # a size, or a type
        name = getattr(function, "__name__", "")
        fill = {"value": NOTHING} if name == "pad" else {}
        args = args[:2] if fill else args
        named = {name: each for name, each in named.items() if name not in ("mode", "value")} if fill else named

        def turn(known: Known) -> Sequence[Tensor]:
            turned = function(
                *_labelled(tuple(args), known, name in JOINS), **_labelled(dict(named), known, name in JOINS) | fill
            )
            return [turned] if isinstance(turned, Tensor) else turned

        found = self._turn(met, turn)
        for at, tensor in enumerate(given):
            if (tag := _together([(one, places[at]) for one, places in found])) is not None:
                self._keep(tensor, tag)

    def _write(self, function: Function, args: Sequence[Any], met: list[Any]) -> Any:
        """Follow what is written into a tensor, or into a part of one."""
        target = args[0]
        result = function(*args)
        sources = [(tensor, tag) for tensor, tag in met if tensor is not target]
        if not sources:
            return result
        in_place = result is None or result is target
        whole = target if not in_place or target._base is None else target._base
        before = self._tag(whole)
        held = [(whole, before)] if isinstance(before, type(sources[0][1])) else []

        def write(known: Known) -> Sequence[Tensor]:
            places = torch.empty_strided(whole.shape, whole.stride(), dtype=torch.long, device=whole.device)
            places = places.copy_(known[id(whole)]) if held else places.fill_(NOTHING)
            part = places.as_strided(target.shape, target.stride(), target.storage_offset() - whole.storage_offset())
            written = function(part, *_labelled(tuple(args[1:]), known, True))
            return [places if in_place else written]

        tag = _together([(one, places[0]) for one, places in self._turn([*held, *sources], write)])
        if tag is None:
            self._lose(function, sources)
            self._end(sources, ((), ()))
        else:
            self.written.append(whole)
            self._keep(whole if in_place else result, tag)
        return result

    def _turn(
        self, met: list[Any], turn: Callable[[Known], Sequence[Tensor]]
    ) -> list[tuple[Weights | Weighed, Sequence[Tensor]]]:
        """What is followed, each softmax by itself, with its labels as `turn` turns them; empty where it cannot."""
        found: list[tuple[Weights | Weighed, Sequence[Tensor]]] = []
        for tag, known in self._by_root(met):
            try:
                found.append((tag, turn(known)))
            except (RuntimeError, TypeError, ValueError, IndexError):
                return []  # whole numbers cannot be turned so, as where a tensor is viewed as another type
        return found

    def _by_root(self, met: list[Any]) -> Iterator[tuple[Weights | Weighed, Known]]:
        """The labels of some tensors; of patterns each softmax's by themselves. Nothing where they do not fit."""
        tags = [tag for _, tag in met]
        if all(isinstance(tag, Weighed) for tag in tags):
            of = tuple(dict.fromkeys(each for tag in tags for each in tag.of))
            yield replace(tags[0], of=of), {id(tensor): tag.labels for tensor, tag in met}
        elif not all(isinstance(tag, Weights) for tag in tags) or len({_stage(tag) for tag in tags}) > 1:
            return
        elif len(met) == 1:
            for one in (tags[0], *tags[0].others):
                yield one, {id(met[0][0]): self._labels(met[0][0], one)}
        else:
            each = [(tensor, one) for tensor, tag in met for one in (tag, *tag.others)]
            for root in dict.fromkeys(one.root for _, one in each):
                known = {id(tensor): torch.full(tensor.shape, NOTHING, device=tensor.device) for tensor, _ in met}
                own = [(tensor, one) for tensor, one in each if one.root is root]
                yield own[0][1], known | {id(tensor): self._labels(tensor, one) for tensor, one in own}

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
        if kept is not None and kept[0]() is tensor:
            tag = kept[1]
            if not isinstance(tag, Fixed) or tag.version == version_of(tensor):
                return tag
        return self._tag_of_view(tensor, tensor._base) if self.written and tensor._base is not None else None

    def _tag_of_view(self, tensor: Tensor, whole: Tensor) -> Tag | None:
        """What a view holds that was made before something was written into the tensor that it is a view of."""
        kept = self.tags.get(id(whole))
        tag = kept[1] if kept is not None and kept[0]() is whole and whole.dtype == tensor.dtype else None
        if not isinstance(tag, Weights | Weighed):
            return None

        def part(labels: Tensor) -> Tensor:
            return labels.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() - whole.storage_offset())

        each = [tag, *tag.others] if isinstance(tag, Weights) else [tag]
        if any(one.labels is None or one.labels.stride() != whole.stride() for one in each):
            return None
        return _together([(one, part(one.labels)) for one in each if one.labels is not None])

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


def version_of(tensor: Tensor) -> int:
    """A number that later work in place raises; 0 of a tensor made in `torch.inference_mode`, where none is counted."""
    return 0 if tensor.is_inference() else tensor._version


def _stage(tag: Tag) -> tuple[bool, ...]:
    """What has to be the same of two softmaxes that are parts of one pattern."""
    return (tag.logarithm, tag.exponential, tag.divided) if isinstance(tag, Weights) else ()


def _labelled(value: Any, known: Known, joins: bool) -> Any:
    """What a function is given, with labels in place of tensors; NOTHING in place of others' where it joins them."""
    if isinstance(value, Tensor):
        other = torch.full_like(value, NOTHING, dtype=torch.long) if joins and value.is_floating_point() else value
        return known.get(id(value), other)
    if isinstance(value, dict):
        return {name: _labelled(each, known, joins) for name, each in value.items()}
    return type(value)(_labelled(each, known, joins) for each in value) if type(value) in (list, tuple) else value


def _together(found: list[tuple[Weights | Weighed, Tensor]]) -> Weights | Weighed | None:
    """What a tensor holds of what was followed, of which each has its labels there."""
    if len(found) > 1:
        found = [(one, places) for one, places in found if bool((places != NOTHING).any())]
    if not found:
        return None
    (first, places), *rest = found
    if isinstance(first, Weighed):
        return replace(first, labels=places)
    others = tuple(replace(one, labels=places, others=()) for one, places in rest if isinstance(one, Weights))
    return replace(first, labels=places, others=others)


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
    "scatter": "scatter", "scatter_": "scatter", "scatter_add": "scatter_add", "scatter_add_": "scatter_add",
    "scatter_reduce": "scatter_reduce", "scatter_reduce_": "scatter_reduce", "index_add": "index_add",
    "index_add_": "index_add", "index_put": "index_put", "index_put_": "index_put",
    "__setitem__": "a part of another tensor",
    "conv1d": "a convolution", "conv2d": "a convolution", "conv3d": "a convolution",
}  # fmt: skip
"""Functions that a pattern may not be followed into, and what they are called."""
WRITES = frozenset({
    "__setitem__", "copy_", "index_put", "index_put_", "index_copy", "index_copy_", "scatter", "scatter_",
    "slice_scatter", "select_scatter", "diagonal_scatter", "masked_scatter", "masked_scatter_",
})  # fmt: skip
"""Functions that write numbers into a tensor as they are."""
CONVOLUTIONS = frozenset({"conv1d", "conv2d", "conv3d"})
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
