"""The mask under test: chosen from the rules or from the kept ones, and painted on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import streamlit as st

from dashboard.app_pages.attention.masks import kept_masks
from dashboard.app_pages.attention.masks.kept_masks import BookError
from dashboard.components.painter import Painter
from dashboard.components.plot import coloured, plot
from dashboard.figures import patterns
from dashboard.models import menu
from dashboard.models.long_inputs import spans, squares, squares_sentence
from dashboard.models.model import Model
from dashboard.parts.heads import LINK
from dashboard.parts.prose import plain, sentence, share_of_cells
from dashboard.parts.widgets import barred, controlled
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import clicks, permission, session
from dashboard.view.link import longest
from dashboard.view.training import is_mask
from transformer import masks
from transformer.analysis.findings import Attention
from transformer.foundation.foreign import shortened
from transformer.masks import MASKS, Mask
from transformer.masks.painted import LARGEST, Painted

TO_TRY, TO_TRY_OF_A_TEXT = "sliding-window:2", "recent:4"
"""The mask that is offered as long as the model has its own."""
MOST_NAMED = 8
"""Queries that see nothing which are named; of more, their number is said."""


def pick_mask(model: Model) -> tuple[Mask, DeltaGenerator]:
    """The mask of the view, and the ways to another: a rule and its numbers, or one that was kept.

    Returns it with a place beside these for what else belongs there.
    """
    mask = _of_the_view(model)
    with st.container(key="compact-rules"):
        _rules(mask)
    numbers, beside, kept = st.columns((1.0, 1.4, 0.6), vertical_alignment="bottom", gap="medium")
    with kept:
        _kept(mask, positions(model))
    with numbers:
        _numbers(mask)
    return mask, beside


def positions(model: Model) -> int:
    """How many positions the mask is about: as many as the model's longest input has; of a text, as this passage."""
    task = model.task
    return len(task.target_names(task.length if task.lawful else len(session.question(model))))


def _of_the_view(model: Model) -> Mask:
    """The mask that the view names, or the model's own; one that is none, or too short, falls back with a notice."""
    own = model.config.model.mask
    text = session.settings().mask or own
    if not is_mask(text):
        session.notice(f"There is no mask “{shortened(text, 30)}”. The page shows the model's own mask.")
    elif (longest := masks.parse(text).longest) is not None and longest < positions(model):
        session.notice(
            f"The mask was painted for {longest} positions, and {_whose(model)} has {positions(model)}. The page shows "
            "the model's own mask."
        )
    else:
        return masks.parse(text)
    session.update(mask="")
    return masks.parse(own)


def offer(model: Model, mask: Mask) -> None:
    """One mask to begin with, as long as the model has its own."""
    if str(mask) != model.config.model.mask:
        return
    tried = masks.parse(TO_TRY if model.task.lawful else TO_TRY_OF_A_TEXT)
    st.button(
        f"Try another mask: {tried.description}",
        on_click=lambda: session.update(mask=str(tried)),
        icon=":material/play_arrow:",
        type="primary",
        key="try-a-mask",
    )


def _whose(model: Model) -> str:
    return model.name if model.task.lawful else "this passage"


def _rules(mask: Mask) -> None:
    def picked(name: str | None) -> None:
        if name:
            session.update(mask=str(MASKS[name]()))

    controlled(
        st.segmented_control,
        "Start from",
        list(masks.rules()),
        key="control-mask",
        value=mask.name if mask.longest is None else None,
        picked=picked,
        label_visibility="collapsed",
    )


def _numbers(mask: Mask) -> None:
    """The numbers of a rule. What is painted has none."""
    fields = dataclasses.fields(mask) if mask.longest is None else ()
    columns = st.columns(len(fields)) if fields else []
    for field, column in zip(fields, columns, strict=True):

        def picked(number: int, name: str = field.name) -> None:
            session.update(mask=str(dataclasses.replace(mask, **{name: number})))

        controlled(
            column.number_input,
            field.name.capitalize(),
            *masks.limits(field),
            key=f"control-mask-{field.name}",
            value=getattr(mask, field.name),
            picked=picked,
        )


# --- kept by name


def _kept(mask: Mask, n: int) -> None:
    """Masks by name: keep this one, take another, delete one and have it back."""
    try:
        book = kept_masks.kept(menu.ROOT)
    except BookError as error:
        st.popover("Saved", icon=":material/bookmark:", width="stretch").error(sentence(plain(str(error))))
        return
    fitting = {name: text for name, text in book.items() if (masks.parse(text).longest or n) >= n}
    here = next((name for name, text in fitting.items() if text == str(mask)), None)
    with st.popover(f"Saved ({len(fitting)})", icon=":material/bookmark:", width="stretch"):
        if fitting:
            _menu(fitting, here)
        if here is None:
            _keep(mask)
        else:
            why = permission.for_the_owner("delete masks")
            st.button(
                f"Delete “{plain(here)}”",
                on_click=_delete,
                args=(here,),
                icon=":material/delete:",
                **barred(why),
            )
        if deleted := st.session_state.get("deleted_mask"):
            st.button(f"Bring “{plain(deleted[0])}” back", on_click=_restore, args=deleted, icon=":material/undo:")
        if problem := st.session_state.pop("mask_problem", ""):
            st.error(plain(problem), icon=":material/error:")


def _menu(book: dict[str, str], here: str | None) -> None:
    def picked(name: str | None) -> None:
        if name in book:
            session.update(mask=book[name])

    controlled(
        st.selectbox,
        "Saved masks",
        list(book),
        key="control-mask-saved",
        value=here,
        picked=picked,
        placeholder="Choose one",
        index=None,
    )


def _keep(mask: Mask) -> None:
    key, why = "control-mask-name", permission.for_the_owner("save masks")

    def written(typed: str) -> None:
        name = typed.strip()
        if not name or why:
            clicks.touch()
        elif _tried(lambda: kept_masks.keep(menu.ROOT, name, mask)):
            st.session_state[key] = ""

    controlled(
        st.text_input,
        "Save this mask as",
        key=key,
        value=st.session_state.get(key, ""),
        picked=written,
        max_chars=kept_masks.MOST_LETTERS,
        placeholder="a name, then Enter",
        **barred(why),
    )


@clicks.once
@permission.owners
def _delete(name: str) -> None:
    def done() -> None:
        st.session_state.deleted_mask = (name, kept_masks.drop(menu.ROOT, name))

    _tried(done)


@clicks.once
@permission.owners
def _restore(name: str, mask: Mask) -> None:
    if _tried(lambda: kept_masks.keep(menu.ROOT, name, mask)):
        del st.session_state.deleted_mask
        session.update(mask=str(mask))


def _tried(change: Callable[[], None]) -> bool:
    """Whether a change of the book could be made; if not, the reason is said."""
    clicks.touch()
    try:
        change()
    except BookError as error:
        st.session_state.mask_problem = sentence(str(error))
        return False
    return True


# --- painted


def canvas(mask: Mask, attention: Attention, seen: Attention, *, height: int) -> None:
    """The mask that `attention` was made under, to be painted on, in the squares in which it is `seen` from afar."""
    cells, labels = attention.mask, (seen.queries, seen.keys)
    n = len(cells)
    said = _in_words(mask, attention)
    if attention.factor > 1 or n > LARGEST:
        figure = coloured(patterns.mask_heatmap, seen.mask, *labels, spans=spans(seen), link=LINK)
        plot(figure, key="mask", alt=said, height=height)
        tokens = (attention.whole or cells.shape)[0]
        st.caption(f"{said} Painting is for up to {LARGEST} positions; this input has {tokens}.")
        return

    def painted(cells: np.ndarray) -> bool:
        text = str(as_mask(cells))
        short = len(text) <= longest("mask")
        if short:
            session.update(mask=text)
        else:
            session.notice(
                f"This mask is too irregular for a link: it takes {len(text):,} letters, and a link has room for "
                f"{longest('mask'):,}. The mask stays as it was."
            )
        return short

    Painter(
        cells,
        attention.queries,
        attention.keys,
        key="painter",
        alt=said,
        link=LINK,
        height=height,
        squares=squares(seen),
    ).draw(painted)
    if seen.factor > 1:
        st.caption(squares_sentence(seen.factor, "only some of its cells may be seen"))


def _in_words(mask: Mask, attention: Attention) -> str:
    """What a mask lets be seen, and which queries it leaves with nothing."""
    cells, factor = attention.mask, attention.factor
    if factor > 1:
        return (
            f"Mask {mask.label}, downsampled: one cell stands for {factor} × {factor}, and is open where any "
            "of them is."
        )
    blind = [str(1 + query) for query in np.flatnonzero(~cells.any(axis=1))]
    if len(blind) > MOST_NAMED:
        blind[MOST_NAMED:] = [f"{len(blind) - MOST_NAMED} more"]
    said = f"Mask {mask.label}: {share_of_cells(int(cells.sum()), cells.size)} may be seen."
    if not blind:
        return said
    who, whose = ("The query", "its") if len(blind) == 1 else ("The queries", "their")
    return f"{said} {who} at {', '.join(blind)} may see nothing: {whose} attention is zero."


def as_mask(cells: np.ndarray) -> Mask:
    """The mask of these cells, bool [query, key]: the rule that says just that, if there is one, else a painted one."""
    n = len(cells)
    kinds = sorted((MASKS[name] for name in masks.rules()), key=lambda kind: len(dataclasses.fields(kind)))
    # Of hundreds of numbers most are ruled out by three rows.
    rows, keys, none = np.array([0, n // 2, n - 1])[:, None], np.arange(n)[None, :], np.zeros((1, n), dtype=bool)
    for kind in kinds:
        fields = dataclasses.fields(kind)
        if len(fields) > 1:
            continue  # two numbers are too many to be tried
        tried = [kind.read([str(value)]) for value in range(masks.limits(fields[0])[0], n + 1)] if fields else [kind()]
        for mask in tried:
            if (mask.visible(rows, keys, none) == cells[rows[:, 0]]).all() and np.array_equal(mask.matrix(n), cells):
                return mask
    return Painted.of(cells)
