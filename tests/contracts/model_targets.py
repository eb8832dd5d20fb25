"""One counterpart per adapter of a language model, each of which answers the same: real servers, and files.

Every counterpart knows the same behaviours by name: `text` says TEXT, `calls` calls the tool of the request, `busy` has
too much to do, `slow` never answers, `broken` ends in the middle of its text, `forbidden` does not accept the key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fakes.models import ask, model, request
from support.tinymodel import TinyModel

from cogcli.agent.models.port import LanguageModel, ModelError, ModelOutcome
from cogcli.agent.models.transcript import Exchange

KEY = "sk-canary-5e1f0c77-not-to-be-seen"
TEXT = '{"thinking": "ä € \U0001f600", "response": "done \\u2028 well"}'
CALL = {"id": "call_1", "name": "orders.lookup", "args": {"order_id": "ord_881"}}
TOOL = {
    "name": "orders.lookup",
    "description": "finds an order",
    "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
}


class ModelTarget(NamedTuple):
    """Models by behaviour."""

    name: str
    models: dict[str, LanguageModel]
    requests: Sequence[Any] = ()
    """What the server saw, where there is one."""


@contextmanager
def _server(adapter: str, root: Path) -> Iterator[ModelTarget]:
    calls = {"native_calls": [{**CALL, "name": "orders_lookup"}]}
    with TinyModel(seed=1, key=KEY, scripts={"text": [TEXT], "calls": [calls]}) as server:
        base = server.base_url if adapter == "openai" else server.address
        names = {
            "text": "script:text",
            "calls": "script:calls",
            "busy": "fault:429",
            "slow": "fault:slow",
            "stall": "fault:stall",
            "broken": "fault:cut",
            "forbidden": "script:text",
        }
        keys = {
            name: {"MODEL_KEY": "sk-other-key" if name == "forbidden" else KEY} for name in names
        }
        models = {
            behaviour: model(
                adapter, name, base_url=base, auth_ref="MODEL_KEY", environ=keys[behaviour]
            )
            for behaviour, name in names.items()
        }
        yield ModelTarget(adapter, models, server.requests)


SCRIPTS = {
    "text": {"text": TEXT},
    "calls": {"tool_calls": [CALL]},
    "busy": {"error": {"kind": "rate_limited", "retry_after": 0}},
    "slow": {"text": "never", "delay_ms": 600_000},
    "stall": {"text": "half an answer", "pause_ms": 600_000},
    "broken": {"text": "half an answer", "error": {"kind": "protocol"}},
    "forbidden": {"error": {"kind": "auth"}},
}


@contextmanager
def _scripted(root: Path) -> Iterator[ModelTarget]:
    models = {}
    for name, reply in SCRIPTS.items():
        file = root / f"{name}.yaml"
        text = json.dumps({"replies": [{"times": 100, **reply}]}, ensure_ascii=False)
        file.write_text(text, encoding="utf-8")
        models[name] = model("scripted", f"{name}.yaml", file=str(file))
    yield ModelTarget("scripted", models)


ASKED = request("hello", tools=(TOOL,))


@contextmanager
def _recorded(root: Path) -> Iterator[ModelTarget]:
    """What was recorded of the scripted ones; there is nothing to wait for."""
    outcomes: dict[str, ModelOutcome] = {}
    with _scripted(root) as scripted:
        for name in ("text", "calls", "busy", "broken", "forbidden"):
            try:
                outcomes[name] = ModelOutcome(reply=ask(scripted.models[name], ASKED))
            except ModelError as error:
                outcomes[name] = ModelOutcome(error=error)
    models = {}
    for name, outcome in outcomes.items():
        file = root / f"{name}.jsonl"
        file.write_bytes(Exchange(ASKED.request_hash, outcome).to_line() * 4)
        models[name] = model("replay", f"{name}.jsonl", file=str(file))
    yield ModelTarget("replay", models)


TARGETS = {
    "openai": lambda root: _server("openai", root),
    "anthropic": lambda root: _server("anthropic", root),
    "scripted": _scripted,
    "replay": _recorded,
}
