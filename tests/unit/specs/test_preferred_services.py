"""The rule `prefer`, between `override` and `policy` (docs/reference/binding.md#selection)."""

from __future__ import annotations

from typing import Any

from test_binding_selection import binding, catalog, service

from cogcli.specs.catalog import Catalog
from cogcli.specs.host_overrides import ActiveChoice, HostChoices, Override
from cogcli.specs.selection import Selection, SelectionOptions, select

MODEL = service("model", base_url="https://a.example", auth_ref="KEY")
OTHER = service("other", base_url="https://b.example")
LOCAL, ON_MODEL = binding("local"), binding("on_model", "model", "openapi")
KEY = {"KEY": "secret-key"}


def chosen(found: Catalog, *prefer: str, environ: dict[str, str] = KEY, **binds: str) -> Selection:
    flags = {"a.b": binds["bind"]} if binds else {}
    return select(found, "a.b", SelectionOptions(binds=flags, environ=environ, prefer=prefer))


def of(selection: Selection) -> tuple[str, str]:
    return selection.selection_source, selection.primary_binding_id


def test_a_preferred_service_decides_before_the_policy() -> None:
    found = catalog(MODEL, LOCAL, ON_MODEL, defaults="local")
    assert of(chosen(found)) == ("policy", "local")
    assert of(chosen(found, "model")) == ("prefer", "on_model")


def test_without_a_preference_the_rule_is_not_asked_and_leaves_no_trace() -> None:
    found = chosen(catalog(LOCAL, defaults="local"))
    assert "prefer" not in [each.rule for each in found.considered]


def test_flag_active_and_override_come_first() -> None:
    found = catalog(MODEL, LOCAL, ON_MODEL, defaults="local")
    assert of(chosen(found, "model", bind="local")) == ("flag", "local")
    host = HostChoices(active={"a.b": ActiveChoice("local", "active.json", "a.b")})
    assert of(chosen(found._replace(host=host), "model")) == ("active", "local")
    host = HostChoices(
        overrides={"a.b": Override("local", None, "replace", "overrides.yaml", 0, 0)}
    )
    assert of(chosen(found._replace(host=host), "model")) == ("override", "local")


def test_where_it_may_not_be_called_the_next_rule_decides_and_the_explanation_says_why() -> None:
    found = chosen(catalog(MODEL, LOCAL, ON_MODEL, defaults="local"), "model", environ={})
    assert of(found) == ("policy", "local")
    told = next(each for each in found.considered if each.rule == "prefer")
    assert (told.binding_id, told.chosen) == ("on_model", False)
    assert "`model` is preferred, but" in told.reason
    assert "`KEY` is not set" in told.reason


def test_a_service_without_a_binding_for_it_is_passed_over() -> None:
    found = chosen(catalog(MODEL, LOCAL, ON_MODEL, defaults="local"), "nothing")
    assert of(found) == ("policy", "local")
    assert (
        "service `nothing` is preferred, but has no binding for it" in found.considered[-2].reason
    )


def test_the_first_preferred_service_that_may_be_called_decides() -> None:
    found = catalog(
        MODEL, OTHER, LOCAL, ON_MODEL, binding("on_other", "other", "openapi"), defaults="local"
    )
    assert of(chosen(found, "other", "model")) == ("prefer", "on_other")
    assert of(chosen(found, "model", "other", environ={})) == ("prefer", "on_other")


def test_a_candidate_is_never_preferred() -> None:
    candidate: Any = binding("on_model", "model", "openapi", channel="candidate")
    assert of(chosen(catalog(MODEL, LOCAL, candidate, defaults="local"), "model")) == (
        "policy",
        "local",
    )


def test_its_fallback_is_in_the_chain() -> None:
    failing = binding("on_model", "model", "openapi", fallback_binding_id="local")
    assert chosen(catalog(MODEL, LOCAL, failing, defaults="local"), "model").usable == (
        "on_model",
        "local",
    )
