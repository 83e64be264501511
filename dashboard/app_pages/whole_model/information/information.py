"""Follow the information: poke a token and see every output that moved, beside gradients and attention."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard.app_pages.whole_model.information import matrices
from dashboard.app_pages.whole_model.information.figures import moved_strip
from dashboard.app_pages.whole_model.information.influence import Asked, Flow
from dashboard.app_pages.whole_model.information.matrices import Matrix
from dashboard.app_pages.whole_model.information.settings import InformationSettings
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import signed
from dashboard.frame import other_models
from dashboard.models import heads as models_heads
from dashboard.parts import waiting
from dashboard.parts.heads import LINK, focused, heads_of
from dashboard.parts.prose import plain, share_of_cells, show_code
from dashboard.parts.widgets import bound_choice, late_title, pick_head, pick_token, told
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import session
from transformer.analysis.heads.rollout import depth

MOST_BUTTONS = 32  # more tokens than this, and they are a menu
EVERY, EVERY_COMMON = "every other symbol in turn", "each of the commonest in turn"
MOST_OFFERED = 32  # of a text's commonest tokens; any other can be typed
ROLLOUT, HEAD = "rollout", "head"


def poked_slot(slots: int, default: int) -> int:
    """The slot that the view names, from 0, or the page's choice."""
    number: int = session.named(
        "poked",
        range(1, slots + 1),
        default + 1,
        lambda number: f"There is no token {number} to replace: there are {slots}. The page shows token {default + 1}.",
    )
    return number - 1


def choose(number: int) -> None:
    """Poke another token, counted from 1; the page's own choice is left out of the link."""
    session.update(poked=None if number == middle + 1 else number)


def pick_slot(label: str, key: str, tokens: Sequence[str], first: int, slot: int) -> None:
    """A row of tokens to click, of the slots from `first` on; the poked one is pressed."""
    pick_token(
        label,
        tokens,
        slot + 1,
        lambda number: choose(number or slot + 1),  # pressed again, it stays
        key=key,
        most=MOST_BUTTONS,
        before=first,
    )


def matrix(flow: Flow, found: Matrix, key: str) -> None:
    """One of the three: they share the hovered cell, and a click pokes the token of its column."""

    def clicked() -> None:
        column = (st.session_state[key]["click"] or {}).get("column")
        if column is not None and 0 <= column < len(flow.grain.poked):
            choose(flow.grain.poked[column] + 1)

    cells, hidden, said = found.values.size, int((~found.reach).sum()), found.greatest()
    alt = f"{said} Forbidden: {share_of_cells(hidden, cells)}."
    rows, columns = found.values.shape
    height = 90 + min(290, 320 * rows // columns)  # wide for a source and the tokens after it
    plot(coloured(found.figure, LINK), key=key, alt=alt, height=height, on_click=clicked)
    st.caption(plain(said))


def attention(flow: Flow) -> None:
    """What is compared: attention rolled out through all layers, or the head in focus."""
    heads = heads_of(sample.attentions)
    if not heads:
        other_models.attention_wanted(model)
        return
    with heading():
        # Rows of a pattern that was downsampled do not sum to 1, and are not multiplied.
        downsampled = any(attention.factor > 1 for attention in sample.attentions.values())
        menu = [HEAD] if recurrent or downsampled else [ROLLOUT, HEAD]
        chosen = bound_choice(
            st.segmented_control,
            "Attention to compare with",
            "beside",
            menu,
            menu[0],
            label_visibility="collapsed",
            width="content",
        )
        if chosen == ROLLOUT:
            st.markdown("attention through all layers", width="content")
        else:
            head = focused(heads, model.survey())
            several = len({each.kind for each in heads}) > 1
            pick_head(heads, head, label_visibility="collapsed", width=175 if several else 120)
    if chosen == ROLLOUT:
        with told():
            rolled, even = models_heads.rolled(model, question, depth(sample.attentions) - 1)
            matrix(flow, matrices.rolled_out(flow, rolled, even), "beside")
        return
    seen = flow.over_slots(head)
    if seen is None:
        st.info("The rows of an encoder head are tokens of the source, not outputs. Choose a head of the decoder.")
        return
    matrix(flow, matrices.head_of(flow, *seen), "beside")


def heading() -> DeltaGenerator:
    """Room above a matrix, the same for all three (frame/style.css)."""
    return st.container(horizontal=True, vertical_alignment="center", gap="small")


def controls() -> tuple[int, int | None]:
    """Which slot is poked, from 0, and by which symbol; None is every other in turn."""
    slot = poked_slot(n_source + n_tokens, middle)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if n_source:
            with st.container(width="content"):
                pick_slot("Replace a token of the source", "control-poked-source", sample.question, 0, slot)
        with st.container(width="content"):
            pick_slot(
                "Replace a token that the decoder reads" if n_source else "Replace a token",
                "control-poked",
                sample.read,
                n_source,
                slot,
            )
        every = EVERY if task.lawful else EVERY_COMMON
        wanted = bound_choice(st.selectbox, "Replacement", "replacement", [every, *offered()], every, **replacing)
    return slot, None if wanted == every else task.vocabulary.index(wanted)


def offered() -> list[str]:
    """What can be put in a token's place: every symbol; of a text the commonest, the passage's own, and the typed."""
    names = task.vocabulary[: task.symbols]
    if task.lawful:
        return list(names)
    own = [names[token] for token in dict.fromkeys(question.tolist())]
    typed = session.mine(InformationSettings).replacement
    return list(dict.fromkeys([*names[:MOST_OFFERED], *own, *([typed] if typed in names else [])]))


def so_far(asked: Asked) -> None:
    """How far the measurement is."""
    share, words = asked.so_far()
    st.progress(share, text=words)


def follow() -> None:
    """The poked token, what it moves, and the three matrices."""
    title = late_title()
    asked = Asked.of(model, question, *controls())
    flow = asked.ready()
    if flow is None:  # of hundreds of tokens that takes seconds
        title.title("Which outputs move when a token is replaced?", anchor=False)
        waiting.until(lambda: asked.done, lambda: so_far(asked), news=lambda: (asked.done, asked.so_far()))
        return
    title.title(plain(flow.headline()), anchor=False)
    st.markdown(f"**{plain(flow.verdict())}** {plain(flow.flips())}")
    st.html(coloured(moved_strip, flow.outputs))
    one, two, three = st.container(key="information-row").columns(3, gap="medium")
    with one:
        by = "replaced in turn" if flow.replacement is None else f"replaced by '{flow.symbol}'"
        which = "each token" if flow.grain.whole else f"one token in {flow.grain.factor}"
        heading().markdown(f"**|Δlogit|**, {which} {by}")
        matrix(flow, matrices.moves(flow), "moves")
    with two:
        heading().markdown("**Gradient** of the output’s logit")
        matrix(flow, matrices.slopes(flow), "slopes")
    with three:
        attention(flow)
    if not flow.grain.whole:
        st.caption(flow.from_afar())
    path = "that token is read later" if recurrent else "no path through the masks"
    rollout = (
        "" if recurrent else " Rollout multiplies the attention of all layers; half of each layer is the residual path."
    )
    st.caption(
        "Row = output, named by the token it says. Column = the token that is replaced, or looked at. Positions count "
        f"from 1. Framed: the chosen token; click a column to choose another. Grey and hatched: {path}."
    )
    st.caption(
        f"|Δlogit|: the largest change of any logit of that output, {flow.tried()}. All other tokens stay. "
        "Gradient: the "
        "length of ∂logit / ∂embedding, the effect of a very small change of the token's vector. It is near 0 where a "
        f"softmax is sure, even where another token would move the output a lot.{rollout}"
    )
    st.header("Which outputs move most?", anchor=False)
    digits = {"probability of what it said": "%.3f", "|Δlogit|": "%.2f"}
    columns = {name: st.column_config.NumberColumn(format=form) for name, form in digits.items()}
    # Streamlit's own formats write a hyphen for a minus; the numbers stay numbers, to be sorted.
    shown = flow.biggest().style.format({"Δ": lambda change: signed(change, 3, plus=True)})
    st.dataframe(shown, hide_index=True, column_config=columns)


model = session.chosen()
recurrent = model.config.model.recurrent
task, question = model.task, session.question(model)
n_tokens, n_source = len(task.target_names(len(question))), len(question) if task.has_source else 0
middle = len(question) // 2  # of the question, whose slots come first
if not task.lawful:  # a word there, not the blank beside it
    words = [any(letter.isalnum() for letter in task.vocabulary[token]) for token in question[: n_tokens - 1]]
    middle = next((place + 1 for place in range(max(0, middle - 1), len(words)) if words[place]), middle)
replacing: dict[str, Any] = {"width": 220} if task.lawful else {"width": 300, "accept_new_options": True}
sample = model.sample(question)
follow()
show_code("transformer.analysis.interventions.influence.poke", "transformer.analysis.interventions.influence.gradients")
