"""An untrusted project reads its own files, and those that the person names for this run; no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(8)

NOTES = "canary of the notes"
READ = "- {{id: ask, uses: {uses}, input: {{path: {path}}}, output: {{text: outputs.text}}}}"
TEXT = "{text: {type: any}}"
PATH = "{path: {type: any, required: true}}"


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Shipped functions read documents in ordinary folders alone."""
    return ordinary_path


@pytest.fixture
def untrusted(tmp_path: Path) -> Project:
    """A project with skills that read what they are given, beside files that are none of its business."""
    project = Project(tmp_path)
    del project.env["COGCLI_TRUST_PROJECT"]
    (project.home / "notes.txt").write_text(NOTES)
    project.write("docs/own.txt", "own words")
    project.skill(
        "canary.reader",
        READ.format(uses="doc.text.read", path="inputs.path"),
        inputs=PATH,
        outputs=TEXT,
    )
    return project


def _own(project: Project, service: str, isolation: str = "thread") -> str:
    """A capability of the project's own, without the gate of the shipped one, that calls the shipped function."""
    project.write(
        "services/own_document.yaml",
        f"id: own_document\nkind: pythoncall\nmodule: cogcli.official.document\nisolation: {isolation}\n",
    )
    project.capability(
        "canary.read",
        "read_text",
        request="{path: input.path}",
        inputs="{path: {type: string, required: true}}",
    )
    binding = project.root / "bindings/local/canary.read/canary_read.yaml"
    binding.write_text(binding.read_text().replace("service: demo", f"service: {service}"))
    return "canary.read"


def _literal(project: Project, path: str, uses: str = "doc.text.read") -> None:
    project.skill("canary.literal", READ.format(uses=uses, path=json.dumps(path)), outputs=TEXT)


def _refused(project: Project, *arguments: str) -> None:
    result = project.run(*arguments, "--json").assert_exit(3)
    error = result.json["error"]
    assert error["code"] == "service.untrusted"
    assert "ask" in str(error), error
    assert "cogcli config trust" in error["hint"]
    written = [path for path in project.root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert NOTES not in result.out + result.err
    assert not any(NOTES.encode() in path.read_bytes() for path in written)


@pytest.mark.parametrize(
    ("service", "isolation"),
    [("", ""), ("official_document", ""), ("own_document", "thread"), ("own_document", "process")],
)
def test_a_file_of_the_person_is_not_read(untrusted: Project, service: str, isolation: str) -> None:
    uses = _own(untrusted, service, isolation or "thread") if service else "doc.text.read"
    _literal(untrusted, str(untrusted.home / "notes.txt"), uses)
    _refused(untrusted, "run", "canary.literal")
    untrusted.run("run", "canary.literal", env={"COGCLI_TRUST_PROJECT": "1"}).assert_ok()


def test_whether_a_file_is_there_is_not_told(untrusted: Project) -> None:
    told = []
    for name in ("notes.txt", "absent", ".ssh/id_rsa"):
        _literal(untrusted, str(untrusted.home / name), _own(untrusted, "own_document"))
        message = untrusted.run("run", "canary.literal", "--json").json["error"]["message"]
        told.append(message.replace(str(untrusted.home / name), "").replace(name, ""))
    assert len(set(told)) == 1


@pytest.mark.parametrize("way", ["link", "folder", "chain", "dots"])
def test_a_link_does_not_lead_out(untrusted: Project, way: str) -> None:
    docs, outside = untrusted.root / "docs", untrusted.home / "notes.txt"
    (docs / "link").symlink_to(outside)
    (docs / "folder").symlink_to(untrusted.home)
    (docs / "chain").symlink_to("link")
    path = {"folder": "docs/folder/notes.txt", "dots": "docs/folder/../home/notes.txt"}.get(
        way, f"docs/{way}"
    )
    _literal(untrusted, path)
    _refused(untrusted, "run", "canary.literal")
    # Who names such a path names what the project says is there.
    _refused(untrusted, "run", "canary.reader", "-p", f"path={path}")
    (untrusted.home / "to-project").symlink_to(untrusted.root)
    _refused(untrusted, "run", "canary.reader", "-p", f"path={untrusted.home}/to-project/{path}")


@pytest.mark.parametrize("path", [".git/config", ".cogcli/episodes/note.txt", "sub/.git/config"])
def test_what_lies_in_the_folder_and_did_not_come_with_it_is_not_read(
    untrusted: Project, path: str
) -> None:
    untrusted.write(path, "url = https://me:canary@host/x")
    _literal(untrusted, path, _own(untrusted, "own_document"))
    result = untrusted.run("run", "canary.literal", "--json").assert_exit(3)
    assert result.json["error"]["code"] == "service.untrusted"


def test_its_own_files_are_read(untrusted: Project) -> None:
    (untrusted.root / "docs/inner").symlink_to("own.txt")
    for path in (
        "docs/own.txt",
        str(untrusted.root / "docs/own.txt"),
        "docs/inner",
        "docs/../docs/own.txt",
    ):
        assert (
            untrusted.run("run", "canary.reader", "-p", f"path={path}").assert_ok().json["text"]
            == "own words"
        )


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_what_the_person_names_is_read(untrusted: Project, isolation: str) -> None:
    notes = str(untrusted.home / "notes.txt")
    (untrusted.home / "alias").symlink_to("notes.txt")
    untrusted.skill(
        "canary.reader",
        READ.format(uses=_own(untrusted, "own_document", isolation), path="inputs.path"),
        inputs=PATH,
        outputs=TEXT,
    )
    given: list[tuple[str, ...]] = [
        ("-p", f"path={notes}"),
        ("-p", "path=../home/notes.txt"),
        ("-p", f"path={untrusted.home}/alias"),
        ("-p", f"path:={json.dumps(notes)}"),
        ("--input", json.dumps({"path": notes})),
    ]
    for flags in given if isolation == "thread" else given[:1]:
        assert untrusted.run("run", "canary.reader", *flags).assert_ok().json["text"] == NOTES


def test_typed_inside_a_list_or_as_a_folder_counts_and_a_sentence_does_not(
    untrusted: Project,
) -> None:
    notes = str(untrusted.home / "notes.txt")
    _literal(untrusted, notes)
    skill = untrusted.root / "skills/local/canary/literal/skill.yaml"
    skill.write_text(skill.read_text().replace("inputs: {}", "inputs: {said: {type: any}}"))
    for said in (untrusted.home / "temporary", f"what does {notes} say?", f"{notes}/"):
        _refused(untrusted, "run", "canary.literal", "-p", f"said={said}")
    untrusted.run("run", "canary.literal", "-p", f"said={untrusted.home}").assert_ok()
    untrusted.run(
        "run", "canary.literal", "-p", f"said:={json.dumps({'files': [notes]})}"
    ).assert_ok()


def test_a_file_of_inputs_and_a_default_are_not_the_persons_word(untrusted: Project) -> None:
    notes = str(untrusted.home / "notes.txt")
    untrusted.write("given.json", json.dumps({"path": notes}))
    untrusted.write("name.txt", notes)
    _refused(untrusted, "run", "canary.reader", "--input-file", "given.json")
    _refused(untrusted, "run", "canary.reader", "--input", "@given.json")
    _refused(untrusted, "run", "canary.reader", "-p", "path=@name.txt")
    skill = untrusted.root / "skills/local/canary/reader/skill.yaml"
    skill.write_text(skill.read_text().replace("required: true", f"default: {notes}"))
    _refused(untrusted, "run", "canary.reader")


def test_an_episode_of_another_does_not_name_files_for_the_person(
    untrusted: Project, tmp_path: Path
) -> None:
    """In an own episode the typed path still counts."""
    notes = str(untrusted.home / "notes.txt")
    untrusted.run("run", "canary.reader", "-p", f"path={notes}").assert_ok()
    again = ("rerun", untrusted.episode.name, "--from", "ask", "--json")
    untrusted.run(*again).assert_ok()
    other = {"XDG_CONFIG_HOME": str(tmp_path / "another user")}
    result = untrusted.run(*again, env=other).assert_exit(3)
    assert result.json["error"]["code"] == "service.untrusted"


def test_outside_a_project_and_in_a_trusted_one_all_stays_as_it_was(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.home / "notes.txt").write_text(NOTES)
    project.write("plain/given.json", json.dumps({"path": str(project.home / "notes.txt")}))
    own: dict[str, Any] = {"inputs": PATH, "outputs": TEXT}
    project.skill("canary.reader", READ.format(uses="doc.text.read", path="inputs.path"), **own)
    run = ("run", "canary.reader", "--input-file", "plain/given.json")
    project.run(*run).assert_ok()
    del project.env["COGCLI_TRUST_PROJECT"]
    project.run(*run).assert_exit(3)
    project.run("config", "trust").assert_ok()
    project.run(*run).assert_ok()
