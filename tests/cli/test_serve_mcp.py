"""`serve mcp`: an independent client lists and calls our skills, over stdio and over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.serving import INITIALIZE, Server, calling, serving
from support.project import Project

pytestmark = pytest.mark.sampled(16)

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp")
COGCLI = str(Path(sys.executable).parent / "cogcli")
TEXT = "{text: {type: string, required: true}}"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"

SERVICES = """
    import os, subprocess, sys, threading, time

    here = threading.Condition()
    inside = most = seen = 0

    def upper(text: str) -> dict[str, object]:
        print("printed by a function")
        os.write(1, b"written to descriptor 1")
        subprocess.run(["echo", "said by a child"], check=True)
        return {"text": text.upper() + sys.stdin.read()}

    def fail(text: str) -> dict[str, object]:
        raise ValueError("no luck with " + text)

    def meet(text: str) -> dict[str, object]:
        global inside, most, seen
        with here:
            inside, seen = inside + 1, seen + 1
            most = max(most, inside)
            here.notify_all()
            met = here.wait_for(lambda: seen >= 8, timeout=30)
        time.sleep(0.05)
        with here:
            inside -= 1
            return {"text": f"{met} {most}"}

    def slow(text: str) -> dict[str, object]:
        time.sleep(1)
        return {"text": text}
"""


@pytest.fixture
def served(project: Project) -> Project:
    """Skills that work, fail, wait for a person, take their time, and one that cannot run."""
    project.services(SERVICES)
    for name in ("upper", "fail", "meet", "slow"):
        project.capability(f"demo.text.{name}", name)
        step = f"- {{id: {name}, uses: demo.text.{name}, input: {{text: inputs.text}}, output: {{text: outputs.text}}}}"
        project.skill(f"demo.{name}", step, inputs=TEXT, outputs=TEXT)
    safety = "properties: {side_effects: true}\nsafety: {trust_level: standard, requires_confirmation: true}\n"
    project.capability("demo.text.send", "upper")
    sent = project.root / "capabilities/demo.text.send.yaml"
    sent.write_text(sent.read_text().replace("properties: {side_effects: false}\n", safety))
    steps = "- {id: send, uses: demo.text.send, input: {text: inputs.text}, output: {text: outputs.text}}"
    project.skill("demo.send", steps, inputs=TEXT, outputs=TEXT)
    project.skill(
        "demo.absent", steps.replace("text.send", "text.nowhere"), inputs=TEXT, outputs=TEXT
    )
    two = """
    - {id: first, uses: demo.text.upper, input: {text: inputs.text}, output: {text: vars.text}}
    - {id: wait, uses: demo.text.slow, input: {text: vars.text}, output: {text: vars.more}}
    - {id: last, uses: demo.text.upper, input: {text: vars.more}, output: {text: outputs.text}}
    """
    project.skill("demo.long", two, inputs=TEXT, outputs=TEXT)
    return project


def over_stdio(
    project: Project, talk: Callable[[Any], Awaitable[None]], *arguments: str, mode: str = "auto"
) -> None:
    """Have the SDK's client start the installed command and talk to it."""
    from mcp.client.stdio import StdioServerParameters

    async def main() -> None:
        command = StdioServerParameters(
            command=COGCLI,
            args=["serve", "mcp", "-q", *arguments],
            env=project.env,
            cwd=project.root,
        )
        with anyio.fail_after(90):
            async with mcp.Client(command, mode=mode) as client:
                await talk(client)

    anyio.run(main)


def text_of(result: Any) -> str:
    (block, *_) = result.content
    text: str = block.text
    return text


@pytest.mark.sampled(32)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_lists_and_calls_skills(served: Project, mode: str) -> None:
    async def talk(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"demo__upper", "demo__send", "text__brief"} <= set(tools)
        assert "demo__absent" not in tools
        upper = tools["demo__upper"]
        assert upper.description == "The skill demo.upper."
        assert upper.input_schema["properties"] == {"text": {"type": "string"}}
        assert upper.input_schema["required"] == upper.output_schema["required"] == ["text"]
        assert upper.annotations.read_only_hint is True
        assert upper.annotations.open_world_hint is True, "the code of a user may do anything"
        assert tools["text__brief"].annotations.open_world_hint is False
        assert tools["demo__send"].annotations.read_only_hint is False
        assert tools["demo__send"].annotations.destructive_hint is True
        told: list[tuple[float, float | None, str | None]] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append((done, total, message))

        meta = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        result = await client.call_tool(
            "demo__long", {"text": "hi"}, progress_callback=progress, meta=meta
        )
        assert not result.is_error
        assert result.structured_content == {"text": "HI"} == json.loads(text_of(result))
        assert told == [(1, 3, "first done"), (2, 3, "wait done"), (3, 3, "last done")]
        assert result.meta["cogcli/episode_id"] == served.episode.name
        assert result.meta["cogcli/trace_id"] == TRACE
        assert result.meta["cogcli/status"] == "ok"

    over_stdio(served, talk, mode=mode)
    served.run("verify", "@last").assert_ok()
    state = json.loads((served.episode / "state.json").read_bytes())
    assert (state["episode"]["trace_id"], state["outcomes"]["status"]) == (TRACE, "ok")


@pytest.mark.sampled(2)
def test_what_goes_wrong_is_told_with_code_and_hint(served: Project) -> None:
    async def talk(client: Any) -> None:
        wrong = await client.call_tool("demo__upper", {"txt": 1, "text": 7})
        assert wrong.is_error
        assert "error[input.unknown]: no input `txt`\nhint: did you mean `text`?" in text_of(wrong)
        assert "error[input.type]" in text_of(wrong)
        assert not served.episodes
        failed = await client.call_tool("demo__fail", {"text": "x"})
        assert failed.is_error
        assert text_of(failed).startswith("error[call.server-error]: ")
        assert failed.meta["cogcli/status"] == "error"
        with pytest.raises(mcp.MCPError) as unknown:
            await client.call_tool("demo__absent", {"text": "x"})
        assert unknown.value.error.code == -32602
        waiting = await client.call_tool("demo__send", {"text": "x"})
        assert waiting.is_error
        assert waiting.meta["cogcli/status"] == "pending"
        told = text_of(waiting)
        command = f"cogcli resume {served.episode.name[:15]} --approve demo.text.send"
        assert f"a person decides in a terminal, in {served.root}: {command}" in told
        assert "No client can decide" in told
        assert "What you can do: " in told
        assert "begins another run" in told
        assert waiting.meta["cogcli/next"] == [command]

    over_stdio(served, talk)
    resumed = served.run(
        "resume", served.episode.name[:15], "--approve", "demo.text.send"
    ).assert_ok()
    assert resumed.json == {"text": "X"}


@pytest.mark.sampled(2)
def test_options_are_fixed_at_the_start(served: Project) -> None:
    async def talk(client: Any) -> None:
        (tool,) = (await client.list_tools()).tools
        assert tool.name == "demo__send"
        meta = {"cogcli/confirm": ["demo.text.send"], "trust_level": "privileged"}
        assert not (await client.call_tool("demo__send", {"text": "x"}, meta=meta)).is_error

    names = ("--skill", "demo.send")
    over_stdio(served, talk, *names, "--confirm", "demo.text.send")

    async def refused(client: Any) -> None:
        meta = {"cogcli/confirm": ["demo.text.send"], "trust_level": "privileged"}
        assert (await client.call_tool("demo__send", {"text": "x"}, meta=meta)).meta[
            "cogcli/status"
        ] == "pending"

    over_stdio(served, refused, *names)


@pytest.mark.sampled(2)
def test_names_with_dots_are_there_for_who_wants_them(served: Project) -> None:
    async def talk(client: Any) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["demo.upper"]
        assert not (await client.call_tool("demo.upper", {"text": "x"})).is_error

    over_stdio(served, talk, "--tool-names", "dots", "--skill", "demo.upper")


@pytest.mark.sampled(2)
def test_a_glob_offers_what_can_run_of_the_skills_it_matches(served: Project) -> None:
    async def talk(client: Any) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["demo__send", "demo__slow", "demo__upper"]

    over_stdio(served, talk, "--skill", "demo.s*", "--skill", "demo.a*", "--skill", "demo.upper")


@pytest.mark.sampled(32)
def test_ten_calls_at_once_run_eight_at_a_time(served: Project) -> None:
    async def talk(client: Any) -> None:
        results: list[Any] = []

        async def call() -> None:
            results.append(await client.call_tool("demo__meet", {"text": "x"}))

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(call)
        assert not any(result.is_error for result in results)
        answers = [result.structured_content["text"].split() for result in results]
        assert {met for met, _ in answers} == {"True"}
        assert max(int(most) for _, most in answers) == 8
        assert len({result.meta["cogcli/episode_id"] for result in results}) == 10

    over_stdio(served, talk)
    assert len(served.episodes) == 10
    served.run("verify", "--all").assert_ok()


def test_a_cancelled_call_ends_its_run(served: Project) -> None:
    async def talk(client: Any) -> None:
        with anyio.CancelScope() as scope:

            async def progress(done: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await client.call_tool("demo__long", {"text": "x"}, progress_callback=progress)
        assert scope.cancelled_caught
        after = await client.call_tool("demo__upper", {"text": "still here"})
        assert after.structured_content == {"text": "STILL HERE"}

    over_stdio(served, talk)
    aborted = served.episodes[-1]
    state = json.loads((aborted / "state.json").read_bytes())
    assert state["outcomes"]["status"] == "aborted"
    assert {step["id"]: step["status"] for step in state["plan"]["steps"]}["last"] != "done"
    served.run("verify", "--all").assert_ok()


@pytest.mark.sampled(2)
def test_a_client_that_leaves_ends_its_runs(served: Project) -> None:
    with serving(served) as server:
        server.start()
        server.send(calling(1, "demo__long", {"text": "x"}, progressToken="t"))
        server.frame(method="notifications/progress")
        assert server.leave() == 0
    assert json.loads((served.episode / "summary.json").read_bytes())["status"] == "aborted"
    served.run("verify", "@last").assert_ok()


@pytest.mark.sampled(32)
def test_a_hook_that_fails_is_a_warning_of_the_server(served: Project) -> None:
    settings = served.home / ".config/cogcli/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[hooks]\non_end = ["./none"]\n')
    with serving(served) as server:
        server.start()
        server.send(calling(1, "demo__upper", {"text": "x"}))
        assert server.frame(1)["result"]["structuredContent"] == {"text": "X"}
        assert "`./none` is not found" in server.said("warning[hook.failed]: `hooks.on_end`")
        assert server.leave() == 0


@pytest.mark.sampled(32)
def test_every_call_has_its_line_and_a_cancelled_one_is_told_no_more(served: Project) -> None:
    with serving(served) as server:
        server.start()
        server.send(calling(1, "demo__long", {"text": "x"}, progressToken="t"))
        assert server.frame(method="notifications/progress")["params"]["progress"] == 1
        server.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        )
        line = server.said("tool.called")
        assert "tool=demo__long status=aborted episode=" in line
        assert line.split()[-1] == f"episode={served.episode.name}"
        server.send(calling(2, "demo__upper", {"text": 5}))
        assert server.frame(2)["result"]["isError"] is True
        assert server.said("tool.called").split()[1:] == [
            "tool.called", "tool=demo__upper", "status=refused", "error=input.type",
        ]  # fmt: skip
        server.send(calling(3, "demo__upper", {"text": "x"}))
        assert server.frame(3)["result"]["structuredContent"] == {"text": "X"}
        assert f"tool=demo__upper status=ok episode={served.episode.name}" in server.said(
            "tool.called"
        )
        server.send(
            {"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": {"cursor": "made-up"}}
        )
        assert server.frame(4)["error"]["code"] == -32602
        assert server.leave() == 0
        told = [json.loads(line).get("method") for line in server.out]
        assert told.count("notifications/progress") == 1


def test_a_signal_ends_the_server_and_its_runs(served: Project) -> None:
    with serving(served) as server:
        server.start()
        server.send(calling(1, "demo__long", {"text": "x"}, progressToken="t"))
        server.frame(method="notifications/progress")
        assert server.stop() == 143
    assert json.loads((served.episode / "summary.json").read_bytes())["status"] == "aborted"


NO_IDS = (b"null", b"1.5", b"true", b"[1]", b"{}")
"""What MCP allows no request for an id."""


def test_standard_output_carries_frames_only_and_bad_ones_cost_only_themselves(
    served: Project,
) -> None:
    bad = [
        (b"hello", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": NaN}}', -32700, None),
        (b"[" * 5000, -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[]", -32600, None),
        (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600, 7),
        *((b'{"jsonrpc": "2.0", "id": %b, "method": "ping"}' % id, -32600, None) for id in NO_IDS),
        (b'{"x": "' + b"y" * 9_000_000 + b'"}', -32700, None),
    ]
    with serving(served) as server:
        server.start()
        for frame, code, id in bad:
            server.send(frame)
            answer = server.frame()
            assert (answer["error"]["code"], answer["id"]) == (code, id), frame[:60]
        server.send(calling(9, "demo__upper", {"text": "x"}))
        assert server.frame(9)["result"]["structuredContent"] == {"text": "X"}
        assert server.leave() == 0
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in server.out)
        assert b"Traceback" not in b"".join(server.err)


PAGE = Path(__file__).parents[2] / "docs/how-to/serve-mcp.md"


@pytest.mark.sampled(2)
def test_what_the_how_to_says_works_when_it_is_pasted(served: Project) -> None:
    from mcp.client.stdio import StdioServerParameters

    served.env["PATH"] = f"{Path(COGCLI).parent}{os.pathsep}{served.env['PATH']}"
    blocks = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        for described in json.loads(block)["mcpServers"].values():
            command = StdioServerParameters(**{"env": served.env, "cwd": served.root, **described})

            async def talk(command: Any = command) -> None:
                with anyio.fail_after(90):
                    async with mcp.Client(command) as client:
                        assert "demo__upper" in {
                            tool.name for tool in (await client.list_tools()).tools
                        }
                        assert not (await client.call_tool("demo__upper", {"text": "x"})).is_error

            anyio.run(talk)


def names_of(tools: dict[str, Any]) -> set[str]:
    return {tool["name"] for tool in tools["result"]["tools"]}


SERVED: dict[str, Callable[[set[str]], bool]] = {
    "--skill": lambda names: (
        "text__brief" in names and all(re.match("text__brief$|doc__", n) for n in names)
    ),
    "--tool-names": lambda names: "text.brief" in names,
}
"""What holds for the names of the tools, by the flag of a line."""


@pytest.mark.sampled(32)
@pytest.mark.slow
def test_every_shell_line_of_the_how_to_serves_what_it_says(project: Project) -> None:
    lines = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)[0].splitlines()
    token, flags = "", set()
    for line in lines:
        if not line.startswith("cogcli "):
            subprocess.run(["bash", "-euc", line], cwd=project.root, check=True)
            token = (project.root / "token").read_text().strip()
            continue
        words = [word.replace("8765", "0") for word in shlex.split(line, comments=True)]
        assert words[:3] == ["cogcli", "serve", "mcp"]
        flags.add(words[3])
        with serving(project, *words[3:]) as server:
            if "--http" in words:
                url = url_of(server).replace("0.0.0.0", "127.0.0.1")
                headers = {"Authorization": f"Bearer {token}"} if "--token-file" in words else {}
                assert asked(url, json.dumps(INITIALIZE).encode(), **headers)[0] == 200
                assert (asked(url)[0] == 401) == bool(headers), "nobody without the token"
            else:
                server.start()
                server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
                assert SERVED[words[3]](names_of(server.frame(1))), line
    assert flags == {*SERVED, "--http"}


# -- HTTP --------------------------------------------------------------------------------------------------------------


def url_of(server: Server) -> str:
    return server.said("serving").split(" on ")[1].split(";")[0].strip()


def asked(url: str, body: bytes = b"{}", **headers: str) -> tuple[int, bytes]:
    """The status and the body of a POST; headers by name with `_` for `-`."""
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        given = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest("POST", f"/{path}", skip_host="Host" in named)
        for name, value in {**given, **named, "Content-Length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.sampled(2)
def test_a_client_calls_skills_over_http(served: Project) -> None:
    with serving(served, "--http", "0") as server:
        url = url_of(server)

        async def main() -> None:
            for mode in ("auto", "legacy"):
                async with mcp.Client(url, mode=mode) as client:
                    assert "demo__upper" in {
                        tool.name for tool in (await client.list_tools()).tools
                    }
                    result = await client.call_tool("demo__upper", {"text": "hi"})
                    assert result.structured_content == {"text": "HI"}

        anyio.run(main)
        port = url.rpartition(":")[2].partition("/")[0]
        assert asked(url, Host="evil.example")[0] == 421
        assert asked(url, Host=f"127.0.0.1.evil.example:{port}")[0] == 421
        assert asked(url, Origin="https://evil.example")[0] == 403
        assert asked(url, Origin="null")[0] == 403
        assert asked(url, b'{"a": 1, "a": 2}')[0] == 400
        for id in NO_IDS:
            status, body = asked(url, b'{"jsonrpc": "2.0", "id": %b, "method": "ping"}' % id)
            told = json.loads(body)
            assert (status, told["id"], told["error"]["code"]) == (400, None, -32600), id
        assert asked(url, b"x" * 100, Content_Type="application/json")[0] == 400
        assert asked(url, Origin=f"http://localhost:{port}")[0] not in (401, 403, 421)
        assert server.stop() == 143
        assert not server.out
        assert b"Traceback" not in b"".join(server.err)
    served.run("verify", "--all").assert_ok()


def test_a_token_is_asked_of_everybody(served: Project) -> None:
    token = served.write("token", "0123456789abcdef-token\n")
    token.chmod(0o600)
    with serving(
        served, "--http", "127.0.0.1:0", "--token-file", "token", "--skill", "demo.upper"
    ) as server:
        url = url_of(server)
        assert asked(url)[0] == 401
        assert asked(url, Authorization="Bearer 0123456789abcdef-tokem")[0] == 401
        assert asked(url, Authorization="Bearer 0123456789abcdef-token")[0] != 401


def test_what_cannot_be_served_is_refused_before_the_first_frame(served: Project) -> None:
    served.write("short", "abc").chmod(0o600)
    served.write("open", "0123456789abcdef").chmod(0o644)
    for arguments, code in (
        (("--http", "0.0.0.0:0"), 2), (("--http", "::1:0"), 2), (("--http", "99999"), 2),
        (("--token-file", "short"), 2),
        (("--http", "0", "--token-file", "short"), 2), (("--http", "0", "--token-file", "open"), 3), (("--json",), 2),
        (("--skill", "demo.nothing"), 2), (("--skill", "demo.absent"), 3), (("--skill", "demo.n*"), 2),
        (("--confirm", "demo.text.sent"), 2),
    ):  # fmt: skip
        result = served.run("serve", "mcp", *arguments).assert_exit(code)
        assert arguments == ("--json",) or not result.out
        assert result.err.startswith("error[")
