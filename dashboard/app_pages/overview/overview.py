"""The first screen: what goes in, what comes out, the head that does it, and how often it is right."""

import streamlit as st

from dashboard.app_pages.overview import guesses, words
from dashboard.figures.html.tokens import Token
from dashboard.frame import other_models
from dashboard.models.model import OWN_WORDS
from dashboard.parts import claims, head_focus, learning
from dashboard.parts.heads import focused, grid, heads_of, working_sentence
from dashboard.parts.prose import orientation
from dashboard.parts.tokens import tokens
from dashboard.view import session
from transformer.analysis.accuracy import ceilings

MOST_TOKENS = 36

model = session.chosen()
task, question = model.task, session.question(model)


def answered() -> None:
    """The title, and what goes in and comes out: of a task with a law."""
    said, law, names = model.said(question), task.answer(question), task.vocabulary
    knowable = ceilings.knowable(model.config, len(question))[task.answers(len(question))]
    headline = words.headline(task, len(question), said == law, knowable)
    st.title(headline, anchor=False)

    def token(value: int, truth: int, known: bool) -> Token:
        """One token of the answer: right, wrong, or one that nobody could know."""
        if not known:
            return Token(names[value], "open")
        return Token(names[value], "right" if value == truth else "wrong", names[truth])

    begin = slice(MOST_TOKENS)
    note = f"The first {MOST_TOKENS} of {len(question)} tokens." if len(question) > MOST_TOKENS else ""
    if note and len(question) > OWN_WORDS:
        note += claims.read(model)
    tokens(
        {
            "in": [Token(names[symbol]) for symbol in question[begin]],
            "out": [token(*each) for each in zip(said[begin], law[begin], knowable[begin], strict=True)],
        },
        key="overview-tokens",
        alt=headline,
        note=note,
    )
    if note:
        st.caption(note)


def read() -> None:
    """The title, and what is guessed: of a text."""
    sample = model.sample(question)
    st.title(guesses.headline(sample), anchor=False)
    guesses.strip(sample, key="overview-tokens")


if task.lawful:
    answered()
else:
    read()

# The places first, then what fills them, the quick before the slow: on a cold start the heads are there while the
# browser still loads Plotly and the accuracy is being measured.
focus_place, accuracy_place = st.columns([1, 1.2], gap="large")
heads_place, loss_place = st.columns([1.6, 1], gap="large")
if model.config.model.attends:
    sample, survey = model.sample(question), model.survey()
    head = focused(heads_of(sample.attentions), survey)
    with heads_place:
        st.markdown("**All heads**: click one, or move with the arrow keys")
        grid(sample.attentions, head, key="overview-heads", size=92)
    with focus_place:
        with head_focus.of_head("sentence"):
            st.markdown(f"**{working_sentence(model, head, survey)}**")
        stands_for = head_focus.glance(model, question, head, key="overview-pattern", side=224)
        st.caption(f"{stands_for}{orientation(head)}")
else:
    with focus_place:
        st.markdown(f"**No attention: {other_models.handed_over(model)} must carry the whole sequence.**")
        other_models.states(model, question, key="overview-states", height=290)
    with heads_place:
        other_models.attention_wanted(model)
with loss_place:
    st.markdown("**How it was learned**")
    learning.loss(model, key="overview-loss", height=230)
with accuracy_place:
    if task.lawful:
        learning.accuracy(model, key="overview-accuracy", height=310)
    else:
        guesses.alternatives(model, question, model.sample(question), key="overview-guesses", height=250)
