"""What is wrong with a document that a service is described by."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogcli.core.json_pointer import Pointer


class DocumentFault(Exception):
    """A document that cannot be used, or something it does not say: a code of
    docs/reference/protocols.md#wire-checks, and what to do.

    `pointer` or `line` and `column` tell where in the document; `file` is its real path, known once it was read.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        *,
        pointer: Pointer | None = None,
        place: tuple[int, int] = (0, 0),
        file: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.pointer = pointer
        self.line, self.column = place
        self.file = file

    @property
    def told(self) -> str:
        """The message with its place in the document."""
        return f"{self.message} (line {self.line}, column {self.column})" if self.line else self.message
