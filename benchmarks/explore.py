"""How long looking takes, beside others: `python benchmarks/explore.py [--quick] [--save]`; --save writes EXPLORE.md.

The page "Attention heads", BertViz's head view and model view, and CircuitsVis's attention heads draw the very same
patterns, each in a new tab with an empty cache, in turns, in one headless Chromium, from servers on this machine.
Time runs from the navigation, or from the click, until everything has been handed to the browser, and on to the second
frame after that: the first one is on the screen by then. The rivals' pages are made beforehand (see kit/viewers.py).
The rivals need what benchmarks/requirements.txt says; without them ours alone is measured, and nothing is saved. Quiet
the machine first: the load is printed with the numbers.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from kit.pages import give_up, load, machine, options, page, spread, table
from kit.tabs import PATIENCE, Tab, one_chromium, open_tab
from kit.viewers import Patterns, Viewer, viewers
from playwright.sync_api import Browser, Error, Page

from transformer import checkpoints
from transformer.analysis.sample import sample, say
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.training.runs import Run

PAGE = "EXPLORE.md"
SECTIONS = ("beside", "clicks", "new-tab", "cold")
"""What is measured, each by itself."""
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.kit.driving import choose, click_head, dashboard, free_port, grid, serving  # noqa: E402

SHIPPED = HERE.parent / "checkpoints" / "reverse"
"""The run on which the dashboard opens."""
PROGRAMS = HERE.parent / "build" / "explore"
"""Where the rivals' programs are kept between two calls."""
ENOUGH = 20.0
"""Seconds after which a viewer is not asked again: one such opening says it."""
SETTLE, SILENCE = 300, 700
"""Milliseconds of rest before the next click, and without a byte after which all have come."""
TARGETS = {64: 150, 512: 300}
"""Milliseconds from click to repaint that are aimed at, by tokens; shorter inputs are held to the next longer one."""


@dataclass(frozen=True)
class Size:
    """A model's shape and the length of its question; reversing reads all but the last token of the answer, too."""

    length: int
    layers: int
    heads: int

    @property
    def name(self) -> str:
        return f"bench-{self.length}-{self.layers}x{self.heads}"

    @property
    def shape(self) -> str:
        return f"{self.layers} × {self.heads}"


SHAPES = ((2, 4), (6, 8), (12, 12))
SIZES = [Size(length, *shape) for length in (8, 32, 64, 128) for shape in SHAPES]
QUICK = [Size(8, 2, 4)]
CLICKED = [*(Size(length, 2, 4) for length in (8, 32, 64, 128, 256)), Size(32, 12, 12)]
NOTHING = Size(2, 1, 1)
"""What is looked at before another model is chosen in the open app."""

OURS = """() => {
  const heads = %d;
  const column = document.querySelector('.st-key-head-pattern');
  const grid = find(document, '__grid')?.__grid, large = column && find(column, '__plot');
  if (grid?.layout?.boxes.length !== heads || !large?.dataset.head) return false;
  return (large.__plot.shown.figure.layout.meta.tokens.y.length === 4) === (heads === 1);
}"""
"""Whether the grid shows so many heads, and the large pattern is NOTHING's, of four tokens, if there is one."""
THUMBNAILS = "() => find(document, '__grid')?.__grid.layout?.boxes.length === %d"
"""Whether the grid alone does."""
EMPTY = {"word": "() => document.querySelector('#empty')"}
TITLE = "() => document.querySelector('h1')?.textContent.trim()"
FIGURE = "() => find(document, '_fullLayout')?.querySelector('.main-svg')"
"""Whether Plotly has drawn one."""
AIMS = {"title": 1.2, "heads": 1.4, "figure": 2.5}
"""Of the stages of a page in a new tab: how many times as long as an empty app's word they may take."""
REPAINTED = "() => find(document.querySelector('.st-key-head-pattern'), '__plot').dataset.head === '%s'"
"""Whether the large figure is drawn of this head, all of it."""
PATTERN = "() => find(document.querySelector('.st-key-head-pattern'), '__plot').dataset.preview === '%d'"
"""Whether the pattern of the head of this number stands there before the rest."""


@dataclass
class Found:
    """What was measured of a viewer at a size."""

    seconds: list[float] = field(default_factory=list)
    made: float | None = None
    """Seconds in which its page was made beforehand."""
    whole: int = 0
    """Bytes that its tab received, all in all."""
    data: int = 0
    """Those that were not programs, styles and fonts."""
    failure: str = ""


def make_run(root: Path, size: Size) -> Patterns:
    """An untrained model of this shape as a run, and its patterns on the page's own sample."""
    d_model = {1: 16, 4: 64, 8: 96, 12: 144}[size.heads]
    config = RunConfig(
        task=TaskConfig(length=size.length),
        model=ModelConfig(
            n_layers=size.layers, n_heads=size.heads, d_model=d_model, d_ff=2 * d_model, query_key_gain=3.0
        ),
        training=TrainingConfig(seed=1),
    )
    run = Run.create(root / size.name, config)
    torch.manual_seed(1)
    model = build(config)
    snapshot = run.folder / "snapshots" / "step-000000.safetensors"
    snapshot.parent.mkdir(exist_ok=True)
    checkpoints.save(snapshot, model, config)
    run.set_state("finished", 0, "Made for a benchmark.")
    task = config.build_task()
    seen = sample(model, task, task.example, said=say(model, task, task.example))
    patterns = [attention.pattern for attention in seen.attentions.values()]
    return Patterns(list(seen.read), torch.stack([torch.from_numpy(pattern) for pattern in patterns]))


@contextmanager
def files(folder: Path) -> Iterator[str]:
    """A folder as a web server's own; yields its address."""
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def empty_app(folder: Path) -> Iterator[str]:
    """A Streamlit app that shows one word: what no page of a dashboard can be faster than. Yields its address."""
    (folder / "empty.py").write_text("import streamlit as st\nst.html('<p id=empty>Nothing.</p>')\n")
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(folder / "empty.py"), "--server.headless", "true"]
    address = f"http://127.0.0.1:{port}"
    with serving([*command, "--server.port", str(port)], address):
        yield address


def measure(found: Found, chromium: Browser, address: str, ready: str) -> None:
    """Open an address in a new tab until it is painted, and add what was seen; a failure is kept in its words."""
    if found.failure or any(seconds > ENOUGH for seconds in found.seconds):
        return
    with open_tab(chromium) as tab:
        try:
            found.seconds.append(tab.open(address, ready))
            tab.quiet(SILENCE)
            found.whole, found.data = tab.whole, tab.data
        except Error as error:
            found.failure = tab.why(error)


def switched(found: Found, chromium: Browser, app: str, size: Size) -> None:
    """Choose this model in the open app, as a user does; in a new tab, for an old one keeps what it was sent before."""
    if found.failure:
        return
    with open_tab(chromium) as tab:
        try:
            tab.open(f"{app}/heads?run={NOTHING.name}", OURS % 1)
            idle(tab.page)
            before = tab.whole, tab.data
            tab.watch(OURS % (size.layers * size.heads))
            choose(tab.page, "Model", size.name)
            found.seconds.append(tab.finished() - tab.clicked())
            tab.quiet(SILENCE)
            found.whole, found.data = tab.whole - before[0], tab.data - before[1]
        except Error as error:
            found.failure = tab.why(error)


def idle(page: Page) -> None:
    """Wait until the script has ended and nothing is under way."""
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", state="attached")
    page.wait_for_timeout(SETTLE)


def beside(
    chromium: Browser, app: str, empty: str, root: Path, size: Size, rivals: Sequence[Viewer], rounds: int
) -> tuple[int, dict[str, Found]]:
    """All viewers in turn on the same patterns; returns how many tokens there are, and what was found by name."""
    patterns = make_run(root, size)
    found = {
        name: Found()
        for name in (
            "ours, first time",
            "ours, new tab, all heads",
            "ours, new tab",
            "ours, open app",
            "an empty Streamlit app",
        )
    }
    ours = f"{app}/heads?run={size.name}", OURS % patterns.heads
    measure(found["ours, first time"], chromium, *ours)
    with tempfile.TemporaryDirectory() as folder, files(Path(folder)) as address:
        for program in PROGRAMS.iterdir():
            (Path(folder) / program.name).symlink_to(program)
        for number, viewer in enumerate(rivals):
            began = time.perf_counter()
            (Path(folder) / f"{number}.html").write_text(viewer.page(patterns), encoding="utf-8")
            found[viewer.name] = Found(made=time.perf_counter() - began)
        for _ in range(rounds):
            measure(found["ours, new tab, all heads"], chromium, ours[0], THUMBNAILS % patterns.heads)
            measure(found["ours, new tab"], chromium, *ours)
            switched(found["ours, open app"], chromium, app, size)
            measure(found["an empty Streamlit app"], chromium, empty, "() => document.querySelector('#empty')")
            for number, viewer in enumerate(rivals):
                measure(found[viewer.name], chromium, f"{address}/{number}.html", viewer.ready(patterns))
    return len(patterns.tokens), found


def report_all_heads(
    chromium: Browser, app: str, empty: str, root: Path, rivals: Sequence[Viewer], sizes: Sequence[Size], rounds: int
) -> None:
    """All viewers at all sizes, a row each."""
    print(
        "\n## All heads, beside others\n\n"
        "Seconds until painted, in a new tab with an empty cache. Ours: all heads, and then the one in focus, for "
        "which plotly.js must run; the table of their metrics follows by itself half a second later. First time: "
        "the server runs the model within the time; later it keeps what it found. Open app: chosen in the menu "
        "while another model is shown. An empty Streamlit app: one word, as Streamlit serves it when nothing is "
        "done about its sockets. The "
        "rivals' patterns were computed and their pages made beforehand, in the time of the last column. "
        "BertViz's head view draws one layer at a time, the others draw all. Data: all bytes "
        "but those of programs, styles and fonts, which a browser keeps; nothing is compressed."
    )
    table(
        "tokens",
        "layers × heads",
        "viewer",
        "s, median",
        "least to most",
        "÷ ours, new tab",
        "÷ ours, open app",
        "data, kB",
        "in all, kB",
        "made in, s",
    )
    for size in sizes:
        print(f"{size.name} …", file=sys.stderr, flush=True)
        tokens, found = beside(chromium, app, empty, root, size, rivals, rounds)
        report_beside(tokens, size, found)


def report_beside(tokens: int, size: Size, found: dict[str, Found]) -> None:
    """A row for each viewer; its median is also given as a multiple of ours, in a new tab and in the open app."""
    ours = [found[name] for name in ("ours, new tab", "ours, open app")]
    for name, its in found.items():
        made = "" if its.made is None else f"{its.made:.2f}"
        head = f"| {tokens} | {size.shape} | {name} |"
        if not its.seconds:
            print(f"{head} {its.failure} | | | | | | {made} |", flush=True)
            continue
        ratios = [
            f"{statistics.median(its.seconds) / statistics.median(mine.seconds):.2f}" if mine.seconds else "–"
            for mine in ours
        ]
        note = f" {its.failure}" if its.failure else ""
        print(
            f"{head} {spread(its.seconds, 2)}{note} | {ratios[0]} | {ratios[1]} "
            f"| {its.data / 1e3:,.0f} | {its.whole / 1e3:,.0f} | {made} |",
            flush=True,
        )


def stages(heads: int) -> dict[str, dict[str, str]]:
    """What is waited for in a new tab, by page."""
    return {
        "overview": {"title": TITLE, "figure": FIGURE},
        "heads": {"title": TITLE, "heads": THUMBNAILS % heads, "figure": FIGURE},
    }


def report_new_tab(chromium: Browser, app: str, empty: str, root: Path, rounds: int) -> None:
    """When a page's title, heads and first figure stand in a new tab, as multiples of an empty app's word."""
    size = Size(8, 2, 4)
    if not (root / size.name).exists():
        make_run(root, size)
    addresses = {"overview": f"{app}/?run={size.name}", "heads": f"{app}/heads?run={size.name}"}
    waited = stages(size.layers * size.heads)
    found: dict[tuple[str, str], list[float]] = {}
    for turn in range(int(rounds == 1), rounds + 1):  # one turn is only tried out, and does without the first
        for page_, address in {"empty": empty, **addresses}.items():
            with open_tab(chromium) as tab:
                for stage, seconds in tab.passes(address, waited.get(page_, EMPTY)).items():
                    if turn:  # the first time the server runs the model
                        found.setdefault((page_, stage), []).append(seconds)
    print(
        "\n## A new tab\n\nSeconds until painted, in a tab with an empty cache and from a warm server; the three in "
        f"turns, {rounds} each. An empty Streamlit app is how long its one word takes."
    )
    _stages(found)


def report_cold(chromium: Browser, rounds: int) -> None:
    """The same from a server that has just begun to answer, of the page on which the dashboard opens."""
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(SHIPPED, Path(folder) / SHIPPED.name)
            with dashboard(Path(folder)) as app, open_tab(chromium) as tab:
                for stage, seconds in tab.passes(app, stages(8)["overview"]).items():
                    found.setdefault(("overview", stage), []).append(seconds)
            with empty_app(Path(folder)) as empty, open_tab(chromium) as tab:
                found.setdefault(("empty", "word"), []).append(tab.passes(empty, EMPTY)["word"])
    print(
        "\n## From a cold start\n\nThe same, the first tab of a server that has just begun to answer, on the run that "
        f"is shipped; the dashboard loads PyTorch when its page is drawn. The two in turns, {rounds} each."
    )
    _stages(found)


def _stages(found: dict[tuple[str, str], list[float]]) -> None:
    empty = statistics.median(found["empty", "word"])
    table("page", "stands", "s, median", "least to most", "÷ empty app", "aim")
    for (page_, stage), seconds in found.items():
        aim = f"{AIMS[stage]:.1f}" if stage in AIMS else ""
        print(
            f"| {page_} | {stage} | {spread(seconds, 2)} | {statistics.median(seconds) / empty:.2f} | {aim} |",
            flush=True,
        )


@dataclass
class Answers:
    """Of clicks on thumbnails: milliseconds until a head's pattern is painted large, and until all is, and the bytes
    received for it."""

    pattern: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    received: list[int] = field(default_factory=list)


def clicks(tab: Tab, size: Size, count: int) -> Answers:
    """Click one thumbnail after another."""
    answers = Answers()
    heads = size.layers * size.heads
    tab.page.wait_for_selector(".st-key-find-table canvas", timeout=1000 * PATIENCE)
    tab.quiet(1500)
    for turn in range(count):
        number = (7 * turn + heads - 1) % heads  # 7 shares no factor with any number of heads: they all have their turn
        layer, head = divmod(number, size.heads)
        if int(grid(tab.page).get_attribute("data-focus") or 0) == number:
            continue
        before = tab.whole
        repainted = REPAINTED % f"decoder.{layer}.self_attention.{head}"
        tab.watch(f"() => ({PATTERN % number})() || ({repainted})()", "pattern")
        tab.watch(repainted)
        click_head(tab.page, number)
        answers.pattern.append(1000 * (tab.finished("pattern") - tab.clicked()))
        answers.whole.append(1000 * (tab.finished() - tab.clicked()))
        idle(tab.page)
        answers.received.append(tab.whole - before)
    return answers


def report_clicks(chromium: Browser, app: str, root: Path, sizes: Sequence[Size], count: int) -> None:
    """From a click on a thumbnail of ours until its head is painted large."""
    print(
        f"\n## From a click to the repaint\n\nOurs: {count} clicks on thumbnails, real ones, each of another head, "
        "once the table of metrics stands; a layer's first click computes its details. First stands the head's "
        "pattern, which the browser holds, up to 128 tokens; then all of it, which the aim is for. The rivals hold all "
        "patterns in the browser and ask no server."
    )
    table(
        "tokens",
        "layers × heads",
        "its pattern: ms, median",
        "least to most",
        "all of it: ms, median",
        "least to most",
        "9 of 10 within, ms",
        "aim, ms",
        "most kB a click",
    )
    for size in sizes:
        if not (root / size.name).exists():
            make_run(root, size)
        with open_tab(chromium) as tab:
            tokens = 2 * size.length
            try:
                tab.open(f"{app}/heads?run={size.name}", OURS % (size.layers * size.heads))
                answers = clicks(tab, size, count)
            except Error as error:
                print(f"| {tokens} | {size.shape} | {tab.why(error)} | | | | | | |", flush=True)
                continue
        aim = next(aim for most, aim in TARGETS.items() if tokens <= most)
        most = statistics.quantiles(answers.whole, n=10, method="inclusive")[-1]
        print(
            f"| {tokens} | {size.shape} | {spread(answers.pattern, 0)} | {spread(answers.whole, 0)} "
            f"| {most:.0f} | {aim} | {max(answers.received) / 1e3:,.0f} |",
            flush=True,
        )


def report(chromium: Browser, rivals: Sequence[Viewer], only: Sequence[str], quick: bool, busy: str) -> None:
    """Measure these sections and print them as they come."""
    rounds, count = (1, 3) if quick else (3, 20)
    print(f"{machine(torch.device('cpu'), busy)}, Chromium {chromium.version}; {rounds} turns.")
    with (
        tempfile.TemporaryDirectory() as folder,
        dashboard(Path(folder)) as app,
        empty_app(Path(folder)) as empty,
    ):
        root = Path(folder)
        make_run(root, NOTHING)
        if "beside" in only:
            report_all_heads(chromium, app, empty, root, rivals, QUICK if quick else SIZES, rounds)
        if "clicks" in only:
            report_clicks(chromium, app, root, QUICK if quick else CLICKED, count)
        if "new-tab" in only:
            report_new_tab(chromium, app, empty, root, 1 if quick else 9)
    if "cold" in only:
        report_cold(chromium, 1 if quick else 5)


def main() -> None:
    parser = options(__doc__, PAGE)
    parser.add_argument("--only", action="append", choices=SECTIONS, help="this section alone; may be said repeatedly")
    arguments, busy = parser.parse_args(), load()
    if arguments.only and arguments.save:
        parser.error("--only is not saved: the page holds all sections")
    rivals, absent = viewers(PROGRAMS)
    if absent and arguments.save:
        give_up(absent)
    with one_chromium() as chromium, page(PAGE, "Times of looking", save=arguments.save):
        if absent:
            print(f"Without these rivals: {absent}.\n")
        report(chromium, rivals, arguments.only or SECTIONS, arguments.quick, busy)


if __name__ == "__main__":
    main()
