"""All heads side by side, and one of them large."""

import streamlit as st

from dashboard import session, views
from dashboard.attention import focused, grid, heads_of, share_sentence
from dashboard.controls import bound
from dashboard.prose import orientation, show_code
from transformer.attention import masked_softmax, scaled_dot_product_attention

model = session.chosen()
task, question = model.task, session.question(model)
sample, survey = model.sample(question), model.survey()
heads = heads_of(sample.attentions)
head = focused(heads, survey)
mean = session.settings().mean and len(question) == task.length

worker = survey.worker
st.title(
    f"Head {worker.short} does the work: {survey.expected_share[worker]:.2f} of its attention is on the answer.",
    anchor=False,
)

left, right = st.columns([1.15, 1], gap="large")
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
    st.markdown(f"**Head {head.short} · {head.kind}**")
    views.pattern(
        sample,
        head,
        task.expected_keys(question),
        key="head-pattern",
        height=520,
        values=survey.patterns[head.site][head.index] if mean else None,
    )
    st.caption(
        f"{share_sentence(head, survey)} Outlined: where the task's answer stands. Grey and hatched: forbidden by the "
        f"mask. {orientation()}"
    )
show_code(scaled_dot_product_attention, masked_softmax)
