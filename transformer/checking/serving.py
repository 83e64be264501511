"""A process that checks one piece of code after the other, for a server: it judges in no process of its own.

A line of JSON on its standard input is a job: {"code", "name", "kind", "limits", "required"}: `Limits` by their names,
and the PROMISES without which the code is not run. The answer is a line of JSON: {"verdict"}, as
`Verdict.values` gives it, and {"gallery"}, the words of the mistake that it is called by; or {"problem"}, a sentence.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from typing import Any

from transformer.checking.check import check_source
from transformer.checking.isolation.limits import Limits
from transformer.checking.isolation.process import IsolationError, Warm
from transformer.foundation.checks import UserError, reason
from transformer.mistakes import MISTAKES

FILE = "mine.py"
"""What the code's file is called in sentences."""
IDLE = 600.0
"""Seconds without a job after which it ends."""
WORDS = ("title", "hidden", "exposes", "mend", "met")


def main() -> None:
    """Answer each job, one after the other, until nobody asks any more."""
    jobs, answers = sys.stdin.buffer, sys.stdout
    sys.stdout = sys.stderr  # an answer is all that goes out there
    with Warm() as warm:

        def leave(*_: object) -> None:
            warm.close()
            os._exit(0)

        signal.signal(signal.SIGTERM, leave)
        with contextlib.suppress(IsolationError):  # each job is told
            warm.start()
        while select.select([jobs], [], [], IDLE)[0]:
            line = jobs.readline()
            if not line:
                return
            print(json.dumps(answered(json.loads(line), warm)), file=answers, flush=True)


def answered(job: dict[str, Any], warm: Warm) -> dict[str, Any]:
    """The answer to one job."""
    try:
        code = job["code"].encode("utf-8", "surrogatepass")  # half a character is no text: the check says so
        limits = Limits(**job["limits"])
        verdict = check_source(code, FILE, job["name"], job["kind"], limits, warm, required=job["required"])
    except UserError as error:
        return {"problem": str(error)}
    except Exception as error:  # the code is a stranger's, and so is what it gives to be judged
        return {"problem": f"the check itself stopped with an error: {reason(error)}"}
    return {"verdict": verdict.values(), "gallery": gallery(verdict.mistake)}


def gallery(name: str) -> dict[str, Any] | None:
    """What the gallery says of a mistake, and its lines from wrong to right; None without a name."""
    if not name:
        return None
    mistake = MISTAKES[name]
    return {**{each: getattr(mistake, each) for each in WORDS}, "difference": list(mistake.difference())}


if __name__ == "__main__":
    main()
