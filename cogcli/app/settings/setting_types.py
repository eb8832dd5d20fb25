"""The types of settings that are not options of a run: directories, addresses, locations of
secrets, and tables."""

from __future__ import annotations

import os
from typing import Final, Literal, TypeGuard

from cogcli.declarations.option_types import OptionType, TextList, is_line, is_utf8
from cogcli.declarations.value_types import Json

CONTRACTS: Final = ("strict", "lenient")
MAX_DIRECTORIES: Final = 256
"""The most directories of one setting. Most commands, and each completion, resolve and list all of
them."""

MAX_WORDS: Final = 64
"""The most words of a command, and the most roles or keys of a person."""
MAX_PEOPLE: Final = 1000
_OF_APPROVERS: Final = ("roles", "keys", "revoked")


class PathList(TextList):
    """A list of directories."""

    in_environment = True
    is_joined = True

    def __init__(self) -> None:
        super().__init__(f"a list of at most {MAX_DIRECTORIES} directories")

    def accepts(self, value: object) -> bool:
        if not isinstance(value, list) or len(value) > MAX_DIRECTORIES:
            return False
        return all(map(_is_path, value))

    def json_schema(self) -> Json:
        return {**super().json_schema(), "maxItems": MAX_DIRECTORIES}

    def parse(self, text: str) -> list[str] | None:
        return [path for path in text.split(os.pathsep) if path] or None


class CommandWords(TextList):
    """A program and its arguments."""

    def __init__(self) -> None:
        super().__init__('a list of texts, like ["program", "argument"]')

    def accepts(self, value: object) -> bool:
        if not isinstance(value, list) or len(value) > MAX_WORDS:
            return False
        return not value or (bool(value[0]) and all(map(_is_word, value)))

    def json_schema(self) -> Json:
        return {**super().json_schema(), "maxItems": MAX_WORDS}


class Line(OptionType):
    """A string of one line."""

    expected = "a text of one line"

    def accepts(self, value: object) -> bool:
        return is_line(value)


class Url(OptionType):
    """The address of a service."""

    expected = "an http or https URL without user info and query"
    may_hide = True

    def accepts(self, value: object) -> bool:
        if not isinstance(value, str) or "?" in value:
            return False  # paths are appended to it, and a query may contain a key
        return _has_usable_port(value) and _is_valid_for_service("URL", value)


class SecretLocation(OptionType):
    """The location of a secret."""

    expected = "`NAME`, `env:NAME`, `file:/path` or `keyring:service/user`"
    may_hide = True

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and _is_valid_for_service("SECRET_PLACE", value)

    def parse(self, text: str) -> None:
        """Return None, because a variable of the environment would contain the secret itself."""


class RootTables(OptionType):
    """Tables by directory. Each contains the user's declarations about a registry root."""

    expected = (
        f'tables of at most {MAX_DIRECTORIES} directories with `contracts`, "strict" or "lenient"'
    )
    in_environment = False

    def accepts(self, value: object) -> bool:
        if not isinstance(value, dict) or len(value) > MAX_DIRECTORIES:
            return False
        return all(_is_path(path) and _is_root_table(table) for path, table in value.items())

    def parse(self, text: str) -> None:
        """Return None, because a variable of the environment cannot contain a table."""

    def json_schema(self) -> Json:
        table = {
            "type": "object",
            "properties": {"contracts": {"enum": list(CONTRACTS)}},
            "additionalProperties": False,
        }
        return {
            "type": "object",
            "additionalProperties": table,
            "maxProperties": MAX_DIRECTORIES,
        }


class ApproverTables(OptionType):
    """Tables by person: roles, and keys with which they sign answers."""

    expected = (
        f"tables of at most {MAX_PEOPLE} people with lists of texts: `roles`, `keys` and `revoked`"
    )
    in_environment = False

    def accepts(self, value: object) -> bool:
        if not isinstance(value, dict) or len(value) > MAX_PEOPLE:
            return False
        return all(map(_is_approver_table, value.values()))

    def parse(self, text: str) -> None:
        """Return None, because a variable of the environment cannot contain a table."""

    def json_schema(self) -> Json:
        words = {"type": "array", "items": {"type": "string"}, "maxItems": MAX_WORDS}
        table = {
            "type": "object",
            "properties": dict.fromkeys(_OF_APPROVERS, words),
            "additionalProperties": False,
        }
        return {"type": "object", "additionalProperties": table, "maxProperties": MAX_PEOPLE}


class PinTables(OptionType):
    """The tables of pinned packs: `pins`, and a table per environment in `env`
    (docs/reference/pack.md#pins)."""

    expected = 'tables `pins` and `env.NAME` of versions by pack, like "4.0.0#sha256:..."'

    def accepts(self, value: object) -> bool:
        if not _has_only_keys(value, {"pins", "env"}):
            return False
        pins, named = value.get("pins", {}), value.get("env", {})
        if not isinstance(named, dict):
            return False
        return all(map(_is_version_table, (pins, *named.values())))

    def parse(self, text: str) -> None:
        """Return None, because a variable of the environment cannot contain a table."""

    def json_schema(self) -> Json:
        version = {"type": "string", "pattern": "^[0-9][^#]*(#sha256:[0-9a-f]{64})?$"}
        table = {"type": "object", "additionalProperties": version}
        named = {"type": "object", "additionalProperties": table}
        return {
            "type": "object",
            "properties": {"pins": table, "env": named},
            "additionalProperties": False,
        }


def _is_word(value: object) -> bool:
    """Return whether a value may be an argument of a program."""
    return isinstance(value, str) and "\0" not in value and is_utf8(value)


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _is_root_table(table: object) -> bool:
    return _has_only_keys(table, {"contracts"}) and table.get("contracts", "strict") in CONTRACTS


def _is_approver_table(table: object) -> bool:
    return _has_only_keys(table, set(_OF_APPROVERS)) and all(map(_is_line_list, table.values()))


def _is_line_list(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MAX_WORDS and all(map(is_line, value))


def _has_only_keys(table: object, keys: set[str]) -> TypeGuard[Json]:
    """Return whether a value is a table with at most these keys."""
    return isinstance(table, dict) and table.keys() <= keys


def _is_version_table(table: object) -> bool:
    return isinstance(table, dict) and all(map(_is_version, table.values()))


def _is_version(text: object) -> bool:
    """Return whether a string may be a version of three numbers, with or without a hash.

    It uses no regular expression, because every command imports this module."""
    if not isinstance(text, str):
        return False
    number, mark, digest = text.partition("#")
    parts = number.partition("+")[0].partition("-")[0].split(".")
    has_hash = digest.startswith("sha256:") and len(digest) == 71
    return (not mark or has_hash) and len(parts) == 3 and all(part.isdigit() for part in parts)


def _is_valid_for_service(shape: Literal["URL", "SECRET_PLACE"], text: str) -> bool:
    """Return whether a string is valid as the address of a service, or as the location of its
    credentials."""
    from cogcli.specs import service_shape  # few settings need the shapes of specs

    pattern = service_shape.URL if shape == "URL" else service_shape.SECRET_PLACE
    return pattern.fullmatch(text) is not None


def _has_usable_port(url: str) -> bool:
    """Return whether the URL has no port, or one from 1 to 65535."""
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False
