"""What was seen of a model that is not ours: every attention's tensors, by the name of the module that attended."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torch import Tensor, nn

from transformer.foundation.checks import UserError
from transformer.observation import Seen

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

    def scores(self, own: Tensor) -> Tensor:
        """The scores [*, query, key] that go into softmax, where the mask is in them already."""
        return own

    def rows(self, values: Tensor) -> Tensor:
        """Patterns or results [*, query, width]."""
        return values

    def heads(self, values: Tensor) -> Tensor:
        """What heads hand on, [*, head, query, width]."""
        return values


class Notes:
    """Where one capture writes down what it sees. It belongs to one pass and to one thread."""

    def __init__(self, model: object) -> None:
        self.modules = dict(model.named_modules()) if isinstance(model, nn.Module) else {}
        self.names = {id(module): name for name, module in self.modules.items()}
        self.sites: dict[str, Tensor] = {}
        self.crossing: set[str] = set()
        self.calls: Counter[str] = Counter()
        self.missed: dict[str, str] = {}
        self.paused = False

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
        """The call of attention that begins in a module.

        It is cross-attention where the door knows it, where the module's name says it, and where there are more keys
        than queries or fewer; not where earlier keys were kept for a causal module. PyTorch's decoder layer names its
        two `self_attn` and `multihead_attn`.
        """
        name = self._name(module)
        number = self.calls[name] + 1
        second = name.endswith("multihead_attn") and f"{name.removesuffix('multihead_attn')}self_attn" in self.modules
        apart = queries != keys and not getattr(module, "is_causal", False)
        crosses = crosses or apart or second or CROSS.search(name) is not None
        return Call(name, self._spoken(name) + (f"#{number}" if number > 1 else ""), crosses)

    def write(self, call: Call, **seen: Tensor) -> None:
        """Keep what one call of attention computed."""
        self.calls[call.module] += 1
        self.sites |= {f"{call.name}.{kind}": tensor.detach() for kind, tensor in seen.items()}
        if call.crosses:
            self.crossing.add(call.name)

    def captured(self, output: Any) -> Captured:
        """What was seen of the pass, which is over."""
        return Captured(self.sites, output, self.unseen(), frozenset(self.crossing))

    def miss(self, module: nn.Module | None, why: str) -> None:
        """Say what was met and could not be seen."""
        self.missed[self._name(module)] = why

    def unseen(self) -> tuple[str, ...]:
        """What was met and could not be seen; then the outermost modules that look as if they attended, unseen."""
        words = [f"{self._spoken(name)}: {why}." for name, why in self.missed.items()]
        met = {*self.calls, *self.missed}
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
                    f"{self._spoken(name)} ({type(module).__name__}): no attention was seen in it. It was not called, "
                    "or is compiled, or computes by a kernel of its own."
                )
        return tuple(words)

    def _name(self, module: nn.Module | None) -> str:
        return "" if module is None else self.names.get(id(module), "")

    def _spoken(self, name: str) -> str:
        return name or (type(self.modules[""]).__name__ if self.modules else "attention")


def _within(inner: str, outer: str) -> bool:
    return not outer or inner == outer or inner.startswith(f"{outer}.")
