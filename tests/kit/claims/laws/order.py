"""Laws of the page "Positions at work": what scores are made of, and what moved positions cost."""

from __future__ import annotations

import numpy as np
import torch

from tests.kit import terms_by_hand
from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import NOISE
from tests.kit.claims.world import World
from transformer import observe
from transformer.edits import EditError, parse_edit

MAP = "parts/claims.map_of", "app_pages/positions/order/order.headline"
TERMS = ("content–content", "content–position", "position–content", "position–position")


def term_shares(world: World, head: str) -> np.ndarray:
    named = world.head(head)
    if "_terms" not in world.__dict__:
        world.__dict__["_terms"] = {}
    if named.site not in world.__dict__["_terms"]:
        batch = world.others(48)
        model = world.model.float()
        world.__dict__["_terms"][named.site] = terms_by_hand.shares_by_hand(model, world.config, batch, named.site)[0]
        world.model.double()
    return world.__dict__["_terms"][named.site][named.index]


def is_most(world: World, head: str, term: str, share: Shown) -> None:
    found = term_shares(world, head)
    at = TERMS.index(term)
    assert abs(found[at] - share.value) < 3 * NOISE, found
    assert found[at] >= found.max() - 3 * NOISE


WHO = r"(?P<head>(?:encoder |decoder |Encoder |Decoder )?[Hh]ead [\d.]+)"
for name in MAP:

    @law(
        name,
        rf"{WHO} is nearly a (?P<asks>\w+)-to-(?P<asked>\w+) map: (?P<share>[\d.]+) of its scores’ variance\.",
    )
    def is_map(world: World, head: str, asks: str, asked: str, share: Shown) -> None:
        assert share.value >= 0.8
        is_most(world, head.lower(), f"{asks}–{asked}", share)

    @law(name, rf"The term (?P<term>\w+–\w+) makes up (?P<share>[\d.]+) of the variance of {WHO}’s scores\.")
    def makes_up(world: World, head: str, term: str, share: Shown) -> None:
        assert 0.5 <= share.value <= 0.8
        is_most(world, head.lower(), term, share)

    @law(name, rf"No term makes up most of {WHO}’s score variance: (?P<term>\w+–\w+) has (?P<share>[\d.]+)\.")
    def no_term(world: World, head: str, term: str, share: Shown) -> None:
        assert share.value <= 0.5
        is_most(world, head.lower(), term, share)


@law(MAP[1], rf"{WHO} gives every key that it may see the same score\.", rare=True)
def same_score(world: World, head: str) -> None:
    named = world.head(head.lower())
    _, seen = world.looked
    pattern, mask = seen.patterns[named.site][:, named.index], seen.masks[named.site][:, named.index]
    even = mask / np.maximum(mask.sum(axis=-1, keepdims=True), 1)
    np.testing.assert_allclose(pattern, even, atol=1e-6)


@law(
    "app_pages/positions/order/order.nothing_to_move",
    r"This model has no positional encoding, so there is nothing to take apart or to move\.",
)
def tells_no_positions(world: World) -> None:
    assert world.model.positions.vectors(2) is None
    assert world.model.positions.bias(2, 2) is None
    assert not [*world.model.positions.parameters()]


@law(
    "app_pages/positions/order/displaced.without",
    r"Without positions, accuracy on the answer (?:stays at (?P<same>[\d.]+)|(?P<way>falls|rises) from "
    r"(?P<was>[\d.]+) to "
    r"(?P<now>[\d.]+))\.",
)
def without_positions(world: World, same: Shown | None, way: str | None, was: Shown | None, now: Shown | None) -> None:
    known, batch = world.known(), world.drawn(1024)
    right = [(world.through(batch, placed=placed).said == batch.targets)[:, known].mean() for placed in (True, False)]
    if same is not None:
        assert abs(right[0] - right[1]) < 0.011
        assert same == right[1]
        return
    assert was == right[0]
    assert now == right[1]
    assert (way == "falls") == (right[1] < right[0])


FURTHEST = "parts/yardstick.ByAccuracy.furthest"
KINDS = r"Positions (?P<how>shifted|cyclically shifted) by −3 to \+3, shuffled, removed: "


def displacements(world: World, how: str) -> dict[str, float]:
    """Accuracy on what can be known under each change of the positions that this model allows."""
    known, batch = world.known(), world.drawn(1024)
    tokens, source = (None if each is None else torch.from_numpy(each) for each in (batch.tokens, batch.source))
    found: dict[str, float] = {}
    kind = "places-turn" if how.startswith("c") else "places-shift"
    for text in (*(f"{kind}:{by}" for by in (-3, -2, -1, 1, 2, 3)), "places-shuffle:0", "unplaced"):
        edit = parse_edit(text)
        try:
            seen = observe(world.model, tokens, [edit], source=source, remember=lambda *_: None)
        except EditError:
            continue
        found[edit.words] = float((seen.logits.argmax(dim=-1).numpy() == batch.targets)[:, known].mean())
    return found


@law(FURTHEST, rf"{KINDS}accuracy falls with none of them\.")
def falls_with_none(world: World, how: str) -> None:
    before = world.right(1024)[:, world.known()].mean()
    assert min(displacements(world, how).values()) > before - 0.005 - 2e-3


@law(FURTHEST, rf"{KINDS}accuracy falls lowest with (?P<what>.+), to (?P<mean>[\d.]+)\.")
def falls_lowest(world: World, how: str, what: str, mean: Shown) -> None:
    found = displacements(world, how)
    assert mean == found[what]
    assert all(found[what] < each for name, each in found.items() if name != what)
    assert found[what] < world.right(1024)[:, world.known()].mean()


@law(
    FURTHEST,
    rf"{KINDS}accuracy falls lowest with (?:(?P<many>\d+) of these (?P<of>\d+) changes|(?P<two>.+)), to about "
    r"(?P<mean>[\d.]+)\.",
)
@law(FURTHEST, rf"{KINDS}accuracy is about the same with all of them, (?P<mean>[\d.]+) at the lowest\.")
def fall_about_as_low(
    world: World, how: str, mean: Shown, many: str | None = None, of: str | None = None, two: str | None = None
) -> None:
    """As many as are said are no more above the lowest than two intervals of 1,024 sequences are wide."""
    found = displacements(world, how)
    level = {name for name, each in found.items() if each < mean.value + 2 * 0.032}
    assert mean == min(found.values())
    assert of is None or int(of) == len(found)
    if two is not None:
        assert {*two.split(" and ")} <= level
    else:
        assert len(level) >= (int(many) if many else len(found)) > 1
