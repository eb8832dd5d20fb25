"""A link that leaves a project which is not trusted: no command reads, writes or deletes through it.

Each command meets a project that works, from which one place was moved away and replaced by a link to it. The outside
is watched: its names, its bytes, and, where the file system keeps them, the times at which it was last read.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.memory_seed import payload, propose
from support.project import Project, Result

from cogcli.cli.app import COMMANDS

pytestmark = pytest.mark.sampled(10)

CANARY = "canary-of-the-outside"
GREET = ("run", "demo.greet", "-p", f"text={CANARY}")
BRIEF = ("run", "text.brief", "-p", "text=hi")
"""A run of a shipped skill, which works in a project that is not trusted."""
OLD = 1_000_000_000_000_000_000
"""A time of last reading that is long ago, in nanoseconds."""

CASE = f"""
description: greets
inputs: {{text: {CANARY}}}
expect: {{exit_code: 0}}
"""
FACT = {
    "tenant_id": "local", "subject": "order:7", "predicate": "has_note", "object": f"note:{CANARY}",
    "evidence_ref": "note/7", "observed_at": "2026-11-20T09:00:00Z", "trust": "verified",
}  # fmt: skip


def build_project(project: Project) -> Project:
    """A trusted project with something at every place."""
    project.demo()
    project.write("skills/local/demo/greet/tests/greets.yaml", CASE)
    project.write("cogcli.toml", 'progress = "none"\n')
    project.write(".gitignore", "nothing\n")
    project.write(
        "policies/official_default_selection.yaml", "defaults: {demo.text.upper: demo_text_upper}\n"
    )
    project.write(".agent-skills/active_bindings.json", '{"demo.text.upper": "demo_text_upper"}\n')
    project.write(".agent-skills/services.yaml", "services: {}\n")
    project.write("reg/capabilities/.keep", "")
    shipped = Path(__file__).parents[2] / "tooling/openapi_scenarios/data.schema.validate.mock.json"
    project.write("tooling/openapi_scenarios/one.json", shipped.read_bytes())
    project.run(*GREET).assert_ok()
    project.run("run", "demo.review", "-p", f"text={CANARY}")
    project.run("ls").assert_ok()
    propose(project.root, payload(CANARY))
    project.write("facts.jsonl", f"{json.dumps(FACT)}\n")
    project.run("knowledge", "import", "facts.jsonl").assert_ok()
    return project


PLACES: dict[str, str] = {
    "everything of a run": ".cogcli",
    "the runs directory": ".cogcli/episodes",
    "the memory": ".cogcli/memory.db",
    "the index": ".cogcli/episodes/.index.db",
    "an episode": ".cogcli/episodes/EPISODE",
    "a log": ".cogcli/episodes/EPISODE/events.jsonl",
    "the host": ".agent-skills",
    "the choice": ".agent-skills/active_bindings.json",
    "the settings": "cogcli.toml",
    "what git ignores": ".gitignore",
    "skills": "skills",
    "a channel": "skills/local",
    "a domain": "skills/local/demo",
    "a skill": "skills/local/demo/greet",
    "the file of a skill": "skills/local/demo/greet/skill.yaml",
    "its cases": "skills/local/demo/greet/tests",
    "a case": "skills/local/demo/greet/tests/greets.yaml",
    "capabilities": "capabilities",
    "a capability": "capabilities/demo.text.upper.yaml",
    "bindings": "bindings",
    "a binding": "bindings/local/demo.text.upper/demo_text_upper.yaml",
    "services": "services",
    "a service": "services/local/demo.yaml",
    "a module": "demo_services.py",
    "policies": "policies",
    "a policy": "policies/official_default_selection.yaml",
    "scenarios": "tooling/openapi_scenarios",
    "a scenario": "tooling/openapi_scenarios/one.json",
}
"""What may be a link, relative to the project; `EPISODE` is the newest episode."""

LINES: dict[str, tuple[str, ...]] = {
    "run": BRIEF,
    "trace": ("trace",),
    "state show": ("state", "show"),
    "ls": ("ls",),
    "report": ("report", "@last", "-o", "-"),
    "diff": ("diff", "@last", "@last~1"),
    "graph": ("graph", "demo.review"),
    "gc": ("gc", "--keep", "0", "--yes"),
    "verify": ("verify", "--all"),
    "episodes archive": ("episodes", "archive", "--all"),
    "episodes extract": ("episodes", "extract", "@last"),
    "batch merge": ("batch", "merge", "facts.jsonl", "-o", "merged.jsonl"),
    "resume": ("resume", "@last"),
    "approvals ls": ("approvals", "ls"),
    "approvals show": ("approvals", "show", "@last"),
    "approvals approve": ("approvals", "approve", "@last"),
    "approvals reject": ("approvals", "reject", "@last"),
    "rerun": ("rerun", "@last"),
    "replay": ("replay", "@last"),
    "validate": ("validate",),
    "test": ("test", "--record", "@last~1"),
    "registry contracts": ("registry", "contracts", "demo.*"),
    "registry smoke": ("registry", "smoke", "demo.*"),
    "registry executability": ("registry", "executability", "demo.*"),
    "registry coverage": ("registry", "stats"),  # coverage itself runs every shipped example
    "registry stats": ("registry", "stats"),
    "registry catalog": ("registry", "catalog"),
    "doctor": ("doctor", "--fix"),
    "openapi verify-bindings": ("openapi", "verify-bindings", "--all"),
    "openapi verify-invoker": (
        "openapi",
        "verify-bindings",
    ),  # the rules of an invoker lie in the package
    "openapi verify-errors": ("openapi", "verify-bindings"),
    "skills ls": ("skills", "ls"),
    "skills show": ("skills", "show", "demo.greet"),
    "skills search": ("skills", "search", "demo"),
    "skills explain": ("skills", "explain", "demo.greet"),
    "capabilities ls": ("capabilities", "ls"),
    "capabilities show": ("capabilities", "show", "demo.text.upper"),
    "capabilities search": ("capabilities", "search", "demo"),
    "capabilities explain": ("capabilities", "explain", "demo.text.upper"),
    "bindings ls": ("bindings", "ls"),
    "bindings show": ("bindings", "show", "demo_text_upper"),
    "bindings search": ("bindings", "search", "demo"),
    "bindings explain": ("bindings", "explain", "demo.text.upper"),
    "bindings activate": ("bindings", "activate", "text.content.check", "pythoncall_text_check"),
    "agent chat": ("agent", "chat", "--pack", "none@1.0.0"),
    "agent invoke": ("agent", "invoke", "--message", "hi", "--pack", "none@1.0.0"),
    "agent profile show": ("agent", "profile", "show", "cust_7"),
    "agent profile export": ("agent", "profile", "export", "cust_7"),
    "agent profile forget": ("agent", "profile", "forget", "cust_7", "--yes"),
    "agent sessions ls": ("agent", "sessions", "ls"),
    "agent sessions show": ("agent", "sessions", "show", "one"),
    "agent sessions forget": ("agent", "sessions", "forget", "one", "--yes"),
    "agent jobs ls": ("agent", "jobs", "ls"),
    "agent jobs run": ("agent", "jobs", "run"),
    "pack check": ("pack", "check", "none"),
    "pack hash": ("pack", "hash", "none"),
    "pack pin": ("pack", "pin", "none", "--remove"),
    "policy check": ("policy", "check", "none"),
    "policy test": ("policy", "test", "none"),
    "policy eval": (
        "policy",
        "eval",
        "none",
        "--capability",
        "demo.text.upper",
        "--data",
        "facts.jsonl",
    ),
    "policy explain": ("policy", "explain", "@last"),
    "policy diff": ("policy", "diff", "none@1.0.0", "none@2.0.0"),
    "context compile": ("context", "compile", "--message", "hi", "--pack", "none"),
    "context explain": ("context", "explain", "@last"),
    "context diff": ("context", "diff", "@last"),
    "metrics": ("metrics",),
    "knowledge import": ("knowledge", "import", "facts.jsonl"),
    "knowledge query": ("knowledge", "query", "order:7"),
    "knowledge snapshot": ("knowledge", "snapshot"),
    "memory ls": ("memory", "ls"),
    "memory proposals": ("memory", "proposals"),
    "memory promote": ("memory", "promote", "mp_0123456789abcdef"),
    "memory reject": ("memory", "reject", "mp_0123456789abcdef", "--yes"),
    "memory recall": ("memory", "recall", "contact", "--user", "cust_7"),
    "services ls": ("services", "ls"),
    "services show": ("services", "show", "demo"),
    "services search": ("services", "search", "demo"),
    "services explain": ("services", "explain", "demo"),
    "services refresh": ("services", "refresh", "demo"),
    "services login": ("services", "login", "demo"),
    "services logout": ("services", "logout", "demo"),
    "skills export": ("skills", "export", "demo.greet", "--to", "out"),
    "skills import": ("skills", "import", "guide", "--capability", "demo.text.upper"),
    "import agent-skills": ("import", "agent-skills", "reg"),
    "schema": ("schema", "result"),
    "new project": ("new", "project", "fresh"),
    "new skill": ("new", "skill", "demo.fresh"),
    "new capability": ("new", "capability", "demo.fresh"),
    "new binding": ("new", "binding", "demo.fresh", "--from-openapi", "facts.jsonl", "--all"),
    "new scenario": ("new", "scenario", "demo_text_upper"),
    "new pack": ("new", "pack", "demo-desk"),
    "serve mcp": ("serve", "mcp"),
    "gateway serve": ("gateway", "serve"),
    "gateway tools": ("gateway", "tools"),
    "gateway accept": ("gateway", "accept", "demo"),
    "gateway status": ("gateway", "status"),
    "gateway hook": ("gateway", "hook", "claude-code"),
    "gateway mark": ("gateway", "mark", "claude-code", "--read-only", "Read"),
    "gateway config": ("gateway", "config", "claude-code", "--write"),
    "gateway doctor": ("gateway", "doctor", "claude-code"),
    "gateway learn": ("gateway", "learn", "@last", "-o", "proposals"),
    "config show": ("config", "show"),
    "config trust": (
        "config",
        "trust",
        "--revoke",
    ),  # to trust a project is to accept what its links lead to
    "completion show": ("completion", "show", "bash"),
    "completion install": ("completion", "install", "fish"),
    "help": ("help", "inputs"),
    "explain": ("explain", "project.link"),
}
"""A command line for each command."""

PASSED_OVER = {
    "the index": "a cache, made anew where it cannot be used",
    "a module": "its imports are reported as unreadable, and it is not imported",
    "an episode": "a link in a runs directory is no episode",
    "a log": "`episode.unreadable`",
    "the memory": "`memory.damaged`",
    "the settings": "commands that need no setting leave a broken file out",
    "what git ignores": "only `doctor --fix` writes it",
}
"""Places where another answer than `project.link` keeps a command from going through the link, with that answer."""


def age(folder: Path) -> list[Path]:
    """What lies below a folder, and the folder, last read long ago."""
    paths = [path for path in (folder, *folder.rglob("*")) if path.exists()]
    for path in paths:
        os.utime(path, ns=(OLD, path.stat().st_mtime_ns))
    return paths


def touched(paths: list[Path]) -> list[Path]:
    """Which of them were read since, or are gone."""
    return [path for path in paths if not path.exists() or path.lstat().st_atime_ns != OLD]


class Outside:
    """A place that was moved away from a project, with a link in its stead; if it does not exist, the link leads to
    nothing."""

    def __init__(self, project: Project, place: str, folder: Path) -> None:
        self.project = project
        self.link = project.root / place.replace("EPISODE", project.episode.name)
        self.target = folder / "moved" / self.link.name
        self.target.parent.mkdir(parents=True)
        if self.link.exists():
            shutil.move(self.link, self.target)
        os.symlink(self.target, self.link)
        self._before = self._tree()
        self._watched = age(self.target.parent)

    def _tree(self) -> dict[str, bytes]:
        paths = [self.target, *self.target.rglob("*")]
        return {
            str(path): path.read_bytes() if path.is_file() else b""
            for path in paths
            if path.exists()
        }

    def require_untouched(self) -> None:
        """Fail if anything outside was read, changed, added or removed."""
        assert touched(self._watched) == []
        assert self._tree() == self._before


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project that works, once for all tests of this module."""
    return build_project(Project(tmp_path_factory.mktemp("links")))


@pytest.fixture
def untrusted(template: Project, tmp_path: Path) -> Project:
    """A copy of that project at another path, which nobody trusts."""
    project = Project(tmp_path)
    shutil.rmtree(project.root)
    shutil.copytree(template.root, project.root, symlinks=True)
    del project.env["COGCLI_TRUST_PROJECT"]
    return project


def require_refused(result: Result, link: Path) -> None:
    """Fail unless the command ended with the error about this link."""
    assert result.code == 3, result
    error = json.loads(result.out_bytes)["error"]
    assert error["code"] == "project.link", error
    assert error["found"].startswith("a link to "), error
    assert error["hint"]
    assert any(command.startswith("cogcli config trust") for command in error["next"])
    assert os.path.join(result_root(link), error["file"]) == str(link)


def result_root(link: Path) -> str:
    """The project of a link, in which the commands of these tests start."""
    return str(next(folder for folder in link.parents if folder.name == "project"))


def test_there_is_a_line_for_every_command() -> None:
    assert LINES.keys() == COMMANDS.keys()
    assert PASSED_OVER.keys() <= PLACES.keys()


@pytest.mark.slow
@pytest.mark.sampled(120)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", LINES)
def test_no_command_goes_through_a_link_that_leaves(
    untrusted: Project, tmp_path: Path, command: str, place: str
) -> None:
    """The same command goes through the place while that is not a link: then the link is refused."""
    pristine = tmp_path / "pristine"
    shutil.copytree(untrusted.root, pristine / "project", symlinks=True)
    within = untrusted.root / PLACES[place].replace("EPISODE", untrusted.episode.name)
    watched = age(within)
    untrusted.run(*LINES[command], "--json", input=b"")
    goes_through = touched(watched)
    shutil.rmtree(untrusted.root)
    shutil.copytree(pristine / "project", untrusted.root, symlinks=True)

    outside = Outside(untrusted, PLACES[place], tmp_path)
    result = untrusted.run(*LINES[command], "--json", input=b"")
    outside.require_untouched()
    assert (result.code != 70, b"Traceback" in result.err_bytes) == (True, False), result
    if goes_through and place not in PASSED_OVER:
        assert b"project.link" in result.out_bytes + result.err_bytes, (goes_through[:3], result)


REFUSED: dict[str, tuple[str, tuple[str, ...]]] = {
    "gc deletes": (".cogcli", ("gc", "--keep", "0", "--yes")),
    "gc deletes below a folder": (".cogcli/episodes", ("gc", "--keep", "0", "--yes")),
    "run writes": (".cogcli", BRIEF),
    "run writes below a folder": (".cogcli/episodes", BRIEF),
    "a case is recorded": ("skills/local/demo/greet/tests", ("test", "--record", "@last~1")),
    "a report is made": (".cogcli", ("report", "@last", "-o", "-")),
    "the index is written": (".cogcli/episodes", ("ls",)),
    "an episode is resumed": (".cogcli", ("resume", "@last")),
    "an episode is verified": (".cogcli", ("verify", "--all")),
    "a binding is chosen": (
        ".agent-skills",
        ("bindings", "activate", "text.content.check", "pythoncall_text_check"),
    ),
    "a skill is made": ("skills/local", ("new", "skill", "demo.fresh")),
    "specs are listed": ("skills", ("skills", "ls")),
    "a spec is shown": (
        "capabilities/demo.text.upper.yaml",
        ("capabilities", "show", "demo.text.upper"),
    ),
    "settings are read": ("cogcli.toml", ("skills", "ls")),
    "a replay compares specs": ("skills/local", ("replay", "@last")),
    "scenarios are read": ("tooling/openapi_scenarios", ("openapi", "verify-bindings", "--all")),
}


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("attack", REFUSED)
def test_each_way_out_is_refused(untrusted: Project, tmp_path: Path, attack: str) -> None:
    place, words = REFUSED[attack]
    outside = Outside(untrusted, place, tmp_path)
    require_refused(untrusted.run(*words, "--json"), outside.link)
    outside.require_untouched()


def chain(link: Path, target: Path, tmp_path: Path) -> None:
    """A link to a link to the target."""
    os.symlink(target, tmp_path / "between")
    os.symlink(tmp_path / "between", link)


def relative(link: Path, target: Path, tmp_path: Path) -> None:
    """A relative link, by way of the folders of the project."""
    os.symlink(os.path.relpath(target, link.parent), link)


def inner_chain(link: Path, target: Path, tmp_path: Path) -> None:
    """A link inside the project to another one, which leaves it."""
    os.symlink(target, link.parent / "inner")
    os.symlink("inner", link)


def process_root(link: Path, target: Path, tmp_path: Path) -> None:
    """A link by way of the process that reads it."""
    os.symlink(f"/proc/self/root{target}", link)


def by_a_folder(link: Path, target: Path, tmp_path: Path) -> None:
    """A link to a folder inside the project, in which the next name is a link out."""
    (link.parent / "deep").mkdir()
    os.symlink(target.parent, link.parent / "deep" / "out")
    os.symlink(f"deep/out/{target.name}", link)


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("make", [chain, relative, inner_chain, process_root, by_a_folder])
@pytest.mark.parametrize("words", [("gc", "--keep", "0", "--yes"), BRIEF, ("ls",)], ids=" ".join)
def test_no_form_of_a_link_leads_out(
    untrusted: Project,
    tmp_path: Path,
    make: Callable[[Path, Path, Path], None],
    words: tuple[str, ...],
) -> None:
    if make is process_root and sys.platform != "linux":
        make = chain
    outside = Outside(untrusted, ".cogcli", tmp_path)
    outside.link.unlink()
    make(outside.link, outside.target, tmp_path)
    result = untrusted.run(*words, "--json")
    assert json.loads(result.out_bytes)["error"]["code"] == "project.link", result
    outside.require_untouched()


@pytest.mark.slow
def test_a_link_inside_the_project_is_no_way_out(untrusted: Project) -> None:
    (untrusted.root / ".cogcli").rename(untrusted.root / "kept")
    os.symlink("kept", untrusted.root / ".cogcli")
    untrusted.run(*BRIEF, "--json")
    assert json.loads(untrusted.run("ls", "--json").out_bytes)["error"] is None
    assert len(list((untrusted.root / "kept/episodes").glob("ep_*"))) >= 2


@pytest.mark.slow
def test_after_trust_the_targets_are_used(untrusted: Project, tmp_path: Path) -> None:
    outside = Outside(untrusted, ".cogcli", tmp_path)
    untrusted.env["COGCLI_TRUST_PROJECT"] = "1"
    untrusted.run(*BRIEF).assert_ok()
    assert len(list((outside.target / "episodes").glob("ep_*"))) == 3


@pytest.mark.slow
@pytest.mark.parametrize("named_by", ["flag", "variable"])
def test_a_runs_directory_that_the_user_names_may_be_a_link(
    untrusted: Project, tmp_path: Path, named_by: str
) -> None:
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", untrusted.root / "mine")
    flags = ("--runs-dir", "mine") if named_by == "flag" else ()
    env = {} if named_by == "flag" else {"COGCLI_RUNS_DIR": "mine"}
    result = untrusted.run("run", "text.brief", "-p", "text=hi", *flags, "--json", env=env)
    assert result.code == 0, result
    assert json.loads(result.out_bytes)["dir"].startswith("mine/")
    assert len(list((tmp_path / "real").glob("ep_*"))) == 1
    listed = json.loads(untrusted.run("ls", *flags, "--json", env=env).out_bytes)
    assert [row["dir"].startswith("mine/") for row in listed["episodes"]] == [True]
    gone = untrusted.run("gc", "--keep", "0", "--yes", *flags, "--json", env=env)
    assert gone.code == 0, gone
    assert list((tmp_path / "real").glob("ep_*")) == []


@pytest.mark.slow
def test_a_project_is_found_through_a_link_to_it(untrusted: Project, tmp_path: Path) -> None:
    os.symlink(untrusted.root, tmp_path / "way")
    result = untrusted.run("-C", str(tmp_path / "way"), "skills", "ls", "--json")
    assert result.code == 0, result
    assert json.loads(result.out_bytes)["error"] is None
    listed = json.loads(untrusted.run("-C", str(tmp_path / "way"), "ls", "--json").out_bytes)
    assert {row["dir"].split("/")[0] for row in listed["episodes"]} == {".cogcli"}


@pytest.mark.slow
def test_a_typed_path_leads_no_further_than_a_link(untrusted: Project, tmp_path: Path) -> None:
    name = untrusted.episode.name
    outside = Outside(untrusted, ".cogcli", tmp_path)
    for words in (
        ("trace", f".cogcli/episodes/{name}"),
        ("validate", "skills"),
        ("resume", f".cogcli/episodes/{name}"),
    ):
        result = untrusted.run(*words, "--json")
        if words[0] != "validate":
            require_refused(result, outside.link)
    outside.require_untouched()


def swaps(untrusted: Project, outside: Path) -> Iterator[None]:
    """Make `.cogcli` a folder and a link in turns."""
    link, folder = untrusted.root / ".cogcli", untrusted.root / ".kept"
    while True:
        link.rename(folder)
        os.symlink(outside, link)
        yield
        link.unlink()
        while folder.exists():
            try:
                folder.rename(link)
            except OSError:  # the command made the folder at this moment, and may still write to it
                link.rename(link.with_name(f"made{time.monotonic_ns()}"))
        yield


@pytest.mark.sampled(20)
@pytest.mark.slow
@pytest.mark.parametrize("words", [("gc", "--keep", "0", "--yes"), BRIEF], ids=["gc", "run"])
def test_a_link_that_is_made_meanwhile_is_not_followed(
    untrusted: Project, template: Project, tmp_path: Path, words: tuple[str, ...]
) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(template.root / ".cogcli", outside)
    before = sorted(str(path) for path in outside.rglob("*") if path.name != ".index.db")
    import subprocess

    for _ in range(6):
        started = subprocess.Popen(
            [str(Path(sys.executable).parent / "cogcli"), *words], cwd=untrusted.root, env=untrusted.env,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        turns = swaps(untrusted, outside)
        while started.poll() is None:
            next(turns)
            time.sleep(0.0005)
        if (untrusted.root / ".cogcli").is_symlink():
            next(turns)
    after = sorted(str(path) for path in outside.rglob("*") if path.name != ".index.db")
    assert after == before
