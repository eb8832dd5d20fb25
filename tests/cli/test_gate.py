"""`cogcli.api.Gate`: calls of a loop that is not ours, each decided, recorded and made or not
(docs/reference/api.md#gate, docs/how-to/govern-a-framework.md).
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gateway_client import events_of
from support.pages import blocks

from cogcli.api import CallRefused, CogcliError, Gate, GateResult
from cogcli.api import Project as Opened

pytestmark = pytest.mark.sampled(4)

GUIDE = Path(__file__).parents[2] / "docs/how-to/govern-a-framework.md"
PACK = """
contract_meta: {contract_version: "1.0"}
pack_meta:
  {pack_id: desk, pack_version: 1.0.0, defaults: {safety_mode: destructive, budget: {tool_calls: {per_workflow: 5}}}}
policy_layer:
  permissions: [{role: clerk, allow: [mail.send, tool.look, tool.erase, tool.broken, tool.slow, demo.text.upper]}]
  rules:
    - rule_id: own_people
      mode: enforce
      applies_to: {capabilities: [mail.send]}
      if: {"!": {in: ["@example.com", {var: args.to}]}}
      then: {verdict: deny}
      say: "We write to our own people only."
    - rule_id: cards
      mode: enforce
      applies_to: {capabilities: [tool.look]}
      if: true
      then: {verdict: allow, obligations: ["mask:result.card"]}
tooling_layer: {capabilities: {tool.erase: {approval_mode: destructive}}}
decision_layer:
  intents:
    - id: help
      phrases: [help]
      risk: destructive
      capabilities: [mail.send, tool.look, tool.erase, tool.broken, tool.slow, demo.text.upper]
tone_and_comms: {agent: {role: clerk}}
"""


RULE_OF_GREETINGS = """\
    - rule_id: quiet
      mode: enforce
      applies_to: {capabilities: [demo.text.upper]}
      if: true
      then: {verdict: deny}
    - rule_id: cards"""


@pytest.fixture(autouse=True)
def forgotten_modules() -> Iterator[None]:
    """A gate loads the module of a project into this process, where tests of other projects run, too."""
    yield
    sys.modules.pop("demo_services", None)


@pytest.fixture
def desk(demo: Any) -> Any:
    """A project with a pack, and the names that were written to by its function."""
    demo.write("packs/desk/1.0.0.yaml", PACK)
    demo.sent = []
    return demo


@pytest.fixture
def gate(desk: Any) -> Iterator[Gate]:
    """A gate under the pack, with a function for mail."""

    def send_mail(to: str, text: str = "hi") -> str:
        """Send a mail."""
        desk.sent.append(to)
        return f"sent to {to}"

    with Gate("desk@1.0.0", project=open_project(desk), intent="help", user="ann") as made:
        made.tool(send_mail, capability="mail.send")
        yield made


def open_project(project: Any) -> Opened:
    return Opened(project.root, environ=project.env)


def approve(project: Any, result: GateResult, word: str = "approve") -> None:
    """Decide as a person in a terminal does, by the command that the result names."""
    words = result.next.split()
    assert words[:3] == ["cogcli", "approvals", "approve"]
    project.installed("approvals", word, words[3], "--by", "mia").assert_ok()


def test_calls_are_decided_recorded_and_made_or_not(desk: Any, gate: Gate) -> None:
    done = gate.call("mail.send", {"to": "bo@example.com"})
    assert (done.status, done.output, done.step) == (
        "done",
        {"result": "sent to bo@example.com"},
        "c1",
    )
    assert done.verdict == {"decision": "allow"}
    assert done.text == "sent to bo@example.com"
    denied = gate.call("mail.send", {"to": "eve@elsewhere.example"})
    assert (denied.status, denied.code, denied.output) == ("denied", "policy.denied", None)
    assert "own_people" in denied.reason
    assert denied.say == "We write to our own people only."
    assert denied.verdict == {"decision": "deny", "reason": "policy.denied"}
    with pytest.raises(CallRefused, match="Nothing was called"):
        denied.require()
    wrong = gate.call("mail.send", {"to": 5})
    assert (wrong.status, wrong.code) == ("failed", "input.contract")
    unknown = gate.call("mail.erase", {})
    assert (unknown.status, unknown.code, unknown.step) == ("denied", "capability.unknown", "")
    surplus = gate.call("mail.send", {"to": "bo@example.com", "cc": "eve@elsewhere.example"})
    assert (surplus.status, surplus.code, surplus.step) == ("failed", "request.value", "")
    of_project = gate.call("demo.text.upper", {"text": "hi"})
    assert of_project.output == {"text": "HI"}
    assert desk.sent == ["bo@example.com"]
    episode = open_project(desk).episode(gate.episode_id())
    assert episode.id == done.episode
    gate.close()
    types = [event["event_type"] for event in events_of(desk.episode)]
    assert (
        types.index("call.requested") < types.index("policy.decided") < types.index("step.started")
    )
    assert not [each for each in episode.findings() if each["severity"] == "error"]
    desk.run("replay", episode.id).assert_ok()
    desk.run("verify", episode.id).assert_ok()
    with pytest.raises(CogcliError, match="closed"):
        gate.call("mail.send", {"to": "bo@example.com"})


def test_a_call_waits_for_a_person_and_is_collected_once(desk: Any, gate: Gate) -> None:
    erased = []

    def erase(name: str) -> None:
        erased.append(name)

    gate.tool(erase)
    first = gate.call("tool.erase", {"name": "a"})
    assert (first.status, first.code) == ("pending", "policy.approval")
    assert first.verdict == {"decision": "deny", "reason": "policy.approval", "approval": {}}
    again = gate.call("tool.erase", {"name": "a"})
    assert again.approval_id == first.approval_id
    assert erased == []
    assert gate.call("mail.send", {"to": "bo@example.com"}).is_done, "other calls go on"
    approve(desk, first)
    assert gate.call("tool.erase", {"name": "a"}, wait=20).output == {"result": None}
    assert erased == ["a"]
    other = gate.call("tool.erase", {"name": "b"})
    approve(desk, other, "reject")
    assert gate.call("tool.erase", {"name": "b"}, wait=20).code == "safety.rejected"
    assert erased == ["a"]


def test_functions_keep_their_signature_and_async_ones_their_loop(desk: Any, gate: Gate) -> None:
    loops = []

    async def look(id: int, *, deep: bool = False) -> dict[str, str]:
        """Look a customer up."""
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return {"card": "4111-2222", "name": f"{id}{deep}"}

    governed = gate.tool(look)

    async def main() -> None:
        async with gate.session("ticket-7") as session:
            both = await asyncio.gather(governed(1), governed(2, deep=True))
            assert [each["name"] for each in both] == ["1False", "2True"]
            assert all("4111-2222" not in str(each) for each in both)
            masked = await gate.acall("tool.look", {"id": 3})
            assert masked.verdict["decision"] == "transform"
            assert masked.is_masked
        assert set(loops) == {asyncio.get_running_loop()}
        log = desk.root / ".cogcli/episodes" / session.episode_id / "events.jsonl"
        assert "4111-2222" not in log.read_text()
        with pytest.raises(TypeError):
            await governed()

    asyncio.run(main())
    capability = next(
        each for each in events_of(desk.episode) if each["event_type"] == "run.started"
    )["payload"]
    assert capability["gateway"] == {"session": "ticket-7", "client": "api"}


def test_what_a_function_raises_and_what_exceeds_its_time(desk: Any, gate: Gate) -> None:
    over = threading.Event()

    def broken(name: str) -> str:
        raise ValueError(f"no {name}")

    def slow() -> str:
        over.wait(20)
        return "late"

    as_text = gate.tool(broken, as_text=True)
    gate.tool(slow, timeout=0.2)
    assert "failed[call.server-error]: ValueError: no disk" in as_text("disk")
    try:
        doubt = gate.call("tool.slow", {})
        assert (doubt.status, doubt.code) == ("in_doubt", "effect.in-doubt")
        assert gate.call("tool.slow", {}).status == "in_doubt", "it is not made again"
        assert doubt.verdict["decision"] == "deny"
        gate.end()
    finally:
        over.set()
    command = doubt.next.replace("done|rerun|skip|fail", "fail").split()
    assert desk.run(*command[1:]).code != 70
    desk.run("verify", doubt.episode).assert_ok()


def test_a_function_of_another_process_is_not_called_again(desk: Any) -> None:
    """A decision to make the call again fails: no other process holds the function."""
    over = threading.Event()
    with Gate("desk@1.0.0", project=open_project(desk), intent="help", user="ann") as gate:
        gate.tool(lambda: over.wait(20), capability="tool.slow", timeout=0.2)
        doubt = gate.call("tool.slow", {})
        assert doubt.status == "in_doubt"
    over.set()
    desk.run("resume", doubt.episode, "--in-doubt", "rerun")
    (closed,) = [each for each in events_of(desk.episode) if each["event_type"] == "step.failed"]

    assert closed["payload"]["error"]["code"] == "service.untrusted"


def test_a_trial_enforces_no_rule_and_says_so(desk: Any) -> None:
    erased: list[str] = []
    options = {"project": open_project(desk), "intent": "help", "user": "ann", "shadow": True}
    with Gate("desk@1.0.0", **options) as gate:
        gate.tool(lambda to: desk.sent.append(to), capability="mail.send")
        gate.tool(lambda name: erased.append(name), capability="tool.erase")
        gate.tool(lambda: {"card": "4111-2222"}, capability="tool.look")
        done = gate.call("mail.send", {"to": "eve@elsewhere.example"})
        assert done.is_done
        assert done.is_shadow
        assert gate.call("tool.erase", {"name": "a"}).status == "pending", "the built-in gate asks"
        assert gate.call("tool.look", {}).output == {"result": {"card": "[masked]"}}
        assert gate.call("demo.text.lower", {"text": "hi"}).status == "denied"
    assert (desk.sent, erased) == (["eve@elsewhere.example"], [])
    decided = [
        each["payload"]
        for each in events_of(desk.episode)
        if each["event_type"] == "policy.decided"
    ]
    assert decided[0]["would"] == [{"rule": "own_people", "verdict": "deny"}]
    assert not any(each["enforced"] for each in decided)
    for words in (("trace",), ("gateway", "status"), ("policy", "explain")):
        shown = desk.run(*words, *(["@last"] if words[0] != "gateway" else [])).assert_ok()
        assert "shadow: no rule" in shown.out + shown.err, words
    desk.run("report", "@last", "-o", "page.html").assert_ok()
    assert "no rule of the pack was enforced" in (desk.root / "page.html").read_text()
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()
    pack = desk.root / "packs/desk/1.0.0.yaml"
    desk.write(
        "new.yaml",
        pack.read_text()
        .replace("@example.com", ".example")
        .replace("pack_version: 1.0.0", "pack_version: 1.1.0"),
    )
    compared = desk.run("policy", "diff", "desk@1.0.0", "new.yaml", "--over", "@last", "--json")
    (changed,) = compared.assert_exit(1).json["decisions"]["changed"]
    assert (changed["before"]["verdict"], changed["after"]["verdict"]) == ("deny", "allow")


def test_a_trial_is_chosen_at_the_command_line_alone(desk: Any) -> None:
    ran = desk.run("run", "demo.greet", "-p", "text=hi", "--shadow").assert_exit(2)
    assert "usage.flag" in ran.err
    words = ("--pack", "desk@1.0.0", "--intent", "help", "--user", "ann")
    pack = desk.root / "packs/desk/1.0.0.yaml"
    pack.write_text(pack.read_text().replace("    - rule_id: cards", RULE_OF_GREETINGS))
    desk.run("run", "demo.greet", "-p", "text=hi", *words).assert_exit(4)
    ran = desk.run("run", "demo.greet", "-p", "text=hi", *words, "--shadow").assert_ok()
    assert "shadow: no rule of the pack is enforced" in ran.err
    desk.run("rerun", "@last").assert_exit(4)
    desk.write("cogcli.toml", "shadow = true\n")
    assert desk.run("run", "demo.greet", "-p", "text=hi", *words).code not in (0, 70)


def test_a_budget_of_the_pack_holds_for_a_session(gate: Gate) -> None:
    results = [gate.call("mail.send", {"to": f"{n}@example.com"}).code for n in range(7)]
    assert results == ["", "", "", "", "", "budget.exceeded", "budget.exceeded"]
    with gate.session("other"):
        assert gate.call("mail.send", {"to": "bo@example.com"}).is_done


def test_an_idempotency_key_gives_the_first_result(desk: Any, gate: Gate) -> None:
    for _ in range(3):
        assert gate.call("mail.send", {"to": "bo@example.com"}, key="k1").is_done
    assert desk.sent == ["bo@example.com"]


def test_what_cannot_be_used_is_refused_before_any_call(desk: Any, gate: Gate) -> None:
    def positional(name: str, /) -> None: ...
    def print_nothing() -> None: ...

    for function, capability in ((positional, "tool.x"), (print, "Mail"), (len, "mail.send")):
        with pytest.raises(CogcliError):
            gate.tool(function, capability=capability)
    for options, code in (
        ({"intent": "none"}, "usage.value"),
        ({}, "usage.flag"),
        ({"intent": "help", "safety_mode": "x"}, "usage.value"),
    ):
        with pytest.raises(CogcliError) as refused:
            Gate("desk@1.0.0", project=open_project(desk), **options)
        assert refused.value.code == code
    with pytest.raises(CogcliError) as missing:
        Gate("none@1.0.0", project=open_project(desk), intent="help")
    assert missing.value.code == "pack.unknown"
    with pytest.raises(CogcliError):
        gate.call("mail.send", {"to": object()})
    with pytest.raises(CogcliError):
        gate.session("a b")
    assert gate.call("mail.send", {"to": "bo@example.com"}).is_done
    with pytest.raises(CogcliError, match="before the first call"):
        gate.tool(print_nothing, capability="tool.look")


def test_nothing_is_made_if_nothing_can_be_recorded(desk: Any) -> None:
    blocked = desk.root / "blocked"
    blocked.write_text("")
    project = Opened(desk.root, runs_dir=blocked, environ=desk.env)
    with Gate("desk@1.0.0", project=project, intent="help", user="ann") as gate:
        gate.tool(lambda to: desk.sent.append(to), capability="mail.send")
        with pytest.raises(CogcliError) as refused:
            gate.call("mail.send", {"to": "bo@example.com"})
    assert refused.value.code == "env.runs-dir"
    assert desk.sent == []


def test_the_guide_is_followed_without_a_framework(project: Any) -> None:
    """Its pack, its loop as a program, and what it prints."""
    shown = list(blocks(GUIDE))
    project.write("cogcli.toml", "")
    del project.env["COGCLI_TRUST_PROJECT"]
    for block in shown:
        if block.named in ("packs/desk/1.0.0.yaml", "loop.py"):
            project.write(block.named, block.text.encode())
    done = subprocess.run(
        [sys.executable, "loop.py"], cwd=project.root, env=project.env, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *lines, episode = done.stdout.splitlines()
    expected = next(block.text for block in shown if block.text.startswith("done"))
    assert [re.sub(r"ap_\w+", "ap_01…", line) for line in lines] == expected.splitlines()
    project.run("verify", episode).assert_ok()
    project.run("replay", episode).assert_ok()
    (commands,) = [block.text for block in shown if block.text.startswith("cogcli gateway status")]
    for line in commands.splitlines():
        project.run(*line.partition("#")[0].split()[1:]).assert_ok()
