"""The first screen: what goes in, what comes out, the head that does it, and how often it is right."""

import streamlit as st

from dashboard import session, views
from dashboard.attention import focused, grid, heads_of, palette, share_sentence
from dashboard.figures.tokens import Token, token_strip
from dashboard.prose import orientation

model = session.chosen()
task, question = model.task, session.question(model)
said, law = model.said(question), task.answer(question)
right, all_ = int((said == law).sum()), len(law)
verb = {"copy": "copies", "sort": "sorts"}.get(task.name, "reverses")
if right == all_:
    st.title(f"It {verb}: {right} of {all_} right.", anchor=False)
else:
    st.title(f"It {verb} {right} of {all_}: the rest is wrong.", anchor=False)

names = task.vocabulary
st.html(
    token_strip(
        {
            "in": [Token(names[symbol], "given", None) for symbol in question],
            "out": [
                Token(names[value], "right" if value == truth else "wrong", names[truth])
                for value, truth in zip(said, law, strict=True)
            ],
        },
        palette(),
    )
)

# The places first, then what fills them, the quick before the slow: on a cold start the heads are there while the
# browser still loads Plotly and the accuracy is being measured.
focus_place, accuracy_place = st.columns([1, 1.2], gap="large")
heads_place, loss_place = st.columns([1.6, 1], gap="large")
sample, survey = model.sample(question), model.survey()
head = focused(heads_of(sample.attentions), survey)
with heads_place:
    st.markdown("**All heads**: click one, or move with the arrow keys")
    grid(sample.attentions, head, key="overview-heads", size=92)
with focus_place:
    st.markdown(f"**{share_sentence(head, survey)}**")
    views.pattern(sample, head, task.expected_keys(question), key="overview-pattern", height=310)
    st.caption(orientation())
with loss_place:
    st.markdown("**How it was learned**")
    views.loss(model, key="overview-loss", height=230)
with accuracy_place:
    views.accuracy(model, key="overview-accuracy", height=310)
