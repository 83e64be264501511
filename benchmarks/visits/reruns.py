"""What a rerun costs with more runs in the folder: `python benchmarks/visits/reruns.py [--quick] [--save]`.

Three folders hold the shipped runs, the second and the third 100 and 1,000 more: copies of one, each with its own name,
date and last weights. A page is opened on each without a browser, and then drawn anew in turns, so that a busy
neighbour slows all alike. Counted is the processor time of the whole process from the request to the last element of
the page, once everything is warm; the ratios are taken turn by turn. "Right after another" is a rerun within the
quarter of a second for which all who ask share one look at the folder, "later" one that looks anew, "after a change"
one before which a run has got another state. --save writes RERUNS.md.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch
from streamlit.testing.v1 import AppTest

sys.path[:0] = [str(Path(__file__).resolve().parents[place]) for place in (1, 2)]

from kit.pages import HERE, load, machine, options, page, spread, table  # noqa: E402

from dashboard.models import menu  # noqa: E402
from tests.kit.pages import open_page  # noqa: E402
from transformer.foundation import versions  # noqa: E402
from transformer.training import listing  # noqa: E402
from transformer.training.runs import Run  # noqa: E402

PAGE = "RERUNS.md"
SHIPPED = HERE.parent / "checkpoints"
PAGES = {"heads": "Attention heads", "runs": "Runs and races"}
FULL, QUICK = ((0, 100, 1000), 15), ((0, 3), 1)
WARM = 2
"""Reruns before the first that counts."""
AT_ONCE, LATER, CHANGED = "right after another", "later", "after a change"
"""When a rerun comes."""


def folder(root: Path, more: int) -> Path:
    """The shipped runs and so many more."""
    shutil.copytree(SHIPPED, root)
    like = root / "reverse-aligned"
    card = json.loads((like / "run.json").read_text())
    last = Run(like).snapshot()
    for number in range(more):
        run = root / f"run-{number:04}"
        (run / "snapshots").mkdir(parents=True)
        for path in like.iterdir():
            if path.is_file():
                shutil.copy(path, run)
        shutil.copy(last, run / "snapshots")
        (run / "run.json").write_text(json.dumps(card | {"created": card["created"] + 60 * number}))
    return root


def rerun(app: AppTest, root: Path, what: str = "") -> float:
    """Seconds of processor time."""
    menu.ROOT = root
    if what == LATER:
        time.sleep(listing.SHARED_FOR)
    if what == CHANGED:
        run = Run(root / "reverse")
        run.set_state("finished", 40, "" if run.state.reason else "solved")
    began = time.process_time()
    app.run()
    spent = time.process_time() - began
    assert not app.exception
    return spent


def measure(roots: dict[int, Path], turns: int) -> None:
    time.sleep(versions.SETTLED_AFTER / 1e9)  # the files have just been made
    for name, title in PAGES.items():
        apps = {}
        for more, root in roots.items():
            menu.ROOT = root
            apps[more] = open_page(name)
        for what in (AT_ONCE, LATER, CHANGED):
            found: dict[int, list[float]] = {more: [] for more in roots}
            for turn in range(WARM + turns):
                for more, root in roots.items():
                    for _ in range(2 if what == AT_ONCE else 1):  # of two in a row the second
                        spent = rerun(apps[more], root, what)
                    if turn >= WARM:
                        found[more].append(1000 * spent)
            for more, spent in found.items():
                ratios = [its / none for its, none in zip(spent, found[0], strict=True)]
                print(f"| {title}, {what} | {more:,} | {spread(spent, 0)} | {spread(ratios, 2)} |", flush=True)


def main() -> None:
    arguments = options(__doc__, PAGE).parse_args()
    sizes, turns = QUICK if arguments.quick else FULL
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name, page(PAGE, "A rerun beside many runs", save=arguments.save):
        print(f"{machine(torch.device('cpu'), load())}. {turns} turns.")
        table("rerun of", "more runs", "ms, median", "least to most", "it ÷ without them, median", "least to most")
        measure({more: folder(Path(name) / str(more), more) for more in sizes}, turns)


if __name__ == "__main__":
    main()
