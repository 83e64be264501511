"""What was seen of a model that is not ours: every attention's tensors, by the name of the module that attended."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from transformer.capturing.following import Following, Weighing
from transformer.capturing.layouts import BLOCKS, UNREAD, Layout, layouts
from transformer.capturing.proof import lost_to, remarks_on, seen_in
from transformer.foundation.checks import UserError
from transformer.foundation.words import listed
from transformer.observation import Seen

LISTED = 3
"""Modules that are named where one thing is said of many."""
ATTENTION = re.compile("attn|attention", re.IGNORECASE)
"""A class whose name has this in it is expected to attend."""
CROSS = re.compile(r"(cross|enc_?dec|encoder_attn|enc_attn|src_attn|attn2)[^.]*(\.[^.]*)?$", re.IGNORECASE)
"""In the last two words of a module's name: its queries and its keys come from two sequences."""


class CaptureError(UserError):
    """A sentence that says what of a capture is not there."""


@dataclass(frozen=True)
class Captured(Seen):
    """One forward pass of any model: what it returned, and what was seen of its attention on the way.

    `seen["h.0.attn.pattern"]` is the tensor at a site; one that is not there raises KeyError.
    """

    sites: dict[str, Tensor]
    """In order of the calls, named as the model names its modules: "h.0.attn.pattern" [batch, head, query, key]. Beside
    it, where they were seen, `query`, `key`, `value` and `z` [batch, head, position, d_head], `scores` before the mask
    and `mask`, True where a query may see a key. A module that is called again has "#2" behind its name."""
    output: Any
    """What the model returned, as it returned it."""
    unseen: tuple[str, ...]
    """A sentence for each part that looks as if it attended, and in which nothing was seen."""
    crossing: frozenset[str] = frozenset()
    """Of the attentions, those whose queries and keys come from two sequences: cross-attention."""
    remarks: tuple[str, ...] = ()
    """A sentence for each attention that was seen and is not what one would expect, as rows that do not sum to 1."""


@dataclass(frozen=True)
class Call:
    """One call of attention, as a door meets it. This one is done as the model asks for it.

    A door sends through it what a change may change, as the model's tensors pass through a trace. `changes.py` has the
    call that changes them.
    """

    module: str
    """The name of the module that attends."""
    name: str
    """The same, with "#2" behind it where the module is called again."""
    crosses: bool

    @property
    def blind(self) -> Tensor | None:
        """[query], True where a query may see nothing; None where the mask is the model's own."""
        return None

    @property
    def masked(self) -> bool:
        """Is the mask another than the model's own?"""
        return self.blind is not None

    def added(self, own: Tensor | None, query: Tensor) -> Tensor | None:
        """What is added to the scores before softmax, in place of the call's own. It has the type of `query`."""
        return own

    def rows(self, values: Tensor) -> Tensor:
        """Patterns or results [*, query, width]."""
        return values

    def heads(self, values: Tensor) -> Tensor:
        """What heads hand on, [*, head, query, width]."""
        return values


@dataclass(frozen=True, eq=False)
class Written:
    """What a door that knows the heads saw of one call."""

    name: str
    crosses: bool
    sites: dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Layer:
    """Attention that was followed, with the names that it has in a capture."""

    name: str
    module: str
    crosses: bool
    layout: Layout
    sites: dict[str, Tensor]


class Notes:
    """Where one capture writes down what it sees. It belongs to one pass and to one thread."""

    def __init__(self, model: object, batches: Sequence[tuple[int, ...]] = ()) -> None:
        self.modules = dict(model.named_modules()) if isinstance(model, nn.Module) else {}
        self.names = {id(module): name for name, module in self.modules.items()}
        self.batches = batches
        """The first two sizes of each tensor that the model is given."""
        self.differentiates = False
        """Does the model ask for gradients in its forward pass?"""
        self.restart()
        self.paused = False

    def restart(self) -> None:
        """Forget what was seen: the pass begins."""
        self.written: list[Written | Weighing] = []
        """In order of the calls; what is followed is laid out at the end."""
        self.calls: Counter[str] = Counter()
        self.missed: dict[str, str] = {}
        self.remarks: dict[str, str] = {}
        """What is to be said of a module that was seen."""
        self.following = Following(self)
        self.layers: list[Layer] = []
        """Of what was followed, once the pass is over."""
        self.twins: list[Layout] = []
        """What patterns that are shown weigh besides."""

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Look away: what is computed meanwhile is written down by whoever pauses."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def caller(self) -> nn.Module | None:
        """The innermost of the model's modules that is at work on this thread, found on the stack."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            owner = frame.f_locals.get("self")
            if isinstance(owner, nn.Module) and id(owner) in self.names and not isinstance(owner, nn.Softmax):
                return owner
            frame = frame.f_back
        return None

    def call(self, module: nn.Module | None, queries: int, keys: int, *, crosses: bool = False) -> Call:
        """The call of attention that begins in a module, where a door knows its heads."""
        name = self._name(module)
        number = self.calls[name] + 1
        return Call(name, self._spoken(name) + _times(number), crosses or self.crosses(module, queries, keys))

    def crosses(self, module: nn.Module | None, queries: int, keys: int) -> bool:
        """Is it cross-attention, by the module's name, or as there are more keys than queries or fewer?

        It is not where earlier keys were kept for a causal module. PyTorch's decoder layer names its two `self_attn`
        and `multihead_attn`.
        """
        name = self._name(module)
        second = name.endswith("multihead_attn") and f"{name.removesuffix('multihead_attn')}self_attn" in self.modules
        apart = queries != keys and not getattr(module, "is_causal", False)
        return apart or second or CROSS.search(name) is not None

    # --- what a change changes in a pattern that is followed; this pass is as the model asks for it

    def kernel_call(self, number: int) -> Call:
        """The call of a fused kernel, the so-manyth that weighs values."""
        return Call("", "", False)

    def change_scores(self, number: int, scores: Tensor) -> Tensor:
        """The scores that go into the so-manyth softmax."""
        return scores

    def change_pattern(self, number: int, pattern: Tensor) -> Tensor:
        """The pattern that weighs values, the so-manyth that does."""
        return pattern

    def change_result(self, number: int, result: Tensor) -> Tensor:
        """What the so-manyth pattern makes of its values."""
        return result

    # --- what was seen

    def write(self, call: Call, **seen: Tensor) -> None:
        """Keep what one call of attention computed."""
        self.calls[call.module] += 1
        batch, given = len(seen["pattern"]), {size for shape in self.batches for size in shape}
        if batch > 1 and given and batch not in given:
            self.missed[call.module] = BLOCKS.format(batch)
            return
        self.written.append(Written(call.name, call.crosses, {kind: each.detach() for kind, each in seen.items()}))

    def captured(self, output: Any) -> Captured:
        """What was seen of the pass, which is over."""
        self.layers = self._layers()
        by_first = {layer.layout.parts[0]: layer for layer in self.layers}
        sites: dict[str, Tensor] = {}
        crossing: set[str] = set()
        remarks: list[str] = []
        for each in self.written:
            if isinstance(each, Written):
                name, crosses, found, why = each.name, each.crosses, each.sites, ""
            elif each in by_first:
                layer = by_first[each]
                name, crosses, found = layer.name, layer.crosses, layer.sites
                why = lost_to(each, self.following.weighings)
            else:
                continue
            sites |= {f"{name}.{kind}": tensor for kind, tensor in found.items()}
            crossing |= {name} if crosses else set()
            remarks += [f"{name}: {each}." for each in remarks_on(found["pattern"], why)]
        remarks += [f"{self._spoken(name)}: {each}." for name, each in self.remarks.items()]
        return Captured(sites, output, self.unseen(), frozenset(crossing), tuple(remarks))

    def _layers(self) -> list[Layer]:
        """What was followed and is attention, with its names; what is none is said to be missed."""
        weighings = self.following.weighings
        found: list[Layer] = []
        times, doubts = Counter(self.calls), dict[str, str]()
        laid_out, self.twins = layouts(weighings, self.batches)
        for layout in laid_out:
            first = layout.parts[0]
            names = list(dict.fromkeys(self._name(part.module) for part in layout.parts))
            name = _common(names)
            if layout.problem:
                if layout.is_attention:
                    self.missed.setdefault(name, layout.problem)
                elif self._looks_like_attention(name):
                    doubts.setdefault(name, layout.problem)
                continue
            try:
                sites = seen_in(layout)
            except (RuntimeError, ValueError, KeyError):
                self.missed.setdefault(name, UNREAD)
                continue
            times[name] += 1
            pattern = layout.shape
            spoken = self._spoken(name) + _times(times[name])
            found.append(
                Layer(spoken, name, self.crosses(self.modules.get(name, first.module), *pattern), layout, sites)
            )
        weighing = {part.root for part in weighings}
        for root in self.following.roots:
            if root.swallowed and root not in weighing:
                self.missed.setdefault(self._name(root.module), root.refused)
        sure = {*self.missed, *(layer.module for layer in found)}
        self.missed |= {name: why for name, why in doubts.items() if name not in sure}
        return found

    def miss(self, module: nn.Module | None, why: str) -> None:
        """Say what was met and could not be seen."""
        self.missed[self._name(module)] = why

    def remark(self, module: nn.Module | None, what: str) -> None:
        """Say what whoever looks at a module's attention has to know."""
        self.remarks[self._name(module)] = what

    def unseen(self) -> tuple[str, ...]:
        """What was met and could not be seen; then the outermost modules that look as if they attended, unseen."""
        words = [f"{some_of(names)}: {why}." for why, names in self._by_reason().items()]
        met = {*self.calls, *self.missed, *(layer.module for layer in self.layers)}
        met |= {self._name(part.module) for layer in self.layers for part in layer.layout.parts}
        silent: list[str] = []
        for name, module in self.modules.items():
            kin = (_within(place, name) or (place and _within(name, place)) for place in met)
            if (
                ATTENTION.search(type(module).__name__)
                and not any(kin)
                and not any(_within(name, one) for one in silent)
            ):
                silent.append(name)
                words.append(
                    f"{self._spoken(name)} ({type(module).__name__}): no attention was seen in it. {self._why(name)}"
                )
        if not met and not silent and self.modules:
            words.append(f"{self._spoken('')}: no attention was seen in it. {self._why('')}")
        return tuple(words)

    def _by_reason(self) -> dict[str, list[str]]:
        """The modules that were met and not seen, by why."""
        found: dict[str, list[str]] = {}
        for name, why in self.missed.items():
            found.setdefault(why, []).append(self._spoken(name))
        return found

    def _why(self, name: str) -> str:
        """Why nothing was seen in a module, as far as that can be told."""
        inside = [each for each in self.modules if _within(each, name)]
        if any(_is_scripted(self.modules[each]) for each in inside):
            return SCRIPTED
        roots = [root for root in self.following.roots if _within(self._name(root.module), name)]
        refused = [root.refused for root in roots if root.refused]
        if refused:
            return f"{refused[0][0].upper()}{refused[0][1:]}."
        if any(not root.exponential for root in roots):
            return "A softmax was called in it, and what it gives was not seen to weigh anything over tokens."
        if any(each in self.following.used for each in inside):
            return (
                "It was called, and no softmax was: it is written without one, or computes it by a kernel of its own."
            )
        if any(True for each in inside for _ in self.modules[each].parameters(recurse=False)):
            return "No function of PyTorch's met its weights: it was not called, or computes by a kernel of its own."
        return "No softmax was called in it."

    def _looks_like_attention(self, name: str) -> bool:
        parts = name.split(".") if name else []
        outer = (".".join(parts[:many]) for many in range(len(parts) + 1))
        return any(each in self.modules and ATTENTION.search(type(self.modules[each]).__name__) for each in outer)

    def _name(self, module: nn.Module | None) -> str:
        return "" if module is None else self.names.get(id(module), "")

    def _spoken(self, name: str) -> str:
        return name or (type(self.modules[""]).__name__ if self.modules else "attention")


SCRIPTED = (
    "It is scripted or traced (torch.jit), so what goes on in it cannot be seen. Capture the model that it was made of."
)


def _is_scripted(module: nn.Module) -> bool:
    return isinstance(module, torch.jit.ScriptModule)


def some_of(names: Sequence[str]) -> str:
    """The first few of many names."""
    first, more = names[:LISTED], len(names) - LISTED
    return f"{', '.join(first)} and {more} more" if more > 0 else listed(first)


def _times(number: int) -> str:
    return f"#{number}" if number > 1 else ""


def _common(names: Sequence[str]) -> str:
    """The module that holds all of these, by its name."""
    if len(names) == 1:
        return names[0]
    first, *rest = (name.split(".") for name in names)
    shared = []
    for at, word in enumerate(first):
        if any(other[at : at + 1] != [word] for other in rest):
            break
        shared.append(word)
    return ".".join(shared)


def _within(inner: str, outer: str) -> bool:
    return not outer or inner == outer or inner.startswith(f"{outer}.")
