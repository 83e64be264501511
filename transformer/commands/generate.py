"""The command that lets a model go on with a text."""

from __future__ import annotations

from transformer.config import ConfigError
from transformer.sampling import Sampling
from transformer.text.task import Text
from transformer.training.runs import Run, located


def generate(
    run: str,
    *,
    prompt: str = "\n",
    tokens: int = 100,
    temperature: float = 0.8,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    step: int | None = None,
) -> None:
    """Go on with a text, token by token, as a model that was trained on one would.

    Example: `python -m transformer generate shakespeare --prompt "ROMEO  " --tokens 200`

    Parameters
    ----------
    run
        A run folder, or the name of one below checkpoints/.
    prompt
        The beginning; it is printed too.
    tokens
        How many are written after it.
    temperature
        Divides the logits; 0 always takes the likeliest.
    top_k
        Draw from so many of the likeliest; 0 is all.
    top_p
        Draw from the fewest of the likeliest that together have this probability.
    seed
        Decides every draw.
    step
        The step of its training; left out, the last.
    """
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    found = Run(located(run))
    task = found.config.build_task()
    if not isinstance(task, Text):
        raise ConfigError(f"{found.name} has learned {task.name}: only a model that has read a text goes on with one")

    import torch

    from transformer.checkpoints import load
    from transformer.generation import generate as write

    torch.set_num_threads(1)
    model, _ = load(found.snapshot(step))
    writing = write(model, torch.tensor(task.begun(prompt)), tokens, sampling, never=task.unsayable)
    print(prompt, end="", flush=True)
    for said in writing:
        print(task.piece(said.token), end="", flush=True)
    print()
