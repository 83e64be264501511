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
    """Continue a prompt, token by token, with a model that was trained on a text.

    Parameters
    ----------
    run
        A run folder, or the name of one in checkpoints/.
    prompt
        The text to continue. It is printed, too.
    tokens
        How many tokens to write after the prompt.
    temperature
        Divides the logits. 0 always takes the likeliest token.
    top_k
        Draw only from this many of the likeliest tokens. 0 means all.
    top_p
        Draw only from the fewest tokens whose probabilities add up to this.
    seed
        The same seed draws the same text.
    step
        Use the weights of this training step. Default: the last.
    """
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    found = Run(located(run))
    task = found.config.build_task()
    if not isinstance(task, Text):
        raise ConfigError(
            f"{found.name} was trained on {task.name}: only a model that was trained on a text can continue one"
        )

    import torch

    from transformer.generation import generate as write

    torch.set_num_threads(1)
    writing = write(found.network(step), torch.tensor(task.begun(prompt)), tokens, sampling, never=task.unsayable)
    print(prompt, end="", flush=True)
    for said in writing:
        print(task.piece(said.token), end="", flush=True)
    print()
