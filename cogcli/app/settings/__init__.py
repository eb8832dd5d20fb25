"""The settings of one command, each with its origin. Flags override the environment, then
cogcli.toml, the user's file and the defaults."""

from __future__ import annotations

import os
from copy import copy

from cogcli.app.settings.config import (
    EPISODES_MODE,
    KEYS,
    PROJECT_FILE,
    ROOTS,
    ConfigFile,
    ConfigKey,
    variable,
)
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
from cogcli.base.links import find_leaving_link, is_below, link_refusal, resolve_path
from cogcli.base.system import Clock, FakeClock, FakeIds, IdSource, SystemClock, SystemIds
from cogcli.declarations.spec_ceilings import SpecCeilings, setting_name
from cogcli.declarations.value_types import Json
from cogcli.specs.layers import HOST_FOLDER, Root, bounded_layers, layers_for

WHOLE_TABLE = "model"
"""The table that only one file provides, so that the address of one file never gets the key of
another."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cogcli.app.settings.trust import Trust
    from cogcli.specs.layers import Layer


class Settings:
    """The settings of one command. Paths are absolute. Display paths are relative to `base`.

    Only `value`, `roots`, `file_roots` and `layers` raise an error for an invalid configuration
    file, so that commands can still display episodes and settings. The file of a project that is
    not trusted affects only `roots` and `layers`."""

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
        """Whether this directory has host overrides but no project. Then they are ignored."""
        try:
            return not self.project and any(os.listdir(os.path.join(self.base, HOST_FOLDER)))
        except OSError:
            return False

    @property
    def has_idle_leniency(self) -> bool:
        """Whether the project declares a root lenient but is not trusted. Then all roots are
        strict."""
        own = self.project_file
        said = own.values.get(ROOTS, {}).values() if own else ()
        return any(map(_is_lenient, said)) and not self.trust

    @property
    def files(self) -> list[ConfigFile]:
        """Return the configuration files in order of precedence, read once."""
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
        """Return the project's settings file, even if it does not exist; None without a project."""
        return next((file for file in self.files if file.project), None)

    def _refusal_of_settings(self, path: str) -> CogcliError | None:
        """Return the error for a settings file that is a link out of a project that is not trusted;
        None for any other file."""
        link = find_leaving_link(path, self.project or "")
        return link_refusal(link) if link and not self._read_trust(None) else None

    @property
    def bound(self) -> str:
        """Return the project folder while the project is not trusted, because no link may leave it.
        Empty otherwise."""
        return "" if self.project is None or self.trust else self.project

    def require_inside(self, path: str) -> str:
        """Return the real path of `path`.

        Raise UnusableEnvironment `project.link` if a link leads out of a project that is not trusted
        (docs/reference/service.md#links)."""
        real, link = resolve_path(path, self.project or "")
        if link and not self.trust:
            raise link_refusal(link)
        return real

    def copy_for_run(self) -> Settings:
        """Return a copy for a run in another thread. The copy has a new clock and new ids, which are not thread-safe,
        and reads the trust again.
        """
        other = copy(self)
        other._trust = None
        if self._fake_start("COGCLI_FAKE_CLOCK") is None:
            other._clock = None
        if self._fake_start("COGCLI_FAKE_IDS") is None:
            other._ids = None
        return other

    @property
    def problems(self) -> list[CogcliError]:
        """Return every problem of the configuration files."""
        return [problem for file in self.files for problem in file.problems]

    def value(self, name: str) -> Any:
        """Return the value of a setting.

        Raise UsageError, or UnusableEnvironment `config.key` for the first invalid line of a
        configuration file."""
        self.require_sound_files()
        return self.with_origin(name)[0]

    def require_sound_files(self) -> None:
        """Raise the first problem of a configuration file that is in effect."""
        for file in self.files:
            if file.problems and not (file.project and self.bound):
                raise file.problems[0]

    @property
    def project_refusal(self) -> CogcliError | None:
        """Return the first problem in the settings of an untrusted project; None if its settings have no problem. After
        such a problem, the locations of the project's specs are unknown.
        """
        own = self.project_file
        return own.problems[0] if own is not None and own.problems and self.bound else None

    @property
    def ceilings(self) -> SpecCeilings:
        """Return the ceilings of spec files. Raise the errors of `value`."""
        self.require_sound_files()
        values = (self.with_origin(setting_name(name))[0] for name in SpecCeilings._fields)
        return SpecCeilings(*values)

    def with_origin(self, name: str) -> tuple[Any, str]:
        """Return the value of a setting and its origin. Invalid files are ignored."""
        key = KEYS[name]
        if key.type.is_joined:
            return self._joined_lists(name)
        given = self.flags.get(name)
        if given is not None and given != []:
            return given, f"--{name.replace('_', '-')}"
        if name.partition(".")[0] != WHOLE_TABLE:
            found = self._from_environment(name, key)
            if found is not None:
                return found, variable(name)
        file = self.find_file(name)
        if file is None:
            return key.default, "default"
        return file.values[name], f"{file.shown}:{file.lines[name]}"

    def _joined_lists(self, name: str) -> tuple[list[str], str]:
        """Return the directories that all sources name, and the origins of these lists."""
        sources = self._directory_sources(name)
        origins = ", ".join(origin for _, origin, _ in sources)
        return [path for paths, _, _ in sources for path in paths], origins or "default"

    def find_file(self, name: str) -> ConfigFile | None:
        """Return the file that determines a setting; None if no file does."""
        table = name.partition(".")[0]
        if table == WHOLE_TABLE:
            file = self.file_with(table)
            return file if file is not None and name in file.values else None
        found = [file for file in self.files if name in file.values and self._may_set(file, name)]
        rank = KEYS[name].rank
        if rank is not None:
            # The lower value of project and user counts: a project may only lower it.
            found.sort(key=lambda file: rank(file.values[name]))
        return found[0] if found else None

    def file_with(self, table: str) -> ConfigFile | None:
        """Return the first file that contains a key of a table and may set it; None if no file
        does."""
        dotted = f"{table}."
        holding = [
            file for file in self.files if any(name.startswith(dotted) for name in file.values)
        ]
        return next((file for file in holding if self._may_set(file, dotted)), None)

    def _may_set(self, file: ConfigFile, name: str) -> bool:
        """Return whether a file may determine a setting.

        The file of a project that is not trusted may only set `registry`, the locations of its
        specs."""
        return not file.project or name == "registry" or bool(self.trust)

    def _directory_sources(self, name: str) -> list[tuple[list[str], str, bool]]:
        """Return the sources of a list of directories as (absolute paths, origin, whether the source is the project's
        file).
        """
        found: list[tuple[list[str], str, bool]] = [
            (file.values[name], f"{file.shown}:{file.lines[name]}", file.project)
            for file in reversed(self.files)
            if name in file.values and self._may_set(file, name)
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
        """Return the extra registry roots.

        Raise UnusableEnvironment `config.key` for the first invalid line of any file."""
        for problem in self.problems:
            raise problem
        return self._find_roots()

    def _find_roots(self) -> list[Root]:
        """Return the extra registry roots, also if a file is invalid."""
        lenient = self._lenient_roots()
        return [
            Root(path, own, os.path.realpath(path) in lenient)
            for paths, _, own in self._directory_sources("registry")
            for path in paths
            if not own or self._may_hold_specs(path)
        ]

    def _may_hold_specs(self, root: str) -> bool:
        """Return whether a root that the project names is read.

        Until the project is trusted, only roots in its folder are read."""
        real, home = os.path.realpath(root), os.path.realpath(self.project or "")
        return real == home or real.startswith(home.rstrip(os.sep) + os.sep) or bool(self.trust)

    def _lenient_roots(self) -> set[str]:
        """Return the real paths of the roots in which contradictions are only warnings.

        A trusted project or the user may declare any root lenient. A root cannot declare this of
        itself."""
        counting = [
            file
            for file in reversed(self.files)
            if ROOTS in file.values and self._may_set(file, ROOTS)
        ]
        said = {
            os.path.realpath(root): table
            for file in counting
            for root, table in file.values[ROOTS].items()
        }
        return {root for root, table in said.items() if _is_lenient(table)}

    def file_roots(self, name: str) -> list[list[str]]:
        """Return the directories in which files may be read or written, one list per source.

        A file must be in a directory of every list. Raise the errors of `value`."""
        self.require_sound_files()
        return [paths for paths, _, _ in self._directory_sources(name)]

    def _from_environment(self, name: str, key: ConfigKey) -> Any:
        """Return the value of a setting in the environment; None if it is not set."""
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
        """Raise UsageError for a relative registry root in a variable.

        Such a root would name a folder of every project that the user enters, and the specs in it
        would be treated as the user's."""
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
        """Return the real path of the runs directory, which may not exist.

        Raise UnusableEnvironment `project.link`."""
        path, origin = self.runs_dir_with_origin()
        return self.require_inside(path) if origin == "project" else os.path.realpath(path)

    @property
    def shares_episodes(self) -> bool:
        """Whether the group of the runs directory may use the episodes that are written. Raise the errors of
        `value`."""
        return bool(self.value(EPISODES_MODE) == "group")

    @property
    def store_dir(self) -> str:
        """Return the real path of the directory of stores: the project's if it is trusted,
        otherwise the user's."""
        trusted = self.project if self.trust else None
        return os.path.realpath(store_home(trusted, self.environ))

    def runs_dir_with_origin(self) -> tuple[str, str]:
        """Return the runs directory, and the origin of this setting."""
        if given := self.flags.get("runs_dir"):
            return os.path.abspath(given), "--runs-dir"
        if given := system_text.variable(self.environ, "COGCLI_RUNS_DIR"):
            return os.path.abspath(given), "COGCLI_RUNS_DIR"
        if self.project:
            return os.path.join(self.project, ".cogcli", "episodes"), "project"
        return os.path.join(state_home(self.environ), "episodes"), "default"

    @property
    def trust(self) -> Trust:
        """Return the trust in the project. It is read once."""
        if self._trust is None:
            self._trust = self._read_trust(self.project_file)
        return self._trust

    def _read_trust(self, own: ConfigFile | None) -> Trust:
        """Return the trust in the project.

        `own` is its settings file if that has been read."""
        from cogcli.app.settings.trust import Trust, trust_of

        return trust_of(self.project, self.environ, own) if self.project else Trust("none")

    def reread_trust(self) -> None:
        """Discard the trust in the project, so that its next use reads it again."""
        self._trust = None

    @property
    def layers(self) -> list[Layer]:
        """Return the layers of the registry in order.

        Raise the errors of `roots`, and UsageError for a root that is not a directory."""
        layers, refusal = self.find_layers()
        if refusal is not None:
            raise refusal
        return layers

    def find_layers(self) -> tuple[list[Layer], CogcliError | None]:
        """Return the layers of the registry in order, and the error in the layers of an untrusted project.

        The error is an invalid settings file, or a root that does not exist. Such a root is omitted. Raise the errors
        of `layers` for all other problems.
        """
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
        """Return the extra registry roots that the project does not name."""
        return [root for root in self._find_roots() if not root.by_project]

    def _missing_root(self, root: str) -> UsageError | None:
        """Return the error for a registry root that is not a directory."""
        if os.path.isdir(root):
            return None
        what = "is not a directory" if os.path.lexists(root) else "does not exist"
        shown = display_path(root, self.base)
        file, line = self._find_declaration(root)
        message, hint = f"registry {shown} {what}", "give a directory that holds specs"
        return UsageError("registry.missing", message, hint=hint, file=file, line=line)

    def _find_declaration(self, root: str) -> tuple[str, int]:
        """Return the file and line that name a registry root; empty if a flag or variable names
        it."""
        for file in self.files:
            if root in map(os.path.abspath, file.registry):
                return file.shown, file.lines["registry"]
        return "", 0

    @property
    def cache_file(self) -> str:
        """Return the path of the cache of compiled specs."""
        return os.path.join(cache_home(self.environ), "specs.db")

    @property
    def clock(self) -> Clock:
        """Return the clock. Tests set `COGCLI_FAKE_CLOCK` for a clock that counts."""
        if self._clock is None:
            start = self._fake_start("COGCLI_FAKE_CLOCK")
            self._clock = SystemClock() if start is None else FakeClock(start)
        return self._clock

    @property
    def ids(self) -> IdSource:
        """Return the source of identifiers. Tests set `COGCLI_FAKE_IDS` for a source that
        counts."""
        if self._ids is None:
            seed = self._fake_start("COGCLI_FAKE_IDS")
            self._ids = SystemIds() if seed is None else FakeIds(seed)
        return self._ids

    def _fake_start(self, name: str) -> int | None:
        return system_text.parse_whole_number(self.environ.get(name, ""))

    def display_path(self, path: str) -> str:
        """Return a path relative to `base` if it is below `base`, otherwise absolute.

        A path below the runs directory starts with the display path of that directory."""
        named = self.runs_dir_with_origin()[0]
        if is_below(path, real := os.path.realpath(named)):
            path = named + path[len(real) :]
        return display_path(path, self.base)


def _is_lenient(table: Json) -> bool:
    """Return whether the declarations about a registry root make it lenient."""
    contracts: object = table.get("contracts")
    return contracts == "lenient"
