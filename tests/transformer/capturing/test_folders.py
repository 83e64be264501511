"""A folder of a Hugging Face model is looked at before it is loaded; what cannot be opened says why in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from transformer import capture
from transformer.capturing import folders
from transformer.capturing.folders import FolderError, load, located, look

TEXT = ["The king is dead, long live the king!", "Who is there? Nay, answer me: stand and unfold yourself."]
SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16, "bos_token_id": 0, "eos_token_id": 0}


def byte_level(folder: Path) -> int:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(folder)
    return tokenizer.get_vocab_size()


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpt2")
    size = byte_level(folder)
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=size, **SMALL)).save_pretrained(folder)
    return folder


def test_a_folder_says_what_it_holds_before_it_is_loaded(gpt2: Path) -> None:
    found = look(gpt2)
    model = transformers.GPT2LMHeadModel.from_pretrained(gpt2)
    assert found.kind == "GPT2LMHeadModel"
    assert found.parameters == sum(each.numel() for each in model.parameters())  # its unembedding is its embedding
    assert found.needed(100) - found.bytes == 4 * 4 * 2 * 2 * 100**2


def test_a_text_is_read_in_its_own_tokens(gpt2: Path) -> None:
    foreign = load(look(gpt2), 64)
    text = "The king is dead – long live the king!"
    tokens, faces = foreign.read(text)
    assert len(faces) == tokens.shape[1]
    assert "".join(faces).startswith("The king is dead ")
    assert " king" in faces  # and no Ġking
    with torch.no_grad():
        expected = foreign.model(tokens).logits
    seen = capture(foreign.model, tokens)
    torch.testing.assert_close(seen.output.logits, expected)
    assert seen["transformer.h.1.attn.pattern"].shape == (1, 2, len(faces), len(faces))
    with pytest.raises(FolderError, match="no token"):
        foreign.read("")


def test_pieces_of_words_are_joined_by_their_signs(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "stand": 1, "##ing": 2, "[SEP]": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(tmp_path)
    config = transformers.BertConfig(
        vocab_size=4, hidden_size=16, num_attention_heads=2, num_hidden_layers=1, intermediate_size=16
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    _, faces = load(look(tmp_path), 8).read("standing there")
    assert faces == ["stand", "##ing", "[UNK]"]


def spoiled(folder: Path, gpt2: Path, **config: object) -> Path:
    told = json.loads((gpt2 / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps(told))
    return folder


def test_what_cannot_be_opened_says_why(tmp_path: Path, gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, sentence: str) -> None:
        with pytest.raises(FolderError, match=sentence):
            load(look(path), 64)

    refused(tmp_path / "nowhere", "There is no folder “nowhere”")
    refused(tmp_path, "no config.json")
    (tmp_path / "config.json").write_text("[" * 100_000)
    refused(tmp_path, "cannot be read: it is nested too deeply")
    refused(spoiled(tmp_path, gpt2, auto_map={"AutoModel": "evil.Model"}), "brings code of its own")
    refused(spoiled(tmp_path, gpt2, architectures=[7]), "does not say which architecture")
    refused(spoiled(tmp_path, gpt2), "no weights")
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch hacked'\ntR.")
    refused(tmp_path, "a pickle, which may run any program")
    (tmp_path / "model.safetensors").write_bytes(b"no such thing")
    refused(tmp_path, "model.safetensors cannot be read")
    save_file({"wrong": torch.zeros(2, 3)}, tmp_path / "model.safetensors", {"format": "pt"})
    refused(spoiled(tmp_path, gpt2, architectures=["Pipeline"]), "does not know “Pipeline”")
    refused(spoiled(tmp_path, gpt2, n_embd="wide"), "transformers cannot load it")
    monkeypatch.setattr(folders, "free_memory", lambda: 1000)
    refused(gpt2, r"It would take 0.0 GB of memory, and 0.0 GB are free")
    monkeypatch.setattr(folders, "available", lambda: False)
    refused(gpt2, r'pip install "attention-lab\[hf\]"')


def test_a_name_is_looked_for_in_the_local_cache(tmp_path: Path, gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache as huggingface_hub lays it out; nobody is asked."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    cache = tmp_path / "models--somebody--small"
    (cache / "snapshots").mkdir(parents=True)
    (cache / "snapshots" / "abc").symlink_to(gpt2)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("abc")
    assert look(located("somebody/small")).parameters == look(gpt2).parameters
    assert located(str(gpt2)) == gpt2
    with pytest.raises(FolderError, match="neither a folder “somebody/else” nor"):
        located("somebody/else")


def test_the_memory_that_is_free_is_what_the_machine_says() -> None:
    said = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    assert 0 < folders.free_memory() <= 1.2 * 1024 * int(said.split()[1])
