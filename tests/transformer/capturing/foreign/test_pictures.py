"""A picture becomes patches: each position is named by its row and column, each colour is what the folder says."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.kit.foreign.folders import made, saved
from transformer.capturing.folders import load, look
from transformer.capturing.foreign import Foreign, ForeignError, foreign
from transformer.capturing.foreign.pictures import BUILT_IN

PREPARATION = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.25, 0.2], "rescale_factor": 1 / 255, "resample": 3}


def encoded(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(stream, kind)
    return stream.getvalue()


def noise(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (rows, columns, 3))


@pytest.mark.parametrize(
    ("model", "says", "pixel", "expected"),
    [
        ({}, PREPARATION, (255, 51, 0), ((1 - 0.1) / 0.5, (0.2 - 0.2) / 0.25, (0 - 0.3) / 0.2)),
        ({}, None, (255, 0, 51), (1.0, -1.0, -0.6)),  # without a word of the folder from minus one to one
        ({}, {"do_normalize": False, "do_rescale": False, "image_mean": "anything"}, (200, 200, 200), (200.0,) * 3),
        ({"num_channels": 1}, {"image_mean": [0.0], "image_std": 1.0}, (51, 51, 51), (0.2,)),
    ],
)
def test_colours_are_prepared_as_the_folder_says(
    tmp_path: Path, model: dict[str, Any], says: dict[str, Any] | None, pixel: tuple[int, ...], expected: tuple
) -> None:
    one = load(look(saved("ViTModel", tmp_path, says, **model)))
    found = one.given(picture=encoded(np.full((32, 32, 3), pixel))).named["pixel_values"]
    of_each = torch.tensor(expected)[None, :, None, None].expand(1, len(expected), 32, 32)
    torch.testing.assert_close(found, of_each, atol=1e-6, rtol=1e-5)


def test_it_is_what_the_librarys_own_processor_makes() -> None:
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    processor = ViTImageProcessorPil(size={"height": 32, "width": 32}, **PREPARATION)
    pixels = noise(80, 50)
    expected = processor(Image.fromarray(pixels.astype(np.uint8)), return_tensors="pt")["pixel_values"]
    one = foreign("vit", made("ViTModel"), preparation=PREPARATION)
    found = one.given(picture=encoded(pixels)).named["pixel_values"]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def differing(one: Foreign, row: int, column: int) -> list[int]:
    """The positions that change in the model's own embedding when one patch of a black picture turns white."""
    black = np.zeros((32, 32, 3))
    white = black.copy()
    white[8 * row : 8 * row + 8, 8 * column : 8 * column + 8] = 255
    embed = one.model.embeddings
    with torch.no_grad():
        a, b = (embed(one.given(picture=encoded(each)).named["pixel_values"]) for each in (black, white))
    return (a - b).abs().amax(dim=-1)[0].nonzero()[:, 0].tolist()


@pytest.mark.parametrize(
    ("kind", "front"),
    [("ViTModel", ("CLS",)), ("DeiTModel", ("CLS", "DIST")), ("Dinov2WithRegistersModel", ("CLS", "REG 1", "REG 2"))],
)
def test_a_position_is_named_by_the_patch_that_it_is(kind: str, front: tuple[str, ...]) -> None:
    one = foreign(kind, made(kind))
    names = one.given().names
    assert names[: len(front)] == front
    assert len(names) == len(front) + 16 == one.longest
    for row, column in ((0, 0), (0, 3), (2, 1), (3, 3)):
        assert [names[each] for each in differing(one, row, column)] == [f"{row + 1}.{column + 1}"]


def test_without_a_picture_there_is_one_that_is_said_what_it_is() -> None:
    one = foreign("vit", made("ViTModel", image_size=[32, 48], patch_size=[8, 16]))
    given = one.given()
    assert given.names == ("CLS", *(f"{row}.{column}" for row in range(1, 5) for column in range(1, 4)))
    assert given.picture is not None
    assert given.picture.shape == (32, 48, 3)
    sky, field, sun = given.picture[1, 1], given.picture[-1, 1], given.picture[9, 33]
    assert sky.argmax() == 2
    assert field.argmax() == 1
    assert sun[0] > 200 > sun[2]
    assert "yellow sun in a blue sky over a green field" in BUILT_IN


def test_a_picture_that_a_camera_turned_stands_upright() -> None:
    picture = Image.fromarray(np.concatenate([np.full((32, 16, 3), 255), np.zeros((32, 16, 3))], 1).astype(np.uint8))
    turned = picture.getexif()
    turned[0x0112] = 3  # upside down
    stream = io.BytesIO()
    picture.save(stream, "JPEG", exif=turned)
    seen = foreign("vit", made("ViTModel")).given(picture=stream.getvalue()).picture
    assert seen is not None
    assert seen[:, :12].max() < 20
    assert seen[:, 20:].min() > 235


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def blank(width: int, height: int) -> bytes:
    """A PNG that says this size, with the pixels of none."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_what_is_no_picture_says_so() -> None:
    one = foreign("vit", made("ViTModel"))
    for content in (b"", b"GIF89a", b"<svg/>", encoded(noise(8, 8), "GIF"), encoded(noise(8, 8))[:-40], blank(8, 8)):
        with pytest.raises(ForeignError, match=r"^This is no picture that can be read: it must be a PNG or a JPEG.$"):
            one.given(picture=content)
    for size in ((10_000, 6_000), (10_000, 10_000), (60_000, 60_000)):  # Pillow is silent, warns, refuses
        with pytest.raises(ForeignError, match=r"^The picture has more than 50 million pixels.$"):
            one.given(picture=blank(*size))
    with pytest.raises(ForeignError, match=r"^The picture is larger than 20 MB, the most that is read.$"):
        one.given(picture=bytes(21 * 2**20))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"image_mean": [0.5, 0.5]}, r"image_mean must be 3 numbers, not \[0.5, 0.5\]"),
        ({"image_std": "wide"}, "image_std must be 3 numbers, not 'wide'"),
        ({"image_mean": [0.5, 0.5, float("nan")]}, "image_mean must be 3 numbers"),
        ({"image_std": [0.5, 0, 0.5]}, "a number is zero"),
    ],
)
def test_a_preparation_that_cannot_be_says_why(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ForeignError, match=sentence):
        foreign("vit", made("ViTModel"), preparation=settings)


def test_a_model_that_does_not_say_its_patches_or_has_too_many_is_refused() -> None:
    with pytest.raises(ForeignError, match=r"^It cuts a picture into 577 positions, and at most 512 fit.$"):
        foreign("vit", made("ViTModel", image_size=384, patch_size=16))

    class Convolution(torch.nn.Conv2d):
        main_input_name = "pixel_values"

    with pytest.raises(ForeignError, match=r"^It does not say how it cuts a picture into patches"):
        foreign("no patches", Convolution(3, 4, 8))
    with pytest.raises(ForeignError, match=r"^It reads pictures of 4 colours: they can have 1 or 3.$"):
        foreign("vit", made("ViTModel", num_channels=4))
