"""One question, seen whole: what was read, what was said, and every attention on the way, as numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional

from transformer.analysis.findings import Attention, Sample, blocks
from transformer.edits import Edit
from transformer.network import Network
from transformer.observation import Observation, observe, tensors
from transformer.tasks import Batch, Question, Task
from transformer.trace import Remember

WHOLE = 512
"""Tokens up to which patterns are kept cell by cell; of longer ones a sample keeps a downsampled picture."""


def say(model: Network, task: Task, question: Question) -> Int[np.ndarray, "answer"]:
    """The model's own answer, nobody helping: each token is chosen after those that it said itself."""
    return say_each(model, task, question[None])[0]


def say_each(
    model: Network, task: Task, questions: Int[np.ndarray, "sequence length"]
) -> Int[np.ndarray, "sequence answer"]:
    """The model's own answers to questions of one length."""
    batch, length = task.encode(list(questions)), questions.shape[1]
    tokens, source = tensors(model, batch)
    with torch.no_grad():
        if source is not None:
            said = model.greedy(source, task.separator, task.answer_length(length))
        elif batch.is_answer.all():
            said = model(tokens).argmax(dim=-1)
        else:
            said = model.continue_greedily(tokens[:, : length + 1], task.answer_length(length))
    return said.cpu().numpy()


def sample(
    model: Network,
    task: Task,
    question: Question,
    *,
    said: Int[np.ndarray, "answer"] | None = None,
    edits: Sequence[Edit] = (),
    pad_to: int | None = None,
) -> Sample:
    """Observe one question. `said`, if given, is read in place of the right answer: what the model did by itself.

    With `pad_to` the question is padded as if it shared a batch with a longer one; padding gets no prediction.
    Patterns of more than WHOLE tokens are downsampled: each cell is then the strongest of a block.
    """
    factors: dict[str, int] = {}

    def downsample(site: str, value: Tensor) -> Tensor | None:
        module, _, name = site.rpartition(".")
        if name not in ("pattern", "scores", "mask"):
            return None
        factors[module] = factor = -(-max(value.shape[-2:]) // WHOLE)
        return value if factor == 1 else strongest(value, factor)

    batch = lay_out(task, question, said=said, pad_to=pad_to)
    seen = observe_batch(model, batch, edits, downsample)
    probabilities = seen.logits[0].softmax(dim=-1).cpu().numpy()
    predicted = probabilities.argmax(axis=-1)

    def names(values: Int[np.ndarray, "n"]) -> tuple[str, ...]:
        return tuple(task.vocabulary[value] for value in values)

    read = names(batch.tokens[0])
    source_names = () if batch.source is None else names(batch.source[0])
    return Sample(
        question=names(question),
        read=read,
        predicted=names(predicted),
        targets=names(batch.targets[0]),
        is_answer=batch.is_answer[0],
        confidence=probabilities.max(axis=-1),
        attentions=attentions(seen, read, source_names, factors),
        truth=probabilities[np.arange(len(predicted)), batch.targets[0]],
    )


def lay_out(
    task: Task, question: Question, *, said: Int[np.ndarray, "answer"] | None = None, pad_to: int | None = None
) -> Batch:
    """One question as the model reads it, with what was `said` in place of the right answer where it reads that.

    A text is read as it stands, whatever is said of it.
    """
    batch = task.encode([question], pad_to)
    if not task.lawful or said is None or len(said) < 2 or np.array_equal(batch.tokens[0], question):
        return batch
    tokens = batch.tokens.copy()
    tokens[0, -(len(said) - 1) :] = said[:-1]
    return replace(batch, tokens=tokens)


def observe_batch(
    model: Network, batch: Batch, edits: Sequence[Edit] = (), remember: Remember | None = None
) -> Observation:
    """Observe what a task has laid out, wherever the model lives."""
    tokens, source = tensors(model, batch)
    return observe(model, tokens, edits, source=source, remember=remember)


def attentions(
    seen: Observation, read: Sequence[str], source: Sequence[str] = (), factors: Mapping[str, int] | None = None
) -> dict[str, Attention]:
    """Every attention of one pass, on the first sequence of its batch.

    `read` names the tokens that the predicting stack read, `source` those of an encoder that stands beside it. An
    attention of `factors` is downsampled already: each cell is the strongest of a block.
    """
    return {
        site: _attention(seen, site, *labels(site, tuple(read), tuple(source)), (factors or {}).get(site, 1))
        for site in seen.attentions()
    }


def labels(site: str, read: tuple[str, ...], source: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens that ask and the tokens that are looked at, in one attention module."""
    in_encoder = bool(source) and site.startswith("encoder")
    return source if in_encoder else read, source if in_encoder or site.endswith("cross_attention") else read


def strongest(value: Tensor, factor: int) -> Tensor:
    """The greatest of each block of factor × factor cells; of a mask, whether any cell of the block may be seen."""
    rows, columns = value.shape[-2:]
    flat = value.reshape(-1, 1, rows, columns).to(torch.float32)
    pooled = functional.max_pool2d(flat, factor, ceil_mode=True)
    return pooled.reshape(*value.shape[:-2], *pooled.shape[-2:]).to(value.dtype)


def _attention(seen: Observation, site: str, queries: tuple[str, ...], keys: tuple[str, ...], factor: int) -> Attention:
    pattern = seen[f"{site}.pattern"][0].cpu().numpy()
    mask = seen[f"{site}.mask"][0, 0].cpu().numpy()
    return Attention(
        site=site,
        scores=seen[f"{site}.scores"][0].cpu().numpy(),
        mask=np.broadcast_to(mask, pattern.shape[1:]).copy(),
        pattern=pattern,
        queries=blocks(queries, factor),
        keys=blocks(keys, factor),
        factor=factor,
        whole=(len(queries), len(keys)) if factor > 1 else None,
    )
