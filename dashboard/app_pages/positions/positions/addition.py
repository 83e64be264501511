"""One token: its vector plus that of its position is what the first block reads; or what takes the sum's place."""

from __future__ import annotations

import streamlit as st

from dashboard.app_pages.positions.positions.figures.addition import addition_rows
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import written
from dashboard.models import positions as models_positions
from dashboard.models.model import Model
from dashboard.parts.prose import capital, encoding_name, plain, with_positions
from dashboard.parts.widgets import bound_token
from dashboard.view import session
from transformer.positions import described

MOST_BUTTONS = 17


def token_and_position(model: Model, name: str) -> None:
    """The three rows for a token of the input, at its own place."""
    st.markdown("**Token vector + position vector** = what the first block reads")
    kind = described(name)
    if kind.told != "vectors":
        nothing = "Nothing takes its place: only the mask can tell the order."
        instead = nothing if kind.told == "nowhere" else f"Instead each head {kind.does}."
        st.caption(f"{capital(with_positions(name))} no vector is added to a token's embedding. {instead}")
        return
    tokens = model.task.encode([session.question(model)]).tokens[0]
    words = [model.task.vocabulary[token] for token in tokens]
    place = bound_token(
        "Token",
        words,
        0,
        lambda place: f"There is no token at {place}: {len(words)} are read. The page shows the first.",
        most=MOST_BUTTONS,
    )
    found = models_positions.addition(model, name, int(tokens[place]), place)
    if found is None:
        st.caption("This encoding has another width here than the tokens, so the two cannot be added.")
        return
    width = len(found.token)
    column = session.named("sum_column", range(width), 0, lambda n: f"There is no dimension {n}: this is dimension 0.")

    def clicked() -> None:
        click = st.session_state["addition"]["click"] or {}
        if isinstance(click.get("column"), int) and 0 <= click["column"] < width:
            session.update(sum_column=click["column"] or None)

    times = f" × √{width}" if found.factor != 1 else ""
    token, position, total = (written(float(each[column]), 2) for each in (found.token, found.position, found.total))
    said = (
        f"In dimension {column}, '{plain(words[place])}'{times} has {token} and position {place + 1} adds {position}: "
        f"the first block reads {total}."
    )
    figure = coloured(
        addition_rows,
        found.token,
        found.position,
        names=(f"'{words[place]}'{times}", f"position {place + 1}", "sum"),
        column=column,
    )
    plot(figure, key="addition", alt=said, height=210, on_click=clicked)
    own = model.config.model.positions
    whose = "" if name == own else f" The token is this model's, the {encoding_name(name)} position is not."
    st.caption(f"{said} Click a column to read it.{whose}")
