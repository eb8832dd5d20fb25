"""An MCP server without any library, for tests: it does what it is asked to, well or badly. Run by its path.

    python mcp_server.py [--OPTION[=VALUE]]...

Options: `pid=FILE` writes its process id and those of its children, one a line; `ledger=FILE` notes what it saw;
`grumbles` says four lines on stderr first; `silent` never answers; `dead` ends at once; `deaf` ignores a closed stdin
and SIGTERM; `says-file=FILE` describes its tools as that file says; `readonly` says that all of them change nothing;
`titled` gives them titles;
`resources` lists and reads some, or `=NUMBER`, and prompts; `pages=endless|circle`; `tools=NUMBER` more;
`named=NAME,NAME` more tools that echo;
`takes=SCHEMA`, `gives=SCHEMA` are what `structured` says of its
text and its reply.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

OPTIONS = dict(word.removeprefix("--").partition("=")[::2] for word in sys.argv[1:])
_writing = threading.Lock()
_answers: dict[Any, dict[str, Any]] = {}
_answered = threading.Condition()
_client: dict[str, Any] = {}
"""The capabilities of the client."""


def send(message: Any) -> None:
    """One message on one line."""
    raw(json.dumps(message).encode() + b"\n")


def raw(data: bytes) -> None:
    """Any bytes on stdout."""
    with _writing:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def note(text: str) -> None:
    """A line in the ledger."""
    if "ledger" in OPTIONS:
        with open(OPTIONS["ledger"], "a") as file:
            file.write(text + "\n")


def text(value: str) -> dict[str, Any]:
    """A result of one block of text."""
    return {"content": [{"type": "text", "text": value}]}


def reply(id: Any, result: Any) -> None:
    """An answer."""
    send({"jsonrpc": "2.0", "id": id, "result": result})


# -- tools ------------------------------------------------------------------------------------------------------------


def echo(id: Any, given: dict[str, Any]) -> Any:
    return text(given["text"])


def writes(id: Any, given: dict[str, Any]) -> Any:
    note(f"wrote {given['text']}")
    return text(given["text"])


def structured(id: Any, given: dict[str, Any]) -> Any:
    return {**text("ignored"), "structuredContent": {"said": given["text"], "n": 1}}


def object_text(id: Any, given: dict[str, Any]) -> Any:
    return text(json.dumps({"said": given["text"]}))


def blocks(id: Any, given: dict[str, Any]) -> Any:
    link = {"type": "resource_link", "name": "x", "uri": "http://127.0.0.1:9/never"}
    return {"content": [{"type": "text", "text": "one"}, link, {"type": "text", "text": "two"}]}


def links(id: Any, given: dict[str, Any]) -> Any:
    return {"content": [{"type": "resource_link", "name": "x", "uri": "http://127.0.0.1:9/never"}]}


def task(id: Any, given: dict[str, Any]) -> Any:
    note("a task began")
    return {"task": {"taskId": "t1", "status": "working"}}


def fails(id: Any, given: dict[str, Any]) -> Any:
    return {**text("no: " + given["text"]), "isError": True}


def code(id: Any, given: dict[str, Any]) -> Any:
    send({"jsonrpc": "2.0", "id": id, "error": {"code": int(given["text"]), "message": "so it is"}})


def usage(id: Any, given: dict[str, Any]) -> Any:
    counts = {"input_tokens": 7, "output_tokens": 2, "broken_tokens": -1, "odd_tokens": "9"}
    return {**text("x"), "_meta": {"usage": counts}}


def noisy(id: Any, given: dict[str, Any]) -> Any:
    raw(b"Loading model...\n\xff\xfe\x00\n[1,2]\n\n" + b"{broken\n" * 3)
    return text("fine")


def floods_stderr(id: Any, given: dict[str, Any]) -> Any:
    for _ in range(32):
        os.write(2, b"e" * 65535 + b"\n")
    return text("fine")


def not_a_number(id: Any, given: dict[str, Any]) -> Any:
    raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":NaN}}}\n' % id)


def twice_a_key(id: Any, given: dict[str, Any]) -> Any:
    raw(
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":1,"a":2}}}\n'
        % id
    )


def deep(id: Any, given: dict[str, Any]) -> Any:
    nested = b"[" * 5000 + b"]" * 5000
    raw(
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":%s}}}\n'
        % (id, nested)
    )


def huge(id: Any, given: dict[str, Any]) -> Any:
    raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":"' % id)
    for _ in range(200):
        raw(b"y" * 1_000_000)
    raw(b'"}}\n')


def endless_line(id: Any, given: dict[str, Any]) -> Any:
    raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":"' % id)
    while True:
        raw(b"y" * 1_000_000)


def endless_messages(id: Any, given: dict[str, Any]) -> Any:
    data = {"level": "info", "data": "y" * 10_000}
    while True:
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": data})


def many_items(id: Any, given: dict[str, Any]) -> Any:
    return {"content": [{"type": "text", "text": ""}] * 1001}


def foreign_id(id: Any, given: dict[str, Any]) -> Any:
    for other in (id + 1000, str(id), None):
        reply(other, text("forged"))
    return text("own")


def answers_twice(id: Any, given: dict[str, Any]) -> Any:
    reply(id, text("first"))
    return text("second")


def wrong_types(id: Any, given: dict[str, Any]) -> Any:
    return {"content": 5, "isError": "maybe"}


def no_object(id: Any, given: dict[str, Any]) -> Any:
    raw(b'{"jsonrpc":"2.0","id":%d,"result":[1]}\n' % id)


def notifies(id: Any, given: dict[str, Any]) -> Any:
    send(
        {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": "hello"},
        }
    )
    send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    send({"jsonrpc": "2.0", "method": "notifications/ignore_message", "params": {"x": 1}})
    return text("after")


def demands(id: Any, given: dict[str, Any]) -> Any:
    message = {"messages": [], "maxTokens": 5}
    asked = {
        "sampling/createMessage": message,
        "roots/list": None,
        "elicitation/create": {"message": "pw?"},
    }
    codes = {}
    for number, (method, params) in enumerate(asked.items()):
        send(
            {
                "jsonrpc": "2.0",
                "id": f"s{number}",
                "method": method,
                **({"params": params} if params else {}),
            }
        )
        with _answered:
            _answered.wait_for(lambda name=f"s{number}": name in _answers, timeout=60)
        codes[method] = _answers[f"s{number}"].get("error", {}).get("code")
    send({"jsonrpc": "2.0", "id": "p", "method": "ping"})
    with _answered:
        _answered.wait_for(lambda: "p" in _answers, timeout=60)
    codes["ping"] = _answers["p"].get("result")
    return {"content": [], "structuredContent": codes}


def surroundings(id: Any, given: dict[str, Any]) -> Any:
    return {"content": [], "structuredContent": {"names": sorted(os.environ), "cwd": os.getcwd()}}


def secret(id: Any, given: dict[str, Any]) -> Any:
    """Says a variable aloud, on stderr in two pieces, then ends."""
    value = os.environ.get(given["text"], "unset")
    half = len(value) // 2
    os.write(2, b"key " + value[:half].encode())
    time.sleep(0.05)
    os.write(2, value[half:].encode() + b"\n")
    os._exit(3)


def echo_meta(id: Any, given: dict[str, Any]) -> Any:
    return {"content": [], "structuredContent": {"meta": given["__meta"]}}


def waits(id: Any, given: dict[str, Any]) -> Any:
    time.sleep(float(given["text"]))
    return text("waited")


def asks(id: Any, given: dict[str, Any]) -> Any:
    """Asks a person for a name, if the client can ask, and answers with what came back."""
    if "elicitation" not in _client:
        return text("nobody to ask")
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    asked = {"message": given["text"], "requestedSchema": form}
    number = f"q{id}"
    send({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": asked})
    with _answered:
        _answered.wait_for(lambda: number in _answers, timeout=60)
    return text(json.dumps(_answers[number].get("result"), sort_keys=True))


def elicits(id: Any, given: dict[str, Any]) -> Any:
    """Asks with the parameters in its text, whatever the client says that it can, and answers with what came back."""
    number = f"q{id}"
    params = json.loads(given["text"])
    send({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params})
    with _answered:
        _answered.wait_for(lambda: number in _answers, timeout=60)
    said = {"declared": "elicitation" in _client, "answer": _answers[number].get("result")}
    return {"content": [], "structuredContent": said}


def samples(id: Any, given: dict[str, Any]) -> Any:
    """Asks for a model with the parameters in its text, `times` times, and answers with what came back."""
    params = json.loads(given["text"])
    times = params.pop("times", 1)
    message = {"role": "user", "content": {"type": "text", "text": "Hello?"}}
    params = {"messages": [message], "maxTokens": 20, **params}
    answers = []
    for number in (f"m{id}.{each}" for each in range(times)):
        send({"jsonrpc": "2.0", "id": number, "method": "sampling/createMessage", "params": params})
        with _answered:
            _answered.wait_for(lambda name=number: name in _answers, timeout=60)
        answers.append({key: _answers[number].get(key) for key in ("result", "error")})
    said = {"declared": "sampling" in _client, "answers": answers}
    return {"content": [], "structuredContent": said}


def progresses(id: Any, given: dict[str, Any]) -> Any:
    """Reports progress if it is asked to, then answers."""
    token = (given["__meta"] or {}).get("progressToken")
    if token is not None:
        part = {"progressToken": token, "progress": 1, "total": 2, "message": given["text"]}
        send({"jsonrpc": "2.0", "method": "notifications/progress", "params": part})
    return text("done" if token is not None else "no token")


_meeting = threading.Barrier(4)


def meets(id: Any, given: dict[str, Any]) -> Any:
    """Answers when four calls are here at once."""
    _meeting.wait(timeout=60)
    return text("met")


def hangs(id: Any, given: dict[str, Any]) -> Any:
    time.sleep(3600)


def dies(id: Any, given: dict[str, Any]) -> Any:
    os.write(2, b"last words\n")
    os._exit(3)


def breeds(id: Any, given: dict[str, Any]) -> Any:
    """Children: one in the group, one in a session of its own, and one that lost its parent."""
    sleep = [sys.executable, "-S", "-c", "import time; time.sleep(3600)"]
    found = [
        subprocess.Popen(sleep, stdout=subprocess.DEVNULL).pid,
        subprocess.Popen(sleep, stdout=subprocess.DEVNULL, start_new_session=True).pid,
        _orphan(sleep),
    ]
    for pid in found:
        remember(pid)
    return {"content": [], "structuredContent": {"pids": found}}


def _orphan(sleep: list[str]) -> int:
    source = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, start_new_session=True)\n"
        "print(child.pid, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", source, *sleep], stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout is not None
        return int(starter.stdout.readline())


def breaks_promise(id: Any, given: dict[str, Any]) -> Any:
    return {"content": [], "structuredContent": {"n": "no number"}}


def slow_pattern(id: Any, given: dict[str, Any]) -> Any:
    return {"content": [], "structuredContent": {"a": "a" * 60 + "!"}}


TOOLS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    tool.__name__: tool
    for tool in (
        echo, structured, object_text, blocks, fails, code, usage, noisy, floods_stderr, not_a_number, twice_a_key,
        deep, huge, many_items, foreign_id, answers_twice, wrong_types, no_object, notifies, demands, surroundings,
        endless_line, endless_messages, secret, echo_meta, waits, meets, hangs, dies, breeds, breaks_promise,
        slow_pattern, writes, progresses, asks,
    )
}  # fmt: skip
_NAMED: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "links": links, "task": task, "elicits": elicits, "samples": samples,
}  # fmt: skip
"""What named tools do that are listed only with `--named`. The others echo."""
_OUTPUTS = {
    "breaks_promise": {"type": "object", "properties": {"n": {"type": "number"}}},
    "slow_pattern": {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}},
    },
}


def definition(name: str) -> dict[str, Any]:
    """A tool as `tools/list` tells it."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    told = {"name": name, "description": f"Does {name}.", "inputSchema": schema}
    if "says-file" in OPTIONS:
        with open(OPTIONS["says-file"]) as file:
            told["description"] = file.read()
    if name == "structured" and "takes" in OPTIONS:
        schema["properties"]["text"] = json.loads(OPTIONS["takes"])
    if name == "structured" and "gives" in OPTIONS:
        told["outputSchema"] = json.loads(OPTIONS["gives"])
    if name in _OUTPUTS:
        told["outputSchema"] = _OUTPUTS[name]
    if name == OPTIONS.get("as-task"):
        told["execution"] = {"taskSupport": "required"}
    if "readonly" in OPTIONS:
        told["annotations"] = {"readOnlyHint": True, "destructiveHint": False}
    if "titled" in OPTIONS:
        told["title"] = "A title that nothing pins"
        told["annotations"] = {"title": f"Title of {name}", "openWorldHint": False}
    return told


def listed(params: dict[str, Any]) -> dict[str, Any]:
    """One page of tools."""
    page = int(params.get("cursor") or 0)
    tools = [definition(name) for name in TOOLS] if page == 0 else []
    tools += [definition(f"more_{page}_{n}") for n in range(int(OPTIONS.get("tools", 0)))]
    tools += [definition(name) for name in OPTIONS.get("named", "").split(",") if name]
    following = {"endless": str(page + 1), "circle": "1"}.get(OPTIONS.get("pages", ""))
    return {"tools": tools, **({"nextCursor": following} if following else {})}


READS = {"resources": {}, "prompts": {}}
READERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "resources/list": lambda params: {
        "resources": [{"uri": f"note://{n}", "name": "x"} for n in range(int(OPTIONS["resources"]))]
        if OPTIONS["resources"]
        else [
            {
                "uri": "note://one",
                "name": "one",
                "title": "The first",
                "icons": [{"src": "http://127.0.0.1:9/icon"}],
            }
        ]
    },
    "resources/templates/list": lambda params: {
        "resourceTemplates": [{"uriTemplate": "note://{name}", "name": "any"}]
    },
    "resources/read": lambda params: {
        "contents": [
            {"uri": params["uri"], "mimeType": "text/plain", "text": f"of {params['uri']}"}
        ]
    },
    "prompts/list": lambda params: {
        "prompts": [{"name": "greet", "title": "Greet", "arguments": [{"name": "who"}]}]
    },
    "prompts/get": lambda params: {
        "description": "A greeting.",
        "messages": [
            {
                "role": "user",
                "content": {"type": "text", "text": f"Hello {params['arguments']['who']}"},
            }
        ],
    },
}


def remember(pid: int) -> None:
    """Let the test know of a process."""
    if "pid" in OPTIONS:
        with open(OPTIONS["pid"], "a") as file:
            file.write(f"{pid}\n")


def called(id: Any, params: dict[str, Any]) -> None:
    note(f"call {params['name']}")
    given = {**(params.get("arguments") or {}), "__meta": params.get("_meta")}
    tool = TOOLS.get(params["name"])
    if tool is None and params["name"] in OPTIONS.get("named", "").split(","):
        tool = _NAMED.get(params["name"], echo)
    if tool is None:
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "unknown tool"}})
        return
    result = tool(id, given)
    if result is not None:
        reply(id, result)


def serve() -> None:
    """Answer until stdin ends."""
    for line in sys.stdin:
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        params = message.get("params") or {}
        if method is None:
            with _answered:
                _answers[id] = message
                _answered.notify_all()
        elif method == "initialize":
            _client.update(params["capabilities"])
            reply(
                id,
                {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}, **(READS if "resources" in OPTIONS else {})},
                    "serverInfo": {"name": "test", "version": "1"},
                },
            )
        elif method == "tools/list":
            reply(id, listed(params))
        elif method in READERS and "resources" in OPTIONS:
            note(f"{method} {params.get('uri') or params.get('name') or ''}".strip())
            reply(id, READERS[method](params))
        elif method == "tools/call":
            threading.Thread(target=called, args=(id, params), daemon=True).start()
        elif id is not None:
            send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
        else:
            note(f"{method} {json.dumps(params)}")


def main() -> None:
    remember(os.getpid())
    if "grumbles" in OPTIONS:
        os.write(2, b"first\n\nfetching a package\n  still fetching\nno network\n")
    if "dead" in OPTIONS:
        sys.exit("cannot find my model file")
    if "silent" in OPTIONS:
        time.sleep(3600)
    if "deaf" in OPTIONS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve()
    if "deaf" in OPTIONS:
        time.sleep(3600)


if __name__ == "__main__":
    main()
