"""Influence: which outputs move when one token is replaced, and how steeply each logit leans on each token.

Attention says where a head looked, not what came of it. These two say what came of it: leaving a token out and taking
a gradient are what Jain and Wallace (2019), "Attention is not Explanation", section 4.1, compare attention with.
Slots are the source's tokens where there is one, then the tokens, as in `ceilings.reachable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.edits import Edit
from transformer.network import Network
from transformer.observation import observe
from transformer.tasks import Batch
from transformer.trace import Recorder, only

CELLS = 2**20
"""Cells of one head's patterns that a pass may have: more sequences than that are run in several passes."""
LOGITS = 2**23
"""Logits that it may have: 32 MiB. A larger array is fetched from the operating system anew in every pass."""


@dataclass(frozen=True)
class Pokes:
    """One sequence, its tokens replaced one at a time by each candidate, and what became of every output.

    A token that is replaced by itself changes nothing: its cells are exactly 0.
    """

    read: Int[np.ndarray, "slot"]
    """The tokens as they stood."""
    poked: Int[np.ndarray, "poked"]
    """The slots that were poked, from 0, in the order of the last axis below."""
    candidates: Int[np.ndarray, "candidate"]
    said: Int[np.ndarray, "output"]
    """The likeliest token of each output before anything was poked."""
    probability: Float[np.ndarray, "output"]
    """Its probability then."""
    moves: Float[np.ndarray, "candidate output poked"]
    """The greatest |Δlogit| over the vocabulary."""
    said_after: Int[np.ndarray, "candidate output poked"]
    probability_after: Float[np.ndarray, "candidate output poked"]
    """Of the token that was said before."""

    def greatest(self) -> Float[np.ndarray, "output poked"]:
        """|Δlogit|, the greatest over vocabulary and candidates: 0 where no candidate moves any logit."""
        return self.moves.max(axis=0)


def poke(
    model: Network,
    batch: Batch,
    candidates: Sequence[int],
    *,
    slots: Sequence[int] | None = None,
    told: Callable[[float], object] = lambda share: None,
) -> Pokes:
    """Replace the token at each slot (all, unless some are given) by each candidate, the others left as they are.

    `batch` is one sequence, as a task lays it out. Padding stays padding. `told` hears after each pass what share of
    them is done. Raises ValueError for a batch of several, and for a candidate that is padding: nobody sees that, so it
    would be a change of the mask.
    """
    padding = model.d_vocab - 1
    if padding in candidates:
        raise ValueError("padding cannot replace a token, because no query sees padding")
    whole, n_source = _slots(model, batch)
    places = torch.arange(whole.shape[1]) if slots is None else torch.tensor(list(slots))
    shape = (len(candidates), len(places))
    pokes = whole.repeat(shape[0] * shape[1], 1)
    column = places.repeat(len(candidates)).to(whole.device)
    token = torch.tensor(list(candidates), device=whole.device).repeat_interleave(len(places))
    pokes[torch.arange(len(pokes)), column] = torch.where(whole[0, column] == padding, padding, token)

    # The reference is run in a batch of the very shape of the others: each row of a matrix product is then calculated
    # alike, and a logit that nothing reaches comes out the same to the last bit. So the last pass is filled up.
    size = min(len(pokes), together(model, whole.shape[1]))
    filled = torch.cat([pokes, whole.repeat(-len(pokes) % size, 1)])
    before = _logits(model, whole.repeat(size, 1), n_source)
    chances = before[:1].softmax(dim=-1)
    said = before[:1].argmax(dim=-1)
    moves, said_after, chances_after = [], [], []
    room = torch.empty_like(before)  # new room for a text's logits in every pass would take as long as to weigh them
    for chunk in filled.split(size):
        after = _logits(model, chunk, n_source)
        moves.append(torch.sub(after, before, out=room).abs_().amax(dim=-1))
        said_after.append(after.argmax(dim=-1))
        chances_after.append(torch.softmax(after, -1, out=room).gather(-1, said.expand(size, -1)[..., None])[..., 0])
        told(len(moves) * size / len(filled))

    def table(parts: list[Tensor]) -> np.ndarray:
        """Row after row of [candidate × poked, output] as [candidate, output, poked]."""
        return torch.cat(parts)[: len(pokes)].reshape(*shape, -1).transpose(1, 2).cpu().numpy()

    return Pokes(
        read=whole[0].cpu().numpy(),
        poked=places.numpy(),
        candidates=np.array(candidates),
        said=said[0].cpu().numpy(),
        probability=chances[0].gather(-1, said[0][:, None])[:, 0].cpu().numpy(),
        moves=table(moves),
        said_after=table(said_after),
        probability_after=table(chances_after),
    )


def together(model: Network, slots: int) -> int:
    """How many sequences of so many slots one pass takes."""
    return max(1, min(CELLS // slots**2, LOGITS // (slots * model.unembedding.out_features)))


@torch.enable_grad()
def gradients(
    model: Network, batch: Batch, *, outputs: Sequence[int] | None = None
) -> Float[np.ndarray, "output slot"]:
    """‖∂ logit of what an output says / ∂ embedding of a slot's token‖₂: how steeply the one leans on the other.

    A row for each output, all unless some are given. The embedding is the vector that enters the stack, scaled, before
    positions are added (Simonyan et al., 2014, "Deep Inside Convolutional Networks", section 3, take the same gradient
    to pixels). In logits per unit of its length.
    """
    tokens, source = _parted(*_slots(model, batch))
    recorder = Recorder([_Leaf("*.token_embedding")], only("*.token_embedding"))
    training = model.training
    model.eval()
    try:
        logits = model(tokens, source, trace=recorder)[0]
    finally:
        model.train(training)
    said = logits.gather(-1, logits.argmax(dim=-1, keepdim=True))[:, 0]
    embeddings = list(recorder.sites.values())  # the encoder's come first
    rows = [
        torch.cat([slope[0].norm(dim=-1) for slope in torch.autograd.grad(said[place], embeddings, retain_graph=True)])
        for place in (range(len(said)) if outputs is None else outputs)
    ]
    return torch.stack(rows).cpu().numpy()


@dataclass(frozen=True)
class _Leaf(Edit):
    """Let the gradients begin here."""

    def apply(self, value: Tensor) -> Tensor:
        return value.detach().requires_grad_()


def _slots(model: Network, batch: Batch) -> tuple[Int[Tensor, "1 slot"], int]:
    """Source and tokens in one row, where the model lives, and how many of them are the source's."""
    if len(batch.tokens) != 1:
        raise ValueError(f"tokens are replaced in one sequence at a time, not in {len(batch.tokens)}")
    parts = [batch.tokens] if batch.source is None else [batch.source, batch.tokens]
    whole = torch.from_numpy(np.concatenate(parts, axis=1)).to(next(model.parameters()).device)
    return whole, whole.shape[1] - batch.tokens.shape[1]


def _parted(
    whole: Int[Tensor, "batch slot"], n_source: int
) -> tuple[Int[Tensor, "batch position"], Int[Tensor, "batch source"] | None]:
    return whole[:, n_source:], whole[:, :n_source] if n_source else None


def _logits(model: Network, whole: Int[Tensor, "batch slot"], n_source: int) -> Float[Tensor, "batch position d_vocab"]:
    tokens, source = _parted(whole, n_source)
    return observe(model, tokens, source=source, remember=lambda site, value: None).logits
