"""Laws of what the pages below *Positions* say."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from tests.kit import terms_by_hand
from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import NOISE
from tests.kit.claims.world import World

PAGE = "app_pages/positions/"

# --- positions

NEAR = {"similar": (0.8, 1.0), "somewhat similar": (0.3, 0.8), "nearly unrelated": (-0.3, 0.3)}
NEAR |= {"somewhat opposite": (-0.8, -0.3), "opposite": (-1.0, -0.8)}


@law(
    f"{PAGE}positions/encoding.headline",
    r"(?P<name>\w+) positions: neighbours have (?P<alike>[a-z ]+) vectors, with cosine (?P<cosine>[−\d.]+)\.",
)
def neighbours(world: World, name: str, alike: str, cosine: Shown) -> None:
    low, high = NEAR[alike]
    assert low - 0.006 <= cosine.value <= high + 0.006
    assert name.lower() == world.sizes.positions
    rows = world.model.positions.picture(world.model.n_ctx)[0].double().numpy()
    if name == "Learned":
        rows = world.weights["positions.table"]
    near = [a @ b / math.sqrt((a @ a) * (b @ b)) for a, b in itertools.pairwise(rows)]
    assert cosine == sum(near) / len(near)


@law(
    f"{PAGE}positions/encoding.headline",
    r"There is only one position, so there is no order to encode\.",
    r"\w+ positions: \d+ rows, some of them all zero\.",
    rare=True,
)
def no_neighbours(world: World) -> None:
    assert world.model.n_ctx == 1


@law(
    f"{PAGE}positions/alibi_and_none.penalised",
    r"Head 0 halves a key's weight every (?P<first>[\d.]+) positions, head (?P<n>\d+) every (?P<last>[\d.]+)\.",
)
def halves(world: World, first: Shown, n: str, last: Shown) -> None:
    bias = world.model.positions.bias(2, 2).double().numpy()[:, 0, 1]
    assert int(n) == len(bias) - 1
    assert abs(first.value - math.log(2) / -bias[0]) < 0.01
    assert abs(last.value / (math.log(2) / -bias[-1]) - 1) < 0.01


@law(f"{PAGE}positions/alibi_and_none.penalised", r"ALiBi tells distances: .*", rare=True)
def one_head(world: World) -> None:
    assert world.sizes.n_heads == 1


@law(
    f"{PAGE}positions/bias.headline",
    r"(?P<encoding>.+) positions: head (?P<head>\d+) adds (?P<low>[−\d.]+) to (?P<high>[−\d.]+) to its scores\.",
    rare=True,
)
def adds_to_scores(world: World, encoding: str, head: str, low: Shown, high: Shown) -> None:
    kind, n = world.sizes.encoding, world.model.n_ctx
    assert encoding.casefold() == kind.title.casefold()
    bias = world.model.positions.bias(n, n).double().detach().numpy()[int(head)]
    assert low == bias.min()
    assert high == bias.max()


@law(
    f"{PAGE}positions/alibi_and_none.unordered",
    r"Without positions and without a mask, this model sees no order: reading backwards changes no logit by more "
    r"than .*\.",
)
def no_order(world: World) -> None:
    batch = world.task.encode(world.question[None])
    back = replace(batch, tokens=batch.tokens[:, ::-1].copy())
    everything = np.ones((batch.tokens.shape[1],) * 2, dtype=bool)
    there, again = (world.through(each, placed=False, sees=everything).logits[0] for each in (batch, back))
    np.testing.assert_allclose(there, again[::-1], rtol=0, atol=1e-9)


# --- positions at work

MAP = "parts/claims.map_of", f"{PAGE}order/order.headline"
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
    f"{PAGE}order/order.nothing_to_move",
    r"This model has no positional encoding, so there is nothing to take apart or to move\.",
)
def tells_no_positions(world: World) -> None:
    assert world.model.positions.vectors(2) is None
    assert world.model.positions.bias(2, 2) is None
    assert not [*world.model.positions.parameters()]


@law(
    f"{PAGE}order/displaced.without",
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
