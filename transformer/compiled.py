"""A reverser whose weights are written by hand: no training, exact, and understood to the last number.

It is the oracle for attention, trace, ceilings and figures, and the answer to "what would a perfect head look like?".
The residual stream is three registers side by side: which token stands here (one-hot), which position this is
(one-hot), and what was read. One head turns a position into the position of its mirror image and copies what it
finds there into the third register.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformer.config import ModelConfig, RunConfig, TaskConfig

if TYPE_CHECKING:
    from transformer.model import Transformer


SHARPNESS = 200.0
"""Score of the mirrored key against 0 for all others: exp(-200) is exactly 0 in single precision."""


def compiled_config(length: int = 8, symbols: int = 10) -> RunConfig:
    """The shape of the hand-written model: one layer, one head, no feed-forward, no norm."""
    width = 2 * (symbols + 2) + 2 * length
    model = ModelConfig(
        n_layers=1, n_heads=1, d_model=width, d_ff=0, positions="learned", norm="none", scale_embeddings=False
    )
    return RunConfig(task=TaskConfig(task="reverse", length=length, symbols=symbols), model=model)


def compiled_reverser(length: int = 8, symbols: int = 10) -> Transformer:
    """A model that reverses sequences of exactly `length` symbols, with weights that are written by hand.

    It reads [x1..xn, SEP, xn..x2], 2 · length tokens, and predicts SEP after xn and xn..x1 from SEP on. Symbols are the
    tokens 0 to `symbols` − 1, and SEP is `symbols`.
    """
    import torch

    from transformer.blocks import Block
    from transformer.foundation.drawing import drawing
    from transformer.model import Transformer

    config = compiled_config(length, symbols)
    task = config.build_task()
    with drawing():  # its first weights are drawn like any model's, and then replaced
        model = Transformer(config.model, d_vocab=task.d_vocab, n_ctx=task.n_ctx)
    for parameter in model.parameters():
        parameter.requires_grad_(False).zero_()

    token = slice(0, task.d_vocab)
    place = slice(task.d_vocab, task.d_vocab + task.n_ctx)
    read = slice(task.d_vocab + task.n_ctx, config.model.d_model)
    model.embedding.weight[:, token] = torch.eye(task.d_vocab)
    model.positions.get_parameter("table")[:, place] = torch.eye(task.n_ctx)

    block = model.decoder[0]
    assert isinstance(block, Block)
    head = block.self_attention
    scale = SHARPNESS * config.model.d_model**0.5
    for query in range(length, 2 * length):
        mirror = 2 * length - 1 - query
        head.query.weight[place.start + mirror, place.start + query] = scale
    head.key.weight[place, place] = torch.eye(task.n_ctx)
    head.value.weight[token, token] = torch.eye(task.d_vocab)
    head.out.weight[read, token] = torch.eye(task.d_vocab)

    model.unembedding.weight[:, read] = torch.eye(task.d_vocab)
    # The separator follows the n-th symbol whatever was read: its place alone decides.
    model.unembedding.weight[task.separator, place.start + length - 1] = 10.0
    return model.eval()
