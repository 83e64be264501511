"""Whether the teacher helps is decided by a normal draw in place of a uniform one."""

import torch

from transformer.foundation.drawing import drawing
from transformer.mistakes import Comparison, Demonstration, TrainingMistake

ASKED, DRAWS = 0.5, 100_000


class NormalDraw(TrainingMistake):
    """`right(steps, probability)` gives a Bool a step: does the model read the right token there?"""

    title = "Teacher forcing is decided by a normal draw"
    hidden = "The draw is random, and a greater probability still means more help."
    exposes = "The share of steps with help is not the probability that was asked for: count it."
    mend = "Draw from the uniform distribution: torch.rand, not torch.randn."
    met = "a lecture notebook"
    trains = False
    function = "helps"

    @staticmethod
    def right(steps, probability):
        return torch.rand(steps) < probability

    @staticmethod
    def wrong(steps, probability):
        return torch.randn(steps) < probability

    @classmethod
    def demonstrate(cls):
        with drawing(0):
            wrong, right = (float(helps(DRAWS, ASKED).float().mean()) for helps in (cls.wrong, cls.right))
        return Demonstration(
            f"Asked for help at {ASKED:g} of {DRAWS:,} steps, the normal draw helps at {wrong:.2f} of them and the "
            f"uniform draw at {right:.2f}.",
            (Comparison("share of steps with help", wrong, right),),
        )
