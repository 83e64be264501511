"""Change what any model's attention does for one pass: remove heads, or say which keys each query may see.

Nothing is patched. The doors that see a call of attention (`functions.py`, `hugging_face.py`) send it through a `Call`;
the one here says what is changed, and the doors know nothing more of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from transformer.capturing.capture import of_ours, run
from transformer.capturing.functions import FORBIDDEN
from transformer.capturing.record import Call, Captured, Notes
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
    notes = ChangingNotes(model, change)
    seen = run(model, notes, inputs, named)
    notes.check()
    return seen


class ChangingNotes(Notes):
    """Notes of a pass that is changed; they know which part of the change was met."""

    def __init__(self, model: object, change: Change) -> None:
        super().__init__(model)
        self.change = change
        self.unmet = set(change.removed)
        self.mask_met = change.mask is None

    def call(self, module: nn.Module | None, queries: int, keys: int, *, crosses: bool = False) -> Call:
        call = super().call(module, queries, keys, crosses=crosses)
        removed = tuple(sorted(head for name, head in self.change.removed if name == call.name))
        mask = self.change.mask
        allowed = mask if mask is not None and not call.crosses and mask.shape == (queries, keys) else None
        if not removed and allowed is None:
            return call
        self.unmet -= {(call.name, head) for head in removed}
        self.mask_met = self.mask_met or allowed is not None
        return ChangedCall(call.module, call.name, call.crosses, removed, allowed)

    def miss(self, module: nn.Module | None, why: str) -> None:
        super().miss(module, why)
        name = super().call(module, 0, 0).name
        if self.change.mask is not None or any(name == each for each, _ in self.change.removed):
            raise ChangeError(f"{shortened(name)} cannot be changed: {why}.")

    def check(self) -> None:
        """Raises ChangeError where a part of the change met nothing."""
        for name, head in sorted(self.unmet):
            raise ChangeError(f"Head {head} of {shortened(name)} was not removed: no attention of this name was seen.")
        _check_mask(self.change, self.mask_met)


@dataclass(frozen=True, eq=False)
class ChangedCall(Call):
    """A call of attention that is done otherwise than the model asks for it."""

    removed: tuple[int, ...]
    allowed: Bool[Tensor, "query key"] | None

    @property
    def blind(self) -> Bool[Tensor, "query"] | None:
        return None if self.allowed is None else ~self.allowed.any(dim=-1)

    def added(self, own: Tensor | None, query: Tensor) -> Tensor | None:
        """What the call itself adds where its own mask allows it, and the lowest number where the change forbids."""
        if self.allowed is None:
            return own
        allowed, lowest = self.allowed.to(query.device), torch.finfo(query.dtype).min
        bias = query.new_zeros(()) if own is None else own.masked_fill(own <= FORBIDDEN, 0.0)
        if own is not None and bias.any():
            self._only_forbid(own, allowed)
        return torch.where(allowed, bias, lowest)

    def scores(self, own: Tensor) -> Tensor:
        if self.allowed is None:
            return own
        allowed = self.allowed.to(own.device)
        self._only_forbid(own, allowed)
        return own.masked_fill(~allowed, torch.finfo(own.dtype).min)

    def _only_forbid(self, own: Tensor, allowed: Bool[Tensor, "query key"]) -> None:
        """Where the mask is one with other numbers, those of the keys that it forbids are not known any more."""
        if ((own <= FORBIDDEN) & allowed).any():
            raise ChangeError(
                f"{shortened(self.name)} adds its mask to other numbers, so keys that it forbids have none: a mask can "
                "forbid more keys there, and allow none."
            )

    def rows(self, values: Tensor) -> Tensor:
        if self.blind is None or not self.blind.any():
            return values
        return values.masked_fill(self.blind.to(values.device)[:, None], 0.0)

    def heads(self, values: Tensor) -> Tensor:
        if not self.removed:
            return values
        last = values.shape[-3] - 1
        if not all(0 <= head <= last for head in self.removed):
            raise ChangeError(f"{shortened(self.name)} has no head {self.removed[-1]}: its heads are 0 to {last}.")
        return values.index_fill(-3, torch.tensor(self.removed, device=values.device), 0.0)


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
