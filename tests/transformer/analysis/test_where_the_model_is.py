"""Every analysis says of a model on a GPU what it says of it on the CPU."""

import inspect
import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import transformer.analysis
from tests.kit import texts
from tests.kit.gpu.analyses import LAWFUL, NOT_RUN, OF_TEXTS
from tests.kit.gpu.devices import GPU, ON_EVERY_DEVICE, STAND_INS, present
from tests.kit.numbers.leaves import leaves
from tests.kit.numbers.rounding import SHIPPED, near
from transformer.model import build
from transformer.recurrent import corners, look_back, roll_out
from transformer.training.runs import Run

REVERSE = Path(__file__).parents[3] / "checkpoints" / "reverse"


def model_and_task(name):
    """A trained model, whose decisions are no ties; of texts an untrained one."""
    if name in OF_TEXTS:
        config = texts.config()
        return build(config).eval(), config.build_task()
    run = Run(REVERSE)
    return run.network(), run.config.build_task()


@cache
def on_the_cpu(name):
    return dict(leaves((LAWFUL | OF_TEXTS)[name](*model_and_task(name))))


def assert_alike(found, expected):
    assert found.keys() == expected.keys()
    for name, value in found.items():
        if value.dtype.kind == "f":
            assert value == near(expected[name], SHIPPED), name
        else:
            assert np.array_equal(value, expected[name]), name


NAMES = [*LAWFUL, *OF_TEXTS]
CUDA, MPS = (pytest.param(each, marks=pytest.mark.nightly) for each in STAND_INS)
PLACES = [(MPS, NAMES), (CUDA, NAMES[::9]), (GPU, NAMES)]
"""No analysis asks which kind of device it has, and MPS, which has no float64, is the stricter one."""


@pytest.mark.parametrize(
    ("name", "where"),
    [pytest.param(name, *place.values, marks=place.marks) for place, names in PLACES for name in names],
)
def test_a_model_is_looked_at_where_it_is(name, where):
    expected = on_the_cpu(name)
    model, task = model_and_task(name)
    with present(where) as device:
        found = dict(leaves((LAWFUL | OF_TEXTS)[name](model.to(device), task)))
    assert expected
    assert_alike(found, expected)


@ON_EVERY_DEVICE
def test_a_walker_is_looked_at_where_it_is(where):
    def look(model):
        asked = corners.walks(np.random.default_rng(0), 4, 6, 0.1)
        walk = look_back.one_walk(1, 1, 4)
        steps = list(corners.train_corners(model, every=2, shown=asked, fresh=64))
        return dict(
            leaves(
                [
                    corners.say_corners(model, asked),
                    look_back.look_back(model, walk, 1),
                    roll_out.roll_out(model, asked, 0),
                ]
            )
        ) | {f"error of step {each.step}": np.asarray(each.error) for each in steps}

    config = corners.CornerConfig(attention="additive", most=6, steps=4, batch_size=8)
    expected = look(corners.build_walker(config))
    with present(where) as device:
        assert_alike(look(corners.build_walker(config).to(device)), expected)


def test_every_analysis_is_in_the_list():
    """What a newcomer has to write: its line in `tests/kit/gpu/analyses.py`."""
    there = set()
    for module in pkgutil.walk_packages(transformer.analysis.__path__, "transformer.analysis."):
        for name, function in vars(import_module(module.name)).items():
            function = inspect.unwrap(function) if inspect.isfunction(function) else None
            if function is None or name.startswith("_") or function.__module__ != module.name:
                continue
            first = next(iter(inspect.signature(function).parameters.values()), None)
            if first is not None and str(first.annotation) in ("Network", "Transformer"):
                there.add(f"{module.name.removeprefix('transformer.analysis.')}.{name}")
    # What takes models in another way is in the list as well.
    others = {"film.take.film", "machine.movement.moved", "weights.movements", "observe", "generate"}
    assert there | others == {*LAWFUL, *OF_TEXTS, *NOT_RUN}
