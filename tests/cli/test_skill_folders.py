"""`skills export` and `skills import`: folders that others read, and folders that others made."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest
from support.project import Project

from cogcli.authoring.exchange.skill_export import document, folder_name

pytestmark = pytest.mark.sampled(10)

SUMMARIZE = ("--capability", "text.content.summarize")
HEAD = "---\nname: release-notes\ndescription: Write release notes. Use when a release is near.\n"


def folder(
    project: Project,
    body: str = "Ships wait in the bay.\n",
    head: str = HEAD,
    name: str = "release-notes",
) -> Path:
    project.write("cogcli.toml", "")
    return project.write(f"in/{name}/SKILL.md", f"{head}---\n{body}".encode()).parent


def judged(path: Path) -> None:
    """The reference validator's verdict on a folder."""
    reference = pytest.importorskip("skills_ref", reason="skills-ref is not installed here")
    assert not reference.validate(path)


def judge_document(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / "SKILL.md").write_text(text, encoding="utf-8")
    judged(tmp_path / name)


# -- out ---------------------------------------------------------------------------------------------------------------


def test_exported_folders_pass_the_reference_validator(demo: Project) -> None:
    ids = [row["id"] for row in demo.run("skills", "ls", "--json").json["skills"]]
    result = demo.run("skills", "export", *ids, "--to", "out").assert_ok()
    files = result.out.splitlines()
    assert files == [f"out/{folder_name(id)}/SKILL.md" for id in ids]
    for file in files:
        judged((demo.root / file).parent)
    text = (demo.root / "out/demo-greet/SKILL.md").read_text()
    assert "cogcli run demo.greet -p text=" in text
    assert "| `times` | integer | default 2 |" in text


def test_nothing_is_overwritten_and_all_or_nothing_is_written(demo: Project) -> None:
    demo.run("skills", "export", "demo.greet", "--to", "out").assert_ok()
    for ids, code in (
        (("demo.review", "demo.greet"), "output.exists"), (("demo.review", "demo.nothing"), "skill.not-found"),
    ):  # fmt: skip
        refused = demo.run("skills", "export", *ids, "--to", "out", "--json").assert_exit(2)
        assert refused.json["error"]["code"] == code
        assert not (demo.root / "out/demo-review").exists()
    (demo.root / "out/demo-review").symlink_to(demo.home)
    demo.run("skills", "export", "demo.review", "--to", "out").assert_exit(2)
    assert not any(demo.home.glob("SKILL.md"))
    demo.run("skills", "export", "demo.greet").assert_exit(2)


def test_whatever_a_skill_says_of_itself_stays_text(tmp_path: Path) -> None:
    field = {
        "type": "string",
        "required": True,
        "default": None,
        "enum": ["a|b"],
        "description": "x | y\n---\n`z`",
    }
    spec = {
        "id": "a.b", "version": "1.0.0", "name": "# [x](y)",
        "description": "a: b --- {c} \"d\" # e\n\x1b[31m \u202e é" + "x" * 2000,
        "inputs": {"in": field}, "outputs": {}, "run": "cogcli run a.b\n```\n# more",
    }  # fmt: skip
    text = document("a-b", spec)
    judge_document(tmp_path, "a-b", text)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\n# more" not in text
    assert "\\| y" in text


def test_long_ids_give_names_of_64_characters(tmp_path: Path) -> None:
    name = folder_name("a" * 60 + "." + "b" * 60)
    assert len(name) <= 64
    assert name != folder_name("a" * 60 + "." + "c" * 60)


# -- in ----------------------------------------------------------------------------------------------------------------


def test_an_imported_folder_is_a_skill_that_runs(project: Project) -> None:
    body = "\n  # How\n\n\tShips wait in the bay: inputs.text, {not: yaml}\n- *not an alias*\n\nTugs bring them in.\n\n"
    folder(project, body, HEAD + "license: MIT\nallowed-tools: Bash(rm *)\n")
    project.write("in/release-notes/scripts/run.sh", "touch owned\n").chmod(0o755)
    project.write("in/release-notes/assets/skill.yaml", "id: evil.skill\n")
    project.write("in/release-notes/.hidden", "x")
    result = project.run("skills", "import", "in/release-notes", *SUMMARIZE).assert_ok()
    assert result.out == "skills/local/imported/release-notes/skill.yaml\n"
    assert "`allowed-tools` grants nothing" in result.err
    assert "left out: .hidden" in result.err
    project.run("validate", "--strict").assert_ok()
    spec = (
        project.run("skills", "show", "imported.release-notes", "--json").assert_ok().json["spec"]
    )
    assert spec["description"] == "Write release notes. Use when a release is near."
    run = project.run("run", "imported.release-notes").assert_ok()
    assert "Tugs bring them in." in run.json["summary"]
    call = project.run("state", "show", "--path", "outcomes.actions[0].input_excerpt").assert_ok()
    assert "# How" in call.out
    script = project.root / "skills/local/imported/release-notes/_files/scripts/run.sh"
    assert not os.access(script, os.X_OK)
    assert (
        sha256(script.read_bytes()).hexdigest()
        in script.parents[2].joinpath("skill.yaml").read_text()
    )
    assert not list(project.root.rglob("owned"))
    assert [
        row["id"]
        for row in project.run("skills", "ls", "--domain", "imported", "--json").json["skills"]
    ] == ["imported.release-notes"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "body",
    [
        "plain", " leading space", "\ttab", "trailing  \nspaces ", "a\n\n\nb", "$literal: x", "- a\n- b", "'\"\\",
        "inputs.request", "é 漢字 🚢", "| a |\n|---|", "a\n   \nb", "\n\na", "", "---\nnot the end",
        "x" * 65_000, "a\n" * 32_000,
    ],
)  # fmt: skip
def test_the_body_stands_in_the_file_as_it_was(body: str) -> None:
    from cogcli.authoring.exchange.skill_import import _yaml_literal
    from cogcli.base.yaml.reader import parse

    text = "\n".join(_yaml_literal("key", body))
    parsed = parse(text.encode(), file="x")
    assert not parsed.problems
    assert parsed.value == {"key": {"$literal": body}}


def test_instructions_and_request_go_where_their_names_say(project: Project) -> None:
    project.services(
        """
        def ask(instructions: str, request: str) -> dict[str, object]:
            return {"text": f"{instructions} / {request}"}

        def chat(messages: list) -> dict[str, object]:
            return {"text": " / ".join(f"{m['role']}: {m['content']}" for m in messages)}
        """
    )
    text = "{type: string, required: true}"
    project.capability(
        "demo.text.ask", "ask", inputs=f"{{request: {text}, instructions: {text}}}",
        request="{instructions: input.instructions, request: input.request}",
    )  # fmt: skip
    project.capability(
        "demo.text.chat",
        "chat",
        inputs="{messages: {type: array, required: true}}",
        request="{messages: input.messages}",
    )
    for capability, answer in (
        ("demo.text.ask", "Ships wait. / now"), ("demo.text.chat", "system: Ships wait. / user: now"),
    ):  # fmt: skip
        name = capability.rpartition(".")[2]
        folder(project, "Ships wait.", HEAD.replace("release-notes", name), name)
        imported = project.run(
            "skills", "import", f"in/{name}", "--capability", capability, "--json"
        ).assert_ok()
        assert imported.json["warnings"] == []
        assert project.run("run", f"imported.{name}", "-p", "request=now").assert_ok().json == {
            "text": answer
        }
        project.run("run", f"imported.{name}").assert_exit(2)


def test_without_a_near_name_the_capabilities_that_fit_are_named(project: Project) -> None:
    folder(project)
    text = "{type: string, required: true}"
    project.capability("demo.text.ask", "ask", inputs=f"{{request: {text}, instructions: {text}}}")
    project.capability("demo.text.say", "ask", inputs=f"{{text: {text}, request: {text}}}")
    project.capability("demo.value.add", "ask", inputs="{number: {type: number, required: true}}")

    def refused(word: str) -> tuple[str, list[str]]:
        words = ("skills", "import", "in/release-notes", "--capability", word)
        error = project.run(*words, "--json").assert_exit(2).json["error"]
        return error["hint"], error["next"]

    hint, further = refused("zzzz")
    assert hint.startswith("those that can be called with it: agent.input.route, ")
    assert hint.endswith(" more")
    assert further == ["cogcli capabilities ls"]
    assert "demo.value.add" not in refused("demo.value.ad")[0]
    corrected = "cogcli skills import in/release-notes --capability demo.text.ask --json"
    assert refused("demo.text.aks")[1] == [corrected]


def test_what_cannot_be_imported_is_refused_and_leaves_nothing(project: Project) -> None:
    good = folder(project)
    (project.root / "in/linked").symlink_to(good)
    bad = {
        "no head": ("Only a body.", "", "usage.value"),
        "big body": ("x" * 70_000, HEAD, "usage.value"),
        "no body": ("\n\n", HEAD, "usage.value"),
        "control character": ("a\x1b[31m", HEAD, "yaml.characters"),
        "bidi": ("a \u202e b", HEAD, "yaml.characters"),
        "alias": ("x", HEAD + "metadata: &a {x: *a}\n", "yaml.alias"),
        "twice": ("x", HEAD + "name: other\n", "yaml.duplicate-key"),
        "other name": ("x", HEAD.replace("name: release-notes", "name: other"), "usage.value"),
        "path as name": (
            "x",
            HEAD.replace("name: release-notes", "name: ../../etc"),
            "usage.value",
        ),
        "long description": ("x", HEAD.replace("Write", "W" * 2000), "usage.value"),
        "no description": ("x", HEAD.partition("description")[0], "usage.value"),
    }
    for body, head, code in bad.values():
        folder(project, body, head)
        if not head:
            (good / "SKILL.md").write_text(body)
        refused = project.run(
            "skills", "import", "in/release-notes", *SUMMARIZE, "--json"
        ).assert_exit(2)
        assert refused.json["error"]["code"] == code, (body[:20], refused.json["error"])
        assert not (project.root / "skills").exists()


def test_hostile_files_are_refused(project: Project) -> None:
    good = folder(project)

    def refused() -> None:
        result = project.run(
            "skills", "import", "in/release-notes", *SUMMARIZE, "--json"
        ).assert_exit(2)
        assert result.json["error"]["code"] == "usage.value"
        assert not (project.root / "skills").exists()

    secret = project.home / "secret"
    secret.write_text("swordfish")
    for name, target in (("notes.txt", secret), ("more", project.home), (".hidden", secret)):
        (good / name).symlink_to(target)
        refused()
        (good / name).unlink()
    os.mkfifo(good / "pipe")
    refused()
    (good / "pipe").unlink()
    (good / "a\nb").write_text("x")
    refused()
    (good / "a\nb").unlink()
    (good / "big").write_bytes(b"x" * 1_100_000)
    refused()
    (good / "big").unlink()
    for number in range(201):
        (good / f"f{number}").write_text("x")
    refused()
    for number in range(201):
        (good / f"f{number}").unlink()
    (good / "SKILL.md").rename(good / "real")
    (good / "SKILL.md").symlink_to("real")
    refused()


def test_an_import_needs_a_project_a_fitting_capability_and_a_free_place(project: Project) -> None:
    folder(project)
    assert project.run("skills", "import", "in/release-notes").assert_exit(2)
    for capability in ("text.content.sumarize", "risk.list.rate", "table.column.summarize"):
        command = ("skills", "import", "in/release-notes", "--capability", capability, "--json")
        assert project.run(*command).assert_exit(2).json["error"]["code"] == "usage.value"
    project.run("skills", "import", "in/release-notes", *SUMMARIZE).assert_ok()
    again = project.run("skills", "import", "in/release-notes", *SUMMARIZE, "--json").assert_exit(2)
    assert json.loads(again.out)["error"]["code"] == "output.exists"
    (project.root / "cogcli.toml").unlink()
    (project.root / "skills").rename(project.root / "elsewhere")
    none = project.run("skills", "import", "in/release-notes", *SUMMARIZE, "--json").assert_exit(3)
    assert none.json["error"]["code"] == "project.none"
