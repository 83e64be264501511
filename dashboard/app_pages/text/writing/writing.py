"""A model writes: a prompt goes on token by token; what else might have come, and what every head looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from dashboard import theme
from dashboard.app_pages.text.writing import draft as writing_draft
from dashboard.app_pages.text.writing import words
from dashboard.app_pages.text.writing.draft import Draft, Writing
from dashboard.app_pages.text.writing.figures import alternatives_bars
from dashboard.app_pages.text.writing.glances import Glances
from dashboard.app_pages.text.writing.settings import WritingSettings
from dashboard.components.appearance import is_dark
from dashboard.components.passage import Ground, Passage, Words
from dashboard.components.plot import coloured, plot
from dashboard.frame import other_models
from dashboard.models.model import Model
from dashboard.models.passages import as_typed, in_a_line
from dashboard.parts import waiting
from dashboard.parts.prose import plain, show_code
from dashboard.parts.widgets import bound, controlled
from dashboard.server import background
from dashboard.view import clicks, session
from dashboard.view.link import limits, longest
from transformer.analysis.findings import Head
from transformer.text.task import Text

REFRESH = 0.25  # seconds between two looks at a text that is being written
MORE = 80  # tokens that “Write on” adds
MOST = int(limits("written")[1])
AFRESH: dict[str, object] = {"word": None}


# --- what is asked for


def prompt_of(task: Text) -> str:
    """The prompt of the view, or the page's own."""
    return as_typed(session.mine(WritingSettings).prompt) or writing_draft.opening(task)


def under_way(model: Model, prompt: str) -> Writing | None:
    """The text of this view, growing; None until PyTorch is there. The one before it need not go on."""
    if background.torch() is None:
        return None  # the rerun that follows the first look finds it
    mine = session.mine(WritingSettings)
    found = writing_draft.begun(model, prompt, writing_draft.sampling_of(mine))
    before: Writing | None = st.session_state.get("written_before")
    if before is not None and before is not found:
        before.enough()
    st.session_state.written_before = found
    found.want(mine.written, patience=writing_draft.AT_ONCE)
    return found


def controls(model: Model, task: Text, prompt: str, found: Writing | None) -> None:
    """The prompt, how it is drawn, how far, and the buttons."""
    left, right = st.container(key="stacked-asked").columns([1, 1.85], gap="medium")
    with left:
        controlled(
            st.text_area,
            "Prompt",
            key="control-prompt",
            value=prompt,
            picked=lambda typed: set_prompt(task, typed),
            height=96,
            max_chars=longest("prompt"),
        )
    with right:
        with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
            share(
                "Temperature",
                "temperature",
                "Divides the logits. Below 1, likely tokens become likelier. At 0, the likeliest is always taken",
            )
            share("Top-p", "top_p", "Draw only from the fewest tokens whose probabilities add up to this")
            number("Top-k", "top_k", "Draw only from this many of the likeliest tokens. 0 means all", width=84)
            number("Seed of the draw", "writing_seed", "The same seed draws the same text", width=132)
            number("Tokens to write", "written", f"How many tokens follow the prompt, up to {MOST}", width=124)
        with st.container(horizontal=True, gap="small"):
            buttons(task, found)
    if len(offered := writing_draft.openings(task)) > 1:
        controlled(
            st.pills,
            "Prompts to try",
            offered,
            key="control-openings",
            value=prompt if prompt in offered else None,
            picked=lambda picked: set_prompt(task, picked or writing_draft.opening(task)),
            label_visibility="collapsed",
        )


def buttons(task: Text, found: Writing | None) -> None:
    """Stop or go on, other dice, another prompt."""
    mine = session.mine(WritingSettings)
    reached = 0 if found is None else len(found.said)
    if found is not None and reached < mine.written and not found.failure:
        st.button("Stop", icon=":material/stop:", on_click=stop, args=(found,), key="writing-stop", width=130)
    else:
        st.button(
            "Write on",
            icon=":material/edit:",
            on_click=lambda: session.update(written=min(MOST, mine.written + MORE), word=None),
            disabled=found is None or mine.written >= MOST,
            key="writing-on",
            width=130,
        )
    st.button(
        "Another seed",
        icon=":material/casino:",
        on_click=lambda: session.update(writing_seed=mine.writing_seed + 1, **AFRESH),
        shortcut="A",
        key="writing-again",
        help="The same prompt, other random draws. Your browser’s Back shows the last text again",
    )
    st.button(
        "Draw a prompt",
        icon=":material/menu_book:",
        on_click=draw_prompt,
        args=(task,),
        shortcut="D",
        key="writing-prompt",
    )


def share(label: str, field: str, told: str) -> None:
    bound(st.slider, label, field, also=AFRESH, step=0.01, help=told, width=110)


def number(label: str, field: str, told: str, *, width: int) -> None:
    bound(st.number_input, label, field, also=AFRESH, step=1, help=told, width=width)


def set_prompt(task: Text, text: str) -> None:
    """Go on with what was typed; nothing stands for the page's own prompt."""
    session.update(prompt="" if text == writing_draft.opening(task) else in_a_line(text), **AFRESH)


@clicks.once
def draw_prompt(task: Text) -> None:
    session.update(prompt=in_a_line(writing_draft.drawn(task, np.random.default_rng())), **AFRESH)


@clicks.once
def stop(found: Writing) -> None:
    """Stay at what is written: the view then asks for no more."""
    found.enough()
    session.update(written=max(1, len(found.said)))


# --- what is seen


def growing(found: Writing, said: int) -> bool:
    """Is more to come than what is said?"""
    return said < session.mine(WritingSettings).written and not found.failure


def pictures(model: Model, task: Text, prompt: str, found: Writing) -> None:
    """The text, and the token in view: its alternatives, and what every head looked at."""
    mine = session.mine(WritingSettings)
    found.want(mine.written)
    draft = Draft(task, prompt, tuple(found.said[: mine.written]))
    live = growing(found, len(draft.said))
    speed = 0.0 if live or not found.seconds else len(found.said) / found.seconds
    left, right = st.container(key="stacked-text").columns([1.35, 1], gap="medium")
    place = placed(draft, live)
    look = None if place is None or live else looked_back(model, draft, place)
    with left:
        text(draft, place, None if look is None else look.row, live)
        if look is not None:
            st.caption(look.said)
        if out_of_sight := words.out_of_sight(draft, place, task.n_ctx):
            st.caption(f":material/visibility_off: {plain(out_of_sight)}")
        st.caption(f"{words.own_surprise(draft, live)} {words.how(writing_draft.sampling_of(mine), speed)}".strip())
    with right:
        if place is not None:
            alternatives(model, draft, place)
        if place is not None and look is not None:
            small(draft, place, look)


def placed(draft: Draft, live: bool) -> int | None:
    """The place in view: the one that the link names, or the last word; while it writes, the last token."""
    word = session.mine(WritingSettings).word
    if word is not None and 2 <= word <= len(draft.tokens):
        return word - 1
    if live:
        return len(draft.tokens) - 1 if draft.said else None
    if word is not None:
        session.notice(f"There is no token {word} here. Tokens 2 to {len(draft.tokens)} can be chosen.")
        session.update(word=None)
    return draft.last_word if len(draft.tokens) > 1 else None


@dataclass(frozen=True, eq=False)
class Look:
    """What was looked at when a token was said."""

    heads: list[Head]
    rows: np.ndarray
    """float [head, token], nan where nothing was seen."""
    head: int | None
    """The one in view; None is the mean of all."""
    said: str

    @property
    def row(self) -> np.ndarray:
        """What is seen in the text, float [token]."""
        row: np.ndarray = self.rows.mean(axis=0) if self.head is None else self.rows[self.head]
        return row


def looked_back(model: Model, draft: Draft, place: int) -> Look:
    """What every head looked at when the token at a place was said, and which head is in view."""
    seen = writing_draft.glance(model, draft.tokens, place)
    heads = [Head(site, index) for site, rows in seen.rows.items() for index in range(len(rows))]
    rows = np.full((len(heads), len(draft.tokens)), np.nan, dtype=np.float32)
    rows[:, seen.start : place] = np.concatenate(list(seen.rows.values()))
    names, missing = [str(head) for head in heads], "This model has no such head. You see the mean of all heads."
    named = session.named("head", names, "", lambda _: missing)
    head = names.index(named) if named else None
    who = f"the mean of {len(heads)} heads" if head is None else f"head {heads[head].short}"
    look = Look(heads, rows, head, "")
    return replace(look, said=words.looked(draft, place, who, look.row))


def text(draft: Draft, place: int | None, row: np.ndarray | None, live: bool) -> None:
    """The words; those that the query in view looked at stand on a colour."""

    def chosen() -> None:
        index = st.session_state["writing-passage"]["choose"]
        if isinstance(index, int) and 1 <= index < len(draft.tokens):
            session.update(word=index + 1)

    ground = None
    if row is not None:
        high = float(np.nanmax(row))
        ground = Ground(
            row, 0.0, high if high > 0 else 1.0, theme.pattern_colours(is_dark()), "attention received", faded=True
        )
    Passage(
        Words(draft.pieces, words.says(draft), given=draft.given, first=1, name="written"),
        key="writing-passage",
        alt=f"A prompt of {draft.given - 1} tokens and {len(draft.said)} written ones. Each can be chosen.",
        ground=ground,
        chosen=place,
        arcs=None if row is None else np.nan_to_num(row),
        height=470,
        follow=live,
    ).draw(chosen)


def alternatives(model: Model, draft: Draft, place: int) -> None:
    """What else might have come."""
    found = writing_draft.ranking(model, draft, place)
    said = words.came(draft, place, found)
    st.markdown("**What else it could have written**")
    figure = coloured(
        alternatives_bars,
        [draft.task.vocabulary[token] for token in found.tokens],
        found.probabilities,
        found.drawn_with,
        found.came,
    )
    plot(figure, key="writing-alternatives", alt=said, height=300)
    st.caption(said)


def small(draft: Draft, place: int, look: Look) -> None:
    """Every head's look at the text, in small; a click shows one in the text."""

    def chosen() -> None:
        index = st.session_state["writing-heads"]["choose"]
        if isinstance(index, int) and 0 <= index < len(look.heads):
            session.update(head=str(look.heads[index]))

    with st.container(horizontal=True, vertical_alignment="center"):
        in_text = "the mean of all" if look.head is None else f"head {look.heads[look.head].short}"
        st.markdown(f"**What every head looked at**. In the text: {in_text}")
        if look.head is not None:
            st.button("Mean of all", on_click=lambda: session.update(head=""), key="writing-mean")
    Glances(
        draft.pieces,
        [(int(head.site.split(".")[1]), head.index) for head in look.heads],
        look.rows,
        key="writing-heads",
        alt=look.said,
        query=place - 1,
        chosen=look.head,
    ).draw(chosen)


def page(model: Model, task: Text) -> None:
    prompt = prompt_of(task)
    found = under_way(model, prompt)
    draft = Draft(task, prompt, () if found is None else tuple(found.said[: session.mine(WritingSettings).written]))
    live = found is None or growing(found, len(draft.said))
    st.title(words.headline(draft, session.mine(WritingSettings).written, live), anchor=False)
    controls(model, task, prompt, found)
    if unknown := draft.tokens[: draft.given].count(task.known.vocabulary.unknown):
        st.caption(f":orange[The model does not know {unknown} of the prompt’s tokens. It reads ⟨unk⟩ there.]")
    if found is None:
        waiting.hourglass("It will start in a moment …")
        return
    if found.failure:
        st.error(f"The writing failed: {plain(found.failure)}.", icon=":material/error:")
    if live:
        waiting.until(
            lambda: not growing(found, len(found.said)),
            lambda: pictures(model, task, prompt, found),
            news=lambda: (len(found.said), found.failure),
            every=REFRESH,
        )
    else:
        with st.container():  # as a fragment has one: so what is drawn stays mounted when the last token has come
            pictures(model, task, prompt, found)


model = session.chosen()
if isinstance(model.task, Text):
    page(model, model.task)
else:
    if not other_models.opens_text("It writes", model):
        other_models.text_wanted("It writes", model)
show_code(
    "transformer.generation.distribution",
    "transformer.generation.generate",
    "transformer.generation.Cache.next_logits",
    "transformer.analysis.heads.one_token.glance",
)
