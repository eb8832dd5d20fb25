"""A mock stands in for a server with a login, and wants none (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

from support.mcp_http import service

from cogcli.authoring.scenario_run import CallSpecs, with_mock_server
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability


def test_a_mock_of_a_service_with_a_login_wants_none() -> None:
    own = service("https://notes.example/mcp", login={})
    binding = Binding(
        id="b", capability="c.x", service="web", protocol="mcp", operation="add", request={}, response={}
    )  # fmt: skip
    specs = CallSpecs(Capability.of({"id": "c.x"}), binding, own, {})
    mocked = with_mock_server(specs, "http://127.0.0.1:1").service
    assert mocked.settings == {"url": "http://127.0.0.1:1/mcp"}
    assert "login" in own.settings
