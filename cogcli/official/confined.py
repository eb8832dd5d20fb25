"""Work on files of strangers in a process of its own, which ends in time and has no more memory than it is given."""

from __future__ import annotations

import json
import subprocess
import sys

from cogcli.sdk import Refused

_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from cogcli.official.confined import main; main()"
_SHOWN = 300


def confined(
    function: str,
    *,
    content: bytes = b"",
    about: str = "",
    seconds: int = 20,
    megabytes: int = 300,
    **arguments: object,
) -> dict[str, object]:
    """What `module:function` of this package returns when it is called with the bytes and the arguments; `about` begins
    the messages.

    Raises Refused as the function does, `bad-data` where the process breaks, `too-large` where it takes longer or more
    memory, and ModuleNotFoundError for a library that is not there.
    """
    head = json.dumps(
        {"function": function, "megabytes": megabytes, "seconds": seconds, "arguments": arguments}
    )
    command = [sys.executable, "-I", "-c", _START, json.dumps(sys.path)]
    try:
        done = subprocess.run(  # noqa: S603
            command, input=head.encode() + b"\n" + content, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise Refused("too-large", f"{about}not done after {seconds} seconds") from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        limit = f"{seconds} seconds or {megabytes} MB of memory"
        raise Refused("too-large", f"{about}reading it broke off, or took more than {limit}") from None
    if "module" in answer:
        raise ModuleNotFoundError(f"No module named {answer['module']!r}", name=answer["module"])
    if "reason" in answer:
        raise Refused(answer["reason"], about + answer["message"], answer["hint"])
    result: dict[str, object] = answer["result"]
    return result


def main() -> None:
    """The process: reads its task from standard input and writes the answer as JSON. Never raises."""
    head = json.loads(sys.stdin.buffer.readline())
    out, sys.stdout = sys.stdout, sys.stderr
    out.write(json.dumps(_answer(head, sys.stdin.buffer.read())))


def _answer(head: dict[str, object], content: bytes) -> dict[str, object]:
    import importlib

    module, _, name = str(head["function"]).partition(":")
    arguments = head["arguments"]
    try:
        _limit(int(str(head["megabytes"])), int(str(head["seconds"])))
        function = getattr(importlib.import_module(f"cogcli.official.{module}"), name)
        given = {"content": content} if content else {}
        return {"result": function(**given, **(arguments if isinstance(arguments, dict) else {}))}
    except Refused as refused:
        return {"reason": refused.reason, "message": refused.message, "hint": refused.hint}
    except ModuleNotFoundError as error:
        return {"module": error.name}
    except (MemoryError, RecursionError):
        return {"reason": "too-large", "message": "it takes more memory than it is given", "hint": ""}
    except Exception as error:
        text = f"it cannot be read: {type(error).__name__}: {error}"[:_SHOWN]
        return {"reason": "bad-data", "message": text, "hint": ""}


def _limit(megabytes: int, seconds: int) -> None:
    """Bound memory and time of this process, where the system can."""
    try:
        import resource
    except ImportError:
        return
    size = megabytes * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
