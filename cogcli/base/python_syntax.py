"""Parses Python text safely in any thread.

Before Python 3.11.8 and 3.12.2 all threads share a depth counter. If another thread parses at the
same time, a valid text may raise SystemError. Then the text is parsed again.
"""

from __future__ import annotations

import ast
from typing import Any, Final

_ATTEMPTS: Final = 100


def parse_python(source: str | bytes, mode: str = "exec") -> Any:
    """Return the syntax tree of a module's source, or of an expression with the mode `eval`.

    Raise the errors of `ast.parse`, except SystemError.
    """
    for _ in range(_ATTEMPTS):
        try:
            return ast.parse(source, mode=mode)
        except SystemError:
            continue
    raise MemoryError
