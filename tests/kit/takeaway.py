"""Files that a page offers, saved and read back."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, expect

from tests.kit.driving import ROOT

RUN, STEP = "reverse", 40
WEIGHTS = ROOT / "checkpoints" / RUN / "snapshots" / f"step-{STEP:06}.safetensors"
DIGEST = hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()
TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 10, 6, 2, 9, 5, 1, 4, 1]  # 10 is SEP; the model says the second half itself
NAMES = [str(token) if token < 10 else "SEP" for token in TOKENS]
FORMATS = ("svg", "png", "html", "csv", "npz")
DC = "{http://purl.org/dc/elements/1.1/}"


def save(page: Page, key: str, format: str, folder: Path) -> Path:
    """Save the figure of a key as a person would."""
    place = page.locator(f".st-key-{key}")
    place.hover()
    place.get_by_role("button", name=f"Save {key}").click()
    with page.expect_download() as download:
        place.get_by_role("menuitem", name=format.upper()).click()
    expect(place.get_by_role("menu")).to_be_hidden()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=np.int16)
