"""The same model and the same input under another mask: what changes, what cannot be known, what breaks."""

import numpy as np
import streamlit as st

from dashboard import session
from dashboard.attention import LINK, focused, heads_of, palette
from dashboard.components.plot import plot
from dashboard.controls import pick_mask
from dashboard.figures import accuracy as accuracy_figures
from dashboard.figures import patterns
from dashboard.figures.tokens import Token
from dashboard.prose import orientation, show_code
from dashboard.strips import tokens
from dashboard.whatif import what_if
from transformer.analysis import ceilings
from transformer.analysis.findings import Attention, Sample

model = session.chosen()
task, question = model.task, session.question(model)
title = st.empty()
mask = pick_mask(model)
pad = len(question) < task.length
st.caption(
    f"**{mask}**: {mask.description}. The model was trained under **{model.config.model.mask}**. "
    + (f"The input is padded to length {task.length}." if pad else "")
)

before = model.sample(question, own_words=False, pad=pad)
after = model.sample(question, own_words=False, pad=pad, mask=mask)
stack = "encoder" if model.config.model.architecture == "encoder" else "decoder"
heads = [head for head in heads_of(before.attentions) if head.site.startswith(stack) and "self" in head.site]
survey = model.survey()
focus = focused(heads_of(before.attentions), survey)
head = focus if focus in heads else heads[0]

sequences = session.settings().sequences
length = len(question) if len(question) in task.lengths else task.length
measured_before, measured_after = model.accuracy(sequences, length=length), model.accuracy(sequences, mask, length)
ceiling = ceilings.ceiling(model.config, length, mask).accuracy
first, second = ((measured_before.of(name), measured_after.of(name)) for name in ("first half", "second half"))


def headline() -> str:
    """The largest change, in a sentence."""
    (first_before, first_after), (second_before, second_after) = first, second
    if abs(second_after - second_before) >= max(0.005, abs(first_after - first_before)):
        verb = "falls" if second_after < second_before else "rises"
        return f"Under the {mask.name} mask the second half {verb} from {second_before:.2f} to {second_after:.2f}."
    if abs(first_after - first_before) >= 0.005:
        verb = "falls" if first_after < first_before else "rises"
        return f"Under the {mask.name} mask the first half {verb} from {first_before:.2f} to {first_after:.2f}."
    return f"Under the {mask.name} mask nothing is lost: the second half keeps its {second_after:.2f}."


title.title(headline(), anchor=False)


def row(words: str, attention: Attention, key: str) -> None:
    """Scores, mask and pattern of the head, side by side."""
    columns = st.columns(3, gap="medium")
    labels = (attention.queries, attention.keys)
    scores, pattern = attention.scores[head.index], attention.pattern[head.index]
    with columns[0]:
        st.markdown(f"**{words}** · scores")
        figure = patterns.scores_heatmap(scores, attention.mask, *labels, link=LINK, palette=palette())
        plot(figure, key=f"{key}-scores", alt=f"Scores of head {head.short}, {words}.", height=310)
    with columns[1]:
        st.markdown("mask")
        seen = int(attention.mask.sum())
        figure = patterns.mask_heatmap(attention.mask, *labels, link=LINK, palette=palette())
        plot(
            figure,
            key=f"{key}-mask",
            alt=f"Mask {words}: {seen} of {attention.mask.size} cells may be seen.",
            height=310,
        )
    with columns[2]:
        st.markdown("pattern")
        figure = patterns.pattern_heatmap(pattern, attention.mask, *labels, link=LINK, palette=palette())
        plot(figure, key=f"{key}-pattern", alt=f"Pattern of head {head.short}, {words}.", height=310)


picker, note = st.columns([1, 4], vertical_alignment="bottom")
st.session_state["control-mask-head"] = head
picker.selectbox(
    "Head",
    heads,
    key="control-mask-head",
    format_func=lambda h: f"head {h.short}",
    on_change=lambda: session.update(head=str(st.session_state["control-mask-head"])),
)
note.caption(orientation() + " Grey and hatched: forbidden, which is not the same as zero.")
row("before", before.attentions[head.site], "before")
row("after", after.attentions[head.site], "after")

blind = int((~after.attentions[head.site].mask.any(axis=1)).sum())
if blind:
    st.warning(f"{blind} queries may see nothing at all: their attention is zero.", icon=":material/visibility_off:")

st.header("What is said", anchor=False)


def strip(seen: Sample) -> list[Token]:
    """What is said at each token: right, wrong, or not to be known. Padding is left out."""
    found = []
    for said, target, answer in zip(seen.predicted, seen.targets, seen.is_answer, strict=True):
        if target == "PAD":
            continue
        if not answer:
            found.append(Token(said, "open"))
        else:
            found.append(Token(said, "right" if said == target else "wrong", target))
    return found


flips = int(((np.array(before.predicted) != np.array(after.predicted)) & before.is_answer).sum())
change = f"{flips} of {int(before.is_answer.sum())} tokens of the answer change."
tokens({"before": strip(before), "after": strip(after)}, palette(), key="mask-tokens", alt=change)
st.caption(change)

st.header("What can be known", anchor=False)
low, high = measured_after.interval()
figure = accuracy_figures.accuracy_by_position_bars(
    measured_after.mean,
    low,
    high,
    ceiling,
    measured_after.chance,
    measured_after.names,
    groups=measured_after.groups,
    before=measured_before.mean,
    sequences=measured_after.sequences,
    palette=palette(),
)
lost = int((measured_after.mean < ceiling - 0.05).sum())
sentence = (
    f"Second half {second[0]:.2f} before, {second[1]:.2f} after. "
    f"The mask lets {int((ceiling == 1).sum())} of {len(ceiling)} targets be known"
    + (
        f"; at {lost} of the {len(ceiling)} this model stays below its ceiling: it never learned to route that way."
        if lost
        else ", and this model is at its ceiling everywhere."
    )
)
plot(figure, key="mask-accuracy", alt=sentence, height=360)
asked = f"{measured_after.sequences:,} fresh sequences of length {length}"
st.caption(f"{sentence} {asked}, the true tokens read (teacher forcing).")
what_if(f"under the mask {mask}", model.config, mask=str(mask))
show_code(f"{type(mask).__module__}.{type(mask).__name__}", "transformer.analysis.ceilings.reachable")
