"""Folders of Hugging Face models as people have them: a config, safetensors and a tokenizer; the weights are random."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXT = ["The king is dead, long live the king!", "Who is there? Nay, answer me: stand and unfold yourself."]
SMALL = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 64}
SHORT = {"max_position_embeddings": 64}
GROUPED = {"num_key_value_heads": 2}
T5 = {"num_layers": 2, "num_heads": 4, "d_model": 32, "d_ff": 64, "d_kv": 8, "decoder_start_token_id": 0}
PATCHES = {"image_size": 32, "patch_size": 8}


def byte_level() -> Tokenizer:
    """As GPT-2 has it: byte-level BPE, which knows every text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


def pieces() -> Tokenizer:
    """As BERT has it: pieces of words in lower case, between [CLS] and [SEP]."""
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "king",
        "is",
        "dead",
        "stand",
        "##ing",
        "##s",
        ",",
        ".",
    ]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def sentence_pieces() -> Tokenizer:
    """As T5 has it: pieces of a sentence, in which ▁ stands for a blank, and </s> at the end."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=60, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


SPECIAL = {
    byte_level: {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"},
    pieces: {
        "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"
    },
    sentence_pieces: {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"},
}  # fmt: skip
Made = Callable[[], Tokenizer]
KINDS: dict[str, tuple[str, dict[str, Any], Made | None]] = {
    "GPT2LMHeadModel": ("GPT2Config", {"n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 64}, byte_level),
    "GPT2ForSequenceClassification": ("GPT2Config", {"n_layer": 1, "n_head": 4, "n_embd": 32}, byte_level),
    "LlamaForCausalLM": ("LlamaConfig", SMALL | SHORT | GROUPED, byte_level),
    "MistralForCausalLM": ("MistralConfig", SMALL | GROUPED | {"sliding_window": 5}, byte_level),
    "BertModel": ("BertConfig", SMALL | SHORT, pieces),
    "BertForMaskedLM": ("BertConfig", SMALL | SHORT, pieces),
    "BertForSequenceClassification": ("BertConfig", SMALL | SHORT, pieces),
    "RobertaModel": ("RobertaConfig", SMALL | SHORT | {"pad_token_id": 1}, None),
    "T5Model": ("T5Config", T5, sentence_pieces),
    "T5ForConditionalGeneration": ("T5Config", T5, sentence_pieces),
    "BartForConditionalGeneration": (
        "BartConfig",
        {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
        | {"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "decoder_start_token_id": 2},
        None,
    ),
    "ViTModel": ("ViTConfig", SMALL | PATCHES, None),
    "ViTForImageClassification": ("ViTConfig", SMALL | PATCHES, None),
    "DeiTModel": ("DeiTConfig", SMALL | PATCHES, None),
    "Dinov2WithRegistersModel": ("Dinov2WithRegistersConfig", SMALL | PATCHES | {"num_register_tokens": 2}, None),
}
"""Each class with its config's, the settings, and the tokenizer. Without one, it reads token numbers or pictures."""


def made(kind: str, **more: Any) -> transformers.PreTrainedModel:
    """A model with random weights, always the same."""
    config, settings, tokenizer = KINDS[kind]
    words = {} if "Vi" in kind or "Dei" in kind or "Dino" in kind else {"vocab_size": 50}
    if tokenizer is not None:
        words = {"vocab_size": tokenizer().get_vocab_size()}
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**words | settings | more))
    assert isinstance(model, transformers.PreTrainedModel)
    return model.eval()


def saved(kind: str, folder: Path, preparation: dict[str, Any] | None = None, **more: Any) -> Path:
    """A model's folder: what `save_pretrained` writes of the model and of its tokenizer."""
    made(kind, **more).save_pretrained(folder)
    tokenizer = KINDS[kind][2]
    if tokenizer is not None:
        wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer(), **SPECIAL[tokenizer])
        wrapped.save_pretrained(folder)
    if preparation is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(preparation))
    return folder
