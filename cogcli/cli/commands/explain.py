"""`explain CODE`: what a code means, an example, the cure; offline."""

from __future__ import annotations

from cogcli.core.errors import OK, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext


def execute(context: CommandContext) -> int:
    """One page, or all codes with what they mean."""
    from cogcli.app.explain import page, pages

    words = context.arguments.words
    if context.arguments.on("--list"):
        known = pages()
        context.own["explanation"] = {code: meaning for code, (meaning, _, _) in known.items()}
        size = max(map(len, known))
        text = "".join(f"{code:<{size}}  {meaning}\n" for code, (meaning, _, _) in sorted(known.items()))
    elif words:
        found = page(words[0])
        context.own["explanation"] = found
        text = _text(found)
    else:
        raise UsageError("usage.value", "`explain` needs a code", next=("cogcli explain --list",))
    if not context.json:
        context.screen.answer(text)
    return OK


def _text(found: dict[str, object]) -> str:
    lines = [
        f"{found['code']}",
        "",
        f"  {found['means']}",
        "",
        f"  example  {found['example']}",
        f"  cure     {found['cure']}",
    ]
    if found["exit_code"] is not None:
        retry = ", may be retried" if found["retryable"] else ""
        lines.append(f"  exit     {found['exit_code']}{retry}")
    return "\n".join(lines) + "\n"
