"""The arrays of a run: its example, and the film of its training."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from transformer.analysis.film.film import Film
from transformer.analysis.findings import Attention, Example, Head
from transformer.config import RunConfig
from transformer.foundation.foreign import shortened
from transformer.foundation.versions import read_once
from transformer.training.stored.checks import all_texts, expect, number, text, whole

_SITE = re.compile(r"(encoder|decoder)\.(\d{1,2})\.(self|cross)_attention", re.ASCII)


@read_once(answers=False)
def example(path: Path, config: RunConfig) -> Example:
    """example.npz, of such a model. Raises what reading damaged files ends in (`foreign.DAMAGED`), and OSError."""
    found, task = Example.load(path), config.build_task()
    seen, attentions = found.sample, found.sample.attentions
    tokens = len(seen.read)
    text(found.snapshot)
    length = len(found.question)
    expect(length in task.lengths and len(found.said) == task.answer_length(length), "it is of no length")
    symbols = np.concatenate([found.question, found.said])
    expect(np.issubdtype(symbols.dtype, np.integer) and symbols.min() >= 0, "it holds no symbols")
    expect(symbols.max() < task.d_vocab, "it holds other symbols")
    parts = (seen.predicted, seen.targets, seen.is_answer, seen.confidence)
    expect(all(np.shape(part) == (tokens,) for part in parts), "its parts differ")
    expect(all(map(all_texts, (seen.question, seen.read, seen.predicted, seen.targets))), "it holds no tokens")
    kinds = (seen.is_answer.dtype == bool, np.issubdtype(seen.confidence.dtype, np.floating))
    expect(all(kinds), "its parts hold something else")
    expect(set(found.survey.patterns) == set(attentions), "its heads are of another model")
    expect(bool(attentions) == config.model.attends, "it has no heads" if config.model.attends else "it has heads")
    whole(found.survey.sequences)
    for site, attention in attentions.items():
        _attention(site, attention, found.survey.patterns[site], config)
    for head, share in found.survey.expected_share.items():
        _head(head, set(attentions), config)
        number(share)
    expect(bool(found.survey.expected_share) == config.model.attends, "no head was looked at")
    return found


def _attention(site: str, attention: Attention, mean: np.ndarray, config: RunConfig) -> None:
    shape = (config.model.n_heads, len(attention.queries), len(attention.keys))
    _site(site, config)
    expect(all_texts(attention.queries) and all_texts(attention.keys), "it holds no tokens")
    task = config.build_task()
    means = shape if task.lawful else (shape[0], task.surveyed, task.surveyed)  # of a text, other passages
    fits = attention.pattern.shape == attention.scores.shape == shape and mean.shape == means
    expect(
        fits and attention.mask.shape == shape[1:] and attention.mask.dtype == bool, "its heads are of another model"
    )
    numbers = (attention.pattern, attention.scores, mean)
    expect(all(np.issubdtype(values.dtype, np.floating) for values in numbers), "its heads hold no numbers")


@read_once(answers=False)
def film(path: Path, config: RunConfig) -> Film:
    """film.npz, of such a model. Raises what reading damaged files ends in (`foreign.DAMAGED`), and OSError."""
    found, task = Film.load(path), config.build_task()
    text(found.snapshot)
    expect(found.names == task.target_names(task.length), "it is of another task")
    found = replace(found, groups=task.groups(task.length))  # whatever they were called when it was taken
    expect(whole(found.sequences) > 0, "it was measured on nothing")
    whole(found.surveyed)
    number(found.chance, 0, 1)
    expect(all_texts(found.question) and all_texts(found.read), "it holds no tokens")
    expect(found.correct.min() >= 0 and found.correct.max() <= found.sequences, "more is right than was measured")
    expect(len(found.pictured) > 0 and bool(found.readings) == config.model.attends, "it shows nothing")
    for site, reading in found.readings.items():
        _site(site, config)
        expect(all_texts(reading.queries) and all_texts(reading.keys), "it holds no tokens")
        expect(reading.levels.shape[1] == config.model.n_heads, "its heads are of another model")
    for head in found.shares:
        _head(head, set(found.readings), config)
    return found


def _site(site: str, config: RunConfig) -> None:
    match = _SITE.fullmatch(site)
    expect(match is not None and int(match[2]) < config.model.n_layers, f"this model has no {shortened(site)}")


def _head(head: Head, sites: set[str], config: RunConfig) -> None:
    expect(head.site in sites and 0 <= head.index < config.model.n_heads, f"this model has no head {shortened(head)}")
