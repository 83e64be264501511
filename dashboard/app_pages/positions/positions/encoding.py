"""An encoding as a table of positions: its sizes, its waves, and how alike positions are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dashboard.app_pages.positions.positions.settings import MOST_LONG, MOST_WIDE, PositionsSettings
from dashboard.components.plot import coloured, plot
from dashboard.figures import encodings
from dashboard.figures.kit.numbers import short, signed, tiny
from dashboard.models import positions as models_positions
from dashboard.models.model import Model
from dashboard.parts.prose import capital, encoding_name
from dashboard.parts.widgets import bound_choice, bound_number, controlled
from dashboard.view import session
from transformer.foundation.claims import claim
from transformer.foundation.words import counted
from transformer.positions import Told, described

BASES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
MOST_TICKS = 4
TURNING = ("sinusoidal", "rotary")


@dataclass(frozen=True)
class Shown:
    """The table on the page, and where it comes from."""

    model: Model
    name: str
    values: np.ndarray
    """Float [position, dimension]."""
    columns: str
    short: str
    note: str
    base: int | None
    """Of an encoding whose pairs turn; None for any other."""

    @property
    def told(self) -> Told:
        """Where it tells a model of positions."""
        return described(self.name).told

    @property
    def title(self) -> str:
        """At the head of a sentence."""
        return capital(encoding_name(self.name))

    @property
    def wavelengths(self) -> np.ndarray | None:
        """Float [pair], in positions."""
        from transformer.analysis.encodings import wavelengths

        return None if self.base is None else wavelengths(self.values.shape[1], self.base)

    @property
    def parts(self) -> tuple[str, str]:
        """What the two dimensions of a pair are."""
        return ("sine", "cosine") if self.name == "sinusoidal" else ("cosine", "sine")

    def said(self, dimension: int) -> str:
        """A dimension in words: "12 (pair 6, sine, wavelength 35.3)"."""
        waves = self.wavelengths
        if waves is None:
            return str(dimension)
        part = self.parts[dimension % 2]
        return f"{dimension} (pair {dimension // 2}, {part}, wavelength {short(waves[dimension // 2])})"


# --- which table


def pick_table(model: Model, name: str) -> tuple[Shown, int]:
    """The sliders of an encoding, the table that they describe, and the position of the cursor, from 1."""
    sizes, n_ctx = model.config.model, model.network().n_ctx
    own_length = min(n_ctx, MOST_LONG)
    if name not in TURNING:
        first, second = st.columns(2, gap="large")
        with first:
            length = _pick_length(own_length, own_length)
        with second:
            cursor = _pick_cursor(length)
        table = models_positions.table(model, name)
        values = table.values[:length].astype(np.float64)
        cut = f"the first {MOST_WIDE} of {values.shape[1]} columns" if values.shape[1] > MOST_WIDE else ""
        cut += f"{' and ' if cut else ''}the first {MOST_LONG} of {n_ctx} positions" if n_ctx > MOST_LONG else ""
        note = f"{table.note} Drawn are {cut}." if cut else table.note
        return Shown(model, name, values, table.columns, table.short, note.strip(), None), cursor
    from transformer.analysis.encodings import turning_table

    label, own_width = (
        (r"$d_{\text{model}}$", sizes.d_model) if name == "sinusoidal" else (r"$d_{\text{head}}$", sizes.d_head)
    )
    columns = st.columns(4, gap="medium")
    with columns[0]:
        width = bound_number(
            f"Width d, {label}", "pe_width", min(own_width + own_width % 2, MOST_WIDE), 2, MOST_WIDE, step=2
        )
    with columns[1]:
        length = _pick_length(own_length, MOST_LONG)
    with columns[2]:
        base = _pick_base()
    with columns[3]:
        cursor = _pick_cursor(length)
    table = turning_table(name, length, width, base)
    elsewhere = name == sizes.positions and (width, length, base) != (own_width, n_ctx, PositionsSettings().base)
    note = f"This model's own sizes: width {own_width}, {n_ctx} positions, base 10,000." if elsewhere else ""
    return Shown(model, name, table.values, table.columns, table.short, note, base), cursor


def _pick_length(own: int, most: int) -> int:
    return bound_number("Length, positions", "pe_length", own, 1, most, also={"cursor": None, "shift": 1})


def _pick_cursor(length: int) -> int:
    return bound_number("Cursor: position", "cursor", (length + 1) // 2, 1, length)


def _pick_base() -> int:
    base = bound_choice(
        st.select_slider,
        "Base b",
        "base",
        BASES,
        PositionsSettings().base,
        missing=lambda base: f"The base is 10, 100 … 1,000,000, not {base:,}; this is 10,000.",
        format_func=lambda base: f"{base:,}",
    )
    return int(base)


# --- the table and its waves

ALIKE = ((0.8, "similar"), (0.3, "somewhat similar"), (-0.3, "nearly unrelated"), (-0.8, "somewhat opposite"))
"""From which cosine on two vectors are called what; below the last they point in opposite directions."""


@claim
def headline(shown: Shown) -> str:
    """How alike neighbours are, as a sentence; of an encoding that has no vectors what it does."""
    if shown.told != "vectors" and shown.base is None:
        return f"{shown.title} positions: each head {described(shown.name).does}."
    if len(shown.values) == 1:
        return "There is only one position, so there is no order to encode."
    norms = np.linalg.norm(shown.values, axis=1)
    if not norms.all():
        return f"{shown.title} positions: {len(shown.values)} rows, some of them all zero."
    near = float(np.mean(np.sum(shown.values[1:] * shown.values[:-1], axis=1) / (norms[1:] * norms[:-1])))
    alike = next((words for least, words in ALIKE if near >= least), "opposite")
    return f"{shown.title} positions: neighbours are {alike}, cosine {signed(near)} on average."


def pictures(shown: Shown, cursor: int) -> list[int]:
    """The table, its waves, and how alike positions are, where they have vectors. Returns the chosen dimensions."""
    if shown.told != "vectors" and shown.base is None:
        _table(shown, cursor)
        return _waves(shown, cursor)
    left, right = st.container(key="positions-row").columns([1.3, 1], gap="large")
    with left:
        _table(shown, cursor)
        if described(shown.name).learned:
            _sinusoid(shown)
        chosen = _waves(shown, cursor)
    with right:
        _alike(shown, cursor)
    return chosen


def _table(shown: Shown, cursor: int) -> None:
    drawn, waves = shown.values[:, :MOST_WIDE], shown.wavelengths
    positions, dimensions = drawn.shape
    st.markdown(f"**{positions} positions × {shown.values.shape[1]}** · column: {shown.columns}")
    sentence = table_sentence(shown)
    columns = ticks = None
    title = shown.columns
    parts: tuple[str, ...] = (f"every {shown.short}",)
    if waves is not None:
        parts = shown.parts
        columns = [shown.said(i) for i in range(dimensions)]
        places = sorted({2 * round(i * (len(waves) - 1) / MOST_TICKS) for i in range(MOST_TICKS + 1)})
        ticks = {i: f"{i}\n{short(waves[i // 2])}" for i in places}
        title += "; below, wavelength"
    figure = coloured(
        encodings.encoding_heatmap, drawn, title_x=title, columns=columns, ticks=ticks, cursor=cursor, parts=parts
    )
    _with_cursor(shown, figure, key="encoding", alt=sentence, height=480)
    st.caption(f"{sentence} Position 1 is p = 0 in the formula. Drag the framed row, or press ↑ and ↓ in the figure.")


def _with_cursor(shown: Shown, figure: go.Figure, *, key: str, alt: str, height: int) -> None:
    """Draw a figure whose cursor can be dragged; where it is let go, the page's cursor stands."""

    def let_go() -> None:
        place = (st.session_state[key]["click"] or {}).get("cursor")
        if isinstance(place, int) and 1 <= place <= len(shown.values):
            session.update(cursor=place)

    plot(figure, key=key, alt=alt, height=height, on_click=let_go)


@claim
def table_sentence(shown: Shown) -> str:
    """Of how many numbers the table that is drawn is, from what to what they and its wavelengths run."""
    drawn, waves = shown.values[:, :MOST_WIDE], shown.wavelengths
    positions, columns = drawn.shape
    low, high = signed(drawn.min()), signed(drawn.max())
    run = f"values from {low} to {high}" if low != high else f"all values {low}"
    said = f"{shown.title} encoding: {counted(positions, 'position')} by {counted(columns, 'column')}, {run}."
    if waves is None:
        return said
    if len(waves) == 1:
        return f"{said} The wavelength is {short(waves[0])} positions."
    return f"{said} Wavelengths run from {short(waves[0])} to {short(waves[-1])} positions."


def _sinusoid(shown: Shown) -> None:
    """The sinusoidal encoding of the same size, under one that was learned."""
    from transformer.analysis.encodings import turning_table

    positions, width = shown.values.shape
    table = turning_table("sinusoidal", positions, width + width % 2, PositionsSettings().base).values[:, :MOST_WIDE]
    sentence = f"For comparison: the sinusoidal encoding of {positions} positions and {width + width % 2} dimensions."
    plot(coloured(encodings.encoding_heatmap, table), key="sinusoid", alt=sentence, height=260)
    st.caption(f"{sentence} It is a formula, so its columns are waves from the start; a learned table starts as noise.")


def _waves(shown: Shown, cursor: int) -> list[int]:
    st.markdown("**Waves**: how single dimensions run over the positions")
    chosen = pick_dimensions(shown.values.shape[1])
    values = ", ".join(f"{i}: {signed(shown.values[cursor - 1, i])}" for i in chosen)
    sentence = f"At position {cursor}, by {shown.short}: {values}."
    names = [f"{shown.short} {i}" for i in chosen]
    figure = coloured(encodings.encoding_waves, shown.values, chosen, names, cursor=cursor)
    alt = f"Waves over {len(shown.values)} positions. {sentence}"
    _with_cursor(shown, figure, key="waves", alt=alt, height=300)
    st.caption(sentence)
    return chosen


def _alike(shown: Shown, cursor: int) -> None:
    from transformer.analysis.encodings import profile, similarity

    st.markdown("**How alike positions are** · PE · PEᵀ")
    similar = similarity(shown.values)
    sentence = alike_sentence(shown.name, similar)
    figure = coloured(encodings.similarity_heatmap, similar, cursor=cursor)
    _with_cursor(shown, figure, key="similarity", alt=sentence, height=480)
    st.caption(sentence)
    if len(similar) < 2:
        return
    st.markdown("**Similarity by distance** · mean, least and greatest")
    found, words = profile(similar), distance_sentence(similar)
    figure = coloured(encodings.distance_profile, found.mean, found.low, found.high)
    plot(figure, key="profile", alt=f"From {found.mean[0]:.1f} at distance 0. {words}", height=300)
    st.caption(words)


@claim
def alike_sentence(name: str, similar: np.ndarray) -> str:
    """From what to what the products of two positions run, float [position, position]."""
    others = similar[~np.eye(len(similar), dtype=bool)]
    if len(others):
        low, high = signed(others.min(), 1), signed(others.max(), 1)
        run = f"{low} to {high}" if low != high else low
        said = f"A position with itself: {np.diagonal(similar).mean():.1f} on average; with another: {run}."
    else:
        said = f"A single position: {similar[0, 0]:.1f}."
    pairs = " This is the score of a query and a key in which every pair of numbers is (1, 0)."
    return f"{said}{pairs if name == 'rotary' else ''}"


@claim
def distance_sentence(similar: np.ndarray) -> str:
    """Whether these products go by the distance of two positions alone."""
    from transformer.analysis.encodings import spread

    apart = spread(similar)
    if apart < 1e-9 * max(1.0, float(np.abs(similar).max())):
        return f"All pairs of positions that are equally far apart agree to {tiny(apart)}: only the distance matters."
    pairs = f"Pairs that are equally far apart differ by up to {apart:.3g}"
    return f"{pairs}: the positions matter too, not only the distance."


MOST_WAVES = 8
"""More dimensions than this, and their waves cannot be told apart."""


def pick_dimensions(width: int) -> list[int]:
    """Which dimensions are drawn as waves."""
    first = sorted({0, 1, width // 4, width // 2, width - 1} & set(range(width)))
    text = session.mine(PositionsSettings).dimensions
    named = {int(part) for part in text.split(",") if part.strip().isdecimal() and int(part) < width}
    kept = sorted(named)[:MOST_WAVES] or first

    def picked(found: list[int]) -> None:
        if all(isinstance(i, int) for i in found):  # else the browser still speaks of the model before, as text
            session.update(dimensions=",".join(str(i) for i in sorted(found)))

    controlled(
        st.multiselect,
        "Dimensions",
        list(range(width)),
        key="control-dimensions",
        value=kept,
        picked=picked,
        max_selections=MOST_WAVES,
    )
    return kept
