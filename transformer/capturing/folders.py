"""A model of Hugging Face's library in a folder: what it is and would take, and the model itself, its weights loaded.

Nothing in a folder is run: weights are read from safetensors only, and a model that brings its own code is refused.
`transformers` and `tokenizers` are an extra; nothing is fetched from anywhere.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch.nn.modules.module import register_module_parameter_registration_hook

from transformer.capturing.foreign import Foreign, ForeignError, contents, foreign
from transformer.capturing.foreign.contents import TOKENIZERS, VOCABULARIES, Content
from transformer.capturing.foreign.reading import MOST
from transformer.capturing.foreign.tokenizers import HuggingFaceTokenizer, NumberTokenizer, Tokenizer
from transformer.foundation.checks import reason
from transformer.foundation.foreign import open_tensors, read_record, shortened
from transformer.foundation.regular_files import NotAFile, open_file, require_file

HOW = 'Models of Hugging Face need two libraries more: pip install "attention-lab[hf]".'
FLOAT = 4
"""Bytes of a number in single precision, in which every model is loaded."""
KEPT = 4
"""What a capture keeps of each head and pair of tokens, in such numbers: scores, mask, pattern, and one to spare."""
NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
LAYERS, HEADS = ("num_hidden_layers", "n_layer", "num_layers"), ("num_attention_heads", "n_head", "num_heads")
"""How a config names the numbers of its layers and of the heads of each."""
MOST_LAYERS = 1000
SPARE = 64
"""Arrays that a model may have beyond twice those of its weights: several names may stand for one of them."""
WEIGHTS = "model*.safetensors"
PREPARATION = "preprocessor_config.json"
SAVE_TOKENIZER = "To type a text, save its tokenizer into the folder: tokenizer.save_pretrained(folder)."


class FolderError(ForeignError):
    """A sentence that says why a folder cannot be opened."""


@dataclass(frozen=True)
class Folder:
    """What a folder holds, read without loading any weights."""

    path: Path
    kind: str
    """The model's class in transformers: "GPT2LMHeadModel"."""
    config: dict[str, Any]
    shapes: Mapping[str, tuple[int, ...]]
    """Of the arrays that the weights are made of, by their names."""

    @property
    def name(self) -> str:
        """The folder's name; of one in the cache of Hugging Face the model's: "openai-community/gpt2"."""
        if self.path.parent.name != "snapshots":
            return self.path.resolve().name
        return self.path.parent.parent.name.removeprefix("models--").replace("--", "/")

    @cached_property
    def parameters(self) -> int:
        """Numbers that the weights are made of."""
        return sum(map(math.prod, self.shapes.values()))

    @cached_property
    def bytes(self) -> int:
        """Bytes of memory that the weights take."""
        return FLOAT * self.parameters

    def needed(self, tokens: int = MOST) -> int:
        """Bytes that the weights take, and what a capture of so many tokens keeps of all heads, about."""
        layers, heads = (self._count(names) for names in (LAYERS, HEADS))
        modules = 3 * layers if self.config.get("is_encoder_decoder") is True else layers
        return self.bytes + FLOAT * KEPT * modules * heads * tokens**2

    def operations(self, tokens: int = MOST) -> int:
        """Additions and multiplications of one pass over so many tokens, about: two for each parameter and token.

        Kaplan et al., "Scaling Laws for Neural Language Models" (2020), section 2.1.
        """
        return 2 * self.parameters * tokens

    def _count(self, names: Sequence[str]) -> int:
        found = next((self.config[name] for name in names if isinstance(self.config.get(name), int)), 1)
        return max(1, int(found))


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
    name = shortened(path.name or path.resolve().name or str(path))
    if not os.path.isdir(path):
        if os.path.isfile(path):
            raise _refusal(name, contents.of_file(path), f"“{name}” is a file. Type a folder.")
        raise FolderError(f"There is no folder “{name}”.")
    if (path / "adapter_config.json").exists():
        raise _refusal(name, contents.of_folder(path))
    try:
        config = read_record(path / "config.json")
    except NotAFile as error:
        raise FolderError(f"The config.json of “{name}” cannot be read: {reason(error)}.") from None
    except OSError:
        otherwise = f"“{name}” has no config.json that can be read: it is no folder of a model."
        raise _refusal(name, contents.of_folder(path), otherwise) from None
    except ValueError as error:
        raise FolderError(f"The config.json of “{name}” cannot be read: {error}.") from None
    if "auto_map" in config:
        raise FolderError(f"“{name}” brings code of its own, which would have to be run. That is not done here.")
    _require_files(path)
    kinds = config.get("architectures")
    if not (isinstance(kinds, list) and kinds and isinstance(kinds[0], str) and kinds[0].isidentifier()):
        otherwise = f"The config.json of “{name}” does not say which architecture it is."
        raise _refusal(name, None if "architectures" in config else contents.of_folder(path), otherwise)
    weights = sorted(path.glob(WEIGHTS))
    if not weights:
        otherwise = f"“{name}” has no weights: there is no model.safetensors, nor a part of one."
        raise _refusal(name, contents.of_files(path), otherwise)
    shapes = {name: shape for each in weights for name, shape in _shapes(each).items()}
    found = Folder(path, kinds[0], config, shapes)
    if found._count(LAYERS) > MOST_LAYERS:
        raise FolderError(f"The config.json of “{name}” says that it has more than {MOST_LAYERS} layers.")
    return found


def _refusal(name: str, content: Content | None, otherwise: str = "") -> FolderError:
    """What somebody named, and what to do with it; other words where it cannot be told."""
    if content is None:
        return FolderError(otherwise)
    return FolderError(f"“{name}” is {content.what}. {content.todo}", content.code)


def _require_files(folder: Path) -> None:
    """Raises FolderError where something else lies among the files: transformers would open it, and wait for ever."""
    for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
        try:
            if path.exists() and not path.is_dir():
                require_file(path)
        except OSError as error:
            raise FolderError(f"{shortened(path.name)} cannot be read: {reason(error)}.") from None


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    try:
        with open_tensors(path, "pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise FolderError(f"{shortened(path.name)} cannot be read: {reason(error)}.") from None


def located(name: str) -> Path:
    """Where a model lies: a folder's path, or a name in the local cache of Hugging Face ("openai-community/gpt2").

    Raises FolderError when there is neither.
    """
    path = Path(os.path.expanduser(name))
    if not name.strip() or os.path.exists(path) or not NAME.fullmatch(name):
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


def load(folder: Folder, tokens: int = MOST) -> Foreign:
    """The model of a folder, in single precision and evaluation mode, for inputs of so many tokens.

    Raises FolderError when it would not fit into memory, before any weights are read; when this version of transformers
    does not know it; when its files are not what they say; and ForeignError where it is not known what it reads.
    """
    if not available():
        raise FolderError(HOW)
    _fits(folder.needed(tokens))
    kind = _class(folder.kind)
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with _loading("it"):
        more = _beyond_weights(kind, folder)
    _fits(folder.needed(tokens) + more)
    with _loading("it"):
        model, read = kind.from_pretrained(
            folder.path, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **local
        )
    if read["missing_keys"]:
        missing = shortened(min(read["missing_keys"]))
        raise FolderError(f"Its weights lack “{missing}”: it would be made up at random.")
    return foreign(folder.name, model, _tokenizer(folder.path), _preparation(folder.path))


def _tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a folder; one of numbers that says why, where there is none that can be used."""
    if not any(any(path.glob(name)) for name in TOKENIZERS):
        return NumberTokenizer(todo=SAVE_TOKENIZER)
    without = NumberTokenizer("The vocabulary of its tokenizer is not in the folder", SAVE_TOKENIZER)
    from transformers import AutoTokenizer

    try:
        found = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # a stranger's files, and transformers raises anything
        if not any(any(path.glob(name)) for name in VOCABULARIES):
            return without
        return NumberTokenizer(f"Its tokenizer cannot be loaded: {_why(path, error)}", SAVE_TOKENIZER)
    # Where a class lacks its files, transformers makes a vocabulary up: of special tokens alone.
    names = getattr(found, "vocab_files_names", {}).values()
    return without if names and not any((path / name).exists() for name in names) else HuggingFaceTokenizer(found)


def _why(path: Path, error: Exception) -> str:
    """The library that a tokenizer needs and that is not here; else what transformers says."""
    models = sorted(path.glob("*.model"))
    needed = ["sentencepiece"] if models and _first_byte(models[0]) == b"\n" else ["tiktoken", "sentencepiece"]
    missing = [name for name in needed if name in str(error).lower() or models]
    missing = [name for name in missing if importlib.util.find_spec(name) is None]
    if missing:
        return f"it needs the library {missing[0]}, which is not installed (pip install {missing[0]})"
    return reason(error).rstrip(".")


def _first_byte(path: Path) -> bytes:
    """A line feed in a model of sentencepiece, whose first field is its pieces."""
    try:
        with open_file(path) as file:
            return bytes(file.read(1))
    except OSError:
        return b""


def _class(name: str) -> Any:
    """A class of models by its name."""
    import transformers

    found = getattr(transformers, name, None)
    if not (isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)):
        raise FolderError(f"transformers {transformers.__version__} does not know “{shortened(name)}”.")
    return found


def _fits(needed: int) -> None:
    free = free_memory()
    if needed > free:
        raise FolderError(f"It would take {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free.")


@contextmanager
def _loading(what: str) -> Iterator[None]:
    """Anything may be wrong with a stranger's files, and transformers raises anything: that becomes a sentence."""
    try:
        yield
    except FolderError:
        raise
    except Exception as error:
        raise FolderError(f"transformers cannot load {what}: {reason(error)}") from error


def _beyond_weights(kind: Any, folder: Folder) -> int:
    """Bytes that the model which a config describes takes beside its weights: parameters without one, and tables.

    None of it is made: PyTorch's device “meta” has shapes only. Raises FolderError as soon as the model has far more
    arrays than the weights, be it of layers, experts or anything else, and where one of them has another shape.
    """
    with torch.device("meta"), _limited(2 * len(folder.shapes) + SPARE):
        model = kind(kind.config_class.from_pretrained(folder.path))
    prefix, numbers = f"{model.base_model_prefix}.", 0
    for name, weight in model.named_parameters():
        numbers += weight.numel()
        names = (name, f"{prefix}{name}", name.removeprefix(prefix))
        stored = next((folder.shapes[each] for each in names if each in folder.shapes), weight.shape)
        if tuple(stored) != tuple(weight.shape):
            has, wants = (" × ".join(map(str, shape)) for shape in (stored, weight.shape))
            raise FolderError(f"Its {shortened(name)} is {has}, and by its config.json it would be {wants}.")
    tables = sum(each.numel() * each.element_size() for each in model.buffers())
    return FLOAT * max(0, numbers - folder.parameters) + tables


@contextmanager
def _limited(most: int) -> Iterator[None]:
    """Let this thread's models have so many arrays of parameters together. Raises FolderError at the next."""
    made, thread = 0, threading.get_ident()

    def count(*_: object) -> None:
        nonlocal made
        made += threading.get_ident() == thread
        if made > most:
            raise FolderError("Its config.json describes a larger model than its weights are of.")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def _preparation(path: Path) -> dict[str, Any]:
    """What a folder says of how pictures are made ready; nothing where it says nothing."""
    if not (path / PREPARATION).exists():
        return {}
    try:
        return read_record(path / PREPARATION)
    except (OSError, ValueError) as error:
        raise FolderError(f"The {PREPARATION} cannot be read: {reason(error)}.") from None
