"""The options of a run for a request to an agent: those of the caller and those of the request together
(docs/reference/agent-run.md#invoke)."""

from __future__ import annotations

from cogcli.agent.use_cases.compile_context import RequestWithOptions
from cogcli.app.packs import resolve_pack
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError, UsageError
from cogcli.declarations.options import RunOptions
from cogcli.declarations.pack_spec import MODES
from cogcli.declarations.value_types import Json
from cogcli.policy.budgets import flatten


def with_options(given: RequestWithOptions, options: RunOptions) -> RequestWithOptions:
    """Return the request with the intent and the user of the options, if they have them."""
    request = given.request
    user = request.user._replace(user_id=options.user or request.user.user_id)
    return given._replace(
        request=request._replace(intent=options.intent or request.intent, user=user)
    )


def merge_options(
    settings: Settings, given: RequestWithOptions, options: RunOptions, problems: list[CogcliError]
) -> RunOptions:
    """Return the options of the caller and of the request together. Faults of the request are added to `problems`.

    An option overrides the request, but can only tighten the safety mode and the budget. The pack of the options
    replaces the first pack of the request; additional packs of the request are kept. An empty pack stands for the
    built-in one. The intent always comes from the request.
    """
    if options.shadow:
        text = "`shadow` is for runs of skills and for sessions: an agent enforces its pack"
        problems.append(UsageError("usage.flag", text))
    budget = _budget_limits(given.budget, problems)
    for key, value in options.budget.items():
        budget[key] = min(value, budget.get(key, value))
    primary = options.pack or next(iter(given.pack_refs), "")
    added = [*given.pack_refs[1:], *options.with_packs]
    return options.replace(
        safety_mode=_stricter_mode(options.safety_mode, given.safety_mode, problems),
        pack=resolve_pack(settings, primary) if primary else "",
        with_packs=[resolve_pack(settings, name) for name in added],
        intent="",
        user=given.request.user.user_id,
        budget=budget,
        trace_id=options.trace_id or given.trace_id or None,
        tags={**given.tags, **options.tags},
    )


def _budget_limits(budget: Json, problems: list[CogcliError]) -> dict[str, int]:
    """Return the limits of a budget by path. A limit that is not a number is added to `problems`."""
    found = {}
    for key, value in flatten(budget):
        if type(value) is int and value >= 0:
            found[key] = value
        else:
            problems.append(
                UsageError("input.type", f"`budget.{key}` of the request: expected a number")
            )
    return found


def _stricter_mode(flag: str, wanted: str, problems: list[CogcliError]) -> str:
    """Return the stricter of two safety modes; empty if neither is set."""
    if wanted and wanted not in MODES:
        problems.append(
            UsageError("usage.value", "`safety_mode` of the request", hint=", ".join(MODES))
        )
        return flag
    named = [mode for mode in (flag, wanted) if mode]
    return min(named, key=MODES.index) if named else ""
