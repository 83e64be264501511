"""Writes docs/reference.md, the page on what the two packages offer, from the docstrings: `python docs/reference.py`.

What a package offers are the names in its `__all__`. Signatures and docstrings are read from the files as they stand.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from importlib.util import find_spec
from inspect import cleandoc
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

OUT = Path(__file__).with_name("reference.md")
PACKAGES = ("transformer", "dashboard")
WIDTH = 100
"""Characters of a signature that stands in one line."""
Definition: TypeAlias = ast.FunctionDef | ast.ClassDef
HEAD = """# Reference

What the packages `transformer` and `dashboard` offer to a script or a notebook: `from transformer import observe`. Any
other name may change from one version to the next. `python docs/reference.py` writes this page from the docstrings.

`Float[Tensor, "batch position d_model"]` is a tensor of floats with these three axes (jaxtyping). Wrong input raises a
`UserError`, which is a `ValueError` whose message is one sentence, or an error made from it, such as `ConfigError`.
"""


class Offer(NamedTuple):
    """A name that a package offers, and where it is defined."""

    name: str
    module: str
    node: Definition


def offers(package: str) -> list[Offer]:
    """What a package offers, module by module, in the order in which its `__init__.py` names it."""
    module = importlib.import_module(package)
    listed = list(getattr(module, "_HOME", ())) or list(getattr(module, "__all__", ()))
    found = [Offer(name, *defined(package, name)) for name in listed]
    modules = list(dict.fromkeys(each.module for each in found))
    return sorted(found, key=lambda each: modules.index(each.module))


def defined(module: str, name: str) -> tuple[str, Definition]:
    """The module in which a name is defined, and its definition. Raises LookupError where there is none."""
    home = getattr(importlib.import_module(module), "_HOME", {}) if module in PACKAGES else {}
    if name in home:
        return defined(f"{module}.{home[name]}", name)
    for node in source(module).body:
        if isinstance(node, Definition) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return defined(node.module, alias.name)
    raise LookupError(f"{module} defines no {name}")


def source(module: str) -> ast.Module:
    """A module, read but not run."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text("utf-8"))


def page() -> str:
    """The whole page, as Markdown."""
    return "\n".join([HEAD, *(part for package in PACKAGES for part in _package(package))])


def _package(package: str) -> Iterator[str]:
    if found := offers(package):
        yield f"## {package}\n"
    for part, group in groupby(found, key=lambda each: ".".join(each.module.split(".")[:2])):
        caption = (ast.get_docstring(source(part)) or "").split("\n\n")[0]
        yield f"### {part}\n\n{caption}\n"
        for each in group:
            yield f"#### {each.name}\n\n```python\n{signature(each)}\n```\n\n{ast.get_docstring(each.node)}\n"
            if isinstance(each.node, ast.ClassDef):
                yield from _members(each.node)


def signature(offer: Offer) -> str:
    """How it is called: a function's own arguments, a record's fields, those of another class's `__init__`."""
    node = offer.node
    if isinstance(node, ast.FunctionDef):
        return _function(offer.name, node)
    own = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    if own is not None:
        return _call(offer.name, _arguments(own.args)[1:])
    fields = [f"{name}: {kind}{default}" for name, (kind, default) in _fields(offer.module, node).items()]
    keyword_only = any("kw_only=True" in ast.unparse(each) for each in node.decorator_list)
    return _call(offer.name, ["*", *fields] if keyword_only and fields else fields)


def _function(name: str, node: ast.FunctionDef, bound: bool = False) -> str:
    """A function's call; of a method without `self`."""
    returned = f" -> {_code(node.returns)}" if node.returns else ""
    return _call(name, _arguments(node.args)[bound:], returned)


def _call(name: str, arguments: list[str], returned: str = "") -> str:
    line = f"{name}({', '.join(arguments)}){returned}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in arguments), f"){returned}"])


def _arguments(node: ast.arguments) -> list[str]:
    """The arguments one by one, as they are written."""
    plain = [*node.posonlyargs, *node.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(node.defaults)), *node.defaults]
    written = [_argument(each, default) for each, default in zip(plain, defaults, strict=True)]
    if node.vararg:
        written.append(f"*{_argument(node.vararg, None)}")
    elif node.kwonlyargs:
        written.append("*")
    written += [_argument(each, default) for each, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)]
    if node.kwarg:
        written.append(f"**{_argument(node.kwarg, None)}")
    return written


def _argument(node: ast.arg, default: ast.expr | None) -> str:
    kind = f": {_code(node.annotation)}" if node.annotation else ""
    return f"{node.arg}{kind}{'' if default is None else f' = {_code(default)}'}"


def _fields(module: str, node: ast.ClassDef) -> dict[str, tuple[str, str]]:
    """The type and the default of each field of a record, those of the records that it extends first."""
    if not any(ast.unparse(each).startswith("dataclass") for each in node.decorator_list):
        return {}
    found: dict[str, tuple[str, str]] = {}
    for base in node.bases:
        try:
            place, above = defined(module, ast.unparse(base))
        except LookupError:
            continue  # not one of ours
        found |= _fields(place, above) if isinstance(above, ast.ClassDef) else {}
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and not _is_of_the_class(each):
            found[ast.unparse(each.target)] = (_code(each.annotation), _default(each.value))
    return found


def _default(value: ast.expr | None) -> str:
    """What a field is if nothing is said: also where `field(…)`, or a call like it, says it."""
    if isinstance(value, ast.Call):
        given = {each.arg: _code(each.value) for each in value.keywords}
        if "default" in given:
            return f" = {given['default']}"
        if "default_factory" in given:
            return f" = {given['default_factory']}()"
    return "" if value is None else f" = {_code(value)}"


def _members(node: ast.ClassDef) -> Iterator[str]:
    """A line for each field and property that has words of its own, and a part for each such method."""
    lines, methods = [], []
    for each, following in pairwise([*node.body, ast.Pass()]):
        if isinstance(each, ast.AnnAssign) and isinstance(following, ast.Expr) and not _is_of_the_class(each):
            assert isinstance(following.value, ast.Constant)
            lines.append(f"- `{ast.unparse(each.target)}`: {_one_line(following.value.value)}")
        if not isinstance(each, ast.FunctionDef) or each.name.startswith("_"):
            continue
        if words := ast.get_docstring(each):
            marks = [ast.unparse(mark) for mark in each.decorator_list]
            if "property" in marks:
                lines.append(f"- `{each.name}`: {_one_line(words)}")
            else:
                call = _function(f"{node.name}.{each.name}", each, bound=True)
                methods.append(f"```python\n{call}\n```\n\n{words}\n")
    if lines:
        yield "\n".join(lines) + "\n"
    yield from methods


def _is_of_the_class(field: ast.AnnAssign) -> bool:
    return ast.unparse(field.annotation).startswith("ClassVar")


def _code(node: ast.AST) -> str:
    """An expression as this project writes it, with double quotes."""
    return ast.unparse(node).replace("'", '"')


def _one_line(text: str) -> str:
    return " ".join(cleandoc(text).split())


if __name__ == "__main__":
    OUT.write_text(page(), encoding="utf-8")
