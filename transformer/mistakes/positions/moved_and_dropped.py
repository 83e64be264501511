"""pe.cuda() is called and its result is not used."""

import torch

from transformer.mistakes import Comparison, Demonstration, Mistake


class MovedAndDropped(Mistake):
    """`right(encoding, device)` gives the encoding on a device."""

    title = "The result of pe.cuda() is not used"
    hidden = "On a machine without a GPU nothing is moved, and nothing is wrong."
    exposes = "The encoding stays where it was, so that adding it to embeddings on a GPU is an error."
    mend = "Keep the result, pe = pe.cuda(), or register pe as a buffer: it moves with its module."
    met = "a lecture notebook"
    trains = False
    function = "moved"

    @staticmethod
    def right(encoding, device):
        return encoding.to(device)

    @staticmethod
    def wrong(encoding, device):
        encoding.to(device)
        return encoding

    @classmethod
    def demonstrate(cls):
        # "meta" is a device that every machine has: it keeps shapes and no numbers.
        wrong, right = (move(torch.zeros(8, 16), "meta").device.type for move in (cls.wrong, cls.right))
        return Demonstration(
            f"Sent from the CPU to the device “meta”, the encoding is on “{wrong}” with the wrong code and on "
            f"“{right}” with the right code. A GPU is no different: a tensor's cuda() and to() return a copy.",
            (Comparison("device of the encoding", wrong, right),),
        )
