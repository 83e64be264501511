"""The notebook of docs/ runs from its first cell to its last, and its cells say what stands in the file."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import nbformat
import pytest

from tests.kit.driving import ROOT

MOST = 150_000
"""Bytes of the file."""


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "docs" / "notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(notebook: nbformat.NotebookNode) -> list[tuple[str, list[str]]]:
    """Each cell with what it says."""
    return [(cell.source, [output.data["text/plain"] for output in cell.get("outputs", [])]) for cell in notebook.cells]


def test_the_file_is_small_and_whole(program: ModuleType) -> None:
    assert program.NOTEBOOK.stat().st_size < MOST
    notebook = nbformat.read(program.NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    assert [words for _, answers in said(notebook) for words in answers if "large" in words]


@pytest.mark.nightly
def test_every_cell_says_what_stands_in_the_file(program: ModuleType) -> None:
    stored = nbformat.read(program.NOTEBOOK, as_version=4)
    assert said(program.executed()) == said(stored)
