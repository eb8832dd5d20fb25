"""A person who logs in to an MCP server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fakes.surroundings import surroundings
from support.mcp_calls import Caller
from support.mcp_http import service
from support.oauth_server import MARK, Desk, browse

from cogcli.app.logins import with_earlier_scopes
from cogcli.base.errors import RuntimeErrorBase
from cogcli.declarations.login_record import LoginRecord
from cogcli.declarations.service_spec import Service
from cogcli.protocols.invoker import InvokerContext
from cogcli.protocols.mcp.login_flow import LoginParty, ShowAddress, log_in
from cogcli.protocols.mcp.login_store import LoginStore

SECONDS = 60.0


class Person:
    """A user with a state directory, and a service to log in to."""

    environ: ClassVar[dict[str, str]] = {
        "ROBOT": "robot",
        "ROBOT_SECRET": f"{MARK}-robot-secret",
    }

    def __init__(self, desk: Desk, folder: Path, **login: Any) -> None:
        self.folder = folder
        self.learned: list[str] = []
        self.context: InvokerContext = surroundings(
            self.environ, learn=self.learned.append, state_dir=str(folder)
        )
        self.service: Service = service(desk.resource, login=login)
        self.store = LoginStore(str(folder), self.service)

    def log_in(
        self, show: ShowAddress = browse, seconds: float = SECONDS, scopes: list[str] | None = None
    ) -> LoginRecord:
        earlier = self.store.describe()
        added = with_earlier_scopes(scopes, earlier) if scopes else ()
        issuer = earlier.issuer if earlier else ""
        party = LoginParty(self.service, self.context, self.store.layer, issuer, added)
        login = log_in(party, show, seconds).replace(keyring=False)
        with self.store.locked(time.monotonic() + SECONDS):
            return self.store.write(login)

    def refused(self, show: ShowAddress = browse, seconds: float = SECONDS) -> RuntimeErrorBase:
        with pytest.raises(RuntimeErrorBase) as caught:
            self.log_in(show, seconds)
        return caught.value

    def caller(self) -> Caller:
        return Caller(self.environ, state_dir=str(self.folder))

    def texts(self) -> list[str]:
        return [path.read_text() for path in self.folder.rglob("*") if path.is_file()]
