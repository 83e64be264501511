"""Small models of Hugging Face's transformers with random weights, and something for each to read."""

from __future__ import annotations

from functools import cache

import torch
import transformers
from torch import Tensor

SMALL = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 64}
WORDS = {"vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
GROUPED = {"num_key_value_heads": 2}
KINDS = {
    "GPT2LMHeadModel": ("GPT2Config", {"n_layer": 2, "n_head": 4, "n_embd": 32, **WORDS}),
    "BertModel": ("BertConfig", SMALL | WORDS),
    "T5Model": ("T5Config", {"num_layers": 2, "num_heads": 4, "d_model": 32, "d_ff": 64, "d_kv": 8, **WORDS}),
    "LlamaForCausalLM": ("LlamaConfig", SMALL | WORDS | GROUPED),
    "MistralForCausalLM": ("MistralConfig", SMALL | WORDS | GROUPED | {"sliding_window": 5}),
    "Gemma2ForCausalLM": ("Gemma2Config", SMALL | WORDS | GROUPED | {"head_dim": 8}),
    "ViTModel": ("ViTConfig", SMALL | {"image_size": 32, "patch_size": 8}),
}
"""The families that people ask for, and one whose scores are capped on their way into softmax."""


@cache
def given(kind: str) -> dict[str, Tensor]:
    torch.manual_seed(1)
    if kind == "ViTModel":
        return {"pixel_values": torch.randn(2, 3, 32, 32)}
    tokens = torch.randint(3, 50, (2, 12))
    padding = torch.ones(2, 12, dtype=torch.long)
    padding[1, 9:] = 0
    decoder = {"decoder_input_ids": tokens[:, :5]} if kind == "T5Model" else {}
    return {"input_ids": tokens, "attention_mask": padding, **decoder}


def made(kind: str) -> transformers.PreTrainedModel:
    config, settings = KINDS[kind]
    torch.manual_seed(0)
    return getattr(transformers, kind)(getattr(transformers, config)(**settings))
