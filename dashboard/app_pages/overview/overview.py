"""The first screen: what goes in and what comes out, where a head looks for it, and the four things the lab is for."""

import streamlit as st

from dashboard.app_pages.overview import answer, cards, guesses, words
from dashboard.components.arcs import Said, Verdict
from dashboard.frame import other_models
from dashboard.models.menu import COMPILED
from dashboard.models.model import OWN_WORDS
from dashboard.parts import claims, head_focus, learning
from dashboard.parts.heads import focused, heads_of, working_sentence
from dashboard.parts.prose import orientation
from dashboard.view import session
from dashboard.view.pages import PAGES
from transformer.analysis.accuracy import ceilings
from transformer.foundation.words import counted

model = session.chosen()
task, question = model.task, session.question(model)
attends = model.config.model.attends
head = focused(heads_of(model.sample(question).attentions), model.survey()) if attends else None


def answered() -> None:
    """The title, and what goes in and comes out: of a task with a law."""
    said, law, names = model.said(question), task.answer(question), task.vocabulary
    knowable = ceilings.knowable(model.config, len(question))[task.answers(len(question))]
    right = said == law
    headline = words.headline(model.config, model.step, len(question), right, knowable)
    st.title(headline, anchor=False)
    lineage = words.lineage(
        model.config, model.step, trained=model.name != COMPILED, right=int(right.sum()), of=len(right)
    )
    note = f" These are the first {answer.MOST_TOKENS} of {len(question)} tokens." * (
        len(question) > answer.MOST_TOKENS
    )
    long = claims.read(model) if len(question) > OWN_WORDS else ""
    st.markdown(f"{lineage}{note} {long}".strip())

    def token(value: int, truth: int, known: bool) -> Said:
        """One token of the answer: right, wrong, or one that nobody could know."""
        verdict: Verdict = ("right" if value == truth else "wrong") if known else "open"
        return Said(names[value], verdict, names[truth] if known else "")

    begin = slice(answer.MOST_TOKENS)
    tokens = [token(*each) for each in zip(said[begin], law[begin], knowable[begin], strict=True)]
    answer.draw(model, question, tokens, head)
    answer.offer_all_lengths(model, question)


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
if head is not None:
    focus_place, said_place, cards_place = st.container(key="door").columns([1.15, 0.65, 1.9], gap="medium")
    with focus_place:
        stands_for = head_focus.glance(model, question, head, key="overview-pattern", side=250, with_arcs=False)
    with said_place:
        with head_focus.of_head("sentence"):
            st.markdown(f"**{working_sentence(model, head, model.survey())}**")
        mean = " The share is a mean over many questions of the greatest length." if task.lawful else ""
        st.caption(f"{stands_for}{orientation(head)}{mean}")
    with cards_place:
        cards.draw(model, model.sample(question), head)
else:
    focus_place, heads_place = st.columns([1, 1.2], gap="large")
    with focus_place:
        st.markdown(f"**No attention: {other_models.handed_over(model)} must carry the whole sequence.**")
        other_models.states(model, question, key="overview-states", height=290)
    with heads_place:
        other_models.attention_wanted(model)
film, guided = st.columns(2, gap="small")
with film.container(border=True, key="card-film", gap=None):
    st.page_link(PAGES["film"].script, label="**Watch it learn** →", icon=":material/play_circle:")
    st.caption(
        f"Its training as a film, {counted(model.step, 'step')} long." if model.step else "Its training as a film."
    )
with guided.container(border=True, key="card-lectures", gap=None):
    st.page_link(PAGES["lectures"].script, label="**Twenty minutes, guided** →", icon=":material/school:")
    st.caption("A lecture goes through it step by step, with questions.")
accuracy_place, loss_place = st.columns([1.2, 1], gap="large")
with loss_place:
    st.markdown("**How it was learned**")
    learning.loss(model, key="overview-loss", height=230)
with accuracy_place:
    if task.lawful:
        learning.accuracy(model, key="overview-accuracy", height=310)
    else:
        guesses.alternatives(model, question, model.sample(question), key="overview-guesses", height=250)
