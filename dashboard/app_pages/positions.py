"""How the model is told the order of its tokens: each encoding, drawn from its formula or from the weights."""

import streamlit as st

from dashboard import ordering, session, turns, waves
from dashboard.controls import bound_choice
from dashboard.prose import show_code
from dashboard.whatif import what_if
from transformer.config import POSITIONS
from transformer.positions import ENCODINGS

SHIFT = "transformer.analysis.encodings.shift"
CODE = {
    "sinusoidal": ("transformer.positions.sinusoidal.sinusoids", "transformer.positions.angles", SHIFT),
    "rotary": ("transformer.positions.rotary.Rotary", "transformer.positions.angles", SHIFT),
    "alibi": ("transformer.positions.alibi.slopes", "transformer.positions.alibi.penalties"),
    "learned": ("transformer.positions.learned.Learned", "transformer.analysis.encodings.fit_shift"),
    "none": ("transformer.positions.none.NoPositions", "transformer.analysis.encodings.read_backwards"),
}


@st.fragment
def encoding() -> None:
    """The whole page: a click on it draws it anew, and nothing around it."""
    notices, title = st.container(), st.container()
    model = session.chosen()
    own = model.config.model.positions
    name = bound_choice(
        st.segmented_control,
        "Encoding",
        "encoding",
        [own, *(name for name in POSITIONS if name != own)],
        own,
        also={"pe_width": None, "pe_length": None, "cursor": None, "shift": 1, "dimensions": ""},
        format_func=lambda n: f"{n} (this model's)" if n == own else n,
    )
    kind = ENCODINGS[name]
    st.markdown(f"{kind.description[0].upper()}{kind.description[1:]}. $\\quad {kind.formula}$")
    if name in ("alibi", "rotary") and model.task.has_source:
        st.caption("Only where a stack looks at itself: where the decoder looks at the source, no position is told.")
    if name == "alibi":
        headline = ordering.penalised(model)
    elif name == "none":
        headline = ordering.unordered(model)
    else:
        shown, cursor = waves.pick_table(model, name)
        headline = waves.headline(shown)
        if shown.note:
            st.caption(shown.note)
        turns.step(shown, cursor, waves.pictures(shown, cursor))
    title.title(headline, anchor=False)
    ordering.norms_side_by_side(model, name)
    what_if(f"with {name} positions" if name != "none" else "without positions", model.config, positions=name)
    show_code(*CODE.get(name, (f"{kind.__module__}.{kind.__name__}",)))
    for text in session.notices():
        notices.warning(text, icon=":material/link_off:")
    session.end()
    st.html(session.origin())


encoding()
