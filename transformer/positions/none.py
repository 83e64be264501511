"""No positions: the model sees a bag of tokens, and only a mask can tell it about order."""

from typing import ClassVar

import torch

from transformer.positions import PositionalEncoding


class NoPositions(PositionalEncoding):
    """Nothing is added: without a mask, permuting the input permutes the output and changes nothing else."""

    title: ClassVar[str] = "none"
    description: ClassVar[str] = "no encoding at all: the tokens are a bag"
    formula: ClassVar[str] = r"PE_p = 0"

    def picture(self, length: int):
        return torch.zeros(length, self.d_model), "dimension"
