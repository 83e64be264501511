"""A model that is not ours as the laws of claims see it: opened, changed and read by Hugging Face's library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch.nn import functional

Array = np.ndarray


@dataclass(frozen=True)
class Foreign:
    """A model's folder, what it reads, and how its attention is changed."""

    folder: Path
    text: str
    removed: tuple[tuple[int, int], ...] = ()
    """Heads, by layer and number."""
    causal: bool = False
    """Is its mask made causal?"""

    @cached_property
    def model(self) -> Any:
        kind = transformers.AutoConfig.from_pretrained(self.folder).architectures[0]
        return getattr(transformers, kind).from_pretrained(self.folder, attn_implementation="eager").eval()

    @cached_property
    def tokenizer(self) -> Any:
        return transformers.AutoTokenizer.from_pretrained(self.folder)

    @cached_property
    def tokens(self) -> torch.Tensor:
        return self.tokenizer(self.text, return_tensors="pt")["input_ids"]

    @property
    def special(self) -> list[bool]:
        return [int(token) in self.tokenizer.all_special_ids for token in self.tokens[0]]

    @cached_property
    @torch.no_grad()
    def output(self) -> Any:
        """As it is."""
        return self.model(self.tokens, output_attentions=True, output_hidden_states=True)

    @cached_property
    def patterns(self) -> Array:
        """float [layer, head, query, key]."""
        return torch.cat(self.output.attentions).double().numpy()

    def answer(self, removed: tuple[tuple[int, int], ...] = (), *, causal: bool = False) -> torch.Tensor:
        """What it returns, float [position, width]."""
        with torch.no_grad(), self._without(removed):
            more = {"attention_mask": self._causal()} if causal else {}
            out = self.model(self.tokens, **more)
        values = out.logits if hasattr(out, "logits") else out.last_hidden_state
        return (values[0] if values.dim() == 3 else values[:1]).double()

    @property
    def says_logits(self) -> bool:
        return hasattr(self.output, "logits")

    @cached_property
    def answers(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Before and after the change."""
        return self.answer(), self.answer(self.removed, causal=self.causal)

    def shift(self, before: torch.Tensor, after: torch.Tensor) -> Array:
        """How far each position moves: nats of a distribution, the share of its length of a vector."""
        if not self.says_logits:
            return ((after - before).norm(dim=-1) / before.norm(dim=-1)).numpy()
        p, q = before.log_softmax(-1), after.log_softmax(-1)
        return functional.kl_div(q, p, log_target=True, reduction="none").sum(-1).numpy()

    def cost(self, layer: int, head: int) -> float:
        """How far it moves on average when one head alone is removed."""
        return float(self.shift(self.answer(), self.answer(((layer, head),))).mean())

    @property
    def stages(self) -> Array:
        """The likeliest token after the embedding and after each layer, int [stage, position]."""
        inner = getattr(self.model, "transformer", None) or self.model.model
        norm = inner.ln_f if hasattr(inner, "ln_f") else inner.norm
        with torch.no_grad():
            found = [self.model.lm_head(norm(each[0])) for each in self.output.hidden_states[:-1]]
        return torch.stack([*found, self.output.logits[0]]).argmax(-1).numpy()

    def rollout(self, through: int) -> Array:
        """Attention rolled out (Abnar and Zuidema, 2020): half of each layer is what was there."""
        n = self.patterns.shape[-1]
        found = np.eye(n)
        for layer in self.patterns[: through + 1]:
            found = (layer.mean(axis=0) + np.eye(n)) / 2 @ found
        return found

    def _causal(self) -> torch.Tensor:
        n = self.tokens.shape[1]
        seen = torch.ones(n, n).tril().bool()
        return torch.zeros(n, n).masked_fill(~seen, torch.finfo(torch.float32).min)[None, None]

    @contextmanager
    def _without(self, removed: tuple[tuple[int, int], ...]) -> Iterator[None]:
        width = self.model.config.hidden_size // self.model.config.num_attention_heads
        hooks = []
        for layer, head in removed:

            def zero_head(module: Any, given: tuple[torch.Tensor], head: int = head) -> tuple[torch.Tensor]:
                z = given[0].clone()
                z[..., width * head : width * (head + 1)] = 0
                return (z,)

            ends = f".{layer}.attn.c_proj", f".{layer}.self_attn.o_proj", f".{layer}.attention.output.dense"
            (join,) = (part for name, part in self.model.named_modules() if f".{name}".endswith(ends))
            hooks.append(join.register_forward_pre_hook(zero_head))
        try:
            yield
        finally:
            for each in hooks:
                each.remove()
