"""Make the README's picture anew from the running dashboard: `make screenshots`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "browser"))

from driving import browser, dashboard

OUT = Path(__file__).resolve().parent / "dashboard.png"


def main() -> None:
    with dashboard() as address, browser() as chromium:
        page = chromium.new_page(viewport={"width": 1440, "height": 900}, device_scale_factor=1)
        page.goto(address)
        page.wait_for_selector("[data-testid=stMain] h1")
        page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length >= 3")
        page.wait_for_timeout(1500)
        page.screenshot(path=OUT)
    print(OUT)


if __name__ == "__main__":
    main()
