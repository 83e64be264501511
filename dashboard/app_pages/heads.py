"""All heads side by side, one of them large, and what sets it apart."""

import math

import numpy as np
import streamlit as st

from dashboard import elsewhere, explore, session
from dashboard.alignment import alignment_sentence
from dashboard.attention import focused, grid, heads_of, share_sentence, working_sentence
from dashboard.controls import bound
from dashboard.headtable import find_the_one
from dashboard.models import Model
from dashboard.prose import orientation, plain, show_code
from dashboard.reference import pick_reference
from transformer.analysis.findings import Head, Sample, Survey

RESIDUAL = "‖pattern · value · W_O‖, how much this reading writes into the residual stream"
CONTEXT = "‖pattern · value‖, how much this reading adds to the context vector"
STATES = " A key is the encoder’s state after a token: it has read all before it too, so a later one may do as well."


def page(model: Model, question: np.ndarray) -> None:
    recurrent = model.config.model.recurrent
    sample, survey = model.sample(question), model.survey()
    head = focused(heads_of(sample.attentions), survey)
    st.title(working_sentence(model, head, survey) if recurrent else headline(survey), anchor=False)
    pictures(model, question, sample, survey, head)
    find_the_one(model, head)
    formula = "recurrent.scoring.Alignment" if recurrent else "attention.scaled_dot_product_attention"
    show_code(
        f"transformer.{formula}",
        "transformer.attention.masked_softmax",
        "transformer.analysis.findings.Detail.contribution",
        "transformer.analysis.measuring.measures",
    )


def headline(survey: Survey) -> str:
    """Which head does the work, in a sentence."""
    worker = survey.worker
    share = survey.expected_share[worker]
    if math.isnan(share):
        return "Under this mask no head ever sees the token to be said."
    if share >= 0.5:
        return f"Head {worker.short} does the work: {share:.2f} of its attention is on the answer."
    return f"No head does the work alone: the best, {worker.short}, has {share:.2f} of its attention on the answer."


def here(model: Model, question: np.ndarray, sample: Sample, head: Head) -> str:
    """Where a GRU's decoder looks on this input; the title says where on average."""
    said = alignment_sentence(sample.attentions[head.site].pattern[head.index], model.task.expected_keys(question))
    return f"On this input: {said[0].lower()}{said[1:]}"


def pictures(model: Model, question: np.ndarray, sample: Sample, survey: Survey, head: Head) -> None:
    """The grid, and the head in focus beside it."""
    recurrent = model.config.model.recurrent
    long = any(attention.factor > 1 for attention in sample.attentions.values())
    has_mean = len(question) == model.task.length and not long
    mean = session.settings().mean and has_mean
    widest = max(len(attention.pattern) for attention in sample.attentions.values())
    left, right = st.container(key="heads-row").columns([1, 1.5 if widest <= 4 else 1], gap="medium")
    below_the_grid = left if widest <= 4 and len(sample.attentions) <= 3 else right
    with left:
        toggles(model, survey, has_mean)
        grid(
            sample.attentions,
            None,
            key="heads",
            patterns=survey.patterns if mean else None,
            size=180,
            by_row=session.settings().by_row,
        )
    with right:
        st.markdown(f"**{here(model, question, sample, head) if recurrent else share_sentence(head, survey)}**")
        explore.pattern(model, question, head, survey, mean=mean)
    if not mean:
        with below_the_grid:
            explore.contribution(model, question, head)
        with right:
            pick_reference(model, head)
    with right:
        explained(model, head, f"mean over {survey.sequences} sequences" if mean else "this input")


def toggles(model: Model, survey: Survey, has_mean: bool) -> None:
    """What is drawn in the grid, and on which scale."""
    first, second = st.columns(2)
    sequences = f"{survey.sequences} fresh sequences of length {model.task.length}"
    with first:
        bound(
            st.toggle,
            "Mean pattern",
            "mean",
            disabled=not has_mean,
            help=f"The mean over {sequences}, not this one input",
        )
    with second:
        bound(
            st.toggle,
            "Scale by row",
            "by_row",
            help="Colour each row from 0 to its own greatest value. Off, all heads share one scale from 0 to 1.",
        )


def explained(model: Model, head: Head, shown: str) -> None:
    """What stands above, and the way further in."""
    recurrent = model.config.model.recurrent
    if not recurrent:
        st.page_link("app_pages/inside.py", label=f"Open it up: inside head {head.short}", icon=":material/biotech:")
    hidden = "padding" if recurrent else "forbidden by the mask"
    st.caption(
        f"{head.kind[0].upper()}{head.kind[1:]}, {shown}. {orientation()} Outlined: where the answer stands. "
        f"Contribution: {CONTEXT if recurrent else RESIDUAL}; attention is not effect. Grey and hatched: {hidden}."
        f"{STATES if recurrent else ''}"
    )


model = session.chosen()
if model.config.model.attends:
    page(model, session.question(model))
else:
    st.title(f"{plain(model.name)} has no attention: {elsewhere.handed_over(model)} must do.", anchor=False)
    elsewhere.states(model, session.question(model), key="heads-states", height=420)
    elsewhere.attention_wanted(model)
