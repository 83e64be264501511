"""A decoder goes on with a text, token by token, and says for each how likely it was and what else could have come.

With a key-value cache each token is read once: the keys and values that every layer made of it are kept, and the next
token is read alone. The cache is a trace: what comes back from a trace is what is used, so the model knows nothing of
it. The same tokens come out without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor

from transformer.config import ConfigError
from transformer.model import Transformer
from transformer.network import Network
from transformer.sampling import Sampling
from transformer.trace import Trace

TOP = 10
"""Alternatives that are told of each token; fewer where the vocabulary has fewer."""


@dataclass(frozen=True, eq=False)
class Alternatives:
    """The tokens that the model found likeliest at one place, the likeliest first; padding is none of them."""

    tokens: Integer[np.ndarray, "top"]
    probabilities: Float[np.ndarray, "top"]
    """What the model gives them: the softmax of its logits."""
    drawn_with: Float[np.ndarray, "top"]
    """With which probability each was to be drawn; 0 where it was cut."""


@dataclass(frozen=True, eq=False)
class Said:
    """One token that `generate` wrote, and how likely it was."""

    token: int
    probability: float
    """What the model gives it: the softmax of its logits, whatever the temperature and the cuts."""
    drawn_with: float
    """The probability with which it was drawn."""
    alternatives: Alternatives

    @property
    def nats(self) -> float:
        """How surprising it is to the model: minus the logarithm of its probability."""
        return -float(np.log(self.probability))


# --- drawing


def distribution(logits: Float[Tensor, "d_vocab"], sampling: Sampling) -> Float[Tensor, "d_vocab"]:
    """What the next token is drawn from: softmax(logits / temperature), of it the top k, of these the nucleus; float64.

    The nucleus is the fewest of the likeliest tokens whose probabilities sum to at least top_p ("The Curious Case of
    Neural Text Degeneration", Holtzman et al., 2020, section 3.1); it is taken of what top_k has left, renormalised.
    Of equally likely tokens the one with the smaller number comes first. Temperature 0 takes the likeliest alone.
    """
    if sampling.temperature == 0:
        return torch.zeros_like(logits, dtype=torch.float64).index_fill(0, logits.argmax(), 1.0)
    # The greatest becomes 0, so that no temperature, however low, makes a number infinite.
    shares = ((logits.double() - logits.max()) / sampling.temperature).softmax(dim=0)
    if not sampling.top_k and sampling.top_p == 1:
        return shares
    shares, order = shares.sort(descending=True, stable=True)
    if sampling.top_k:
        shares[sampling.top_k :] = 0
    if sampling.top_p < 1:
        likelier = shares.cumsum(dim=0) - shares
        shares[likelier >= sampling.top_p * shares.sum()] = 0
    return torch.zeros_like(shares).scatter(0, order, shares / shares.sum())


def _draw(shares: Float[Tensor, "d_vocab"], seed: int, place: int) -> int:
    """A token, by one number between 0 and 1 that depends on the seed and the place in the text, and on nothing else.

    So a text that is broken off and taken up again goes on as it would have.
    """
    cumulative = shares.cumsum(dim=0).numpy()
    thrown = np.random.default_rng((seed, place)).random()
    return int(cumulative.searchsorted(thrown * cumulative[-1], side="right"))


def _say(logits: Float[Tensor, "d_vocab"], sampling: Sampling, place: int, never: Collection[int]) -> Said:
    """The token at `place`, counted from 0, drawn from these logits. Padding, the last of them, is never drawn."""
    logits = logits.cpu().double()
    probabilities = logits.softmax(dim=0)
    logits = torch.nn.functional.pad(logits[:-1], (0, 1), value=-torch.inf)
    barred = torch.tensor(sorted(never), dtype=torch.long)
    shares = distribution(logits.index_fill(0, barred, -torch.inf), sampling)
    token = _draw(shares, sampling.seed, place)
    top = logits.topk(min(TOP, len(logits) - 1)).indices
    told = Alternatives(top.numpy(), probabilities[top].numpy(), shares[top].numpy())
    return Said(token, float(probabilities[token]), float(shares[token]), told)


# --- reading


def window_start(length: int, n_ctx: int) -> int:
    """Where in a text of `length` tokens a model begins to read that can read `n_ctx`: 0 as long as the text fits.

    When it does not, the older half of the context falls out at once. What is left moves to other positions, so that
    all of it must be read anew; dropping half makes that rare, and dropping one token would make it every time.
    """
    half = max(1, n_ctx // 2)
    return half * -(-max(0, length - n_ctx) // half)


class _Continued(Trace):
    """One forward pass over tokens that stand behind others: the keys and values of those are put before the new."""

    def __init__(
        self,
        kept: dict[str, Tensor],
        past: int,
        mask: Bool[Tensor, "1 1 query key"],
        bias: Float[Tensor, "head query key"] | None,
        path: str = "",
    ) -> None:
        self.kept, self.past, self.mask, self.bias, self.path = kept, past, mask, bias, path

    def __call__(self, name: str, value: Tensor) -> Tensor:
        match name:
            case "places":
                return value + self.past if self.past else value
            case "mask":
                return self.mask
            case "position_bias":
                assert self.bias is not None
                return self.bias
            case "key" | "value":
                return self._joined(self.kept[f"{self.path}{name}"], value)
        return value

    def _joined(
        self, kept: Float[Tensor, "1 head n_ctx d_head"], new: Float[Tensor, "1 head new d_head"]
    ) -> Float[Tensor, "1 head key d_head"]:
        end = self.past + new.shape[-2]
        kept[:, :, self.past : end] = new
        return kept[:, :, :end]

    def within(self, scope: str | int) -> _Continued:
        return _Continued(self.kept, self.past, self.mask, self.bias, f"{self.path}{scope}.")


class Cache:
    """Reads a text that grows, each token once. It belongs to one text and is not shared.

    What a layer makes of a token is final as long as the token cannot see those that come later. Where the mask lets
    it see the newest one, and where the window has moved on, everything is read anew: exact under every mask, and
    worth its while under those that are causal.
    """

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.start = self.past = 0
        """Where the window begins in the text, and how many of its tokens are kept."""
        heads, width = model.config.n_heads, model.config.d_head
        self.kept = {
            f"decoder.{layer}.self_attention.{name}": model.unembedding.weight.new_empty(1, heads, model.n_ctx, width)
            for layer in range(model.config.n_layers)
            for name in ("key", "value")
        }

    def next_logits(self, text: Sequence[int]) -> Float[Tensor, "d_vocab"]:
        """The model's logits for what follows: a text that begins with the one before."""
        model, start = self.model, window_start(len(text), self.model.n_ctx)
        tokens = torch.tensor([text[start:]], device=model.visible.device)
        length = tokens.shape[1]
        if start != self.start or model.visible[: self.past, self.past : length].any():
            self.past = 0
        mask = model.visible[self.past : length, :length] & (tokens != model.d_vocab - 1)[:, None, None, :]
        bias = model.positions.bias(length, length)
        trace = _Continued(self.kept, self.past, mask, None if bias is None else bias[:, self.past :])
        logits = model(tokens[:, self.past :], trace=trace)[0, -1]
        self.start, self.past = start, length
        return logits


def _uncached(model: Transformer) -> Callable[[Sequence[int]], Float[Tensor, "d_vocab"]]:
    """The same logits, for which all that fits is read each time."""

    def next_logits(text: Sequence[int]) -> Float[Tensor, "d_vocab"]:
        tokens = torch.tensor([text[window_start(len(text), model.n_ctx) :]], device=model.visible.device)
        return model(tokens)[0, -1]

    return next_logits


# --- writing


def generate(
    model: Network,
    prompt: Int[Tensor, "position"],
    tokens: int,
    sampling: Sampling | None = None,
    *,
    cached: bool = True,
    never: Collection[int] = (),
) -> Iterator[Said]:
    """Continue a prompt by so many `tokens`, each yielded as soon as it is drawn.

    Each draw depends on the seed and on the place in the text only: whenever the next token is asked for, and whatever
    else is drawn meanwhile, it is the same. It is the same with and without the cache, to rounding: from 256 tokens on,
    what is read all at once takes a fused kernel. A text longer than the context goes on with its newer half
    (`window_start`). Padding and the tokens in `never` are not drawn; the others share what those had. The model is run
    in evaluation mode and left in the mode it was in.
    Raises ConfigError where there is nothing to continue: no decoder, no prompt, tokens that are not the model's.
    """
    if not isinstance(model, Transformer) or model.config.architecture != "decoder":
        raise ConfigError(f"only a decoder goes on with a text, and this model is {_named(model)}")
    if not len(prompt):
        raise ConfigError("a prompt needs at least one token")
    if not 0 <= int(prompt.min()) <= int(prompt.max()) < model.d_vocab:
        raise ConfigError(f"the prompt has tokens that the model does not know: it knows 0 to {model.d_vocab - 1}")
    if not set(range(model.d_vocab - 1)) - set(never):
        raise ConfigError("there is no token left that could be drawn")
    if tokens < 0:
        raise ConfigError(f"tokens must be 0 or more, not {tokens}")
    return _generate(model, prompt.tolist(), tokens, sampling or Sampling(), cached, never)


def _generate(
    model: Transformer, text: list[int], tokens: int, sampling: Sampling, cached: bool, never: Collection[int]
) -> Iterator[Said]:
    next_logits = Cache(model).next_logits if cached else _uncached(model)
    for _ in range(tokens):
        # Token by token: in between, the caller has the model's mode, and gradients, as it was.
        with _evaluating(model), torch.no_grad():
            said = _say(next_logits(text), sampling, len(text), never)
        text.append(said.token)
        yield said


@contextmanager
def _evaluating(model: Transformer) -> Iterator[None]:
    training = model.training
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()


def _named(model: Network) -> str:
    kind = model.config.architecture
    return "a GRU" if kind == "gru" else f"an {kind}"
