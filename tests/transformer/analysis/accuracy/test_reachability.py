"""The ways through the layers, against a walk along every path, and against what is known of windows."""

from itertools import pairwise

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from transformer import masks
from transformer.analysis.accuracy.ceilings import ceiling_of_mask, reachable
from transformer.analysis.accuracy.reachability import flow, flow_of_mask, least_layers, needed_by
from transformer.tasks import TASKS


def booleans(*shape):
    size = int(np.prod(shape))
    return st.lists(st.booleans(), min_size=size, max_size=size).map(lambda cells: np.array(cells).reshape(shape))


def paths(target, n_layers, mask, cross, source):
    """Every path to `target`, each a tuple of (stack, layer, place) from a slot upwards, walked backwards by hand."""
    ended, open_paths = [], [(("tokens", n_layers, target),)]
    while open_paths:
        path = open_paths.pop()
        stack, layer, place = path[0]
        if layer == 0:
            ended.append(path)
            continue
        own = mask if stack == "tokens" else source
        for other in range(len(own)):
            if other == place or own[place][other]:
                open_paths.append(((stack, layer - 1, other), *path))
        if stack == "tokens" and cross is not None:
            for other in range(cross.shape[1]):
                if cross[place][other]:
                    open_paths.append((("source", n_layers, other), *path))
    return ended


@st.composite
def cases(draw):
    n, width, layers = draw(st.integers(1, 4)), draw(st.integers(0, 3)), draw(st.integers(1, 3))
    cross = draw(booleans(n, width)) if width else None
    source = draw(booleans(width, width)) if width else None
    return draw(booleans(n, n)), layers, draw(st.integers(0, n - 1)), draw(booleans(width + n)), cross, source


@hypothesis.given(cases())
@hypothesis.settings(max_examples=60, deadline=None)
def test_a_flow_is_all_paths_and_their_beginnings_are_what_is_reachable(case):
    mask, n_layers, target, needed, cross, source = case
    found = flow(mask, n_layers, target, needed, cross=cross, source=source)
    walked = paths(target, n_layers, mask, cross, source)
    width = 0 if cross is None else cross.shape[1]
    from_needed = [path for path in walked if needed[path[0][2] + (width if path[0][0] == "tokens" else 0)]]
    assert found.arrives == bool(from_needed)
    slots = [*(("source", 0, place) for place in range(width)), *(("tokens", 0, place) for place in range(len(mask)))]
    reached = reachable(mask, n_layers, cross=cross, source=source)[target]
    assert {slots[slot] for slot in np.flatnonzero(reached)} == {path[0] for path in walked}

    nodes = {node for path in walked for node in path}
    carrying = {node for path in from_needed for node in path}
    for column in found.columns:
        for place in range(len(column.leads)):
            node = (column.stack, column.layer, place)
            assert column.leads[place] == (node in nodes)
            assert (column.leads & column.carries)[place] == (node in carrying)

    steps = {step for path in walked for step in pairwise(path)}
    drawn = set()
    for link in found.links:
        start, end = found.columns[link.start], found.columns[link.end]
        assert not (link.attention & link.straight).any()
        for to, place in np.argwhere(link.attention | link.straight).tolist():
            one, other = (start.stack, start.layer, place), (end.stack, end.layer, to)
            drawn.add((one, other))
            assert bool(link.straight[to, place]) == (start.stack == end.stack and place == to)
    assert drawn == steps


# --- how many layers it takes
def least(task, mask, length):
    return [least_layers(task, masks.parse(mask), length, i) for i in range(len(task.target_names(length)))]


@pytest.mark.parametrize("width", [1, 2, 3])
def test_through_a_window_the_mirror_image_takes_its_distance_over_the_width(width):
    task = TASKS["reverse-aligned"](length=9)
    assert least(task, f"sliding-window:{width}", 9) == [-(-abs(8 - 2 * i) // width) for i in range(9)]


@pytest.mark.parametrize(
    ("name", "mask", "layers"),
    [
        ("reverse-aligned", "causal", [-1] * 4 + [1] * 4),
        ("reverse", "causal", [-1] * 7 + [0] + [1] * 8),
        ("reverse", "hide:9", [-1] * 7 + [0] + [1] * 8),  # a hidden separator hides nothing that is needed
        ("reverse", "hide:8", [-1] * 7 + [0, -1] + [1] * 7),
        ("reverse-translate", "sliding-window:0", [1] * 8),  # an encoder hands everything over in one layer
    ],
)
def test_what_can_arrive_takes_one_layer_and_what_is_hidden_never_arrives(name, mask, layers):
    assert least(TASKS[name](), mask, 8) == layers


@pytest.mark.daily(2)
@pytest.mark.parametrize("name", TASKS.names())
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=15, deadline=None)
def test_the_layers_it_takes_are_those_at_which_the_ceiling_becomes_one(name, data):
    task = TASKS[name](length=3, symbols=3)
    n = len(task.target_names(3))
    mask = data.draw(booleans(n, n))
    found = [least_layers(task, mask, 3, target) for target in range(n)]
    for layers in (1, 2, 3, 7):
        certain = ceiling_of_mask(task, mask, layers, 3).accuracy > 1 - 1e-9
        assert certain.tolist() == [0 <= needs <= layers for needs in found]
    for target in range(n):
        if task.rearranges and task.symbols_of_targets(3)[target] >= 0:
            assert flow_of_mask(task, mask, 7, 3, target).arrives == (found[target] >= 0)


def places(needed):
    return [np.flatnonzero(row).tolist() for row in needed]


def test_what_each_output_needs():
    assert places(needed_by(TASKS["reverse"](length=3), 3)) == [[1, 5], [2, 4], [], [2, 4], [1, 5], [0]]
    assert places(needed_by(TASKS["sort"](length=2), 2)) == [[1], [], [0, 1, 3], [0, 1]]
    assert places(needed_by(TASKS["reverse-translate"](length=2), 2)) == [[1, 3], [0]]
