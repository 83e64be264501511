"""Laws of the page "Follow the information": what a token moves, and the greatest of each matrix."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.laws.layers import rollout_of
from tests.kit.claims.world import World
from tests.kit.claims.written import number
from transformer.tasks import Batch

INFLUENCE = "app_pages/whole_model/information/influence.Flow."


def shifts_of(world: World, slot: int) -> tuple[np.ndarray, np.ndarray]:
    """How far the logits of each output move at most when a token is replaced by each symbol, and whether another token
    is said then: float and bool [symbol, output]."""
    batch, seen = world.alone
    said, before = seen.said[0], seen.logits[0]
    sources = 0 if batch.source is None else batch.source.shape[1]
    found, others = [], []
    for symbol in range(world.task.symbols):
        tokens, source = batch.tokens.copy(), None if batch.source is None else batch.source.copy()
        if source is not None and slot < sources:
            source[0, slot] = symbol
        else:
            tokens[0, slot - sources] = symbol
        after = world.through(replace(batch, tokens=tokens, source=source))
        found.append(np.abs(after.logits[0] - before).max(axis=-1))
        others.append(after.said[0] != said)
    return np.array(found), np.array(others)


PLACE = r"'(?P<token>[^']+)' at (?P<place>\d+)(?P<source> of the source)?"
BY = r"(?: by '(?P<by>[^']+)')?"


def symbols(world: World, by: str | None) -> list[int]:
    """What is put in the place of a token: this symbol, or each in turn."""
    return [*range(world.task.symbols)] if by is None else [world.task.vocabulary.index(by)]


def slot_of(world: World, token: str, place: str, source: str | None) -> int:
    batch, _ = world.alone
    sources = 0 if batch.source is None else batch.source.shape[1]
    read = batch.source if source else batch.tokens
    assert world.task.vocabulary[read[0, int(place) - 1]] == token  # type: ignore[index]
    return int(place) - 1 + (0 if source else sources)


@law(
    f"{INFLUENCE}headline",
    rf"Replacing {PLACE}{BY} moves (?P<count>\d+) of (?P<of>\d+) outputs?: (?P<mostly>most )?the one at (?P<output>\d+)"
    r"(?:, whose right token is '(?P<right>[^']+)')?\.",
)
def moves(
    world: World, token: str, place: str, source: str | None, by: str | None, count: str, of: str,
    mostly: str | None, output: str, right: str | None,
) -> None:  # fmt: skip
    batch, _ = world.alone
    most = shifts_of(world, slot_of(world, token, place, source))[0][symbols(world, by)].max(axis=0)
    assert int(of) == len(most)
    assert int(count) == (most > 1e-12).sum()
    assert most[int(output) - 1] >= most.max() * (1 - 1e-4)
    if right is not None:
        assert world.task.vocabulary[batch.targets[0, int(output) - 1]] == right
    honest = world.reach(len(world.question), honest=True)
    assert not ((most > 1e-12) & ~honest[:, slot_of(world, token, place, source)]).any()


@law(f"{INFLUENCE}headline", rf"Replacing {PLACE}{BY} moves no output\.", rare=True)
def moves_none(world: World, token: str, place: str, source: str | None, by: str | None) -> None:
    assert shifts_of(world, slot_of(world, token, place, source))[0][symbols(world, by)].max() < 1e-9


@law(
    f"{INFLUENCE}headline",
    rf"The mask leaks: the output at (?P<output>\d+) moves by (?P<far>[\d.e−-]+) when {PLACE} is replaced{BY}, "
    r"which it must not know\.",
)
def must_not(world: World, output: str, far: str, token: str, place: str, source: str | None, by: str | None) -> None:
    slot = slot_of(world, token, place, source)
    most = shifts_of(world, slot)[0][symbols(world, by)].max(axis=0)
    assert abs(most[int(output) - 1] - float(far.replace("−", "-"))) < 1e-5 + 0.01 * most[int(output) - 1]
    task, n = world.task, len(most)
    sources = n_source if (n_source := 0 if world.alone[0].source is None else world.alone[0].source.shape[1]) else 0
    limit = task.limit.matrix(n)
    assert slot >= sources
    assert not limit[int(output) - 1, slot - sources]


@law(
    f"{INFLUENCE}verdict",
    r"(?P<bad>[\d,]+) of (?P<of>[\d,]+) cells must be 0 and are not; they are outlined\. The model's own mask is "
    r"(?P<mask>[^ ]+)\.",
)
def leak(world: World, bad: Shown, of: Shown, mask: str) -> None:
    assert mask == world.sizes.mask
    honest, own = (world.reach(len(world.question), honest=each) for each in (True, False))
    assert of.value == (~honest).sum()
    assert 0 < bad.value <= (own & ~honest).sum()


@law(
    f"{INFLUENCE}verdict",
    r"No cell is forbidden:(?: under the mask (?P<mask>[^ ]+))? every output may know every token\.",
)
def all_allowed(world: World, mask: str | None) -> None:
    assert mask == (None if world.sizes.recurrent else world.sizes.mask)
    assert world.reach(len(world.question), honest=True).all()


@law(
    f"{INFLUENCE}verdict",
    r"(?:(?P<every>Every output may know this token)|Nothing before position (?P<place>\d+) moved: the mask "
    r"holds|No path leads "
    r"from it to (?P<blind>\d+) of the outputs\. They did not move: the mask holds)\. (?:All (?P<hatched>[\d,]+) "
    r"hatched cells are exactly 0, and so are their gradients|The one hatched cell is exactly 0, and so is its "
    r"gradient)\.",
)
def mask_holds(world: World, every: str | None, place: str | None, blind: str | None, hatched: Shown | None) -> None:
    honest = world.reach(len(world.question), honest=True)
    assert (1 if hatched is None else hatched.value) == (~honest).sum() > 0
    if place is not None:
        sources = 0 if world.alone[0].source is None else world.alone[0].source.shape[1]
        column = honest[:, sources + int(place) - 1]
        assert not column[: int(place) - 1].any()
        assert column[int(place) - 1 :].all()
    if blind is not None:
        assert int(blind) in (~honest).sum(axis=0)
    if every is not None:
        assert honest.all(axis=0).any()


@law(
    f"{INFLUENCE}flips",
    r"(?P<count>No output says|One output says|\d+ outputs say) another token with '(?P<symbol>[^']+)' in its "
    r"place(?P<most>, the symbol that moves them most)?\.",
)
def flip(world: World, count: str, symbol: str, most: str | None) -> None:
    """Of some token that the page may have poked."""
    assert (most is None) == ("replacement" in dict(world.view))
    batch, _ = world.alone
    slots = batch.tokens.shape[1] + (0 if batch.source is None else batch.source.shape[1])
    number = {"No": 0, "One": 1}.get(count.split()[0]) if not count[0].isdigit() else int(count.split()[0])
    at = world.task.vocabulary.index(symbol)
    assert any(shifts_of(world, slot)[1][at].sum() == number for slot in range(slots))


@law(f"{INFLUENCE}flips", r"(?P<place>'.+) is '(?P<symbol>[^']+)' already, so nothing can move\.", rare=True)
def is_there_already(world: World, place: str, symbol: str) -> None:
    assert place.startswith(f"'{symbol}' at ")
    assert dict(world.view)["replacement"] == symbol


@law(f"{INFLUENCE}flips", r"No output moves with '(?P<symbol>[^']+)' in its place\.", rare=True)
def none_moves(world: World, symbol: str) -> None:
    assert dict(world.view)["replacement"] == symbol


@law(f"{INFLUENCE}flips", r"No output depends on that token\.", rare=True)
def none_depends(world: World) -> None:
    batch, _ = world.alone
    slots = batch.tokens.shape[1] + (0 if batch.source is None else batch.source.shape[1])
    assert any(shifts_of(world, slot)[0].max() < 1e-9 for slot in range(slots))


GREATEST = "app_pages/whole_model/information/matrices.Matrix.greatest"
CELLS = r"(?:Largest value|(?P<cells>[\d,]+) cells have the largest value; the first): "
OUTPUT = r"output '(?P<said>[^']+)' at (?P<row>\d+)"
VALUE = r"(?P<value>[\d.e+-]+)"


def slots_of(world: World) -> tuple[np.ndarray, int]:
    """What is read on the page's question, the source first, and how much of it is the source's."""
    batch, _ = world.alone
    source = np.zeros(0, dtype=int) if batch.source is None else batch.source[0]
    return np.concatenate([source, batch.tokens[0]]), len(source)


def laid_out(rows: np.ndarray, sources: int) -> Batch:
    """So many slots as a batch, whose targets nobody asks for."""
    tokens = rows[:, sources:]
    alike = np.ones_like(tokens, dtype=bool)
    return Batch(tokens, tokens, alike, alike, rows[:, :sources] if sources else None)


def moved_by(world: World) -> np.ndarray:
    """How far each output moves, the greatest change of a logit, when each slot is replaced: [output, slot]. Padding is
    not replaced."""
    slots, _ = slots_of(world)
    put = symbols(world, dict(world.view).get("replacement"))
    columns = [
        shifts_of(world, slot)[0][put].max(axis=0) * (token != world.task.padding) for slot, token in enumerate(slots)
    ]
    return np.stack(columns, axis=1)


def slopes_of(world: World, step: float = 1e-5) -> np.ndarray:
    """How steeply the logit of what each output says leans on the vector that enters at each slot, [output, slot]: its
    numbers are moved one by one, a little up and down."""
    slots, sources = slots_of(world)
    _, seen = world.alone
    found = []
    for stack in ["encoder"] * bool(sources) + [world.stack]:
        site = f"{stack}.0.resid_pre"
        (stream,) = seen.stages[site]
        n, d = stream.shape
        streams = np.broadcast_to(stream, (2, n, d, n, d)).copy()
        for place, at in itertools.product(range(n), range(d)):
            streams[:, place, at, place, at] += np.array([step, -step])
        batch = laid_out(np.repeat(slots[None], 2 * n * d, axis=0), sources)
        logits = world.through(batch, patch=(site, slice(None), streams.reshape(-1, n, d))).logits
        own = logits[:, np.arange(logits.shape[1]), seen.said[0]].reshape(2, n, d, -1)
        found.append(np.linalg.norm((own[0] - own[1]) / (2 * step), axis=1).T)
    return np.concatenate(found, axis=1)


def rolled_over_slots(world: World) -> np.ndarray:
    """Attention multiplied through all layers, the encoder's first: float [output, slot]."""
    _, seen = world.alone
    _, sources = slots_of(world)
    if not sources:
        return rollout_of(world, world.sizes.n_layers - 1)

    def onward(flow: np.ndarray, site: str, read: np.ndarray | None = None) -> np.ndarray:
        mean = seen.patterns[site][0].mean(axis=0)
        read = flow if read is None else read
        return np.array([(own + weights @ read) / (1 + weights.sum()) for own, weights in zip(flow, mean, strict=True)])

    n, memory = world.alone[0].tokens.shape[1], np.eye(sources)
    for layer in range(world.sizes.n_layers):
        memory = onward(memory, f"encoder.{layer}.self_attention")
    memory, flow = np.hstack([memory, np.zeros((sources, n))]), np.hstack([np.zeros((n, sources)), np.eye(n)])
    for layer in range(world.sizes.n_layers):
        flow = onward(flow, f"decoder.{layer}.self_attention")
        flow = onward(flow, f"decoder.{layer}.cross_attention", memory)
    return flow


def patterns_over_slots(world: World) -> list[np.ndarray]:
    """Of each head of which an output asks: its pattern, float [output, slot]."""
    _, sources = slots_of(world)
    n, found = world.alone[0].tokens.shape[1], []
    for head in world.heads:
        pattern = world.alone[1].patterns[head.site][0, head.index]
        across = head.site.endswith("cross_attention")
        if not sources:
            found.append(pattern)
        elif head.site.startswith("decoder"):
            beside = np.zeros((n, n if across else sources))
            found.append(np.hstack([pattern, beside] if across else [beside, pattern]))
    return found


def is_greatest(world: World, values: np.ndarray, cells: str | None, said: str, row: str, token: str, place: str,
                source: str | None, value: str) -> bool:  # fmt: skip
    """Are these cells the greatest as far as three digits tell, and is this the first of them?"""
    slots, sources = slots_of(world)
    names, shown = world.task.vocabulary, float(value)
    at = int(row) - 1, int(place) - 1 + sources * (source is None)
    power = 10.0 ** math.floor(math.log10(shown))
    above = 0.005 * power
    below = above / 10 if shown == power else above  # 0.9995 is the least that three digits write as 1
    sure, perhaps = ((values > shown - below * room) & (values < shown + above * room) for room in (0.9, 1.1))
    return bool(
        (names[world.alone[1].said[0, at[0]]], names[slots[at[1]]]) == (said, token)
        and perhaps[at]
        and values.max() < shown + 1.1 * above
        and sure.sum() <= number(cells or "1") <= perhaps.sum()
        and not sure.ravel()[: at[0] * values.shape[1] + at[1]].any()
    )


@law(GREATEST, rf"{CELLS}{OUTPUT} moves by {VALUE} when {PLACE} is replaced\.")
def moves_most(world: World, cells: str | None, said: str, row: str, value: str, token: str, place: str,
               source: str | None) -> None:  # fmt: skip
    assert is_greatest(world, moved_by(world), cells, said, row, token, place, source, value)


@law(GREATEST, rf"{CELLS}the gradient of {OUTPUT} with respect to {PLACE} is {VALUE} long\.")
def leans_most(world: World, cells: str | None, said: str, row: str, value: str, token: str, place: str,
               source: str | None) -> None:  # fmt: skip
    assert is_greatest(world, slopes_of(world), cells, said, row, token, place, source, value)


@law(GREATEST, rf"{CELLS}{OUTPUT} gets {VALUE} of its rolled-out attention from {PLACE}\.")
def gets_most(world: World, cells: str | None, said: str, row: str, value: str, token: str, place: str,
              source: str | None) -> None:  # fmt: skip
    assert is_greatest(world, rolled_over_slots(world), cells, said, row, token, place, source, value)


@law(GREATEST, rf"{CELLS}{OUTPUT} looks at {PLACE}: {VALUE}\.")
def looks_most(world: World, cells: str | None, said: str, row: str, value: str, token: str, place: str,
               source: str | None) -> None:  # fmt: skip
    found = patterns_over_slots(world)
    assert any(is_greatest(world, each, cells, said, row, token, place, source, value) for each in found)


@law(GREATEST, r"All values are 0\.", rare=True)
def all_are_0(world: World) -> None:
    found = [moved_by(world), slopes_of(world), *patterns_over_slots(world)]
    assert any(each.max() < 1e-6 for each in found)


@law(
    GREATEST,
    rf"{CELLS}an output at (?P<rows>[\d–]+) (?:moves by|gets|looks at) .+\.",
    rare=True,
)
def greatest_of_blocks(world: World, cells: str | None, rows: str) -> None:
    raise AssertionError("no model of the grid reads so much that blocks of tokens stand for it")
