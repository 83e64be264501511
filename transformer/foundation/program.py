"""What the command line is called: in its help, in its errors, and where a page says what to type."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

COMMAND = "attention-lab"
PACKAGES = ("transformer", "dashboard")
"""What has a command line of its own, as `python -m` calls it."""


def program() -> str:
    """The command line's name as it was called: "attention-lab", "python -m dashboard" or "python -m transformer".

    Where none was called, as in the dashboard or in a notebook, it is the name by which one can be called here.
    """
    called = Path(sys.argv[0])
    if called.name == "__main__.py" and called.parent.name in PACKAGES:
        return f"python -m {called.parent.name}"
    places = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    if called.stem == COMMAND or shutil.which(COMMAND, path=places):
        return COMMAND
    return "python -m dashboard" if "dashboard" in sys.modules else "python -m transformer"
