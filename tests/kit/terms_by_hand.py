"""The terms of attention scores, calculated in NumPy."""

from __future__ import annotations

import numpy as np

from transformer.analysis.sample import observe_batch
from transformer.config import RunConfig
from transformer.model import Transformer
from transformer.tasks import Batch


def by_hand(model: Transformer, config: RunConfig, tokens: np.ndarray, stack: str) -> np.ndarray:
    """The four terms of one sequence in the first layer, float [4, head, query, key], from the weights alone."""
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    sizes, site = model.config, f"{stack}.0.self_attention"
    width, n_heads, n = sizes.d_model, sizes.n_heads, len(tokens)
    t = weights["embedding.weight"][tokens] * (width**0.5 if sizes.scale_embeddings else 1)
    p = np.zeros((n, width))
    if sizes.positions == "learned":
        p = weights["positions.table"][:n]
    elif sizes.positions == "sinusoidal":
        for place in range(n):
            for i in range(width):
                angle = place / 10_000 ** ((i - i % 2) / width)
                p[place, i] = np.cos(angle) if i % 2 else np.sin(angle)
    if sizes.norm == "pre":
        name = f"{stack}.0.around_self.before"
        spread = np.sqrt(((t + p) - (t + p).mean(1, keepdims=True)).__pow__(2).mean(1, keepdims=True) + 1e-5)
        t, p = (weights[f"{name}.weight"] * (x - x.mean(1, keepdims=True)) / spread for x in (t, p))
        p = p + weights[f"{name}.bias"]
    found = np.zeros((4, n_heads, n, n))
    d = width // n_heads
    for head in range(n_heads):
        rows = slice(head * d, (head + 1) * d)
        q, k = (weights[f"{site}.{what}.weight"][rows] for what in ("query", "key"))
        q0, k0 = (weights[f"{site}.{what}.bias"][rows] for what in ("query", "key"))
        for i in range(n):
            for j in range(n):
                content, position = (q @ t[i], k @ t[j]), (q @ p[i] + q0, k @ p[j] + k0)
                for term, (asks, asked) in enumerate(
                    ((content, content), (content, position), (position, content), (position, position))
                ):
                    found[term, head, i, j] = asks[0] @ asked[1] / d**0.5
                if sizes.positions == "alibi":
                    found[3, head, i, j] -= 2 ** (-8 * (head + 1) / n_heads) * abs(i - j)
    return found


def softmax(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    found = np.zeros_like(scores)
    for head in range(len(scores)):
        for i in range(scores.shape[1]):
            seen = np.exp(scores[head, i, mask[i]] - scores[head, i, mask[i]].max(initial=-np.inf))
            found[head, i, mask[i]] = seen / seen.sum()
    return found


def shares_by_hand(model: Transformer, config: RunConfig, batch: Batch, site: str) -> tuple[np.ndarray, np.ndarray]:
    """Covariance shares [head, 4] and mean distances [head], row after row."""
    stack = site.split(".")[0]
    mask = observe_batch(model, batch)[f"{site}.mask"]
    n_heads = model.config.n_heads
    covariance, variance, distances = np.zeros((n_heads, 4)), np.zeros(n_heads), []
    for index, read in enumerate(batch.source if batch.source is not None and stack == "encoder" else batch.tokens):
        terms = by_hand(model, config, read, stack)
        visible = mask[index, 0].expand(terms.shape[-2:]).numpy()
        patterns = softmax(terms.sum(0), visible), softmax(terms[3], visible)
        for row in range(len(read)):
            seen = visible[row]
            if seen.sum() < 2:
                continue
            distances.append(0.5 * np.abs(patterns[0][:, row] - patterns[1][:, row]).sum(axis=-1))
            for head in range(n_heads):
                scores = terms.sum(0)[head, row, seen]
                variance[head] += seen.sum() * scores.var()
                for term in range(4):
                    covariance[head, term] += seen.sum() * np.cov(terms[term, head, row, seen], scores, bias=True)[0, 1]
    return covariance / variance[:, None], np.mean(distances, axis=0)
