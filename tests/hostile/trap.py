"""A trap for commands: whatever leaves the project, reads outside of it or starts a program is seen.

The commands are the installed ones. They run as an unprivileged user in a machine of their own (`cage.py`), in which
every address leads to a recorder. Files outside the project, variables and programs are canaries: each has a content
that stands nowhere else, or leaves a mark.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from cage import INNER, NOBODY

BIN: Final = Path(sys.executable).parent
HOST: Final = "public.trap.example"
"""A name with a public address, where the recorder answers."""
URL: Final = f"http://{HOST}:8099"
PRIVATE_URLS: Final = (
    f"http://{INNER}:8099",
    "http://inner.trap.example:8099",
    "http://127.0.0.1:8099",
)
PROGRAMS: Final = (
    "curl",
    "wget",
    "git",
    "node",
    "npx",
    "uvx",
    "whisper-cli",
    "translate",
    "ffmpeg",
    "canary-program",
)
"""Programs on the PATH that leave a mark. The shells are the machine's own: programs of Python start them."""
VARIABLES: Final = (
    "A_CANARY",
    "NOTES_TOKEN",
    "OPENAI_API_KEY",
    "SMTP_PASSWORD",
    "AWS_SECRET_ACCESS_KEY",
)
ENDINGS: Final = (
    "txt",
    "md",
    "json",
    "yaml",
    "csv",
    "pdf",
    "png",
    "wav",
    "mp4",
    "mbox",
    "html",
    "py",
)
SECRETS: Final = (".ssh/id_rsa", ".aws/credentials", ".netrc", "notes.txt", ".config/other/token")
"""Canaries in the user's home."""
OTHERS: Final = (
    "data.txt",
    ".cogcli/stores/memory.sqlite",
    ".cogcli/episodes/ep_01M7XX7ARQAH1DT2XGC00YCX59/events.jsonl",
)
"""Canaries in another project."""
_WORD: Final = "kanarienvogel"
"""Every content of a canary begins with this word; it stands nowhere else."""


class Packet(NamedTuple):
    """One connection, or the datagrams of one socket to one target."""

    protocol: str
    host: str
    port: int
    data: bytes

    @property
    def is_local(self) -> bool:
        """Whether it went to a server that a command itself started: on this machine, at no port of the recorder."""
        return self.host in ("127.0.0.1", "::1") and self.port not in (25, 53, 80, 443, 587, 8099)


class Outcome(NamedTuple):
    """What a command returned, and what it did."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str
    sent: list[Packet]
    touched: list[str]
    marks: list[str]
    written: list[str]

    @property
    def escapes(self) -> list[str]:
        """Everything that left the project; empty is what a project without trust may do."""
        found = [f"sent to {p.host}:{p.port} {p.data[:200]!r}" for p in self.sent if not p.is_local]
        found += [f"{each} outside" for each in self.touched]
        found += [f"started {mark}" for mark in self.marks]
        found += [f"wrote {path}" for path in self.written]
        streams = {"standard output": self.out, "standard error": self.err}
        found += [
            f"printed a canary on {name}"
            for name, text in streams.items()
            if holds_canary(text.encode())
        ]
        found += [f"sent a canary to {p.host}:{p.port}" for p in self.sent if holds_canary(p.data)]
        return found

    def assert_nothing_left(self) -> Outcome:
        """Fail, with what was printed, if anything left the project."""
        assert not self.escapes, (
            self.words,
            self.escapes,
            self.code,
            self.out[-3000:],
            self.err[-3000:],
        )
        return self

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def holds_canary(data: bytes) -> bool:
    """Whether bytes hold the content of a canary, as it is or in base64 or hexadecimal form."""
    word = _WORD.encode()
    forms = [word, word.hex().encode()]
    for offset in range(3):
        text = base64.b64encode(b"\0" * offset + word)
        forms.append(text[4 if offset else 0 : len(text) // 4 * 4 - 4])
    return any(form in data for form in forms)


class TrapMachine:
    """A machine with canaries. `mode` is `machine`, or the reason why commands share the network of the tests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.outside, self.marks = root / "home", root / "outside", root / "marks"
        self.other, self.programs = root / "other-project", root / "programs"
        self._cage = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("cage.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.mode: str = self._read()["mode"]
        self.is_other_user = os.getuid() == 0 and self.mode == "machine"
        self.environ = self._lay_out()
        self._give_away(root)

    def close(self) -> None:
        """End the machine."""
        assert self._cage.stdin
        assert self._cage.stdout
        self._cage.stdin.close()
        self._cage.wait(20)
        self._cage.stdout.close()

    def project(self, name: str) -> Path:
        """A new empty folder for a project."""
        path = self.root / "projects" / name
        path.mkdir(parents=True)
        return path

    def run(
        self, project: Path, *words: str, environ: Mapping[str, str] | None = None, input: str = "",
        program: str = "cogcli",
    ) -> Outcome:  # fmt: skip
        """Run an installed command in a project."""
        self._give_away(self.root)
        before = self._surroundings(project)
        answer = self._ask(
            words=[str(BIN / program), *words], directory=str(project), input=input,
            environ={**self.environ, **(environ or {})}, other_user=self.is_other_user,
        )  # fmt: skip
        marks = sorted(mark.name for mark in self.marks.iterdir())
        for mark in self.marks.iterdir():
            mark.unlink()
        packets = [
            Packet(sent["protocol"], sent["host"], int(sent["port"]), bytes.fromhex(sent["data"]))
            for sent in answer["sent"]
        ]
        out, err = (
            answer[name].encode("latin-1").decode("utf-8", "replace") for name in ("out", "err")
        )
        after = self._surroundings(project)
        written = sorted(
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        )
        return Outcome(
            (program, *words), answer["code"], out, err, packets, answer["touched"], marks, written
        )

    def watch(self, paths: Sequence[Path]) -> None:
        """Record from now on what happens to more files outside the project."""
        self._ask(watch=[str(path) for path in paths])

    def leaks(self, project: Path) -> list[Path]:
        """The files of a project, and of the user's cache and state, that hold the content of a canary."""
        places = [project, self.home / ".cache", self.home / ".local", self.home / "temporary"]
        files = [
            path
            for place in places
            for path in place.rglob("*")
            if path.is_file() and not path.is_symlink()
        ]
        return [path for path in files if holds_canary(path.read_bytes())]

    def _lay_out(self) -> dict[str, str]:
        """Lay out the canaries; the variables of commands."""
        for folder in (
            self.home / "temporary",
            self.outside,
            self.marks,
            self.programs,
            self.root / "projects",
        ):
            folder.mkdir(parents=True)
        files = [self.home / name for name in SECRETS]
        files += [self.outside / f"canary.{ending}" for ending in ENDINGS]
        files += [self.other / name for name in OTHERS]
        watched = [self._canary(path) for path in files]
        watched += [str(self.outside), str(self.other), str(self.other / ".cogcli/episodes")]
        watched += [
            self._canary_service(),
            str(self.outside / "services"),
            str(self.outside / "services/local"),
        ]
        for name in PROGRAMS:
            script = self.programs / name
            script.write_text(f'#!/bin/sh\necho "$@" > {self.marks}/program-{name}\ncat\n')
            script.chmod(0o755)
        self._ask(watch=watched)
        return {
            "PATH": os.pathsep.join([str(self.programs), str(BIN), os.environ["PATH"]]),
            "HOME": str(self.home), "TMPDIR": str(self.home / "temporary"),
            "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb",
            **{name: f"{_WORD}-variable-{name}" for name in VARIABLES},
            "OPENAI_BASE_URL": f"{URL}/models/v1",
            "SEARXNG_URL": f"{URL}/search", "SMTP_HOST": HOST, "SMTP_FROM": "a@trap.example", "SMTP_USER": "a",
            "NOTIFY_WEBHOOKS": json.dumps({"canary": f"{URL}/hook/{_WORD}"}),
            "AGENT_ADDRESSES": json.dumps({"canary": f"{URL}/agent/{_WORD}"}),
            "COGCLI_TRANSLATE_COMMAND": "translate {language}", "COGCLI_TRANSCRIBE_COMMAND": "whisper-cli {audio}",
            "A_URL": f"{URL}/by-variable",
        }  # fmt: skip

    def _canary_service(self) -> str:
        """A spec outside the project."""
        path = self.outside / "services/local/elsewhere.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(f"id: elsewhere\nkind: openapi\nbase_url: {URL}/{_WORD}\n")
        return str(path)

    def _canary(self, path: Path) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{_WORD}-file-{path.name}\n")
        path.chmod(0o600)
        return str(path)

    def _surroundings(self, project: Path) -> dict[str, tuple[int, int]]:
        """Size and time of each file outside the project that no command writes; caches and settings are the user's."""
        own = {
            str(project),
            str(self.marks),
            *(
                str(self.home / name)
                for name in (".cache", ".local", ".config/cogcli", "temporary")
            ),
        }
        found = {}
        for folder, below, names in os.walk(self.root):
            below[:] = [name for name in below if os.path.join(folder, name) not in own]
            for name in names:
                status = os.lstat(os.path.join(folder, name))
                found[os.path.join(folder, name)] = (status.st_size, status.st_mtime_ns)
        return found

    def _give_away(self, place: Path) -> None:
        """Make the user of the commands the owner of everything that the test wrote."""
        if not self.is_other_user:
            return
        for folder, below, names in os.walk(place):
            for path in (folder, *(os.path.join(folder, name) for name in (*below, *names))):
                if os.lstat(path).st_uid != NOBODY:
                    os.lchown(path, NOBODY, NOBODY)

    def _ask(self, **request: Any) -> Any:
        assert self._cage.stdin
        print(json.dumps(request), file=self._cage.stdin, flush=True)
        return self._read()

    def _read(self) -> Any:
        assert self._cage.stdout
        line = self._cage.stdout.readline()
        assert line, "the machine of the trap ended"
        return json.loads(line)


@contextmanager
def trap_machine() -> Iterator[TrapMachine]:
    """A machine for the duration of a test."""
    root = Path(
        tempfile.mkdtemp(prefix="cogcli-trap-", dir="/tmp" if Path("/tmp").is_dir() else None)
    ).resolve()
    root.chmod(0o755)
    machine = TrapMachine(root)
    try:
        yield machine
    finally:
        machine.close()
        shutil.rmtree(root, ignore_errors=True)
