"""`except Exception`, `except BaseException` and their `suppress` stay at the edges: elsewhere an error is expected and
named, or nobody's to catch."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from support.sources import PACKAGE, modules_with

BROAD = {"Exception", "BaseException"}
MENTIONED = r"Exception\b|except:"
EDGES = {
    "the top of the command": {"cli/main.py": 2},
    "a server that answers whatever happens": {"app/serving/stdio_transport.py": 1, "app/serving/handlers.py": 1,
        "gateway/server.py": 1, "gateway/hook_client.py": 1, "gateway/hook_daemon.py": 1,
    },
    "the last resort of the engine": {"run/engine/run.py": 1, "run/engine/nested.py": 1},
    "a thread that hands over what happened in it": {
        "app/serving/run_pool.py": 1, "run/engine/tasks.py": 2,
        "run/engine/call_threads.py": 1, "scale/in_process.py": 1,
        "gateway/offer.py": 1, "gateway/serving.py": 1, "gateway/session.py": 1,
    },
    "a callback of whoever gave a call up, a display": {"base/calls.py": 1, "cli/live_run.py": 1},
    "functions, workers, servers and libraries of others": {
        "base/http.py": 1, "base/wall/confined_main.py": 1,
        "episode/signing.py": 1, "protocols/mcp/http.py": 1, "protocols/mcp/invoker.py": 1,
        "protocols/mcp/login_assertion.py": 1, "protocols/mcp/login_flow.py": 1, "protocols/mcp/login_store.py": 1,
        "protocols/mcp/session.py": 1, "protocols/pythoncall/function_call.py": 4,
        "protocols/pythoncall/worker_main.py": 2, "protocols/secrets.py": 1, "base/schema/containment.py": 1,
        "authoring/verification/loopback_server.py": 1, "base/yaml/parsers.py": 1,
        "scale/worker.py": 1, "scale/cluster/connection.py": 6, "scale/cluster/tasks.py": 2,
    },
    "a shell that waits for words": {"cli/completion.py": 1},
    "a cache that may be lost": {"episode/listing/episode_index.py": 5, "specs/cache.py": 6},
    "one of many, which must not hide the others": {"run/error_payload.py": 1, "authoring/verification/harness.py": 1,
        "gateway/offer.py": 1,
    },
}  # fmt: skip
CLEANING_UP = {
    "protocols/mcp/stdio.py": 1, "protocols/pythoncall/worker_pool.py": 1, "run/launch.py": 1,
}  # fmt: skip
"""Those that clean up and raise: a context manager would do. The list only becomes shorter."""


def broad(path: Path) -> int:
    """How many handlers of a module catch everything."""
    count = 0
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            kinds = [None] if node.type is None else [node.type]
            kinds = list(kinds[0].elts) if isinstance(kinds[0], ast.Tuple) else kinds
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "suppress":
            kinds = list(node.args)
        else:
            continue
        count += any(
            kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD) for kind in kinds
        )
    return count


def test_everything_is_caught_at_the_edges_only() -> None:
    allowed: Counter[str] = Counter(CLEANING_UP)
    for files in EDGES.values():
        allowed.update(files)
    paths = [path for path in modules_with(MENTIONED) if "official" not in path.parts]
    found = Counter({str(path.relative_to(PACKAGE)): broad(path) for path in paths})
    assert +found == allowed, {"new": found - allowed, "gone, so leave the list": allowed - found}
