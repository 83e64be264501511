"""A head's QK and OV circuits as figures, each with its one true sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from dashboard.app_pages.attention.inside import measured
from dashboard.app_pages.attention.inside.figures import circuit_heatmap
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import signed
from dashboard.models import passages
from dashboard.models.model import Model
from dashboard.parts.claims import FEW, foremost
from dashboard.parts.prose import capital, head_label
from dashboard.parts.widgets import told
from dashboard.view import session
from transformer.analysis.findings import Head, Sample
from transformer.config import ModelConfig
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed
from transformer.tasks import Task

HEIGHT = 360
MOST_POSITIONS = 64
MOST_TOKENS, FEW_TOKENS, OWN_TOKENS = 40, 24, 16
"""Symbols up to which a circuit is drawn whole; tokens of a larger vocabulary that are, and how many of the passage."""
NO_POSITIONS = {
    "rotation": "{name} positions have no vectors: each head {does}. The matrix beside this leaves that out.",
    "nowhere": "No positional encoding tells this head where a token stands. What it knows of the order comes from the "
    "mask: which tokens a query may see, here and in the layers before.",
}


def circuits(model: Model, sample: Sample, head: Head) -> None:
    """What the head looks for and what it says of what it finds, whatever is read."""
    st.header(f"The circuits of {head_label(head, model.config.model)}, the same for every input", anchor=False)
    with told():
        _three(model, sample, head)


def _three(model: Model, sample: Sample, head: Head) -> None:
    tokens = tokens_to_show(model.task, session.question(model))
    found = measured.circuits(model, head, tokens)
    expected, encoding = model.task.expected_keys(session.question(model)), model.config.model.encoding
    names = tuple(model.task.vocabulary[token] for token in tokens)
    places = st.columns(3, gap="medium")
    with places[0]:
        st.markdown("**QK over positions**: which position looks at which")
        if found.qk_positions is None:
            st.info(NO_POSITIONS[found.positions_from].format(name=capital(encoding.title), does=encoding.does))
        else:
            attention = sample.attentions[head.site]
            fit = found.qk_positions[: len(attention.queries), : len(attention.keys)][:MOST_POSITIONS, :MOST_POSITIONS]
            words = position_sentence(fit, attention.mask, expected if works(head, model) else None)
            if found.positions_from == "bias":
                words = f"The bias of {encoding.title} positions, the same for all tokens. {words}"
            rows, columns = ([str(i + 1) for i in range(n)] for n in fit.shape)
            _draw(
                fit,
                (rows, columns),
                ("query's position", "key's position"),
                "circuit-positions",
                words,
                lambda q, k: f"query at {q + 1} with key at {k + 1}: {fit[q, k]:.2f}",
            )
    with places[1]:
        st.markdown("**QK over the vocabulary**: which token looks at which")
        words = token_sentence(found.qk_tokens, names)
        _draw(
            found.qk_tokens,
            (names, names),
            ("query's token", "key's token"),
            "circuit-tokens",
            words,
            lambda q, k: f"query '{names[q]}' with key '{names[k]}': {found.qk_tokens[q, k]:.2f}",
        )
    with places[2]:
        st.markdown("**OV over the vocabulary**: what looking at a token adds to the output")
        ov = found.ov_tokens
        if ov is None:
            st.info(
                "What an encoder writes is read by the decoder, not by the unembedding: it has no logits of its own."
            )
        else:
            words = copy_sentence(ov, tokens, model.task.symbols)
            ov = ov[:, list(tokens)]
            _draw(
                ov,
                (names, names),
                ("token looked at", "logit"),
                "circuit-output",
                words,
                lambda t, y: f"looking at '{names[t]}' adds {ov[t, y]:.2f} to the logit of '{names[y]}'",
            )
    st.caption(_shown(len(tokens), model.task) + caveat(model.config.model, found.layer))


def tokens_to_show(task: Task, question: np.ndarray) -> tuple[int, ...]:
    """All tokens but the padding; of a text's thousands, those of the passage and the commonest, FEW_TOKENS."""
    if task.symbols < MOST_TOKENS:
        return tuple(range(task.padding))
    own = list(dict.fromkeys(question.tolist()))[:OWN_TOKENS]
    common = [token for token in range(FEW_TOKENS) if token not in own]
    return tuple([*own, *common][:FEW_TOKENS])


def _shown(many: int, task: Task) -> str:
    """Which tokens these are, where they are not all."""
    if many == task.padding:
        return ""
    return (
        f"{many} of {passages.known(task)}: the first of the passage, then the commonest. For OV, the largest rise "
        "is sought among all of them. "
    )


def works(head: Head, model: Model) -> bool:
    """Do this head's queries and keys stand where the task's do?"""
    if model.task.has_source:
        return head.site.endswith("cross_attention")
    return True


@claim
def position_sentence(fit: np.ndarray, mask: np.ndarray, expected: np.ndarray | None) -> str:
    """How often the place that fits best, of those that may be seen, is where the answer stands."""
    seen = np.where(mask[: len(fit), : fit.shape[1]], fit, np.nan)
    if expected is not None:
        expected = expected[: len(fit), : fit.shape[1]]
        best = {int(q): _best(seen[q]) for q in np.flatnonzero((expected & ~np.isnan(seen)).any(axis=1))}
        if best:
            q, keys = next(iter(best.items()))
            right = sum(bool(expected[query, own].all()) for query, own in best.items())
            at = f"the key{'s' * (len(keys) > 1)} at {listed([str(key + 1) for key in keys])} best"
            return (
                f"Of what it may see, the query at {q + 1} fits "
                f"{at if len(keys) <= FEW else f'{len(keys)} keys best, all alike'}; for {right} of "
                f"{counted(len(best), 'answer')} that can be seen the best key is where the answer stands."
            )
    cells = _best(seen.ravel())
    if not cells:
        return "No query may see a key."
    row, key = divmod(cells[0], fit.shape[1])
    found = signed(fit[row, key])
    if len(cells) > 1:
        return f"Of what may be seen, {len(cells)} pairs of a query and a key fit best: {found} each."
    return f"Of what may be seen, the query at {row + 1} and the key at {key + 1} fit best: {found}."


def _best(values: np.ndarray) -> list[int]:
    """Which of these numbers are the greatest as they are written; nan is none."""
    return foremost(dict(enumerate(values.tolist())), signed)


@claim
def token_sentence(fit: np.ndarray, names: tuple[str, ...]) -> str:
    """The best fit of two tokens, and how often like fits like."""
    if not fit.any():
        return "All are 0: this head asks for no token."
    cells = _best(fit.ravel())
    q, k = divmod(cells[0], len(fit))
    who = f"Query '{names[q]}' and key '{names[k]}'" if len(cells) == 1 else f"{len(cells)} pairs of a query and a key"
    like = _own_best(fit, np.arange(len(fit)))
    return (
        f"{who} fit best: {signed(fit[q, k])}{' each' * (len(cells) > 1)}; for {like} of {len(fit)} tokens the best "
        "key is the token itself."
    )


def _own_best(values: np.ndarray, own: np.ndarray) -> int:
    """In how many rows its `own` column has the greatest number, and no other one as great."""
    level = values >= values[np.arange(len(values)), own][:, None]
    return int((level.sum(axis=1) == 1).sum())


@claim
def copy_sentence(ov: np.ndarray, tokens: Sequence[int], symbols: int) -> str:
    """For how many symbols the head adds most to the logit of what it looks at; float [token, logit], of `tokens`."""
    read = np.array(tokens)
    read, ov = read[read < symbols], ov[read < symbols]
    copied = _own_best(ov, read)
    verdict = ": this head copies" if copied == len(read) else ""
    return f"For {copied} of {len(read)} symbols, looking at one adds most to its own logit{verdict}."


def caveat(config: ModelConfig, layer: int) -> str:
    """What the circuits leave out."""
    said = "These matrices are products of weights alone: the direct path from the embeddings, without biases."
    if config.norm != "none":
        name = config.kind_of_norm.title
        kind = config.kind_of_norm
        parts = ["centring"] * kind.centres + ["gain"] * (kind.gains != "none")
        said += f" The division in {name} is left out too, so compare the numbers with each other, not with scores."
        if config.norm == "post" and parts:
            several = len(parts) > 1
            kept = capital(" and ".join(parts)) if several else f"The {parts[0]}"
            said += f" {kept} of each {name} on that path {'are' if several else 'is'} kept."
    if layer:
        said += f" Layers before layer {layer} also write into the stream. What this head reads of them is not shown."
    return f"{said} (Elhage et al., 2021.)"


def _draw(
    values: np.ndarray,
    axes: tuple[tuple[str, ...] | list[str], tuple[str, ...] | list[str]],
    titles: tuple[str, str],
    key: str,
    words: str,
    sentence: Callable[[int, int], str],
) -> None:
    figure = coloured(circuit_heatmap, values, *axes, titles=titles, sentence=sentence)
    plot(figure, key=key, alt=words, height=HEIGHT)
    st.caption(words)
