"""Which tests go to one worker, and what comes of the others when it crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling


class ByModule(LoadFileScheduling):
    """A module's tests go to one worker: what its pages measure is measured there once.

    The browser's tests of every day go together, so that they share one server and one Chromium; with those of a
    night there are too many, and they go menu by menu.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.split("::")[0])
        if "browser" not in path.parts[1:2]:
            return nodeid.split("::")[0]
        return "browser" if "not nightly" in self.config.option.markexpr else path.parent.as_posix()

    def remove_node(self, node: Any) -> str | None:
        """The test with which a worker crashed. It has been run; the worker's other tests go to others."""
        units = self.assigned_work.get(node, {}).values()
        crashed = next(((unit, test) for unit in units for test, done in unit.items() if not done), None)
        if crashed is not None:
            unit, test = crashed
            unit[test] = True  # else it would be given to one worker after the other, until none is replaced any more
        super().remove_node(node)
        return crashed and test


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByModule:
    return ByModule(config, log)
