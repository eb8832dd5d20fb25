from __future__ import annotations

from typing import Any

import pytest

from cogcli.base.errors import BindingResolutionError
from cogcli.declarations.binding_spec import Binding, BindingMetadata
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.service_spec import Service
from cogcli.protocols import PROTOCOLS
from cogcli.specs.catalog import Catalog, Defaults
from cogcli.specs.selection import SelectionOptions, select

NONE = SelectionOptions()


def binding(
    id: str, service: str = "py", protocol: str = "pythoncall", channel: str = "local", **meta: Any
) -> Binding:
    raw = {
        "id": id,
        "capability": "a.b",
        "service": service,
        "protocol": protocol,
        "operation": "run",
        "request": {},
        "response": {},
        "metadata": meta,
    }
    return Binding.of(raw, file=f"{id}.yaml", channel=channel, trusted=True)


def service(id: str, kind: str = "openapi", trusted: bool = True, **keys: Any) -> Service:
    return Service.of({"id": id, "kind": kind, **keys}, file=f"{id}.yaml", trusted=trusted)


SHIPPED = service("py", "pythoncall", module="cogcli.official.text")


def catalog(*specs: Binding | Service, defaults: str = "", **capability: Any) -> Catalog:
    """`defaults`: what the policy names, several with blanks between them."""
    bindings = {spec.id: spec for spec in specs if isinstance(spec, Binding)}
    raw = {
        "id": "a.b",
        "version": "1.0.0",
        "description": "d",
        "inputs": {},
        "outputs": {},
        **capability,
    }
    return Catalog(
        capabilities={"a.b": Capability.of(raw)},
        bindings=bindings,
        bindings_of={"a.b": tuple(sorted(bindings))},
        services={"py": SHIPPED, **{spec.id: spec for spec in specs if isinstance(spec, Service)}},
        defaults=Defaults({"a.b": tuple(defaults.split())}, {"a.b": "policy.yaml"})
        if defaults
        else Defaults(),
        aliases={"old.name": "a.b"},
        protocols=PROTOCOLS,
    )


def refused(found: Catalog, options: SelectionOptions = NONE) -> BindingResolutionError:
    with pytest.raises(BindingResolutionError) as caught:
        select(found, "a.b", options)
    assert caught.value.capability_id == "a.b"
    return caught.value


def test_the_only_binding_outside_channel_candidate_is_chosen() -> None:
    selection = select(catalog(binding("one"), binding("new", channel="candidate")), "a.b", NONE)
    assert (selection.selection_source, selection.primary_binding_id) == ("only", "one")
    assert selection.usable == ("one",)


def test_policy_comes_before_the_only_and_the_flag_before_policy() -> None:
    found = catalog(binding("one"), binding("two"), defaults="two")
    assert select(found, "a.b", NONE).selection_source == "policy"
    flagged = select(found, "a.b", SelectionOptions(binds={"a.b": "one"}))
    assert (flagged.selection_source, flagged.primary_binding_id) == ("flag", "one")


def test_an_alias_asks_for_the_same_choice() -> None:
    found = catalog(binding("one"), binding("two"))
    selection = select(found, "old.name", SelectionOptions(binds={"old.name": "two"}))
    assert (selection.capability_id, selection.primary_binding_id) == ("a.b", "two")


def test_no_binding_and_several_without_a_rule_are_errors() -> None:
    assert refused(catalog()).code == "binding.none"
    error = refused(catalog(binding("one"), binding("two")))
    assert error.code == "binding.ambiguous"
    assert "`one`, `two`" in error.message
    assert error.hint == "name one: cogcli bindings activate a.b one\nfor one run: --bind a.b=one"


NEEDY = service(
    "needy",
    base_url="https://a.example",
    auth_ref="TOKEN",
    metadata={"headers": {"X-Key": "${KEY}", "X-Other": "a${KEY}"}},
)


def test_of_several_the_ones_that_can_be_called_are_offered() -> None:
    first, second = binding("first", "needy", "openapi"), binding("second")
    error = refused(catalog(NEEDY, first, second, binding("third")))
    assert error.message.endswith("3 bindings and no rule names one: `second`, `third`, `first`")
    assert error.hint.splitlines() == [
        "name one: cogcli bindings activate a.b second",
        "for one run: --bind a.b=second",
        "why not `first`: cogcli bindings explain a.b",
    ]
    none = refused(catalog(NEEDY, first, first.replace(id="other")))
    assert none.hint.startswith("none of them can be called here")
    many = refused(catalog(*(binding(f"b{n}") for n in range(9))))
    assert many.message.endswith("`b3`, `b4` and 4 more")


def test_a_binding_that_cannot_be_read_is_told_where_none_is_left() -> None:
    broken = {"binding:one": "bindings/local/a.b/one.yaml", "binding:x": "bindings/a.bc/x"}
    error = refused(catalog()._replace(broken=broken))
    assert error.message == "capability `a.b`: no binding: bindings/local/a.b/one.yaml has errors"
    assert error.hint == "cogcli validate bindings/local/a.b/one.yaml"


def test_all_variables_that_are_not_set_are_one_reason_with_a_line_to_paste_for_each() -> None:
    error = refused(catalog(NEEDY, binding("one", "needy", "openapi")))
    assert (error.code, error.hint) == ("env.missing", "export KEY=...\nexport TOKEN=...")
    assert error.message == (
        "capability `a.b`: its only binding `one`: "
        "service `needy`: environment variables `KEY` and `TOKEN` are not set"
    )


def test_instead_of_a_default_without_its_variable_what_can_be_called_is_offered() -> None:
    needy = binding("one", "needy", "openapi")
    fresh, also = binding("fresh", channel="candidate"), needy.replace(id="also")
    error = refused(
        catalog(NEEDY, needy, fresh, also, binding("two"), binding("zwei"), defaults="one")
    )
    assert error.code == "env.missing"
    assert error.message.startswith(
        "capability `a.b`: policy.yaml names `one`: service `needy`: environment"
    )
    assert error.hint.splitlines() == [
        "export KEY=...",
        "export TOKEN=...",
        "or use `two`, `zwei`:",
        "cogcli bindings activate a.b two",
        "for one run: --bind a.b=two",
        "cogcli bindings activate a.b zwei",
        "for one run: --bind a.b=zwei",
    ]
    alone = refused(catalog(NEEDY, needy, fresh, also, defaults="one"))
    assert alone.hint == "export KEY=...\nexport TOKEN=..."


def test_of_several_defaults_the_first_that_can_be_called_counts() -> None:
    one, three = binding("one", "needy", "openapi", fallback_binding_id="four"), binding("three")
    found = catalog(NEEDY, one, binding("two"), three, binding("four"), defaults="one two three")
    chosen = select(found, "a.b", NONE)
    assert (chosen.selection_source, chosen.primary_binding_id, chosen.usable) == (
        "policy",
        "two",
        ("two",),
    )
    assert chosen.considered[-1].reason == (
        "named in policy.yaml; before it `one`: service `needy`: environment variables `KEY` and `TOKEN` are not set"
    )
    given = SelectionOptions(environ={"KEY": "k", "TOKEN": "t"})
    assert select(found, "a.b", given).usable == ("one", "four")
    assert select(found, "a.b", given).considered[-1].reason == "named in policy.yaml"
    assert select(found, "a.b", SelectionOptions(binds={"a.b": "three"})).usable == ("three",)


def test_of_several_defaults_none_of_which_can_be_called_fallbacks_count() -> None:
    one, two = (
        binding(name, "needy", "openapi", fallback_binding_id="four") for name in ("one", "two")
    )
    found = catalog(
        NEEDY, one.replace(metadata=BindingMetadata()), two, binding("four"), defaults="one two"
    )
    chosen = select(found, "a.b", NONE)
    assert (chosen.primary_binding_id, chosen.usable) == ("two", ("four",))


def test_of_several_defaults_all_are_told_where_none_counts() -> None:
    found = catalog(NEEDY, binding("one", "needy", "openapi"), binding("four"), defaults="one lost")
    error = refused(found)
    assert error.code == "binding.ineligible"
    assert error.message.endswith("`TOKEN` are not set; `lost`: there is no such binding")
    assert error.hint.splitlines()[-1] == "for one run: --bind a.b=four"


def test_reasons_of_two_kinds_have_no_code_of_their_own() -> None:
    one = binding("one", "needy", "openapi", conformance_profile="experimental")
    error = refused(catalog(NEEDY, one), SelectionOptions(conformance="strict"))
    assert error.code == "binding.ineligible"
    assert "are not set; conformance experimental, strict is required" in error.message


def test_a_binding_that_is_named_wrongly_is_told_with_those_there_are() -> None:
    found = catalog(binding("notes_read"), binding("files"))
    typo = refused(found, SelectionOptions(binds={"a.b": "notes_raed"}))
    assert typo.message == "capability `a.b`: `--bind` names `notes_raed`: there is no such binding"
    assert typo.hint.startswith("did you mean `notes_read`?\n")
    unknown = refused(found, SelectionOptions(binds={"a.b": "x"}))
    assert unknown.hint.startswith("`a.b` has `files`, `notes_read`")
    elsewhere = found._replace(bound={"sends": "a.c"}.get)
    other = refused(elsewhere, SelectionOptions(binds={"a.b": "sends"}))
    assert other.message == "capability `a.b`: `--bind` names `sends`: it binds `a.c`"
    assert other.hint.startswith("`a.b` has `files`, `notes_read`")


def test_candidates_are_used_only_when_they_are_named() -> None:
    found = catalog(binding("new", channel="candidate"))
    assert refused(found).code == "binding.none"
    assert "--bind a.b=new" in refused(found).hint
    assert select(found, "a.b", SelectionOptions(binds={"a.b": "new"})).usable == ("new",)
    assert (
        refused(found._replace(defaults=Defaults({"a.b": ("new",)}, {}))).code
        == "binding.ineligible"
    )


def test_ineligible_members_of_the_chain_are_passed_over() -> None:
    needy = service("needy", base_url="https://a.example", auth_ref="TOKEN")
    found = catalog(
        needy,
        binding("first", "needy", "openapi", fallback_binding_id="second"),
        binding("second"),
        defaults="first",
    )
    selection = select(found, "a.b", NONE)
    assert selection.primary_binding_id == "first"
    assert [(link.binding_id, link.eligible) for link in selection.chain] == [
        ("first", False),
        ("second", True),
    ]
    assert selection.usable == ("second",)
    assert select(found, "a.b", SelectionOptions(environ={"TOKEN": "secret-token"})).usable == (
        "first",
        "second",
    )


def test_the_binding_named_by_the_flag_must_itself_be_eligible() -> None:
    needy = service("needy", base_url="https://a.example", auth_ref="TOKEN")
    found = catalog(
        needy, binding("first", "needy", "openapi", fallback_binding_id="second"), binding("second")
    )
    error = refused(found, SelectionOptions(binds={"a.b": "first"}))
    assert (error.code, error.hint.split("\n")[0]) == ("env.missing", "export TOKEN=...")
    assert "--bind a.b=second" in error.hint
    assert refused(found, SelectionOptions(binds={"a.b": "nobody"})).code == "binding.ineligible"


def test_a_fallback_cycle_ends_where_it_began() -> None:
    found = catalog(
        binding("x", fallback_binding_id="y"), binding("y", fallback_binding_id="x"), defaults="x"
    )
    assert select(found, "a.b", NONE).usable == ("x", "y")


def test_conformance_is_the_options_else_the_capabilitys_else_none() -> None:
    found = catalog(
        binding("one", conformance_profile="standard"),
        properties={"required_conformance_profile": "strict"},
    )
    assert refused(found).code == "binding.ineligible"
    eased = select(found, "a.b", SelectionOptions(conformance="standard"))
    assert eased.required_conformance_profile == "standard"
    by_metadata = catalog(
        binding("one"),
        metadata={"required_conformance_profile": "experimental"},
        properties={"required_conformance_profile": "strict"},
    )
    assert select(by_metadata, "a.b", NONE).required_conformance_profile == "experimental"
    assert (
        select(catalog(binding("one")), "a.b", NONE).required_conformance_profile == "experimental"
    )


WEB = service("web", base_url="https://a.example")
PRIVATE = service("web", base_url="https://a.example", network="private")
SECRET = service("web", base_url="https://a.example", network="private", auth_ref="env:TOKEN")
TENANT = service(
    "web", base_url="https://a.example", metadata={"targets": ["same_tenant", "internal_only"]}
)
ENVIRON = SelectionOptions(environ={"TOKEN": "secret-token", "KEY": "secret-key"})


@pytest.mark.parametrize(
    ("safety", "used", "fits"),
    [
        ({"allowed_targets": ["same_tenant"]}, WEB, False),
        ({"allowed_targets": ["same_tenant", "internal_only"]}, TENANT, True),
        ({"allowed_targets": ["approved_connectors"]}, TENANT, False),
        ({"scope_constraints": ["no_external_network"]}, WEB, False),
        ({"scope_constraints": ["no_external_network"]}, PRIVATE, True),
        ({"scope_constraints": ["no_credential_passthrough"]}, SECRET, False),
        ({"scope_constraints": ["no_credential_passthrough"]}, PRIVATE, True),
        ({"scope_constraints": ["sandboxed_execution"]}, WEB, False),
        ({"scope_constraints": ["ephemeral_only"]}, WEB, True),
    ],
)
def test_targets_and_constraints_filter_bindings(
    safety: dict[str, Any], used: Service, fits: bool
) -> None:
    found = catalog(used, binding("one", "web", "openapi"), safety=safety)
    if fits:
        assert select(found, "a.b", ENVIRON).usable == ("one",)
    else:
        assert refused(found, ENVIRON).code == "safety.scope"


@pytest.mark.parametrize(
    ("safety", "keys", "fits"),
    [
        ({"allowed_targets": ["same_tenant"]}, {"network": "public"}, False),
        ({"allowed_targets": ["same_tenant"]}, {"network": "private"}, False),
        (
            {"allowed_targets": ["same_tenant"]},
            {"network": "public", "metadata": {"targets": ["same_tenant"]}},
            True,
        ),
        ({"scope_constraints": ["no_external_network"]}, {"network": "public"}, False),
        ({"scope_constraints": ["no_external_network"]}, {"network": "private"}, True),
        ({"scope_constraints": ["no_external_network"]}, {}, True),
        ({"scope_constraints": ["sandboxed_execution"]}, {"network": "public"}, True),
    ],
)
def test_functions_that_reach_the_network_meet_demands_as_a_remote_service_does(
    safety: dict[str, Any], keys: dict[str, Any], fits: bool
) -> None:
    used = Service.of({"id": "x", "kind": "pythoncall", "module": "mine", **keys}, trusted=True)
    found = catalog(used, binding("one", "x"), safety=safety)
    if fits:
        assert select(found, "a.b", NONE).usable == ("one",)
    else:
        assert refused(found).code == "safety.scope"


@pytest.fixture
def no_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "cogcli.specs.eligibility.missing_module", {"parquet": "polars", "web": ""}.__getitem__
    )


@pytest.mark.usefixtures("no_polars")
def test_a_binding_without_its_extra_is_not_eligible_and_its_fallback_is_chosen() -> None:
    lacking = binding("one", extra="parquet")
    error = refused(catalog(lacking))
    assert (error.code, error.exit_code, error.hint) == (
        "env.extra",
        3,
        "pip install 'cogcli[parquet]'",
    )
    assert "`polars` is not installed" in error.message
    assert select(catalog(binding("one", extra="web")), "a.b", NONE).usable == ("one",)
    lacking = binding("one", extra="parquet", fallback_binding_id="two")
    chosen = select(catalog(lacking, binding("two"), defaults="one"), "a.b", NONE)
    assert chosen.usable == ("two",)
    assert "it needs the extra `parquet`" in chosen.chain[0].reason


def test_pythoncall_satisfies_all_targets_and_is_local() -> None:
    safety = {
        "allowed_targets": ["same_tenant"],
        "scope_constraints": ["no_external_network", "no_credential_passthrough"],
    }
    assert select(catalog(binding("one"), safety=safety), "a.b", NONE).usable == ("one",)


def python(module: str, **keys: Any) -> Service:
    return service("x", "pythoncall", module=module, **keys)


@pytest.mark.parametrize(
    ("used", "fits"),
    [
        (python("mine"), True),
        (python("mine", isolation="thread"), False),
        (python("cogcli.official.text"), False),
        (python("cogcli.official.text", isolation="process"), True),
    ],
)
def test_only_a_process_of_its_own_is_a_sandbox(used: Service, fits: bool) -> None:
    found = catalog(
        used, binding("one", "x"), safety={"scope_constraints": ["sandboxed_execution"]}
    )
    if fits:
        assert select(found, "a.b", NONE).usable == ("one",)
    else:
        assert refused(found).code == "safety.scope"


def web(**keys: Any) -> Service:
    return service("x", base_url="https://a.example", **keys)


@pytest.mark.parametrize(
    ("used", "protocol", "code"),
    [
        (python("mine", isolation="thread", trusted=False), "pythoncall", "service.untrusted"),
        (python("cogcli.official.text", trusted=False), "pythoncall", "service.untrusted"),
        (service("x", "mcp", command="run", trusted=False), "mcp", "service.untrusted"),
        (web(auth_ref="file:/secret", trusted=False), "openapi", "service.untrusted"),
        (web(trusted=False), "openapi", "service.untrusted"),
        (web(), "openapi", None),
        (python("mine"), "pythoncall", None),
        (python("mine", trusted=False), "pythoncall", "service.untrusted"),
        (python("mine", isolation="thread"), "pythoncall", None),
        (python("cogcli.official.text", isolation="process"), "pythoncall", None),
        (web(), "mcp", "binding.protocol"),
    ],
)
def test_a_service_that_may_not_be_used_makes_the_binding_ineligible(
    used: Service, protocol: str, code: str | None
) -> None:
    found = catalog(used, binding("one", "x", protocol))
    if code is None:
        assert select(found, "a.b", NONE).usable == ("one",)
    else:
        assert refused(found).code == code


@pytest.mark.parametrize(("operation", "is_usable"), [("normalize", True), ("_limit_marks", False)])
def test_an_untrusted_service_offers_the_shipped_functions_that_are_open_to_all(
    operation: str, is_usable: bool
) -> None:
    one = binding("one", "x").replace(operation=operation)
    found = catalog(python("cogcli.official.text", trusted=False), one)
    if is_usable:
        assert select(found, "a.b", NONE).usable == ("one",)
    else:
        assert refused(found).code == "service.untrusted"


def test_headers_of_an_untrusted_binding_get_no_variable() -> None:
    lent = binding("one", "web", "openapi", headers={"X": "${KEY}"}).replace(trusted=False)
    assert refused(catalog(WEB, lent), ENVIRON).code == "service.untrusted"
    assert select(catalog(WEB, lent.replace(trusted=True)), "a.b", ENVIRON).usable == ("one",)


def test_a_call_that_is_not_trusted_is_refused_for_that_alone() -> None:
    """No user sets a variable for a project that does not get it."""
    used = service("x", base_url="https://a.example", auth_ref="TOKEN", trusted=False)
    error = refused(catalog(used, binding("one", "x", "openapi")))
    assert error.code == "service.untrusted"
    assert "TOKEN" not in error.hint


@pytest.mark.parametrize(
    ("address", "hosts", "is_called"),
    [
        ("https://a.example/v1", ("a.example",), True),
        ("https://A.Example./v1", ("a.example",), True),
        ("http://a.example", ("a.example",), True),
        ("https://a.example:8443", ("a.example:8443",), True),
        ("https://a.example:8443", ("a.example",), False),
        ("https://a.example", ("a.example:8443",), False),
        ("https://b.a.example", ("a.example",), False),
        ("https://a.example.b", ("a.example",), False),
        ("https://a.example", ("b.example",), False),
        ("https://a.example", (), False),
    ],
)
def test_an_allowed_host_is_called_by_exactly_its_name(
    address: str, hosts: tuple[str, ...], is_called: bool
) -> None:
    found = catalog(service("x", base_url=address, trusted=False), binding("one", "x", "openapi"))
    options = SelectionOptions(allow_hosts=hosts)
    if is_called:
        assert select(found, "a.b", options).usable == ("one",)
    else:
        error = refused(found, options)
        assert error.code == "service.untrusted"
        assert "--allow-host" in error.hint
        assert "cogcli config trust" in error.hint


def test_an_allowed_host_gets_no_secret() -> None:
    used = service("x", base_url="https://a.example", auth_ref="TOKEN", trusted=False)
    error = refused(
        catalog(used, binding("one", "x", "openapi")), ENVIRON._replace(allow_hosts=("a.example",))
    )
    assert error.code == "service.untrusted"
    assert "--allow-host" not in error.hint


def test_a_missing_or_broken_service_is_told() -> None:
    assert refused(catalog(binding("one", "nobody"))).code == "service.unknown"
    broken = catalog(binding("one", "nobody"))._replace(broken={"service:nobody": "s.yaml"})
    assert "its file s.yaml has errors" in refused(broken).message


def test_the_environment_never_selects() -> None:
    found = catalog(binding("one"), binding("two"))
    assert (
        refused(found, SelectionOptions(environ={"COGCLI_BIND": "a.b=one"})).code
        == "binding.ambiguous"
    )


def test_the_explanation_is_plain_data() -> None:
    found = catalog(
        binding("one", fallback_binding_id="lost-since"), binding("two"), defaults="one"
    )
    assert select(found, "a.b", NONE).to_payload() == {
        "capability_id": "a.b",
        "selection_source": "policy",
        "primary_binding_id": "one",
        "required_conformance_profile": "experimental",
        "considered": [
            {"rule": "flag", "binding_id": None, "chosen": False, "reason": "not given"},
            {"rule": "active", "binding_id": None, "chosen": False, "reason": "names none"},
            {"rule": "override", "binding_id": None, "chosen": False, "reason": "names none"},
            {
                "rule": "policy",
                "binding_id": "one",
                "chosen": True,
                "reason": "named in policy.yaml",
            },
        ],
        "chain": [
            {
                "binding_id": "one",
                "service_id": "py",
                "conformance_profile": "standard",
                "eligible": True,
                "reason": "",
            },
            {
                "binding_id": "lost-since",
                "service_id": None,
                "conformance_profile": None,
                "eligible": False,
                "reason": "there is no such binding",
            },
        ],
    }
