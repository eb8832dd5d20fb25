"""cogcli from Python: open a project, list and run its skills, resume runs, read episodes (docs/reference/api.md).

The use cases are those of the commands. Nothing here prints, asks, exits or changes the process; what a command would
refuse is raised as CogcliError, whose `code` `cogcli explain` knows. How a run ended is no exception: see `SkillRun`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from cogcli.app import episodes, resume
from cogcli.app.inventory.kinds import list_specs, spec_details, whole_view
from cogcli.app.registry import untrusted_warning
from cogcli.app.run_skill import environment_of, options_of, with_pack
from cogcli.app.settings import Settings
from cogcli.app.settings.owner_key import find_key
from cogcli.app.state_document import (
    expand_references,
    iterate_shown_events,
    parse_state,
    read_stored_state,
)
from cogcli.app.verify_episodes import verify_episode
from cogcli.base.errors import CogcliError, EnvironmentRefusal, UsageError
from cogcli.base.jsonvalue import NotJson, preview, to_plain_json
from cogcli.base.problems import suggestion
from cogcli.declarations.api_options import Options
from cogcli.declarations.envelope import Event
from cogcli.declarations.options import OPTIONS
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow
from cogcli.episode.verify.trusted import Trusted
from cogcli.run.given_inputs import GivenRun, prepare_given
from cogcli.run.input_origins import TYPED
from cogcli.run.launch import launch
from cogcli.run.log_index import LogIndex
from cogcli.run.prepare import RunRequest
from cogcli.run.results import Control, RunResult
from cogcli.run.resume import ResumeRequest

__all__ = [
    "CogcliError",
    "Control",
    "Episode",
    "EpisodeRow",
    "Event",
    "OpenApproval",
    "Options",
    "Project",
    "RunFailed",
    "SkillRun",
]  # fmt: skip

Listener = Callable[[Event], None]


class RunFailed(Exception):
    """Raised by `SkillRun.require` for a run that did not end `ok` or `partial`; `run` is that run."""

    def __init__(self, run: SkillRun) -> None:
        error = run.error or {}
        super().__init__(
            f"{run.status}: {error.get('code', '')}: {error.get('message', '')}".rstrip(": ")
        )
        self.run = run


class OpenApproval(NamedTuple):
    """An open question of a run that waits. `input` is what would be sent, secrets masked."""

    approval_id: str
    capability: str
    step: str
    reason: str
    input: Any
    gate: str | None
    roles: tuple[str, ...]
    expires_at: str | None


class Episode:
    """A run on disk, finished or not. It is read anew by each call."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.id = directory.name

    def events(self) -> Iterator[Event]:
        """The events in the order of the log. Raises CogcliError `episode.unreadable`."""
        return iterate_shown_events(self.directory)

    @property
    def state(self) -> dict[str, Any]:
        """The document of `state.json`, large values read from their files. Raises CogcliError `episode.unreadable`,
        also for a run that has none yet."""
        data = read_stored_state(self.directory)
        if data is None:
            raise EnvironmentRefusal("episode.unreadable", f"`{self.id}` has no state.json yet")
        return expand_references(parse_state(data, self.directory), self.directory)

    @property
    def waits_for(self) -> list[OpenApproval]:
        """The approvals that the run waits for; empty for one that waits for none."""
        return [_approval(event) for event in LogIndex(self.events()).open_requests]

    def findings(self, *, key: str | None = None, head: str | None = None) -> list[dict[str, Any]]:
        """What `cogcli verify` finds: objects with `severity`, `code`, `file`, `line`, `message`. Nothing was altered
        where none has the severity `error`."""
        trusted = Trusted(key, head, find_key(os.environ))
        return [finding._asdict() for finding in verify_episode(self.directory, trusted).findings]

    def __repr__(self) -> str:
        return f"Episode({str(self.directory)!r})"


class SkillRun(NamedTuple):
    """How a run ended. `status` is `ok`, `partial`, `error`, `vetoed`, `pending` or `aborted`; `exit_code` is that of
    the command; `outputs` are those of the skill where it is `ok` or `partial`, else None; `error` is the object of the
    envelope (`code`, `message`, `step`, ...); `warnings` are objects with `code` and `message`, such as the one that a
    project which is not trusted was left out."""

    status: str
    exit_code: int
    outputs: dict[str, Any] | None
    error: dict[str, Any] | None
    metrics: dict[str, Any]
    episode: Episode
    warnings: tuple[dict[str, Any], ...] = ()

    def require(self) -> dict[str, Any]:
        """The outputs. Raises RunFailed for a run without any."""
        if self.status not in ("ok", "partial"):
            raise RunFailed(self)
        return self.outputs or {}


@contextmanager
def _with_hint() -> Iterator[None]:
    """A refusal from inside has its hint as a note, which a traceback shows below the message. Only here: before, a
    hint may still be reworded, and what is secret in it is not masked yet."""
    try:
        yield
    except CogcliError as error:
        if error.hint and not hasattr(error, "__notes__"):
            error.add_note(f"help: {error.hint}")
        raise


class Project:
    """The project that a directory is in, or the shipped skills alone where it is in none.

    `registry` are more registry roots, `runs_dir` is where episodes are written. An instance may be used by several
    threads: each run has settings of its own. Whether a project may start code is decided as for the commands, by
    `cogcli config trust` or `COGCLI_TRUST_PROJECT`. Raises UsageError where there is no such directory.
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
        flags: dict[str, Any] = {}
        if roots := [os.path.abspath(root) for root in registry]:
            flags["registry"] = roots
        if runs_dir is not None:
            flags["runs_dir"] = os.path.abspath(runs_dir)
        self._flags = flags
        self._environ = os.environ if environ is None else environ
        self._base = os.path.abspath(directory)

    def _settings(self, **flags: Any) -> Settings:
        return Settings({**self._flags, **flags}, self._environ, base=self._base)

    # -- skills -------------------------------------------------------------------------------------------------------

    @_with_hint()
    def skills(self, *, usable: bool = False) -> list[dict[str, Any]]:
        """The rows of `cogcli skills ls --json`, by id; with `usable` only those that can run here."""
        return list_specs(whole_view(self._settings()), "skills", usable=usable)

    @_with_hint()
    def skill(self, skill_id: str) -> dict[str, Any]:
        """The object of `cogcli skills show`: inputs, outputs, steps. Raises CogcliError `skill.not-found`."""
        return spec_details(self._settings(), "skills", skill_id)

    @_with_hint()
    def run(
        self,
        skill_id: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        on_event: Listener | None = None,
        control: Control | None = None,
        **options: Unpack[Options],
    ) -> SkillRun:
        """Run a skill to its end, or until it waits for a person; blocks meanwhile.

        `on_event` is called with each event after it is on disk, in this thread. `control.cancel("SIGINT")`, from
        another thread, stops the run as Ctrl-C does. Raises CogcliError for what is wrong before it begins; then
        nothing ran and nothing was written.
        """
        settings, given = self._given_run(skill_id, _plain("inputs", inputs or {}), options)
        environment = environment_of(settings)
        catalog = environment.open_registry().reach(skill_id, pack=given.request.pack_ref)
        prepared = prepare_given(catalog, given, environment.environ)
        warnings = _warnings(untrusted_warning(settings, "skill", skill_id))
        warnings += [problem.to_payload() for problem in prepared.warnings]
        return _run_of(launch(environment, prepared, listener=on_event, control=control), warnings)

    def _given_run(
        self, skill_id: str, inputs: dict[str, Any], options: Options
    ) -> tuple[Settings, GivenRun]:
        _require_fitting(options)
        settings = self._settings(
            **{name: value for name, value in options.items() if OPTIONS[name].setting}
        )
        given = {**options, "frame": _plain("frame", options.get("frame", {}))}
        request = RunRequest(
            skill_id=skill_id,
            inputs=inputs,
            options=with_pack(settings, options_of(settings, given), skill_id),
            origins=dict.fromkeys(inputs, TYPED),
        )
        return settings, GivenRun(request, (), ())

    @_with_hint()
    def resume(
        self,
        episode: str | Episode,
        *,
        approve: Sequence[str] = (),
        reject: Sequence[str] = (),
        by: str = "",
        reason: str = "",
        abort: bool = False,
        timeout: float | None = None,
        head: str = "",
        on_event: Listener | None = None,
        control: Control | None = None,
    ) -> SkillRun:
        """Continue a run that waits or was cut off, in its own episode. `approve` and `reject` hold ids of approvals,
        capabilities or gates; `by` is who decides, `NAME` or `NAME:ROLE`; `timeout` is a new limit of time, in seconds
        from now on; `head` is the hash that the log ends with, for a log that you know and that is not known to be
        yours. Raises CogcliError as the command does."""
        request = ResumeRequest(
            tuple(approve), tuple(reject), by, reason, abort=abort, head=head, timeout=timeout
        )
        inner, settings, directory = (
            control or Control(),
            self._settings(),
            self.episode(episode).directory,
        )
        warnings = [] if abort else _warnings(resume.find_warning(settings, directory))
        result = resume.resume(
            settings, directory, request, listener=on_event or _ignore, control=inner
        )
        return _run_of(result, warnings)

    # -- episodes -----------------------------------------------------------------------------------------------------

    @_with_hint()
    def episode(self, name: str | os.PathLike[str] | Episode = "@last") -> Episode:
        """An episode by id, prefix, `@last`, `@failed`, trace id or directory. Raises CogcliError `episode.unknown`,
        `episode.ambiguous`."""
        if isinstance(name, Episode):
            return name
        return Episode(episodes.find(self._settings(), os.fspath(name)))

    @_with_hint()
    def episodes(
        self, *, skill: str | None = None, outcome: str | None = None, tags: Mapping[str, str] | None = None,
        trace_id: str | None = None, limit: int | None = 20,
    ) -> list[EpisodeRow]:  # fmt: skip
        """Rows of episodes, newest first, at most `limit`."""
        wanted = EpisodeFilter(
            skill, (outcome,) if outcome else (), trace_id, tuple((tags or {}).items())
        )
        return episodes.list_episodes(self._settings(), wanted, limit)


def _require_fitting(options: Mapping[str, Any]) -> None:
    """Raise UsageError `usage.flag` for an unknown option, `usage.value` for a value that it does not take."""
    for name, value in options.items():
        option = OPTIONS.get(name)
        if option is None:
            hint = suggestion(name, sorted(OPTIONS))
            raise UsageError("usage.flag", f"no option `{name}`", hint=hint)
        if not option.type.accepts(value):
            found = f"`{name}`: found {preview(value)}"
            raise UsageError("usage.value", found, expected=option.type.expected)


def _plain(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """What a run is given, as plain JSON that shares nothing with it. Raises UsageError `input.json`."""
    try:
        plain: dict[str, Any] = to_plain_json(dict(value))
    except (NotJson, TypeError, ValueError) as error:
        reason = (
            str(error)
            if isinstance(error, NotJson)
            else f"found {preview(value)}, expected a mapping"
        )
        raise UsageError("input.json", f"`{name}`: {reason}", hint="give JSON values") from error
    return plain


def _warnings(error: CogcliError | None) -> list[dict[str, Any]]:
    return [] if error is None else [{"code": error.code, "message": error.message}]


def _run_of(result: RunResult, warnings: Sequence[dict[str, Any]]) -> SkillRun:
    outputs = result.outputs if result.status in ("ok", "partial") else None
    episode = Episode(Path(result.directory))
    return SkillRun(
        result.status,
        result.exit_code,
        outputs,
        result.error,
        result.metrics,
        episode,
        tuple(warnings),
    )


def _approval(event: Event) -> OpenApproval:
    asked = event.payload
    return OpenApproval(
        asked["approval_id"], asked["capability"], asked["step_id"], asked["reason"], asked.get("input"),
        asked.get("gate"), tuple(asked.get("approver_roles") or ()), asked.get("expires_at"),
    )  # fmt: skip


def _ignore(event: Event) -> None:
    pass
