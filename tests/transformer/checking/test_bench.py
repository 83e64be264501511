"""The bench on which a student's code is called, in one process."""

from __future__ import annotations

import sys
import threading
import time

import torch

from transformer.checking.bench import Local


def test_two_threads_give_back_what_is_printed_to_and_draw_what_each_draws_alone() -> None:
    def code() -> torch.Tensor:
        print("something")
        time.sleep(0.002)
        return torch.rand(3)

    alone = Local(code).call([], seed=5).values[0]
    own, found = (sys.stdout, sys.stderr), []

    def work() -> None:
        found.extend(Local(code).call([], seed=5).values[0] for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (sys.stdout, sys.stderr) == own
    assert all(torch.equal(each, alone) for each in found)
    assert len(found) == 60
