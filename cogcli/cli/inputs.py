"""The input object of a run from `--input`, `--input-file`, `-p` and stdin
(docs/reference/command-line.md#inputs).

1. `-p` wins over the object of --input or --input-file; both of these together are an error.
2. Text from `-p` is read here and gets its declared type in `run/given_inputs.py`; JSON is never
   converted.
3. A file is not read through a link that leaves a project which is not trusted
   (docs/reference/service.md#links).
4. stdin is read only for `-`, once, and never beyond the limit.
5. Problems are collected and reported together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from cogcli.base.errors import UsageError
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.jsonvalue import preview
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.problems import suggestion
from cogcli.base.strict_json import MAX_BYTES
from cogcli.cli.context import CommandContext
from cogcli.cli.options import wrong_value
from cogcli.cli.prompt import read_stdin
from cogcli.cli.run_flags import RunFlags
from cogcli.declarations.value_types import Json
from cogcli.run.given_inputs import InputFile, InputText, json_value
from cogcli.run.input_origins import FILE, TYPED

_Read = TypeVar("_Read")


def read_inputs(context: CommandContext, flags: RunFlags) -> CommandInputs:
    """Return the inputs and the frame of a run, with the problems of reading them. Raise
    UnusableEnvironment `project.link`.
    """
    result = CommandInputs(context)
    result.read(flags)
    return result


class CommandInputs:
    """The inputs and the frame of a command line, and the problems of reading them."""

    def __init__(self, context: CommandContext) -> None:
        self.inputs: Json = {}
        """Values, and a InputText or InputFile for each text of `-p`."""
        self.frame: Json = {}
        self.problems: list[UsageError] = []
        self.doubtful: set[str] = set()
        """Names of given inputs, readable or not (`*` for all): they are not missing."""
        self.origins: dict[str, str] = {}
        """By input where it comes from, a word of `run.input_origins`."""
        self._context = context
        self._has_read_stdin = False

    def read(self, flags: RunFlags) -> None:
        """Read the inputs and the frame, and collect problems."""
        if flags.input is not None and flags.input_file is not None:
            what = "`--input` and `--input-file` cannot be given together"
            self.problems.append(UsageError("usage.flag", what, hint="keep one of them"))
        elif flags.input is not None:
            self._set_object(partial(self._object_from_flag, flags.input))
            if flags.input != "-" and not flags.input.startswith("@"):
                self.origins = dict.fromkeys(self.inputs, TYPED)
        elif flags.input_file is not None:
            self._set_object(partial(_read_object, self._context, flags.input_file, "--input-file"))
        if self.problems:
            self.doubtful.add("*")
        for pair in flags.p:
            self._collect_errors(partial(self._add_pair, pair))
        if (file := flags.options.get("frame")) is not None:
            read = partial(_read_object, self._context, file, "--frame-file")
            self.frame = self._collect_errors(read) or {}

    def _set_object(self, load: Callable[[], Json]) -> None:
        """Set the inputs to the object that `load` returns."""
        self.inputs = self._collect_errors(load) or {}
        self.origins = dict.fromkeys(self.inputs, FILE)

    def _collect_errors(self, action: Callable[[], _Read]) -> _Read | None:
        """Return the result of `action`. If it raises UsageError, collect the error and return None."""
        try:
            return action()
        except UsageError as error:
            self.problems.append(error)
        return None

    def _object_from_flag(self, text: str) -> Json:
        """Return the object of `--input`: JSON, `@FILE` or `-`."""
        if text == "-":
            return _require_object(
                json_value(self._read_all_of_stdin(), "stdin"), "stdin", flag="--input"
            )
        if text.startswith("@"):
            return _read_object(self._context, text[1:], "--input")
        return _require_object(json_value(text, "--input"), flag="--input")

    def _add_pair(self, pair: str) -> None:
        """Add the input of a `-p`."""
        name, equals, text = pair.partition("=")
        as_json = name.endswith(":")
        name = name.removesuffix(":")
        if not equals or not name:
            raise UsageError(
                "usage.value",
                f"`-p {pair[:60]}`: found no name and value",
                expected="k=v, k=@FILE or k:=JSON",
            )
        if name in self.doubtful:
            raise UsageError("usage.flag", f"`-p {name}` is given twice", hint="keep one of them")
        self.doubtful.add(name)
        is_file = not as_json and text.startswith("@") and not text.startswith("@@")
        self.origins[name] = FILE if is_file else TYPED
        self.inputs[name] = self._pair_value(name, text, as_json)

    def _pair_value(self, name: str, text: str, as_json: bool) -> object:
        """Return the value of a `-p`: JSON, text, or a file or stdin, which is read when its type is known."""
        where = f"-p {name}"
        if as_json:
            return json_value(text, where)
        if text.startswith("@@"):
            return InputText(text[1:], where)
        if text.startswith("@"):
            return InputFile(text[1:], partial(self._read_text, where, text[1:]))
        return InputText(text, where)

    def _read_text(self, source: str, path: str) -> InputText:
        """Return the text of a file, or of stdin for `-`. Raise UsageError, or UnusableEnvironment `project.link`."""
        if path == "-":
            return InputText(_decode_text(self._read_all_of_stdin(), "stdin"), source)
        text = _decode_text(read_bytes(self._context, path), path)
        return InputText(text, f"{source}, file {path}")

    def _read_all_of_stdin(self) -> bytes:
        """Return the content of stdin. Raise UsageError for a second read or too much data."""
        if self._has_read_stdin:
            raise UsageError(
                "usage.value", "stdin can be read only once", hint="give the other input as a file"
            )
        self._has_read_stdin = True
        data = read_stdin(self._context.screen, MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise UsageError(
                "input.size",
                f"stdin: more than {MAX_BYTES:,} bytes",
                hint="send less, or split the input",
            )
        return data


_HASH = lazy_pattern(r"(?:sha256:)?([0-9a-f]{64})")


def parse_hash(text: str, flag: str) -> str:
    """Return `sha256:` and the digits of a hash that was typed with or without that prefix. Raise
    UsageError.
    """
    match = _HASH.fullmatch(text)
    if match is None:
        expected = "sha256: and 64 hex digits, in lower case"
        raise wrong_value(f"`{flag}`: found `{text[:80]}`", expected=expected)
    return f"sha256:{match[1]}"


def parse_step_word(text: str, flag: str, choices: Sequence[str]) -> tuple[str | None, str]:
    """Return the step path and the word of `[STEP=]WORD`; the path is None if it is omitted. Raise
    UsageError.
    """
    step, equals, word = text.rpartition("=")
    if word not in choices or (equals and not step):
        raise UsageError(
            "usage.value",
            f"`{flag}`: found `{text[:60]}`, expected one of {', '.join(choices)}",
            hint=suggestion(word, list(choices)),
        )
    return step or None, word


def read_json_flag(context: CommandContext, text: str, flag: str) -> Json:
    """Return the object of a flag that takes JSON or `@FILE`. Raise UsageError or
    UnusableEnvironment `project.link`.
    """
    if text.startswith("@"):
        return _read_object(context, text[1:], flag)
    return _require_object(json_value(text, flag), flag=flag)


def read_bytes(context: CommandContext, path: str) -> bytes:
    """Return the bytes of a file. Raise UsageError `input.file` or `input.size`, or
    UnusableEnvironment `project.link`."""
    if not path:
        raise UsageError("input.file", "an empty word names no file", hint="is a variable unset?")
    if os.path.realpath(path) != os.path.abspath(path):
        context.settings.require_inside(path)
    try:
        return read_regular(path, limit=MAX_BYTES)
    except UnreadableFile as error:
        code = "input.size" if error.reason == "too-large" else "input.file"
        hint = _similar_names_hint(path) if error.reason == "missing" else ""
        raise UsageError(code, f"`{path}` {error.message}", hint=hint) from error


def _similar_names_hint(path: str) -> str:
    """Return a hint with similar file names; empty if no name is similar."""
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or os.curdir)[:2000]
    except OSError:
        return ""
    found = [os.path.join(folder, near) for near in get_close_matches(name, names, n=3)]
    return f"did you mean {' or '.join(f'`{near}`' for near in found)}?" if found else ""


def _decode_text(data: bytes, source: str) -> str:
    """Return UTF-8 bytes as text. Raise UsageError `input.encoding`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = (
            "UTF-16"
            if data[:2] in (b"\xff\xfe", b"\xfe\xff")
            else f"byte 0x{data[error.start]:02X} at {error.start}"
        )
        raise UsageError(
            "input.encoding", f"`{source}` is not UTF-8: {found}", hint="save it as UTF-8"
        ) from error


def _read_object(context: CommandContext, path: str, flag: str) -> Json:
    """Return the object in a YAML or JSON file. Raise UsageError, or the errors of `read_bytes`."""
    if path.lower().endswith((".yaml", ".yml")):
        return _require_object(_read_yaml(context, path), path, flag=flag)
    return _require_object(json_value(read_bytes(context, path), path, file=path), path, flag=flag)


def _read_yaml(context: CommandContext, path: str) -> object:
    """Return the value in a YAML file. Raise UsageError."""
    from cogcli.base.yaml.reader import parse

    data = read_bytes(context, path)
    if not data.strip():
        raise UsageError("input.empty", f"`{path}` is empty", hint="write {} for no inputs")
    parsed = parse(data, file=path)
    for first in parsed.problems:
        raise UsageError(
            "input.file",
            first.message,
            file=path,
            line=first.line,
            column=first.column,
            hint=first.hint,
        )
    return parsed.value


def _require_object(value: object, file: str = "", *, flag: str) -> Json:
    """Return the value if it is an object. Raise UsageError `input.type` otherwise."""
    if isinstance(value, dict):
        return value
    where = f"`{flag}`" + (f" ({file})" if file else "")
    what = {"--frame-file": "the fields of a frame", "--output": "outputs"}.get(flag, "inputs")
    raise UsageError("input.type", f"{where}: expected an object of {what}, found {preview(value)}")
