"""Leave in the lock files one hash a package: of the file that this Python installs, which has to be theirs.

`python deploy/one_build.py [OPTIONS OF PIP]`, run by update.sh. Without it a lock lists every file of every release,
for systems that no container here runs on. Packages that only the CUDA lock has keep all of theirs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOCKS = [HERE / f"requirements-{name}.lock" for name in ("cpu", "cuda")]
ENTRY = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+) \\\n(?P<hashes>(?:    --hash=sha256:\w+(?: \\)?\n)+)", re.M
)


def chosen(options: list[str]) -> dict[str, str]:
    """The SHA-256 of the file that pip takes for each package of the CPU lock. Nothing is installed."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        asked = ["--require-hashes", "--report", str(report), "-r", str(LOCKS[0])]
        subprocess.run([*command, *asked, *options], check=True)
        installed = json.loads(report.read_text())["install"]
    return {
        f"{plain(each['metadata']['name'])}=={each['metadata']['version']}": hashes["sha256"]
        for each in installed
        if (hashes := each["download_info"]["archive_info"]["hashes"])
    }


def plain(name: str) -> str:
    """A package's name as all write it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def slim(text: str, hashes: dict[str, str]) -> str:
    """A lock in which each of these packages has this hash alone; it must have had it before."""

    def entry(found: re.Match[str]) -> str:
        key = f"{plain(found['name'])}=={found['version']}"
        kept = hashes.get(key)
        if kept is None or kept not in found["hashes"]:
            return found[0]
        return f"{found['name']}=={found['version']} \\\n    --hash=sha256:{kept}\n"

    return ENTRY.sub(entry, text)


if __name__ == "__main__":
    hashes = chosen(sys.argv[1:])
    for lock in LOCKS:
        lock.write_text(slim(lock.read_text(), hashes))
