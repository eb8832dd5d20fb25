"""The run that the screens of the command line are written from: six steps, one fails, the last is skipped."""

from __future__ import annotations

from typing import Any

from cogcli.declarations.envelope import Event
from cogcli.report.lineage import DeclaredPlaces

ROOT, CHILD = "run_000000000000000a", "run_000000000000000b"
EPISODE = "ep_01M7XJXW876C0000000000000A"
DECLARED = DeclaredPlaces(
    {
        "fetch": ["vars.html"], "clean": ["vars.text"], "risks": ["working.risks"],
        "entities": ["working.entities"], "score": ["vars.score"], "report": ["outputs.report"],
    },
    frozenset(["report"]),
)  # fmt: skip
STEPS = (
    ("fetch", "web.page.fetch", []), ("clean", "text.normalize", ["fetch"]),
    ("risks", "skill:analysis.risks", ["clean"]), ("entities", "text.entity.extract", ["clean"]),
    ("score", "analysis.risk.score", ["risks", "entities"]), ("report", "doc.report.compose", ["score"]),
)  # fmt: skip


class Log:
    """Events one after the other; times are milliseconds after the start."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, ms: int, type: str, phase: str, payload: dict[str, Any], **more: Any) -> None:
        stamp = f"2026-11-20T22:58:{ms // 1000:02d}.{ms % 1000:03d}000Z"
        number = len(self.events)
        self.events.append(
            Event(
                number, f"ev_{number}", stamp, EPISODE, ROOT, "91be07d4" * 4, phase, type, payload
            )._replace(**more)
        )

    def began(self, ms: int, id: str, reads: list[str], **more: Any) -> None:
        uses = next((uses for name, uses, _ in STEPS if name == id), "x.y")
        payload = {
            "step_id": id,
            "step_status": "running",
            "uses": uses,
            "reads": reads,
            "input": {},
            "binding": "b",
        }
        self.add(ms, "step.started", "act", payload, step_id=id, **more)

    def ended(
        self, ms: int, id: str, took: int, writes: list[Any], reads: list[str], **more: Any
    ) -> None:
        told = [
            {"target": target, "strategy": strategy, "value": value}
            for target, strategy, value in writes
        ]
        payload = {
            "step_id": id, "step_status": "done", "latency_ms": took, "writes": told, "reads": reads,
            "output": {}, "attempts": [],
        }  # fmt: skip
        self.add(ms, "step.completed", "act", payload, step_id=id, **more)


def risk_review(*, until: int = 100) -> list[Event]:
    """The log, or its first events."""
    log = Log()
    start = {
        "skill": {"id": "risk.review", "version": "0.4.1"},
        "inputs": {"url": "https://example.com"},
    }
    log.add(0, "run.started", "start", start)
    records = [{"id": id, "description": uses, "depends_on": needs} for id, uses, needs in STEPS]
    log.add(0, "plan.created", "plan", {"step_records": records})
    log.began(0, "fetch", ["inputs.url"])
    log.ended(412, "fetch", 412, [("vars.html", "overwrite", "<p>")], ["inputs.url"])
    log.began(412, "clean", ["vars.html"])
    log.ended(430, "clean", 18, [("vars.text", "overwrite", "x")], ["vars.html"])
    log.began(430, "risks", ["vars.text"])
    log.began(430, "entities", ["vars.text"])
    _nested(log)
    log.ended(1332, "entities", 902, [("working.entities", "overwrite", [1, 2, 3])], ["vars.text"])
    log.ended(
        2060, "risks", 1630, [("working.risks", "append", [1, 2, 3, 4, 5, 6, 7])], ["vars.text"]
    )
    reads = ["working.risks", "working.entities"]
    log.began(2060, "score", reads)
    error = {
        "code": "call.rejected",
        "message": "HTTP 422 `entities[0].vat` is required (sent: name, kind)",
    }
    failed = {
        "step_id": "score",
        "step_status": "failed",
        "latency_ms": 204,
        "error": error,
        "reads": reads,
    }
    log.add(2264, "step.failed", "act", {**failed, "writes": []}, step_id="score")
    skipped = {
        "step_id": "report",
        "step_status": "skipped",
        "reason": "dependency",
        "writes": [],
        "reads": [],
    }
    log.add(2265, "step.skipped", "act", skipped, step_id="report")
    end = {"status": "error", "outputs": {}, "required_missing": ["report"], "error": error}
    log.add(2270, "run.terminated", "terminate", end, metrics={"duration_ms": 2270})
    return log.events[:until]


def _nested(log: Log) -> None:
    """The run inside `risks`: what it reads and writes is its own."""
    log.add(431, "run.started", "start", {"skill": {"id": "analysis.risks"}, "parent_run_id": ROOT}, run_id=CHILD,
            step_id="risks")  # fmt: skip
    log.began(440, "risks/extract", ["inputs.text"], run_id=CHILD)
    log.ended(
        1640,
        "risks/extract",
        1200,
        [("outputs.risks", "overwrite", [1])],
        ["inputs.text"],
        run_id=CHILD,
    )
