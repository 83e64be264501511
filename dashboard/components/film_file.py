"""The film as one HTML file that plays from a disk, without a server and without a network."""

import base64
import hashlib
import re
from functools import cache
from html import escape
from pathlib import Path
from posixpath import dirname, join, normpath

from dashboard import theme
from dashboard.components.film import HTML, Reel, pack_reel

PRIMARY = {False: "#2456c8", True: "#3b70da"}
"""Of the light and the dark theme, as .streamlit/config.toml has them: dark enough for white letters."""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="about">{description}</p>
{player}
<p>{sentence}</p>
<p class="about">Weights {digest}. Made with Attention Lab; everything that is shown is in this file.</p>
</main>
<script type="text/plain" id="film-message">{message}</script>
<script>{script}</script>
</body>
</html>
"""
STYLE = """
body { margin: 0; font-family: var(--st-font); color: var(--st-text-color); background: var(--st-background-color); }
main { max-width: 1280px; margin: 0 auto; padding: 1.5rem; }
h1 { margin: 0 0 0.25rem; font-size: 1.9rem; line-height: 1.2; }
p { line-height: 1.5; }
.about { margin: 0 0 1rem; color: var(--muted); }
"""


def film_file(reel: Reel, *, title: str, description: str, sentence: str, digest: str, height: int = 460) -> bytes:
    """The file: the player with its data, scripts and style inside, light or dark as the reader's system is.

    `title` is the sentence that the film proves, `description` the run's, `digest` that of its weights. The page's own
    policy forbids it every request.
    """
    style = f"{_variables()}{STYLE}{_style('film/film.css')}"
    script = bundle("film/file")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = PAGE.format(
        policy=policy,
        title=escape(title),
        description=escape(description),
        style=style,
        player=HTML,
        sentence=escape(sentence),
        digest=escape(digest),
        message=base64.b64encode(pack_reel(reel, alt=sentence, height=height)).decode(),
        script=script,
    )
    return page.encode()


def _variables() -> str:
    """What Streamlit's theme is called in the style sheets of the components, for both themes."""
    return f":root {{ {_theme(False)} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {_theme(True)} }} }}\n"


def _theme(dark: bool) -> str:
    colours = theme.palette(dark)
    values = {
        "st-font": theme.FONT,
        "st-text-color": colours.text,
        "st-background-color": colours.background,
        "st-secondary-background-color": colours.surface,
        "st-border-color": colours.grid,
        "st-primary-color": PRIMARY[dark],
        "st-base-radius": "8px",
        "muted": colours.muted,
    }
    return " ".join(f"--{name}: {value};" for name, value in values.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# --- several of our JavaScript modules as one script that needs no server: for a file that is opened from a disk
#
# A bundler (esbuild, Rollup) would need Node at the reader's; this one knows the little that our modules use, `import
# { names }` from a path that begins with "./" or "../" and `export` before a declaration, and refuses anything else.

WEB = Path(__file__).parent / "web"
_IMPORT = re.compile(r"^import \{([^}]*)\} from '(\.[./\w]*)\.js';\n", re.MULTILINE)
_STYLE_IMPORT = re.compile(r'^@import "\.\./\.\./attention-lab\.shared/([\w/]+\.css)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (function|const|class) (\w+)", re.MULTILINE)


@cache
def bundle(entry: str) -> str:
    """A classic script that runs the module `web/<entry>.js` after all that it imports, each in a scope of its own."""
    parts: dict[str, str] = {}
    _add(entry, parts, ())
    return "'use strict';\n" + "".join(parts.values())


def _add(name: str, parts: dict[str, str], importers: tuple[str, ...]) -> None:
    if name in importers:
        raise ValueError(f"{name}.js imports itself, by way of {', '.join(importers)}.")
    if name in parts:
        return
    source = (WEB / f"{name}.js").read_text(encoding="utf-8")

    def assignment(found: re.Match[str]) -> str:
        imported = normpath(join(dirname(name), found[2]))
        _add(imported, parts, (*importers, name))
        return f"const {{{found[1].replace(' as ', ': ')}}} = {_module(imported)};\n"

    body = _IMPORT.sub(assignment, source)
    names = [found[2] for found in _EXPORT.finditer(body)]
    body = _EXPORT.sub(r"\1 \2", body)
    if left := re.search(r"^(import|export)\b.*", body, re.MULTILINE):
        raise ValueError(f"{name}.js has a line that cannot be bundled: {left[0]}")
    parts[name] = f"const {_module(name)} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


def _style(name: str) -> str:
    """A style sheet with those that it imports."""
    source = (WEB / name).read_text(encoding="utf-8")
    return _STYLE_IMPORT.sub(lambda found: _style(found[1]), source)


def _module(name: str) -> str:
    return f"module_{name.replace('/', '_')}"
