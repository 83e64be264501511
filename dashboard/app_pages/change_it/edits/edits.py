"""The same model with some of it changed: what breaks, what is made up for, and where the difference lies."""

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from dashboard.app_pages.change_it.edits import chips, second_input
from dashboard.components.plot import coloured, plot
from dashboard.figures import effects
from dashboard.figures.html.tokens import Token
from dashboard.models import edits
from dashboard.parts import claims, text, waiting
from dashboard.parts import tokens as parts_tokens
from dashboard.parts.learning import accuracy_bars
from dashboard.parts.prose import sentence, show_code
from dashboard.parts.text import windows
from dashboard.view import session
from transformer.analysis.findings import Head
from transformer.analysis.heads.measure import heads_of
from transformer.analysis.interventions.effects import Said
from transformer.analysis.interventions.patching import Patching
from transformer.edits import EditError
from transformer.edits.heads.patch_input import PatchInput
from transformer.text.perplexity import said as in_words

model = session.chosen()
task, question = model.task, session.question(model)
title = st.container()  # not empty(): what stood there stays until the new title does
found = chips.chips(model, question)
made = chips.active(found)
heads = list(heads_of(model.network()))
chips.row(found)
chips.add(model, question, found, heads)


def strip(said: Said, before: Said | None = None) -> list[Token]:
    """What is said at each token: right, wrong, or not to be known; and whether it was another before."""
    changed = said.is_answer & (np.array(said.tokens) != np.array((before or said).tokens))
    rows = zip(said.tokens, said.targets, said.right, said.is_answer, changed, strict=True)
    return [
        Token(token, ("right" if right else "wrong") if answer else "open", target, bool(change))
        for token, target, right, answer, change in rows
    ]


def said() -> None:
    """What it says to this input, before and after."""
    first, last = edits.said(model, question, ()), edits.said(model, question, made)
    if not task.lawful:
        text.passage(first, last if made else None, key="edits-said")
        return
    lines = {"before": strip(first), "after": strip(last, first)} if made else {"says": strip(first)}
    flips = int(((np.array(first.tokens) != np.array(last.tokens)) & first.is_answer).sum())
    of = int(first.is_answer.sum())
    changes = (
        f"{flips} of {of} tokens of the answer change"
        if made
        else f"{int(first.right[first.is_answer].sum())} of {of} tokens of the answer are right"
    )
    parts_tokens.tokens(lines, key="edits-said", alt=f"{changes}.")
    st.caption(f"{changes}.{claims.read(model)}")


said()
length = len(question) if len(question) in task.lengths else task.length
measure: Callable[..., Any] = edits.accuracy if task.lawful else edits.reading
before = measure(model, (), length)
after, unmeasured = before, ""
try:
    after = measure(model, made, length)
except EditError as error:
    unmeasured = sentence(str(error))


def headline() -> str:
    """The larger change of the two halves, or of a text's perplexity, in a sentence."""
    if not made and not task.lawful:
        return f"Nothing is edited: perplexity is {in_words(before.perplexity)} in {windows(*before.nats.shape)}."
    if not made:
        return f"Nothing is edited: the second half stands at {before.of('second half'):.2f}."
    what = f"With {made[0].words}" if len(made) == 1 else f"With {len(made)} edits"
    if unmeasured:
        return f"{what} only inputs of {len(question)} symbols can be asked, and it was trained on others."
    if not task.lawful:
        return text.change(what, before, after)
    halves = {half: (before.of(half), after.of(half)) for half in ("second half", "first half")}
    half, (was, is_now) = max(halves.items(), key=lambda item: np.nan_to_num(abs(item[1][1] - item[1][0])))
    if f"{was:.2f}" != f"{is_now:.2f}":
        return f"{what} the {half} {'falls' if is_now < was else 'rises'} from {was:.2f} to {is_now:.2f}."
    return f"{what} the second half keeps its {after.of('second half'):.2f}."


title.title(headline(), anchor=False)


def accuracy() -> None:
    """Accuracy by position, before and after."""
    if unmeasured:
        what = "accuracy" if task.lawful else "loss"
        st.info(f"This is the {what} without the edits. {unmeasured}", icon=":material/info:")
    if not task.lawful:
        old = before if made and not unmeasured else None
        words = "Without edits." if old is None else "Open: as it is. Filled: with the edits."
        text.by_place(model, after, old, key="edits-accuracy", height=330, words=words)
        return
    figure = accuracy_bars(model, after, length, before=before.mean if made and not unmeasured else None)
    halves = f"Second half {after.of('second half'):.2f}."
    if made and not unmeasured:
        halves = f"Second half {before.of('second half'):.2f} before, {after.of('second half'):.2f} after."
    plot(figure, key="edits-accuracy", alt=f"Accuracy by position. {halves}", height=330)
    same = [f" Each is handed what {edit.name} found in {edit.typed}." for edit in made if isinstance(edit, PatchInput)]
    st.caption(f"{halves} {after.sequences:,} fresh sequences of length {length}.{''.join(same)}")


def canvas() -> None:
    """Where a head is told to look, painted by hand; of several such chips the one that is picked."""
    names = {chip.name: chip for chip in reversed(painted)}
    name = next(iter(names))
    if len(names) > 1:
        name = st.selectbox("Paint", list(names), key="edits-painted", format_func=lambda n: names[n].edit.words)
    chips.canvas(model, question, found, names[name], height=360)


def removals() -> None:
    """What removing each head costs; a click removes it, or brings it back."""
    if not task.lawful:
        silenced = {chip.text.removeprefix("zero:") for chip in found if chip.on}
        does = "Click a cell to remove that head, or to bring it back (✗ = removed)."
        pick = lambda head: chips.toggle(found, f"zero:{head}")  # noqa: E731
        text.heads(model, made, heads, silenced, length, key="edits-removal", choose=pick, does=does)
        return
    sites = list(dict.fromkeys(head.site for head in heads))
    many = len({head.kind for head in heads}) > 1
    names = [f"layer {site.split('.')[1]}{f', {Head(site, 0).kind}' if many else ''}" for site in sites]
    drops = edits.removal(model, made).mean.reshape(len(sites), -1)
    on = {chip.text for chip in found if chip.on}
    gone = np.array([f"zero:{head}" in on for head in heads]).reshape(drops.shape)
    worst = heads[int(drops.argmax())]
    name = f"head {worst.short}{f' ({worst.kind})' if many else ''}"
    words = f"Removing {name} costs most: {drops.max():.2f} of the answer’s accuracy."
    if drops.max() < claims.FELT:
        words = f"No head is needed by itself: removing any one costs less than {claims.FELT:g} of the accuracy."

    def clicked() -> None:
        click = st.session_state["edits-removal"]["click"]
        if click and click.get("row") is not None:
            chips.toggle(found, f"zero:{sites[click['row']]}.{click['column']}")

    figure = coloured(effects.removal_heatmap, drops, names, gone)
    plot(figure, key="edits-removal", alt=words, height=max(240, 60 + 42 * len(sites)), on_click=clicked)
    st.caption(f"{words} Click a cell to remove that head, or to bring it back (✗ = removed).")


def twos() -> None:
    """Which heads make up for which."""
    if len(heads) < 2:
        st.caption("There is one head, and so no two to remove together.")
        return
    chart, bar = st.container(), st.empty()
    extra = edits.redundancy(model, made, lambda share: bar.progress(share, "Removing the heads by twos …"))
    bar.empty()
    others = np.where(np.eye(len(heads), dtype=bool), 0.0, extra)
    one, other = np.unravel_index(int(np.abs(others).argmax()), others.shape)
    many = len({head.kind for head in heads}) > 1
    chosen = [heads[min(one, other)], heads[max(one, other)]]
    pair = "heads " + " and ".join(f"{head.short}{f' ({head.kind})' if many else ''}" for head in chosen)
    words = claims.together(pair, float(others[one, other]))
    short = {"encoder self-attention": "e", "decoder self-attention": "d", "cross-attention": "x"}
    names = [f"{short[head.kind]}{head.short}" if many else head.short for head in heads]
    figure = coloured(effects.redundancy_heatmap, extra, names)
    with chart:
        plot(figure, key="edits-pairs", alt=words, height=430)
    key = " e encoder, d decoder, x cross." if many else ""
    st.caption(f"{words} Off the diagonal: cost of both less the sum; on it: cost of one.{key}")


def _patched(other: np.ndarray) -> Patching | None:
    """The measurement, or None while it is under way. Raises EditError."""
    if task.lawful:
        return edits.patching(model, question, other, made)
    future = edits.patched(model, question, other, made)
    return waiting.ready(future, "Patching site by site …")


def patches() -> None:
    """Where in the model the difference between two inputs lies."""
    other = second_input.second_input(model, question)
    try:
        seen = _patched(other)
    except EditError as error:
        st.info(sentence(str(error)), icon=":material/info:")
        return
    if seen is None:
        return
    tokens, places = second_input.columns(model, other, seen)
    site, column = np.unravel_index(int(np.nanargmax(seen.recovered[1:])), seen.recovered[1:].shape)
    words = (
        f"Beyond the embedding, {seen.sites[site + 1]} at position{'s' * ('–' in places[column])} {places[column]} "
        f"brings back most: {seen.recovered[site + 1, column]:.2f} of the logit difference."
    )
    shown = [name.replace("self_attention", "self").replace("cross_attention", "cross") for name in seen.sites]
    figure = coloured(effects.patching_heatmap, seen.recovered, shown, tokens, places)
    plot(figure, key="edits-patching", alt=words, height=max(340, 70 + 30 * len(seen.sites)))
    difference = "logit(right) − logit(right for the second input)"
    if not task.lawful:
        difference = "logit(likeliest here) − logit(likeliest in the second input), where they differ"
    st.caption(
        f"{words} {second_input.together(seen)}Each cell: the second input’s run with what this input’s run had there. "
        f"0 brings back nothing, 1 all of {difference}, from {seen.corrupted:.1f} to {seen.clean:.1f}, over "
        f"{seen.compared} {'target' if seen.compared == 1 else 'targets'}."
    )


def unless_slow(part: Callable[[], None]) -> Callable[[], None]:
    """A part that removes heads many times over, where that can be waited for."""

    def drawn() -> None:
        if not edits.affordable(model):
            st.info("This model is too large to remove its heads while you wait: `measure_removal` does it at leisure.")
            return
        try:
            part()
        except EditError as error:
            st.info(sentence(str(error)), icon=":material/info:")

    return drawn


painted = [chip for chip in found if chip.painted and chip.on]
parts = {
    **({"Where it is told to look": canvas} if painted else {}),
    "Accuracy by position" if task.lawful else "Loss by place in the window": accuracy,
    "What removing each head costs": unless_slow(removals) if task.lawful else removals,
    **({"What removing two costs beyond each": unless_slow(twos)} if task.lawful else {}),
    "Where the difference between two inputs lies": patches,
}
places = [place for _ in range(len(parts) // 2) for place in st.columns(2, gap="medium")]
places += [st.container()] * (len(parts) % 2)
for (heading, part), place in zip(parts.items(), places, strict=True):
    with place:
        st.markdown(f"**{heading}**")
        part()
show_code(
    "transformer.edits.heads.zero.AblateHead",
    "transformer.edits.PatchHead",
    "transformer.analysis.heads.measure.measure_removal",
    "transformer.analysis.interventions.effects.redundancy",
    "transformer.analysis.interventions.patching.patching",
)
