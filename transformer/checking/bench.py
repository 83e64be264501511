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
import re
import sys
import tokenize
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from transformer.checking.faults import (
    LONGEST_LINE,
    LONGEST_NAME,
    LONGEST_SAID,
    MOST_AXES,
    MOST_BYTES,
    MOST_NAMES,
    MOST_TENSORS,
    Fault,
    Refused,
)
from transformer.checking.recording import Recording, Step
from transformer.foundation.drawing import drawing
from transformer.foundation.foreign import quoted, shortened

LONGEST_SOURCE = 2**20
"""Bytes of a file."""
MOST_LISTED = 24
DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)
"""What results are compared in."""
_LIKELY, _SETTINGS = (
    re.compile(words, re.IGNORECASE)
    for words in (r"attention|attn|head|transformer|gpt|decoder|mask|pos|rope|rotary", r"config|args|hparams|settings")
)
"""Names of what is worth checking, and of what only holds settings."""
_WINDOW = re.compile(r"^(?!.*(context|ctx|max)).*window", re.IGNORECASE)
"""Names of how far a window reaches; a context window is the longest text."""
WIDEST_WINDOW = 2**20
"""Tokens of a window that is read off a name."""
CONFIG = ("config", "cfg", "conf", "args", "hparams", "params")
"""A class may take all its settings in one object of such a name."""


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

    @property
    def called_with(self) -> tuple[Parameter, ...]:
        return self.forward if self.is_class else self.parameters


@dataclass(frozen=True)
class Made:
    """What was made of a class: the tensors that are trained, and those that only belong to it."""

    parameters: dict[str, Tensor] = field(default_factory=dict)
    buffers: dict[str, Tensor] = field(default_factory=dict)
    windows: dict[str, int] = field(default_factory=dict)
    """Whole numbers whose names say that they are a window: of the instance, its file, and the file's classes."""


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


class Settings(dict[str, Any]):
    """The settings of a class in one object, read as `.name`, as `["name"]`, or as `**settings`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Local(Bench):
    """A bench in this process."""

    def __init__(self, what: Callable[..., Any] | None = None, printed: int = 1) -> None:
        self.file = ""
        """What the code's file is called."""
        self._paper = _Paper(printed * 2**20)
        self._what = what
        self._made: Any = None
        self._arrays = False
        """Is the code written for NumPy's arrays, so that it is handed those?"""

    def open(self, source, file, name, folder=""):
        self.file = file
        return self._doing(partial(self._opened, source, name, folder), importing=True)

    def describe(self) -> Described:
        """What is on the bench."""
        return self._doing(self._described)

    def make(self, arguments):
        return self._doing(partial(self._make, arguments))

    def call(self, arguments, names=(), *, record=False, gradients=False, seed=0, precision=""):
        with drawing(seed):
            return self._doing(partial(self._call, arguments, names, record, gradients, precision))

    # --- the student's code is run here, and nowhere else: whatever touches what it made may run it

    def _doing(self, what: Callable[[], Any], importing: bool = False) -> Any:
        """Run a student's code: whatever it raises is said in one sentence.

        One thread at a time: what is printed, and what is drawn at random, belong to the whole process.
        """
        with drawing():
            own = sys.stdout, sys.stderr
            sys.stdout = sys.stderr = self._paper
            try:
                return what()
            except KeyboardInterrupt:  # of the terminal, where this process has one
                raise
            except BaseException as error:
                raise Refused.of(fault_of(error, self.file, importing)) from None
            finally:
                sys.stdout, sys.stderr = own

    def _opened(self, source: bytes, name: str, folder: str) -> Described:
        self._what = _found(self._imported(source, folder), name, self.file)
        return self._described()

    def _described(self) -> Described:
        what: Any = self._what
        is_class = isinstance(what, type)
        called: Any = getattr(what, "forward", None) or what.__call__
        forward = _parameters(called)[1:] if is_class else ()
        name = getattr(what, "__name__", "it")
        name = name if isinstance(name, str) and len(name) <= LONGEST_NAME else "it"
        return Described(name, is_class, _parameters(what), forward)

    def _make(self, arguments: Mapping[str, Any]) -> Made:
        assert self._what is not None
        with drawing(0):
            self._made = self._instance(arguments)
        made = Made({name: _real(each) for name, each in self._named("parameters")})
        made.buffers.update((name, _real(each)) for name, each in self._named("buffers"))
        _require_comparable([*made.parameters.values(), *made.buffers.values()], "large module")
        if isinstance(self._made, nn.Module):
            self._made.eval()
            generator = torch.Generator().manual_seed(1)
            with torch.no_grad():
                for parameter in self._made.parameters():
                    if not is_lazy(parameter) and parameter.dim() < 2 and parameter.is_floating_point():
                        parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
        parameters, buffers = (
            {name: _real(each.detach()) for name, each in self._named(kind)} for kind in ("parameters", "buffers")
        )
        return Made(parameters, buffers, self._windows())

    def _windows(self) -> dict[str, int]:
        """Whole numbers that are called a window, of what was made, of its class, and of its file."""
        file = getattr(getattr(self._what, "__init__", None), "__globals__", {})
        classes = [
            each for each in list(file.values()) if isinstance(each, type) and each.__module__ == file["__name__"]
        ]
        places = [getattr(self._made, "__dict__", {}), file, *map(vars, classes)]
        return {
            name: value
            for place in reversed(places)
            for name, value in list(place.items())
            if type(name) is str and type(value) is int and _WINDOW.search(name) and 0 < value <= WIDEST_WINDOW
            if len(name) <= LONGEST_NAME
        }

    def _instance(self, arguments: Mapping[str, Any]) -> Any:
        """An instance of the class. Settings in one object are of a class of the file for them, or else a record."""
        what: Any = self._what
        names = [name for name in arguments if name in CONFIG]
        first: Exception | None = None
        for settings in (*self._classes_of_settings(names[0]), Settings) if names else (Settings,):
            try:
                return what(**{**arguments, **{name: _configured(settings, arguments[name]) for name in names}})
            except (TypeError, ValueError, AttributeError, LookupError, AssertionError) as error:
                first = first or error
        assert first is not None
        raise first

    def _classes_of_settings(self, name: str) -> list[type]:
        """What the settings in one object may be of: what the file notes, or has for a default, or calls so."""
        known = getattr(getattr(self._what, "__init__", None), "__globals__", {})
        parameter = inspect.signature(self._what).parameters[name]  # type: ignore[arg-type]
        noted = known.get(parameter.annotation) if isinstance(parameter.annotation, str) else parameter.annotation
        called = [each for each_name, each in list(known.items()) if _SETTINGS.search(each_name)]
        return [
            each
            for each in (noted, type(parameter.default), *called)
            if isinstance(each, type)
            and each.__module__ == getattr(self._what, "__module__", "")
            and not issubclass(each, nn.Module)
        ]

    def _call(
        self, arguments: Sequence[Any], names: Sequence[str], record: bool, gradients: bool, precision: str
    ) -> Answer:
        what = self._made if isinstance(self._what, type) else self._what
        if not callable(what):
            raise Refused.of(Fault("uncallable", fatal=True))
        cast = getattr(torch, precision) if precision else None
        given = [_own(each, cast, gradients) for each in arguments]
        before = [each.detach().clone() if isinstance(each, Tensor) else None for each in given]
        passed = [each.clone() if isinstance(each, Tensor) and each.requires_grad else each for each in given]
        if self._arrays:
            passed = [_array(each) if isinstance(each, Tensor) else each for each in given]
        names = [*names, *[""] * (len(passed) - len(names))]
        positional = [each for each, name in zip(passed, names, strict=True) if not name]
        keywords = {name: each for each, name in zip(passed, names, strict=True) if name}
        module = what if isinstance(what, nn.Module) else None
        if module is not None:
            module.zero_grad(set_to_none=True)
        own = [] if module is None else [*module.parameters(), *module.buffers()]
        kept = [(each, each.data) for each in own if not is_lazy(each)]
        if module is not None and cast is not None:
            module.to(cast)
        recording = Recording(passed, self._named("parameters"))
        try:
            with torch.enable_grad(), recording if record else nullcontext():
                returned = what(*positional, **keywords)
        finally:
            if cast is not None:
                for each, numbers in kept:
                    each.data = numbers
        values, array = _tensors(returned)
        if not values:
            raise Refused.of(Fault("no tensor", (shortened(type(returned).__name__),)))
        _require_comparable(values, "large result")
        changed = tuple(
            number
            for number, (old, new) in enumerate(zip(before, passed, strict=True))
            if old is not None and not _equal(old, _of_numpy(new) if isinstance(new, np.ndarray) else new.detach())
        )
        found, unused = self._gradients(values[0], given) if gradients else ((), ())
        copied = tuple(value.detach().clone() for value in values)
        return Answer(copied, array, changed, found, unused, tuple(recording.steps))

    def _gradients(self, value: Tensor, given: Sequence[Any]) -> tuple[tuple[Tensor | None, ...], tuple[str, ...]]:
        inputs = [each for each in given if isinstance(each, Tensor) and each.requires_grad]
        if value.requires_grad:
            (value * weighing(value)).sum().backward()
        unused = [
            name
            for name, each in self._named("parameters")
            if each.requires_grad and (each.grad is None or not bool(each.grad.any()))
        ]
        return (
            tuple(None if each.grad is None else each.grad.detach().to_dense().clone() for each in inputs),
            tuple(unused),
        )

    def _named(self, kind: str) -> list[tuple[str, Tensor]]:
        """Parameters or buffers; what has no numbers yet is left out."""
        if not isinstance(self._made, nn.Module):
            return []
        every = getattr(self._made, f"named_{kind}")()
        found = [(name, tensor) for name, tensor in every if tensor is not None and not is_lazy(tensor)]
        _require_names([name for name, _ in found])
        return found

    def _imported(self, source: bytes, folder: str) -> ModuleType:
        text = _text(source)
        code = _compiled(text, self.file)
        linecache.cache[self.file] = (len(text), None, text.splitlines(keepends=True), self.file)
        stem = Path(self.file).stem
        name = stem if stem.isidentifier() and stem not in sys.modules else "submission"
        module = ModuleType(name)
        module.__file__ = self.file
        sys.modules[name] = module
        if folder:
            sys.path.insert(0, folder)
        exec(code, module.__dict__)
        imported = {
            getattr(each, "__name__", "").partition(".")[0] for each in list(vars(module).values()) if _is_module(each)
        }
        self._arrays = "numpy" in imported and "torch" not in imported
        return module


def _configured(settings: type, values: Mapping[str, Any]) -> Any:
    """An object of a class of settings, with those of the values that it knows."""
    if settings is Settings:
        return Settings(values)
    taken = inspect.signature(settings).parameters
    made = settings(**{name: value for name, value in values.items() if name in taken})
    for name, value in values.items():
        if name not in taken and hasattr(made, name):
            with suppress(AttributeError):  # it is computed from others
                setattr(made, name, value)
    return made


def _real(tensor: Tensor) -> Tensor:
    """The same numbers, complex ones as pairs."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


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


def fault_of(error: BaseException, file: str, importing: bool = False) -> Fault:
    """What a student's code did wrong, by what it raised. Their exceptions may do anything when they are looked at."""
    try:
        return _fault(error, file, importing)
    except BaseException:
        return Fault("raises the unreadable", fatal=importing)


def _fault(error: BaseException, file: str, importing: bool) -> Fault:
    if isinstance(error, Refused) and error.fault is not None:
        return error.fault
    line = next(
        (frame.lineno for frame in reversed(traceback.extract_tb(error.__traceback__)) if frame.filename == file), 0
    )
    text = linecache.getline(file, line).strip() if file and line else ""
    where: dict[str, Any] = {"line": line or 0, "text": shortened(text, LONGEST_LINE)}
    if isinstance(error, TooMuchPrinted):
        return Fault("printed", **where, fatal=True)
    if isinstance(error, SystemExit):
        return Fault("exit", **where, fatal=True)
    if isinstance(error, ModuleNotFoundError):
        return Fault("missing module", (quoted(error.name or ""),), fatal=importing)
    words = str(error).strip().split("\n")[0]
    if isinstance(error, MemoryError) or "can't allocate memory" in words:
        return Fault("memory", **where, fatal=True)
    if isinstance(error, RecursionError):
        return Fault("recursion", **where, fatal=importing)
    if isinstance(error, OSError) and error.errno in (errno.EPERM, errno.EACCES):
        return Fault("not allowed", **where, fatal=True)
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return Fault("large file", **where, fatal=True)
    said = shortened(words, LONGEST_SAID).rstrip(".")
    kind = (shortened(type(error).__name__),)
    return Fault("raises and says" if said else "raises", kind, **where, said=said, fatal=importing)


def _require_comparable(tensors: Sequence[Tensor], large: str) -> None:
    """Raise Refused for tensors that cannot be compared, before anything of them is copied.

    An expanded tensor has all its numbers to copy, and takes no memory until then.
    """
    if len(tensors) > MOST_TENSORS:
        raise Refused.of(Fault("many tensors", (f"{len(tensors):,}",), fatal=True))
    for each in tensors:
        if each.layout != torch.strided or each.is_nested or each.device.type != "cpu":
            what = f"of the layout {each.layout}" if each.device.type == "cpu" else f"on the device {each.device}"
            raise Refused.of(Fault("other tensor", (what.replace("torch.", ""),)))
        if each.dtype not in DTYPES:
            raise Refused.of(Fault("other tensor", (f"of {each.dtype}".replace("torch.", ""),)))
        if each.dim() > MOST_AXES:
            raise Refused.of(Fault("many axes", (str(each.dim()),)))
    taken = sum(each.numel() * each.element_size() for each in tensors)
    if taken > MOST_BYTES:
        raise Refused.of(Fault(large, (f"{taken / 2**20:,.0f}",), fatal=True))


def _equal(old: Tensor, new: Tensor) -> bool:
    return old.shape == new.shape and old.dtype == new.dtype and torch.equal(old, new)


def _text(source: bytes) -> str:
    """The words of a Python file. Raises Refused where they cannot be read."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    except SyntaxError:  # it names an encoding that is none, or has other bytes in its first two lines
        encoding = "utf-8"
    name = "UTF-8" if encoding.startswith("utf-8") else shortened(encoding)
    try:
        return io.TextIOWrapper(io.BytesIO(source), encoding).read()
    except UnicodeDecodeError as error:
        raise Refused.of(Fault("no text", (name, str(error.start + 1)), fatal=True)) from None
    except (LookupError, ValueError):  # rot13, undefined
        raise Refused.of(Fault("no encoding", (name,), fatal=True)) from None


def _compiled(text: str, file: str) -> CodeType:
    """The code of a Python file. Raises Refused where it is none."""
    try:
        return compile(text, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f"line {error.lineno}" if error.lineno else "somewhere"
        why = shortened(error.msg or "it cannot be parsed")
        raise Refused.of(Fault("syntax", (where, why), fatal=True)) from None
    except ValueError as error:
        why = shortened(str(error)) or "it cannot be parsed"
        raise Refused.of(Fault("no Python", (why,), fatal=True)) from None
    except (RecursionError, MemoryError, OverflowError, SystemError):
        raise Refused.of(Fault("unparsable", fatal=True)) from None


def _found(module: ModuleType, name: str, file: str) -> Callable[..., Any]:
    """What bears the name; without one, the only function or class that the file defines."""
    own = {
        each: value
        for each, value in vars(module).items()
        if callable(value) and not each.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }
    listed = ", ".join(shortened(each, 40) for each in list(own)[:MOST_LISTED]) + (
        " …" if len(own) > MOST_LISTED else ""
    )
    if not name:
        if len(own) == 1:
            return next(iter(own.values()))
        plain = [each for each in own if not _SETTINGS.search(each)]
        likeliest = next((each for each in plain if _LIKELY.search(each)), next(iter([*plain, *own]), ""))
        several = Fault("several", (listed, Path(file).name, likeliest), fatal=True)
        raise Refused.of(several if own else Fault("nothing", fatal=True))
    if not hasattr(module, name):
        missing = (quoted(name), listed) if own else (quoted(name),)
        raise Refused.of(Fault("no such name among" if own else "no such name", missing, fatal=True))
    found = getattr(module, name)
    if not callable(found):
        raise Refused.of(Fault("no function", (quoted(name), shortened(type(found).__name__)), fatal=True))
    return found


def _parameters(what: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a function or of a constructor, those that collect the rest left out."""
    try:
        found = inspect.signature(what).parameters.values()
    except (ValueError, TypeError):
        return ()
    _require_names([each.name for each in found])
    return tuple(
        Parameter(each.name, each.default is not each.empty)
        for each in found
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    )


def _require_names(names: Sequence[str]) -> None:
    """Raise Refused for more names, or longer ones, than are read."""
    if len(names) > MOST_NAMES:
        raise Refused.of(Fault("many names", (f"{len(names):,}",), fatal=True))
    if (longest := max(map(len, names), default=0)) > LONGEST_NAME:
        raise Refused.of(Fault("long name", (f"{longest:,}",), fatal=True))


def _own(value: Any, cast: torch.dtype | None, gradients: bool) -> Any:
    """A copy of an argument: a student's code may change it."""
    if not isinstance(value, Tensor):
        return value
    value = value.clone()
    if not value.is_floating_point():
        return value
    value = value if cast is None else value.to(cast)
    return value.requires_grad_() if gradients else value


def _tensors(returned: Any, depth: int = 8) -> tuple[list[Tensor], bool]:
    """The tensors in what was returned, in order, and whether they were NumPy's. Raises Refused for a NumPy array
    that cannot be compared."""
    if isinstance(returned, Tensor):
        return [returned], False
    if isinstance(returned, np.ndarray):
        return ([_of_numpy(returned)] if returned.dtype.kind in "fiub" else []), True
    if isinstance(returned, Mapping):
        returned = list(returned.values())
    elif hasattr(returned, "logits"):
        returned = [returned.logits]
    if isinstance(returned, builtins.tuple | builtins.list) and depth:
        inner = [_tensors(each, depth - 1) for each in returned]
        return [value for values, _ in inner for value in values], any(array for _, array in inner)
    return [], False


def _is_module(value: Any) -> bool:
    return type(value) is ModuleType


def _array(tensor: Tensor) -> np.ndarray:
    """A tensor as a NumPy array of its own; NumPy has no bfloat16, and gets float32."""
    tensor = tensor.detach()
    return np.array((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())


def _of_numpy(array: np.ndarray) -> Tensor:
    """A NumPy array as a tensor. Raises Refused where it is too large, before it is copied, or of another type."""
    if array.nbytes > MOST_BYTES:
        raise Refused.of(Fault("large result", (f"{array.nbytes / 2**20:,.0f}",), fatal=True))
    try:
        return torch.from_numpy(np.ascontiguousarray(array))
    except (TypeError, ValueError):  # more precise than PyTorch's numbers, or with their bytes the other way round
        raise Refused.of(Fault("other tensor", (f"of NumPy’s {array.dtype.str}",))) from None
