"""Through the layers: the residual stream as it becomes the answer, and attention rolled out through all of them."""

import streamlit as st

from dashboard.app_pages.whole_model.layers import lens, rollout
from dashboard.app_pages.whole_model.layers.settings import LayersSettings
from dashboard.parts.prose import orientation, show_code
from dashboard.parts.widgets import bound, told
from dashboard.view import session
from transformer.analysis.heads.rollout import depth

model = session.chosen()
task, question = model.task, session.question(model)
reading = lens.Reading.of(model, question)
st.title(reading.headline(), anchor=False)
words, toggle = st.columns([2.6, 1.2], vertical_alignment="center")
framed = " Framed: the answers that can be known." if task.lawful else ""
words.caption(
    "The logit lens reads the residual stream as if the model stopped there. The embedding is at the bottom, the "
    "output at the top. A letter is what the model would say there; ✓ or a dot means right. Colour: the probability "
    "of the "
    f"{'likeliest' if session.mine(LayersSettings).likeliest else 'right'} token.{framed}"
)
with toggle:
    bound(
        st.toggle,
        "Colour by likeliest token",
        "likeliest",
        help="Off: colour is the probability of the right token. On: colour is that of the likeliest token, so "
        "it shows how sure "
        "the stage is.",
    )
lens.stages(reading, key="lens")
lens.cell(model, reading)
unread = "chance" if task.lawful else "how common the right token is in the text, which is known without reading"
st.caption(f"Click a cell to look into it. Dashed: {unread}. The last stage is exactly what the model says.")

st.header("Where it comes from", anchor=False)
sample = model.sample(question)
through = rollout.pick_layer(depth(sample.attentions))
with told():
    found = rollout.Rolled.of(model, question, sample.attentions, through)
    st.markdown(f"**{found.sentence()}**")
    rollout.pictures(found, task.has_source)
    outlined = "" if rollout.is_long(found) or not task.points else "Outlined: where the answer stands. "
    rest = (
        " The rest of each rollout row lies on the tokens that the decoder has read itself." if task.has_source else ""
    )
    fed = " and what the feed-forward layers do" if model.config.model.d_ff else ""
    st.caption(
        f"{outlined}Grey and hatched: no path through the masks. {orientation()} Rollout multiplies the "
        "layers’ maps, each half what was there and half the mean of its heads. It ignores what the values carry"
        f"{fed}, and it counts all heads alike, useful or not.{rest}"
    )

st.header("Who wrote the answer", anchor=False)
with told():
    lens.writers(model, question, reading)
    scale = (
        f"The scale of each {model.config.model.kind_of_norm.title} is kept from this pass, so the"
        if model.config.model.norm != "none"
        else "The"
    )
    st.caption(
        f"A cell is what one head{' or feed-forward layer' * bool(model.config.model.d_ff)} adds to the logit of the "
        "right token, compared with the "
        f"mean over all tokens. {scale} parts, the embedding and the biases add up exactly. What a part causes "
        "through later parts counts as theirs."
    )
show_code(
    "transformer.analysis.stream.lens.logit_lens",
    "transformer.analysis.heads.rollout.mix",
    "transformer.analysis.heads.rollout.rollout",
    "transformer.analysis.stream.attribution.direct_logits",
)
