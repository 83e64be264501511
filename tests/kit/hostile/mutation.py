"""Bytes and JSON with a fault in them, by a fixed seed: what comes from outside may be anything."""

from __future__ import annotations

import json
import random
from typing import Any

HUGE = 10**400
HOSTILE: tuple[Any, ...] = (None, True, -1, 0, 2**63, HUGE, 1e400, float("nan"), "", "x" * 300, [], {}, [[]], "\udcff")
"""Values that may stand anywhere in a JSON file."""


def mutated(content: bytes, dice: random.Random) -> bytes:
    """A file with a few bytes changed, cut out, put in or repeated, or only its beginning."""
    changed = bytearray(content)
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(changed) + 1)
        end = min(len(changed), place + dice.choice((1, 1, 2, 8, 64)))
        way = dice.randrange(5)
        if way == 0:
            changed[place:end] = dice.randbytes(end - place)
        elif way == 1:
            del changed[place:end]
        elif way == 2:
            changed[place:place] = dice.randbytes(end - place)
        elif way == 3:
            changed[place:place] = changed[place:end]
        else:
            del changed[place:]
    return bytes(changed)


def mistold(content: bytes, dice: random.Random) -> bytes:
    """JSON, line by line, in which a value stands that nobody expects."""
    lines = content.decode().splitlines() if content.count(b"\n{") else [content.decode()]
    place = dice.randrange(len(lines))
    told = json.loads(lines[place])
    inner = told
    while True:
        key = dice.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        if isinstance(inner[key], dict | list) and inner[key] and dice.random() < 0.7:
            inner = inner[key]
            continue
        inner[key] = dice.choice(HOSTILE)
        break
    lines[place] = json.dumps(told)
    return "\n".join(lines).encode() + b"\n"
