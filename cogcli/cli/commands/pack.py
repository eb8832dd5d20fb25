"""`pack check`, `pack hash`, `pack pin`: check a pack, print its hash, and pin the version that a
bare id means (docs/reference/pack.md#check).
"""

from __future__ import annotations

from typing import Annotated

from cogcli.app.pack_pins import Promotion, promote, unpin
from cogcli.app.packs import check_pack_file, read_pack, resolve_pack, run_rule_tests
from cogcli.base.errors import OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument, command, switch, text, wrong_value
from cogcli.cli.pack_reports import report_problems, report_tests

PackName = Annotated[str, argument("ID[@VERSION]|FILE", "packs")]
"""A pack by `id@version`, perhaps with its hash, by a bare id that is pinned, or by its file."""


@command(
    examples=(
        ("cogcli pack check support-desk@4.0.0", "references, rules, contradictions"),
        ("cogcli pack check packs/support-desk/4.0.0.yaml", "by its file"),
        ("cogcli pack check support-desk@4.0.0 --json", "for scripts"),
    ),
    exits=(0, 1, 2, 3),
)
def check(context: CommandContext, pack: PackName) -> int:
    """Check all parts of a pack."""
    return report_problems(context, check_pack_file(context.settings, pack))


@command(
    examples=(
        ("cogcli pack hash support-desk@4.0.0", "the reference that names exactly this pack"),
        ("cogcli pack hash packs/support-desk/4.0.0.yaml", "by its file"),
        ("cogcli pack hash support-desk@4.0.0 --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def print_hash(context: CommandContext, pack: PackName) -> int:
    """Print the reference of a pack with its hash."""
    found = read_pack(context.settings, pack)
    context.own["pack"] = {
        "pack_id": found.pack_id,
        "pack_version": found.version,
        "hash": found.hash,
    }
    context.answer(visible(found.ref) + "\n")
    return OK


@command(
    examples=(
        ("cogcli pack pin support-desk@4.0.0", "use this version from now on"),
        ("cogcli pack pin support-desk --env prod", "the same pin for production"),
        ("cogcli pack pin support-desk --remove", "remove the pin"),
    ),
    exits=(0, 1, 2, 3),
)
def pin(
    context: CommandContext,
    pack: Annotated[str, argument("ID[@VERSION]", "packs")],
    *,
    env: Annotated[
        str | None,
        text("--env", "NAME", "pin for this environment, as named by COGCLI_ENV", default="none"),
    ] = None,
    remove: Annotated[bool, switch("--remove", help="remove the pin of this id")] = False,
) -> int:
    """Pin a pack with its hash in the project's `cogcli.toml` if `pack check` and `policy test`
    pass.
    """
    if remove:
        if "@" in pack:
            raise wrong_value(
                f"`--remove` takes an id, found `{pack}`",
                f"cogcli pack pin {pack.partition('@')[0]} --remove",
            )
        return _report_pin(context, unpin(context.settings, pack, env))
    if pack.endswith((".yaml", ".yml")):
        raise wrong_value(f"a pin is by reference, found `{pack}`", "cogcli pack pin ID@VERSION")
    reference = resolve_pack(context.settings, pack)
    checked = check_pack_file(context.settings, reference)
    if checked.errors:
        return report_problems(context, checked)
    found = read_pack(context.settings, reference)
    tests = run_rule_tests(context.settings, reference, found)
    if not all(test.passed for test in tests):
        return report_tests(context, tests)
    return _report_pin(context, promote(context.settings, found, env))


def _report_pin(context: CommandContext, promotion: Promotion) -> int:
    """Print the written pin, and the command that undoes it."""
    context.own["pin"] = promotion._asdict()
    context.answer(visible(promotion.reference or promotion.file) + "\n")
    where = f" where COGCLI_ENV is {promotion.environment}" if promotion.environment else ""
    if not promotion.written:
        word = "was pinned already" if promotion.reference else "was not pinned"
        context.note(visible(f"`{promotion.pack_id}` {word}{where}"))
        return OK
    before = f", before {promotion.before}" if promotion.before else ""
    word = f"stands for {promotion.reference}" if promotion.reference else "is not pinned any more"
    context.note(visible(f"{promotion.file}: `{promotion.pack_id}` {word}{where}{before}"))
    context.note(visible(f"undo: {promotion.undo}{context.again}"))
    return OK
