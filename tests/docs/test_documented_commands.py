"""The shell commands of the documents are run as they stand there: those of the first pages by the installed command,
of guides a plain command in the process of the test."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any

import pytest
from support import in_process
from support.asgi import serving_app
from support.examples import LONG
from support.loopback_servers import reply, served
from support.memory_seed import payload, propose
from support.pages import Reader, blocks, commands, free_port
from support.project import INSTALLED_ONLY, Project, Result
from support.tinymodel import TinyModel
from support.user_seed import seed_user

from cogcli.cli.typer_app import parse
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(5)

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
HOW_TO = (
    "refund-without-a-person",
    "ci",
    "run-a-batch",
    "archive-episodes",
    "inspect",
    "host-overrides",
    "probe-effects",
    "compare-options",
    "read-logs",
    "nightly-runs",
)
"""Those that begin in an empty directory."""
WITH_OUTPUTS = ("probe-effects", "compare-options", "read-logs")
"""Those that show what their own commands print."""
OF_A_RUN = ("export-traces", "share-a-run")
"""Those that need nothing but a project with two runs."""
GUIDES_ELSEWHERE = (
    "docs/test_editor_page.py",
    "docs/test_agent_skills_page.py",
    "cli/test_serve_mcp.py",
    "cli/test_services_login.py",
    "cli/test_gateway.py",
    "cli/test_gate.py",
    "cli/test_hooks.py",
    "hostile/test_second_user.py",
    "cli/test_api_async.py",
)
"""Tests of guides that need more than a directory."""
FILES = ("python", "yaml")
BRIEF = '{"text": "The harbour opens at six. Ships wait in the bay. Tugs bring them in."}'


_FOR_THE_SHELL = re.compile(r"[|&;<>$`*?\[~]")


class Shell:
    """A directory in which commands run one after the other, with a home of their own.

    Without `installed` a line that is a command of ours alone, without a word for the shell, runs in the process of
    the test."""

    def __init__(self, project: Project, *, installed: bool = True) -> None:
        self.root = project.root
        self._installed = installed or INSTALLED_ONLY
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.env = {**project.env, "PATH": path, "BROWSER": "true"}
        del self.env["COGCLI_TRUST_PROJECT"]

    def run(self, line: str, *, code: int = 0, directory: Path | None = None) -> str:
        """Standard output of a command that must end with this code."""
        if re.search(r"\bjq\b", line) and not shutil.which("jq"):
            pytest.skip("the documents use jq, which is not installed here")
        if not self._installed and line.startswith("cogcli ") and not _FOR_THE_SHELL.search(line):
            words = tuple(shlex.split(line, comments=True))
            done = in_process.run(words[1:], cwd=directory or self.root, env=self.env)
            return Result(words, *done).assert_exit(code).out
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
def shell(project: Project) -> Shell:
    """An empty directory for the installed command."""
    return Shell(project)


@pytest.fixture
def guide_shell(project: Project) -> Shell:
    """An empty directory for the commands of a guide."""
    return Shell(project, installed=False)


@pytest.mark.sampled(20)
def test_readme(shell: Shell) -> None:
    shutil.copy(ROOT / "README.md", shell.root)
    shutil.copytree(ROOT / "docs/samples", shell.root / "docs/samples")
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


@pytest.mark.sampled(20)
def test_tutorial(shell: Shell) -> None:
    """With the misspelling that it suggests at its end."""
    ran = written(shell, ROOT / "docs/tutorial.md")
    assert len(ran) >= 6
    text = shell.run("cogcli state show @last --path outcomes.outputs.text")
    assert text == "GOOD MORNING!!!\n"
    skill = shell.root / "skills/local/demo/loud/skill.yaml"
    skill.write_text(
        skill.read_text().replace("{text: vars.text, times", "{text: vars.txet, times")
    )
    told = shell.run("cogcli validate", code=1)
    assert "skills/local/demo/loud/skill.yaml:" in told
    assert "did you mean `vars.text`" in told
    before = len(shell.episodes)
    shell.run("cogcli run demo.loud -p text=x", code=3)
    assert len(shell.episodes) == before


def written(
    shell: Shell, document: Path, here: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Write every file that a document shows and run its commands, in its order; the commands run. `here` has what is
    written instead of addresses."""
    ran = []
    for block in blocks(document):
        if block.language in FILES:
            file = block.named or block.file
            if not file and block.text.startswith("# "):
                continue  # a part of a file that is elsewhere, as the comment says
            assert file, f"no file is named for:\n{block.text}"
            text = block.text
            for shown, real in here.items():
                text = text.replace(shown, real)
            shell.write(file, text)
        elif block.language == "sh":
            for line in commands(block.text):
                if not line.startswith("git "):  # the directory is not a repository
                    shell.run(line)
                    ran.append(line)
    return ran


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", [*HOW_TO, *OF_A_RUN])
def test_how_to(project: Project, name: str) -> None:
    del project.env["COGCLI_TRUST_PROJECT"]
    if name in OF_A_RUN:
        project.write("cogcli.toml", "")
        for _ in range(2):
            project.run(
                "run", "text.brief", "-p", "text=The harbour opens at six.", "-q"
            ).assert_ok()
    with Reader(project) as reader:
        reader.read(ROOT / "docs/how-to" / f"{name}.md", compare=name in WITH_OUTPUTS)
        assert reader.ran


@pytest.mark.sampled(10)
def test_anchor_episodes(shell: Shell) -> None:
    """All but the bucket: the anchor is pushed to a repository, and finds the episode that is deleted after that."""
    shell.write("cogcli.toml", "")
    shell.env |= {
        f"GIT_{who}_{what}": "a@example.com"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    shell.run("git init -q --bare ../remote && git clone -q ../remote ../anchors 2>&1")
    shell.run("git -C ../anchors config push.autoSetupRemote true")
    shell.run("cogcli run text.brief -p text=hello -q")
    page = ROOT / "docs/how-to/anchor-episodes.md"
    lines = [
        line for block in blocks(page) if block.language == "sh" for line in commands(block.text)
    ]
    write, anchor, push, bucket, check = lines
    assert bucket.endswith('.txt"')
    assert " s3 cp - " in bucket
    for line in (write, anchor, push, check):
        shell.run(line)
    assert shell.run("git -C ../remote log --oneline").count("heads of") == 1
    shutil.rmtree(shell.episodes[0])
    assert "anchor.missing" in shell.run(check, code=1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["work-with-tables", "work-with-pdf-files", "review-code-changes"])
def test_pages_about_files(ordinary_path: Path, warm_cache: Path, name: str) -> None:
    project = Project(ordinary_path, warm_cache)
    del project.env["COGCLI_TRUST_PROJECT"]
    project.write("cogcli.toml", "")
    samples = ROOT / "docs" / "samples"
    shutil.copy(samples / "arrivals.csv", project.root)
    shutil.copy(samples / "trial-report.pdf", project.root / "report.pdf")

    def commit() -> None:
        who = "git -c user.name=Ada -c user.email=ada@example.org"
        line = f"git init -q . && git add before.py && {who} commit -q -m 'feat: pay'"
        subprocess.run(["bash", "-c", line], cwd=project.root, check=True)

    with Reader(project, {"cogcli run release.notes": commit}) as reader:
        reader.read(ROOT / "docs/how-to" / f"{name}.md", compare=False)
        assert len(reader.ran) >= 3


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["work-with-texts", "find-secrets-and-personal-data"])
def test_pages_about_texts(ordinary_path: Path, warm_cache: Path, name: str) -> None:
    project = Project(ordinary_path, warm_cache)
    del project.env["COGCLI_TRUST_PROJECT"]
    project.write("cogcli.toml", "")
    project.write("app/app.ini", "password = tide-9-Plan!\n")
    report = (ROOT / "docs/samples/release-notes.md").read_text(encoding="utf-8")
    project.write("report.md", report)
    project.write("report.json", json.dumps({"text": report}))
    with Reader(project) as reader:
        reader.read(ROOT / "docs/how-to" / f"{name}.md", compare=False)
        assert len(reader.ran) >= 3


def _page_of_the_web(handler: BaseHTTPRequestHandler) -> None:
    found = {
        "results": [
            {
                "title": "Hours",
                "url": "https://harbour.example/",
                "content": "The harbour opens at six.",
            }
        ]
    }
    pages = {
        "/notice": ("text/html", b"<title>Hours</title><p>The harbour opens at six.</p>"),
        "/status": ("application/json", b'{"up": true}'),
        "/search": ("application/json", json.dumps(found).encode()),
    }
    kind, body = pages.get(handler.path.partition("?")[0], ("text/html", b""))
    reply(200 if body else 404, body, kind)(handler)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["fetch-web-pages", "read-mail", "remember-values"])
def test_pages_about_what_lies_outside(guide_shell: Shell, name: str) -> None:
    guide_shell.write("cogcli.toml", "")
    guide_shell.write(
        "mail.eml", "From: ada@example.org\nSubject: Tides\n\nCan you confirm the berth?\n"
    )
    guide_shell.env["COGCLI_TRUST_PROJECT"] = "1"
    page = list(blocks(ROOT / "docs/how-to" / f"{name}.md"))
    for block in page:
        if block.language == "yaml":
            guide_shell.write(".agent-skills/services.yaml", block.text)
    ran = []
    with served(_page_of_the_web) as url:
        for block in page:
            text = block.text.replace("https://harbour.example", url).replace(
                "https://search.example", url
            )
            for line in commands(text) if block.language == "sh" else ():
                if line.startswith("export "):
                    variable, _, value = line.removeprefix("export ").partition("=")
                    guide_shell.env[variable] = value
                else:
                    ran.append(guide_shell.run(line))
    assert len(ran) == {"fetch-web-pages": 5, "read-mail": 2, "remember-values": 3}[name]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["completion", "exchange-skills"])
def test_pages_whose_files_are_of_other_tools(project: Project, name: str) -> None:
    page = ROOT / "docs/how-to" / f"{name}.md"
    project.write("cogcli.toml", "")
    for block in blocks(page):
        if block.language == "markdown":
            project.write("release-notes/SKILL.md", block.text)
    with Reader(project) as reader:
        reader.read(page)
        assert len(reader.ran) > 1


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", ["put-a-skill-under-a-pack", "ask-an-agent"])
def test_the_pages_about_the_support_desk(desk: Project, name: str) -> None:
    with Reader(desk) as reader:
        reader.read(ROOT / "docs/how-to" / f"{name}.md", compare=False)
        assert len(reader.ran) >= 10


@pytest.mark.sampled(2)
def test_writing_the_first_binding(guide_shell: Shell) -> None:
    page = ROOT / "docs/how-to/write-your-first-binding.md"
    source, function = (block.text for block in blocks(page) if block.language == "python")
    made: dict[str, Any] = {}
    exec(source, made)
    exec(function, made)
    assert made["total_of"]([{"price": 2}]) == {"total": 2}
    with pytest.raises(Refused, match="there are no rows"):
        made["total_of"]([])
    guide_shell.write("openapi.json", json.dumps(made["app"].openapi()))
    told = ""
    with serving_app(made["app"]) as url:
        for block in blocks(page):
            if block.language == "yaml":
                guide_shell.write(block.file, block.text)
            for line in commands(block.text) if block.language == "sh" else ():
                if not line.startswith(("uvicorn ", "python ")):  # served here, at a free port
                    told = guide_shell.run(line.replace("http://127.0.0.1:8000", url))
                if line.startswith("cogcli run shop"):
                    assert json.loads(told) == {"total": 12.5}
    assert '"customer":"ana"' in told.replace(" ", "")


@pytest.mark.sampled(10)
def test_reviewing_memory(guide_shell: Shell) -> None:
    guide_shell.write("cogcli.toml", "")
    guide_shell.run("cogcli config trust --yes")
    propose(guide_shell.root, payload("email"), payload("phone"))
    assert len(written(guide_shell, ROOT / "docs/how-to/review-memory.md")) == 8
    assert guide_shell.run("cogcli memory ls --format jsonl | jq -r .candidate.value") == "phone\n"


class Orders(BaseHTTPRequestHandler):
    """The service of the page on testing, as it would answer."""

    def do_POST(self) -> None:
        body = b'{"status": "open", "late": true, "sent": true}'
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.mark.sampled(20)
def test_testing_a_skill(guide_shell: Shell) -> None:
    guide_shell.write("cogcli.toml", "")
    guide_shell.env |= {"SHOP_TOKEN": "a-token-of-no-use", "COGCLI_TRUST_PROJECT": "1"}
    with ThreadingHTTPServer(("127.0.0.1", 0), Orders) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        here = {"https://shop.example": f"http://127.0.0.1:{server.server_port}\nnetwork: private"}
        assert len(written(guide_shell, ROOT / "docs/how-to/test-a-skill.md", here)) == 7
        server.shutdown()
    told = guide_shell.run(
        "cogcli test --coverage --json | jq -c '[.tests[].status, .coverage[].branches.ran]'"
    )
    assert told == '["passed","passed","passed",2]\n'


@pytest.mark.sampled(2)
def test_using_a_model(guide_shell: Shell) -> None:
    with TinyModel(key="a-key-of-your-server", scripts={"small": ["ok"]}) as server:
        given = {"http://127.0.0.1:8080/v1": server.base_url, '"small-1"': '"script:small"'}
        lines = []
        for block in blocks(ROOT / "docs/how-to/use-a-model.md"):
            text = block.text
            for shown, real in given.items():
                text = text.replace(shown, real)
            if block.language in ("yaml", "toml"):
                guide_shell.write(block.file, text)
            for line in commands(text) if block.language == "sh" else ():
                if line.startswith("export "):
                    name, _, value = line.removeprefix("export ").split()[0].partition("=")
                    guide_shell.env[name] = value
                else:
                    lines.append(guide_shell.run(line))
        assert "scripted replies.yaml (COGCLI_MODEL)" in lines[0]
        assert lines[2] == "model.name = script:small   cogcli.toml:3\n"
        assert "script:small answers" in lines[3]
        assert "anthropic NAME (COGCLI_MODEL)" in lines[4]
        assert len(server.requests) == 1


@pytest.mark.sampled(10)
def test_using_a_model_in_skills(guide_shell: Shell) -> None:
    guide_shell.write("cogcli.toml", "")
    guide_shell.env["COGCLI_TRUST_PROJECT"] = "1"
    with TinyModel(key="a-key-of-your-server") as server:
        given = {"http://127.0.0.1:8080/v1": server.base_url, "small-1": "schema:valid"}
        lines = []
        for block in blocks(ROOT / "docs/how-to/use-a-model-in-skills.md"):
            text = block.text
            for shown, real in given.items():
                text = text.replace(shown, real)
            if block.language == "yaml":
                guide_shell.write(block.file, text)
            for line in commands(text) if block.language == "sh" else ():
                if line.startswith("export "):
                    name, _, value = line.removeprefix("export ").split()[0].partition("=")
                    guide_shell.env[name] = value
                else:
                    asked = len(server.requests)
                    lines.append((line, guide_shell.run(line), len(server.requests) - asked))
        asked_by = [count for line, _, count in lines if line.startswith(("cogcli run", "env "))]
        assert asked_by == [0, 3, 1, 2, 0, 2]
        assert "The harbour opens at six. Ships wait in the bay." in lines[-3][1]


@pytest.mark.sampled(2)
def test_remembering_a_user(guide_shell: Shell) -> None:
    guide_shell.write("cogcli.toml", "")
    guide_shell.run("cogcli config trust --yes")
    propose(guide_shell.root, payload("email"))
    seed_user(guide_shell.root / ".cogcli/memory.db")
    assert len(written(guide_shell, ROOT / "docs/how-to/remember-a-user.md")) == 11
    assert (
        guide_shell.run("cogcli agent profile export cust_7 | jq -c '.tables | map(length)'")
        == f"[{','.join('0' * 7)}]\n"
    )


def page_at_free_port(project: Project, name: str, port: str) -> Path:
    """A copy of a page whose services listen somewhere else."""
    page = project.home / f"{name}.md"
    text = (ROOT / "docs/how-to" / page.name).read_text(encoding="utf-8")
    assert port in text
    page.write_text(text.replace(port, str(free_port())), encoding="utf-8")
    return page


@pytest.mark.sampled(10)
def test_verifying_bindings(project: Project) -> None:
    del project.env["COGCLI_TRUST_PROJECT"]
    page = page_at_free_port(project, "verify-bindings", "8820")
    if (
        not LONG
    ):  # seconds of work, and done by tests/cli/test_openapi_commands.py and tests/contracts
        own = r"(?m)^cogcli openapi verify-(errors|invoker --protocol).*\n"
        page.write_text(re.sub(own, "", page.read_text(encoding="utf-8")), encoding="utf-8")
    with Reader(project) as reader:
        reader.read(page)
        assert len(reader.ran) == (15 if LONG else 12)


class StoppedRuns:
    """A project whose runs stop in each way that the page on going on is about."""

    def __init__(self, project: Project) -> None:
        self._project = project
        project.services(
            """
            from pathlib import Path

            def echo(text: str) -> dict[str, object]:
                return {"text": text}

            def shorten(text: str) -> dict[str, object]:
                if Path(__file__).with_name("away").exists():
                    raise ValueError("nobody answers")
                return {"text": text}
            """
        )
        project.capability("text.note.make", "echo")
        project.capability("text.note.shorten", "shorten")
        project.capability(
            "release.publish", "echo", extra="safety: {requires_confirmation: true}\n"
        )
        for name, called in (("brief", "text.note.shorten"), ("ship", "release.publish")):
            project.skill(
                f"notes.{name}",
                f"""
                - {{id: clean, uses: text.note.make, input: {{text: inputs.text}}, output: {{text: vars.text}}}}
                - {{id: summarize, uses: {called}, input: {{text: vars.text}}, output: {{text: outputs.text}}}}
                """,
                inputs="{text: {type: string, required: true}}",
                outputs="{text: {type: string, required: true}}",
            )

    def kill(self) -> None:
        """The newest run was killed in its second step."""
        self._project.run("run", "notes.brief", "-p", "text=x", "-q").assert_ok()
        self._project.cut_after("step.started")

    def wait(self) -> None:
        """The newest run waits for a person."""
        self._project.run("run", "notes.ship", "-p", "text=x", "-q").assert_exit(5)

    def fail(self) -> None:
        """The newest run failed at its second step, and what was wrong is mended."""
        away = self._project.write("away", "")
        self._project.run("run", "notes.brief", "-p", "text=x", "-q").assert_exit(1)
        away.unlink()


def test_going_on(project: Project) -> None:
    stopped = StoppedRuns(project)
    presumed = {
        "cogcli ls --outcome interrupted": stopped.kill,
        "cogcli ls --outcome pending": stopped.wait,
        "cogcli resume @last": stopped.kill,
        "cogcli trace @last": stopped.wait,
        "cogcli resume @last --approve": stopped.wait,
        "cogcli resume @last --reject": stopped.wait,
        "cogcli approvals ls": stopped.wait,
        "cogcli approvals reject": stopped.wait,
        "cogcli rerun @failed --from": stopped.fail,
    }
    with Reader(project, presumed) as reader:
        reader.read(ROOT / "docs/how-to/resume.md")
        assert len(reader.ran) == 13


@pytest.mark.sampled(20)
def test_connecting_services(project: Project) -> None:
    page = page_at_free_port(project, "connect-services", "8820")
    del project.env["COGCLI_TRUST_PROJECT"]
    with Reader(project) as reader:
        reader.read(page)
        assert len([line for line in reader.ran if line.startswith("cogcli run")]) == 5
    warned = project.run("validate", "--format", "jsonl")
    assert {json.loads(line).get("code") for line in warned.out.splitlines()} <= {
        None,
        "wire.unpinned",
    }


@pytest.mark.sampled(40)
@pytest.mark.parametrize(
    ("name", "port"), [("sign-in-to-web-apis", "8840"), ("read-all-pages", "8841")]
)
def test_guides_to_web_apis(project: Project, name: str, port: str) -> None:
    page = page_at_free_port(project, name, port)
    del project.env["COGCLI_TRUST_PROJECT"]
    with Reader(project) as reader:
        reader.read(page)
        runs = [line for line in reader.ran if "cogcli run" in line]
    assert len(runs) >= 4
    secrets = ("query-key-4471", "cookie-key-9902", "harbour-pass-31", "berth-secret-88")
    recorded = [*(project.root / ".cogcli/episodes").rglob("*.json*")]
    assert recorded
    assert not any(secret in path.read_text() for path in recorded for secret in secrets)


@pytest.mark.sampled(1)
def test_first_month(project: Project) -> None:
    """The lines for cron and systemd, and the script that sends the reason of a failure, run, too."""
    page = ROOT / "docs/how-to/first-month.md"
    shell = Shell(project, installed=False)
    del project.env["COGCLI_TRUST_PROJECT"]
    with Reader(project) as reader:
        reader.read(page)
    mail = project.write("mail", "#!/bin/sh\ncat > mailed.txt\n")
    mail.chmod(0o755)
    shell.env["PATH"] = f"{project.root}{os.pathsep}{shell.env['PATH']}"
    here = [
        (block.language, block.text.replace("/srv/nightly", str(project.root)))
        for block in blocks(page)
    ]
    (cron,) = [text for language, text in here if language == "cron"]
    shell.run(cron.split(maxsplit=5)[5])
    assert '"words": 1' in (project.root / "nightly.log").read_text()
    units = ConfigParser(interpolation=None)
    for language, text in here:
        if language == "ini":
            units.read_string(text)
    program, _, words = units["Service"]["ExecStart"].partition(" ")
    shell.run(f"{Path(program).name} {words}")
    (script,) = [text for language, text in here if language == "shell"]
    shell.run(script.replace("text=night", "text=night -p none=1"), code=2)
    assert "demo.hello" in (project.root / "mailed.txt").read_text()


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


@pytest.mark.sampled(10)
def test_trust(shell: Shell) -> None:
    shell.write("cogcli.toml", "")
    states = []
    for block in blocks(ROOT / "docs/explanation/trust.md"):
        for line in commands(block.text) if block.language == "sh" else ():
            shell.run(line)
            states.append(shell.run("cogcli config show trust").strip())
    assert states == ["accepted", "accepted", "folder", "folder", "untrusted"]


def test_the_page_on_trust_fits_a_screen() -> None:
    """Fifty lines of a hundred columns."""
    lines = (ROOT / "docs/explanation/trust.md").read_text(encoding="utf-8").splitlines()
    assert sum(max(1, -(-len(line) // 100)) for line in lines) <= 50


@pytest.mark.sampled(20)
def test_the_shell_loops_that_follow_the_chain_and_the_checksums(shell: Shell) -> None:
    shell.write("cogcli.toml", "")
    shell.write("in.json", BRIEF)
    shell.run("cogcli run text.brief --input-file in.json -q")
    chain, sums = (
        block.text
        for block in blocks(ROOT / "docs/explanation/episodes.md")
        if block.language == "sh"
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


def test_the_readme_fits_a_screen_and_every_guide_is_listed() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 48
    listed = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    guides = sorted((ROOT / "docs/how-to").glob("*.md"))
    assert not [guide.name for guide in guides if f"(how-to/{guide.name})" not in listed]


def test_every_guide_is_followed() -> None:
    """Each is named by a test that runs its commands."""
    tests = [Path(__file__), *(ROOT / "tests" / name for name in GUIDES_ELSEWHERE)]
    named = "".join(path.read_text(encoding="utf-8") for path in tests)
    guides = (guide.stem for guide in (ROOT / "docs/how-to").glob("*.md"))
    assert not [name for name in guides if name not in named]


def test_no_guide_needs_a_checkout_for_its_tools() -> None:
    guides = [
        *(ROOT / "docs/how-to").glob("*.md"),
        ROOT / "docs/tutorial.md",
        *(ROOT / "docs/cookbook").rglob("*.md"),
    ]
    needing = [
        f"{guide.name}: {line}"
        for guide in guides
        for line in guide.read_text(encoding="utf-8").splitlines()
        if re.search(r"(?<!`)\btooling/|python tooling", line)
    ]
    assert not needing


@pytest.mark.sampled(2)
def test_sending_a_file(guide_shell: Shell) -> None:
    page = ROOT / "docs/how-to/send-a-file.md"
    (source,) = (block.text for block in blocks(page) if block.language == "python")
    made: dict[str, Any] = {}
    exec(source, made)
    guide_shell.write("openapi.json", json.dumps(made["app"].openapi()))
    told = ""
    with serving_app(made["app"]) as url:
        for block in blocks(page):
            if block.language == "yaml":
                guide_shell.write(block.named, block.text)
            for line in commands(block.text) if block.language == "sh" else ():
                if not line.startswith(("uvicorn ", "python ")):  # served here, at a free port
                    told += guide_shell.run(line.replace("http://127.0.0.1:8000", url))
    assert '"bytes": 20' in told
    assert "cat.png" in told
    assert hashlib.sha256(b"not really a picture").hexdigest() in told
