"""Shipped capabilities that read and write files, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(4)

STEPS = """
- {id: read, uses: table.sheet.read, input: {path: inputs.path}, output: {table: vars.rows}}
- {id: write, uses: table.sheet.write, input: {path: inputs.to, table: vars.rows}, output: {row_count: outputs.rows}}
"""
INPUTS = "{path: {type: string, required: true}, to: {type: string, required: true}}"
PATH = "{path: {type: string, required: true}}"
YES = ("--trust-level", "elevated", "--confirm", "table.sheet.write")


@pytest.fixture
def files(ordinary_path: Path, warm_cache: Path) -> Project:
    """A project with a table, and a skill that copies tables."""
    project = Project(ordinary_path, warm_cache)
    project.skill(
        "demo.copy", STEPS, inputs=INPUTS, outputs="{rows: {type: number, required: true}}"
    )
    project.write("a.csv", "ship,t\nPetrel,9\n")
    return project


def test_a_table_is_written_after_a_person_said_yes(files: Project) -> None:
    command = ("run", "demo.copy", "-p", "path=a.csv", "-p", "to=b.csv")
    assert files.run(*command, "--json").code != 0
    assert not (files.root / "b.csv").exists()
    files.run(*command, *YES).assert_ok()
    assert (files.root / "b.csv").read_bytes() == b"ship,t\r\nPetrel,9\r\n"


@pytest.mark.parametrize("place", ["../b.csv", "/etc/b.csv"])
def test_nothing_is_written_outside_of_the_working_directory(files: Project, place: str) -> None:
    done = files.run(
        "run", "demo.copy", "-p", "path=a.csv", "-p", f"to={place}", *YES, "--json"
    ).assert_exit(1)
    assert done.json["error"]["code"] == "call.rejected"
    assert not (files.root.parent / "b.csv").exists()


@pytest.mark.parametrize(
    "name",
    ["table.sheet.read", "fs.file.read", "fs.file.list", "pdf.document.read", "git.log.read"],
)
def test_of_a_project_that_is_not_trusted_nothing_outside_is_read(
    files: Project, name: str
) -> None:
    """The path is the project's own, not one that a person named."""
    del files.env["COGCLI_TRUST_PROJECT"]
    (files.root.parent / "other").mkdir()
    (files.root.parent / "other" / "a.csv").write_text("secret\n1\n")
    place = "../other" if name in ("fs.file.list", "git.log.read") else "../other/a.csv"
    files.skill(
        "demo.peek", f"- {{id: peek, uses: {name}, input: {{path: {place}}}, output: {{}}}}"
    )
    done = files.run("run", "demo.peek", "--json").assert_exit(3)
    assert done.json["error"]["code"] == "service.untrusted"
    assert "secret" not in done.out


@pytest.mark.sampled(8)
@pytest.mark.slow
def test_code_is_run_for_whom_all_is_trusted_and_who_said_yes(files: Project) -> None:
    step = "- {id: run, uses: code.snippet.execute, input: {code: inputs.code, language: python}, output: OUT}"
    files.skill(
        "demo.run",
        step.replace("OUT", "{stdout: outputs.out}"),
        inputs="{code: {type: string, required: true}}",
        outputs="{out: {type: string}}",
    )
    command = ("run", "demo.run", "-p", "code=print(1 + 1)", "--confirm", "code.snippet.execute")
    assert (
        files.run(*command, "--trust-level", "elevated", "--json").json["error"]["code"]
        == "safety.trust"
    )
    done = files.run(*command, "--trust-level", "privileged", "--json")
    if done.code == 0:
        assert done.json["outputs"] == {"out": "2\n"}
    else:  # a system without name spaces of one's own
        assert done.json["error"]["code"] == "call.rejected"
        assert "kept apart" in done.json["error"]["message"]


@pytest.mark.parametrize("name", ["fs.file.list", "git.log.read", "fs.file.read"])
def test_roots_bound_folders_as_they_bound_files(files: Project, name: str) -> None:
    (files.root.parent / "other").mkdir()
    files.write("docs/a.txt", "a")
    files.write("cogcli.toml", '[files]\nroots = ["docs"]\n')
    files.skill(
        "demo.peek",
        f"- {{id: peek, uses: {name}, input: {{path: inputs.path}}, output: {{}}}}",
        inputs=PATH,
    )
    outside = "../other" if name != "fs.file.read" else "a.csv"
    done = files.run("run", "demo.peek", "-p", f"path={outside}", "--json")
    assert done.code != 0
    assert "files.roots" in done.json["error"]["message"]
    if name != "git.log.read":
        files.run(
            "run", "demo.peek", "-p", f"path={'docs' if name == 'fs.file.list' else 'docs/a.txt'}"
        ).assert_ok()


def test_a_folder_without_files_is_clean(files: Project) -> None:
    (files.root / "app/sub").mkdir(parents=True)
    found = files.run("run", "secrets.scan", "-p", "path=app").assert_ok().json
    assert (found["clean"], found["scanned"], found["unread"], found["refused"]) == (True, 0, 1, [])
    assert files.run("run", "licence.overview", "-p", "path=app").assert_ok().json["files"] == []


def test_one_file_that_nothing_reads_does_not_end_a_scan(files: Project) -> None:
    files.write("app/.env.sample", "TOKEN=\n")
    files.write("app/read.txt", b"SPDX-License-Identifier: MIT\n\xe9 password = tide-9-Plan!\n")
    found = files.run("run", "secrets.scan", "-p", "path=app").assert_ok().json
    assert [finding["file"] for finding in found["findings"]] == ["read.txt"]
    assert [entry["path"] for entry in found["refused"]] == [".env.sample"]
    overview = files.run("run", "licence.overview", "-p", "path=app").assert_ok().json
    assert overview["by_licence"] == {"MIT": 1}
