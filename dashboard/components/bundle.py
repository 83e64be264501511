"""Several of our JavaScript modules as one script that needs no server: for a file that is opened from a disk.

It knows the little that our modules use: `import { names } from './file.js'`, `export` before a declaration, and one
default export. Anything else is refused.
"""

import re
from functools import cache
from pathlib import Path

WEB = Path(__file__).parent / "web"
_IMPORT = re.compile(r"^import \{([^}]*)\} from '\./(\w+)\.js';\n", re.MULTILINE)
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
    for imported in _IMPORT.finditer(source):
        _add(imported[2], parts, (*importers, name))
    body = _IMPORT.sub(lambda found: f"const {{{found[1].replace(' as ', ': ')}}} = {_module(found[2])};\n", source)
    names = [found[2] for found in _EXPORT.finditer(body)]
    body = _EXPORT.sub(r"\1 \2", body)
    if left := re.search(r"^(import|export)\b.*", body, re.MULTILINE):
        raise ValueError(f"{name}.js has a line that cannot be bundled: {left[0]}")
    parts[name] = f"const {_module(name)} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


def _module(name: str) -> str:
    return f"module_{name}"
