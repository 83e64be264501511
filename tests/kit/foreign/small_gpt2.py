"""A small GPT-2 of Hugging Face's that means something: trained for about a minute on the text that is shipped."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from transformer.text.corpus import Excerpt

TEXT = Path(__file__).parents[3] / "checkpoints" / "shakespeare" / "text.npz"
END = "<|endoftext|>"
TOKENS, WINDOW, LAYERS, HEADS, WIDTH = 1000, 128, 4, 4, 128
STEPS, BATCH, RATE, SEED = 400, 16, 1e-3, 0
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


def trained(tokens: torch.Tensor, steps: int = STEPS) -> transformers.GPT2LMHeadModel:
    """A GPT-2 after so many steps of AdamW on windows drawn from these tokens; the learning rate falls to nothing."""
    torch.manual_seed(SEED)
    config = transformers.GPT2Config(
        vocab_size=TOKENS,
        n_positions=WINDOW,
        n_layer=LAYERS,
        n_head=HEADS,
        n_embd=WIDTH,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = transformers.GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for _ in range(steps):
        starts = torch.randint(len(tokens) - WINDOW, (BATCH, 1))
        windows = tokens[starts + torch.arange(WINDOW)]
        optimizer.zero_grad()
        model(windows, labels=windows).loss.backward()
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
