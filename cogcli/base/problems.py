"""Problems: the defects that static checks find. They are data, never exceptions
(docs/reference/spec-files.md#problems)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from cogcli.base.errors import ENVIRONMENT, FAILURE_OF, VETOED, CogcliError
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple

KeyPath = tuple[Any, ...]
"""Keys and list indices from the root of a document."""
_MEANT: Final = lazy_pattern(r"did you mean `([^`]+(?:` or `[^`]+)*)`\?")
Severity = Literal["E", "W", "R"]
"""E error, W warning, R warning in `validate` and error when a run needs it."""


class Problem(NamedTuple):
    """One defect: a stable code, its 1-based place, a message and a hint.

    `line` and `column` are 0 if the problem concerns a whole file or no file. `path` is a JSON
    pointer. Each line of a hint is one action.
    """

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
        """Return the message and hint as one line."""
        return "; ".join([self.message, *filter(None, self.hint.split("\n"))])

    def severity_word(self, *, as_error: bool) -> str:
        """Return `error` or `warning`. A problem of severity R is an error only with `as_error`."""
        return "error" if self.severity in ("ER" if as_error else "E") else "warning"

    def to_payload(self) -> dict[str, str | int]:
        """Return the JSON object that `--json` and `--format jsonl` print."""
        return self._asdict()


def sort_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems sorted by file, line, column and code, without duplicates. Problems caused by errors in
    another file, and missing keys that are misspelled, are last.
    """
    found = set(problems)
    misspelled = {
        (p.file, name) for p in found if p.code == "key.unknown" for name in names_from_hint(p.hint)
    }

    def place(problem: Problem) -> tuple[bool, str, int, int, str, str]:
        follows = problem.message.endswith(FILE_HAS_ERRORS)
        if problem.code == "key.missing":
            follows = any(
                (problem.file, name) in misspelled for name in _QUOTED.findall(problem.message)
            )
        return (follows, problem.file, problem.line, problem.column, problem.code, problem.message)

    return sorted(found, key=place)


FILE_HAS_ERRORS: Final = " has errors"
"""The end of the message of a problem that an error in another file causes."""
_QUOTED: Final = lazy_pattern(r"`([^`]+)`")


_SAME_MEANING: Final = {
    "failed": "error",
    "failure": "error",
    "success": "ok",
    "succeeded": "ok",
    "waiting": "pending",
}
"""Words for the outcome of a run that people type, and the word that cogcli has for it."""


def did_you_mean(word: str, known_words: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return at most `limit` known words that resemble `word`, the most similar first.

    Words of several lines are skipped. A word with the same meaning is the only one. Else one that differs only in
    capitals is the most similar.
    """
    from difflib import get_close_matches

    words = list(filter(str.isprintable, known_words))
    meant = _SAME_MEANING.get(word)
    if meant in words:
        return [meant]
    folded = word.casefold()
    same = [each for each in words if each.casefold() == folded and each != word]
    close = get_close_matches(word, words, n=limit, cutoff=0.6)
    return list(dict.fromkeys((*same, *close)))[:limit]


def suggestion(word: str, known_words: Sequence[str] | Iterable[str]) -> str:
    """Return a hint that suggests similar known words; empty if no word is similar."""
    return suggestion_hint(did_you_mean(word, known_words))


def suggest_path(
    word: str, known_words: Iterable[str], *, prefix: str = "", suffix: str = ""
) -> str:
    """Return a hint that suggests whole paths whose middle word resembles `word`; empty if no path does."""
    return suggestion_hint([f"{prefix}{name}{suffix}" for name in did_you_mean(word, known_words)])


def suggestion_hint(names: Sequence[str]) -> str:
    """Return a hint that lists all these names; empty for no names."""
    return f"did you mean {' or '.join(f'`{name}`' for name in names)}?" if names else ""


def names_from_hint(hint: str) -> list[str]:
    """Return the names in a hint that `suggestion_hint` wrote; empty for another hint."""
    found = _MEANT.match(hint)
    return found[1].split("` or `") if found else []


def list_known_words(known_words: Iterable[str], *, limit: int = 6) -> str:
    """Return a hint that lists the first `limit` known words. Words of several lines are skipped."""
    words = list(filter(str.isprintable, known_words))
    more = f" and {len(words) - limit} more" if len(words) > limit else ""
    return f"it has {', '.join(words[:limit])}{more}" if words else "it has none"


_PRECEDENCE: Final = (ENVIRONMENT, VETOED)
"""Exit codes that win over all others, the strongest first."""


class ProblemsFound(CogcliError):
    """All problems that prevent a command from starting. Its code is the code of the first problem.

    The problem that decides the exit code is first: environment errors before vetoes, vetoes before usage errors. The
    others stay in order. Codes of spec checks have no row in `FAILURES`. They exit with `unlisted`, which differs only
    for a file that the caller typed.
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
        """Return the exit code of the first problem's code."""
        return self._exit_code
