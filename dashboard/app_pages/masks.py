"""The same model and the same input under another mask: what changes, what cannot be known, what breaks."""

import streamlit as st

from dashboard import session
from dashboard.attention import LINK, focused, heads_of, palette
from dashboard.components.plot import plot
from dashboard.figures import accuracy as accuracy_figures
from dashboard.figures import patterns
from dashboard.painting import WIDTHS, canvas, pick_mask
from dashboard.prose import orientation, show_code
from dashboard.spoken import said
from dashboard.whatif import what_if
from transformer.analysis import ceilings

HEIGHT = 310  # pixels of each of the three pictures

model = session.chosen()
task, question = model.task, session.question(model)
title = st.container()
mask, beside = pick_mask(model)
pad = len(question) < task.length

before = model.sample(question, own_words=False, pad=pad)
after = model.sample(question, own_words=False, pad=pad, mask=mask)
stack = "encoder" if model.config.model.architecture == "encoder" else "decoder"
heads = [head for head in heads_of(before.attentions) if head.site.startswith(stack) and "self" in head.site]
focus = focused(heads_of(before.attentions), model.survey())
head = focus if focus in heads else heads[0]
scored, seen = before.attentions[head.site], after.attentions[head.site]

with beside:
    st.session_state["control-mask-head"] = head
    st.selectbox(
        "Head",
        heads,
        key="control-mask-head",
        format_func=lambda h: f"head {h.short}",
        on_change=lambda: session.update(head=str(st.session_state["control-mask-head"])),
    )
left, middle, right = st.columns(WIDTHS, gap="medium")
with left:
    st.markdown("**scores before**")
    figure = patterns.scores_heatmap(
        scored.scores[head.index], scored.mask, scored.queries, scored.keys, link=LINK, palette=palette()
    )
    plot(figure, key="before-scores", alt=f"Scores of head {head.short} under the model's own mask.", height=HEIGHT)
    st.caption(f"{orientation()} Grey and hatched: forbidden, which is not the same as zero.")
with middle:
    st.markdown("**the mask**, to be painted")
    canvas(mask, seen, height=HEIGHT + 50)
with right:
    st.markdown("**pattern after**")
    figure = patterns.pattern_heatmap(
        seen.pattern[head.index], seen.mask, seen.queries, seen.keys, link=LINK, palette=palette()
    )
    plot(figure, key="after-pattern", alt=f"Pattern of head {head.short} under this mask.", height=HEIGHT)
    st.caption(
        f"**{mask.label}**: {mask.description}. The model was trained under **{model.config.model.mask_label}**."
        + (f" The input is padded to length {task.length}." if pad else "")
    )

st.header("What is said", anchor=False)
said(before, after, task.chance)

# What was asked for is on the screen; what takes longer comes after it.
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
what_if(f"under the mask {mask.label}", model.config, mask=str(mask))
show_code(f"{type(mask).__module__}.{type(mask).__name__}", "transformer.analysis.ceilings.reachable")
