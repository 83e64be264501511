"""A model as the laws of claims see it: its weights, in double precision, and a pass written in NumPy."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
import torch

from transformer import checkpoints, masks
from transformer.config import RunConfig
from transformer.model import Transformer
from transformer.tasks import Batch, Task
from transformer.training.runs import Run

Array = np.ndarray
FRESH = 1


@dataclass(frozen=True)
class Head:
    """One head, by its attention's path and its number."""

    site: str
    index: int

    @property
    def layer(self) -> int:
        return int(self.site.split(".")[1])


@dataclass
class Pass:
    """What one pass computed."""

    patterns: dict[str, Array] = field(default_factory=dict)
    """float [row, head, query, key], by the attention's path."""
    masks: dict[str, Array] = field(default_factory=dict)
    z: dict[str, Array] = field(default_factory=dict)
    """What the heads of an attention found, float [row, head, position, d_head]."""
    stages: dict[str, Array] = field(default_factory=dict)
    """The residual stream, float [row, position, d_model], by where it is."""
    hidden: dict[str, Array] = field(default_factory=dict)
    read: dict[str, Array] = field(default_factory=dict)
    """What each norm was given, by its path."""
    written: dict[str, Array] = field(default_factory=dict)
    """What each head adds to the stream, float [row, head, position, d_model]; of a single row alone."""
    vectors: dict[str, Array] = field(default_factory=dict)
    """What an attention reads and says as a whole, as "….read" and "….out", float [row, position, d_model], and its
    heads' queries, keys and values, float [row, head, position, d_head]; of a single row alone."""
    logits: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def said(self) -> Array:
        return self.logits.argmax(axis=-1)


@dataclass(frozen=True)
class World:
    """A run at a step, and the page that speaks of it."""

    run: Run
    step: int
    config: RunConfig
    model: Transformer
    page: str = ""
    view: tuple[tuple[str, str], ...] = ()
    """What the link says beside the run and the step."""

    @classmethod
    def of(cls, run: Run, page: str = "", **view: str) -> World:
        """A run at its last step, while one page is open."""
        model, config = checkpoints.load(run.snapshot())
        return cls(run, max(run.snapshots()), config, model.double(), page, tuple(view.items()))

    def at(self, page: str, view: dict[str, str]) -> World:
        """The same while one page is open."""
        other = replace(self, page=page, view=tuple(view.items()))
        other.__dict__.update({name: getattr(self, name) for name in KEPT})
        other.__dict__.update(_steps=self.__dict__.setdefault("_steps", {self.step: self}), _shares=self.shares())
        return other

    @cached_property
    def task(self) -> Task:
        return self.config.build_task()

    @property
    def sizes(self) -> Any:
        return self.config.model

    @property
    def question(self) -> Array:
        """What every page reads unless its link says otherwise."""
        return self.task.example

    @cached_property
    def weights(self) -> dict[str, Array]:
        return {name: value.double().numpy() for name, value in self.model.state_dict().items()}

    @property
    def stack(self) -> str:
        """The stack that predicts."""
        return "encoder" if self.sizes.architecture == "encoder" else "decoder"

    @property
    def heads(self) -> list[Head]:
        if self.sizes.recurrent:
            return [Head("decoder.0.cross_attention", 0)] if self.sizes.attends else []
        both = self.sizes.architecture == "encoder-decoder"
        sites = [f"encoder.{n}.self_attention" for n in range(self.sizes.n_layers) if both or self.stack == "encoder"]
        if self.stack == "decoder":
            kinds = ("self_attention", "cross_attention") if both else ("self_attention",)
            sites += [f"decoder.{n}.{kind}" for n in range(self.sizes.n_layers) for kind in kinds]
        return [Head(site, index) for site in sites for index in range(self.sizes.n_heads)]

    def head(self, name: str) -> Head:
        """The head that a sentence names: "0.1", "0.1 (cross-attention)", "enc 0.1", "encoder 0.1"."""
        short = next(part for part in name.replace("(", " ").split() if part[0].isdigit())
        kinds = {"cross": "cross_attention", "enc": "encoder", "dec": "decoder."}
        kind = next((path for word, path in kinds.items() if word in name), "")
        layer, index = short.split(".")
        found = [h for h in self.heads if f".{layer}." in h.site and h.index == int(index) and kind in f"{h.site}."]
        if kind == "decoder.":
            found = [h for h in found if h.site.startswith("decoder") and "self" in h.site]
        assert len(found) == 1, f"{len(found)} heads are called {name!r}"
        return found[0]

    # --- a pass

    def through(
        self,
        batch: Batch,
        without: tuple[Head, ...] = (),
        *,
        placed: bool = True,
        sees: Array | None = None,
        patch: tuple[str, slice, Array] | None = None,
    ) -> Pass:
        """A pass over a batch, teacher forced; heads may be silenced: their z is zero.

        Without its positions where it is not `placed`; under another mask, where one says what each query `sees`; with
        what another pass had at one site in some positions, which is the `patch`.
        """
        seen = Pass()
        self.__dict__.update(_placed=placed, _patch=patch)
        if self.sizes.recurrent:
            return self._recurrent(batch, seen, without)
        memory = None
        if batch.source is not None:
            everything = np.ones((batch.source.shape[1],) * 2, dtype=bool)
            memory = self._stack("encoder", batch.source, everything, None, seen, without)
            memory = self._norm("memory_norm", memory, seen)
        length = batch.tokens.shape[1]
        mask = masks.parse(self.sizes.mask).matrix(self.model.n_ctx) if sees is None else sees
        out = self._stack(self.stack, batch.tokens, mask[:length, :length], (memory, batch.source), seen, without)
        seen.logits = self.unembed(out)
        return seen

    def _recurrent(self, batch: Batch, seen: Pass, without: tuple[Head, ...]) -> Pass:
        """The same of a recurrent network: cells of Cho et al. (2014), and the attention of Bahdanau et al. (2015)."""
        w, sizes, embedded = self.weights, self.sizes, self.weights["embedding.weight"]
        source = batch.source
        assert source is not None
        real = source != self.task.padding
        for stack, tokens in (("encoder", source), ("decoder", batch.tokens)):
            site = f"{stack}.0.resid_pre"
            seen.stages[site] = self._put_in(site, embedded[tokens])
        read = self._cells("encoder", seen.stages["encoder.0.resid_pre"], None)
        last = [states[np.arange(len(source)), real.sum(axis=1) - 1] for states in read]
        seen.stages["encoder.states"] = read[-1]
        features = seen.stages["decoder.0.states"] = self._cells("decoder", seen.stages["decoder.0.resid_pre"], last)[
            -1
        ]
        if sizes.attends:
            site = "decoder.0.cross_attention"
            query, key, value = (
                x @ w[f"core.attention.{name}.weight"].T + w[f"core.attention.{name}.bias"]
                if f"core.attention.{name}.weight" in w
                else x
                for name, x in (("query", features), ("key", read[-1]), ("value", read[-1]))
            )
            if sizes.attention == "additive":
                energy = w["core.attention.energy.weight"][0]
                scores = np.tanh(query[:, :, None, :] + key[:, None, :, :]) @ energy
            else:
                size = {"uniform": 0.0, "dot": 1.0, "scaled-dot": 1 / math.sqrt(sizes.d_model)}[sizes.attention]
                scores = query @ key.swapaxes(1, 2) * size
            scores = np.where(real[:, None, :], scores, -np.inf)
            weighed = np.exp(scores - scores.max(axis=-1, keepdims=True))
            pattern = weighed / weighed.sum(axis=-1, keepdims=True)
            seen.patterns[site] = pattern[:, None]
            seen.masks[site] = np.broadcast_to(real[:, None, None, :], pattern[:, None].shape)
            z = np.zeros_like(features) if without else pattern @ value
            seen.z[site] = z[:, None]
            features = np.concatenate([z, features], axis=-1)
        seen.logits = features @ w["unembedding.weight"].T + w["unembedding.bias"]
        return seen

    def _cells(self, stack: str, x: Array, first: list[Array] | None) -> list[Array]:
        """The states of each layer of a stack, float [row, step, d_model]; they begin at `first`, or at zero."""
        found: list[Array] = []
        for layer in range(self.sizes.n_layers):
            at = f"core.{stack}.layers.{layer}"
            of_x, of_h = (self.weights[f"{at}.weight_{name}_l0"] for name in ("ih", "hh"))
            for_x, for_h = (self.weights[f"{at}.bias_{name}_l0"] for name in ("ih", "hh"))
            state = np.zeros((len(x), self.sizes.d_model)) if first is None else first[layer]
            states = []
            for step in range(x.shape[1]):
                reset, keep, new = np.split(x[:, step] @ of_x.T + for_x, 3, axis=1)
                own_reset, own_keep, own_new = np.split(state @ of_h.T + for_h, 3, axis=1)
                reset, keep = 1 / (1 + np.exp(-reset - own_reset)), 1 / (1 + np.exp(-keep - own_keep))
                state = (1 - keep) * np.tanh(new + reset * own_new) + keep * state
                states.append(state)
            x = np.stack(states, axis=1)
            found.append(x)
        return found

    def unembed(self, stream: Array) -> Array:
        """Logits of a residual stream: the model's own last step."""
        normed = self._norm("final_norm", stream)
        return normed @ self.weights["unembedding.weight"].T + self.weights["unembedding.bias"]

    def _norm(self, name: str, x: Array, seen: Pass | None = None) -> Array:
        """By the norm's own formula, which its plug-in's contract proves; every vector by itself."""
        if seen is not None:
            seen.read[name] = x
        with torch.no_grad():
            return self.model.get_submodule(name).double()(torch.from_numpy(x)).numpy()

    def _stack(
        self, name: str, tokens: Array, mask: Array, memory: Any, seen: Pass, without: tuple[Head, ...]
    ) -> Array:
        w, sizes = self.weights, self.sizes
        padding = tokens == self.task.padding
        x = w["embedding.weight"][tokens] * (math.sqrt(sizes.d_model) if sizes.scale_embeddings else 1)
        added = self.model.positions.vectors(tokens.shape[1]) if self.__dict__["_placed"] else None
        if added is not None:
            x = x + added.detach().double().numpy()
        visible = mask[None, None] & ~padding[:, None, None, :]
        keep = 1.0 if sizes.residual else 0.0
        x = self._put_in(f"{name}.0.resid_pre", x)
        seen.stages[f"{name}.0.resid_pre"] = x
        for layer in range(sizes.n_layers):
            block = f"{name}.{layer}"
            parts = [("self_attention", "around_self", "resid_mid")]
            if isinstance(memory, tuple) and memory[0] is not None:
                parts.append(("cross_attention", "around_cross", "resid_cross"))
            for part, around, after in parts:
                read = self._norm(f"{block}.{around}.before", x, seen)
                cross = part == "cross_attention"
                asked, sight = (
                    (memory[0], (memory[1] != self.task.padding)[:, None, None, :]) if cross else (read, visible)
                )
                out = self._attend(f"{block}.{part}", read, asked, sight, cross, seen, without)
                x = self._put_in(f"{block}.{after}", self._norm(f"{block}.{around}.after", keep * x + out, seen))
                seen.stages[f"{block}.{after}"] = x
            if sizes.d_ff:
                read = self._norm(f"{block}.around_feed_forward.before", x, seen)
                up, down = (f"{block}.feed_forward.{each}" for each in ("up", "down"))
                hidden = np.maximum(read @ w[f"{up}.weight"].T + w[f"{up}.bias"], 0)
                seen.hidden[f"{block}.feed_forward"] = hidden
                fed = hidden @ w[f"{down}.weight"].T + w[f"{down}.bias"]
                x = self._norm(f"{block}.around_feed_forward.after", keep * x + fed, seen)
                x = self._put_in(f"{block}.resid_post", x)
                seen.stages[f"{block}.resid_post"] = x
        return x

    def _put_in(self, site: str, x: Array) -> Array:
        """What stands at a site, of which some positions may come from another pass."""
        if self.__dict__["_patch"] is None or self.__dict__["_patch"][0] != site:
            return x
        _, places, theirs = self.__dict__["_patch"]
        x = x.copy()
        x[..., places, :] = theirs[..., places, :]
        return x

    def _attend(
        self, site: str, asking: Array, asked: Array, visible: Array, cross: bool, seen: Pass, without: tuple[Head, ...]
    ) -> Array:
        w, width = self.weights, self.sizes.d_head
        query, key, value = (
            (x @ w[f"{site}.{name}.weight"].T + w[f"{site}.{name}.bias"])
            .reshape(*x.shape[:2], -1, width)
            .swapaxes(1, 2)
            for name, x in (("query", asking), ("key", asked), ("value", asked))
        )
        positions, placed = self.model.positions, self.__dict__["_placed"]
        if not cross and placed:
            query, key = (positions.rotate(torch.from_numpy(x.copy())).detach().double().numpy() for x in (query, key))
        scores = query @ key.swapaxes(-1, -2) / math.sqrt(width)
        if not cross and placed and (bias := positions.bias(query.shape[-2], key.shape[-2])) is not None:
            scores = scores + bias.detach().double().numpy()
        visible = np.broadcast_to(visible, scores.shape)
        scores = np.where(visible, scores, -np.inf)
        with np.errstate(invalid="ignore"):
            weighed = np.where(visible, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0.0)
        pattern = weighed / np.maximum(weighed.sum(axis=-1, keepdims=True), 1e-300)
        seen.patterns[site], seen.masks[site] = pattern, visible
        z = pattern @ value
        for head in without:
            if head.site == site:
                z[:, head.index] = 0.0
        seen.z[site] = z = self._put_in(f"{site}.z", z)
        rows = w[f"{site}.out.weight"].reshape(-1, self.sizes.n_heads, width)
        if len(z) == 1:
            seen.written[site] = np.einsum("bhqd,mhd->bhqm", z, rows)
        joined = z.swapaxes(1, 2).reshape(*asking.shape[:2], -1)
        out = joined @ w[f"{site}.out.weight"].T + w[f"{site}.out.bias"]
        if len(z) == 1:
            parts = {"read": asking, "query": query, "key": key, "value": value, "out": out}
            seen.vectors |= {f"{site}.{name}": part for name, part in parts.items()}
        return out

    # --- what it says

    def drawn(self, count: int, length: int | None = None) -> Batch:
        """The fresh sequences on which pages measure."""
        rng = np.random.default_rng([self.config.training.seed + 1, FRESH])
        length = length or self.task.length
        return self.task.encode(rng.integers(0, self.task.symbols, (count, length)))

    def others(self, count: int = 2048, length: int | None = None) -> Batch:
        """Sequences of which no page has seen any."""
        rng = np.random.default_rng(4711)
        return self.task.encode(rng.integers(0, self.task.symbols, (count, length or self.task.length)))

    @cached_property
    def _right(self) -> dict[Any, Array]:
        return {}

    def right(
        self, count: int, length: int | None = None, without: tuple[Head, ...] = (), *, other: bool = False
    ) -> Array:
        """Which targets are right, bool [sequence, target]."""
        asked = count, length, without, other
        if asked not in self._right:
            batch = (self.others if other else self.drawn)(count, length)
            self._right[asked] = self.as_measured(batch, without).said == batch.targets
        return self._right[asked]

    def as_measured(self, batch: Batch, without: tuple[Head, ...] = ()) -> Pass:
        """The pass by which pages measure: of a recurrent network it reads what it said itself just before."""
        if not self.sizes.recurrent:
            return self.through(batch, without)
        tokens = batch.tokens.copy()
        for place in range(1, tokens.shape[1]):
            begun = (each[:, :place] for each in (tokens, batch.targets, batch.is_answer, batch.is_target))
            tokens[:, place] = self.through(Batch(*begun, batch.source), without).said[:, -1]
        return self.through(replace(batch, tokens=tokens), without)

    @cached_property
    def alone(self) -> tuple[Batch, Pass]:
        """The page's question, read with the model's own words in place of the answer, and the pass over that."""
        task, question = self.task, self.question
        batch = task.encode(question[None])
        tokens, answers = batch.tokens.copy(), task.answers(len(question))
        before = np.flatnonzero(answers)[:-1] + 1  # where the token is read that was said just before
        reads = task.has_source or not answers.all()
        for place in before.tolist() if reads else []:
            begun = (each[:, :place] for each in (tokens, batch.targets, batch.is_answer, batch.is_target))
            said = self.through(Batch(*begun, batch.source)).said
            tokens[0, place] = said[0, place - 1]
        batch = replace(batch, tokens=tokens)
        return batch, self.through(batch)

    # --- where it looks

    def share(self, head: Head) -> float:
        """A head's mean attention on the tokens to be said, over the outputs that may see one; nan without any."""
        _, seen = self.looked
        pattern, visible = seen.patterns[head.site][:, head.index], seen.masks[head.site][:, head.index]
        keys = expected_of(self.task) & visible
        asked = keys.any(axis=2).sum()
        return float(pattern[keys].sum() / asked) if asked else math.nan

    @cached_property
    def looked(self) -> tuple[Batch, Pass]:
        """All questions that there are of the greatest length, and the pass over them."""
        batch = self.task.encode(questions_of(self.task))
        return batch, self.through(batch)

    def shares(self) -> dict[Head, float]:
        """The share of every head that can carry the task: to the source where there is one."""
        kind = "cross_attention" if self.task.has_source else "self_attention"
        if "_shares" not in self.__dict__:
            self.__dict__["_shares"] = {h: self.share(h) for h in self.heads if h.site.endswith(kind)}
        return self.__dict__["_shares"]

    def at_step(self, step: int) -> World:
        """The same run at another step of its training."""
        known: dict[int, World] = self.__dict__.setdefault("_steps", {self.step: self})
        if step not in known:
            model, config = checkpoints.load(self.run.snapshot(step))
            known[step] = World(self.run, step, config, model.double())
        return known[step]

    # --- what can be known

    @cached_property
    def _most(self) -> dict[Any, tuple[Array, Array, Array]]:
        return {}

    def reach(self, length: int, layers: int | None = None, *, honest: bool = False) -> Array:
        """Which slots influence each target, bool [target, slot]: hop by hop; a source's slots first."""
        task, layers = self.task, self.sizes.n_layers if layers is None else layers
        n = task.count_targets(length)
        name = "causal" if self.sizes.recurrent else self.sizes.mask  # a state holds what came before
        mask = masks.parse(name).matrix(n) & (task.limit.matrix(n) if honest else True)
        sources = length if task.has_source else 0
        reached = np.zeros((n, sources + n), dtype=bool)
        for target in range(n):
            at = {target}
            for layer in range(layers):
                reached[target, :sources] |= layer < layers
                at |= {key for query in at for key in range(n) if mask[query, key]}
            reached[target, [sources + each for each in at]] = True
        return reached

    def most(self, length: int | None = None, *, honest: bool = False, blind: bool = False) -> Array:
        """How often the best guess is right at each target of sequences of a length: by all questions that there are.

        Who guesses sees what reaches the target, and knows the law, but not the length, where lengths vary.
        """
        length = length or self.task.length
        key = length, honest, blind
        if key not in self._most:
            self._most[key] = self._guess(length, honest, blind)
        return self._most[key][0]

    def _guess(self, length: int, honest: bool, blind: bool) -> tuple[Array, Array, Array]:
        task = self.task
        lengths = [*task.lengths] if length in task.lengths and not blind else [length]
        seen: list[dict[Any, Counter[int]]] = [{} for _ in range(task.count_targets(length))]
        own: list[dict[Any, Counter[int]]] = [{} for _ in seen]
        for n in lengths:
            questions = np.array([*product(range(task.symbols), repeat=n)])
            batch = task.encode(questions)
            slots = batch.tokens if batch.source is None else np.concatenate([batch.source, batch.tokens], axis=1)
            reach = np.zeros((batch.tokens.shape[1], slots.shape[1]), bool) if blind else self.reach(n, honest=honest)
            for target in range(min(len(seen), batch.tokens.shape[1])):
                places = [*map(int, np.flatnonzero(reach[target]))]
                if batch.source is not None:  # a source's slots are told from the tokens' at any length
                    names = tuple(place if place < n else place - n + 1000 for place in places)
                else:
                    names = tuple(places)
                for read, right in zip(slots[:, places].tolist(), batch.targets[:, target].tolist(), strict=True):
                    view = (names, *read)
                    seen[target].setdefault(view, Counter())[right] += 1.0 / len(questions)
                    if n == length:
                        own[target].setdefault(view, Counter())[right] += 1.0 / len(questions)
        found = np.zeros((3, len(seen)))
        for target, views in enumerate(own):
            for view, counts in views.items():
                whole = seen[target][view]
                best = [token for token, count in whole.items() if count >= max(whole.values()) * (1 - 1e-9)]
                found[0, target] += sum(counts[token] for token in best) / len(best)
                found[1, target] += min(counts[token] for token in best)
                found[2, target] += max(counts.values())
        return found[0], found[1], found[2]

    def least(self, length: int | None = None, *, honest: bool = False) -> Array:
        """The same, where of several best guesses the wrong one is taken."""
        self.most(length, honest=honest)
        return self._most[(length or self.task.length), honest, False][1]

    def greatest(self, length: int | None = None, *, honest: bool = False) -> Array:
        """The same of somebody who is told the length."""
        self.most(length, honest=honest)
        return self._most[(length or self.task.length), honest, False][2]

    @cached_property
    def floor(self) -> float:
        """The least loss of who guesses like this, in nats: by all sequences that there are, as they are drawn."""
        task, weight = self.task, self.config.training.prompt_weight
        seen: dict[Any, dict[int, float]] = {}
        total = 0.0
        for n in task.lengths:
            questions = np.array([*product(range(task.symbols), repeat=n)])
            batch, reach = task.encode(questions), self.reach(n)
            slots = batch.tokens if batch.source is None else np.concatenate([batch.source, batch.tokens], axis=1)
            answers = task.answers(n)
            for target in range(batch.tokens.shape[1]):
                places = [*map(int, np.flatnonzero(reach[target]))]
                names = tuple(p if batch.source is None or p < n else p - n + 1000 for p in places)
                share = (1.0 if answers[target] else weight) / len(questions)
                total += share * len(questions)
                for read, right in zip(slots[:, places].tolist(), batch.targets[:, target].tolist(), strict=True):
                    view = seen.setdefault((target, names, *read), {})
                    view[right] = view.get(right, 0.0) + share
        # A target's weight is the question's in one length and the answer's in another: it multiplies both alike.
        cost = 0.0
        for view in seen.values():
            whole = sum(view.values())
            cost -= sum(each * math.log(each / whole) for each in view.values() if each)
        return cost / total

    def known(self, length: int | None = None) -> Array:
        """Which targets of the answer can be known for certain; where none can, all of the answer."""
        answers = self.task.answers(length or self.task.length)
        found = answers & (self.most(length) > 1 - 1e-9)
        return found if found.any() else answers

    @property
    def sequences(self) -> int:
        return int(dict(self.view).get("sequences", 4096))


KEPT = ("task", "weights", "_right", "_most", "alone", "looked", "floor")
"""What is worked out once for all pages."""


@lru_cache(maxsize=4)
def questions_of(task: Task) -> Array:
    """All questions that there are of the greatest length, int [question, place]."""
    return np.array([*product(range(task.symbols), repeat=task.length)])


@lru_cache(maxsize=4)
def expected_of(task: Task) -> Array:
    """Where the token to be said stands in each of them, bool [question, query, key]."""
    return np.stack([task.expected_keys(question) for question in questions_of(task)])


def spans(text: str, names: tuple[str, ...]) -> list[int]:
    """The targets that a sentence names: "x2 to x4 and SEP"."""
    found: list[int] = []
    for part in text.replace(" and ", ", ").split(", "):
        first, _, last = part.partition(" to ")
        found += range(names.index(first), names.index(last or first) + 1)
    return found
