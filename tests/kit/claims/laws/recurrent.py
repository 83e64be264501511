"""Laws of the pages from recurrence to attention: small recurrent models, gone through here in NumPy.

They are none of the grid's models: `test_what_every_other_page_says…` judges them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
import torch

from dashboard.app_pages.learn.corners.settings import CornersSettings
from dashboard.app_pages.learn.corners.teacher_forcing import SHIPPED
from dashboard.app_pages.learn.questions.residuals import deep
from dashboard.app_pages.learn.questions.settings import QuestionsSettings
from dashboard.models import no_positions
from dashboard.models.on_the_spot import quick_training
from dashboard.models.walks import corners
from dashboard.models.walks.by_hand import START, TRAINED, TURNS, walker
from tests.kit.claims import Shown, law
from tests.kit.claims.world import Pass, World
from tests.kit.recurrent_by_hand import corners_by_hand, gru_step, mapped, on_fresh_walks
from transformer.analysis.batches import SURVEY_STREAM
from transformer.corners import CornerConfig, every_walk
from transformer.experiments.teacher_forcing import Forcing
from transformer.model import build
from transformer.recurrent.corners import Walker, build_walker
from transformer.recurrent.look_back import one_walk
from transformer.tasks import Batch
from transformer.training.loop import train

CONTEXT = "app_pages/learn/context/steps.headline"


def shares_by_hand(world: World) -> np.ndarray:
    """The weights of the walk's values at the first target, float [value], under the scores of the view."""
    view = dict(world.view)
    trained = view.get("scores_trained", TRAINED[0])
    core, scoring = walker(trained).model.core, view.get("scores", trained)
    turn, given = TURNS[view.get("walk_turn", "clockwise")], int(view.get("walk_given", 2))
    walk, h, keys = one_walk(int(view.get("walk_start", START)) - 1, turn, given), np.zeros(2), []
    for point in walk.source[0].astype(np.float64):
        h = gru_step(core.encoder.layers[0], point, h)["after"]
        keys.append(mapped(core.attention.key, h))
    state = gru_step(core.decoder.layers[0], walk.source[0, -1].astype(np.float64), h)["after"]
    turned = complex(*mapped(core.attention.query, state)) * np.exp(1j * np.radians(float(view.get("turned", 0))))
    query = np.array([turned.real, turned.imag]) * float(view.get("stretch", 1))
    dots, lengths = np.array(keys) @ query, np.linalg.norm(keys, axis=1) * np.linalg.norm(query)
    scores = {
        "uniform": 0 * dots,
        "dot": dots,
        "scaled-dot": dots / 2**0.5,
        "cosine": dots / np.maximum(lengths, 1e-12),
    }[scoring]
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


@law(CONTEXT, r"The context vector is the mean of all (?P<values>\d+) values\.")
def is_the_mean(world: World, values: str) -> None:
    shares = shares_by_hand(world)
    assert len(shares) == int(values)
    assert np.allclose(shares, 1 / len(shares), atol=1e-5)


@law(CONTEXT, r"Value (?P<value>\d+) has the largest share in the context vector: (?P<share>[\d.]+)\.")
def is_largest(world: World, value: str, share: Shown) -> None:
    shares = shares_by_hand(world)
    assert share == shares.max() == shares[int(value) - 1]
    assert (np.delete(shares, int(value) - 1) < shares.max() - 1e-4).all()


@law(CONTEXT, r"Values (?P<values>[\d, and]+) have the largest shares in the context: (?P<share>[\d.]+) each\.")
def are_largest(world: World, values: str, share: Shown) -> None:
    shares = shares_by_hand(world)
    named = [int(each) - 1 for each in values.replace(" and ", ", ").split(", ")]
    assert len(named) > 1
    assert np.ptp(shares) > 1e-7
    assert all(share == each for each in shares[named])
    assert shares.max() in shares[named]


# --- five questions

QUESTIONS = "app_pages/learn/questions/"


def number(world: World, field: str) -> int:
    """What the page's link says of one of its settings, or its own choice."""
    return int(dict(world.view).get(field, getattr(QuestionsSettings(), field)))


@law(
    f"{QUESTIONS}recurrence.headline",
    r"A GRU needs (?P<recurrent>\d+) sequential steps to read (?P<tokens>\d+) tokens; a transformer needs "
    r"(?P<attention>\d+)\.",
)
def needs_steps(world: World, recurrent: str, tokens: str, attention: str) -> None:
    """Step by step, everything is computed for which all is there: a GRU's state needs the one before it and the one
    below, a transformer's all that are below."""
    length, layers = number(world, "unrolled"), number(world, "stacked")
    states = {(place, layer) for place in range(length) for layer in range(layers)}
    taken = []
    for left in (True, False):
        there: set[tuple[int, int]] = set()
        steps = 0
        while there != states:
            below = {(place, layer) for place, layer in states if not layer or (place, layer - 1) in there}
            there |= {(place, layer) for place, layer in below if not (left and place) or (place - 1, layer) in there}
            steps += 1
        taken.append(steps)
    assert (int(tokens), int(recurrent), int(attention)) == (length, *taken)


def matrices(world: World) -> list[np.ndarray]:
    """Queries, keys and values of the shapes that the link names."""
    named = [("n_queries", "d_query"), ("n_keys", "d_key"), ("n_values", "d_value")]
    return [np.ones((number(world, rows), number(world, columns))) for rows, columns in named]


@law(
    f"{QUESTIONS}shapes.headline",
    r"(?P<queries>\d+) quer(?P<meet>y meets|ies meet) (?P<keys>\d+) key(?P<s>s?): a pattern of (?P<rows>\d+) × "
    r"(?P<columns>\d+), an output of (?P<out>\d+) × (?P<wide>\d+)\.",
)
def has_shapes(world: World, queries: str, meet: str, keys: str, s: str, **shown: str) -> None:
    query, key, value = matrices(world)
    pattern = query @ key.T
    sizes = (*pattern.shape, *(pattern @ value).shape)
    assert sizes == tuple(int(shown[name]) for name in ("rows", "columns", "out", "wide"))
    assert (int(queries), int(keys)) == pattern.shape
    assert (queries == "1", keys == "1") == (meet == "y meets", not s)


@law(
    f"{QUESTIONS}shapes.misfit_sentence",
    r"Queries of width (?P<one>\d+) do not fit keys of width (?P<other>\d+): Q and K must have the same width\.",
)
def queries_do_not_fit(world: World, one: str, other: str) -> None:
    query, key, _ = matrices(world)
    assert (int(one), int(other)) == (query.shape[1], key.shape[1])
    with pytest.raises(ValueError, match="mismatch"):
        query @ key.T


@law(
    f"{QUESTIONS}shapes.misfit_sentence",
    r"(?P<one>\d+) keys? do(?:es)? not fit (?P<other>\d+) values?: there must be as many values as keys\.",
)
def values_do_not_fit(world: World, one: str, other: str) -> None:
    query, key, value = matrices(world)
    assert (int(one), int(other)) == (len(key), len(value))
    with pytest.raises(ValueError, match="mismatch"):
        (query @ key.T) @ value


@law(f"{QUESTIONS}shapes.misfit_sentence", None)
def all_fit(world: World) -> None:
    query, key, value = matrices(world)
    assert ((query @ key.T) @ value).size


def dense_cosines(world: World) -> list[float]:
    """The cosine of each two feed-forward layers, all weights of one written after one another."""
    feeds = sorted({name.rpartition(".up.")[0] for name in world.weights if ".feed_forward.up." in name})
    flat = [
        np.concatenate([world.weights[f"{each}.{half}.weight"].ravel() for half in ("up", "down")]) for each in feeds
    ]
    return [
        float(flat[i] @ flat[j] / np.linalg.norm(flat[i]) / np.linalg.norm(flat[j]))
        for i in range(len(flat))
        for j in range(i)
    ]


DENSE = f"{QUESTIONS}dense_layers.headline"


@law(DENSE, r"(?P<name>\S+) has no dense layers to compare\.")
def has_no_dense_layers(world: World, name: str) -> None:
    assert name == world.run.name
    assert not any(".feed_forward." in each for each in world.weights)


@law(DENSE, r"There is one dense layer, and every position uses the same weights\.", rare=True)
def has_one_dense_layer(world: World) -> None:
    assert [name for name in world.weights if name.endswith(".feed_forward.up.weight")] == [
        f"{world.stack}.0.feed_forward.up.weight"
    ]


@law(DENSE, r"The (?P<count>\d+) dense layers have the same shape and the same weights\.", rare=True)
def have_the_same_weights(world: World, count: str) -> None:
    cosines = dense_cosines(world)
    assert len(cosines) == int(count) * (int(count) - 1) / 2
    assert min(cosines) > 1 - 1e-5


@law(DENSE, r"The 2 dense layers have the same shape and different weights: their cosine is (?P<cosine>−?[\d.]+)\.")
def have_a_cosine(world: World, cosine: Shown) -> None:
    (found,) = dense_cosines(world)
    assert cosine == found
    assert found < 1 - 1e-7


@law(
    DENSE,
    r"The (?P<count>\d+) dense layers have the same shape and different weights: every cosine of two is within "
    r"(?P<most>[\d.]+) of 0\.",
)
def have_cosines_within(world: World, count: str, most: Shown) -> None:
    found = dense_cosines(world)
    assert len(found) == int(count) * (int(count) - 1) / 2
    assert most == max(map(abs, found))
    assert min(found) < 1 - 1e-7


@law(
    f"{QUESTIONS}residuals.fresh_headline",
    r"Before training, two positions have a mean cosine of (?P<apart>−?[\d.]+) after (?P<layers>\d+) layers?; without "
    r"residual connections, (?P<alike>−?[\d.]+)\.",
)
def are_so_alike(world: World, apart: Shown, layers: str, alike: Shown) -> None:
    assert int(layers) == number(world, "deep")
    for shown, residual in ((apart, True), (alike, False)):
        config = deep(int(layers), residual)
        fresh = replace(world, config=config, model=build(config).double())
        questions = np.random.default_rng([0, SURVEY_STREAM]).integers(0, config.task.symbols, (64, config.task.length))
        stream = fresh.through(fresh.task.encode(questions)).stages[f"decoder.{int(layers) - 1}.resid_post"]
        units = stream / np.linalg.norm(stream, axis=-1, keepdims=True)
        cosines = units @ units.swapaxes(1, 2)
        assert shown == cosines[:, ~np.eye(stream.shape[1], dtype=bool)].mean()


@law(
    f"{QUESTIONS}residuals.trained_headline",
    r"With residual connections (?P<layers>\d+) layers? gets? (?P<one>[\d.]+) of the answer right in (?P<steps>\d+) "
    r"steps?, without them (?P<other>[\d.]+) in (?P<others>\d+)\.",
    rare=True,
)
def get_so_much_right(world: World, layers: str, one: Shown, steps: str, other: Shown, others: str) -> None:
    """Both are trained here once more, by the loop that every run is trained by; a test with few steps says it."""
    for shown, taken, residual in ((one, steps, True), (other, others, False)):
        config = deep(int(layers), residual)
        model = build(config)
        *_, last = train(model, config)
        assert last.step == int(taken)
        groups = np.array(config.build_task().groups(config.task.length)) == "second half"
        assert last.accuracy is not None
        assert shown == last.accuracy[groups].mean()


@law(
    f"{QUESTIONS}bag.headline",
    r"Without positions one layer sees only which tokens there are: at most (?P<most>[\d.]+) of a reversal\.",
)
def allows_so_much(world: World, most: Shown) -> None:
    """By chance: of the questions that are drawn, how likely the best guess is right, over all orders that fit."""
    rng, count, n, symbols = np.random.default_rng(0), 400, 8, 10
    found = [best_of_a_bag(rng.integers(0, symbols, n), said) for _ in range(count) for said in range(n)]
    error = np.std(found) / count**0.5  # the places of one question depend on one another
    assert abs(most.value - np.mean(found)) < 4 * error


def best_of_a_bag(question: np.ndarray, said: int) -> float:
    """How likely the best guess of the answer's next symbol is, by what is read as a bag and the token read last.

    The bag is the question and what is said of its reversal. It is split in every way into the two.
    """
    read = [*question, *question[::-1][:said]]
    last = read[-1] if said else None
    counts = Counter(read)
    weights: Counter[int] = Counter()
    kinds = [*counts]
    for split in product(*(range(counts[kind] // 2 + 1) for kind in kinds)):
        if sum(split) != said:
            continue
        spoken = dict(zip(kinds, split, strict=True))
        left = {kind: counts[kind] - 2 * spoken[kind] for kind in kinds}
        # Orders of what is said that end with the token read last, times orders of what is not said yet.
        orders = math.factorial(sum(left.values()))
        for kind in kinds:
            orders //= math.factorial(left[kind])
        ways = math.factorial(said)
        for kind in kinds:
            ways //= math.factorial(spoken[kind])
        if last is not None:
            ways = ways * spoken[last] // said
        for kind in kinds:
            if left[kind]:
                weights[kind] += ways * orders * left[kind]
    return max(weights.values()) / sum(weights.values())


# --- the same tokens in another order


def in_both_orders(world: World, *, placed: bool, whole: bool) -> tuple[Pass, Pass]:
    """What is read up to the first answer, or a whole pass; and with its tokens from back to front, no mask in the way.

    The last token stays where it is, but of a `whole` pass.
    """
    batch = world.task.encode(world.question[None])
    tokens, source = batch.tokens, batch.source
    if not whole and source is None and (tokens[0] == world.task.separator).any():
        tokens = tokens[:, : int(np.argmax(tokens[0] == world.task.separator)) + 1]

    def turned(read: np.ndarray) -> np.ndarray:
        return read[:, ::-1].copy() if whole else np.concatenate([read[:, -2::-1], read[:, -1:]], axis=1)

    alike = np.ones_like(tokens, dtype=bool)
    other = tokens if source is not None and not whole else turned(tokens)
    sees = np.ones((tokens.shape[1],) * 2, dtype=bool)
    one, two = (
        world.through(Batch(read, read, alike, alike, asked), placed=placed, sees=sees)
        for read, asked in ((tokens, source), (other, None if source is None else turned(source)))
    )
    return one, two


def tiny(said: str) -> float:
    """ "4.4 × 10⁻¹⁶"."""
    if "×" not in said:
        return float(said)
    digits, power = said.split(" × 10")
    return float(digits) * 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))


@dataclass(frozen=True)
class Orders:
    """By how much the numbers of the first attention differ at the last token, made up."""

    numbers: int
    without: float
    own: float


def orders(world: World | Orders) -> Orders:
    if isinstance(world, Orders):
        return world
    apart = []
    for placed in (False, True):
        one, two = in_both_orders(world, placed=placed, whole=False)
        site = next(iter(one.written))
        first, other = (seen.written[site][0, :, -1].sum(axis=0) for seen in (one, two))
        apart.append(float(np.abs(first - other).max()))
    return Orders(world.sizes.d_model, *apart)


COMPARED = f"{QUESTIONS}bag.order_sentence"
WITH = r"(?: With positions (?:they|it) differs? by (?:up to (?P<own>[\d.]+)|(?P<less>less than 0\.005))\.)?"


@law(
    COMPARED,
    r"Without positions (?:all (?P<many>\d+) numbers are|its one number is) the same, (?:exactly|but for rounding "
    rf"\((?P<rounding>.+?)\)): a sum has no order\.{WITH}",
)
def are_the_same(
    world: World | Orders, many: str | None, rounding: str | None, own: Shown | None, less: str | None
) -> None:
    found = orders(world)
    assert int(many or 1) == found.numbers
    assert found.without < 1e-9
    assert rounding is None or tiny(rounding) < 1e-9
    assert own is None or own == found.own
    assert less is None or found.own < 0.0051


@law(COMPARED, rf"Without positions (?:they|it) differs? by up to (?P<far>[^ ]+(?: × [^ ]+)?)\.{WITH}", rare=True)
def are_not_the_same(world: Orders, far: str, own: Shown | None, less: str | None) -> None:
    assert world.without >= 1e-9
    assert abs(tiny(far) / world.without - 1) < 0.06
    assert own is None or own == world.own
    assert less is None or world.own < 0.0051


@law(
    f"{QUESTIONS}bag.backwards",
    r"(?P<name>.+), (?:(?P<bare>which has no positions)|without its (?P<title>.+) positions), without a mask: if it "
    r"reads the input backwards, all logits come out backwards \((?:exactly|largest deviation (?P<far>.+?))\)\. "
    r"Attention sums over a set of keys, and a set has no order\.",
)
def come_out_backwards(world: World, name: str, bare: str | None, title: str | None, far: str | None) -> None:
    one, two = in_both_orders(world, placed=False, whole=True)
    np.testing.assert_allclose(one.logits[0], two.logits[0][::-1], rtol=0, atol=1e-9)
    assert name == world.run.name
    assert (bare is not None) == (world.sizes.positions == "none")
    assert far is None or tiny(far) < 1e-9


@law(
    f"{QUESTIONS}bag.backwards",
    r".+, .+, without a mask: if it reads the input backwards, its logits change by up to (?P<far>.+)\.",
    rare=True,
)
def logits_change(world: float, far: str) -> None:
    """A test of the words says it: of attention as it is no model does."""
    assert world >= 1e-9
    assert abs(tiny(far) / world - 1) < 0.06


@dataclass(frozen=True)
class Bars:
    """How often each token of the answer is right by one layer without positions, and what a bag allows."""

    mean: np.ndarray
    low: np.ndarray
    most: np.ndarray
    sure: float = 0.0
    """How far a ceiling that is estimated here may be off."""


def bars(world: World | Bars) -> Bars:
    """Of the small model that the page trains, trained here by the same settings; the ceilings by chance."""
    if isinstance(world, Bars):
        return world
    config = no_positions.small("none")
    model = quick_training.trained(config).model
    drawn = np.random.default_rng([config.training.seed + 1, 1])
    questions = torch.from_numpy(drawn.integers(0, 10, (no_positions.SEQUENCES, 8)))
    tokens = torch.cat([questions, torch.full((len(questions), 1), 10), questions.flip(1)[:, :-1]], dim=1)
    with torch.no_grad():
        right = (model(tokens).argmax(dim=-1)[:, 8:] == questions.flip(1)).double().numpy()
    rng, count = np.random.default_rng(0), 300
    asked = [rng.integers(0, 10, 8) for _ in range(count)]
    most = np.array([np.mean([best_of_a_bag(each, said) for each in asked]) for said in range(8)])
    mean = right.mean(axis=0)
    return Bars(mean, mean - 2 * np.sqrt(mean * (1 - mean) / len(right)), most, sure=4 * 0.5 / count**0.5)


LUCKY = f"{QUESTIONS}bag.lucky"


@law(LUCKY, None, rare=True)
def none_is_above(world: World | Bars) -> None:
    found = bars(world)
    assert (found.mean <= found.most + found.sure).all()


@law(
    LUCKY,
    r"(?P<names>.+?) stands? (?:up to )?(?P<far>[\d.]+) above (?:its|their) ceilings?, (?:(?P<luck>by the luck of "
    r"these sequences: (?:its|their) intervals? holds? the ceilings?)|"
    r"farther than (?:its|their) intervals? reach(?:es)?)\.",
    rare=True,
)
def some_are_above(world: World | Bars, names: str, far: Shown, luck: str | None) -> None:
    found, named = bars(world), names.replace(" and ", ", ").split(", ")
    over = found.mean - found.most
    places = ["abcdefgh".index(each) if len(each) == 1 else int(each[1:]) - 1 for each in named]
    others = [place for place in range(len(over)) if place not in places]
    assert (over[places] > -found.sure).all()
    assert (over[others] <= found.sure).all()
    assert abs(far.value - over[places].max()) <= far.half + found.sure
    if luck is not None:
        assert (found.low[places] <= found.most[places] + found.sure).all()
    else:
        assert (found.low[places] > found.most[places] - found.sure).any()


# --- square corners

CORNERS = "app_pages/learn/corners/"


@law(
    f"{CORNERS}words.headline",
    r"(?:After (?P<step>\d+) steps?|Before training) the predicted corners are (?P<off>[\d.]+) from the true ones; "
    r"noise alone makes (?P<noise>[\d.]+)\.",
)
def are_so_far_off(world: World, step: str | None, off: Shown, noise: Shown) -> None:
    config = settings(world)
    free, _, _ = on_fresh_walks(walker_at(config, int(step or 0)), config)
    assert off == np.sqrt((free**2).mean())
    # Both coordinates of a true corner have the noise: the mean square of its distance is twice its variance.
    assert noise == (2 * config.noise**2) ** 0.5


@law(
    f"{CORNERS}feeding.headline",
    r"The next prediction is (?P<helped>[\d.]+) off after the true corner, and (?P<free>[\d.]+) after its own\.",
)
def is_off_after_either(world: World, helped: Shown, free: Shown) -> None:
    config = replace(Forcing.load(SHIPPED[0]).config, teacher_forcing=1.0, seed=0)
    own, fed, _ = on_fresh_walks(walker_at(config, config.steps), config)
    assert helped == fed[1]
    assert free == own[1]


@law(
    f"{CORNERS}feeding.growth_words",
    r"In training this GRU read true corners only \(p = 1\)\. Corner (?P<second>\d+) is (?P<helped>[\d.]+) off when it "
    r"reads the true corner (?P<first>\d+), and (?P<free>[\d.]+) off when it reads its own\. (?P<verdict>Both are as "
    r"far off|Free-running (?P<does>costs|saves) (?P<more>[\d.]+))\.",
)
def free_running_costs(
    world: World,
    second: str,
    helped: Shown,
    first: str,
    free: Shown,
    verdict: str,
    does: str | None,
    more: Shown | None,
) -> None:
    assert int(second) == int(first) + 1
    is_off_after_either(world, helped, free)
    between = round(free.value - helped.value, 2)
    assert (does is None) == (between == 0)
    if does is not None and more is not None:
        assert (does == "costs", more.value) == (between > 0, abs(between))


def settings(world: World) -> CornerConfig:
    """The training that the page's link asks for."""
    known = {"corner_seed": int, "corner_width": int, "corner_most": int, "corner_attention": str}
    return CornersSettings(**{name: known[name](value) for name, value in world.view if name in known}).corner_config()


def at_step(world: World) -> tuple[CornerConfig, Walker]:
    """The model at the step in view."""
    config = settings(world)
    return config, walker_at(config, int(dict(world.view).get("corner_step", config.steps)))


@law(
    f"{CORNERS}words.range_sentence",
    r"The eight walks with (?P<given>\d+) given corners\. The predictions are (?P<low>[\d.]+)(?: to (?P<high>[\d.]+))? "
    r"from the true corners\.",
)
def are_within(world: World, given: str, low: Shown, high: Shown | None) -> None:
    config, model = at_step(world)
    drawn, far = every_walk(config.most, config.noise), []
    for walk in np.flatnonzero(drawn.given == int(given)):
        said, _, _ = corners_by_hand(model, drawn.source[walk, : int(given)].astype(np.float64))
        far += np.sqrt(((said - drawn.target[walk]) ** 2).sum(axis=-1)).tolist()
    assert len(far) == 16
    assert low == min(far)
    assert (high or low) == max(far)


@dataclass(frozen=True)
class Alignments:
    """Where both predicted corners look, in a walk and on average, float [predicted, given]."""

    here: np.ndarray
    mean: np.ndarray


def alignments(world: World | Alignments) -> Alignments:
    if isinstance(world, Alignments):
        return world
    config, model = at_step(world)
    drawn = every_walk(config.most, config.noise)
    walk = drawn.which(0, 1, config.most)
    _, here, _ = corners_by_hand(model, drawn.source[walk, : config.most].astype(np.float64))
    _, _, mean = on_fresh_walks(model, config)
    return Alignments(here, mean[config.most])


LOOKS_BACK = f"{CORNERS}words.looks_back"


@law(LOOKS_BACK, r"Every given corner has the same weight, 1/(?P<given>\d+), for every query\.")
def looks_evenly(world: World, given: str) -> None:
    config = settings(world)
    assert config.attention == "uniform"
    assert config.most == int(given)


@law(LOOKS_BACK, r"(?P<parts>Corner \d.+?)(?P<across>: each at the corner opposite to it)?\.")
def looks_most_at(world: World | Alignments, parts: str, across: str | None) -> None:
    found = alignments(world)
    given = found.here.shape[1]
    opposite = []
    told = re.split(r"(?<=\)) and ", parts)
    assert len(told) == len(found.here) == 2
    for i, (part, row) in enumerate(zip(told, found.here, strict=True)):
        form = re.fullmatch(
            r"[Cc]orner (\d+) looks (?:most at corner (\d+) \(([\d.]+); on average ([\d.]+)\)|most, and as much, at "
            r"corners ([\d, and]+) \(([\d.]+) each\)|at every given corner alike \(([\d.]+) each\))",
            part,
        )
        assert form is not None
        assert int(form[1]) == given + 1 + i
        level = [place for place in range(given) if f"{row[place]:.2f}" == f"{row.max():.2f}"]
        named = [int(each) - 1 for each in (form[2] or form[5] or "").replace(" and ", ", ").split(", ") if each]
        assert named == (level if len(level) < given else [])
        assert Shown(form[3] or form[6] or form[7]) == row.max()
        assert form[4] is None or Shown(form[4]) == found.mean[i, named[0]]
        # Corners that are two apart on the way round a square lie opposite to one another.
        opposite.append(len(level) == 1 < given and (given + i - level[0]) % 4 == 2)
    assert (across is not None) == all(opposite)


@dataclass(frozen=True)
class Gates:
    """One step of a GRU: what it reads, the state before, and z."""

    read: np.ndarray
    before: np.ndarray
    update: np.ndarray


def gates(world: World | Gates, name: str) -> Gates:
    if isinstance(world, Gates):
        return world
    config, model = at_step(world)
    drawn = every_walk(config.most, config.noise)
    _, _, cells = corners_by_hand(model, drawn.source[drawn.which(0, 1, config.most), : config.most].astype(np.float64))
    kind, number = name.split()
    cell = cells[int(number) - 1 + (config.most if kind == "Decoder" else 0)]
    return Gates(cell["x"], cell["h"], cell["z"])


READ = r"(?P<name>\w+ \d+) reads \((?P<x>[\d.−]+), (?P<y>[\d.−]+)\)\. "
WORKED = f"{CORNERS}roll_out.worked"


def reads(found: Gates, x: Shown, y: Shown) -> None:
    assert x == found.read[0]
    assert y == found.read[1]


@law(WORKED, rf"{READ}The state before it is 0: the new state is \(1 − z\) n\.")
def begins_with_nothing(world: World | Gates, name: str, x: Shown, y: Shown) -> None:
    found = gates(world, name)
    reads(found, x, y)
    assert not found.before.any()


@law(WORKED, rf"{READ}With z = (?P<z>[\d.]+) it keeps that share of the state before\.")
def keeps_that_share(world: World | Gates, name: str, x: Shown, y: Shown, z: Shown) -> None:
    found = gates(world, name)
    reads(found, x, y)
    assert all(z == each for each in found.update)


@law(
    WORKED,
    rf"{READ}Numbers? (?P<keeps>[\d, and]+) keeps? most of the state before \(z = (?P<most>[\d.]+)\), numbers? "
    r"(?P<renews>[\d, and]+) least \(z = (?P<least>[\d.]+)\)\.",
)
def keep_most_and_least(
    world: World | Gates, name: str, x: Shown, y: Shown, keeps: str, most: Shown, renews: str, least: Shown
) -> None:
    found = gates(world, name)
    reads(found, x, y)
    for named, shown, end in ((keeps, most, found.update.max()), (renews, least, found.update.min())):
        assert shown == end
        level = [place + 1 for place, z in enumerate(found.update) if f"{z:.2f}" == f"{end:.2f}"]
        assert [int(each) for each in named.replace(" and ", ", ").split(", ")] == level


def walker_at(config: CornerConfig, step: int) -> Walker:
    """A model trained to this step, with the weights that the page shows: the same on the same machine."""
    model = build_walker(config)
    kept = next(each for each in corners.taught(config).steps if each.step == step)
    model.load_state_dict(kept.weights)
    return model
