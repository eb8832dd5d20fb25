"""The context of one command: arguments, screen, settings (read on first use), members of the envelope."""

from __future__ import annotations

from cogcli.cli.parse import Arguments
from cogcli.cli.streams import Screen
from cogcli.core.errors import CogcliError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cogcli.app.settings import Settings


class CommandContext:
    """One command being executed. `own`, `error` and `warnings` go into the envelope of `--json`."""

    def __init__(self, arguments: Arguments, screen: Screen, environ: Mapping[str, str]) -> None:
        self.arguments = arguments
        self.screen = screen
        self.environ = environ
        self.own: dict[str, Any] = {}
        self.error: dict[str, Any] | None = None
        self.warnings: list[Any] = []
        self._settings: Settings | None = None

    @property
    def json(self) -> bool:
        """Whether stdout gets the envelope and nothing else."""
        return self.screen.json

    @property
    def settings(self) -> Settings:
        """The settings, resolved on first use. Raises UsageError or EnvironmentRefusal."""
        if self._settings is None:
            from cogcli.app.settings import Settings

            self._settings = Settings(self.flags(), self.environ)
        return self._settings

    @property
    def base(self) -> str:
        """The directory that displayed paths are relative to; empty as long as no settings were read."""
        return self._settings.base if self._settings else ""

    def flags(self) -> dict[str, Any]:
        """The given flags under the names of the configuration: `max_workers`."""
        named = {"-C": "directory"}
        return {
            named.get(name, name.lstrip("-").replace("-", "_")): value
            for name, value in self.arguments.values.items()
        }

    @property
    def again(self) -> str:
        """The global flags that a suggested command needs to find the same episodes and specs."""
        given = self.arguments
        words: list[str] = []
        for name in ("-C", "--runs-dir"):
            if (value := given.text(name)) is not None:
                words += [name, value]
        for value in given.many("--registry"):
            words += ["--registry", value]
        if not words:
            return ""
        from shlex import join

        return f" {join(words)}"

    @property
    def user(self) -> str:
        """The name of the user as the system gives it, else the variable `USER`, else `somebody`."""
        import getpass

        try:
            return getpass.getuser()
        except (OSError, KeyError, ImportError):
            return self.environ.get("USER") or "somebody"

    def warn_of_shared_runs(self) -> None:
        """Warn where other users may write to the runs directory."""
        from cogcli.app.runs_dir import shared_warning

        if (warning := shared_warning(self.settings)) is not None:
            self.warn(warning)

    def warn(self, error: CogcliError) -> None:
        """Add a warning to the envelope, and write it to stderr unless `-q`."""
        self.warnings.append({"code": error.code, "message": error.message})
        if self.screen.quiet:
            return
        from cogcli.cli.next_step import redirect_command
        from cogcli.cli.render_error import next_lines

        self.screen.notify_line([(f"warning[{error.code}]", "warning"), (f": {error.message}", "")])
        for line in next_lines([redirect_command(command, self.again) for command in error.next]):
            self.screen.notify_line(line)
