"""All heads of one forward pass, shown where the code is written: in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import plotly.graph_objects as go
import torch
from torch import Tensor, nn

from dashboard.parts.notebook.document import all_heads
from dashboard.parts.notebook.heads import ShowError, clearest, head_named
from transformer.capturing.capture import capture
from transformer.foundation.foreign import quoted
from transformer.network import Network
from transformer.observation import Seen, observe

if TYPE_CHECKING:
    from dashboard.parts.notebook.widget import HeadsWidget

HOW = (
    'The grid of all heads needs one library more: pip install "attention-lab[notebook]". '
    "Until then one head is shown, as a Plotly figure; choose another by focus."
)


def show(
    seen: Seen | nn.Module,
    tokens: Tensor | Sequence[int] | None = None,
    names: Sequence[str] = (),
    *,
    sources: Sequence[str] = (),
    sequence: int = 0,
    focus: str = "",
) -> HeadsWidget | go.Figure:
    """Show all heads in a notebook, and the one that is clicked large, without a server.

    `show(observation)` and `show(captured)` show what `observe` and `capture` returned; `show(model, tokens, names)`
    runs the model first, ours or any other. `names` are the tokens that the predicting stack read, `sources` those of
    an encoder beside it. `sequence` is that of a batch which is shown, counted from 0. `focus` is the head that is
    large at first, "1.3"; without it, the one that decides most clearly. Without anywidget it says how to get it, and
    returns that head alone. Raises UserError for what cannot be shown.
    """
    if not isinstance(seen, Seen):
        seen = _run(seen, tokens)
    shown = all_heads(seen, names, sources, sequence)
    first = head_named(focus, shown.heads) if focus else clearest(shown.attentions)
    if find_spec("anywidget") is None:
        print(HOW, *shown.remarks, sep="\n")
        return shown.figure(first)
    from dashboard.parts.notebook.widget import HeadsWidget

    return HeadsWidget(shown, first)


def _run(model: nn.Module, tokens: Tensor | Sequence[int] | None) -> Seen:
    if not isinstance(model, nn.Module):
        raise ShowError(f"What is shown is an observation, a capture, or a model and its tokens, not {quoted(model)}.")
    if tokens is None:
        raise ShowError("A model is shown on tokens: show(model, tokens, names).")
    try:
        given = torch.as_tensor(tokens)
    except (TypeError, ValueError, RuntimeError):
        raise ShowError(f"Tokens are a list of whole numbers, not {quoted(tokens)}.") from None
    if given.dim() == 1:
        given = given[None]
    place = next(model.parameters(), given).device
    return observe(model, given.to(place)) if isinstance(model, Network) else capture(model, given.to(place))
