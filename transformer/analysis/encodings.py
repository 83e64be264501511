"""Positional encodings as numbers: tables, how alike positions are, what a step does, and how long the vectors are.

Positions count from 0, as in the papers: "Attention Is All You Need" (Vaswani et al., 2017, section 3.5), "RoFormer"
(Su et al., 2021, section 3.4) and "Train Short, Test Long" (Press et al., 2022, section 3). What follows from a
formula is worked out from it in float64; the models hold the same numbers rounded to float32.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.foundation.drawing import drawing
from transformer.model import Transformer
from transformer.observation import observe
from transformer.positions import BASE, ENCODINGS, PositionalEncoding, alibi, angles
from transformer.positions.sinusoidal import sinusoids

TURNING = ("sinusoidal", "rotary")
"""The encodings whose dimensions come in pairs that turn from position to position."""


# --- tables


@dataclass(frozen=True)
class Table:
    """One row a position."""

    values: Float[np.ndarray, "position dimension"]
    columns: str
    """What the columns are, in words."""
    short: str
    """What one column is called."""
    note: str
    """What a reader must know about where the numbers come from; empty when they are the model's own."""


def table_of(model: Transformer, name: str) -> Table:
    """The encoding of a model, or another one of the same sizes: fixed ones by formula, a learned one as it starts.

    Heads of an odd width are made one wider for another one: some encodings turn pairs of dimensions.
    """
    encoding = _encoding(model, name)
    values, columns = encoding.picture(model.n_ctx)
    return Table(values.detach().cpu().numpy(), columns, columns.split(" ")[0], _note(model, encoding))


@dataclass(frozen=True)
class Bias:
    """What an encoding adds to the scores of each head."""

    values: Float[np.ndarray, "head query key"]
    note: str
    """As of a table."""


def bias_of(model: Transformer, name: str) -> Bias | None:
    """The bias of a model's encoding, or of another one of the same sizes, as in `table_of`; None of one without."""
    encoding = _encoding(model, name)
    values = encoding.bias(model.n_ctx, model.n_ctx)
    return None if values is None else Bias(values.detach().cpu().numpy(), _note(model, encoding))


def _note(model: Transformer, encoding: PositionalEncoding) -> str:
    """What must be said of an encoding that is not the model's own."""
    if encoding is model.positions or not encoding.learned:
        return ""
    return "Not this model's: untrained, as it is drawn before the first step."


def _encoding(model: Transformer, name: str) -> PositionalEncoding:
    sizes = model.config
    if name == sizes.positions:
        return model.positions
    width = sizes.n_heads * (sizes.d_head + sizes.d_head % 2)
    with drawing(0):
        return ENCODINGS[name](n_ctx=model.n_ctx, d_model=width, n_heads=sizes.n_heads)


def turning_table(name: str, length: int, width: int, base: float = BASE) -> Table:
    """A sinusoidal or rotary encoding of any size, float64. The width is even: d_model, or for rotary that of a head.

    Rotary positions add nothing; their table is what each pair (1, 0) of a query or a key is turned into.
    """
    if name == "sinusoidal":
        return Table(sinusoids(torch.arange(length), width, base).numpy(), "dimension", "dimension", "")
    angle = angles(torch.arange(length), width, base)
    turned = torch.stack([angle.cos(), angle.sin()], dim=-1).flatten(1)
    return Table(turned.numpy(), "dimension of a head", "dimension", "")


def wavelengths(width: int, base: float = BASE) -> Float[np.ndarray, "pair"]:
    """After how many positions each pair of dimensions has turned once round: 2π · base^(2i / width)."""
    return 2 * math.pi * base ** (2 * np.arange(width // 2) / width)


def slopes(n_heads: int) -> Float[np.ndarray, "head"]:
    """What each head of ALiBi subtracts from a score for each position of distance: 2^(-8(h+1)/H)."""
    return alibi.slopes(n_heads).numpy()


def penalty(slope: float, length: int) -> Float[np.ndarray, "query key"]:
    """The bias of a head of ALiBi: minus its slope times the distance."""
    place = np.arange(length)
    return -slope * np.abs(place[:, None] - place[None, :])


# --- how alike positions are


def similarity(table: Float[np.ndarray, "position dimension"]) -> Float[np.ndarray, "position position"]:
    """PE · PEᵀ: the inner product of every two positions."""
    return table @ table.T


@dataclass(frozen=True)
class Profile:
    """Over all pairs of positions that are as far apart: float [distance], from 0."""

    mean: Float[np.ndarray, "distance"]
    low: Float[np.ndarray, "distance"]
    high: Float[np.ndarray, "distance"]


def profile(similar: Float[np.ndarray, "position position"]) -> Profile:
    """How alike two positions are at each distance: mean, least and greatest. `similar` is symmetric."""
    diagonals = [np.diagonal(similar, distance) for distance in range(len(similar))]
    return Profile(*(np.array([of(d) for d in diagonals]) for of in (np.mean, np.min, np.max)))


def spread(matrix: Float[np.ndarray, "query key"]) -> float:
    """By how much entries on one diagonal differ at most; 0 when they depend on the distance q - k alone."""
    offsets = range(1 - matrix.shape[0], matrix.shape[1])
    return max(float(np.ptp(np.diagonal(matrix, offset))) for offset in offsets)


def rotary_scores(length: int, width: int, base: float = BASE, seed: int = 0) -> Float[np.ndarray, "query key"]:
    """One query and one key, drawn from N(0, 1), put at every two positions and turned: their inner products.

    A pair of dimensions is one complex number, and turning it is a product with e^(iθ) ("RoFormer", section 3.4.1).
    """
    rng = np.random.default_rng(seed)
    query, key = (rng.normal(size=width // 2) + 1j * rng.normal(size=width // 2) for _ in range(2))
    turns = np.exp(1j * angles(torch.arange(length), width, base).numpy())
    return ((query * turns) @ (key * turns).conj().T).real


# --- what a step does


def shift(name: str, steps: int, width: int, base: float = BASE) -> Float[np.ndarray, "to from"]:
    """M_k, the one matrix with PE(p + k) = M_k · PE(p) whatever p is: it turns each pair by k / base^(2i / width).

    "For any fixed offset k, PE_(pos+k) can be represented as a linear function of PE_pos" (Vaswani et al., section
    3.5). Rotary positions turn queries and keys by the same angles ("RoFormer", equation 15); a sinusoidal pair is
    (sine, cosine) and not (cosine, sine), so that its matrix is the transpose.
    """
    angle = angles(torch.tensor([steps]), width, base)[0].numpy()
    matrix = np.zeros((2 * len(angle), 2 * len(angle)))
    even, odd = np.arange(0, 2 * len(angle), 2), np.arange(1, 2 * len(angle), 2)
    matrix[even, even] = matrix[odd, odd] = np.cos(angle)
    matrix[odd, even], matrix[even, odd] = np.sin(angle), -np.sin(angle)
    return matrix.T if name == "sinusoidal" else matrix


def deviation(
    table: Float[np.ndarray, "position dimension"], matrix: Float[np.ndarray, "dimension dimension"], steps: int
) -> float:
    """The greatest |PE(p + k) - M · PE(p)| of all p and dimensions. Needs more positions than steps."""
    return float(np.abs(table[steps:] - table[:-steps] @ matrix.T).max())


@dataclass(frozen=True)
class FittedShift:
    """The linear map that comes nearest to a step, by least squares; what it misses as a share of what is there.

    A share is ‖PE(p + k) - M · PE(p)‖ / ‖PE(p + k)‖, both over all p: 0 is exact, and 1 no better than saying zero.
    """

    matrix: Float[np.ndarray, "to from"]
    fitted: int
    """The number of steps, p to p + k, to which it was fitted."""
    missed: float
    """On those. With fewer steps than dimensions it is 0 whatever the table is."""
    unseen: float
    """On one half of the steps, of a map fitted to the other, both ways; nan for a single step."""


def fit_shift(table: Float[np.ndarray, "position dimension"], steps: int) -> FittedShift:
    """The matrix for which M · PE(p) comes nearest to PE(p + k) over all p; the shortest where many do as well."""
    before, after = table[:-steps].astype(np.float64), table[steps:].astype(np.float64)
    matrix = _nearest_map(before, after)
    halves = np.random.default_rng(0).permutation(len(before)) % 2 == 0  # at random: what alternates tells nothing
    guessed = np.empty_like(after)
    for half in (halves, ~halves):
        guessed[half] = before[half] @ _nearest_map(before[~half], after[~half]).T
    unseen = _share(after - guessed, after) if len(before) > 1 else math.nan
    return FittedShift(matrix, len(before), _share(after - before @ matrix.T, after), unseen)


def _nearest_map(
    before: Float[np.ndarray, "step dimension"], after: Float[np.ndarray, "step dimension"]
) -> Float[np.ndarray, "to from"]:
    return np.linalg.lstsq(before, after, rcond=None)[0].T


def _share(missed: np.ndarray, there: np.ndarray) -> float:
    whole = float(np.linalg.norm(there))
    return float(np.linalg.norm(missed)) / whole if whole else 0.0


# --- what is added to what


@dataclass(frozen=True)
class Lengths:
    """How long the vectors are that meet at the bottom of the residual stream: Euclidean norms."""

    tokens: Float[np.ndarray, "token"]
    """Of the token embeddings as they are stored; all of the vocabulary but its last, the padding."""
    positions: Float[np.ndarray, "position"] | None
    """Of what the encoding adds; None where it adds nothing."""
    factor: float
    """sqrt(d_model), by which token embeddings may be multiplied (Vaswani et al., section 3.4)."""
    scaled: bool
    """Does this model multiply them?"""


def lengths_of(model: Transformer, name: str) -> Lengths:
    """The norms in a model, with its own encoding or another one of the same sizes, as in `table_of`."""
    vectors = _encoding(model, name).vectors(model.n_ctx)
    tokens = model.embedding.weight[:-1].detach().cpu().double().numpy()
    return Lengths(
        np.linalg.norm(tokens, axis=1),
        None if vectors is None else np.linalg.norm(vectors.detach().cpu().double().numpy(), axis=1),
        math.sqrt(model.config.d_model),
        model.config.scale_embeddings,
    )


@dataclass(frozen=True)
class Addition:
    """What the first block reads at one place, and the two vectors that it is the sum of; after section 3.4 and 3.5."""

    token: Float[np.ndarray, "d_model"]
    """The token's embedding, times `factor`."""
    position: Float[np.ndarray, "d_model"]
    factor: float
    """sqrt(d_model) where the model scales its embeddings, else 1."""

    @property
    def total(self) -> Float[np.ndarray, "d_model"]:
        return self.token + self.position


def addition_of(model: Transformer, name: str, token: int, place: int) -> Addition | None:
    """A token's vector and that of its place, from 0; None where this encoding adds nothing of the model's width."""
    vectors = _encoding(model, name).vectors(model.n_ctx)
    if vectors is None or vectors.shape[1] != model.config.d_model:
        return None
    factor = math.sqrt(model.config.d_model) if model.config.scale_embeddings else 1.0
    embedding = model.embedding.weight[token].detach().cpu().double().numpy()
    return Addition(factor * embedding, vectors[place].detach().cpu().double().numpy(), factor)


# --- what is left without positions


@dataclass(frozen=True)
class Reversal:
    """What a model that is told no positions says to an input, and to the same input from back to front."""

    forwards: Float[np.ndarray, "position d_vocab"]
    backwards: Float[np.ndarray, "position d_vocab"]
    """Logits, each in the order in which its input was read."""

    @property
    def moved(self) -> float:
        """The greatest change of a logit, token by token: 0 means that the order of the input changes nothing."""
        return float(np.abs(self.backwards[::-1] - self.forwards).max())


def read_backwards(
    model: Transformer,
    tokens: Int[Tensor, "position"],
    source: Int[Tensor, "source"] | None = None,
    *,
    everything_seen: bool,
) -> Reversal:
    """Take a model's positions away and let it read an input both ways, in float64.

    With `everything_seen` no mask forbids anything: then nothing moves but for rounding, because attention sums over a
    set of keys. Under the model's own mask a token can still tell how many others it may see.
    """
    bag = copy.deepcopy(model).cpu().double()
    bag.positions = ENCODINGS["none"](n_ctx=model.n_ctx, d_model=model.config.d_model, n_heads=model.config.n_heads)
    if everything_seen:
        bag.visible = torch.ones_like(bag.visible)
    seen = observe(bag, tokens[None], source=None if source is None else source[None])
    turned = observe(bag, tokens.flip(0)[None], source=None if source is None else source.flip(0)[None])
    return Reversal(seen.logits[0].cpu().numpy(), turned.logits[0].cpu().numpy())


@dataclass(frozen=True)
class TwoOrders:
    """What a model's first attention hands on at the last token of an input, for two orders of the tokens before it."""

    told: Float[np.ndarray, "order d_model"]
    """With the model's positions: first the input as it is, then with all tokens before the last from back to front."""
    untold: Float[np.ndarray, "order d_model"]
    """The same without its positions."""

    @property
    def moved(self) -> tuple[float, float]:
        """The most that a number differs between the two orders: without positions, and with them."""
        without, own = (float(np.abs(rows[1] - rows[0]).max()) for rows in (self.untold, self.told))
        return without, own


def read_in_two_orders(
    model: Transformer, tokens: Int[Tensor, "position"], source: Int[Tensor, "source"] | None = None
) -> TwoOrders:
    """Let the first attention read the same tokens in two orders, with the model's positions and without, in float64.

    No mask forbids anything, so that the last token sees them all, as it does under a causal mask. Without positions
    its output is a sum over a set of keys and values, Σ softmax(q · k_j / √d_head) v_j, which no order changes but for
    rounding. Where a model has a `source`, its encoder reads that.
    """
    read = tokens if source is None else source
    turned, rows = torch.cat([read[:-1].flip(0), read[-1:]]), []
    none = ENCODINGS["none"](n_ctx=model.n_ctx, d_model=model.config.d_model, n_heads=model.config.n_heads)
    for positions in (model.positions, none):
        seer = copy.deepcopy(model).cpu().double()
        seer.positions = copy.deepcopy(positions).cpu().double()
        seer.visible = torch.ones_like(seer.visible)
        for order in (read, turned):
            texts = (order, None) if source is None else (tokens, order[None])
            seen = observe(seer, texts[0][None], source=texts[1])
            rows.append(seen[f"{seen.attentions()[0]}.out"][0, len(read) - 1].cpu().numpy())
    return TwoOrders(np.stack(rows[:2]), np.stack(rows[2:]))
