"""Laws of the pages from recurrence to attention: small recurrent models, gone through here in NumPy.

They are none of the grid's models: `test_what_every_other_page_says…` judges them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dashboard.app_pages.learn.corners.settings import CornersSettings
from dashboard.app_pages.learn.corners.teacher_forcing import SHIPPED
from dashboard.app_pages.learn.questions.residuals import deep
from dashboard.app_pages.learn.questions.settings import QuestionsSettings
from dashboard.models.walks import corners
from dashboard.models.walks.by_hand import START, TRAINED, TURNS, walker
from tests.kit.claims import Shown, law
from tests.kit.claims.world import World
from tests.kit.recurrent_by_hand import gru_step, mapped, on_fresh_walks
from transformer.analysis.batches import SURVEY_STREAM
from transformer.corners import CornerConfig
from transformer.experiments.teacher_forcing import Forcing
from transformer.model import build
from transformer.recurrent.corners import Walker, build_walker
from transformer.recurrent.look_back import one_walk
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


# --- square corners

CORNERS = "app_pages/learn/corners/"


@law(
    f"{CORNERS}words.headline",
    r"(?:After (?P<step>\d+) steps?|Before training) the predicted corners are (?P<off>[\d.]+) from the true ones; "
    r"noise alone makes (?P<noise>[\d.]+)\.",
)
def are_so_far_off(world: World, step: str | None, off: Shown, noise: Shown) -> None:
    view = {name: int(value) for name, value in world.view if name in ("corner_seed", "corner_width")}
    config = CornersSettings(**view).corner_config()
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


def walker_at(config: CornerConfig, step: int) -> Walker:
    """A model trained to this step, with the weights that the page shows: the same on the same machine."""
    model = build_walker(config)
    kept = next(each for each in corners.taught(config).steps if each.step == step)
    model.load_state_dict(kept.weights)
    return model
