"""cogcli from Python: open a project, list and run its skills, resume runs, read episodes
(docs/reference/api.md).

The use cases are those of the commands. Nothing here prints, prompts, exits or changes the process.
Each error of a command is raised as CogcliError; `cogcli explain` describes its `code`. A run that
fails raises nothing: `SkillRun` holds its outcome."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from cogcli.app import approvals, episodes, resume
from cogcli.app.file_scope import with_file_scope
from cogcli.app.inventory.kinds import list_specs, spec_details, whole_view
from cogcli.app.live_run import LiveRun, await_run
from cogcli.app.python_options import read_options, to_plain_input
from cogcli.app.registry import untrusted_warning
from cogcli.app.run_skill import build_options, environment_of, resolve_pack_option
from cogcli.app.settings import Settings
from cogcli.app.settings.owner_key import find_key
from cogcli.app.signed_answers import sign_answers
from cogcli.app.state_document import (
    expand_references,
    iterate_shown_events,
    parse_state,
    read_stored_state,
)
from cogcli.app.verify_episodes import judge_answer, verify_episode
from cogcli.app.wings import INVOKE_AGENT
from cogcli.base.errors import CogcliError, UnusableEnvironment, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.api_options import Options
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import ApprovalRequested, InputRequested
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow
from cogcli.episode.verify.trusted import TrustAnchors
from cogcli.run.form_answers import FormAnswer
from cogcli.run.given_inputs import RequestedRun, prepare_given
from cogcli.run.input_origins import CALLER, TYPED
from cogcli.run.launch import launch
from cogcli.run.log_index import LogIndex
from cogcli.run.prepare import PreparedRun, RunRequest
from cogcli.run.results import Control, RunResult
from cogcli.run.resume import ResumeRequest

if TYPE_CHECKING:
    from cogcli.gate import CallRefused, Gate, GateResult, GateSession

__all__ = [
    "CallRefused",
    "CogcliError",
    "Control",
    "Episode",
    "EpisodeRow",
    "Event",
    "Gate",
    "GateResult",
    "GateSession",
    "InputRequested",
    "LiveRun",
    "OpenApproval",
    "Options",
    "Project",
    "RunFailed",
    "SkillRun",
]  # fmt: skip

Listener = Callable[[Event], None]


def __getattr__(name: str) -> Any:
    """Return a class of `cogcli.gate`, which is loaded when it is first used."""
    if name in ("CallRefused", "Gate", "GateResult", "GateSession"):
        return getattr(importlib.import_module("cogcli.gate"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class RunFailed(Exception):
    """The error that `SkillRun.require` raises if the status is neither `ok` nor `partial`.

    `run` is that run.
    """

    def __init__(self, run: SkillRun) -> None:
        error = run.error or {}
        super().__init__(
            f"{run.status}: {error.get('code', '')}: {error.get('message', '')}".rstrip(": ")
        )
        self.run = run


class OpenApproval(NamedTuple):
    """An approval that a run waits for. `input` is the input of the call, with secrets masked."""

    approval_id: str
    capability: str
    step: str
    reason: str
    input: Json | None
    gate: str | None
    roles: tuple[str, ...]
    expires_at: str | None
    episode: str = ""
    """The id of the episode that waits."""
    signed: bool = False
    """Whether only a signed answer is valid. Pass `sign` to `Project.resume` then."""


class Episode:
    """A run on disk, finished or not. Each method reads the files again.

    `directory` of an archived episode does not exist; its files are read from the archive."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.id = directory.name

    def events(self) -> Iterator[Event]:
        """Return the events in the order of the log. Raise CogcliError `episode.unreadable`."""
        return iterate_shown_events(self.directory)

    @property
    def state(self) -> Json:
        """Return the document of `state.json`, with large values read from their files.

        Raise CogcliError `episode.unreadable`, also if the run has no `state.json` yet."""
        data = read_stored_state(self.directory)
        if data is None:
            raise UnusableEnvironment("episode.unreadable", f"`{self.id}` has no state.json yet")
        return expand_references(parse_state(data, self.directory), self.directory)

    @property
    def waits_for(self) -> list[OpenApproval]:
        """Return the approvals that the run waits for; an empty list if it waits for none."""
        open_requests = LogIndex(self.events()).open_requests
        return [_approval_from_event(event, self.id) for event in open_requests]

    @property
    def input_requests(self) -> list[InputRequested]:
        """Return the open input requests of services: `step_id`, `service`, `capability`, and `forms`.

        Each form has its `message` and the JSON Schema of an answer as `schema`. `Project.resume` takes the answers.
        """
        return [InputRequested.of(event.payload) for event in LogIndex(self.events()).open_inputs]

    def findings(self, *, key: str | None = None, head: str | None = None) -> list[Json]:
        """Return the findings of `cogcli verify`: objects with `severity`, `code`, `file`, `line`
        and `message`.

        If no finding has the severity `error`, the episode is unaltered."""
        judge = partial(judge_answer, Settings({}, os.environ))
        trusted = TrustAnchors(key, head, find_key(os.environ), judge_answer=judge)
        return [finding._asdict() for finding in verify_episode(self.directory, trusted).findings]

    def __repr__(self) -> str:
        return f"Episode({str(self.directory)!r})"


class SkillRun(NamedTuple):
    """The result of a run.

    `status` is `ok`, `partial`, `error`, `vetoed`, `pending` or `aborted`. `exit_code` is the exit code of the command.
    `outputs` are the outputs of the skill if the status is `ok` or `partial`, else None. `error` is the object of the
    envelope (`code`, `message`, `step`, ...). `warnings` are objects with `code` and `message`, for example for an
    untrusted project that was ignored, or for a hook that failed.
    """

    status: str
    exit_code: int
    outputs: Json | None
    error: Json | None
    metrics: Json
    episode: Episode
    warnings: tuple[Json, ...] = ()

    def require(self) -> Json:
        """Return the outputs. Raise RunFailed if the run has none."""
        if self.status not in ("ok", "partial"):
            raise RunFailed(self)
        return self.outputs or {}


@contextmanager
def _add_hint_as_note() -> Iterator[None]:
    """Add the hint of a raised error to it as a note, which a traceback displays below the message.

    The note is added only here: before, the hint may still change, and its secrets are not masked
    yet.
    """
    try:
        yield
    except CogcliError as error:
        if error.hint and not hasattr(error, "__notes__"):
            error.add_note(f"help: {error.hint}")
        raise


class Project:
    """The project that contains a directory. Without a project, only the shipped skills are available.

    `registry` are additional registry roots; `runs_dir` is the folder of the episodes. Several threads may use one
    instance: each run has its own settings. Trust is decided as for the commands, by `cogcli config trust` or
    `COGCLI_TRUST_PROJECT`. Raise UsageError if the directory does not exist.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] = ".",
        *,
        registry: Iterable[str | os.PathLike[str]] = (),
        runs_dir: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if not os.path.isdir(directory):
            raise UsageError(
                "usage.value",
                f"`{os.fspath(directory)}` is not a directory",
                expected="a directory",
            )
        flags: Json = {}
        if roots := [os.path.abspath(root) for root in registry]:
            flags["registry"] = roots
        if runs_dir is not None:
            flags["runs_dir"] = os.path.abspath(runs_dir)
        self._flags = flags
        self._environ = os.environ if environ is None else environ
        self._base = os.path.abspath(directory)

    def make_settings(self, **flags: object) -> Settings:
        """Return new settings with these flags, for other parts of this interface."""
        return Settings({**self._flags, **flags}, self._environ, base=self._base)

    # -- skills -------------------------------------------------------------------------------------------------------

    @_add_hint_as_note()
    def skills(self, *, usable: bool = False) -> list[Json]:
        """Return the rows of `cogcli skills ls --json`, sorted by id; with `usable` only the skills
        that can run here."""
        return list_specs(whole_view(self.make_settings()), "skills", usable=usable)

    @_add_hint_as_note()
    def skill(self, skill_id: str) -> Json:
        """Return the object of `cogcli skills show`: inputs, outputs, steps. Raise CogcliError
        `skill.not-found`."""
        return spec_details(self.make_settings(), "skills", skill_id)

    @_add_hint_as_note()
    def run(
        self,
        skill_id: str,
        inputs: Mapping[str, object] | None = None,
        *,
        on_event: Listener | None = None,
        control: Control | None = None,
        **options: Unpack[Options],
    ) -> SkillRun:
        """Run a skill to its end, or until it waits for a person; blocks meanwhile.

        A `Path` among the inputs becomes a text; a relative one starts in the directory of the
        project. `on_event` is called in this thread with each event that is on disk.
        `control.cancel("SIGINT")`, from another thread, stops the run as Ctrl-C does. Raise
        CogcliError if the run cannot start; then nothing ran and nothing was written."""
        settings, given = self._read_request(skill_id, inputs or {}, options)
        environment = environment_of(settings)
        catalog = environment.open_registry().reach(skill_id, packs=given.request.pack_refs)
        prepared = prepare_given(catalog, given, environment.environ)
        warnings = _warnings_from_error(untrusted_warning(settings, "skill", skill_id))
        warnings += [problem.to_payload() for problem in prepared.warnings]
        return _run_from_result(
            launch(environment, prepared, listener=on_event, control=control), warnings
        )

    async def arun(
        self, skill_id: str, inputs: Mapping[str, object] | None = None, *,
        on_event: Listener | None = None, **options: Unpack[Options],
    ) -> SkillRun:  # fmt: skip
        """Run a skill as `run` does, in a thread. Cancelling the task stops the run as Ctrl-C does, and waits for its
        end. `on_event` is called in that thread."""
        control = Control()
        run = partial(self.run, skill_id, inputs, on_event=on_event, control=control, **options)
        return await await_run(run, control)

    def start(
        self,
        skill_id: str,
        inputs: Mapping[str, object] | None = None,
        **options: Unpack[Options],
    ) -> LiveRun[SkillRun]:
        """Begin a run in a thread, and return it immediately. `async for` yields its events, and `await` returns its
        SkillRun or raises the errors of `run`. Needs a running event loop.
        """
        control = Control()
        return LiveRun(
            lambda listener: self.run(
                skill_id, inputs, on_event=listener, control=control, **options
            ),
            control,
        )

    @_add_hint_as_note()
    def invoke(
        self,
        request: str | Mapping[str, object],
        *,
        memory: bool = True,
        model: str = "",
        mode: str = "adapt",
        on_event: Listener | None = None,
        control: Control | None = None,
        **options: Unpack[Options],
    ) -> SkillRun:
        """Run an agent for one request, as `cogcli agent invoke` does; blocks meanwhile.

        `request` is the text of the message, or the object of a request file. Without `memory`, no stored data about
        the user is read or written. `model` is `ADAPTER[:NAME]`, `mode` is `fast`, `deep` or `adapt`. Work after the
        answer, such as updating the user's profile, is complete when this returns. Raise CogcliError if the run cannot
        start.
        """
        raw = to_plain_input(
            "request", {"message": request} if isinstance(request, str) else request
        )
        settings, given_options = read_options(self.make_settings, options)
        listener = on_event or _ignore_event
        warnings: list[Json] = []

        def watch(prepared: PreparedRun, _: Control) -> AbstractContextManager[Listener]:
            warnings.extend(problem.to_payload() for problem in prepared.warnings)
            return nullcontext(listener)

        result = INVOKE_AGENT(
            settings,
            raw,
            build_options(settings, given_options),
            watch,
            control or Control(),
            memory=memory,
            model=model,
            mode=mode,
        )
        return _run_from_result(result, warnings)

    async def ainvoke(
        self, request: str | Mapping[str, object], *, memory: bool = True, model: str = "",
        mode: str = "adapt", on_event: Listener | None = None, **options: Unpack[Options],
    ) -> SkillRun:  # fmt: skip
        """Run an agent as `invoke` does, in a thread. Cancelling the task stops the run as Ctrl-C does."""
        control = Control()
        run = partial(
            self.invoke, request, memory=memory, model=model, mode=mode, on_event=on_event,
            control=control, **options,
        )  # fmt: skip
        return await await_run(run, control)

    def _read_request(
        self, skill_id: str, inputs: Mapping[str, object], options: Options
    ) -> tuple[Settings, RequestedRun]:
        """Return the settings and the request of a run. Raise UsageError for invalid inputs or
        options.
        """
        plain = to_plain_input("inputs", inputs, self._base)
        settings, given = read_options(self.make_settings, options)
        request = RunRequest(
            skill_id=skill_id,
            inputs=plain,
            options=resolve_pack_option(settings, build_options(settings, given), skill_id),
            origins={name: _find_origin(value) for name, value in inputs.items()},
        )
        return settings, with_file_scope(settings, RequestedRun(request, (), ()))

    @_add_hint_as_note()
    def resume(
        self,
        episode: str | Episode,
        *,
        approve: Sequence[str] = (),
        reject: Sequence[str] = (),
        by: str = "",
        reason: str = "",
        sign: str = "",
        answers: Mapping[str, Json | None] | None = None,
        abort: bool = False,
        timeout: float | None = None,
        head: str = "",
        on_event: Listener | None = None,
        control: Control | None = None,
    ) -> SkillRun:
        """Continue a waiting or interrupted run in its own episode. Raise CogcliError as the command does.

        `approve` and `reject` contain ids of approvals, capabilities or gates. `by` is the approver, `NAME` or
        `NAME:ROLE`. `sign` is the file of the SSH key that signs the answers. `answers` maps the step ids of input
        requests to the values by field, or to None to decline. `timeout` is a new time limit in seconds from now on.
        `head` is the hash of the last event; it vouches for a log that another machine or user wrote.
        """
        inner, settings, directory = (
            control or Control(),
            self.make_settings(),
            self.episode(episode).directory,
        )
        request = ResumeRequest(
            tuple(approve),
            tuple(reject),
            by,
            reason,
            abort=abort,
            head=head,
            timeout=timeout,
            inputs=tuple(FormAnswer(step, content) for step, content in (answers or {}).items()),
        )
        if sign:
            signed = sign_answers(settings, directory, approve, reject, by, sign)
            request = request._replace(signatures=signed)
        warnings = [] if abort else _warnings_from_error(resume.find_warning(settings, directory))
        result = resume.resume(
            settings, directory, request, listener=on_event or _ignore_event, control=inner
        )
        return _run_from_result(result, warnings)

    async def aresume(
        self, episode: str | Episode, *, approve: Sequence[str] = (), reject: Sequence[str] = (),
        by: str = "", reason: str = "", sign: str = "", answers: Mapping[str, Json | None] | None = None,
        abort: bool = False, timeout: float | None = None, head: str = "", on_event: Listener | None = None,
    ) -> SkillRun:  # fmt: skip
        """Continue a run as `resume` does, in a thread. Cancelling the task stops the run as Ctrl-C does."""
        control = Control()
        run = partial(
            self.resume, episode, approve=approve, reject=reject, by=by, reason=reason, sign=sign,
            answers=answers, abort=abort, timeout=timeout, head=head, on_event=on_event, control=control,
        )  # fmt: skip
        return await await_run(run, control)

    @_add_hint_as_note()
    def approvals(self) -> list[OpenApproval]:
        """Return the approvals that the runs of the project wait for, those of the newest first.

        Raise CogcliError `episode.unreadable` if the log of a waiting run cannot be read."""
        waiting = approvals.list_requests(self.make_settings(), _raise_error)
        directories = dict.fromkeys(request.directory for request in waiting)
        return [asked for directory in directories for asked in Episode(directory).waits_for]

    # -- episodes -----------------------------------------------------------------------------------------------------

    @_add_hint_as_note()
    def episode(self, name: str | os.PathLike[str] | Episode = "@last") -> Episode:
        """Return an episode by id, prefix, `@last`, `@failed`, trace id or directory. Raise
        CogcliError `episode.unknown` or `episode.ambiguous`."""
        if isinstance(name, Episode):
            return name
        return Episode(episodes.find(self.make_settings(), os.fspath(name)))

    @_add_hint_as_note()
    def episodes(
        self, *, skill: str | None = None, outcome: str | None = None, tags: Mapping[str, str] | None = None,
        trace_id: str | None = None, limit: int | None = 20,
    ) -> list[EpisodeRow]:  # fmt: skip
        """Return the rows of the episodes, newest first, at most `limit`."""
        wanted = EpisodeFilter(
            skill, (outcome,) if outcome else (), trace_id, tuple((tags or {}).items())
        )
        return episodes.list_episodes(self.make_settings(), wanted, limit)


def _find_origin(value: object) -> str:
    """Return the origin of an input. A text may come from a client of the caller, but a `Path` does not."""
    is_path_list = isinstance(value, list | tuple) and all(isinstance(each, Path) for each in value)
    return TYPED if isinstance(value, Path) or (value and is_path_list) else CALLER


def _warnings_from_error(error: CogcliError | None) -> list[Json]:
    """Return the warning about an untrusted project as a list; empty without one."""
    return [] if error is None else [{"code": error.code, "message": error.message}]


def _run_from_result(result: RunResult, warnings: Sequence[Json]) -> SkillRun:
    outputs = result.outputs if result.status in ("ok", "partial") else None
    episode = Episode(Path(result.directory))
    failed_hooks = [{"code": each.code, "message": each.message} for each in result.warnings]
    return SkillRun(
        result.status,
        result.exit_code,
        outputs,
        result.error,
        result.metrics,
        episode,
        (*warnings, *failed_hooks),
    )


def _approval_from_event(event: Event, episode_id: str) -> OpenApproval:
    request = read_record(ApprovalRequested, event.payload)
    return OpenApproval(
        request.approval_id,
        request.capability or "",
        request.step_id or "",
        request.reason or "",
        request.input,
        request.gate,
        tuple(request.approver_roles or ()),
        request.expires_at,
        episode_id,
        bool(request.signed),
    )


def _ignore_event(event: Event) -> None:
    pass


def _raise_error(error: CogcliError) -> None:
    raise error
