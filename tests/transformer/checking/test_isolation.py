"""A student's file hurts nobody: whatever it does, there is one sentence, and the next file is checked as well."""

import os
import re
import socket
import threading
from pathlib import Path

import pytest

import transformer
from tests.kit.gpus import sitecustomize as gpu
from tests.kit.hostile.submissions import FORGING, RIGHT, body
from tests.kit.waiting import PATIENCE, wait_for
from transformer.checking.check import CheckError, check, check_source
from transformer.checking.faults import Refused
from transformer.checking.isolation import barriers
from transformer.checking.isolation.limits import PROMISES, Limits, can_read
from transformer.checking.isolation.process import ENVIRONMENT, IsolationError, Warm

PATIENT = Limits(seconds=PATIENCE, memory=256)
SHORT = Limits(seconds=0.3, memory=256)
LINUX = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the barriers are Linux's")


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    """A process begun beside a GPU with a secret in its environment, and the folder where it alone writes."""
    own = tmp_path_factory.mktemp("own")
    handed_on = (*ENVIRONMENT, "TMPDIR", "PYTHONPATH", gpu.KIND)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("transformer.checking.isolation.process.ENVIRONMENT", handed_on)
        for name, value in {**gpu.environment("unusable"), "TMPDIR": str(own), "MY_SECRET_KEY": "swordfish"}.items():
            patched.setenv(name, value)
        with Warm() as warm:
            yield warm, own


def checked(source: str | bytes, warm: Warm, folder: Path, name: str = "attention", limits: Limits = PATIENT):
    file = folder / "submission.py"
    file.write_bytes(source if isinstance(source, bytes) else source.encode())
    return check(file, name, warm=warm, limits=limits)


CALLED = "The code’s Python process was ended by the signal"
HOSTILE = {
    "a fork bomb": (
        body("import os", "while True: os.fork()"),
        "The code does what is not allowed here in line 3 (`while True: os.fork()`): it may start no process, use no "
        "network, and write only into its own temporary folder.",
    ),
    "a program": (
        body("import subprocess", "subprocess.run(['ls'])"),
        "The code does what is not allowed here in line 3",
    ),
    "30 GB of memory": (
        body("import torch", "return torch.zeros(30 * 2**30 // 4)"),
        "The code asks for more memory than it may have in line 3 (`return torch.zeros(30 * 2**30 // 4)`).",
    ),
    "30 GB in a list": (
        body("x = [0] * (30 * 2**30 // 8)"),
        "The code asks for more memory than it may have in line 2",
    ),
    "a syntax error": ("def attention(q, k, v:\n    return v\n", "The file is no valid Python: line 1, "),
    "a null byte": ("x = 1\0\n", "The file is no valid Python: "),
    "a print storm": (
        body("while True: print('x' * 1000)"),
        "The code prints too much in line 2 (`while True: print('x' * 1000)`): take the `print` out of the loop.",
    ),
    "os._exit": (
        body("import os", "os._exit(0)"),
        "The code ended its own Python process with exit code 0 while it was called (`os._exit`?).",
    ),
    "os._exit at the import": (
        "import os\nos._exit(3)\n",
        "The code ended its own Python process with exit code 3 while it was imported (`os._exit`?).",
    ),
    "sys.exit": (
        "import sys\nsys.exit(0)\n",
        "The code calls `sys.exit` or `exit` in line 2 (`sys.exit(0)`); nothing can be checked after that.",
    ),
    "a crash": (
        body("import ctypes", "ctypes.string_at(0)"),
        "The code crashed its Python process (signal SIGSEGV) while it was called.",
    ),
    "a missing import": (
        "import nothing_like_it\n",
        "The file imports 'nothing_like_it', which is not installed here.",
    ),
    "no UTF-8": ("# Schlüssel\n".encode("latin-1"), "The file is no UTF-8 text: byte 7 cannot be read."),
    "a name that is not there": ("def attn(q, k, v):\n    return v\n", "The file has no 'attention'; it defines attn."),
    "a name that is no function": (
        "attention = 3\n",
        "'attention' is of the type int, and neither a function nor a class.",
    ),
    "an empty file": ("", "The file has no 'attention'."),
    "recursion": (body("return attention(q, k, v)"), "The code calls itself without end in line 2"),
    "an exception at the import": ("1 / 0\n", "It raises ZeroDivisionError in line 1 (`1 / 0`): division by zero."),
    "an exception": (body("raise ValueError('a\\x1b[31m\\n' * 1000)"), "It raises ValueError in line 2"),
    "what is no tensor": (body("return 'right'"), "It returned str where a tensor is expected."),
    "KeyboardInterrupt": (
        body("raise KeyboardInterrupt"),
        "It raises KeyboardInterrupt in line 2 (`raise KeyboardInterrupt`).",
    ),
    "an interrupt": (body("import signal", "signal.raise_signal(2)"), "It raises KeyboardInterrupt in line 3"),
    "GeneratorExit": (body("raise GeneratorExit('x')"), "It raises GeneratorExit in line 2"),
    "SystemExit": (body("raise SystemExit"), "The code calls `sys.exit` or `exit` in line 2 (`raise SystemExit`); "),
    "an exception of its own": (
        "class Mine(BaseException):\n    pass\n" + body("raise Mine"),
        "It raises Mine in line 4 (`raise Mine`).",
    ),
    "an exception that raises": (
        "class Mine(Exception):\n    def __str__(self):\n        raise self\n" + body("raise Mine"),
        "It raises an exception of which nothing can be read.",
    ),
    "a refusal of ours": (
        "from transformer.checking.faults import Refused\n" + body("raise Refused('You are right.')"),
        "It raises Refused in line 3 (`raise Refused('You are right.')`): You are right.",
    ),
    "os.abort": (
        body("import os", "os.abort()"),
        f"{CALLED} SIGABRT while it was called: by `os.abort`, or by a library that could not go on.",
    ),
    "SIGKILL": (
        body("import os", "os.kill(os.getpid(), 9)"),
        f"{CALLED} SIGKILL while it was called: by the code itself, or by the system where memory runs out.",
    ),
    "SIGXCPU": (body("import os, signal", "os.kill(os.getpid(), signal.SIGXCPU)"), f"{CALLED} SIGXCPU while it was "),
    "no connection": (
        body("import os", "os.closerange(3, 100)"),
        "The code’s Python process could not answer any more while it was called: the code closed the connection of "
        "its answers, or ended with exit code 76.",
    ),
    "an expanded result": (
        body("import torch", "return torch.zeros(1).expand(10**9)"),
        "It returned tensors of 3,815 MB: at most 64 MB are compared.",
    ),
    "an expanded array": (
        body("import numpy", "return numpy.broadcast_to(numpy.float32(0), 10**9)"),
        "It returned tensors of 3,815 MB: at most 64 MB are compared.",
    ),
    "an expanded weight": (
        "import torch\nclass attention(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = torch.nn.Parameter(torch.zeros(1).expand(10**9))\n    def forward(self, q, k, v):\n"
        "        return v\n",
        "Its parameters and buffers have 3,815 MB: at most 64 MB are compared.",
    ),
    "a complex result": (
        body("return v + 1j"),
        "A tensor of the code cannot be compared: it is of complex64.",
    ),
    "100 axes": (body("return v.reshape(v.shape + (1,) * 30)"), "A tensor of the code has 34 axes: at most 16 are "),
    "a list in itself": (body("x = []", "x.append(x)", "return x"), "It returned list where a tensor is expected."),
    "threads": (
        body(
            "import threading, time",
            "threading.stack_size(2**16)",
            "for _ in range(150): threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()",
            "time.sleep(1e6)",
        ),
        "The code starts more than 100 threads.",
    ),
    "files": (
        body("for n in range(100): open(str(n), 'wb').write(bytes(2**20))", "while True: pass"),
        "The code writes more than 64 MB, or more than 1,000 files, or nests its folders too deeply.",
    ),
    "folders": (
        body("import os, time", "for _ in range(1001): os.mkdir('d'); os.chdir('d')", "time.sleep(1e6)"),
        "The code writes more than 64 MB, or more than 1,000 files, or nests its folders too deeply.",
    ),
    "no encoding": (
        "# coding: rot13\n",
        "The file says that it is written in rot13, which is no encoding of text.",
    ),
    "nested too deeply": (f"x = {'-' * 200_000}1\n", "The file "),
    **{name: (source, "The code’s process answered what no bench answers: ") for name, source in FORGING.items()},
    "half": (FORGING["half"], "The code ended its own Python process with exit code 0 while it was called"),
}


@LINUX
def test_a_right_file_is_right_where_there_is_a_gpu(apart, tmp_path):
    """The process that is forked sees none: else no child could run backward."""
    looks = body("import torch", "assert torch.version.cuda == '13.0'", "assert not torch.cuda.is_available()")
    right = checked(RIGHT, apart[0], tmp_path)
    assert (right.not_run, right.wrong) == ("", ())
    found = checked(looks, apart[0], tmp_path)
    assert "AssertionError" not in f"{found.not_run} {found.wrong}"


@LINUX
@pytest.mark.daily(12)
@pytest.mark.parametrize("case", HOSTILE)
def test_each_hostile_file_is_one_sentence(case, warm, tmp_path):
    source, sentence = HOSTILE[case]
    found = checked(source, warm, tmp_path)
    assert found.code == 2, found.text()
    assert found.not_run.startswith(sentence)
    assert found.not_run.endswith((".", ")."))
    assert ": ." not in found.not_run
    assert len(found.not_run) < 400
    assert found.not_run.isprintable()
    assert found.wrong == found.tried == ()


ENDLESS = {
    body("while True: pass"): "The code did not return within 0.3 s: look for a loop that never ends.",
    "import time\ntime.sleep(1e6)\n": "The import of the file took longer than 0.3 s: put what trains or prints under "
    '`if __name__ == "__main__":`.',
}


@LINUX
@pytest.mark.daily(1)
@pytest.mark.parametrize("source", ENDLESS)
def test_what_never_ends_is_ended(source, warm, tmp_path):
    assert checked(source, warm, tmp_path, limits=SHORT).not_run == ENDLESS[source]


def test_after_all_that_a_right_file_is_right_and_what_is_promised_is_kept(warm, tmp_path):
    """Also where a module beside it is imported, a thread never ends, and something is to be done at the end."""
    before = "import atexit, os, sys, threading, time\natexit.register(lambda: os._exit(3))\nsys.stdout = None\n"
    before += "threading.Thread(target=time.sleep, args=(1e6,)).start()\n"
    (tmp_path / "mine.py").write_text(RIGHT)
    found = checked(f"{before}from mine import attention\n", warm, tmp_path, limits=Limits(seconds=PATIENCE))
    assert found.code == 0, found.text()
    if barriers.ctypes.CDLL(None).syscall(444, None, 0, 1) > 0:  # this Linux has Landlock
        assert found.isolated == PROMISES


REACH = """
def attention(q, k, v, mask=None):
    raise ValueError(repr(attempt()))
def attempt():
    import os, socket, pathlib
    {code}
"""


@LINUX
@pytest.mark.daily(8)
@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("return pathlib.Path({secret!r}).read_text()", "not allowed"),
        ("return pathlib.Path({outside!r}).write_text('x')", "not allowed"),
        ("pathlib.Path({beside!r}).unlink()", "not allowed"),
        ("pathlib.Path('own.txt').write_text('x'); return pathlib.Path('own.txt').read_text()", "'x'"),
        ("return socket.create_connection(('127.0.0.1', {port}))", "not allowed"),
        ("os.kill(os.getppid(), 9)", "not allowed"),
        ("return sorted(each for each in os.environ if 'SECRET' in each)", r"\[\]"),
        ("import torch, threading; return torch.get_num_threads()", "1"),
        ("return pathlib.Path('/proc/{pid}/environ').read_bytes()", "not allowed"),
        ("return pathlib.Path('/proc/{pid}/cmdline').read_bytes()", "not allowed"),
        ("return os.listdir('/dev/shm')", "not allowed"),
        ("return len(pathlib.Path('/proc/self/status').read_text()) > 0 and len(os.urandom(3))", "3"),
        ("os.nice(-5)", "not allowed"),
        ("os.chmod({beside!r}, 0)", "not allowed"),
        ("os.utime({beside!r}, (0, 0))", "not allowed"),
        ("os.setxattr({beside!r}, 'user.x', b'')", "not allowed"),
        ("os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0))", "not allowed"),
        ("import fcntl; fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, os.getppid())", "not allowed"),
        ("import fcntl; fcntl.fcntl(os.pipe()[0], 10, 9)", "not allowed"),
        ("import ctypes; return ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)", "-1"),
        ("import ctypes; return ctypes.CDLL(None).semget(0, 1, 0o1666)", "-1"),
        ("import socket; socket.sethostname(socket.gethostname())", "not allowed"),
        ("return os.getpriority(os.PRIO_PROCESS, 0) and os.sched_setaffinity(0, {{0}})", "not allowed|0"),
    ],
)
def test_what_it_cannot_reach(code, outcome, warm, tmp_path, monkeypatch):
    secret = tmp_path / "other" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("swordfish")
    (tmp_path / "in").mkdir()
    beside = tmp_path / "in" / "neighbour.py"
    beside.write_text("")
    with socket.create_server(("127.0.0.1", 0)) as server:
        places = {"secret": str(secret), "outside": str(tmp_path / "new"), "beside": str(beside), "pid": os.getpid()}
        source = REACH.format(code=code.format(**places, port=server.getsockname()[1]))
        found = checked(source, warm, tmp_path / "in")
    assert re.search(outcome, found.not_run), found.not_run
    assert beside.exists()
    assert not (tmp_path / "new").exists()


@LINUX
def test_what_must_be_isolated_and_cannot_be_is_not_run(warm, tmp_path):
    with pytest.raises(IsolationError, match="this machine cannot isolate what the code does with the moon"):
        check_source(b"1 / 0\n", "mine.py", "attention", limits=PATIENT, warm=warm, required=("time", "the moon"))
    found = check_source(b"1 / 0\n", "mine.py", "attention", limits=PATIENT, warm=warm, required=("time",))
    assert found.not_run.startswith("It raises ZeroDivisionError")


def test_a_file_that_is_too_large_is_refused_before_anything_reads_it(warm):
    with pytest.raises(CheckError, match=r"^mine.py is not checked: it is larger than 1 MB$"):
        check_source(b"#" * 6 * 2**20, "mine.py", "attention", limits=SHORT, warm=warm)


def test_where_every_submission_may_read(tmp_path):
    assert can_read(Path("/etc/hosts"))
    assert can_read(Path(transformer.__file__))
    assert not can_read(tmp_path)
    (tmp_path / "link").symlink_to("/etc")
    assert can_read(tmp_path / "link" / "hosts")


def test_the_environment_is_not_handed_on(apart, tmp_path):
    source = "import os\ndef attention(q, k, v, mask=None):\n    raise ValueError(str(sorted(os.environ)))\n"
    found = checked(source, apart[0], tmp_path)
    assert "SECRET" not in found.not_run
    assert "HOME" in found.not_run or "LANG" in found.not_run or "PATH" in found.not_run


def test_nothing_is_left_behind(apart, tmp_path):
    """Not even a folder in a folder, 900 times, and the last of them closed."""
    warm, own = apart
    before = set(own.iterdir())
    deep = "for _ in range(900): os.mkdir('d'); os.chdir('d')"
    checked(body("open('x', 'w').write('y')", "import os", deep, "os.mkdir('closed', 0)"), warm, tmp_path)
    checked(body("open('x', 'w').write('y')", "while True: pass"), warm, tmp_path, limits=SHORT)
    assert set(own.iterdir()) == before


def test_a_process_that_is_told_to_end_takes_its_child_along(apart):
    """However the child spends its time, and the folder in which it writes goes as well."""
    warm, own = apart
    with warm.bench(Limits(seconds=PATIENCE)) as bench:
        source = "import time\nopen('written', 'w').write('x')\ntime.sleep(1e6)\n"
        ending = threading.Thread(target=end_once_it_has_written, args=(warm._process, own))
        ending.start()
        with pytest.raises(Refused, match=r"^The code’s Python process "):
            bench.open(source.encode(), "mine.py", "attention")
    ending.join()
    wait_for("nothing is left behind", lambda: list(own.iterdir()), lambda left: not left)


def end_once_it_has_written(process, folder):
    wait_for("the child has written its file", lambda: list(folder.rglob("written")))
    process.terminate()
