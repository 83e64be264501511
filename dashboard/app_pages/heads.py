"""All heads side by side, one of them large, and what sets it apart."""

import math

import streamlit as st

from dashboard import explore, session
from dashboard.attention import focused, grid, heads_of, share_sentence
from dashboard.controls import bound
from dashboard.headtable import find_the_one
from dashboard.prose import orientation, show_code
from dashboard.reference import pick_reference

model = session.chosen()
task, question = model.task, session.question(model)
sample, survey = model.sample(question), model.survey()
heads = heads_of(sample.attentions)
long = any(attention.factor > 1 for attention in sample.attentions.values())

worker = survey.worker
share = survey.expected_share[worker]
if math.isnan(share):
    title = "Under this mask no head ever sees the token to be said."
elif share >= 0.5:
    title = f"Head {worker.short} does the work: {share:.2f} of its attention is on the answer."
else:
    title = f"No head does the work alone: the best, {worker.short}, has {share:.2f} of its attention on the answer."
st.title(title, anchor=False)

head = focused(heads, survey)
mean = session.settings().mean and len(question) == task.length and not long
widest = max(len(attention.pattern) for attention in sample.attentions.values())
left, right = st.container(key="heads-row").columns([1, 1.5 if widest <= 4 else 1], gap="medium")
below_the_grid = left if widest <= 4 and len(sample.attentions) <= 3 else right
with left:
    first, second = st.columns(2)
    with first:
        bound(
            st.toggle,
            "Mean pattern",
            "mean",
            disabled=len(question) != task.length or long,
            help=f"The mean over {survey.sequences} fresh sequences of length {task.length}, not this one input",
        )
    with second:
        bound(
            st.toggle,
            "Scale by row",
            "by_row",
            help="Colour each row from 0 to its own greatest value. Off, all heads share one scale from 0 to 1.",
        )
    grid(
        sample.attentions,
        None,
        key="heads",
        patterns=survey.patterns if mean else None,
        size=180,
        by_row=session.settings().by_row,
    )
with right:
    st.markdown(f"**{share_sentence(head, survey)}**")
    explore.pattern(model, question, head, survey, mean=mean)
if not mean:
    with below_the_grid:
        explore.contribution(model, question, head)
    with right:
        pick_reference(model, head)
with right:
    st.page_link("app_pages/inside.py", label=f"Open it up: inside head {head.short}", icon=":material/biotech:")
    shown = f"mean over {survey.sequences} sequences" if mean else "this input"
    st.caption(
        f"{head.kind[0].upper()}{head.kind[1:]}, {shown}. {orientation()} Outlined: where the answer stands. "
        "Contribution: ‖pattern · value · W_O‖, how much this reading writes into the residual stream; "
        "attention is not effect. Grey and hatched: forbidden by the mask."
    )
find_the_one(model, head)
show_code(
    "transformer.attention.scaled_dot_product_attention",
    "transformer.attention.masked_softmax",
    "transformer.analysis.findings.Detail.contribution",
    "transformer.analysis.measuring.measures",
)
