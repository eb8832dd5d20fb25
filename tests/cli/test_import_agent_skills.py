"""`import agent-skills` over folders in the shape of the runner guide (docs/how-to/come-from-agent-skills.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.guide_tool import REGISTRY, TOOL, write_files

pytestmark = pytest.mark.sampled(16)

LIKE_SHIPPED_TOOL = {
    "bindings/official/text.content.summarize/python_short.yaml": """
        id: python_short
        capability: text.content.summarize
        service: shortening
        protocol: pythoncall
        operation: shorten
        request: {text: input.text}
        response: {summary: response.summary}
        """,
    "services/official/shortening.yaml": """
        id: shortening
        kind: pythoncall
        module: official_services.shortening
        """,
    "official_services/shortening.py": """
        def shorten(text):
            return {"summary": f"short: {text}"}
        """,
}
LIKE_SHIPPED = {
    "capabilities/text.content.summarize.yaml": """
        id: text.content.summarize
        version: "1.0.0"
        description: Shortens a text.
        inputs: {text: {type: string, required: true}}
        outputs: {summary: {type: string, required: true}}
        properties: {side_effects: false}
        """,
    "skills/official/text/short/skill.yaml": """
        id: text.short
        version: "1.0.0"
        name: Short
        description: Shortens a text.
        inputs: {text: {type: string, required: true}}
        outputs: {summary: {type: string, required: true}}
        steps:
          - {id: s, uses: text.content.summarize, input: {text: inputs.text}, output: {summary: outputs.summary}}
        """,
}
IMPORT = ("import", "agent-skills", "../tool", "../agent-skill-registry")


@pytest.fixture
def coming(project: Any) -> Any:
    """An empty directory beside a tool and its registry; nothing is trusted."""
    del project.env["COGCLI_TRUST_PROJECT"]
    write_files(project.root.parent / "tool", TOOL)
    write_files(project.root.parent / "agent-skill-registry", REGISTRY)
    return project


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def apply(project: Any, setup: dict[str, Any]) -> None:
    """Just what is printed."""
    for name, text in setup["files"].items():
        project.write(name, text.encode())
    for command in setup["commands"]:
        project.run(*command.split()[1:]).assert_ok()


def test_after_what_it_prints_all_skills_run(coming: Any) -> None:
    setup = coming.run(*IMPORT, "--json").assert_ok().json["setup"]
    assert (setup["skills"], setup["usable"], setup["left"], setup["variables"]) == (3, 3, [], {})
    (choice,) = setup["choices"].items()
    assert choice[0] == "text.passage.summarize"
    assert choice[1]["text"] == "python_summarize"
    assert choice[1]["file"].endswith("tool/services/official/model.yaml")
    assert choice[1]["line"] == 6
    assert "GUIDE_MODEL_KEY" in choice[1]["reason"]
    apply(coming, setup)
    words = ("-p", "text=A long  text. It goes on.", "-q")
    assert coming.run("run", "text.clean", *words).assert_ok().json == {
        "text": "A long text. It goes on."
    }
    assert coming.run("run", "text.summary", *words).assert_ok().json == {
        "summary": "A long text.",
        "note": None,
    }
    assert coming.run("run", "text.label", *words).assert_ok().json == {"label": "long", "score": 6}
    coming.run("verify", "@last").assert_ok()
    codes = {each["code"] for each in coming.run("validate", "--json").assert_ok().json["problems"]}
    assert {"response.field", "request.optional", "flow.type", "yaml.duplicate-key"} <= codes
    usable = coming.run("skills", "ls", "--usable", "--json").assert_ok().json["skills"]
    assert {"text.clean", "text.summary", "text.label"} <= {skill["id"] for skill in usable}


def test_without_the_choice_the_error_names_what_can_be_called(coming: Any) -> None:
    setup = coming.run(*IMPORT, "--json").assert_ok().json["setup"]
    apply(coming, {**setup, "files": {"cogcli.toml": setup["files"]["cogcli.toml"]}})
    refused = coming.run("run", "text.summary", "-p", "text=One. Two.").assert_exit(3).err
    assert "GUIDE_MODEL_KEY" in refused
    assert "--bind text.passage.summarize=python_summarize" in refused
    line = "cogcli bindings activate text.passage.summarize python_summarize"
    assert line in refused
    coming.run(*line.split()[1:]).assert_ok()
    assert (
        coming.run("run", "text.summary", "-p", "text=One. Two.", "-q").assert_ok().json["summary"]
        == "One."
    )


def test_nothing_is_written_anywhere(coming: Any) -> None:
    before = everything_in(coming.root.parent)
    coming.run(*IMPORT).assert_ok()
    assert everything_in(coming.root.parent) == before


def test_what_it_prints_is_text_to_paste(coming: Any) -> None:
    out = coming.run(*IMPORT).assert_ok().out
    assert '# write to cogcli.toml\nregistry = ["../agent-skill-registry", "../tool"]\n' in out
    assert '[roots."../agent-skill-registry"]\ncontracts = "lenient"\n' in out
    assert (
        '# write to .agent-skills/active_bindings.json\n{\n  "text.passage.summarize": "python_summarize"\n}\n'
        in out
    )
    assert "# write to .agent-skills/overrides.yaml\noverrides:\n" in out
    assert out.rstrip().endswith("# 3 of 3 skills could run after that; nothing was written")


def test_a_variable_without_which_nothing_can_be_called_is_to_be_set(coming: Any) -> None:
    (
        coming.root.parent / "tool/bindings/official/text.passage.summarize/python_summarize.yaml"
    ).unlink()
    setup = coming.run(*IMPORT, "--json").assert_ok().json["setup"]
    assert setup["choices"] == {}
    assert setup["variables"]["GUIDE_MODEL_KEY"]["reason"] == "text.passage.summarize"
    assert setup["usable"] == 3
    assert "export GUIDE_MODEL_KEY=..." in coming.run(*IMPORT).out
    assert (
        coming.run(*IMPORT, "--json", env={"GUIDE_MODEL_KEY": "k"}).json["setup"]["variables"] == {}
    )


@pytest.mark.sampled(32)
@pytest.mark.parametrize(
    ("file", "old", "new", "place", "told"),
    [
        ("agent-skill-registry/skills/official/text/clean/skill.yaml", "uses: text.passage.clean",
         "uses: text.passage.cleen", ":9", "text.passage.clean"),
        ("agent-skill-registry/skills/official/text/clean/skill.yaml", "id: text.clean", "id: [", ":3", "yaml."),
        ("tool/official_services/texts.py", "from helpers", "import no_such_package\nfrom helpers",
         "texts.py:1", "no_such_package"),
        ("tool/official_services/texts.py", "return {\"text\"", "import no_such_package; return {\"text\"",
         "texts.py:5", "`clean` imports `no_such_package`"),
        ("tool/helpers/words.py", "def squeeze", "import no_such_package\ndef squeeze", "helpers/words.py:1",
         "no_such_package"),
        ("tool/official_services/texts.py", "def rate", "def rates", "python_rate.yaml:5", "no function `rate`"),
        ("tool/services/official/texts.yaml", "official_services.texts", "official_services.gone", "texts.yaml:3",
         "not found"),
    ],
)  # fmt: skip
def test_what_remains_is_told_with_its_place(
    coming: Any, file: str, old: str, new: str, place: str, told: str
) -> None:
    path = coming.root.parent / file
    path.write_text(path.read_text().replace(old, new, 1))
    setup = coming.run(*IMPORT, "--json").assert_ok().json["setup"]
    texts = [
        f"{each['file']}:{each['line']} {each['text']} {each['reason']}" for each in setup["left"]
    ]
    assert any(place in text and told in text for text in texts), texts
    assert setup["usable"] < setup["skills"] == 3


def test_a_skill_whose_nested_skill_cannot_run_says_that_and_no_other_reason(coming: Any) -> None:
    texts = coming.root.parent / "tool/official_services/texts.py"
    texts.write_text(texts.read_text().replace("def clean(", "def cleaned("))
    out = coming.run(*IMPORT).assert_ok().out
    assert "`skill:text.clean` cannot run" in out
    assert "there is no such binding" not in out


def test_hostile_folders_are_told_and_neither_followed_nor_run(coming: Any) -> None:
    above = coming.root.parent
    secret = above / "elsewhere" / "secret.yaml"
    outside = {
        "secret.yaml": "id: canary-in-a-secret\nsteps: [\n",
        "linked_out.py": "canary = (\n",
        "keys.json": '{"text.passage.rate": "canary"}',
        "deep/skill.yaml": "id: [canary",
    }
    write_files(above / "elsewhere", outside)
    registry = above / "agent-skill-registry"
    (registry / "capabilities/text.content.stolen.yaml").symlink_to(secret)
    (registry / "skills/linked").symlink_to(above / "elsewhere")
    (above / "tool/.agent-skills/services.yaml").symlink_to(secret)
    (above / "tool/.agent-skills/active_bindings.json").symlink_to(above / "elsewhere/keys.json")
    (above / "tool/linked_out.py").symlink_to(above / "elsewhere/linked_out.py")
    linked = "id: linked\nkind: pythoncall\nmodule: linked_out\n"
    (above / "tool/services/official/linked.yaml").write_text(linked)
    (registry / "capabilities/text.content.huge.yaml").write_text("# " + "x" * 300_000)
    (registry / "capabilities/text.content.deep.yaml").write_text("[" * 5000)
    (registry / "capabilities/text.content.odd.yaml").write_text('id: "\\x1b[31mred"\n')
    for package in ("official_services", "helpers", "runtime"):
        mark = above / f"{package}-was-run"
        (above / "tool" / package / "__init__.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    result = coming.run(*IMPORT).assert_ok()
    assert "canary" not in result.out
    assert "\x1b" not in result.out
    for told in (
        "text.content.stolen.yaml: this link",
        "skills/linked: this link",
        ".agent-skills/services.yaml: this link",
    ):
        assert told in result.out
    assert "yaml.size" in result.out
    assert "module `linked_out` is not found" in result.out
    assert "text.content.deep.yaml" in result.out
    assert not list(above.glob("*-was-run"))


def test_folders_that_are_none_or_hold_nothing(coming: Any) -> None:
    (coming.root.parent / "empty").mkdir()
    assert "does not exist" in coming.run("import", "agent-skills", "../gone").assert_exit(2).err
    assert "holds no specs" in coming.run("import", "agent-skills", "../empty").assert_exit(2).err
    found = coming.run("import", "agent-skills", "../tool", "--json").assert_ok().json["setup"]
    assert found["skills"] == 3, "the registry beside the tool is found"


def test_what_the_project_says_already_is_kept(coming: Any) -> None:
    (coming.root / "mine").mkdir()
    coming.write("cogcli.toml", 'registry = ["mine"]\n')
    coming.write(
        ".agent-skills/active_bindings.json", '{"x-own": "1", "text.passage.rate": "python_rate"}\n'
    )
    setup = coming.run(*IMPORT, "--json").assert_ok().json["setup"]
    assert (
        'registry = ["mine", "../agent-skill-registry", "../tool"]' in setup["files"]["cogcli.toml"]
    )
    chosen = json.loads(setup["files"][".agent-skills/active_bindings.json"])
    assert chosen == {
        "x-own": "1",
        "text.passage.rate": "python_rate",
        "text.passage.summarize": "python_summarize",
    }
    assert ".agent-skills/overrides.yaml" not in setup["files"]


def test_what_is_declared_already_is_said_again_and_without_a_registry_that_is_told(
    coming: Any,
) -> None:
    first = coming.run(*IMPORT, "--json").assert_ok().json["setup"]
    apply(coming, first)
    again = coming.run(*IMPORT, "--json").assert_ok().json["setup"]
    assert again["files"]["cogcli.toml"] == first["files"]["cogcli.toml"]
    assert (again["choices"], again["left"], again["usable"]) == ({}, [], 3)
    assert "# put into cogcli.toml" in coming.run(*IMPORT).out
    (coming.root.parent / "agent-skill-registry").rename(coming.root.parent / "elsewhere")
    coming.write("cogcli.toml", "")
    alone = coming.run("import", "agent-skills", "../tool").assert_ok().out
    assert "no skills and no capabilities are here" in alone
    assert "name the folder of the registry" in alone


def test_what_the_shipped_registry_would_answer_is_left_to_the_folders(coming: Any) -> None:
    """A capability has the name of a shipped one, and the tool names no default: the shipped binding would answer."""
    above = coming.root.parent
    write_files(above / "tool", LIKE_SHIPPED_TOOL)
    write_files(above / "agent-skill-registry", LIKE_SHIPPED)
    setup = coming.run(*IMPORT, "--json").assert_ok().json["setup"]
    assert (setup["skills"], setup["usable"], setup["own"], setup["builtin"]) == (4, 4, 4, False)
    config = setup["files"]["cogcli.toml"]
    assert config.startswith(
        "# With the shipped registry 3 of 4 skills call only what is in these folders"
    )
    assert "builtin = false" in config.splitlines()
    apply(coming, setup)
    done = coming.run("run", "text.short", "-p", "text=One. Two.", "-q").assert_ok()
    assert done.json == {"summary": "short: One. Two."}


def test_a_project_with_specs_keeps_the_shipped_registry_and_prefers_the_folders(
    coming: Any,
) -> None:
    above = coming.root.parent
    write_files(above / "tool", LIKE_SHIPPED_TOOL)
    write_files(above / "agent-skill-registry", LIKE_SHIPPED)
    coming.write("cogcli.toml", "")
    coming.root.joinpath("skills").mkdir()
    setup = coming.run(*IMPORT, "--json").assert_ok().json["setup"]
    assert (setup["usable"], setup["builtin"]) == (4, True)
    assert "builtin" not in setup["files"]["cogcli.toml"]
    choice = setup["choices"]["text.content.summarize"]
    assert choice["text"] == "python_short"
    assert "the shipped binding" in choice["reason"]
    apply(coming, setup)
    done = coming.run("run", "text.short", "-p", "text=One. Two.", "-q").assert_ok()
    assert done.json == {"summary": "short: One. Two."}
