"""What Linux can forbid a process for good: other processes, the network, files. None of it needs any rights.

Landlock (since Linux 5.13) forbids files by their folder. Seccomp forbids calls of the system; libseccomp writes its
program. What is forbidden stays so for all that the process does afterwards.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_BENEATH = 1
_READ = 1 << 0 | 1 << 2 | 1 << 3
"""Run a file, read a file, list a folder."""
_MAKE = sum(1 << right for right in range(4, 13))
"""Remove and make files and folders of every kind."""
_WRITE, _MOVE, _CUT = 1 << 1, 1 << 13, 1 << 14
_SCOPES = 0b11
"""Sockets without a file, and signals, stay within the process (since the sixth version)."""

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_EQUAL_UNDER_MASK, _UNEQUAL = 7, 1
_ANY_FILE = 1 << 1 | 1 << 2
"""Root's rights to read and write files whoever they belong to; Landlock bounds these."""
_LOW = 0xFFFFFFFF
"""Of an argument the system may read the lower half alone."""
_CLONE_THREAD = 0x00010000
_FORBIDDEN = (
    # other processes
    *("fork", "vfork", "execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open"),
    *("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", "setpriority", "sched_setaffinity"),
    *("sched_setscheduler", "sched_setparam", "sched_setattr", "ioprio_set", "migrate_pages", "move_pages"),
    # the network
    *("socket", "connect", "bind", "listen", "accept", "accept4"),
    # memory that its limit does not count, and ways round these rules
    *("memfd_create", "memfd_secret", "mq_open", "io_uring_setup", "bpf", "perf_event_open", "userfaultfd"),
    *("shmget", "shmat", "shmctl", "semget", "semctl", "msgget", "msgctl"),
    *("keyctl", "add_key", "unshare", "setns", "mount", "chroot", "pivot_root", "fsopen", "open_tree"),
    # what Landlock does not forbid of others' files: who may use them, whose they are, and when they were changed
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr"),
    *("utime", "utimes", "utimensat", "futimesat"),
)
_FORBIDDEN_WHERE = (
    # a file or a socket that lets the system send a signal to any process of the same user
    *(("fcntl", 1, number) for number in (8, 10, 15)),  # F_SETOWN, F_SETSIG, F_SETOWN_EX
    *(("ioctl", 1, number) for number in (0x8901, 0x8902)),  # FIOSETOWN, SIOCSPGRP
    ("prctl", 0, _PR_SET_PDEATHSIG),
)
"""Calls that are forbidden with this number as that argument."""


def end_with_parent() -> None:
    """Let the system kill this process as soon as the one that made it is gone. Linux only."""
    if _libc is not None and hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_first_without_memory() -> None:
    """Let the system end this process before any other where memory runs out. Linux only."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def drop_rights() -> None:
    """Give up for good what root may do beyond reading and writing files, where this process is root's. Linux only."""
    if _libc is not None and hasattr(_libc, "capset"):
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # the third version, this process
        _libc.capset(header, (ctypes.c_uint32 * 6)(_ANY_FILE, _ANY_FILE))


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Comparison(ctypes.Structure):
    _fields_ = (("argument", ctypes.c_uint), ("how", ctypes.c_int), ("one", ctypes.c_uint64), ("two", ctypes.c_uint64))


def forbid_files(readable: Iterable[Path], writable: Iterable[Path]) -> bool:
    """Forbid every file but those below these folders; False where the system cannot."""
    if _libc is None or not hasattr(_libc, "prctl"):
        return False
    version = _libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    write = _WRITE | _MAKE | (_MOVE if version >= 2 else 0) | (_CUT if version >= 3 else 0)
    rules = _Ruleset(files=_READ | write, net=0, scoped=_SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _libc.syscall(_CREATE_RULESET, ctypes.byref(rules), size, 0)
    if ruleset < 0:
        return False
    for folders, allowed in ((readable, _READ), (writable, _READ | write)):
        for folder in folders:
            _allow(ruleset, folder, allowed)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    done = _libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return done


def _allow(ruleset: int, path: Path, allowed: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not path.is_dir():
        allowed &= 1 << 0 | 1 << 1 | 1 << 2 | _CUT
    assert _libc is not None
    rule = _Beneath(allowed=allowed, folder=opened)
    _libc.syscall(_ADD_RULE, ruleset, _BENEATH, ctypes.byref(rule), 0)
    os.close(opened)


def forbid_calls() -> bool:
    """Forbid other processes, signals to them and sockets; threads stay. False where the system cannot."""
    try:
        library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    except OSError:
        return False
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_ALLOW)))
    if not rules:
        return False
    own, not_a_thread = os.getpid(), _Comparison(0, _EQUAL_UNDER_MASK, _CLONE_THREAD, 0)
    done = [_refuse(library, rules, call) for call in _FORBIDDEN]
    done.append(_refuse(library, rules, "clone", [not_a_thread]))
    done.append(_refuse(library, rules, "clone3", why=errno.ENOSYS))  # the C library then asks for `clone`
    for call, argument, number in _FORBIDDEN_WHERE:
        done.append(_refuse(library, rules, call, [_Comparison(argument, _EQUAL_UNDER_MASK, _LOW, number)]))
    for call in ("kill", "tgkill"):
        done.append(_refuse(library, rules, call, [_Comparison(0, _UNEQUAL, own, 0)]))
    done.append(_refuse(library, rules, "prlimit64", [_Comparison(0, _UNEQUAL, 0, 0)]))
    loaded = library.seccomp_load(rules) == 0
    library.seccomp_release(rules)
    return loaded and all(done)


def _refuse(
    library: ctypes.CDLL,
    rules: ctypes.c_void_p,
    call: str,
    where: Sequence[_Comparison] = (),
    why: int = errno.EPERM,
) -> bool:
    """Let one call of the system fail, where its arguments are such. True as well where there is no such call."""
    number = library.seccomp_syscall_resolve_name(call.encode())
    if number < 0:
        return True
    given = (_Comparison * len(where))(*where)
    action = ctypes.c_uint32(_REFUSE | why)
    return library.seccomp_rule_add_array(rules, action, number, ctypes.c_uint(len(where)), given) == 0
