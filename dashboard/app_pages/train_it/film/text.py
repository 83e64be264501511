"""How a model of a text learned: held-out perplexity and the habits of its heads, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures.learning import share_curves
from dashboard.parts.heads import PLACES, habits
from dashboard.parts.text import course, over
from transformer.analysis.film.film import Film
from transformer.analysis.findings import Head
from transformer.text.perplexity import perplexity
from transformer.text.perplexity import said as in_words

Metrics = Sequence[Mapping[str, Any]]


def headline(metrics: Metrics) -> str:
    """How far perplexity fell, in a sentence; empty where it was not measured twice."""
    steps, nats = course(metrics)
    if len(steps) < 2:
        return ""
    first, last = (in_words(perplexity(value)) for value in (nats[0], nats[-1]))
    verb = "falls" if nats[-1] < nats[0] else "rises"
    read = f", on {basis}" if (basis := over(metrics)) else ""
    return f"Perplexity {verb} from {first} at step {steps[0]} to {last} at step {steps[-1]}{read}"


def kept_habits(film: Film) -> dict[str, dict[Head, np.ndarray]]:
    """Every head's share on each of PLACES, picture after picture, on the passage that the film shows."""
    heads = [Head(site, i) for site, reading in film.readings.items() for i in range(reading.levels.shape[1])]
    rows = {
        head: [habits(film.readings[head.site].pattern(i)[head.index]) for i in range(len(film.pictured))]
        for head in heads
    }
    return {name: {head: np.array([row[name] for row in rows[head]]) for head in heads} for name in PLACES}


def heads(film: Film, focus: Head | None, makers: list[Maker]) -> None:
    """How the heads came to look where they do: of the three places the one that a head looks at most."""
    shares = {
        name: {head: share for head, share in each.items() if np.isfinite(share).all()}
        for name, each in kept_habits(film).items()
    }
    known = {name: max(float(share[-1]) for share in each.values()) for name, each in shares.items() if each}
    if not known:
        st.info("No query of this passage has a choice of keys.")
        return
    name = max(known, key=lambda each: known[each])
    curves, steps = shares[name], film.steps[film.pictured]
    best = max(curves, key=lambda head: (curves[head][-1], head))
    shown = focus if focus in curves else best
    st.markdown(f"**Attention of each head on {PLACES[name]}**")
    share = curves[shown]
    earlier = f", {share[0]:.2f} at step {steps[0]}" if len(steps) > 1 else ""
    said = (
        f"On this passage head {shown.short} puts {share[-1]:.2f} of its attention on {PLACES[name]} at step "
        f"{steps[-1]}{earlier}."
    )
    figure = coloured(
        share_curves,
        steps,
        {head.short: values for head, values in curves.items()},
        focus=shown.short,
        title=f"share on {PLACES[name]}",
    )
    plot(figure, key="film-heads", alt=said, height=400, makers=makers)
    also = f" Head {best.short} does most, {curves[best][-1]:.2f}." if shown != best else ""
    st.caption(f"{said}{also} Mean over its tokens; those that can see one key only are left out.")
