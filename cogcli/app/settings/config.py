"""The configuration: its keys, and the reader of one file
(docs/reference/command-line.md#settings).

A project's file may lower the trust level but never raise it. Only a flag confirms capabilities."""

from __future__ import annotations

import os
from collections.abc import Callable

from cogcli.app.settings.model_adapters import MODELS, TEMPLATE
from cogcli.app.settings.setting_types import (
    ApproverTables,
    CommandWords,
    Line,
    PathList,
    PinTables,
    RootTables,
    SecretLocation,
    Url,
)
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.jsonvalue import object_of
from cogcli.base.problems import suggestion
from cogcli.base.toml_bounds import find_excess
from cogcli.declarations.option_types import (
    BooleanOption,
    EnumOption,
    IntegerOption,
    OptionType,
    PositiveNumber,
    Price,
)
from cogcli.declarations.options import HOOKS, OPTIONS, PROGRESS, TRUST_LEVELS, Option
from cogcli.declarations.spec_ceilings import DEFAULT_CEILINGS, HIGHEST, setting_name
from cogcli.declarations.value_types import Json

PROJECT_FILE = "cogcli.toml"
PINS = "packs"
ROOTS = "roots"
HOOK_TIMEOUT = "hooks.timeout_s"
APPROVERS = "approvers"
EPISODES_MODE = "episodes.mode"
EPISODE_MODES = ("private", "group")
"""Who may use the episodes that are written: this user, or the group of the runs directory, too."""
_LIMIT = 256 * 1024
_MAX_PROBLEMS = 20
"""The most problems of a file before reading stops: each costs a search for its line."""
_LONGEST = 60
_LONG_NUMBER = r"[0-9_]{1000}"


_NAMED = {"export.otlp": "COGCLI_OTLP_ENDPOINT"}


def variable(name: str) -> str:
    """Return the name of the environment variable of a setting."""
    return _NAMED.get(name) or f"COGCLI_{name.upper().replace('.', '_')}"


class ConfigKey:
    """A setting: its type and default."""

    __slots__ = ("default", "rank", "type")

    def __init__(
        self, type: OptionType, default: object = None, rank: Callable[[object], int] | None = None
    ) -> None:
        self.type = type
        self.default = default
        self.rank = rank
        """Returns how high a value is, for a setting that a project may lower but never raise."""


def _key_of(option: Option) -> ConfigKey:
    """Return the setting of an option of a run."""
    # A setting is shared by all runs, so its default is a value that no run changes.
    rank = TRUST_LEVELS.index if option.name == "trust_level" else None
    return ConfigKey(option.type, () if option.default == [] else option.default, rank)


def _ceiling_keys() -> dict[str, ConfigKey]:
    """Return the settings that are ceilings of spec files."""
    highest = HIGHEST._asdict()
    return {
        setting_name(name): ConfigKey(IntegerOption(1, highest[name]), default, _rank_number)
        for name, default in DEFAULT_CEILINGS._asdict().items()
    }


def _rank_number(value: object) -> int:
    return value if isinstance(value, int) else 0


KEYS: dict[str, ConfigKey] = {
    "registry": ConfigKey(PathList(), ()),
    ROOTS: ConfigKey(RootTables(), {}),
    "builtin": ConfigKey(BooleanOption(), True),
    **{option.name: _key_of(option) for option in OPTIONS.values() if option.setting},
    "files.roots": ConfigKey(PathList(), ()),
    "files.write_roots": ConfigKey(PathList(), ()),
    **_ceiling_keys(),
    "use_env_proxy": ConfigKey(BooleanOption(), False),
    "export.otlp": ConfigKey(Url()),
    "progress": ConfigKey(EnumOption(*PROGRESS), "auto"),
    "agent.profile": ConfigKey(EnumOption("review", "auto"), "review"),
    "agent.synthesis_threshold": ConfigKey(IntegerOption(1, 1000), 3),
    "agent.synthesis_grace_s": ConfigKey(IntegerOption(0, 600), 5),
    "model.adapter": ConfigKey(EnumOption(TEMPLATE, *MODELS), TEMPLATE),
    "model.name": ConfigKey(Line(), ""),
    "model.base_url": ConfigKey(Url(), ""),
    "model.auth_ref": ConfigKey(SecretLocation(), ""),
    "model.timeout_s": ConfigKey(PositiveNumber(3600), 60.0),
    "model.context_tokens": ConfigKey(IntegerOption(256, 100_000_000)),
    "model.price_in": ConfigKey(Price()),
    "model.price_out": ConfigKey(Price()),
    **{f"hooks.{name}": ConfigKey(CommandWords(), ()) for name in HOOKS},
    HOOK_TIMEOUT: ConfigKey(PositiveNumber(300), 10.0),
    PINS: ConfigKey(PinTables(), {}),
    APPROVERS: ConfigKey(ApproverTables(), {}),
    EPISODES_MODE: ConfigKey(EnumOption(*EPISODE_MODES), EPISODE_MODES[0]),
}
"""All settings by name; a name with a dot is in a table. A project's tables count only once it is
trusted."""


class ConfigFile:
    """The settings in one file: values, the line of each key, and all problems."""

    def __init__(
        self, path: str, shown: str, *, project: bool, refusal: CogcliError | None = None
    ) -> None:
        """Read the file, unless there is a `refusal`, which is then its only problem."""
        self.path = path
        self.shown = shown
        self.project = project
        self.values: Json = {}
        self.lines: dict[str, int] = {}
        self.problems: list[CogcliError] = []
        if refusal is not None:
            self.problems.append(refusal)
        elif os.path.lexists(path):
            self._load()

    def _load(self) -> None:
        try:
            text = read_regular(self.path, limit=_LIMIT).decode("utf-8-sig")
        except UnreadableFile as error:
            self._add_problem(error.message)
            return
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            self._add_problem(
                f"is not UTF-8: byte 0x{error.object[error.start]:02X}",
                line,
                1,
                hint="save it as UTF-8",
            )
            return
        members = [
            pair
            for name, value in self._parse_text(text).items()
            for pair in _flatten_table(name, value)
        ]
        for key, member in members:
            if not key.startswith("x-"):
                self._add_value(key, member, _find_line(text, key))
            if len(self.problems) >= _MAX_PROBLEMS:
                return

    def _parse_text(self, text: str) -> Json:
        if excess := find_excess(text):
            self._add_problem(*excess, hint="shorten it, or remove it")
            return {}
        import tomllib

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            message, line, column = _split_place(str(error), text)
            self._add_problem(f"not TOML: {message}", line, column)
        except RecursionError:
            self._add_problem("nested too deeply")
        except ValueError:
            import re

            # Python itself refuses numbers of thousands of digits and invalid dates, which the reader accepts.
            lines = enumerate(text.splitlines(), 1)
            line = next((n for n, part in lines if re.search(_LONG_NUMBER, part)), 0)
            message = "holds a number of too many digits, or a date that there is not"
            self._add_problem(message, line, int(line > 0))
        return {}

    def _add_value(self, name: str, value: object, line: int) -> None:
        """Check one key and store its value, or report a problem."""
        key = KEYS.get(name)
        if key is None:
            self._refuse_unknown(name, value, line)
        elif not key.type.accepts(value):
            found = "another text" if key.type.may_hide else _preview_value(value)
            # Without a column no line is shown.
            message = f"`{name}`: found {found}, expected {key.type.expected}"
            self._add_problem(message, line, int(not key.type.may_hide))
        elif self.project and (refusal := _explain_project_refusal(name, value)):
            message, hint = refusal
            self._add_problem(f"`{name}`: a project {message}", line, 1, hint=hint)
        elif self.project and name == ROOTS and self._has_own_root(object_of(value)):
            message = "`roots`: a project's own specs stay strict"
            self._add_problem(message, line, 1, hint="remove that table")
        else:
            self.values[name] = self._with_absolute_paths(key, value)
            self.lines[name] = line

    @property
    def registry(self) -> list[str]:
        """Return the registry roots that the file names."""
        roots: list[str] = self.values.get("registry", [])
        return roots

    def _refuse_unknown(self, name: str, value: object, line: int) -> None:
        """Report a key that does not exist."""
        if _is_table_of_settings(name):
            self._add_problem(f"`{name}`: found {_preview_value(value)}, expected a table", line, 1)
            return
        hint = suggestion(name, KEYS) or f"keys: {', '.join(KEYS)}"
        # Without a column no line is shown: a text under an unknown key may be a secret.
        is_plain = isinstance(value, bool | int | float)
        self._add_problem(f"unknown key `{name}`", line, int(is_plain), hint=hint)

    def _has_own_root(self, tables: Json) -> bool:
        """Return whether one of these tables by directory declares the folder of this file."""
        roots = (os.path.realpath(self._make_absolute(root)) for root in tables)
        return os.path.realpath(os.path.dirname(self.path)) in roots

    def _with_absolute_paths(self, key: ConfigKey, value: object) -> object:
        """Return a value with absolute paths. In the file they are relative to its folder."""
        match key.type, value:
            case PathList(), list():
                return [os.path.join(os.path.dirname(self.path), path) for path in value]
            case RootTables(), dict():
                return {self._make_absolute(root): table for root, table in value.items()}
        return value

    def _make_absolute(self, path: str) -> str:
        return os.path.abspath(os.path.join(os.path.dirname(self.path), path))

    def _add_problem(self, message: str, line: int = 0, column: int = 0, *, hint: str = "") -> None:
        self.problems.append(
            UnusableEnvironment(
                "config.key", message, file=self.shown, line=line, column=column, hint=hint
            )
        )


def _explain_project_refusal(name: str, value: object) -> tuple[str, str] | None:
    """Return why a project's file cannot set this value, and how to set it elsewhere; None if it
    can."""
    key = KEYS[name]
    if key.rank is not None and key.rank(value) > key.rank(key.default):
        if name == "trust_level":
            return f"cannot raise trust to {value}", f"use --trust-level {value}"
        hint = f"set {variable(name)}={value}, or write it to your own configuration"
        return f"cannot raise it to {value}", hint
    if name == "use_env_proxy" and value:
        hint = "set COGCLI_USE_ENV_PROXY=1, or write it to your own configuration"
        return "cannot send calls through a proxy", hint
    if name == "export.otlp":
        hint = "set COGCLI_OTLP_ENDPOINT, or write it to your own configuration"
        return "cannot have traces sent anywhere", hint
    if name == EPISODES_MODE:
        hint = f"set {variable(name)}={value}, or write it to your own configuration"
        return "cannot say who may use your episodes", hint
    if name == APPROVERS:
        return "cannot say whose signatures count", "write it to your own configuration"
    return None


def _preview_value(value: object) -> str:
    """Return a value of a file as one short line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, written in another base
        return "a number of too many digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _is_table_of_settings(name: str) -> bool:
    """Return whether a table of settings has this name."""
    return any(key.startswith(f"{name}.") for key in KEYS)


def _flatten_table(name: str, value: object) -> list[tuple[str, object]]:
    """Return a top-level key and its value. For a table of settings, return each member with its
    dotted name."""
    if isinstance(value, dict) and _is_table_of_settings(name):
        return [(f"{name}.{member}", inner) for member, inner in value.items()]
    return [(name, value)]


def _find_line(text: str, name: str) -> int:
    """Return the line that defines a key, otherwise the line of its table; 0 if the file has
    neither."""
    table, _, member = name.partition(".")
    found, inside = 0, False
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip().replace('"', "").replace("'", "").replace(" ", "")
        if bare.startswith(f"{name}=") or (inside and bare.startswith(f"{member}=")):
            return number
        head = bare.lstrip("[")
        if bare.startswith("["):
            inside = bool(member) and head.startswith(f"{table}]")
        if head.startswith(table) and head[len(table) : len(table) + 1] in ("=", "]", "."):
            found = found or number
    return found


def _split_place(message: str, text: str) -> tuple[str, int, int]:
    """Split an error such as `... (at line 3, column 5)` into message, line and column.

    `(at end of document)` is the last line.
    """
    if message.endswith(" (at end of document)"):
        return message.partition(" (at end of ")[0], max(1, len(text.splitlines())), 1
    head, _, place = message.partition(" (at line ")
    line, _, column = place.rstrip(")").partition(", column ")
    return head, int(line) if line.isdigit() else 0, int(column) if column.isdigit() else 0
