"""Change what any model's attention does for one pass: remove heads, or say which keys each query may see.

Nothing is patched. The doors that see a call of attention (`functions.py`, `hugging_face.py`) send it through a `Call`;
the one here says what is changed, and the doors know nothing more of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from transformer.capturing.capture import batches, of_ours, run
from transformer.capturing.following import NOTHING, Root, Weighing, sums_to_one
from transformer.capturing.layouts import Layout
from transformer.capturing.products import Letters, arrange_axes
from transformer.capturing.proof import CHANGED, FORBIDDEN, lost_to
from transformer.capturing.record import Call, Captured, Layer, Notes
from transformer.edits import Edit, EditError, OverrideMask
from transformer.edits.heads.zero import AblateHead
from transformer.foundation.checks import UserError
from transformer.foundation.foreign import shortened
from transformer.network import Network
from transformer.observation import observe
from transformer.trace import only


class ChangeError(UserError):
    """A change that cannot be made; the message says which module does not allow it, and why."""


@dataclass(frozen=True, eq=False)
class Change:
    """What is changed in one pass."""

    removed: frozenset[tuple[str, int]] = frozenset()
    """Heads, each by its attention's name (as in `Captured.attentions`) and its number. What it hands on is zero before
    the heads are joined (Michel et al., 2019, "Are Sixteen Heads Really Better than One?", section 2.3)."""
    mask: Bool[Tensor, "query key"] | None = None
    """True where a query may see a key, in every self-attention with so many queries and keys, in place of the mask
    that the model has there, padding too. What the model adds to its scores beside its mask stays. A query that may see
    nothing gets zeros."""


def capture_changed(model: Callable[..., Any], change: Change, *inputs: Any, **named: Any) -> Captured:
    """What `capture(model, *inputs, **named)` returns, of a pass that is changed.

    The pattern of a removed head is the one that it would have had; its `z` is zero. Nothing of the change is left
    afterwards, and other threads that use the model meanwhile do not meet it.
    Raises ChangeError where a part of the change meets nothing, and where a module cannot be changed: one that writes
    its mask into its scores can be forbidden keys and not be given any, and nested tensors are not read. Raises what
    the model raises.
    """
    if isinstance(model, Network):
        return _changed_ours(model, change, inputs, named)
    before = Notes(model, batches(inputs, named))
    own = model.parameters() if isinstance(model, nn.Module) else ()
    devices = {each.device for each in own if each.is_cuda}  # a GPU that it does not use is left alone
    with torch.random.fork_rng(devices):  # what the model draws at random it draws again
        run(model, before, inputs, named)
    return changed_after(before, model, change, inputs, named)


def changed_after(
    before: Notes, model: Callable[..., Any], change: Change, inputs: Sequence[Any], named: Mapping[str, Any]
) -> Captured:
    """The changed pass of a model of which `before` saw the same pass unchanged: so it is known where its heads are."""
    notes = ChangingNotes(model, change, before)
    seen = run(model, notes, inputs, named)
    notes.check()
    return seen


@dataclass(frozen=True)
class Part:
    """One followed product of a pattern and its values, and the layer that it belongs to."""

    layer: Layer
    layout: Layout
    """The layer's, or that of what its pattern weighs besides."""
    number: int
    """Which of the layout's parts it is."""

    @property
    def weighing(self) -> Weighing:
        return self.layout.parts[self.number]

    @property
    def queries(self) -> Letters:
        return self.layout.queries[self.number]

    def sources(self) -> Iterator[tuple[Root, Tensor | None]]:
        """The softmaxes that its pattern comes from, and where each number stood in what they gave."""
        if self.weighing.root is not None:
            yield self.weighing.root, self.weighing.labels
        for each in self.weighing.others:
            yield each.root, each.labels


class ChangingNotes(Notes):
    """Notes of a pass that is changed; they know which part of the change was met."""

    def __init__(self, model: object, change: Change, before: Notes) -> None:
        self.change = change
        super().__init__(model, before.batches)
        self.differentiates = before.differentiates
        parts = {
            part: Part(layer, layer.layout, number)
            for layer in before.layers
            for number, part in enumerate(layer.layout.parts)
        }
        of_roots = {each.root: part.layer for each, part in parts.items() if each.root is not None}
        self.before = before
        for twin in before.twins:
            for number, each in enumerate(twin.parts):
                if each.root in of_roots:
                    parts[each] = Part(of_roots[each.root], twin, number)
        self.parts = {at: parts[each] for at, each in enumerate(before.following.weighings) if each in parts}

    def restart(self) -> None:
        super().restart()
        self.unmet = set(self.change.removed)
        self.mask_met = self.change.mask is None
        self.met: set[int] = set()
        """Which of the products were met."""

    def call(self, module: nn.Module | None, queries: int, keys: int, *, crosses: bool = False) -> Call:
        call = super().call(module, queries, keys, crosses=crosses)
        removed = tuple(sorted(head for name, head in self.change.removed if name == call.name))
        allowed = self._allowed(call.crosses, (queries, keys))
        if not removed and allowed is None:
            return call
        self.unmet -= {(call.name, head) for head in removed}
        return ChangedCall(call.module, call.name, call.crosses, removed, allowed)

    def _allowed(self, crosses: bool, shape: tuple[int, int]) -> Tensor | None:
        """The mask of the change, where an attention of this size takes it."""
        mask = self.change.mask
        if mask is None or crosses or mask.shape != shape:
            return None
        self.mask_met = True
        return mask

    def kernel_call(self, number: int) -> Call:
        part = self.parts.get(number)
        if part is None:
            return super().kernel_call(number)
        layer = part.layer
        allowed = self._allowed(layer.crosses, layer.layout.shape)
        if allowed is not None and len(part.weighing.shape) != part.weighing.pattern.dim():
            allowed = self._over_pattern(part, allowed)
        return ChangedCall("", layer.name, layer.crosses, (), allowed)

    def change_scores(self, number: int, scores: Tensor) -> Tensor:
        root, allowed, name = self.before.following.roots[number : number + 1], None, ""
        for part in self.parts.values():
            for source, labels in part.sources() if root else ():
                if source is not root[0] or part.layout is not part.layer.layout:
                    continue
                if (mask := self._allowed(part.layer.crosses, part.layer.layout.shape)) is None:
                    continue
                laid = self._over_pattern(part, mask).to(scores.device)
                if labels is not None:
                    laid = _put_back(laid.reshape(labels.shape), labels, scores)
                allowed, name = laid if allowed is None else allowed & laid, part.layer.name
        if allowed is None:
            return scores
        _only_forbid(name, scores, allowed)
        return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)

    def change_pattern(self, number: int, pattern: Tensor) -> Tensor:
        part = self.parts.get(number)
        if part is None or (mask := self._allowed(part.layer.crosses, part.layer.layout.shape)) is None:
            return pattern
        sighted = mask.any(dim=-1, keepdim=True)
        if sighted.all():
            return pattern
        return pattern.masked_fill(~self._over_pattern(part, sighted.expand(mask.shape)).to(pattern.device), 0.0)

    def _over_pattern(self, part: Part, mask: Bool[Tensor, "query key"]) -> Bool[Tensor, "..."]:
        """A mask with its axes where the pattern has its own; it is spread over the others."""
        weighing, sizes = part.weighing, part.weighing.sizes
        letters = (*part.queries, *weighing.keys)
        laid = mask.reshape([sizes[each] for each in letters])
        wanted = tuple(each for each in weighing.product.letters[weighing.one])
        laid = arrange_axes(laid, letters, wanted, {each: sizes.get(each, 1) for each in wanted})
        return laid if laid.dim() == len(weighing.shape) else laid.reshape(weighing.shape)

    def change_result(self, number: int, result: Tensor) -> Tensor:
        part = self.parts.get(number)
        if part is None:
            return result
        layer, layout = part.layer, part.layout
        self.met.add(number)
        removed = sorted(head for name, head in self.change.removed if name == layer.name)
        if not removed:
            return result
        heads = layer.layout.table.shape[1]
        if layout.problem or layout.table.shape != layer.layout.table.shape:
            raise ChangeError(
                f"{shortened(layer.name)} weighs something else with the same pattern, which is not laid out by heads: "
                "no head can be removed as a whole."
            )
        if not all(0 <= head < heads for head in removed):
            raise ChangeError(f"{shortened(layer.name)} has no head {removed[-1]}: its heads are 0 to {heads - 1}.")
        self.unmet -= {(layer.name, head) for head in removed}
        groups = layout.groups(part.number)
        sizes = part.weighing.sizes
        taken = torch.zeros(math.prod(sizes[each] for each in groups), dtype=torch.bool)
        for owner, group in layout.table[:, removed].reshape(-1, 2):
            if owner == part.number:
                taken[group] = True
        wanted = part.weighing.result_letters
        shape = {each: sizes[each] if each in groups else 1 for each in wanted}
        laid = arrange_axes(taken.view([sizes[each] for each in groups]), groups, wanted, shape)
        if laid.dim() != result.dim():  # an axis was read as two
            laid = laid.expand(part.weighing.result.shape).reshape(result.shape)
        return result.masked_fill(laid.to(result.device), 0.0)

    def miss(self, module: nn.Module | None, why: str) -> None:
        super().miss(module, why)
        name = Notes.call(self, module, 0, 0).name
        if self.change.mask is not None or any(name == each for each, _ in self.change.removed):
            raise ChangeError(f"{shortened(name)} cannot be changed: {why}.")

    def check(self) -> None:
        """Raises ChangeError where a part of the change met nothing."""
        for name, head in sorted(self.unmet):
            raise ChangeError(f"Head {head} of {shortened(name)} was not removed: no attention of this name was seen.")
        _check_mask(self.change, self.mask_met)
        mask = self.change.mask
        for number, part in self.parts.items() if mask is not None else ():
            if mask is None or part.layer.crosses or part.layer.layout.shape != mask.shape:
                continue
            if number not in self.met or not self._holds(part.layer, mask):
                raise ChangeError(
                    f"{shortened(part.layer.name)} makes its pattern in a way into which no other mask can be put."
                )

    def _holds(self, layer: Layer, mask: Bool[Tensor, "query key"]) -> bool:
        """Is the pattern zero where the mask forbids, and nowhere that it allows by a mask behind the softmax?"""
        after = next((each for each in self.layers if each.name == layer.name), None)
        if after is None:
            return False
        sums, first = layer.sites["pattern"].sum(dim=-1), layer.layout.parts[0]
        if not sums_to_one(sums, sums.dtype) and lost_to(first, self.before.following.weighings) == CHANGED:
            return False
        pattern = after.sites["pattern"]
        allowed = mask.to(pattern.device)
        # Half a precision has no number for a small share, so a zero says nothing there.
        hidden = (pattern == 0).all(dim=0).all(dim=0) & allowed & (torch.finfo(pattern.dtype).bits > 16)
        return not hidden.any() and not (pattern.masked_select(~allowed).abs() > 1e-6).any()


@dataclass(frozen=True, eq=False)
class ChangedCall(Call):
    """A call of attention that is done otherwise than the model asks for it."""

    removed: tuple[int, ...]
    allowed: Bool[Tensor, "*batch query key"] | None

    @property
    def blind(self) -> Bool[Tensor, "*batch query"] | None:
        return None if self.allowed is None else ~self.allowed.any(dim=-1)

    def added(self, own: Tensor | None, query: Tensor) -> Tensor | None:
        """What the call itself adds where its own mask allows it, and the lowest number where the change forbids."""
        if self.allowed is None:
            return own
        allowed, lowest = self.allowed.to(query.device), torch.finfo(query.dtype).min
        bias = query.new_zeros(()) if own is None else own.masked_fill(own <= FORBIDDEN, 0.0)
        if own is not None and bias.any():
            _only_forbid(self.name, own, allowed)
        return torch.where(allowed, bias, lowest)

    def rows(self, values: Tensor) -> Tensor:
        if self.blind is None or not self.blind.any():
            return values
        return values.masked_fill(self.blind.to(values.device)[..., None], 0.0)

    def heads(self, values: Tensor) -> Tensor:
        if not self.removed:
            return values
        last = values.shape[-3] - 1
        if not all(0 <= head <= last for head in self.removed):
            raise ChangeError(f"{shortened(self.name)} has no head {self.removed[-1]}: its heads are 0 to {last}.")
        return values.index_fill(-3, torch.tensor(self.removed, device=values.device), 0.0)


def _put_back(allowed: Tensor, labels: Tensor, scores: Tensor) -> Tensor:
    """A mask laid out as the pattern is, laid out as the scores are; True where nothing of the pattern comes from."""
    whole = torch.ones(scores.numel(), dtype=torch.bool, device=scores.device)
    seen = labels != NOTHING
    whole[labels[seen]] = allowed.expand(labels.shape)[seen]
    return whole.view(scores.shape)


def _only_forbid(name: str, own: Tensor, allowed: Bool[Tensor, "..."]) -> None:
    """Where a mask is one with other numbers, those of the keys that it forbids are not known any more."""
    if ((own <= FORBIDDEN) & allowed).any():
        raise ChangeError(
            f"{shortened(name)} adds its mask to other numbers, so keys that it forbids have none: a mask can "
            "forbid more keys there, and allow none."
        )


def _changed_ours(model: Network, change: Change, inputs: tuple[Any, ...], named: dict[str, Any]) -> Captured:
    """The same of one of our own models, whose way to be changed is edits."""
    edits: list[Edit] = [AblateHead(f"{name}.z", head) for name, head in sorted(change.removed)]
    if change.mask is not None:
        masks = observe(model, *inputs, **named, remember=only("*.self_attention.mask")).sites
        fitting = [site for site, mask in masks.items() if mask.shape[-2:] == change.mask.shape]
        _check_mask(change, bool(fitting))
        edits += [OverrideMask.of(change.mask.cpu().numpy(), site) for site in fitting]
    try:
        return of_ours(observe(model, *inputs, **named | {"edits": edits}))
    except EditError as error:
        raise ChangeError(str(error)) from None


def _check_mask(change: Change, met: bool) -> None:
    if not met and change.mask is not None:
        queries, keys = change.mask.shape
        raise ChangeError(f"No self-attention was seen with {queries} queries and {keys} keys: the mask met nothing.")
