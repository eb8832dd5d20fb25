"""The process that a host starts for each call of a tool: `cogcli gateway hook HOST` (docs/reference/hosts.md#hook).

1. It exits 0 with JSON on stdout, or 2. A denial has its reason on stderr, too.
2. It passes its input to the server of the session, and starts that server if none runs.
3. Whatever goes wrong here denies the call: a fault of the input, of the server or of this program, and a passed
   deadline.
"""

import json
import os
import signal
import socket
import sys
import time

from cogcli.gateway.hook_wire import (
    GREETING,
    MOST_BYTES,
    PROJECT_VARIABLES,
    SECONDS,
    SESSION_MEMBERS,
    is_own_peer,
    render_decision,
    require_private,
    state_folder,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

FLAGS = ("--hold", "--pack", "--intent", "--user")
_TICK = 0.01
_START_AGAIN = 5.0
"""Seconds after which another server is started, because the first did not answer."""
_MOST_STARTS = 3
_MOST_ANSWER = 1024 * 1024


class HookFault(Exception):
    """A reason why the call is denied."""


def run_hook(arguments: "Sequence[str]") -> int:
    """Decide about one call, and return the exit code. `arguments` follow `cogcli gateway hook`. Raise nothing."""
    host = arguments[0] if arguments else ""
    try:
        if host not in SECONDS:
            raise HookFault(f"no host `{host[:40]}`: one of {', '.join(SECONDS)}")
        deadline = time.monotonic() + SECONDS[host]
        _set_alarm(host)
        return _write_answer(*_ask_server(host, _read_flags(arguments[1:]), deadline))
    except HookFault as fault:
        return deny(host, str(fault))
    except BaseException as bug:
        return deny(host, f"internal: {type(bug).__name__}")
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)


def deny(host: str, reason: str) -> int:
    """Write a denial because this process failed, and return the exit code."""
    text = f"cogcli denied this call: {reason}"
    body, code = render_decision(host, is_allowed=False, reason=text)
    return _write_answer(body, text, code)


def _write_answer(body: str, text: str, code: int) -> int:
    """Write to stdout and stderr, and return the exit code. If a stream is closed, return the exit code of a denial."""
    try:
        if text:
            os.write(2, f"{text}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass
    try:
        data = f"{body}\n".encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return 2
    return code


def _set_alarm(host: str) -> None:
    """Deny when the deadline passes, wherever this process is then."""

    def end(number: int, frame: "FrameType | None") -> None:
        os._exit(deny(host, f"no decision within {SECONDS[host]} seconds"))

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, SECONDS[host])


def _read_flags(arguments: "Sequence[str]") -> dict[str, str]:
    """Return the values of flags. Raise HookFault for an unknown one."""
    if len(arguments) % 2:
        raise HookFault(f"`{arguments[-1][:40]}` is not a flag with a value")
    found = dict(zip(arguments[::2], arguments[1::2], strict=True))
    for name in found:
        if name not in FLAGS:
            raise HookFault(f"no flag `{name[:40]}`: one of {', '.join(FLAGS)}")
    return {name[2:]: value for name, value in found.items()}


def _ask_server(host: str, flags: dict[str, str], deadline: float) -> tuple[str, str, int]:
    """Return the answer of the session's server: the texts for stdout and stderr, and the exit code."""
    data = _read_input()
    session = session_of(host, data)
    header = {
        "host": host,
        "session": session,
        "flags": flags,
        "seconds": deadline - time.monotonic(),
        "size": len(data),
    }
    project = os.environ.get(PROJECT_VARIABLES[host] or "COGCLI_NO_VARIABLE", "")
    key = session_key(host, session)
    with _connect_to_server(host, key, session, flags, project, deadline) as connection:
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        connection.sendall(json.dumps(header).encode() + b"\n" + data)
        return _read_answer(connection)


def _read_input() -> bytes:
    """Return stdin. Raise HookFault if it is too large."""
    parts, size = [], 0
    while part := os.read(0, 1024 * 1024):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise HookFault(f"the input has more than {MOST_BYTES} bytes")
    return b"".join(parts)


def session_of(host: str, data: bytes) -> str:
    """Return the id of the session in an input. Raise HookFault if it has none."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise HookFault("the input is not JSON") from error
    name = SESSION_MEMBERS[host]
    found = document.get(name) if isinstance(document, dict) else None
    if not isinstance(found, str) or not 0 < len(found) <= 256:
        raise HookFault(f"the input has no `{name}`")
    return found


def session_key(host: str, session: str) -> str:
    """Return the name of the files of a session. A server compares the id itself again."""
    plain = session.replace("-", "").replace("_", "")
    if len(session) <= 64 and plain.isascii() and plain.isalnum() and plain == plain.lower():
        return f"{host}.{session}"
    from hashlib import sha256  # it takes as long to load as all else here

    return sha256(f"{host}\0{session}".encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _connect_to_server(
    host: str, key: str, session: str, flags: dict[str, str], project: str, deadline: float
) -> socket.socket:
    """Return a connection to the session's server, after its greeting. Start the server if it is not running."""
    folder = state_folder(os.environ)
    try:
        require_private(folder)
        base = project or os.getcwd()
        os.chdir(folder)  # the name of a socket may have 107 bytes
    except OSError as error:
        raise HookFault(f"{folder} cannot be used: {error.strerror or error}") from error
    started_at, starts = float("-inf"), 0
    while time.monotonic() < deadline:
        connection = _try_connection(f"{key}.sock")
        if connection is not None:
            return connection
        if time.monotonic() - started_at > _START_AGAIN:
            started_at, starts = time.monotonic(), starts + 1
            if starts > _MOST_STARTS:
                break
            _start_server([host, key, base, json.dumps({"session": session, **flags})], key)
        time.sleep(_TICK)
    raise HookFault(f"the server of the session did not start: see {folder}/{key}.log")


def _try_connection(name: str) -> socket.socket | None:
    """Return a connection whose server has greeted, or None if none runs."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(2.0)
        connection.connect(name)
        if not is_own_peer(connection):
            raise HookFault("the server of the session belongs to another user")
        greeting = b""
        while len(greeting) < len(GREETING):
            part = connection.recv(len(GREETING) - len(greeting))
            if not part:
                raise ConnectionError
            greeting += part
        if greeting != GREETING:
            raise HookFault("the server of the session is of another version: end it")
    except OSError:
        connection.close()
        return None
    return connection


def _start_server(arguments: list[str], key: str) -> None:
    """Start the server of the session as a separate process."""
    if os.fork():
        os.wait()
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        log = os.open(f"{key}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, target in ((0, null), (1, null), (2, log)):
            os.dup2(target, number)
        os.closerange(3, 256)
        program = "from cogcli.gateway.hook_daemon import main; main()"
        os.execv(sys.executable, [sys.executable, "-P", "-c", program, *arguments])  # noqa: S606
    finally:
        os._exit(1)


def _read_answer(connection: socket.socket) -> tuple[str, str, int]:
    """Return the answer of the server. Raise HookFault for anything else."""
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
            if len(data) > _MOST_ANSWER:
                break
    except OSError as error:
        raise HookFault("the server of the session gave no answer in time") from error
    try:
        answer = json.loads(data)
        body, text, code = answer["stdout"], answer["stderr"], answer["code"]
    except (ValueError, TypeError, KeyError) as error:
        raise HookFault("the server of the session ended without an answer") from error
    if code not in (0, 2) or not isinstance(body, str) or not isinstance(text, str):
        raise HookFault("the answer of the server is not one")
    return body, text, code
