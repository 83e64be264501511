"""All heads side by side, one of them large, and what sets it apart."""

from collections.abc import Mapping

import numpy as np
import streamlit as st

from dashboard.app_pages.attention.heads import focus, measured, text, words
from dashboard.app_pages.attention.heads.comparison import pick_reference
from dashboard.app_pages.attention.heads.settings import HeadsSettings
from dashboard.app_pages.attention.heads.table import find_the_one
from dashboard.frame import other_models
from dashboard.models import background
from dashboard.models.model import Model
from dashboard.parts import waiting
from dashboard.parts.head_focus import of_head
from dashboard.parts.heads import alignment_sentence, focused, grid, heads_of, working_sentence
from dashboard.parts.prose import head_label, orientation, plain, show_code
from dashboard.parts.widgets import bound
from dashboard.view import session
from dashboard.view.pages import PAGES
from transformer.analysis.findings import Head, Sample, Survey
from transformer.analysis.heads.kinds import KINDS, Kinds
from transformer.tasks import Task

FAINT = 0.3
"""The greatest weight of a row below which its own scale is chosen with it."""
RESIDUAL = "‖pattern · value · $W_O$‖, how much this reading writes into the residual stream"
CONTEXT = "‖pattern · value‖, how much this reading adds to the context vector"
STATES = (
    " A key is the encoder’s state after a token. It has also read all tokens before, so a later key may serve as well."
)


def page(model: Model, question: np.ndarray) -> None:
    recurrent = model.config.model.recurrent
    sample, survey = model.sample(question), model.survey()
    heads = heads_of(sample.attentions)
    head = focused(heads, survey)
    kinds = known_kinds(model)
    if model.task.lawful:
        chosen = session.settings().head == str(head)
        of_one = recurrent or chosen or not model.task.points
        with of_head("title"):
            st.title(working_sentence(model, head, survey) if of_one else words.headline(model, survey), anchor=False)
        pictures(model, question, sample, survey, head, titled=of_one)
    else:
        found = words.examples(kinds) if kinds and whole(sample) else {}
        together = session.mine(HeadsSettings).together and len(found) > 1
        with of_head("title"):
            st.title(
                words.together_sentence(list(found)) if together else does(model, head, survey, kinds), anchor=False
            )
        if whole(sample):
            examples(model, question, sample, head, kinds, found, together)
        if kinds and together:
            text.together(model, question, sample, kinds, found)
        with of_head("basis"):
            st.caption(basis(survey, head, kinds if whole(sample) else None, together))
        pictures(model, question, sample, survey, head, passage=not together)
    find_the_one(model, head, kinds)
    formula = "recurrent.scoring.Alignment" if recurrent else "attention.scaled_dot_product_attention"
    show_code(
        f"transformer.{formula}",
        "transformer.attention.masked_softmax",
        "transformer.analysis.findings.Detail.contribution",
        "transformer.analysis.heads.measure.measures",
    )


def here(model: Model, question: np.ndarray, sample: Sample, head: Head) -> str:
    """Where a GRU's decoder looks on this input; the title says where on average."""
    said = alignment_sentence(sample.attentions[head.site].pattern[head.index], model.task.expected_keys(question))
    return f"On this input: {said[0].lower()}{said[1:]}"


def known_kinds(model: Model) -> Kinds | None:
    """On which kinds of token the heads of a text look, once that is measured; the table below waits for it."""
    if not measured.has_kinds(model) or session.first_look():
        return None
    return background.ready(measured.kinds(model))


def does(model: Model, head: Head, survey: Survey, kinds: Kinds | None) -> str:
    """What a head of a text does on average: which kind of token it prefers, else at which place it looks."""
    return (kinds and words.kind_sentence(kinds, head)) or working_sentence(model, head, survey)


def whole(sample: Sample) -> bool:
    """Is every pattern drawn as it is, and not in squares?"""
    return all(attention.factor == 1 for attention in sample.attentions.values())


def pictures(
    model: Model,
    question: np.ndarray,
    sample: Sample,
    survey: Survey,
    head: Head,
    *,
    passage: bool = True,
    titled: bool = False,
) -> None:
    """The grid, and the head in focus beside it; of a text also the `passage` that it reads.

    Where the head is `titled`, the title has said what it does.
    """
    recurrent = model.config.model.recurrent
    means = mean_patterns(survey, len(question), model.task) if whole(sample) else None
    mean = session.mine(HeadsSettings).mean and means is not None
    widest = max(len(attention.pattern) for attention in sample.attentions.values())
    left, right = st.container(key="heads-row").columns([1, 1.5 if widest <= 4 else 1], gap="medium")
    with left:
        toggles(model, survey, means is not None)
        grid(
            sample.attentions,
            None,
            key="heads",
            patterns=means if mean else None,
            size=180,
            by_row=session.settings().by_row,
        )
    with right:
        if model.task.lawful:
            own = recurrent and model.task.points
            said = here(model, question, sample, head) if own else working_sentence(model, head, survey)
            if own or not titled:
                with of_head("sentence"):
                    st.markdown(f"**{said}**")
        elif passage and whole(sample) and not mean:
            with of_head("passage"):
                text.of_one(model, question, sample, head)
        focus.large(model, question, head, means[head.site][head.index] if mean and means else None)
    with left if widest <= 4 and len(sample.attentions) <= 4 else right:
        if not mean:
            pick_reference(model, head)
        with of_head("explained"):
            explained(model, head, f"mean over {survey.sequences} sequences" if mean else "this input")


def examples(
    model: Model,
    question: np.ndarray,
    sample: Sample,
    head: Head,
    kinds: Kinds | None,
    found: Mapping[str, Head],
    together: bool,
) -> None:
    """A button for each kind of token and the head that reads it, on a word that shows it."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="control-examples"):
        if not found:
            if kinds:
                st.markdown("No head prefers a kind of token.")
            else:
                waiting.hourglass("What the heads read is being measured …")
            return
        st.markdown("Heads that read", width="content")
        for kind, other in found.items():
            query = text.clearest(model.task, question, sample, {kind: other})
            faint = query is not None and float(sample.attentions[other.site].pattern[other.index, query].max()) < FAINT
            st.button(
                f"{KINDS[kind]} ({other.short})",
                key=f"example-{kind}",
                on_click=session.update,
                kwargs={"head": str(other), "query": query and query + 1, "by_row": faint, "together": False},
                type="primary" if other == head and not together else "secondary",
                disabled=query is None,
                help="No word of this passage shows it. Draw another passage." if query is None else None,
            )
        if len(found) > 1:
            st.button(
                "Compare",
                key="example-together",
                on_click=session.update,
                kwargs={"together": True, "query": None, "by_row": False},
                type="primary" if together else "secondary",
                help="All of these heads on the same words",
            )


def basis(survey: Survey, head: Head, kinds: Kinds | None, together: bool) -> str:
    """On what the title's shares were measured, and what they are to be compared with."""
    if kinds is None:
        return words.measured_on(survey.sequences)
    even = "" if together else words.even_sentence(kinds, head)
    measured_on = words.measured_on(kinds.sequences if even or together else survey.sequences)
    return " ".join(each for each in (measured_on, even, words.BLANKS if "word" in kinds.share else "") if each)


def mean_patterns(survey: Survey, length: int, task: Task) -> Mapping[str, np.ndarray] | None:
    """The survey's means for an input of this length; None where they are of another.

    Of passages of a text the first tokens are shorter passages, unless a head looks ahead.
    """
    if length == task.surveyed:
        return survey.patterns
    ahead = any(np.triu(mean[0], 1).any() for mean in survey.patterns.values())
    if task.lawful or length > task.surveyed or ahead:
        return None
    return {site: mean[:, :length, :length] for site, mean in survey.patterns.items()}


def toggles(model: Model, survey: Survey, has_mean: bool) -> None:
    """What is drawn in the grid, and on which scale."""
    first, second = st.columns(2)
    sequences = f"{survey.sequences} fresh sequences of length {model.task.surveyed}"
    if not model.task.lawful:
        sequences = f"{survey.sequences} passages that were held out; for up to {model.task.surveyed} tokens"
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
        st.page_link(
            PAGES["inside"].script,
            label=f"Open it up: inside {head_label(head, model.config.model)}",
            icon=":material/biotech:",
        )
    answer = " Outlined: where the answer stands." if model.task.points else ""
    hidden = "padding" if recurrent else "forbidden by the mask"
    st.caption(
        f"{head.kind[0].upper()}{head.kind[1:]}, {shown}. {orientation(head)}{answer} "
        f"Contribution: {CONTEXT if recurrent else RESIDUAL}. Much attention need not mean much effect. Grey and "
        f"hatched: {hidden}."
        f"{STATES if recurrent else ''}"
    )


model = session.chosen()
if model.config.model.attends:
    page(model, session.question(model))
else:
    st.title(words.without(plain(model.name), other_models.handed_over(model)), anchor=False)
    other_models.states(model, session.question(model), key="heads-states", height=420)
    other_models.attention_wanted(model)
