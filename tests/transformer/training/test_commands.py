"""The command line can do what the dashboard can, tells the truth, and answers bad input with one line."""

import dataclasses
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.kit import texts
from tests.kit.waiting import PATIENCE
from transformer import checkpoints, masks
from transformer.__main__ import main
from transformer.analysis.accuracy.by_position import EVALUATION_STREAM
from transformer.analysis.film.film import Film
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.foundation.program import program
from transformer.model import build
from transformer.positions import ENCODINGS
from transformer.tasks import TASKS
from transformer.training.recording import record
from transformer.training.runs import Run

ROOT = Path(__file__).parents[3]
CONFIG = RunConfig(
    task=TaskConfig(length=3),
    model=ModelConfig(n_layers=1, n_heads=2, d_model=16, d_ff=0),
    training=TrainingConfig(max_steps=7, device="cpu"),
)


def typed(config: RunConfig, **others) -> list[str]:
    """The options that say a run, as a person would type them: only what is not the default."""
    chosen = {}
    for part in (config.task, config.model, config.training):
        for field in dataclasses.fields(part):
            if getattr(part, field.name) != field.default:
                chosen[option(field.name)] = getattr(part, field.name)
    chosen |= {option(name): value for name, value in others.items()}
    return [word for name, value in chosen.items() for word in (name, str(value))]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Run:
    run = Run.create(tmp_path_factory.mktemp("trained") / "a-run", CONFIG)
    list(record(run))
    return run


def contents(folder: Path = Path()) -> dict[Path, bytes]:
    """Every file below a folder; a lock is none."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}


def fields():
    return [field for part in (TaskConfig, ModelConfig, TrainingConfig) for field in dataclasses.fields(part)]


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# --- train


@pytest.mark.nightly
def test_training_in_a_process_of_its_own_leaves_a_run_that_can_be_measured(tmp_path, capsys):
    """The whole way, as a person goes it."""
    command = [sys.executable, "-m", "transformer", "train", *typed(CONFIG), "--seed", "0", "--out", "my-run"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "into my-run" in done.stderr
    run = Run(tmp_path / "my-run")
    assert done.stdout == f"{run.state.reason}\n{run.evaluation['verdict']}\n"
    assert run.state.status == "finished"
    assert run.state.step == 7
    assert run.config == CONFIG
    assert list(run.snapshots()) == list(range(8))
    assert Film.load(run.folder / "film.npz").snapshot == run.digest()
    assert set(os.listdir(tmp_path)) == {"my-run"}

    assert main(["evaluate", "my-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) | {"snapshot": run.digest()} == run.evaluation
    assert main(["list", "."]) == 0
    assert capsys.readouterr().out.startswith("my-run ")


def test_the_same_seed_makes_the_same_weights_and_another_one_others(trained, capsys):
    for seed, name in ((0, "again"), (1, "other")):
        assert main(["train", *typed(CONFIG, seed=seed, out=name)]) == 0
    capsys.readouterr()
    weights = Run(Path("again")).evaluation["weights"]
    assert weights == trained.evaluation["weights"]
    assert weights != Run(Path("other")).evaluation["weights"]


def test_every_setting_reaches_the_run(capsys):
    """Every field of the records has its option, and what is typed is what the card says."""
    chosen = {
        "task": "sort",
        "length": 3,
        "min_length": 2,
        "symbols": 5,
        "architecture": "encoder",
        "n_layers": 1,
        "n_heads": 2,
        "d_model": 8,
        "d_ff": 4,
        "positions": "rotary",
        "mask": "sliding-window:3",
        "norm": "post",
        "norm_kind": "rms",
        "dropout": 0.25,
        "scale_embeddings": False,
        "residual": False,
        "query_key_gain": 0.5,
        "seed": 7,
        "device": "cpu",
        "max_steps": 2,
        "batch_size": 3,
        "learning_rate": 0.003,
        "warmup_steps": 4,
        "decay_after": 5,
        "weight_decay": 0.1,
        "clip": 0.0,
        "prompt_weight": 0.5,
        "evaluate_every": 1,
        "solved_at": 2.0,
        "tied": True,
        "decay": "linear",
        "precision": "bfloat16",
    }
    of_a_text = {"text": texts.key(), "split": "characters", "min_count": 3}
    of_a_gru = {"attention": "additive", "affine": False, "teacher_forcing": 0.25}
    means_nothing_to_it = {"positions", "n_heads", "d_ff", "mask", "norm", "norm_kind", "dropout", "query_key_gain"}
    means_nothing_to_it |= {"scale_embeddings", "residual", "tied"}
    kept = chosen | {"task": "reverse-translate", "architecture": "gru"} | of_a_gru
    read = {name: value for name, value in chosen.items() if name not in ("min_length", "symbols")}
    read |= {"task": "text", "architecture": "decoder"} | of_a_text
    defaults = {field.name: field.default for field in fields()}
    assert set(kept) | set(read) == set(defaults)
    for name, settings in (("all", chosen), ("gru", kept), ("text", read)):
        arguments = []
        for field, value in settings.items():
            assert value != defaults[field]
            flag = {True: [option(field)], False: [option(f"no_{field}")]}
            arguments += flag[value] if isinstance(value, bool) else [option(field), str(value)]
        assert main(["train", *arguments, "--out", name]) == 0
        config = Run(Path(name)).config.to_dict()
        written = {**config["task"], **config["model"], **config["training"]}
        unused = {
            "all": {*of_a_gru, *of_a_text},
            "gru": {*means_nothing_to_it, *of_a_text},
            "text": {*of_a_gru, "min_length", "symbols"},
        }[name]
        assert {field: written[field] for field in written if field not in unused} == {
            field: value for field, value in settings.items() if field not in unused
        }


def test_a_run_without_a_name_goes_among_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.__main__.ROOT", tmp_path / "root")
    assert main(["train", *typed(CONFIG, max_steps=1)]) == 0
    assert os.listdir(tmp_path / "root") == ["reverse-3-1x2-learned-1"]
    assert os.listdir(tmp_path) == ["root"]


def test_a_training_that_fails_says_why_and_fails(capsys):
    """Rate 10 without LayerNorm: the loss is soon no number."""
    arguments = typed(RunConfig(), device="cpu", norm="none", learning_rate=10, out="burnt")
    assert main(["train", *arguments]) == 1
    said = capsys.readouterr()
    sentence = r"the loss is no longer a number at step \d+, learning rate 10( \(.*\))?: try a smaller rate"
    assert re.fullmatch(f"error: {sentence}", said.err.splitlines()[-1])
    assert said.out == ""
    assert Run(Path("burnt")).state.status == "failed"
    assert re.fullmatch(sentence, Run(Path("burnt")).state.reason)


def test_interrupted_it_stops_and_says_so(monkeypatch, capsys):
    def interrupted(*_):
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr("transformer.training.recording.record", interrupted)
    assert main(["train", *typed(CONFIG, out="cut-short")]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "stopped"


# --- resume


def test_a_training_that_was_cut_off_is_taken_up_by_name_and_on_the_device_that_is_named(trained, capsys):
    """It ends with the weights of the one that nobody cut off, under the same name, in the same folder."""
    run = Run.create(Path("cut-off"), CONFIG)
    steps = record(run)
    for _ in range(3):
        next(steps)
    steps.close()
    left = run.state
    assert main(["resume", "cut-off", "--device", "toaster"]) == 2
    assert capsys.readouterr().err == "error: device must be auto, cpu, cuda, cuda:N or mps, not 'toaster'\n"
    assert run.state == left
    assert main(["resume", "cut-off", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.startswith("all 7 steps taken")
    assert run.evaluation["weights"] == trained.evaluation["weights"]
    assert [line["step"] for line in run.metrics()] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("name", "words"),
    [("whole", "the run whole cannot go on: it is finished"), ("nowhere", "there is no run nowhere, neither")],
)
def test_what_cannot_go_on_is_refused(name, words, trained, capsys):
    if name == "whole":
        shutil.copytree(trained.folder, name)
    before = contents()
    assert main(["resume", name]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert words in said
    assert contents() == before


# --- evaluate


def recount(model, config, sequences):
    """Accuracy by position, counted anew: the stream is the seed after the run's, and the evaluation's own."""
    task = config.build_task()
    rng = np.random.default_rng([config.training.seed + 1, EVALUATION_STREAM])
    questions = rng.integers(0, task.symbols, (sequences, task.length))
    separators = np.full((sequences, 1), task.symbols)
    whole = torch.from_numpy(np.concatenate([questions, separators, questions[:, ::-1]], axis=1))
    with torch.no_grad():
        said = model(whole[:, :-1]).argmax(dim=-1)
    return (said == whole[:, 1:]).double().mean(dim=0).tolist()


def test_the_json_is_what_another_count_finds_and_the_table_says_the_same(trained, capsys):
    command = ["evaluate", str(trained.folder), "--sequences", "700", "--device", "cpu"]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    model, config = checkpoints.load(trained.snapshot())
    assert found["accuracy_by_position"] == pytest.approx(recount(model, config, 700), abs=1e-12)
    assert found["positions"] == ["x2", "x3", "SEP", "y1", "y2", "y3"]
    assert (found["sequences"], found["chance"]) == (700, 0.1)
    assert found["second_half"] == pytest.approx(np.mean(found["accuracy_by_position"][3:]))
    assert found["first_half"] == pytest.approx(np.mean(found["accuracy_by_position"][:2]))
    assert found["verdict"].endswith(": not yet at the ceiling")
    assert found["ceiling"] == pytest.approx([0.1, 0.1, 1, 1, 1, 1])
    assert found["weights"] == checkpoints.weights_hash(model)

    assert main(command) == 0
    _, *rows, most, exact, verdict = capsys.readouterr().out.splitlines()
    assert most.endswith("chance 0.100")
    assert verdict == found["verdict"]
    assert exact == f"exact match {found['exact_match']:.3f}, 700 sequences, 95 % intervals"
    columns = ("positions", "accuracy_by_position", "low", "high", "ceiling")
    for row, (name, share, low, high, most) in zip(rows, zip(*map(found.get, columns), strict=True), strict=True):
        assert 0 <= low <= share <= high <= 1
        assert row.split("█")[0].strip() == f"{name}  {share:.3f}  ({low:.3f} to {high:.3f})  {most:.3f}"
        assert row.count("█") == round(40 * share)


def test_a_shipped_run_by_its_name_is_what_another_count_finds(capsys):
    assert main(["evaluate", "reverse", "--json", "--sequences", "300"]) == 0
    found = json.loads(capsys.readouterr().out)
    model, config = checkpoints.load(Run(ROOT / "checkpoints" / "reverse").snapshot())
    assert found["accuracy_by_position"] == pytest.approx(recount(model, config, 300), abs=1e-12)
    assert found["accuracy_by_position"][8:] == [1.0] * 8
    assert found["verdict"].endswith("= chance: the mask holds")


def test_a_folder_its_name_and_its_file_are_the_same_run(trained, monkeypatch, capsys):
    monkeypatch.setattr("transformer.training.runs.ROOT", trained.folder.parent)
    said = set()
    for run in (trained.name, str(trained.folder), str(trained.snapshot())):
        assert main(["evaluate", run, "--json", "--sequences", "50"]) == 0
        said.add(capsys.readouterr().out)
    assert len(said) == 1
    assert main(["evaluate", str(trained.snapshot(0)), "--json", "--sequences", "50"]) == 0
    assert capsys.readouterr().out not in said


def test_weights_that_are_no_numbers_are_refused_and_not_measured(tmp_path, capsys):
    config = RunConfig(model=ModelConfig(n_layers=1, n_heads=1, d_model=8, d_ff=0))
    model = build(config)
    with torch.no_grad():
        model.unembedding.weight[3, 2] = math.nan
    checkpoints.save(tmp_path / "broken.safetensors", model, config)
    assert main(["evaluate", str(tmp_path / "broken.safetensors")]) == 1
    out, error = capsys.readouterr()
    assert not out
    assert re.fullmatch(
        r"error: its weights are not all numbers \(NaN or infinity in 1 of \d+ tensors, first in unembedding.weight\): "
        r"what it says is no answer\n",
        error,
    )


# --- list


def test_the_list_says_where_each_run_stands(trained, tmp_path, capsys):
    shutil.copytree(trained.folder, tmp_path / "runs" / "done")
    Run.create(tmp_path / "runs" / "waiting", CONFIG)
    for name in ("no-run", "torn"):
        (tmp_path / "runs" / name).mkdir()
    (tmp_path / "runs" / "torn" / "run.json").write_text("{")
    assert main(["list", "runs"]) == 0
    said = capsys.readouterr()
    assert re.fullmatch(r"left out: .*torn.*\n", said.err)
    share = trained.evaluation["second_half"]
    shape = "reverse 3, decoder, 1 × 2 heads, learned, mask causal"
    assert [" ".join(line.split()) for line in said.out.splitlines()] == [
        f"done {shape}; step 7, second half {share:.3f}, finished",
        f"waiting {shape}; step 0, second half –, queued",
    ]


def test_the_list_of_the_shipped_runs(capsys):
    assert main(["list"]) == 0
    named = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert named >= {"reverse", "reverse-sinusoidal", "reverse-aligned", "reverse-aligned-causal", "reverse-translate"}


def test_a_folder_without_runs_says_what_to_do(tmp_path, capsys):
    assert main(["list", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"no runs in {tmp_path}: make one with `{program()} train`\n"


# --- help


def test_help_names_every_setting_and_every_plug_in(capsys):
    """The options are made from the records: a new field is there without anybody's doing."""
    assert main(["train", "--help"]) == 0
    said = capsys.readouterr().out
    for field in fields():
        assert re.search(rf"{option(field.name)}\b", said), field.name
    for name in (*TASKS.names(), *ENCODINGS.names(), *masks.MASKS.names()):
        assert name in said, name


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["evaluate", "--help"], ["list", "--help"]])
def test_help_is_no_error(arguments, capsys):
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert f"Usage: {program()}" in said.out
    if len(arguments) < 2:
        assert all(f" {command} " in said.out for command in ("train", "evaluate", "list"))


def test_the_version_is_the_packages(capsys):
    import transformer

    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == transformer.__version__


IN_ITS_OWN_PROCESS = """
import sys
from transformer.__main__ import main
print(main(["train", "--help"]), "torch" in sys.modules, file=sys.stderr)
print(main(["list"]), file=sys.stderr)
sys.exit(main(["train", "--task", "knit", "--out", "out"]))
"""


def test_a_process_of_its_own_helps_without_pytorch_looks_where_the_dashboard_does_and_refuses_in_one_line(tmp_path):
    """`ATTENTION_LAB_RUNS` names one folder for both; the exit code is the process's, not only the function's."""
    environment = os.environ | {"ATTENTION_LAB_RUNS": str(tmp_path / "runs"), "PYTHONPATH": str(ROOT)}
    (tmp_path / "runs").mkdir()
    program = [sys.executable, "-c", IN_ITS_OWN_PROCESS]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=PATIENCE)
    assert done.returncode == 2
    helped, listed, refused = done.stderr.splitlines()
    assert helped == "0 False"
    assert listed == "0"
    assert f"no runs in {tmp_path / 'runs'}" in done.stdout
    assert refused.startswith("error: no task named 'knit'")
    assert os.listdir(tmp_path) == ["runs"]


# --- bad input

OUT = ["--out", "out"]
BELOW = "at that path nor below "
BAD = [
    (["knit"], 'Unknown command "knit"'),
    (["train", "--task", "knit", *OUT], ", ".join(sorted({*TASKS.names(), "text"}))),
    (["train", "--lenght", "3", *OUT], "Did you mean --length?"),
    (["train", "--length", "eight", *OUT], "--length"),
    (["train", "--length", "2.5", *OUT], "--length must be a whole number, not 2.5"),
    (["train", "--d-model", "63", *OUT], "d_model (63) must be divisible by n_heads (4)"),
    (["train", "--mask", "prefix:x", *OUT], "must be a whole number from 0 to 9999"),
    (["train", "--learning-rate", "nan", *OUT], "learning_rate must be above 0 and at most 10, not nan"),
    (["train", "--scale-embeddings", "maybe", *OUT], "maybe"),
    (["train", "--device", "toaster", *OUT], "device must be auto, cpu, cuda, cuda:N or mps, not 'toaster'"),
    (["train", "--device", "cuda:63", *OUT], "there is no cuda:63 here: auto would use "),
    (["train", "--device", "", *OUT], "--device must not be empty"),
    (["train", "--out", ""], "--out must not be empty"),
    (["train", "--out", "a-file/run"], "the folder run cannot be made: Not a directory"),
    (["train", "--out", "x" * 300], "File name too long"),
    (["train", "--out", "nul\0"], "null"),
    (["train", "out"], "out"),
    (["train", "--out"], "--out"),
    (["evaluate"], "requires an argument"),
    (["evaluate", ""], "--run must not be empty"),
    *(([verb, "nowhere"], f"there is no run nowhere, neither {BELOW}") for verb in ("evaluate", "resume", "generate")),
    *(([verb, "a-folder"], "a-folder is not a run: it has no") for verb in ("evaluate", "resume", "generate")),
    (["evaluate", "x" * 300], "File name too long"),
    (["evaluate", "nul\0"], "there is no run nul"),
    (["evaluate", "a-run", "--sequences", "0"], "sequences must be between 1 and 1000000, not 0"),
    (["evaluate", "a-run", "--sequences", "many"], "--sequences"),
    (["evaluate", "a-run", "--sequences", "10.5"], "--sequences must be a whole number, not 10.5"),
    (["evaluate", "a-run", "--device", "cuda:63"], "there is no cuda:63 here"),
    (["evaluate", "picture.jpg"], "picture.jpg is not a checkpoint but a JPEG picture; nothing in it was executed"),
    (["evaluate", "pickle.pt"], "pickle.pt is not a checkpoint but a pickle, which could run code when opened"),
    (["evaluate", "zip.pt"], "zip.pt is not a checkpoint but a zip archive such as torch.save writes"),
    (["evaluate", "cut.safetensors"], "cut.safetensors is not a whole safetensors file"),
    (["evaluate", "a-file"], "a-file is not a whole safetensors file"),
    (["list", "nowhere"], "there is no folder nowhere"),
    (["list", "a-file"], "there is no folder a-file"),
    (["list", "a-folder", "b-folder"], "b-folder"),
]


@pytest.fixture(scope="module")
def clutter(tmp_path_factory, trained) -> Path:
    """What may lie about in a folder, and must be refused."""
    folder = tmp_path_factory.mktemp("clutter")
    (folder / "a-file").touch()
    (folder / "a-folder").mkdir()
    (folder / "picture.jpg").write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(500))
    torch.save({"weight": torch.zeros(3)}, folder / "zip.pt")
    torch.save({"weight": torch.zeros(3)}, folder / "pickle.pt", _use_new_zipfile_serialization=False)
    (folder / "cut.safetensors").write_bytes(trained.snapshot().read_bytes()[:-100])
    return folder


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[" ".join(a)[:60].replace("\0", "0") for a, _ in BAD])
def test_bad_input_is_one_line_and_leaves_nothing(arguments, sentence, clutter, trained, monkeypatch, capsys):
    monkeypatch.chdir(clutter)
    monkeypatch.setattr("transformer.__main__.ROOT", trained.folder.parent)
    monkeypatch.setattr("transformer.training.runs.ROOT", trained.folder.parent)
    before = [sorted(folder.rglob("*")) for folder in (clutter, trained.folder.parent)]
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"error: [^\n]+\n", said.err)
    assert sentence in said.err
    assert [sorted(folder.rglob("*")) for folder in (clutter, trained.folder.parent)] == before


def test_a_run_is_not_overwritten(trained, capsys):
    before = contents(trained.folder)
    assert main(["train", *typed(CONFIG, seed=3, out=trained.folder)]) == 2
    assert re.fullmatch(r"error: there is a run in \S+ already: [^\n]+\n", capsys.readouterr().err)
    assert contents(trained.folder) == before
