"""The one way to look inside a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.edits import Edit, EditError
from transformer.foundation.checks import UserError
from transformer.foundation.interruption import go_on
from transformer.network import Network
from transformer.positions import PlaceError
from transformer.tasks import Batch
from transformer.trace import Recorder, Remember, only

PAGES = "attention_lab.pages"
"""The group of entry points that draw pages: the library knows nobody who does, what is installed beside it says so."""


class PageError(UserError):
    """Nothing is installed that draws a page."""


class Seen:
    """Tensors by the names of their sites, in the order in which the data passed."""

    sites: dict[str, Tensor]

    def __getitem__(self, site: str) -> Tensor:
        """The tensor at a site. Raises KeyError with the sites that end alike when there is none."""
        if site not in self.sites:
            kind = site.rsplit(".", 1)[-1]
            alike = [name for name in self.sites if name.endswith(kind)] or list(self.sites)
            raise KeyError(f"no site {site!r}; there are {', '.join(alike)}")
        return self.sites[site]

    def attentions(self) -> tuple[str, ...]:
        """The attention modules in order of the data's way: "decoder.0.self_attention" …"""
        return tuple(site.removesuffix(".pattern") for site in self.sites if site.endswith(".pattern"))

    def to_html(self, path: Path | str, names: Sequence[str] = (), **how: Any) -> Path:
        """Write all heads as one page that opens without a server and without a network; see `dashboard.to_html`.

        `names` are the tokens that the predicting stack read. Raises PageError where the dashboard is not installed.
        """
        drawn = entry_points(group=PAGES, name="html")
        if not drawn:
            raise PageError("A page of all heads is drawn by the dashboard: pip install attention-lab.")
        written: Path = next(iter(drawn)).load()(self, path, names, **how)
        return written


@dataclass(frozen=True)
class Observation(Seen):
    """One forward pass with all that was computed on the way. The model keeps nothing of it.

    `seen["decoder.0.self_attention.pattern"]` is the tensor at a site, [batch, head, query, key] here. A site that is
    not there raises KeyError, which names those that end alike. `seen.attentions()` are the attention modules.
    """

    tokens: Int[Tensor, "batch position"]
    logits: Float[Tensor, "batch position d_vocab"]
    sites: dict[str, Tensor]
    """Every named site, in the order in which the data passed: "decoder.0.self_attention.pattern" …"""
    source: Int[Tensor, "batch source"] | None = None


def tensors(model: Network, batch: Batch) -> tuple[Int[Tensor, "batch position"], Int[Tensor, "batch source"] | None]:
    """The tokens and the source of a batch as tensors, on the device that the model is on."""
    device = next(model.parameters()).device
    source = None if batch.source is None else torch.from_numpy(batch.source).to(device)
    return torch.from_numpy(batch.tokens).to(device), source


@torch.no_grad()
def observe(
    model: Network,
    tokens: Int[Tensor, "batch position"],
    edits: Sequence[Edit] = (),
    *,
    source: Int[Tensor, "batch source"] | None = None,
    remember: Remember | None = None,
) -> Observation:
    """Run the model once and return its logits and every named site.

    The model is run in evaluation mode and left in the mode it was in. Without edits the logits are, bit for bit,
    those of a plain call; where there are so many keys that a plain call takes the fused kernel, they are to rounding.
    `remember(site, value)` says what to keep of each site, for inputs so long that all patterns together would not fit
    into memory; without it, everything is kept.
    Tokens and source may be on any device: they are read on that of the model, and everything recorded is on it.
    Raises EditError when an edit met no site, and when one that says what shall change (scale, shift, swap, patch from
    another model, remove positions) left every number as it was: such an edit is never silently without effect. One
    that says what shall be (a head is zero, a mask is this) may find it so already: that a removal costs nothing is a
    finding.
    """

    def look(other: Network, site: str) -> Tensor | None:
        return observe(other, tokens, source=source, remember=only(site)).sites.get(site)

    go_on()
    device = next(model.parameters()).device
    tokens, source = tokens.to(device), None if source is None else source.to(device)
    recorder = Recorder([edit.begun(look) for edit in edits], remember)
    training = model.training
    if training:
        model.eval()
    try:
        logits = model(tokens, source, trace=recorder)
    except PlaceError as error:
        raise EditError(str(error)) from None
    finally:
        if training:
            model.train()
    for index, edit in enumerate(recorder.edits):
        if index not in recorder.met:
            raise EditError(f"the edit “{edit.words}” met no site: this model has nothing that matches {edit.site!r}")
        if edit.must_change and index not in recorder.changed:
            raise EditError(f"{edit.words}: this changed no number")
    return Observation(tokens, logits, recorder.sites, source)
