"""The errors for unknown commands and flags, with the command that the user probably intends.

A command is only suggested, and only if it parses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from shlex import join

from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import did_you_mean, suggestion, suggestion_hint
from cogcli.base.redact import names_secret
from cogcli.cli.app import COMMANDS, first_words, verbs
from cogcli.cli.flag_words import KnownFlags
from cogcli.cli.foreign_words import FLAGS, MEANS, VERBS, translate_line, translate_word
from cogcli.cli.habits import FLAGS as HABITS
from cogcli.cli.habits import translate_habit
from cogcli.cli.options import wrong_flag


class CommandLine(NamedTuple):
    """A command line with an error."""

    argv: list[str]
    words: str
    """The command or group, as far as it was read; empty at the root."""
    words_only: bool
    """Whether `--` stood before the command, so that no flags follow."""
    known: KnownFlags
    parse: Callable[[list[str]], object]
    """Parses a command line. Raises UsageError."""

    def first_that_parses(self, lines: Iterable[list[str]]) -> tuple[str, ...]:
        """Return the first of these command lines that parses and contains no secret, as a tuple of one text. Empty if
        no line does.
        """
        for words in lines:
            if any(_names_secret(word) for word in words):
                continue
            try:
                self.parse(words)
            except UsageError:
                continue
            return (join(["cogcli", *words]),)
        return ()


def _names_secret(word: str) -> bool:
    """Return whether a `name=value` word has the name of a secret."""
    name, sign, _ = word.partition("=")
    return bool(sign) and names_secret(name.rstrip(":"))


# -- commands ---------------------------------------------------------------------------------------------------------


def unknown_command(line: CommandLine, args: list[str]) -> UsageError:
    """Return the error for an unknown first word: one of another tool, or a misspelled one."""
    return (
        _explain_agent_skills_word(line, args)
        or _explain_habit(line, args)
        or _explain_misspelling(line, args[0])
    )


def _explain_agent_skills_word(line: CommandLine, args: list[str]) -> UsageError | None:
    """Return the error for a word of agent-skills, with cogcli's command; None for any other word."""
    word = args[0]
    own = f"{line.words} {VERBS.get(word, '')}" if line.words else translate_word(args)
    if own not in COMMANDS:
        return None
    proposed = line.first_that_parses(translate_line(line.argv, word, own))
    hint = f"use `cogcli {own}`"
    return UsageError(
        "usage.command", _unknown_command_message(line, word), hint=hint, next=proposed
    )


def _explain_habit(line: CommandLine, args: list[str]) -> UsageError | None:
    """Return the error for a common word of other tools, with cogcli's command; None for any other
    word.
    """
    if line.words or line.words_only:
        return None
    before = line.argv[: len(line.argv) - len(args)]
    proposed = line.first_that_parses([*before, *words] for words in translate_habit(args))
    if not proposed:
        return None
    hint = f"use `{proposed[0]}`"
    return UsageError(
        "usage.command", _unknown_command_message(line, args[0]), hint=hint, next=proposed
    )


def _explain_misspelling(line: CommandLine, word: str) -> UsageError:
    """Return the error for a misspelled command."""
    if line.words:
        known = verbs(line.words)
        hint = suggestion(word, known) or f"there is {', '.join(known)}"
        look = f"cogcli {line.words} --help"
    elif "." in word:
        hint = suggestion(word, first_words()) or f"to run a skill: cogcli run {word}"
        look = "cogcli skills ls"
    else:
        hint, look = suggestion(word, first_words()), "cogcli help commands"
    return UsageError(
        "usage.command", _unknown_command_message(line, word), hint=hint, next=(look,)
    )


def _unknown_command_message(line: CommandLine, word: str) -> str:
    """Return the message about an unknown command."""
    if line.words:
        return f"`{line.words}` has no command `{word}`"
    return f"there is no command `{word}`"


# -- flags ------------------------------------------------------------------------------------------------------------


def flag_before_command(name: str, flags_of: Callable[[str], Iterable[str]]) -> UsageError | None:
    """Return the error for a command's flag before the command; None if no command has the flag.

    `flags_of` returns the spellings of the flags of a command.
    """
    owner = next((words for words in COMMANDS if name in flags_of(words)), "")
    if not owner:
        return None
    hint = f"as in `cogcli {owner} {name}`"
    return wrong_flag(f"`{name}` belongs after its command", hint)


def unknown_flag(line: CommandLine, name: str, *, at_group: bool) -> UsageError:
    """Return the error for an unknown flag: one of another tool, an input, or a misspelled one."""
    if name in FLAGS:
        hint = f"use `{FLAGS[name]}`, {MEANS[FLAGS[name]]}"
        proposed = line.first_that_parses(translate_line(line.argv))
        return UsageError("usage.flag", f"there is no flag `{name}`", hint=hint, next=proposed)
    where = "there is" if at_group else f"`{line.words}` has"
    what = f"{where} no flag `{name}`"
    error = _habit_flag(line, name, what) or _input_as_flag(line, name, what)
    if error is not None:
        return error
    look = "cogcli --help" if at_group else f"cogcli {line.words} --help"
    hint = suggestion_hint(_near_flags(name, line.known))
    return UsageError("usage.flag", what, hint=hint, next=(look,))


def _habit_flag(line: CommandLine, name: str, message: str) -> UsageError | None:
    """Return the error for a common flag of other tools; None for any other flag."""
    flag = HABITS.get(name, "")
    if flag not in line.known:
        return None
    proposed = line.first_that_parses([[flag if word == name else word for word in line.argv]])
    return UsageError("usage.flag", message, hint=f"use `{flag}`", next=proposed)


def _input_as_flag(line: CommandLine, name: str, message: str) -> UsageError | None:
    """Return the error for an input written as a flag; None for a near miss, and for commands
    without inputs.
    """
    if not _may_be_input(name, line.known) or _near_flags(name, line.known):
        return None
    proposed = line.first_that_parses(_as_inputs(line.argv, line.known))
    if not proposed:
        return None
    hint = f"an input is given as -p {name[2:].replace('-', '_')}=VALUE"
    return UsageError("usage.flag", message, hint=hint, next=proposed)


def _may_be_input(name: str, known_flags: Mapping[str, object]) -> bool:
    """Return whether an unknown flag may be an input of the command."""
    return "-p" in known_flags and name.startswith("--")


def _near_flags(name: str, known_flags: Mapping[str, object]) -> list[str]:
    """Return similar flags. If the command accepts inputs, the similarity must be higher, because any other word may be
    an input.
    """
    if not _may_be_input(name, known_flags):
        return did_you_mean(name, list(known_flags))
    from difflib import get_close_matches

    words = [flag[2:] for flag in known_flags if flag.startswith("--")]
    return [f"--{word}" for word in get_close_matches(name[2:], words, n=3, cutoff=0.7)]


def _as_inputs(argv: list[str], known_flags: KnownFlags) -> Iterator[list[str]]:
    """Yield the command line with each unknown `--name value` as `-p name=value`; nothing if a flag
    has no value.
    """
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        name, sign, value = word.partition("=")
        if name in known_flags or not name.startswith("--") or name == "--":
            words.append(word)
            if not sign and name in known_flags and not known_flags[name].is_flag:
                words.append(next(rest, ""))
            continue
        value = value if sign else next(rest, "-")
        if not sign and value.startswith("-"):
            return
        words += ["-p", f"{name[2:].replace('-', '_')}={value}"]
    yield words
