"""An untrusted project, whatever it holds and whatever is done with it: nothing of it runs, nothing secret is read.

One project holds every kind of service at every place where a registry can be, and is met by every command. Everything
that it must not get leaves a trace: a file for code and programs, a connection for addresses, its value for a variable.
"""

from __future__ import annotations

import os
import pkgutil
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from random import random
from typing import Any

import pytest
from support.project import Project
from support.raw_server import Conversation, RawServer, serving

import cogcli
from cogcli.app.settings.config import KEYS
from cogcli.cli.app import COMMANDS

pytestmark = pytest.mark.sampled(12)

SECRET = "canary-of-the-environment"
FILE_SECRET = "canary-of-a-secret-file"
LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
SECRETS = (SECRET.encode(), FILE_SECRET.encode())
UPPER = {"inputs": "{text: {type: string, default: x}}", "outputs": "{text: {type: any}}"}

KEY_LINES: dict[str, str] = {
    "registry": 'registry = ["reg", "../beside", "{outside}", "link", "reg/inner", ".", ".agent-skills/plain"]',
    "roots": 'roots = {reg = {contracts = "lenient"}, "../beside" = {contracts = "lenient"}}',
    "builtin": "builtin = true",  # without what is shipped there is less to try
    "trust_level": 'trust_level = "standard"',
    "keep_going": "keep_going = true",
    "max_workers": "max_workers = 256",
    "approval_ttl": "approval_ttl = 31000000",
    "timeout": "timeout = 30",
    "step_timeout": "step_timeout = 5.0",
    "conformance": 'conformance = "experimental"',
    "prefer": 'prefer = ["canary"]',
    "no_fallback": "no_fallback = true",
    "durability": 'durability = "none"',
    "files.roots": 'files.roots = ["/", "{outside}"]',
    "files.write_roots": 'files.write_roots = ["/", "{outside}"]',
    "limits.steps": "limits.steps = 10000",
    "limits.max_iterations": "limits.max_iterations = 10000",
    "limits.max_items": "limits.max_items = 1000000",
    "limits.yaml_bytes": "limits.yaml_bytes = 262144",
    "limits.yaml_nodes": "limits.yaml_nodes = 50000",
    "use_env_proxy": "use_env_proxy = false",
    "export.otlp": "",  # a project may say nothing: tests/cli/test_otlp_export.py
    "progress": 'progress = "json"',
    "agent.profile": 'agent.profile = "auto"',
    "agent.synthesis_threshold": "agent.synthesis_threshold = 1",
    "agent.synthesis_grace_s": "agent.synthesis_grace_s = 1",
    "model.adapter": 'model.adapter = "openai"',
    "model.name": 'model.name = "canary"',
    "model.base_url": 'model.base_url = "{url}"',
    "model.auth_ref": 'model.auth_ref = "A_CANARY"',
    "model.timeout_s": "model.timeout_s = 5",
    "model.context_tokens": "model.context_tokens = 8000",
    "model.price_in": "model.price_in = 2.5",
    "model.price_out": "model.price_out = 10",
    "hooks.on_pause": 'hooks.on_pause = ["touch", "{marks}/hook-pause"]',
    "hooks.on_failure": 'hooks.on_failure = ["touch", "{marks}/hook-failure"]',
    "hooks.on_end": 'hooks.on_end = ["true"]',  # runs of a trusted project end in many tests here
    "hooks.timeout_s": "hooks.timeout_s = 300",
    "approvers": "",  # a project may say nothing, and nothing of the next: tests/unit/app/test_approver_keys.py
    "episodes.mode": "",
    "packs": 'packs = {pins = {canary = "1.0.0"}, env = {prod = {canary = "1.0.0"}}}',
}
"""Each key of `cogcli.toml` with the most that a project may say: a new key needs a line of its own."""

PLACES: dict[str, str] = {
    "own": "project",
    "host": "project/.agent-skills",
    "reg": "project/reg",
    "beside": "beside",
    "outside": "elsewhere/outside",
    "linked": "elsewhere/linked",
    "inner": "project/reg/inner",
    "plain": "project/.agent-skills/plain",
    "openapi": "project/tooling/openapi_scenarios/registry",
    "mcp": "project/tooling/mcp_scenarios/registry",
}
"""Each place of services that a project can have, with its directory."""

BUILT_IN = (
    "data", "document", "extract", "prose", "report", "schema", "table", "text", "web", "wording",
)  # fmt: skip
"""Shipped services; each place says that one of them is its own."""


class Kind:
    """A kind of service: its file, the operation that a binding calls, the binding's metadata, and what it wants."""

    def __init__(self, wants: str, service: str, operation: str = "", metadata: str = "{}") -> None:
        self.wants = wants
        self.service = service
        self.protocol = service.partition("\n")[0].removeprefix("kind: ")
        self.operation = operation or ("ask" if self.protocol == "openapi" else "answer")
        self.metadata = metadata


def kinds(url: str, secret_file: str) -> dict[str, Kind]:
    """Every way in which a service asks for what only trust gives."""
    by_name = url.replace("127.0.0.1", "localhost")
    header = 'metadata: {headers: {X-Key: "${A_CANARY}"}}\n'
    return {
        "thread": Kind("file", "kind: pythoncall\nmodule: canary_TAG\nisolation: thread\n"),
        "process": Kind("file", "kind: pythoncall\nmodule: canary_TAG\nisolation: process\n"),
        "command": Kind("file", "kind: mcp\ncommand: ./canary-TAG.sh\n"),
        "program": Kind(
            "file", 'kind: mcp\ncommand: sh\nargs: [canary-TAG.sh]\nenv: {TOKEN: "${A_CANARY}"}\n'
        ),
        "asked": Kind("connection", f"kind: mcp\nurl: {url}/mcp\nnetwork: private\n"),
        "known": Kind("secret", f"kind: mcp\nurl: {url}/mcp\nnetwork: private\n{header}"),
        "api": Kind("connection", f"kind: openapi\nbase_url: {url}\nnetwork: private\n"),
        "name": Kind("connection", f"kind: openapi\nbase_url: {by_name}\nnetwork: private\n"),
        "header": Kind("secret", f"kind: openapi\nbase_url: {url}\nnetwork: private\n{header}"),
        "auth": Kind("secret", f"kind: openapi\nbase_url: {url}\nnetwork: private\nauth_ref: A_CANARY\n"),
        "file": Kind(
            "secret", f"kind: openapi\nbase_url: {url}\nnetwork: private\nauth_ref: file:{secret_file}\n"
        ),
        "bound": Kind(
            "secret", f"kind: openapi\nbase_url: {url}\nnetwork: private\n",
            metadata='{headers: {X-Key: "${A_CANARY}"}}',
        ),
        "rpc": Kind("connection", f"kind: openrpc\nurl: {url}\nnetwork: private\n"),
    }  # fmt: skip


BESIDE = ("sitecustomize", "usercustomize", "orjson", "yaml", "mcp", "cogcli_plugin", "conftest")
"""Modules that the project has, too."""


class Trap:
    """A project full of canaries, and what became of them."""

    def __init__(self, root: Path, server: RawServer) -> None:
        self.project = Project(root)
        del self.project.env["COGCLI_TRUST_PROJECT"]
        self.project.env |= {"A_CANARY": SECRET, "NOTES_TOKEN": SECRET}
        self.server = server
        self.marks = root / "marks"
        self.marks.mkdir()
        secret = root / "secret.txt"
        secret.write_text(FILE_SECRET)
        secret.chmod(0o600)
        self.root = root
        self.kinds = kinds(server.url, str(secret))
        self.targets = [
            (tag, kind) for tag in PLACES for kind in self.kinds if _is_tried(tag, kind)
        ]
        for index, (tag, place) in enumerate(PLACES.items()):
            self._plant(tag, root / place, BUILT_IN[index])
        (self.project.root / "link").symlink_to(root / "elsewhere/linked")
        self._lay_out()

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _plant(self, tag: str, root: Path, built_in: str) -> None:
        host = tag == "host"
        home = root.parent if host else root
        mark = self.marks / f"module-{tag}"
        own = f"open({str(mark)!r}, 'w').close()\n\n\ndef answer(text):\n    return {{'text': text}}\n"
        self._write(home / f"canary_{tag}.py", own)
        script = home / f"canary-{tag}.sh"
        self._write(script, f'#!/bin/sh\nprintf "%s" "$TOKEN" > {self.marks}/command-{tag}\n')
        script.chmod(0o700)
        services = {
            f"{tag}_{name}": f"id: {tag}_{name}\n{kind.service.replace('TAG', tag)}"
            for name, kind in self.kinds.items()
            if _is_tried(tag, name)
        }
        services[f"official_{built_in}"] = (
            f"id: official_{built_in}\nkind: pythoncall\nmodule: canary_{tag}\n"
        )
        for id, text in services.items():
            if not host:
                self._write(root / f"services/{id}.yaml", text)
        if host:
            told = (
                text.partition("\n")[2].replace("\n", "\n    ").rstrip()
                for text in services.values()
            )
            entries = "".join(
                f"  {id}:\n    {text}\n" for id, text in zip(services, told, strict=True)
            )
            self._write(root / "services.yaml", f"services:\n{entries}")
        for name, kind in self.kinds.items():
            if not _is_tried(tag, name):
                continue
            capability = f"canary.{tag}.{name}"
            self._write(
                root / f"capabilities/{capability}.yaml",
                f'id: {capability}\nversion: "1.0.0"\ndescription: Wants what it must not get.\n'
                f"inputs: {UPPER['inputs']}\noutputs: {UPPER['outputs']}\nproperties: {{side_effects: false}}\n"
                "metadata: {examples: [{inputs: {text: x}}]}\n",
            )
            self._write(
                root / f"bindings/local/{capability}/{tag}_{name}.yaml",
                f"id: {tag}_{name}\ncapability: {capability}\nservice: {tag}_{name}\nprotocol: {kind.protocol}\n"
                f"operation: {kind.operation}\nrequest: {{text: input.text}}\nresponse: {{text: response.text}}\n"
                f"metadata: {kind.metadata}\n",
            )
            self.project.skill(
                f"canary.{tag}-{name}",
                f"- {{id: ask, uses: {capability}, input: {{text: inputs.text}}, output: {{text: outputs.text}}}}",
                inputs=UPPER["inputs"],
                outputs=UPPER["outputs"],
            )
            options = f"options: {{trust_level: privileged, confirm: [{capability}]}}"
            self._write(
                self.project.root / f"skills/local/canary/{tag}-{name}/tests/own.yaml",
                f"cases:\n- {{{options}, real: [{capability}]}}\n- {{{options}}}\n- {{inputs_file: ../../x.json}}\n"
                f"- {{{options}, stubs: {{{capability}: []}}}}\n",
            )

    def _lay_out(self) -> None:
        """What a project holds besides services, each time so that it leads to them."""
        write = self.project.write
        lines = "\n".join(KEY_LINES.values()).replace(
            "{outside}", str(self.root / "elsewhere/outside")
        )
        lines = lines.replace("{marks}", str(self.marks))
        write("cogcli.toml", f"{lines}\n".replace("{url}", self.server.url))
        write("reg/cogcli.toml", 'registry = ["inner"]\n')
        write(
            "bindings/local/text.content.normalize/mine.yaml",
            "id: mine\ncapability: text.content.normalize\nservice: own_thread\nprotocol: pythoncall\n"
            "operation: answer\nrequest: {text: input.text}\nresponse: {text: response.text}\n",
        )
        write("policies/own.yaml", "defaults: {text.content.normalize: mine}\n")
        write(".agent-skills/active_bindings.json", '{"text.content.normalize": "mine"}\n')
        for tag, name in (
            ("openapi", "api"),
            ("openapi", "header"),
            ("mcp", "command"),
            ("mcp", "known"),
        ):
            write(
                f"tooling/{tag}_scenarios/{name}.json",
                f'{{"id": "{name}", "capability_id": "canary.{tag}.{name}", "binding_id": "{tag}_{name}",'
                ' "input": {"text": "x"}, "expected_output": {"text": "x"}}\n',
            )
        # Names that Python, or a tool that we import, might look for beside its work.
        for name in BESIDE:
            write(f"{name}.py", f"open({str(self.marks / f'beside-{name}')!r}, 'w').close()\n")

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
        """A command in a copy of this process, which spares it the imports: exit code and all it wrote."""
        out, imported = self.root / "out.txt", self.root / "imported.txt"
        child = os.fork()
        if child == 0:
            _become(
                arguments, self.project.root, {**self.project.env, **(env or {})}, out, imported
            )
        _, status = os.waitpid(child, 0)
        _import(imported.read_text().split())
        return os.waitstatus_to_exitcode(status), out.read_bytes().decode("utf-8", "replace")

    def sprung(self) -> set[str]:
        """What was got that must not be: marks of code, connections."""
        found = {mark.name for mark in self.marks.iterdir()}
        return found | {"connection"} if self.server.connections else found

    def leaks(self) -> list[Path]:
        """The files that hold a secret: episodes, caches, whatever was written."""
        files = [
            path for path in self.root.rglob("*") if path.is_file() and path.name != "secret.txt"
        ]
        return [path for path in files if any(secret in path.read_bytes() for secret in SECRETS)]

    def forget(self) -> None:
        """Begin anew."""
        for mark in self.marks.iterdir():
            mark.unlink()
        self.server.requests.clear()
        self.server.connections = 0


def _import(names: list[str]) -> None:
    """Import what a command imported: the next one need not. Not what the project has a module for, too: each command
    has to look for that itself."""
    for name in names:
        if name.partition(".")[0] not in BESIDE and name not in sys.modules:
            with suppress(ImportError):
                import_module(name)


def _become(
    arguments: tuple[str, ...],
    directory: Path,
    environ: Mapping[str, str],
    out: Path,
    imported: Path,
) -> None:
    """Be the command, and nothing afterwards."""
    code = 99
    imported.write_text("")
    known = set(sys.modules)
    try:
        signal.alarm(300)
        handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdin, sys.stdout, sys.stderr = (open(n, m) for n, m in ((0, "r"), (1, "w"), (2, "w")))  # noqa: SIM115
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environ)
        from cogcli.cli.main import run

        code = run(list(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
        with imported.open("w") as file:
            file.writelines(f"{name}\n" for name in sys.modules if name not in known)
    finally:
        os._exit(code)


def _is_tried(tag: str, kind: str) -> bool:
    """Places and kinds do not depend on each other: all kinds at two places, one of each sort at the others."""
    return tag in ("own", "host") or kind in ("thread", "command", "api", "header") or LONG


@contextmanager
def trapped(root: Path) -> Iterator[Trap]:
    """A project full of canaries, beside a server on this machine."""
    with serving(_answered) as server:
        yield Trap(root, server)


def _answered(conversation: Conversation) -> None:
    is_mcp = "/mcp" in conversation.line
    conversation.reply(b'{"text": "x"}', status="404 Not Found" if is_mcp else "200 OK")


@pytest.fixture(scope="module")
def trap(tmp_path_factory: Any) -> Iterator[Trap]:
    for found in pkgutil.walk_packages(cogcli.__path__, "cogcli."):
        if not found.name.endswith(("__main__", "_launcher", ".worker", "_stand_in")):
            import_module(found.name)  # once, and not in every copy of this process
    with trapped(tmp_path_factory.mktemp("trap")) as made:
        yield made


SKILL, SERVICE, CAPABILITY = "canary.own-thread", "own_thread", "canary.own.thread"


def commands(trap: Trap, sealed: str, pending: str) -> dict[str, list[tuple[str, ...]]]:
    """Each command of the table with the ways in which it meets the project: a new command needs a line."""
    services = [f"{tag}_{kind}" for tag, kind in trap.targets]
    return {
        "run": [
            *(("run", f"canary.{tag}-{kind}") for tag, kind in trap.targets),
            ("run", "text.profile", "-p", "text=Some words here."),
            ("run", "text.brief", "-p", "text=Some words here."),
            ("run", SKILL, "--plan"),
            ("run", SKILL, "--batch", "in.json", "-o", "out.jsonl", "--jobs", "2"),
            ("run", "text.profile", "--batch", "in.json", "--invalid", "record"),
            ("run", SKILL, "--trust-level", "privileged", "--bind", f"{CAPABILITY}=own_thread"),
        ],
        "trace": [
            ("trace", SKILL),
            ("trace", sealed, "--io"),
            ("trace", "text.brief", "-p", "text=words"),
        ],
        "state show": [("state", "show", sealed)],
        "ls": [("ls",)],
        "diff": [("diff", sealed, pending)],
        "report": [("report", sealed, "-o", "-"), ("report", sealed, pending, "-o", "-")],
        "graph": [("graph", SKILL), ("graph", sealed)],
        "gc": [("gc", "--keep", "9", "--dry-run")],
        "verify": [("verify", sealed)],
        "resume": [
            ("resume", pending, "--approve", "canary.own.asks"),
            ("resume", pending, "--abort"),
        ],
        "approvals ls": [("approvals", "ls")],
        "approvals show": [("approvals", "show", pending)],
        "approvals approve": [
            ("approvals", "approve", pending),
            ("approvals", "approve", pending, "--resume"),
        ],
        "approvals reject": [("approvals", "reject", pending, "--resume")],
        "rerun": [("rerun", sealed), ("rerun", sealed, "--from", "ask")],
        "replay": [("replay", sealed)],
        "validate": [
            ("validate",),
            ("validate", "reg"),
            ("validate", "tooling/mcp_scenarios/registry"),
        ],
        "doctor": [("doctor",), ("doctor", "--net")],
        **{
            f"registry {name}": [("registry", name, "canary.*")]
            for name in ("contracts", "smoke", "executability")
        },
        **{f"registry {name}": [("registry", name)] for name in ("coverage", "stats", "catalog")},
        "test": [("test",), ("test", "skills", "--coverage")],
        "openapi verify-bindings": [
            ("openapi", "verify-bindings", "--all", *more, "--protocol", protocol)
            for protocol in ("openapi", "mcp")
            for more in (
                ("--live",),
                ("--live", "--scenarios-dir", f"tooling/{protocol}_scenarios"),
            )
        ],
        "openapi verify-invoker": [("openapi", "verify-invoker")],
        "openapi verify-errors": [("openapi", "verify-errors", "--help")],
        "episodes archive": [("episodes", "archive", sealed)],
        "episodes extract": [("episodes", "extract", sealed)],
        "batch merge": [("batch", "merge", "in.json", "-o", "merged.jsonl")],
        "skills ls": [("skills", "ls", "--all")],
        "skills show": [("skills", "show", SKILL)],
        "skills search": [("skills", "search", "canary")],
        "skills explain": [("skills", "explain", SKILL)],
        "capabilities ls": [("capabilities", "ls", "--all")],
        "capabilities show": [("capabilities", "show", CAPABILITY)],
        "capabilities search": [("capabilities", "search", "canary")],
        "capabilities explain": [("capabilities", "explain", CAPABILITY)],
        "bindings ls": [("bindings", "ls", "--all")],
        "bindings show": [("bindings", "show", "own_bound")],
        "bindings search": [("bindings", "search", "canary")],
        "bindings explain": [("bindings", "explain", CAPABILITY)],
        "agent chat": [("agent", "chat", "--pack", "canary@1.0.0")],
        "agent invoke": [("agent", "invoke", "--message", "x", "--pack", "canary@1.0.0")],
        "pack check": [
            ("pack", "check", "canary@1.0.0"),
            ("pack", "check", "packs/canary/1.0.0.yaml"),
        ],
        "pack hash": [("pack", "hash", "canary@1.0.0"), ("pack", "hash", "canary")],
        "pack pin": [("pack", "pin", "canary@1.0.0"), ("pack", "pin", "canary", "--remove")],
        "policy check": [("policy", "check", "canary@1.0.0")],
        "policy test": [("policy", "test", "canary@1.0.0")],
        "policy eval": [
            ("policy", "eval", "canary@1.0.0", "--capability", CAPABILITY, "--data", "in.json"),
        ],
        "policy explain": [("policy", "explain", sealed)],
        "policy diff": [("policy", "diff", "canary@1.0.0", "canary@1.0.0", "--over", sealed)],
        "context compile": [("context", "compile", "--message", "x", "--pack", "canary@1.0.0")],
        "context explain": [("context", "explain", sealed, "--why", CAPABILITY)],
        "context diff": [("context", "diff", sealed, pending)],
        "metrics": [("metrics",), ("metrics", "--check")],
        "agent profile show": [("agent", "profile", "show", "u")],
        "agent profile export": [("agent", "profile", "export", "u", "--format", "md")],
        "agent profile forget": [("agent", "profile", "forget", "u", "--yes")],
        "agent sessions ls": [("agent", "sessions", "ls")],
        "agent sessions show": [("agent", "sessions", "show", "s")],
        "agent sessions forget": [("agent", "sessions", "forget", "s")],
        "agent jobs ls": [("agent", "jobs", "ls", "--all")],
        "agent jobs run": [("agent", "jobs", "run")],
        "memory ls": [("memory", "ls", "--pack", "canary@1.0.0")],
        "memory proposals": [("memory", "proposals", "--all")],
        "memory promote": [("memory", "promote", "mp_0123456789abcdef", "--by", "ann")],
        "memory reject": [("memory", "reject", "mp_0123456789abcdef", "--by", "ann")],
        "memory recall": [("memory", "recall", "canary", "--pack", "canary@1.0.0")],
        "knowledge import": [("knowledge", "import", "in.json")],
        "knowledge query": [("knowledge", "query", "order:1")],
        "knowledge snapshot": [("knowledge", "snapshot")],
        "bindings activate": [("bindings", "activate", CAPABILITY, SERVICE)],
        "services ls": [("services", "ls", "--all")],
        "services show": [("services", "show", SERVICE)],
        "services search": [("services", "search", "canary")],
        "services explain": [("services", "explain", SERVICE)],
        "services refresh": [
            ("services", "refresh", service, *more)
            for service in services
            if service.startswith("own") or LONG
            for more in ((), ("--accept",))
            if not service.endswith(("thread", "process"))
            and (service.endswith("_command") or not more)
        ],
        "services login": [("services", "login", "own_known", "--no-browser", "--wait", "1")],
        "services logout": [("services", "logout", "own_known")],
        "skills export": [("skills", "export", SKILL, "--to", "exported")],
        "skills import": [("skills", "import", "exported", "--capability", CAPABILITY)],
        "import agent-skills": [
            ("import", "agent-skills", ".", "reg"),
            ("import", "agent-skills", "reg"),
        ],
        "new project": [("new", "project", ".")],
        "new skill": [("new", "skill", "new.one"), ("new", "skill", "new.two", "--like", SKILL)],
        "new capability": [("new", "capability", "new.one")],
        "new pack": [("new", "pack", "new")],
        "new binding": [("new", "binding", "new.one", "--from-openapi", "in.json")],
        "new scenario": [
            ("new", "scenario", f"own_{kind}") for kind in ("thread", "api", "command", "known")
        ],
        "schema": [("schema", "service")],
        "serve mcp": [("serve", "mcp")],
        "gateway serve": [("gateway", "serve", "--from", ".mcp.json")],
        "gateway tools": [("gateway", "tools"), ("gateway", "tools", "--from", ".mcp.json")],
        "gateway accept": [("gateway", "accept", "own_command")],
        "gateway status": [("gateway", "status")],
        "gateway hook": [("gateway", "hook", "claude-code")],
        "gateway mark": [("gateway", "mark", "claude-code")],
        "gateway config": [("gateway", "config", "claude-code")],
        "gateway doctor": [("gateway", "doctor", "claude-code")],
        "gateway learn": [("gateway", "learn", "@last", "-o", "proposals")],
        "config show": [("config", "show", "--origin")],
        "config trust": [("config", "trust", "--revoke")],
        "completion show": [("completion", "show", "bash")],
        "completion install": [("completion", "install", "fish")],
        "help": [("help", "inputs")],
        "explain": [("explain", "service.untrusted")],
    }


def test_every_key_and_every_place_is_tried() -> None:
    assert set(KEY_LINES) == set(KEYS)
    assert len(PLACES) == len(BUILT_IN)


def test_an_untrusted_project_gets_nothing_from_any_command(trap: Trap) -> None:
    sealed, pending = _episodes(trap)
    tried = commands(trap, sealed, pending)
    assert set(tried) == set(COMMANDS)
    for name, lines in tried.items():
        if not LONG and random() < 0.9:
            continue  # a tenth of the commands, others with each --seed; all with check.py --long
        for line in lines:
            code, told = trap.run(*line)
            assert trap.sprung() == set(), (line, code, told[-2000:])
            assert not any(secret.decode() in told for secret in SECRETS), line
            assert "Traceback" not in told, (line, told[-2000:])
            assert code not in (70, 99), (line, told[-2000:])
            if name == "run" and line[1].startswith("canary."):
                assert code in (3, 4), (line, code, told[-2000:])
    assert trap.leaks() == []


@pytest.mark.parametrize("service", ["official_document", "own_document"])
@pytest.mark.parametrize("place", ["/proc/self/environ", "{home}/.ssh/id_rsa"])
def test_an_untrusted_project_reads_no_secret_with_what_cogcli_brings(
    tmp_path: Path, service: str, place: str
) -> None:
    """Its own capability calls the shipped reader, without the gate of the shipped capability."""
    project = Project(tmp_path)
    del project.env["COGCLI_TRUST_PROJECT"]
    project.env["A_CANARY"] = SECRET
    (project.home / ".ssh").mkdir()
    (project.home / ".ssh/id_rsa").write_text(FILE_SECRET)
    project.write(
        "services/own_document.yaml",
        "id: own_document\nkind: pythoncall\nmodule: cogcli.official.document\nisolation: process\n",
    )
    project.capability("canary.read", "read_text", request="{path: input.text}")
    binding = project.root / "bindings/local/canary.read/canary_read.yaml"
    binding.write_text(binding.read_text().replace("service: demo", f"service: {service}"))
    path = place.format(home=project.home)
    project.skill(
        "canary.reader",
        f'- {{id: ask, uses: canary.read, input: {{text: "{path}"}}, output: {{text: outputs.text}}}}',
        outputs=UPPER["outputs"],
    )
    # An untrusted project reads its own files only; nobody reads those where credentials lie.
    for env, code in (({}, 3), ({"COGCLI_TRUST_PROJECT": "1"}, 1)):
        result = project.installed("run", "canary.reader", env=env).assert_exit(code)
        assert not any(secret.decode() in result.out + result.err for secret in SECRETS)
    written = [path for path in project.root.rglob("*") if path.is_file()]
    assert not any(secret in path.read_bytes() for path in written for secret in SECRETS)


def _episodes(trap: Trap) -> tuple[str, str]:
    """Two episodes that lie in the project as if they had come with it: a sealed one, one that waits for a person."""
    trap.project.write(
        "capabilities/canary.own.asks.yaml",
        'id: canary.own.asks\nversion: "1.0.0"\ndescription: Asks first.\n'
        f"inputs: {UPPER['inputs']}\noutputs: {UPPER['outputs']}\nproperties: {{side_effects: true}}\n"
        "safety: {requires_confirmation: true}\n",
    )
    trap.project.write(
        "bindings/local/canary.own.asks/asks.yaml",
        "id: asks\ncapability: canary.own.asks\nservice: own_thread\nprotocol: pythoncall\noperation: answer\n"
        "request: {text: input.text}\nresponse: {text: response.text}\n",
    )
    trap.project.skill(
        "canary.asks",
        "- {id: ask, uses: canary.own.asks, input: {text: inputs.text}, output: {text: outputs.text}}",
        inputs=UPPER["inputs"],
        outputs=UPPER["outputs"],
    )
    trusted = {"COGCLI_TRUST_PROJECT": "1"}
    code, told = trap.run("run", SKILL, env=trusted)
    assert code == 0, told
    sealed = trap.project.episode.name
    code, told = trap.run("run", "canary.asks", env=trusted)
    assert code == 5, told
    pending = next(path.name for path in trap.project.episodes if path.name != sealed)
    assert trap.sprung() == {"module-own", "hook-pause"}
    trap.forget()
    return sealed, pending


@pytest.mark.parametrize("tag", [tag for tag in PLACES if tag not in ("openapi", "mcp", "inner")])
def test_every_trap_springs_once_the_project_is_trusted(tmp_path: Path, tag: str) -> None:
    with trapped(tmp_path) as trap:
        trap.run("run", f"canary.{tag}-thread", env={"COGCLI_TRUST_PROJECT": "1"})
        assert trap.sprung() == {f"module-{tag}"}


def test_every_kind_of_trap_springs_once_the_project_is_trusted(tmp_path: Path) -> None:
    with trapped(tmp_path) as trap:
        for name, kind in trap.kinds.items():
            trap.run("run", f"canary.own-{name}", env={"COGCLI_TRUST_PROJECT": "1"})
            found = trap.sprung()
            if kind.wants == "file":
                assert any(each.startswith(("module", "command")) for each in found), (name, found)
            if kind.wants != "file":
                assert "connection" in found, (name, found)
            if kind.wants == "secret":
                sent = b"".join(request.request for request in trap.server.requests)
                assert any(secret in sent for secret in SECRETS), name
            trap.forget()
            shutil.rmtree(trap.project.root / ".cogcli")


def _move_skill(trap: Trap, tag: str) -> None:
    """Lay the skill that calls the module of a place into that place."""
    own = f"skills/local/canary/{tag}-thread/skill.yaml"
    trap._write(trap.root / PLACES[tag] / own, (trap.project.root / own).read_text())


@pytest.mark.sampled(24)
def test_a_root_that_the_person_names_is_trusted_whoever_else_names_it(tmp_path: Path) -> None:
    with trapped(tmp_path) as trap:
        trap.run("run", "canary.reg-thread", "--registry", "reg")
        assert trap.sprung() == set()  # the root is the user's, the skill is the project's
        for tag in ("reg", "beside", "linked"):
            _move_skill(trap, tag)
        trap.run("run", "canary.reg-thread", "--registry", "reg")
        assert trap.sprung() == {"module-reg"}
        trap.forget()
        trap.run("run", "canary.beside-thread", env={"COGCLI_REGISTRY": str(trap.root / "beside")})
        assert trap.sprung() == {"module-beside"}
        trap.forget()
        config = trap.project.home / ".config/cogcli/config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f"registry = ['{trap.root / 'elsewhere/linked'}']\n")
        trap.run("run", "canary.linked-thread")
        assert trap.sprung() == {"module-linked"}
        trap.forget()
        for tag in ("own", "reg", "beside", "host"):
            trap.run("run", f"canary.{tag}-thread")
        assert trap.sprung() == set()


def test_a_project_cannot_have_a_root_of_the_person_overruled_by_naming_it_first(
    tmp_path: Path,
) -> None:
    with trapped(tmp_path) as trap:
        for tag in ("beside", "outside"):
            text = (trap.project.root / f"skills/local/canary/{tag}-thread/skill.yaml").read_text()
            skill = trap.root / PLACES[tag] / "skills/local/canary/own-thread/skill.yaml"
            trap._write(skill, text.replace(f"id: canary.{tag}-thread", "id: canary.own-thread"))
        trap.run("run", "canary.own-thread", "--registry", str(trap.root / "beside"))
        assert trap.sprung() == {"module-beside"}


@pytest.mark.parametrize("mine", ["service", "binding"])
def test_a_call_is_trusted_only_where_service_and_binding_are(tmp_path: Path, mine: str) -> None:
    """The person's registry has a service with a token; the project replaces the service, or binds what it likes."""
    with serving(lambda c: c.reply(b'{"text": "x"}')) as server:
        project = Project(tmp_path)
        del project.env["COGCLI_TRUST_PROJECT"]
        project.env |= {"A_CANARY": SECRET}
        service = f"id: vault\nkind: openapi\nbase_url: {server.url}\nnetwork: private\n"
        if mine == "service":
            service += "auth_ref: A_CANARY\n"
        binding = (
            "id: vault_ask\ncapability: vault.thing.ask\nservice: vault\nprotocol: openapi\noperation: ask\n"
            "request: {text: input.text}\nresponse: {text: response.text}\n"
        )
        if mine == "binding":
            binding += 'metadata: {headers: {X-Key: "${A_CANARY}"}}\n'
        own, other = "../person/", ""
        project.write(f"{own if mine == 'service' else other}services/vault.yaml", service)
        project.write(
            f"{own if mine == 'binding' else other}bindings/local/vault.thing.ask/ask.yaml", binding
        )
        for place in (own, other):
            project.write(
                f"{place}capabilities/vault.thing.ask.yaml",
                'id: vault.thing.ask\nversion: "1.0.0"\ndescription: Asks.\n'
                f"inputs: {UPPER['inputs']}\noutputs: {UPPER['outputs']}\nproperties: {{side_effects: false}}\n",
            )
        project.skill(
            "vault.asking",
            "- {id: ask, uses: vault.thing.ask, input: {text: inputs.text}, output: {text: outputs.text}}",
            **UPPER,
        )
        run = ("run", "vault.asking", "--registry", "../person", "--json")
        refused = project.run(*run)
        assert refused.json["error"]["code"] == "service.untrusted", refused.out
        assert server.connections == 0
        project.run(*run, env={"COGCLI_TRUST_PROJECT": "1"}).assert_ok()
        assert SECRET.encode() in server.requests[0].request


@pytest.mark.parametrize(
    ("users", "projects", "counts"),
    [
        ("sandbox", "standard", "sandbox"),
        ("elevated", "sandbox", "sandbox"),
        ("elevated", None, "elevated"),
    ],
)
def test_a_project_raises_no_level_above_what_its_user_gives(
    project: Any, users: str, projects: str | None, counts: str
) -> None:
    config = project.home / ".config/cogcli/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"trust_level = '{users}'\n")
    project.write("cogcli.toml", f"trust_level = '{projects}'\n" if projects else "")
    assert project.run("config", "show", "trust_level").assert_ok().out == f"{counts}\n"
