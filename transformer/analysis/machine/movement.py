"""How far training moved the weights of each box of a plan between two snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import Tensor

from transformer.analysis.machine.plan import Box, Plan


def moved(plan: Plan, before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> dict[str, float]:
    """‖W_after − W_before‖ / ‖W_before‖ of each box, all its weights taken as one vector.

    `before` and `after` are what `state_dict` holds. Boxes without weights are left out, and those that were all zero.
    """
    found = {}
    for box in plan.boxes:
        pairs = list(zip(_of(before, box), _of(after, box), strict=True))
        length = sum(float(old.square().sum()) for old, _ in pairs) ** 0.5
        change = sum(float((new - old).square().sum()) for old, new in pairs) ** 0.5
        if length:
            found[box.name] = change / length
    return found


def _of(state: Mapping[str, Tensor], box: Box) -> Iterator[Tensor]:
    """The weights of a box, in float64; a head has some rows of the maps and some columns of W_O."""
    yield from (values.cpu().double() for values in _weights(state, box))


def _weights(state: Mapping[str, Tensor], box: Box) -> Iterator[Tensor]:
    if box.weights:
        yield from (values for name, values in sorted(state.items()) if name.startswith(box.weights))
    elif box.parameters:
        head, _, part = box.name.rpartition(".")
        if box.kind == "head":
            head, parts = box.name, ["query", "key", "value"]
        else:
            parts = [part]
        site, _, index = head.rpartition(".")
        width = box.shape[-1]
        for each in parts:
            if each == "out":
                weight = state[f"{site}.out.weight"]
                width = weight.shape[1] * box.parameters // weight.numel()
                yield weight[:, int(index) * width : (int(index) + 1) * width]
            else:
                rows = slice(int(index) * width, (int(index) + 1) * width)
                yield state[f"{site}.{each}.weight"][rows]
                yield state[f"{site}.{each}.bias"][rows]
