"""A request of an MCP server to the model has one notice, which is made before its call returns
(docs/reference/mcp.md#sampling)."""

from __future__ import annotations

import threading

from cogcli.base.calls import Cancellation, SampleReply
from cogcli.protocols.mcp.open_sample import OpenSample
from cogcli.protocols.mcp.traffic import McpTraffic

REPLY = SampleReply("yes", "stop", "small", 3, 4, None)
Noted = list[tuple[SampleReply | None, str]]


def open_sample(noted: Noted) -> OpenSample:
    """Return a request that notes its end in a list."""
    return OpenSample(lambda reply, code, text: noted.append((reply, code)))


def test_the_first_end_of_a_request_holds() -> None:
    noted: Noted = []
    sample = open_sample(noted)
    sample.finish(REPLY)
    sample.finish(None, "call.transport", "late")
    sample.end_with_call(0.0)
    assert noted == [(REPLY, "")]
    assert sample.cancel.is_set


def test_a_request_without_an_answer_is_noted_when_its_call_ends() -> None:
    noted: Noted = []
    sample = open_sample(noted)
    sample.end_with_call(0.0)
    sample.finish(REPLY)
    assert noted == [(None, "call.timeout")]


def test_a_cancelled_request_may_still_say_what_it_used() -> None:
    noted: Noted = []
    traffic = McpTraffic()
    call = traffic.open()
    sample = open_sample(noted)
    call.sampling.append(sample)

    def answer() -> None:
        sample.finish(REPLY, "call.transport", "cancelled")

    with sample.cancel.on_cancel(threading.Thread(target=answer).start):
        traffic.end(call)
        sample.end_with_call(60.0)
    assert noted == [(REPLY, "call.transport")]


def test_a_dropped_call_gives_each_request_its_notice_at_once() -> None:
    noted: Noted = []
    call = McpTraffic().open()
    call.sampling.append(open_sample(noted))
    cancel = Cancellation()
    with cancel.on_cancel(call.drop_samples):
        cancel.set()
        assert noted == [(None, "call.timeout")], "before the engine logs the end of the call"
    assert call.has_ended
