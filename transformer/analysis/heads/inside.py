"""One query of one head, opened up: every number from its vectors to what it writes, as numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.analysis.findings import Head
from transformer.analysis.sample import lay_out, observe_batch
from transformer.attention import MultiHeadAttention
from transformer.edits import Edit
from transformer.model import Transformer
from transformer.positions import PositionalEncoding
from transformer.tasks import Question, Task
from transformer.trace import only


@dataclass(frozen=True)
class Inside:
    """The steps of softmax(Q Kᵀ / √d_head) V W_O for one query, in order ("Attention Is All You Need", section 3.2).

    What the pass recorded is taken from it, bit for bit: query, key, value, scores, visible, pattern, z, before, out.
    """

    head: Head
    place: int
    """Where the query stands, counted from 0."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    rotated: bool
    """Were query and keys turned by their position?"""
    norm_behind: str
    """The norm that follows the residual sum (post-norm), "LayerNorm"; empty where none does."""

    every_query: Float[np.ndarray, "query d_head"]
    """Of all places; `query` is the row of this one."""
    query: Float[np.ndarray, "d_head"]
    key: Float[np.ndarray, "key d_head"]
    dots: Float[np.ndarray, "key"]
    scaled: Float[np.ndarray, "key"]
    bias: Float[np.ndarray, "key"] | None
    """What the encoding adds to the scores, where it does."""
    scores: Float[np.ndarray, "key"]
    visible: Bool[np.ndarray, "key"]
    largest: float
    """The largest score that is seen, which the softmax subtracts from all; nan when nothing is."""
    exponentials: Float[np.ndarray, "key"]
    total: float
    pattern: Float[np.ndarray, "key"]
    value: Float[np.ndarray, "key d_head"]
    weighted: Float[np.ndarray, "key d_head"]
    z: Float[np.ndarray, "d_head"]
    output_weight: Float[np.ndarray, "d_head d_model"]
    """This head's rows of W_O."""
    written: Float[np.ndarray, "d_model"]
    others: Float[np.ndarray, "d_model"]
    """What the other heads of the layer write."""
    output_bias: Float[np.ndarray, "d_model"]
    """Added once, whatever the heads say: no head's own."""
    out: Float[np.ndarray, "d_model"]
    before: Float[np.ndarray, "d_model"]
    """The residual stream that all this is added to."""
    after: Float[np.ndarray, "d_model"]
    """The sum, before the norm of a post-norm model."""
    bias_formula: str = ""
    """LaTeX: what the encoding says of its bias; empty where it has none, or no formula."""
    residual: bool = True
    """Does the model keep what was there? If not, `before` is 0: the stream is what is written, and that alone."""

    @property
    def strongest(self) -> int | None:
        """The key that is looked at most; None for a query that may see nothing."""
        return int(self.pattern.argmax()) if self.visible.any() else None


@torch.no_grad()
def look_inside(
    model: Transformer,
    task: Task,
    question: Question,
    head: Head,
    query: int,
    *,
    said: Int[np.ndarray, "answer"] | None = None,
    edits: Sequence[Edit] = (),
) -> Inside:
    """Observe one question and open one head at one query, its place counted from 0.

    `said` is read in place of the right answer. Raises KeyError for a head, IndexError for a query that is not there.
    """
    batch = lay_out(task, question, said=said)
    site, layer = head.site, head.site.rpartition(".")[0]
    seen = observe_batch(model, batch, edits, only(f"{site}.*", f"{layer}.resid_*"))
    n_heads, n_queries = seen[f"{site}.query"].shape[1:3]
    if not 0 <= head.index < n_heads:
        raise KeyError(f"no head {head.index} at {site}: it has heads 0 to {n_heads - 1}")
    if not 0 <= query < n_queries:
        raise IndexError(f"no query at {query}: there are {n_queries}, from 0")
    attention = model.get_submodule(site)
    assert isinstance(attention, MultiHeadAttention)

    across = site.endswith("cross_attention")
    vectors = {name: seen[f"{site}.{name}"][:, head.index] for name in ("query", "key", "value")}
    # The very operations of the pass on the very tensors, so that the result is its own to the last bit.
    dots = (seen[f"{site}.query"] @ seen[f"{site}.key"].transpose(-2, -1))[0, head.index, query]
    n_keys = len(dots)
    bias = None if across else model.positions.bias(n_queries, n_keys)
    scores = seen[f"{site}.scores"][0, head.index, query]
    mask = seen[f"{site}.mask"]
    visible = _array(mask[0, head.index if mask.shape[1] > 1 else 0].expand(n_queries, n_keys)[query])
    largest, exponentials = _exponentials(_array(scores), visible)
    pattern, value = _array(seen[f"{site}.pattern"][0, head.index, query]), _array(vectors["value"][0])

    written = attention.contributions(seen[f"{site}.z"])[0, :, query]
    before = seen[f"{layer}.{'resid_mid' if across else 'resid_pre'}"][0, query]
    if not model.config.residual:
        before = torch.zeros_like(before)
    out = seen[f"{site}.out"][0, query]
    other = torch.arange(n_heads, device=written.device) != head.index
    weight = attention.out.weight.view(-1, n_heads, attention.d_head)[:, head.index]

    read = tuple(task.vocabulary[token] for token in batch.tokens[0])
    source = () if batch.source is None else tuple(task.vocabulary[token] for token in batch.source[0])
    in_encoder = bool(source) and site.startswith("encoder")
    return Inside(
        head=head,
        place=query,
        queries=source if in_encoder else read,
        keys=source if in_encoder or across else read,
        rotated=not across and type(model.positions).rotate is not PositionalEncoding.rotate,
        norm_behind=model.config.kind_of_norm.title if model.config.norm == "post" else "",
        every_query=_array(vectors["query"][0]),
        query=_array(vectors["query"][0, query]),
        key=_array(vectors["key"][0]),
        dots=_array(dots),
        scaled=_array(dots / math.sqrt(attention.d_head)),
        bias=None if bias is None else _array(bias[head.index, query]),
        scores=_array(scores),
        visible=visible,
        largest=largest,
        exponentials=exponentials,
        total=float(exponentials.sum()),
        pattern=pattern,
        value=value,
        weighted=pattern[:, None] * value,
        z=_array(seen[f"{site}.z"][0, head.index, query]),
        output_weight=_array(weight.T),
        written=_array(written[head.index]),
        others=_array(written[other].sum(dim=0)),
        output_bias=_array(attention.out.bias),
        out=_array(out),
        before=_array(before),
        after=_array(before + out),
        bias_formula="" if bias is None else model.config.encoding.formula,
        residual=model.config.residual,
    )


def _exponentials(
    scores: Float[np.ndarray, "key"], visible: Bool[np.ndarray, "key"]
) -> tuple[float, Float[np.ndarray, "key"]]:
    """The largest score that is seen, and exp(score - largest), 0 where nothing is seen: none can overflow."""
    if not visible.any():
        return math.nan, np.zeros(len(scores))
    largest = float(scores[visible].max())
    return largest, np.where(visible, np.exp(np.minimum(scores.astype(np.float64) - largest, 0.0)), 0.0)


def _array(values: Tensor) -> np.ndarray:
    """The caller's own copy."""
    return values.detach().cpu().numpy().copy()
