"""Laws of the page "Inside a head": what a query reads, and the circuits of a head."""

from __future__ import annotations

import math
import re

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.world import Head, World
from tests.kit.heads_by_hand import mapped


def readings(world: World, query: int, key: int) -> list[float]:
    _, seen = world.alone
    return [
        float(each[0, head, query, key])
        for each in seen.patterns.values()
        for head in range(each.shape[1])
        if query < each.shape[2] and key < each.shape[3] and each[0, head, query].argmax() == key
    ]


ASKS = r"(?:Query )?'(?P<token>[^']+)' at (?P<place>\d+)"
ASKED = r"(?:the source's )?'(?P<key>[^']+)' at (?P<at>\d+)(?: of the source)?"


@law(
    "app_pages/attention/inside/steps.headline",
    rf"{ASKS}(?: of the source)? reads {ASKED} with (?P<share>[\d.]+): here is why\.",
)
def reads(world: World, token: str, place: str, key: str, at: str, share: Shown) -> None:
    assert any(share == each for each in readings(world, int(place) - 1, int(at) - 1))


@law(
    "app_pages/attention/inside/steps.headline",
    rf"{ASKS}(?: of the source)? can only read {ASKED}: it may see nothing else\.",
)
def reads_one(world: World, token: str, place: str, key: str, at: str) -> None:
    _, seen = world.alone
    assert any(
        mask[0, 0, int(place) - 1].sum() == 1 and mask[0, 0, int(place) - 1, int(at) - 1]
        for mask in seen.masks.values()
        if int(place) <= mask.shape[2]
    )


@law(
    "app_pages/attention/inside/steps.headline",
    rf"{ASKS} may see nothing: it attends to nothing, and its head writes nothing\.",
    rare=True,
)
def reads_none(world: World, token: str, place: str) -> None:
    _, seen = world.alone
    assert any(not mask[0, 0, int(place) - 1].any() for mask in seen.masks.values() if int(place) <= mask.shape[2])


def map_through(world: World, x: np.ndarray, stack: str, site: str, *, onward: bool = False) -> np.ndarray:
    """Vectors on the straight way to what an attention reads, or `onward` from what it writes to the unembedding: what
    is linear of each norm there. Of no `site`: through the whole stack, to the memory."""
    behind = [
        f"{stack}.{layer}.around_{part}.after"
        for layer in range(world.sizes.n_layers)
        for part in ("self", "cross", "feed_forward")
        if f"{stack}.{layer}.{part}{'_attention' * (part != 'feed_forward')}" in sublayers_of(world)
    ]
    if not site:
        names = [*behind, "memory_norm"]
    else:
        own = f"{site.rpartition('.')[0]}.around_{site.rpartition('.')[2].removesuffix('_attention')}"
        at = behind.index(f"{own}.after")
        names = [*behind[at:], "final_norm"] if onward else [*behind[:at], f"{own}.before"]
    for name in names:
        x = mapped(x, world.model.get_submodule(name))
    return x


def sublayers_of(world: World) -> set[str]:
    """The paths of all sub-layers."""
    return {".".join(name.split(".")[:3]) for name in world.weights}


def circuits_of(world: World, head: Head) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """QK of all tokens but the padding, QK of all positions, and OV: products of weights alone."""
    w, sizes, site = world.weights, world.sizes, head.site
    stack, width = site.split(".")[0], world.sizes.d_head
    rows, across = slice(head.index * width, (head.index + 1) * width), site.endswith("cross_attention")

    def asked(x: np.ndarray) -> np.ndarray:
        return map_through(world, x, "encoder", "") if across else map_through(world, x, stack, site)

    def fit(x: np.ndarray) -> np.ndarray:
        query = map_through(world, x, stack, site) @ w[f"{site}.query.weight"][rows].T
        return query @ (asked(x) @ w[f"{site}.key.weight"][rows].T).T / math.sqrt(width)

    embedded = w["embedding.weight"][:-1] * (math.sqrt(sizes.d_model) if sizes.scale_embeddings else 1.0)
    n, told, places = world.model.n_ctx, world.model.positions.vectors(world.model.n_ctx), None
    if told is not None:
        places = fit(told.detach().double().numpy())
    elif not across and (bias := world.model.positions.bias(n, n)) is not None:
        places = bias[head.index].detach().double().numpy()
    said = None
    if stack == world.stack:
        written = asked(embedded) @ w[f"{site}.value.weight"][rows].T @ w[f"{site}.out.weight"][:, rows].T
        said = (map_through(world, written, stack, site, onward=True) @ w["unembedding.weight"].T)[:, :-1]
    return fit(embedded), places, said


def best_of(rows: np.ndarray, own: np.ndarray, margin: float = 1e-5) -> tuple[int, int]:
    """In how many rows one of the `own` columns is the greatest: for certain, and as far as rounding can tell."""
    inside = np.where(own, rows, -np.inf).max(axis=1)
    outside = np.where(own, -np.inf, rows).max(axis=1)
    return int((inside > outside + margin).sum()), int((inside >= outside - margin).sum())


CIRCUITS = "app_pages/attention/inside/circuits."


def fitting(world: World) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Of each head to which positions are told: how well each query and key that may be seen fit, and which keys of an
    answer are where it stands, where its keys and queries are the task's."""
    _, seen = world.alone
    expected, found = world.task.expected_keys(world.question), []
    for head in world.heads:
        fit, mask = circuits_of(world, head)[1], seen.masks[head.site][0, 0]
        if fit is not None:
            carries = not world.task.has_source or head.site.endswith("cross_attention")
            fit = np.where(mask, fit[: mask.shape[0], : mask.shape[1]], -np.inf)
            found.append((fit, expected if carries and (expected & mask).any() else None))
    return found


@law(
    f"{CIRCUITS}position_sentence",
    r"Of what it may see, the query at (?P<query>\d+) fits (?:the keys? at (?P<keys>[\d, and]+) best|(?P<many>\d+) "
    r"keys best, all alike); for (?P<right>\d+) of (?P<of>\d+) answers? that can be seen the best key is where the "
    r"answer stands\.",
)
def fits_best(world: World, query: str, keys: str | None, many: str | None, right: str, of: str) -> None:
    def holds(fit: np.ndarray, expected: np.ndarray | None) -> bool:
        if expected is None:
            return False
        answers = np.flatnonzero((expected & np.isfinite(fit)).any(axis=1))
        row = fit[int(query) - 1]
        level = np.flatnonzero(row >= row.max() - 0.0101)
        named = [int(each) - 1 for each in re.findall(r"\d+", keys or "")]
        sure, _ = best_of(fit[answers], expected[answers], 0.0101)
        _, perhaps = best_of(fit[answers], expected[answers])
        return (
            int(query) - 1 == answers[0]
            and int(of) == len(answers)
            and sure <= int(right) <= perhaps
            and {*named} <= {*level.tolist()}
            and (many is None or int(many) <= len(level))
        )

    assert any(holds(*each) for each in fitting(world))


@law(
    f"{CIRCUITS}position_sentence",
    r"Of what may be seen, the query at (?P<query>\d+) and the key at (?P<key>\d+) fit best: (?P<fit>[−\d.]+)\.",
)
@law(
    f"{CIRCUITS}position_sentence",
    r"Of what may be seen, (?P<many>\d+) pairs of a query and a key fit best: (?P<fit>[−\d.]+) each\.",
    rare=True,
)
def pair_fits_best(
    world: World, fit: Shown, query: str | None = None, key: str | None = None, many: str | None = None
) -> None:
    found = [values for values, expected in fitting(world) if expected is None and fit == values.max()]
    if query is not None and key is not None:
        assert any(fit == values[int(query) - 1, int(key) - 1] for values in found)
    else:
        assert any((values >= values.max() - 0.0101).sum() >= int(many or 0) > 1 for values in found)


@law(f"{CIRCUITS}position_sentence", r"No query may see a key\.", rare=True)
def no_query_sees(world: World) -> None:
    assert any(not np.isfinite(values).any() for values, _ in fitting(world))


LIKE = r"; for (?P<like>\d+) of (?P<of>\d+) tokens the best key is the token itself\."


@law(
    f"{CIRCUITS}token_sentence",
    rf"Query '(?P<query>[^']+)' and key '(?P<key>[^']+)' fit best: (?P<fit>[−\d.]+){LIKE}",
)
@law(
    f"{CIRCUITS}token_sentence",
    rf"(?P<many>\d+) pairs of a query and a key fit best: (?P<fit>[−\d.]+) each{LIKE}",
    rare=True,
)
def tokens_fit_best(
    world: World, fit: Shown, like: str, of: str, query: str | None = None, key: str | None = None,
    many: str | None = None,
) -> None:  # fmt: skip
    def holds(values: np.ndarray) -> bool:
        sure, perhaps = best_of(values, np.eye(len(values), dtype=bool))
        if not (fit == values.max() and int(of) == len(values) and sure <= int(like) <= perhaps):
            return False
        if query is None or key is None:
            return (values >= values.max() - 0.0101).sum() >= int(many or 0) > 1
        return fit == values[world.task.vocabulary.index(query), world.task.vocabulary.index(key)]

    assert any(holds(circuits_of(world, head)[0]) for head in world.heads)


@law(f"{CIRCUITS}token_sentence", r"All are 0: this head asks for no token\.", rare=True)
def asks_for_none(world: World) -> None:
    assert any(not circuits_of(world, head)[0].any() for head in world.heads)


@law(
    f"{CIRCUITS}copy_sentence",
    r"For (?P<copied>\d+) of (?P<of>\d+) symbols, looking at one adds most to its own logit(?P<verdict>: this head "
    r"copies)?\.",
)
def adds_most_to_its_own(world: World, copied: str, of: str, verdict: str | None) -> None:
    symbols = world.task.symbols
    assert int(of) == symbols
    assert (verdict is not None) == (copied == of)
    found = [said for head in world.heads if (said := circuits_of(world, head)[2]) is not None]
    ends = [best_of(said[:symbols], np.eye(symbols, said.shape[1], dtype=bool)) for said in found]
    assert any(sure <= int(copied) <= perhaps for sure, perhaps in ends)
