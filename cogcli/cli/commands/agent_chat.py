"""`agent chat`: a conversation with an agent at the terminal (docs/reference/agent-run.md#chat)."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial

from cogcli.agent.use_cases.invoke_agent import AgentCommandInput
from cogcli.agent.use_cases.jobs import work_after_answer
from cogcli.agent.use_cases.model import model_access
from cogcli.app.packs import read_pack
from cogcli.app.registry import is_untrusted
from cogcli.base.errors import UsageError
from cogcli.cli.chat import Chat, ChatIdentity
from cogcli.cli.commands.agent import read_invocation
from cogcli.cli.context import CommandContext
from cogcli.cli.options import command
from cogcli.cli.run_flags import ChatFlags
from cogcli.cli.run_skill import warn_of_distrust


@command(
    examples=(
        (
            "cogcli agent chat --pack support-desk@4.0.0 --user cust_7",
            "talk to the agent of a pack",
        ),
        ("cogcli agent chat --session monday", "continue a conversation"),
        (
            "cogcli agent chat --model openai:small-1",
            "with a model that may call skills without effects",
        ),
    ),
    exits=(0, 2, 3, 143),
)
def chat(context: CommandContext, *, flags: ChatFlags) -> int:
    """Talk to an agent; each message is a run with an episode of its own. Ctrl-C stops the answer, Ctrl-D ends the
    conversation.
    """
    _require_terminal(context)
    settings = context.settings
    session = flags.session or f"chat-{settings.ids.ulid().lower()[-8:]}"
    with suppress(ImportError):  # line editing, where Python has it
        import readline  # noqa: F401

    def ask(message: str, mode: str) -> AgentCommandInput:
        request = {"message": message, "session_id": session}
        return read_invocation(context, request, flags)._replace(mode=mode)

    mode, model = flags.mode or "adapt", flags.model or ""
    given = ask("x", mode)
    reference = given.request.pack_ref
    warn_of_distrust(context, "pack", reference)
    pack = read_pack(settings, reference) if reference else None
    opened = model_access(settings, model, "adapt")
    party = ChatIdentity(
        pack.tenant if pack else "local",
        given.agent_request.request.user.user_id,
        guided=pack is None and opened is None,
        has_store=not is_untrusted(settings, "pack", reference),
    )
    names = [
        f"{pack.pack_id}@{pack.version}" if pack else "skills without effects",
        party.user,
        f"{opened.info.adapter} {opened.info.name}" if opened else "no model",
        *([] if party.guided else [f"session {session}"]),
    ]
    code = Chat(context, ask, mode, party, " · ".join(names)).run()
    if party.has_store:
        context.afterwards.append(partial(work_after_answer, settings, model))
    return code


def _require_terminal(context: CommandContext) -> None:
    """Raise UsageError if stdin or an output stream is not a terminal."""
    screen = context.screen
    if screen.json or not (screen.out.real_tty and screen.err.real_tty and sys.stdin.isatty()):
        raise UsageError(
            "usage.flag",
            "a conversation needs a terminal",
            hint="cogcli agent invoke --session ID --message TEXT",
            next=("cogcli agent invoke --help",),
        )
