"""`new ...`: write the first version of a project or spec, and print the paths
(docs/reference/command-line.md#new).
"""

from __future__ import annotations

from typing import Annotated

from cogcli.authoring.new_specs import api_binding, scenario_file, templates, tool_binding
from cogcli.authoring.new_specs.new_files import NewSpecs
from cogcli.base.errors import NO, OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import INPUT, OUTPUT, argument, command, switch, text, wrong_flag
from cogcli.cli.render_error import next_lines, redirect_command

Channel = Annotated[
    str, text("--channel", "WORD", "the channel folder of the new files", OUTPUT, default="local")
]
Force = Annotated[bool, switch("--force", help="replace files that exist", panel=OUTPUT)]


@command(
    examples=(
        ("cogcli new project shop", "a directory with a skill that runs at once"),
        ("cogcli new project .", "in this directory; existing files stay"),
        ("cogcli new project shop --json | jq -r '.created[]'", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def project(
    context: CommandContext, name: Annotated[str, argument("NAME")], *, force: Force = False
) -> int:
    """Create a project with settings, a first skill, and schemas for editors."""
    start = context.call.flags.directory or ""
    return _answer_created(
        context,
        templates.new_project(context.settings, name, start=start, force=force),
        global_flags="",
    )


@command(
    examples=(
        ("cogcli new pack shop-desk", "an agent that may read, version 1.0.0"),
        ("cogcli pack check shop-desk@1.0.0", "check it"),
        ("cogcli new pack shop-desk --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def pack(
    context: CommandContext, id: Annotated[str, argument("ID")], *, force: Force = False
) -> int:
    """Create a pack."""
    return _answer_created(context, templates.new_pack(context.settings, id, force=force))


@command(
    examples=(
        ("cogcli new skill shop.report", "a skill that runs at once"),
        (
            "cogcli new skill shop.brief --like text.brief",
            "a copy of another one, comments and all",
        ),
        ("cogcli new skill --like text.brief", "as text.my-brief"),
    ),
    exits=(0, 2, 3),
)
def skill(
    context: CommandContext,
    id: Annotated[str | None, argument("[ID]")] = None,
    *,
    like: Annotated[
        str | None, text("--like", "SKILL", "copy this skill", INPUT, completes="skills")
    ] = None,
    channel: Channel = "local",
    force: Force = False,
) -> int:
    """Create a skill, or copy one."""
    made = templates.new_skill(context.settings, id, like=like, channel=channel, force=force)
    return _answer_created(context, made)


@command(
    examples=(
        ("cogcli new capability orders.item.read", "a contract: inputs, outputs, effects"),
        ("cogcli capabilities show orders.item.read", "its fields"),
        ("cogcli new capability orders.item.read --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def capability(
    context: CommandContext, id: Annotated[str, argument("ID")], *, force: Force = False
) -> int:
    """Create a capability."""
    return _answer_created(context, templates.new_capability(context.settings, id, force=force))


def _require_one_source(*sources: str) -> list[str]:
    """Return the single given source. Raise UsageError for no source or several."""
    given = [each for each in sources if each]
    if len(given) != 1:
        raise wrong_flag(
            "`new binding` needs one of `--from-openapi FILE`, `--from-mcp SERVICE` and"
            " `--from-openrpc SERVICE`",
            "by hand: cogcli help formats",
        )
    return given


def _require_no_names(*names: str | None) -> None:
    """Raise UsageError if `--all` is given together with the name of an operation or of outputs."""
    if any(name is not None for name in names):
        raise wrong_flag("`--all` names no single operation", "give --all, or a name")


@command(
    examples=(
        (
            "cogcli new binding orders.item.read --from-openapi openapi.json --operation getOrder",
            "one operation: capability, binding, service",
        ),
        (
            "cogcli new binding orders --from-openapi openapi.json --all",
            "all of them, as orders.OPERATION",
        ),
        (
            "cogcli new binding clock.now --from-mcp clock --tool get_current_time",
            "a locked tool of an MCP server",
        ),
    ),
    exits=(0, 1, 2, 3),
)
def binding(
    context: CommandContext,
    id: Annotated[str, argument("CAP")],
    *,
    from_openapi: Annotated[
        str, text("--from-openapi", "FILE", "an OpenAPI document, JSON or YAML", INPUT)
    ] = "",
    from_mcp: Annotated[
        str,
        text(
            "--from-mcp", "SERVICE", "an MCP service with locked tools", INPUT, completes="services"
        ),
    ] = "",
    from_openrpc: Annotated[
        str,
        text("--from-openrpc", "SERVICE", "a service with a document", INPUT, completes="services"),
    ] = "",
    tool: Annotated[str | None, text("--tool", "NAME", "the tool or method to bind", INPUT)] = None,
    operation: Annotated[
        str | None, text("--operation", "ID", "the operation to bind", INPUT)
    ] = None,
    all: Annotated[
        bool, switch("--all", help="bind all operations; CAP begins their ids", panel=INPUT)
    ] = False,
    outputs: Annotated[
        str | None, text("--outputs", "NAME,...", "only these outputs of the reply", INPUT)
    ] = None,
    base_url: Annotated[
        str | None, text("--base-url", "URL", "the address of the service", INPUT)
    ] = None,
    keep_going: Annotated[
        bool, switch("--keep-going", help="end with 0 if operations were skipped", panel=INPUT)
    ] = False,
    channel: Channel = "local",
    force: Force = False,
) -> int:
    """Create capability and binding from what a service says of itself."""
    sources = _require_one_source(from_openapi, from_mcp, from_openrpc)
    if all:
        _require_no_names(operation, tool, outputs)
    templates.require_channel(channel)
    named = tuple(filter(None, map(str.strip, (outputs or "").split(","))))
    if from_openapi:
        wanted = api_binding.BindingRequest(
            id,
            from_openapi,
            operation or tool,
            all=all,
            base_url=base_url,
            channel=channel,
            force=force,
            outputs=named,
        )
        made = api_binding.new_binding(context.settings, wanted)
    else:
        kind = tool_binding.MCP if from_mcp else tool_binding.OPENRPC
        request = tool_binding.ToolRequest(
            id, kind, sources[0], tool or operation, all, channel, force, named
        )
        made = tool_binding.new_tool_binding(context.settings, request)
    code = _answer_created(context, made)
    return NO if made.skipped and not keep_going else code


@command(
    examples=(
        (
            "cogcli new scenario openapi_orders_item_read",
            "one call, with what its mock server answers",
        ),
        ("cogcli openapi verify-bindings --all", "run all scenarios"),
        ("cogcli new scenario openapi_orders_item_read --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def scenario(
    context: CommandContext,
    binding: Annotated[str, argument("BINDING", "bindings")],
    *,
    force: Force = False,
) -> int:
    """Create a scenario of a binding."""
    return _answer_created(
        context, scenario_file.new_scenario(context.settings, binding, force=force)
    )


def _answer_created(
    context: CommandContext, specs: NewSpecs, *, global_flags: str | None = None
) -> int:
    """Print the created files. Notes and next commands, with the flags `global_flags`, go to stderr."""
    global_flags = context.again if global_flags is None else global_flags
    context.own["created"] = specs.files
    context.answer("".join(f"{visible(file)}\n" for file in specs.files))
    for note in specs.notes:
        context.warnings.append({"code": "new.note", "message": note})
        context.note(visible(note))
    if specs.bound:
        context.own |= {"bound": specs.bound, "skipped": specs.skipped}
        context.note(f"{specs.bound:,} bound, {specs.skipped:,} skipped")
    if context.screen.hints:
        for line in next_lines([redirect_command(command, global_flags) for command in specs.next]):
            context.screen.notify_line(line)
    return OK
