"""Laws of *Attention by hand*: a small recurrent model, gone through here in NumPy.

It is none of the grid's models: `test_the_title_of_every_other_page…` judges it.
"""

from __future__ import annotations

import numpy as np

from dashboard.models.walks.by_hand import START, TRAINED, TURNS, walker
from tests.kit.claims import Shown, law
from tests.kit.claims.world import World
from tests.kit.recurrent_by_hand import gru_step, mapped
from transformer.recurrent.look_back import one_walk

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
