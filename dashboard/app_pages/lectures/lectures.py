"""Every lecture that is here: for whom it is, how long it takes, and the way in."""

import streamlit as st

from dashboard.frame.guided import lecture
from dashboard.lectures.shelf import lectures
from dashboard.parts.prose import plain

found = lectures()
st.title("A lecture leads through the lab, step by step", anchor=False)
st.markdown(
    "Each step is a page with a few words above it. **→** and **←** lead on and back, and so does a presenter’s "
    "remote. *Explore from here* gives you every control; **R** returns to the step. A point (**.**) blacks the "
    "screen, and so does **B** where no button bears this letter. **+** and **−** set the size of the text."
)
for name, each in found.files.items():
    with st.container(border=True, key=f"lecture-{name}"):
        words, start = st.columns([4, 1], vertical_alignment="center")
        steps = f"{len(each.steps)} steps" if len(each.steps) != 1 else "1 step"
        words.markdown(f"**{plain(each.title)}**  \n{plain(each.audience)}")
        words.caption(f"{steps}, about {each.minutes} minutes")
        start.button(
            "Start",
            on_click=lecture.begin,
            args=(each,),
            key=f"start-{name}",
            icon=":material/play_arrow:",
            type="primary",
            width="stretch",
        )
if not found.files:
    st.info("There is no lecture here. A lecture is a Markdown file in the folder that ATTENTION_LAB_LECTURES names.")
for mistake in found.mistakes:
    st.warning(f"This lecture cannot be opened: {plain(mistake)}", icon=":material/error:")
