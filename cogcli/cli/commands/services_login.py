"""`services login ID` and `services logout ID`: logins at MCP servers (docs/reference/mcp.md#logins)."""

from __future__ import annotations

from typing import Annotated

from cogcli.app import logins
from cogcli.base.errors import OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import SAFETY, argument, command, seconds, switch, text, wrong_value
from cogcli.declarations.login_record import LoginRecord
from cogcli.protocols.mcp.login_scopes import is_scope
from cogcli.report.styled_text import StyledLine

_PERSON_SECONDS = 300.0


def _parse_scope(written: object) -> object:
    """Return a scope. Raise UsageError for a text that is not one."""
    if not is_scope(str(written)):
        shown = visible(str(written)[:40])
        expected = "1 to 200 visible ASCII characters without quotes, backslashes and blanks"
        raise wrong_value(f"`{shown}` is not a scope", expected=expected)
    return written


@command(
    examples=(
        ("cogcli services login notes", "agree in your browser"),
        ("cogcli services login notes --scope notes.write", "ask for one more scope"),
        (
            "cogcli services login notes --no-browser --json | jq .login",
            "open the address yourself",
        ),
    ),
    exits=(0, 1, 2, 3, 4, 6, 130),
)
def login(
    context: CommandContext,
    service: Annotated[str, argument("ID", "services")],
    *,
    scope: Annotated[
        list[str],
        text("--scope", "SCOPE", "ask for this scope, too (repeatable)", parse=_parse_scope),
    ],
    no_browser: Annotated[
        bool, switch("--no-browser", help="only print the address; open it yourself")
    ] = False,
    wait: Annotated[
        float | None,
        seconds("--wait", "how many seconds a person has in the browser", default="300"),
    ] = None,
) -> int:
    """Log in, and display who is logged in until when."""

    def show(issuer: str, address: str) -> None:
        context.note(visible(f"{service} asks you to log in at {issuer}"))
        context.note(visible(address))
        if not no_browser:
            _open_browser(address)

    found = logins.log_in(context.settings, service, scope, show, wait or _PERSON_SECONDS)
    context.own["login"] = _login_object(found)
    context.answer(_login_lines(found))
    return OK


@command(
    examples=(
        ("cogcli services logout notes", "revoke the tokens, then remove them"),
        ("cogcli services logout notes --forget", "remove them here, without a server"),
        ("cogcli services logout notes --json | jq .logout", "for scripts"),
    ),
    exits=(0, 1, 2, 3, 4, 6),
)
def logout(
    context: CommandContext,
    service: Annotated[str, argument("ID", "services")],
    *,
    forget: Annotated[
        bool,
        switch("--forget", help="remove the tokens here alone; no server is asked", panel=SAFETY),
    ] = False,
) -> int:
    """End a login, and display whether its server knows."""
    found = logins.log_out(context.settings, service, forget=forget)
    context.own["logout"] = {"existed": found.existed, "revoked": found.revoked}
    context.answer(f"{visible(_logout_text(service, found))}\n")
    return OK


def _logout_text(service: str, logout: logins.Logout) -> str:
    if not logout.existed:
        return f"{service}: there was no login"
    if logout.revoked:
        return f"{service}: logged out, the server has revoked the tokens"
    end = f" until {logout.until}" if logout.until else ""
    return f"{service}: the tokens are removed here; the server was not asked, so they may be valid{end}"


def _login_object(login: LoginRecord) -> dict[str, object]:
    return {
        "service": login.service,
        "server": login.server,
        "user": login.user,
        "issuer": login.issuer,
        "scope": login.scope,
        "until": login.until,
        "renewable": login.renewable,
        "kept_in": "keyring" if login.keyring else "file",
    }


def _login_lines(login: LoginRecord) -> list[StyledLine]:
    user = f" as {login.user}" if login.user else ""
    end = f" until {login.until}" if login.until else ""
    if login.renewable:
        end += ", renewed by runs"
    place = "the keyring" if login.keyring else "a file of your own"
    texts = (
        f"{login.service}: logged in{user} at {login.issuer}{end}",
        f"scopes: {login.scope or 'those of the server'}; the tokens are in {place}",
    )
    return [[(visible(text), "")] for text in texts]


def _open_browser(address: str) -> None:
    """Open an address, without waiting for a browser that keeps the terminal."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
