"""The server of one session of a host: it owns the log, and decides for all hooks of the session
(docs/reference/hosts.md#server).

1. Its socket is in a folder that only this user can enter, and it answers no process of another user.
2. One server runs per session: it holds a lock as long as it lives.
3. It ends with the session of the host, with a signal, or when the run of the session has ended.
4. Whatever goes wrong here is a denial.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Final

from cogcli.app.registry import open_registry
from cogcli.app.resume import resume
from cogcli.app.run_skill import build_options, resolve_pack_option
from cogcli.app.settings import Settings
from cogcli.base import threads
from cogcli.base.canonical import canonical
from cogcli.base.errors import CogcliError
from cogcli.base.file_lock import lock
from cogcli.base.files import UnreadableFile, read_regular, write_atomic
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.search_path import drop_relative_entries
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.session_events import CallRequested, SessionEnding
from cogcli.episode.log_reader import iterate_events
from cogcli.gateway.hook_marks import read_marks
from cogcli.gateway.hook_wire import (
    GREETING,
    MOST_BYTES,
    is_own_peer,
    render_decision,
    require_private,
    state_folder,
)
from cogcli.gateway.host_calls import HostDecision, HostSession, call_names, describe_error
from cogcli.gateway.host_specs import with_host_tools
from cogcli.gateway.hosts import HOSTS, AgentHost, HostCall, HostEvent, UnusableInput, read_event
from cogcli.gateway.session import MAX_WORKERS, SessionPlan
from cogcli.run.results import Control
from cogcli.run.resume import ResumeRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.pack_skills import reach_pack
from cogcli.specs.unchecked import object_at

HOLD_SECONDS: Final = 10.0
"""The default for how many seconds a call that waits for a person is held."""
MARGIN: Final = 1.5
"""Seconds before the deadline of a hook at which the server has decided."""
_FIRST_SECONDS: Final = 60.0
"""Seconds that a server waits for its first call."""
_READ_SECONDS: Final = 10.0
_MOST_CONNECTIONS: Final = 64
_MOST_HEADER: Final = 64 * 1024
_OLD_SECONDS: Final = 7 * 86_400.0
_TICK: Final = 0.2


class HookHeader(Record):
    """The header that a hook sends before its input."""

    host: str
    session: str
    flags: dict[str, str]
    seconds: float
    size: int


class SessionFile(Record):
    """The record for a later server of the session: where this one ran, and its last episode."""

    base: str
    episode: str


class HookAnswer(NamedTuple):
    """The texts for the streams of a hook's process, and its exit code."""

    stdout: str
    stderr: str
    code: int


def main() -> None:
    """Run the server for the words of the command line: host, key, directory, and the flags as JSON."""
    if "PYTHONPATH" in os.environ:
        drop_relative_entries()
    host, key, base, flags = sys.argv[1:5]
    os.umask(0o077)
    folder = state_folder(os.environ)
    require_private(folder)
    os.chdir(folder)
    with open(f"{key}.lock", "wb") as file:
        try:
            lock(file.fileno(), wait=False)
        except OSError:
            return  # another server of the session runs
        with suppress(OSError):
            os.ftruncate(2, 0)
        server = HookServer(HOSTS[host], key, base, json.loads(flags))
        signal.signal(signal.SIGTERM, lambda *_: server.stop("signal"))
        server.serve()


class HookServer:
    """The server of one session. The working directory is the folder of the sockets."""

    def __init__(self, host: AgentHost, key: str, base: str, given: dict[str, str]) -> None:
        """`given` are the flags of the hook that started it, and the id of the session."""
        self._host = host
        self._key = key
        self._name = given.pop("session")
        given.pop("hold", None)
        self._given = given
        self._folder = os.getcwd()
        known = self._read_file()
        self._base = known.base or base
        self._before = known.episode
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._session: HostSession | None = None
        self._count = 0
        self._ending: SessionEnding | None = None
        self._used_at = time.monotonic()

    # -- the socket ---------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Answer hooks until the session has ended."""
        _remove_old_files(self._folder)
        path = f"{self._key}.sock"
        with suppress(FileNotFoundError):
            os.unlink(path)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            os.chmod(path, 0o600)
            listener.listen(_MOST_CONNECTIONS)
            listener.settimeout(_TICK)
            os.chdir(self._base)
            while self._ending is None and not self._is_idle():
                if not os.path.lexists(os.path.join(self._folder, path)):
                    self.stop("signal")  # no hook can reach it any more
                with suppress(TimeoutError):
                    connection, _ = listener.accept()
                    self._start_thread(connection)
        with suppress(OSError):
            os.unlink(os.path.join(self._folder, path))
        self._end_session()

    def stop(self, reason: SessionEnding) -> None:
        """End the server."""
        self._ending = self._ending or reason

    def _is_idle(self) -> bool:
        """Return whether the run of the session has ended, and no hook waits."""
        if self._count:
            return False
        session = self._session
        if session is not None and session.episode_id:
            return not session.is_live
        return time.monotonic() - self._used_at > _FIRST_SECONDS

    def _start_thread(self, connection: socket.socket) -> None:
        with self._lock:
            self._count += 1
        self._used_at = time.monotonic()
        try:
            threads.start(self._handle_connection, connection, name="hook")
        except threads.NoThread:
            connection.close()
            with self._lock:
                self._count -= 1

    def _handle_connection(self, connection: socket.socket) -> None:
        """Answer one hook."""
        try:
            with connection:
                connection.settimeout(_READ_SECONDS)
                if self._count > _MOST_CONNECTIONS or not is_own_peer(connection):
                    return
                connection.sendall(GREETING)
                answer = self._answer_request(connection)
                connection.sendall(json.dumps(answer._asdict()).encode())
        except OSError:
            pass  # the hook is gone: it has denied
        finally:
            with self._lock:
                self._count -= 1

    def _answer_request(self, connection: socket.socket) -> HookAnswer:
        """Return the answer to a hook's request. Raise only OSError."""
        try:
            header, data = _read_request(connection)
            return self._answer_event(header, data)
        except UnusableInput as fault:
            return self._denial(str(fault))
        except CogcliError as error:
            return self._denial(describe_error(error))
        except OSError:
            raise
        except BaseException as bug:
            _report_bug(bug)
            return self._denial(f"internal: {type(bug).__name__}")

    def _denial(self, reason: str) -> HookAnswer:
        return self._render_answer(HostDecision(False, f"cogcli denied this call: {reason}"))

    def _render_answer(self, decision: HostDecision) -> HookAnswer:
        body, code = render_decision(self._host.name, decision.allowed, decision.reason)
        return HookAnswer(body, "" if decision.allowed else decision.reason, code)

    # -- the session --------------------------------------------------------------------------------------------------

    def _answer_event(self, header: HookHeader, data: bytes) -> HookAnswer:
        """Return the answer to a hook. Raise UnusableInput, CogcliError."""
        started = time.monotonic()
        flags = dict(header.flags)
        hold = _read_hold(flags.pop("hold", ""))
        if header.host != self._host.name or header.session != self._name:
            raise UnusableInput("the server is of another session")
        event = read_event(self._host, data)
        if event.kind == "end":
            self.stop("client")
            return HookAnswer("{}", "", 0)
        if event.kind == "decide" and flags != self._given:
            raise UnusableInput("this session began with other flags: end it, and begin a new one")
        session = self._open_session()
        if event.kind != "decide":
            session.report(event)
            return HookAnswer("{}", "", 0)
        seconds = header.seconds - MARGIN - (time.monotonic() - started)
        return self._render_answer(self._decide_call(session, event, hold, seconds))

    def _decide_call(
        self, session: HostSession, event: HostEvent, hold: float, seconds: float
    ) -> HostDecision:
        if event.call is None:
            raise UnusableInput("the input names no call")
        decision = session.decide(event.call, hold=min(hold, seconds), seconds=seconds)
        if session.episode_id != self._before and session.episode_id:
            self._before = session.episode_id
            self._write_file()
        if decision.allowed:
            return decision
        return HostDecision(False, f"cogcli denied this call: {decision.reason}")

    def _open_session(self) -> HostSession:
        """Return the session, which the first hook begins. Raise the errors of settings, pack and lock."""
        with self._opening:
            if self._session is None:
                self._session = self._begin_session()
            return self._session

    def _begin_session(self) -> HostSession:
        settings = Settings({}, os.environ, base=self._base)
        options = resolve_pack_option(
            settings, build_options(settings, {"pack": "", "intent": "", "user": "", **self._given})
        )
        base = reach_pack(open_registry(settings), options.pack) if options.pack else Catalog()
        marked = read_marks(settings, self._host)
        catalog, tools = with_host_tools(base, self._host, marked, is_governed=bool(options.pack))
        before, earlier = self._close_earlier(settings)
        workers = options.replace(max_workers=max(options.max_workers, MAX_WORKERS))
        plan = SessionPlan(catalog, workers, self._key, self._host.name, continues=before)
        return HostSession(settings, plan, tools, _report_bug, earlier)

    def _close_earlier(self, settings: Settings) -> tuple[str, frozenset[str]]:
        """Seal the run of a server that was killed. Return its id and the names of the calls that it allowed. A call in
        doubt leaves the run waiting.
        """
        if not self._before:
            return "", frozenset()
        directory = Path(settings.runs_dir) / self._before
        try:
            resume(
                settings, directory, ResumeRequest(), listener=lambda event: None, control=Control()
            )
        except CogcliError as error:
            sys.stderr.write(f"{self._before}: {error.code}: {error.message}\n")
        return self._before, _find_allowed_calls(directory)

    def _end_session(self) -> None:
        """End the session. Its file is kept if another server has to continue it."""
        if self._session is not None:
            self._session.close(self._ending or "idle")
        if self._ending == "client":
            with suppress(OSError):
                os.unlink(os.path.join(self._folder, f"{self._key}.json"))

    def _read_file(self) -> SessionFile:
        try:
            document = loads(read_regular(f"{self._key}.json", limit=_MOST_HEADER))
        except (UnreadableFile, InvalidJson):
            document = {}
        return read_record(SessionFile, document)

    def _write_file(self) -> None:
        file = SessionFile(base=self._base, episode=self._before)
        with suppress(OSError):
            write_atomic(os.path.join(self._folder, f"{self._key}.json"), canonical(file.json))


def _find_allowed_calls(directory: Path) -> frozenset[str]:
    """Return the names of the calls of a run that began. Empty for a log that cannot be read."""
    asked: dict[str, tuple[str, str]] = {}
    begun = set()
    try:
        for event in iterate_events(directory):
            if event.event_type == CallRequested.event.name:
                call = CallRequested.of(event.payload)
                arguments = object_at(call.input, "arguments")
                asked[call.step_id] = call_names(HostCall(call.tool, arguments, "", call.key or ""))
            elif event.event_type == "step.started":
                begun.add(event.step_id or "")
    except CogcliError:
        return frozenset()
    return frozenset(name for step in begun for name in asked.get(step, ()) if name)


def _read_request(connection: socket.socket) -> tuple[HookHeader, bytes]:
    """Return the header and the input that a hook sends. Raise UnusableInput."""
    data = b""
    while b"\n" not in data:
        part = connection.recv(65536)
        if not part or len(data) > _MOST_HEADER:
            raise UnusableInput("the hook sent no header")
        data += part
    line, _, rest = data.partition(b"\n")
    try:
        header = read_record(HookHeader, loads(line), whole=True)
    except (InvalidJson, ValueError) as error:
        raise UnusableInput("the header of the hook is not one") from error
    parts, size = [rest], len(rest)
    while size < min(header.size, MOST_BYTES):
        part = connection.recv(1024 * 1024)
        if not part:
            raise UnusableInput("the hook sent a part of its input")
        parts.append(part)
        size += len(part)
    if size != header.size:
        raise UnusableInput("the input has another length than announced")
    return header, b"".join(parts)


def _read_hold(text: str) -> float:
    """Return the seconds of `--hold`. Raise UnusableInput."""
    if not text:
        return HOLD_SECONDS
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise UnusableInput("`--hold` is a number of seconds")
    return float(text)


def _report_bug(bug: BaseException) -> None:
    traceback.print_exception(bug, file=sys.stderr)


def _remove_old_files(folder: str) -> None:
    """Remove the files of sessions that no server has used for a week."""
    before = time.time() - _OLD_SECONDS
    for entry in os.scandir(folder):
        with suppress(OSError):
            if entry.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(entry.path)
