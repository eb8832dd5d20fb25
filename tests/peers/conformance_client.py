"""cogcli as the client of the official conformance suite: it is started with the URL of a server as its last argument.

It does what a person and a run would do: log in where the server asks for it, list the tools, call them.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import threading
import time
from concurrent.futures import Future
from itertools import pairwise
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from cogcli.app.logins import with_earlier_scopes
from cogcli.base.calls import Cancellation, PersonAtTerminal, QuestionAnswer, ServerQuestion
from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.system import SystemClock
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.protocols.invoker import (
    CallLimits,
    InvocationRequest,
    InvocationResponse,
    InvokerContext,
)
from cogcli.protocols.mcp.connect import require_sdk
from cogcli.protocols.mcp.invoker import Mcp
from cogcli.protocols.mcp.login_flow import LoginParty, log_in
from cogcli.protocols.mcp.login_store import LoginStore
from cogcli.protocols.secrets import Secrets

SECONDS = 20.0
SAMPLES: dict[str, object] = {"string": "x", "number": 5, "integer": 5, "boolean": True}
"""An argument by its type."""
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The document about our client, as the suite expects it."""
ENDPOINTS = {"authorize": "/authorize", "token": "/token", "register": "/register"}
"""The endpoints of a server without metadata, as a person would read them in its documents."""


def limits() -> CallLimits:
    return CallLimits(time.monotonic() + SECONDS, Cancellation())


def open_address(issuer: str, address: str) -> None:
    """A browser that agrees to everything."""
    threading.Thread(target=lambda: urlopen(address, timeout=SECONDS).read(), daemon=True).start()


def issuer_of(url: str) -> str:
    """The authorization server of a server, as a person would read it in its documents."""
    parts = urlsplit(url)
    for path in (parts.path, ""):
        place = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{path}"
        try:
            return str(json.load(urlopen(place, timeout=SECONDS))["authorization_servers"][0])
        except (URLError, ValueError, KeyError):
            continue
    return ""


def arguments_of(schema: dict[str, Any]) -> dict[str, object]:
    """Arguments with what a schema requires."""
    types = {name: each.get("type") for name, each in schema.get("properties", {}).items()}
    return {name: SAMPLES.get(types.get(name), {}) for name in schema.get("required", ())}


def accept_defaults(question: ServerQuestion) -> Future[QuestionAnswer]:
    """A person at the terminal who answers, and takes each default by an empty line. A field without one is left out,
    or gets a sample if it is required.
    """
    fields = question.schema.get("properties", {})
    required = arguments_of(question.schema)
    defaults = {name: each["default"] for name, each in fields.items() if "default" in each}
    answer: Future[QuestionAnswer] = Future()
    answer.set_result(QuestionAnswer("accept", {**required, **defaults}, by="ada"))
    return answer


class Client:
    """A service at the URL, as a run calls it."""

    def __init__(self, url: str, scenario: str, given: dict[str, Any], folder: str) -> None:
        self.environ = {
            "CLIENT_ID": given.get("client_id", ""),
            "CLIENT_SECRET": given.get("client_secret", ""),
            "CLIENT_KEY": given.get("private_key_pem", ""),
        }
        settings: dict[str, Any] = {"url": url}
        if scenario.startswith("auth/"):
            settings["login"] = self._login(url, scenario, given)
        self.service = Service(
            id="peer", kind="mcp", network="private", settings=settings, root=folder, trusted=True
        )
        secrets = Secrets(self.environ, lambda secret: None)
        person = PersonAtTerminal(accept_defaults, SECONDS)
        self.context = InvokerContext(secrets, SystemClock(), folder, self.environ, person=person)
        self.store = LoginStore(folder, self.service)
        self.invoker = Mcp(self.context)

    def _login(self, url: str, scenario: str, given: dict[str, Any]) -> dict[str, Any]:
        if scenario.endswith("/basic-cimd"):
            return {"client_metadata_url": DOCUMENT}
        if scenario.endswith("oauth-endpoint-fallback"):
            return {"endpoints": ENDPOINTS}
        if "client_id" not in given:
            return {}
        login = {"client_id": "CLIENT_ID", "issuer": given.get("issuer") or issuer_of(url)}
        login |= {"client_secret": "CLIENT_SECRET"} if "client_secret" in given else {}
        if "private_key_pem" in given:
            algorithm = given["signing_algorithm"]
            login |= {"signing_key": "CLIENT_KEY", "signing_algorithm": algorithm}
        return login | ({"grant": "client_credentials"} if "client-credentials" in scenario else {})

    def log_in(self, scopes: list[str] | None = None) -> None:
        earlier = self.store.describe()
        added = with_earlier_scopes(scopes, earlier) if scopes else ()
        issuer = earlier.issuer if earlier else ""
        party = LoginParty(self.service, self.context, self.store.layer, issuer, added)
        login = log_in(party, open_address, SECONDS)
        with self.store.locked(time.monotonic() + SECONDS):
            self.store.write(login.replace(keyring=False))

    def call(self, tool: str, arguments: dict[str, Any]) -> None:
        binding = Binding(
            id="b", capability="c.x", service="peer", protocol="mcp", operation=tool, request={}, response={}
        )  # fmt: skip
        request = InvocationRequest(
            service=self.service, binding=binding, operation=tool, payload=arguments, effect="none",
            idempotency_key="", capability_id="c.x", run_id="run_1", step_id="s", attempt=1,
        )  # fmt: skip
        try:
            print(tool, self._invoke(request).body)
        except RuntimeErrorBase as error:
            print(tool, error.code, error.message)

    def _invoke(self, request: InvocationRequest) -> InvocationResponse:
        """A call. If its error names a command that asks for scopes, a person runs that, and the call once more."""
        try:
            return self.invoker.invoke(request, limits())
        except RuntimeErrorBase as error:
            words = shlex.split(error.hint)
            scopes = [word for flag, word in pairwise(words) if flag == "--scope"]
            if error.code != "service.login" or not scopes:
                raise
            assert words[:4] == ["cogcli", "services", "login", self.service.id]
            self.log_in(scopes)
            self.invoker.close(5.0)
            self.invoker = Mcp(self.context)  # the next run
            return self.invoker.invoke(request, limits())


def main() -> int:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    require_sdk()
    with tempfile.TemporaryDirectory() as folder:
        client = Client(sys.argv[-1], scenario, given, folder)
        try:
            if scenario.startswith("auth/"):
                client.log_in()
            tools = client.invoker.tools(client.service, limits())
            schema = tools[0]["inputSchema"] if tools else {}
            calls = given.get("toolCalls") or [
                {"name": tool["name"], "arguments": arguments_of(tool["inputSchema"])}
                for tool in tools
            ]
            for each in calls:
                echo = "schema" in each["arguments"]  # it wants the schema of the first tool
                client.call(each["name"], {"schema": schema} if echo else each["arguments"])
        except RuntimeErrorBase as error:
            print(error.code, error.message, file=sys.stderr)
            return 1
        finally:
            client.invoker.close(5.0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
