"""Python imports this first where its folder is on PYTHONPATH: it reads Streamlit as if some of its names were others.

RENAMED holds the names, parted by spaces. Each is another wherever Streamlit itself uses it, so Streamlit works as
before and nobody else finds it.
"""

import os
import re
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader

NAMES = re.compile(rf"\b(?:{'|'.join(os.environ['RENAMED'].split())})\b")


class Renaming(SourceFileLoader):
    def path_stats(self, path):
        raise OSError("what is compiled already has the old names")

    def get_data(self, path):
        return NAMES.sub(lambda found: f"{found[0]}_renamed", super().get_data(path).decode()).encode()


class Finder(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target) if name.partition(".")[0] == "streamlit" else None
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = Renaming(spec.loader.name, spec.loader.path)
        return spec


sys.meta_path.insert(0, Finder())
