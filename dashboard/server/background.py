"""What is made ready before anybody asks: PyTorch in this process, and warm training processes.

Both belong to the server, not to a browser session: a closed tab ends nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformer.foundation import gpus
from transformer.training import runs
from transformer.training.queue.pool import Pool

FEW = 2
"""Cores that the first page and the first spare would dispute; with more of them the spare is begun at once."""
SETTLE = 2.0
"""Seconds left to the first page, which wants the processors for itself."""
DRAWING = 1.0
"""Seconds left to the browser that draws it."""
PATIENCE = 20.0
"""Seconds for which this process leaves the processors to the first spare."""
PAUSE, LONGEST_PAUSE = 5.0, 60.0
"""Seconds after which PyTorch is tried again where it cannot be imported, twice as many each time, and the most."""
pool = Pool(root=runs.ROOT)
begun, drawn = threading.Event(), threading.Event()
"""Has a page been asked for, and has one been drawn?"""
over = threading.Event()
"""Is the server told to end?"""
busy = Counter[int]()
"""The threads in which a page is drawn for somebody at this moment."""


def start() -> None:
    """Begin in the background; with few cores once the first page, which does without PyTorch, has been drawn.

    This process leaves the GPUs to the training processes: what is shown of them is what these have found.
    """
    gpus.hide()
    threading.Thread(target=_prepare, name="warm-up", daemon=True).start()


def stop() -> None:
    """End the spares, and what nobody waits for. Trainings that have begun go on."""
    over.set()
    pool.close()


@contextmanager
def drawing() -> Iterator[None]:
    """Note meanwhile that a page is drawn for somebody, so that what nobody waits for can wait."""
    thread = threading.get_ident()
    busy[thread] += 1
    try:
        yield
    finally:
        busy[thread] -= 1
        if not busy[thread]:
            del busy[thread]


def torch() -> Any:
    """PyTorch once it is wholly imported, else None: nobody waits here for a thread that is in the midst of it."""
    found = sys.modules.get("torch")
    return None if getattr(getattr(found, "__spec__", None), "_initializing", False) else found


def _prepare() -> None:
    if (os.cpu_count() or 1) > FEW:
        pool.start()
    time.sleep(SETTLE)
    if begun.is_set():
        drawn.wait(PATIENCE)
        time.sleep(DRAWING)
    pool.start()
    pause = PAUSE
    while True:
        try:
            _import_all()
        except Exception:
            if pause == PAUSE:
                traceback.print_exc()
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        else:
            return


def _import_all() -> None:
    """Import PyTorch, and take its first steps on the CPU. Raises whatever PyTorch raises where it is broken."""
    import transformer.analysis.heads
    import transformer.checkpoints  # noqa: F401
    from transformer.training.queue.worker import warm_up

    for worker in pool.workers:
        worker.ready.wait(PATIENCE)  # a click on Train is likelier than a question that trains on the spot
    warm_up()
