"""What a student's process may use, and how it is held to that."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import transformer
from transformer.checking.isolation import barriers
from transformer.foundation.checks import within

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MB = 2**20
WAITING = 3
"""A process that does not compute may wait this many times as long as it may compute."""
LARGEST_FILE = 16 * MB
MOST_OPEN, MOST_THREADS = 64, 100
"""Files that a process may have open, and threads that it may run."""
CUT_OFF = 76
"""The exit code of a process that nobody asks any more, or that can no longer answer."""
SYSTEM = (
    *("/usr", "/bin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/sys"),
    *(f"/proc/{each}" for each in ("self", "sys", "cpuinfo", "meminfo", "stat", "filesystems", "version", "loadavg")),
    *(f"/dev/{each}" for each in ("null", "zero", "full", "random", "urandom")),
)
"""Where a system keeps its libraries and what they ask for; of /proc and /dev nothing that is another process's."""
READABLE = (*SYSTEM, sys.prefix, sys.base_prefix, str(Path(transformer.__file__).parent))
"""What every submission may read, besides the folders from which Python imports."""
PROMISES = ("time", "memory", "output", "processes", "network", "files")


@dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    seconds: float = 10.0
    """Seconds of computing; three times as many in all, for a process that waits."""
    memory: int = 2048
    """MB beyond what PyTorch itself takes."""
    printed: int = 1
    """MB of text."""

    def __post_init__(self) -> None:
        within("seconds", self.seconds, 0.1, 3600)
        within("memory", self.memory, 64, 2**20)
        within("printed", self.printed, 0, 1024)

    @property
    def wall(self) -> float:
        """Seconds in all."""
        return WAITING * self.seconds

    @property
    def cpu(self) -> int:
        """Seconds of computing as the system counts them, in whole ones."""
        return int(-(-self.seconds // 1))


def can_isolate() -> bool:
    """Can a process be forked and limited here? Not on Windows."""
    return resource is not None and hasattr(os, "fork")


def can_read(path: Path) -> bool:
    """Does a path lie where every submission may read?"""
    found = path.resolve()
    return any(found.is_relative_to(Path(each).resolve()) for each in READABLE)


def enter(limits: Limits, folder: Path, readable: Sequence[Path] = ()) -> tuple[str, ...]:
    """Hold this process to its limits for good; which of `PROMISES` are kept. It writes below `folder` alone."""
    assert resource is not None
    os.chdir(folder)
    tempfile.tempdir = str(folder)
    os.environ.update(TMPDIR=str(folder), HOME=str(folder), MPLCONFIGDIR=str(folder), MPLBACKEND="agg")
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_OPEN, MOST_OPEN))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu, limits.cpu + 1))
    barriers.end_first_without_memory()
    kept = ["time", "output"]
    if (taken := _taken()) is not None:
        most = taken + limits.memory * MB
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        kept.append("memory")
    paths = [*READABLE, *filter(None, sys.path)]
    if barriers.forbid_files([*map(Path, paths), *readable], [folder, Path(os.devnull)]):
        kept.append("files")
    barriers.drop_rights()
    if barriers.forbid_calls():
        kept += ["processes", "network"]
    else:
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        if os.getuid():  # the system lets root make as many as it likes
            kept.append("processes")
    return tuple(promise for promise in PROMISES if promise in kept)


def _taken() -> int | None:
    """Bytes of addresses that this process has; None where the system does not tell, and does not limit them."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
