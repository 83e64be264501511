"""What is made ready before anybody asks: PyTorch in this process, and a spare training process.

Both belong to the server, not to a browser session: a closed tab ends nothing.
"""

from __future__ import annotations

import threading
import time

from transformer.training.runs import Run
from transformer.training.worker import Spare

PATIENCE = 20.0
"""Seconds for which a new spare waits for the training before it."""
SETTLE = 2.0
"""Seconds left to the first page, which wants the processors for itself."""
_lock = threading.Lock()
_spare: Spare | None = None


def start() -> None:
    """Begin in the background, once the first page, which does without PyTorch, has been drawn."""
    threading.Thread(target=_prepare, name="warm-up", daemon=True).start()


def stop() -> None:
    """End the unused spare. Trainings that have begun go on: they belong to their run folders."""
    global _spare
    with _lock:
        if _spare is not None:
            _spare.dismiss()
            _spare = None


def train(run: Run) -> None:
    """Train a run in the spare process, and prepare the next one when the run no longer needs the processor."""
    global _spare
    with _lock:
        worker, _spare = _spare or Spare(), None
        if not worker.alive:
            worker = Spare()
        worker.train(run)
    threading.Thread(target=_replenish_after, args=(worker,), name="spare", daemon=True).start()


def _prepare() -> None:
    time.sleep(SETTLE)
    _replenish()

    import transformer.analysis.heads
    import transformer.checkpoints  # noqa: F401


def _replenish_after(worker: Spare) -> None:
    """Starting a spare costs seconds of a core: a short training ends first, a long one is not waited for."""
    worker.wait(PATIENCE)
    _replenish()
    worker.wait()


def _replenish() -> None:
    global _spare
    with _lock:
        if _spare is None:
            _spare = Spare()
