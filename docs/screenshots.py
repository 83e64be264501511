"""Make the README's picture anew from the running dashboard: `make screenshots`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.kit.driving import PAGES, browser, dashboard, wait_until_painted  # noqa: E402

OUT = ROOT / "docs" / "dashboard.png"
SCREEN = {"width": 1440, "height": 900}
SHIPPED = ("reverse", "reverse-sinusoidal", "reverse-aligned", "reverse-aligned-causal", "reverse-translate")
MOST_BYTES = 100_000
COLOURS = 256
"""As many as a palette holds; a pixel then takes one byte and not three."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        for name in SHIPPED:  # not what its maker has trained besides
            shutil.copytree(ROOT / "checkpoints" / name, Path(folder) / name)
        with dashboard(Path(folder)) as address:
            page = chromium.new_page(viewport=SCREEN, color_scheme="light", reduced_motion="reduce")
            for _ in range(2):  # the first visit warms the server
                page.goto(address)
                wait_until_painted(page, PAGES["Overview"])
            page.mouse.move(0, 0)
            page.wait_for_timeout(500)  # the last fonts and fades
            page.screenshot(path=OUT, animations="disabled", scale="css")
    painted = Image.open(OUT).convert("RGB")
    painted.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(OUT, optimize=True)
    if OUT.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{OUT.name} weighs {OUT.stat().st_size:,} bytes, more than {MOST_BYTES:,}")
    print(f"docs/{OUT.name}: {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
