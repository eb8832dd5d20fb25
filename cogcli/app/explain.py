"""The page of each error code (meaning, example and cure), from `pages/codes.txt`."""

from __future__ import annotations

import os

from cogcli.base.errors import FAILURE_OF, UsageError
from cogcli.base.problems import suggestion
from cogcli.declarations.value_types import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pages", "codes.txt")


def pages() -> dict[str, tuple[str, str, str]]:
    """Return the meaning, example and cure of each code."""
    with open(_FILE, encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")
    found = {}
    for block in blocks:
        code, meaning, example, cure = block.split("\n")
        found[code] = (meaning, example.removeprefix("> "), cure)
    return found


def read_topic(name: str) -> str:
    """Return the text of a help topic."""
    with open(os.path.join(os.path.dirname(_FILE), f"{name}.txt"), encoding="utf-8") as file:
        return file.read()


def page(code: str) -> Json:
    """Return the page of a code as an object.

    Raise UsageError, with a suggestion, for an unknown code."""
    known = pages()
    if code not in known:
        hint = suggestion(code, known) or "see cogcli explain --list"
        if code.startswith(("@", "ep_")):
            hint = "for an episode use `trace`, `context explain` and `policy explain`"
        raise UsageError(
            "usage.value",
            f"there is no code `{code[:60]}`",
            hint=hint,
            next=("cogcli explain --list",),
        )
    meaning, example, cure = known[code]
    row = FAILURE_OF.get(code)
    return {
        "code": code,
        "means": meaning,
        "example": example,
        "cure": cure,
        "exit_code": row.exit if row else None,
        "retryable": row.retryable if row else False,
    }
