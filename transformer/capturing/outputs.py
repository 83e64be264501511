"""What a model that is not ours answers, and how far a change moves it: what each of its heads is worth to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.analysis.findings import Head
from transformer.capturing.capture import capture
from transformer.capturing.changes import Change, capture_changed
from transformer.capturing.heads import modules
from transformer.capturing.record import CaptureError


@dataclass(frozen=True, eq=False)
class Answer:
    """A model's output for the first sequence of a batch."""

    kind: Literal["logits", "embedding"]
    """Logits are a distribution at each position; an embedding is a vector."""
    values: Float[np.ndarray, "position width"]


def answer(output: Any, model: object = None) -> Answer:
    """The answer in what a model returned: a tensor, a tuple that begins with one, or an output of transformers.

    An output of transformers says what it is. Anything else is logits if it is as wide as one of the model's
    embeddings has rows, and no embedding is as wide as that; or if a loss or nothing stands behind it, as in nanoGPT.
    One position is what has no axis for them, as the classes of a whole sequence. A single number is no distribution.
    Raises CaptureError where there is no such output.
    """
    values, says_logits = _values(output)
    if not isinstance(values, Tensor) or not values.is_floating_point() or not 1 <= values.dim() <= 3:
        raise CaptureError("This model's output is neither logits nor an embedding, so its change has no number.")
    values = values[0] if values.dim() == 3 else values[:1] if values.dim() == 2 else values[None]
    width = values.shape[-1]
    kind = says_logits if says_logits is not None else _as_wide_as_a_vocabulary(width, model)
    return Answer("logits" if kind and width > 1 else "embedding", values.detach().float().cpu().numpy())


def difference(before: Answer, after: Answer) -> Float[np.ndarray, "position"]:
    """How far the answer at each position has moved.

    Of logits the Kullback-Leibler divergence of the two distributions, Σ p ln(p / q) in nats, where p is before; of an
    embedding the length of what changed, as a share of the length before. Raises CaptureError where the two are not of
    one kind and shape.
    """
    if before.kind != after.kind or before.values.shape != after.values.shape:
        raise CaptureError("The two outputs are not of one kind and size, so they cannot be compared.")
    old, new = before.values.astype(np.float64), after.values.astype(np.float64)
    if before.kind == "logits":
        p, q = _log_softmax(old), _log_softmax(new)
        share = np.exp(p)
        apart = np.subtract(p, q, where=share > 0, out=np.zeros_like(share))
        return np.maximum((share * apart).sum(axis=-1), 0.0)  # rounding may take it below
    moved, length = np.linalg.norm(new - old, axis=-1), np.linalg.norm(old, axis=-1)
    return np.divide(moved, length, where=length > 0, out=np.where(moved > 0, np.inf, 0.0))


def removals(
    model: Callable[..., Any], inputs: Sequence[Any], named: Mapping[str, Any], heads: Sequence[Head]
) -> Iterator[tuple[Head, Float[np.ndarray, "position"]]]:
    """Each of the heads, and how far the answer moves when it alone is removed: one pass a head, as it is asked for.

    Heads are named as `heads.attentions` names them. Raises CaptureError and ChangeError, and what the model raises.
    """
    seen = capture(model, *inputs, **named)
    names, before = modules(seen), answer(seen.output, model)
    for head in heads:
        if head.site not in names:
            raise CaptureError(f"This model has no head {head.short} in its {head.kind}.")
        change = Change(removed=frozenset({(names[head.site], head.index)}))
        after = capture_changed(model, change, *inputs, **named)
        yield head, difference(before, answer(after.output, model))


def _values(output: Any) -> tuple[Any, bool | None]:
    """The tensor of an output, and whether it is logits where that is said."""
    for name, says_logits in (("logits", True), ("last_hidden_state", False)):
        if isinstance(values := getattr(output, name, None), Tensor):
            return values, says_logits
    if isinstance(output, tuple) and output:
        rest = output[1:]
        loss = bool(rest) and all(each is None or (isinstance(each, Tensor) and each.dim() == 0) for each in rest)
        return output[0], loss or None
    return output, None


def _as_wide_as_a_vocabulary(width: int, model: object) -> bool:
    parts = model.modules() if isinstance(model, nn.Module) else ()
    tables = [part for part in parts if isinstance(part, nn.Embedding)]
    return any(width == table.num_embeddings for table in tables) and all(
        width != table.embedding_dim for table in tables
    )


def _log_softmax(values: Float[np.ndarray, "position width"]) -> Float[np.ndarray, "position width"]:
    return torch.from_numpy(values).log_softmax(dim=-1).numpy()
