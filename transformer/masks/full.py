"""Everything in sight: an encoder's attention."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transformer.masks import Mask


@dataclass(frozen=True)
class Full(Mask):
    """Every query sees every key."""

    description: ClassVar[str] = "every query sees every key"

    def under(self, whose="the", called=""):
        return "without a mask"

    def visible(self, query, key, padding):
        return np.broadcast_to(np.array(True), np.broadcast_shapes(query.shape, key.shape, padding.shape))
