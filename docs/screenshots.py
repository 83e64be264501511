"""Make the pictures of the README and of the guide anew from the running dashboard: `make screenshots`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dashboard.view.pages import OVERVIEW, PAGES, TEXT  # noqa: E402
from tests.kit.driving import PAGES as PLOTS  # noqa: E402
from tests.kit.driving import PATIENCE, browser, dashboard, wait_until_painted  # noqa: E402
from tests.kit.foreign.small_gpt2 import saved  # noqa: E402

OUT = ROOT / "docs" / "dashboard.webp"
GUIDE = ROOT / "docs" / "guide" / "pictures"
SCREEN = {"width": 1440, "height": 900}
RUNS = (
    *("reverse", "reverse-any", "reverse-sinusoidal", "reverse-aligned", "reverse-aligned-causal", "reverse-translate"),
    *("bottleneck-gru", "bottleneck-gru-attention", "bottleneck-transformer", "shakespeare", "encodings"),
)
MODEL = "small-gpt2"
"""The imported model: it is trained here, which takes minutes."""
CHANGED = {
    "ablation": "&removed=decoder.0.self_attention.0",
    "check": "&check_example=heads-merged-without-transpose",
}
MOST_BYTES = 100_000
COLOURS = 64
"""Of the palette of the large picture: it shows few, and its file is small."""
SIDEBAR, WIDTH, QUALITY = 300, 320, 30
"""Pixels of the sidebar, which the guide leaves out; how wide its pictures are, and how exact."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        for name in RUNS:  # not what its maker has trained besides
            shutil.copytree(ROOT / "checkpoints" / name, Path(folder) / name)
        models = Path(folder) / ".models"
        saved(models / MODEL)
        with dashboard(Path(folder), ATTENTION_LAB_MODELS=str(models)) as address:
            page = chromium.new_page(viewport=SCREEN, color_scheme="light", reduced_motion="reduce")
            for each in PAGES.values():
                run = "shakespeare" if each.menu == TEXT else "reverse-any" if each is OVERVIEW else "reverse"
                for _ in range(2):  # the first visit warms the server
                    which = f"imported={MODEL}" if each.imported else f"run={run}"
                    page.goto(
                        f"{address}/{'' if each is OVERVIEW else each.address}?{which}{CHANGED.get(each.address, '')}"
                    )
                    if each.imported:
                        page.locator(".al-plot[data-state=ready]").first.wait_for(timeout=PATIENCE)
                    elif each.address in ("writing", "reading"):  # how many figures they have depends on the text
                        page.locator("[data-testid=stMain] canvas").first.wait_for()
                    else:
                        wait_until_painted(page, PLOTS[each.title])
                    if each.address == "check":
                        page.get_by_test_id("stMain").get_by_role("button", name="Check").click()
                        page.get_by_role("heading", name="Wrong: ").wait_for(timeout=PATIENCE)
                taken = shot(page, Path(folder) / f"{each.address}.png")
                if each is OVERVIEW:
                    save_large(taken)
                else:
                    save_small(taken, GUIDE / f"{each.address}.webp")


def shot(page: Page, path: Path) -> Image.Image:
    """What the window shows."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(2000)  # the last fonts and fades, and what is measured behind the page
    page.screenshot(path=path, animations="disabled", scale="css")
    return Image.open(path).convert("RGB")


def save_large(taken: Image.Image) -> None:
    few = taken.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.convert("RGB").save(OUT, lossless=True, quality=100, method=6)
    if OUT.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{OUT.name} weighs {OUT.stat().st_size:,} bytes, more than {MOST_BYTES:,}")
    print(f"docs/{OUT.name}: {OUT.stat().st_size:,} bytes")


def save_small(taken: Image.Image, path: Path) -> None:
    """The page beside the sidebar, small."""
    path.parent.mkdir(exist_ok=True)
    beside = taken.crop((SIDEBAR, 0, *taken.size))
    height = round(beside.height * WIDTH / beside.width)
    beside.resize((WIDTH, height), Image.Resampling.LANCZOS).save(path, quality=QUALITY, method=6)
    print(f"docs/guide/pictures/{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
