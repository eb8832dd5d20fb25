"""The cost of one operation of a large API document: `python tooling/bench.py documents`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MEASURED = """
import resource
import sys
from cogcli.__main__ import main

try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""
_WORDS = "What it is, who may ask for it, and when it is given. "
_WIDE = 9_223_372_036_854_775_807


def measure(folder: Path) -> Iterator[tuple[str, float, str, float, str]]:
    """Yield the figures of binding one operation of a document in JSON, and of one in YAML."""
    for ending, size, goals in (
        ("json", 13_000_000, (5.0, 300.0)),
        ("yaml", 3_000_000, (5.0, 300.0)),
    ):
        data = _document_of(size, ending)
        project = folder / ending
        project.mkdir()
        (project / "cogcli.toml").touch()
        (project / f"api.{ending}").write_bytes(data)
        seconds, mebibytes = _bind(project, f"api.{ending}")
        note = f"{len(data) / 1e6:.1f} MB, one operation"
        yield f"{ending}: new binding", seconds, "s", goals[0], note
        yield f"{ending}: peak memory", mebibytes, "MB", goals[1], note


def _bind(project: Path, file: str) -> tuple[float, float]:
    """Return the seconds and the peak memory in megabytes of binding one operation."""
    words = ("new", "binding", "shop.item.read", "--from-openapi", file, "--operation", "readItem7")
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *words],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begun
    if done.returncode:
        raise SystemExit(done.stderr)
    return seconds, int(done.stderr.splitlines()[-1]) / 1000


def _document_of(size: int, ending: str) -> bytes:
    """Return a document of about this size."""
    few = _encode(_document(20), ending)
    return _encode(_document(20 * size // len(few)), ending)


def _encode(value: dict[str, Any], ending: str) -> bytes:
    if ending == "json":
        return json.dumps(value, indent=2).encode()
    from cogcli.base.yaml.writer import yaml_text

    return yaml_text(value).encode()


def _document(items: int) -> dict[str, Any]:
    """Return a document with two operations and a schema for each item."""
    paths = {f"/items/{number}": _path(number) for number in range(items)}
    schemas = {f"Item{number}": _schema(number, items) for number in range(items)}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": "https://shop.example"}],
        "paths": paths,
        "components": {
            "responses": {"NotFound": {"description": "It is not there."}},
            "schemas": schemas,
        },
    }


def _path(number: int) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/Item{number}"}}}
    responses = {
        "200": {"description": "The item.", "content": content},
        "404": {"$ref": "#/components/responses/NotFound"},
    }
    shared = {"description": _WORDS * 5, "responses": responses}
    body = {"required": True, "content": content}
    return {
        "get": {"operationId": f"readItem{number}", **shared},
        "post": {"operationId": f"writeItem{number}", "requestBody": body, **shared},
    }


def _schema(number: int, items: int) -> dict[str, Any]:
    following = (number + 1) % items if number % 10 else number
    members: dict[str, Any] = {
        f"member_{n}": {"type": "string", "description": _WORDS} for n in range(12)
    }
    return {
        "type": "object",
        "description": f'{_WORDS * 3}Such as {{"id": 1}}.',
        "required": ["id"],
        "properties": {
            "id": {"type": "integer", "format": "int64", "maximum": _WIDE},
            "next": {"$ref": f"#/components/schemas/Item{following}"},
            **members,
        },
    }
