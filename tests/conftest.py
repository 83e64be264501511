"""What every test shares: shapes checked by a machine, one torch thread, how `hypothesis` looks for examples."""

import os
import pkgutil
import tempfile
from functools import partial
from importlib import import_module
from typing import Any

import jaxtyping

# Texts that tests read lie in a cache of this process's own.
os.environ["ATTENTION_LAB_CACHE"] = tempfile.mkdtemp(prefix="attention-lab-")

_jaxtyped = jaxtyping.jaxtyped


def _jaxtyped_where_there_are_shapes(fn: Any = None, **options: Any) -> Any:
    """What has no array among its arguments has no shape to check, and checking costs more than most functions."""
    if fn is None:
        return partial(_jaxtyped_where_there_are_shapes, **options)
    asked = getattr(fn, "__func__", None) or getattr(fn, "fget", None) or fn
    shaped = any("[Tensor," in each or "[np.ndarray," in each for each in map(str, asked.__annotations__.values()))
    return _jaxtyped(fn, **options) if shaped else fn


# Before anything imports transformer. The numeric tower: an int is welcome where a float is asked for (PEP 484).
jaxtyping.jaxtyped = _jaxtyped_where_there_are_shapes
jaxtyping.install_import_hook("transformer", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

import hypothesis  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

import transformer  # noqa: E402
from dashboard.server import streamlit_private  # noqa: E402

pytest.register_assert_rewrite("tests.kit")

# All of it at once: the hook parses what it checks, and Python 3.11 may fail to parse in two threads at a time.
for module in pkgutil.walk_packages(transformer.__path__, "transformer."):
    if not module.name.endswith("__main__"):
        import_module(module.name)

torch.set_num_threads(1)
hypothesis.settings.register_profile("small", max_examples=25, deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("small")

streamlit_private.scan_packages_once()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine, a page is drawn with all that is measured for it, and in one run."""
    monkeypatch.setattr("dashboard.view.session.BEHIND", 0.0)
    monkeypatch.setattr("dashboard.models.background.AT_ONCE", 60.0)
    monkeypatch.setattr("dashboard.app_pages.how_it_began.corners.lesson.AT_ONCE", 60.0)
