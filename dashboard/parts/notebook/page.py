"""All heads of one forward pass as one HTML file that needs no server and no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dashboard.components.documents.pages import hand_out
from dashboard.parts.notebook.document import all_heads
from dashboard.parts.notebook.heads import ShowError, clearest, head_named
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.checks import reason
from transformer.foundation.foreign import shortened
from transformer.observation import Seen


def to_html(
    seen: Seen,
    path: Path | str,
    names: Sequence[str] = (),
    *,
    sources: Sequence[str] = (),
    sequence: int = 0,
    focus: str = "",
    title: str = "",
    dark: bool = False,
) -> Path:
    """Write the heads of what `observe` or `capture` returned as one page: all are small, the one clicked is large.

    The page holds everything that it shows, sends no request, and opens without a network. `names` are the tokens that
    the predicting stack read, `sources` those of an encoder beside it. `sequence` is that of a batch which is shown,
    counted from 0. `focus` is the head that is large at first, "1.3"; without it, the one that decides most clearly.
    Returns the path. Raises UserError for names that do not fit, for a sequence or a head that is not there, and where
    the file cannot be written.
    """
    shown = all_heads(seen, names, sources, sequence, title=title, dark=dark)
    first = head_named(focus, shown.heads) if focus else clearest(shown.attentions)
    text = hand_out(shown.headline, [shown.document(first, whole=True)])
    path = Path(path)
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise ShowError(f"The page cannot be written to “{shortened(str(path))}”: {reason(error)}.") from None
    return path
