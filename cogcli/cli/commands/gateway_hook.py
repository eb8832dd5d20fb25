"""`gateway hook`, `config`, `doctor` and `mark`: calls that hosts make themselves (docs/reference/hosts.md)."""

from __future__ import annotations

from typing import Annotated

from cogcli.base.errors import NO, OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import SAFETY, argument, command, integer, switch, text
from cogcli.gateway.hook_client import run_hook
from cogcli.gateway.hook_marks import find_host, set_marks
from cogcli.gateway.hosts_config import build_config, write_config
from cogcli.gateway.hosts_doctor import check_host, has_fault
from cogcli.gateway.hosts_server import build_server, format_document, write_server_file

Host = Annotated[str, argument("HOST")]
Hold = Annotated[
    int | None,
    integer(
        "--hold",
        "hold a call that waits for a person for N seconds",
        minimum=0,
        maximum=50,
        default="10",
    ),
]
Pack = Annotated[
    str | None, text("--pack", "ID@VERSION", "the pack that governs the calls", SAFETY)
]
Intent = Annotated[
    str | None, text("--intent", "ID", "with --pack: the intent of the session", SAFETY)
]
User = Annotated[
    str | None, text("--user", "ID", "with --pack: the user for whom calls are made", SAFETY)
]
_WORDS = {"ok": "ok", "fault": "fault", "open": "fails open"}
_STYLES = {"ok": "green", "fault": "error", "open": "warning"}


@command(
    examples=(
        ("cogcli gateway hook claude-code", "the command of a hook; reads JSON on stdin"),
        ("cogcli gateway hook cursor --hold 0", "do not hold a call that waits for a person"),
        ("cogcli gateway hook codex --pack desk@1.0.0 --intent help", "a pack decides"),
    ),
    exits=(0, 2),
)
def hook(
    context: CommandContext,
    host: Host,
    *,
    hold: Hold = None,
    pack: Pack = None,
    intent: Intent = None,
    user: User = None,
) -> int:
    """Decide about one call, and exit 0 with JSON, or 2."""
    return run_hook([host, *_hook_arguments(hold, pack, intent, user)])


def _hook_arguments(
    hold: int | None, pack: str | None, intent: str | None, user: str | None
) -> list[str]:
    """Return the flags of a hook as words of a command line."""
    given = {"--hold": hold, "--pack": pack, "--intent": intent, "--user": user}
    return [
        word for name, value in given.items() if value is not None for word in (name, str(value))
    ]


@command(
    examples=(
        ("cogcli gateway config claude-code", "print the hooks"),
        ("cogcli gateway config cursor --write", "merge them into the file of the project"),
        ("cogcli gateway config claude-code --server --write", "make the gateway a server of it"),
    ),
    exits=(0, 2, 3),
)
def show_config(
    context: CommandContext,
    host: Host,
    *,
    write: Annotated[
        bool, switch("--write", help="merge them into the file of the project")
    ] = False,
    server: Annotated[
        bool, switch("--server", help="the gateway as a server of the host, instead of hooks")
    ] = False,
    hold: Hold = None,
    pack: Pack = None,
    intent: Intent = None,
    user: User = None,
) -> int:
    """Print the hooks, or the server, as the host's file has them, or merge them into that file."""
    found, flags = find_host(host), _hook_arguments(hold, pack, intent, user)
    settings = context.settings
    document = build_server(settings, found, flags) if server else build_config(found, flags)
    context.own["config"] = document
    if not write:
        context.answer(format_document(document))
        return OK
    write_file = write_server_file if server else write_config
    path = settings.display_path(write_file(settings, found, flags))
    context.own["file"] = path
    context.answer([[(visible(path), "")]])
    if server:
        context.note(f"turn the other servers off in {found.title}: it starts them itself")
        context.note("then trust the file as it is now: cogcli config trust")
    else:
        context.note(f"start {found.title} again, then: cogcli gateway doctor {found.name}")
    return OK


@command(
    examples=(
        ("cogcli gateway doctor claude-code", "a line for each check"),
        ("cogcli gateway doctor codex --json | jq .checks", "for scripts"),
        ("cogcli gateway doctor cursor -C ../shop", "of another project"),
    ),
    exits=(0, 1, 2, 3),
)
def check(context: CommandContext, host: Host) -> int:
    """Check the hooks of a host. Exit 1 if something is to be corrected."""
    lines = list(check_host(context.settings, find_host(host)))
    context.own["checks"] = [line._asdict() for line in lines]
    context.answer(
        [
            [(f"{_WORDS[line.state]:<12}", _STYLES[line.state]), (visible(line.text), "")]
            for line in lines
        ]
    )
    for command_line in dict.fromkeys(line.next for line in lines if line.next):
        context.note(command_line)
    return NO if has_fault(lines) else OK


@command(
    examples=(
        ("cogcli gateway mark claude-code --read-only Read --read-only Grep", "these ask no more"),
        ("cogcli gateway mark claude-code --asks Grep", "it asks again"),
        ("cogcli gateway mark claude-code", "the marked tools"),
    ),
    exits=(0, 2, 3, 4, 6),
)
def mark(
    context: CommandContext,
    host: Host,
    *,
    read_only: Annotated[
        list[str],
        text("--read-only", "TOOL", "it changes nothing: do not ask a person (repeatable)", SAFETY),
    ],
    asks: Annotated[
        list[str], text("--asks", "TOOL", "ask a person for each call of it (repeatable)", SAFETY)
    ],
) -> int:
    """Mark tools of a host as read-only, or remove marks, and print all marked tools."""
    marks = {**dict.fromkeys(read_only, True), **dict.fromkeys(asks, False)}
    found = set_marks(context.settings, find_host(host), marks)
    context.own["read_only"] = found
    context.answer([[(visible(name), "")] for name in found])
    if not found:
        context.note("no tool is marked read-only: a person is asked for each call")
    return OK
