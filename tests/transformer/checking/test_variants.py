"""What is right is found right, however it is written: twenty variants and more, of five kinds."""

import importlib.util
import inspect
from pathlib import Path

import pytest

from transformer.checking.bench import Local
from transformer.checking.check import JUDGES, judge

PIECES = "piece"  # the gallery's right code, in test_gallery.py
FOLDER = Path(__file__).parent / "variants"
PARTS = {"attention", "Head", "SelfAttention", "Block", "Config"}
"""Of which others are made."""


def variants():
    for kind in sorted(JUDGES.keys() - {PIECES}):
        spec = importlib.util.spec_from_file_location(f"variants_{kind}", FOLDER / f"{kind}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in vars(module).items():
            own = inspect.isfunction(value) or inspect.isclass(value)
            if own and value.__module__ == module.__name__ and name not in PARTS:
                yield pytest.param(kind, value, id=f"{kind}-{name}")


VARIANTS = list(variants())


def test_there_are_some_of_every_kind():
    assert {each.values[0] for each in VARIANTS} == JUDGES.keys() - {PIECES}


@pytest.mark.daily(18)
@pytest.mark.parametrize(("kind", "variant"), VARIANTS)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_it_is_right_and_its_kind_is_guessed(kind, variant):
    bench = Local(variant)
    guessed, findings = judge(bench, bench.describe())
    assert guessed == kind
    assert findings.wrong == []
    assert findings.mistake == ""
    assert findings.tried
    assert findings.undecided == ""
