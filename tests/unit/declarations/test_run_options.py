"""What is derived from the declarations of the options of a run: flags, settings, arguments, members of the log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cogcli.app.settings.config import KEYS, variable
from cogcli.cli.typer_app import load
from cogcli.declarations import options
from cogcli.declarations.api_options import Options
from cogcli.declarations.options import (
    OPTIONS,
    PANELS,
    Option,
    RunOptions,
    options_from_log,
)
from cogcli.specs.case_shape import CASES

PAGE = Path(__file__).parents[3] / "docs/reference/execution.md"
OF_A_RUN = [option for option in OPTIONS.values() if option.logged.startswith("options.")]
GIVEN: dict[str, Any] = {
    "tags": {"by": "a test"},
    "seed": 7,
    "trust_level": "elevated",
    "confirm": ["b.two", "a.one"],
    "keep_going": True,
    "max_workers": 2,
    "timeout": 9.0,
    "step_timeout": 3.0,
    "bind": {"a.one": "first"},
    "conformance": "strict",
    "prefer": ["second", "first"],
    "no_fallback": True,
    "approval_ttl": 60.0,
    "exclusive": "nightly",
    "pack": "support-desk@4.0.0",
    "with_packs": ["house-rules@1.0.0"],
    "intent": "refund",
    "user": "ana",
    "safety_mode": "network",
    "shadow": True,
    "budget": {"tool_calls": 3},
}


def started(options: RunOptions) -> dict[str, Any]:
    """The members of `run.started` that record options."""
    return {
        "options": options.to_payload(),
        "policy": options.policy or None,
        "seed": options.seed,
        "tags": options.tags,
    }


@pytest.mark.parametrize("option", OPTIONS.values(), ids=list(OPTIONS))
def test_every_option_has_all_that_is_derived(option: Option) -> None:
    flag = next(each for each in load("run").params if option.flag in each.opts)
    assert (flag.name, flag.help, flag.metavar or "") == (option.name, option.help, option.metavar)
    assert flag.rich_help_panel == option.group
    assert option.group in PANELS
    assert option.default in (None, "") or option.type.accepts(option.default)
    assert option.type.expected
    assert (option.name in KEYS) is option.setting
    assert option.name in Options.__annotations__
    assert set(Options.__annotations__) == set(OPTIONS)


def test_a_setting_has_the_type_and_the_default_of_its_option() -> None:
    for option in (each for each in OPTIONS.values() if each.setting):
        key = KEYS[option.name]
        assert key.type is option.type
        assert key.default == option.default or (key.default, option.default) == ((), [])
        assert variable(option.name) == f"COGCLI_{option.name.upper()}"


def test_a_log_gives_back_what_it_records() -> None:
    given = RunOptions(**GIVEN)
    found = options_from_log(started(given))
    assert found == RunOptions(**{**GIVEN, "confirm": ["a.one", "b.two"]})
    assert set(GIVEN) == {option.name for option in OPTIONS.values() if option.logged}
    assert options_from_log({}) == options_from_log(started(RunOptions())) == RunOptions()


def test_the_members_of_the_log_keep_their_order_and_the_newer_ones_are_left_out() -> None:
    names = [
        "trust_level",
        "confirmed_capabilities",
        "fail_fast",
        "max_workers",
        "step_timeout_seconds",
        "timeout_seconds",
        "binds",
        "required_conformance_profile",
    ]
    assert list(RunOptions().to_payload()) == names
    assert list(RunOptions(**GIVEN).to_payload()) == [
        *names,
        "prefer",
        "no_fallback",
        "approval_ttl_s",
        "exclusive",
    ]
    assert json.dumps(RunOptions().to_payload()["binds"]) == "{}"


def test_a_case_takes_what_its_declaration_says_under_the_name_of_the_flag() -> None:
    keys = CASES.keys["options"].shape.keys
    assert set(keys) == {
        option.flag.removeprefix("--").replace("-", "_")
        for option in OPTIONS.values()
        if options.CASES in option.also
    }


def test_the_reference_names_the_options_that_the_log_records() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition('<a id="options"></a>')[2].partition("<a id=")[0]
    told = set(re.findall(r"`([a-z_]+)`", section))
    assert {option.logged.partition(".")[2] for option in OF_A_RUN} <= told
