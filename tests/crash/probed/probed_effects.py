"""An effect of a service elsewhere, asked for by a function."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

URL = "http://127.0.0.1:9"


def effect(key: str, value: Any = None) -> dict[str, Any]:
    """Ask the service; what it answers."""
    body = json.dumps({"key": key, "value": value}).encode()
    headers = {
        "Authorization": f"Bearer {os.environ['CRASH_TOKEN']}",
        "Content-Type": "application/json",
    }
    request = urllib.request.Request(f"{URL}/effects", body, headers)
    with urllib.request.urlopen(request, timeout=30) as reply:
        answer: dict[str, Any] = json.loads(reply.read())
    return {"value": answer["value"]}
