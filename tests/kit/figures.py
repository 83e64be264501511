"""What a figure holds, read back as numbers."""

import base64
import json

import numpy as np
import plotly.graph_objects as go


def sent(figure: go.Figure, name: str) -> dict:
    """The trace of that name as the browser gets it."""
    return next(trace for trace in json.loads(figure.to_json())["data"] if trace["name"] == name)


def decoded(array: dict | list) -> np.ndarray:
    """A typed array as plotly.js reads it."""
    if isinstance(array, list):
        return np.array(array, dtype=float)
    flat = np.frombuffer(base64.b64decode(array["bdata"]), dtype=array["dtype"])
    return flat.reshape([int(n) for n in array["shape"].split(",")]) if "shape" in array else flat


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, refusing to be written to: a figure leaves what it is given as it is."""
    array = np.array(array)
    array.flags.writeable = False
    return array


def nothing_but_numbers(name: str) -> float:
    raise AssertionError(f"{name} is no JSON")
