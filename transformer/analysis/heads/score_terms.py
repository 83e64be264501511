"""How much of a score comes from position and how much from content.

Where a head reads token embeddings t with position vectors p added, its scores are (t + p)ᵀ W_Qᵀ W_K (t + p) / √d_head:
four terms, as written out in "Transformer-XL" (Dai et al., 2019, section 3.3). So it is in the first layer of a stack;
later layers read what was written by those before, and cross-attention what self-attention has written.

The four sum to the scores of the pass, for whatever stands around the product is put into one of them:

- A norm before the attention (pre-norm) divides by a number, which is frozen at that of the pass; all else of it but
  its shift is linear, so t and p go through it side by side.
- Its shift, b_Q and b_K are there whatever is read: they count with position. So does ALiBi's bias on the scores.

Softmax ignores what is the same for all keys of a query, so terms are compared when each row has its mean over the
visible keys taken away: what is left tells keys apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.analysis.assumptions import attention_of, norm_of, require_sum, told_by
from transformer.analysis.batches import in_parts, questions
from transformer.analysis.findings import Head
from transformer.analysis.heads.measure import heads_of, sequences_for
from transformer.analysis.sample import labels, lay_out, observe_batch
from transformer.attention import masked_softmax
from transformer.model import Transformer
from transformer.network import of_few_words
from transformer.observation import Observation
from transformer.tasks import Question, Task

TERMS = ("content–content", "content–position", "position–content", "position–position")
"""What meets what: the query's part first, the key's second."""
POSITIONS_ALONE = TERMS.index("position–position")
KEPT = (
    "*.token_embedding",
    "*.position_embedding",
    "*.0.resid_pre",
    *(f"*.0.self_attention.{name}" for name in ("mask", "pattern", "position_bias")),
)


@dataclass(frozen=True)
class Split:
    """The scores of all heads of one attention on one question, term by term."""

    terms: Float[np.ndarray, "4 head query key"]
    """In the order of TERMS; their sum is the scores."""
    apart: Float[np.ndarray, "4 head query key"]
    """The same with each row's mean over the visible keys taken away; 0 where a query may not see."""
    mask: Bool[np.ndarray, "query key"]
    pattern: Float[np.ndarray, "head query key"]
    alone: Float[np.ndarray, "head query key"]
    """What the pattern would be if position–position were all there is."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Shares:
    """What tells the keys of each head apart, over many sequences."""

    heads: tuple[Head, ...]
    sequences: int
    share: Float[np.ndarray, "head 4"]
    """Of the variance of a row's visible scores, each term's covariance with them: a row sums to 1, and a term that
    works against the others is below 0. nan where no query has a choice, or none makes one."""
    distance: Float[np.ndarray, "head"]
    """Mean total variation distance between the pattern and that of position–position alone, 0 to 1."""


def splittable(model: Transformer) -> tuple[Head, ...]:
    """The heads that read embeddings and positions and nothing else, where positions are added.

    Rotary positions turn the product itself: nothing is added, so there are no four terms. Raises NotCovered.
    """
    if told_by(model.positions) not in ("vectors", "bias"):
        return ()
    return tuple(head for head in heads_of(model) if head.site.endswith(".0.self_attention"))


@torch.no_grad()
def split_scores(model: Transformer, seen: Observation, site: str) -> Float[Tensor, "4 batch head query key"]:
    """The four terms of a pass, for the first self-attention of a stack. Raises ValueError for any other.

    Raises NotCovered where they do not sum to the scores of the pass.
    """
    if all(head.site != site for head in splittable(model)):
        raise ValueError(f"{site} does not read embeddings with positions added, so its scores have no four terms")
    stack = site.split(".")[0]
    attention, norm = attention_of(model, site), norm_of(model.get_submodule(f"{stack}.0.around_self.before"))
    content, told = seen[f"{stack}.token_embedding"], seen.sites.get(f"{stack}.position_embedding")
    position = torch.zeros_like(content) if told is None else told.expand_as(content)
    stream = seen[f"{stack}.0.resid_pre"]
    content, position = norm.linear(content, stream), norm.linear(position, stream) + norm.shift

    def halves(projection: nn.Linear) -> Float[Tensor, "2 batch head position d_head"]:
        """What content and what position bring to all queries, or to all keys."""
        both = torch.stack([content @ projection.weight.T, projection(position)])
        return both.unflatten(-1, (attention.n_heads, attention.d_head)).transpose(2, 3)

    products = torch.einsum("ibhqd,jbhkd->ijbhqk", halves(attention.query), halves(attention.key))
    terms = products.flatten(0, 1) / math.sqrt(attention.d_head)
    bias = seen.sites.get(f"{site}.position_bias")
    if bias is not None:
        terms[POSITIONS_ALONE] += bias
    mask, pattern = seen[f"{site}.mask"], seen[f"{site}.pattern"]
    require_sum(masked_softmax(terms.sum(dim=0), mask)[None], pattern, f"the pattern of {site}")
    return terms


def centred(
    terms: Float[Tensor, "4 batch head query key"], mask: Bool[Tensor, "batch 1 #query key"]
) -> Float[Tensor, "4 batch head query key"]:
    """Each row without its mean over the visible keys; 0 at the others."""
    seen = terms.masked_fill(~mask, 0.0)
    mean = seen.sum(dim=-1, keepdim=True) / mask.sum(dim=-1, keepdim=True).clamp(min=1)
    return (seen - mean).masked_fill(~mask, 0.0)


@torch.no_grad()
def split_question(
    model: Transformer, task: Task, question: Question, site: str, *, said: Int[np.ndarray, "answer"] | None = None
) -> Split:
    """The four terms on one question. `said`, if given, is read in place of the right answer."""
    batch = lay_out(task, question, said=said)
    seen = observe_batch(model, batch)
    terms, mask = split_scores(model, seen, site), seen[f"{site}.mask"]
    read, source = (
        () if row is None else tuple(task.vocabulary[int(token)] for token in row[0])
        for row in (batch.tokens, batch.source)
    )
    queries, keys = labels(site, read, source)

    def array(values: Tensor) -> np.ndarray:
        return values.cpu().numpy()

    return Split(
        terms=array(terms[:, 0]),
        apart=array(centred(terms, mask)[:, 0]),
        mask=array(mask[0, 0].expand(terms.shape[-2:])),
        pattern=array(seen[f"{site}.pattern"][0]),
        alone=array(masked_softmax(terms[POSITIONS_ALONE], mask)[0]),
        queries=queries,
        keys=keys,
    )


@torch.no_grad()
def measure_shares(
    model: Transformer, task: Task, *, sequences: int | None = None, length: int | None = None, seed: int = 0
) -> Shares:
    """What tells keys apart in every splittable head, on a survey's sequences; the right answers are read."""
    length = length or task.surveyed
    batch, _ = questions(task, sequences or sequences_for(task, length), length, seed)
    heads = splittable(model)
    sites = list(dict.fromkeys(head.site for head in heads))

    def look(_: slice, seen: Observation) -> Float[np.ndarray, "head 7"]:
        return np.concatenate([_sums(model, seen, site) for site in sites])

    sums = np.sum(in_parts(of_few_words(model), batch, look, keep=KEPT), axis=0) if heads else np.zeros((0, 7))
    with np.errstate(invalid="ignore", divide="ignore"):
        # Below the rounding of single precision a variance is none: all keys of each query are alike.
        share = np.where(sums[:, 4:5] > 1e-9 * sums[:, 6:], sums[:, :4] / sums[:, 4:5], np.nan)
        distance = sums[:, 5] / sums[:, 6]
    return Shares(heads, len(batch.tokens), share, distance)


def _sums(model: Transformer, seen: Observation, site: str) -> Float[np.ndarray, "head 7"]:
    """For each head, summed over all queries that have a choice: the four terms' covariances with the scores, the
    scores' variance, the distance of the two patterns, and how many queries there were."""
    pattern = seen[f"{site}.pattern"].cpu()
    mask = seen[f"{site}.mask"].expand(-1, -1, *pattern.shape[-2:]).cpu()
    terms = split_scores(model, seen, site).cpu()
    apart = centred(terms, mask).double()
    scores = apart.sum(dim=0)
    choice = (mask.sum(dim=-1) > 1).double()
    alone = masked_softmax(terms[POSITIONS_ALONE], mask)
    distance = (pattern - alone).abs().sum(dim=-1).double() / 2
    rows = [*(apart * scores).sum(dim=-1), scores.square().sum(dim=-1), distance, torch.ones_like(distance)]
    return torch.stack([(row * choice).sum(dim=(0, 2)) for row in rows], dim=-1).numpy()
