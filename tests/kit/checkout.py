"""This checkout: where it lies, what git tracks of it, its scripts that are in no package, and what a folder holds."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tracked(*places: str) -> list[Path]:
    """The files that git tracks in these places, or in all; without git the test is skipped."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    listed = subprocess.run(["git", "ls-files", "-z", *places], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def script(path: str) -> ModuleType:
    """A script, imported."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def contents(folder: Path, *without: str) -> dict[str, bytes]:
    """Every file below a folder, but for locks and those of these names."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name not in ("lock", *without))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
