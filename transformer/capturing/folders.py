"""A model of Hugging Face's library in a folder: what it is and would take, and the model itself, its weights loaded.

Nothing in a folder is run: weights are read from safetensors only, and a model that brings its own code is refused.
`transformers` and `tokenizers` are an extra; nothing is fetched from anywhere.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from transformer.foundation.checks import UserError
from transformer.foundation.foreign import read_record, shortened

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HOW = 'Models of Hugging Face need two libraries more: pip install "attention-lab[hf]".'
FLOAT = 4
"""Bytes of a number in single precision, in which every model is loaded."""
KEPT = 4
"""What a capture keeps of each head and pair of tokens, in such numbers: scores, mask, pattern, and one to spare."""
NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


class FolderError(UserError):
    """A sentence that says why a folder cannot be opened."""


@dataclass(frozen=True)
class Folder:
    """What a folder holds, read without loading any weights."""

    path: Path
    kind: str
    """The model's class in transformers: "GPT2LMHeadModel"."""
    config: dict[str, Any]
    parameters: int

    @cached_property
    def bytes(self) -> int:
        """Bytes of memory that the weights take."""
        return FLOAT * self.parameters

    def needed(self, tokens: int) -> int:
        """Bytes that the weights take, and what a capture of so many tokens keeps of all heads, about."""
        layers, heads = (self._count(*names) for names in (LAYERS, HEADS))
        return self.bytes + FLOAT * KEPT * layers * heads * tokens**2

    def _count(self, *names: str) -> int:
        found = next((self.config[name] for name in names if isinstance(self.config.get(name), int)), 1)
        return max(1, min(int(found), 10_000))


LAYERS = ("num_hidden_layers", "n_layer", "num_layers")
HEADS = ("num_attention_heads", "n_head", "num_heads")


def available() -> bool:
    """Is the library there that knows these models?"""
    return importlib.util.find_spec("transformers") is not None


def free_memory() -> int:
    """Bytes that this process may still take: what the machine has left, and what a container allows."""
    left = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            left.append(1024 * int(line.split()[1]))
    most, now = (_lines(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if most and now and most[0].isdecimal():
        left.append(int(most[0]) - int(now[0]))
    return max(0, min(left))


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def look(path: Path) -> Folder:
    """What lies in a folder as `save_pretrained` writes it. Raises FolderError with a sentence for whoever named it."""
    name = shortened(str(path.name))
    if not path.is_dir():
        raise FolderError(f"There is no folder “{name}”.")
    try:
        config = read_record(path / "config.json")
    except OSError:
        raise FolderError(f"“{name}” has no config.json that can be read: it is no folder of a model.") from None
    except ValueError as error:
        raise FolderError(f"The config.json of “{name}” cannot be read: {error}.") from None
    if "auto_map" in config:
        raise FolderError(f"“{name}” brings code of its own, which would have to be run. That is not done here.")
    kinds = config.get("architectures")
    if not (isinstance(kinds, list) and kinds and isinstance(kinds[0], str) and kinds[0].isidentifier()):
        raise FolderError(f"The config.json of “{name}” does not say which architecture it is.")
    weights = sorted(path.glob("*.safetensors"))
    if not weights:
        if any(next(path.glob(each), None) for each in PICKLES):
            raise FolderError(
                f"The weights of “{name}” are a pickle, which may run any program when it is read. Save them as "
                "safetensors: model.save_pretrained(folder)."
            )
        raise FolderError(f"“{name}” has no weights: there is no file that ends in .safetensors.")
    return Folder(path, kinds[0], config, sum(_parameters(each) for each in weights))


def _parameters(path: Path) -> int:
    try:
        with safe_open(path, "pt") as file:
            return sum(math.prod(file.get_slice(key).get_shape()) for key in file.keys())  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise FolderError(f"{shortened(path.name)} cannot be read: {shortened(str(error))}.") from None


def located(name: str) -> Path:
    """Where a model lies: a folder's path, or a name in the local cache of Hugging Face ("openai-community/gpt2").

    Raises FolderError when there is neither.
    """
    path = Path(name).expanduser()
    if not name.strip() or path.is_dir() or not NAME.fullmatch(name):
        return path
    if not available():
        raise FolderError(f"There is no folder “{shortened(name)}”. To look for it in the cache of Hugging Face: {HOW}")
    import huggingface_hub

    try:
        return Path(huggingface_hub.snapshot_download(name, local_files_only=True))
    except (ValueError, OSError):
        raise FolderError(
            f"There is neither a folder “{shortened(name)}” nor such a model in the local cache of Hugging Face."
        ) from None


@dataclass(frozen=True, eq=False)
class Foreign:
    """A model that is not ours, with the tokenizer that lies beside it."""

    folder: Folder
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase | None

    def read(self, text: str) -> tuple[Tensor, list[str]]:
        """A text as its tokens [1, position], and each as a person reads it.

        A token that holds a part of a character is written by its bytes; a piece of a word keeps its ##.
        Raises FolderError where there is no tokenizer, and where nothing is left of the text.
        """
        if self.tokenizer is None:
            raise FolderError("This model has no tokenizer beside it, so it cannot be given a text.")
        tokens = self.tokenizer(text, return_tensors="pt")["input_ids"]
        if not tokens.numel():
            raise FolderError("Its tokenizer makes no token of this text.")
        return tokens, [self.face(token) for token in tokens[0].tolist()]

    def face(self, token: int) -> str:
        """A token as a person reads it."""
        assert self.tokenizer is not None
        written = self.tokenizer.convert_ids_to_tokens(token)
        if not isinstance(written, str) or written.startswith("##") or token in self.tokenizer.all_special_ids:
            return str(written)
        text = str(self.tokenizer.decode([token], clean_up_tokenization_spaces=False))
        if "\N{REPLACEMENT CHARACTER}" in text:
            return str(written)
        return f" {text}" if written.startswith("\N{LOWER ONE EIGHTH BLOCK}") and not text.startswith(" ") else text


def load(folder: Folder, tokens: int) -> Foreign:
    """The model of a folder, in single precision and evaluation mode, for inputs of so many tokens.

    Raises FolderError when it would not fit into memory, before anything is read; when this version of transformers
    does not know it; and when its files are not what they say.
    """
    if not available():
        raise FolderError(HOW)
    needed, free = folder.needed(tokens), free_memory()
    if needed > free:
        raise FolderError(f"It would take {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free.")
    import transformers

    kind = getattr(transformers, folder.kind, None)
    if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)):
        raise FolderError(f"transformers {transformers.__version__} does not know “{shortened(folder.kind)}”.")
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        model = kind.from_pretrained(folder.path, use_safetensors=True, dtype=torch.float32, **local).eval()
    except Exception as error:  # anything may be wrong with a stranger's files, and transformers raises anything
        raise FolderError(f"transformers cannot load it: {shortened(str(error), 200)}") from error
    has_words = any((folder.path / name).exists() for name in ("tokenizer.json", "tokenizer_config.json"))
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder.path, **local) if has_words else None
    except Exception as error:
        raise FolderError(f"transformers cannot load its tokenizer: {shortened(str(error), 200)}") from error
    return Foreign(folder, model, tokenizer)
