"""What is found out when somebody looks closer at a model, each once: heads taken apart, measured, seen by the lens.

PyTorch is imported when the first of it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.models import Model, words_of
from transformer.analysis.findings import Detail, Head
from transformer.analysis.metrics import Estimate, HeadMetrics
from transformer.analysis.rollout import evenly, rollout

if TYPE_CHECKING:
    from transformer.analysis.checkup import Checkup
    from transformer.analysis.circuits import Circuits
    from transformer.analysis.inside import Inside
    from transformer.analysis.lens import Lens
    from transformer.tasks import Question

LARGE = 2**17
"""Layers times squared width from which a model is checked once: half a second, where the shipped ones take 0.05."""


def detail(model: Model, question: Question, site: str) -> Detail:
    """One attention module on one question, cell by cell, reading its own words."""
    return _detail(model, question.tobytes(), site)


def lens(model: Model, question: Question) -> Lens:
    """One question through the logit lens, reading its own words."""
    return _lens(model, question.tobytes())


def writes(model: Model, question: Question) -> dict[str, np.ndarray]:
    """What each part of it adds to the right token's logit, above the mean token's: float [position] a part."""
    return _writes(model, question.tobytes())


def rolled(model: Model, question: Question, through: int) -> tuple[np.ndarray, np.ndarray]:
    """Attention rolled out through a layer, and the same if every head looked evenly: float [query, slot]."""
    return _rolled(model, question.tobytes(), through)


def inside(model: Model, question: Question, head: Head, query: int) -> Inside:
    """Every number of one query of one head, while it reads its own words; the query's place counted from 0."""
    return _inside(model, question.tobytes(), head, query)


def checkup(model: Model, question: Question) -> Checkup:
    """Whether it keeps the laws of health, on a few sequences of its task and, unless it is large, this question."""
    return _checkup(model, b"" if is_large(model) else question.tobytes())


def is_large(model: Model) -> bool:
    """Does a check take so long that it is made once, and not again for each question?"""
    return model.config.model.n_layers * model.config.model.d_model**2 > LARGE


@st.cache_resource(max_entries=64, show_spinner=False)
def circuits(model: Model, head: Head) -> Circuits:
    """What a head does to embeddings and positions, whatever is read."""
    from transformer.analysis.circuits import circuits

    return circuits(model.network(), head)


@st.cache_resource(max_entries=16, show_spinner="Measuring every head over many sequences …")
def head_metrics(model: Model) -> HeadMetrics:
    """What every head is like over many sequences, without removing any."""
    from transformer.analysis.measuring import measure_heads

    return measure_heads(model.network(), model.task)


@st.cache_resource(max_entries=16, show_spinner="Removing each head in turn …")
def removal(model: Model) -> Estimate:
    """What removing each head costs."""
    from transformer.analysis.measuring import measure_removal

    return measure_removal(model.network(), model.task)


def removal_takes_long(model: Model) -> bool:
    from transformer.analysis.measuring import removal_takes_long

    return removal_takes_long(model.network(), model.task)


@st.cache_resource(max_entries=4, show_spinner="Looking closer …")
def _detail(model: Model, question: bytes, site: str) -> Detail:
    from transformer.analysis.detail import detail

    symbols = np.frombuffer(question, dtype=np.int64)
    return detail(model.network(), model.task, symbols, site, said=words_of(model, symbols))


@st.cache_resource(max_entries=64, show_spinner=False)
def _inside(model: Model, question: bytes, head: Head, query: int) -> Inside:
    from transformer.analysis.inside import look_inside

    symbols = np.frombuffer(question, dtype=np.int64)
    return look_inside(model.network(), model.task, symbols, head, query, said=words_of(model, symbols))


@st.cache_resource(max_entries=64, show_spinner="Looking into the model …")
def _lens(model: Model, question: bytes) -> Lens:
    from transformer.analysis.lens import lens

    symbols = np.frombuffer(question, dtype=np.int64)
    return lens(model.network(), model.task, symbols, said=words_of(model, symbols))


@st.cache_resource(max_entries=64, show_spinner=False)
def _writes(model: Model, question: bytes) -> dict[str, np.ndarray]:
    from transformer.analysis.attribution import writes

    symbols = np.frombuffer(question, dtype=np.int64)
    return writes(model.network(), model.task, symbols, said=words_of(model, symbols))


@st.cache_resource(max_entries=32, show_spinner=False)
def _rolled(model: Model, question: bytes, through: int) -> tuple[np.ndarray, np.ndarray]:
    attentions = model.sample(np.frombuffer(question, dtype=np.int64)).attentions
    return rollout(attentions, through), rollout(evenly(attentions), through)


@st.cache_resource(max_entries=256, show_spinner=False)
def _checkup(model: Model, question: bytes) -> Checkup:
    from transformer.analysis.health import examine

    symbols = np.frombuffer(question, dtype=np.int64)
    return examine(model.network(), model.task, symbols, model.config.training.seed)
