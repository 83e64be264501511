"""One question, seen whole: what was read, what was said, and every attention on the way, as numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int

from transformer.analysis.findings import Attention, Sample
from transformer.edits import Edit
from transformer.model import Transformer
from transformer.observation import Observation, observe
from transformer.tasks import Batch, Question, Task


def say(model: Transformer, task: Task, question: Question) -> Int[np.ndarray, "length"]:
    """The model's own answer, nobody helping: each token is chosen after those that it said itself."""
    device = next(model.parameters()).device
    batch = task.encode([question])
    tokens = torch.from_numpy(batch.tokens).to(device)
    with torch.no_grad():
        if batch.source is not None:
            said = model.greedy(torch.from_numpy(batch.source).to(device), task.separator)
        elif batch.is_answer.all():
            said = model(tokens).argmax(dim=-1)
        else:
            said = model.continue_greedily(tokens[:, : len(question) + 1], len(question))
    return said[0].cpu().numpy()


def observe_question(
    model: Transformer,
    task: Task,
    question: Question,
    *,
    said: Int[np.ndarray, "length"] | None = None,
    edits: Sequence[Edit] = (),
    pad_to: int | None = None,
) -> tuple[Batch, Observation]:
    """One question as the model reads it, and everything that happened; the arguments are those of `sample`."""
    device = next(model.parameters()).device
    batch = task.encode([question], pad_to)
    tokens = batch.tokens.copy()
    if said is not None and len(said) > 1 and not np.array_equal(tokens[0], question):
        tokens[0, -(len(said) - 1) :] = said[:-1]
    source = None if batch.source is None else torch.from_numpy(batch.source).to(device)
    return replace(batch, tokens=tokens), observe(model, torch.from_numpy(tokens).to(device), edits, source=source)


def sample(
    model: Transformer,
    task: Task,
    question: Question,
    *,
    said: Int[np.ndarray, "length"] | None = None,
    edits: Sequence[Edit] = (),
    pad_to: int | None = None,
) -> Sample:
    """Observe one question. `said`, if given, is read in place of the right answer: what the model did by itself.

    With `pad_to` the question is padded as if it shared a batch with a longer one; padding gets no prediction.
    """
    batch, seen = observe_question(model, task, question, said=said, edits=edits, pad_to=pad_to)
    tokens = batch.tokens
    probabilities = seen.logits[0].softmax(dim=-1).cpu().numpy()
    predicted = probabilities.argmax(axis=-1)

    def names(values: Int[np.ndarray, "n"]) -> tuple[str, ...]:
        return tuple(task.vocabulary[value] for value in values)

    read = names(tokens[0])
    source_names = () if batch.source is None else names(batch.source[0])
    return Sample(
        question=names(question),
        read=read,
        predicted=names(predicted),
        targets=names(batch.targets[0]),
        is_answer=batch.is_answer[0],
        confidence=probabilities.max(axis=-1),
        attentions={site: _attention(seen, site, read, source_names) for site in seen.attentions()},
    )


def _attention(seen: Observation, site: str, read: tuple[str, ...], source: tuple[str, ...]) -> Attention:
    pattern = seen[f"{site}.pattern"][0].cpu().numpy()
    mask = seen[f"{site}.mask"][0, 0].cpu().numpy()
    in_encoder = bool(source) and site.startswith("encoder")
    return Attention(
        site=site,
        scores=seen[f"{site}.scores"][0].cpu().numpy(),
        mask=np.broadcast_to(mask, pattern.shape[1:]).copy(),
        pattern=pattern,
        queries=source if in_encoder else read,
        keys=source if in_encoder or site.endswith("cross_attention") else read,
    )
