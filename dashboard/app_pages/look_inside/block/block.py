"""The parts of a block, one at a time, each with the real numbers of one token and a sentence made of them."""

import streamlit as st

from dashboard.app_pages.look_inside.block import sections
from dashboard.parts.prose import plain, show_code
from dashboard.parts.widgets import bound_choice
from dashboard.view import session

PARTS = {part.name: part for part in sections.PARTS}

title = st.container()
name = bound_choice(
    st.segmented_control,
    "Part",
    "part",
    list(PARTS),
    next(iter(PARTS)),
    format_func=lambda name: PARTS[name].title,
    label_visibility="collapsed",
)
part = PARTS[name]
st.markdown(f"**{part.question}**")
title.title(plain(part.answer(session.chosen())), anchor=False)
show_code(*part.code)
