"""What a file is, or a folder, that is no model as `save_pretrained` writes it: by its files, and what to do with it.

Nothing is unpacked and nothing is run: what counts are names, the first bytes of a file, and small JSON files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from transformer.foundation.foreign import MOST_WORDS, read_record, shortened
from transformer.foundation.program import program
from transformer.foundation.regular_files import open_file
from transformer.foundation.words import listed

LOOKED = 100
"""Files and folders in a folder that are looked at, at most."""
NAMED = 5
"""Of what lies in it, so much is named."""
SAVE = "Save the PyTorch model that it was made from: model.save_pretrained(folder)."
BUILD = (
    "start the dashboard with a function that builds the model and loads its weights: {program} run --module "
    "my_model:build."
)
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "spiece.model", "*.bpe.model", "vocab.json", "vocab.txt")
"""The words that a tokenizer knows."""
TOKENIZERS = ("tokenizer_config.json", *VOCABULARIES)
NANO = (b"model_args", b"iter_num", b"best_val_loss")
"""Keys in a checkpoint of nanoGPT's train.py."""
NANO_CODE = """\
# my_model.py, in the folder of nanoGPT’s model.py; start the dashboard there
import torch
from model import GPT, GPTConfig


def build():
    saved = torch.load({file}, map_location="cpu", weights_only=True)
    model = GPT(GPTConfig(**saved["model_args"]))
    model.load_state_dict({{name.removeprefix("_orig_mod."): each for name, each in saved["model"].items()}})
    return model
"""
BUILD_CODE = """\
# my_model.py; start the dashboard where it lies
{load}
from my_code import MyModel


def build():
    model = MyModel()
    model.load_state_dict({loaded})
    return model
"""
MERGE_CODE = """\
from peft import PeftModel
from transformers import {kind}

base = {kind}.from_pretrained({base})
PeftModel.from_pretrained(base, {folder}).merge_and_unload().save_pretrained("merged")
"""
KINDS = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
}
"""What PEFT calls the task of an adapter's base model, and the class that opens that model."""
PROMPTS = ("PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "P_TUNING", "PREFIX_TUNING", "ADAPTION_PROMPT", "CPT")
"""Adapters of PEFT that put something in front of an input, or into attention, and change no weights."""


@dataclass(frozen=True)
class Content:
    """What somebody named."""

    what: str
    """With its article: "an adapter (LORA) of “gpt2”"."""
    todo: str
    """What to do with it, in sentences."""
    code: str = ""
    """What to type for that, where it is more than a sentence holds."""


def of_file(path: Path) -> Content | None:
    """What a file is; None where that cannot be told."""
    if _told(path.parent / "config.json").get("architectures"):
        return Content("a file of a model’s folder", "Type that folder’s path, without the file’s name.")
    try:
        with open_file(path) as file:
            head: bytes = file.read(MOST_WORDS)
    except OSError:
        return None
    return next((_content(each, path, head) for is_one, each in FILES if is_one(path.name, head)), None)


def of_folder(path: Path) -> Content | None:
    """What a folder is that has no model of the library transformers in it; None where that cannot be told."""
    for names, content in FOLDERS:
        if all(any(path.glob(name)) for name in names):
            found = content if isinstance(content, Content) else content(path)
            if found is not None:
                return found
    return None


def of_files(path: Path) -> Content | None:
    """What the weights in a folder are; None where none are there that can be told."""
    for one in sorted(islice((each for each in path.glob("*") if each.suffix in SUFFIXES), LOOKED)):
        try:
            with open_file(one) as file:
                head: bytes = file.read(MOST_WORDS)
        except OSError:
            continue
        for is_one, each in FILES:
            if is_one(one.name, head):
                found = _content(each, one, head)
                return Content(f"a folder that holds “{shortened(one.name)}”, {found.what}", found.todo, found.code)
    return None


def _told(path: Path) -> dict[str, Any]:
    """What a small JSON file says; nothing where it cannot be read."""
    try:
        return read_record(path)
    except (OSError, ValueError):
        return {}


# --- files

Told = Content | Callable[[Path, bytes], Content]


def _content(each: Told, path: Path, head: bytes) -> Content:
    return each if isinstance(each, Content) else each(path, head)


def _is_pickle(name: str, head: bytes) -> bool:
    """As torch.save writes it, in a zip or by itself; or what everybody reads as one, by its name."""
    zipped = head.startswith(b"PK\x03\x04") and b"data.pkl" in head[:512]
    bare = head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    named = name.endswith((".pt", ".pth", ".ckpt", ".pkl", ".pickle")) or name.startswith("pytorch_model")
    return zipped or bare or named


def _pickle(path: Path, head: bytes) -> Content:
    what = "a pickle, which may run any program when it is read"
    file = _quoted(path.name)
    if all(word in head for word in NANO):
        build = f"To see it, {BUILD.format(program=program())}"
        return Content(f"a checkpoint of nanoGPT in {what}", build, NANO_CODE.format(file=file))
    load = f'torch.load({file}, map_location="cpu", weights_only=True)'
    return Content(
        what,
        "A model of the library transformers is saved without one: model.save_pretrained(folder). For any other, "
        f"{BUILD.format(program=program())}",
        BUILD_CODE.format(load="import torch", loaded=load),
    )


def _weights(path: Path, head: bytes) -> Content:
    load = BUILD_CODE.format(load="from safetensors.torch import load_file", loaded=f"load_file({_quoted(path.name)})")
    return Content(
        "weights alone, which do not say of which model they are",
        "A model of the library transformers has a config.json beside them: model.save_pretrained(folder) writes both. "
        f"For any other, {BUILD.format(program=program())}",
        load,
    )


def _quoted(name: str) -> str:
    """A foreign name as a text of Python's, in double quotation marks."""
    return json.dumps(shortened(name), ensure_ascii=False)


FILES: Sequence[tuple[Callable[[str, bytes], bool], Told]] = (
    (lambda _, head: head.startswith(b"GGUF"), Content("a model for llama.cpp (GGUF), its weights packed", SAVE)),
    (lambda _, head: head.startswith(b"\x89HDF\r\n"), Content("weights in HDF5, as Keras writes them", SAVE)),
    (lambda name, _: name.endswith(".onnx"), Content("a graph of ONNX, which has no modules to look into", SAVE)),
    (lambda _, head: head[4:8] == b"TFL3", Content("a graph of TensorFlow Lite, which has no modules", SAVE)),
    (lambda name, _: name.endswith(".msgpack"), Content("weights of Flax", SAVE)),
    (lambda _, head: head.startswith((b"PAR1", b"ARROW1")), Content("a table of data", "It has no model in it.")),
    (lambda name, head: name.endswith(".safetensors") and head[8:9] == b"{", _weights),
    (_is_pickle, _pickle),
)
"""By what a file is known, and what it is."""
SUFFIXES = (
    ".gguf", ".h5", ".hdf5", ".onnx", ".tflite", ".msgpack", ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".pkl",
    ".pickle",
)  # fmt: skip
"""How the names of files end that are looked into."""


# --- folders


def _adapter(path: Path) -> Content:
    told = _told(path / "adapter_config.json")
    kind, base, task = (told.get(name) for name in ("peft_type", "base_model_name_or_path", "task_type"))
    kind = kind if isinstance(kind, str) and kind.isidentifier() else ""
    whose = f"“{shortened(base)}”" if isinstance(base, str) and base.strip() else "another model"
    what = f"an adapter{f' ({shortened(kind)})' if kind else ''} of {whose}, without that model’s own weights"
    if kind in PROMPTS:
        return Content(
            what, "It changes no weights, so the two cannot be saved as one model, and it is not shown here."
        )
    auto = KINDS.get(task, "AutoModel") if isinstance(task, str) else "AutoModel"
    code = MERGE_CODE.format(
        kind=auto,
        base=_quoted(base) if isinstance(base, str) and base.strip() else '"the-base-model"',
        folder=_quoted(path.resolve().name),
    )
    return Content(what, "Merge the two, and bring in the folder that is written.", code)


def _inner(path: Path) -> list[str]:
    """The folders in a folder that are models of the library transformers."""
    configs = sorted(islice(path.glob("*/config.json"), LOOKED))
    return [
        each.parent.name
        for each in configs
        if isinstance(_told(each).get("architectures"), list) and any(each.parent.glob("*.safetensors"))
    ]


def _with_models(what: str) -> Callable[[Path], Content | None]:
    """A folder whose folders may be models: those are named."""

    def told(path: Path) -> Content | None:
        inner = _inner(path)
        if not inner:
            return None
        names = [f"“{shortened(name, 40)}”" for name in inner[:NAMED]]
        more = f" and {len(inner) - NAMED} more" if len(inner) > NAMED else ""
        which = f"These folders in it are models: {listed(names)}{more}. Type the path of one of them."
        if len(inner) == 1:
            which = f"The folder {names[0]} in it is a model: type its path."
        return Content(what, which)

    return told


def _by_config(path: Path) -> Content | None:
    """What a config.json says that is none of the library transformers."""
    told = _told(path / "config.json")
    if "architectures" in told:
        return None
    if "_diffusers_version" in told:
        return Content("a part of a pipeline of diffusers", "It is no model of the library transformers.")
    if "pretrained_cfg" in told and isinstance(told.get("architecture"), str):
        return Content(f"a model of timm (“{shortened(told['architecture'], 40)}”)", IN_PYTHON)
    return None


IN_PYTHON = (
    "It is no model of the library transformers. Build it in Python and look there: capture(model, picture) of "
    "transformer, then dashboard.show."
)
DATA = Content("a dataset", "It has no model in it.")
FOLDERS: Sequence[tuple[tuple[str, ...], Content | Callable[[Path], Content | None]]] = (
    (("adapter_config.json",), _adapter),
    (("model_index.json",), _with_models("a pipeline of diffusers, whose models lie in folders of their own")),
    (
        ("model_index.json",),
        Content("a pipeline of diffusers", "No folder in it is a model of the library transformers."),
    ),
    (("modules.json", "*/config.json"), _with_models("a model of sentence-transformers, in several folders")),
    (("open_clip_config.json",), Content("a model of open_clip", IN_PYTHON)),
    (("config.json",), _by_config),
    (
        ("params.json", "consolidated*"),
        Content("a model in its makers’ own layout", "Bring in the one in the layout of the library transformers."),
    ),
    (("dataset_dict.json",), DATA),
    (("dataset_info.json",), DATA),
    (("*.parquet",), DATA),
    (
        ("run.json", "state.json"),
        Content("a training of this program", "Put it among the runs: the other pages show it, and this one does not."),
    ),
    (("*/config.json",), _with_models("a folder of models")),
    (("*",), of_files),
    *(
        ((name,), Content("a tokenizer without a model", "Save the model beside it: model.save_pretrained(folder)."))
        for name in TOKENIZERS
    ),
    (
        ("preprocessor_config.json",),
        Content("a preparation of inputs without a model", "Save the model beside it: model.save_pretrained(folder)."),
    ),
)
"""The files by which a folder is known, and what it is; the first that fits counts."""
