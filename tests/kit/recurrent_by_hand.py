"""A GRU with and without attention, calculated in NumPy."""

from __future__ import annotations

import math

import numpy as np
import torch

from tests.kit.heads_by_hand import double as numbers
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.corners import CornerConfig, walks
from transformer.recurrent import Alignment, Recurrent
from transformer.recurrent.corners import Walker

SEP, PAD, SITE = 10, 11, "decoder.0.cross_attention"


def configured(attention: str = "scaled-dot", *, length: int = 5, **settings: object) -> RunConfig:
    training = {name: settings.pop(name) for name in ("teacher_forcing", "seed", "max_steps") if name in settings}
    return RunConfig(
        task=TaskConfig(task="reverse-translate", length=length, min_length=settings.pop("min_length", None)),
        model=ModelConfig(architecture="gru", attention=attention, **{"n_layers": 1, "d_model": 6, **settings}),
        training=TrainingConfig(device="cpu", **training),
    )


# --- by hand


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gru_step(gru: torch.nn.GRU, x: np.ndarray, h: np.ndarray) -> dict[str, np.ndarray]:
    """Cho et al. (2014), equations 5 to 8, as PyTorch has them: the reset gate lies on U h + b. Of one, or of many.

    What is read and the state before, the gates r and z, the candidate n, and the state after.
    """
    ours, theirs = x @ numbers(gru.weight_ih_l0).T, h @ numbers(gru.weight_hh_l0).T
    xr, xz, xn = np.split(ours + numbers(gru.bias_ih_l0), 3, axis=-1)
    hr, hz, hn = np.split(theirs + numbers(gru.bias_hh_l0), 3, axis=-1)
    reset, update = sigmoid(xr + hr), sigmoid(xz + hz)
    new = np.tanh(xn + reset * hn)
    return {"x": x, "h": h, "r": reset, "z": update, "n": new, "after": (1 - update) * new + update * h}


def gru_states(gru: torch.nn.GRU, inputs: list[np.ndarray], h: np.ndarray) -> list[np.ndarray]:
    states = []
    for x in inputs:
        h = gru_step(gru, x, h)["after"]
        states.append(h)
    return states


def states_by_hand(gates, inputs: list[np.ndarray], first: list[np.ndarray]) -> list[list[np.ndarray]]:
    """The states of each layer, after each step."""
    found = []
    for layer, h in zip(gates.layers, first, strict=True):
        inputs = gru_states(layer, inputs, h)
        found.append(inputs)
    return found


def mapped(linear: torch.nn.Module, x: np.ndarray) -> np.ndarray:
    return x @ numbers(linear.weight).T + numbers(linear.bias) if isinstance(linear, torch.nn.Linear) else x


def score_by_hand(alignment: Alignment, q: np.ndarray, k: np.ndarray) -> float:
    d = len(q)
    if alignment.scoring == "uniform":
        return 0.0
    if alignment.scoring == "additive":
        v = numbers(alignment.energy.weight)[0]
        return sum(v[i] * math.tanh(q[i] + k[i]) for i in range(d))
    total = sum(q[i] * k[i] for i in range(d))
    return total / math.sqrt(d) if alignment.scoring == "scaled-dot" else total


def logits_by_hand(model: Recurrent, source: list[int], tokens: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Logits [position, d_vocab] and alpha [position, source]."""
    core, table = model.core, numbers(model.embedding.weight)
    zeros = [np.zeros(model.config.d_model)] * model.config.n_layers
    encoded = states_by_hand(core.encoder, [table[t] for t in source if t != PAD], zeros)
    decoded = states_by_hand(core.decoder, [table[t] for t in tokens], [states[-1] for states in encoded])
    logits, alphas = [], []
    for state in decoded[-1]:
        features = state
        if core.attention is not None:
            q = mapped(core.attention.query, state)
            scores = [score_by_hand(core.attention, q, mapped(core.attention.key, h)) for h in encoded[-1]]
            exponentials = np.exp(np.array(scores) - max(scores))
            alpha = exponentials / exponentials.sum()
            context = sum(a * mapped(core.attention.value, h) for a, h in zip(alpha, encoded[-1], strict=True))
            features = np.concatenate([context, state])
            alphas.append(np.pad(alpha, (0, len(source) - len(alpha))))
        logits.append(numbers(model.unembedding.weight) @ features + numbers(model.unembedding.bias))
    return np.array(logits), np.array(alphas)


def said_by_hand(model: Recurrent, source: list[int]) -> list[int]:
    """What it says when it reads its own words."""
    said: list[int] = []
    for _ in source:
        said.append(int(logits_by_hand(model, source, [SEP, *said])[0][-1].argmax()))
    return said


# --- square corners


def corners_by_hand(
    model: Walker, given: np.ndarray, true: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, list[dict[str, np.ndarray]]]:
    """The next two corners of walks [..., corner, 2], the alignment [..., 2, corner], and each step of both GRUs.

    With `true` the second corner is said after it.
    """
    core, cells, alphas, said = model.core, [], [], []
    h = np.zeros((*given.shape[:-2], core.encoder.layers[0].hidden_size))
    for place in range(given.shape[-2]):
        cells.append(gru_step(core.encoder.layers[0], given[..., place, :], h))
        h = cells[-1]["after"]
    states, read = np.stack([cell["after"] for cell in cells], axis=-2), given[..., -1, :]
    for target in range(2):
        cells.append(gru_step(core.decoder.layers[0], read, h))
        features = h = cells[-1]["after"]
        if core.attention is not None:
            assert core.attention.scoring in ("dot", "uniform")
            query, keys = mapped(core.attention.query, h), mapped(core.attention.key, states)
            scores = np.einsum("...d,...td->...t", query, keys) * (core.attention.scoring == "dot")
            alpha = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
            context = np.einsum("...t,...td->...d", alpha, mapped(core.attention.value, states))
            features = np.concatenate([context, h], axis=-1)
            alphas.append(alpha)
        said.append(mapped(model.out, features))
        read = true if true is not None and target == 0 else said[-1]
    return np.stack(said, axis=-2), np.stack(alphas, axis=-2) if alphas else np.empty(0), cells


def on_fresh_walks(model: Walker, settings: CornerConfig) -> tuple[np.ndarray, np.ndarray, dict[int, np.ndarray]]:
    """The errors of the first and the second corner, free-running and fed the true first; the mean alignments."""
    fresh = walks(np.random.default_rng([settings.seed, 1]), 512, settings.most, settings.noise)
    squares, alphas = [], {}
    for count in range(2, settings.most + 1):
        given, target = fresh.source[fresh.given == count, :count], fresh.target[fresh.given == count]
        free, pattern, _ = corners_by_hand(model, given)
        fed, _, _ = corners_by_hand(model, given, target[:, 0])
        squares.append(((np.stack([free, fed]) - target) ** 2).sum(axis=-1))
        alphas[count] = pattern.mean(axis=0) if len(pattern) else pattern
    free, fed = np.sqrt(np.concatenate(squares, axis=1).mean(axis=1))
    return free, fed, alphas
