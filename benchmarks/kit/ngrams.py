"""Kneser-Ney models of a text by KenLM, for benchmarks/language.py: estimated by its lmplz, asked through its module.

Heafield et al., "Scalable Modified Kneser-Ney Language Model Estimation" (ACL 2013): interpolated, three discounts for
each order, found from the counts of counts (Chen and Goodman, 1998). A token is written as its index, so that blanks
and line ends are words like all others; the text's unknown token is one of them. A work is what KenLM calls a sentence.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kit.pages import give_up, missing

if reason := missing("kenlm"):
    give_up(reason)

import kenlm


def written(work: np.ndarray) -> str:
    """A work's tokens as words that KenLM takes."""
    return " ".join(f"w{index}" for index in work)


def estimate(works: Sequence[np.ndarray], order: int, program: str, folder: Path) -> kenlm.Model:
    """The model of these works, each token seen in the light of `order` - 1 before it, by `program`, KenLM's lmplz."""
    text, arpa = folder / "works.txt", folder / f"{order}-gram.arpa"
    text.write_text("".join(written(work) + "\n" for work in works))
    # A vocabulary with a minimum count may lack words of one context; such an order falls back to fixed discounts.
    asked = [program, "-o", str(order), "--discount_fallback", "-S", "1G", "-T", str(folder)]
    done = subprocess.run([*asked, "--text", str(text), "--arpa", str(arpa)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"lmplz could not make a {order}-gram model: {done.stderr.strip().splitlines()[-1]}")
    quiet = kenlm.Config()
    quiet.show_progress = False
    return kenlm.Model(str(arpa), quiet)


def nats(model: kenlm.Model, work: np.ndarray) -> np.ndarray:
    """Minus the logarithm of each token's probability, given all of the work before it that the model can use."""
    scores = list(model.full_scores(written(work), bos=True, eos=False))
    assert not any(unseen for _, _, unseen in scores), "a token that the vocabulary has was never learned from"
    return -math.log(10) * np.array([score for score, _, _ in scores])
