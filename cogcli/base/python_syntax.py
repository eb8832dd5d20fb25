"""The syntax tree of Python text, in whichever thread.

Before Python 3.11.8 and 3.12.2 all threads share a count of depth: where another one parses meanwhile, a text of which
nothing is wrong may end in SystemError. Then it is parsed again.
"""

from __future__ import annotations

import ast
from typing import Any, Final

_ATTEMPTS: Final = 100


def syntax_tree(source: str | bytes, mode: str = "exec") -> Any:
    """The tree of a module's source, or with the mode `eval` of an expression. Raises what `ast.parse` does, but
    SystemError."""
    for _ in range(_ATTEMPTS):
        try:
            return ast.parse(source, mode=mode)
        except SystemError:
            continue
    raise MemoryError
