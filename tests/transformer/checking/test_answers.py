"""What a student's process answers may be anything: it is read strictly, and judged or refused in one sentence."""

from __future__ import annotations

import itertools
import json
import random
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.kit.hostile.mutation import mistold, mutated
from transformer.checking.bench import DTYPES, Local
from transformer.checking.check import judge
from transformer.checking.faults import FAULTS, Fault, Refused
from transformer.checking.isolation import wire
from transformer.checking.isolation.limits import Limits
from transformer.checking.isolation.process import Remote
from transformer.checking.isolation.warm import reply
from transformer.foundation.last_words import LastWords
from transformer.mistakes import MISTAKES

sys.path.insert(0, str(Path(__file__).parent / "variants"))
import attention as attentions
import decoder as decoders
import mask as masks
import module as modules
import positions as tables
import targets as cuts

sys.path.pop(0)

CODES: tuple[Any, ...] = (
    *(attentions.textbook, attentions.one_matrix, attentions.in_numpy, attentions.ScaledDotProductAttention),
    *(modules.Annotated, modules.CausalSelfAttention, modules.Rotary, modules.ListOfHeads),
    *(tables.sinusoidal_table, tables.add_positions, tables.PositionalEncoding, tables.apply_rotary),
    *(masks.causal_mask, masks.padding_mask, masks.create_padding_mask),
    *(decoders.PreNorm, decoders.GPT, cuts.inputs_and_targets, MISTAKES["norm-by-std"].right),
)
LIMITS = Limits(seconds=0.1)
FORGED = "The code’s process answered what no bench answers: "
Change = Callable[[wire.Frames], wire.Frames]


class Lying:
    """The connection to a process in which a bench answers, and in which its answers are changed on their way."""

    closed, readable = False, True

    def __init__(self, bench: Local, change: Change) -> None:
        self._bench, self._change, self._number = bench, change, 0
        self._asked: list[bytes] = []
        self._answers = list(wire.packed({"number": 0, "kept": ()}))

    def send_bytes(self, frame: bytes) -> None:
        self._asked.append(frame)
        if len(self._asked) == 2:
            request = wire.unpacked((self._asked[0], self._asked[1]))
            self._asked.clear()
            self._number += 1
            self._answers += self._change(reply(self._bench, self._number, request))

    def poll(self, timeout: float) -> bool:
        return True

    def recv_bytes(self, most: int) -> bytes:
        return self._answers.pop(0)


def remote(bench: Local, change: Change) -> Remote:
    return Remote(Lying(bench, change), LIMITS, dict, LastWords())  # type: ignore[arg-type]


def require_a_sentence(words: str) -> None:
    assert words.isprintable(), words
    assert 5 < len(words) < 700, words


# --- forged messages


def replaced(**fields: Any) -> Change:
    """Other fields in the record, its tensors as they were."""

    def change(frames: wire.Frames) -> wire.Frames:
        record = json.loads(frames[0])
        if "answer" in fields and isinstance(fields["answer"], dict) and isinstance(record.get("answer"), dict):
            fields["answer"] = record["answer"] | fields["answer"]
        return json.dumps({**record, **fields}).encode(), frames[1]

    return change


STEP = {"name": "softmax", "value": {"tensor": "0"}, "sources": [], "dim": 0}
MESSAGES: dict[str, Change] = {
    "nothing": replaced(answer=None),
    "an empty answer": lambda frames: (b'{"number": 1, "answer": {}}', frames[1]),
    "an empty record": lambda frames: (b"{}", frames[1]),
    "a number": lambda frames: (b"7", frames[1]),
    "a number that is no float": lambda frames: (b'{"number": 1, "answer": NaN}', frames[1]),
    "400 digits": lambda frames: (b'{"number": 1, "answer": ' + b"9" * 400 + b"}", frames[1]),
    "no UTF-8": lambda frames: (b"\xff\xfe" + frames[0], frames[1]),
    "half a record": lambda frames: (frames[0][: len(frames[0]) // 2], frames[1]),
    "nested by 900": lambda frames: (b'{"number": 1, "answer": ' + b"[" * 900 + b"]" * 900 + b"}", frames[1]),
    "nested by 100,000": lambda frames: (b"[" * 100_000 + b"]" * 100_000, frames[1]),
    "a tensor for its number": replaced(answer={"tensor": []}),
    "a tensor that is no number": replaced(answer={"values": [{"tensor": []}]}),
    "a tensor that is not there": replaced(answer={"values": [{"tensor": "99"}]}),
    "one tensor twice": replaced(answer={"values": [{"tensor": "0"}, {"tensor": "0"}]}),
    "no values": replaced(answer={"values": []}),
    "a hundred thousand values": replaced(answer={"values": [0] * 10**5}),
    "bytes": replaced(answer={"values": {"bytes": "zz"}}),
    "an argument that is not there": replaced(answer={"changed": [7]}),
    "an argument of text": replaced(answer={"changed": ["0"]}),
    "gradients that nobody asked for": replaced(answer={"gradients": [None]}),
    "a step that nobody asked for": replaced(answer={"steps": [STEP]}),
    "an answer too many": replaced(number=2),
    "an answer of before": replaced(number=0),
    "no tensors": lambda frames: (frames[0], b""),
    "half the tensors": lambda frames: (frames[0], frames[1][:-1]),
    "a header of 2⁶⁰ bytes": lambda frames: (frames[0], struct.pack("<Q", 2**60) + frames[1][8:]),
    "a tensor too many": lambda frames: (frames[0], wire.packed({each: torch.ones(1) for each in "abc"})[1]),
    "complex numbers": lambda frames: (
        frames[0],
        wire.packed({each: torch.ones(1, dtype=torch.complex64) for each in "ab"})[1],
    ),
    "65 axes": lambda frames: (frames[0], wire.packed({each: torch.ones([1] * 65) for each in "ab"})[1]),
    "a fault of text": replaced(refused="x" * 10_000),
    "an unknown fault": replaced(
        refused={"name": "x" * 10_000, "words": [], "line": 0, "text": "", "said": "", "fatal": 0}
    ),
    "a fault without its words": replaced(refused=vars(Fault("syntax")) | {"words": []}),
    "a right verdict": lambda frames: (b'{"verdict": "right"}', frames[1]),
}
"""What no bench answers to a call that returns one tensor."""


def opened(change: Change) -> Remote:
    return remote(Local(attentions.textbook), change)


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_no_bench_answers_is_refused_in_one_sentence_and_it_is_over(kind: str) -> None:
    bench = opened(MESSAGES[kind])
    with pytest.raises(Refused) as refused:
        bench.call([torch.ones(1, 1)] * 3)
    assert refused.value.fatal
    sentence = str(refused.value)
    assert sentence.startswith(FORGED)
    require_a_sentence(sentence)
    assert "x" * 81 not in sentence
    with pytest.raises(Refused) as again:
        bench.call([torch.ones(1, 1)] * 3)
    assert again.value is refused.value


RAW = {
    "a message of 2 GB": (struct.pack("!i", 2**31 - 1), f"{FORGED}it is longer than any that is sent."),
    "a message of 2⁶³ bytes": (struct.pack("!iQ", -1, 2**63), f"{FORGED}it is longer than any that is sent."),
    "a length below 0": (struct.pack("!i", -2) * 2, f"{FORGED}it is not JSON."),
    "half a message": (struct.pack("!i", 100) + b"x", "The code’s Python process is gone since it was called; "),
    "half a length": (b"\0\0", "The code’s Python process is gone since it was called; "),
    "nothing": (b"", "The code’s Python process is gone since it was called; "),
}


@pytest.mark.parametrize("kind", RAW)
def test_what_is_no_message_is_refused_however_long_it_says_it_is(kind: str) -> None:
    written, sentence = RAW[kind]
    ours, theirs = socket.socketpair()
    with Connection(theirs.detach()) as student, Connection(ours.detach()) as connection:
        wire.send(student, wire.packed({"number": 0, "kept": ()}))
        bench = Remote(connection, LIMITS, dict, LastWords())
        socket.socket(fileno=student.fileno()).detach() if not written else None
        with socket.socket(fileno=student.fileno()) as raw:
            raw.sendall(written)
            raw.shutdown(socket.SHUT_WR)
            with pytest.raises(Refused) as refused:
                bench.call([1])
            raw.detach()
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize("name", FAULTS)
def test_the_words_of_a_fault_stand_in_a_known_sentence_short_and_on_one_line(name: str) -> None:
    """Whatever its words are: these are written by the student's process."""
    words = ("{0.__class__}\n\x1b[31m\udcff" + "x" * 900,) * FAULTS[name].count("{}")
    fault = Fault(name, words, 7, "y" * 900 + "\n", "z" * 900)
    bench = opened(lambda frames: wire.packed({"number": 1, "refused": fault}))
    with pytest.raises(Refused) as refused:
        bench.call([])
    sentence = str(refused.value)
    require_a_sentence(sentence)
    assert max(sentence.count(letter) for letter in "yz") <= 160
    assert "x" * 81 not in sentence


# --- mutated by a fixed seed


def wrong(tensor: Tensor, dice: random.Random) -> Tensor:
    """Another tensor in place of one: with other numbers, of another type or of another shape."""
    ways: Sequence[Callable[[], Tensor]] = (
        lambda: tensor.new_full(tensor.shape, float("nan")) if tensor.is_floating_point() else ~tensor,
        lambda: tensor.float() * float("inf"),
        lambda: torch.zeros_like(tensor),
        lambda: tensor.to(dice.choice(DTYPES)),
        lambda: tensor.to(dice.choice(DTYPES)),
        lambda: tensor.flatten(),
        lambda: tensor[None],
        lambda: tensor.movedim(0, -1) if tensor.dim() else tensor,
        lambda: tensor[..., :0] if tensor.dim() else tensor,
        lambda: tensor[:0] if tensor.dim() else tensor,
        lambda: tensor[:1] if tensor.dim() else tensor,
        lambda: tensor.new_zeros(()),
        lambda: tensor.new_zeros([1] * 16),
        lambda: tensor + 1 if tensor.dtype != torch.bool else tensor,
    )
    return dice.choice(ways)()


def misanswered(frames: wire.Frames, dice: random.Random) -> wire.Frames:
    """An answer of the right types, in which tensors and what is said of steps are others."""
    try:
        message = wire.unpacked(frames)
    except KeyError:
        return frames
    answer = message.get("answer", {})
    share = dice.choice((0.1, 0.5, 1.0))

    def turned(value: Any) -> Any:
        if isinstance(value, Tensor):
            return wrong(value, dice) if dice.random() < share else value
        if isinstance(value, dict):
            return {name: turned(each) for name, each in value.items()}
        return [turned(each) for each in value] if isinstance(value, list) else value

    steps = answer.get("steps", [])
    for place, step in enumerate(steps):
        if dice.random() < share / 2:
            step["name"] = dice.choice(("softmax", "linear", "__add__", "std", "einsum", "x"))
            step["sources"] = [dice.choice(("", "input 0", "parameter w", *([f"step {place - 1}"] if place else [])))]
            step["dim"] = None
    message["answer"] = turned(answer)
    if dice.random() < 0.2 and "values" in answer:
        message["answer"]["values"] *= dice.choice((2, 3))
    for step in message["answer"].get("steps", []):
        step["dim"] = step["dim"] if step["dim"] is not None and step["dim"] < step["value"].dim() else None
    return wire.packed(message)


NIGHT = pytest.mark.nightly


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 10), marks=NIGHT)], ids=("day", "night"))
def test_a_mutated_message_is_read_or_refused(seeds: range) -> None:
    """A hundred a seed: bytes of either frame changed, or a value that nobody expects in the record."""
    for dice in map(random.Random, seeds):

        def change(frames: wire.Frames, dice: random.Random = dice) -> wire.Frames:
            words, numbers = frames
            way = dice.randrange(3)
            if way == 2:
                return words, mutated(numbers, dice)
            return (mistold if way else mutated)(words, dice), numbers

        for _ in range(100):
            bench = remote(Local(attentions.textbook), change)
            try:
                bench.call([torch.ones(1, 2, 3, 4)] * 3, record=True, gradients=True)
            except Refused as refused:
                require_a_sentence(str(refused))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code", CODES, ids=lambda code: code.__name__)
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 6), marks=NIGHT)], ids=("day", "night"))
def test_of_any_answer_a_verdict_is_made(code: Any, seeds: range) -> None:
    """Answers of the right types: other numbers, types and shapes, from the first or from any later one on."""
    for seed in seeds:
        dice = random.Random(f"{code.__name__} {seed}")
        begin, share = dice.choice((0, 1, 2, 5, 10, 20)), dice.choice((0.1, 1.0))
        for each in said(code, dice, begin, share):
            require_a_sentence(each)


def said(code: Any, dice: random.Random, begin: int, share: float) -> Sequence[str]:
    """All sentences of a verdict, where answers are misled from one on."""
    counter = itertools.count()

    def change(frames: wire.Frames) -> wire.Frames:
        return misanswered(frames, dice) if next(counter) >= begin and dice.random() < share else frames

    local = Local(code)
    try:
        _, findings = judge(remote(local, change), local.describe())
    except Refused as refused:
        return [str(refused)]
    return [*findings.wrong, *findings.conventions, *findings.notes, *findings.tried]
