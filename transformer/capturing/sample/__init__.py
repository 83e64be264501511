"""A sample of a model that is not ours, with its weights: it reads Shakespeare, and is opened as any module is.

`checkpoints/train_sample.py` has trained it. Nothing here imports PyTorch; reader.py does.
"""

from __future__ import annotations

from pathlib import Path

NAME, BUILT = "small-shakespeare", "transformer.capturing.sample.reader:build"
"""What lists call it, and the function that builds it."""
FOLDER = Path(__file__).resolve().parent
WEIGHTS, WORDS = FOLDER / "weights.safetensors", FOLDER / "words.json"
"""Its weights, rounded to 16 bits, and the words that it knows, the commonest first."""
