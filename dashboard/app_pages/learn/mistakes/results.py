"""What was measured of a mistake beside the right code: table, accuracy, heads, probe, reference, loss, encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.mistakes import words
from dashboard.app_pages.learn.mistakes.figures import both_models, measured_table
from dashboard.app_pages.learn.mistakes.measured import Measured, foremost, sequences, share_on
from dashboard.components.head_grid import heads_of
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.components.sheet import Axis, Series, sheet
from dashboard.figures.encodings import encoding_heatmap
from dashboard.figures.html.tokens import Token
from dashboard.figures.patterns import pattern_heatmap
from dashboard.parts.heads import LINK, grid
from dashboard.parts.prose import orientation
from dashboard.parts.tokens import tokens
from dashboard.view import session
from transformer.analysis.findings import Head
from transformer.analysis.intervals import CAUTION, wilson
from transformer.config import RunConfig
from transformer.foundation.words import counted

if TYPE_CHECKING:
    from transformer.mistakes import Demonstration, Mistake

HEADINGS = ("Detector", "with the mistake", "right code", "rings when")
CODES = ("with the mistake", "right code")
HEIGHT = 400


def shown(mistake: type[Mistake], config: RunConfig, wrong: Measured, right: Measured, *, hidden: bool = False) -> None:
    """Everything that was measured of both. Of a `hidden` mistake nothing that names it, and no verdict."""
    named = "a hidden mistake" if hidden else f"the mistake {mistake.name}"
    makers = [
        Maker(f"a small model with {named}", len(wrong.losses)),
        Maker("a small model with the right code", len(right.losses)),
    ]
    left, middle = st.container(key="stacked-measured").columns([1.1, 1], gap="medium")
    with left:
        _signatures(wrong, right, makers, hidden)
    with middle:
        _accuracies(config, wrong, right, makers)
    _answers(config, wrong, right, makers)
    _heads(config, wrong, right, makers)
    left, middle, last = st.container(key="stacked-bars").columns(3, gap="medium")
    with left:
        _probe(wrong, right, makers)
    with middle:
        _reference(wrong, makers)
    with last:
        _losses(config, wrong, right, makers)
    if mistake.kind == "positions" and not hidden:
        _encodings(mistake, config)
    model, training = config.model, config.training
    positions = "" if hidden else f", {model.positions} positions"
    st.caption(
        f"Both models are trained here: {model.n_layers} layers of {model.n_heads} heads, d_model {model.d_model}"
        f"{positions}, {training.max_steps} steps, the same seed ({training.seed}), the same first weights and the "
        "same sequences. They learn to write a sequence backwards, and every target counts alike."
    )


def _signatures(wrong: Measured, right: Measured, makers: Sequence[Maker], hidden: bool) -> None:
    """All detectors, and which ring; of a hidden mistake the numbers alone."""
    rows = words.rows(wrong.signature, right.signature)
    if hidden:
        rows, said = [replace(row, rings=False, right_rings=False) for row in rows], "What was measured of both models."
    else:
        said = words.verdict(wrong.signature, right.signature)
    st.markdown(f"**{len(rows)} detectors**: what each measures, and from where on it rings")
    markup = coloured(measured_table.measured_table, rows, HEADINGS, spoken=said)
    sheet(markup, [_series(wrong, right)], key="mistake-detectors", alt=said, makers=makers)
    mark = "" if hidden else f"{measured_table.MARK} = the detector rings. {said} "
    st.caption(f"{mark}{sequences()} fresh sequences.")


def _series(wrong: Measured, right: Measured) -> Series:
    """The numbers of the table, to be saved: float [number, code]."""
    names = (
        *("second half", "first half", "loss", "free running", "later tokens"),
        *("smallest row sum", "greatest row sum", "probe", "batch", "reference"),
    )
    columns = [
        (s.second_half, s.first_half, s.loss, s.free_running, s.future, *s.row_sums, s.probe, s.batch, s.reference)
        for s in (wrong.signature, right.signature)
    ]
    rows, codes = Axis("number", np.arange(1, len(names) + 1), names), Axis("code", np.arange(1, 3), CODES)
    return Series("measured", np.array(columns).T, (rows, codes))


def above(accuracy: np.ndarray, ceiling: np.ndarray) -> np.ndarray:
    """Positions that are right more often than they can be, by over four standard errors: bool [target]."""
    low, _ = wilson(accuracy * sequences(), sequences(), CAUTION)
    over: np.ndarray = low > ceiling
    return over


def _accuracies(config: RunConfig, wrong: Measured, right: Measured, makers: Sequence[Maker]) -> None:
    """By position, both before the ceiling."""
    task, found, many = config.build_task(), wrong.signature, sequences()
    leaks = above(found.accuracy, found.ceiling)
    said = words.accuracies(found, right.signature, leaks)
    st.markdown("**Accuracy by position**, while the right tokens are read")
    figure = coloured(
        both_models.both_accuracies,
        found.accuracy,
        right.signature.accuracy,
        wilson(found.accuracy * many, many),
        found.ceiling,
        found.chance,
        task.target_names(task.length),
        groups=task.groups(task.length),
        leaks=leaks,
        sequences=many,
    )
    plot(figure, key="mistake-accuracy", alt=f"Accuracy by position. {said}", height=HEIGHT, makers=makers)
    st.caption(said)


def _answers(config: RunConfig, wrong: Measured, right: Measured, makers: Sequence[Maker]) -> None:
    """What each writes by itself after one question."""
    task = config.build_task()
    names, true = task.vocabulary, task.answer(task.example)
    lines = {"reads": [Token(names[symbol]) for symbol in task.example]}
    for name, each in zip(("mistake", "right code"), (wrong, right), strict=True):
        lines[name] = [
            Token(names[one], "right" if one == other else "wrong", names[other])
            for one, other in zip(each.said.tolist(), true.tolist(), strict=True)
        ]
    correct = [int((each.said == true).sum()) for each in (wrong, right)]
    said = words.answers(correct[0], correct[1], len(true))
    tokens(lines, key="mistake-answers", alt=said, makers=makers)
    st.caption(said)


def _heads(config: RunConfig, wrong: Measured, right: Measured, makers: Sequence[Maker]) -> None:
    """All heads of both on one sequence, and one of each enlarged: the view's, or the one that looks most at it."""
    task = config.build_task()
    expected = task.expected_keys(task.example)
    st.markdown(f"**All heads** of both, reading {task.typed(task.example)} and its reversal")
    names = {str(head): head for head in heads_of(right.attentions)}
    missing = "These models have no head of that name. Others are shown."
    chosen: str = session.named("head", names, "", lambda _: missing)
    columns = st.container(key="stacked-heads").columns(2, gap="medium")
    for column, title, each, maker in zip(columns, CODES, (wrong, right), makers, strict=True):
        key = "wrong" if each is wrong else "right"
        head = names[chosen] if chosen else foremost(each, expected)
        with column:
            st.markdown(f"**{title[0].upper()}{title[1:]}**")
            grid(each.attentions, head, key=f"mistake-heads-{key}", size=130, makers=[maker])
            _enlarged(each, head, expected, key, [maker])
    st.caption(
        f"{words.heads(wrong.signature, right.signature)} Grey: later tokens on which no head of the layer "
        f"puts weight. Outlined: the token to be written. {orientation()}"
    )


def _enlarged(found: Measured, head: Head, expected: np.ndarray, key: str, makers: Sequence[Maker]) -> None:
    attention = found.attentions[head.site]
    said = f"{words.looks(head.short, share_on(found, head, expected))}."
    figure = coloured(
        pattern_heatmap,
        attention.pattern[head.index],
        attention.mask,
        attention.queries,
        attention.keys,
        marks=expected,
        link=LINK,
    )
    plot(figure, key=f"mistake-head-{key}", alt=said, height=360, makers=makers)
    st.caption(said)


def _probe(wrong: Measured, right: Measured, makers: Sequence[Maker]) -> None:
    """Only the last token changes: what moves?"""
    st.markdown("**The probe**: only the last token changes")
    said = words.probed(wrong.signature.moved, right.signature.moved)
    against = "unmoved", "largest change of a logit"
    _bars(wrong.signature.moved, _reads(wrong), against, "mistake-probe", said, makers[:1])


def _reference(wrong: Measured, makers: Sequence[Maker]) -> None:
    """The same weights in the right code: what differs?"""
    st.markdown("**The reference**: the same weights in the right code")
    against, said = ("the same", "largest difference of a logit"), words.referred(wrong.signature.differs)
    _bars(wrong.signature.differs, _reads(wrong), against, "mistake-reference", said, makers[:1])


def _reads(found: Measured) -> tuple[str, ...]:
    """What is read at each position of the example: of many sequences, only the separator is the same."""
    names = next(iter(found.attentions.values())).keys
    place = names.index("SEP")
    return tuple("SEP" if i == place else str(i + 1) for i in range(len(names)))


def _bars(
    values: np.ndarray,
    names: Sequence[str],
    against: tuple[str, str],
    key: str,
    said: str,
    makers: Sequence[Maker],
) -> None:
    """Bars by position: `against` names what is not moved, and what is measured."""
    same, title = against
    sentences = [f"output {i + 1}: {words.amount(float(value))}" for i, value in enumerate(values)]
    figure = coloured(both_models.change_bars, values, names, against=same, title=title, sentences=sentences)
    plot(figure, key=key, alt=said, height=270, makers=makers)
    st.caption(said)


def _losses(config: RunConfig, wrong: Measured, right: Measured, makers: Sequence[Maker]) -> None:
    """Both losses, step by step, above the floor."""
    st.markdown("**The loss** of what each is taught, step by step")
    said = words.losses(wrong.signature, right.signature)
    n = min(len(wrong.losses), len(right.losses))
    figure = coloured(
        both_models.both_losses,
        np.arange(1, n + 1),
        wrong.losses[:n],
        right.losses[:n],
        floor=wrong.signature.floor,
        chance=config.build_task().chance_loss,
    )
    plot(figure, key="mistake-losses", alt=f"Loss by step. {said}", height=270, makers=makers)
    st.caption(said)


def _encodings(mistake: type[Mistake], config: RunConfig) -> None:
    """What is added to the embeddings, by both codes."""
    import torch

    length, width = config.build_task().n_ctx, config.model.d_model
    st.markdown("**The encoding** that is added to the tokens of one sequence")
    tables, columns = [], st.container(key="stacked-encodings").columns(2, gap="medium")
    for column, title, encode in zip(columns, CODES, (mistake.wrong, mistake.right), strict=True):
        added = encode(torch.zeros(1, length, width))
        table = torch.broadcast_to(added, (1, length, width))[0].numpy()
        tables.append(table)
        with column:
            distinct = counted(len(np.unique(table, axis=0)), "different vector")
            said = f"{title[0].upper()}{title[1:]}: {distinct} at {length} positions."
            key = f"mistake-encoding-{'wrong' if len(tables) == 1 else 'right'}"
            plot(coloured(encoding_heatmap, table), key=key, alt=said, height=300, makers=[])
            st.caption(said)
    parted = float(np.abs(tables[0] - tables[1]).max())
    st.caption(f"The largest difference between the two is {words.amount(parted)}.")


def demonstrated(found: Demonstration) -> None:
    """What wrong and right give where both are run side by side."""
    st.markdown("**Both codes, run side by side**")
    headings = ("Result", "wrong code", "right code", "")
    markup = coloured(measured_table.measured_table, words.compared(found), headings, spoken=found.sentence)
    texts = np.array([[words.value(each.wrong), words.value(each.right)] for each in found.numbers], dtype=str)
    rows = Axis("result", np.arange(1, len(texts) + 1), tuple(each.what for each in found.numbers))
    series = [Series("results", texts, (rows, Axis("code", np.arange(1, 3), ("wrong code", "right code"))))]
    sheet(markup, series, key="mistake-results", alt=found.sentence, makers=[Maker("two functions, run here", 0)])
    st.caption(f"{measured_table.MARK} = another result than that of the right code. {found.sentence}")
