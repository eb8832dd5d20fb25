"""`run SKILL`: check everything, run, answer with the outputs (docs/reference/command-line.md#streams,
docs/reference/command-line.md#flags, docs/reference/command-line.md#inputs,
docs/reference/command-line.md#views)."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from cogcli.cli import inputs as given
from cogcli.cli.envelope import dumps
from cogcli.cli.progress import display_for
from cogcli.core.errors import OK, CogcliError, EnvironmentRefusal, SkillNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cogcli.app.run_skill import CheckedSkill, Control, RunRequest, RunResult
    from cogcli.cli.context import CommandContext
    from cogcli.cli.progress import Display
    from cogcli.events.envelope import Event
    from cogcli.specs.catalog import Catalog

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def execute(context: CommandContext) -> int:
    """Run the skill of the first word."""
    return run_skill(context, context.arguments.words[0])


def run_skill(
    context: CommandContext, skill_id: str, *, display: Display | None = None, answer: bool = True,
    after: Callable[[RunResult], None] | None = None,
) -> int:  # fmt: skip
    """Load, run and answer; shared with `trace SKILL`, which brings its own display and an epilogue."""
    from cogcli.app import run_skill as app

    request, loaded = _loaded(context, skill_id)
    for warning in loaded.warnings:
        context.warnings.append(warning.as_dict() if hasattr(warning, "as_dict") else warning)
    if context.arguments.on("--plan"):
        from cogcli.cli.plan import show_plan

        return show_plan(context, loaded.catalog, request)
    word = str(context.settings.value("progress"))
    display = display or display_for(context.screen, word, verbose=context.arguments.on("--verbose"))
    control, heard = app.Control(), DisplayListener(display)
    context.warn_of_shared_runs()
    context.screen.claim_stdout()
    try:
        with Signals(context, control, display):
            result = app.run(context.settings, loaded, request, listener=heard, control=control)
    except CogcliError as error:
        heard.place(error)
        raise
    finally:
        display.close()
    for text in result.leftovers:
        context.warn(EnvironmentRefusal("service.leftover", text))
    if result.status == "pending":
        from cogcli.cli.commands.resume import ask_person

        result, heard = ask_person(context, result, heard)
    tell(context, result, heard, after, answer=answer)
    return result.exit_code


def _loaded(context: CommandContext, skill_id: str) -> tuple[RunRequest, CheckedSkill]:
    """The request and the checked specs. Everything wrong with either is told together."""
    from cogcli.app import run_skill as app

    _check_id(skill_id)
    problems: list[CogcliError] = []
    options = options_of(context, problems)
    fields = app.load_skill_inputs(context.settings, skill_id)
    assembled = given.assemble(context, fields)
    request = app.RunRequest(skill_id=skill_id, inputs=assembled.inputs, frame=assembled.frame, **options)
    problems += assembled.problems
    try:
        return request, _checked(context, request, problems, assembled.doubtful)
    except CogcliError as error:
        if context.arguments.on("--plan"):
            from cogcli.cli.plan import show_refused

            show_refused(context, request, error)
        raise


def _checked(
    context: CommandContext, request: RunRequest, problems: list[CogcliError], doubtful: Iterable[str]
) -> CheckedSkill:
    from cogcli.app import run_skill as app
    from cogcli.cli.error_group import raise_together

    try:
        loaded = app.load(context.settings, request)
    except CogcliError as error:
        problems = [*problems, *_unused(request, app.reach(context.settings, request.skill_id))]
        if not problems:
            raise
        raise_together(problems, error, doubtful=doubtful)
    raise_together([*problems, *_unused(request, loaded.catalog)])
    return loaded


def _unused(request: RunRequest, catalog: Catalog) -> Iterator[UsageError]:
    """Capabilities that flags name and the skill never calls: a slip there must not go unheard."""
    from cogcli.cli.parse import suggest

    known = {*catalog.capabilities, *catalog.aliases}
    for flag, names in (("--bind", request.binds), ("--confirm", request.confirmed)):
        for name in names:
            if name not in known:
                what = f"`{flag}`: `{request.skill_id}` uses no capability `{name[:60]}`"
                yield UsageError("usage.value", what, hint=suggest(name, sorted(known)) or "leave it out")


def _check_id(skill_id: str) -> None:
    """A file or a sentence in place of an id is told as what it is."""
    if "/" in skill_id or skill_id.endswith((".yaml", ".yml")):
        raise SkillNotFoundError(
            "skill.not-found",
            f"`{skill_id}` is no skill id",
            hint="an id is domain.slug; see cogcli skills ls",
        )


def options_of(context: CommandContext, problems: list[CogcliError]) -> dict[str, Any]:
    """What flags and settings say of how to run, under the names of a RunRequest."""
    arguments, settings = context.arguments, context.settings
    timeout = settings.value("timeout")
    return {
        "trace_id": _trace_id(arguments.text("--trace-id"), problems),
        "trust_level": settings.value("trust_level"),
        "confirmed": tuple(arguments.many("--confirm")),
        "binds": pairs_of(arguments.many("--bind"), "--bind", "CAP=BINDING", problems),
        "fail_fast": not settings.value("keep_going"),
        "max_workers": settings.value("max_workers"),
        "timeout": None if timeout is None else float(timeout),
        "step_timeout": float(settings.value("step_timeout")),
        "conformance": settings.value("conformance"),
        "seed": arguments.integer("--seed", 0),
        "tags": pairs_of(arguments.many("--tag"), "--tag", "k=v", problems),
        "durability": settings.value("durability"),
    }


def _trace_id(text: str | None, problems: list[CogcliError]) -> str | None:
    import re

    if text is not None and not re.fullmatch(r"[A-Za-z0-9._:-]{1,128}", text):
        problems.append(
            UsageError(
                "usage.value",
                f"`--trace-id`: found `{text[:60]}`",
                expected="1 to 128 letters, digits, `.`, `_`, `:` or `-`",
            )
        )
    return text


def pairs_of(given: list[str], flag: str, shape: str, problems: list[CogcliError]) -> dict[str, str]:
    """The `name=value` texts of a repeatable flag; what is no such text is added to the problems."""
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            problems.append(UsageError("usage.value", f"`{flag}`: found `{text[:60]}`, expected {shape}"))
        elif pairs.setdefault(name, value) != value:
            problems.append(
                UsageError("usage.value", f"`{flag} {name}` is given twice", hint="keep one of them")
            )
    return pairs


class DisplayListener:
    """Hands events to the display and keeps the run's wall time. A display that fails is dropped; the run goes on."""

    def __init__(self, display: Display) -> None:
        self.display = display
        self.wall_ms: int | None = None
        self._broken = False
        self._root: str | None = None
        self._episode = ""

    def __call__(self, event: Event) -> None:
        self._root = self._root or event.run_id
        self._episode = self._episode or event.episode_id
        if event.phase == "terminate" and event.run_id == self._root:
            self.wall_ms = round((event.metrics or {}).get("duration_ms") or 0)
        if self._broken:
            return
        try:
            self.display(event)
        except Exception:
            self._broken = True

    def place(self, error: CogcliError) -> None:
        """Give an error that stopped a run which had begun the command that shows how far it came."""
        if self._episode and not error.next:
            from cogcli.report.humanize import short_episode

            error.next = (f"cogcli trace {short_episode(self._episode)}",)


class Signals:
    """While a run goes on, signals cancel it; the second ends at once. The handlers before are put back."""

    def __init__(self, context: CommandContext, control: Control, display: Display) -> None:
        self._context = context
        self._control = control
        self._display = display
        self._before: dict[int, Any] = {}
        self._count = 0

    def __enter__(self) -> None:
        for name in self._names():
            number = getattr(signal, name)
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _names(self) -> Iterator[str]:
        return (name for name in (*_SIGNALS, "SIGBREAK") if hasattr(signal, name))

    def _handle(self, number: int, frame: object) -> None:
        name = signal.Signals(number).name
        self._count += 1
        self._control.cancel("SIGINT" if name == "SIGBREAK" else name)
        if self._count == 1:
            self._display.close()
            hint = " (Ctrl-C again: now)" if name == "SIGINT" else ""
            self._context.screen.tell(f"stopping, up to 5s for running calls{hint}\n")


def tell(
    context: CommandContext,
    result: RunResult,
    heard: DisplayListener,
    after: Callable[[RunResult], None] | None,
    *,
    answer: bool,
) -> None:
    """Fill the envelope, answer with the outputs, say how it ended."""
    from cogcli.cli.run_report import error_of, final_lines

    context.own.update(
        {
            "status": result.status,
            "episode_id": result.episode_id,
            "run_id": result.run_id,
            "trace_id": result.trace_id,
            "dir": context.settings.shown(result.directory),
            "outputs": result.outputs,
            "metrics": result.metrics,
        }
    )
    context.error = error_of(result, context.again)
    if answer and not context.json and result.status in ("ok", "partial") and result.outputs is not None:
        _answer(context, dumps(result.outputs, indent=True) + "\n", keep=result.exit_code != OK)
    if after:
        after(result)
    for line in final_lines(context, result, heard.wall_ms, brief=heard.display.brief):
        context.screen.say(line)


def _answer(context: CommandContext, text: str, *, keep: bool) -> None:
    """The outputs. A reader that has gone does not change what a run reports."""
    from cogcli.cli.streams import silence_stdout

    try:
        context.screen.answer(text)
    except BrokenPipeError:
        silence_stdout()
        context.screen.out.file = None
