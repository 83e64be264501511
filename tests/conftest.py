"""What every test shares: shapes checked by a machine, one torch thread, hypothesis' examples, which run together."""

import gc
import inspect
import logging
import os
import pkgutil
import tempfile
from collections.abc import Iterator
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

# Before torch and numpy are imported, and for the processes that tests start, too. `torch.set_num_threads` limits only
# the thread that calls it: one begun later would start with a thread a core, and add up a product in another order.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import jaxtyping
import pytest

# Texts that tests read lie in a cache of this process's own, which goes when the process ends.
_cache = tempfile.TemporaryDirectory(prefix="attention-lab-", ignore_cleanup_errors=True)
os.environ["ATTENTION_LAB_CACHE"] = _cache.name

_jaxtyped = jaxtyping.jaxtyped
_shapes: dict[str, Any] = {"checked": True, "once": None}
"""Whether shapes are checked, and by day which functions the test at hand has called already."""


def _jaxtyped_where_there_are_shapes(fn: Any = None, **options: Any) -> Any:
    """What has no array among its arguments has no shape to check, and checking costs more than most functions.

    By day the library's own tests check the first call of each function in each test, by night all tests every call.
    """
    if fn is None:
        return partial(_jaxtyped_where_there_are_shapes, **options)
    asked = getattr(fn, "__func__", None) or getattr(fn, "fget", None) or fn
    shaped = any("[Tensor," in each or "[np.ndarray," in each for each in map(str, asked.__annotations__.values()))
    if not shaped:
        return fn
    checked = _jaxtyped(fn, **options)
    if not isinstance(fn, FunctionType):
        return checked

    @wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        once = _shapes["once"]
        if not _shapes["checked"] or (once is not None and fn in once):
            return fn(*args, **kwargs)
        if once is not None:
            once.add(fn)
        return checked(*args, **kwargs)

    return called


# Before anything imports transformer: a conftest below that does is read before pytest is configured, where its folder
# is asked for by name. An int is welcome where a float is asked for (PEP 484).
jaxtyping.jaxtyped = _jaxtyped_where_there_are_shapes
jaxtyping.install_import_hook("transformer", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

pytest.register_assert_rewrite("tests.kit")
from tests.kit.numbers.numerical import is_numerical  # noqa: E402  # rewritten
from tests.kit.runner import failures  # noqa: E402
from tests.kit.runner.workers import pytest_xdist_make_scheduler  # noqa: E402, F401
from tests.kit.waiting import PATIENCE  # noqa: E402

hypothesis.settings.register_profile("small", max_examples=25, deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("small")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let one page alone be judged: see test_every_claim.py."""
    parser.addoption("--page", action="append", default=[], help="the page whose claims are judged; may be given again")


def pytest_configure(config: pytest.Config) -> None:
    """Make ready a process that runs tests; one that only hands them out to others needs none of it."""
    failures.pytest_configure(config)
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return
    _import_transformer()
    _do_once_what_each_test_would_do()


def _import_transformer() -> None:
    """All of it at once: the hook parses what it checks, and Python 3.11 may fail to parse in two threads at a time."""
    import transformer

    for module in pkgutil.walk_packages(transformer.__path__, "transformer."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


def _do_once_what_each_test_would_do() -> None:
    from tests.kit.streamlit_insides import quick_pages

    quick_pages.scan_packages_once()
    quick_pages.compile_scripts_once()
    # pytest hangs its handlers on each logger that keeps its words to itself, six times a test: on a hundred of them
    # that takes longer than many a test.
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.propagate = True


def pytest_collection_finish() -> None:
    """What is there by now stays: it is not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


TESTS = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the browser's tests, nightly where they are no smoke test, and those of numbers; begin with what takes long.

    Numerical is, of what runs every day without a browser, each test that compares numbers with a tolerance.
    What takes long is what is nightly, and of the rest the browser's, whose folder is the first. Of the cases of a test
    that is `daily(n)`, n run every day, spread over all of them; the others are nightly.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.path.is_relative_to(TESTS / "browser"):
            item.add_marker("browser")
            if not item.get_closest_marker("smoke"):
                item.add_marker("nightly")
        if item.get_closest_marker("daily"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for each in cases.values():
        (count,) = each[0].get_closest_marker("daily").args
        kept = {round(place * (len(each) - 1) / max(1, count - 1)) for place in range(count)}
        for place, item in enumerate(each):
            if place not in kept:
                item.add_marker("nightly")
    for item in items:
        daily = not (item.get_closest_marker("nightly") or item.get_closest_marker("browser"))
        if daily and is_numerical(inspect.unwrap(item.function)):
            item.add_marker("numerical")
    items.sort(key=lambda item: item.get_closest_marker("nightly") is None)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say in the last line which tests did not run for want of a browser, and why."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.getreports("skipped") if reporter else []
    reasons = [report.longrepr[2].removeprefix("Skipped: ") for report in skipped if "browser" in report.keywords]
    if reasons:
        reporter.write_line(f"{len(reasons)} tests of tests/browser did not run: {', '.join(sorted(set(reasons)))}.")


@pytest.fixture(autouse=True)
def _checked_shapes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every shape by night; by day the first of each function, under the library's own tests."""
    by_day = "not nightly" in request.config.option.markexpr or request.config.option.markexpr == "numerical"
    inside = request.path.is_relative_to(TESTS / "transformer")
    monkeypatch.setitem(_shapes, "checked", inside or not by_day)
    monkeypatch.setitem(_shapes, "once", set() if by_day else None)


def _silenced() -> set[str]:
    """Which loggers of ours nobody hears."""
    loggers = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    ours = [each for each in loggers if each.name.partition(".")[0] in ("dashboard", "transformer")]
    return {each.name for each in ours if each.disabled or not each.propagate or logging.root.manager.disable}


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """What the product logs is heard after a test as it was before: the next test may be about it."""
    before = _silenced()
    yield
    assert _silenced() <= before


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine, nobody is taken for dead, and a page is drawn with all its measurements, in one run.

    And what a test has just written is seen at the next look, not a moment later.
    """
    monkeypatch.setattr("transformer.training.listing.SHARED_FOR", 0.0)
    monkeypatch.setattr("transformer.training.runs.SILENT_AFTER", 2 * PATIENCE)
    monkeypatch.setattr("dashboard.view.session.BEHIND", 0.0)
    monkeypatch.setattr("dashboard.models.background.AT_ONCE", PATIENCE)
    monkeypatch.setattr("dashboard.models.walks.corners.AT_ONCE", PATIENCE)
