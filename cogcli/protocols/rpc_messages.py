"""JSON-RPC messages of other programs as records: a member of another type counts as absent."""

from __future__ import annotations

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record


class RpcCall(Record):
    """A call or, without an id, a notification."""

    method: str | None = None
    params: object = NOTHING
    id: object = None

    @property
    def is_notification(self) -> bool:
        """Whether it is not answered."""
        return "id" not in self.json


class RpcError(Record):
    """The error object in an answer."""

    code: int | None = None
    message: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the error has the members that the protocol requires."""
        return self.code is not None and self.message is not None


class RpcAnswer(Record):
    """An answer, with a result or an error."""

    jsonrpc: str
    id: object = None
    result: object = None
    error: RpcError | None = None


def read_answer(value: object) -> RpcAnswer:
    """Return the answer in a JSON value; an empty answer if the value is not an object."""
    return read_record(RpcAnswer, value)
