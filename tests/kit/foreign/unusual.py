"""Models of the library transformers that read more than a text, or attend in their own way: small and random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers

from tests.kit.foreign.hugging_face import SMALL, WORDS

PATCHES = {"image_size": 32, "patch_size": 8}
PICTURE, TEXT = SMALL | PATCHES, SMALL | WORDS | {"max_position_embeddings": 64}
ENCODER_DECODER = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
}  # fmt: skip
SPEECH = {"conv_dim": (8,) * 7, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
PERCEIVER = {
    "num_latents": 8, "d_latents": 32, "d_model": 32, "num_blocks": 1, "num_self_attends_per_block": 2,
    "num_self_attention_heads": 4, "num_cross_attention_heads": 4,
}  # fmt: skip
SWIN = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4}
REFORMER = {
    "attention_head_size": 8, "attn_layers": ["local", "lsh"], "axial_pos_embds": False, "feed_forward_size": 64,
    "hidden_size": 32, "local_attn_chunk_length": 8, "lsh_attn_chunk_length": 8, "num_attention_heads": 4,
    "num_buckets": 2, "max_position_embeddings": 64, "vocab_size": 50, "is_decoder": False,
}  # fmt: skip
OPT = {"num_attention_heads": 4, "num_hidden_layers": 2, "hidden_size": 32, "ffn_dim": 64, "word_embed_proj_dim": 32}
GPT2 = {"n_layer": 2, "n_head": 4, "n_embd": 32}


def _of(name: str, **parts: Any) -> Any:
    """A config by its name."""
    return getattr(transformers, name)(**parts)


def _towers(family: str, **more: Any) -> Any:
    text, vision = _of(f"{family}TextConfig", **TEXT), _of(f"{family}VisionConfig", **PICTURE)
    return _of(f"{family}Config", text_config=text.to_dict(), vision_config=vision.to_dict(), **more)


def _siglip2_vision() -> Any:
    return _of("Siglip2VisionConfig", **SMALL, patch_size=8, num_patches=16)


def _siglip2() -> Any:
    text = _of("Siglip2TextConfig", **TEXT)
    return _of("Siglip2Config", text_config=text.to_dict(), vision_config=_siglip2_vision().to_dict())


def _blip2() -> Any:
    parts = {
        "vision_config": _of("Blip2VisionConfig", **PICTURE),
        "qformer_config": _of("Blip2QFormerConfig", **SMALL, encoder_hidden_size=32),
        "text_config": _of("OPTConfig", **OPT, **WORDS),
    }
    named = {name: part.to_dict() for name, part in parts.items()}
    return _of("Blip2Config", **named, num_query_tokens=4, image_token_index=5)


def _llava() -> Any:
    vision, text = _of("CLIPVisionConfig", **PICTURE), _of("LlamaConfig", **SMALL, **WORDS)
    return _of("LlavaConfig", vision_config=vision, text_config=text, image_token_index=5)


def _picture_to_text() -> Any:
    parts = _of("ViTConfig", **PICTURE), _of("GPT2Config", **GPT2, **WORDS)
    start = {"decoder_start_token_id": 1, "pad_token_id": 0}
    return transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(*parts, **start)


KINDS: dict[str, Callable[[], Any]] = {
    "CLIPModel": lambda: _towers("CLIP", projection_dim=8),
    "SiglipModel": lambda: _towers("Siglip"),
    "Siglip2Model": _siglip2,
    "CLIPVisionModel": lambda: _of("CLIPVisionConfig", **PICTURE),
    "CLIPTextModel": lambda: _of("CLIPTextConfig", **TEXT),
    "SiglipVisionModel": lambda: _of("SiglipVisionConfig", **PICTURE),
    "SiglipTextModel": lambda: _of("SiglipTextConfig", **TEXT),
    "Siglip2VisionModel": _siglip2_vision,
    "CLIPSegForImageSegmentation": lambda: _towers(
        "CLIPSeg", extract_layers=[0, 1], reduce_dim=8, decoder_num_attention_heads=2, projection_dim=8
    ),
    "BlipForConditionalGeneration": lambda: _of(
        "BlipConfig",
        text_config=_of("BlipTextConfig", **TEXT, encoder_hidden_size=32).to_dict(),
        vision_config=_of("BlipVisionConfig", **PICTURE).to_dict(),
        projection_dim=8,
    ),
    "Blip2ForConditionalGeneration": _blip2,
    "LlavaForConditionalGeneration": _llava,
    "VisionEncoderDecoderModel": _picture_to_text,
    "WhisperForConditionalGeneration": lambda: _of(
        "WhisperConfig", **ENCODER_DECODER, **WORDS, num_mel_bins=8, max_source_positions=32, max_target_positions=32
    ),
    "Wav2Vec2Model": lambda: _of("Wav2Vec2Config", **SMALL, **SPEECH),
    "LayoutLMModel": lambda: _of("LayoutLMConfig", **SMALL, **WORDS, max_2d_position_embeddings=64),
    "ViltModel": lambda: _of("ViltConfig", **PICTURE, **WORDS),
    "LxmertModel": lambda: _of(
        "LxmertConfig", hidden_size=32, num_attention_heads=4, intermediate_size=64, vocab_size=50, l_layers=1,
        x_layers=1, r_layers=1, visual_feat_dim=8,
    ),
    "VideoMAEModel": lambda: _of("VideoMAEConfig", **PICTURE, num_frames=4),
    "TimesFmModelForPrediction": lambda: _of(
        "TimesFmConfig", **SMALL, head_dim=8, patch_length=8, context_length=64, horizon_length=8
    ),
    "PatchTSTModel": lambda: _of(
        "PatchTSTConfig", num_input_channels=2, context_length=32, patch_length=4, patch_stride=4,
        num_hidden_layers=2, d_model=32, num_attention_heads=4, ffn_dim=64,
    ),
    "PerceiverModel": lambda: _of("PerceiverConfig", **PERCEIVER),
    "MambaForCausalLM": lambda: _of("MambaConfig", hidden_size=32, num_hidden_layers=2, state_size=4, **WORDS),
    "RwkvForCausalLM": lambda: _of(
        "RwkvConfig", hidden_size=32, attention_hidden_size=32, num_hidden_layers=2, **WORDS
    ),
    "FNetModel": lambda: _of(
        "FNetConfig", hidden_size=32, num_hidden_layers=2, intermediate_size=64, vocab_size=50
    ),
    "ReformerModel": lambda: _of("ReformerConfig", **REFORMER),
    "SwinModel": lambda: _of("SwinConfig", **SWIN),
    "SegformerModel": lambda: _of(
        "SegformerConfig", depths=[1, 1], num_encoder_blocks=2, sr_ratios=[2, 1], hidden_sizes=[16, 32],
        num_attention_heads=[1, 2], patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[2, 2],
    ),
    "YolosModel": lambda: _of("YolosConfig", **PICTURE | {"image_size": [32, 32]}, num_detection_tokens=3),
    "ViTMAEModel": lambda: _of("ViTMAEConfig", **PICTURE),
    "LongformerModel": lambda: _of("LongformerConfig", **TEXT | {"max_position_embeddings": 66}, attention_window=8),
    "LEDForConditionalGeneration": lambda: _of(
        "LEDConfig", **ENCODER_DECODER, **WORDS, attention_window=8, max_encoder_position_embeddings=64,
        decoder_start_token_id=2,
    ),
    "BigBirdModel": lambda: _of("BigBirdConfig", **TEXT, block_size=4, num_random_blocks=1),
    "FunnelModel": lambda: _of(
        "FunnelConfig", block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64, vocab_size=50
    ),
    "CanineModel": lambda: _of(
        "CanineConfig", **SMALL, num_hash_buckets=32, local_transformer_stride=4, max_position_embeddings=64
    ),
    "XLNetModel": lambda: _of("XLNetConfig", d_model=32, n_layer=2, n_head=4, d_inner=64, vocab_size=50),
    "DebertaV2Model": lambda: _of(
        "DebertaV2Config", **SMALL, **WORDS, relative_attention=True, pos_att_type=["c2p", "p2c"]
    ),
    "XGLMForCausalLM": lambda: _of(
        "XGLMConfig", d_model=32, ffn_dim=64, num_layers=2, attention_heads=4, **WORDS
    ),
}  # fmt: skip
"""Each class with what makes its config."""
STOPS: dict[str, Callable[[], Any]] = {"BertForMultipleChoice": lambda: _of("BertConfig", **SMALL, **WORDS)}
"""What is opened, and stops on an input."""


def saved(kind: str, folder: Any) -> transformers.PreTrainedModel:
    """A model with random weights, always the same, saved into a folder."""
    torch.manual_seed(0)
    model = getattr(transformers, kind)((KINDS | STOPS)[kind]()).eval()
    model.save_pretrained(folder)
    assert isinstance(model, transformers.PreTrainedModel)
    return model
