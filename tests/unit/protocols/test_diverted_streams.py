"""Several runs at once share one diversion of the standard streams."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from cogcli.protocols.pythoncall.stdout_capture import divert_streams


def test_interleaved_runs_leave_the_streams_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    order = [threading.Event() for _ in range(4)]

    def first() -> None:
        with divert_streams():
            order[0].set()
            order[1].wait(30)
        order[2].set()

    def second() -> None:
        order[0].wait(30)
        with divert_streams():
            order[1].set()
            order[2].wait(30)
            print("told by whoever waits for the second run")

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sys.stdout is out
    assert out.getvalue() == "told by whoever waits for the second run\n"
