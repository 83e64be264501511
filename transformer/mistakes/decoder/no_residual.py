"""The residual connections are left out."""

import copy

from transformer.blocks import Block
from transformer.mistakes import DecoderMistake


class NoResidual(DecoderMistake):
    """`right(resid, sublayer)` gives the stream after a sub-layer; resid [batch, position, d_model]."""

    title = "There are no residual connections"
    hidden = "Two layers are few enough to do without: accuracy, loss, pattern and probe are those of a right model."
    exposes = "Nothing in its behaviour does. The difference to the reference with the same weights shows it."
    silent = True
    mend = "Add each sub-layer's input to its output."
    met = "bug reports in public repositories"
    function = "after"

    @staticmethod
    def right(resid, sublayer):
        return resid + sublayer(resid)

    @staticmethod
    def wrong(resid, sublayer):
        return sublayer(resid)

    @classmethod
    def mistaken(cls, model):
        other = copy.deepcopy(model)
        for block in other.decoder:
            assert isinstance(block, Block)
            block.residual = False  # what a config says with residual=False
        return other
