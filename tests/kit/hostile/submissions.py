"""Submissions that a check meets: a right one, and hostile ones that forge the answers of their own process."""

from __future__ import annotations

RIGHT = """
import torch
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1) @ v
"""
_FORGE = """
import os, stat, struct, sys

def write(content):
    for number in range(3, 20):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, content)
        except OSError:
            pass

def forge(*frames):
    write(b"".join(struct.pack("!i", len(frame)) + frame for frame in frames))
"""
_NONE = "struct.pack('<Q', 2) + b'{}'"
"""No tensors, as safetensors."""


def body(*lines: str) -> str:
    """A file whose function does this when it is called."""
    inside = "\n".join(f"    {line}" for line in lines)
    return f"def attention(q, k, v, mask=None):\n{inside}\n    return v\n"


def forging(words: str, numbers: str = _NONE) -> str:
    """A file whose function writes two frames, given as Python expressions, to the connection over which it answers."""
    return _FORGE + body(f"forge({words}, {numbers})")


def _message(inside: str) -> str:
    return forging(f"""b'{{"number": 1, "answer": {inside}}}'""")


FORGING = {
    "null": _message("null"),
    "empty": _message("{}"),
    "record": forging("b'{}'"),
    "a-tensor": _message('{"tensor": []}'),
    "values": _message('{"values": [], "array": false, "changed": [], "gradients": [], "unused": [], "steps": []}'),
    "number": _message("7"),
    "digits": forging("""b'{"number": 1, "answer": ' + b'9' * 400 + b'}'"""),
    "deep": forging("b'[' * 100000 + b']' * 100000"),
    "less-deep": forging("""b'{"number": 1, "answer": ' + b'[' * 900 + b']' * 900 + b'}'"""),
    "wide": forging("b'[' + b'[],' * 10**6 + b'[]]'"),
    "no-utf-8": forging("b'\\xff\\xfe'"),
    "text": forging("""b'{"number": 1, "refused": "' + b'x' * 10000 + b'"}'"""),
    "verdict": forging("""b'{"verdict": "right", "code": 0}'"""),
    "no-tensors": forging("""b'{"number": 1, "answer": null}'""", "b''"),
    "long-header": forging("""b'{"number": 1, "answer": null}'""", "b'\\xff' * 64"),
    "two-gigabytes": _FORGE + body("write(struct.pack('!i', 2**31 - 1))"),
    "beyond-memory": _FORGE + body("write(struct.pack('!iQ', -1, 2**63))"),
    "below-zero": _FORGE + body("write(struct.pack('!i', -7))"),
    "half": _FORGE + body("write(struct.pack('!i', 100) + b'half')", "os._exit(0)"),
    "too-many": _FORGE + body("for _ in range(50): forge(b'{}', b'')"),
    "at-the-import": _FORGE + "forge(b'{}', b'')\n" + RIGHT,
    "early": _FORGE + "forge(b'{}', b'')\nos._exit(0)\n",
}
"""Files that answer what no bench answers."""
