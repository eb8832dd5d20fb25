"""The error of a document that describes a service: an OpenAPI or OpenRPC document, a list of tools."""

from __future__ import annotations

from cogcli.core.json_pointer import Pointer


class DocumentFault(Exception):
    """A document that cannot be used, or something it does not say: a code of
    docs/reference/protocols.md#wire-checks, and what to do.

    `pointer`, or `line` and `column`, is the place in the document; `file` is its real path, known once it was read.
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
    def located_message(self) -> str:
        """The message with its line and column, where these are known."""
        return f"{self.message} (line {self.line}, column {self.column})" if self.line else self.message
