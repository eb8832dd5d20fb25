"""`policy check|test|eval|explain|diff`: check and test a pack's rules, and explain or compare
their decisions (docs/reference/pack.md#explain).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cogcli.app.episodes import find as find_episode
from cogcli.app.episodes import find_all
from cogcli.app.packs import check_policy, evaluate_call, find_pack, read_pack, run_rule_tests
from cogcli.app.policy_comparison import EpisodeComparison, compare_logs, read_log_for_comparison
from cogcli.app.policy_explanation import explain_episode
from cogcli.app.policy_history import (
    GovernedLog,
    is_shadow_run,
    read_ended_decision,
    read_governed_run,
)
from cogcli.app.policy_prover import prove_packs
from cogcli.app.spooled_values import SpooledValues
from cogcli.base.errors import NO, OK, PENDING, VETOED, UnusableEnvironment, UsageError
from cogcli.base.problems import suggestion
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.empty_checks import find_refusal
from cogcli.cli.envelope import StreamedList, dumps
from cogcli.cli.inputs import read_json_flag
from cogcli.cli.options import NewestEpisode, argument, command, integer, switch, text
from cogcli.cli.pack_reports import report_coverage, report_problems, report_tests
from cogcli.cli.policy_screen import (
    change_lines,
    decision_line,
    explanation_lines,
    proof_lines,
)
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.value_types import Json
from cogcli.policy.pack_diff import diff_packs
from cogcli.policy.policy_proof import EQUAL
from cogcli.policy.rule_coverage import cover_rules
from cogcli.report.humanize import count_of

PackName = Annotated[str, argument("ID[@VERSION]|FILE", "packs")]
"""A pack by `id@version`, perhaps with its hash, by a bare id that is pinned, or by its file."""


@command(
    examples=(
        (
            "cogcli policy check support-desk@4.0.0",
            "references, conditions, contradictions, rules that never decide",
        ),
        ("cogcli policy check packs/support-desk/4.0.0.yaml", "by its file"),
        ("cogcli policy check support-desk@4.0.0 --json", "for scripts"),
    ),
    exits=(0, 1, 2, 3),
)
def check(context: CommandContext, pack: PackName) -> int:
    """Check the policy of a pack, including rules that can never decide."""
    return report_problems(context, check_policy(context.settings, pack))


@command(
    examples=(
        ("cogcli policy test support-desk@4.0.0", "each rule against its tests"),
        ("cogcli policy test packs/support-desk/4.0.0.yaml", "by its file"),
        (
            "cogcli policy test support-desk@4.0.0 --coverage --min-coverage 50",
            "which rules, branches and verdicts do they reach?",
        ),
    ),
    exits=(0, 1, 2, 3),
)
def test(
    context: CommandContext,
    pack: PackName,
    *,
    coverage: Annotated[
        bool, switch("--coverage", help="show which rules, branches and verdicts the tests reach")
    ],
    min_coverage: Annotated[
        int | None,
        integer(
            "--min-coverage",
            "fail below this percentage",
            minimum=0,
            maximum=100,
            metavar="PERCENT",
        ),
    ],
) -> int:
    """Run the tests next to the rules. Each enforced rule needs a `match` and a `no_match`."""
    found = read_pack(context.settings, pack)
    tests = run_rule_tests(context.settings, pack, found)
    code = report_tests(context, tests)
    refusal = find_refusal(
        checked=len(tests),
        total=len(tests),
        empty="the pack has no rule that has a test or needs one",
        hint="write rules in `policy_layer.rules`, with `tests`",
    )
    if refusal is not None:
        raise refusal
    if not coverage and min_coverage is None:
        return code
    return report_coverage(context, cover_rules(found.policy.rules), min_coverage or 0) or code


@command(
    examples=(
        (
            "cogcli policy eval support-desk@4.0.0 --capability payments.refund --data call.json",
            "may this call be made?",
        ),
        (
            "cogcli policy eval support-desk@4.0.0 --capability payments.refund --data call.json | jq .reads",
            "which facts did the rules read?",
        ),
        ("cogcli pack check support-desk@4.0.0", "check its rules"),
    ),
    exits=(0, 2, 3, 4, 5),
)
def evaluate(
    context: CommandContext,
    pack: PackName,
    *,
    capability: Annotated[
        str | None, text("--capability", "CAP", "the call's capability", completes="capabilities")
    ],
    data: Annotated[
        str | None, text("--data", "FILE", "the facts of the call that rules read, as JSON or YAML")
    ],
) -> int:
    """Evaluate a call by the three checks. Return 0 if it may be made, 4 if not, 5 if a person
    decides.
    """
    if capability is None or data is None:
        lacking = "--capability" if capability is None else "--data"
        hint = "cogcli policy eval PACK --capability CAP --data FILE"
        raise UsageError("usage.flag", f"`{lacking}` is missing", hint=hint)
    found = find_pack(context.settings, pack)
    verdict = evaluate_call(found, capability, read_json_flag(context, f"@{data}", "--data"))
    context.own["verdict"] = verdict.to_payload()
    context.answer(dumps(verdict.to_payload()) + "\n")
    if verdict.outcome in ("allow_with_gate", "escalate"):
        return PENDING
    return OK if verdict.allows else VETOED


@command(
    examples=(
        ("cogcli policy explain @last", "every governed call: stages, rules, facts"),
        ("cogcli policy explain @last --call refund", "one call"),
        (
            "cogcli policy explain @last --json | jq '.calls[].flips[0]'",
            "the nearest number that would change the decision",
        ),
    ),
    exits=(0, 2, 3),
)
def explain(
    context: CommandContext,
    episode: NewestEpisode = None,
    *,
    call: Annotated[
        str | None, text("--call", "STEP", "only the calls of this step", completes="steps")
    ] = None,
) -> int:
    """Explain the decision about each governed call of an episode. Nothing is called."""
    directory = find_episode(context.settings, episode)
    calls = _explained_calls(directory, call)
    context.own["episode_id"] = directory.name
    context.own["calls"] = []
    context.streamed = StreamedList(("calls",), lambda: calls)
    if is_shadow_run(directory):
        context.note("shadow: no rule of the pack was enforced in this run")
    if not context.json:
        for number, each in enumerate(calls):
            lines = [*([""] if number else []), *explanation_lines(each)]
            context.answer("".join(f"{visible(line)}\n" for line in lines))
    if not calls:
        context.note(_explain_no_decision(directory))
    return OK


def _explain_no_decision(directory: Path) -> str:
    """Return why no call of a run was decided by a pack."""
    if read_governed_run(directory) is None:
        return "no pack decided about a call of this run"
    ended = read_ended_decision(directory)
    reason = f", which ended as {ended.status}: {ended.status_reason}" if ended else ""
    return f"the pack decided about no call of this run{reason}"


def _explained_calls(directory: Path, step: str | None) -> SpooledValues:
    """Return the explained calls of an episode, or those of a step.

    Raise UsageError `step.unknown` if the step has none."""
    calls, steps = SpooledValues(), dict[str, None]()
    for each in explain_episode(directory):
        if step is None or each["step_id"] == step:
            calls.append(each)
        else:
            steps[each["step_id"]] = None
    if step is not None and not calls:
        hint = suggestion(step, list(steps)) or f"decided were: {', '.join(steps) or 'none'}"
        raise UsageError("step.unknown", f"no pack decided about a step `{step}`", hint=hint)
    return calls


@command(
    examples=(
        ("cogcli policy diff support-desk@4.0.0 new.yaml", "the rules that differ"),
        (
            "cogcli policy diff support-desk@4.0.0 new.yaml --over @last",
            "recorded decisions that change",
        ),
        (
            "cogcli policy diff support-desk@4.0.0 new.yaml --prove",
            "does it permit more or less, for all calls?",
        ),
    ),
    exits=(0, 1, 2, 3),
    maximum=10_000,
)
def diff(
    context: CommandContext,
    old: PackName,
    new: PackName,
    more: Annotated[list[str], argument("[EP...]", "episodes")],
    *,
    over: Annotated[
        list[str],
        text("--over", "EP...", "judge the calls of these episodes again", completes="episodes"),
    ],
    prove: Annotated[
        bool, switch("--prove", help="prove for all calls whether NEW permits more or less")
    ],
) -> int:
    """Compare the policies of two packs, and their decisions about recorded calls or all calls.

    Return exit code 1 if a decision changes or cannot be computed.
    """
    if more and not over:
        raise UsageError(
            "usage.flag",
            "episodes come after `--over`",
            hint="cogcli policy diff OLD NEW --over EP...",
        )
    before, after = (read_pack(context.settings, name) for name in (old, new))
    changes = diff_packs(before, after)
    context.own["changes"] = [change.to_payload() for change in changes]
    context.answer("".join(f"{visible(line)}\n" for line in change_lines(changes)))
    if not changes:
        context.note("the policies are the same")
    code = _show_proof(context, old, new) if prove else OK
    if not over:
        return code
    return _compare_with_pack(context, [*over, *more], before, after) or code


def _show_proof(context: CommandContext, old: str, new: str) -> int:
    """Display the proof about two packs, and return the exit code."""
    proof = prove_packs(*(find_pack(context.settings, name) for name in (old, new)))
    context.own["proof"] = proof.to_payload()
    context.answer("".join(f"{visible(line)}\n" for line in proof_lines(proof)))
    kinds = count_of(proof.calls, "kind", "kinds")
    context.note(f"{proof.answer}, for {kinds} of calls")
    return OK if proof.answer == EQUAL else NO


def _list_changes(comparisons: Sequence[EpisodeComparison]) -> Json:
    """Return the changed and the undecided decisions of all these episodes."""
    return {
        "changed": [change.to_payload() for each in comparisons for change in each.changed],
        "undecided": [change.to_payload() for each in comparisons for change in each.undecided],
    }


def _compare_with_pack(
    context: CommandContext, names: list[str], old_pack: Pack, new_pack: Pack
) -> int:
    """Display how another pack changes recorded decisions, and return the exit code."""
    logs = list(_read_logs(context, names, old_pack))
    comparisons = compare_logs([log for log in logs if log is not None], old_pack, new_pack)
    total, passed_over = sum(each.decisions for each in comparisons), len(logs) - len(comparisons)
    context.own["decisions"] = {
        "episodes": len(comparisons),
        "passed_over": passed_over,
        "compared": total,
        **_list_changes(comparisons),
    }
    shown = [change for each in comparisons for change in (*each.changed, *each.undecided)]
    context.answer("".join(f"{visible(decision_line(change))}\n" for change in shown))
    where = f"of {count_of(total, 'recorded decision')} in {count_of(len(comparisons), 'episode')}"
    note = f"{len(shown)} {where} change"
    if passed_over:
        note += (
            f"; {count_of(passed_over, 'episode')} passed over: under no pack `{old_pack.pack_id}`"
        )
    context.note(visible(note))
    return NO if shown else OK


def _read_logs(
    context: CommandContext, names: list[str], before: Pack
) -> Iterator[GovernedLog | None]:
    """Yield the log of each named episode once; for a directory, of all its episodes, oldest first.

    Yield None for an episode under no version of the pack, and for an episode of a directory that
    cannot be read. The latter adds a warning.
    """
    for directory, is_named in find_all(context.settings, names).items():
        try:
            yield read_log_for_comparison(directory, before)
        except UnusableEnvironment as error:
            if is_named:
                raise
            context.warn(error)
            yield None
