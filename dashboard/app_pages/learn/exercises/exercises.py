"""Every exercise that is here: what is to be reached, the way in, and whether it was solved in this browser."""

import streamlit as st

from dashboard.frame.guided import exercise
from dashboard.lectures.shelf import exercises
from dashboard.parts.prose import plain

found = exercises()
st.title("Exercises that know when they are solved", anchor=False)
st.markdown(
    "Each exercise begins with a view and names a goal. The strip above the page measures the goal on what you see: "
    "*Solved* appears by itself. What you have solved is kept in this browser only. The link is your proof: whoever "
    "opens it sees the same view, measured anew."
)
for name, each in found.files.items():
    with st.container(border=True, key=f"exercise-{name}"):
        words, start = st.columns([4, 1], vertical_alignment="center")
        words.markdown(f"**{plain(each.title)}**")
        words.caption("  \n".join(plain(f"{exercise.capital(goal.words)}.") for goal in each.goals))
        start.button(
            "Start",
            on_click=exercise.go,
            args=(each,),
            key=f"start-{name}",
            icon=":material/play_arrow:",
            type="primary",
            width="stretch",
        )
        with start:
            exercise.mark(each, None, key=f"kept-{name}")
if not found.files:
    st.info("There is no exercise here. An exercise is a Markdown file in `exercises/` below ATTENTION_LAB_LECTURES.")
for mistake in found.mistakes:
    st.warning(f"This exercise cannot be opened: {plain(mistake)}", icon=":material/error:")
