"""What a picture becomes before a model of pictures reads it: patches, each a position named by its row and column."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import nn

from transformer.capturing.foreign.reading import MOST, Given, Says
from transformer.capturing.foreign.tokenizers import ForeignError
from transformer.foundation.foreign import quoted

if TYPE_CHECKING:
    from PIL.Image import Image

BUILT_IN = "The picture is drawn by the program: a yellow sun in a blue sky over a green field."
"""What is read where no picture is given."""
MOST_BYTES, MOST_PIXELS = 20 * 2**20, 50_000_000
FRONT = {"cls_token": "CLS", "class_embedding": "CLS", "distillation_token": "DIST", "register_tokens": "REG"}
"""Parameters that are positions of their own in front of the patches, and what they are called."""
BACK = {"detection_tokens": "DET"}
"""The same behind the patches."""
BILINEAR = 2


@dataclass(frozen=True, eq=False)
class Pictures:
    """A picture, stretched to the model's size, in patches."""

    size: tuple[int, int]
    """Rows and columns of pixels."""
    patch: tuple[int, int]
    front: tuple[str, ...]
    """Names of the positions in front of the patches: "CLS"."""
    back: tuple[str, ...]
    """Names of those behind them: "DET 1"."""
    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    """What is taken from each colour, of 0 to 1, and what the rest is divided by."""
    scale: float
    """What makes 0 to 1 of a colour of 0 to 255."""
    resample: int
    """Pillow's number of the way to resize."""
    device: torch.device
    says: Says = "picture"
    hint: str = ""

    @classmethod
    def of(cls, model: nn.Module, preparation: Mapping[str, Any], device: torch.device) -> Pictures:
        """What a model reads by its config and its preprocessor_config.json. Raises ForeignError."""
        config = getattr(model, "config", None)
        size, patch = (_two(getattr(config, name, None)) for name in ("image_size", "patch_size"))
        if size is None or patch is None or any(each < part for each, part in zip(size, patch, strict=True)):
            raise ForeignError("It does not say how it cuts a picture into patches: image_size and patch_size.")
        channels = getattr(config, "num_channels", 3)
        if channels not in (1, 3):
            raise ForeignError(f"It reads pictures of {quoted(channels)} colours: they can have 1 or 3.")
        plain = preparation.get("do_normalize") is False
        mean = _numbers(preparation, "image_mean", channels, 0.0 if plain else 0.5, ignored=plain)
        std = _numbers(preparation, "image_std", channels, 1.0 if plain else 0.5, ignored=plain)
        scale = _numbers(preparation, "rescale_factor", 1, 1 / 255, ignored=False)[0]
        if not all((*std, scale)):
            raise ForeignError("In its preprocessor_config.json a number is zero by which is divided or multiplied.")
        resample = preparation.get("resample", BILINEAR)
        found = cls(
            size, patch, _own(model, FRONT), _own(model, BACK), channels, mean, std,
            1.0 if preparation.get("do_rescale") is False else scale,
            resample if resample in range(6) else BILINEAR,
            device,
        )  # fmt: skip
        if found.longest > MOST:
            raise ForeignError(f"It cuts a picture into {found.longest} positions, and at most {MOST} fit.")
        return found

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.size[0] // self.patch[0], self.size[1] // self.patch[1]

    @property
    def longest(self) -> int:
        return len(self.front) + math.prod(self.grid) + len(self.back)

    def given(self, text: str = "", second: str = "", picture: bytes | None = None) -> Given:
        """A picture in a file's bytes, PNG or JPEG; without one, the built-in one. Raises ForeignError."""
        image = _drawn(*self.size) if picture is None else _opened(picture)
        image = image.convert("RGB").resize(self.size[::-1], self.resample)
        seen = np.asarray(image)
        colours = seen if self.channels == 3 else np.asarray(image.convert("L"))[..., None]
        values = (torch.tensor(colours) * self.scale - torch.tensor(self.mean)) / torch.tensor(self.std)
        pixels = values.permute(2, 0, 1)[None].to(self.device)
        rows, columns = self.grid
        patches = (f"{row}.{column}" for row in range(1, rows + 1) for column in range(1, columns + 1))
        names = (*self.front, *patches, *self.back)
        return Given((), {"pixel_values": pixels}, tuple(range(len(names))), names, picture=seen)

    def word(self, token: int) -> str:
        return str(token)

    def decode(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))


def _drawn(rows: int, columns: int) -> Image:
    """The built-in picture."""
    from PIL import Image

    y, x = np.mgrid[:rows, :columns] / np.array([rows, columns])[:, None, None]
    picture: UInt8[np.ndarray, "row column 3"] = np.where((y > 0.65)[..., None], (70, 140, 60), (110, 170, 230)).astype(
        np.uint8
    )
    picture[(x - 0.7) ** 2 + (y - 0.3) ** 2 < 0.02] = (250, 210, 60)
    return Image.fromarray(picture)


def _opened(content: bytes) -> Image:
    from PIL import Image, ImageOps

    if len(content) > MOST_BYTES:
        raise ForeignError(f"The picture is larger than {MOST_BYTES // 2**20} MB, the most that is read.")
    try:
        image = Image.open(io.BytesIO(content), formats=("PNG", "JPEG"))
        if image.width * image.height <= MOST_PIXELS:
            return ImageOps.exif_transpose(image)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        pass
    except Exception:  # Pillow raises what it stumbles over
        raise ForeignError("This is no picture that can be read: it must be a PNG or a JPEG.") from None
    raise ForeignError(f"The picture has more than {MOST_PIXELS // 10**6} million pixels.")


def _two(value: object) -> tuple[int, int] | None:
    """Rows and columns, where one number may stand for both."""
    both = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(both) != 2 or not all(isinstance(each, int) and each > 0 for each in both):
        return None
    return both[0], both[1]


def _numbers(
    preparation: Mapping[str, Any], name: str, many: int, otherwise: float, *, ignored: bool
) -> tuple[float, ...]:
    """A number for each colour, where one number may stand for all."""
    value = None if ignored else preparation.get(name)
    listed = value if isinstance(value, list) else [otherwise if value is None else value]
    if len(listed) == 1:
        listed = listed * many
    whole = all(isinstance(each, int | float) and math.isfinite(each) for each in listed)
    if len(listed) != many or not whole:
        raise ForeignError(f"In its preprocessor_config.json {name} must be {many} numbers, not {quoted(value)}.")
    return tuple(map(float, listed))


def _own(model: nn.Module, words: Mapping[str, str]) -> tuple[str, ...]:
    """The positions that a model puts beside the patches, by the parameters that stand for them."""
    found = {name.rpartition(".")[2]: value for name, value in model.named_parameters()}
    names: list[str] = []
    for parameter, word in words.items():
        many = 0 if parameter not in found else found[parameter].shape[-2] if found[parameter].dim() > 1 else 1
        names += [word] if many == 1 else [f"{word} {number + 1}" for number in range(many)]
    return tuple(names)
