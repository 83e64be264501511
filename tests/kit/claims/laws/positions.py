"""Laws of the pages on positions: the encodings, and what they do in the scores."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import torch

from tests.kit import terms_by_hand
from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import NOISE
from tests.kit.claims.world import World
from transformer import observe
from transformer.edits import EditError, parse_edit

NEAR = {"similar": (0.8, 1.0), "somewhat similar": (0.3, 0.8), "nearly unrelated": (-0.3, 0.3)}
NEAR |= {"somewhat opposite": (-0.8, -0.3), "opposite": (-1.0, -0.8)}


@law(
    "app_pages/positions/positions/encoding.headline",
    r"(?P<name>\w+) positions: neighbours are (?P<alike>[a-z ]+), cosine (?P<cosine>[−\d.]+) on average\.",
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
    "app_pages/positions/positions/encoding.headline",
    r"There is only one position, so there is no order to encode\.",
    r"\w+ positions: \d+ rows, some of them all zero\.",
    rare=True,
)
def no_neighbours(world: World) -> None:
    assert world.model.n_ctx == 1


ENCODING, ROTATION = "app_pages/positions/positions/encoding.", "app_pages/positions/positions/rotation."
FAR_AWAY = r"(?P<{}>[\d.,]+(?: [kM])?)"


def table_by_hand(world: World) -> np.ndarray:
    """The table on the page, of the model's own sizes: a learned one, or its pairs turned by their angles."""
    if world.sizes.positions == "learned":
        return world.weights["positions.table"]
    width = world.sizes.d_model if world.sizes.positions == "sinusoidal" else world.sizes.d_head
    rows = []
    for place in range(world.model.n_ctx):
        angles = [place / 10_000 ** (2 * pair / width) for pair in range((width + 1) // 2)]
        pairs = [(math.sin(each), math.cos(each)) for each in angles]
        rows.append(
            [part for pair in pairs for part in (pair if world.sizes.positions == "sinusoidal" else pair[::-1])]
        )
    return np.array(rows)


def in_full(text: str) -> float:
    """ "62.8 k" as a number."""
    number, _, unit = text.replace(",", "").partition(" ")
    return float(number) * {"": 1.0, "k": 1e3, "M": 1e6}[unit]


@law(
    f"{ENCODING}table_sentence",
    r"(?P<name>[A-Z]\w+) encoding: (?P<positions>\d+) positions? by (?P<columns>\d+) columns?, (?:values from "
    r"(?P<low>[−\d.]+) to (?P<high>[−\d.]+)|all values (?P<all>[−\d.]+))\.(?: Wavelengths run from "
    rf"{FAR_AWAY.format('first')} to {FAR_AWAY.format('last')} positions\.| The wavelength is "
    rf"{FAR_AWAY.format('only')} positions\.)?",
)
def is_table(
    world: World, name: str, positions: str, columns: str, low: Shown | None, high: Shown | None, all: Shown | None,
    first: str | None, last: str | None, only: str | None,
) -> None:  # fmt: skip
    table = table_by_hand(world)
    assert (name.lower(), int(positions), int(columns)) == (world.sizes.positions, *table.shape)
    assert (low or all) == table.min()
    assert (high or all) == table.max()
    longest = 2 * math.pi * 10_000 ** (1 - 2 / table.shape[1])
    waves = [each for each in (first, last, only) if each is not None]
    assert len(waves) == (0 if name == "Learned" else 1 if table.shape[1] == 2 else 2)
    for said, wave in zip(waves, (2 * math.pi, longest), strict=False):
        assert abs(in_full(said) - wave) < 0.006 * wave


@law(
    f"{ENCODING}alike_sentence",
    r"A position with itself: (?P<own>[\d.]+) on average; with another: (?P<low>[−\d.]+)(?: to (?P<high>[−\d.]+))?\."
    r"(?P<pairs> This is the score of a query and a key in which every pair of numbers is \(1, 0\)\.)?",
)
def are_alike_by(world: World, own: Shown, low: Shown, high: Shown | None, pairs: str | None) -> None:
    table = table_by_hand(world)
    products = [sum(a * b) for a, b in itertools.permutations(table, 2)]
    assert own == sum((table**2).ravel()) / len(table)
    assert low == min(products)
    assert (high or low) == max(products)
    assert (pairs is not None) == (world.sizes.positions == "rotary")


@law(f"{ENCODING}alike_sentence", r"A single position: (?P<own>[\d.]+)\..*")
def is_alone(world: World, own: Shown) -> None:
    """Of a model that reads one token, or of a link that asks for one position."""
    assert world.model.n_ctx == 1 or dict(world.view)["pe_length"] == "1"
    assert own == sum(table_by_hand(world)[0] ** 2)


def apart_by_hand(table: np.ndarray) -> float:
    """By how much the products of pairs that are equally far apart differ at most."""
    n, found = len(table), []
    for distance in range(n):
        products = [float(table[at] @ table[at + distance]) for at in range(n - distance)]
        found.append(max(products) - min(products))
    return max(found)


@law(
    f"{ENCODING}distance_sentence",
    r"All pairs of positions that are equally far apart agree to (?P<apart>[^:]+): only the distance matters\.",
)
def distance_alone(world: World, apart: str) -> None:
    assert apart_by_hand(table_by_hand(world)) < 1e-9 * table_by_hand(world).shape[1]
    assert apart == "0" or int(apart.partition("10⁻")[2].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))) > 9


@law(
    f"{ENCODING}distance_sentence",
    r"Pairs that are equally far apart differ by up to (?P<apart>[\d.e+-]+): the positions matter too, not only the "
    r"distance\.",
)
def distance_and_more(world: World, apart: str) -> None:
    found = apart_by_hand(table_by_hand(world))
    assert found > 1e-9
    assert abs(float(apart) - found) < 0.006 * found


OVER = r"(?:Over all (?P<places>\d+) positions p|At the only position p there is), "
ROUNDING = r"(?:0|[\d.]+ × 10⁻(?P<{}>[⁰¹²³⁴⁵⁶⁷⁸⁹]+))"


def is_rounding(power: str | None) -> bool:
    """Is it no more than arithmetic in double precision leaves?"""
    return power is None or int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))) > 11


@law(
    f"{ROTATION}turned_sentence",
    rf"{OVER}the greatest \|PE\(p\+1\) − M · PE\(p\)\| is {ROUNDING.format('power')}\. M turns each pair by its own "
    r"angle\.",
)
def turns_each_pair(world: World, places: str | None, power: str | None) -> None:
    """A step turns the pair of wave number i by 1 / 10000^(2i / d): the same from every position."""
    table = table_by_hand(world)
    assert int(places or 1) == len(table) - 1
    assert is_rounding(power)
    for pair in range(table.shape[1] // 2):
        sine, cosine = table[:, 2 * pair], table[:, 2 * pair + 1]
        turns = np.angle((cosine + 1j * sine)[1:] / (cosine + 1j * sine)[:-1])
        np.testing.assert_allclose(turns, 10_000 ** (-2 * pair / table.shape[1]), atol=1e-9)


@law(
    f"{ROTATION}rotated_sentence",
    rf"{OVER}R takes the pair \(1, 0\) turned for p to the pair turned for p \+ 1; the largest error is "
    rf"{ROUNDING.format('power')}\. So the score of a query and a key depends on their distance only: for a random "
    rf"pair at every two positions, scores at the same distance differ by at most {ROUNDING.format('apart')}\.",
)
def rotates(world: World, places: str | None, power: str | None, apart: str | None) -> None:
    """The model's own rotation, of another query and key: they fit alike wherever they stand equally far apart."""
    n, width = world.model.n_ctx, world.sizes.d_head
    assert int(places or 1) == n - 1
    assert is_rounding(power)
    assert is_rounding(apart)
    query, key = np.random.default_rng(3).normal(size=(2, 1, 1, 1, width))
    at = [
        world.model.positions.rotate(torch.from_numpy(np.repeat(x, n, axis=2))).double().numpy()[0, 0]
        for x in (query, key)
    ]
    scores = at[0] @ at[1].T
    for distance in range(1 - n, n):
        np.testing.assert_allclose(np.diagonal(scores, distance), np.diagonal(scores, distance)[0], atol=1e-4)


def missed_by_hand(world: World) -> tuple[float, float, int, int]:
    """What the nearest map of one step misses, of the steps that it was fitted to and of others; how many steps there
    are, and dimensions. By the pseudo-inverse."""
    table = table_by_hand(world)
    before, after = table[:-1], table[1:]

    def residual(fitted: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return after[asked] - before[asked] @ (np.linalg.pinv(before[fitted]) @ after[fitted])

    every, half = np.arange(len(before)), np.random.default_rng(0).permutation(len(before)) % 2 == 0
    unseen = [residual(every[~half], every[half]), residual(every[half], every[~half])]
    size = np.linalg.norm(after)
    return (
        float(np.linalg.norm(residual(every, every)) / size),
        float(np.linalg.norm(np.concatenate(unseen)) / size),
        len(before),
        table.shape[1],
    )


@law(
    f"{ROTATION}fitted_sentence",
    r"The linear map nearest to PE\(p\+1\), fitted to (?P<steps>\d+) steps?, misses (?P<missed>[\d.]+) of it\.",
)
def misses(world: World, steps: str, missed: Shown) -> None:
    fitted, _, many, _ = missed_by_hand(world)
    assert int(steps) == many
    assert missed == fitted


@law(
    f"{ROTATION}_judged",
    r"(?:It was fitted to (?P<steps>\d+) steps? in (?P<width>\d+) dimensions\. A linear map can always fit so few "
    r"independent vectors exactly, so the first number proves nothing\. )?(?P<end>The map also works for steps that it "
    r"was not fitted to: a step is nearly the same linear map for every p|The map works in part for steps that it was "
    r"not fitted to|The map does not work for steps that it was not fitted to|There is only one step, so none is left "
    r"for a test)\.",
)
def carries_over(world: World, steps: str | None, width: str | None, end: str) -> None:
    fitted, unseen, many, d = missed_by_hand(world)
    assert (steps is not None) == (many <= d)
    assert steps is None or (int(steps), int(width or 0)) == (many, d)
    if many <= d:
        assert fitted < 1e-6
    if end.startswith("There is only one"):
        assert many == 1
    else:
        borders = {"also": (-1.0, 0.1), "in part": (0.1, 0.9), "not work": (0.9, 1e9)}
        low, high = next(each for words, each in borders.items() if words in end)
        assert low - 1e-6 <= unseen <= high + 1e-6


@law(
    "app_pages/positions/positions/alibi_and_none.penalised",
    r"Head 0 halves a key's weight every (?P<first>[\d.]+) positions, head (?P<n>\d+) every (?P<last>[\d.]+)\.",
)
def halves(world: World, first: Shown, n: str, last: Shown) -> None:
    bias = world.model.positions.bias(2, 2).double().numpy()[:, 0, 1]
    assert int(n) == len(bias) - 1
    assert abs(first.value - math.log(2) / -bias[0]) < 0.01
    assert abs(last.value / (math.log(2) / -bias[-1]) - 1) < 0.01


@law("app_pages/positions/positions/alibi_and_none.penalised", r"ALiBi tells distances: .*", rare=True)
def one_head(world: World) -> None:
    assert world.sizes.n_heads == 1


@law(
    "app_pages/positions/positions/bias.headline",
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
    "app_pages/positions/positions/alibi_and_none.unordered",
    r"Without positions and without a mask, this model sees no order: reading backwards changes no logit by more "
    r"than .*\.",
)
def no_order(world: World) -> None:

    batch = world.task.encode(world.question[None])
    back = replace(batch, tokens=batch.tokens[:, ::-1].copy())
    everything = np.ones((batch.tokens.shape[1],) * 2, dtype=bool)
    there, again = (world.through(each, placed=False, sees=everything).logits[0] for each in (batch, back))
    np.testing.assert_allclose(there, again[::-1], rtol=0, atol=1e-9)


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


# --- the slopes of ALiBi, and what a bias goes by


@law(
    "app_pages/positions/positions/alibi_and_none.slopes_sentence",
    r"Each next head's slope is (?P<step>[\d.]+) times the one before: from (?P<first>[\d.]+) to (?P<last>[\d.e−-]+)\.",
)
def go_down(world: World, step: Shown, first: Shown, last: str) -> None:
    """Press et al. (2022), section 3: a geometric sequence that begins at 2^(−8/n) with that very ratio."""
    heads = int(dict(world.view).get("pe_heads") or world.sizes.n_heads)
    slopes = [2 ** (-8 * (head + 1) / heads) for head in range(heads)]
    assert heads > 1
    assert abs(step.value / 2 ** (-8 / heads) - 1) < 0.006
    assert abs(first.value / slopes[0] - 1) < 0.006
    assert abs(float(last) / slopes[-1] - 1) < 0.006


@law(
    "app_pages/positions/positions/alibi_and_none.slopes_sentence",
    r"The only head's slope is (?P<slope>[\d.]+)\.",
    rare=True,
)
def has_one_slope(world: World, slope: str) -> None:
    assert int(dict(world.view).get("pe_heads") or world.sizes.n_heads) == 1
    assert abs(float(slope) * 2**8 - 1) < 0.006


GOES_BY = "app_pages/positions/positions/bias.by_distance"


def differences(bias: np.ndarray) -> tuple[float, float]:
    """How far pairs that are as far apart, in one direction, differ; and how far those of both directions do."""
    n = len(bias)
    apart = max(np.ptp(np.diagonal(bias, away)) for away in range(1 - n, n))
    both = max(abs(bias[i, j] - bias[j, i]) for i in range(n) for j in range(n))
    return float(apart), float(both)


@law(GOES_BY, r"There is only one position\.", rare=True)
def has_one_position(world: np.ndarray) -> None:
    assert world.shape == (1, 1)


@law(
    GOES_BY,
    r"Pairs that are equally far apart differ by up to (?P<far>[\d.e-]+): the positions matter too\.",
    rare=True,
)
def goes_by_positions(world: np.ndarray, far: str) -> None:
    assert abs(float(far) / differences(world)[0] - 1) < 0.006


@law(
    GOES_BY,
    r"It goes by the distance alone, (?P<how>and is another before the query than behind it|the same before the query "
    r"and behind it)\.",
    rare=True,
)
def goes_by_distance(world: np.ndarray, how: str) -> None:
    apart, both = differences(world)
    assert apart < 2e-6 * max(1.0, float(np.abs(world).max()))
    assert ("another" in how) == (both > 1e-6 * max(1.0, float(np.abs(world).max())))
