"""A folder of a Hugging Face model is looked at before it is loaded; what cannot be opened says why in one sentence."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.nn.modules.module import register_module_parameter_registration_hook

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
    (tmp_path / "adapter_config.json").write_text("{}")
    refused(spoiled(tmp_path, gpt2), "has an adapter of another model")
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


def test_a_broken_tokenizer_or_preparation_says_which(tmp_path: Path) -> None:
    text = saved("BertModel", tmp_path / "bert")
    (text / "tokenizer.json").write_text("{")
    refused(text, "^transformers cannot load its tokenizer: ")
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
