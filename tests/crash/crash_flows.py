"""The runs that are killed, each in a directory of its own with a ledger of what really happened."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from crash_service import Service
from crash_zygote import INSTALLED, Zygotes
from support import in_process
from support.project import INSTALLED_ONLY

HERE = Path(__file__).resolve().parent
REGISTRY = HERE / "registry"
COGCLI = str(Path(sys.executable).parent / "cogcli")
SYSCALLS = (
    "write", "fdatasync", "fsync", "renameat", "mkdir", "mkdirat", "ftruncate", "unlinkat", "fallocate",
)  # fmt: skip
STORES = ("state/cogcli/memory.db", "state/cogcli/knowledge.db", "state/cogcli/limits")


class Flow(NamedTuple):
    """A skill and how an undisturbed run of it ends. `answers`: what is resumed with, until it is finished."""

    name: str
    exit_code: int
    answers: tuple[str, ...] = ()
    skill: str = ""
    """Its skill, where that is not called like it."""
    flags: tuple[str, ...] = ()
    syscalls: tuple[str, ...] = ()
    """What else it calls that it may be killed at."""
    request: str = ""
    """What an agent is asked, for its run; empty for the run of a skill."""
    model: str = ""
    """The script of the model that plans it; empty where templates do."""


AGENT = Flow("agent", 5, ("--approve", "GATE_FINANCE", "--by", "ann:finance"), request="pay")
AGENTS = (
    AGENT,
    Flow("agent-escalated", 5, ("--approve", "GATE_OPERATOR", "--by", "ann"), request="escalated"),
    Flow("agent-lanes", 0, request="lanes"),
    AGENT._replace(name="agent-model", model="pay"),
)
"""Turns of an agent: two effects of two services and a person in between; a person before the plan, too; lanes; the
same effects as a model plans them, over three turns."""
LIMITED = Flow(
    "limited",
    0,
    skill="linear",
    flags=("--pack", "crash-limited@1.0.0", "--intent", "crash.linear"),
)
"""Calls under a limit that has room for just as many as are made."""
FLOWS = (
    Flow("linear", 0),
    LIMITED,
    Flow("plain", 0),
    Flow("parallel", 0),
    Flow("gate", 4),
    Flow("nested", 0),
    Flow("blobs", 0),
    AGENT,
    Flow("remote", 0, syscalls=("sendto", "recvfrom")),
    Flow("approval", 5, ("--approve", "crash.approved")),
)
"""The six of the durability promise, one of steps that take the fast path, one
whose effects are another process's, and an agent's turn."""
MORE = (
    Flow("order", 0),
    Flow("waiting", 5, ("--approve", "crash.approved")),
    Flow("waiting-one", 5, ("--approve", "crash.approved"), "waiting", ("--max-workers", "1")),
    Flow("race", 0),
    Flow("items", 1),
    Flow("repeats", 1),
    Flow("failing", 1),
    *AGENTS[1:],
    Flow("stopped", 143, flags=("--max-workers", "1")),
)
"""Where steps run side by side, repeat or are cut off."""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str
    hit: bool = True
    """Whether the call that was to be its last, or to fail, was reached."""
    plain: bool = False
    """Whether the fast path of plain steps made it."""


class Sandbox:
    """A project, a runs directory, a ledger and a home that nothing else uses."""

    def __init__(
        self, root: Path, registry: Path, service: Service, zygotes: Zygotes = INSTALLED
    ) -> None:
        self.root = root
        self.registry = registry
        self.service = service
        self.zygotes = zygotes
        self.runs, self.ledger_file, self.project = root / "runs", root / "ledger", root / "project"
        self.project.mkdir(parents=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "XDG_STATE_HOME": str(root / "state"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONDONTWRITEBYTECODE": "1",
            "CRASH_LEDGER": str(self.ledger_file),
            "CRASH_TOKEN": service.token(self.ledger_file),
        }

    def flags(self) -> list[str]:
        return ["--registry", str(self.registry), "--runs-dir", str(self.runs), "--json"]

    def asked(self, flow: Flow) -> list[str]:
        """The arguments of a run."""
        if flow.request:
            request = str(self.registry / "requests" / f"{flow.request}.json")
            script = self.registry / "models" / f"{flow.model}.yaml"
            model = ["--model", f"scripted:{script}"] if flow.model else []
            return ["agent", "invoke", request, *model, *flow.flags, *self.flags()]
        return [
            "run",
            f"crash.{flow.skill or flow.name}",
            "-p",
            "text=hello",
            *flow.flags,
            *self.flags(),
        ]

    def launch(self, *arguments: str, at: int = 0, mode: str = "kill", **environment: str) -> Done:
        """A command whose n-th call that changes something on disk is its last, or fails."""
        name = str(uuid.uuid4())
        out, err, hit = (self.root.parent / f"{name}.{end}" for end in ("out", "err", "hit"))
        more = {"CRASH_AT": str(at), "CRASH_MODE": mode, "CRASH_HIT": str(hit), **environment}
        code = self.zygotes.run(
            list(arguments), self.project, {**self.environment, **more}, out, err
        )
        is_plain = hit.exists() and hit.read_text() == "plain"
        done = Done(code, out.read_text(), err.read_text(), hit.exists(), is_plain)
        for file in (out, err, hit):
            file.unlink(missing_ok=True)
        return done

    def strace(self, injected: str, *arguments: str, path: Path | None = None) -> Done:
        """The installed command under strace; a syscall of any of its threads is killed or fails."""
        where = ["-P", str(path)] if path else []
        words = [
            "strace",
            "-f",
            "-qq",
            "-o",
            os.devnull,
            *where,
            "-e",
            f"inject={injected}",
            COGCLI,
            *arguments,
        ]
        return self._run(words, {})

    def command(self, *arguments: str) -> Done:
        """The command, undisturbed: a process of its own where it is one of several, or of another package."""
        alone = threading.current_thread() is threading.main_thread()
        if INSTALLED_ONLY or not alone or self.zygotes is not INSTALLED:
            return self.launch(*arguments)
        code, out, err = in_process.run(arguments, cwd=self.project, env=self.environment)
        return Done(code, out.decode(), err.decode())

    def installed(self, *arguments: str) -> Done:
        """The command as it is installed, undisturbed."""
        return self._run([COGCLI, *arguments], {})

    def _run(self, words: list[str], environment: dict[str, str]) -> Done:
        done = subprocess.run(
            words,
            cwd=self.project,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
            start_new_session=True,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    @property
    def episodes(self) -> list[Path]:
        """Directories of episodes."""
        return sorted(self.runs.iterdir()) if self.runs.is_dir() else []

    @property
    def remembered(self) -> list[str]:
        """The candidates of the proposals that are stored, each once a run that made it, in order of their words;
        without what was learned of the user afterwards."""
        file = self.root / STORES[0]
        if not file.exists():
            return []
        with closing(sqlite3.connect(file)) as store:
            if not store.execute(
                "SELECT count(*) FROM sqlite_master WHERE name = 'proposed_in'"
            ).fetchone()[0]:
                return []
            made = "SELECT entity, predicate FROM proposal JOIN proposed_in USING (proposal_id)"
            made += " WHERE class <> 'preference'"
            return sorted(f"{entity} {predicate}" for entity, predicate in store.execute(made))

    @property
    def reserved(self) -> list[tuple[str, int]]:
        """The calls that the counters of limits hold: their steps and attempts, in order."""
        file = self.root / "state/cogcli/limits.db"
        if not file.exists():
            return []
        with closing(sqlite3.connect(file)) as store:
            if not store.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return []
            return sorted(store.execute("SELECT step_id, attempt FROM reservation"))

    @property
    def ledger(self) -> list[str]:
        """The keys of what happened, in order; a line cut short did not."""
        self.service.settled()
        if not self.ledger_file.exists():
            return []
        lines = self.ledger_file.read_bytes().split(b"\n")
        return [json.loads(line)["key"] for line in lines if line.endswith(b"}")]

    def files(self) -> set[str]:
        """Every file outside episodes, ledger, stores and the user's cache."""
        found = {
            str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()
        }
        return {
            name
            for name in found
            if not name.startswith(("runs/ep_", "home/.cache/", *STORES)) and name != "ledger"
        }

    def remove(self) -> None:
        """Leave nothing."""
        shutil.rmtree(self.root)


def outputs_of(done: Done) -> Any:
    """What a command answered."""
    return json.loads(done.out).get("outputs") if done.out else None


def warmed(home: Path, registry: Path, service: Service) -> Path:
    """A home whose cache knows the registry, for sandboxes to share."""
    sandbox = Sandbox(home / "warm", registry, service)
    sandbox.environment["HOME"] = str(home)
    for flow in FLOWS:
        sandbox.command(*sandbox.asked(flow))
    sandbox.remove()
    return home
