"""All words of all pages at a commit and now, side by side: `python docs/texts.py COMMIT` writes build/texts.html.

For whoever reviews a change of words. Each page is opened without a browser, as its address alone opens it; what a page
says only after a click is not among its words.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "texts.html"
SAID = ("title", "header", "subheader", "markdown", "caption", "html", "warning", "info", "error")
ASKED = ("button", "checkbox", "toggle", "radio", "selectbox", "slider", "select_slider", "number_input", "text_input")
RUNS = {"reading": "shakespeare", "writing": "shakespeare", "tokens": "shakespeare"}


def pages(root: Path) -> dict[str, Path]:
    """The script of each page of the checkout at `root`, by the page's address."""
    scripts = sorted((root / "dashboard").rglob("app_pages/**/*.py"))
    return {
        path.stem: path
        for path in scripts
        if path.parent.name in (path.stem, "app_pages") and not path.stem.startswith("_")
    }


def texts(root: Path, only: list[str]) -> dict[str, list[str]]:
    """The lines of each page of the checkout at `root`, or of a few of them; a page that fails says so."""
    from streamlit.testing.v1 import AppTest

    main = next(path for path in (root / "dashboard").rglob("main.py") if path.parent.name in ("frame", "dashboard"))
    found = {}
    for page, path in pages(root).items():
        if only and page not in only:
            continue
        app = AppTest.from_file(str(main), default_timeout=120)
        if page in RUNS:
            app.query_params["run"] = RUNS[page]
        app.switch_page(str(path)).run()
        app.run()  # what is kept back at first
        found[page] = [f"It fails: {app.exception[0].message}"] if app.exception else list(lines(app))
    return found


def lines(app) -> list[str]:
    """Every sentence, then every label with its help; without markup and repeats."""
    said = [each.value for kind in SAID for each in app.get(kind)]
    said += [f"[{each.label}] {getattr(each, 'help', '') or ''}" for kind in ASKED for each in app.get(kind)]
    plain = [re.sub(r"<style.*?</style>|<[^>]+>", " ", str(text), flags=re.DOTALL) for text in said]
    return list(dict.fromkeys(line for text in plain if (line := " ".join(text.split()))))


def of_commit(commit: str) -> dict[str, list[str]]:
    """The texts of a commit, opened in a checkout of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, commit], cwd=ROOT, check=True)
        try:
            return of_tree(tree)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def of_tree(tree: Path) -> dict[str, list[str]]:
    """The texts of a checkout, by a process of its own: two versions of one package do not meet."""
    words = [sys.executable, __file__, "--dump", str(tree)]
    env = {"PYTHONPATH": str(tree), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="All words of all pages at an earlier commit and now, side by side.")
    parser.add_argument("commit", nargs="?", default="HEAD~1")
    parser.add_argument("--dump", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.dump:
        root, *only = asked.dump
        print(json.dumps(texts(Path(root), only)), flush=True)
        os._exit(0)  # what a page began behind itself is not waited for: PyTorch aborts where it is cut off
    before, now = of_commit(asked.commit), of_tree(ROOT)
    sides = [
        [line for page in sorted({*before, *now}) for line in (f"=== {page}", *side.get(page, ()))]
        for side in (before, now)
    ]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(difflib.HtmlDiff(wrapcolumn=80).make_file(*sides, asked.commit, "now"), encoding="utf-8")
    print(f"{OUT.relative_to(ROOT)}: {len(sides[0])} lines before, {len(sides[1])} now.")


if __name__ == "__main__":
    main()
