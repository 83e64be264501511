"""Draws docs/storeys.svg, the picture of docs/architecture.md, from the code: `python docs/storeys.py`.

The storeys are those of the import contracts in pyproject.toml; captions and imports are read from the files.
"""

import ast
import re
import tomllib
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "storeys.svg"
WIDTH, LEFT, ROW, GAP = 960, 16, 62, 7
"""Pixels: the picture, the left edge of a box, a box of one line of caption, and what lies between two boxes."""
IMPORT = re.compile(r"^ *from (dashboard|transformer)\b(?:\.(\w+))?[\w.]* import ([\w, ]+)", re.MULTILINE)
FILLS = {"dashboard": "#e8eefc", "transformer": "#fdf1dc"}


def storeys(package: str) -> list[list[str]]:
    """The storeys of a package, from the top down, each a list of folders and files."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each.get("containers") == [package]]
    return [layer.split(" | ") for layer in layers]


def files(package: str, name: str) -> list[Path]:
    """The Python files of a folder or of one module."""
    folder = ROOT / package / name
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def caption(package: str, name: str) -> str:
    """The first sentence of a folder's or a module's docstring."""
    folder = ROOT / package / name
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    said = " ".join((ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n\n")[0].split())
    return said.split(". ")[0].rstrip(".") + "."


def imported(package: str, names: list[str]) -> set[tuple[str, str]]:
    """The folders and modules from which a storey takes something, as (package, name)."""
    found = set()
    for path in (path for name in names for path in files(package, name)):
        for owner, member, taken in IMPORT.findall(path.read_text("utf-8")):
            found |= {(owner, each.split()[0]) for each in ([member] if member else taken.split(","))}
    return {each for each in found if each not in {(package, name) for name in names}}


def drawing() -> str:
    """The whole picture as SVG."""
    boxes, y = [], 44
    for package, title in (("dashboard", "dashboard: the screen"), ("transformer", "transformer: the library")):
        boxes.append(f'<text x="{LEFT}" y="{y - 12}" class="title">{title}</text>')
        for names in storeys(package):
            said = wrap(" ".join(caption(package, name) for name in names), 140)
            height = ROW + 16 * (len(said) - 1)
            below = sorted(name for owner, name in imported(package, names) if owner == package)
            uses = f"imports {', '.join(below)}" if below else "imports nothing of this package"
            boxes.append(
                f'<rect x="{LEFT}" y="{y}" width="{WIDTH - 2 * LEFT}" height="{height}" rx="6" '
                f'fill="{FILLS[package]}"/>'
                f'<text x="{LEFT + 12}" y="{y + 19}" class="name">{escape(" · ".join(names))}</text>'
            )
            for number, line in enumerate(said):
                boxes.append(f'<text x="{LEFT + 12}" y="{y + 36 + 16 * number}" class="said">{escape(line)}</text>')
            boxes.append(f'<text x="{LEFT + 12}" y="{y + height - 8}" class="uses">{escape(uses)}</text>')
            y += height + GAP
        y += 40
    style = (
        "text{font-family:sans-serif;fill:#1f2430}.title{font-size:17px;font-weight:bold}.name{font-size:14px;"
        "font-weight:bold}.said{font-size:12.5px}.uses{font-size:11.5px;fill:#5a6275}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y - 30}" role="img" '
        f'aria-label="The storeys of the two packages, from the top down; each imports only what lies below it">\n'
        f'<style>{style}</style>\n<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(boxes) + "\n</svg>\n"
    )


if __name__ == "__main__":
    OUT.write_text(drawing(), encoding="utf-8")
