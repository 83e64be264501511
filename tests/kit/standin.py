"""A stand-in accelerator for a machine without one: what is written for CUDA or MPS runs on the CPU, in pure Python.

A tensor on it is a wrapper subclass of PyTorch's backend for private use (`_setup_privateuseone_for_python_backend`),
which says device="cuda:0" to Python and holds a CPU tensor. A TorchFunctionMode turns the device's name into the
private one; a TorchDispatchMode sees every operation (forward, backward, vmap, optimiser), lets the CPU do it, and
enforces a GPU's rules:

- tensors of two devices do not meet (but for 0-dim CPU numbers and CPU indices, as on CUDA);
- what waits for the device (.item(), .cpu(), bool(t), nonzero, boolean indices, pageable copies) is counted, and raises
  while a graph is captured;
- a captured operation is not done, its result is garbage until the graph is replayed, at the same addresses; only what
  runs on the capturing stream, of that stream's device, is captured;
- each device has a generator of its own, whose state has 16 bytes; MPS has no float64.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import time
import traceback
from collections import Counter
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

PRIVATE = "standin"


class _Module:
    """torch.standin: what PyTorch asks of the private backend."""

    is_initialized = is_available = staticmethod(lambda: True)
    _is_in_bad_fork = staticmethod(lambda: False)
    current_device = staticmethod(lambda: 0)
    device_count = staticmethod(lambda: 1)
    manual_seed_all = staticmethod(lambda seed: None)
    get_rng_state = staticmethod(lambda device=None: StandIn.present.get_rng_state(device))
    set_rng_state = staticmethod(lambda state, device=None: StandIn.present.set_rng_state(state, device))


_setup_privateuseone_for_python_backend(PRIVATE, _Module())
aten = torch.ops.aten
WAITS = {
    aten._local_scalar_dense.default,
    aten.equal.default,
    aten.is_nonzero.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.bincount.default,
    aten.repeat_interleave.Tensor,
    aten.histc.default,
    aten.unique_consecutive.default,
}
CPU_INDICES = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
COPIES = {aten.copy_.default, aten._to_copy.default}


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


ONLY_THERE = {
    aten._thnn_fused_gru_cell.default: _gru_cell,
    aten._thnn_fused_gru_cell_backward.default: _gru_cell_backward,
}


class CaptureError(RuntimeError):
    """What CUDA says: operation not permitted when stream is capturing."""


class Twin(torch.Tensor):
    """A tensor that believes to be on the device; its numbers are in `inner`."""

    @staticmethod
    def __new__(cls, inner, device):
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
            raise TypeError(f"can't convert {self.place} device type tensor to numpy. Use Tensor.cpu() first.")
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


def frozen(values):
    """The same memory in shapes that no later operation in place (transpose_) changes."""
    return tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, values)


class Stream:
    def __init__(self, device=None, **_):
        self.device = StandIn.present.device_of(device)

    def wait_stream(self, other):
        StandIn.present.calls.append("wait_stream")

    def synchronize(self):
        StandIn.present.waited("stream.synchronize")


class Graph:
    def __init__(self, *_, **__):
        self.ops = []

    def replay(self):
        here = StandIn.present
        here.calls.append("replay")
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            for func, args, kwargs, outs, where in self.ops:
                with here._generator(func, where):  # the device's own, and it goes on from replay to replay
                    found = ONLY_THERE.get(func, func)(*args, **kwargs)
                for place, new in zip(outs, tree_flatten(found)[0], strict=True) if outs is not None else ():
                    if isinstance(place, torch.Tensor):
                        place.copy_(new)

    def reset(self):
        self.ops = []

    def register_generator_state(self, generator):
        """On CUDA a generator of one's own must be registered; the device's own is."""


class Event:
    def __init__(self, *_, **__):
        self.at = None

    def record(self, stream=None):
        self.at = time.perf_counter()

    def wait(self, stream=None):
        StandIn.present.calls.append("event.wait")

    def query(self):
        return True

    def synchronize(self):
        StandIn.present.waited("event.synchronize")

    def elapsed_time(self, end):
        return 1000 * (end.at - self.at)


_original_apply = torch.nn.Module._apply


def _apply(module, *args, **kwargs):
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        return _original_apply(module, *args, **kwargs)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


class StandIn(TorchDispatchMode):
    present: StandIn

    def __init__(self, kind="cuda", count=1):
        super().__init__()
        StandIn.present = self
        self.kind, self.count = kind, count
        self.state = [[0, 0] for _ in range(count)]  # seed, offset
        self.current, self.streams, self.capturing, self.graph, self.wanted = 0, {}, None, None, None
        self.calls, self.empty_graphs = [], 0
        self.capturer = None  # the thread that must not wait while a graph is captured; None: no thread must
        self.reset_counts()

    # --- counting

    def reset_counts(self):
        self.launches, self.waits, self.ops, self.where = 0, Counter(), Counter(), Counter()

    def waited(self, what):
        if self.capturing is not None and self.capturer in (None, threading.get_ident()):
            raise CaptureError(f"operation not permitted when stream is capturing: {what}")
        self.waits[what] += 1
        for frame in reversed(traceback.extract_stack(limit=40)):
            if (
                any(part in frame.filename for part in ("/transformer/", "/dashboard/"))
                and "site-packages" not in frame.filename
            ):
                self.where[
                    f"{what} {frame.filename.split('/main/')[-1].split('/app/')[-1]}:{frame.lineno} {frame.line}"
                ] += 1
                break

    # --- devices

    def device_of(self, device=None):
        if device is None:
            return torch.device(self.kind, self.current)
        device = torch.device(self.kind, device) if isinstance(device, int) else torch.device(device)
        return (
            device
            if device.index is not None
            else torch.device(self.kind, self.current if device.type == self.kind else 0)
        )

    def stream(self, device=None):
        device = self.device_of(device)
        return self.streams.setdefault(device.index, Stream(device))

    def mine(self, device):
        return device is not None and torch.device(device).type in (self.kind, PRIVATE)

    def place(self, device):
        """The device that is meant, where C++ says the private one."""
        device = torch.device(device)
        return (
            self.wanted or torch.device(self.kind, self.current) if device.type == PRIVATE else self.device_of(device)
        )

    # --- every operation

    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        flat, spec = tree_flatten((args, kwargs))
        twins = [x for x in flat if isinstance(x, Twin)]
        asked = kwargs.get("device")
        if not twins and not self.mine(asked):
            return func(*args, **kwargs)
        plain = [x for x in flat if isinstance(x, torch.Tensor) and not isinstance(x, Twin)]
        devices = {x.device for x in twins}
        where = next(iter(devices), None)
        if self.mine(asked) and (not twins or (func is aten._to_copy.default and self.wanted)):
            where = self.place(asked)
        # what meets whom
        if func in COPIES:
            self._copying(func, args, kwargs, asked)
        else:
            if len(devices) > 1:
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but found {sorted(map(str, devices))}: {func}"
                )
            strange = [x for x in plain if x.dim()]
            if twins and strange:
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
        inner = [x.inner if isinstance(x, Twin) else x for x in flat]
        inner_args, inner_kwargs = tree_unflatten(inner, spec)
        to_cpu = func is aten._to_copy.default and asked is not None and not self.mine(asked)
        if "device" in inner_kwargs and inner_kwargs["device"] is not None and not to_cpu:
            inner_kwargs["device"] = torch.device("cpu")
        inner_kwargs.pop("pin_memory", None)
        self.ops[str(func)] += 1
        view = torch.Tag.inplace_view in func.tags or any(
            r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns
        )
        writes = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        if not view:
            self.launches += 1
        captured = (
            self.capturing is not None
            and not view
            and not to_cpu
            and where is not None
            and self.stream(where) is self.capturing
        )
        own = {id(x.inner): x for x in twins}

        def wrapped(x):
            if not isinstance(x, torch.Tensor) or isinstance(x, Twin):
                return x
            if id(x) in own:
                return own[id(x)]
            if self.kind == "mps" and x.dtype in (torch.float64, torch.complex128):
                raise TypeError(
                    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64."
                )
            return Twin(x, where)

        if (
            captured
            and writes
            and not func._schema.name.endswith(("_out", ".out"))
            and func._schema.returns
            and all(r.alias_info is not None and r.alias_info.is_write for r in func._schema.returns)
        ):
            self.graph.ops.append((func, *frozen((inner_args, inner_kwargs)), None, where))
            return args[0] if len(func._schema.returns) == 1 else None
        if captured and writes and not func._schema.returns:  # _foreach_add_, _fused_adamw_
            self.graph.ops.append((func, *frozen((inner_args, inner_kwargs)), None, where))
            return None
        offset = self.state[where.index][1] if where is not None and where.index is not None else None
        with self._generator(func, where):
            found = ONLY_THERE.get(func, func)(*inner_args, **inner_kwargs)
        if torch.Tag.inplace_view in func.tags:  # transpose_: the wrapper's shape follows
            with no_dispatch():
                func(*args, **kwargs)
        if captured:
            self.state[where.index][1] = offset  # nothing was drawn yet
            outs = tree_flatten(found)[0]
            self.graph.ops.append((func, *frozen((inner_args, inner_kwargs, outs)), where))
            for each in outs:
                if isinstance(each, torch.Tensor):
                    each.fill_(float("nan") if each.dtype.is_floating_point else 0)
        if to_cpu or func is aten._local_scalar_dense.default:
            return found
        return tree_map(wrapped, found)

    def _copying(self, func, args, kwargs, asked):
        if func is aten.copy_.default:
            source, target = args[1].device, args[0].device
            lazily = len(args) > 2 and args[2]
        else:
            source, target = args[0].device, torch.device(asked) if asked is not None else args[0].device
            lazily = kwargs.get("non_blocking", False)
        if (self.mine(source) and self.mine(target)) or source.type == target.type:
            return
        down = self.mine(source)
        if down or not lazily:
            pageable = "" if down else " (pageable)"
            self.waited("device to host" if down else f"host to device{pageable}")

    @contextlib.contextmanager
    def _generator(self, func, where):
        if torch.Tag.nondeterministic_seeded not in func.tags or where is None:
            yield
            return
        kept, own = torch.default_generator.get_state(), self.state[where.index]
        torch.default_generator.manual_seed((own[0] * 1_000_003 + own[1]) % 2**63)
        own[1] += 4
        try:
            yield
        finally:
            torch.default_generator.set_state(kept)

    # --- torch.cuda

    def get_rng_state(self, device="cuda"):
        return torch.frombuffer(
            bytearray(struct.pack("<QQ", *self.state[self.device_of(device).index])), dtype=torch.uint8
        )

    def set_rng_state(self, state, device="cuda"):
        if state.numel() != 16:
            raise RuntimeError("RNG state is wrong size")
        self.state[self.device_of(device).index] = list(struct.unpack("<QQ", bytes(state.tolist())))

    def manual_seed_all(self, seed):
        for own in self.state:
            own[:] = [seed, 0]

    @contextlib.contextmanager
    def on_stream(self, stream):
        device, before = self.current, self.streams.get(stream.device.index)
        self.current, self.streams[stream.device.index] = stream.device.index, stream
        self.calls.append("stream")
        try:
            yield
        finally:
            self.current = device
            if before is None:
                self.streams.pop(stream.device.index, None)
            else:
                self.streams[stream.device.index] = before

    @contextlib.contextmanager
    def on_device(self, device):
        before, self.current = self.current, self.device_of(device).index
        try:
            yield
        finally:
            self.current = before

    @contextlib.contextmanager
    def capture(self, graph, pool=None, stream=None, capture_error_mode="global", **_):
        self.calls.append("graph")
        if stream is None:  # one for the process, on the device that was current when it was first needed
            stream = self.default_capture_stream = getattr(self, "default_capture_stream", None) or Stream()
        with self.on_stream(stream):
            self.capturing, self.graph = stream, graph
            self.capturer = threading.get_ident() if capture_error_mode == "thread_local" else None
            try:
                yield
            finally:
                self.capturing = self.graph = None
        if not graph.ops:
            self.empty_graphs += 1

    @contextlib.contextmanager
    def installed(self):
        """Use it for a while: CUDA seems to be here."""
        types_ = torch.utils._foreach_utils._foreach_supported_types
        before = list(types_)
        with contextlib.ExitStack() as stack:

            def put(name, value):
                stack.enter_context(mock.patch(name, value, create=True))

            types_.append(Twin)
            stack.callback(types_.__setitem__, slice(None), before)
            put("torch.nn.Module._apply", _apply)  # a weight that two layers share stays one
            lift = torch._C._only_lift_cpu_tensors()
            torch._C._set_only_lift_cpu_tensors(True)
            stack.callback(torch._C._set_only_lift_cpu_tensors, lift)
            if self.kind == "mps":
                put("torch.backends.mps.is_available", lambda: True)
            else:
                put("torch.cuda._lazy_init", lambda: None)
                put("torch.cuda.is_available", lambda: True)
                put("torch.cuda.device_count", lambda: self.count)
                put("torch.cuda.current_device", lambda: self.current)
                put("torch.cuda.get_device_name", lambda device=None: "Stand-in GPU")
                put("torch.cuda.is_bf16_supported", lambda *a, **k: True)
                put("torch.cuda.max_memory_reserved", lambda device=None: 2**20)
                put("torch.cuda.synchronize", lambda device=None: self.waited("synchronize"))
                put("torch.cuda.get_rng_state", self.get_rng_state)
                put("torch.cuda.set_rng_state", self.set_rng_state)
                put("torch.cuda.manual_seed_all", self.manual_seed_all)
                put("torch.cuda.Stream", Stream)
                put("torch.cuda.current_stream", self.stream)
                put("torch.cuda.stream", self.on_stream)
                put("torch.cuda.device", self.on_device)
                put("torch.cuda.CUDAGraph", Graph)
                put("torch.cuda.graph", self.capture)
                put("torch.cuda.Event", Event)
                put("torch.Tensor.pin_memory", lambda tensor, device=None: tensor)
                put("torch.cuda.is_current_stream_capturing", lambda: self.capturing is not None)
                put("torch.cuda.empty_cache", lambda: None)
            stack.enter_context(_Names(self))
            stack.enter_context(self)
            yield self


class _Names(TorchFunctionMode):
    """In what is asked of PyTorch, the device by its private name."""

    def __init__(self, standin):
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
            return func(*args, **kwargs)
        finally:
            standin.wanted = before
