"""`gateway learn`: a pack that recorded sessions would fit, as a proposal for a person
(docs/reference/gateway.md#learn).

1. The proposal is no pack of the project: nothing loads it, and it allows nothing.
2. No value of an argument is written. A range ends at a round number, and arguments whose numbers may name somebody
   have none.
3. Only calls that were made count. What was denied is not proposed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import names_secret
from cogcli.base.yaml.writer import yaml_text
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.events import StepCompleted
from cogcli.declarations.run_start import start_of
from cogcli.declarations.session_events import CallRequested
from cogcli.declarations.typed_payload import recorded_payload
from cogcli.declarations.value_types import Json
from cogcli.policy.evaluation import is_number
from cogcli.policy.freshness import seconds_of
from cogcli.policy.verdict import approval_mode, highest_mode
from cogcli.run.log_index_reading import read_log_index
from cogcli.run.replay import read_pinned_catalog

ROLE: Final = "agent"
INTENT: Final = "work"
_DAY: Final = 86_400
_MOST: Final = 10_000_000
"""Larger numbers are more likely to name something than to count something."""
_NAMING: Final = re.compile(
    r"(^|_)(id|ids|no|nr|number|phone|mobile|account|iban|card|code|zip|postcode|pin|year|birth|born|age|lat|lon)($|_)"
)
"""The names of arguments whose numbers may name somebody."""
_STEPS: Final = (1, 2, 5, 10)


class MadeCall(NamedTuple):
    """A call that a session made: its capability, its inputs, its user, and when it was requested."""

    capability: Capability
    input: Json
    user: str
    at: float


def read_calls(directory: Path) -> list[MadeCall] | None:
    """Return the calls that a session made; None for an episode that is no session.

    Raise UnusableEnvironment `episode.unreadable`.
    """
    events, log = read_log_index(directory)
    start = start_of(log.started) if log.started else None
    if log.started is None or start is None or start.gateway is None:
        return None
    capabilities = read_pinned_catalog(log.started, directory).capabilities
    user = start.policy.user if start.policy else ""
    asked: dict[str, MadeCall] = {}
    found = []
    for event in events:
        match recorded_payload(event):
            case CallRequested() as call if call.capability in capabilities:
                capability = capabilities[call.capability]
                asked[call.step_id] = MadeCall(
                    capability, call.input, user, seconds_of(event.timestamp)
                )
            case StepCompleted() as step if step.step_id in asked:
                found.append(asked.pop(step.step_id))
    return found


def propose_pack(pack_id: str, calls: Sequence[MadeCall]) -> Json:
    """Return the mapping of a pack that permits these calls, with their ranges as rules and their rates as limits."""
    by_capability: dict[str, list[MadeCall]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: call.capability.id):
        by_capability[call.capability.id].append(call)
    modes = {id: approval_mode(found[0].capability) for id, found in by_capability.items()}
    highest, names = highest_mode(list(modes.values())), list(by_capability)
    return {
        "contract_meta": {"contract_version": "1.0"},
        "pack_meta": {
            "pack_id": pack_id,
            "pack_version": "0.1.0",
            "defaults": {"safety_mode": highest},
        },
        "policy_layer": {
            "permissions": [{"role": ROLE, "allow": names}],
            "limits": [
                _learn_limit(number, id, by_capability[id]) for number, id in enumerate(names, 1)
            ],
            "rules": list(_learn_rules(by_capability)),
        },
        "tooling_layer": {
            "capabilities": {id: {"approval_mode": mode} for id, mode in modes.items()}
        },
        "decision_layer": {
            "intents": [{"id": INTENT, "phrases": [INTENT], "risk": highest, "capabilities": names}]
        },
        "tone_and_comms": {"agent": {"role": ROLE}},
    }


def write_pack_text(raw: Json, sessions: int, calls: int) -> bytes:
    """Return a proposal as the bytes of a pack file, with a comment that explains it."""
    head = (
        f"# Proposed from {sessions} sessions with {calls} calls. Nothing loads this file, and it allows nothing.\n"
        "# Read it, change it, and move it to packs/ID/VERSION.yaml once it says what you want.\n"
    )
    return (head + yaml_text(raw)).encode()


def _learn_limit(number: int, id: str, calls: Sequence[MadeCall]) -> Json:
    """Return a limit: the highest number of calls of a capability that one user made in a day."""
    most = max(
        _count_in_a_day([call.at for call in calls if call.user == user])
        for user in {c.user for c in calls}
    )
    return {
        "id": f"rate_{number}",
        "applies_to": {"capabilities": [id]},
        "max": _round_up(most),
        "per": "user",
        "window_s": _DAY,
    }


def _count_in_a_day(times: list[float]) -> int:
    """Return the most times that are within one day."""
    ordered, first, most = sorted(times), 0, 0
    for last, at in enumerate(ordered):
        while at - ordered[first] >= _DAY:
            first += 1
        most = max(most, last - first + 1)
    return most


def _learn_rules(by_capability: dict[str, list[MadeCall]]) -> Iterator[Json]:
    """Yield a rule for each argument that was a number in every call. The rule denies values outside the observed
    range.
    """
    number = 0
    for id, calls in by_capability.items():
        for name in calls[0].input:
            bounds = _find_range(name, [call.input.get(name) for call in calls])
            if bounds is not None:
                number += 1
                yield _range_rule(f"range_{number}", id, name, bounds)


def _find_range(name: str, values: Iterable[object]) -> tuple[int, int] | None:
    """Return a range with round ends for the values of an argument.

    None if the values must not be published, or are not all numbers.
    """
    found = list(values)
    numbers = [value for value in found if is_number(value)]
    is_told = not names_secret(name) and not _NAMING.search(name.lower())
    if not is_told or len(numbers) < len(found) or any(abs(each) > _MOST for each in numbers):
        return None
    low, high = min(numbers), max(numbers)
    return (-_round_up(-low) if low < 0 else 0), _round_up(max(high, 1))


def _round_up(value: float) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50 and so on."""
    power = 1
    while True:
        for step in _STEPS:
            if step * power >= value:
                return step * power
        power *= 10


def _range_rule(rule_id: str, id: str, name: str, bounds: tuple[int, int]) -> Json:
    """Return the rule for a range, with tests of its bounds."""
    low, high = bounds
    argument = {"var": f"args.{name}"}
    inside = [{"data": {"args": {name: end}}, "expect": "no_match"} for end in (low, high)]
    outside = [{"data": {"args": {name: end}}, "expect": "match"} for end in (low - 1, high + 1)]
    return {
        "rule_id": rule_id,
        "mode": "enforce",
        "applies_to": {"capabilities": [id]},
        "if": {"or": [{"<": [argument, low]}, {">": [argument, high]}]},
        "then": {"verdict": "deny"},
        "rationale": f"in the sessions {name} was from {low} to {high}, rounded",
        "tests": [*inside, *outside],
    }
