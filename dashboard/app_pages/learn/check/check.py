"""Check mine: a reader's own code beside the reference, and the first stage at which the two differ."""

import streamlit as st

from dashboard.app_pages.learn.check import desk, result, running, words
from dashboard.parts.prose import plain, show_code
from dashboard.parts.widgets import late_title
from transformer.foundation.program import program

if why := running.barred():
    st.title(words.OFF, anchor=False)
    st.info(plain(why), icon=":material/block:")
    st.markdown("On your own machine this command does the same:")
    st.code(f"{program()} {words.COMMAND}", language=None)
    st.markdown(f"**What can be checked**\n\n{words.LIST}")
else:
    mine = desk.desk()
    if mine.code:
        running.prepare()
    with st.container(key="private"):  # no document of a page holds what stands in it
        title = late_title()
        left, right = st.container(key="stacked-check").columns(2, gap="medium")
        with left:
            desk.draw(mine)
        with right:
            result.draw(mine)
        title.title(result.title(mine), anchor=False)
    st.caption(words.PRIVATE)
show_code("transformer.checking.check.check_source", "transformer.checking.stages.compare")
