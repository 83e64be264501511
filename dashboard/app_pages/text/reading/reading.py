"""It reads: where a model is surprised, whether more context helps, and which heads carry on with what came before."""

import numpy as np
import streamlit as st

from dashboard import theme
from dashboard.app_pages.text.reading import heads, measured
from dashboard.app_pages.text.reading.figures import Curve, likeliest_bars, loss_by_place_line, perplexity_bars
from dashboard.app_pages.text.reading.words import (
    distance_title,
    growth_sentence,
    headline,
    most_surprising,
    passage_sentence,
    perplexities,
    says,
    titled,
    whole_sentence,
    word_sentence,
)
from dashboard.components.appearance import is_dark
from dashboard.components.passage import Ground, Passage, Words
from dashboard.components.plot import coloured, plot
from dashboard.frame import other_models
from dashboard.models.passages import held_out, sayable, surprise
from dashboard.parts import waiting
from dashboard.parts.prose import labels_of, plain, show_code
from dashboard.parts.widgets import bound_choice, bound_number, late_title
from dashboard.view import session
from dashboard.view.clicks import once
from transformer.analysis.accuracy.surprise import Surprise
from transformer.tasks import Question
from transformer.text import tokens

HIGHEST = 10.0
"""Nats at the end of the scale of colours."""
HEIGHT = 430
WHAT = {"held": "held out", "input": "the input"}


def chosen_passage() -> tuple[Question, int]:
    """The tokens to be read, and how many of them only lead up to the passage."""
    menus = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with menus, st.container(width="content"):
        what = bound_choice(
            st.segmented_control,
            "Passage",
            "read_what",
            list(WHAT),
            "held",
            format_func=WHAT.__getitem__,
            also={"read_word": None},
        )
    if what == "input":
        return session.question(model), 0
    task = measured.text_of(model)
    titles = [titled(title) for title in task.known.titles]
    with menus:
        number = work_menu(titles)
        _, _, last = held_out(task, number + 1, 1)
        with st.container(width=240):
            first = bound_number("Place", "read_place", 1, 1, last, also={"read_word": None})
        if last > 1:
            st.button("Another place", on_click=move, args=(last,), icon=":material/casino:")
    passage, before, _ = held_out(task, number + 1, first)
    return passage, before


def work_menu(titles: list[str]) -> int:
    """Which of the works; counted from 0."""
    menu = [str(number) for number in range(1, len(titles) + 1)]
    with st.container(width=240):
        picked = bound_choice(
            st.selectbox,
            "Work",
            "read_work",
            menu,
            menu[0],
            format_func=lambda number: titles[int(number) - 1],
            also={"read_place": 1, "read_word": None},
        )
    return int(picked) - 1


@once
def move(last: int) -> None:
    """Read from another place of the same work."""
    session.update(read_place=int(np.random.default_rng().integers(1, last + 1)), read_word=None)


def word_chosen(found: Surprise, words: tuple[str, ...]) -> int:
    """Which token is looked at: the one that the view names, or the most surprising; counted from 0."""
    n = len(found.nats)
    word: int = session.named(
        "read_word",
        range(1, n + 1),
        most_surprising(found, words) + 1,
        lambda word: f"There is no token {word}: the passage has {n}.",
    )
    return word - 1


def surprises(found: Surprise, words: tuple[str, ...], before: int, title: str) -> None:
    """The passage, coloured by what each token cost, and the one that is chosen."""
    st.markdown("**What surprises it?** Each token is coloured by its cost, −log of the probability it was given")
    at, names, key = word_chosen(found, words), model.task.vocabulary, "reading-passage"

    def chose() -> None:
        index = st.session_state[key]["choose"]
        if isinstance(index, int) and 0 <= index < len(words):
            session.update(read_word=index + 1)

    left, right = st.container(key="reading-row").columns([1.7, 1], gap="large")
    with left:
        Passage(
            Words(words, says=says(found, words, names), name="passage"),
            key=key,
            alt=title,
            ground=Ground(found.nats, 0.0, HIGHEST, theme.pattern_colours(is_dark()), "nats", digits=0),
            chosen=at,
            height=HEIGHT,
        ).draw(chose)
        st.caption(passage_sentence(found, before))
        if whole := measured.evaluation(model):
            with st.container(key="reading-whole"):
                said = whole_sentence(whole, measured.wordless(model))
                if compared := perplexities(whole):
                    st.markdown("**Beside models that count** which tokens follow which")
                    figure = coloured(perplexity_bars, compared)
                    plot(figure, key="reading-perplexities", alt=said, height=60 + 30 * len(compared))
                st.caption(said)
    with right:
        st.markdown(plain(word_sentence(found, words, at, sayable(model.task))))
        figure = coloured(
            likeliest_bars,
            [names[token] for token in found.likeliest[at]],
            found.probability[at],
            tokens.shown(words[at]),
            float(np.exp(-found.nats[at])),
        )
        said = "The likeliest tokens at this position: " + ", ".join(
            f"{names[token]} {p:.3f}" for token, p in zip(found.likeliest[at], found.probability[at], strict=True)
        )
        plot(figure, key="reading-likeliest", alt=f"{said}.", height=HEIGHT - 160)
        st.caption("The tokens that the model thought likeliest here. ✓ marks the one in the text.")


def grows() -> None:
    """The loss by place in the window."""
    st.header("Does more context help?", anchor=False)
    found = measured.growth(model)
    said = growth_sentence(found)
    loss = found.found
    half = np.nan_to_num(loss.half)  # one window says nothing of others
    plot(
        coloured(
            loss_by_place_line, loss.names, Curve("loss", loss.nats, loss.nats - half, loss.nats + half), found.unread
        ),
        key="reading-growth",
        alt=said,
        height=320,
    )
    st.caption(
        f"{said} Means over {loss.windows} windows of {found.length} held-out tokens, with 95 % intervals over "
        "windows. At the start of a window the model has read nothing."
        if loss.windows > 1
        else f"{said} Only one window of {found.length} tokens is held out."
    )


def text() -> None:
    """The parts that need a text."""
    title = late_title()
    chosen, before = chosen_passage()
    found = surprise(model, chosen, before)
    words = tuple(model.task.typed(chosen[i : i + 1]) for i in range(before, len(chosen)))
    said = headline(found, words)
    title.title(plain(said), anchor=False)
    surprises(found, words, before, said)
    if session.first_look():
        waiting.hourglass("The effect of context and repetition will now be measured …")
        return
    grows()


def law() -> None:
    """What stands in their place where a model has a law."""
    found = measured.distances(model)
    st.title(distance_title(found, labels_of(found.heads)), anchor=False)
    st.caption(
        f"{plain(model.name)} has learned a rule and no text: no word can surprise it. What its heads look at is "
        "measured below."
    )
    other_models.offer_text(model)


model = session.chosen()
if model.task.lawful:
    other_models.opens_text("It reads", model)
    law()
else:
    text()
if not session.first_look():
    heads.induction(model)
    heads.distances(model)
show_code(
    "transformer.analysis.accuracy.surprise.surprise",
    "transformer.analysis.heads.induction.Repetition",
    "transformer.analysis.heads.distances.by_distance",
)
