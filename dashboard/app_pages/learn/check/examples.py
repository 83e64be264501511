"""Code to start from: attention as most code has it, and mistakes as the gallery's own files have them.

The files are read and not imported: they need PyTorch, and the page is there before it.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import transformer

GALLERY = Path(transformer.__file__).parent / "mistakes"
TRACE = "trace"
"""The gallery's functions let a trace record their tensors; a student's have none."""
MODULE = """

class MultiHeadAttention(torch.nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.query, self.key, self.value, self.out = (torch.nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, mask):
        return multi_head_attention(self, x, mask)
"""
"""The class around a function of the gallery that works on a module."""


@dataclass(frozen=True)
class Example:
    """Where a piece of code is taken from, and what it is called."""

    file: str
    """Of the gallery."""
    function: str
    """In that file."""
    called: str
    around: str = ""
    """What follows it."""

    def title(self) -> str:
        """What the gallery calls it; of right code, that it is right."""
        return _title(self.file) or "Right"

    def code(self) -> str:
        """The whole of it, as a student could have written it."""
        return _code(self)


EXAMPLES = {
    "right": Example("_base", "usual_attention", "attention"),
    "softmax-over-heads": Example("attention/softmax_over_heads", "wrong", "attention"),
    "masked-after-softmax": Example("attention/masked_after_softmax", "wrong", "attention"),
    "heads-merged-without-transpose": Example(
        "module/heads_merged_without_transpose", "wrong", "multi_head_attention", MODULE
    ),
}
"""By their names in the gallery."""


@cache
def _tree(file: str) -> tuple[str, ast.Module]:
    source = (GALLERY / f"{file}.py").read_text(encoding="utf-8")
    return source, ast.parse(source)


@cache
def _title(file: str) -> str:
    _, tree = _tree(file)
    assigned = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == ["title"]
    )
    return next((ast.literal_eval(node.value) for node in assigned), "")


@cache
def _code(example: Example) -> str:
    source, tree = _tree(example.file)
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == example.function)
    lines = source.splitlines()[found.lineno - 1 : found.end_lineno]
    function = textwrap.dedent("\n".join(lines)).replace(f"def {example.function}(", f"def {example.called}(", 1)
    function = untraced(function)
    read = {node.id for node in ast.walk(ast.parse(function + example.around)) if isinstance(node, ast.Name)}
    imports = [line for each in tree.body if (line := _import(each, read))]
    if "torch" in read and "import torch" not in imports:
        imports.insert(0, "import torch")
    head = "\n".join(imports)
    return f"{head}\n\n\n{function}\n{example.around}" if head else f"{function}\n{example.around}"


def _import(node: ast.stmt, read: set[str]) -> str:
    """An import as it is written, if it binds one of the names that are read."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return ""
    bound = {each.asname or each.name.partition(".")[0] for each in node.names}
    return ast.unparse(node) if bound & read else ""


def untraced(function: str) -> str:
    """A function without the calls that let a trace record a tensor: trace("scores", x) becomes x."""
    calls = [
        node
        for node in ast.walk(ast.parse(function))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == TRACE
    ]
    lines = function.splitlines()
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset), reverse=True):
        assert call.end_lineno is not None
        assert call.end_col_offset is not None
        begin = starts[call.lineno - 1] + call.col_offset
        end = starts[call.end_lineno - 1] + call.end_col_offset
        inner = ast.get_source_segment(function, call.args[1])
        function = f"{function[:begin]}{inner}{function[end:]}"
    return function.replace(f", {TRACE}=UNTRACED", "").replace(f", {TRACE}={TRACE}", "")
