"""The first week of somebody who writes skills: from an empty directory to a skill over an API, tested and mended.
Of its files only the skill is written by hand."""

# FastAPI reads the annotations, so they are values here: no `from __future__ import annotations`.

import json
import re
import shlex
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.asgi import serving_app
from support.project import Project, Result

pytestmark = pytest.mark.sampled(16)

DOCUMENT, SKILL = "openapi.json", "skills/local/shop/remind/skill.yaml"
HEAD = """\
description: Reminds every customer of an open order.
inputs:
  status: {type: string, default: open}
outputs:
  receipts: {type: array, default: []}
"""
STEPS = """\
steps:
  - id: orders
    uses: shop.list-orders
    input: {status: inputs.status}
    output: {result: vars.orders}
  - id: remind
    uses: shop.send-reminder
    input:
      order_id: order.id
      text: {$text: "Please pay ${order.total} for ${order.id}"}
    output: {receipt: outputs.receipts}
    config:
      condition: len(vars.orders) > 0
      foreach: {items: vars.orders, as: order, max_parallel: 2}
"""


def shop(price: str) -> Any:
    """An API as somebody writes one with FastAPI; `price` is what it calls the price of an order."""
    from fastapi import FastAPI
    from pydantic import BaseModel, create_model

    class Reminder(BaseModel):
        order_id: str
        text: str

    class Receipt(BaseModel):
        receipt: str

    fields: dict[str, Any] = {"id": (str, ...), "status": (str, ...), price: (float, ...)}
    order = create_model("Order", **fields)
    orders = [
        {"id": f"o-{n}", "status": "open" if n % 2 else "paid", price: 10.0 * n}
        for n in range(1, 5)
    ]
    app = FastAPI(title="Shop", version="1.0.0")

    @app.get("/orders", operation_id="listOrders", response_model=list[order])  # type: ignore[valid-type]
    def list_orders(status: str | None = None) -> list[dict[str, Any]]:
        return [each for each in orders if status in (None, each["status"])]

    @app.post("/reminders", operation_id="sendReminder")
    def send_reminder(reminder: Reminder) -> Receipt:
        return Receipt(receipt=f"{reminder.order_id}: {reminder.text}")

    return app


@dataclass
class Served:
    """An API at one address, which may be another one from one call to the next."""

    app: Any
    address: str = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    def document(self, to: Path) -> None:
        """What `curl ADDRESS/openapi.json` saves."""
        with urllib.request.urlopen(f"{self.address}/openapi.json") as reply:
            to.write_bytes(reply.read())


@pytest.fixture
def api() -> Iterator[Served]:
    served = Served(shop("total"))
    with serving_app(served) as served.address:
        yield served


@pytest.fixture
def user(project: Project) -> Project:
    """An empty directory and a terminal; nothing is trusted."""
    project.env |= {"COGCLI_FORCE_TTY": "120", "NO_COLOR": "1"}
    del project.env["COGCLI_TRUST_PROJECT"]
    return project


def next_commands(result: Result) -> list[list[str]]:
    """The arguments of the commands behind `next:`."""
    lines = result.err.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("next: "))
    told = [line.removeprefix("next:").strip() for line in lines[first:]]
    return [shlex.split(each)[1:] for line in told for each in line.split("   ·   ")]


def edit(project: Project, old: str, new: str) -> None:
    """Change one place of the skill, as in an editor."""
    file = project.root / SKILL
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, (old, text)
    file.write_text(text.replace(old, new), encoding="utf-8")


def assert_good(project: Project) -> None:
    assert "0 errors, 0 warnings" in project.run("validate", "--strict").assert_ok().out


def assert_next_runs(project: Project, failed: Result, *, holds: str) -> None:
    """What a failure proposes runs as it is printed; the first one shows more."""
    commands = next_commands(failed)
    assert commands
    told = [project.run(*words).assert_ok().out for words in commands]
    assert holds in told[0]


def test_a_skill_over_an_api_is_written_tested_broken_and_mended(
    user: Project, api: Served
) -> None:
    begin(user, api)
    write_the_skill(user)
    run_and_test(user)
    break_the_skill(user)
    break_the_api(user, api)
    follow_the_api(user, api)
    assert_good(user)
    assert user.run("replay", "@last").assert_ok().out
    user.run("verify", "@last").assert_ok()


def begin(user: Project, api: Served) -> None:
    """A project in the empty directory, and all operations of the API."""
    assert list(user.root.iterdir()) == []
    made = user.installed("new", "project", ".").assert_ok()
    for words in next_commands(made):
        user.run(*words).assert_ok()
    user.run("config", "trust", "--folder").assert_ok()
    api.document(user.root / DOCUMENT)
    refused = user.run("new", "binding", "shop", "--from-openapi", DOCUMENT, "--all").assert_exit(2)
    assert not (user.root / "bindings").exists()
    (words,) = next_commands(refused)
    assert "http://127.0.0.1:8000" in words, (
        "where such servers are by default; this one is elsewhere"
    )
    bind(user, [api.address if word == "http://127.0.0.1:8000" else word for word in words])
    assert_good(user)


def bind(user: Project, words: list[str]) -> None:
    made = user.run(*words).assert_ok()
    assert "capabilities/shop.send-reminder.yaml" in made.out.splitlines()


def write_the_skill(user: Project) -> None:
    """A skill to begin with, of which description, fields and steps are replaced."""
    made = user.run("new", "skill", "shop.remind").assert_ok()
    assert made.out.splitlines() == [SKILL]
    head, _ = (user.root / SKILL).read_text(encoding="utf-8").split("description:")
    user.write(SKILL, (head + HEAD + STEPS).encode())
    assert_good(user)


RECEIPTS = ["o-1: Please pay 10.0 for o-1", "o-3: Please pay 30.0 for o-3"]


def run_and_test(user: Project) -> None:
    """It runs, also for no order at all, and each run becomes a case that passes."""
    for status, expected in (("none", []), ("open", RECEIPTS)):
        done = user.run("run", "shop.remind", "-p", f"status={status}").assert_ok()
        assert json.loads(done.out) == {"receipts": expected}
        recorded = user.run("test", "--record", "@last").assert_ok()
        (words,) = next_commands(recorded)
        user.run(*words).assert_ok()
    assert "2 passed" in user.run("test").assert_ok().out
    assert_good(user)


def break_the_skill(user: Project) -> None:
    """A slip of the pen: nothing runs, and what is proposed in its place works."""
    edit(user, "items: vars.orders", "items: vars.ordes")
    refused = user.run("run", "shop.remind").assert_exit(3)
    assert "nothing ran" in refused.err
    assert_next_runs(user, refused, holds="ref.unwritten")
    assert "0 passed, 2 failed" in user.run("test").assert_exit(1).out
    found = user.run("validate", "--strict").assert_exit(1)
    (right,) = set(re.findall("did you mean `([^`]+)`", found.out))
    edit(user, "vars.ordes", right)
    assert_good(user)
    user.run("test").assert_ok()


def break_the_api(user: Project, api: Served) -> None:
    """The API calls a field otherwise: the run tells which one, the commands it names run, and a page shows it."""
    api.app = shop("amount")
    failed = user.installed("run", "shop.remind").assert_exit(1)
    assert "error[response.type]" in failed.err
    assert "`total` is missing" in failed.err
    assert_next_runs(user, failed, holds="amount")
    user.run("report", "@last", "-o", "broken.html").assert_ok()
    page = (user.root / "broken.html").read_text(encoding="utf-8")
    assert "response.type" in page
    assert "amount" in page
    user.run("verify", "@last").assert_ok()
    assert "2 passed" in user.run("test").assert_ok().out, "a test asks no service"


def follow_the_api(user: Project, api: Served) -> None:
    """The document as it is now, the one place of the skill that is told, and its case anew."""
    api.document(user.root / DOCUMENT)
    words = [
        "new",
        "binding",
        "shop",
        "--from-openapi",
        DOCUMENT,
        "--all",
        "--base-url",
        api.address,
    ]
    bind(user, [*words, "--force"])
    found = user.run("validate", "--strict").assert_exit(1)
    assert "warning[ref.field]: step `remind`: `order.total`" in found.out
    assert "it has id, status, amount" in found.out
    edit(user, "order.total", "order.amount")
    assert_good(user)
    old = user.run("test").assert_exit(1)
    assert "1 passed, 1 failed" in old.out, "one case answers as the API did before"
    (stale,) = re.findall(r"^  case +(\S+?):", old.out, re.MULTILINE)
    (user.root / stale).unlink()
    done = user.installed("run", "shop.remind").assert_ok()
    assert json.loads(done.out) == {"receipts": RECEIPTS}
    user.run("test", "--record", "@last").assert_ok()
    assert "2 passed" in user.run("test").assert_ok().out
