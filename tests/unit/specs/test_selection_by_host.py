"""The rules of selection that follow from host overrides, in their order."""

from __future__ import annotations

from typing import Any

import pytest
from test_binding_selection import NONE, binding, catalog, refused, service

from cogcli.specs.catalog import Catalog
from cogcli.specs.host_overrides import ActiveChoice, HostChoices, Override
from cogcli.specs.selection import BY_NAME, RULES, SelectionOptions, select

NEEDY = service("needy", base_url="https://a.example", auth_ref="TOKEN")
READY = SelectionOptions(environ={"TOKEN": "secret-token"})


def override(mode: str = "replace", **named: str) -> Override:
    return Override(named.get("binding"), named.get("service"), mode, "overrides.yaml", 0, 0)


def hosted(
    found: Catalog, *, active: str | None = None, overridden: Override | None = None, **more: Any
) -> Catalog:
    host = HostChoices(
        {"a.b": ActiveChoice(active, "active_bindings.json", "a.b")} if active else {},
        {"a.b": overridden} if overridden else {},
    )
    return found._replace(host=host, **more)


def four() -> Catalog:
    return catalog(
        binding("by-flag"), binding("by-active"), binding("by-override"), binding("by-policy"),
        defaults="by-policy",
    )  # fmt: skip


def test_the_rules_are_asked_in_the_order_of_the_specification() -> None:
    found = hosted(four(), active="by-active", overridden=override(binding="by-override"))
    flagged = select(found, "a.b", SelectionOptions(binds={"a.b": "by-flag"}))
    assert (flagged.selection_source, flagged.primary_binding_id) == ("flag", "by-flag")
    assert select(found, "a.b", NONE).selection_source == "active"
    without_active = hosted(four(), overridden=override(binding="by-override"))
    assert select(without_active, "a.b", NONE).selection_source == "override"
    assert select(hosted(four()), "a.b", NONE).selection_source == "policy"
    assert select(catalog(binding("one")), "a.b", NONE).selection_source == "only"


def test_the_explanation_names_every_rule_that_was_asked_and_the_file_that_decided() -> None:
    found = hosted(four(), overridden=override(binding="by-override"))
    assert [(c.rule, c.binding_id, c.reason) for c in select(found, "a.b", NONE).considered] == [
        ("flag", None, "not given"),
        ("active", None, "names none"),
        ("override", "by-override", "named in overrides.yaml"),
    ]
    preferring = SelectionOptions(prefer=("other",))
    asked = [c.rule for c in select(catalog(binding("one")), "a.b", preferring).considered]
    assert tuple(asked) == RULES


@pytest.mark.parametrize("rule", BY_NAME)
def test_a_binding_that_somebody_named_is_used_or_it_is_an_error(rule: str) -> None:
    found = catalog(
        NEEDY,
        binding("first", "needy", "openapi", fallback_binding_id="second"),
        binding("second"),
        defaults="second",
    )
    options = {
        "flag": (hosted(found), {"a.b": "first"}),
        "active": (hosted(found, active="first"), {}),
        "override": (hosted(found, overridden=override(binding="first")), {}),
    }
    chosen, binds = options[rule]
    error = refused(chosen, SelectionOptions(binds=binds))
    assert error.code == "env.missing"
    namer = {"flag": "`--bind`", "active": "active_bindings.json", "override": "overrides.yaml"}[
        rule
    ]
    assert f"{namer} names `first`: service `needy`" in error.message
    assert error.file == ""  # the file is in order, the machine is not
    ready = select(chosen, "a.b", READY._replace(binds=binds))
    assert ready.usable == ("first", "second")


def test_an_unknown_name_is_an_error_and_similar_ones_are_told() -> None:
    for chosen in (
        hosted(four(), active="by-activ"),
        hosted(four(), overridden=override(binding="by-activ")),
    ):
        error = refused(chosen)
        assert error.code == "binding.ineligible"
        assert "did you mean `by-active`" in error.hint


def test_an_override_that_prefers_leaves_the_choice_to_the_next_rule() -> None:
    found = catalog(
        NEEDY, binding("first", "needy", "openapi"), binding("second"), defaults="second"
    )
    for name, reason in (("first", "`TOKEN` is not set"), ("nobody", "no such binding")):
        preferring = hosted(found, overridden=override("prefer", binding=name))
        selection = select(preferring, "a.b", NONE)
        assert (selection.selection_source, selection.primary_binding_id) == ("policy", "second")
        considered = selection.considered[2]
        assert (considered.rule, considered.binding_id, considered.chosen) == (
            "override",
            name,
            False,
        )
        assert reason in considered.reason
    preferring = hosted(found, overridden=override("prefer", binding="first"))
    assert select(preferring, "a.b", READY).selection_source == "override"


def on(service: str, id: str, layer: str, channel: str = "local") -> Any:
    return binding(id, service, channel=channel).replace(layer=layer)


def test_a_service_means_the_capabilitys_binding_on_it_of_the_latest_layer_then_by_id() -> None:
    second = service("py2", "pythoncall", module="cogcli.official.text")
    found = catalog(
        second,
        on("py2", "b", "built-in"), on("py2", "d", "project"), on("py2", "c", "project"),
        on("py2", "a", "host", "candidate"), on("py", "z", "host"),
    )  # fmt: skip
    chosen = hosted(
        found, overridden=override(service="py2"), layers=("built-in", "project", "host")
    )
    selection = select(chosen, "a.b", NONE)
    assert (selection.selection_source, selection.primary_binding_id) == ("override", "c")
    assert (
        selection.considered[-1].reason == "named in overrides.yaml as the binding on service `py2`"
    )


def test_a_service_without_a_binding_is_an_error_unless_it_is_only_preferred() -> None:
    replacing = hosted(four(), overridden=override(service="nowhere"))
    error = refused(replacing)
    assert error.code == "binding.none"
    assert "service `nowhere`" in error.message
    preferring = hosted(four(), overridden=override("prefer", service="nowhere"))
    assert select(preferring, "a.b", NONE).selection_source == "policy"


def test_a_candidate_is_used_when_the_host_names_that_very_binding_and_never_through_a_service() -> (
    None
):
    found = catalog(binding("new", channel="candidate"), binding("old"))
    assert select(hosted(found, active="new"), "a.b", NONE).usable == ("new",)
    assert select(hosted(found, overridden=override(binding="new")), "a.b", NONE).usable == ("new",)
    only_new = catalog(binding("new", channel="candidate"))
    assert refused(hosted(only_new, overridden=override(service="py"))).code == "binding.none"


def test_a_candidate_is_no_fallback() -> None:
    found = catalog(binding("old", fallback_binding_id="new"), binding("new", channel="candidate"))
    assert select(hosted(found, active="old"), "a.b", NONE).usable == ("old",)


@pytest.mark.parametrize("kind", ["active", "overrides"])
def test_nothing_is_chosen_past_a_file_that_cannot_be_read(kind: str) -> None:
    broken = four()._replace(broken={f"{kind}:host": "broken.file"})
    error = refused(broken)
    assert error.code == "binding.none"
    assert "broken.file has errors" in error.message
    assert (
        select(broken, "a.b", SelectionOptions(binds={"a.b": "by-flag"})).selection_source == "flag"
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("profile", ["experimental", "standard", "strict"])
def test_conformance_ranks_hold_for_what_the_host_names(profile: str) -> None:
    found = hosted(
        catalog(binding("low", conformance_profile="experimental"), binding("high", conformance_profile="strict")),
        active="low",
    )  # fmt: skip
    options = SelectionOptions(conformance=profile)
    if profile == "experimental":
        assert select(found, "a.b", options).usable == ("low",)
    else:
        assert f"{profile} is required" in refused(found, options).message
