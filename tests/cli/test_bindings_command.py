"""`bindings explain` and `activate`, and the lists of capabilities, bindings and services."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(8)

COGCLI = str(Path(sys.executable).parent / "cogcli")
CAP = "demo.text.upper"
ACTIVE = ".agent-skills/active_bindings.json"
GREET = ("run", "demo.greet", "-p", "text=hi")

SECOND = f"bindings/local/{CAP}/second.yaml"
NEEDY = "id: needy\nkind: openapi\nbase_url: https://a.example\nauth_ref: NO_TOKEN\n"
BEHIND = "{fallback_binding_id: second}"


def binding(
    id: str, *, service: str = "demo", operation: str = "upper", metadata: str = "{}"
) -> str:
    return (
        f"id: {id}\ncapability: {CAP}\nservice: {service}\nprotocol: pythoncall\noperation: {operation}\n"
        f"request: {{text: input.text}}\nresponse: {{text: response.text}}\nmetadata: {metadata}\n"
    )


@pytest.fixture
def shop(demo: Any) -> Any:
    """The demo project, where one capability has four bindings and a policy that names the first."""
    demo.write(
        "policies/official_default_selection.yaml", f"defaults: {{{CAP}: demo_text_upper}}\n"
    )
    demo.write(SECOND, binding("second"))
    demo.write(
        f"bindings/local/{CAP}/needy.yaml",
        binding("needy", service="needy").replace("pythoncall", "openapi"),
    )
    demo.write("services/local/needy.yaml", NEEDY)
    demo.write(f".agent-skills/bindings/candidate/{CAP}/new.yaml", binding("new", operation="fail"))
    return demo


def active(project: Any) -> Any:
    return json.loads((project.root / ACTIVE).read_text())


def test_the_explanation_tells_every_binding_and_why_it_is_not_chosen(shop: Any) -> None:
    body = shop.run("bindings", "explain", CAP, "--json").assert_ok().json["explanation"]
    assert (body["selection_source"], body["primary_binding_id"]) == ("policy", "demo_text_upper")
    assert [row["rule"] for row in body["considered"]] == ["flag", "active", "override", "policy"]
    told = {row["binding_id"]: (row["state"], row["reason"]) for row in body["bindings"]}
    assert told["demo_text_upper"] == (
        "chosen",
        "named in policies/official_default_selection.yaml",
    )
    assert told["second"] == ("not named", "policy names `demo_text_upper`")
    assert told["new"] == ("not named", "a candidate, used only when it is named itself")
    assert told["needy"][0] == "unusable"
    assert "NO_TOKEN" in told["needy"][1]
    new = next(row for row in body["bindings"] if row["binding_id"] == "new")
    assert (new["layer"], new["channel"]) == ("host", "candidate")
    assert new["file"] == f".agent-skills/bindings/candidate/{CAP}/new.yaml"
    text = shop.run("bindings", "explain", CAP).assert_ok().out
    assert text.startswith(f"{CAP} → demo_text_upper  by rule `policy`\n")
    assert "only       " in text
    assert all(reason in text for _, reason in told.values())


def test_the_explanation_shows_what_a_later_layer_replaced(shop: Any) -> None:
    shop.write(f".agent-skills/bindings/local/{CAP}/mine.yaml", binding("demo_text_upper"))
    shop.write(
        ".agent-skills/services.yaml",
        "services:\n  demo: {kind: pythoncall, module: demo_services, isolation: thread}\n",
    )
    body = shop.run("bindings", "explain", CAP, "--json").assert_ok().json["explanation"]
    row = body["bindings"][0]
    assert (row["binding_id"], row["layer"], row["service_layer"]) == (
        "demo_text_upper",
        "host",
        "host",
    )
    assert row["shadows"] == [
        {"layer": "project", "file": f"bindings/local/{CAP}/demo_text_upper.yaml"}
    ]
    assert row["service_shadows"] == [{"layer": "project", "file": "services/local/demo.yaml"}]
    assert "services/local/demo.yaml" in shop.run("bindings", "explain", CAP).assert_ok().out


def test_where_nothing_can_be_chosen_the_explanation_says_so_and_fails(shop: Any) -> None:
    (shop.root / "policies/official_default_selection.yaml").unlink()
    result = shop.run("bindings", "explain", CAP, "--json").assert_exit(3).json
    assert result["error"]["code"] == "binding.ambiguous"
    assert result["explanation"]["considered"][-1]["reason"].startswith("there are 3: ")
    assert {row["state"] for row in result["explanation"]["bindings"]} == {"not named", "unusable"}
    piped = shop.run("bindings", "explain", CAP).assert_exit(3)
    assert piped.out.startswith(f"{CAP} → nothing\n")
    assert "error[binding.ambiguous]" in piped.err


def test_a_choice_that_cannot_be_read_is_told_at_its_place(shop: Any) -> None:
    shop.write(ACTIVE, f'{{"{CAP}": "second",}}')
    (problem,) = shop.run("bindings", "explain", CAP, "--json").assert_exit(3).json["problems"]
    assert (problem["code"], problem["file"], problem["line"]) == ("json.syntax", ACTIVE, 1)


def test_a_fallback_is_explained_by_what_it_stands_behind(shop: Any) -> None:
    shop.write(
        f"bindings/local/{CAP}/demo_text_upper.yaml",
        binding("demo_text_upper", metadata=BEHIND),
    )
    told = shop.run("bindings", "explain", CAP, "--json").json["explanation"]["bindings"]
    assert (told[1]["binding_id"], told[1]["state"]) == ("second", "fallback")
    shop.write("policies/official_default_selection.yaml", f"defaults: {{{CAP}: needy}}\n")
    needy = (shop.root / f"bindings/local/{CAP}/needy.yaml").read_text()
    shop.write(
        f"bindings/local/{CAP}/needy.yaml",
        needy.replace("metadata: {}", "metadata: {fallback_binding_id: second}"),
    )
    told = (
        shop.run("bindings", "explain", CAP, "--json").assert_ok().json["explanation"]["bindings"]
    )
    assert [(row["binding_id"], row["state"]) for row in told[:2]] == [
        ("needy", "unusable"),
        ("second", "chosen"),
    ]
    assert told[1]["reason"] == "the fallback of `needy`, which cannot be used"


def test_a_binding_can_be_asked_for_by_its_own_id_and_an_unknown_name_is_told(shop: Any) -> None:
    assert (
        shop.run("bindings", "explain", "second", "--json")
        .assert_ok()
        .json["explanation"]["capability_id"]
        == CAP
    )
    unknown = shop.run("bindings", "explain", "demo.text.uper").assert_exit(3)
    assert "error[capability.not-found]" in unknown.err
    assert f"next: cogcli bindings explain {CAP}" in unknown.err


def test_activating_writes_the_choice_and_the_next_run_makes_it(shop: Any) -> None:
    done = shop.run("bindings", "activate", CAP, "second").assert_ok()
    assert done.out == f"{ACTIVE}\n"
    assert "before `demo_text_upper`" in done.err
    assert active(shop) == {CAP: "second"}
    assert oct((shop.root / ACTIVE).stat().st_mode)[-3:] == "644"
    shop.run(*GREET).assert_ok()
    events = (shop.episode / "events.jsonl").read_text().splitlines()
    assert json.loads(events[0])["payload"]["selection"][CAP]["selection_source"] == "active"
    shop.run("validate").assert_ok()


def test_activating_keeps_what_else_the_file_says(shop: Any) -> None:
    shop.write(ACTIVE, '{"demo.text.score": "demo_text_score", "x-why": "ticket 7"}\n').chmod(0o640)
    body = shop.run("bindings", "activate", CAP, "second", "--json").assert_ok().json
    assert body["file"] == ACTIVE
    assert body["explanation"] == {
        "capability_id": CAP, "binding_id": "second", "before": "demo_text_upper", "written": True,
    }  # fmt: skip
    assert list(active(shop).items()) == [
        ("demo.text.score", "demo_text_score"), ("x-why", "ticket 7"), (CAP, "second"),
    ]  # fmt: skip
    assert oct((shop.root / ACTIVE).stat().st_mode)[-3:] == "640"
    before = (shop.root / ACTIVE).stat().st_mtime_ns
    again = shop.run("bindings", "activate", CAP, "second").assert_ok()
    assert "active already" in again.err
    assert (shop.root / ACTIVE).stat().st_mtime_ns == before


def test_an_alias_is_written_as_the_capability_it_stands_for(shop: Any) -> None:
    file = shop.root / f"capabilities/{CAP}.yaml"
    file.write_text(file.read_text() + "aliases: [demo.old]\n")
    shop.write(ACTIVE, '{"demo.old": "demo_text_upper"}\n')
    shop.run("bindings", "activate", "demo.old", "second").assert_ok()
    assert active(shop) == {CAP: "second"}


def test_a_candidate_is_activated_by_name_and_said_to_be_one(shop: Any) -> None:
    done = shop.run("bindings", "activate", CAP, "new").assert_ok()
    assert "it is a candidate" in done.err
    assert active(shop) == {CAP: "new"}


@pytest.mark.parametrize(
    ("change", "words", "code", "said"),
    [
        ({}, (CAP, "secnd"), "binding.ineligible", "`secnd`: there is no such binding"),
        ({}, (CAP, "demo_text_score"), "binding.ineligible", "it binds `demo.text.score`"),
        ({}, (CAP, "needy"), "env.missing", "`needy`: service `needy`: environment variable `NO_TOKEN`"),
        ({}, ("demo.text.uper", "second"), "capability.not-found", ""),
        ({SECOND: "id: second\n"}, (CAP, "second"), "binding.ineligible", f"its file {SECOND} has errors"),
        ({SECOND: binding("second", operation="absent")}, (CAP, "second"), "service.module", ""),
        ({SECOND: binding("second").replace("text: response.text", "x: response.text")},
         (CAP, "second"), "response.unmapped", ""),
        ({ACTIVE: '{"a.b": 1,}'}, (CAP, "second"), "json.syntax", ""),
        ({ACTIVE: '{"a.b": 1}'}, (CAP, "second"), "value.type", ""),
        ({".agent-skills/overrides.yaml": "overrides: 3\n"}, (CAP, "second"), "value.type", ""),
        ({".agent-skills/services.yaml": "services: 3\n"}, (CAP, "second"), "value.type", ""),
    ],
)  # fmt: skip
def test_what_could_not_be_called_is_not_activated(
    shop: Any, change: dict[str, str], words: Any, code: str, said: str
) -> None:
    for path, text in change.items():
        shop.write(path, text)
    before = (shop.root / ACTIVE).read_bytes() if (shop.root / ACTIVE).exists() else None
    result = shop.run("bindings", "activate", *words, "--json").assert_exit(3).json
    codes = {result["error"]["code"], *(problem["code"] for problem in result.get("problems", ()))}
    assert code in codes
    assert said in result["error"]["message"]
    assert ACTIVE not in result["error"]["message"]  # it does not say so yet
    assert ((shop.root / ACTIVE).read_bytes() if (shop.root / ACTIVE).exists() else None) == before


def test_only_what_can_be_called_is_proposed(shop: Any) -> None:
    def asked(name: str) -> tuple[str, list[str]]:
        refused = shop.run("bindings", "activate", CAP, name, "--json").assert_exit(3).json
        return refused["error"]["hint"], refused["error"].get("next", [])

    why = f"\nwhy not `needy`: cogcli bindings explain {CAP}"
    every = f"`{CAP}` has `demo_text_upper`, `new`, `second`{why}"
    assert asked("zzzz")[0] == asked("demo_text_score")[0] == every
    hint, further = asked("secnd")
    assert (hint, further) == (
        "did you mean `second`?",
        [f"cogcli bindings activate {CAP} second --json"],
    )
    assert "did you mean" not in asked("neddy")[0]
    shop.write(SECOND, binding("needy_2", service="needy").replace("pythoncall", "openapi"))
    shop.write(ACTIVE, json.dumps({CAP: "needy_3"}))
    (problem,) = [
        each for each in shop.run("validate", "--json").json["problems"] if each["file"] == ACTIVE
    ]
    assert "activate" in problem["hint"]
    assert f"bindings activate {CAP} needy" not in problem["hint"]


def test_an_untrusted_project_activates_nothing_that_starts_its_own_code(shop: Any) -> None:
    del shop.env["COGCLI_TRUST_PROJECT"]
    refused = shop.run("bindings", "activate", CAP, "second").assert_exit(3)
    assert "service.untrusted" in refused.err
    assert not (shop.root / ACTIVE).exists()


def test_a_wrong_entry_for_the_same_capability_is_what_activating_repairs(shop: Any) -> None:
    shop.write(ACTIVE, json.dumps({CAP: "gone"}))
    shop.run(*GREET).assert_exit(3)
    shop.run("bindings", "activate", CAP, "second").assert_ok()
    shop.run(*GREET).assert_ok()


def test_without_a_project_there_is_nothing_to_activate_in(tmp_path: Path, project: Any) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    words = ("bindings", "activate", "text.keyword.extract", "python_text_keyword_extract_stems")
    assert "error[project.none]" in project.run("-C", str(empty), *words).assert_exit(3).err
    assert list(empty.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_told(shop: Any) -> None:
    (shop.root / ACTIVE).mkdir()
    refused = shop.run("bindings", "activate", CAP, "second").assert_exit(3)
    assert "active_bindings.json" in refused.err


def test_of_choices_made_at_once_none_is_lost(shop: Any) -> None:
    pairs = [(CAP, "second"), ("demo.text.score", "demo_text_score"),
             ("text.keyword.extract", "python_text_keyword_extract_stems")]  # fmt: skip
    running = [
        subprocess.Popen([COGCLI, "-q", "bindings", "activate", *pair], cwd=shop.root, env=shop.env,
                         stdout=subprocess.DEVNULL)
        for pair in pairs
    ]  # fmt: skip
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert active(shop) == dict(pairs)


@pytest.mark.sampled(16)
def test_lists_are_filtered_by_domain_channel_and_use(shop: Any) -> None:
    def ids(*words: str) -> list[str]:
        return [line.split("\t")[0] for line in shop.run(*words).assert_ok().out.splitlines()]

    assert ids("capabilities", "ls", "--domain", "demo") == ["demo.text.score", CAP]
    assert ids("bindings", "ls", "--channel", "candidate") == ["new"]
    assert "needy" in ids("bindings", "ls", "--domain", "demo")
    assert "needy" not in ids("bindings", "ls", "--domain", "demo", "--usable")
    assert ids("services", "ls", "--domain", "demo", "--usable") == ["demo"]
    assert ids("capabilities", "ls", "--channel", "candidate") == [CAP]
    assert ids("services", "ls", "--channel", "local") == ["demo", "needy"]
    (shop.root / "policies/official_default_selection.yaml").unlink()
    assert ids("capabilities", "ls", "--domain", "demo", "--usable") == ["demo.text.score"]
    assert ids("bindings", "search", "candidate") == ["new"]
    assert ids("services", "search", "a.example") == ["needy"]


def test_one_spec_is_shown_with_its_layer_and_what_it_replaces(shop: Any) -> None:
    shop.write(f".agent-skills/bindings/local/{CAP}/mine.yaml", binding("second", operation="fail"))
    spec = shop.run("bindings", "show", "second", "--json").assert_ok().json["spec"]
    assert (spec["operation"], spec["layer"], spec["chosen"]) == ("fail", "host", False)
    assert spec["shadows"] == [{"layer": "project", "file": f"bindings/local/{CAP}/second.yaml"}]
    service = shop.run("services", "show", "needy", "--json").assert_ok().json["spec"]
    assert service["variables"] == [{"name": "NO_TOKEN", "set": False}]
    assert service["bindings"] == ["needy"]
    capability = shop.run("capabilities", "show", CAP).assert_ok().out
    assert "second" in capability
    assert "string  required" in capability
    source = shop.run("bindings", "show", "second", "--source").assert_ok().out
    assert source.startswith("id: second\n")
    shop.write(f".agent-skills/bindings/local/{CAP}/mine.yaml", "id: second\n")
    assert "key.missing" in shop.run("bindings", "show", "second").assert_exit(3).err
    assert "did you mean `needy`" in shop.run("services", "show", "nedy").assert_exit(2).err


def test_values_behind_secret_names_are_not_shown(shop: Any) -> None:
    shop.write(
        "services/local/needy.yaml",
        "id: needy\nkind: openapi\nbase_url: https://a.example\n"
        "metadata: {headers: {X-Api-Key: hunter2-hunter2, Accept: text/plain}}\n",
    )
    for words in (("services", "show", "needy"), ("services", "show", "needy", "--json")):
        done = shop.run(*words).assert_exit(3)
        assert "secret.literal" in done.out + done.err
        assert "hunter2" not in done.out + done.err


def test_skills_and_services_are_explained_by_their_choices(shop: Any) -> None:
    body = shop.run("skills", "explain", "demo.greet", "--json").assert_ok().json["explanation"]
    assert [row["capability_id"] for row in body["capabilities"]] == [CAP]
    service = shop.run("services", "explain", "needy", "--json").assert_ok().json["explanation"]
    (row,) = service["bindings"]
    assert (row["binding_id"], row["state"]) == ("needy", "unusable")
    shop.write(ACTIVE, json.dumps({CAP: "needy"}))
    broken = shop.run("skills", "explain", "demo.greet", "--json").assert_exit(3).json
    assert broken["explanation"]["capabilities"][0]["usable"] is False
    assert "env.missing" in {problem["code"] for problem in broken["problems"]}
    assert "nothing" in shop.run("skills", "explain", "demo.greet").assert_exit(3).out
