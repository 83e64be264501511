"""The model of square corners once more, calculated in NumPy."""

from __future__ import annotations

import numpy as np

from tests.kit.recurrent_by_hand import gru_step, mapped
from transformer.corners import CornerConfig, walks
from transformer.recurrent.corners import Walker


def by_hand(
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
            assert core.attention.scoring == "dot"
            query, keys = mapped(core.attention.query, h), mapped(core.attention.key, states)
            scores = np.einsum("...d,...td->...t", query, keys)
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
        free, pattern, _ = by_hand(model, given)
        fed, _, _ = by_hand(model, given, target[:, 0])
        squares.append(((np.stack([free, fed]) - target) ** 2).sum(axis=-1))
        alphas[count] = pattern.mean(axis=0) if len(pattern) else pattern
    free, fed = np.sqrt(np.concatenate(squares, axis=1).mean(axis=1))
    return free, fed, alphas
