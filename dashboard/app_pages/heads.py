"""All heads side by side, and one of them large."""

import streamlit as st

from dashboard import session, views
from dashboard.attention import focused, grid, heads_of, share_sentence
from dashboard.controls import bound
from dashboard.headtable import find_the_one
from dashboard.prose import orientation, show_code

model = session.chosen()
task, question = model.task, session.question(model)
sample, survey = model.sample(question), model.survey()
heads = heads_of(sample.attentions)
head = focused(heads, survey)
mean = session.settings().mean and len(question) == task.length

worker = survey.worker
share = survey.expected_share[worker]
st.title(
    f"Head {worker.short} does the work: {share:.2f} of its attention is on the answer."
    if share >= 0.5
    else f"No head does the work alone: the best, {worker.short}, has {share:.2f} of its attention on the answer.",
    anchor=False,
)

shown = f"mean over {survey.sequences} sequences" if mean else "this input"
left, right = st.container(key="heads-row").columns([1.85, 1], gap="medium")
with left:
    bound(
        st.toggle,
        f"Mean over {survey.sequences} sequences",
        "mean",
        disabled=len(question) != task.length,
        help=f"The mean pattern of fresh sequences of length {task.length}, in place of this one input",
    )
    grid(sample.attentions, head, key="heads", patterns=survey.patterns if mean else None, size=180)
with right:
    st.markdown(f"**{share_sentence(head, survey)}**")
    views.pattern(
        sample,
        head,
        task.expected_keys(question),
        key="head-pattern",
        height=440,
        values=survey.patterns[head.site][head.index] if mean else None,
    )
    st.caption(
        f"{head.kind[0].upper()}{head.kind[1:]}, {shown}. "
        f"Outlined: where the answer stands. Grey and hatched: forbidden by the mask. {orientation()}"
    )
find_the_one(model, head)
show_code("transformer.attention.scaled_dot_product_attention", "transformer.attention.masked_softmax")
