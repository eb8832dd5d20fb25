"""A project whose one skill calls one operation of a remote service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SECRET = "sesame-open-the-door"
RUN = ("run", "remote.asking", "--json")


def remote(
    project: Any,
    protocol: str,
    url: str,
    operation: str,
    *,
    inputs: str = "{text: {type: string, default: x}}",
    outputs: str = "{text: {type: any}}",
    request: str = "{text: input.text}",
    response: str = "{text: response.text}",
    service: str = "",
    metadata: str = "{}",
    properties: str = "{side_effects: false}",
    safety: str = "",
    config: str = "{}",
    network: str = "private",
) -> tuple[str, ...]:
    """Write it; the command that runs it. `service` holds further lines of the service's file."""
    project.write(
        "services/local/remote.yaml",
        f"id: remote\nkind: {protocol}\nbase_url: {json.dumps(url)}\nnetwork: {network}\n{service}",
    )
    project.write(
        "capabilities/remote.thing.ask.yaml",
        'id: remote.thing.ask\nversion: "1.0.0"\ndescription: Asks the service.\n'
        f"inputs: {inputs}\noutputs: {outputs}\nproperties: {properties}\n{safety}",
    )
    project.write(
        "bindings/local/remote.thing.ask/ask.yaml",
        f"id: remote_ask\ncapability: remote.thing.ask\nservice: remote\nprotocol: {protocol}\n"
        f"operation: {json.dumps(operation)}\nrequest: {request}\nresponse: {response}\nmetadata: {metadata}\n",
    )
    names = [part.split(":")[0].strip(" {}") for part in _top(inputs)]
    given = ", ".join(f"{name}: inputs.{name}" for name in names if name)
    written = ", ".join(
        f"{name}: outputs.{name}" for name in (p.split(":")[0].strip(" {}") for p in _top(outputs))
    )
    project.skill(
        "remote.asking",
        f"- {{id: ask, uses: remote.thing.ask, input: {{{given}}}, output: {{{written}}}, config: {config}}}",
        inputs=inputs,
        outputs=outputs,
    )
    return RUN


def _top(fields: str) -> list[str]:
    """The members of a flow mapping, split at its own commas."""
    parts, depth, start = [], 0, 1
    for at, char in enumerate(fields):
        depth += (char in "{[") - (char in "}]")
        if char == "," and depth == 1:
            parts.append(fields[start:at])
            start = at + 1
    return [*parts, fields[start:-1]]


def hits(project: Any, secret: str = SECRET) -> list[str]:
    """The files around a project that hold a secret, in plain or in a common encoding."""
    import base64
    from urllib.parse import quote

    raw = secret.encode()
    forms = {
        raw,
        base64.b64encode(raw).rstrip(b"="),
        quote(secret, safe="").encode(),
        raw.hex().encode(),
    }
    files = [path for path in Path(project.root.parent).rglob("*") if path.is_file()]
    return [str(path) for path in files if any(form in path.read_bytes() for form in forms)]


def attempts(project: Any) -> list[dict[str, Any]]:
    """The attempts that the newest episode recorded, in order."""
    lines = (project.episode / "events.jsonl").read_text().splitlines()
    return [
        attempt for line in lines for attempt in json.loads(line)["payload"].get("attempts", [])
    ]
