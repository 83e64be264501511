"""A small GPT-2 of Hugging Face's that means something: trained for about a minute on the text that is shipped."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional

from transformer.positions.sinusoidal import sinusoids
from transformer.text.corpus import Excerpt

TEXT = Path(__file__).parents[3] / "checkpoints" / "shakespeare" / "text.npz"
END = "<|endoftext|>"
TOKENS, WINDOW, LAYERS, HEADS, WIDTH = 300, 64, 4, 4, 96
STEPS, BATCH, RATE, SEED = 800, 8, 3e-3, 0
HELD_OUT = 0.1


def texts() -> tuple[str, str]:
    """What is learned from, and what is held out: the last tenth of each play's excerpt."""
    excerpt = Excerpt.load(TEXT)
    plays = [excerpt.vocabulary.decode(part) for part in excerpt.held_out]
    cut = [int(len(play) * (1 - HELD_OUT)) for play in plays]
    learned = "\n\n".join(play[:end] for play, end in zip(plays, cut, strict=True))
    return learned, "\n\n".join(play[end:] for play, end in zip(plays, cut, strict=True))


def tokenizer(text: str) -> transformers.PreTrainedTokenizerFast:
    """Byte-level BPE as GPT-2 has it, trained on a text."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([text], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token=END, eos_token=END)


def loss(model: transformers.GPT2LMHeadModel, windows: torch.Tensor) -> torch.Tensor:
    """What a token of these windows costs on average, in nats, each given those before it."""
    logits = model(windows).logits[:, :-1]
    return functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def trained(tokens: torch.Tensor, steps: int = STEPS) -> transformers.GPT2LMHeadModel:
    """A GPT-2 after so many steps of AdamW on windows drawn from these tokens; the learning rate falls to nothing.

    Its learned positions begin as sinusoids: a head finds the token before it sooner.
    """
    torch.manual_seed(SEED)
    shape = {"n_positions": WINDOW, "n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "initializer_range": 0.08}
    plain = dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)
    config = transformers.GPT2Config(vocab_size=TOKENS, bos_token_id=0, eos_token_id=0, **shape, **plain)
    model = transformers.GPT2LMHeadModel(config)
    with torch.no_grad():
        model.transformer.wpe.weight.copy_(0.3 * sinusoids(torch.arange(WINDOW), WIDTH, WINDOW))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for _ in range(steps):
        starts = torch.randint(len(tokens) - WINDOW, (BATCH, 1))
        windows = tokens[starts + torch.arange(WINDOW)]
        optimizer.zero_grad()
        loss(model, windows).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


def saved(folder: Path, steps: int = STEPS) -> Path:
    """Train it and save it as others do: config, safetensors and tokenizer."""
    learned, _ = texts()
    words = tokenizer(learned)
    trained(torch.tensor(words(learned, verbose=False)["input_ids"]), steps).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
