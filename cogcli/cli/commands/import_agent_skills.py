"""`import agent-skills`: print the settings that make the folders of agent-skills a cogcli project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cogcli.authoring.exchange.agent_skills import Setup, propose
from cogcli.authoring.exchange.module_faults import ImportRemark
from cogcli.base.errors import OK
from cogcli.base.terminal_text import visible, visible_block
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument, command


@command(
    examples=(
        (
            "cogcli import agent-skills ../agent-skills ../agent-skill-registry",
            "the runtime, then its registry",
        ),
        ("cogcli import agent-skills ../agent-skills", "the registry is inside it or next to it"),
        (
            "cogcli import agent-skills ../agent-skills --json | jq -r '.setup.files[\"cogcli.toml\"]'",
            "one file",
        ),
    ),
    exits=(0, 2, 3),
)
def agent_skills(
    context: CommandContext,
    runtime: Annotated[str, argument("RUNTIME")],
    specs: Annotated[str | None, argument("[REGISTRY]")] = None,
) -> int:
    """Print the proposed files, variables and commands."""
    setup = propose(context.settings, runtime, specs)
    context.own["setup"] = setup.to_payload()
    context.answer("".join(f"{line}\n" for line in _setup_lines(setup)))
    return OK


def _setup_lines(setup: Setup) -> Iterator[str]:
    """Yield the lines of the setup, which can be pasted into a shell or file."""
    for name, text in setup.files.items():
        yield f"# {'put into' if name in setup.there else 'write to'} {visible(name)}"
        yield from visible_block(text.rstrip("\n")).split("\n")
        yield ""
    yield from _remark_lines(
        "# chosen above", [(f"{id}: {each.text}", each) for id, each in setup.choices.items()]
    )
    if setup.variables:
        yield "# set, with values of yours"
        for name, each in setup.variables.items():
            yield visible(
                f"export {name}=...   # {each.text}, {each.file}:{each.line}, for {each.reason}"
            )
        yield ""
    yield "# then run"
    yield from setup.commands
    yield ""
    yield from _remark_lines("# left to do by hand", [(each.text, each) for each in setup.left])
    yield f"# {setup.usable} of {setup.skills} skills could run after that; nothing was written"


def _remark_lines(head: str, remarks: list[tuple[str, ImportRemark]]) -> Iterator[str]:
    """Yield remarks as comment lines: place and text, then the reason."""
    if not remarks:
        return
    yield head
    for text, each in remarks:
        place = f"{each.file}:{each.line}" if each.line else each.file
        yield visible(f"#   {place}: {text}")
        if each.reason:
            yield visible(f"#       {each.reason}")
    yield ""
