"""One look back of a recurrent decoder, opened up: from the encoder's states to the context vector and what is said."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from transformer.attention import masked_softmax
from transformer.recurrent.corners import AHEAD, CORNERS, Walker, Walks, inputs
from transformer.recurrent.scoring import FORMULAS, cosine, dot
from transformer.trace import Recorder

WALK_SEED = 7
"""Of the noise of the one walk that is looked at."""


@dataclass(frozen=True, eq=False)
class LookBack:
    """What the decoder has before it when it says one corner, as the run itself recorded it, bit for bit."""

    trained: str
    """The scores that the model was trained with."""
    given: Float[np.ndarray, "key 2"]
    read: Float[np.ndarray, "2"]
    """The corner that the decoder has just read: the last given one, or what it said itself."""
    true: Float[np.ndarray, "2"]
    """The corner that is to be said."""
    states: Float[np.ndarray, "key d_model"]
    """The encoder's, after each given corner."""
    state: Float[np.ndarray, "d_model"]
    """The decoder's."""
    value: Float[np.ndarray, "key d_model"]
    key: Float[np.ndarray, "key d_model"]
    query: Float[np.ndarray, "d_model"]
    maps: dict[str, tuple[Float[np.ndarray, "d_model d_model"], Float[np.ndarray, "d_model"]]]
    """Weight and bias of the affine maps that there are: of "query", "key" and "value"."""
    energy: Float[np.ndarray, "d_model"] | None
    """The vector that additive scores are read off with."""
    out: tuple[Float[np.ndarray, "2 d_features"], Float[np.ndarray, "2"]]
    """Weight and bias of what makes two coordinates of the features."""
    pattern: Float[np.ndarray, "key"]
    context: Float[np.ndarray, "d_model"]
    said: Float[np.ndarray, "2"]


@dataclass(frozen=True, eq=False)
class Weighing:
    """The same vectors weighed by some scores, perhaps with another query: every number on the way."""

    look: LookBack
    scoring: str
    query: Float[np.ndarray, "d_model"]
    dots: Float[np.ndarray, "key"]
    cosines: Float[np.ndarray, "key"]
    """Of the angles between the query and each key; 0 where either has no length."""
    scores: Float[np.ndarray, "key"]
    exponentials: Float[np.ndarray, "key"]
    """exp(score - the largest): none can overflow, and no share changes."""
    total: float
    pattern: Float[np.ndarray, "key"]
    weighted: Float[np.ndarray, "key d_model"]
    context: Float[np.ndarray, "d_model"]
    features: Float[np.ndarray, "d_features"]
    """The context vector, and after it the decoder's state."""
    said: Float[np.ndarray, "2"]

    @property
    def strongest(self) -> int:
        """The key that is looked at most, from 0."""
        return int(self.pattern.argmax())

    @property
    def missed(self) -> float:
        """Distance from what is said to the corner that is right."""
        return float(np.linalg.norm(self.said - self.look.true))


def one_walk(start: int, turn: int, given: int, noise: float = 0.1) -> Walks:
    """One walk from the corner `start` of CORNERS, clockwise (1) or anticlockwise (-1); its noise is always the same.

    Raises ValueError when there is no such walk.
    """
    if start not in range(4) or turn not in (1, -1) or given < 1:
        raise ValueError(f"no walk starts at {start}, turns by {turn} and gives {given}")
    places = (start + turn * np.arange(given + AHEAD)) % 4
    noises = np.random.default_rng([WALK_SEED, start, turn + 1]).standard_normal((given + AHEAD, 2))
    points = (CORNERS[places] + noise * noises).astype(np.float32)[None]
    real = np.ones((1, given), dtype=bool)
    return Walks(points[:, :given], real, points[:, given:], np.array([start]), np.array([turn]))


@torch.no_grad()
def look_back(model: Walker, walk: Walks, target: int) -> LookBack:
    """Let the model say a single walk by itself and open its attention at one target, counted from 0.

    Raises ValueError when it has no attention, IndexError when there is no such target.
    """
    alignment = model.core.attention
    if alignment is None:
        raise ValueError("a model without attention does not look back")
    if target not in range(AHEAD):
        raise IndexError(f"no target {target}: there are {AHEAD}, from 0")
    recorder = Recorder()
    said = model(*inputs(model, walk), trace=recorder)
    site = f"target.{target}.decoder.0"
    inside = {n: recorder.sites[f"{site}.cross_attention.{n}"][0, 0] for n in ("query", "key", "value", "pattern", "z")}
    linear = {n: getattr(alignment, n) for n in ("query", "key", "value")}
    return LookBack(
        trained=alignment.scoring,
        given=walk.source[0],
        read=walk.source[0, -1] if target == 0 else _array(said[0, target - 1]),
        true=walk.target[0, target],
        states=_array(recorder.sites["encoder.states"][0]),
        state=_array(recorder.sites[f"{site}.states"][0, 0]),
        value=_array(inside["value"]),
        key=_array(inside["key"]),
        query=_array(inside["query"][0]),
        maps={n: (_array(m.weight), _array(m.bias)) for n, m in linear.items() if isinstance(m, nn.Linear)},
        energy=_array(alignment.energy.weight[0]) if alignment.scoring == "additive" else None,
        out=(_array(model.out.weight), _array(model.out.bias)),
        pattern=_array(inside["pattern"][0]),
        context=_array(inside["z"][0]),
        said=_array(said[0, target]),
    )


@torch.no_grad()
def weigh(look: LookBack, scoring: str, query: Float[np.ndarray, "d_model"] | None = None) -> Weighing:
    """Compute anew what follows from the query, by the run's own operations: its own numbers again, but for rounding.

    Σ αᵢ vᵢ with α the softmax of the scores (Bahdanau et al., 2015, section 3.1). `scoring` is one of FORMULAS, or
    "additive" where the model was trained so; `query` stands in place of the run's.
    Raises ValueError for scores that this model cannot have.
    """
    asked = look.query if query is None else query.astype(look.query.dtype)
    one, keys, values = torch.from_numpy(asked)[None], torch.from_numpy(look.key), torch.from_numpy(look.value)
    scores = _scores(look, scoring, one, keys)
    pattern = masked_softmax(scores)
    context = (pattern @ values)[0]
    features = torch.cat([context, torch.from_numpy(look.state)])
    weight, bias = (torch.from_numpy(each) for each in look.out)
    exponentials = torch.exp(scores[0] - scores[0].max())
    return Weighing(
        look=look,
        scoring=scoring,
        query=asked,
        dots=_array(dot(one, keys)[0]),
        cosines=_array(cosine(one, keys)[0]),
        scores=_array(scores[0]),
        exponentials=_array(exponentials),
        total=float(exponentials.sum()),
        pattern=_array(pattern[0]),
        weighted=_array(pattern[0, :, None] * values),
        context=_array(context),
        features=_array(features),
        said=_array(functional.linear(features, weight, bias)),
    )


def moved(query: Float[np.ndarray, "2"], factor: float, degrees: float) -> Float[np.ndarray, "2"]:
    """A query in the plane, made `factor` times as long and turned anticlockwise."""
    if factor == 1 and degrees == 0:
        return query
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return (factor * np.array([[cos, -sin], [sin, cos]]) @ query).astype(query.dtype)


def _scores(look: LookBack, scoring: str, query: Tensor, keys: Tensor) -> Tensor:
    if scoring in FORMULAS:
        return FORMULAS[scoring](query, keys)
    if scoring != "additive" or look.energy is None:
        raise ValueError(f"this model has no weights for scores of the kind {scoring!r}")
    return functional.linear(torch.tanh(query[:, None] + keys), torch.from_numpy(look.energy))


def _array(values: Tensor) -> np.ndarray:
    """The caller's own copy."""
    return values.detach().cpu().numpy().copy()
