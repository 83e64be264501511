"""All heads of one attention at one token, side by side: what is split, what each head writes, and the exact sum.

"Attention Is All You Need" (Vaswani et al., 2017), section 3.2.2: MultiHead(Q, K, V) = Concat(head_1 … head_h) W_O. W_O
splits into the rows that each head meets, so the output is a sum of one vector a head, and the bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.analysis.assumptions import told_by
from transformer.analysis.sample import labels, lay_out, observe_batch
from transformer.analysis.stream.sublayers import sublayer_of
from transformer.attention import MultiHeadAttention
from transformer.model import Transformer
from transformer.tasks import Question, Task
from transformer.trace import only


@dataclass(frozen=True, eq=False)
class SideBySide:
    """One token in one multi-head attention. What the pass recorded is taken from it, bit for bit: pattern, z, out."""

    site: str
    place: int
    """Where the token stands, counted from 0."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    read: Float[np.ndarray, "d_model"]
    """The token's vector as the attention reads it: after the norm of a pre-norm model."""
    query: Float[np.ndarray, "head d_head"]
    """read · W_Q + b_Q, split; an encoding that turns queries does so afterwards."""
    visible: Bool[np.ndarray, "head key"]
    """What the mask lets this token see."""
    pattern: Float[np.ndarray, "head key"]
    z: Float[np.ndarray, "head d_head"]
    written: Float[np.ndarray, "head d_model"]
    """What each head adds to the output: its z times its rows of W_O."""
    bias: Float[np.ndarray, "d_model"]
    """b_O, which is no head's."""
    out: Float[np.ndarray, "d_model"]
    """The sum of all of `written`, and the bias."""
    turned: str
    """What the encoding does with queries and keys, in words after "each head"; empty where it leaves them."""

    @property
    def lengths(self) -> Float[np.ndarray, "head"]:
        """The Euclidean norm of what each head writes."""
        return np.linalg.norm(self.written.astype(np.float64), axis=1)

    @property
    def shares(self) -> Float[np.ndarray, "head"]:
        """Of the sum of all lengths, the bias left out; equal shares where nothing is written."""
        total = self.lengths.sum()
        return self.lengths / total if total else np.full(len(self.lengths), 1 / len(self.lengths))

    @property
    def deviation(self) -> float:
        """How far the sum of the parts is from the recorded output: the largest difference of all its numbers."""
        parts = self.written.astype(np.float64).sum(axis=0) + self.bias
        return float(np.abs(parts - self.out).max())


@torch.no_grad()
def look_at_all_heads(
    model: Transformer,
    task: Task,
    question: Question,
    site: str,
    place: int,
    *,
    said: Int[np.ndarray, "answer"] | None = None,
) -> SideBySide:
    """Observe one question and open all heads of an attention at one token, its place counted from 0.

    `said` is read in place of the right answer. Raises IndexError for a place that is not there.
    """
    batch = lay_out(task, question, said=said)
    path = site.rpartition(".")[0]
    seen = observe_batch(model, batch, (), only(f"{site}.*", f"{path}.resid_*"))
    attention = model.get_submodule(site)
    assert isinstance(attention, MultiHeadAttention)
    z = seen[f"{site}.z"]
    if not 0 <= place < z.shape[2]:
        raise IndexError(f"no token at {place}: there are {z.shape[2]}, from 0")
    sublayer = sublayer_of(model, site)
    read = sublayer.around.before(seen[sublayer.reads])[0, place]
    source = () if batch.source is None else tuple(task.vocabulary[token] for token in batch.source[0])
    rotated = told_by(model.positions) == "rotation" and not site.endswith("cross_attention")
    queries, keys = labels(site, tuple(task.vocabulary[token] for token in batch.tokens[0]), source)
    return SideBySide(
        site=site,
        place=place,
        queries=queries,
        keys=keys,
        read=_array(read),
        query=_array(attention.query(read).view(attention.n_heads, attention.d_head)),
        visible=_array(seen[f"{site}.mask"].expand(seen[f"{site}.pattern"].shape)[0, :, place]),
        pattern=_array(seen[f"{site}.pattern"][0, :, place]),
        z=_array(z[0, :, place]),
        written=_array(attention.contributions(z)[0, :, place]),
        bias=_array(attention.out.bias),
        out=_array(seen[f"{site}.out"][0, place]),
        turned=model.config.encoding.does if rotated else "",
    )


def output_weight(model: Transformer, site: str) -> Float[np.ndarray, "head d_head d_model"]:
    """W_O of an attention, each head's own rows: head h meets the rows from h · d_head to (h + 1) · d_head - 1."""
    attention = model.get_submodule(site)
    assert isinstance(attention, MultiHeadAttention)
    return _array(attention.out.weight.T.unflatten(0, (attention.n_heads, attention.d_head)))


def _array(values: Tensor) -> np.ndarray:
    """The caller's own copy."""
    return values.detach().cpu().numpy().copy()
