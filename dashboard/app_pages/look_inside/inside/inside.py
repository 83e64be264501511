"""One query of one head, step by step: the real numbers from its vectors to what it writes; and the head's circuits."""

import numpy as np
import streamlit as st

from dashboard.app_pages.look_inside.inside import circuits, measured
from dashboard.app_pages.look_inside.inside.anatomy import Anatomy
from dashboard.app_pages.look_inside.inside.steps import STAGES, code, formula, headline, mixture, most_mixed, sentence
from dashboard.app_pages.look_inside.inside.tables import step_table
from dashboard.components.plot import coloured
from dashboard.components.sheet import sheet
from dashboard.figures.html.step_strip import step_strip
from dashboard.parts.heads import focused, heads_of
from dashboard.parts.prose import plain, show_code, symbols
from dashboard.parts.steps import draw_code, draw_words
from dashboard.parts.widgets import bound_token, pick_head, stepped
from dashboard.view import session
from transformer.analysis.findings import Head, Sample

MOST_BUTTONS = 20  # more queries than this, and they are a menu


def first_query(sample: Sample, head: Head) -> int:
    """The query that is looked at unless the view names another, counted from 1: the first of the answer.

    Of a text the last, which has read most.
    """
    queries = sample.attentions[head.site].queries
    answers = np.flatnonzero(sample.is_answer)
    begins = task.lawful and len(answers) and queries == sample.read
    return int(answers[0]) + 1 if begins else len(queries)


def pick_query(sample: Sample, head: Head) -> int:
    """Which query is looked at, its place counted from 0."""
    queries, first = sample.attentions[head.site].queries, first_query(sample, head)
    return bound_token(
        "Query: who looks",
        queries,
        first - 1,
        lambda query: (
            f"There is no query at {query}: this sequence has {len(queries)}. The page shows the one at {first}."
        ),
        most=MOST_BUTTONS,
    )


def offer_mixture(sample: Sample, head: Head, query: int) -> None:
    """A button to the query of this input and head whose values mix most, if it is another and mixes at all."""
    attention = sample.attentions[head.site]
    if attention.factor != 1:
        return
    place = most_mixed(attention.pattern[head.index])
    label = mixture(attention.pattern[head.index, place], plain(attention.queries[place]), place)
    if label and place != query:
        chosen = None if place + 1 == first_query(sample, head) else place + 1
        st.button(label, key="mixture", icon=":material/blender:", on_click=session.update, kwargs={"query": chosen})


model = session.chosen()
task, question = model.task, session.question(model)
sample, survey = model.sample(question), model.survey()
heads = heads_of(sample.attentions)
head = focused(heads, survey)
title = st.container()
controls = st.container(key="compact-inside")
with controls.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    pick_head(heads, head, also={"query": None})
    with st.container(width="content"):
        query = pick_query(sample, head)
inside = measured.inside(model, question, head, query)
anatomy = Anatomy(inside)
title.title(plain(headline(inside)), anchor=False)
with controls:
    stage = stepped("operation", {name: STAGES[name].title for name in anatomy.stages})
sheet(
    coloured(step_strip, anatomy.thumbs(), anatomy.stages.index(stage)),
    anatomy.series(),
    key="inside-steps",
    alt=headline(inside),
)

table, words = step_table(anatomy, stage), sentence(inside, stage)
draw_words(formula(inside, stage), symbols(plain(words)))
if stage == "weigh":
    offer_mixture(sample, head, query)
left, right = st.container(key="stacked-inside").columns([2, 1], gap="medium")
with left:
    table.draw(key="inside-numbers", says=words)
with right:
    draw_code(anatomy.shapes(stage), code(inside, stage))

circuits.circuits(model, sample, head)
show_code("transformer.analysis.heads.inside.look_inside", "transformer.analysis.heads.circuits.circuits")
