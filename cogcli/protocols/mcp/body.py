"""The value of a tool's result that `response.*` paths read, and its usage (docs/reference/protocols.md#mcp)."""

from __future__ import annotations

from typing import Any

from cogcli.core.errors import RejectedError
from cogcli.core.strict_json import JsonRefused, loads
from cogcli.protocols.mcp.errors import shorten
from cogcli.protocols.mcp.traffic import required_methods
from cogcli.protocols.model_usage import ModelUsage, usage_of


def body_of(result: dict[str, Any], mode: str) -> Any:
    """The body of a result by `response_mode`. Content blocks are not changed: a link is data and is never fetched.

    Raises RejectedError where the tool failed, or demands input that this client never gives.
    """
    content = [block for block in result.get("content") or [] if isinstance(block, dict)]
    text = "\n".join(block["text"] for block in content if _is_text(block))
    if result.get("resultType") == "input_required":
        methods = ", ".join(f"`{method}`" for method in required_methods(result)) or "more input"
        text = f"the tool asks for {methods}, which is never given"
        raise RejectedError("call.rejected", shorten(text), left=True)
    if result.get("isError") is True:
        reason = shorten(text.strip()) or "it gives no reason"
        raise RejectedError("call.rejected", f"the tool failed: {reason}", left=True)
    structured = result.get("structuredContent")
    if mode == "text":
        return {"text": text}
    if mode == "raw":
        return {"structured": structured, "text": text, "content": content}
    if structured is not None:
        return structured
    single = _single_object(content)
    return {"text": text, "content": content} if single is None else single


def result_usage(result: dict[str, Any], body: Any) -> ModelUsage:
    """The usage of a tool's result: of `_meta.usage`, else of `usage` at the top of the body."""
    meta = result.get("_meta")
    return usage_of(body, meta.get("usage") if isinstance(meta, dict) else None)


def _is_text(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _single_object(content: list[dict[str, Any]]) -> dict[str, Any] | None:
    if len(content) != 1 or not _is_text(content[0]):
        return None
    try:
        value = loads(content[0]["text"])
    except JsonRefused:
        return None
    return value if isinstance(value, dict) else None
