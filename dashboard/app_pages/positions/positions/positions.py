"""How the model is told the order of its tokens: each encoding, drawn from its formula or from the weights."""

import streamlit as st

from dashboard.app_pages.positions.positions import addition, alibi_and_none, bias, encoding, rotation
from dashboard.app_pages.positions.positions.what_if import what_if
from dashboard.parts.prose import capital, encoding_name, show_code, with_positions
from dashboard.parts.widgets import bound_choice, late_title
from dashboard.view import session
from transformer.positions import ENCODINGS, described

SHIFT = "transformer.analysis.encodings.shift"
CODE = {
    "sinusoidal": ("transformer.positions.sinusoidal.sinusoids", "transformer.positions.angles", SHIFT),
    "rotary": ("transformer.positions.rotary.Rotary", "transformer.positions.angles", SHIFT),
    "alibi": ("transformer.positions.alibi.slopes", "transformer.positions.alibi.penalties"),
    "learned": ("transformer.positions.learned.Learned", "transformer.analysis.encodings.fit_shift"),
    "none": ("transformer.positions.none.NoPositions", "transformer.analysis.encodings.read_backwards"),
}

title = late_title()
model = session.chosen()
own = model.config.model.positions
name = bound_choice(
    st.segmented_control,
    "Encoding",
    "encoding",
    [own, *(name for name in ENCODINGS.names() if name != own)],
    own,
    also={"pe_width": None, "pe_length": None, "cursor": None, "shift": 1, "dimensions": ""},
    format_func=lambda n: f"{encoding_name(n)} (this model's)" if n == own else encoding_name(n),
)
kind = described(name)
formula = f" $\\quad {kind.formula}$" if kind.formula else ""
st.markdown(f"{capital(kind.description)}.{formula}")
if kind.told in ("bias", "rotation") and model.task.has_source:
    st.caption("This applies only to self-attention. Where the decoder looks at the source, positions are not used.")
if name == "alibi":
    headline = alibi_and_none.penalised(model)
elif kind.told == "nowhere":
    headline = alibi_and_none.unordered(model)
elif kind.told == "bias":
    headline = bias.added(model, name)
else:
    shown, cursor = encoding.pick_table(model, name)
    headline = encoding.headline(shown)
    if shown.note:
        st.caption(shown.note)
    chosen = encoding.pictures(shown, cursor)
    summed = st.container()
    if shown.told == "vectors" or shown.base is not None:
        rotation.step(shown, cursor, chosen)
    with summed:
        addition.token_and_position(model, name)
if kind.told in ("bias", "nowhere"):
    addition.token_and_position(model, name)
title.title(headline, anchor=False)
alibi_and_none.norms_side_by_side(model, name)
if name == own and model.task.lawful:
    st.caption("What if it had another encoding? Choose one above: then a small model can be trained with it here.")
else:
    what_if(with_positions(name), model.config, positions=name)
own_code = ENCODINGS[name]
show_code(*CODE.get(name, (f"{own_code.__module__}.{own_code.__qualname__}",)))
