"""The terms of attention scores, calculated in NumPy."""

from __future__ import annotations

import numpy as np

from tests.kit.heads_by_hand import divided_by, double, mapped
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
        i = np.arange(width)
        angles = np.arange(n)[:, None] / 10_000 ** ((i - i % 2) / width)
        p = np.where(i % 2, np.cos(angles), np.sin(angles))
    elif (vectors := model.positions.vectors(n)) is not None:  # another's, which its plug-in's contract proves
        p = double(vectors)
    if sizes.norm == "pre":
        norm = model.get_submodule(f"{stack}.0.around_self.before")
        size = divided_by(t + p, norm)
        t, p = (mapped(x, norm) / size for x in (t, p))
        p = p + (0 if norm.bias is None else double(norm.bias))
    found = np.zeros((4, n_heads, n, n))
    d = width // n_heads
    for head in range(n_heads):
        rows = slice(head * d, (head + 1) * d)
        q, k = (weights[f"{site}.{what}.weight"][rows] for what in ("query", "key"))
        q0, k0 = (weights[f"{site}.{what}.bias"][rows] for what in ("query", "key"))
        content, position = (t @ q.T, t @ k.T), (p @ q.T + q0, p @ k.T + k0)
        pairs = (content, content), (content, position), (position, content), (position, position)
        found[:, head] = [asks[0] @ asked[1].T / d**0.5 for asks, asked in pairs]
        if sizes.positions == "alibi":
            found[3, head] -= 2 ** (-8 * (head + 1) / n_heads) * np.abs(np.subtract.outer(range(n), range(n)))
        elif (bias := model.positions.bias(n, n)) is not None:
            found[3, head] += double(bias)[head]
    return found


def softmax(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Over the keys that are seen; nothing where none is."""
    scores = np.where(mask, scores, -np.inf)
    seen = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e9))
    return seen / np.maximum(seen.sum(-1, keepdims=True), 1e-300)


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
