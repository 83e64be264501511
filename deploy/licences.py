"""docs/licences.md: what runs beside this project's own code, and under which licence each says that it is.

    python deploy/licences.py            writes it
    python deploy/licences.py --check    says what is missing or too much, and exits with 1

Names and versions come from the lock files, licences from the metadata of what is installed. What is not installed
here, the libraries of CUDA for example, keeps the licence that the page names already.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
LOCKS = {"cpu": ROOT / "deploy" / "requirements-cpu.lock", "cuda": ROOT / "deploy" / "requirements-cuda.lock"}
PINNED = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", re.MULTILINE)
ROW = re.compile(r"^\| ([\w.-]+) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
UNKNOWN = "not known here: it was not installed where this page was made"
LONG = 60
"""Characters of a licence's name; some packages put the whole text where its name belongs."""

HEAD = """# Licences

Attention Lab itself is under the MIT licence: [LICENSE](../LICENSE). [What is shipped with it](#shipped) stands below.

What a container holds beside this project's own code, as the lock files in `deploy/` pin it. Each package says its
licence itself, in its metadata; nobody has looked further. `make licences` makes this page anew.

"""
INSIDE = """
## Inside these packages

- **plotly.js** lies in `dashboard/server/plotly/`: its makers' bundle `plotly.js-cartesian-dist-min`, which is served
  at `/assets/plotly.min.js`. Its first lines say MIT.
- **Streamlit's page**, with React and others, and its fonts, is in the package streamlit, which holds no list of their
  licences. They were not looked into.

## Shipped

- **The wheel** holds `transformer/`, `dashboard/` and the run `reverse`, which were made for this project, and no
  library and no font from elsewhere. A small model and its words lie in `transformer/capturing/sample/`: it
  learned from the text of which the run below holds parts.
- **The repository** also holds trained models. The run `shakespeare` has with it its vocabulary and parts of
  *Antony and Cleopatra*, *King Richard III* and *The Tempest*, which are in the public domain. They come from Project
  Gutenberg's text of all his works, which is not shipped.
- **HTML files that the dashboard writes** hold plotly.js where they have figures, with the notice of its MIT licence.
"""


def main(arguments: list[str]) -> int:
    """Write the page, or check that it is up to date."""
    if "--check" in arguments:
        problems = differences(PAGE.read_text(encoding="utf-8"))
        print("\n".join(problems) or "docs/licences.md is up to date.")
        return 1 if problems else 0
    PAGE.write_text(page(known(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")), encoding="utf-8")
    return 0


def pins(name: str) -> dict[str, str]:
    """The packages of a lock and their versions; which build of PyTorch is no version of its own."""
    text = LOCKS[name].read_text(encoding="utf-8")
    return {package: version.partition("+")[0] for package, version in PINNED.findall(text)}


def differences(text: str) -> list[str]:
    """Where a page is not about what the locks pin."""
    stands = dict(re.findall(r"^\| ([\w.-]+) \| ([^|]+) \| [^|]+ \|$", text, re.MULTILINE))
    wanted = pins("cuda") | pins("cpu")
    missing = [f"{name} {version} is missing" for name, version in wanted.items() if stands.get(name) != version]
    return missing + [f"{name} is in no lock" for name in stands if name not in wanted and name != "package"]


def page(before: dict[str, str]) -> str:
    """The page; `before` holds licences by name, for what is not installed."""
    cpu, cuda = pins("cpu"), pins("cuda")
    text = HEAD + table(cpu, before)
    text += "\n## With CUDA only\n\n" + table({name: cuda[name] for name in cuda if name not in cpu}, before)
    return text + INSIDE


def table(packages: dict[str, str], before: dict[str, str]) -> str:
    """Rows of name, version and licence."""
    rows = [f"| {name} | {packages[name]} | {licence(name, before)} |" for name in sorted(packages)]
    return "\n".join(["| package | version | licence |", "|---|---|---|", *rows]) + "\n"


def known(text: str) -> dict[str, str]:
    """The licences by name that a page names."""
    return {name: said for name, said in ROW.findall(text) if name != "package" and said != UNKNOWN}


def licence(name: str, before: dict[str, str]) -> str:
    """What a package says of itself: an expression (PEP 639), else its classifiers, else a short text."""
    try:
        said = metadata.metadata(name).json
    except metadata.PackageNotFoundError:
        return before.get(name, UNKNOWN)
    classified = [
        each.rpartition(" :: ")[2] for each in said.get("classifier", []) if str(each).startswith("License ::")
    ]
    text = str(said.get("license", "")).strip().partition("\n")[0]
    expression = str(said.get("license_expression", ""))
    return expression or ", ".join(classified) or (text if 0 < len(text) <= LONG else "see its files")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
