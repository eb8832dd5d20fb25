"""What documents show: files, commands, and what the commands print."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from support.project import Project, Result

_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED_BEFORE: Final = re.compile(r"`([\w./-]+\.(?:py|yaml|toml))`")
_NAMED_AT_THE_END: Final = re.compile(r"`([\w./-]+\.json)`:\s*\Z")
_NAMED_INSIDE: Final = re.compile(r"# (\S+\.\w+|\.agent-skills/\S+)")
_CODE: Final = re.compile(r"\s+# (?:exit (\d+)$|(\d+): )")


class Block(NamedTuple):
    """A code block: its language, its text, and the file that the paragraph before it names."""

    language: str
    text: str
    file: str

    @property
    def named(self) -> str:
        """The file that its own first line names, as a comment; empty without one."""
        found = _NAMED_INSIDE.fullmatch(self.text.partition("\n")[0])
        return found[1] if found else ""


def blocks(path: Path) -> Iterator[Block]:
    """The code blocks of a document in order."""
    text, end = path.read_text(encoding="utf-8"), 0
    for found in _FENCE.finditer(text):
        named_by = _NAMED_AT_THE_END if found[1] == "json" else _NAMED_BEFORE
        named = named_by.findall(text[end : found.start()])
        yield Block(found[1], found[2], named[-1] if named else "")
        end = found.end()


def commands(text: str) -> list[str]:
    """The lines of a shell block, without those that set this machine up; what is installed stands on the PATH."""
    return [
        line
        for line in text.replace(".venv/bin/", "").splitlines()
        if line and not line.startswith(("make ", ". activate"))
    ]


class Reader:
    """Does what a page says, block after block: writes the files whose first line is their name, runs the commands in
    the process of the test, and compares what they print with the block after them.

    A command ends with 0, or with N where `# exit N` or `# N: why` stands behind it, above 128 in a process of its
    own; `export NAME=value` sets a variable, `... &` runs on until the end, once it has printed a line; `git` is left
    out, as the directory is not a repository. A block `json` whose paragraph ends with the name of a file is that file,
    any other the standard output of the last command; the lines of a block `text` occur, in this order, in what it
    printed, `...` standing for anything.

    `presumed` has what a page takes to have happened before a command, by the longest beginning of the command."""

    def __init__(
        self, project: Project, presumed: Mapping[str, Callable[[], object]] | None = None
    ) -> None:
        self.project = project
        self.presumed = presumed or {}
        self.project.env["PATH"] = os.pathsep.join(
            [str(Path(sys.executable).parent), project.env["PATH"]]
        )
        self.last: Result | None = None
        self.ran: list[str] = []
        self._fresh = False
        self._running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.kill()
            process.communicate()

    def read(self, page: Path, *, write: bool = True, compare: bool = True) -> None:
        """Do all of a page; files that it shows are written, or compared with those that are there. Without `compare`
        what it shows of outputs is an example from elsewhere."""
        for block in blocks(page):
            if block.language in ("sh", "bash"):
                self._run(block.text)
            elif block.named or (block.file and block.language in ("python", "yaml", "json")):
                self._file(block, write)
            elif compare and block.language in ("json", "text"):
                self._compare(block)

    def _run(self, text: str) -> None:
        for line in commands(text):
            wanted = _CODE.search(line)
            words = shlex.split(line, comments=True)
            if words[0] == "export":
                name, _, value = words[1].partition("=")
                self.project.env[name] = value
            elif words[-1] == "&":
                self._start(words[:-1])
            elif words[0] not in ("cd", "git"):  # the test is there; and that is not a repository
                beginning = max(filter(line.startswith, self.presumed), key=len, default="")
                self.presumed.get(beginning, list)()
                code = int(wanted[1] or wanted[2]) if wanted else 0
                alone = words[0] == "cogcli" and not {"|", ">"} & set(words) and code < 128
                self.last = self.project.run(*words[1:]) if alone else self._shell(line)
                self.last.assert_exit(code)
                self.ran.append(line)
                self._fresh = True

    def _start(self, words: list[str]) -> None:
        place: Any = {"cwd": self.project.root, "env": self.project.env, "text": True}
        program = shutil.which(words[0], path=self.project.env["PATH"]) or words[0]
        process = subprocess.Popen([program, *words[1:]], stdout=subprocess.PIPE, **place)
        self._running.append(process)
        assert process.stdout
        assert process.stdout.readline(), f"{words} did not begin"

    def _shell(self, line: str) -> Result:
        place: Any = {"cwd": self.project.root, "env": self.project.env}
        done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, **place)
        code = (
            done.returncode if done.returncode >= 0 else 128 - done.returncode
        )  # as a shell tells of a signal
        return Result((line,), code, done.stdout, done.stderr)

    def _file(self, block: Block, write: bool) -> None:
        file, body = block.named, block.text.partition("\n")[2]
        if not file:
            file, body = block.file, block.text
        if write:
            self.project.write(file, body.encode())
        else:
            there = (self.project.root / file).read_text(encoding="utf-8")
            assert body in there, f"{file} does not hold:\n{body}"

    def _compare(self, block: Block) -> None:
        assert self._fresh, f"no command before:\n{block.text}"
        assert self.last
        self._fresh = False
        if block.language == "json":
            assert self.last.json == json.loads(block.text), self.last.out
        else:
            lost = first_lost(block.text, self.last.out + self.last.err)
            assert not lost, (
                f"{self.ran[-1]}\n{self.last.out}{self.last.err}\nhas no line (in this order):\n{lost}"
            )


def free_port() -> int:
    """A port of this machine where nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def first_lost(shown: str, printed: str) -> str:
    """The first shown line that does not occur, in order, among those printed; empty where all do."""
    rest = iter(line.strip() for line in printed.splitlines())
    for line in shown.splitlines():
        pattern = ".*".join(map(re.escape, line.strip().split("...")))
        if not any(re.search(pattern, candidate) for candidate in rest):
            return line
    return ""


def cells(row: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in row.strip().strip("|").split(" | ")]


def tables(path: Path, *, headed: str) -> Iterator[tuple[str, list[list[str]]]]:
    """The tables of a document whose header row matches, as (header, rows)."""
    header, found = "", []
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if not line.startswith("|"):
            if header:
                yield header, found
            header, found = "", []
        elif re.fullmatch(headed, line):
            header = line
        elif header and not line.startswith("|---"):
            found.append(cells(line))


def literal(cell: str) -> Any:
    """The JSON value that a cell holds as code; raises ValueError for a cell of words."""
    if not (cell.startswith("`") and cell.endswith("`")):
        raise ValueError(cell)
    return json.loads(cell.strip("`"))
