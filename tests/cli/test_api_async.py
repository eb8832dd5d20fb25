"""`cogcli.api` in an event loop, and its agent: runs in threads, with their events, their end and their approvals."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from support.waiting import wait_until
from test_api import open_

from cogcli.api import CogcliError, Project

PAGE = Path(__file__).parents[2] / "docs/how-to/call-from-a-web-service.md"


def make_waiting(project: Any, over: Path) -> None:
    """A skill whose only step runs until the file exists."""
    project.services(
        f"import os\nimport time\n\ndef wait(text: str) -> dict[str, object]:\n"
        f"    while not os.path.exists({str(over)!r}):\n        time.sleep(0.01)\n    return {{}}\n"
    )
    project.capability("demo.text.wait", "wait")
    project.skill("demo.waits", "- {id: a, uses: demo.text.wait, input: {text: {$literal: x}}}")


def no_call_runs() -> bool:
    return not any(thread.name == "call" for thread in threading.enumerate())


def require_confirmation(demo: Any) -> None:
    file = demo.root / "capabilities/demo.text.upper.yaml"
    file.write_text(file.read_text() + "safety: {requires_confirmation: true}\n")


def test_runs_go_on_beside_one_another_and_beside_other_tasks(demo: Any) -> None:
    opened = open_(demo)

    async def several() -> list[Any]:
        return await asyncio.gather(
            *(opened.arun("demo.greet", {"text": text}) for text in ("a", "b", "c"))
        )

    runs = asyncio.run(several())
    assert [run.status for run in runs] == ["ok"] * 3
    assert len({run.episode.id for run in runs}) == len(demo.episodes) == 3


def test_a_run_that_has_begun_yields_its_events_and_then_its_result(demo: Any) -> None:
    opened = open_(demo)

    async def follow() -> tuple[list[int], Any, list[int]]:
        live = opened.start("demo.greet", {"text": "hi"})
        seen = [event.seq async for event in live]
        return seen, await live, [event.seq async for event in live]

    seen, run, later = asyncio.run(follow())
    told = [each for each in run.episode.events() if each.event_type != "run.state_projection"]
    assert seen == [event.seq for event in told]
    assert (run.status, later) == ("ok", [])


def test_a_run_that_cannot_begin_yields_nothing_and_raises(demo: Any) -> None:
    opened = open_(demo)

    async def follow() -> list[Any]:
        live = opened.start("demo.gret")
        seen = [event async for event in live]
        with pytest.raises(CogcliError) as refused:
            await live
        assert refused.value.code == "skill.not-found"
        return seen

    assert asyncio.run(follow()) == []
    assert demo.episodes == []


def test_a_cancelled_task_stops_its_run_and_waits_for_the_end(project: Any) -> None:
    over = project.root / "over"
    make_waiting(project, over)
    opened = open_(project)

    async def cancel() -> None:
        begun, loop = asyncio.Event(), asyncio.get_running_loop()

        def listen(event: Any) -> None:
            if event.event_type == "step.started":
                loop.call_soon_threadsafe(begun.set)

        task = asyncio.create_task(opened.arun("demo.waits", on_event=listen))
        await begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # without grace
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    (row,) = opened.episodes()
    assert row.shown_status == "aborted"
    over.write_text("")
    wait_until(no_call_runs)


def test_a_run_that_has_begun_is_cancelled(project: Any) -> None:
    over = project.root / "over"
    make_waiting(project, over)
    opened = open_(project)

    async def cancel() -> None:
        live = opened.start("demo.waits")
        async for event in live:
            if event.event_type == "step.started":
                over.write_text("")  # its function ends within the grace
                live.cancel()
        with pytest.raises(asyncio.CancelledError):
            await live

    asyncio.run(cancel())
    (row,) = opened.episodes()
    assert row.shown_status == "aborted"
    wait_until(no_call_runs)


def test_all_that_waits_is_listed_and_answered(demo: Any) -> None:
    require_confirmation(demo)
    opened = open_(demo)

    async def answer() -> str:
        first = await opened.arun("demo.greet", {"text": "hi"})
        second = await opened.arun("demo.greet", {"text": "ho"})
        waiting = opened.approvals()
        assert [each.episode for each in waiting] == [second.episode.id, first.episode.id]
        run = await opened.aresume(first.episode, approve=[waiting[1].approval_id], by="ann")
        left = opened.approvals()
        assert waiting[0] in left
        assert waiting[1] not in left
        return run.status

    assert asyncio.run(answer()) in ("ok", "pending")


def test_an_agent_answers_as_its_command_does(desk: Any) -> None:
    desk.run("config", "trust", "--yes").assert_ok()
    opened = Project(desk.root, environ=desk.env)
    request = json.loads((desk.root / "requests/allowed.json").read_text())
    by_command = desk.run("agent", "invoke", "requests/allowed.json", "--json").json
    run = opened.invoke(request)
    awaited = asyncio.run(opened.ainvoke(request))
    assert run.status == awaited.status == by_command["status"]
    assert run.outputs == awaited.outputs == by_command["outputs"]
    with pytest.raises(CogcliError) as refused:
        opened.invoke({"massage": "x"})
    assert refused.value.code == "usage.value"


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The address of an application on loopback."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)


def test_the_web_service_of_the_page(demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    require_confirmation(demo)
    open_(demo)
    (source,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len([line for line in source.splitlines() if line]) <= 40
    for name, value in demo.env.items():
        monkeypatch.setenv(name, value)
    found: dict[str, Any] = {"__file__": str(demo.root / "service.py"), "__name__": "service"}
    exec(compile(source, "service.py", "exec", dont_inherit=True), found)
    with served(found["app"]) as address, httpx.Client(base_url=address, trust_env=False) as client:
        run = client.post("/skills/demo.greet", json={"text": "hi"}).json()
        assert run["status"] == "pending"
        refused = client.post("/skills/demo.gret", json={})
        assert (refused.status_code, refused.json()["detail"]["code"]) == (400, "skill.not-found")
        (waiting,) = client.get("/approvals").json()
        assert waiting["episode"] == run["episode"]
        missing = client.post("/approvals/ap_none", params={"by": "ann"})
        assert missing.status_code == 404
        answered = client.post(f"/approvals/{waiting['approval_id']}", params={"by": "ann"}).json()
        assert answered["episode"] == run["episode"]
        told = client.post("/skills/demo.greet/events", json={"text": "hi"}).text.split()
        assert told[0] == "run.started"
        assert told[-1] == "run.paused"
