"""How the model is told the order of its tokens."""

import numpy as np
import streamlit as st

from dashboard import session
from dashboard.attention import palette
from dashboard.components.plot import plot
from dashboard.controls import bound_choice, pick_dimensions
from dashboard.figures import encodings
from dashboard.prose import show_code
from dashboard.whatif import what_if
from transformer.analysis.encodings import similarity, table_of
from transformer.config import POSITIONS
from transformer.positions import ENCODINGS

model = session.chosen()
own = model.config.model.positions
title = st.container()
menu = [own, *(name for name in POSITIONS if name != own)]
name = bound_choice(
    st.segmented_control,
    "Encoding",
    "encoding",
    menu,
    own,
    format_func=lambda n: f"{n} (this model's)" if n == own else n,
)
table = table_of(model.network(), name)
kind = ENCODINGS[name]
similar = similarity(table.values)
off_diagonal = similar[~np.eye(len(similar), dtype=bool)]
st.markdown(f"{kind.description[0].upper()}{kind.description[1:]}. $\\quad {kind.formula}$")
if table.note:
    st.caption(table.note)

positions, dimensions = table.values.shape
if name == "none":
    title.title("Without an encoding the tokens are a bag: no position differs from another.", anchor=False)
elif positions == 1:
    title.title("One position only: there is no order to be told.", anchor=False)
elif name == "alibi":
    title.title("ALiBi tells distances: each head subtracts its own price for looking far.", anchor=False)
else:
    nearest = np.mean(np.diagonal(similar, 1) / np.sqrt(np.diagonal(similar)[1:] * np.diagonal(similar)[:-1]))
    nearest = round(float(nearest), 2) + 0.0  # not "-0.00"
    title.title(f"Neighbouring positions have a cosine of {nearest:.2f} in the {name} encoding.", anchor=False)

left, right = st.columns([1.3, 1], gap="large")
with left:
    st.markdown(f"**{positions} positions × {dimensions}** · column: {table.columns}")
    sentence = (
        f"{name.capitalize()} encoding: {positions} positions by {dimensions} columns, values from "
        f"{table.values.min():.2f} to {table.values.max():.2f}."
    )
    figure = encodings.encoding_heatmap(table.values, title_x=table.columns, palette=palette())
    plot(figure, key="encoding", alt=sentence, height=400)
    st.caption(sentence)
with right:
    st.markdown("**How alike positions are** · PE · PEᵀ")
    figure = encodings.similarity_heatmap(similar, palette=palette())
    sentence = (
        f"A position with itself: {np.diagonal(similar).mean():.1f} on average; with another: "
        f"{off_diagonal.min():.1f} to {off_diagonal.max():.1f}."
        if len(off_diagonal)
        else f"A single position: {similar[0, 0]:.1f}."
    )
    plot(figure, key="similarity", alt=sentence, height=400)
    st.caption(sentence)

st.markdown("**Waves**: how single dimensions run over the positions")
chosen = pick_dimensions(dimensions)
if chosen:
    figure = encodings.encoding_waves(table.values, chosen, [f"{table.short} {i}" for i in chosen], palette=palette())
    plot(figure, key="waves", alt=f"Dimensions {', '.join(map(str, chosen))} over {positions} positions.", height=300)
else:
    st.info("Choose at least one dimension to see its wave.")
what_if(f"with {name} positions" if name != "none" else "without positions", model.config, positions=name)
show_code(f"{kind.__module__}.{kind.__name__}")
