"""Hooks: commands of the settings that get a message when a run waits, fails or ends
(docs/reference/execution.md#hooks).

1. A hook is started after the episode is written and its log is released, so that it can read and answer.
2. The message is built from the log alone, in which secrets are masked.
3. A request is sent once: one that an earlier session of the run has paused for is not in the message.
4. A relative path belongs to the folder of the file that declares the hook, and so does the working directory: a
   foreign project offers no program to a hook of the user.
5. A hook changes no result. A hook that fails is a warning.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import orjson

from cogcli.app.settings import Settings
from cogcli.app.settings.config import HOOK_TIMEOUT
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.search_path import absolute_entries
from cogcli.base.source_lines import hide_secrets
from cogcli.base.terminal_text import visible
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import RunPaused, RunResumed, RunStarted, RunTerminated
from cogcli.declarations.governance_events import InputRequested
from cogcli.declarations.hook_message import (
    HookArgument,
    HookError,
    HookInput,
    HookMessage,
    HookRequest,
)
from cogcli.declarations.options import HOOKS
from cogcli.declarations.reading import read_record
from cogcli.episode.log_reader import iterate_events
from cogcli.protocols.invoker import inherited_variables
from cogcli.report.approval_view import ApprovalView, view_request
from cogcli.run.log_index import LogIndex
from cogcli.run.results import RunResult

MARK: Final = "COGCLI_HOOK"
"""The variable that is set within a hook: a run that a hook starts calls no hooks."""
_SHOWN: Final = 200


class Hook(NamedTuple):
    """A command of the settings, and the file that declares it."""

    name: str
    command: tuple[str, ...]
    folder: str
    """The working directory, and the folder of relative paths."""
    file: str
    line: int
    timeout: float

    @property
    def place(self) -> str:
        return f"`hooks.{self.name}` ({self.file}:{self.line})"


class Hooks:
    """The hooks of a command's settings."""

    def __init__(self, settings: Settings, hooks: Mapping[str, Hook]) -> None:
        self._settings = settings
        self._hooks = hooks

    def send(self, result: RunResult) -> tuple[CogcliError, ...]:
        """Call the hooks for the end or the pause of a run, and return a warning for each that failed."""
        names = _names_for(result)
        if not any(name in self._hooks for name in names):
            return ()
        try:
            message = self._build_message(result)
        except CogcliError as error:
            return (UnusableEnvironment("hook.failed", f"no hook was called: {error.message}"),)
        if result.status == "pending" and not (
            message.requests or message.in_doubt or message.input_requests
        ):
            return ()
        called = [self._hooks[name] for name in names if name in self._hooks]
        found = (self._call_hook(hook, message) for hook in called)
        return tuple(each for each in found if each is not None)

    def _build_message(self, result: RunResult) -> HookMessage:
        log = _RunLog(Path(result.directory))
        now = self._settings.clock.now()
        skill = result.finished.state.skill_id
        views = [view_request(each, skill=skill, now=now) for each in log.new_requests()]
        return HookMessage(
            schema_version="hook/1",
            hook="on_end",
            at=log.last_at,
            episode_id=result.episode_id,
            run_id=result.run_id,
            trace_id=result.trace_id,
            skill=skill,
            directory=result.directory,
            project=self._settings.project or "",
            tags=log.tags,
            status=result.status,
            exit_code=result.exit_code,
            requests=[_hook_request(each) for each in views],
            in_doubt=log.new_doubts(),
            input_requests=log.new_inputs(),
            error=log.error(),
        )

    def _call_hook(self, hook: Hook, message: HookMessage) -> CogcliError | None:
        text = orjson.dumps(message.replace(hook=hook.name).json)
        environ = {
            **inherited_variables(self._settings.environ),
            "PATH": _search_path(self._settings.environ),
            MARK: hook.name,
        }
        reason = _run_command(hook, text, environ)
        if not reason:
            return None
        return UnusableEnvironment(
            "hook.failed",
            f"{hook.place}: {reason}; the run is not affected",
            file=hook.file,
            line=hook.line,
        )


def find_hooks(settings: Settings) -> Hooks | None:
    """Return the hooks that the settings declare. None without hooks, and inside a running hook. Raise the errors of
    `Settings.value`.
    """
    if settings.environ.get(MARK):
        return None
    timeout = float(settings.value(HOOK_TIMEOUT))
    found = {}
    for name in HOOKS:
        key = f"hooks.{name}"
        file = settings.find_file(key)
        if file is not None and settings.value(key):
            command = tuple(settings.value(key))
            folder = os.path.dirname(file.path)
            found[name] = Hook(name, command, folder, file.shown, file.lines[key], timeout)
    return Hooks(settings, found) if found else None


def _names_for(result: RunResult) -> tuple[str, ...]:
    """Return the hooks for the end or the pause of a run, in order."""
    if result.status == "pending":
        return ("on_pause",)
    return ("on_failure", "on_end") if result.exit_code else ("on_end",)


class _RunLog:
    """The parts of a run's log that a message needs."""

    def __init__(self, directory: Path) -> None:
        self._announced = -1
        """The position of the last pause of an earlier session."""
        self._pause = -1
        self._started: Event | None = None
        self._end: Event | None = None
        self.last_at = ""
        self._log = LogIndex(self._watch_events(iterate_events(directory)))

    def _watch_events(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            self._started = self._started or event
            self.last_at = event.timestamp
            if event.event_type == RunPaused.event.name:
                self._pause = event.seq or 0
            elif event.event_type == RunResumed.event.name:
                self._announced = self._pause
            elif event.phase == "terminate" and event.run_id == self._started.run_id:
                self._end = event
            yield event

    @property
    def tags(self) -> dict[str, object]:
        """The tags of the run."""
        return dict(read_record(RunStarted, self._started.payload).tags) if self._started else {}

    def new_requests(self) -> list[Event]:
        """Return the open requests that no earlier session has paused for."""
        return [each for each in self._log.open_requests if self._is_new(each)]

    def new_doubts(self) -> list[str]:
        """Return the steps of the calls in doubt that no earlier session has paused for."""
        return [each.step_id or "" for each in self._log.open_doubts if self._is_new(each)]

    def new_inputs(self) -> list[HookInput]:
        """Return the requests of services for input that no earlier session has paused for."""
        new = [each for each in self._log.open_inputs if self._is_new(each)]
        asked = [InputRequested.of(each.payload) for each in new]
        return [
            HookInput(step=each.step_id, service=each.service, message=each.reason)
            for each in asked
        ]

    def _is_new(self, event: Event) -> bool:
        return (event.seq or 0) > self._announced

    def error(self) -> HookError | None:
        """Return the recorded error of a run that ended."""
        error = RunTerminated.of(self._end.payload).error if self._end else None
        if error is None:
            return None
        return HookError(code=error.code, message=error.message, step=error.step or "")


def _hook_request(view: ApprovalView) -> HookRequest:
    arguments = [
        HookArgument(name=each.name, text=each.screen_text(in_full=False), decides=each.decides)
        for each in view.arguments
    ]
    return HookRequest(
        approval_id=view.approval_id,
        action=view.action,
        step=view.step,
        gate=view.gate,
        rule=view.rule,
        reason=view.reason,
        roles=list(view.roles),
        requested_at=view.requested_at,
        expires_at=view.expires_at,
        arguments=arguments,
        approve=view.approve_command,
        reject=view.reject_command,
    )


def _search_path(environ: Mapping[str, str]) -> str:
    """Return the folders of programs, without those that depend on the working directory."""
    return absolute_entries(environ.get("PATH") or os.defpath)


def _run_command(hook: Hook, text: bytes, environ: Mapping[str, str]) -> str:
    """Run a hook to its end or its deadline. Return why it failed; empty if it did not."""
    command = hook.command[0]
    named = os.path.join(hook.folder, command) if os.path.dirname(command) else command
    path = shutil.which(named, path=environ["PATH"])
    if path is None:
        return f"program `{visible(command)}` is not found, or may not be started"
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as errors:
        source.write(text)
        source.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603
                [path, *hook.command[1:]],
                stdin=source,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=hook.folder,
                env=dict(environ),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return f"`{visible(command)}` cannot be started: {reason}"
        try:
            code = process.wait(hook.timeout)
        except subprocess.TimeoutExpired:
            return f"`{_show_command(hook)}` took longer than {hook.timeout:g} s and was killed"
        finally:
            if process.returncode is None:
                _kill_group(process)
        if not code:
            return ""
        printed = _last_line(errors)
        return f"`{_show_command(hook)}` ended with {code}{': ' + printed if printed else ''}"


def _show_command(hook: Hook) -> str:
    return visible(shlex.join(hook.command))[:_SHOWN]


def _last_line(errors: IO[bytes]) -> str:
    """Return the last line that a program wrote to stderr, without secrets."""
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4096))
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return hide_secrets(visible(lines[-1]))[:_SHOWN] if lines else ""


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program with its process group, which has its number, and wait for its end."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
