"""A gate for the loops of other frameworks: each call is decided by a pack, recorded, and made or not
(docs/reference/api.md#gate).

A session of a gate is a session of a gateway: one run, one episode. Nothing is decided here.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from contextvars import ContextVar, Token
from typing import Any, Final, Protocol, Self, Unpack

from cogcli.app.python_options import read_options
from cogcli.app.registry import open_registry
from cogcli.app.run_skill import build_options, resolve_pack_option
from cogcli.app.settings import Settings
from cogcli.base.errors import OverloadedError, UsageError
from cogcli.base.jsonvalue import NotJson, to_plain_json
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.api_options import Options
from cogcli.declarations.value_types import Json
from cogcli.gateway.calls import CallTicket
from cogcli.gateway.gate_result import (
    CallRefused,
    GateResult,
    result_from_call,
    result_from_pending,
    result_of_unknown,
    result_of_unknown_argument,
)
from cogcli.gateway.own_functions import FunctionCaller, OwnFunction, make_function, with_functions
from cogcli.gateway.session import MAX_WORKERS, GatewaySession, SessionPlan
from cogcli.gateway.tool_specs import CALL_SECONDS, SKILL, with_tools
from cogcli.protocols.pythoncall.stdout_capture import give_back_streams, leave_streams
from cogcli.run.prepare import RunRequest, call_policy
from cogcli.specs.catalog import Catalog
from cogcli.specs.pack_skills import reach_pack

__all__ = ["CallRefused", "Gate", "GateResult", "GateSession"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}|")

_TRIES: Final = 3
"""The maximum number of attempts to find a run that has not ended."""
_CURRENT: Final[ContextVar[str]] = ContextVar("cogcli_session", default="")
"""The session of the calls in this context, as `Gate.session` set it."""


class SettingsSource(Protocol):
    """A project, as `Project` of the interface is one."""

    def make_settings(self, **flags: object) -> Settings:
        """Return new settings with these flags."""
        ...


class Gate:
    """Decides, records and makes the calls of a loop under a pack. Any thread and any event loop may use it.

    `pack` is `ID@VERSION`. `project` is a directory or a Project. `wait` is the number of seconds for which a call that
    waits for a person is held. The options are those of `Project.run`; `intent` is required. Raise CogcliError for a
    pack or an option that cannot be used.
    """

    def __init__(
        self,
        pack: str,
        /,
        *,
        project: SettingsSource | str | os.PathLike[str] = ".",
        wait: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        options["pack"] = pack
        self._settings, plain = read_options(_settings_maker(project), options)
        found = resolve_pack_option(self._settings, build_options(self._settings, plain))
        self._options = found.replace(max_workers=max(found.max_workers, MAX_WORKERS))
        self._wait, self._is_closed = wait, False
        self._lock = threading.Lock()
        self._functions: dict[str, OwnFunction] = {}
        self._parts: _SessionParts | None = None
        self._sessions: dict[str, GatewaySession] = {}
        self._bugs: list[BaseException] = []
        call_policy(self._read_catalog(), RunRequest(SKILL, {}, self._options).policy, SKILL, {})
        leave_streams(self)
        atexit.register(self.close)

    # -- functions ----------------------------------------------------------------------------------------------------

    def tool(
        self,
        function: Callable[..., Any],
        *,
        capability: str = "",
        read_only: bool = False,
        timeout: float = CALL_SECONDS,
        as_text: bool = False,
    ) -> Callable[..., Any]:
        """Return a function with the same signature whose calls go through the gate; `function` makes them.

        Without a file the contract of `capability` (else `tool.NAME`) follows from the signature. The result returns
        the value of `function`, or raises CallRefused. With `as_text` it returns a text for the model in both cases.
        Raise UsageError after the first call, and for a signature that cannot be used.
        """
        name = capability or f"tool.{getattr(function, '__name__', '').lower()}"
        own = make_function(function, name, is_read_only=read_only, seconds=timeout)
        with self._lock:
            if self._parts is not None:
                raise UsageError("usage.value", "name all functions before the first call")
            if name in self._functions:
                raise UsageError("usage.value", f"`{name}` has a function already")
            self._functions[name] = own
        if own.is_async:

            @functools.wraps(function)
            async def call_later(*given: Any, **named: Any) -> Any:
                found = await self.acall(name, own.bind_arguments(given, named))
                return found.text if as_text else own.unwrap(found.require())

            return call_later

        @functools.wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            found = self.call(name, own.bind_arguments(given, named))
            return found.text if as_text else own.unwrap(found.require())

        return call

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(
        self,
        capability: str,
        inputs: Mapping[str, Any],
        *,
        session: str | None = None,
        key: str | None = None,
        wait: float | None = None,
    ) -> GateResult:
        """Make a call if the pack allows it, and return its result; blocks meanwhile.

        An equal call joins one that is running, waiting or in doubt, and collects its result once. `key` is an
        idempotency key. Raise CogcliError if nothing could be decided or recorded; then nothing was called.
        """
        plain, name = _plain_inputs(inputs), _session_name(session)
        for _ in range(_TRIES):
            begun = self._begin_call(name, capability, plain, key)
            if isinstance(begun, GateResult):
                return begun
            _wait_until_over(begun.ticket, self._wait if wait is None else wait)
            found = begun.finish()
            if found is not None:
                return found
        raise self._missed_error()

    async def acall(
        self,
        capability: str,
        inputs: Mapping[str, Any],
        *,
        session: str | None = None,
        key: str | None = None,
        wait: float | None = None,
    ) -> GateResult:
        """Make a call as `call` does, without blocking. An async function of `tool` runs on this event loop.

        The end of the waiting task leaves the call alone: an equal call collects its result.
        """
        plain, name = _plain_inputs(inputs), _session_name(session)
        self._find_parts().caller.loop = asyncio.get_running_loop()
        for _ in range(_TRIES):
            # The begin of a run may block.
            begun = await asyncio.to_thread(self._begin_call, name, capability, plain, key)
            if isinstance(begun, GateResult):
                return begun
            await _await_until_over(begun.ticket, self._wait if wait is None else wait)
            found = begun.finish()
            if found is not None:
                return found
        raise self._missed_error()

    def _begin_call(
        self, session: str, capability: str, inputs: Json, key: str | None
    ) -> _BegunCall | GateResult:
        """Return a call that its session accepted, or the result of a call whose capability does not exist."""
        known = self._find_parts().catalog.capability(capability)
        if known is None:
            return result_of_unknown(capability)
        unknown = next((name for name in inputs if name not in known.inputs), None)
        if unknown is not None:
            return result_of_unknown_argument(capability, unknown)
        running = self._find_session(session)
        ticket = running.call(known.id, known.id, inputs, key)
        return _BegunCall(running, ticket, self._options.shadow)

    def _missed_error(self) -> BaseException:
        """Return the error for a call that no run accepted."""
        if self._bugs:
            return self._bugs[-1]
        return OverloadedError("call.overloaded", "the session is ending", left=False)

    # -- sessions -----------------------------------------------------------------------------------------------------

    def session(self, name: str) -> GateSession:
        """Return a context manager, for `with` and `async with`.

        Inside the block, calls without a session name use this session.
        At its end the session is sealed.
        """
        return GateSession(self, name)

    def episode_id(self, session: str | None = None) -> str:
        """Return the id of the episode of a session that has not ended. Empty before its first call."""
        running = self._sessions.get(_session_name(session))
        return running.episode_id if running else ""

    def end(self, session: str | None = None) -> str:
        """Seal the episode of a session and return its id; blocks meanwhile. Empty if the session made no call.

        Calls that wait for a person end, running ones have 5 seconds. A later call begins another episode.
        """
        with self._lock:
            running = self._sessions.pop(_session_name(session), None)
        if running is None:
            return ""
        running.close("client")
        return running.episode_id

    def close(self) -> None:
        """End all sessions, and make no further call. It happens at the end of the process, too."""
        atexit.unregister(self.close)
        with self._lock:
            self._is_closed, ended = True, list(self._sessions.values())
            self._sessions.clear()
        for running in ended:
            running.close("client")
        give_back_streams(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _find_session(self, name: str) -> GatewaySession:
        """Return the session of a name, which a call may begin."""
        parts = self._find_parts()
        with self._lock:
            if self._is_closed:
                raise OverloadedError("call.overloaded", "the gate is closed", left=False)
            running = self._sessions.get(name)
            if running is None:
                plan = SessionPlan(
                    parts.catalog, self._options, name, "api", intercept=parts.caller
                )
                running = GatewaySession(self._settings, plan, self._bugs.append)
                self._sessions[name] = running
            return running

    def _find_parts(self) -> _SessionParts:
        """Return the common parts of all sessions. After this call no function can be added."""
        with self._lock:
            if self._parts is None:
                own = list(self._functions.values())
                catalog = with_tools(with_functions(self._read_catalog(), own), ())
                self._parts = _SessionParts(catalog, FunctionCaller(own, catalog))
            return self._parts

    def _read_catalog(self) -> Catalog:
        registry = open_registry(self._settings)
        return reach_pack(
            registry, self._options.pack, also=self._functions, added_packs=self._options.with_packs
        )


class GateSession:
    """A session of a gate for a block of code."""

    def __init__(self, gate: Gate, name: str) -> None:
        self._gate, self.name = gate, _require_name(name)
        self._tokens: list[Token[str]] = []
        self._sealed = ""

    @property
    def episode_id(self) -> str:
        """The id of the session's episode. Empty before its first call."""
        return self._sealed or self._gate.episode_id(self.name)

    def __enter__(self) -> Self:
        self._tokens.append(_CURRENT.set(self.name))
        return self

    def __exit__(self, *raised: object) -> None:
        _CURRENT.reset(self._tokens.pop())
        self._sealed = self._gate.end(self.name)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *raised: object) -> None:
        _CURRENT.reset(self._tokens.pop())
        self._sealed = await asyncio.to_thread(self._gate.end, self.name)


class _SessionParts(NamedTuple):
    """The catalog of all sessions of a gate, and the caller of its functions."""

    catalog: Catalog
    caller: FunctionCaller


class _BegunCall(NamedTuple):
    """A call that a session has accepted."""

    session: GatewaySession
    ticket: CallTicket
    is_shadow: bool

    def finish(self) -> GateResult | None:
        """Return the current result of the call, and mark it as collected. None for a call that the session missed."""
        episode = self.session.episode_id
        if not self.ticket.is_over:
            found = result_from_pending(self.ticket, episode)
            return found._replace(is_shadow=self.is_shadow)
        result = self.ticket.future.result()
        self.session.collect(self.ticket)
        if result is None:
            return None
        return result_from_call(result, episode)._replace(is_shadow=self.is_shadow)


def _settings_maker(project: SettingsSource | str | os.PathLike[str]) -> Callable[..., Settings]:
    """Return the function that makes the settings of a project."""
    if not isinstance(project, str | os.PathLike):
        return project.make_settings
    if not os.path.isdir(project):
        text = f"`{os.fspath(project)}` is not a directory"
        raise UsageError("usage.value", text, expected="a directory")
    base = os.path.abspath(project)
    return lambda **flags: Settings(flags, os.environ, base=base)


def _wait_until_over(ticket: CallTicket, seconds: float) -> None:
    """Wait until a call is over, or for a limited number of seconds if it waits for a person."""
    until = time.monotonic() + seconds
    while not ticket.is_over:
        either: list[Future[Any]] = [ticket.future, ticket.requested]
        wait_for(either, return_when=FIRST_COMPLETED)
        wait_for((ticket.future,), timeout=max(0.0, until - time.monotonic()))
        if ticket.approval_id:
            return


async def _await_until_over(ticket: CallTicket, seconds: float) -> None:
    """Wait as `_wait_until_over` does, without blocking the event loop. The call is never cancelled."""
    until, over = time.monotonic() + seconds, asyncio.wrap_future(ticket.future)
    while not over.done():
        asked = asyncio.wrap_future(ticket.requested)
        either: list[asyncio.Future[Any]] = [over, asked]
        await asyncio.wait(either, return_when=FIRST_COMPLETED)
        await asyncio.wait([over], timeout=max(0.0, until - time.monotonic()))
        if ticket.approval_id:
            return


def _session_name(given: str | None) -> str:
    """Return the session of a call: the given one, else that of the context."""
    return _CURRENT.get() if given is None else _require_name(given)


def _require_name(name: str) -> str:
    """Return the name of a session. Raise UsageError for one that cannot be used."""
    if not _NAME.fullmatch(name):
        text = f"the session `{name[:60]}`"
        raise UsageError("usage.value", text, expected="letters, digits and `._@-`, at most 64")
    return name


def _plain_inputs(inputs: Mapping[str, Any]) -> Json:
    """Return inputs as plain JSON, as a copy. Raise UsageError `input.json`."""
    try:
        plain: Json = to_plain_json(dict(inputs))
    except (NotJson, TypeError, ValueError) as error:
        raise UsageError(
            "input.json", f"the inputs of a call: {error}", hint="give JSON values"
        ) from error
    return plain
