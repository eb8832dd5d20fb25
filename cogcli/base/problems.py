"""Problems: what a static check found. Data, never an exception (docs/reference/spec-files.md#problems)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from cogcli.base.errors import ENVIRONMENT, FAILURE_OF, VETOED, CogcliError

KeyPath = tuple[Any, ...]
"""Keys and list indices from the root of a document."""
_MEANT: Final = re.compile(r"did you mean `([^`]+(?:` or `[^`]+)*)`\?")
Severity = Literal["E", "W", "R"]
"""E error, W warning, R warning in `validate` and error when a run needs it."""


class Problem(NamedTuple):
    """One defect: a stable code, its 1-based place, what was found, what to do. `line` and `column` are 0 when the
    problem concerns a whole file or no file; `path` is a JSON pointer. Each line of a hint is something to do."""

    code: str
    severity: Severity
    file: str
    line: int
    column: int
    path: str
    message: str
    hint: str = ""

    @property
    def summary_line(self) -> str:
        """Message and hint as one line."""
        return "; ".join([self.message, *filter(None, self.hint.split("\n"))])

    def to_payload(self) -> dict[str, str | int]:
        """The problem as the JSON object that `--json` and `--format jsonl` print."""
        return self._asdict()


def sort_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Problems sorted by file, line, column and code, each once; those that follow from errors in another file, and a
    key that is missing because it is misspelled, come last."""
    found = set(problems)
    misspelled = {
        (p.file, name) for p in found if p.code == "key.unknown" for name in meant_by(p.hint)
    }

    def place(problem: Problem) -> tuple[Any, ...]:
        follows = problem.message.endswith(FILE_HAS_ERRORS)
        if problem.code == "key.missing":
            follows = any(
                (problem.file, name) in misspelled for name in _QUOTED.findall(problem.message)
            )
        return (follows, problem.file, problem.line, problem.column, problem.code, problem.message)

    return sorted(found, key=place)


FILE_HAS_ERRORS: Final = " has errors"
"""The end of the message of a problem that follows from errors in another file."""
_QUOTED: Final = re.compile(r"`([^`]+)`")


def did_you_mean(word: str, known: Iterable[str], *, limit: int = 3) -> list[str]:
    """At most `limit` of the known words that look like `word`, nearest first; words of one line only. One that
    differs in capitals alone is the nearest."""
    from difflib import get_close_matches

    words = list(filter(str.isprintable, known))
    folded = word.casefold()
    same = [each for each in words if each.casefold() == folded and each != word]
    close = get_close_matches(word, words, n=limit, cutoff=0.6)
    return list(dict.fromkeys((*same, *close)))[:limit]


def suggestion(word: str, known: Sequence[str] | Iterable[str]) -> str:
    """A hint sentence naming what may have been meant, or the empty string."""
    return meant_hint(did_you_mean(word, known))


def suggest_path(word: str, known: Iterable[str], *, before: str = "", after: str = "") -> str:
    """A hint sentence naming whole paths: what may have been meant by one word of a path, between what stands before
    and after it; or the empty string."""
    return meant_hint([f"{before}{name}{after}" for name in did_you_mean(word, known)])


def meant_hint(names: Sequence[str]) -> str:
    """A hint sentence naming each of these, or the empty string."""
    return f"did you mean {' or '.join(f'`{name}`' for name in names)}?" if names else ""


def meant_by(hint: str) -> list[str]:
    """The names in a hint that begins as `meant_hint` writes it; none in another."""
    found = _MEANT.match(hint)
    return found[1].split("` or `") if found else []


def list_known(known: Iterable[str], *, limit: int = 6) -> str:
    """A hint sentence naming the first of what there is; words of one line only."""
    words = list(filter(str.isprintable, known))
    more = f" and {len(words) - limit} more" if len(words) > limit else ""
    return f"it has {', '.join(words[:limit])}{more}" if words else "it has none"


_PRECEDENCE: Final = (ENVIRONMENT, VETOED)
"""Exit codes that win over all others, the strongest first."""


class ProblemsFound(CogcliError):
    """All problems that keep a command from starting, under the code of the first.

    The one that decides the exit code comes first: what is wrong with the environment wins over a veto, a veto over
    a usage error. The others keep their order. Codes of specs have no row among the failures: their exit
    code is `unlisted`, which is another one only for a file that the caller gave.
    """

    def __init__(self, problems: Sequence[Problem], *, unlisted: int = ENVIRONMENT) -> None:
        rows = [FAILURE_OF.get(problem.code) for problem in problems]
        codes = [row.exit if row else unlisted for row in rows]
        self._exit_code = next((code for code in _PRECEDENCE if code in codes), codes[0])
        first = problems[codes.index(self._exit_code)]
        super().__init__(
            first.code,
            first.message,
            hint=first.hint,
            file=first.file,
            line=first.line,
            column=first.column,
        )
        self.problems = [first, *(problem for problem in problems if problem is not first)]

    @property
    def exit_code(self) -> int:
        """The exit code that belongs to the code of the first."""
        return self._exit_code
