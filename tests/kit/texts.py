"""A small text for the tests, with works, rhymes and repetitions; it is made up here."""

from functools import cache
from pathlib import Path

from tests.kit.runs import untrained as untrained
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.text import shelf
from transformer.training.runs import Run

LINES = (
    "To see, to touch, to know the way of words,",
    "The crow that calls is answered by the birds;",
    "And what was said before is said again:",
    "The rain that falls is answered by the rain.",
    "KING.  Who looks at whom?  QUEEN.  The last looks at the first;",
    "Of all that may be seen, the next is worst.",
)


def play(title: str, scenes: int) -> str:
    """One work, in the form of the old editions."""
    scene = "\n\n".join("\n".join("  " + LINES[(line + turn) % len(LINES)] for line in range(5)) for turn in range(6))
    body = "\n\n\n".join(f"ACT {number + 1}\n\n{scene}" for number in range(scenes))
    return f"  {title}\n\n\n  DRAMATIS PERSONAE\n\n\nKING:\n\nQUEEN:\n\n\n{body}\n\n\n"


TEXT = play("THE FIRST PLAY", 4) + play("THE SECOND PLAY", 3) + play("THE THIRD PLAY", 4)


@cache
def key() -> str:
    """The text's key; it is on the shelf, in the cache of this test run."""
    return shelf.put("plays.txt", TEXT.encode())


def config(**model: object) -> RunConfig:
    """A small reader of it: two layers, four heads, windows of 32 tokens."""
    shape = {"n_layers": 2, "n_heads": 4, "d_model": 32, "d_ff": 64, "positions": "rotary", "tied": True} | model
    return RunConfig(
        task=TaskConfig(task="text", text=key(), length=32, min_count=2),
        model=ModelConfig(**shape),
        training=TrainingConfig(
            device="cpu",
            max_steps=60,
            batch_size=8,
            learning_rate=1e-2,
            evaluate_every=20,
            decay="linear",
            decay_after=1,
        ),
    )


def trained(folder: Path, found: RunConfig) -> Run:
    """A run of it, trained here and now: a second or two."""
    from transformer.training.recording import record

    run = Run.create(folder, found)
    for _ in record(run):
        pass
    return run
