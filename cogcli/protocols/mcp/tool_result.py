"""The result of a tool as a record, and the body that `response.*` paths read (docs/reference/protocols.md#replies)."""

from __future__ import annotations

from itertools import islice
from typing import Final

from cogcli.base.errors import RejectedError, ResponseMappingError
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.protocols.model_usage import ModelUsage, usage_of

_MAX_DEMANDS: Final = 20


class DemandedInput(Record):
    """A request of the server to this client inside a result."""

    method: str | None = None


class InputDemand(Record):
    """The part of a result that demands input."""

    resultType: str
    inputRequests: dict[str, DemandedInput]

    @property
    def is_unfinished(self) -> bool:
        """Whether the tool waits for input instead of giving a result."""
        return self.resultType == "input_required"

    @property
    def methods(self) -> list[str]:
        """The methods that an unfinished result demands, each once."""
        demands = self.inputRequests.values() if self.is_unfinished else ()
        methods = [demand.method for demand in islice(demands, _MAX_DEMANDS)]
        return list(dict.fromkeys(method for method in methods if method is not None))


class ContentBlock(Record):
    """A block of a result's content."""

    type: str
    text: str | None = None


class ResultMeta(Record):
    """The metadata of a result."""

    usage: Json | None = None


class ToolResult(InputDemand):
    """A result of `tools/call`."""

    content: list[ContentBlock]
    isError: bool
    structuredContent: object = None
    _meta: ResultMeta

    @property
    def texts(self) -> list[str]:
        """The text blocks of the content."""
        blocks = (block for block in self.content if block.type == "text")
        return [block.text for block in blocks if block.text is not None]

    @property
    def has_text(self) -> bool:
        """Whether a block is a text, or there is no block at all."""
        return bool(self.texts) or not self.content

    def body(self, mode: str) -> object:
        """Return the body by `response_mode`. Content blocks are not changed: a link is data and is never fetched.

        Raise RejectedError if the tool failed, or requests input that this client never gives. Raise
        ResponseMappingError `response.missing` for the text of a result without text.
        """
        self._require_success()
        text = "\n".join(self.texts)
        if mode == "text":
            self._require_text()
            return {"text": text}
        content = [block.json for block in self.content]
        if mode == "raw":
            return {"structured": self.structuredContent, "text": text, "content": content}
        if self.structuredContent is not None:
            return self.structuredContent
        single = self._single_object()
        if single is not None:
            return single
        # An empty text would hide that the answer is a link or a picture.
        return {"text": text, "content": content} if self.has_text else {"content": content}

    def _require_success(self) -> None:
        if self.is_unfinished:
            methods = ", ".join(f"`{method}`" for method in self.methods) or "more input"
            text = f"the tool asks for {methods}, which is never given"
            raise RejectedError("call.rejected", text, left=True)
        if self.isError:
            reason = "\n".join(self.texts).strip() or "it gives no reason"
            raise RejectedError("call.rejected", f"the tool failed: {reason}", left=True)

    def _require_text(self) -> None:
        if not self.has_text:
            kinds = ", ".join(dict.fromkeys(block.type for block in self.content))
            text = f"the result has no text; its blocks are {kinds}"
            hint = (
                "leave response_mode out, and read response.content, such as response.content.0.uri"
            )
            raise ResponseMappingError("response.missing", text, hint=hint, left=True)

    def _single_object(self) -> Json | None:
        """Return the JSON object that is the only block of the content, as text; None for any other
        content."""
        if len(self.content) != 1 or not self.texts:
            return None
        try:
            value = loads(self.texts[0])
        except InvalidJson:
            return None
        return value if isinstance(value, dict) else None

    def usage(self, body: object) -> ModelUsage:
        """Return the usage in `_meta`, or else at the top of the body."""
        return usage_of(body, self._meta.usage)
