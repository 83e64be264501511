"""The thread that writes: in order, a few at a time, and nothing fails without a word."""

import threading
from functools import partial

import pytest

from transformer.training.background_writer import MOST, BackgroundWriter


def no_space() -> None:
    raise OSError(28, "No space left on device")


def test_everything_is_written_in_the_order_in_which_it_was_given():
    written: list[int] = []
    with BackgroundWriter() as writer:
        for number in range(50):
            writer.add(partial(written.append, number))
    assert written == list(range(50))


def test_whoever_gives_too_much_waits_for_the_disk():
    """So many as `MOST` are held in memory: the next one waits for the first to be written."""
    disk, given = threading.Event(), threading.Semaphore(0)

    def give() -> None:
        with BackgroundWriter() as writer:
            for _ in range(MOST + 1):
                writer.add(disk.wait)
                given.release()

    giver = threading.Thread(target=give)
    giver.start()
    for _ in range(MOST):
        assert given.acquire(timeout=60)
    assert not given.acquire(blocking=False)
    disk.set()
    giver.join()
    assert given.acquire(blocking=False)


def fail(end: str) -> None:
    with BackgroundWriter() as writer:
        writer.add(no_space)
        if end == "wait":
            writer.wait()
        while end == "add":
            writer.add(list)
        if end == "raise":
            raise KeyError


@pytest.mark.parametrize(
    ("end", "error"), [("wait", OSError), ("add", OSError), ("leave", OSError), ("raise", KeyError)]
)
def test_the_first_fault_is_raised_to_whoever_goes_on(end, error):
    with pytest.raises(error):
        fail(end)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("writer")]
