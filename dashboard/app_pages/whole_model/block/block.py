"""The parts of a block, one at a time, each with the real numbers of one token and a sentence made of them."""

import streamlit as st

from dashboard.app_pages.whole_model.block import sections
from dashboard.parts.prose import plain, show_code
from dashboard.parts.widgets import late_title, stepped
from dashboard.view import session

PARTS = {part.name: part for part in sections.PARTS}

model = session.chosen()
norm = model.config.model.kind_of_norm.title
title = late_title()
with st.container(key="compact-part"):
    part = PARTS[stepped("part", {part.name: part.title.format(norm=norm) for part in sections.PARTS}, label="Part")]
st.markdown(f"**{part.question.format(norm=norm)}**")
title.title(plain(part.answer(model)), anchor=False)
show_code(*part.code)
