"""Parsing argv by the table (docs/reference/command-line.md#flags).

1. Global flags stand anywhere, a command's own flags after its name.
2. `--flag value`, `--flag=value`, `-p value`, `-pvalue`, `-qv`; after `--` everything is positional.
3. A value flag takes the next word, whatever it is, unless that word is a flag known here.
4. Nothing is guessed: a near miss is an error that names what may have been meant.
"""

from __future__ import annotations

from cogcli.cli.table import (
    BY_NAME,
    CHOICE,
    GLOBAL_FLAGS,
    INTEGER,
    NUMBER,
    SHORT,
    SWITCH,
    VERBS,
    Command,
    Flag,
)
from cogcli.core.errors import UsageError
from cogcli.core.outside import require_argument

Value = str | int | float | bool | list[str]

_GLOBAL = {flag.name: flag for flag in GLOBAL_FLAGS}


class Arguments:
    """What was asked: the command (empty for none), a bare group, positional words and flag values."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.command: Command | None = None
        self.group = ""
        self.words: list[str] = []
        self.values: dict[str, Value] = {}

    def given(self, name: str) -> bool:
        """Whether a flag was given at all."""
        return name in self.values

    def on(self, name: str) -> bool:
        """Whether a switch was given."""
        return self.values.get(name) is True

    def text(self, name: str) -> str | None:
        """The value of a text or choice flag."""
        value = self.values.get(name)
        return value if isinstance(value, str) else None

    def many(self, name: str) -> list[str]:
        """The values of a repeatable flag, in order."""
        value = self.values.get(name)
        return value if isinstance(value, list) else []

    def integer(self, name: str, default: int) -> int:
        """The value of an integer flag."""
        value = self.values.get(name)
        return value if isinstance(value, int) else default

    def number(self, name: str) -> float | None:
        """The value of a number flag."""
        value = self.values.get(name)
        return value if isinstance(value, float) else None


def parse(argv: list[str]) -> Arguments:
    """What argv asks for. Raises UsageError."""
    return Parser(argv).parse()


def suggest(word: str, known: list[str]) -> str:
    """A hint naming what may have been meant, or nothing."""
    from difflib import get_close_matches

    found = get_close_matches(word, known, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(f'`{name}`' for name in found)}?" if found else ""


class Parser:
    """Reads one argv; after an error `command` still tells which command it was for, as far as that was known."""

    def __init__(self, argv: list[str]) -> None:
        self._left = list(argv)
        self._flags = dict(_GLOBAL)
        self._result = Arguments(list(argv))

    @property
    def command(self) -> str:
        """The words of the command or group found so far."""
        return self._result.command.name if self._result.command else self._result.group

    def parse(self) -> Arguments:
        """What is asked for. Raises UsageError."""
        while self._left:
            word = self._taken()
            if word == "--":
                while self._left:
                    self._positional(self._taken())
                break
            if word.startswith("--"):
                self._long(word)
            elif word.startswith("-") and word != "-":
                self._short(word)
            else:
                self._positional(word)
        if not self._result.on("--help"):
            self._check_count()
        return self._result

    def _taken(self) -> str:
        """The next word, which the parser is done with. Raises UsageError where it is no UTF-8."""
        word = self._left.pop(0)
        if not word.isascii():
            require_argument(self._result.argv, len(self._result.argv) - len(self._left) - 1)
        return word

    def _positional(self, word: str) -> None:
        result = self._result
        if result.command:
            result.words.append(word)
        elif result.group:
            self._choose(f"{result.group} {word}", word, list(VERBS[result.group]))
        elif word in VERBS:
            result.group = word
        else:
            self._choose(word, word, list(dict.fromkeys(name.split()[0] for name in BY_NAME)))

    def _choose(self, name: str, word: str, known: list[str]) -> None:
        command = BY_NAME.get(name)
        if command is None:
            raise self._no_command(word, known)
        self._result.command = command
        self._flags.update({flag.name: flag for flag in command.flags})

    def _no_command(self, word: str, known: list[str]) -> UsageError:
        group = self._result.group
        what = f"`{group}` has no command `{word}`" if group else f"there is no command `{word}`"
        hint = suggest(word, known)
        next = f"cogcli {group}" if group else "cogcli"
        if not group and "." in word:
            hint, next = hint or f"to run a skill: cogcli run {word}", "cogcli skills ls"
        return UsageError(
            "usage.command", what, hint=hint or f"there is {', '.join(known)}", next=(f"{next} --help",)
        )

    def _long(self, word: str) -> None:
        name, equals, value = word.partition("=")
        flag = self._flags.get(name)
        if flag is None:
            raise self._no_flag(name)
        if flag.kind == SWITCH:
            if equals:
                raise UsageError("usage.value", f"`{name}` takes no value", found=value)
            self._result.values[name] = True
        else:
            self._store(flag, value if equals else self._value_of(flag))

    def _short(self, word: str) -> None:
        name, rest = word[:2], word[2:]
        flag = self._flags.get(SHORT.get(name, name))
        if flag is None:
            raise self._no_flag(word)
        if flag.kind == SWITCH:
            self._result.values[flag.name] = True
            if rest:
                self._short(f"-{rest}")
        else:
            self._store(flag, rest if rest else self._value_of(flag))

    def _value_of(self, flag: Flag) -> str:
        known = self._left and self._left[0].partition("=")[0] in self._flags
        if not self._left or known:
            found = f"`{self._left[0]}`" if known else "nothing"
            raise UsageError(
                "usage.value", f"`{flag.name}` needs a value", expected=flag.metavar, found=found,
            )  # fmt: skip
        return self._taken()

    def _store(self, flag: Flag, raw: str) -> None:
        values = self._result.values
        if flag.repeatable:
            values[flag.name] = [*self._result.many(flag.name), raw]
            return
        if flag.name in values and flag.name not in _GLOBAL:
            raise UsageError("usage.flag", f"`{flag.name}` is given twice", hint="keep one of them")
        values[flag.name] = _typed(flag, raw)

    def _no_flag(self, name: str) -> UsageError:
        command = self._result.command
        if command is None:
            owners = [c.name for c in BY_NAME.values() if any(f.name == name for f in c.flags)]
            if owners:
                return UsageError(
                    "usage.flag",
                    f"`{name}` belongs after its command",
                    hint=f"as in `cogcli {owners[0]} {name}`",
                )
        where = f"`{command.name}` has" if command else "there is"
        hint = suggest(name, [*self._flags, *(s for s in SHORT if SHORT[s] in self._flags)])
        own = f"cogcli {command.name} --help" if command else "cogcli --help"
        return UsageError("usage.flag", f"{where} no flag `{name}`", hint=hint, next=(own,))

    def _check_count(self) -> None:
        command, words = self._result.command, self._result.words
        if command is None:
            return
        if len(words) > command.most:
            extra = words[command.most]
            raise UsageError(
                "usage.value",
                f"`{command.name}` has no place for `{extra}`",
                expected=command.arguments or "no further words",
                next=(f"cogcli {command.name} --help",),
            )
        if len(words) < command.least:
            raise UsageError(
                "usage.value",
                f"`{command.name}` needs {command.arguments}",
                next=(_where_to_look(command),),
            )


def _where_to_look(command: Command) -> str:
    return "cogcli skills ls" if command.arguments in ("SKILL", "ID") else f"cogcli {command.name} --help"


def _typed(flag: Flag, raw: str) -> Value:
    if flag.kind == CHOICE:
        if raw not in flag.choices:
            raise UsageError(
                "usage.value",
                f"`{flag.name}`: found `{raw}`, expected one of {', '.join(flag.choices)}",
                hint=suggest(raw, list(flag.choices)),
            )
        return raw
    if flag.kind in (INTEGER, NUMBER):
        return _number(flag, raw)
    return raw


def _number(flag: Flag, raw: str) -> int | float:
    bounds = f"from {flag.least or 0:,}" if flag.kind == INTEGER else f"above {flag.least or 0:,}"
    expected = f"{'a whole number' if flag.kind == INTEGER else 'a number'} {bounds} to {flag.most or 0:,}"
    wrong = UsageError("usage.value", f"`{flag.name}`: found `{raw[:40]}`, expected {expected}")
    if not raw.isascii() or "_" in raw or len(raw) > 40:
        raise wrong
    try:
        value = int(raw) if flag.kind == INTEGER else float(raw)
    except ValueError:
        raise wrong from None
    above = value > 0 if flag.kind == NUMBER else True
    if flag.least is None or flag.most is None or not above or not flag.least <= value <= flag.most:
        raise wrong
    return value
