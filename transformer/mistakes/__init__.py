"""Mistakes: what goes wrong in a first transformer, each as code beside the right code.

Each mistake is one file, in the folder of what it is a mistake in: `attention/` the formula, `mask/` what may be seen,
`positions/` what tells the order, `module/` the heads around the formula, `decoder/` what stands around them,
`training/` what is learned from. Dropped in there it is in the gallery, in the check of students' code and in the
contract tests.

`mistaken(model)` gives a copy of one of our models that has the mistake: a piece is replaced, and the model knows
nothing of it. `signature` trains such a model and measures what it looks like.
"""

from __future__ import annotations

from pathlib import Path

from transformer.foundation.registry import Registry
from transformer.mistakes._base import (
    STAGES,
    AttentionMistake,
    DecoderMistake,
    MaskMistake,
    Mistake,
    ModuleMistake,
    PositionsMistake,
    TrainingMistake,
    usual_attention,
)
from transformer.mistakes._demonstration import Comparison, Demonstration, attempted, shape_of, vectors_in
from transformer.mistakes._signature import DETECTORS, SEQUENCES, Signature, measure, signature, trained

__all__ = [
    "DETECTORS",
    "MISTAKES",
    "SEQUENCES",
    "STAGES",
    "AttentionMistake",
    "Comparison",
    "DecoderMistake",
    "Demonstration",
    "MaskMistake",
    "Mistake",
    "ModuleMistake",
    "PositionsMistake",
    "Signature",
    "TrainingMistake",
    "attempted",
    "measure",
    "shape_of",
    "signature",
    "trained",
    "usual_attention",
    "vectors_in",
]

MISTAKES: Registry[Mistake] = Registry(Mistake, __name__, str(Path(__file__).parent))
