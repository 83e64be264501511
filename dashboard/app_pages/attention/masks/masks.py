"""The same model and the same input under another mask: what changes, what cannot be known, what breaks."""

import streamlit as st

from dashboard.app_pages.attention.masks import retraining, text
from dashboard.app_pages.attention.masks.answers import said
from dashboard.app_pages.attention.masks.canvas import canvas, offer, pick_mask
from dashboard.app_pages.attention.masks.ways import chosen_target, ways
from dashboard.components.plot import coloured, plot
from dashboard.figures import patterns
from dashboard.models import edits
from dashboard.models.long_inputs import from_afar, spans
from dashboard.models.model import mask_edits
from dashboard.parts.heads import LINK, focused, heads_of
from dashboard.parts.prose import capital, head_label, orientation, show_code
from dashboard.parts.text import passage
from dashboard.parts.widgets import late_title, pick_head
from dashboard.parts.yardstick import yardstick
from dashboard.view import session
from transformer.foundation.claims import claim

HEIGHT, FINE, MORE = 270, 32, 60
"""Pixels of a head's pictures; where they have more cells than this on a side, so many more."""
WIDTHS = (1.0, 1.25)
"""Of the mask and of what it costs."""
CAUSE = 130
"""Pixels by which the mask is larger than these."""

REACH = "Which tokens can reach one output?"

model = session.chosen()
task, question = model.task, session.question(model)
title = late_title()
mask, first = pick_mask(model)
with first:
    offer(model, mask)
pad = task.lawful and len(question) < task.length  # a text is never padded

before = model.sample(question, own_words=False, pad=pad)
after = model.sample(question, own_words=False, pad=pad, mask=mask)
stack = "encoder" if model.config.model.architecture == "encoder" else "decoder"
heads = [head for head in heads_of(before.attentions) if head.site.startswith(stack) and "self" in head.site]
focus = focused(heads_of(before.attentions), model.survey())
head = focus if focus in heads else heads[0]
attention = after.attentions[head.site]
scored, seen = (from_afar(each, words=not task.lawful) for each in (before.attentions[head.site], attention))
height = HEIGHT + (MORE if len(seen.mask) > FINE else 0)

# The cause on the left, and beside it what it costs.
left, three = st.container(key="masks-row").columns(WIDTHS, gap="medium")
with left:
    st.markdown("**The mask**: drag to paint or wipe")
    canvas(mask, attention, seen, height=height + CAUSE)
    own = f"The model's own mask is **{model.config.model.mask_label}**."
    st.caption(
        f"**{mask.label}**: {mask.description}. {own}"
        + (f" The input is padded to length {task.length}." if pad else "")
    )
    st.markdown(f"Below: [{REACH}](#reach)")
seeds, reach = st.container(), st.container()
st.header("What it does to a head", anchor=False)
with st.container(key="masks-head"):
    chosen, scores, pattern = st.columns((0.7, 1.0, 1.0), gap="medium")
with chosen:
    pick_head(heads, head, width="stretch")
    st.caption(f"{orientation()} Grey and hatched: the mask forbids this key. That is not the same as a score of zero.")
with scores:
    st.markdown("**Scores** under the model’s own mask")
    figure = coloured(
        patterns.scores_heatmap,
        scored.scores[head.index],
        scored.mask,
        scored.queries,
        scored.keys,
        spans=spans(scored),
        link=LINK,
    )
    plot(
        figure,
        key="before-scores",
        alt=f"Scores of {head_label(head, model.config.model)} under the model's own mask.",
        height=height,
    )
with pattern:
    st.markdown("**Pattern** under this mask")
    figure = coloured(
        patterns.pattern_heatmap,
        seen.pattern[head.index],
        seen.mask,
        seen.queries,
        seen.keys,
        spans=spans(seen),
        link=LINK,
    )
    plot(
        figure,
        key="after-pattern",
        alt=f"Pattern of {head_label(head, model.config.model)} under this mask.",
        height=height,
    )

st.header("What the model says", anchor=False)
if task.lawful:
    said(model, before, after)
else:
    masked = edits.said(model, question, mask_edits(model, mask, len(question)))
    passage(edits.said(model, question, ()), masked, key="mask-tokens")

# What was asked for is on the screen; what takes longer comes after it, also where it stands above.
length = len(question) if len(question) in task.lengths else task.length
yard = yardstick(model, length)
with title:
    compared = yard.as_it_is(), yard.as_it_is(mask)


@claim
def headline() -> str:
    """How good the model is under its own mask, or what another one changes."""
    if str(mask) == model.config.model.mask:
        return f"{capital(mask.under('its'))} {yard.state(compared[0])}. And under another?"
    return yard.change(capital(mask.under()), *compared)


title.title(headline(), anchor=False)
with three:
    if task.lawful:
        retraining.pictures(model, mask, length)
    else:
        text.pictures(yard, mask, *compared)
with seeds:
    if task.lawful:
        retraining.seeds()
with reach:
    st.header(REACH, anchor="reach")
    ways(model, mask, length, chosen_target(task, length), before)
show_code(f"{type(mask).__module__}.{type(mask).__name__}", "transformer.analysis.accuracy.reachability.flow")
