"""A folder of a Hugging Face model is looked at before it is loaded; what cannot be opened says why in one sentence."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.nn.modules.module import register_module_parameter_registration_hook

from tests.kit.driving import ROOT
from tests.kit.foreign.folders import saved
from tests.kit.runs import bounded
from transformer import capture
from transformer.capturing import folders
from transformer.capturing.folders import FolderError, load, located, look
from transformer.capturing.foreign import ForeignError


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved("GPT2LMHeadModel", tmp_path_factory.mktemp("models") / "gpt2")


def test_a_folder_says_what_it_holds_before_it_is_loaded(gpt2: Path) -> None:
    found = look(gpt2)
    model = transformers.GPT2LMHeadModel.from_pretrained(gpt2)
    assert (found.name, found.kind) == ("gpt2", "GPT2LMHeadModel")
    assert found.parameters == sum(each.numel() for each in model.parameters())  # its unembedding is its embedding
    assert found.needed(100) - found.bytes == 4 * 4 * 2 * 4 * 100**2
    assert found.operations(100) == 2 * found.parameters * 100


def test_an_encoder_decoder_keeps_three_attentions_a_layer(tmp_path: Path) -> None:
    found = look(saved("T5Model", tmp_path))
    seen = capture(load(found).model, **load(found).given("the king", "is dead").named)
    assert len(seen.attentions()) == 6
    assert found.needed(100) - found.bytes == 4 * 4 * 6 * 4 * 100**2


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "LlamaForCausalLM"])
def test_a_pass_takes_about_as_many_operations_as_are_counted(tmp_path: Path, kind: str) -> None:
    """PyTorch counts them while the model runs. About: attention's own are not in it, and tables are not multiplied."""
    from torch.utils.flop_counter import FlopCounterMode

    found = look(saved(kind, tmp_path, **({"n_embd": 128} if kind.startswith("GPT2") else {"hidden_size": 128})))
    one = load(found)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        one.model(torch.ones(1, 32, dtype=torch.long))
    assert found.operations(32) == pytest.approx(counter.get_total_flops(), rel=0.35)


def test_a_loaded_model_is_the_one_that_was_saved(gpt2: Path) -> None:
    one = load(look(gpt2))
    given = one.given("The king is dead – long live the king!")
    with torch.no_grad():
        expected = transformers.GPT2LMHeadModel.from_pretrained(gpt2)(*given.args).logits
    seen = capture(one.model, *given.args)
    torch.testing.assert_close(seen.output.logits, expected)
    assert seen["transformer.h.1.attn.pattern"].shape == (1, 4, len(given.names), len(given.names))


def spoiled(folder: Path, gpt2: Path, **config: object) -> Path:
    told = json.loads((gpt2 / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps(told))
    return folder


def refused(path: Path, sentence: str) -> None:
    with pytest.raises(ForeignError, match=sentence):
        load(look(path), 64)


def test_what_cannot_be_opened_says_why(tmp_path: Path, gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(tmp_path / "nowhere", "There is no folder “nowhere”")
    refused(tmp_path, r"no config\.json")
    (tmp_path / "config.json").write_text("[" * 100_000)
    refused(tmp_path, "cannot be read: it is nested too deeply")
    refused(spoiled(tmp_path, gpt2, auto_map={"AutoModel": "evil.Model"}), "brings code of its own")
    refused(spoiled(tmp_path, gpt2, architectures=[7]), "does not say which architecture")
    refused(spoiled(tmp_path, gpt2), "no weights")
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch hacked'\ntR.")
    refused(tmp_path, "a pickle, which may run any program")
    (tmp_path / "model.safetensors").write_bytes(b"no such thing")
    refused(tmp_path, r"model\.safetensors cannot be read")
    save_file({"wrong": torch.zeros(2, 3)}, tmp_path / "model.safetensors", {"format": "pt"})
    refused(spoiled(tmp_path, gpt2, architectures=["Pipeline"]), "does not know “Pipeline”")
    refused(spoiled(tmp_path, gpt2, n_embd="wide"), "transformers cannot load it")
    refused(spoiled(tmp_path, gpt2, n_layer=10**7), "says that it has more than 1000 layers")
    monkeypatch.setattr(folders, "free_memory", lambda: 1000)
    refused(gpt2, r"It would take 0\.0 GB of memory, and 0\.0 GB are free")
    monkeypatch.setattr(folders, "available", lambda: False)
    refused(gpt2, r'pip install "attention-lab\[hf\]"')


def test_nothing_is_made_up_where_a_folder_lacks_weights(tmp_path: Path, gpt2: Path) -> None:
    weights = load_file(gpt2 / "model.safetensors")
    del weights["transformer.h.1.attn.c_attn.weight"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    refused(
        spoiled(tmp_path, gpt2), r"^Its weights lack “transformer\.h\.1\.attn\.c_attn\.weight”: it would be made up"
    )


def test_a_config_that_describes_more_than_the_files_hold_is_refused_before_it_is_made(
    tmp_path: Path, gpt2: Path
) -> None:
    """Each size that the weights show, and of a table without weights what it would take."""
    shutil.copy(gpt2 / "model.safetensors", tmp_path)
    for config in ({"vocab_size": 10**9}, {"n_positions": 10**6}, {"n_inner": 10**6}, {"n_embd": 4}):
        refused(
            spoiled(tmp_path, gpt2, **config), r"^Its \S+ is [\d × ]+, and by its config\.json it would be [\d × ]+\.$"
        )
    refused(spoiled(tmp_path, gpt2, n_head=10**9), r"^It would take \d+\.\d GB of memory")
    turned = tmp_path / "turned"
    small = transformers.GPTJConfig(
        n_layer=1, n_head=4, n_embd=32, rotary_dim=4, vocab_size=50, bos_token_id=1, eos_token_id=2
    )
    transformers.GPTJModel(small).save_pretrained(turned)
    refused(spoiled(turned, turned, n_positions=10**10), r"^It would take \d+\.\d GB of memory")


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("GPT2LMHeadModel", {"n_layer": 999}),
        ("BertModel", {"num_hidden_layers": 999}),
        ("BartForConditionalGeneration", {"encoder_layers": 999}),
        ("BartForConditionalGeneration", {"decoder_layers": 999}),
        ("T5Model", {"num_decoder_layers": 999}),
    ],
)
def test_layers_that_the_weights_do_not_have_are_not_made(
    tmp_path: Path, kind: str, config: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the config calls them: of a thousand few are begun."""
    made = []
    hook = register_module_parameter_registration_hook(lambda *_: made.append(1))
    folder = spoiled(saved(kind, tmp_path / "model"), tmp_path / "model", **config)
    made.clear()
    refused(folder, r"^Its config\.json describes a larger model than its weights are of\.$")
    hook.remove()
    assert len(made) <= 2 * len(look(folder).shapes) + folders.SPARE + 1


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "merges.txt", "more/tokens"])
def test_what_is_no_file_is_named_and_not_waited_for(tmp_path: Path, gpt2: Path, name: str) -> None:
    """transformers opens many files by itself."""
    folder = shutil.copytree(gpt2, tmp_path / "gpt2")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with bounded():
        refused(folder, f"{Path(name).name}.* cannot be read: it is a named pipe, not a file")


def without(*names: str) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).unlink() for name in names]  # type: ignore[func-returns-value]


def with_file(name: str, content: bytes, *without: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        for other in without:
            (folder / other).unlink()
        (folder / name).write_bytes(content)

    return spoil


BOTH = ("tokenizer.json", "tokenizer_config.json")


@pytest.mark.parametrize(
    ("kind", "spoil", "why"),
    [
        ("GPT2LMHeadModel", without(*BOTH), "^It has no tokenizer, so"),
        ("BertModel", without("tokenizer.json"), "^The vocabulary of its tokenizer is not in the folder, so"),
        # transformers makes these up without a word, of their special tokens
        ("GPT2LMHeadModel", with_file("tokenizer_config.json", b'{"tokenizer_class": "GPT2Tokenizer"}', *BOTH),
         "^The vocabulary of its tokenizer is not in the folder, so"),
        ("BertModel", with_file("tokenizer_config.json", b'{"tokenizer_class": "BertTokenizer"}', *BOTH),
         "^The vocabulary of its tokenizer is not in the folder, so"),
        ("T5Model", with_file("spiece.model", b"\n\x05abcde", *BOTH),
         r"^Its tokenizer cannot be loaded: it needs the library sentencepiece, which is not installed \(pip install"),
        ("LlamaForCausalLM", with_file("tokenizer.model", b"IQ== 0\n", *BOTH),
         "^Its tokenizer cannot be loaded: it needs the library tiktoken, which is not installed"),
        ("BertModel", with_file("tokenizer.json", b"{"), "^Its tokenizer cannot be loaded: "),
    ],
)  # fmt: skip
def test_a_model_whose_tokenizer_cannot_be_had_is_given_numbers_and_says_why(
    kind: str, spoil: Callable[[Path], None], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders.importlib.util, "find_spec", lambda name: name == "transformers" or None)
    folder = saved(kind, tmp_path / "model")
    spoil(folder)
    one = load(look(folder))
    assert one.says == ("token pair" if kind == "T5Model" else "tokens")
    assert re.search(why, one.hint)
    assert one.hint.endswith(
        ", so it is given token numbers, as in 3 1 4. To type a text, save its tokenizer into the folder: "
        "tokenizer.save_pretrained(folder)."
    )
    assert capture(one.model, *one.given("3 1 4").args, **one.given("3 1 4").named).attentions()
    with pytest.raises(ForeignError, match=r"^“king” is no token number\. ") as refused:
        one.given("king")
    assert one.hint.startswith(str(refused.value).partition(". ")[2])


def test_a_tokenizer_without_a_file_of_words_is_one(tmp_path: Path) -> None:
    """It reads bytes, as ByT5 does."""
    folder = saved("LlamaForCausalLM", tmp_path, vocab_size=384)
    for name in BOTH:
        (folder / name).unlink()
    transformers.ByT5Tokenizer().save_pretrained(folder)
    one = load(look(folder))
    assert (one.says, one.hint) == ("text", "")
    assert one.given("ab").names[:2] == ("a", "b")


def test_a_broken_preparation_says_which(tmp_path: Path) -> None:
    picture = saved("ViTModel", tmp_path / "vit")
    (picture / "preprocessor_config.json").write_text("[]")
    refused(picture, r"^The preprocessor_config\.json cannot be read: it is no record\.$")


def test_a_second_copy_of_the_weights_does_not_count(tmp_path: Path, gpt2: Path) -> None:
    """Some publish theirs in two layouts side by side; transformers reads one."""
    folder = shutil.copytree(gpt2, tmp_path / "two")
    shutil.copy(folder / "model.safetensors", folder / "consolidated.safetensors")
    assert look(folder).parameters == look(gpt2).parameters


def test_a_model_in_several_files_is_one(tmp_path: Path, gpt2: Path) -> None:
    model = transformers.GPT2LMHeadModel.from_pretrained(gpt2)
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert look(tmp_path).parameters == look(gpt2).parameters
    assert load(look(tmp_path)).says == "tokens"  # no tokenizer lies beside it


def test_a_name_is_looked_for_in_the_local_cache(tmp_path: Path, gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache as huggingface_hub lays it out; nobody is asked."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    cache = tmp_path / "models--somebody--small"
    (cache / "snapshots").mkdir(parents=True)
    (cache / "snapshots" / "abc").symlink_to(gpt2)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("abc")
    found = look(located("somebody/small"))
    assert found.name == "somebody/small"
    assert found.parameters == look(gpt2).parameters
    assert located(str(gpt2)) == gpt2
    with pytest.raises(FolderError, match="neither a folder “somebody/else” nor"):
        located("somebody/else")


def test_the_memory_that_is_free_is_what_the_machine_says() -> None:
    said = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    assert 0 < folders.free_memory() <= 1.2 * 1024 * int(said.split()[1])


EVIL = "from pathlib import Path\nPath(__file__).with_name('hacked').touch()\nclass Evil: pass\n"


def test_nothing_in_a_folder_is_run_and_nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tokenizer that wants its own code, beside a model that does not; and no socket is opened on the way."""

    def forbidden(*given: object) -> None:
        raise AssertionError("a socket was opened")

    folder = saved("GPT2LMHeadModel", tmp_path / "evil")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    monkeypatch.setattr(socket.socket, "connect", forbidden)
    assert load(look(folder)).says == "text"
    wants = {"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | wants))
    (folder / "evil.py").write_text(EVIL)
    assert load(look(folder)).says == "text"
    assert not list(tmp_path.rglob("hacked"))


# --- what is no folder of a model

ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": "openai-community/gpt2", "task_type": "CAUSAL_LM"}
INDEX = {"_class_name": "StableDiffusionPipeline", "_diffusers_version": "0.30.0"}
TIMM = {"architecture": "vit_base_patch16_224", "pretrained_cfg": {}}
PICKLE = b"\x80\x02}q\x00."
CONTENTS: dict[str, tuple[dict[str, object], str]] = {
    "adapter": ({"adapter_config.json": ADAPTER, "adapter_model.safetensors": b""},
        r"is an adapter \(LORA\) of “openai-community/gpt2”, without that model’s own weights\. Merge the two"),
    "adapter beside a model": ({"adapter_config.json": ADAPTER, "config.json": {"architectures": ["GPT2Model"]}},
        r"is an adapter \(LORA\) of “openai-community/gpt2”"),
    "prompt": ({"adapter_config.json": ADAPTER | {"peft_type": "PREFIX_TUNING"}},
        r"is an adapter \(PREFIX_TUNING\) of .* cannot be saved as one model"),
    "adapter of nothing": ({"adapter_config.json": {"base_model_name_or_path": 7, "peft_type": "a b"}},
        "is an adapter of another model, without"),
    "pickle": ({"model.pt": PICKLE}, "is a folder that holds “model.pt”, a pickle, which may run any program"),
    "pickle by its bytes": ({"weights.bin": PICKLE}, "holds “weights.bin”, a pickle"),
    "weights of a model in a pickle": ({"config.json": {"architectures": ["GPT2Model"]}, "pytorch_model.bin": b"x"},
        "holds “pytorch_model.bin”, a pickle, which may run any program"),
    "TensorFlow": ({"config.json": {"architectures": ["GPT2Model"]}, "tf_model.h5": b"\x89HDF\r\n\x1a\n"},
        "holds “tf_model.h5”, weights in HDF5"),
    "flax": ({"flax_model.msgpack": b"x"}, "holds “flax_model.msgpack”, weights of Flax"),
    "gguf": ({"small.gguf": b"GGUF\x03"}, r"a model for llama.cpp \(GGUF\)"),
    "onnx": ({"model.onnx": b"x"}, "a graph of ONNX, which has no modules"),
    "bare": ({"adapter.safetensors": b"\x02\0\0\0\0\0\0\0{}"}, "weights alone, which do not say of which model"),
    "diffusers": ({"model_index.json": INDEX}, "is a pipeline of diffusers. No folder in it is a model of"),
    "diffusers with a model": ({"model_index.json": INDEX, "text_encoder/config.json": {"architectures": ["A"]},
        "text_encoder/model.safetensors": b"", "unet/config.json": INDEX, "unet/a.safetensors": b""},
        "is a pipeline of diffusers, .* The folder “text_encoder” in it is a model: type its path"),
    "part of diffusers": ({"config.json": INDEX}, "is a part of a pipeline of diffusers"),
    "sentences": ({"modules.json": [], "0_Transformer/config.json": {"architectures": ["BertModel"]},
        "0_Transformer/model.safetensors": b""}, "sentence-transformers.*“0_Transformer” in it is a model"),
    "trainer": ({f"checkpoint-{n}/{name}": content for n in (10, 20) for name, content in
        {"config.json": {"architectures": ["A"]}, "model.safetensors": b""}.items()},
        "These folders in it are models: “checkpoint-10” and “checkpoint-20”"),
    "timm": ({"config.json": TIMM, "model.safetensors": b""}, "is a model of timm .“vit_base_patch16_224”"),
    "open_clip": ({"open_clip_config.json": {}, "open_clip_model.safetensors": b""}, "is a model of open_clip"),
    "their own layout": ({"params.json": {}, "consolidated.00.pth": PICKLE}, "in its makers’ own layout"),
    "dataset": ({"dataset_info.json": {}, "state.json": {}, "data-0.arrow": b"ARROW1"}, "is a dataset. It has no"),
    "run": ({"run.json": {}, "state.json": {}}, "is a training of this program"),
    "tokenizer": ({"tokenizer.json": {}, "special_tokens_map.json": {}}, "is a tokenizer without a model. Save"),
    "old tokenizer": ({"vocab.json": {}, "merges.txt": b""}, "is a tokenizer without a model"),
    "preparation": ({"preprocessor_config.json": {}}, "is a preparation of inputs without a model"),
    "anything": ({"notes.txt": b"hello", "evil.bin": b"hello"}, r"no config\.json that can be read"),
}  # fmt: skip
"""Folders by their files, and what is said of each."""


def filled(folder: Path, files: dict[str, object]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


@pytest.mark.parametrize("what", CONTENTS)
def test_a_folder_of_something_else_says_what_it_is_and_what_to_do(what: str, tmp_path: Path) -> None:
    files, sentence = CONTENTS[what]
    with pytest.raises(FolderError, match=sentence) as refused:
        look(filled(tmp_path / "theirs", files))
    ast.parse(refused.value.code)
    assert str(tmp_path) not in f"{refused.value}{refused.value.code}"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("ckpt.pt", PICKLE, "^“ckpt.pt” is a pickle, which may run any program when it is read. A model of"),
        ("model.gguf", b"GGUF", "^“model.gguf” is a model for llama.cpp"),
        ("data.parquet", b"PAR1", "^“data.parquet” is a table of data. It has no model in it"),
        ("model.safetensors", b"\x02\0\0\0\0\0\0\0{}", "^“model.safetensors” is weights alone"),
        ("notes.txt", b"hello", "^“notes.txt” is a file. Type a folder.$"),
        ("empty.bin", b"", "^“empty.bin” is a file. Type a folder.$"),
    ],
)
def test_a_file_says_what_it_is_and_what_to_do(
    name: str, content: bytes, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    for typed in (name, str(tmp_path / name)):
        with pytest.raises(FolderError, match=sentence) as refused:
            look(located(typed))
        ast.parse(refused.value.code)


def test_a_file_of_a_models_folder_says_to_type_the_folder(gpt2: Path) -> None:
    with pytest.raises(FolderError, match=r"^“model\.safetensors” is a file of a model’s folder\. Type that folder"):
        look(gpt2 / "model.safetensors")


@pytest.mark.parametrize("typed", ["a" * 300, "/" + "b" * 300, "x\0y", "~nobody_of_that_name/x", "/proc/1/x"])
def test_what_is_no_path_is_a_sentence(typed: str) -> None:
    with pytest.raises(FolderError, match=r"^There is (no|neither a) folder “.{1,80}”"):
        look(located(typed))


def test_what_a_stranger_wrote_into_an_adapter_stays_a_text(tmp_path: Path) -> None:
    """The base model's name is repeated in a sentence and in code to type."""
    evil = 'x"); import os; os.system("rm -rf ~")\n#' + "y" * 500
    folder = filled(tmp_path / "evil", {"adapter_config.json": ADAPTER | {"base_model_name_or_path": evil}})
    with pytest.raises(FolderError) as refused:
        look(folder)
    called = [ast.unparse(each.func) for each in ast.walk(ast.parse(refused.value.code)) if isinstance(each, ast.Call)]
    assert len(called) == 4
    assert not any("system" in name for name in called)
    assert len(str(refused.value)) < 300


NANO = """
import torch
class GPTConfig:
    def __init__(self, **sizes):
        self.__dict__ |= sizes
class GPT(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, self.table = config, torch.nn.Embedding(config.vocab_size, config.n_embd)
    def forward(self, idx, targets=None):
        return self.table(idx), None
"""


def test_a_checkpoint_of_nanogpt_says_how_it_is_brought_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says to write is run, beside a model.py of that shape; the checkpoint is what its train.py saves."""
    from transformer.capturing.modules import built

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    table = torch.randn(6, 4)
    sizes = {"n_layer": 1, "n_head": 1, "n_embd": 4, "block_size": 8, "vocab_size": 6, "bias": False, "dropout": 0.0}
    saved = {
        "model": {"_orig_mod.table.weight": table},
        "optimizer": torch.optim.AdamW([torch.nn.Parameter(table)]).state_dict(),
        "model_args": sizes,
        "iter_num": 7,
        "best_val_loss": torch.tensor(1.5),
        "config": {"dataset": "shakespeare_char"},
    }
    torch.save(saved, tmp_path / "ckpt.pt")
    for typed in ("ckpt.pt", str(tmp_path)):
        with pytest.raises(FolderError, match=r"a checkpoint of nanoGPT in a pickle.* run --module my_model:build"):
            look(located(typed))
    with pytest.raises(FolderError) as refused:
        look(located("ckpt.pt"))
    guide = ROOT / "docs" / "guide" / "your-model.md"
    assert refused.value.code.partition("\n")[2] in guide.read_text(encoding="utf-8")
    (tmp_path / "model.py").write_text(NANO)
    (tmp_path / "my_model.py").write_text(refused.value.code)
    try:
        torch.testing.assert_close(built("my_model:build").model.table.weight.data, table)
    finally:
        for name in ("model", "my_model"):
            sys.modules.pop(name, None)
