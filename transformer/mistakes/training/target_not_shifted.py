"""The target is the token that is read, not the next one."""

import numpy as np

from transformer.mistakes import TrainingMistake
from transformer.tasks.reverse import Reverse


class TargetNotShifted(TrainingMistake):
    """`right(tokens)` gives what is read and what is to be predicted, both [batch, position]."""

    title = "The target is not shifted"
    hidden = "The loss falls to nothing. The pattern, its rows and the probe are as they should be."
    exposes = "The loss lies below its floor, and the second half is not right: the model says what it has just read."
    mend = "Read tokens[:, :-1] and predict tokens[:, 1:]."
    met = "bug reports in public repositories"
    function = "read_and_predicted"

    @staticmethod
    def right(tokens):
        return tokens[:, :-1], tokens[:, 1:]

    @staticmethod
    def wrong(tokens):
        return tokens[:, :-1], tokens[:, :-1]

    @classmethod
    def taught(cls, task):
        return _Unshifted(length=task.length, symbols=task.symbols)


class _Unshifted(Reverse):
    """Reversal, taught with the wrong targets."""

    def _layout(self, questions, answers):
        read, targets, determined = super()._layout(questions, answers)
        return *TargetNotShifted.wrong(np.concatenate([read, targets[:, -1:]], axis=1)), determined
