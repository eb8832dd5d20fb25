"""What there is to run, on a screen: which of it can run here, what it calls, and a line to paste
(docs/reference/command-line.md#inventory)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import sample
from typing import Any

import pytest
from support.examples import LONG
from support.project import Project

pytestmark = pytest.mark.sampled(12)

SHIPPED = Path(__file__).parents[2]


def as_a_shell_reads(lines: list[str]) -> list[list[str]]:
    """The words that a shell gives to the command of each pasted line."""
    script = "cogcli() { printf '%s\\037' \"$@\"; printf '\\036'; }\n" + "\n".join(lines)
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    return [part.split("\037")[:-1] for part in done.stdout.split("\036")[:-1]]


def rows(project: Any, *command: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in project.run(*command, "--format", "jsonl").assert_ok().out.splitlines()
    ]


def run_lines(project: Any, ids: list[str]) -> list[list[str]]:
    details = [project.run("skills", "show", id, "--json").assert_ok().json["spec"] for id in ids]
    screens = [project.run("skills", "show", id).out.splitlines()[-1] for id in ids]
    assert [screen.removeprefix("run     ") for screen in screens] == [
        spec["run"] for spec in details
    ]
    return as_a_shell_reads([spec["run"] for spec in details])


ELSEWHERE = {
    *(
        "api.json-check",
        "web.digest",
        "web.fetch-classify",
        "web.fetch-summary",
        "web.page-chunk-and-embed",
    ),
    "release.notes",
}
"""Skills whose line is about a page of the web, or about the repository one is in."""


def test_the_run_line_of_every_shipped_skill_runs_as_it_is_pasted(
    ordinary_path: Path, warm_cache: Path
) -> None:
    project = Project(ordinary_path, warm_cache)
    here = [
        row["id"]
        for row in rows(project, "skills", "ls")
        if row["usable"] and row["id"] not in ELSEWHERE
    ]
    assert len(here) >= 45
    for words in run_lines(project, here if LONG else sample(here, 15)):
        project.run(*words, "-q").assert_ok()


TYPES = """
{text: {type: string, required: true}, count: {type: integer, required: true}, part: {type: number, required: true},
 flag: {type: boolean, required: true}, rows: {type: array, required: true}, map: {type: object, required: true},
 anything: {type: any, required: true}, word: {type: string, required: true, enum: ["it's", b]},
 code: {type: string, required: true, schema: {pattern: "^[A-Z]{3}$"}}, api_key: {type: string, required: true},
 left: {type: string}, given: {type: integer, required: true, default: 3},
 least: {type: integer, required: true, schema: {minimum: 7}}}
"""


def test_a_run_line_has_a_value_of_its_type_for_each_required_input(demo: Any) -> None:
    demo.skill(
        "demo.types",
        "- {id: one, uses: demo.text.upper, input: {text: inputs.text}, output: {text: outputs.text}}",
        inputs=TYPES.strip().replace("\n", ""),
        outputs="{text: {type: string, required: true}}",
    )
    (words,) = run_lines(demo, ["demo.types"])
    assert not {"left", "given"} & {word.partition("=")[0] for word in words}
    demo.run(*words).assert_ok()


def test_an_example_of_the_author_is_the_run_line(demo: Any) -> None:
    file = demo.root / "skills/local/demo/greet/skill.yaml"
    example = 'metadata: {tags: [hello], examples: [prose, {inputs: {txt: a}}, {inputs: {text: "a\\nb", times: 5}}]}\n'
    file.write_text(file.read_text() + example)
    (words,) = run_lines(demo, ["demo.greet"])
    assert words == ["run", "demo.greet", "-p", 'text:="a\\nb"', "-p", "times=5"]
    assert json.loads(demo.run(*words).assert_ok().out) == {"text": "A\nB"}


@pytest.mark.sampled(24)
@pytest.mark.parametrize("kind", ["skills", "capabilities", "bindings", "services"])
def test_the_sign_is_that_of_usable(demo: Any, kind: str) -> None:
    demo.write(
        "bindings/local/demo.text.score/demo_text_score.yaml",
        "id: demo_text_score\ncapability: demo.text.score\nservice: none\nprotocol: pythoncall\noperation: fail\n"
        "request: {text: input.text}\nresponse: {text: response.text}\n",
    )
    listed, usable = (rows(demo, kind, "ls", *flags) for flags in ((), ("--usable",)))
    assert [row for row in listed if row["usable"]] == usable
    assert len(listed) > len(usable)  # of the services that of language models, which has no key
    tsv = [line.split("\t") for line in demo.run(kind, "ls").out.splitlines()]
    assert [(line[0], line[-2], line[-1]) for line in tsv] == [
        (row["id"], str(row["usable"]).lower(), row["why_not"] or "") for row in listed
    ]
    screen = demo.run(kind, "ls", "--all", env={"COGCLI_FORCE_TTY": "60"}).out.splitlines()[1:]
    signs = [line[0] for line in screen if not line.endswith("─")]
    assert signs == ["✓" if row["usable"] else "✗" for row in listed]
    assert [row for row in listed if row["why_not"]] == [row for row in listed if not row["usable"]]
    for row in listed:
        if row["id"].startswith("demo"):
            assert (
                demo.run(kind, "show", row["id"], "--json").json["spec"]["usable"] == row["usable"]
            )


def test_a_skill_shows_what_is_called_for_each_of_its_capabilities(demo: Any) -> None:
    (demo.root / "bindings/local/demo.text.score/demo_text_score.yaml").unlink()
    lines = demo.run("skills", "show", "demo.review").assert_ok().out.splitlines()
    at = lines.index("bindings")
    assert lines[at + 1 : at + 3] == [
        "  ✗ demo.text.score  nothing can be called",
        "  ✓ demo.text.upper  demo_text_upper",
    ]
    assert "usable  no: cogcli skills explain demo.review" in lines


def test_a_capability_is_run_by_a_skill_that_uses_it(demo: Any) -> None:
    spec = demo.run("capabilities", "show", "demo.text.upper", "--json").json["spec"]
    assert spec["skills"] == ["demo.greet", "demo.review"]
    (words,) = as_a_shell_reads([spec["run"]])
    demo.run(*words).assert_ok()
    assert (
        demo.run("capabilities", "show", "demo.text.upper")
        .out.splitlines()[-1]
        .endswith(spec["run"])
    )


@pytest.mark.sampled(24)
def test_a_tag_of_a_spec_or_of_what_it_is_for_selects(demo: Any) -> None:
    for name, tag in (
        ("capabilities/demo.text.upper.yaml", "loud"),
        ("skills/local/demo/greet/skill.yaml", "hello"),
    ):
        file = demo.root / name
        file.write_text(file.read_text() + f"metadata: {{tags: [{tag}]}}\n")
    found = {
        kind: [row["id"] for row in rows(demo, kind, "ls", "--tag", "loud")]
        for kind in ("skills", "capabilities", "bindings", "services")
    }
    assert found == {
        "skills": [],
        "capabilities": ["demo.text.upper"],
        "bindings": ["demo_text_upper"],
        "services": ["demo"],
    }
    assert [row["id"] for row in rows(demo, "skills", "ls", "--tag", "hello")] == ["demo.greet"]


def test_a_list_that_nothing_fits_says_what_was_looked_for(demo: Any) -> None:
    total = len(rows(demo, "skills", "ls"))
    for mode in ({}, {"COGCLI_FORCE_TTY": "80"}):
        result = demo.run(
            "skills", "ls", "--domain", "demo", "--tag", "no such", env=mode
        ).assert_ok()
        assert (result.out, result.err) == (
            "",
            f"no skill fits `--domain demo --tag no such`; there are {total}\n",
        )
    assert demo.run("skills", "ls", "--tag", "x", "-q").err == ""
    assert demo.run("bindings", "search", "xyz", "abc").err.startswith(
        "no binding fits `xyz abc`; there are "
    )


def test_episodes_that_no_filter_fits_are_counted(demo: Any) -> None:
    for word in ("a", "b"):
        demo.run("run", "demo.greet", "-p", f"text={word}", "-q").assert_ok()
    for flags in (
        ("--outcome", "error"),
        ("--skill", "demo.review"),
        ("--tag", "a=b", "--tag", "c=d"),
        ("--tag", "a=b", "--since", "1m"),
    ):
        for mode in ((), ("--json",), ("--format", "jsonl")):
            result = demo.run("ls", *flags, *mode).assert_ok()
            assert (
                result.err
                == f"no episode fits `{' '.join(flags)}`; there are 2 in .cogcli/episodes\n"
            )
        assert demo.run("ls", *flags, "-q").err == ""
    assert demo.run("ls", "--outcome", "ok").assert_ok().err == ""
    empty = ("ls", "--runs-dir", "nowhere")
    assert demo.run(*empty, "--outcome", "ok").assert_ok().err == "there is no episode in nowhere\n"
    assert (
        demo.run(*empty, env={"COGCLI_FORCE_TTY": "80"}).err == "there is no episode in nowhere\n"
    )
    assert demo.run(*empty).err == ""


@pytest.mark.parametrize("format", ["text", "jsonl", "tsv", "csv", "md"])
def test_episodes_are_listed_in_every_format_of_lists(demo: Any, format: str) -> None:
    demo.run("run", "demo.greet", "-p", "text=a", "-q").assert_ok()
    assert demo.episode.name in demo.run("ls", "--format", format).assert_ok().out


def test_a_list_says_in_a_column_why_a_spec_cannot_be_used(demo: Any) -> None:
    row = next(row for row in rows(demo, "skills", "ls") if row["id"] == "audio.transcribe-summary")
    assert (row["usable"], row["why_not"]) == (False, "env OPENAI_API_KEY")
    screen = demo.run("skills", "ls", env={"COGCLI_FORCE_TTY": "80"}).out.splitlines()
    assert screen[0].split() == ["id", "description", "why", "not"]
    (line,) = [line for line in screen if "audio.transcribe-summary" in line]
    assert line.startswith("✗")
    assert line.endswith("env OPENAI_API_KEY")
    own = demo.run("skills", "ls", "--domain", "demo", env={"COGCLI_FORCE_TTY": "80"}).out
    assert "why not" not in own


def test_the_extra_that_is_not_installed_is_named(
    demo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cogcli.specs.eligibility.missing_module", lambda extra: "x" if extra == "pdf" else ""
    )
    found = {row["id"]: row["why_not"] for row in rows(demo, "bindings", "ls")}
    assert "extra pdf" in found.values()
    assert {why for id, why in found.items() if id.startswith("demo")} == {None}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["skills", "capabilities", "bindings", "services"])
def test_the_specs_of_the_project_come_first_and_shipped_ones_below_a_line(
    demo: Any, kind: str
) -> None:
    layers = [row["layer"] for row in rows(demo, kind, "ls")]
    own = layers.index("built-in")
    assert own > 0
    assert set(layers[own:]) == {"built-in"}
    screen = demo.run(kind, "ls", env={"COGCLI_FORCE_TTY": "80"}).out.splitlines()
    assert [number for number, line in enumerate(screen) if line.startswith("shipped ─")] == [
        own + 2
    ]
    assert "shipped ─" not in demo.run(kind, "ls").out


@pytest.mark.parametrize("kind", ["skills", "services"])
def test_every_list_warns_of_a_file_that_cannot_be_read(demo: Any, kind: str) -> None:
    demo.write("skills/local/demo/torn/skill.yaml", "id: [\n")
    for command in ((kind, "ls"), (kind, "search", "demo")):
        listed = demo.run(*command).assert_ok()
        assert (
            "warning[specs.invalid]: skills/local/demo/torn/skill.yaml:2 is left out: "
            in listed.err
        )
        assert "next: cogcli validate" in listed.err
        assert [each["code"] for each in demo.run(*command, "--json").json["warnings"]] == [
            "specs.invalid"
        ]
        assert demo.run(*command, "-q").err == ""


def test_many_unreadable_files_are_counted(demo: Any) -> None:
    for number in range(7):
        demo.write(f"skills/local/demo/torn{number}/skill.yaml", "id: [\n")
    err = demo.run("skills", "ls").assert_ok().err
    assert err.count("is left out") == 5
    assert "(and 2 more files)" in err


def test_a_sample_fits_the_name_of_its_input(demo: Any) -> None:
    demo.skill(
        "demo.names",
        "- {id: one, uses: demo.text.upper, input: {text: inputs.page_url}, output: {text: outputs.text}}",
        inputs=(
            "{page_url: {type: string, required: true}, target_language: {type: string, required: true},"
            " key: {type: string, required: true}, url: {type: string, required: true, enum: [a, b]}}"
        ),
        outputs="{text: {type: string, required: true}}",
    )
    (words,) = run_lines(demo, ["demo.names"])
    assert words[3::2] == [
        "page_url=https://example.com/",
        "target_language=en",
        "key=example",
        "url=a",
    ]
    demo.run(*words).assert_ok()


def test_no_shipped_sample_is_the_file_of_its_own_skill(demo: Any) -> None:
    lines = [
        demo.run("skills", "show", row["id"], "--json").json["spec"]["run"]
        for row in rows(demo, "skills", "ls")
    ]
    assert [line for line in lines if "skill.yaml" in line] == []
    sentence = "A first sentence. A second one."
    assert [
        line for line in lines if f"url={sentence}" in line or f"language='{sentence}" in line
    ] == []
