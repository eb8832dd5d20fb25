"""Errors and problems as lines: code, message, location, expected and found, next commands
(docs/reference/command-line.md#errors).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cogcli.base.errors import CogcliError
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.problems import Problem, names_from_hint
from cogcli.base.terminal_text import visible
from cogcli.cli.typer_app import parse
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine, named_rows

if TYPE_CHECKING:
    from cogcli.cli.code_frame import Sources

_SECRETIVE = ("secret.literal", "service.url")
"""Problems about forbidden content of a file: only their place is shown."""

_LOOK = {
    "skill.not-found": "cogcli skills ls",
    "input.file": "cogcli help inputs",
    "input.json": "cogcli help inputs",
    "input.encoding": "cogcli help inputs",
    "input.empty": "cogcli help inputs",
    "usage.flag": "cogcli {command} --help",
    "usage.value": "cogcli {command} --help",
    "env.runs-dir": "cogcli doctor",
    "config.key": "cogcli config show --origin",
    "path.absent": "",
}
"""The command that shows more, by code. Other errors have a page; an absent path needs none."""


class DisplayedError(Record):
    """The displayed members of an error of the envelope."""

    code: str
    message: str
    hint: str
    file: str
    line: int
    column: int
    step: str
    capability: str
    binding: str
    service: str
    tried: list[str]
    expected: object = None
    found: object = None
    reply: object = None
    lacking: str
    curl: str
    causes: list[str]


def error_lines(
    json: Json, *, base: str = "", width: int | None = None, verbose: bool = False,
    typed: Mapping[str, bytes] | None = None,
) -> list[StyledLine]:  # fmt: skip
    """Return an error of the envelope as lines for stderr, without its next commands.

    With `verbose` each cause is included. `typed` is that of the CogcliError.
    """
    error = read_record(DisplayedError, json)
    message, hint = visible(error.message), error.hint
    rows = _detail_rows(error)
    if hint.startswith("did you mean") and not rows and not error.file:
        message, hint = f"{message}; {visible(hint)}", ""
    lines: list[StyledLine] = [[(f"error[{error.code}]", "error"), (f": {message}", "bold")]]
    if error.file:
        lines += _framed_place(error, base, width, typed)
    rows += help_rows(hint)
    if error.curl:
        rows.append(("curl", error.curl))
    if verbose:
        rows += [("cause", cause) for cause in error.causes]
    return lines + named_rows(rows)


def _detail_rows(error: DisplayedError) -> list[tuple[str, str]]:
    """Return the details of an error besides its message, by name: the call, the attempts, the
    values.
    """
    call = (error.step, error.capability, error.binding, error.service)
    rows = [("step" if error.step else "call", " → ".join(filter(None, call)))]
    rows += [("" if number else "tried", text) for number, text in enumerate(error.tried)]
    rows.append(("expected", _value_text(error.expected)))
    rows.append(("found", _value_text(error.found)))
    rows.append(("reply", _value_text(error.reply)))
    return [(name, text) for name, text in rows if text]


def _value_text(value: object) -> str:
    """Return a value as text; empty for None."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _framed_place(
    error: DisplayedError, base: str, width: int | None, typed: Mapping[str, bytes] | None
) -> list[StyledLine]:
    """Return the location of an error with its source line."""
    missing = f"no `{error.lacking}` in this reply" if error.lacking else ""
    place = (error.file, error.line, error.column)
    return _frame(place, width=width, base=base, typed=typed, note=missing)


def _frame(
    place: tuple[str, int, int], *, width: int | None, base: str, typed: Mapping[str, bytes] | None,
    sources: Sources | None = None, note: str = "",
) -> list[StyledLine]:  # fmt: skip
    """Return a location with its source line, from `sources` if they are given."""
    from cogcli.cli.code_frame import Sources, frame

    return frame(*place, width=width, sources=sources or Sources(base, typed=typed), note=note)


def next_lines(commands: tuple[str, ...] | list[str]) -> list[StyledLine]:
    """Return a line per command, with `next:` before the first."""
    heads = ["next: ", *["      "] * (len(commands) - 1)]
    return [
        [(head, "dim"), (visible(text), "")] for head, text in zip(heads, commands, strict=False)
    ]


def problem_lines(
    problem: Problem, *, base: str = "", width: int | None = None, as_error: bool = True,
    sources: Sources | None = None, typed: Mapping[str, bytes] | None = None, fixable: bool = False,
) -> list[StyledLine]:  # fmt: skip
    """Return the lines of a problem: severity, code, message, source line, help.

    `typed` is that of the CogcliError.
    """
    word = problem.severity_word(as_error=as_error)
    lines: list[StyledLine] = [
        [(f"{word}[{problem.code}]", word), (f": {visible(problem.message)}", "bold")]
    ]
    if problem.file:
        place = (problem.file, problem.line, problem.column)
        framed = _frame(place, width=width, base=base, typed=typed, sources=sources)
        if fixable:
            framed[0] = [*framed[0], ("   (fixable)", "dim")]
        lines += framed[:1] if _may_show_secret(problem) else framed
    for name, text in help_rows(problem.hint):
        sign, head = ("   = ", "help: ") if name else ("     ", "      ")
        lines.append([(sign, "dim"), (f"{head}{visible(text)}", "")])
    return lines


def _may_show_secret(problem: Problem) -> bool:
    """Return whether the source line of a problem may contain a secret."""
    return problem.code in _SECRETIVE or any(map(_names_secret, problem.path.split("/")))


def _names_secret(name: str) -> bool:
    from cogcli.base.redact import names_secret

    return names_secret(name)


def help_rows(hint: str) -> list[tuple[str, str]]:
    """Return the lines of a hint, named `help` on the first."""
    return [
        ("" if number else "help", text)
        for number, text in enumerate(hint.split("\n") if hint else ())
    ]


def problems_lines(
    problems: list[Problem], next: tuple[str, ...], base: str, width: int | None,
    typed: Mapping[str, bytes] | None = None,
) -> list[StyledLine]:  # fmt: skip
    """Return the lines of problems that keep a command from starting, with their number and the
    next commands.

    `typed` is that of the CogcliError.
    """
    lines: list[StyledLine] = []
    for problem in problems:
        lines += [*problem_lines(problem, base=base, width=width, typed=typed), [("", "")]]
    errors = count_of(sum(problem.severity != "W" for problem in problems), "error")
    return [*lines, [(f"{errors}; nothing ran, nothing was written", "")], *next_lines(next)]


def next_steps(
    error: CogcliError, command: str, argv: list[str], global_flags: str = ""
) -> list[str]:
    """Return the commands to suggest: the corrected command and those of the error, or else one
    that shows details.

    `global_flags` select the same episodes and specs.
    """
    fixed = _corrected_command(error, argv)
    if not fixed and not error.next:
        look = _LOOK.get(error.code, f"cogcli explain {error.code}")
        return (
            [redirect_command(" ".join(look.format(command=command).split()), global_flags)]
            if look
            else []
        )
    return [
        *([fixed] if fixed else []),
        *(redirect_command(text, global_flags) for text in error.next),
    ]


def redirect_command(command: str, global_flags: str) -> str:
    """Return the command with `global_flags` added if it reads episodes or specs."""
    tool, _, rest = command.partition(" ")
    is_text = rest.startswith(("help", "explain")) or rest.endswith("--help")
    return (
        command
        if tool != "cogcli" or is_text or global_flags in command
        else f"{command}{global_flags}"
    )


def redirect_hint(problem: Problem, global_flags: str) -> Problem:
    """Return the problem with `global_flags` added to the commands of its hint."""
    lines = (redirect_command(line, global_flags) for line in problem.hint.split("\n"))
    return problem._replace(hint="\n".join(lines)) if global_flags and problem.hint else problem


def _corrected_command(error: CogcliError, argv: list[str]) -> str:
    """Return the typed command with all problems corrected; empty if that is ambiguous or may
    repeat a secret.
    """
    from shlex import join

    if any(_names_secret(word.partition("=")[0].rstrip(":")) for word in argv if "=" in word):
        return ""
    fixed = _correct_all_problems(error, argv)
    if fixed is None:
        return ""
    try:
        parse(fixed)
    except CogcliError:
        return ""
    return join(["cogcli", *fixed])


def _correct_all_problems(error: CogcliError, argv: list[str]) -> list[str] | None:
    """Return the words with all problems corrected; None if one is ambiguous."""
    problems = [each for each in getattr(error, "problems", ()) if each.severity != "W"]
    fixed: list[str] | None = list(argv)
    for one in problems or [error]:
        if fixed is not None:
            fixed = _correct_problem(one, fixed, error.samples)
    if error.code == "skill.not-found" and not _INPUTS.intersection(argv):
        for name in error.samples:
            fixed = fixed and _add_missing_input(fixed, error.samples, name)
    return fixed


def _correct_problem(
    one: CogcliError | Problem, argv: list[str], samples: dict[str, str]
) -> list[str] | None:
    """Return the words with one problem corrected; None if that is ambiguous."""
    if one.code == "input.missing":
        return _add_missing_input(argv, samples, str(getattr(one, "path", "")).rpartition("/")[2])
    if hosts := _ALLOWED_HOSTS.search(one.hint):
        return [*argv, *hosts[1].split()] if "--" not in argv else None
    choice = None if names_from_hint(one.hint) else _OTHER_BINDING.search(one.hint)
    return _set_binding(argv, choice[1]) if choice else _correct_spelling(one, argv, samples)


_ALLOWED_HOSTS = lazy_pattern(r"^allow it for one run: (--allow-host (?!HOST$).+)$", re.MULTILINE)
"""The line of a hint that names hosts which may be allowed."""
_OTHER_BINDING = lazy_pattern(r"^for one run: --bind (\S+=\S+)$", re.MULTILINE)
"""The line of a hint that suggests another callable binding."""


def _set_binding(argv: list[str], choice: str) -> list[str] | None:
    """Return the words with `--bind CAP=BINDING`, which replaces another choice for that
    capability.

    None if the words contain `--` or `--bind=...`, which this cannot replace.
    """
    capability = choice.partition("=")[0]
    kept: list[str] = []
    for word in argv:
        if kept[-1:] == ["--bind"] and word.partition("=")[0] == capability:
            kept.pop()
        else:
            kept.append(word)
    if "--" in kept or any(word.startswith("--bind=") for word in kept):
        return None
    return [*kept, "--bind", choice]


def _correct_spelling(
    error: CogcliError | Problem, argv: list[str], samples: Mapping[str, str]
) -> list[str] | None:
    """Return the words with the misspelled one corrected; None if the word or its correction is
    unknown.

    `samples` shows which inputs take JSON, because the text of another input does not fit there.
    """
    meant = re.match(r"did you mean `([^`]+)`", error.hint)
    quoted = re.findall(r"`([^`]+)`", error.message)
    if meant is None or not quoted:
        return None
    right, wrong = meant[1], quoted[-1]
    places = [n for n, word in enumerate(argv) if wrong in (word, *word.split("=", 1))]
    if not places:
        return _correct_json_spelling(argv, wrong, right)
    if len(places) != 1:
        return None
    (place,) = places
    if right == f"-p {argv[place]}":
        return [*argv[:place], "-p", *argv[place:]]
    word = "=".join(right if part == wrong else part for part in argv[place].split("=", 1))
    takes_json = samples.get(right, "").startswith(f"{right}:=")
    if takes_json and word.startswith(f"{right}="):
        return None
    return _replace_word(argv, place, word)


def _replace_word(argv: list[str], place: int, word: str) -> list[str] | None:
    """Return the words with another word at an index. None if another word already sets the same input."""
    fixed = [*argv[:place], word, *argv[place + 1 :]]
    names = [_input_name(each) for each in fixed if "=" in each]
    return None if names.count(_input_name(word)) > 1 else fixed


def _correct_json_spelling(argv: list[str], misspelled: str, corrected: str) -> list[str] | None:
    """Return the words with a string replaced in a JSON value; None unless exactly one value contains
    it exactly once.
    """
    places = [n for n, word in enumerate(argv) if word.count(f'"{misspelled}"') == 1]
    if len(places) != 1 or '"' in corrected or "\\" in corrected:
        return None
    (place,) = places
    return [
        *argv[:place],
        argv[place].replace(f'"{misspelled}"', f'"{corrected}"'),
        *argv[place + 1 :],
    ]


def _add_missing_input(argv: list[str], samples: dict[str, str], name: str) -> list[str] | None:
    """Return the words with a sample value for an input, unchanged if the input is already given.

    None without a sample, and for a command that reads stdin, because a second run could not read
    the same data.
    """
    from shlex import split

    if any(_input_name(word) == name for word in argv if "=" in word):
        return argv
    if name not in samples or "-" in argv or any(word.endswith("=@-") for word in argv):
        return None
    end = argv.index("--") if "--" in argv else len(argv)
    return [*argv[:end], "-p", *split(samples[name]), *argv[end:]]


def _input_name(word: str) -> str:
    """Return the name in `name=text` or `name:=JSON`."""
    return word.partition("=")[0].rstrip(":")


_INPUTS = frozenset(("--input", "--input-file"))
