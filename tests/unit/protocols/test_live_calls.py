from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from fakes.specs import capability
from fakes.surroundings import surroundings

from cogcli.base.calls import Attempt, BindingChain, Cancellation, Member, chain_from_payload
from cogcli.base.errors import BindingResolutionError, RuntimeErrorBase, TransportError
from cogcli.declarations.binding_spec import Binding, BindingMetadata
from cogcli.declarations.service_spec import Service, ServiceMetadata
from cogcli.protocols.live.runner import LiveRunner
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions, select

SOURCE = """
def double(n): return {"value": n * 2, "usage": {"input_tokens": 4}}
def tells(n): raise ValueError(f"bad key \\x1b[31m {n}")
def vandal(l):
    l.append("vandal")
    return {"value": l}
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    (tmp_path / "live_calls_module.py").write_text(SOURCE)
    service = Service(
        id="svc", kind="pythoncall", module="live_calls_module", isolation="thread", root=str(tmp_path), trusted=True,
        metadata=ServiceMetadata(timeout_seconds=7),
    )  # fmt: skip
    quick = BindingMetadata(
        timeout_seconds=2, retry_count=2, retry_backoff_base=0, retry_backoff_factor=3
    )
    bindings = {
        "one": Binding(
            id="one",
            capability="c.one",
            service="svc",
            protocol="pythoncall",
            operation="double",
            request={"n": "input.n"},
            response={"twice": "response.value"},
            metadata=quick,
            trusted=True,
        ),
        "two": Binding(
            id="two",
            capability="c.two",
            service="svc",
            protocol="pythoncall",
            operation="vandal",
            request={"l": "input.l"},
            response={"l": "response.value"},
            trusted=True,
        ),
        "odd": Binding(
            id="odd",
            capability="c.odd",
            service="svc",
            protocol="morse",
            operation="x",
            request={},
            response={},
        ),
    }
    return Catalog(
        capabilities={
            "c.one": capability("c.one", "n!:integer", "twice!:integer"),
            "c.two": capability("c.two", "l", "l"),
            "c.odd": capability("c.odd"),
        },
        bindings=bindings,
        bindings_of={b.capability: (id,) for id, b in bindings.items()},
        services={"svc": service},
    )


def runner(catalog: Catalog) -> LiveRunner:
    return LiveRunner(catalog, lambda id: select(catalog, id, SelectionOptions()), surroundings())


def attempt(capability_id: str, member: Member, given: dict[str, Any]) -> Attempt:
    deadline = time.monotonic() + 5
    return Attempt(
        capability_id, member, given, "none", "key", "run_1", "s", 1, deadline, Cancellation()
    )


def test_an_attempt_goes_from_input_to_checked_outputs_and_usage(catalog: Catalog) -> None:
    live = runner(catalog)
    answer = live.attempt(attempt("c.one", live.chain("c.one").members[0], {"n": 4}))
    assert (answer.output, answer.usage) == ({"twice": 8}, {"input_tokens": 4})


def test_a_call_that_is_given_up_before_it_is_sent_is_not_sent(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = runner(catalog)
    call = attempt("c.one", live.chain("c.one").members[0], {"n": 4})
    sent: list[object] = []

    def slow_preparation(protocol: str) -> Any:
        call.cancel.set()
        return sent

    monkeypatch.setattr(live, "_find_invoker", slow_preparation)
    with pytest.raises(TransportError, match="nothing was sent") as failure:
        live.attempt(call)
    assert failure.value.left is False
    assert call.cancel.unsent_reason
    assert not sent


def test_limits_and_repeats_come_from_binding_then_service_then_defaults(catalog: Catalog) -> None:
    live = runner(catalog)
    assert live.chain("c.one").members == (
        Member("one", "svc", "pythoncall", 2.0, 2, 0.0, 3.0, repeats_faults=True),
    )
    assert live.chain("c.two").members == (Member("two", "svc", "pythoncall", 7.0, 0, 1.0, 2.0),)


def test_chains_are_chosen_once(catalog: Catalog) -> None:
    asked: list[str] = []

    def choose(id: str) -> Any:
        asked.append(id)
        return select(catalog, id, SelectionOptions())

    live = LiveRunner(catalog, choose, surroundings())
    first = live.chain("c.one")
    assert live.chain("c.one") is first
    assert asked == ["c.one"]
    assert first.explanation["primary_binding_id"] == "one"


def test_a_capability_without_a_binding_has_no_chain(catalog: Catalog) -> None:
    with pytest.raises(BindingResolutionError) as caught:
        runner(catalog).chain("c.gone")
    assert caught.value.code == "binding.none"


def test_a_callee_that_changes_its_arguments_changes_nothing(catalog: Catalog) -> None:
    live = runner(catalog)
    given = {"l": [1]}
    member = live.chain("c.two").members[0]
    assert live.attempt(attempt("c.two", member, given)).output == {"l": [1, "vandal"]}
    assert live.attempt(attempt("c.two", member, given)).output == {"l": [1, "vandal"]}
    assert given == {"l": [1]}


def test_no_secret_in_a_message_reaches_whoever_called(catalog: Catalog) -> None:
    catalog.bindings["one"] = catalog.bindings["one"].replace(operation="tells")
    given = surroundings({"A_KEY": "sesame-open-the-door"})
    live = LiveRunner(catalog, lambda id: select(catalog, id, SelectionOptions()), given)
    secret = given.secrets.resolve("A_KEY")
    with pytest.raises(RuntimeErrorBase) as caught:
        live.attempt(attempt("c.one", live.chain("c.one").members[0], {"n": secret}))
    assert "bad key" in caught.value.message
    assert "\\x1b[31m" in caught.value.message  # what a terminal would obey is escaped
    assert secret not in caught.value.message
    assert secret not in str(caught.value)


def test_a_protocol_nobody_speaks_is_told(catalog: Catalog) -> None:
    live = runner(catalog)
    with pytest.raises(RuntimeErrorBase) as caught:
        live.attempt(attempt("c.odd", Member("odd", "svc", "morse", 1.0), {}))
    assert (caught.value.code, caught.value.left) == ("protocol.unsupported", False)


def test_closing_twice_is_fine(catalog: Catalog) -> None:
    live = runner(catalog)
    live.attempt(attempt("c.one", live.chain("c.one").members[0], {"n": 4}))
    live.close(0.0)
    live.close(0.0)


def test_a_chain_of_an_older_log_does_not_repeat_faults_of_the_server() -> None:
    member = Member("b", "s", "openapi", 1.0, retry_count=1, repeats_faults=True)
    payload = BindingChain((member,), {}).to_payload()
    assert chain_from_payload(payload).members == (member,)
    del payload["members"][0]["repeats_faults"]
    assert chain_from_payload(payload).members == (member._replace(repeats_faults=False),)
