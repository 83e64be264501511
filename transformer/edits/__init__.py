"""Edits: how one forward pass may be changed.

Frozen dataclasses: hashable, so they are cache keys; printable, so they are labels. They enter through
`observe(model, tokens, edits)` and nowhere else, never work in place, and an edit that touches nothing is an error.
"""

from transformer.edits.base import Edit, EditError, HeadEdit
from transformer.edits.heads import AblateHead, KeepOnlyHead, Patch, PatchHead
from transformer.edits.masks import OverrideMask
from transformer.edits.patterns import ForcePattern, ScaleScores, ShiftScores
from transformer.edits.places import RemovePositions, ShiftPositions, ShufflePositions, SwapPositions, TurnPositions
from transformer.edits.text import edit_text, parse_edit
from transformer.edits.wishes import ExpectPattern, Occasion, PatchInput, PatchStep, Wish, resolve

__all__ = [
    "AblateHead",
    "Edit",
    "EditError",
    "ExpectPattern",
    "ForcePattern",
    "HeadEdit",
    "KeepOnlyHead",
    "Occasion",
    "OverrideMask",
    "Patch",
    "PatchHead",
    "PatchInput",
    "PatchStep",
    "RemovePositions",
    "ScaleScores",
    "ShiftPositions",
    "ShiftScores",
    "ShufflePositions",
    "SwapPositions",
    "TurnPositions",
    "Wish",
    "edit_text",
    "parse_edit",
    "resolve",
]
