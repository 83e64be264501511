"""The same model with some of it changed: what breaks, what is made up for, and where the difference lies."""

from collections.abc import Callable

import numpy as np
import streamlit as st

from dashboard.app_pages.attention.edits import chips, second_input
from dashboard.components.plot import coloured, plot
from dashboard.figures import effects
from dashboard.figures.html.tokens import Token
from dashboard.figures.kit.numbers import signed
from dashboard.models import edits
from dashboard.parts import claims, text, waiting
from dashboard.parts import tokens as parts_tokens
from dashboard.parts.prose import plain, sentence, show_code
from dashboard.parts.widgets import bound, late_title
from dashboard.parts.yardstick import yardstick
from dashboard.view import session
from transformer.analysis.heads.measure import heads_of
from transformer.analysis.intervals import CAUTION
from transformer.analysis.interventions.effects import Said
from transformer.analysis.interventions.patching import Patching
from transformer.edits import EditError
from transformer.edits.heads.patch_input import PatchInput
from transformer.foundation.claims import claim
from transformer.foundation.words import counted

model = session.chosen()
task, question = model.task, session.question(model)
title = late_title()
found = chips.chips(model, question)
made = chips.active(found)
heads = list(heads_of(model.network()))
chips.row(model, found)
with st.container(key="control-edits"):
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
    asked, right = int(first.is_answer.sum()), int(first.right[first.is_answer].sum())
    of = counted(asked, "token")
    changes = (
        f"{flips} of {of} of the answer {'changes' if 1 in (flips, asked) else 'change'}"
        if made
        else f"{right} of {of} of the answer {'is' if 1 in (right, asked) else 'are'} right"
    )
    parts_tokens.tokens(lines, key="edits-said", alt=f"{changes}.")
    st.caption(f"{changes}.{claims.read(model)}")


said()
yard = yardstick(model, len(question) if len(question) in task.lengths else task.length)
before = yard.measured()
after, unmeasured = before, ""
try:
    after = yard.measured(made)
except EditError as error:
    unmeasured = sentence(plain(str(error)))


@claim
def headline() -> str:
    """What the edits change, in a sentence."""
    if not made:
        return f"Nothing is edited: {yard.state(before)}. Remove a head, and see what breaks."
    what = f"With {chips.words_of(model, made[0])}" if len(made) == 1 else f"With {len(made)} edits"
    if unmeasured:
        return f"{what} the model can be asked only inputs of {len(question)} symbols, and it was trained on others."
    return yard.change(what, before, after)


title.title(headline(), anchor=False)


def by_position() -> None:
    """How good it is by position, before and after."""
    if unmeasured:
        st.info(f"This is the {yard.measure} without the edits. {unmeasured}", icon=":material/info:")
    same = [
        f" In every sequence {edit.name} hands on what it found in {edit.typed}."
        for edit in made
        if isinstance(edit, PatchInput)
    ]
    old = before if made and not unmeasured else None
    yard.by_position(after, old, key="edits-accuracy", height=330, more="".join(same))


def canvas() -> None:
    """Where a head is told to look, painted by hand; of several such chips the one that is picked."""
    names = {chip.name: chip for chip in reversed(painted)}
    name = next(iter(names))
    if len(names) > 1:
        name = st.selectbox(
            "Paint", list(names), key="edits-painted", format_func=lambda n: chips.words_of(model, names[n].edit)
        )
    chips.canvas(model, question, found, names[name], height=360)


def removals() -> None:
    """What removing each head costs; a click removes it, or brings it back."""
    gone = {chip.text.removeprefix("zero:") for chip in found if chip.on}
    does = "Click a cell to remove that head, or to bring it back (✕ = removed)."
    yard.by_head(made, heads, gone, key="edits-removal", choose=lambda h: chips.toggle(found, f"zero:{h}"), does=does)


def twos() -> None:
    """Which heads make up for which."""
    if len(heads) < 2:
        st.caption("This model has one head, so there are no two to remove together.")
        return
    if not bound(st.toggle, "Show which two heads belong together", "paired"):
        st.caption(
            "Guess first: does one head replace another, so that both must be removed before accuracy falls? Or is "
            "each a link of one chain?"
        )
        return
    chart, bar = st.container(), st.empty()
    extra, error = edits.redundancy(model, made, lambda share: bar.progress(share, "Removing two heads at a time …"))
    bar.empty()
    others = np.where(np.eye(len(heads), dtype=bool), 0.0, extra)
    one, other = sorted(divmod(int(np.abs(others).argmax()), len(heads)))
    many = len({head.kind for head in heads}) > 1
    chosen = [heads[one], heads[other]]
    pair = "heads " + " and ".join(f"{head.short}{f' ({head.kind})' if many else ''}" for head in chosen)
    alone = float(extra[one, one]), float(extra[other, other])
    words = claims.together(pair, float(others[one, other]), CAUTION * float(error[one, other]), alone)
    short = {"encoder self-attention": "e", "decoder self-attention": "d", "cross-attention": "x"}
    names = [f"{short[head.kind]}{head.short}" if many else head.short for head in heads]
    figure = coloured(effects.redundancy_heatmap, extra, names)
    with chart:
        plot(figure, key="edits-pairs", alt=words, height=430)
    key = " e encoder, d decoder, x cross." if many else ""
    st.caption(
        f"{words} Cost: the accuracy that is lost. On the diagonal: the cost of removing one head. Elsewhere: the cost "
        f"of removing both, minus the sum of their costs.{key}"
    )


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
        st.info(sentence(plain(str(error))), icon=":material/info:")
        return
    if seen is None:
        return
    tokens, places = second_input.columns(model, other, seen)
    words = second_input.patching_sentence(seen, places)
    shown = [name.replace("self_attention", "self").replace("cross_attention", "cross") for name in seen.sites]
    figure = coloured(effects.patching_heatmap, seen.recovered, shown, tokens, places)
    plot(figure, key="edits-patching", alt=words, height=max(340, 70 + 30 * len(seen.sites)))
    difference = "logit(right) − logit(right for the second input)"
    if not task.lawful:
        difference = "logit(likeliest here) − logit(likeliest in the second input), where they differ"
    st.caption(
        f"{words} {second_input.together(seen)}Each cell is a run on the second input, with the vector at that place "
        f"taken from the run on this input (activation patching). The number is the share that comes back of "
        f"{difference}: 0 leaves it at {signed(seen.corrupted)}, 1 brings it to {signed(seen.clean)}, over "
        f"{seen.compared} {'target' if seen.compared == 1 else 'targets'}."
    )


def unless_slow(part: Callable[[], None]) -> Callable[[], None]:
    """A part that removes heads many times over, where that can be waited for."""

    def drawn() -> None:
        if not edits.affordable(model):
            st.info("This model is too large to remove its heads while you wait. In Python, `measure_removal` does it.")
            return
        try:
            part()
        except EditError as error:
            st.info(sentence(plain(str(error))), icon=":material/info:")

    return drawn


painted = [chip for chip in found if chip.painted and chip.on]
parts = {
    **({"Where you let it look": canvas} if painted else {}),
    yard.heading: by_position,
    "What does removing each head cost?": unless_slow(removals) if yard.waits else removals,
    **({"Which two heads belong together?": unless_slow(twos)} if yard.waits else {}),
    "Where in the model do two inputs differ?": patches,
}
rows = (st.container(key=f"edits-row-{number}") for number in range(1, len(parts) // 2 + 1))
places = [place for row in rows for place in row.columns(2, gap="medium")]
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
