"""Test cases of skills: found, read strictly, run through the engine, judged (docs/reference/test-case.md)."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from support.project import Project

from cogcli.app.checks.registry_check import check_registry
from cogcli.app.settings import Settings
from cogcli.authoring.skill_test_files import record_case, update_cases
from cogcli.authoring.skill_tests import CaseResults, RequestedCases, find_cases, run_cases
from cogcli.authoring.verification.check_result import CheckResult
from cogcli.base.errors import CogcliError, UsageError
from cogcli.base.yaml.reader import parse

pytestmark = pytest.mark.sampled(4)

ORDER = "inputs: {order_id: ord_1}\n"
READ = "shop.order.read: [{output: {total: 240, late: true}}]"
SEND = "shop.mail.send: [{output: {sent: true}}]"
GATE = "shop.mail.gate: [{output: {allowed: true}}]"
STUBS = f"stubs:\n  {READ}\n  {SEND}\n  {GATE}\n"


class Shop:
    """A project with one skill: it reads an order, writes a mail behind a gate if the order is late."""

    def __init__(self, root: Path, *, trusted: bool = False) -> None:
        self.project = Project(root)
        self.environ = {"HOME": str(self.project.home)} | (
            {"COGCLI_TRUST_PROJECT": "1"} if trusted else {}
        )
        self.project.write("cogcli.toml", "")
        self.project.write(
            "services/local/shop.yaml",
            "id: shop\nkind: openapi\nbase_url: https://shop.example\nauth_ref: TOKEN\n",
        )
        order = "{order_id: {type: string, required: true}}"
        self.capability(
            "shop.order.read",
            order,
            "{total: {type: number, required: true}, late: {type: boolean}}",
            "false",
        )
        self.capability(
            "shop.mail.send",
            order,
            "{sent: {type: boolean, required: true}}",
            "true",
            "safety: {mandatory_pre_gates: [{capability: shop.mail.gate, on_fail: require_human}]}\n",
        )
        self.capability(
            "shop.mail.gate",
            order,
            "{allowed: {type: boolean, required: true}, reason: {type: string}}",
            "false",
        )
        self.project.skill(
            "shop.remind",
            REMIND,
            inputs=order,
            outputs="{total: {type: number}, sent: {type: boolean}}",
        )

    def capability(self, id: str, inputs: str, outputs: str, effects: str, extra: str = "") -> None:
        self.project.write(
            f"capabilities/{id}.yaml",
            f'id: {id}\nversion: "1.0.0"\ndescription: Does it.\ninputs: {inputs}\noutputs: {outputs}\n'
            f"properties: {{side_effects: {effects}}}\n{extra}".encode(),
        )
        name, fields = id.replace(".", "_"), [word.strip("{ ") for word in outputs.split(":")[:1]]
        self.project.write(
            f"bindings/local/{id}/{name}.yaml",
            f"id: {name}\ncapability: {id}\nservice: shop\nprotocol: openapi\noperation: {name}\n"
            f"request: {{order_id: input.order_id}}\nresponse: {{{fields[0]}: response.x}}\n"
            "metadata: {method: POST, retry_count: 1}\n",
        )

    def case(self, text: str, name: str = "case") -> None:
        self.project.write(
            f"skills/local/shop/remind/tests/{name}.yaml", dedent(text).lstrip("\n").encode()
        )

    @property
    def settings(self) -> Settings:
        return Settings({}, self.environ, base=str(self.project.root))

    def found(self, *words: str) -> RequestedCases:
        return find_cases(self.settings, words)

    def tested(self, *words: str) -> CaseResults:
        found = self.found(*words)
        assert not found.problems, found.problems
        return run_cases(self.settings, found.cases, jobs=2)

    def result(self, text: str) -> CheckResult:
        """The result of a single case."""
        self.case(text)
        (result,) = self.tested().results.results
        return result


REMIND = """
- id: order
  uses: shop.order.read
  input: {order_id: inputs.order_id}
  output: {total: outputs.total, late: vars.late}
- id: mail
  uses: shop.mail.send
  input: {order_id: inputs.order_id}
  output: {sent: outputs.sent}
  config: {condition: vars.late, retry: {max_attempts: 3, backoff_seconds: 50}}
"""


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are kept lie in the directory of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def failed(result: CheckResult) -> dict[str, str]:
    """The failed checks of a result."""
    return {check.name: check.detail for check in result.checks if not check.passed}


# -- passing ----------------------------------------------------------------------------------------------------------


def test_stubs_need_neither_trust_nor_variables_and_a_passed_case_leaves_nothing(
    shop: Shop,
) -> None:
    result = shop.result(f"{ORDER}{STUBS}expect: {{outputs: {{total: 240.0, sent: true}}}}\n")
    assert (result.status, result.id, result.episode) == ("passed", "shop.remind/case", "")


def test_two_runs_give_the_same_events(shop: Shop) -> None:
    shop.case(
        f"{ORDER}{STUBS}seed: 7\nnow: 2026-01-31T09:00:00Z\nexpect: {{outputs: {{total: 1}}}}\n"
    )
    logs = [
        Path(shop.tested().results.results[0].episode, "events.jsonl").read_bytes().splitlines()
        for _ in range(2)
    ]
    assert logs[0] == logs[1]
    assert b'"2026-01-31T09:00:00' in logs[0][0]


def test_the_first_group_of_answers_that_fits_gives_them_one_by_one(shop: Shop) -> None:
    result = shop.result(
        f"""
        {ORDER}stubs:
          {READ}
          {GATE}
          shop.mail.send:
            - {{when: {{order_id: other}}, output: {{sent: false}}}}
            - {{error: {{code: call.transport}}}}
            - {{error: {{code: call.transport}}}}
            - {{error: {{code: call.overloaded}}}}
            - {{output: {{sent: true}}}}
        expect:
          outputs: {{sent: true}}
          calls: {{shop.mail.send: 5, shop.order.read: 1}}
        """.replace("\n        ", "\n")
    )
    assert failed(result) == {
        "calls of shop.mail.send": "expected 5, found 4",
        "stub 1 of shop.mail.send": "no call used it",
    }


def test_a_gate_that_wants_a_person_is_approved_or_ends_the_case_with_5(shop: Shop) -> None:
    stubs = STUBS.replace("allowed: true", "allowed: false, reason: who knows")
    assert (
        shop.result(
            f"{ORDER}{stubs}approve: [shop.mail.gate]\nexpect: {{outputs: {{sent: true}}}}\n"
        ).status
        == "passed"
    )
    assert shop.result(f"{ORDER}{stubs}approve: [shop.mail.send]\n").status == "passed"
    waits = shop.result(
        f"{ORDER}{STUBS}expect: {{exit_code: 5, code: safety.confirmation, steps: {{mail: pending}}}}\n".replace(
            "allowed: true", "allowed: false"
        ).replace("  shop.mail.send: [{output: {sent: true}}]", "  shop.mail.send: []")
    )
    assert waits.status == "passed", failed(waits)


def test_inputs_that_do_not_fit_are_an_outcome_like_any_other(shop: Shop) -> None:
    text = f"inputs: {{order_id: 3}}\n{STUBS}expect: {{exit_code: 2, code: input.type}}\n"
    assert shop.result(text).status == "passed"


def test_every_op_holds_and_fails(shop: Shop) -> None:
    good = [
        "{path: outputs.total, op: equals, value: 240}",
        "{path: outputs.sent, op: type, value: boolean}",
        "{path: inputs.order_id, op: contains, value: ord}",
        "{path: inputs.order_id, op: length, value: 5}",
        "{path: outputs.total, op: min, value: 240}",
        "{path: outputs.total, op: max, value: 240.5}",
        "{path: inputs.order_id, op: matches, value: '^ord_[0-9]+$'}",
        "{path: inputs.order_id, op: verbatim_in, value: inputs.order_id}",
        "{path: outputs.total, op: one_of, value: [1, 240]}",
        "{path: vars.late, op: equals, value: true}",
    ]
    bad = [
        "{path: outputs.total, op: equals, value: true}",
        "{path: outputs.sent, op: type, value: number}",
        "{path: inputs.order_id, op: contains, value: xyz}",
        "{path: outputs.total, op: length, value: 3}",
        "{path: outputs.total, op: min, value: 241}",
        "{path: inputs.order_id, op: max, value: 3}",
        "{path: outputs.total, op: matches, value: '240'}",
        "{path: inputs.order_id, op: verbatim_in, value: no such order}",
        "{path: outputs.total, op: one_of, value: []}",
        "{path: outputs.totl, op: type, value: any}",
    ]
    head = f"{ORDER}{STUBS}expect:\n  checks:\n"
    assert shop.result(head + "".join(f"    - {line}\n" for line in good)).status == "passed"
    assert len(failed(shop.result(head + "".join(f"    - {line}\n" for line in bad)))) == len(bad)


# -- failing ----------------------------------------------------------------------------------------------------------


def test_a_failed_check_names_its_line_and_keeps_the_episode(shop: Shop) -> None:
    result = shop.result(f"{ORDER}{STUBS}expect:\n  outputs: {{total: 241, sent: true, sen: 1}}\n")
    assert failed(result) == {
        "outputs.total": "expected 241, found 240",
        "outputs.sen": "not given; did you mean `sent`?",
    }
    frame = next(check.frame for check in result.checks if check.name == "outputs.total")
    assert frame is not None
    assert (frame.line, frame.text[frame.column - 1 :][: frame.width]) == (7, "241")
    assert (result.code, Path(result.episode, "events.jsonl").is_file()) == ("test.failed", True)


def test_a_call_that_no_stub_fits_is_told(shop: Shop) -> None:
    text = f"{ORDER}{STUBS}".replace(
        "[{output: {total", "[{when: {order_id: ord_2}, output: {total"
    )
    result = shop.result(text)
    assert result.code == "test.unanswered"
    assert (
        failed(result)["a stub for shop.order.read"]
        == 'step `order` called it with {"order_id": "ord_1"}, none fits'
    )


@pytest.mark.parametrize(
    ("stubs", "code", "said"),
    [
        ([READ, GATE], "test.effects", "`shop.mail.send` has effects"),
        (
            [READ, SEND],
            "test.effects",
            "`shop.mail.gate` is served by `shop`, outside of this process",
        ),
        ([READ, SEND, GATE, "shop.mail.sent: []"], "test.stub", "did you mean `shop.mail.send`"),
        ([READ.replace("240", "many"), SEND, GATE], "test.stub", "`total`: expected number"),
        ([READ.replace("total: 240, ", ""), SEND, GATE], "test.stub", "`total`: required"),
        ([READ.replace("late", "lat"), SEND, GATE], "test.stub", "did you mean `late`"),
    ],
)
def test_what_does_not_fit_the_skill_fails_before_anything_runs(
    shop: Shop, stubs: list[str], code: str, said: str
) -> None:
    result = shop.result(f"{ORDER}stubs:\n{indent(chr(10).join(stubs), '  ')}\n")
    assert (result.status, result.code) == ("failed", code)
    assert said in result.reason
    assert result.episode == ""


def test_names_of_capabilities_are_checked_everywhere(shop: Shop) -> None:
    for line in ("expect: {calls: {shop.mail.sent: 0}}", "real: [shop.mail.sent]"):
        result = shop.result(f"{ORDER}{STUBS}{line}\n")
        assert (result.code, result.frame is not None) == ("test.stub", True)
        assert "did you mean `shop.mail.send`" in result.reason


def test_a_skill_with_errors_fails_its_cases_with_their_place(shop: Shop) -> None:
    shop.case(f"{ORDER}{STUBS}")
    file = shop.project.root / "skills/local/shop/remind/skill.yaml"
    file.write_text(
        file.read_text()
        .replace("vars.late}", "vars.lat}")
        .replace("uses: shop.mail.send", "usez: x")
    )
    (result,) = shop.tested().results.results
    assert (result.code, result.episode) == ("test.failed", "")
    assert "found 3 (key." in result.reason
    assert "skills/local/shop/remind/skill.yaml:" in result.reason
    capability = shop.project.root / "capabilities/shop.mail.gate.yaml"
    capability.write_text(capability.read_text().replace("version", "versions"))
    file.write_text(file.read_text().replace("usez: x", "uses: shop.mail.send"))
    (result,) = shop.tested().results.results
    assert "capabilities/shop.mail.gate.yaml has errors" in result.reason


def test_an_effect_in_a_nested_skill_is_seen(shop: Shop) -> None:
    steps = "- {id: all, uses: 'skill:shop.remind', input: {order_id: inputs.order_id}, output: {total: outputs.total}}"
    shop.project.skill(
        "shop.outer", steps, inputs="{order_id: {type: string}}", outputs="{total: {type: number}}"
    )
    shop.project.write(
        "skills/local/shop/outer/tests/a.yaml", f"{ORDER}stubs:\n  {READ}\n  {GATE}\n".encode()
    )
    shop.project.write(
        "skills/local/shop/outer/tests/b.yaml",
        f"{ORDER}{STUBS}expect: {{steps: {{all/mail: done}}}}\n".encode(),
    )
    results = shop.tested("shop.outer").results.results
    assert [(result.status, result.code) for result in results] == [
        ("failed", "test.effects"),
        ("passed", ""),
    ]


def test_real_calls_are_for_trusted_projects(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    text = f"{ORDER}stubs:\n  {SEND}\n  {GATE}\nreal: [shop.order.read]\nexpect: {{exit_code: 3, code: env.missing}}\n"
    refused, called = (Shop(tmp_path / name, trusted=name == "b").result(text) for name in "ab")
    assert (refused.code, called.status) == ("test.effects", "passed")
    assert "trusted project" in refused.reason


def test_files_of_elsewhere_are_refused(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text('{"order_id": "ord_1"}')
    shop.project.write("skills/local/shop/remind/tests/order.json", b'{"order_id": "ord_1"}')
    assert shop.result(f"inputs_file: order.json\n{STUBS}").status == "passed"
    (shop.project.root / "skills/local/shop/remind/tests/link.json").symlink_to(
        tmp_path / "order.json"
    )
    for name in ("../../../../../order.json", str(tmp_path / "order.json"), "link.json"):
        assert shop.result(f"inputs_file: {name}\n{STUBS}").code == "test.file"
    shop.project.write("skills/local/shop/remind/tests/note.md", b"x")
    given = f"inputs: {{order_id: {{$file: note.md}}}}\n{STUBS}"
    result = shop.result(
        f"{given}expect: {{checks: [{{path: inputs.order_id, op: matches, value: 'tests/note.md$'}}]}}\n"
    )
    assert result.status == "passed"


def test_unmet_needs_skip_a_case(shop: Shop) -> None:
    told = shop.result(f"{ORDER}{STUBS}needs: [network, model, extra.nothing, env.SHOP_KEY]\n")
    assert told.status == "skipped"
    assert all(
        part in told.reason
        for part in ("COGCLI_TEST_NETWORK=1", "a model", "extra nothing", "SHOP_KEY")
    )
    shop.environ |= {"COGCLI_TEST_NETWORK": "1", "SHOP_KEY": "x"}
    assert shop.result(f"{ORDER}{STUBS}needs: [network, env.SHOP_KEY]\n").status == "passed"


# -- reading ----------------------------------------------------------------------------------------------------------

UNREADABLE: dict[str, tuple[str, str]] = {
    "expects: {}": ("key.unknown", "did you mean `expect`"),
    "seed: many": ("value.type", "whole number"),
    "now: yesterday": ("value.range", "2026-01-31T09:00:00Z"),
    "now: 2026-02-30T09:00:00Z": ("value.range", "a day that there is"),
    "now: 0001-01-01T09:00:00Z": ("value.range", "2026-01-31T09:00:00Z"),
    "inputs: {}\ninputs_file: a.json": ("test.key", "`inputs_file`"),
    "recorded: ep\nstubs: {shop.order.read: []}": ("test.key", "`recorded`"),
    "seed: 1\ncases: [{}]": ("test.key", "`seed`"),
    "needs: [netwrk]": ("test.needs", "did you mean `network`"),
    "files: {../a.md: x}": ("test.file", "the name of a file"),
    "stubs: {shop.order.read: [{}]}": ("test.stub", "either"),
    "stubs: {shop.order.read: [{error: {code: call.transprt}}]}": (
        "test.stub",
        "did you mean `call.transport`",
    ),
    "expect: {checks: [{path: total, op: equals, value: 1}]}": ("test.check", "outputs.NAME"),
    "expect: {checks: [{path: outputs.total, op: equal, value: 1}]}": (
        "value.choice",
        "did you mean `equals`",
    ),
    "expect: {checks: [{path: outputs.total, op: length, value: 1.5}]}": ("test.check", "number"),
    "expect: {checks: [{path: outputs.total, op: matches, value: '(a'}]}": (
        "test.check",
        "pattern",
    ),
    "expect: {checks: [{path: outputs.total, op: type, value: text}]}": ("test.check", "no type"),
    "expect: {steps: {order: don}}": ("value.choice", "did you mean `done`"),
    "inputs: {": ("yaml.syntax", ""),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", UNREADABLE)
def test_a_file_that_is_no_case_is_told_with_its_place(shop: Shop, text: str) -> None:
    code, said = UNREADABLE[text]
    shop.case(text)
    shop.case(f"{ORDER}{STUBS}", "other")
    found = shop.found()
    (problem,) = found.problems
    assert (problem.code, problem.file) == (code, "skills/local/shop/remind/tests/case.yaml")
    assert problem.line > 0
    assert said in problem.summary_line
    assert [case.id for case in found.cases] == ["shop.remind/other"]


def test_words_name_skills_patterns_cases_and_paths(shop: Shop) -> None:
    shop.case("cases:\n- {}\n- {}\n", "two")
    shop.case("{}", "one")
    folder = shop.project.root / "skills/local/shop/remind"
    every = ["shop.remind/one", "shop.remind/two.1", "shop.remind/two.2"]
    named = {
        "shop.remind": every, "shop.*": every, "shop.remind/two.2": every[2:], "shop.remind/t*": every[1:],
        str(folder): every, str(folder / "skill.yaml"): every, str(folder / "tests/one.yaml"): every[:1],
    }  # fmt: skip
    for word, ids in named.items():
        assert [case.id for case in shop.found(word).cases] == ids, word
    assert [case.id for case in shop.found("shop.remind/two.1", "shop.remind/one").cases] == every[
        :2
    ]
    for word in ("shop.remnd", "shop.remind/three", str(folder / "tests/no.yaml"), "text.no-such"):
        with pytest.raises(UsageError):
            shop.found(word)


def test_without_words_only_the_cases_of_the_project_run(shop: Shop, tmp_path: Path) -> None:
    shop.case("{}")
    assert [case.id for case in shop.found().cases] == ["shop.remind/case"]
    assert shop.found("text.summarize").cases[0].skill_id == "text.summarize"
    with pytest.raises(CogcliError, match="no project"):
        find_cases(Settings({}, shop.environ, base=str(tmp_path)), ())


# -- recorded, coverage -----------------------------------------------------------------------------------------------


def test_a_recorded_episode_answers_by_step(shop: Shop) -> None:
    kept = shop.result(
        f"{ORDER}{STUBS}".replace(
            "[{output: {sent: true}}]", "[{error: {code: call.transport}}, {output: {sent: true}}]"
        )
        + "expect: {outputs: {total: 1}}\n"
    )
    folder = shop.project.root / "skills/local/shop/remind/tests/episode"
    Path(kept.episode).rename(folder)
    again = shop.result(
        "recorded: episode\nexpect: {outputs: {total: 240, sent: true}, calls: {shop.mail.send: 2}}\n"
    )
    assert again.status == "passed", failed(again)
    steps = REMIND.replace("id: order", "id: first")
    shop.project.skill(
        "shop.remind",
        steps,
        inputs="{order_id: {type: string}}",
        outputs="{total: {type: number}, sent: {type: boolean}}",
    )
    other = shop.result("recorded: episode\n")
    assert other.code == "test.unanswered"


def test_coverage_names_what_no_case_reached(shop: Shop) -> None:
    shop.case(f"{ORDER}{STUBS}")
    (entry,) = shop.tested().coverage.to_payload()
    assert entry == {
        "skill": "shop.remind",
        "steps": {"total": 2, "ran": 2, "missing": []},
        "branches": {"total": 2, "ran": 1, "missing": ["mail condition false"]},
        "error_paths": {
            "total": 2,
            "ran": 0,
            "missing": ["mail retry", "mail shop.mail.gate refuses"],
        },
    }
    failing = STUBS.replace("[{output: {sent", "[{error: {code: call.transport}}, {output: {sent")
    shop.case(
        f"{ORDER}{failing}".replace("allowed: true", "allowed: false")
        + "approve: [shop.mail.gate]\n",
        "b",
    )
    shop.case(
        f"{ORDER}{STUBS}".replace("late: true", "late: false")
        .replace(SEND, "shop.mail.send: []")
        .replace(GATE, "shop.mail.gate: []"),
        "c",
    )
    tested = shop.tested()
    assert [result.status for result in tested.results.results] == ["passed"] * 3
    (entry,) = tested.coverage.to_payload()
    assert [entry[kind]["missing"] for kind in ("steps", "branches", "error_paths")] == [[], [], []]


def test_what_a_case_stores_is_in_no_store_of_the_project(project: Project) -> None:
    project.write("cogcli.toml", "")
    project.run(
        "run", "memory.store-summary", "-p", "key=note", "-p", "text=It opens at ten."
    ).assert_ok()
    before = {path: path.read_bytes() for path in project.root.rglob("entries.db")}
    assert before
    settings = Settings({}, project.env, base=str(project.root))
    cases = find_cases(settings, ["memory.store-summary", "memory.retrieve-summary"]).cases
    assert {result.status for result in run_cases(settings, cases, jobs=1).results.results} == {
        "passed"
    }
    assert {path: path.read_bytes() for path in project.root.rglob("entries.db")} == before


def test_the_shipped_skills_have_two_cases_each_and_those_of_the_example_pass(
    ordinary_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of shipped skills are run by `tests/registry/test_registry_contracts.py`."""
    monkeypatch.setattr(tempfile, "tempdir", str(ordinary_path))
    root = Path(__file__).resolve().parents[3]
    for folder, least in ((root, 22), (root / "docs/examples/support-desk", 3)):
        settings = Settings({}, {"HOME": str(ordinary_path)}, base=str(folder))
        found = find_cases(settings, ())
        assert not found.problems
        assert len(found.cases) >= least
        per_skill: dict[str, Any] = {}
        for case in found.cases:
            per_skill.setdefault(case.skill_id, []).append(case.expect.exit_code)
        assert all(len(codes) >= 2 for codes in per_skill.values()), per_skill
    results = run_cases(settings, found.cases, jobs=2).results.results
    assert [(one.id, one.reason) for one in results if one.status == "failed"] == []


# -- cases that are written -------------------------------------------------------------------------------------------

SKILLS = "skills/local/shop/remind/tests"


def kept_run(shop: Shop, text: str) -> Path:
    """The episode of a case, kept because the case fails."""
    return Path(shop.result(f"{text}expect: {{exit_code: 99}}\n").episode)


def recorded(shop: Shop, episode: Path) -> dict[str, Any]:
    """The case that is made of an episode; it passes."""
    shop.project.root.joinpath(SKILLS, "case.yaml").unlink()
    made = record_case(shop.settings, str(episode))
    (result,) = shop.tested(made.id).results.results
    assert result.status == "passed", failed(result)
    value = parse((shop.project.root / made.file).read_bytes(), file=made.file).value
    assert value is not None
    return value


def test_a_case_is_made_of_an_episode_and_passes(shop: Shop) -> None:
    again = STUBS.replace("[{output: {sent", "[{error: {code: call.transport}}, {output: {sent")
    episode = kept_run(
        shop,
        f"{ORDER}{again}now: 2026-01-31T09:00:00Z\noptions: {{confirm: [shop.mail.send], keep_going: true}}\n",
    )
    value = recorded(shop, episode)
    assert value["options"] == {"confirm": ["shop.mail.send"], "keep_going": True}
    assert value["now"] == "2026-01-31T09:00:00Z"
    assert value["expect"] == {"outputs": {"total": 240, "sent": True}}
    assert [{*stub} - {"when"} for stub in value["stubs"]["shop.mail.send"]] == [
        {"error"},
        {"output"},
    ]
    with pytest.raises(UsageError) as caught:
        record_case(shop.settings, str(episode))
    assert caught.value.code == "output.exists"


def test_a_failed_run_and_an_approved_one_are_recorded_too(shop: Shop) -> None:
    stubs = STUBS.replace("allowed: true", "allowed: false")
    value = recorded(shop, kept_run(shop, f"{ORDER}{stubs}approve: [shop.mail.gate]\n"))
    assert value["approve"] == ["shop.mail.gate"]
    shop.project.root.joinpath(SKILLS, "ep_01hf7yat0000.yaml").unlink()
    refusing = STUBS.replace("[{output: {sent: true}}]", "[{error: {code: call.rejected}}]")
    value = recorded(shop, kept_run(shop, f"{ORDER}{refusing}"))
    assert value["expect"] == {"exit_code": 1, "code": "call.rejected", "steps": {"mail": "failed"}}


def test_answers_of_one_call_are_in_order_and_the_last_once(shop: Shop) -> None:
    read = "- {id: %s, uses: shop.order.read, input: {order_id: inputs.order_id}, output: {total: outputs.total}}\n"
    shop.project.skill(
        "shop.remind",
        "".join(read % name for name in "abcd"),
        inputs="{order_id: {type: string}}",
        outputs="{total: {type: number}}",
    )
    totals = ", ".join(f"{{output: {{total: {n}}}}}" for n in (1, 2, 1, 1))
    value = recorded(shop, kept_run(shop, f"{ORDER}stubs: {{shop.order.read: [{totals}]}}\n"))
    assert [stub["output"]["total"] for stub in value["stubs"]["shop.order.read"]] == [1, 2, 1]
    assert value["expect"]["outputs"] == {"total": 1}


def test_secrets_stay_masked_in_a_recorded_case(shop: Shop) -> None:
    steps = "- {id: a, uses: shop.order.read, input: {order_id: inputs.token}, output: {total: outputs.total}}"
    shop.project.skill(
        "shop.remind", steps, inputs="{token: {type: string}}", outputs="{total: {type: number}}"
    )
    episode = kept_run(
        shop, "inputs: {token: hunter2-hunter2}\nstubs: {shop.order.read: [{output: {total: 1}}]}\n"
    )
    shop.project.root.joinpath(SKILLS, "case.yaml").unlink()
    made = record_case(shop.settings, str(episode))
    assert "inputs" in made.masked
    assert "[masked]" in (shop.project.root / made.file).read_text()


def test_what_is_no_ended_run_of_a_skill_is_not_recorded(shop: Shop) -> None:
    stubs = STUBS.replace("allowed: true", "allowed: false").replace(
        "[{output: {sent: true}}]", "[]"
    )
    waits = kept_run(shop, f"{ORDER}{stubs}")
    with pytest.raises(UsageError, match="not run to its end"):
        record_case(shop.settings, str(waits))
    ended = kept_run(shop, f"{ORDER}{STUBS}")
    (shop.project.root / "skills/local/shop/remind/skill.yaml").unlink()
    with pytest.raises(CogcliError, match="no skill"):
        record_case(shop.settings, str(ended))


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ("a\x1b[31mb", "control character"),
        ("a\u202eb", "bidi control"),
        ("x" * 300_000, "bytes, at most"),
    ],
)
def test_a_value_that_no_file_may_hold_is_told_and_nothing_is_written(
    shop: Shop, order: str, reason: str
) -> None:
    step = "- {id: a, uses: text.content.normalize, input: {text: inputs.order_id}, output: {text: outputs.text}}"
    fields = "{%s: {type: string}}"
    shop.project.skill("shop.remind", step, inputs=fields % "order_id", outputs=fields % "text")
    given = shop.project.write("given.json", json.dumps({"order_id": order}))
    shop.project.run("run", "shop.remind", "--input", f"@{given}").assert_ok()
    with pytest.raises(
        UsageError, match=f"has a value that no case can hold: .*{reason}"
    ) as caught:
        record_case(shop.settings, "@last")
    assert caught.value.code == "usage.value"
    assert not (shop.project.root / SKILLS).exists()


def test_new_outputs_are_accepted_and_all_else_stays(shop: Shop) -> None:
    text = (
        f"# why\ncases:\n- inputs: {{order_id: ord_1}}\n{indent(STUBS, '  ')}  expect:\n"
        "    outputs: {total: 1, sent: true}   # in euros\n    steps: {mail: done}\n"
        f"- inputs: {{order_id: ord_1}}\n{indent(STUBS, '  ')}"
        "  expect: {outputs: {total: 2}, calls: {shop.mail.send: 2}}\n"
    )
    shop.case(text)
    found, tested = shop.found(), shop.tested()
    updated = update_cases(shop.settings, found.cases, tested)
    assert [(one.status, one.reason.partition(":")[0]) for one in updated.results] == [
        ("passed", ""),
        ("failed", "calls of shop.mail.send"),
    ]
    written = (shop.project.root / SKILLS / "case.yaml").read_text()
    assert written == text.replace("total: 1", "total: 240").replace("total: 2}", "total: 240}")
    (diff,) = updated.diffs
    assert "-    outputs: {total: 1, sent: true}   # in euros\n" in diff
    assert "+    outputs: {total: 240, sent: true}   # in euros\n" in diff
    assert not Path(tested.results.results[0].episode).exists()
    assert update_cases(shop.settings, found.cases[:0], tested).diffs == ()


def test_validate_reads_cases_too(shop: Shop) -> None:
    shop.case("expekt: {}")
    shop.case("{}", "good")
    shop.project.write("skills/local/shop/remind/tests/data/order.yaml", b"- 1")
    file = f"{SKILLS}/case.yaml"
    for paths in ((), ("skills",), (file,), (str(shop.project.root),)):
        found = check_registry(shop.settings, paths).problems
        assert [(one.file, one.code) for one in found if one.code == "key.unknown"] == [
            (file, "key.unknown")
        ]
    assert check_registry(shop.settings, (f"{SKILLS}/good.yaml",)).counts["cases"] == 1


# -- edges ------------------------------------------------------------------------------------------------------------


def test_an_expected_path_of_a_file_is_that_of_this_run(shop: Shop) -> None:
    echo = "- {id: a, uses: shop.order.read, input: {order_id: inputs.path}, output: {total: outputs.total}}"
    outputs = "{total: {type: number}, path: {type: string}}"
    shop.project.skill("shop.remind", echo, inputs="{path: {type: string}}", outputs=outputs)
    given = "inputs: {path: {$file: own.md}}\nfiles: {own.md: hello}\n"
    when = "stubs: {shop.order.read: [{when: {order_id: {$file: own.md}}, output: {total: 1}}]}\n"
    check = "expect: {checks: [{path: inputs.path, op: equals, value: {$file: own.md}}]}\n"
    assert shop.result(given + when + check).status == "passed"


def test_cases_whose_names_look_alike_have_a_directory_each(shop: Shop) -> None:
    for slug in ("remind", "remind-late"):
        shop.project.skill(
            f"shop.{slug}",
            REMIND,
            inputs="{order_id: {type: string}}",
            outputs="{total: {type: number}, sent: {type: boolean}}",
        )
    text = f"{ORDER}{STUBS}expect: {{exit_code: 9}}\n".encode()
    shop.project.write("skills/local/shop/remind/tests/late-x.yaml", text)
    shop.project.write("skills/local/shop/remind-late/tests/x.yaml", text)
    results = shop.tested().results.results
    assert len({result.episode for result in results}) == 2


def test_a_broken_configuration_fails_each_case_that_needs_it(shop: Shop) -> None:
    shop.project.write("cogcli.toml", 'timeout = "long"\n')
    shop.case(f"{ORDER}{STUBS}")
    with pytest.raises(CogcliError) as caught:
        shop.tested()
    assert caught.value.code == "config.key"


def test_a_skill_of_which_nothing_ran_is_in_the_coverage(shop: Shop) -> None:
    shop.case(f"inputs: {{order_id: 3}}\n{STUBS}expect: {{exit_code: 2}}\n")
    (entry,) = shop.tested().coverage.to_payload()
    assert entry["steps"] == {"total": 2, "ran": 0, "missing": ["order", "mail"]}


def test_a_secret_of_a_failed_check_is_masked(shop: Shop) -> None:
    steps = "- {id: a, uses: shop.order.read, input: {order_id: inputs.token}, output: {total: outputs.total}}"
    shop.project.skill(
        "shop.remind", steps, inputs="{token: {type: string}}", outputs="{total: {type: number}}"
    )
    text = "inputs: {token: hunter2-hunter2}\nstubs: {shop.order.read: [{output: {total: 1}}]}\nexpect: {checks: ["
    ops = "{path: inputs.token, op: length, value: 1}, {path: inputs.token, op: verbatim_in, value: x}"
    told = str(shop.result(f"{text}{ops}]}}\n").to_payload())
    assert "hunter2" not in told
    assert "[masked]" in told
