"""Write docs/reference/failures.md from the failure model and the pages of the codes, or with `--check` say whether it
is stale."""

from __future__ import annotations

import sys
from pathlib import Path

from cogcli.app.explain import pages
from cogcli.base.errors import FAILURE_OF, FAILURES, FailureRow
from cogcli.cli.command_help import EXIT_WORDS

FILE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "failures.md"
INTRODUCTION = """\
# Failures

Generated from `FAILURES` in `cogcli/base/errors.py` and from `cogcli/app/pages/codes.txt`; edit those files.

Every error has a code that never changes its meaning; `cogcli explain CODE` shows its page. From the code alone
follow the exit code of a command, whether `config.retry` repeats a call after it, and whether the next binding of a
chain is tried. A step that failed is reported as `StepExecutionError` around the error that made it fail, under the
code and with the exit code of that error; what safety says stands for itself.
"""
CHECKS = """\
## Codes of checks and findings

Problems of specs, and what `verify` finds. `validate` and `verify` end with 1 where one of them is an error; a
command that needs a spec with an error does not start and ends with 3, or with 4 where all of the problems are
`safety.scope`.
"""


def main() -> int:
    """Exit code 0, or 1 where `--check` found the file to differ."""
    text = document()
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in sys.argv[1:]:
        print(
            "stale: docs/reference/failures.md (python tooling/generate_failures.py)",
            file=sys.stderr,
        )
        return 1
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(text, encoding="utf-8")
    print(FILE)
    return 0


def document() -> str:
    """The whole page."""
    exits = [f"| {code} | {words} |" for code, words in sorted(EXIT_WORDS.items())]
    others = [
        f"| `{code}` | {_cell(page[0])} |"
        for code, page in pages().items()
        if code not in FAILURE_OF
    ]
    return "\n".join(
        [
            INTRODUCTION,
            "| category | error class | code | exit | retryable | falls back | meaning |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *(line for row in FAILURES for line in _rows(row)),
            "",
            "| exit | meaning |",
            "| --- | --- |",
            *exits,
            "",
            CHECKS,
            "| code | meaning |",
            "| --- | --- |",
            *others,
            "",
        ]
    )


def _rows(row: FailureRow) -> list[str]:
    """A line per code; a class without codes of its own is raised with those of the checks."""
    known = pages()
    told = [(f"`{code}`", known[code][0]) for code in row.codes] or [
        ("those of checks, below", row.cls.__doc__ or "")
    ]
    facts = f"{row.exit} | {_yes(row.retryable)} | {_yes(row.falls_back)}"
    return [
        f"| {row.category} | {row.cls.__name__} | {code} | {facts} | {_cell(text)} |"
        for code, text in told
    ]


def _yes(value: bool) -> str:
    return "yes" if value else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.exit(main())
