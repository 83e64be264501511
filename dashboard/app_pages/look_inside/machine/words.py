"""What each box does, in a sentence made of its numbers, and the page that looks into it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transformer.analysis.machine.plan import Box, Plan, Size, feed_forward
from transformer.config import ModelConfig

SIGNED = {"softmax": False, "pattern": False}
"""Kinds whose numbers are shares, from 0 to 1; all others have both signs."""
LISTED = 64
"""The most numbers of a vocabulary that are drawn: of more, the likeliest tokens'."""


def count_words(count: int) -> str:
    """ "4,096 parameters"; nothing for none."""
    return f"{count:,} parameter{'s' * (count != 1)}" if count else ""


def shape_words(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def headline(config: ModelConfig, plan: Plan, size: Size, total: int) -> str:
    """What is drawn, in a sentence."""
    read = f"{size.source} source tokens and {size.tokens} tokens" if size.source else f"{size.tokens} tokens"
    if plan.level == "head":
        box = plan.boxes[-1]
        head = box.name.removesuffix(".out")
        heads, width = config.n_heads, config.d_head
        return (
            f"Head {_short(head)} is one of {heads} in its layer: {width} of the {config.d_model} numbers are its own."
        )
    if plan.level == "block":
        own = sum(box.parameters for box in plan.boxes if box.kind != "memory")
        name = plan.boxes[0].name.split(".")
        return f"{name[0].capitalize()} block {name[1]} has {own:,} of the model’s {total:,} parameters."
    if config.recurrent:
        looks = " and looks back at its states" if config.attention != "none" else ""
        return (
            f"A GRU reads {size.source} tokens, and a second one begins at its last state{looks}: {total:,} parameters."
        )
    layers = f"{config.n_layers} block{'s' * (config.n_layers > 1)}"
    each = " in each stack" if size.source else ""
    return f"{read.capitalize()} pass {layers}{each}: {total:,} parameters."


def sentence(config: ModelConfig, size: Size, box: Box) -> str:
    """What the box does."""
    d = config.d_model
    kind = box.kind
    if kind == "tokens":
        return f"{box.shape[0]} tokens, each a number from 0 to {size.vocabulary - 1}: its row in the embedding."
    if kind == "embedding":
        times = f" times √{d}" if config.scale_embeddings and not config.recurrent else ""
        return f"Each token becomes its row of the embedding{times}: a vector of {d} numbers."
    if kind == "positions":
        made = (
            f"Row p of a learned table of {size.context} rows"
            if config.positions == "learned"
            else f"A fixed vector of {d} sines and cosines"
        )
        return f"{made} is added to the token at position p, so order can be told."
    if kind == "block":
        attentions = (
            "self-attention and cross-attention" if ".decoder." in f".{box.name}" and size.source else "attention"
        )
        feeds = " and a feed-forward layer" if config.d_ff else ""
        if not config.residual:
            return f"One block: {attentions} with {config.n_heads} heads{feeds}. It has no residual connections."
        return (
            f"One block: {attentions} with {config.n_heads} heads{feeds}. Each adds its output to the residual stream."
        )
    if kind == "memory":
        return f"What the encoder made of each source token: {box.shape[0]} vectors of {d}. Cross-attention makes its keys and values of them."
    if kind == "norm":
        return f"LayerNorm takes each vector by itself: less its mean, divided by its spread, then scaled and shifted by 2 × {d} learned numbers."
    if kind == "stream":
        return f"The residual stream: one vector of {d} numbers for each token, which every part reads."
    if kind == "head":
        cross = ".cross_attention." in box.name
        reads = (
            "takes its query from the decoder, and its keys and values from the encoder’s memory"
            if cross
            else "takes query, key and value from the same stream"
        )
        return f"Head {_short(box.name)} {reads}. Its output has {config.d_head} numbers for each token."
    if kind == "join":
        if config.recurrent:
            return f"The context vector and the decoder’s state stand side by side: {box.shape[-1]} numbers."
        return f"The outputs of {config.n_heads} heads stand side by side: {config.n_heads} × {config.d_head} = {d} numbers."
    if kind == "out":
        if box.title == "W_O":
            return f"W_O mixes the joined heads: {d} numbers in, {d} out."
        return f"W_O has {config.d_head} columns for this head. They turn its {config.d_head} numbers into the {d} that it adds to the stream."
    if kind == "add":
        if not config.residual:
            return "The output alone goes on: this model has no residual connections."
        return "The output is added to the residual stream. What was there stays there."
    if kind == "feed_forward":
        return f"Two linear maps with a ReLU between, at each position by itself: {d} → {config.d_ff} → {d}, {feed_forward(config):,} parameters."
    if kind == "unembedding":
        return f"One logit for each of the {size.vocabulary:,} tokens of the vocabulary."
    if kind == "softmax":
        return f"Softmax turns {size.vocabulary:,} logits into probabilities that sum to 1."
    if kind in ("query", "key", "value"):
        role = {
            "query": "what this token looks for",
            "key": "what a token can be found by",
            "value": "what a token hands over when it is looked at",
        }[kind]
        return f"The {kind}, {role}: {d} numbers become {config.d_head}."
    if kind == "scores":
        return f"The query of each token times the key of each token, divided by √{config.d_head}: {shape_words(box.shape)} numbers."
    if kind == "pattern":
        return "The mask hides what may not be seen, and softmax makes each row sum to 1: row = query (who looks), column = key (looked at)."
    if kind == "z":
        return f"The mean of the values, weighed by the row of the pattern: {config.d_head} numbers for each query."
    if kind == "gru":
        return f"A GRU goes from token to token. Its state of {d} numbers is all that it keeps of what it has read."
    if kind == "handed":
        return f"The last state is all that the decoder starts from: {d} numbers, however long the source is."
    return f"Attention: the decoder’s state looks at all {size.source} states of the encoder and takes their weighted mean."


def numbers(values: np.ndarray, box: Box) -> np.ndarray:
    """What is drawn of a vector: all of it, or of a large vocabulary the likeliest LISTED tokens, the likeliest first."""
    if box.kind not in ("unembedding", "softmax") or len(values) <= LISTED:
        return values
    return -np.sort(-values)[:LISTED]


def vector_words(values: np.ndarray, box: Box) -> str:
    """The vector of the chosen token in numbers."""
    if box.kind in ("softmax", "pattern"):
        return f"Its largest share is {values.max():.2f}, number {int(values.argmax()) + 1} of {len(values):,}."
    at = int(np.abs(values).argmax())
    largest = f"{values[at]:.2f}".replace("-", "−")
    return f"Its length is {np.linalg.norm(values):.2f}. Its number {at + 1} of {len(values):,} is farthest from 0: {largest}."


def opens(box: Box) -> tuple[str, dict[str, object]]:
    """The address of the page that looks into a box, and the fields of the view that it is opened with."""
    name, kind = box.name, box.kind
    head, _, part = name.rpartition(".")
    block = ".".join(name.split(".")[:2])
    if kind == "block":
        return "machine", {"zoom": "block", "block": name, "box": ""}
    if kind == "head":
        return "machine", {"zoom": "head", "head": name, "box": ""}
    if kind in ("query", "key", "value", "scores", "pattern", "z"):
        step = {"query": "query", "key": "keys", "value": "values", "scores": "dot", "pattern": "divide", "z": "weigh"}
        return "inside", {"head": head, "operation": "" if step[kind] == "query" else step[kind]}
    if kind == "out" and box.title != "W_O":
        return "inside", {"head": head, "operation": "project"}
    if kind == "norm":
        return "block", {"part": "norm", "block": "" if name == "final_norm" else block}
    if kind in ("join", "out") and name != "features":
        return "block", {"part": "", "block": block}
    if kind == "feed_forward":
        return "block", {"part": "feed_forward", "block": block}
    if kind in ("unembedding", "softmax"):
        return "accuracy" if name == "recurrent" else "block", {"part": "logits"}
    if kind == "positions":
        return "positions", {}
    if kind in ("add", "stream"):
        return "layers", {"stage": name.removesuffix(".sum") if kind == "add" else ""}
    if kind in ("gru", "handed"):
        return "bottleneck", {}
    if kind in ("memory", "alignment", "join"):
        return "heads", {}
    if kind == "embedding":
        return "block", {"part": "parameters"}
    return "overview", {}


def _short(head: str) -> str:
    """ "1.3", of "decoder.1.self_attention.3"."""
    _, layer, _, index = head.split(".")
    return f"{layer}.{index}"
