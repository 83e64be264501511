"""A transformer from scratch, small enough to be read in one sitting, that can be looked into.

Reading order: `attention.py`, `blocks.py`, `model.py`; then `trace.py`, `observation.py`; then `training/loop.py`.

Shapes, once for the whole package (jaxtyping names):

    batch               sequences side by side
    position            places in a sequence; `query` (who looks) and `key` (looked at) where two of them meet
    head, d_head        attention heads of a layer, and the width of one; n_heads · d_head = d_model
    d_model             width of the residual stream
    d_ff                width of the feed-forward layer
    d_vocab             tokens in the vocabulary; the last one is padding
    n_ctx               positions a model can read

Masks are True where a query may see a key. Names are imported when they are first used, so that
`import transformer` costs nothing and the tasks, masks and settings are at hand without PyTorch.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "MultiHeadAttention": "attention",
    "scaled_dot_product_attention": "attention",
    "FeedForward": "blocks",
    "Block": "blocks",
    "Transformer": "model",
    "build": "model",
    "Observation": "observation",
    "observe": "observation",
    "generate": "generation",
    "Said": "generation",
    "Captured": "capturing.record",
    "capture": "capturing.capture",
    "Change": "capturing.changes",
    "capture_changed": "capturing.changes",
    "Sampling": "sampling",
    "AblateHead": "edits.heads.zero",
    "ForcePattern": "edits.patterns.painted",
    "KeepOnlyHead": "edits.heads.only",
    "OverrideMask": "edits",
    "Patch": "edits",
    "RemovePositions": "edits.places.unplaced",
    "ScaleScores": "edits.patterns.scale",
    "ShiftPositions": "edits.places.places_shift",
    "ShiftScores": "edits.patterns.shift",
    "ShufflePositions": "edits.places.places_shuffle",
    "SwapPositions": "edits.places.swap",
    "TurnPositions": "edits.places.places_turn",
    "Edit": "edits",
    "EditError": "edits",
    "parse_edit": "edits",
    "ModelConfig": "config",
    "RunConfig": "config",
    "TaskConfig": "config",
    "TrainingConfig": "config",
    "load": "checkpoints",
    "save": "checkpoints",
    "compiled_reverser": "compiled",
    "train": "training.loop",
    "Step": "training.loop",
    "UserError": "foundation.checks",
    "ConfigError": "foundation.checks",
}
__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
