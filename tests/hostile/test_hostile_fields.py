"""A project without trust, in which every key, field and file has the most hostile value of its type: nothing of it
reaches a network, a model, a program, a variable or a file outside the project, whichever command meets it.

The commands run in a trap (`trap.py`). The values stand in `hostile_project.py`.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("namespaces and inotify are those of Linux", allow_module_level=True)

import hostile_project as values
from cage import PUBLIC
from hostile_project import HostileProject, list_fields, list_given
from support.examples import LONG
from trap import BIN, HOST, Outcome, TrapMachine, holds_canary, trap_machine

from cogcli.app.settings.config import KEYS
from cogcli.specs.host_layout import KIND_OF_FILE, HostLayout

pytestmark = pytest.mark.sampled(16)

TRUSTED = {"COGCLI_TRUST_PROJECT": "1"}
CALL_TOOLS = str(Path(__file__).with_name("call_tools.py"))
PROFILE = (
    "run",
    "text.profile",
    "-p",
    "text=The harbour opens at six. Ships wait in the bay.",
    "-q",
)
BRIEF = ("run", "text.brief", "-p", "text=The harbour opens at six. Ships wait in the bay.", "-q")
PACK = ("--pack", "trap@1.0.0", "--user", "trap")


class Prey:
    """A hostile project in a trap, with episodes that came with it."""

    def __init__(
        self, machine: TrapMachine, name: str, roots: tuple[str, ...] = (), *, shipped: bool = False
    ) -> None:
        self.machine = machine
        self.root = machine.project(name)
        self.project = HostileProject(self.root, machine.outside, machine.marks, roots)
        self.project.plant(shipped=shipped)
        self.sealed = self.pending = ""

    def run(self, *words: str, environ: dict[str, str] | None = None) -> Outcome:
        return self.machine.run(self.root, *words, environ=environ)

    def record_episodes(self) -> None:
        """Two episodes that another user recorded: one that ended, and one that waits for an answer."""
        self.project.spec("capabilities/trap.use.asks.yaml", {
            "id": "trap.use.asks", "version": "1.0.0", "description": "Asks.", "inputs": values.TEXT,
            "outputs": values.ANY,
            "properties": {"side_effects": True}, "safety": {"requires_confirmation": True},
        })  # fmt: skip
        self.project.spec("bindings/local/trap.use.asks/own.yaml", {
            "id": "trap_asks", "capability": "trap.use.asks", "service": "trap_api", "protocol": "openapi",
            "operation": "ask", "request": {"text": "input.text"}, "response": {"text": "response.text"},
        })  # fmt: skip
        self.project.skill("asks", "trap.use.asks", {"text": "inputs.text"})
        home = self.machine.home.with_name("home-of-another")
        home.mkdir(exist_ok=True)
        environ = {**TRUSTED, "HOME": str(home)}
        assert self.run("run", "trap.api", environ=environ).code == 0
        self.sealed = self.newest
        assert self.run("run", "trap.asks", environ=environ).code == 5
        self.pending = self.newest

    @property
    def newest(self) -> str:
        """The id of the newest episode."""
        return max(path.name for path in (self.root / ".cogcli/episodes").glob("ep_*"))

    def call_tools(self, skills: Sequence[str], environ: dict[str, str] | None = None) -> Outcome:
        """Let a client of `serve mcp` call skills."""
        command = [str(BIN / "cogcli"), "serve", "mcp", "--trust-level", "privileged"]
        given = {"text": str(self.machine.outside / "canary.txt")}
        return self.machine.run(
            self.root, "-I", CALL_TOOLS, program="python", environ=environ,
            input=json.dumps([command, given, list(skills)]),
        )  # fmt: skip


@pytest.fixture(scope="module")
def machine() -> Iterator[TrapMachine]:
    with trap_machine() as made:
        yield made


@pytest.fixture(scope="module")
def prey(machine: TrapMachine) -> Iterator[Prey]:
    """The project that every command meets. Afterwards no file holds the content of a canary."""
    made = Prey(machine, "prey", shipped=True)
    made.record_episodes()
    yield made
    assert machine.leaks(made.root) == []


# -- whether there is a value for everything ---------------------------------------------------------------------------


def _documents() -> dict[str, list[Any]]:
    services = values.list_services(Path("/outside"), Path("/marks"))
    named = {"id": "a", "capability": "a.b", "service": "a", "protocol": "mcp", "operation": "a"}
    return {
        "skill": [values.SKILL],
        "capability": [values.CAPABILITY],
        "binding": [{**named, **values.BINDING}],
        "service": [{"id": "a", **service} for service in services.values()],
        "pack": [values.PACK],
        "policy": [values.POLICY],
        "services": [{"services": services}],
        "active": [values.ACTIVE],
        "overrides": [values.OVERRIDES],
        "case": [*values.CASES, {"cases": values.CASES}],
    }


NOT_TRIED: dict[str, tuple[str, ...]] = {
    "binding": (".page",),
    "service": (".auth",),
    "services": (".services.*.auth",),
    "pack": (
        ".policy_layer.limits",
        ".policy_layer.rules[].then.without_gate",
        ".decision_layer.decisions[].success",
        ".evaluation_layer.targets[].max",
    ),
}
"""By kind: fields for which the hostile project has no value yet, although it should."""


@pytest.mark.parametrize("kind", _documents())
def test_every_field_has_a_hostile_value(kind: str) -> None:
    schema = json.loads(subprocess.check_output([str(BIN / "cogcli"), "schema", kind]))
    fields = list_fields(schema)
    given = {path for document in _documents()[kind] for path in list_given(document, fields)}
    assert fields
    missing = {path for path in fields - given if not path.startswith(NOT_TRIED.get(kind, ()))}
    assert missing == set(), f"hostile_project.py has no value for these fields of {kind}"


def test_every_key_and_every_file_has_a_hostile_value(prey: Prey) -> None:
    assert set(values.CONFIG) == set(KEYS)
    overrides = prey.root / ".agent-skills"
    assert {path.name for path in overrides.iterdir()} == {
        *KIND_OF_FILE,
        *HostLayout.folders.values(),
    }


def test_the_values_are_taken(prey: Prey) -> None:
    """A file with an error is not loaded, and would show nothing."""
    outcome = prey.run("validate", "--json", environ=TRUSTED)
    errors = [problem for problem in outcome.json["problems"] if problem["severity"] == "E"]
    assert errors == []


# -- without trust -----------------------------------------------------------------------------------------------------


def _sample(prey: Prey, prefix: str, count: int) -> list[str]:
    """Some of the skills with a name; all of them in a long run."""
    found = [skill for skill in prey.project.skills if skill.startswith(f"trap.{prefix}")]
    return found if LONG else random.sample(found, min(count, len(found)))


def _find_culprit(prey: Prey, skills: list[str]) -> str:
    """One skill that reaches out alone; empty if several do so together only."""
    while len(skills) > 1:
        half = len(skills) // 2
        parts = skills[:half], skills[half:]
        skills = next((part for part in parts if prey.call_tools(part).escapes), [])
    return skills[0] if skills else ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("prefix", ["own-", "shipped-", "host-", ""])
def test_a_client_of_serve_mcp_reaches_nothing(prey: Prey, prefix: str) -> None:
    skills = _sample(prey, prefix, 12)
    outcome = prey.call_tools(skills)
    if outcome.escapes:
        pytest.fail(f"one of them is {_find_culprit(prey, skills)}: {outcome.escapes}")
    assert set(outcome.json) == set(skills)


PARTS = 12 if LONG else 1
"""How many tests share the runs of all skills, so that each ends in time on a busy machine."""
OWN = () if LONG else ("trap.*",)
"""The specs of the project; in a long run those that are shipped, too."""
COMMANDS: dict[str, tuple[str, ...]] = {
    "test": ("test",),
    "test coverage": ("test", "skills", "--coverage"),
    "executability": ("registry", "executability", *OWN),
    "contracts": ("registry", "contracts", *OWN),
    "smoke": ("registry", "smoke", *OWN),
    "validate": ("validate",),
    "verify-bindings": ("openapi", "verify-bindings", "--all", "--live"),
    "verify-invoker": ("openapi", "verify-invoker"),
    "run of everything": ("run", "trap.everything"),
    "run under the pack": ("run", "trap.everything", *PACK, "--intent", "reach"),
    "run of gates": ("run", "trap.gated"),
    "run of a confirmed effect": ("run", "trap.asks", "--confirm", "trap.use.asks"),
    "agent": ("agent", "invoke", "--message", "please reach out", *PACK),
    "agent with a model": (
        "agent",
        "invoke",
        "--message",
        "reach",
        *PACK,
        "--model",
        "openai:canary",
    ),
    "context": ("context", "compile", "--message", "reach", "--pack", "trap@1.0.0"),
    "policy test": ("policy", "test", "trap@1.0.0"),
    "services refresh": ("services", "refresh", "trap_tools"),
    "services refresh of a program": ("services", "refresh", "trap_program"),
    "services login": ("services", "login", "trap_tools_login", "--no-browser", "--wait", "1"),
    "services login by a key": ("services", "login", "trap_tools_key"),
    "services login at endpoints": (
        "services",
        "login",
        "trap_tools_endpoints",
        "--no-browser",
        "--scope",
        "a",
    ),
    "services login by a document": (
        "services",
        "login",
        "trap_tools_document",
        "--no-browser",
        "--wait",
        "1",
    ),
    "services logout": ("services", "logout", "trap_tools_login"),
    "services refresh accepted": ("services", "refresh", "trap_program_own", "--accept"),
    "plan": ("run", "trap.everything", "--plan"),
    "graph": ("graph", "trap.everything"),
    "memory": ("memory", "ls", "--pack", "trap@1.0.0"),
    "resume": ("resume", "PENDING", "--approve", "trap.use.asks"),
    "rerun": ("rerun", "SEALED"),
    "rerun from a step": ("rerun", "SEALED", "--from", "go"),
    "replay": ("replay", "SEALED"),
    "trace": ("trace", "SEALED", "--io"),
    "report": ("report", "SEALED", "-o", "-"),
    "gc": ("gc", "--keep", "0", "--dry-run"),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_reaches_nothing(prey: Prey, name: str) -> None:
    words = [
        {"PENDING": prey.pending, "SEALED": prey.sealed}.get(word, word) for word in COMMANDS[name]
    ]
    outcome = prey.run(*words).assert_nothing_left()
    assert "Traceback" not in outcome.err
    assert outcome.code != 70, outcome.err


@pytest.mark.sampled(6)
def test_the_coverage_of_the_registry_reaches_nothing(prey: Prey) -> None:
    prey.run("registry", "coverage").assert_nothing_left()


@pytest.mark.parametrize("part", range(PARTS))
def test_no_single_run_reaches_anything(prey: Prey, part: int) -> None:
    services = random.sample(sorted(prey.project.services), 2)
    skills = [f"trap.{values.slug(name)}" for name in services]
    for skill in prey.project.skills[part::PARTS] if LONG else skills:
        prey.run("run", skill, "--trust-level", "privileged").assert_nothing_left()


def test_completion_reaches_nothing(prey: Prey) -> None:
    for words in (
        "cogcli run trap.",
        "cogcli services show ",
        "cogcli run trap.api -p text=",
        "cogcli resume ",
    ):
        variables = {"_COGCLI_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": words}
        prey.run(
            environ={**variables, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        ).assert_nothing_left()


@pytest.mark.sampled(32)
def test_doctor_asks_the_addresses_of_the_user_alone(prey: Prey) -> None:
    outcome = prey.run("doctor", "--net")
    asked = [packet.data for packet in outcome.sent if packet.port != 53]
    assert all(data.startswith(b"HEAD /models/v1 ") for data in asked), asked
    own = [escape for escape in outcome.escapes if not escape.startswith("sent to")]
    assert own == []


@pytest.mark.parametrize("words", [PROFILE, BRIEF], ids=lambda words: words[1])
def test_a_shipped_skill_runs_as_in_an_empty_directory(prey: Prey, words: tuple[str, ...]) -> None:
    empty = prey.machine.project(f"empty-for-{words[1]}")
    expected = prey.machine.run(empty, *words).assert_nothing_left()
    found = prey.run(*words).assert_nothing_left()
    assert (found.code, found.out) == (expected.code, expected.out) == (0, expected.out), found.err
    assert "cogcli config trust" in prey.run(*words[:-1]).err
    assert "config trust" not in prey.machine.run(empty, *words[:-1]).err


@pytest.mark.sampled(32)
def test_a_refusal_names_the_flag_and_the_trust_and_the_flag_helps(prey: Prey) -> None:
    refused = prey.run("run", "trap.api", "--json").assert_nothing_left()
    assert refused.json["error"]["code"] == "service.untrusted"
    assert "cogcli config trust" in refused.out
    flag = re.search(rf"--allow-host {HOST}\S*", prey.run("run", "trap.api").err)
    assert flag
    outcome = prey.run("run", "trap.api", *flag[0].split())
    assert outcome.code == 0, outcome.err
    calls = [packet for packet in outcome.sent if packet.port != 53]
    assert [packet.host for packet in calls] == [PUBLIC]
    assert not holds_canary(calls[0].data)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name", ["api_variable", "api_named", "api_file", "tools", "rpc_base", "api_private_1"]
)
def test_an_allowed_host_gets_no_credential_and_no_variable(prey: Prey, name: str) -> None:
    hosts = (
        "--allow-host",
        f"{HOST}:8099",
        "--allow-host",
        HOST,
        "--allow-host",
        "inner.trap.example:8099",
    )
    outcome = prey.run("run", f"trap.{values.slug(name)}", *hosts)
    others = [packet for packet in outcome.sent if packet.port != 53 and packet.host != PUBLIC]
    assert others == []
    assert [escape for escape in outcome.escapes if not escape.startswith("sent to")] == []


def test_an_allowed_host_gets_nothing_of_the_users_model(prey: Prey) -> None:
    prey.run(
        "run", "trap.shipped-model-output-generate", "--allow-host", f"{HOST}:8099"
    ).assert_nothing_left()


# -- inputs ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader(machine: TrapMachine) -> Prey:
    """A prey of its own, since the user has files read: with a skill that reads the file at its default, and links."""
    prey = Prey(machine, "reader")
    prey.record_episodes()
    outside = str(prey.machine.outside / "canary.md")
    prey.project.spec("skills/local/trap/reads/skill.yaml", {
        "id": "trap.reads", "version": "1.0.0", "name": "Reads", "description": "Reads.",
        "inputs": {"path": {"type": "string", "default": outside}}, "outputs": values.ANY,
        "steps": [{
            "id": "go", "uses": "doc.text.read", "input": {"path": "inputs.path"}, "output": {"text": "outputs.text"},
        }],
    })  # fmt: skip
    prey.project.spec("inputs.json", {"path": outside})
    prey.project.write("inside.md", "# Notes\n\nThe harbour opens at six. Ships wait in the bay.\n")
    (prey.root / "linked.md").symlink_to(outside)
    (prey.root / "elsewhere").symlink_to(prey.machine.outside)
    (prey.root / "linked.json").symlink_to(prey.machine.outside / "canary.json")
    return prey


@pytest.mark.parametrize("skill", ["doc.digest", "trap.reads"])
def test_a_typed_path_is_read_and_so_is_a_file_of_the_project(reader: Prey, skill: str) -> None:
    outside = str(reader.machine.outside / "canary.md")
    typed = reader.run("run", skill, "-p", f"path={outside}", "-q")
    assert (typed.code, f"opened {outside}" in typed.touched) == (0, True), typed.err
    inside = reader.run("run", skill, "-p", "path=inside.md", "-q").assert_nothing_left()
    assert inside.code == 0, inside.err


NOT_TYPED: dict[str, tuple[str, ...]] = {
    "file of inputs": ("run", "doc.digest", "--input-file", "inputs.json"),
    "file of inputs by a flag": ("run", "doc.digest", "--input", "@inputs.json"),
    "file of inputs for the project's own": ("run", "trap.reads", "--input-file", "inputs.json"),
    "default": ("run", "trap.reads"),
    "typed link": ("run", "doc.digest", "-p", "path=linked.md"),
    "text of a typed link": ("run", "text.brief", "-p", "text=@linked.md"),
    "inputs behind a typed link": ("run", "doc.digest", "--input-file", "linked.json"),
    "request behind a typed link": ("agent", "invoke", "linked.json"),
    "goal behind a typed link": ("run", "trap.reads", "--frame-file", "linked.json"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NOT_TYPED)
def test_what_is_not_typed_gives_no_permission_to_read(reader: Prey, name: str) -> None:
    refused = reader.run(*NOT_TYPED[name]).assert_nothing_left()
    assert refused.code == 3, refused.err


THROUGH_LINKS: dict[str, tuple[str, ...]] = {
    "report": ("report", "SEALED", "-o", "elsewhere/report.html"),
    "report over a file": ("report", "SEALED", "-o", "linked.md", "--force"),
    "export": ("skills", "export", "trap.api", "--to", "elsewhere/exported"),
    "schemas": ("schema", "--all", "-o", "elsewhere/schemas"),
    "report of tests": ("test", "trap.api", "--report", "json:elsewhere/tests.json"),
    "report of a check": ("validate", "--report", "sarif:elsewhere/checks.sarif"),
    "anchor": ("verify", "--all", "--anchor", "linked.json"),
    "API document": ("new", "binding", "new.one", "--from-openapi", "elsewhere/api.yaml"),
    "folder of another tool": ("import", "agent-skills", "elsewhere"),
    "registry of another tool": ("import", "agent-skills", "reg", "elsewhere"),
    "facts": ("knowledge", "import", "linked.json"),
    "data": (
        "policy",
        "eval",
        "trap@1.0.0",
        "--capability",
        "trap.use.api",
        "--data",
        "linked.json",
    ),
    "pack": ("pack", "check", "linked.json"),
    "spec": ("validate", "elsewhere/services/local/elsewhere.yaml"),
    "scenario": ("openapi", "verify-bindings", "--scenario", "linked.json"),
    "new project": ("new", "project", "elsewhere/project"),
}
"""Commands with a path of the project that leads out of it."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", THROUGH_LINKS)
def test_a_named_path_of_the_project_does_not_lead_out_of_it(reader: Prey, name: str) -> None:
    words = [reader.sealed if word == "SEALED" else word for word in THROUGH_LINKS[name]]
    refused = reader.run(*words).assert_nothing_left()
    assert refused.code in (2, 3), refused.err


@pytest.mark.sampled(3)
def test_a_client_and_an_episode_give_no_permission_to_read(reader: Prey) -> None:
    given = {"path": str(reader.machine.outside / "canary.md")}
    command = [str(BIN / "cogcli"), "serve", "mcp"]
    call = json.dumps([command, given, ["doc.digest", "trap.reads"]])
    client = reader.machine.run(
        reader.root, "-I", CALL_TOOLS, program="python", input=call
    ).assert_nothing_left()
    assert all("service.untrusted" in answer for answer in client.json.values()), client.out
    environ = {**TRUSTED, "HOME": str(reader.machine.home.with_name("home-of-another"))}
    reader.run("run", "doc.digest", "-p", f"path={given['path']}", environ=environ)
    recorded = reader.newest
    for words in (("rerun", recorded), ("rerun", recorded, "--from", "read"), ("replay", recorded)):
        reader.run(*words).assert_nothing_left()


# -- specs that stand in for shipped ones ------------------------------------------------------------------------------


@pytest.mark.sampled(2)
def test_a_shipped_skill_is_the_shipped_one_whatever_stands_in_its_place(
    machine: TrapMachine,
) -> None:
    prey = Prey(machine, "shadows")
    own = json.loads((prey.root / "skills/local/trap/api/skill.yaml").read_text())
    prey.project.spec("skills/local/text/profile/skill.yaml", {**own, "id": "text.profile"})
    prey.project.spec("skills/local/text/brief/skill.yaml", {**own, "id": "text.brief"})
    capability = values.read(values.CHECKOUT / "capabilities/text.section.split.yaml")
    prey.project.spec(
        "capabilities/text.section.split.yaml", {**capability, "extends": "trap.use.api"}
    )
    reads = values.read(values.CHECKOUT / "capabilities/doc.text.read.yaml")
    reads.pop("safety")
    prey.project.spec("capabilities/doc.text.read.yaml", reads)
    module = {"id": "official_text", "kind": "pythoncall", "module": "canary_module"}
    prey.project.spec("services/local/official_text.yaml", module)
    alias = {
        "id": "trap.more.alias",
        "version": "1.0.0",
        "description": "x",
        "inputs": {},
        "outputs": values.ANY,
    }
    prey.project.spec(
        "capabilities/trap.more.alias.yaml", {**alias, "aliases": ["text.readability.score"]}
    )
    empty = machine.project("empty-for-shadows")
    for words in (PROFILE, BRIEF):
        found = prey.run(*words).assert_nothing_left()
        assert (found.code, found.out) == (0, machine.run(empty, *words).out), found.err


# -- links and roots elsewhere -----------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("roots", [("link",), ("../../outside",)], ids=["link", "elsewhere"])
@pytest.mark.parametrize(
    "words",
    [("skills", "ls", "--all"), ("validate",), ("run", "trap.api"), PROFILE],
    ids=lambda words: words[0],
)
def test_a_root_elsewhere_is_not_read(
    machine: TrapMachine, roots: tuple[str, ...], words: tuple[str, ...]
) -> None:
    name = f"prey-with-{roots[0].strip('./')}"
    if not (machine.root / "projects" / name).exists():
        Prey(machine, name, roots)
    outcome = machine.run(machine.root / "projects" / name, *words)
    assert outcome.assert_nothing_left().code != 70


LINKED = (
    ".cogcli", ".agent-skills", "skills", "skills/local", "skills/local/trap", "capabilities", "bindings",
    "bindings/local", "services", "services/local", "packs", "policies", "tooling", "cogcli.toml",
)  # fmt: skip
"""Each place of a project at which a command looks."""


@pytest.mark.sampled(14)
@pytest.mark.parametrize("place", LINKED)
def test_a_place_that_is_a_link_is_not_followed(machine: TrapMachine, place: str) -> None:
    prey = Prey(machine, f"linked-{values.slug(place.replace('/', '-'))}")
    target = machine.outside / f"moved-{place.replace('/', '-')}"
    if (prey.root / place).exists():
        (prey.root / place).rename(target)
    else:
        target.mkdir()
    (prey.root / place).symlink_to(target)
    machine.watch([target, *(path for path in target.rglob("*") if LONG or path.parent == target)])
    for words in (
        PROFILE,
        ("run", "trap.api"),
        ("validate",),
        ("ls",),
        ("gc", "--keep", "0"),
        ("skills", "ls"),
        ("test",),
    ):
        outcome = prey.run(*words).assert_nothing_left()
        assert outcome.code != 70, outcome.err


# -- with trust: the trap is one ---------------------------------------------------------------------------------------


@pytest.mark.sampled(32)
def test_with_trust_the_same_values_reach_everything(machine: TrapMachine) -> None:
    prey = Prey(machine, "trusted", shipped=True)
    skills = [f"trap.{values.slug(name)}" for name in prey.project.services]
    escapes = "\n".join(prey.call_tools(skills, environ=TRUSTED).escapes)
    for expected in (
        "POST /api/ask", "POST /rpc", "POST /mcp", "POST /described/ask", "POST /by-variable/ask", "started module",
        "started program-canary-program", "started program-of-the-project", "sent a canary to",
        "sent to 10.9.8.7:8099", "sent to 127.0.0.1:8099", "canary.txt outside",
    ):  # fmt: skip
        assert expected in escapes, (expected, escapes)
    model = prey.run("run", "trap.own-model-model-output-generate", environ=TRUSTED)
    assert any("POST /models/v1/chat/completions" in escape for escape in model.escapes), model
    everything = prey.run("run", "trap.everything", environ=TRUSTED)
    assert any("POST /api/ask" in escape for escape in everything.escapes), everything
