"""The registry's own checks: contracts, smoke, executability, coverage, stats, catalog
(docs/reference/command-line.md#registry-checks)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from support.project import Project

from cogcli.app.settings import Settings
from cogcli.authoring.contracts import ContractResults, check_contracts
from cogcli.authoring.executability import check_skills, measure_coverage
from cogcli.authoring.verification.contract import find_refusal_faults, write_files
from cogcli.base import extras
from cogcli.base.errors import UsageError
from cogcli.base.problems import ProblemsFound
from cogcli.declarations.call_records import AttemptMade, StepError
from cogcli.episode.run_history import StepHistory
from cogcli.specs.examples import is_inside

pytestmark = pytest.mark.sampled(6)

GOOD = "metadata: {examples: [{inputs: {text: ab}, outputs: {text: AB}, match: exact}]}\n"
BAD = "metadata: {examples: [{inputs: {text: ab}, outputs: {text: ba}, match: exact}]}\n"
EFFECTS = "properties: {side_effects: true}\n"


_numbers = count()


def write_module(project: Project, source: str) -> None:
    """The service `demo`, by a module of a name of its own: this process loads the modules of all tests."""
    name = f"shop_functions_{next(_numbers)}"
    service = f"id: demo\nkind: pythoncall\nmodule: {name}\nisolation: thread\n"
    project.write("services/local/demo.yaml", service)
    project.write(f"{name}.py", source)


@pytest.fixture
def shop(project: Project) -> Project:
    """A project with a service of its own, `demo`, that notes each call in a file."""
    calls = project.root / "calls"
    write_module(
        project,
        f"CALLS = {str(calls)!r}\n"
        "def upper(text):\n"
        "    with open(CALLS, 'a') as calls:\n"
        "        calls.write(text + '\\n')\n"
        "    return {'text': text.upper()}\n"
        "def lower(text):\n    return {'text': text.lower()}\n"
        "def broken(text):\n    raise RuntimeError('no')\n",
    )
    return project


def settings_of(project: Project, **environ: str) -> Settings:
    return Settings({}, project.env | environ, base=str(project.root))


def contracts(project: Project, *words: str, once: bool = False, **environ: str) -> ContractResults:
    return check_contracts(settings_of(project, **environ), words or ["shop.*"], once=once)


def statuses(found: ContractResults) -> dict[str, str]:
    return {each.result.id: each.result.status for each in found.checked}


def calls_of(project: Project) -> list[str]:
    file = project.root / "calls"
    return file.read_text().split() if file.exists() else []


def test_examples_are_called_and_wrong_inputs_are_refused_before_anything_is_called(
    shop: Project,
) -> None:
    shop.capability("shop.text.upper", "upper", extra=GOOD)
    checked = contracts(shop).checked[0].result
    assert [check.name for check in checked.checks] == [
        "example 1", "without `text`", "`text` of a wrong type",
    ]  # fmt: skip
    assert (checked.status, calls_of(shop)) == ("passed", ["ab"])


@pytest.mark.parametrize(
    ("function", "example"), [("upper", BAD), ("lower", GOOD), ("broken", GOOD)]
)
def test_a_call_that_gives_something_else_fails(shop: Project, function: str, example: str) -> None:
    shop.capability("shop.text.change", function, extra=example)
    checked = contracts(shop).checked[0].result
    assert checked.status == "failed"
    assert checked.reason.startswith("example 1: ")
    assert statuses(contracts(shop, once=True)) == {"shop.text.change": "failed"}


def test_what_is_called_although_it_must_be_refused_has_not_passed() -> None:
    for called, code in ((True, "input.contract"), (False, "call.rejected"), (False, "")):
        assert find_refusal_faults(refused_step(code, called=called))
    assert find_refusal_faults(refused_step("input.contract", called=False)) == []


def refused_step(code: str, *, called: bool) -> StepHistory:
    step = StepHistory("c0", "c0")
    step.status = "failed"
    step.error = StepError(code=code, message="no") if code else None
    attempt = AttemptMade(binding_id="b", service_id="s", status="failed", code=code, message="no")
    step.attempts = [attempt] if called else []
    return step


@pytest.mark.sampled(12)
def test_values_count_for_the_selected_binding_and_kinds_for_the_others(shop: Project) -> None:
    shop.capability("shop.text.upper", "upper", extra=GOOD)
    first = shop.root / "bindings/local/shop.text.upper/shop_text_upper.yaml"
    other = (
        first.read_text()
        .replace("id: shop_text_upper", "id: shop_other")
        .replace("upper\nrequest", "lower\nrequest")
    )
    shop.write("bindings/local/shop.text.upper/shop_other.yaml", other)
    shop.write(
        "policies/official_default_selection.yaml", "defaults: {shop.text.upper: shop_text_upper}\n"
    )
    checked = contracts(shop).checked[0].result
    assert checked.status == "passed"
    assert checked.checks[-1].name == "example 1, shop_other"
    shop.write("bindings/local/shop.text.upper/shop_other.yaml", other.replace("lower", "broken"))
    failed = contracts(shop).checked[0].result
    assert (failed.status, failed.reason.partition(":")[0]) == ("failed", "example 1, shop_other")
    assert statuses(contracts(shop, once=True)) == {"shop.text.upper": "passed"}


def test_nothing_with_effects_of_its_own_is_called(shop: Project) -> None:
    shop.capability("shop.text.send", "upper", extra=GOOD)
    spec = shop.root / "capabilities/shop.text.send.yaml"
    spec.write_text(spec.read_text().replace("properties: {side_effects: false}\n", EFFECTS))
    found = contracts(shop).checked[0]
    assert (found.result.status, [need.kind for need in found.needs]) == ("skipped", ["effects"])
    assert not calls_of(shop)
    real = check_contracts(settings_of(shop), ["shop.*"], real=["shop.text.send"])
    assert (statuses(real), calls_of(shop)) == ({"shop.text.send": "passed"}, ["ab"])


def test_what_examples_store_is_not_in_the_store_of_the_project(shop: Project) -> None:
    found = statuses(contracts(shop, "memory.*"))
    assert found == dict.fromkeys(
        ("memory.entry.retrieve", "memory.entry.store", "memory.vector.search"), "passed"
    )
    assert not [path for path in shop.root.rglob("*") if path.name == "entries.db"]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("reason", "status"), [("unsupported", "skipped"), ("bad-data", "failed")])
def test_what_a_machine_cannot_keep_apart_is_a_need_and_no_failure(
    shop: Project, reason: str, status: str
) -> None:
    write_module(
        shop,
        "from cogcli.sdk import Refused\n"
        f"def refuse(text):\n    raise Refused({reason!r}, 'there are no walls', 'run it elsewhere')\n",
    )
    service = shop.root / "services/local/demo.yaml"
    service.write_text(service.read_text().replace("isolation: thread", "isolation: process"))
    shop.capability(
        "shop.text.run",
        "refuse",
        extra=f"safety: {{scope_constraints: [sandboxed_execution]}}\n{GOOD}",
    )
    found = contracts(shop).checked[0]
    assert found.result.status == status
    assert [(need.kind, need.text, need.cure) for need in found.needs] == (
        [("isolation", "there are no walls", "run it elsewhere")] if status == "skipped" else []
    )


@pytest.mark.sampled(24)
def test_an_untrusted_service_a_missing_variable_and_no_example_are_needs(shop: Project) -> None:
    shop.capability("shop.text.upper", "upper", extra=GOOD)
    shop.capability("shop.text.plain", "upper")
    shop.capability("shop.text.call", "upper", extra=GOOD)
    binding = shop.root / "bindings/local/shop.text.call/shop_text_call.yaml"
    binding.write_text(
        binding.read_text()
        .replace("service: demo", "service: api")
        .replace("pythoncall", "openapi")
    )
    api = "id: api\nkind: openapi\nbase_url: https://api.example\nauth_ref: API_KEY\nmetadata: {purpose: %s}\n"
    shop.write("services/local/api.yaml", api % "notes")

    def needs(**environ: str) -> dict[str, list[str]]:
        found = contracts(shop, **environ).checked
        return {
            each.result.id.rpartition(".")[2]: [need.kind for need in each.needs] for each in found
        }

    assert needs() == {"call": ["service"], "plain": ["example"], "upper": []}
    assert needs(COGCLI_TRUST_PROJECT="0")["upper"] == ["trust"]
    assert needs(API_KEY="k")["call"] == ["service"], "it is there, but outside"
    shop.write("services/local/api.yaml", api % "model")
    assert needs()["call"] == ["model"]
    shop.write("services/local/api.yaml", "id: api\nkind: openapi\nbase_url: https://api.example\n")
    assert needs()["call"] == ["web"]


class _Api(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"text": "AB"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def api(project: Project) -> Iterator[None]:
    """The service `api` of the project."""
    with HTTPServer(("127.0.0.1", 0), _Api) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        project.write(
            "services/local/api.yaml",
            f"id: api\nkind: openapi\nbase_url: {address}\nnetwork: private\n",
        )
        yield
        server.shutdown()
        thread.join()


def test_what_is_outside_is_called_where_the_network_may_be_used(shop: Project) -> None:
    shop.capability("shop.text.call", "upper", extra=GOOD)
    binding = shop.root / "bindings/local/shop.text.call/shop_text_call.yaml"
    binding.write_text(
        binding.read_text()
        .replace("service: demo", "service: api")
        .replace("pythoncall", "openapi")
    )
    with api(shop):
        asked = statuses(contracts(shop)), statuses(contracts(shop, COGCLI_TEST_NETWORK="1"))
    assert [*asked[0].values(), *asked[1].values()] == ["skipped", "passed"]


@pytest.mark.sampled(24)
def test_an_extra_that_a_binding_names_and_that_is_not_installed_is_a_need(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.capability("shop.text.upper", "upper", extra=GOOD)
    binding = shop.root / "bindings/local/shop.text.upper/shop_text_upper.yaml"
    binding.write_text(binding.read_text() + "metadata: {extra: pdf}\n")
    assert statuses(contracts(shop)) == {"shop.text.upper": "passed"}
    monkeypatch.setitem(extras.EXTRAS, "pdf", ("no_such_module",))
    extras.missing_module.cache_clear()
    found = contracts(shop).checked[0]
    assert [(need.kind, need.cure) for need in found.needs] == [
        ("extra", "pip install 'cogcli[pdf]'")
    ]
    allowed = {
        "outputs": "{allowed: {type: boolean, required: true}}",
        "response": "{allowed: response.text}",
    }
    shop.capability("shop.text.allow", "upper", **allowed)
    gate_binding = shop.root / "bindings/local/shop.text.allow/shop_text_allow.yaml"
    gate_binding.write_text(gate_binding.read_text() + "metadata: {extra: pdf}\n")
    gate = "safety: {mandatory_pre_gates: [{capability: shop.text.allow, on_fail: block}]}\n"
    shop.capability("shop.text.gated", "upper", extra=GOOD + gate)
    gated = contracts(shop, "shop.text.gated").checked[0]
    assert gated.result.reason.startswith("needs an extra: it needs the extra `pdf`")
    shop.skill(
        "shop.shout",
        "- {id: up, uses: shop.text.upper, input: {text: inputs.text}, output: {text: outputs.text}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )
    shop.write("skills/local/shop/shout/tests/wrong.yaml", "inputs: {}\nexpect: {exit_code: 2}\n")
    shouted = check_skills(settings_of(shop), ["shop.shout"]).checked[0]
    assert [(need.kind, need.cure) for need in shouted.needs] == [
        ("extra", "pip install 'cogcli[pdf]'")
    ]
    assert "shop.shout" not in shop.run("skills", "ls", "--usable").assert_ok().out
    plan = (
        shop.run("run", "shop.shout", "-p", "text=a", "--plan", "--json")
        .assert_exit(3)
        .json["plan"]
    )
    assert [need["kind"] for need in plan["needs"]["missing"]] == ["extra"]
    assert "an extra" in shop.run("doctor").out
    extras.missing_module.cache_clear()


def test_files_of_an_example_are_written_for_it_alone(shop: Project, tmp_path: Path) -> None:
    write_module(
        shop,
        "def read(path):\n    with open(path) as file:\n        return {'text': file.read(), 'at': path}\n",
    )
    shop.capability(
        "shop.file.read", "read", inputs="{path: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}, at: {type: string}}", request="{path: input.path}",
        response="{text: response.text, at: response.at}",
        extra="metadata:\n  examples:\n    - files: {a/b.txt: one, c.bin: {base64: dHdv}}\n"
        "      inputs: {path: {$file: a/b.txt}}\n      outputs: {text: one, at: {$file: a/b.txt}}\n"
        "      match: exact\n    - files: {c.bin: {base64: dHdv}}\n      inputs: {path: {$file: c.bin}}\n"
        "      outputs: {text: two}\n      match: exact\n",
    )  # fmt: skip
    found = contracts(shop).checked[0].result
    assert found.status == "passed", found.reason
    outside = {"../out": "x", "/out": "x", "ok": 7}
    write_files(str(tmp_path / "none"), outside)
    assert not (tmp_path / "none").exists()
    assert [is_inside(name) for name in ("a", "a/b", "./a", "..", "../a", "/a", "a/../../b", "", "a\0")] == [
        True, True, True, False, False, False, False, False, False,
    ]  # fmt: skip
    file = shop.root / "capabilities/shop.file.read.yaml"
    file.write_text(
        file.read_text().replace("c.bin: {base64: dHdv}}", "../c.bin: {base64: '?'}}", 1)
    )
    codes = [p["code"] for p in shop.run("validate", str(file), "--json").json["problems"]]
    assert codes == ["example.contract", "example.contract"]


def test_where_specs_have_errors_nothing_can_be_told(shop: Project) -> None:
    shop.capability("shop.text.upper", "upper", extra=GOOD)
    shop.write("capabilities/shop.text.torn.yaml", "id: shop.text.torn\n")
    with pytest.raises(ProblemsFound):
        contracts(shop)
    assert shop.run("registry", "contracts", "shop.*").code == 3


def test_a_word_that_names_nothing_is_refused(shop: Project) -> None:
    shop.capability("shop.text.upper", "upper", extra=GOOD)
    with pytest.raises(UsageError):
        contracts(shop, "shp.*")


def shout(project: Project, case: str = "", uses: str = "shop.text.upper") -> None:
    project.capability(uses, "upper", extra=GOOD)
    project.skill(
        "shop.shout",
        f"- {{id: up, uses: {uses}, input: {{text: inputs.text}}, output: {{text: outputs.text}}}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )
    if case:
        project.write("skills/local/shop/shout/tests/cases.yaml", case)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("case", "status", "kinds"),
    [
        ("inputs: {text: a}\nexpect: {outputs: {text: A}}\n", "passed", []),
        ("inputs: {text: a}\nexpect: {outputs: {text: B}}\n", "failed", []),
        ("inputs: {}\nexpect: {exit_code: 2}\n", "skipped", ["case"]),
        ("needs: [env.SHOP]\ninputs: {text: a}\n", "skipped", ["service"]),
        ("", "skipped", ["case"]),
    ],
)
def test_a_skill_ran_where_a_case_brings_it_to_a_good_end(
    shop: Project, case: str, status: str, kinds: list[str]
) -> None:
    shout(shop, case)
    found = check_skills(settings_of(shop), ["shop.*"]).checked[0]
    assert (found.result.status, [need.kind for need in found.needs]) == (status, kinds)


def test_a_skill_whose_service_is_stubbed_has_not_run(shop: Project) -> None:
    shout(shop, "inputs: {text: a}\nstubs: {shop.text.upper: [{output: {text: A}}]}\n")
    binding = shop.root / "bindings/local/shop.text.upper/shop_text_upper.yaml"
    binding.write_text(
        binding.read_text()
        .replace("service: demo", "service: api")
        .replace("pythoncall", "openapi")
    )
    shop.write("services/local/api.yaml", "id: api\nkind: openapi\nbase_url: https://api.example\n")
    found = check_skills(settings_of(shop), ["shop.*"]).checked[0]
    assert (found.result.status, [need.kind for need in found.needs]) == ("skipped", ["web"])


@pytest.mark.sampled(12)
def test_with_the_network_a_stub_for_what_is_outside_is_still_no_run(shop: Project) -> None:
    stubbed = "{inputs: {text: a}, stubs: {shop.text.upper: [{output: {text: AB}}]}}"
    real = "{needs: [network], inputs: {text: a}, real: [shop.text.upper]}"
    shout(shop, f"cases: [{stubbed}]\n")
    binding = shop.root / "bindings/local/shop.text.upper/shop_text_upper.yaml"
    binding.write_text(
        binding.read_text()
        .replace("service: demo", "service: api")
        .replace("pythoncall", "openapi")
    )
    with api(shop):
        settings = settings_of(shop, COGCLI_TEST_NETWORK="1")
        found = check_skills(settings, ["shop.*"]).checked[0]
        assert (found.result.status, [need.kind for need in found.needs]) == ("skipped", ["case"])
        shop.write("skills/local/shop/shout/tests/cases.yaml", f"cases: [{stubbed}, {real}]\n")
        assert check_skills(settings, ["shop.*"]).checked[0].result.status == "passed"


@pytest.mark.sampled(24)
@pytest.mark.slow
def test_the_commands_answer_with_a_line_and_write_reports(shop: Project) -> None:
    shout(shop, "inputs: {text: a}\nexpect: {outputs: {text: A}}\n")
    shop.capability("shop.text.plain", "upper")
    done = shop.run(
        "registry", "contracts", "shop.*", "--report", "junit:c.xml", "--report", "md:c.md"
    ).assert_ok()
    assert done.out.splitlines() == [
        "needs an example that runs: shop.text.plain",
        "1/2 contracts: 1 need an example that runs",
    ]
    assert 'name="without `text`"' in (shop.root / "c.xml").read_text()
    assert "| skipped | shop.text.plain |" in (shop.root / "c.md").read_text()
    counts = shop.run("registry", "smoke", "shop.*", "--json").assert_ok().json["counts"]
    assert counts == {"total": 2, "passed": 1, "failed": 0, "needs": {"example": 1}}
    assert shop.run("registry", "executability", "shop.*").assert_ok().out == "1/1 skills ran\n"
    shop.capability("shop.text.plain", "upper", extra=BAD)
    failed = shop.run("registry", "contracts", "shop.*").assert_exit(1)
    assert failed.out.endswith("1/2 contracts: 1 failed\n")
    shop.run("run", "shop.shout", "-p", "text=a").assert_ok()
    stats = shop.run("registry", "stats", "--json").assert_ok().json["stats"]
    assert stats["calls"][0]["capability"] == "shop.text.upper"
    assert stats["calls"][0]["calls"] == 1
    assert stats["episodes"] == {"read": 1, "unreadable": 0}
    catalog = json.loads(shop.run("registry", "catalog").assert_ok().out)
    own = next(entry for entry in catalog["skills"] if entry["id"] == "shop.shout")
    assert [one["capability"] for one in own["bindings"]] == ["shop.text.upper"]
    assert own["needs"] == []
    assert [*catalog] == ["skills", "capabilities", "bindings", "services"]


@pytest.mark.slow
def test_what_a_stub_answered_did_not_run(shop: Project) -> None:
    shout(shop, "inputs: {text: a}\nstubs: {shop.text.upper: [{output: {text: A}}]}\n")
    spec = shop.root / "capabilities/shop.text.upper.yaml"
    spec.write_text(spec.read_text().replace(GOOD, ""))
    shop.capability("shop.text.lower", "upper", extra=GOOD)
    shop.skill("shop.call", "- {id: call, uses: shop.text.call, input: {text: a}, output: {}}")
    call = "stubs: {shop.text.call: [{output: {text: A}}]}\n"
    shop.write("skills/local/shop/call/tests/case.yaml", call)
    shop.capability("shop.text.call", "upper")
    binding = shop.root / "bindings/local/shop.text.call/shop_text_call.yaml"
    binding.write_text(
        binding.read_text()
        .replace("service: demo", "service: api")
        .replace("pythoncall", "openapi")
    )
    shop.write("services/local/api.yaml", "id: api\nkind: openapi\nbase_url: https://api.example\n")
    missing = {
        kind: each["missing"]
        for kind, each in measure_coverage(settings_of(shop, COGCLI_BUILTIN="0")).counts.items()
    }
    own = {kind: [id for id in ids if id.startswith("shop")] for kind, ids in missing.items()}
    assert own == {
        "capabilities": ["shop.text.call", "shop.text.upper"],
        "bindings": ["shop_text_call", "shop_text_upper"],
        "skills": ["shop.call"],
    }
