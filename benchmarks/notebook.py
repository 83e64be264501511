"""How large a page of all heads is, and when it is painted: `python benchmarks/notebook.py [--quick] [--save]`.

--save writes NOTEBOOK.md. Our `to_html` and BertViz's head view and model view write the same patterns, those of a
GPT-2 with random weights, into one HTML file each. The files are opened from the disk, each in a new tab with an empty
cache, in turns, in one headless Chromium. Time runs from the navigation until everything has been handed to the
browser, and on to the second frame after that. BertViz's files load three programs from a CDN; here they lie beside
them (kit/viewers.py), so that no network is measured. BertViz needs what benchmarks/requirements.txt says; without it
ours alone is measured, and nothing is saved.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from kit.pages import give_up, load, machine, missing, options, page, spread, table
from kit.tabs import one_chromium, open_tab
from kit.viewers import Patterns, Viewer, viewers
from playwright.sync_api import Browser, Error

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from dashboard import show, to_html  # noqa: E402
from dashboard.components.documents.pages import packed_plotly, widget_script  # noqa: E402
from transformer import Captured, capture  # noqa: E402

PAGE = "NOTEBOOK.md"
PROGRAMS = HERE.parent / "build" / "explore"
"""Where BertViz's programs are kept between two calls."""
ENOUGH = 20.0
"""Seconds after which a page is not opened again."""
GRID = "() => find(document, '__grid')?.__grid.layout?.boxes.length === %d"
LARGE = "() => find(document, '__plot')?.dataset.state === 'ready'"


@dataclass
class File:
    """A page, when it is painted, and what was measured of it."""

    name: str
    path: Path
    ready: str
    written: float
    """Seconds in which it was written."""
    loads: int = 0
    """Bytes of the programs that it loads from elsewhere."""
    seconds: list[float] = field(default_factory=list)
    failure: str = ""


def gpt2(layers: int, heads: int, tokens: int) -> tuple[Captured, list[str]]:
    """A GPT-2 with random weights, captured on random tokens, and their names."""
    import transformers

    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=1000, n_layer=layers, n_head=heads, n_embd=16 * heads, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for block in model.transformer.h:
            block.attn.c_attn.weight *= 20  # an even look everywhere would be no picture
        asked = torch.randint(0, 1000, (1, tokens))
        return capture(model, asked), [f"t{token}" for token in asked[0].tolist()]


def files(folder: Path, seen: Captured, names: list[str], rivals: Sequence[Viewer]) -> list[File]:
    """The pages of all viewers; ours twice, for its large head comes after the grid."""
    patterns = Patterns(names, torch.cat([seen[f"{site}.pattern"] for site in seen.attentions()]))
    began = time.perf_counter()
    ours = to_html(seen, folder / "ours.html", names)
    took = time.perf_counter() - began
    found = [
        File("ours, all heads", ours, GRID % patterns.heads, took),
        File("ours, large head too", ours, LARGE, took),
    ]
    for number, viewer in enumerate(rivals):
        began = time.perf_counter()
        path = folder / f"{number}.html"
        path.write_text(viewer.page(patterns), encoding="utf-8")
        took = time.perf_counter() - began
        loads = sum((PROGRAMS / program).stat().st_size for program in viewer.programs)
        found.append(File(viewer.name, path, viewer.ready(patterns), took, loads))
    return found


def measure(chromium: Browser, found: Sequence[File], rounds: int) -> None:
    """Open each in turn; one that fails, or takes long, is not opened again: one such opening says it."""
    for _ in range(rounds):
        for each in found:
            if each.failure or any(seconds > ENOUGH for seconds in each.seconds):
                continue
            with open_tab(chromium) as tab:
                try:
                    each.seconds.append(tab.open(each.path.as_uri(), each.ready))
                except Error as error:
                    each.failure = tab.why(error)


def report(chromium: Browser, rivals: Sequence[Viewer], quick: bool, busy: str) -> None:
    """Measure everything and print it."""
    rounds = 1 if quick else 5
    sizes = [(2, 2, 16)] if quick else [(12, 12, 64), (12, 12, 128)]
    print(f"{machine(torch.device('cpu'), busy)}, Chromium {chromium.version}; {rounds} turn{'s' * (rounds > 1)}.\n")
    print(
        "Ours is one file that loads nothing: plotly.js and the numbers of every head are in it, compressed. BertViz's "
        "head view draws one layer at a time, the others draw all heads. Its files load D3, jQuery and require.js from "
        "a CDN; without a network they stay empty. A page that took more than 20 s was not opened again."
    )
    table(
        "tokens",
        "layers × heads",
        "page",
        "file, kB",
        "loads besides, kB",
        "painted, s, median",
        "least to most",
        "÷ ours, large head too",
        "written in, s",
    )
    sent: list[str] = []
    for layers, heads, tokens in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for program in PROGRAMS.iterdir():
                (folder / program.name).symlink_to(program)
            seen, names = gpt2(layers, heads, tokens)
            found = files(folder, seen, names, rivals)
            measure(chromium, found, rounds)
            for each in found:
                print(f"| {tokens} | {layers} × {heads} | {each.name} | {_row(each, found[1])} |", flush=True)
        sent.append(f"{_sent(seen, names) / 1e3:,.0f} kB at {tokens} tokens")
    print(
        f"\nIn a notebook our widget gets {' and '.join(sent)}, its script ({len(widget_script()) / 1e3:,.0f} kB) "
        f"among them, and plotly.js ({len(packed_plotly()) / 1e3:,.0f} kB) once a notebook; a click gets one head more."
    )


def _row(each: File, ours: File) -> str:
    """The cells of a page, from its size on."""
    painted = f"{each.failure} | | "
    if not each.failure:
        ratio = statistics.median(each.seconds) / statistics.median(ours.seconds)
        painted = f"{spread(each.seconds, 2)} | {ratio:.2f}"
    size = each.path.stat().st_size
    return f"{size / 1e3:,.0f} | {each.loads / 1e3:,.0f} | {painted} | {each.written:.1f}"


def _sent(seen: Captured, names: list[str]) -> int:
    """Bytes that a widget is sent."""
    widget = show(seen, names=names)
    return len(widget_script()) + len(json.dumps(widget.document)) + len(widget.message)


def main() -> None:
    arguments, busy = options(__doc__, PAGE).parse_args(), load()
    if absent := missing("transformers", "anywidget"):
        give_up(absent)
    rivals, absent = viewers(PROGRAMS, "bertviz")
    if absent and arguments.save:
        give_up(absent)
    with one_chromium() as chromium, page(PAGE, "All heads in one file", save=arguments.save):
        if absent:
            print(f"Without these rivals: {absent}.\n")
        report(chromium, rivals, arguments.quick, busy)


if __name__ == "__main__":
    main()
