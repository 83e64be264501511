"""Words that several pages use, and the code behind a picture."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Sequence

import streamlit as st

from transformer.analysis.findings import Head
from transformer.config import ModelConfig
from transformer.norms import Norm
from transformer.positions import described

JOINER = "\u2060"


def encoding_name(name: str) -> str:
    """A positional encoding as its authors write it: "ALiBi"."""
    return described(name).title


def with_positions(name: str) -> str:
    """ "with ALiBi positions"; of an encoding that tells nothing "without positions"."""
    return "without positions" if described(name).told == "nowhere" else f"with {encoding_name(name)} positions"


def learned_by_norm(norm: Norm, d_model: int) -> str:
    """What of a norm is learned, in a sentence."""
    gain, shift = {"each": f"{d_model} learned numbers", "one": "one learned number", "none": ""}[norm.gains], d_model
    if gain and norm.shifts:
        return f"Its gain is {gain}, its shift {shift} more."
    if norm.shifts:
        return f"It has no gain; its shift is {shift} learned numbers."
    return f"Its gain is {gain}; it has no shift." if gain else "Nothing of it is learned."


def orientation(head: Head | None = None) -> str:
    """Which side is which; said under every pattern, with what the name of its head means."""
    named = "" if head is None else f" Head {head.short}: layer {head.layer}, head {head.index}, counted from 0."
    return f"Row = query (who looks), column = key (looked at).{named} Positions count from 1."


def plain(text: str) -> str:
    """A text whose every character is meant as such: a run may be called *x*, :red[x] or www.x.org.

    What looks like an address would become a link whatever is escaped in it (GitHub's autolinks are found in the text
    once its marks are read), so a word joiner, which nobody sees, stands where it would begin.
    """
    marked = re.sub(r":(?=\w)", r"\\:", re.sub(r"([\\`*_\[\]<>$~#|&])", r"\\\1", text))
    return re.sub(r"(?i)(?<=www)(?=\.)|(?<=:)(?=//)|(?=@)", JOINER, marked)


def symbols(text: str) -> str:
    """A text that `plain` has made, its symbols with an index as TeX: W_O."""
    return re.sub(r"(?<![\w\\'‘])([A-Za-z])\\_(\w)(?![\w'’])", r"$\1_\2$", text)


def show_code(*names: str) -> None:
    """The very functions that computed the picture, folded away; named as "transformer.attention.masked_softmax"."""
    folded = st.expander("Show the code", icon=":material/code:", on_change="rerun", key="code")
    if folded.open:
        for name in names:
            folded.code(inspect.getsource(inspect.unwrap(pkgutil.resolve_name(name))), language="python")


def code_around(name: str, mark: str, around: int = 1) -> tuple[list[str], int, int]:
    """The one line of a function that holds `mark`, and its neighbours: (lines, number of the first, index of it).

    The function is named as "transformer.attention:MultiHeadAttention.forward"; its source is read, never copied.
    """
    source, start = inspect.getsourcelines(inspect.unwrap(pkgutil.resolve_name(name)))
    (found,) = (i for i, line in enumerate(source) if mark in line)
    first = max(0, found - around)
    if '"""' in source[first]:  # what the function is for stands elsewhere
        first = found
    lines = inspect.cleandoc("\n" + "".join(source[first : found + around + 1])).splitlines()
    return lines, start + first, found - first


def capital(text: str) -> str:
    """The same with a capital first; a symbol stays as it is."""
    return f"{text[0].upper()}{text[1:]}"


def sentence(text: str) -> str:
    """Words, as a sentence: a capital first, unless it is a setting's own name, and a full stop."""
    first = text if "_" in text.split()[0] else f"{text[0].upper()}{text[1:]}"
    return f"{first}."


def share_of_cells(seen: int, cells: int) -> str:
    """How many of a mask's cells these are: "36 of 64 cells", "1 of 1 cell"."""
    return f"{seen:,} of {cells:,} cell{'s' * (cells != 1)}"


def head_label(head: Head, config: ModelConfig) -> str:
    """A head in a sentence: "head 1.3"; in an encoder-decoder, where three share that name, with its kind."""
    return f"head {head.short}" + (f" ({head.kind})" if config.architecture == "encoder-decoder" else "")


SHORT = {"encoder self-attention": "enc ", "decoder self-attention": "dec ", "cross-attention": "cross "}


def labels_of(heads: Sequence[Head]) -> list[str]:
    """ "1.3"; where there are several kinds of attention "cross 1.3"."""
    single = len({head.kind for head in heads}) == 1
    return [head.short if single else SHORT[head.kind] + head.short for head in heads]
