"""What a student's code did wrong: a name and foreign words where the code runs, a sentence where it is judged.

The process in which the code runs never writes a sentence: whatever it answers, its words stand in one of these frames,
short and on one line.
"""

from __future__ import annotations

from dataclasses import dataclass

from transformer.foundation.checks import UserError
from transformer.foundation.foreign import shortened

LONGEST_LINE, LONGEST_SAID = 60, 160
"""Characters that are repeated of a line of the code, and of what an exception says."""
MOST_BYTES = 2**26
"""Bytes of the tensors that are compared at a time."""
MOST_TENSORS, MOST_AXES = 10_000, 16
"""Tensors that are compared at a time, and axes of one."""
MOST_NAMES, LONGEST_NAME = 10_000, 1000
"""Parameters that a function or a module may have, and characters of a name."""

FAULTS = {
    "no text": "The file is no {} text: byte {} cannot be read.",
    "no encoding": "The file says that it is written in {}, which is no encoding of text.",
    "syntax": "The file is no valid Python: {}, {}.",
    "no Python": "The file is no valid Python: {}.",
    "unparsable": "The file cannot be parsed: it is nested too deeply, or needs more memory than the code may have.",
    "several": "The file defines {}: say which one, as in {}:{}.",
    "nothing": "The file defines no function and no class.",
    "no such name": "The file has no {}.",
    "no such name among": "The file has no {}; it defines {}.",
    "no function": "{} is of the type {}, and neither a function nor a class.",
    "uncallable": "It cannot be called.",
    "missing module": "The file imports {}, which is not installed here.",
    "printed": "The code prints too much{where}: take the `print` out of the loop.",
    "exit": "The code calls `sys.exit` or `exit`{where}; nothing can be checked after that.",
    "memory": "The code asks for more memory than it may have{where}.",
    "recursion": "The code calls itself without end{where}.",
    "not allowed": (
        "The code does what is not allowed here{where}: it may start no process, use no network, and write only into "
        "its own temporary folder."
    ),
    "large file": "The code writes a file that is too large{where}.",
    "raises": "It raises {}{where}.",
    "raises and says": "It raises {}{where}: {said}.",
    "raises the unreadable": "It raises an exception{where} of which nothing can be read.",
    "no tensor": "It returned {} where a tensor is expected.",
    "other tensor": "A tensor of the code cannot be compared: it is {}.",
    "large result": f"It returned tensors of {{}} MB: at most {MOST_BYTES // 2**20} MB are compared.",
    "large module": f"Its parameters and buffers have {{}} MB: at most {MOST_BYTES // 2**20} MB are compared.",
    "many tensors": f"It has {{}} tensors to compare: at most {MOST_TENSORS:,} are compared.",
    "many axes": f"A tensor of the code has {{}} axes: at most {MOST_AXES} are compared.",
    "many names": f"It has {{}} parameters: at most {MOST_NAMES:,} are looked at.",
    "long name": f"A parameter has a name of {{}} characters: at most {LONGEST_NAME:,} are read.",
    "long answer": "The code takes too many steps, or its steps read too many tensors, to be followed.",
}
"""What can go wrong. Each `{}` is a foreign word, `{where}` a line of the code, `{said}` an exception's own words."""


@dataclass(frozen=True)
class Fault:
    """One thing that a student's code did wrong."""

    name: str
    """One of FAULTS."""
    words: tuple[str, ...] = ()
    """A foreign word for each `{}`."""
    line: int = 0
    """Of the file; 0 where there is none to name."""
    text: str = ""
    """Of that line."""
    said: str = ""
    fatal: bool = False
    """Is nothing to be asked any more?"""

    @property
    def sentence(self) -> str:
        """The sentence, on one line."""
        where = f" in line {self.line} (`{shortened(self.text, LONGEST_LINE)}`)" if self.line else ""
        words = (shortened(each) for each in self.words)
        return FAULTS[self.name].format(*words, where=where, said=shortened(self.said, LONGEST_SAID))


class Refused(UserError):
    """A student's code did not do what it was asked to; the message is one sentence. After a fatal one it is over."""

    def __init__(self, sentence: str, *, fatal: bool = False, fault: Fault | None = None) -> None:
        super().__init__(sentence)
        self.fatal = fatal
        self.fault = fault
        """What the sentence was made of, where a bench made it."""

    @classmethod
    def of(cls, fault: Fault) -> Refused:
        return cls(fault.sentence, fatal=fault.fatal, fault=fault)
