"""A stand-in accelerator for a machine without one: what is written for CUDA or MPS runs on the CPU, in pure Python.

    with StandIn("cuda").installed() as gpu:
        ...  # torch.device("cuda") is there

A tensor on it, a `Twin`, is a wrapper of PyTorch's backend for private use. It says device="cuda:0" to Python and holds
a tensor of the CPU. One mode turns the device's name into the private one. Another sees every operation, of forward and
backward passes, vmap and optimisers. It lets the CPU do the operation, and enforces the rules of a GPU:

- Tensors of two devices do not meet, but for numbers and indices that are on the CPU.
- What waits for the device is counted in `waits`: .item(), .cpu(), bool(t), nonzero, boolean indices, copies of memory
  that is not pinned. It raises while a graph is captured.
- Operations other than copies between the machine and the device are counted in `launches`. The replay of a graph is
  one launch.
- A copy of pinned memory that is non_blocking does not wait. Down, the numbers are there only after a wait. Up, whoever
  writes to the memory before a wait is told so at that wait.
- A captured operation is not done. Its result is garbage until the graph is replayed, at the same addresses. Only what
  runs on the capturing stream, of that stream's device, is captured.
- Each device has a generator of its own, whose state is not of the size of the CPU's. The draws of a replayed graph
  come from it, and go on from replay to replay. Its state can be neither read nor set while a graph is captured.
- Autocast computes products in the smaller type. MPS has no float64, and neither graphs nor streams.

It cannot show what a GPU's own arithmetic does: its numbers are those of the CPU. To import it registers the backend
for the whole process, which PyTorch does not undo. Outside `installed` nothing else is changed. Import it at the top of
a test's module: PyTorch counts devices at its first backward pass, once, and a backend that comes later has no queue.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from torch.utils.backend_registration import _DummyPrivateUse1Hook, _setup_privateuseone_for_python_backend

PRIVATE = "standin"
ROOT = Path(__file__).parents[2]


class _Module:
    """torch.standin: what PyTorch asks of the private backend."""

    is_initialized = is_available = staticmethod(lambda: StandIn.is_installed)
    _is_in_bad_fork = staticmethod(lambda: False)
    current_device = staticmethod(lambda: 0)
    device_count = staticmethod(lambda: int(StandIn.is_installed))
    manual_seed_all = staticmethod(lambda seed: None)
    get_rng_state = staticmethod(lambda device=None: StandIn.present.get_rng_state(device))
    set_rng_state = staticmethod(lambda state, device=None: StandIn.present.set_rng_state(state, device))


class _Hook(_DummyPrivateUse1Hook):
    def is_available(self) -> bool:
        return StandIn.is_installed


_setup_privateuseone_for_python_backend(PRIVATE, _Module(), _Hook())
aten = torch.ops.aten
WAITS = {
    *(aten._local_scalar_dense.default, aten.equal.default, aten.is_nonzero.default, aten.nonzero.default),
    *(aten.masked_select.default, aten._unique2.default, aten.unique_dim.default, aten.unique_consecutive.default),
    *(aten.bincount.default, aten.histc.default, aten.repeat_interleave.Tensor),
}
CPU_INDICES = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
COPIES = {aten.copy_.default, aten._to_copy.default}
NO_LAUNCH = {aten.empty.memory_format, aten.empty_like.default, aten.empty_strided.default, aten.new_empty.default}
SMALLER = {functional.linear, functional.scaled_dot_product_attention, torch.einsum, torch.bmm, torch.baddbmm}
SMALLER |= {torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.bmm}
"""What autocast computes in the smaller type."""
WHOLE = {functional.layer_norm, functional.softmax, torch.softmax, torch.Tensor.softmax, functional.cross_entropy}
WHOLE |= {torch.log_softmax, torch.Tensor.log_softmax, torch.Tensor.norm, torch.rsqrt, torch.Tensor.pow}
"""What autocast computes in float32."""


def _gru_cell(gates_in, gates_hidden, hidden, bias_in=None, bias_hidden=None):
    """CUDA's fused cell, which a CPU has not: the new state, and what its backward pass needs."""
    i, h = (gates_in, gates_hidden) if bias_in is None else (gates_in + bias_in, gates_hidden + bias_hidden)
    (i_r, i_z, i_n), (h_r, h_z, h_n) = i.chunk(3, 1), h.chunk(3, 1)
    r, z = (i_r + h_r).sigmoid(), (i_z + h_z).sigmoid()
    n = (i_n + r * h_n).tanh()
    return n + z * (hidden - n), torch.cat([r, z, n, hidden, h_n], 1)


def _gru_cell_backward(grad, workspace, has_bias):
    r, z, n, hidden, h_n = workspace.chunk(5, 1)
    d_n = grad * (1 - z) * (1 - n * n)
    d_z, d_r = grad * (hidden - n) * z * (1 - z), d_n * h_n * r * (1 - r)
    d_in, d_hidden = torch.cat([d_r, d_z, d_n], 1), torch.cat([d_r, d_z, d_n * r], 1)
    bias = (d_in.sum(0), d_hidden.sum(0)) if has_bias else (None, None)
    return d_in, d_hidden, grad * z, *bias


ONLY_THERE: dict[Any, Callable[..., Any]] = {
    aten._thnn_fused_gru_cell.default: _gru_cell,
    aten._thnn_fused_gru_cell_backward.default: _gru_cell_backward,
}


class CaptureError(RuntimeError):
    """What CUDA says: operation not permitted when stream is capturing."""


class Twin(torch.Tensor):
    """A tensor that believes to be on the device; its numbers are in `inner`."""

    inner: torch.Tensor
    place: torch.device

    @staticmethod
    def __new__(cls, inner: torch.Tensor, device: torch.device | str) -> Twin:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            layout=inner.layout,
            device=f"{PRIVATE}:0",
            requires_grad=False,
        )
        made.inner, made.place = inner, torch.device(device)
        return made

    @property
    def device(self):
        return self.place

    @property
    def is_cuda(self):
        return self.place.type == "cuda"

    @property
    def is_mps(self):
        return self.place.type == "mps"

    def numpy(self, *, force=False):
        if not force:
            raise TypeError(
                f"can't convert {self.place} device type tensor to numpy. "
                "Use Tensor.cpu() to copy the tensor to host memory first."
            )
        return self.detach().cpu().numpy()

    def tolist(self):
        return self.detach().cpu().tolist()

    def __array__(self, *_, **__):
        return self.numpy()

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, kinds, args=(), kwargs=None):
        with StandIn.present:
            return func(*args, **(kwargs or {}))

    def __repr__(self):
        return f"Twin({self.inner!r}, device={self.device})"

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            copy = self.detach().clone()
            if isinstance(self, torch.nn.Parameter):
                copy = torch.nn.Parameter(copy, self.requires_grad)
            memo[id(self)] = copy
        return memo[id(self)]


def freeze_shapes(values: Any) -> Any:
    """The same memory in shapes that no later operation in place (transpose_) changes."""
    return tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, values)


class Stream:
    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = StandIn.present.device_of(device)

    def wait_stream(self, other: Stream) -> None:
        """Everything here happens in order."""

    def synchronize(self) -> None:
        StandIn.present.waited("stream.synchronize")


class Graph:
    """What was captured; `replay` does it, in order and at the same addresses."""

    def __init__(self) -> None:
        self.ops: list[tuple[Any, Any, Any, list[Any] | None, torch.device]] = []
        self.captured, self.shared = False, (0, 0)

    def replay(self) -> None:
        here = StandIn.present
        if not self.captured:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        here.launches += 1
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            for func, args, kwargs, outs, where in self.ops:
                if func is None:
                    here.set_out(args[0], args[1])
                    continue
                with here.generator(func, where):
                    found = ONLY_THERE.get(func, func)(*args, **kwargs)
                for place, new in zip(outs, tree_flatten(found)[0], strict=True) if outs is not None else ():
                    if isinstance(place, torch.Tensor):
                        place.copy_(new)

    def reset(self) -> None:
        self.ops, self.captured = [], False

    def pool(self) -> tuple[int, int]:
        return self.shared


class Event:
    """Comes when everything has come that was asked for before it."""

    def record(self, stream: Stream | None = None) -> None:
        """Everything here happens in order."""

    def synchronize(self) -> None:
        StandIn.present.waited("event.synchronize")


class _Copy:
    """A copy that is under way, from or to pinned memory: it arrives when somebody waits for the device."""

    def __init__(self, host: torch.Tensor, down: torch.Tensor | None) -> None:
        self.host, self.down, self.kept = host, down, host.clone()

    def arrive(self) -> None:
        if self.down is not None:
            self.host.copy_(self.down)
        elif not torch.equal(self.host.contiguous().view(torch.uint8), self.kept.view(torch.uint8)):
            raise RuntimeError("pinned memory was written to before its copy to the device was done")


_original_apply = torch.nn.Module._apply


def _apply(module, *args, **kwargs):
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        return _original_apply(module, *args, **kwargs)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


def _spoil(values: torch.Tensor) -> None:
    """Write garbage, which whoever reads too early sees."""
    values.fill_(float("nan") if values.dtype.is_floating_point else 0)


class StandIn(TorchDispatchMode):
    """One or more devices of a kind, "cuda" or "mps"."""

    present: StandIn
    is_installed = False

    def __init__(self, kind: str = "cuda", count: int = 1) -> None:
        super().__init__()
        StandIn.present = self
        self.kind, self.count = kind, count
        self.state = [[0, 0] for _ in range(count)]
        """Of each device's generator: the seed, and how far it has drawn."""
        self.current = 0
        self.streams: dict[int, Stream] = {}
        self.capturing: Stream | None = None
        self.capture_stream: Stream | None = None
        self.graph: Graph | None = None
        self.wanted: torch.device | None = None
        self.capturer: int | None = None
        """The thread that must not wait while a graph is captured; None: no thread must."""
        self.calls: list[str] = []
        self.pinned: list[torch.UntypedStorage] = []
        self.under_way: list[_Copy] = []
        self.reset_counts()

    # --- counting

    def reset_counts(self) -> None:
        """Count from nothing: of a step, of an evaluation."""
        self.launches = 0
        self.ops: Counter[str] = Counter()
        """What was launched, and how often."""
        self.waits: Counter[str] = Counter()
        self.where: Counter[str] = Counter()
        """Where in the product somebody waited."""

    def waited(self, what: str) -> None:
        if self.capturing is not None and self.capturer in (None, threading.get_ident()):
            raise CaptureError(f"operation not permitted when stream is capturing: {what}")
        self.waits[what] += 1
        for frame in reversed(traceback.extract_stack(limit=40)):
            path = Path(frame.filename)
            if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in ("transformer", "dashboard"):
                self.where[f"{what} {path.relative_to(ROOT)}:{frame.lineno} {frame.line}"] += 1
                break
        self.arrive()

    def arrive(self) -> None:
        """End the copies that are under way."""
        arrived, self.under_way = self.under_way, []
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            for copy in arrived:
                copy.arrive()

    # --- devices

    def device_of(self, device: Any = None) -> torch.device:
        if device is None:
            return torch.device(self.kind, self.current)
        device = torch.device(self.kind, device) if isinstance(device, int) else torch.device(device)
        if device.index is not None:
            return device
        return torch.device(self.kind, self.current if device.type == self.kind else 0)

    def stream(self, device: Any = None) -> Stream:
        device = self.device_of(device)
        return self.streams.setdefault(device.index, Stream(device))

    def mine(self, device: Any) -> bool:
        return device is not None and torch.device(device).type in (self.kind, PRIVATE)

    def place(self, device: Any) -> torch.device:
        """The device that is meant, where C++ says the private one."""
        device = torch.device(device)
        return (
            self.wanted or torch.device(self.kind, self.current) if device.type == PRIVATE else self.device_of(device)
        )

    # --- pinned memory

    def pin(self, values: torch.Tensor) -> torch.Tensor:
        self.pinned.append(values.untyped_storage())
        return values

    def is_pinned(self, values: torch.Tensor) -> bool:
        if isinstance(values, Twin):
            return False
        at = values.untyped_storage().data_ptr()
        return any(each.data_ptr() <= at < each.data_ptr() + each.nbytes() for each in self.pinned)

    # --- every operation

    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        flat, spec = tree_flatten((args, kwargs))
        twins = [x for x in flat if isinstance(x, Twin)]
        asked = kwargs.get("device")
        pinned = kwargs.pop("pin_memory", None) if not twins and not self.mine(asked) else None
        if not twins and not self.mine(asked):
            found = func(*args, **kwargs)
            return self.pin(found) if pinned else found
        plain = [x for x in flat if isinstance(x, torch.Tensor) and not isinstance(x, Twin)]
        devices = {x.device for x in twins}
        where = next(iter(devices), None)
        if self.mine(asked) and (not twins or (func is aten._to_copy.default and self.wanted)):
            where = self.place(asked)
        crosses, lazily = "", False
        if func in COPIES:
            crosses, lazily = self._crossing(func, args, kwargs, asked)
            if crosses and not lazily:
                self.waited({"down": "device to host", "up": "host to device"}[crosses])
        else:
            self._meet(func, args, devices, where, twins, plain)
        inner = [x.inner if isinstance(x, Twin) else x for x in flat]
        inner_args, inner_kwargs = tree_unflatten(inner, spec)
        to_cpu = func is aten._to_copy.default and asked is not None and not self.mine(asked)
        if "device" in inner_kwargs and inner_kwargs["device"] is not None and not to_cpu:
            inner_kwargs["device"] = torch.device("cpu")
        inner_kwargs.pop("pin_memory", None)
        view = torch.Tag.inplace_view in func.tags or any(
            r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns
        )
        captured = (
            self.graph is not None
            and not view
            and not to_cpu
            and where is not None
            and self.stream(where) is self.capturing
        )
        if not (crosses or captured or view or func in NO_LAUNCH):
            self.launches += 1
            self.ops[str(func)] += 1
        own = {id(x.inner): x for x in twins}

        def wrapped(x):
            if not isinstance(x, torch.Tensor) or isinstance(x, Twin):
                return x
            if id(x) in own:
                return own[id(x)]
            if self.kind == "mps" and x.dtype in (torch.float64, torch.complex128):
                raise TypeError(
                    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
                    "Please use float32 instead."
                )
            return Twin(x, where)

        if captured and self._writes_only(func):  # copy_, _foreach_add_, _fused_adamw_
            self.graph.ops.append(
                (None if crosses == "down" else func, *freeze_shapes((inner_args, inner_kwargs)), None, where)
            )
            return args[0] if len(func._schema.returns) == 1 else None
        drawn = self.state[where.index][1] if where is not None and self.mine(where) else None
        with self.generator(func, where):
            found = ONLY_THERE.get(func, func)(*inner_args, **inner_kwargs)
        if torch.Tag.inplace_view in func.tags:  # transpose_: the wrapper's shape follows
            with no_dispatch():
                func(*args, **kwargs)
        if captured:
            self.state[where.index][1] = drawn  # nothing was drawn yet
            outs = tree_flatten(found)[0]
            self.graph.ops.append((func, *freeze_shapes((inner_args, inner_kwargs, outs)), where))
            for each in outs:
                if isinstance(each, torch.Tensor):
                    _spoil(each)
        elif lazily and crosses == "up":
            self.set_out(inner_args[0] if func is aten._to_copy.default else inner_args[1])
        elif lazily:
            self.set_out(self.pin(found) if to_cpu else found, found)
        if to_cpu or func is aten._local_scalar_dense.default:
            return found
        return tree_map(wrapped, found)

    @staticmethod
    def _writes_only(func) -> bool:
        """Does an operation only change what is there, and give nothing new?"""
        writes = any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)
        returns = func._schema.returns
        if not returns:
            return writes
        in_place = all(r.alias_info is not None and r.alias_info.is_write for r in returns)
        return writes and in_place and not func._schema.name.endswith(("_out", ".out"))

    def _meet(self, func, args, devices, where, twins, plain) -> None:
        """Raises RuntimeError where tensors of two devices meet; counts the waits that an operation means."""
        if len(devices) > 1:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found {sorted(map(str, devices))}: {func}"
            )
        if twins and any(x.dim() for x in plain):
            if func not in CPU_INDICES or any(args[0] is x for x in plain):
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at least two devices, "
                    f"{where} and cpu! ({func})"
                )
            self.waited("index by a CPU tensor")
        if func in WAITS:
            self.waited(str(func))
        if func in CPU_INDICES and any(
            isinstance(x, torch.Tensor) and x.dtype in (torch.bool, torch.uint8) for x in args[1]
        ):
            simple = func is not aten.index.Tensor and isinstance(args[2], torch.Tensor) and args[2].dim() == 0
            if not simple:
                self.waited("boolean index")

    def _crossing(self, func, args, kwargs, asked) -> tuple[str, bool]:
        """Which way a copy goes, "up" to the device or "down" from it, or ""; and does it go without a wait?"""
        if func is aten.copy_.default:
            target, source = args[0], args[1]
            there, here = target.device, source.device
            asked_not_to = (len(args) > 2 and args[2]) or kwargs.get("non_blocking", False)
        else:
            target, source = None, args[0]
            there, here = torch.device(asked) if asked is not None else source.device, source.device
            asked_not_to = kwargs.get("non_blocking", False)
        if self.mine(here) == self.mine(there):
            return "", False
        if self.mine(there):
            return "up", bool(asked_not_to) and self.is_pinned(source)
        return "down", bool(asked_not_to) and (target is None or self.is_pinned(target))

    def set_out(self, host: torch.Tensor, down: torch.Tensor | None = None) -> None:
        """Put a copy under way: `host` is looked at when it arrives, or takes `down`, and is garbage until then."""
        self.under_way.append(_Copy(host, None if down is None else down.clone()))
        if down is not None:
            _spoil(host)

    @contextlib.contextmanager
    def generator(self, func: Any, where: torch.device | None) -> Iterator[None]:
        """Let an operation that draws draw from the device's own generator, which goes on."""
        if torch.Tag.nondeterministic_seeded not in func.tags or where is None or not self.mine(where):
            yield
            return
        kept, own = torch.default_generator.get_state(), self.state[where.index]
        torch.default_generator.manual_seed((own[0] * 1_000_003 + own[1]) % 2**63)
        own[1] += 4
        try:
            yield
        finally:
            torch.default_generator.set_state(kept)

    # --- torch.cuda and torch.mps

    @property
    def _state_format(self) -> str:
        return "<QQ28x" if self.kind == "mps" else "<QQ"

    def _not_while_capturing(self) -> None:
        if self.capturing is not None and self.capturer in (None, threading.get_ident()):
            raise CaptureError("the state of the generator is not known while a graph is captured")

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        self._not_while_capturing()
        own = self.state[self.device_of(device).index]
        return torch.frombuffer(bytearray(struct.pack(self._state_format, *own)), dtype=torch.uint8)

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        self._not_while_capturing()
        if state.device.type != "cpu" or state.dtype != torch.uint8:
            raise TypeError("expected a torch.ByteTensor")
        if state.numel() != struct.calcsize(self._state_format):
            raise RuntimeError("RNG state is wrong size")
        self.state[self.device_of(device).index][:] = struct.unpack(self._state_format, bytes(state.tolist()))

    def manual_seed_all(self, seed: int) -> None:
        for own in self.state:
            own[:] = [seed % 2**64, 0]

    def manual_seed(self, seed: int) -> None:
        self.state[self.current][:] = [seed % 2**64, 0]

    @contextlib.contextmanager
    def on_stream(self, stream: Stream | None) -> Iterator[None]:
        if stream is None:
            yield
            return
        device, before = self.current, self.streams.get(stream.device.index)
        self.current, self.streams[stream.device.index] = stream.device.index, stream
        try:
            yield
        finally:
            self.current = device
            if before is None:
                self.streams.pop(stream.device.index, None)
            else:
                self.streams[stream.device.index] = before

    @contextlib.contextmanager
    def on_device(self, device: Any) -> Iterator[None]:
        before, self.current = self.current, self.device_of(device).index
        try:
            yield
        finally:
            self.current = before

    def set_device(self, device: Any) -> None:
        self.current = self.device_of(device).index

    @contextlib.contextmanager
    def capture(
        self,
        cuda_graph: Graph,
        pool: tuple[int, int] | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> Iterator[None]:
        """torch.cuda.graph. Without a stream it takes one of the process, of the device that was current at first."""
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise ValueError(f"no such capture_error_mode: {capture_error_mode}")
        self.calls.append("graph")
        self.waited("synchronize")
        if stream is None:
            stream = self.capture_stream = self.capture_stream or Stream()
        with self.on_stream(stream):
            self.capturing, self.graph = stream, cuda_graph
            self.capturer = threading.get_ident() if capture_error_mode == "thread_local" else None
            try:
                yield
            finally:
                self.capturing = self.graph = None
        cuda_graph.captured, cuda_graph.shared = True, pool or (0, id(cuda_graph))
        if not cuda_graph.ops:
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong "
                "device or stream.",
                stacklevel=2,
            )

    @contextlib.contextmanager
    def installed(self) -> Iterator[StandIn]:
        """Use it for a while: CUDA, or MPS, seems to be here."""
        StandIn.present = self
        with contextlib.ExitStack() as stack:

            def put(name: str, value: Any) -> None:
                stack.enter_context(mock.patch(name, value, create=True))

            supported = torch.utils._foreach_utils._foreach_supported_types
            stack.callback(supported.__setitem__, slice(None), list(supported))
            supported.append(Twin)
            stack.enter_context(mock.patch.object(StandIn, "is_installed", True))
            lift = torch._C._only_lift_cpu_tensors()
            torch._C._set_only_lift_cpu_tensors(True)
            stack.callback(torch._C._set_only_lift_cpu_tensors, lift)
            put("torch.nn.Module._apply", _apply)  # a weight that two layers share stays one
            put("torch.accelerator.synchronize", lambda device=None: self.waited("synchronize"))
            put("torch.Tensor.pin_memory", lambda tensor, device=None: self.pin(tensor.clone()))
            put("torch.Tensor.is_pinned", lambda tensor, device=None: self.is_pinned(tensor))
            for name, value in (self._mps() if self.kind == "mps" else self._cuda()).items():
                put(name, value)
            stack.enter_context(_Names(self))
            stack.enter_context(self)
            yield self

    def _mps(self) -> dict[str, Any]:
        return {
            "torch.backends.mps.is_available": lambda: True,
            "torch.mps.manual_seed": self.manual_seed,
            "torch.mps.get_rng_state": lambda: self.get_rng_state(),
            "torch.mps.set_rng_state": lambda new_state: self.set_rng_state(new_state),
            "torch.mps.synchronize": lambda: self.waited("synchronize"),
        }

    def _cuda(self) -> dict[str, Any]:
        answers = {
            "_lazy_init": None,
            "is_available": True,
            "device_count": self.count,
            "get_device_name": "Stand-in GPU",
            "is_bf16_supported": True,
            "max_memory_reserved": 2**20,
            "empty_cache": None,
            "graph_pool_handle": (0, 1),
        }
        return {f"torch.cuda.{name}": lambda *_, answer=answer, **__: answer for name, answer in answers.items()} | {
            "torch.backends.cudnn.is_acceptable": lambda tensor: False,
            "torch.cuda.current_device": lambda: self.current,
            "torch.cuda.set_device": self.set_device,
            "torch.cuda.synchronize": lambda device=None: self.waited("synchronize"),
            "torch.cuda.get_rng_state": lambda device="cuda": self.get_rng_state(device),
            "torch.cuda.set_rng_state": lambda new_state, device="cuda": self.set_rng_state(new_state, device),
            "torch.cuda.manual_seed": self.manual_seed,
            "torch.cuda.manual_seed_all": self.manual_seed_all,
            "torch.cuda.Stream": Stream,
            "torch.cuda.current_stream": self.stream,
            "torch.cuda.stream": self.on_stream,
            "torch.cuda.device": self.on_device,
            "torch.cuda.CUDAGraph": Graph,
            "torch.cuda.Event": Event,
            "torch.cuda.graph": self.capture,
            "torch.cuda.is_current_stream_capturing": lambda: self.capturing is not None,
        }


class _Names(TorchFunctionMode):
    """In what is asked of PyTorch, the device by its private name; and autocast, which the private backend has not."""

    def __init__(self, standin: StandIn) -> None:
        super().__init__()
        self.standin = standin

    def __torch_function__(self, func, kinds, args=(), kwargs=None):
        standin, kwargs = self.standin, dict(kwargs or {})
        if func is torch.device:
            return func(*args, **kwargs)

        def private(x):
            if isinstance(x, torch.device) and x.type == standin.kind:
                standin.wanted = standin.device_of(x)
                return torch.device(PRIVATE, 0)
            return x

        before = standin.wanted
        try:
            if isinstance(kwargs.get("device"), (str, int)):
                kwargs["device"] = torch.device(kwargs["device"])
            if func in (torch.Tensor.to,) and len(args) > 1 and isinstance(args[1], str):
                args = (args[0], torch.device(args[1]), *args[2:])
            if func is torch.Tensor.cuda:
                func, args = torch.Tensor.to, (args[0], torch.device("cuda"))
            args, kwargs = tree_map(private, args), tree_map(private, kwargs)
            if func in SMALLER | WHOLE and torch.is_autocast_enabled(standin.kind):
                args, kwargs = self._cast(func, args, kwargs)
            return func(*args, **kwargs)
        finally:
            standin.wanted = before

    def _cast(self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The arguments in the type that autocast asks for."""
        to = torch.get_autocast_dtype(self.standin.kind) if func in SMALLER else torch.float32
        known = (torch.float32, torch.float16, torch.bfloat16)

        def cast(x):
            return x.to(to) if isinstance(x, Twin) and x.dtype in known else x

        return tree_map(cast, args), tree_map(cast, kwargs)
