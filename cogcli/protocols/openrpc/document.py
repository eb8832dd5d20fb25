"""The OpenRPC document that a service publishes, by `rpc.discover` (docs/reference/protocols.md#mcp-pins)."""

from __future__ import annotations

from typing import Any, Final

import orjson

from cogcli.core.strict_json import JsonRefused
from cogcli.documents.changes import openrpc_changes
from cogcli.documents.loader import MAX_BYTES
from cogcli.documents.openrpc import OpenRpcDocument
from cogcli.protocols.http import reply_body
from cogcli.protocols.live_document import DocumentKind, DocumentRequest, document_error
from cogcli.protocols.openrpc.mock import RpcMock, judge_of
from cogcli.protocols.openrpc.reply import result_of

_DISCOVER: Final = {"jsonrpc": "2.0", "method": "rpc.discover", "params": [], "id": 1}


def discover(request: DocumentRequest) -> dict[str, Any]:
    settings = request.service.settings
    reply = request.exchange("POST", settings.get("url") or settings["base_url"], _DISCOVER)
    try:
        value = reply_body.parse_reply(reply.body, MAX_BYTES)
    except JsonRefused:
        value = None
    refusal = request.failure_of("`rpc.discover`", reply, value)
    if refusal is not None and not isinstance(value, dict):
        raise refusal
    if value is None:
        raise document_error("`rpc.discover` is not answered with JSON")
    found = result_of(value, 1, "`rpc.discover`", request.secrets, service=request.service.id)
    return request.document(orjson.dumps(found), "by rpc.discover", "discovered.json")


KIND: Final = DocumentKind(
    "method", OpenRpcDocument, openrpc_changes, discover, judge_of, lambda value, _: RpcMock(value)
)
