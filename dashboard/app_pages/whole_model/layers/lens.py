"""The logit lens: what each stage of the residual stream would predict, one cell of it, and who wrote the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import streamlit as st

from dashboard.app_pages.whole_model.layers import measured
from dashboard.app_pages.whole_model.layers.figures import writes_heatmap
from dashboard.app_pages.whole_model.layers.settings import LayersSettings
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import signed, small
from dashboard.figures.lens import lens_heatmap, stage_line, tokens_bars
from dashboard.models.model import Model
from dashboard.models.passages import sayable
from dashboard.parts import claims
from dashboard.parts.prose import plain
from dashboard.view import session
from transformer.analysis.accuracy import ceilings
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed

if TYPE_CHECKING:
    from transformer.analysis.stream.lens import Lens
    from transformer.text.task import Text


AFTER = {"resid_mid": "attention", "resid_cross": "cross-attention", "resid_post": "feed-forward"}


def stage_name(site: str) -> str:
    """A stage in a few words: "embedding", "layer 0, attention", "layer 1, feed-forward"."""
    layer, kind = part(site)
    return f"layer {layer}, {kind}" if kind else "embedding"


def part(site: str) -> tuple[str, str]:
    """The layer of a stage and what it is after: "0", "attention"; empty for the embedding."""
    _, layer, kind = site.split(".")
    return layer, AFTER.get(kind, "")


def after(site: str) -> str:
    """A stage in a sentence: "in the embedding", "after the attention of layer 0"."""
    layer, kind = part(site)
    return f"after the {kind} of layer {layer}" if kind else "in the embedding"


# --- the lens


@dataclass(frozen=True)
class Reading:
    """One question through the lens, and which of its positions can be known at all."""

    lens: Lens
    known: np.ndarray
    """Of a text, every token that is to be said."""
    lawful: bool = True

    @classmethod
    def of(cls, model: Model, question: np.ndarray) -> Reading:
        answers = model.task.answers(len(question))
        if not model.task.lawful:  # what can be known of a text, nobody knows
            return cls(measured.lens(model, question), answers, lawful=False)
        ceiling = ceilings.ceiling(model.config, len(question)).accuracy
        return cls(measured.lens(model, question), answers & (ceiling == 1))

    @property
    def counts(self) -> list[int]:
        """How many of the answers that can be known are right, stage by stage."""
        return [int(count) for count in (self.lens.right & self.known).sum(axis=1)]

    @claim
    def headline(self) -> str:
        """Where the answer appears, in a sentence."""
        if not self.lawful:
            return self._headline_of_a_text()
        counts, total = self.counts, int(self.known.sum())
        if not total:
            return "No answer can be known here: the mask hides what it depends on."
        last = after(self.lens.stages[-1])
        if counts[-1] <= total / 2:
            none = "No answer yet" if not counts[-1] else "Not yet the answer"
            return f"{none}: {last}, {counts[-1]} of {total} {'is' if counts[-1] == 1 else 'are'} right."
        if counts[0] >= counts[-1]:
            return (
                f"The embedding alone says as much as the whole model: {counts[0]} of {total} right in the embedding, "
                f"{counts[-1]} {last}."
            )
        leap = max(range(1, len(counts)), key=lambda stage: counts[stage] - counts[stage - 1])
        before, now = counts[leap - 1], counts[leap]
        layer, kind = part(self.lens.stages[leap])
        if now - before > total / 2:
            return (
                f"The answer appears in layer {layer}: after its {kind}, {now} of {total} "
                f"{'is' if now == 1 else 'are'} right, and {before} before."
            )
        return f"The answer comes little by little: {counts[0]} of {total} right in the embedding, {counts[-1]} {last}."

    def _headline_of_a_text(self) -> str:
        """How many tokens are guessed, and where most of them come from, in a sentence."""
        counts, total = self.counts, int(self.known.sum())
        leap = max(range(1, len(counts)), key=lambda stage: counts[stage] - counts[stage - 1])
        first = f"It guesses {counts[-1]} of {total} tokens"
        if counts[leap] <= counts[leap - 1]:
            return f"{first}. No layer adds to the {counts[0]} that it guesses from the embedding."
        return (
            f"{first}. The largest gain comes {after(self.lens.stages[leap])}: from {counts[leap - 1]} to "
            f"{counts[leap]}."
        )

    def cell(self) -> tuple[int, int]:
        """The stage and the position that the view names, or where what is said to the first answer settles."""
        lens, n = self.lens, len(self.lens.read)
        own = n - 1 if not self.lawful else int(self.known.argmax())
        query: int = session.named(
            "query", range(1, n + 1), own + 1, lambda query: f"There is no position {query} here: the input has {n}."
        )
        missing = "This model has no stage of that name; the one where what is said settles is shown."
        stage = session.named("stage", lens.stages, "", lambda _: missing)
        return lens.stages.index(stage) if stage else lens.settled(query - 1), query - 1


def stages(reading: Reading, *, key: str) -> None:
    """The lens, stage × position; a click makes another cell the one that is looked into."""
    lens, names = reading.lens, reading.lens.vocabulary
    likeliest = session.mine(LayersSettings).likeliest
    stage, place = reading.cell()

    def chosen() -> None:
        click = st.session_state[key]["click"] or {}
        row, column = click.get("row"), click.get("column")
        if row is not None and column is not None and row < len(lens.stages) and column < len(lens.read):
            session.update(stage=lens.stages[row], query=column + 1)

    figure = coloured(
        lens_heatmap,
        lens.shares[..., 0] if likeliest else lens.of_target,
        [[names[token] for token in row] for row in lens.likeliest],
        lens.right,
        [stage_name(site) for site in lens.stages],
        [names[token] for token in lens.read],
        [names[token] for token in lens.targets],
        known=reading.known,
        chosen=(stage, place),
    )
    counts = ", ".join(f"{count} {after(site)}" for count, site in zip(reading.counts, lens.stages, strict=True))
    alt = f"Logit lens. Of {counted(int(reading.known.sum()), 'answer')} that can be known, right are: {counts}."
    rows = len(lens.stages) + 1
    plot(figure, key=key, alt=alt, height=96 + max(18, min(46, 440 // rows)) * rows, on_click=chosen)


def cell(model: Model, reading: Reading) -> None:
    """The cell that is looked into: its likeliest tokens, and the right token's way through the stages."""
    lens = reading.lens
    stage, place = reading.cell()
    names, target = lens.vocabulary, int(lens.targets[place])
    shares, listed = lens.shares[stage, place], lens.tokens[stage, place].tolist()
    if target not in listed:
        shares, listed = np.append(shares, lens.of_target[stage, place]), [*listed, target]
    said = cell_sentence(reading, stage, place, sayable(model.task))
    where, _, rest = said.partition(": ")
    st.markdown(f"**{where}**: {plain(rest)}")
    left, right = st.columns([1, 1.6], gap="medium")
    with left:
        shown = [names[token] for token in listed]
        figure = coloured(tokens_bars, shares, shown, listed.index(target))
        plot(figure, key="lens-tokens", alt=said, height=230)
    with right:
        way = lens.of_target[:, place]
        figure = coloured(stage_line, way, [stage_name(site) for site in lens.stages], stage, unread(model, target))
        alt = (
            f"The right token '{names[target]}' at position {place + 1} goes from {way[0]:.2f} in the embedding to "
            f"{way[-1]:.2f} at the end. {settling(lens, place)}"
        )
        plot(figure, key="lens-way", alt=alt, height=230)


@claim
def cell_sentence(reading: Reading, stage: int, place: int, among: str) -> str:
    """What one stage would say at one place, both from 0, and how likely the right token is there, `among` so many.

    Where no digit tells several tokens apart, all of them.
    """
    lens, target = reading.lens, int(reading.lens.targets[place])
    shares = dict(zip(lens.tokens[stage, place].tolist(), lens.shares[stage, place].tolist(), strict=True))
    best = claims.foremost(shares, small)
    says = claims.tokens_in_words(
        [lens.vocabulary[token] for token in best], len(shares) if len(shares) < len(lens.vocabulary) else 0
    )
    open_ = "" if reading.known[place] else " This token cannot be known here, so it is a guess."
    return (
        f"Position {place + 1}, {after(lens.stages[stage])}: {'it would say' if len(best) == 1 else 'likeliest are'} "
        f"{says}, with {small(shares[best[0]])}{'' if len(best) == 1 else ' each'}. The right token "
        f"'{lens.vocabulary[target]}' has {small(float(lens.of_target[stage, place]))} and rank "
        f"{int(lens.rank[stage, place]):,} among {among}.{open_}"
    )


@claim
def settling(lens: Lens, place: int) -> str:
    """From which stage on what is said at a position, from 0, stays the same; and whether it is right."""
    said, right = lens.likeliest[-1, place], bool(lens.right[-1, place])
    where = after(lens.stages[lens.settled(place)])
    return f"What is said, '{lens.vocabulary[said]}', is {'right' if right else 'wrong'}, and settles {where}."


def unread(model: Model, target: int) -> float:
    """How likely a token is to one who reads nothing: of a text, how common it is."""
    task = model.task
    return float(cast("Text", task).known.probabilities[target]) if not task.lawful else task.chance


# --- who wrote it


def writers(model: Model, question: np.ndarray, reading: Reading) -> None:
    """What each part adds to the right token's logit at the chosen position."""
    _, place = reading.cell()
    writes = {name: float(each[place]) for name, each in measured.writes(model, question).items()}
    layers, parts, table = table_of(writes)
    target = reading.lens.vocabulary[int(reading.lens.targets[place])]
    words = written_for(writes, place, target)
    st.markdown(f"**{plain(words)}**")
    figure = coloured(writes_heatmap, table, layers, parts)
    plot(figure, key="writes", alt=words, height=min(460, 80 + 46 * len(layers)))


@claim
def written_for(writes: Mapping[str, float], place: int, target: str) -> str:
    """Which part writes most for the right token at a place, from 0, and what all of them make of it together."""
    plus = partial(signed, plus=True)
    own = {name: each for name, each in writes.items() if "." in name}
    most = claims.foremost(own, plus)
    amount, several = plus(own[most[0]]), len(most) > 1
    who = f"{len(most)} parts" if len(most) > claims.FEW else listed([part_name(name) for name in most])
    if len(own) == 1:
        said = f"{who} writes {amount} for '{target}'"
    elif amount.startswith("−") or not amount.strip("+0."):
        who = f"{who} {'come' if several else 'comes'} closest"
        said = f"no part writes for '{target}'; {who}: {amount}{' each' if several else ''}"
    else:
        said = f"{who} {'write' if several else 'writes'} most for '{target}': {amount}{' each' if several else ''}"
    total = sum(writes.values())
    return (
        f"At position {place + 1}, {said}. All parts together put its logit {abs(total):.2f} "
        f"{'below' if total < 0 else 'above'} the mean token's, of which the embedding adds "
        f"{plus(writes['embedding'])} and biases {plus(writes['biases'])}."
    )


def part_name(name: str) -> str:
    """A part in words: "head 1.3", "head 1.3 (cross-attention)", "the feed-forward layer 1"."""
    _, layer, kind, *head = name.split(".")
    if kind == "feed_forward":
        return f"the feed-forward of layer {layer}"
    return f"head {layer}.{head[0]}" + (" (cross-attention)" if kind == "cross_attention" else "")


def table_of(writes: Mapping[str, float]) -> tuple[list[str], list[str], np.ndarray]:
    """Layers, the parts of a layer, and what they write, float [layer, part]; nan where a layer has no such part."""
    rows: dict[str, dict[str, float]] = {}
    for name, value in writes.items():
        if "." in name:
            _, layer, kind, *head = name.split(".")
            words = {"self_attention": "head", "cross_attention": "cross", "feed_forward": "feed-forward"}[kind]
            rows.setdefault(layer, {})[" ".join([words, *head])] = value
    parts = list(dict.fromkeys(name for row in rows.values() for name in row))
    table = np.array([[row.get(name, np.nan) for name in parts] for row in rows.values()])
    return list(rows), parts, table
