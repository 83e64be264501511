"""`def` where `class` is meant."""

import torch
from torch import nn

from transformer.mistakes import Comparison, Demonstration, Mistake, attempted


class DefForClass(Mistake):
    """`right(d_model)` gives a module that doubles its input."""

    title = "def stands where class is meant"
    hidden = "It is valid Python, and Twice(d_model) is no error: it returns None."
    exposes = "A TypeError where the module is first called, far from where it was made."
    mend = "Write class."
    met = "a lecture notebook"
    trains = False
    function = "made"

    @staticmethod
    def right(d_model):
        class Twice(nn.Module):
            def __init__(self, d_model):
                super().__init__()
                self.d_model = d_model

            def forward(self, x):
                return 2 * x

        return Twice(d_model)

    @staticmethod
    def wrong(d_model):
        def Twice(Module):
            def __init__(self, d_model):
                super().__init__()
                self.d_model = d_model

            def forward(self, x):
                return 2 * x

        return Twice(d_model)

    @classmethod
    def demonstrate(cls):
        wrong, right = (type(make(16)).__name__ for make in (cls.wrong, cls.right))
        called = [attempted(lambda made: float(made(torch.ones(1))), make, 16) for make in (cls.wrong, cls.right)]
        return Demonstration(
            f"The right code makes an object of type {right}, the wrong code one of type {wrong}. Called with 1, the "
            f"right one gives {called[1]:g}; the wrong one is an error: {str(called[0]).split(':')[0]}.",
            (Comparison("type of what is made", wrong, right), Comparison("called with 1", *called)),
        )
