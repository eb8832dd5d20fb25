"""The context of one command: its call, screen, settings and members of the envelope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cogcli.base.errors import (
    NO,
    CogcliError,
    ServiceResolutionError,
    UnusableEnvironment,
    UsageError,
)
from cogcli.base.problems import suggestion
from cogcli.base.terminal_text import visible
from cogcli.cli.options import Call
from cogcli.cli.streams import Screen
from cogcli.declarations.value_types import Json
from cogcli.report.styled_text import StyledLine

if TYPE_CHECKING:
    from cogcli.app.settings import Settings
    from cogcli.cli.envelope import StreamedList


_WITHOUT_SPECS = frozenset((
    "ls", "state", "report", "diff", "verify", "gc", "resume", "approvals", "rerun", "replay", "memory", "knowledge",
    "metrics", "explain", "help", "completion", "schema", "new", "import",
))  # fmt: skip
"""First words of commands that do not depend on host overrides."""


_WARNING_THEMSELVES = frozenset((
    "config show", "config trust", "run", "resume", "rerun", "trace", "test", "agent invoke", "agent chat", "serve mcp",
))  # fmt: skip
"""Commands that report ended trust in a project themselves."""


_STORE_COMMANDS = frozenset((
    "memory ls", "memory proposals", "memory promote", "memory reject", "memory recall", "knowledge query",
    "knowledge snapshot", "agent profile show", "agent profile export", "agent profile forget", "agent sessions ls",
    "agent sessions show", "agent sessions forget", "agent jobs ls", "agent jobs run",
))  # fmt: skip
"""Commands about the content of a store. `knowledge import` is refused in a project that is not
trusted."""


class CommandContext:
    """The state of one command. `own`, `error` and `warnings` become members of the `--json`
    envelope.
    """

    def __init__(self, call: Call, screen: Screen, environ: Mapping[str, str]) -> None:
        self.call = call
        self.screen = screen
        self.environ = environ
        self.own: Json = {}
        self.error: Json | None = None
        self.warnings: list[Json] = []
        self.streamed: StreamedList | None = None
        """The list in `own` that is written an item at a time."""
        self.afterwards: list[Callable[[], object]] = []
        """The work to do after the answer was written, when the exit code is already decided."""
        self._settings: Settings | None = None

    @property
    def json(self) -> bool:
        """Whether stdout receives only the envelope."""
        return self.screen.json

    @property
    def settings(self) -> Settings:
        """The settings, resolved on first use. Raise UsageError or UnusableEnvironment."""
        if self._settings is None:
            from cogcli.app.settings import Settings

            self._settings = Settings(self.call.given, self.environ)
            if self.kind not in _WITHOUT_SPECS:
                self._warn_of_unused_declarations(self._settings)
                self._warn_of_ended_trust(self._settings)
            if self.call.command in _STORE_COMMANDS and self._settings.bound:
                self._warn_of_own_store()
        return self._settings

    def _warn_of_unused_declarations(self, settings: Settings) -> None:
        """Warn of declarations without effect: host overrides outside a project, and lenient roots
        of an untrusted project.
        """
        if settings.has_idle_host:
            message = "`.agent-skills/` has no effect: it counts only in a project, and there is no project here"
            self.warn(UnusableEnvironment("project.none", message, next=("cogcli new project .",)))
        elif self.kind != "config" and settings.has_idle_leniency:
            message = "`[roots]` of cogcli.toml counts once the project is trusted: until then every root is strict"
            idle = ServiceResolutionError("service.untrusted", message)
            idle.next = ("cogcli config trust",)
            self.warn(idle)

    def _warn_of_ended_trust(self, settings: Settings) -> None:
        """Warn that a trusted project has changed since, with the changed files."""
        if self.call.command not in _WARNING_THEMSELVES and settings.trust.distrust:
            ended = ServiceResolutionError("service.untrusted", visible(settings.trust.distrust))
            ended.next = ("cogcli config trust",)
            self.warn(ended)

    def _warn_of_own_store(self) -> None:
        """Warn that the user's store is used because the project is not trusted."""
        text = "this is your own store, as in an empty directory: the project is not trusted, so its own is not read"
        own = ServiceResolutionError("service.untrusted", text)
        own.next = ("cogcli config trust",)
        self.warn(own)

    def reread_settings(self) -> Settings:
        """Return the settings from the current configuration files. Raise UsageError or
        UnusableEnvironment."""
        self._settings = None
        return self.settings

    @property
    def base(self) -> str:
        """The directory to which display paths are relative; empty until settings are read."""
        return self._settings.base if self._settings else ""

    @property
    def kind(self) -> str:
        """The group of the command. For `skills`, `capabilities`, `bindings` and `services` it is
        the kind of spec.
        """
        return self.call.command.split()[0]

    @property
    def verbose(self) -> bool:
        """Whether stderr receives every event and every cause."""
        return self.call.flags.verbose

    @property
    def again(self) -> str:
        """The global flags that a suggested command needs to find the same episodes and specs."""
        flags = self.call.flags
        pairs = [("-C", flags.directory), ("--runs-dir", flags.runs_dir)]
        pairs += [("--registry", root) for root in flags.registry]
        words = [word for name, value in pairs if value is not None for word in (name, value)]
        if not words:
            return ""
        from shlex import join

        return f" {join(words)}"

    def keep_typed_flags(self, error: CogcliError, flag: str) -> None:
        """Replace each suggested command that ends with this flag and value by the typed command
        with it.

        This keeps the user's other flags.
        """
        error.next = tuple(
            self._typed_command_with(flag, line.rpartition(f" {flag} ")[2])
            if f" {flag} " in line
            else line
            for line in error.next
        )

    def _typed_command_with(self, flag: str, value: str) -> str:
        """Return the typed command with this value of a flag, quoted for a shell."""
        from shlex import join

        words: list[str] = []
        is_value = False
        for word in self.call.argv:
            if not is_value and word != flag and not word.startswith(f"{flag}="):
                words.append(word)
            is_value = word == flag
        return f"{join(['cogcli', *words])} {flag} {value}"

    @property
    def user(self) -> str:
        """The user name of the system, else the variable `USER`, else `somebody`."""
        import getpass

        try:
            return getpass.getuser()
        except (OSError, KeyError, ImportError):
            return self.environ.get("USER") or "somebody"

    def answer(self, text: str | list[StyledLine]) -> None:
        """Write to stdout, unless stdout is reserved for the envelope."""
        if self.json:
            return
        if isinstance(text, str):
            self.screen.answer(text)
        else:
            self.screen.answer_lines(text)

    def note(self, text: str) -> None:
        """Write a line to stderr, unless `-q`. Text of several lines is written unchanged."""
        if self.screen.quiet:
            return
        if "\n" in text or not text:
            self.screen.notify(f"{text}\n")
        else:
            self.screen.notify_line([(text, "")])

    def fail(self, finding: Json, hint: str = "") -> int:
        """Make a finding (code, message, places) the error of the command, and return its exit
        code.

        It is for a command that completed with a negative result.
        """
        self.error = {
            **finding,
            "retryable": False,
            "hint": hint or finding.get("hint", ""),
            "next": [f"cogcli explain {finding['code']}"],
        }
        return NO

    def warn_of_shared_runs(self) -> None:
        """Warn if other users may write to the runs directory."""
        from cogcli.app.settings.runs_dir import shared_warning

        if (warning := shared_warning(self.settings)) is not None:
            self.warn(warning)

    def warn(self, error: CogcliError, *, if_quiet: bool = False) -> None:
        """Add a warning to the envelope, and write it to stderr: with `-q` only if asked to."""
        self.warnings.append({"code": error.code, "message": error.message})
        if self.screen.quiet and not if_quiet:
            return
        from cogcli.cli.render_error import next_lines, redirect_command

        self.screen.notify_line([(f"warning[{error.code}]", "warning"), (f": {error.message}", "")])
        for line in next_lines([redirect_command(command, self.again) for command in error.next]):
            self.screen.notify_line(line)


def is_skill(context: CommandContext, word: str) -> bool:
    """Return whether a word names a skill.

    Raise UsageError if it also names an episode, or if it is an unknown id in the form of a skill
    id."""
    first, dot, second = word.partition(".")
    if not dot or "/" in word or not (first + second).replace("-", "").replace("_", "").isalnum():
        return False
    from cogcli.app.episodes import find
    from cogcli.app.registry import open_registry

    known = open_registry(context.settings).ids("skill")
    try:
        episode = find(context.settings, word).name
    except UsageError:
        episode = ""
    if word in known and episode:
        what = f"`{word}` is a skill, and it names episode {episode}"
        raise UsageError(
            "usage.value", what, next=(f"cogcli trace {episode}", f"cogcli run {word}")
        )
    if word not in known and not episode:
        what, hint = f"`{word}` is neither a skill nor an episode", suggestion(word, known)
        raise UsageError("episode.unknown", what, hint=hint, next=("cogcli ls", "cogcli skills ls"))
    return word in known
