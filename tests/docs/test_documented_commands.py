"""The shell commands of the documents are run as they stand there, by the installed command."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.memory_seed import payload, propose
from support.tinymodel import TinyModel
from support.user_seed import seed_user

from cogcli.cli.typer_app import parse

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
HOW_TO = ("inspect", "ci", "export-traces")
"""Those that need nothing but a project with two episodes; the others speak of runs in a state of their own."""
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"`([\w./-]+\.(?:py|yaml|toml))`")
FILES = ("python", "yaml")
BRIEF = '{"text": "The harbour opens at six. Ships wait in the bay. Tugs bring them in."}'


class Block(NamedTuple):
    """A code block: its language, its text, and the file that the paragraph before it names."""

    language: str
    text: str
    file: str


def blocks(path: Path) -> Iterator[Block]:
    """The code blocks of a document in order."""
    text, end = path.read_text(encoding="utf-8"), 0
    for found in _FENCE.finditer(text):
        named = _PATH.findall(text[end : found.start()])
        yield Block(found[1], found[2], named[-1] if named else "")
        end = found.end()


def commands(text: str) -> list[str]:
    """The lines of a shell block, without those that set this machine up; what is installed stands on the PATH."""
    return [
        line for line in text.replace(".venv/bin/", "").splitlines() if line and not line.startswith("make ")
    ]


class Shell:
    """A directory in which commands run one after the other, with a home of their own."""

    def __init__(self, project: Any) -> None:
        self.root: Path = project.root
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.env = {**project.env, "PATH": path}
        del self.env["COGCLI_TRUST_PROJECT"]

    def run(self, line: str, *, code: int = 0, directory: Path | None = None) -> str:
        """Standard output of a command that must end with this code."""
        if re.search(r"\bjq\b", line) and not shutil.which("jq"):
            pytest.skip("the documents use jq, which is not installed here")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=directory or self.root, env=self.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"$ {line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def write(self, file: str, text: str) -> None:
        """A file that a document shows."""
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    @property
    def episodes(self) -> list[Path]:
        """The episodes of the directory, newest first."""
        return sorted((self.root / ".cogcli/episodes").glob("ep_*"), reverse=True)


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Where the commands of the pages run: among other things they read documents."""
    return ordinary_path


@pytest.fixture
def shell(project: Any) -> Shell:
    """An empty directory."""
    return Shell(project)


def test_readme(shell: Shell) -> None:
    shutil.copy(ROOT / "README.md", shell.root)
    shell.write("cogcli.toml", "")
    lines = [
        line
        for block in blocks(ROOT / "README.md")
        if block.language == "sh"
        for line in commands(block.text)
    ]
    assert sum(line.startswith("cogcli ") for line in lines) >= 5
    for line in lines:
        assert shell.run(line), line
    assert len(shell.episodes) == 2


def test_tutorial(shell: Shell) -> None:
    ran = written(shell, ROOT / "docs/tutorial.md")
    assert len(ran) >= 6
    text = shell.run("cogcli state show @last --path outcomes.outputs.text")
    assert text == "GOOD MORNING!!!\n"


def test_the_misspelling_that_the_tutorial_suggests_is_explained(shell: Shell) -> None:
    written(shell, ROOT / "docs/tutorial.md")
    skill = shell.root / "skills/local/demo/loud/skill.yaml"
    skill.write_text(skill.read_text().replace("{text: vars.text, times", "{text: vars.txet, times"))
    told = shell.run("cogcli validate", code=1)
    assert "skills/local/demo/loud/skill.yaml:" in told
    assert "did you mean `vars.text`" in told
    before = len(shell.episodes)
    shell.run("cogcli run demo.loud -p text=x", code=3)
    assert len(shell.episodes) == before


def written(shell: Shell, document: Path) -> list[str]:
    """Write every file that a document shows and run its commands, in its order; the commands run."""
    ran = []
    for block in blocks(document):
        if block.language in FILES:
            assert block.file, f"no file is named for:\n{block.text}"
            shell.write(block.file, block.text)
        elif block.language == "sh":
            for line in commands(block.text):
                if not line.startswith("git "):  # the directory is no repository
                    shell.run(line)
                    ran.append(line)
    return ran


@pytest.mark.parametrize("name", HOW_TO)
def test_how_to(shell: Shell, name: str) -> None:
    shell.write("cogcli.toml", "")
    shell.write("in.json", BRIEF)
    shell.run("cogcli run text.brief --input-file in.json -q")
    shell.run("cogcli run text.brief --input-file in.json --trace-id trace-001 -q")
    assert written(shell, ROOT / "docs/how-to" / f"{name}.md")


def test_reviewing_memory(shell: Shell) -> None:
    shell.write("cogcli.toml", "")
    propose(shell.root, payload("email"), payload("phone"))
    assert len(written(shell, ROOT / "docs/how-to/review-memory.md")) == 8
    assert shell.run("cogcli memory ls --format jsonl | jq -r .candidate.value") == "phone\n"


def test_using_a_model(shell: Shell) -> None:
    with TinyModel(key="a-key-of-your-server", scripts={"small": ["ok"]}) as server:
        given = {"http://127.0.0.1:8080/v1": server.base_url, '"small-1"': '"script:small"'}
        lines = []
        for block in blocks(ROOT / "docs/how-to/use-a-model.md"):
            text = block.text
            for shown, real in given.items():
                text = text.replace(shown, real)
            if block.language in ("yaml", "toml"):
                shell.write(block.file, text)
            for line in commands(text) if block.language == "sh" else ():
                if line.startswith("export "):
                    name, _, value = line.removeprefix("export ").split()[0].partition("=")
                    shell.env[name] = value
                else:
                    lines.append(shell.run(line))
        assert "scripted replies.yaml (COGCLI_MODEL)" in lines[0]
        assert lines[2] == "model.name = script:small   cogcli.toml:3\n"
        assert "script:small answers" in lines[3]
        assert "anthropic NAME (COGCLI_MODEL)" in lines[4]
        assert len(server.requests) == 1


def test_remembering_a_user(shell: Shell) -> None:
    shell.write("cogcli.toml", "")
    propose(shell.root, payload("email"))
    seed_user(shell.root / ".cogcli/memory.db")
    assert len(written(shell, ROOT / "docs/how-to/remember-a-user.md")) == 11
    assert (
        shell.run("cogcli agent profile export cust_7 | jq -c '.tables | map(length)'")
        == f"[{','.join('0' * 7)}]\n"
    )


def test_the_services_and_bindings_shown_are_accepted(shell: Shell) -> None:
    shell.write("cogcli.toml", "")
    shell.write(
        "my_notes.py", "def read(id: str, lang: str = 'en') -> dict[str, str]:\n    return {'text': id}\n"
    )
    shell.write(
        "capabilities/note.item.read.yaml",
        'id: note.item.read\nversion: "1.0.0"\ndescription: Reads a note.\n'
        "inputs: {id: {type: string, required: true}, lang: {type: string}}\n"
        "outputs: {text: {type: string, required: true}}\nproperties: {side_effects: false}\n",
    )
    names = []
    for block in blocks(ROOT / "docs/how-to/connect-services.md"):
        if block.language == "yaml":
            names.append(block.text.partition("\n")[0].removeprefix("# "))
            shell.write(names[-1], block.text)
    assert len(names) == 8
    shell.env["NOTES_TOKEN"] = "a-token-of-no-use"
    shell.env["COGCLI_TRUST_PROJECT"] = "1"
    problems = [json.loads(line) for line in shell.run("cogcli validate --format jsonl").splitlines()]
    assert not [problem for problem in problems if problem.get("severity") == "E"], problems


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_shown_is_one(page: Path) -> None:
    for block in blocks(page):
        for line in commands(block.text) if block.language == "sh" else ():
            for words in shown(line):
                parse(words)


def shown(line: str) -> Iterator[list[str]]:
    """The arguments of each cogcli in a pipeline."""
    words: list[str] = []
    for word in [*(shlex.split(line, comments=True) if "cogcli " in line else ()), "|"]:
        if word not in ("|", "&&", ";", ">"):
            words.append(word)
            continue
        if words[:1] == ["cogcli"]:
            yield words[1:]
        words = []


def test_trust(shell: Shell) -> None:
    shell.write("cogcli.toml", "")
    states = []
    for block in blocks(ROOT / "docs/explanation/trust.md"):
        for line in commands(block.text) if block.language == "sh" else ():
            shell.run(line)
            states.append(shell.run("cogcli config show trust").strip())
    assert states == ["accepted", "folder", "folder", "untrusted"]


def test_the_shell_loops_that_follow_the_chain_and_the_checksums(shell: Shell) -> None:
    shell.write("cogcli.toml", "")
    shell.write("in.json", BRIEF)
    shell.run("cogcli run text.brief --input-file in.json -q")
    chain, sums = (
        block.text for block in blocks(ROOT / "docs/explanation/episodes.md") if block.language == "sh"
    )
    assert len(chain.splitlines()) == 3
    (episode,) = shell.episodes
    head = json.loads((episode / "manifest.json").read_bytes())["chain"]["head"]
    assert shell.run(chain, directory=episode) == f"{head}\n"
    assert shell.run(sums, directory=episode) == ""
    log = episode / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"harbour", b"harbors", 1))
    assert "broken at " in shell.run(chain, directory=episode)
    assert "damaged: " in shell.run(sums, directory=episode)
