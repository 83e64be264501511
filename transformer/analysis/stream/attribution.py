"""Direct logit attribution: how much each part of the model writes into the logits, to the last digit.

Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits": the residual stream is a sum, and the
unembedding is linear, so the logits are a sum of what each part wrote. A norm on the way is linear once what it divides
by is held at what it was in this pass. "Direct": what a part does through later parts is counted as theirs.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.analysis.assumptions import norm_of, require_residual, require_sum
from transformer.analysis.sample import lay_out, observe_batch
from transformer.blocks import Block
from transformer.model import Transformer
from transformer.observation import Observation
from transformer.tasks import Answer, Question, Task

EMBEDDING, BIASES = "embedding", "biases"
Parts = dict[str, Float[Tensor, "batch position d_model"]]


@torch.no_grad()
def direct_logits(model: Transformer, seen: Observation) -> dict[str, Float[Tensor, "batch position d_vocab"]]:
    """What each part adds to the logits. Their sum is the logits, for a pass without edits of the stream itself.

    Parts: "embedding" (token and position), each head ("decoder.1.self_attention.3"), each feed-forward layer
    ("decoder.1.feed_forward"), and "biases": those of attention outputs, norms and unembedding, which nobody chose.
    Raises ConfigError for a model without residual connections, and where the sum is not the logits.
    """
    weight, bias = model.unembedding.weight, model.unembedding.bias
    logits = {name: part @ weight.T for name, part in _parts(model, seen).items()}
    logits[BIASES] = logits[BIASES] + bias
    require_sum(torch.stack([*logits.values()]), seen.logits, "the logits")
    return logits


def _parts(model: Transformer, seen: Observation) -> Parts:
    """What each part adds to the stream as the unembedding reads it."""
    require_residual(model.config, "its logits are no sum of what its parts wrote, for each replaced what was there")
    stack = "decoder" if "decoder.0.resid_pre" in seen.sites else "encoder"
    stream = seen[f"{stack}.0.resid_pre"]
    parts: Parts = {EMBEDDING: stream, BIASES: torch.zeros_like(stream)}
    for index, block in enumerate(getattr(model, stack)):
        assert isinstance(block, Block)
        stream = _through(block, f"{stack}.{index}", seen, parts, stream)
    _freeze(model.final_norm, parts, stream)
    return parts


@torch.no_grad()
def writes(
    model: Transformer, task: Task, question: Question, *, said: Answer | None = None
) -> dict[str, Float[np.ndarray, "position"]]:
    """What each part adds to the logit of the right token, above what it adds to the mean token.

    The softmax does not see what all tokens are given alike, so their mean is taken off. `said` as in `sample`.
    """
    batch = lay_out(task, question, said=said)
    seen = observe_batch(model, batch)
    parts = _parts(model, seen)
    weight, bias = model.unembedding.weight, model.unembedding.bias
    targets = torch.from_numpy(batch.targets[0]).to(weight.device)
    # One direction a position, not all logits of every part: with the words of a text these weigh half a gigabyte.
    direction = weight[targets] - weight.mean(dim=0)
    leads = {name: (part[0] * direction).sum(dim=-1) for name, part in parts.items()}
    leads[BIASES] = leads[BIASES] + bias[targets] - bias.mean()
    right = seen.logits[0].gather(-1, targets[:, None])[:, 0] - seen.logits[0].mean(dim=-1)
    require_sum(torch.stack([*leads.values()]), right, "the logit of the right token")
    return {name: lead.cpu().numpy() for name, lead in leads.items()}


def _through(block: Block, path: str, seen: Observation, parts: Parts, stream: Tensor) -> Tensor:
    """Add what a block writes to `parts`; returns the stream after it."""
    attentions = [("self_attention", block.self_attention, block.around_self, "resid_mid")]
    if block.cross:
        attentions.append(("cross_attention", block.cross_attention, block.around_cross, "resid_cross"))
    for name, attention, norms, after in attentions:
        written = attention.contributions(seen[f"{path}.{name}.z"])
        parts |= {f"{path}.{name}.{head}": written[:, head] for head in range(attention.n_heads)}
        parts[BIASES] = parts[BIASES] + attention.out.bias
        _freeze(norms.after, parts, stream + seen[f"{path}.{name}.out"])
        stream = seen[f"{path}.{after}"]
    if block.feeds:
        out = seen[f"{path}.feed_forward.out"]
        parts[f"{path}.feed_forward"] = out
        _freeze(block.around_feed_forward.after, parts, stream + out)
    return seen[f"{path}.resid_post"]


def _freeze(norm: nn.Module, parts: Parts, whole: Float[Tensor, "batch position d_model"]) -> None:
    """Take each part through a norm that divides by what it divides `whole`, their sum, by; its shift is a bias."""
    known = norm_of(norm)
    for name, part in parts.items():
        parts[name] = known.linear(part, whole)
    parts[BIASES] = parts[BIASES] + known.shift
