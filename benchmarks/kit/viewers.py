"""The same patterns as pages of BertViz and CircuitsVis, for benchmarks/explore.py and benchmarks/notebook.py.

Each page is what the library itself makes for a notebook. Only the addresses of the programs it loads from a CDN are
turned into files beside the page, so that no network is measured: D3 5.7.0 and require.js 2.3.6 as BertViz asks for
them, jQuery 2.1.0 for 2.0.0, which npm does not have, and CircuitsVis's own bundle from its package. A viewer that is
not installed is left out.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from kit.pages import missing

PACKAGES = {
    "d3.min.js": ("d3@5.7.0", "dist/d3.min.js"),
    "jquery.min.js": ("jquery@2.1.0", "dist/jquery.min.js"),
    "require.min.js": ("requirejs@2.3.6", "require.js"),
}
"""Each program that BertViz loads: the package of npm, and the file in it."""


@dataclass(frozen=True)
class Patterns:
    """What is to be seen: every head of a decoder on one sequence."""

    tokens: list[str]
    values: Tensor
    """Layer × head × query × key."""

    @property
    def heads(self) -> int:
        return self.values.shape[0] * self.values.shape[1]


@dataclass(frozen=True)
class Viewer:
    """A rival: how it makes its page, the programs the page loads, and when it is drawn."""

    name: str
    package: str
    page: Callable[[Patterns], str]
    programs: tuple[str, ...]
    ready: Callable[[Patterns], str]
    """JavaScript, a function that is true once everything has been handed to the browser for painting."""


def viewers(folder: Path, *packages: str) -> tuple[list[Viewer], str]:
    """The viewers that are installed, their programs put into a folder, and why the others are left out.

    Only those of `packages`, where any are named.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [viewer for viewer in VIEWERS if not packages or viewer.package in packages]
    absent = missing(*sorted({viewer.package for viewer in wanted}))
    found = [viewer for viewer in wanted if not missing(viewer.package)]
    try:
        _fetch({program for viewer in found for program in viewer.programs}, folder)
    except (OSError, subprocess.CalledProcessError):
        return [], "npm reaches no registry, from which the programs of these viewers come"
    return found, absent


def _fetch(programs: set[str], folder: Path) -> None:
    """Put these programs into a folder. Raises OSError without npm, CalledProcessError where it reaches no registry."""
    for name, (package, wanted) in PACKAGES.items():
        if name not in programs or (folder / name).exists():
            continue
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True)
        packed = folder / f"{package.replace('@', '-')}.tgz"
        with tarfile.open(packed) as archive:
            found = archive.extractfile(f"package/{wanted}")
            assert found is not None
            (folder / name).write_bytes(found.read())
        packed.unlink()
    if "circuitsvis.js" in programs:
        import circuitsvis

        bundle = Path(circuitsvis.__file__).parent / "dist" / "cdn" / "iife.js"
        (folder / "circuitsvis.js").write_bytes(bundle.read_bytes())


def bertviz_page(view: str, patterns: Patterns) -> str:
    import bertviz

    layers = [layer[None] for layer in patterns.values]
    html: str = getattr(bertviz, view)(layers, patterns.tokens, html_action="return").data
    html = re.sub(r"https://cdnjs\.cloudflare\.com/ajax/libs/[^'\"]*/", "", html)
    return f"<!doctype html><meta charset=utf-8>{html}"


def circuitsvis_page(patterns: Patterns) -> str:
    """All heads of all layers, the upper triangle masked, as for a decoder."""
    from circuitsvis.attention import attention_heads

    names = [f"{i}.{j}" for i, layer in enumerate(patterns.values) for j in range(len(layer))]
    values = patterns.values.flatten(0, 1)
    html = attention_heads(values, patterns.tokens, attention_head_names=names, mask_upper_tri=True).show_code()
    html = re.sub(r'import (\{.*?\}) from "https://unpkg[^"]*";', r"const \1 = CircuitsVis;", html, count=1)
    return f'<!doctype html><meta charset=utf-8><script src="circuitsvis.js"></script>{html}'


VIEWERS = (
    Viewer(
        "BertViz head view",
        "bertviz",
        lambda patterns: bertviz_page("head_view", patterns),
        tuple(PACKAGES),
        # Of one layer at a time; the squares of the heads are drawn last.
        lambda patterns: "() => document.querySelector('#vis svg > g:last-child > rect')",
    ),
    Viewer(
        "BertViz model view",
        "bertviz",
        lambda patterns: bertviz_page("model_view", patterns),
        tuple(PACKAGES),
        lambda patterns: f"() => document.getElementsByClassName('attn_background').length === {patterns.heads}",
    ),
    Viewer(
        "CircuitsVis",
        "circuitsvis",
        circuitsvis_page,
        ("circuitsvis.js",),
        # A small chart of each head, and a large one; each is filled at once.
        lambda patterns: f"() => drawn.size === {patterns.heads + 1}",
    ),
)
