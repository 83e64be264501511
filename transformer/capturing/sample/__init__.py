"""A sample of a model that is not ours, shipped with its weights: it reads Shakespeare, and is opened as any module is.

`checkpoints/train_sample.py` has trained it. Nothing here imports PyTorch; reader.py does.
"""

from __future__ import annotations

from pathlib import Path

NAME, BUILT = "small-shakespeare", "transformer.capturing.sample.reader:build"
"""What lists call it, and the function that builds it."""
WEIGHTS, WORDS = "weights.safetensors", "words.json"


def folder() -> Path | None:
    """Where its weights lie: beside the shipped runs, or in the installed package; None where they are not there."""
    package = Path(__file__).resolve().parents[2]
    places = (package.parent / "checkpoints" / "sample", package / "shipped" / "sample")
    return next((place for place in places if (place / WEIGHTS).is_file()), None)
