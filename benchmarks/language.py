"""How well a run reads, beside counting: `python benchmarks/language.py [--run checkpoints/shakespeare] [--save]`.

Perplexity per token of a trained run, of a unigram and of models with Kneser-Ney smoothing (KenLM) of order 3 to 10, on
the same tokens, the same split into works and the same vocabulary; the unknown token counts as a token. The run
reads windows that do not overlap, and begins each without context; the n-gram models read on through each work,
and count where the run does. --save writes LANGUAGE.md, --card writes them into the run's evaluation.json. --quick
reads a few windows only.
Needs what benchmarks/requirements.txt says.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from kit.ngrams import estimate, nats
from kit.pages import give_up, options, page, table

from transformer import checkpoints
from transformer.analysis.accuracy.reading import reading
from transformer.config import RunConfig
from transformer.text import shelf
from transformer.text.corpus import Corpus, TextError
from transformer.text.perplexity import COUNTING
from transformer.training.runs import DEFAULT_ROOT, Run, RunError

PAGE = "LANGUAGE.md"
FEW = 4
"""Windows that are read where it is only tried out."""


def whole_windows(work: np.ndarray, length: int) -> np.ndarray:
    """A work without its last, incomplete window."""
    return work[: len(work) // length * length]


def perplexity(costs: Sequence[np.ndarray]) -> float:
    """The exponential of the mean, in nats, over all tokens of all works."""
    return math.exp(np.concatenate(costs).mean())


def unigram(corpus: Corpus, work: np.ndarray) -> np.ndarray:
    """What each token costs somebody who knows only how often it stands in the works that are learned from."""
    counts = np.array(corpus.vocabulary.counts, dtype=np.float64)
    return -np.log(counts[work] / counts.sum())


def by_counting(corpus: Corpus, length: int, program: str) -> dict[str, float]:
    """Perplexity of each model that counts, over all whole windows of what is held out."""
    found = {"unigram": perplexity([unigram(corpus, whole_windows(work, length)) for work in corpus.held_out])}
    for name, order in list(COUNTING.items())[1:]:
        with tempfile.TemporaryDirectory() as folder:
            model = estimate(corpus.train, order, program, Path(folder))
            found[name] = perplexity([whole_windows(nats(model, work), length) for work in corpus.held_out])
            print(f"{name}: {found[name]:.2f}", file=sys.stderr, flush=True)
    return found


def by_reading(run: Run, config: RunConfig, corpus: Corpus, few: bool) -> float:
    """The run's perplexity over the very tokens that the n-gram models are asked for; of the first windows, if few."""
    asked = np.concatenate([whole_windows(work, config.task.length) for work in corpus.held_out])
    batch = config.build_task().held_out()
    if few:
        batch = batch.part(slice(FEW))
    assert np.array_equal(batch.targets.ravel(), asked), "the run and the n-gram models would read different tokens"
    model, _ = checkpoints.load(run.snapshot())
    return reading(model, batch).perplexity


def trained(run: Run, config: RunConfig) -> str:
    """How its last weights came to be, in a sentence, from the run's own folder."""
    steps, settings = max(run.snapshots()), config.training
    seconds = next((line["seconds"] for line in run.metrics() if line["step"] == steps), None)
    if not seconds:
        return "How long its training took is not in the folder."
    rate = steps * settings.batch_size * config.task.length / seconds
    device = run.card.get("device", "an unknown device")
    return (
        f"It took {steps:,} steps of {settings.batch_size} × {config.task.length} tokens in {settings.precision}, "
        f"{seconds / 60:.0f} minutes on {device}, {rate:,.0f} tokens a second, measurements included."
    )


def parsed() -> argparse.Namespace:
    parser = options(__doc__, PAGE)
    parser.add_argument("--run", type=Path, default=DEFAULT_ROOT / "shakespeare", help="the run's folder")
    parser.add_argument("--text", help="its text: a name, a key or a file; left out, the one its config names")
    parser.add_argument("--lmplz", default=shutil.which("lmplz"), help="KenLM's program; left out, the one in PATH")
    parser.add_argument("--card", action="store_true", help="write them into the run's evaluation.json")
    arguments = parser.parse_args()
    if not arguments.lmplz or shutil.which(arguments.lmplz) is None:
        give_up("KenLM's lmplz is not there: benchmarks/requirements.txt says how to make it")
    return arguments


def main() -> None:
    arguments = parsed()
    try:
        run = Run(arguments.run)
        config = run.config
        key = shelf.resolve(arguments.text or config.task.text)
        if key != config.task.text:
            raise TextError(f"{run.name} has read {config.task.text}, and this text is {key}")
        corpus = shelf.corpus(key, config.task.split, config.task.min_count)
        if arguments.quick:
            few = (corpus.held_out[0][: FEW * config.task.length],)
            corpus = replace(corpus, held_out=few, titles=corpus.titles[:1])
    except RunError as error:
        sys.exit(f"error: {error}")
    except TextError as error:
        give_up(f"error: {error}")
    torch.set_num_threads(1)
    length = config.task.length
    found = by_counting(corpus, length, arguments.lmplz) | {"run": by_reading(run, config, corpus, arguments.quick)}
    read = sum(len(whole_windows(work, length)) for work in corpus.held_out)
    left = sum(map(len, corpus.held_out)) - read
    with page(PAGE, "Reading, beside counting", save=arguments.save):
        report(run, config, corpus, found, (read, left))
    if arguments.card and not arguments.quick:
        library = f"KenLM {version('kenlm')}, modified Kneser-Ney smoothing"
        card = {name: value for name, value in found.items() if name != "run"}
        card |= {"tokens": read, "snapshot": run.digest(), "library": library}
        run.set_evaluation((run.evaluation or {}) | {"baselines": card})


def report(run: Run, config: RunConfig, corpus: Corpus, found: dict[str, float], tokens: tuple[int, int]) -> None:
    """The page of numbers, in Markdown."""
    read, left = tokens
    learned = sum(map(len, corpus.train))
    unknown = np.mean(np.concatenate(corpus.held_out) == corpus.vocabulary.unknown)
    print(
        f"{date.today()}: {config.task.text}, cut into {config.task.split}; {len(corpus.train)} works with "
        f"{learned:,} tokens to learn from, {len(corpus.held_out)} held out ({', '.join(corpus.titles)}). "
        f"{len(corpus.vocabulary.tokens):,} tokens occur {config.task.min_count} times and are known; of what is held "
        f"out {unknown:.1%} is unknown, which counts as a token. Perplexity per token over {read:,} tokens, every one "
        f"counted once; {left:,} in the last, incomplete windows of {config.task.length} tokens are left out for all."
    )
    smoothed = f"modified Kneser-Ney, KenLM {version('kenlm')}"
    shape, parameters = config.model.shape, sum(w.numel() for w in checkpoints.load(run.snapshot())[0].parameters())
    rows = {
        **dict.fromkeys(COUNTING, f"{smoothed}; reads on through each work"),
        "unigram": "how common each token is",
        "run": f"{run.name}: {shape}, {parameters / 1e6:.2f} million weights; begins each window anew",
    }
    table("", "what it is", "perplexity", "nats a token")
    for name, words in rows.items():
        print(f"| {name} | {words} | {found[name]:.2f} | {math.log(found[name]):.3f} |")
    print(f"\n{trained(run, config)}")


if __name__ == "__main__":
    main()
