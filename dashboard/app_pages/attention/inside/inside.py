"""One query of one head, step by step: the real numbers from its vectors to what it writes; and the head's circuits."""

import numpy as np
import streamlit as st

from dashboard.app_pages.attention.inside import circuits, measured
from dashboard.app_pages.attention.inside.anatomy import Anatomy
from dashboard.app_pages.attention.inside.steps import (
    OF_A_KEY,
    STAGES,
    code,
    formula,
    headline,
    mixture,
    most_changed,
    most_mixed,
    sentence,
    stages_of,
)
from dashboard.app_pages.attention.inside.tables import step_table
from dashboard.components.plot import coloured
from dashboard.components.sheet import sheet
from dashboard.figures.html.step_strip import step_strip
from dashboard.models.model import Model
from dashboard.parts.heads import focused, heads_of
from dashboard.parts.prose import plain, show_code, symbols
from dashboard.parts.steps import draw_code, draw_formula, why_divided
from dashboard.parts.widgets import bound_token, late_title, pick_head, stepped
from dashboard.view import session
from transformer.analysis.findings import Head, Sample
from transformer.analysis.heads.inside import Inside

MOST_BUTTONS = 20  # more queries than this, and they are a menu
ALWAYS_A_MENU = 0
CHANGED = 0.2
"""How much the division has to change a largest weight to be an example of what it does."""
PICKED_BELOW = 190
"""Pixels of the column of a formula below which a key is chosen."""


def first_query(sample: Sample, head: Head) -> int:
    """The query that is looked at unless the view names another, counted from 1: the first of the answer.

    Of a text the last, which has read most.
    """
    queries = sample.attentions[head.site].queries
    answers = np.flatnonzero(sample.is_answer)
    begins = task.lawful and len(answers) and queries == sample.read
    return int(answers[0]) + 1 if begins else len(queries)


def after_head(sample: Sample, before: Head, now: Head) -> dict[str, None]:
    """What a change of heads takes back: the key, and the query where it stands on other tokens now."""
    same = sample.attentions[before.site].queries == sample.attentions[now.site].queries
    return {"key": None} if same else {"key": None, "query": None}


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


def pick_key(inside: Inside) -> int:
    """Of which key the sentence speaks, its place counted from 0: the one that is looked at most, unless another is
    chosen."""
    return bound_token(
        "Key: who is looked at",
        inside.keys,
        inside.strongest or 0,
        lambda key: f"There is no key at {key}: there are {len(inside.keys)}. The page shows the one looked at most.",
        most=ALWAYS_A_MENU,
        field="key",
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


def offer_undivided(model: Model, sample: Sample, head: Head, query: int) -> None:
    """A button to the query, of all heads, whose largest weight the division by √d lowers most."""
    whole = {site: each for site, each in sample.attentions.items() if each.factor == 1}
    if model.config.model.encoding.told == "bias" or not whole:
        return
    found = {site: most_changed(each.scores, each.mask, model.config.model.d_head) for site, each in whole.items()}
    site = max(found, key=lambda each: found[each][3] - found[each][2])
    index, place, divided, bare = found[site]
    other = Head(site, index)
    if bare - divided < CHANGED or (other, place) == (head, query):
        return
    st.button(
        f"Show head {other.short}, query '{plain(whole[site].queries[place])}' at {place + 1}: its largest weight is "
        f"{divided:.2f}, and {bare:.2f} without the division",
        key="undivided",
        icon=":material/compress:",
        on_click=session.update,
        kwargs={
            "head": str(other),
            "query": None if place + 1 == first_query(sample, other) else place + 1,
            "key": None,
        },
    )


model = session.chosen()
task, question = model.task, session.question(model)
sample, survey = model.sample(question), model.survey()
heads = heads_of(sample.attentions)
head = focused(heads, survey)
title = late_title()
controls = st.container(key="compact-inside")
with controls.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    pick_head(heads, head, also=lambda now: after_head(sample, head, now))
    with st.container(width="content"):
        query = pick_query(sample, head)
inside = measured.inside(model, question, head, query)
title.title(plain(headline(inside)), anchor=False)
with controls:
    stage = stepped("operation", {name: STAGES[name].title for name in stages_of(inside)})
strip = st.container()
of_a_key = stage in OF_A_KEY and inside.strongest is not None
below, beside = draw_formula(formula(inside, stage), PICKED_BELOW if of_a_key else "content")
with below:
    key = pick_key(inside) if of_a_key else None
anatomy = Anatomy(inside, key)
with strip:
    sheet(
        coloured(step_strip, anatomy.thumbs(), anatomy.stages.index(stage)),
        anatomy.series(),
        key="inside-steps",
        alt=headline(inside),
    )

table, words = step_table(anatomy, stage, key), sentence(inside, stage, key)
beside.markdown(symbols(plain(words)))
if stage == "weigh":
    offer_mixture(sample, head, query)
if stage == "scale":
    offer_undivided(model, sample, head, query)
left, right = st.container(key="stacked-inside").columns([2, 1], gap="medium")
with left:
    table.draw(key="inside-numbers", says=words)
with right:
    draw_code(anatomy.shapes(stage), code(inside, stage))
if stage == "scale":
    why_divided(height=230)

circuits.circuits(model, sample, head)
show_code("transformer.analysis.heads.inside.look_inside", "transformer.analysis.heads.circuits.circuits")
