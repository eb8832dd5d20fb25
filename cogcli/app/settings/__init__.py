"""Settings of one command, each with its origin: flag > environment > cogcli.toml > user's file > default."""

from __future__ import annotations

import os
from copy import copy

from cogcli.app.settings.config import (
    KEYS,
    PROJECT_FILE,
    ROOTS,
    ConfigFile,
    ConfigKey,
)
from cogcli.app.settings.setting_types import PathList
from cogcli.app.settings.user_dirs import (
    cache_home,
    config_home,
    display_path,
    find_project,
    state_home,
    store_home,
    working_directory,
)
from cogcli.base import system_text
from cogcli.base.errors import CogcliError, UsageError
from cogcli.base.links import find_leaving_link, is_below, link_refusal
from cogcli.declarations.options import TRUST_LEVELS
from cogcli.specs.layers import HOST_FOLDER, Root, bounded_layers, layers_for

WHOLE_TABLE = "model"
"""The table that one file gives as a whole: no address of one file meets the key of another."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cogcli.app.settings.trust import Trust
    from cogcli.base.system import Clock, IdSource
    from cogcli.specs.layers import Layer


class Settings:
    """The settings of one command. Paths are absolute; displayed paths are relative to `base`.

    Only `value`, `roots`, `file_roots` and `layers` raise for a broken configuration file, so that looking at an
    episode or at the settings themselves works with one. The file of a project that is not trusted stops `roots` and
    `layers` alone: it decides nothing else.
    """

    def __init__(
        self, flags: Mapping[str, Any], environ: Mapping[str, str], *, base: str = ""
    ) -> None:
        self.flags = flags
        self.environ = environ
        self.base = base or working_directory()
        self.project = find_project(self.base)
        self._files: list[ConfigFile] | None = None
        self._trust: Trust | None = None
        self._clock: Clock | None = None
        self._ids: IdSource | None = None

    @property
    def has_idle_host(self) -> bool:
        """Whether host overrides lie in this directory and there is no project, so that they count for nothing."""
        try:
            return not self.project and any(os.listdir(os.path.join(self.base, HOST_FOLDER)))
        except OSError:
            return False

    @property
    def has_idle_leniency(self) -> bool:
        """Whether the project calls a root lenient and is not trusted, so that all are strict."""
        own = self.project_file
        said = own.values.get(ROOTS, {}).values() if own else ()
        return any(each.get("contracts") == "lenient" for each in said) and not self.trust

    @property
    def files(self) -> list[ConfigFile]:
        """The configuration files in order of precedence, read once."""
        if self._files is None:
            user = os.path.join(config_home(self.environ), "config.toml")
            self._files = [ConfigFile(user, user, project=False)]
            if self.project:
                path = os.path.join(self.project, PROJECT_FILE)
                refusal = self._refusal_of_settings(path)
                own = ConfigFile(path, display_path(path, self.base), project=True, refusal=refusal)
                self._files.insert(0, own)
        return self._files

    @property
    def project_file(self) -> ConfigFile | None:
        """The project's file of settings, present or not; None without a project."""
        return next((file for file in self.files if file.project), None)

    def _refusal_of_settings(self, path: str) -> CogcliError | None:
        """The error for a project's file that is a link out of the project, unless the project is trusted."""
        link = find_leaving_link(path, self.project or "")
        return link_refusal(link) if link and not self._read_trust(None) else None

    @property
    def bound(self) -> str:
        """The project if no link may leave it, which is until it is trusted; else empty."""
        return "" if self.project is None or self.trust else self.project

    def inside(self, path: str) -> str:
        """The real path of a path. Raises EnvironmentRefusal `project.link` if a link of a project that is not trusted
        leads it out of the project (docs/reference/service.md#links)."""
        link = find_leaving_link(path, self.project or "")
        if link and not self.trust:
            raise link_refusal(link)
        return os.path.realpath(path)

    def copy_for_run(self) -> Settings:
        """A copy for a run in another thread: with its own clock and ids, which are not thread-safe; trust is read
        anew."""
        other = copy(self)
        other._trust = None
        if self._fake("COGCLI_FAKE_CLOCK") is None:
            other._clock = None
        if self._fake("COGCLI_FAKE_IDS") is None:
            other._ids = None
        return other

    @property
    def problems(self) -> list[CogcliError]:
        """Every problem of the configuration files."""
        return [problem for file in self.files for problem in file.problems]

    def value(self, name: str) -> Any:
        """A setting's value. Raises UsageError, or EnvironmentRefusal `config.key` for the first broken line."""
        self.require_sound_files()
        return self.with_origin(name)[0]

    def require_sound_files(self) -> None:
        """Raise the first problem of a configuration file that decides."""
        for file in self.files:
            if file.problems and not (file.project and self.bound):
                raise file.problems[0]

    @property
    def project_refusal(self) -> CogcliError | None:
        """The first problem of the file of a project that is not trusted: where the specs of the project are is not
        known. None if there is no such problem."""
        own = self.project_file
        return own.problems[0] if own is not None and own.problems and self.bound else None

    def with_origin(self, name: str) -> tuple[Any, str]:
        """A setting's value and its origin; broken files are skipped."""
        key = KEYS[name]
        if isinstance(key.type, PathList):
            sources = self._sources(name)
            origins = ", ".join(origin for _, origin, _ in sources)
            return [path for paths, _, _ in sources for path in paths], origins or "default"
        given = self.flags.get(name)
        if given is not None and given != []:
            return given, f"--{name.replace('_', '-')}"
        if (table := name.partition(".")[0]) == WHOLE_TABLE:
            file = self.file_with(table)
            found_in = [file] if file is not None and name in file.values else []
        elif (found := self._from_environment(name, key)) is not None:
            return found, variable(name)
        else:
            found_in = [
                file for file in self.files if name in file.values and self._counts(file, name)
            ]
        if name == "trust_level":
            # The lower level of project and user counts: a project may only ask for less trust.
            found_in.sort(key=lambda file: TRUST_LEVELS.index(file.values[name]))
        for file in found_in:
            return file.values[name], f"{file.shown}:{file.lines[name]}"
        return key.default, "default"

    def file_with(self, table: str) -> ConfigFile | None:
        """The first file that counts and holds a key of a table."""
        dotted = f"{table}."
        holding = [
            file for file in self.files if any(name.startswith(dotted) for name in file.values)
        ]
        return next((file for file in holding if self._counts(file, dotted)), None)

    def _counts(self, file: ConfigFile, name: str) -> bool:
        """Whether a file decides this. Of a project that is not trusted only `registry` counts: where its specs are."""
        return not file.project or name == "registry" or bool(self.trust)

    def _sources(self, name: str) -> list[tuple[list[str], str, bool]]:
        """Per source of a list of directories: absolute paths, origin, and whether it is the project's file."""
        found: list[tuple[list[str], str, bool]] = [
            (file.values[name], f"{file.shown}:{file.lines[name]}", file.project)
            for file in reversed(self.files)
            if name in file.values and self._counts(file, name)
        ]
        found.append((self._from_environment(name, KEYS[name]) or [], variable(name), False))
        found.append((self.flags.get(name) or [], f"--{name}", False))
        return [
            ([os.path.abspath(path) for path in paths], origin, own)
            for paths, origin, own in found
            if paths
        ]

    @property
    def roots(self) -> list[Root]:
        """The extra registry roots, each with whether the project names it. Raises EnvironmentRefusal `config.key` for
        the first broken line of any file."""
        for problem in self.problems:
            raise problem
        return self._find_roots()

    def _find_roots(self) -> list[Root]:
        lenient = self._lenient_roots()
        return [
            Root(path, own, os.path.realpath(path) in lenient)
            for paths, _, own in self._sources("registry")
            for path in paths
            if not own or self._may_hold_specs(path)
        ]

    def _may_hold_specs(self, root: str) -> bool:
        """Whether a root that the project names is read: before it is trusted those inside its folder alone."""
        real, home = os.path.realpath(root), os.path.realpath(self.project or "")
        return real == home or real.startswith(home.rstrip(os.sep) + os.sep) or bool(self.trust)

    def _lenient_roots(self) -> set[str]:
        """The real paths of the roots whose contradictions are warnings. A project says so of any root, as far as it is
        trusted; a root says nothing of itself."""
        counting = [
            file
            for file in reversed(self.files)
            if ROOTS in file.values and self._counts(file, ROOTS)
        ]
        said = {
            os.path.realpath(root): of.get("contracts")
            for file in counting
            for root, of in file.values[ROOTS].items()
        }
        return {root for root, contracts in said.items() if contracts == "lenient"}

    def file_roots(self, name: str) -> list[list[str]]:
        """The roots of files by who declares them: a file lies in a root of each. Raises as `value`."""
        self.require_sound_files()
        return [paths for paths, _, _ in self._sources(name)]

    def _from_environment(self, name: str, key: ConfigKey) -> Any:
        if not key.type.in_environment:
            return None
        text = system_text.variable(self.environ, variable(name))
        if not text:
            return None
        value = key.type.parse(text)
        if value is None:
            shown = "another text" if key.type.may_hide else f"`{text[:60]}`"
            expected = key.type.expected
            raise UsageError("usage.value", f"{variable(name)}: found {shown}, expected {expected}")
        if name == "registry":
            self._require_absolute(value)
        return value

    def _require_absolute(self, roots: list[str]) -> None:
        """Raise UsageError for a relative registry root of a variable: in each project that the user enters it would
        name a folder of that project, and its specs would count as the user's."""
        relative = next((root for root in roots if not os.path.isabs(root)), None)
        if relative is not None:
            raise UsageError(
                "usage.value",
                f"COGCLI_REGISTRY: found `{relative[:60]}`",
                expected="absolute paths",
                hint="--registry takes a path relative to this directory",
            )

    @property
    def runs_dir(self) -> str:
        """The real path of the runs directory, which need not exist yet. Raises EnvironmentRefusal `project.link`."""
        path, origin = self.runs_dir_with_origin()
        return self.inside(path) if origin == "project" else os.path.realpath(path)

    @property
    def store_dir(self) -> str:
        """The real path of the directory of the stores: of the project if it is trusted, else of the user."""
        trusted = self.project if self.trust else None
        return os.path.realpath(store_home(trusted, self.environ))

    def runs_dir_with_origin(self) -> tuple[str, str]:
        """The runs directory and the origin of the choice."""
        if given := self.flags.get("runs_dir"):
            return os.path.abspath(given), "--runs-dir"
        if given := system_text.variable(self.environ, "COGCLI_RUNS_DIR"):
            return os.path.abspath(given), "COGCLI_RUNS_DIR"
        if self.project:
            return os.path.join(self.project, ".cogcli", "episodes"), "project"
        return os.path.join(state_home(self.environ), "episodes"), "default"

    @property
    def trust(self) -> Trust:
        """The trust in the project, read once."""
        if self._trust is None:
            self._trust = self._read_trust(self.project_file)
        return self._trust

    def _read_trust(self, own: ConfigFile | None) -> Trust:
        """The trust in the project; `own` is its file, which else is read only if the project was accepted."""
        from cogcli.app.settings.trust import Trust, trust_of

        return trust_of(self.project, self.environ, own) if self.project else Trust("none")

    def reread_trust(self) -> None:
        """Look at the trust in the project again when it is needed next."""
        self._trust = None

    @property
    def layers(self) -> list[Layer]:
        """The registry's layers in order. Raises as `roots`, and UsageError for a registry root that is no
        directory."""
        layers, refusal = self.find_layers()
        if refusal is not None:
            raise refusal
        return layers

    def find_layers(self) -> tuple[list[Layer], CogcliError | None]:
        """The registry's layers in order, and why those of a project that is not trusted cannot be read: its file is
        broken or names a root that does not exist. Such a root is left out. Raises as `layers` for all other faults."""
        self.require_sound_files()
        trust, refusal = self.trust, self.project_refusal
        roots = []
        for root in self._find_roots() if refusal is None else self._roots_of_user():
            missing = self._missing_root(root.path)
            if missing is None:
                roots.append(root)
            elif root.by_project and not trust:
                refusal = refusal or missing
            else:
                raise missing
        layers = layers_for(
            project=self.project, project_trusted=bool(trust), registries=roots, distrust=trust.distrust,
            builtin=self.value("builtin"),
        )  # fmt: skip
        return bounded_layers(layers, self.bound), refusal

    def _roots_of_user(self) -> list[Root]:
        return [root for root in self._find_roots() if not root.by_project]

    def _missing_root(self, root: str) -> UsageError | None:
        """The error for a registry root that is not a directory."""
        if os.path.isdir(root):
            return None
        what = "is not a directory" if os.path.lexists(root) else "does not exist"
        shown = display_path(root, self.base)
        file, line = self._named_at(root)
        message, hint = f"registry {shown} {what}", "give a directory that holds specs"
        return UsageError("registry.missing", message, hint=hint, file=file, line=line)

    def _named_at(self, root: str) -> tuple[str, int]:
        """File and line of the configuration that names a registry root; empty for a flag or a variable."""
        for file in self.files:
            if root in map(os.path.abspath, file.values.get("registry", ())):
                return file.shown, file.lines["registry"]
        return "", 0

    @property
    def cache_file(self) -> str:
        """The file of the user's compiled specs."""
        return os.path.join(cache_home(self.environ), "specs.db")

    @property
    def clock(self) -> Clock:
        """The clock; a counting one under `COGCLI_FAKE_CLOCK`, which only tests set."""
        if self._clock is None:
            from cogcli.base.system import FakeClock, SystemClock

            start = self._fake("COGCLI_FAKE_CLOCK")
            self._clock = SystemClock() if start is None else FakeClock(start)
        return self._clock

    @property
    def ids(self) -> IdSource:
        """The source of identifiers; a counting one under `COGCLI_FAKE_IDS`, which only tests set."""
        if self._ids is None:
            from cogcli.base.system import FakeIds, SystemIds

            seed = self._fake("COGCLI_FAKE_IDS")
            self._ids = SystemIds() if seed is None else FakeIds(seed)
        return self._ids

    def _fake(self, name: str) -> int | None:
        return system_text.parse_whole_number(self.environ.get(name, ""))

    def display_path(self, path: str) -> str:
        """A path relative to `base` where it lies inside, else absolute; below the runs directory as that is named."""
        named = self.runs_dir_with_origin()[0]
        if is_below(path, real := os.path.realpath(named)):
            path = named + path[len(real) :]
        return display_path(path, self.base)


_NAMED = {"export.otlp": "COGCLI_OTLP_ENDPOINT"}


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return _NAMED.get(name) or f"COGCLI_{name.upper().replace('.', '_')}"
