"""Configuration: the keys there are, and reading one file of them (docs/reference/command-line.md#settings).

A project's file may lower the trust level, never raise it; capabilities are confirmed by a flag alone.
"""

from __future__ import annotations

import os

from cogcli.core.errors import CogcliError, EnvironmentRefusal
from cogcli.core.files import FileRefused, read_regular
from cogcli.core.problems import suggestion
from cogcli.core.toml_bounds import find_excess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEVELS = ("sandbox", "standard", "elevated", "privileged")
PROJECT_FILE = "cogcli.toml"
PINS = "packs"
ROOTS = "roots"
_LIMIT = 256 * 1024
_MOST_PROBLEMS = 20
"""A file with more is not read on: each costs a search for its line."""
_LONGEST = 60
_LONGEST_TEXT = 500
_LONG_NUMBER = r"[0-9_]{1000}"


class ConfigKey:
    """One setting: its kind, default and range, and the environment variable that sets it."""

    __slots__ = ("choices", "default", "kind", "least", "most")

    def __init__(
        self,
        kind: str,
        default: Any = None,
        *,
        choices: tuple[str, ...] = (),
        least: float = 0,
        most: float = 31_536_000,
    ) -> None:
        self.kind = kind
        self.default = default
        self.choices = choices
        self.least = least
        self.most = most

    @property
    def may_hide(self) -> bool:
        """Whether what stands here in error may be a secret itself, so that it is shown by no message."""
        return self.kind in ("auth_ref", "url")

    @property
    def expected(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind in ("integer", "number"):
            word = "a whole number from" if self.kind == "integer" else "a number above"
            return f"{word} {self.least:,} to {self.most:,}"
        return {
            "boolean": "true or false",
            "paths": "a list of directories",
            "names": "a list of ids",
            "text": "a text of one line",
            "url": "an http or https URL without user info and query",
            "auth_ref": "`NAME`, `env:NAME`, `file:/path` or `keyring:service/user`",
            "roots": 'tables by directory with `contracts`, "strict" or "lenient"',
            "pins": 'tables `pins` and `env.NAME` of versions by pack, like "4.0.0#sha256:..."',
        }[self.kind]


KEYS: dict[str, ConfigKey] = {
    "registry": ConfigKey("paths", ()),
    ROOTS: ConfigKey("roots", {}),
    "builtin": ConfigKey("boolean", True),
    "trust_level": ConfigKey("choice", "standard", choices=LEVELS),
    "keep_going": ConfigKey("boolean", False),
    "max_workers": ConfigKey("integer", 8, least=1, most=256),
    "timeout": ConfigKey("number", None),
    "step_timeout": ConfigKey("number", None),
    "conformance": ConfigKey("choice", None, choices=("experimental", "standard", "strict")),
    "prefer": ConfigKey("names", ()),
    "no_fallback": ConfigKey("boolean", False),
    "durability": ConfigKey("choice", "process", choices=("process", "power", "none")),
    "files.roots": ConfigKey("paths", ()),
    "files.write_roots": ConfigKey("paths", ()),
    "use_env_proxy": ConfigKey("boolean", False),
    "export.otlp": ConfigKey("url", None),
    "progress": ConfigKey("choice", "auto", choices=("auto", "live", "lines", "json", "none")),
    "agent.profile": ConfigKey("choice", "review", choices=("review", "auto")),
    "agent.synthesis_threshold": ConfigKey("integer", 3, least=1, most=1000),
    "agent.synthesis_grace_s": ConfigKey("integer", 5, most=600),
    "model.adapter": ConfigKey(
        "choice", "template", choices=("template", "scripted", "openai", "anthropic", "replay")
    ),
    "model.name": ConfigKey("text", ""),
    "model.base_url": ConfigKey("url", ""),
    "model.auth_ref": ConfigKey("auth_ref", ""),
    "model.timeout_s": ConfigKey("number", 60.0, most=3600),
    "model.context_tokens": ConfigKey("integer", None, least=256, most=100_000_000),
    PINS: ConfigKey("pins", {}),
}
"""By name; one with a dot stands in a table. A project's tables count only once it is trusted."""


class ConfigFile:
    """The settings of one file: values, the line of each key, and every problem."""

    def __init__(
        self, path: str, shown: str, *, project: bool, refusal: CogcliError | None = None
    ) -> None:
        """A `refusal` is the one problem of a file that is not read."""
        self.path = path
        self.shown = shown
        self.project = project
        self.values: dict[str, Any] = {}
        self.lines: dict[str, int] = {}
        self.problems: list[CogcliError] = []
        if refusal is not None:
            self.problems.append(refusal)
        elif os.path.lexists(path):
            self._read()

    def _read(self) -> None:
        try:
            text = read_regular(self.path, limit=_LIMIT).decode("utf-8-sig")
        except FileRefused as error:
            self._problem(error.message)
            return
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            self._problem(
                f"is not UTF-8: byte 0x{error.object[error.start]:02X}",
                line,
                1,
                hint="save it as UTF-8",
            )
            return
        members = [
            pair for name, value in self._parse(text).items() for pair in _members(name, value)
        ]
        for key, member in members:
            if not key.startswith("x-"):
                self._take(key, member, _line_of(text, key))
            if len(self.problems) >= _MOST_PROBLEMS:
                return

    def _parse(self, text: str) -> dict[str, Any]:
        if excess := find_excess(text):
            self._problem(*excess, hint="shorten it, or remove it")
            return {}
        import tomllib

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            message, line, column = _split_place(str(error), text)
            self._problem(f"not TOML: {message}", line, column)
        except RecursionError:
            self._problem("nested too deeply")
        except ValueError:
            import re

            # Of what the reader lets through Python itself refuses numbers of thousands of digits, and odd dates.
            lines = enumerate(text.splitlines(), 1)
            line = next((n for n, part in lines if re.search(_LONG_NUMBER, part)), 0)
            message = "holds a number of too many digits, or a date that there is not"
            self._problem(message, line, int(line > 0))
        return {}

    def _take(self, name: str, value: Any, line: int) -> None:
        key = KEYS.get(name)
        if key is None and _is_of_settings(name):
            self._problem(f"`{name}`: found {_preview(value)}, expected a table", line, 1)
        elif key is None:
            hint = suggestion(name, KEYS) or f"keys: {', '.join(KEYS)}"
            # Without a column no line is shown: a text under a key of no known kind may be a secret.
            is_plain = isinstance(value, bool | int | float)
            self._problem(f"unknown key `{name}`", line, int(is_plain), hint=hint)
        elif (accepted := convert(key, value)) is None:
            found = "another text" if key.may_hide else _preview(value)
            # Without a column no line is shown.
            self._problem(
                f"`{name}`: found {found}, expected {key.expected}", line, int(not key.may_hide)
            )
        elif (
            self.project
            and name == "trust_level"
            and LEVELS.index(value) > LEVELS.index("standard")
        ):
            hint = f"use --trust-level {value}"
            self._problem(
                f"`trust_level`: a project cannot raise trust to {value}", line, 1, hint=hint
            )
        elif self.project and name == "use_env_proxy" and value:
            hint = "set COGCLI_USE_ENV_PROXY=1, or write it to your own configuration"
            self._problem(
                "`use_env_proxy`: a project cannot send calls through a proxy", line, 1, hint=hint
            )
        elif self.project and name == "export.otlp":
            hint = "set COGCLI_OTLP_ENDPOINT, or write it to your own configuration"
            self._problem(
                "`export.otlp`: a project cannot have traces sent anywhere", line, 1, hint=hint
            )
        else:
            folder = os.path.dirname(self.path)
            if key.kind == "paths":
                accepted = [os.path.join(folder, path) for path in accepted]
            elif key.kind == "roots":
                accepted = {
                    os.path.abspath(os.path.join(folder, root)): of for root, of in accepted.items()
                }
                if self.project and os.path.realpath(folder) in map(os.path.realpath, accepted):
                    self._problem(
                        "`roots`: a project's own specs stay strict",
                        line,
                        1,
                        hint="remove that table",
                    )
                    return
            self.values[name], self.lines[name] = accepted, line

    def _problem(self, message: str, line: int = 0, column: int = 0, *, hint: str = "") -> None:
        self.problems.append(
            EnvironmentRefusal(
                "config.key", message, file=self.shown, line=line, column=column, hint=hint
            )
        )


def convert(key: ConfigKey, value: Any) -> Any:
    """The value in the type of the key; None if it does not fit."""
    if key.kind == "boolean":
        return value if isinstance(value, bool) else None
    if key.kind == "choice":
        return value if isinstance(value, str) and value in key.choices else None
    if key.kind == "pins":
        return value if _are_pins(value) else None
    if key.kind == "roots":
        return value if _are_roots(value) else None
    if key.kind in ("text", "url", "auth_ref"):
        return value if isinstance(value, str) and _is_text(key.kind, value) else None
    if key.kind == "names":
        fits = isinstance(value, list) and all(
            isinstance(name, str) and _is_text("text", name) for name in value
        )
        return list(value) if fits else None
    if key.kind == "paths":
        fits = isinstance(value, list) and all(
            isinstance(path, str) and path and "\0" not in path for path in value
        )
        return list(value) if fits else None
    if isinstance(value, bool) or not isinstance(
        value, int if key.kind == "integer" else (int, float)
    ):
        return None
    return value if key.least <= value <= key.most and (value or key.kind == "integer") else None


def _is_text(kind: str, value: str) -> bool:
    """Whether a text is of one line and, for an address or the place of a secret, of the form that services take."""
    if kind == "text":
        return bool(value) and value.isprintable() and len(value) <= _LONGEST_TEXT
    from cogcli.specs.service_shape import CREDENTIALS, URL

    if kind == "url" and "?" in value:
        return False  # paths are added to it, and a key may stand there
    if kind == "url" and not _has_usable_port(value):
        return False
    pattern = (URL if kind == "url" else CREDENTIALS).pattern
    return pattern is not None and pattern.fullmatch(value) is not None


def _has_usable_port(url: str) -> bool:
    """Whether an address names no port, or one that there can be."""
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def _are_pins(value: Any) -> bool:
    """Whether a value is tables of pins: `pins`, and `env` by name (docs/reference/pack.md#pins)."""
    if not isinstance(value, dict) or not value.keys() <= {"pins", "env"}:
        return False
    named = value.get("env", {})
    return isinstance(named, dict) and all(map(_is_table, [value.get("pins", {}), *named.values()]))


CONTRACTS = ("strict", "lenient")


def _are_roots(value: Any) -> bool:
    """Whether a value is tables of what is said of roots, by directory."""
    return isinstance(value, dict) and all(
        path and "\0" not in path and isinstance(of, dict) and of.keys() <= {"contracts"}
        and of.get("contracts", "strict") in CONTRACTS
        for path, of in value.items()
    )  # fmt: skip


def _is_table(table: Any) -> bool:
    return isinstance(table, dict) and all(map(_is_version, table.values()))


def _is_version(text: Any) -> bool:
    """Whether a text may be a version with three numbers, perhaps with a hash. No pattern: every command reads this."""
    if not isinstance(text, str):
        return False
    number, mark, digest = text.partition("#")
    parts = number.partition("+")[0].partition("-")[0].split(".")
    named = not mark or (digest.startswith("sha256:") and len(digest) == 71)
    return named and len(parts) == 3 and all(part.isdigit() for part in parts)


def from_text(key: ConfigKey, text: str) -> Any:
    """The value of the text of an environment variable; None if it does not fit."""
    if key.kind == "paths":
        return [path for path in text.split(os.pathsep) if path] or None
    if key.kind == "boolean":
        return {"1": True, "true": True, "0": False, "false": False}.get(text.lower())
    if key.kind in ("choice", "text", "url"):
        return convert(key, text)
    if not text.isascii() or "_" in text:
        return None
    try:
        return convert(key, int(text) if key.kind == "integer" else float(text))
    except ValueError:
        return None


def _preview(value: Any) -> str:
    """A value of a file as one short line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, written in another base
        return "a number of too many digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _is_of_settings(name: str) -> bool:
    """Whether this is the name of a table of settings."""
    return any(key.startswith(f"{name}.") for key in KEYS)


def _members(name: str, value: Any) -> list[tuple[str, Any]]:
    """A top-level key with its value; of a table of settings each of its members, with its dotted name."""
    if isinstance(value, dict) and _is_of_settings(name):
        return [(f"{name}.{member}", inner) for member, inner in value.items()]
    return [(name, value)]


def _line_of(text: str, name: str) -> int:
    """The line that defines a key; of a member without a line of its own that of its table; 0 if none is found."""
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
    """Message, line and column of `... (at line 3, column 5)`; the last line for `(at end of document)`."""
    if message.endswith(" (at end of document)"):
        return message.partition(" (at end of ")[0], max(1, len(text.splitlines())), 1
    head, _, place = message.partition(" (at line ")
    line, _, column = place.rstrip(")").partition(", column ")
    return head, int(line) if line.isdigit() else 0, int(column) if column.isdigit() else 0
