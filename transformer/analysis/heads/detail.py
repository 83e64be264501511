"""One attention module on one question, cell by cell, however long the question is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.analysis.findings import Detail
from transformer.analysis.sample import labels, lay_out, observe_batch
from transformer.attention import MultiHeadAttention
from transformer.edits import Edit
from transformer.network import Network
from transformer.recurrent import Recurrent
from transformer.tasks import Question, Task
from transformer.trace import only


@torch.no_grad()
def detail(
    model: Network,
    task: Task,
    question: Question,
    site: str,
    *,
    said: Int[np.ndarray, "answer"] | None = None,
    edits: Sequence[Edit] = (),
) -> Detail:
    """Observe one module of the pass that `sample` describes; nothing is kept of the others.

    Raises KeyError when the model has no attention at `site`.
    """
    wanted = only(f"{site}.pattern", f"{site}.mask", f"{site}.value")
    batch = lay_out(task, question, said=said)
    seen = observe_batch(model, batch, edits, wanted)
    pattern = seen[f"{site}.pattern"][0]
    mask = seen[f"{site}.mask"][0, 0].expand(pattern.shape[1:])
    written = _written(model, site, seen[f"{site}.value"])[0]
    source = () if batch.source is None else batch.source[0]
    read, read_by_encoder = (tuple(task.vocabulary[int(token)] for token in row) for row in (batch.tokens[0], source))
    queries, keys = labels(site, read, read_by_encoder)
    return Detail(pattern.cpu().numpy(), mask.cpu().numpy(), written.norm(dim=-1).cpu().numpy(), queries, keys)


def _written(
    model: Network, site: str, value: Float[Tensor, "batch head key d_head"]
) -> Float[Tensor, "batch head key d_written"]:
    """What reading each key whole would add: to the residual stream, or to a recurrent network's context vector."""
    if isinstance(model, Recurrent):
        return value
    attention = model.get_submodule(site)
    assert isinstance(attention, MultiHeadAttention)
    return attention.contributions(value)
