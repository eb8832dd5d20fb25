"""`explain CODE`: what a code means, an example, the cure; offline."""

from __future__ import annotations

from typing import Annotated

from cogcli.app.explain import page, pages
from cogcli.base.errors import OK, UsageError
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument, command, switch


@command(
    examples=(
        ("cogcli explain ref.unwritten", "one code"),
        ("cogcli explain --list", "every code"),
        ("cogcli explain input.type --json", "for scripts"),
    )
)
def explain(
    context: CommandContext,
    code: Annotated[str | None, argument("[CODE]", "codes")] = None,
    *,
    list: Annotated[bool, switch("--list", help="every code")] = False,
) -> int:
    """One page, or all codes with what they mean."""
    if list:
        known = pages()
        context.own["explanation"] = {code: meaning for code, (meaning, _, _) in known.items()}
        size = max(map(len, known))
        text = "".join(
            f"{code:<{size}}  {meaning}\n" for code, (meaning, _, _) in sorted(known.items())
        )
    elif code is not None:
        found = page(code)
        context.own["explanation"] = found
        text = _text(found)
    else:
        raise UsageError("usage.value", "`explain` needs a code", next=("cogcli explain --list",))
    context.answer(text)
    return OK


def _text(found: dict[str, object]) -> str:
    lines = [f"{found['code']}", "", f"  {found['means']}", ""]
    lines += [f"  example  {found['example']}", f"  cure     {found['cure']}"]
    if found["exit_code"] is not None:
        retry = ", may be retried" if found["retryable"] else ""
        lines.append(f"  exit     {found['exit_code']}{retry}")
    return "\n".join(lines) + "\n"
