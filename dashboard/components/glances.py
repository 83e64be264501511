"""Draws what every head looked at in a text: the text in small once for each head, its words as coloured blocks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dashboard.components.appearance import palette
from dashboard.components.payload import Body, pack
from dashboard.components.registration import renderer
from dashboard.theme import pattern_colours

HTML = """
<div class="glances" role="application" tabindex="0" aria-describedby="help">
  <canvas class="base"></canvas>
  <canvas class="overlay"></canvas>
</div>
<div class="foot"><p class="sentence" role="status" aria-live="polite"
  data-hint="Point at a head to read what it looked at most; click to see it in the text."></p></div>
<p class="help" id="help">Arrow keys choose a head. Point at a word to read how much a head looked at it.</p>
"""


def glances(
    tokens: Sequence[str],
    heads: Sequence[tuple[int, int]],
    weights: np.ndarray,
    *,
    key: str,
    alt: str,
    query: int,
    chosen: int | None = None,
    on_choose: Callable[[], None] | None = None,
) -> None:
    """Draw `weights`, float [head, token], once for each of `heads`, (layer, head) from 0; nan is what none may see.

    Each is coloured from 0 to its own greatest weight, which stands beside its name. `query` is the token, from 0,
    that looks. `chosen` is outlined. In `on_choose` the index of the head chosen by click or arrow key is
    `st.session_state[key]["choose"]`.
    """
    colours = palette()
    mount = renderer("glances", html=HTML, isolate_styles=True)
    data = pack_glances(
        tokens,
        heads,
        weights,
        key=key,
        alt=alt,
        colours=pattern_colours(colours.dark),
        accent=colours.accent,
        query=query,
        chosen=chosen,
    )
    mount(key=key, data=data, on_choose_change=on_choose or (lambda: None))


def pack_glances(
    tokens: Sequence[str],
    heads: Sequence[tuple[int, int]],
    weights: np.ndarray,
    *,
    key: str,
    alt: str,
    colours: np.ndarray,
    accent: str,
    query: int,
    chosen: int | None = None,
) -> bytes:
    """The message for the browser: the weights as float32 in the body; `colours` is the scale, uint8 [256, 3]."""
    if not alt.strip():
        raise ValueError("Glances need alt: one sentence that says in words what they show.")
    if weights.shape != (len(heads), len(tokens)):
        raise ValueError(f"The weights are {list(weights.shape)} for {len(heads)} heads and {len(tokens)} tokens.")
    if chosen is not None and not 0 <= chosen < len(heads):
        raise ValueError(f"The head chosen is one of 0 to {len(heads) - 1}, not {chosen}.")
    body = Body()
    header: dict[str, Any] = {
        "key": key,
        "alt": alt,
        "tokens": list(tokens),
        "heads": [list(head) for head in heads],
        "accent": accent,
        "query": query,
        "chosen": chosen,
        "weights": body.add(np.ascontiguousarray(weights, dtype="<f4").tobytes()),
        "colours": body.add(np.ascontiguousarray(colours).tobytes()),
    }
    return pack(header, bytes(body.data))
