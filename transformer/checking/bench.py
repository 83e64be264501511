"""A student's code on the bench: opened, made, called, and its answers as plain tensors.

A `Bench` is asked alike in whichever process the code runs: in this one it is a `Local`, in another one a `Remote`
(`isolation/process.py`), which has a `Local` answer there.
"""

from __future__ import annotations

import builtins
import errno
import inspect
import io
import linecache
import sys
import tokenize
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transformer.checking.recording import Recording, Step
from transformer.foundation.checks import UserError
from transformer.foundation.drawing import drawing
from transformer.foundation.foreign import quoted, shortened

LONGEST_SOURCE = 2**20
MOST_NAMES = 8
CONFIG = ("config", "cfg", "conf", "args", "hparams", "params")
"""A class may take all its settings in one object of such a name."""


class Refused(UserError):
    """A student's code did not do what it was asked to; the message is one sentence. After a fatal one it is over."""

    def __init__(self, sentence: str, *, fatal: bool = False) -> None:
        super().__init__(sentence)
        self.fatal = fatal


class TooMuchPrinted(BaseException):
    """Raised where a student's code prints; no `except Exception` of theirs stops it."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function."""

    name: str
    optional: bool


@dataclass(frozen=True)
class Described:
    """What a name in a file is: a function, or a class and what its instances are called with."""

    name: str
    is_class: bool
    parameters: tuple[Parameter, ...]
    """Of the function, or of the class's constructor."""
    forward: tuple[Parameter, ...] = ()
    """Of `forward`, or of `__call__`."""

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Described:
        """What a message describes."""
        both = {each: tuple(Parameter(**parameter) for parameter in said[each]) for each in ("parameters", "forward")}
        return cls(said["name"], said["is_class"], **both)

    @property
    def called_with(self) -> tuple[Parameter, ...]:
        return self.forward if self.is_class else self.parameters


@dataclass(frozen=True)
class Made:
    """What was made of a class: the tensors that are trained, and those that only belong to it."""

    parameters: dict[str, Tensor] = field(default_factory=dict)
    buffers: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What a call returned."""

    values: tuple[Tensor, ...]
    """The tensors in it, in order. A NumPy array counts as one."""
    array: bool = False
    """Was it a NumPy array?"""
    changed: tuple[int, ...] = ()
    """Arguments that the call changed in place."""
    gradients: tuple[Tensor | None, ...] = ()
    """Of the first result, weighed by fixed random numbers, by each floating-point argument."""
    unused: tuple[str, ...] = ()
    """Parameters that this gradient does not reach."""
    steps: tuple[Step, ...] = ()

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Answer:
        """The answer that a message holds."""
        steps = tuple(Step.read(step) for step in said["steps"])
        plain = {name: tuple(said[name]) for name in ("values", "changed", "gradients", "unused")}
        return cls(**plain, array=said["array"], steps=steps)


def weighing(value: Tensor) -> Tensor:
    """Fixed random numbers by which a result is weighed before gradients are taken."""
    generator = torch.Generator().manual_seed(7)
    return torch.randn(value.shape, generator=generator, dtype=torch.float32).to(value.dtype)


class Bench(ABC):
    """One student's function or class. Every fault of theirs is a `Refused` with one sentence."""

    @abstractmethod
    def open(self, source: bytes, file: str, name: str, folder: str = "") -> Described:
        """Import a file's source and find a name in it, or its only one. Modules of `folder` can be imported."""

    @abstractmethod
    def make(self, arguments: Mapping[str, Any]) -> Made:
        """Make an instance of the class, in evaluation mode, its parameters drawn with a fixed seed.

        Biases and gains are drawn as well: as 0 and 1 they would hide what is done with them.
        """

    @abstractmethod
    def call(
        self,
        arguments: Sequence[Any],
        names: Sequence[str] = (),
        *,
        record: bool = False,
        gradients: bool = False,
        seed: int = 0,
        precision: str = "",
    ) -> Answer:
        """Call the function or the instance; an argument that has one of `names` in its place is passed by that name.

        With a `precision`, parameters and arguments are cast to it.
        """


class Local(Bench):
    """A bench in this process."""

    def __init__(self, what: Callable[..., Any] | None = None, printed: int = 1) -> None:
        self._paper = _Paper(printed * 2**20)
        self._what = what
        self._made: Any = None
        self._file = ""

    def open(self, source, file, name, folder=""):
        self._file = file
        self._what = _found(self._imported(source, file, folder), name, file)
        return self.describe()

    def describe(self) -> Described:
        """What is on the bench."""
        what: Any = self._what
        is_class = isinstance(what, type)
        called: Any = getattr(what, "forward", None) or what.__call__
        forward = _parameters(called)[1:] if is_class else ()
        return Described(getattr(what, "__name__", "it"), is_class, _parameters(what), forward)

    def make(self, arguments):
        assert self._what is not None
        given = {name: SimpleNamespace(**value) if name in CONFIG else value for name, value in arguments.items()}
        with drawing(0):
            self._made = self._doing(partial(self._what, **given))
        if isinstance(self._made, nn.Module):
            self._made.eval()
            generator = torch.Generator().manual_seed(1)
            with torch.no_grad():
                for parameter in self._made.parameters():
                    if parameter.dim() < 2 and parameter.is_floating_point():
                        parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
        return Made(*({name: each.detach() for name, each in self._named(kind)} for kind in ("parameters", "buffers")))

    def call(self, arguments, names=(), *, record=False, gradients=False, seed=0, precision=""):
        what = self._made if isinstance(self._what, type) else self._what
        if not callable(what):
            raise Refused("It cannot be called.", fatal=True)
        cast = getattr(torch, precision) if precision else None
        given = [_own(each, cast, gradients) for each in arguments]
        before = [each.detach().clone() if isinstance(each, Tensor) else None for each in given]
        passed = [each.clone() if isinstance(each, Tensor) and each.requires_grad else each for each in given]
        names = [*names, *[""] * (len(passed) - len(names))]
        positional = [each for each, name in zip(passed, names, strict=True) if not name]
        keywords = {name: each for each, name in zip(passed, names, strict=True) if name}
        module = what if isinstance(what, nn.Module) else None
        if module is not None:
            module.zero_grad(set_to_none=True)
            if cast is not None:
                module.to(cast)
        recording = Recording(passed, self._named("parameters"))
        try:
            with drawing(seed), torch.enable_grad(), recording if record else nullcontext():
                returned = self._doing(partial(what, *positional, **keywords))
        finally:
            if module is not None and cast is not None:
                module.float()
        values, array = _tensors(returned)
        if not values:
            raise Refused(f"It returned {shortened(type(returned).__name__)} where a tensor is expected.")
        changed = tuple(
            number
            for number, (old, new) in enumerate(zip(before, passed, strict=True))
            if old is not None and (old.shape != new.shape or not torch.equal(old, new.detach()))
        )
        found, unused = self._gradients(values[0], given) if gradients else ((), ())
        copied = tuple(value.detach().clone() for value in values)
        return Answer(copied, array, changed, found, unused, tuple(recording.steps))

    def _gradients(self, value: Tensor, given: Sequence[Any]) -> tuple[tuple[Tensor | None, ...], tuple[str, ...]]:
        inputs = [each for each in given if isinstance(each, Tensor) and each.requires_grad]
        if value.requires_grad:
            self._doing((value * weighing(value)).sum().backward)
        unused = [
            name
            for name, each in self._named("parameters")
            if each.requires_grad and (each.grad is None or not bool(each.grad.any()))
        ]
        return tuple(None if each.grad is None else each.grad.detach().clone() for each in inputs), tuple(unused)

    def _named(self, kind: str) -> list[tuple[str, Tensor]]:
        if not isinstance(self._made, nn.Module):
            return []
        return [(name, tensor) for name, tensor in getattr(self._made, f"named_{kind}")() if tensor is not None]

    # --- the student's code is run here, and nowhere else

    def _imported(self, source: bytes, file: str, folder: str) -> ModuleType:
        text = _text(source)
        try:
            code = compile(text, file, "exec", dont_inherit=True)
        except SyntaxError as error:
            where = f"line {error.lineno}" if error.lineno else "somewhere"
            raise Refused(f"The file is no valid Python: {where}, {shortened(error.msg)}.", fatal=True) from None
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise Refused(f"The file is no valid Python: {shortened(str(error))}.", fatal=True) from None
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        name = Path(file).stem if Path(file).stem.isidentifier() else "submission"
        module = ModuleType(name)
        module.__file__ = file
        sys.modules[f"{name}"] = module
        if folder:
            sys.path.insert(0, folder)
        self._doing(partial(exec, code, module.__dict__), importing=True)
        return module

    def _doing(self, what: Callable[[], Any], importing: bool = False) -> Any:
        """Run a student's code: whatever it raises is said in one sentence.

        One thread at a time: what is printed, and what is drawn at random, belong to the whole process.
        """
        with drawing():
            own = sys.stdout, sys.stderr
            sys.stdout = sys.stderr = self._paper
            try:
                return what()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise _refusal(error, self._file, importing) from None
            finally:
                sys.stdout, sys.stderr = own


class _Paper(io.TextIOBase):
    """What is printed: counted, and thrown away."""

    def __init__(self, most: int) -> None:
        self._left = most

    def write(self, text: str) -> int:
        self._left -= len(text)
        if self._left < 0:
            raise TooMuchPrinted
        return len(text)

    def writable(self) -> bool:
        return True


def _refusal(error: BaseException, file: str, importing: bool) -> Refused:
    """The sentence for what a student's code raised."""
    line = next(
        (frame.lineno for frame in reversed(traceback.extract_tb(error.__traceback__)) if frame.filename == file), 0
    )
    text = linecache.getline(file, line or 0).strip() if file and line else ""
    where = f" in line {line} (`{shortened(text, 60)}`)" if line else ""
    fatal = importing
    if isinstance(error, TooMuchPrinted):
        return Refused(f"The code prints too much{where}: take the `print` out of the loop.", fatal=True)
    if isinstance(error, SystemExit):
        return Refused(f"The code calls `sys.exit` or `exit`{where}; nothing can be checked after that.", fatal=True)
    if isinstance(error, ModuleNotFoundError):
        return Refused(f"The file imports {quoted(error.name or '')}, which is not installed here.", fatal=fatal)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return Refused(f"The code asks for more memory than it may have{where}.", fatal=True)
    if isinstance(error, RecursionError):
        return Refused(f"The code calls itself without end{where}.", fatal=fatal)
    if isinstance(error, OSError) and error.errno in (errno.EPERM, errno.EACCES):
        return Refused(
            f"The code does what is not allowed here{where}: it may start no process, use no network, and write only "
            "into its own temporary folder.",
            fatal=True,
        )
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return Refused(f"The code writes a file that is too large{where}.", fatal=True)
    said = shortened(str(error).strip().split("\n")[0], 160)
    kind = shortened(type(error).__name__)
    return Refused(f"It raises {kind}{where}{f': {said}' if said else ''}".rstrip(".") + ".", fatal=fatal)


def _text(source: bytes) -> str:
    """The words of a Python file. Raises Refused where they cannot be read."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    except SyntaxError:  # it names an encoding that is none, or has other bytes in its first two lines
        encoding = "utf-8"
    try:
        return io.TextIOWrapper(io.BytesIO(source), encoding).read()
    except UnicodeDecodeError as error:
        name = "UTF-8" if encoding.startswith("utf-8") else shortened(encoding)
        raise Refused(f"The file is no {name} text: byte {error.start + 1} cannot be read.", fatal=True) from None


def _found(module: ModuleType, name: str, file: str) -> Callable[..., Any]:
    """What bears the name; without one, the only function or class that the file defines."""
    own = {
        each: value
        for each, value in vars(module).items()
        if callable(value) and not each.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }
    listed = ", ".join(shortened(each, 40) for each in list(own)[:MOST_NAMES]) + (" …" if len(own) > MOST_NAMES else "")
    if not name:
        if len(own) == 1:
            return next(iter(own.values()))
        raise Refused(
            f"The file defines {listed}: say which one, as in {Path(file).name}:{next(iter(own))}."
            if own
            else "The file defines no function and no class.",
            fatal=True,
        )
    if not hasattr(module, name):
        raise Refused(f"The file has no {quoted(name)}{f'; it defines {listed}' if own else ''}.", fatal=True)
    found = getattr(module, name)
    if not callable(found):
        kind = shortened(type(found).__name__)
        raise Refused(f"{quoted(name)} is of the type {kind}, and neither a function nor a class.", fatal=True)
    return found


def _parameters(what: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a function or of a constructor, those that collect the rest left out."""
    try:
        found = inspect.signature(what).parameters.values()
    except (ValueError, TypeError):
        return ()
    return tuple(
        Parameter(each.name, each.default is not each.empty)
        for each in found
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    )


def _own(value: Any, cast: torch.dtype | None, gradients: bool) -> Any:
    """A copy of an argument: a student's code may change it."""
    if not isinstance(value, Tensor):
        return value
    value = value.clone()
    if not value.is_floating_point():
        return value
    value = value if cast is None else value.to(cast)
    return value.requires_grad_() if gradients else value


def _tensors(returned: Any) -> tuple[list[Tensor], bool]:
    """The tensors in what was returned, in order, and whether they were NumPy's."""
    if isinstance(returned, Tensor):
        return [returned], False
    if isinstance(returned, np.ndarray):
        return ([torch.from_numpy(np.ascontiguousarray(returned))] if returned.dtype.kind in "fiub" else []), True
    if isinstance(returned, Mapping):
        returned = list(returned.values())
    elif hasattr(returned, "logits"):
        returned = [returned.logits]
    if isinstance(returned, builtins.tuple | builtins.list):
        inner = [_tensors(each) for each in returned]
        return [value for values, _ in inner for value in values], any(array for _, array in inner)
    return [], False
