"""Laws of the pages of a text: it is cut, numbered and predicted here by other means.

No model of the grid reads a text: `test_the_title_of_every_other_page…` judges them on the shipped one.
"""

from __future__ import annotations

import re

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.world import World
from transformer import masks

TOKENS = "app_pages/text/tokens/words.headline"


def cut_by_hand(world: World) -> tuple[list[str], int]:
    """The tokens of the text that the page cuts, and how long its windows are."""
    view = dict(world.view)
    text = view.get("cut_text", world.task.typed(world.task.example)).replace("↵", "\n")
    by = view.get("cut_by", "words")
    return [*text] if by == "characters" else re.findall(r"⟨unk⟩|\w+|[^\w⟨]+", text), int(view.get("cut_window", 8))


@law(
    TOKENS,
    r"This text has (?P<tokens>[\d,]+) tokens\. In windows of (?P<length>\d+), no token is predicted from more than "
    r"the (?P<most>\d+) before it\.",
    rare=True,
)
def predicted_from(world: World, tokens: Shown, length: str, most: str) -> None:
    """What is read begins with SEP, so that much of the text stands before the last target of a window."""
    cut, window = cut_by_hand(world)
    assert tokens == len(cut)
    assert int(length) == window <= len(cut)
    read = np.arange(window) > 0
    assert int(most) == int((masks.parse(world.sizes.mask).matrix(window) & read).sum(axis=1).max())


@law(TOKENS, r"This text has (?P<tokens>[\d,]+) tokens?: too few for a window of (?P<length>\d+)\.", rare=True)
def too_few(world: World, tokens: Shown, length: str) -> None:
    cut, window = cut_by_hand(world)
    assert tokens == len(cut)
    assert int(length) == window > len(cut)
