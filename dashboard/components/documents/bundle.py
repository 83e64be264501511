"""Several of our JavaScript modules as one script, and style sheets as one.

A bundler (esbuild, Rollup) would need Node at the reader's; this one knows the little that our modules use, and refuses
anything else: `import { names }` or `import name` from a path, `import('path')`, `export { names } from` one,
`export` before a declaration, and `export default`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath

WEB = Path(__file__).parents[1] / "web"
SHARED = "../../attention-lab.shared/"
"""The address of the folder `web` for a component's own script, as Streamlit serves it."""
_IMPORT = re.compile(r"^import (?:(\w+)|\{([^}]*)\}) from '(\.[./\w-]*)\.js';\n", re.MULTILINE)
_PASSED = re.compile(r"^export \{([\w, ]*)\} from '(\.[./\w-]*)\.js';\n", re.MULTILINE)
_LATER = re.compile(r"\bimport\('(\.[./\w-]*)\.js'\)")
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const|class) (\w+)", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)
_STYLE_IMPORT = re.compile(rf'^@import "{re.escape(SHARED)}([\w/]+\.css)";\n', re.MULTILINE)


@cache
def bundle(entry: str) -> str:
    """A script that runs the module `web/<entry>.js` after all that it imports, each in a scope of its own.

    What a module imports later, when it is needed, is run before it as well. Raises ValueError for a line that cannot
    be bundled, and for modules that import each other.
    """
    parts: dict[str, str] = {}
    _add(entry, parts, ())
    return "'use strict';\n" + "".join(parts.values())


def exporting(entries: Mapping[str, str]) -> str:
    """A module that exports the default of each module `web/<entry>.js` by its name. Raises ValueError as `bundle`."""
    parts: dict[str, str] = {}
    for entry in entries.values():
        _add(entry, parts, ())
    taken = (f"export const {name} = {_module(entry)}.default;\n" for name, entry in entries.items())
    return "".join((*parts.values(), *taken))


def _add(name: str, parts: dict[str, str], importers: tuple[str, ...]) -> None:
    if name in importers:
        raise ValueError(f"{name}.js imports itself, by way of {', '.join(importers)}.")
    if name in parts:
        return
    source = (WEB / f"{name}.js").read_text(encoding="utf-8")

    def added(path: str) -> str:
        imported = path.removeprefix(SHARED) if path.startswith(SHARED) else normpath(join(dirname(name), path))
        _add(imported, parts, (*importers, name))
        return _module(imported)

    def assignment(found: re.Match[str]) -> str:
        default, names, path = found.groups()
        wanted = f"{{default: {default}}}" if default else f"{{{names.replace(' as ', ': ')}}}"
        return f"const {wanted} = {added(path)};\n"

    passed = [each.strip() for found in _PASSED.finditer(source) for each in found[1].split(",")]
    body = _PASSED.sub(r"import {\1} from '\2.js';\n", source)
    body = _IMPORT.sub(assignment, body)
    body = _LATER.sub(lambda found: f"Promise.resolve({added(found[1])})", body)
    names = passed + [found[2] for found in _EXPORT.finditer(body)]
    body = _EXPORT.sub(r"\1 \2", body)
    if _DEFAULT.search(body):
        names.append("default: standard")
        body = _DEFAULT.sub("const standard = ", body)
    if left := re.search(r"^(import|export)\b.*", body, re.MULTILINE):
        raise ValueError(f"{name}.js has a line that cannot be bundled: {left[0]}")
    parts[name] = f"const {_module(name)} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


@cache
def style(name: str) -> str:
    """The style sheet `web/<name>` with those that it imports."""
    source = (WEB / name).read_text(encoding="utf-8")
    return _STYLE_IMPORT.sub(lambda found: style(found[1]), source)


def source_of(text: str) -> str:
    """A script or style sheet as a source of a content security policy: its hash (CSP level 3, section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _module(name: str) -> str:
    return f"module_{name.replace('/', '_')}"
