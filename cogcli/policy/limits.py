"""Cumulative limits of a pack: what a call adds to which counters, and what that means for its verdict
(docs/reference/limits.md). Pure.

Amounts are decimal numbers, exactly as written. An amount or an owner of a counter that is not known denies the call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation, localcontext
from typing import Final

from cogcli.base.jsonvalue import MAX_INTEGER, NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.pack_spec import CumulativeLimit, Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import Json
from cogcli.policy.evaluation import is_number
from cogcli.policy.pack_policy import applies
from cogcli.policy.verdict import Verdict
from cogcli.specs.unchecked import object_at, value_at

_EXACT: Final = Context(prec=400, traps=[Inexact, InvalidOperation])
"""Enough digits for every sum of accepted amounts. A sum that would be rounded is an error instead."""
_PLACES: Final = 340
"""The maximum number of decimal places of an amount: those of the smallest number in JSON readers."""
READS: Final = "limits."
"""The prefix of a counter in the `reads` of a decision."""
UNKNOWN_LIMIT: Final = "limit_unknown"
"""The reason of a denial by a limit that cannot count the call, before the id of the limit."""
ARGUMENT: Final = "args."
"""The prefix of an argument whose values have counters of their own."""
ONE: Final = Decimal(1)
Use = Mapping[str, Decimal]
"""The values of counters, by id of the limit."""


class CallAttempt(NamedTuple):
    """The attempt that a reservation is for."""

    episode_id: str
    run_id: str
    step_id: str
    attempt: int


class Counter(NamedTuple):
    """The identity of a counter, and for how many seconds a call counts. None: for good."""

    tenant_id: str
    pack_id: str
    limit_id: str
    owner: str
    window_s: float | None


class LimitClaim(NamedTuple):
    """The amount that one call would add to the counter of a limit. `owner` and `amount` are None if unknown."""

    limit: CumulativeLimit
    tenant_id: str
    pack_id: str
    owner: str | None
    amount: Decimal | None

    @property
    def is_known(self) -> bool:
        """Whether both the amount and the counter of the call are known."""
        return self.owner is not None and self.amount is not None

    @property
    def counter(self) -> Counter:
        """The counter that the call would add to."""
        limit = self.limit
        return Counter(self.tenant_id, self.pack_id, limit.id, self.owner or "", limit.window_s)

    def fits(self, used_amount: Decimal) -> bool:
        """Return whether the call stays within the limit if `used_amount` is already used."""
        return self.amount is not None and self.amount <= self.remaining(used_amount)

    def remaining(self, used_amount: Decimal) -> Decimal:
        """Return the amount that the limit leaves before the call."""
        return difference_of(Decimal(str(self.limit.max)), used_amount)

    def to_read(self, used_amount: Decimal) -> Json:
        """Return the counter as a member of a decision's `reads`. Numbers are texts, so that none
        is rounded.
        """
        return {
            "owner": self.owner,
            "used": str(used_amount),
            "amount": str(self.amount),
            "max": str(self.limit.max),
        }


class CounterRead(Record):
    """A counter in the `reads` of a recorded decision. A masked number is a text that no amount has."""

    used: str = ""
    amount: str = ""
    max: str = ""


def find_claims(
    pack: Pack,
    intent: str,
    capability_id: str,
    arguments: Mapping[str, object],
    owners: Mapping[str, object],
) -> tuple[LimitClaim, ...]:
    """Return the amounts that a call would add to the counters of the pack's limits, in declared order. `owners` are
    the ids of the user, the tenant and the slots by name. A skill adds nothing, because its calls are counted.
    """
    if capability_id.startswith(NESTED):
        return ()
    return tuple(
        LimitClaim(
            limit,
            pack.tenant,
            pack.pack_id,
            _find_owner(limit.per, arguments, owners),
            _find_amount(limit, arguments),
        )
        for limit in pack.policy.limits
        if applies(limit.scope.intents, intent) and applies(limit.scope.capabilities, capability_id)
    )


def _find_owner(
    per: str, arguments: Mapping[str, object], owners: Mapping[str, object]
) -> str | None:
    """Return the owner of the counter as `kind:id`, or None if it is unknown."""
    kind, _, path = per.partition(".")
    value = value_at(dict(arguments), *path.split(".")) if path else owners.get(kind)
    is_id = isinstance(value, str) or type(value) is int
    return f"{per}:{value}" if is_id and value != "" else None


def _find_amount(limit: CumulativeLimit, arguments: Mapping[str, object]) -> Decimal | None:
    """Return the amount that a call adds to a counter: 1, or the value of the argument. None if it is unknown."""
    if not limit.sum:
        return ONE
    return amount_of(value_at(dict(arguments), *limit.sum.split(".")))


def amount_of(value: object) -> Decimal | None:
    """Return a number as an exact decimal. None for any other value, and for a negative number, which would lower the
    counter.
    """
    if not is_number(value) or not 0 <= value <= MAX_INTEGER:
        return None
    return Decimal(repr(value))


def decimal_of(text: object) -> Decimal:
    """Return the number of a stored or recorded text. Raise ValueError for any text that no amount has."""
    if not isinstance(text, str) or len(text) > _PLACES + 40:
        raise ValueError("an amount is not a text of a number")
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"no amount is {text[:40]!r}") from None
    if not found.is_finite() or found < 0:
        raise ValueError(f"no amount is {text[:40]!r}")
    return found


def sum_exactly(amounts: Iterable[Decimal]) -> Decimal:
    """Return the sum of amounts, without rounding."""
    with localcontext(_EXACT):
        return sum(amounts, Decimal(0))


def difference_of(amount: Decimal, subtrahend: Decimal) -> Decimal:
    """Return the difference of two amounts, without rounding."""
    with localcontext(_EXACT):
        return amount - subtrahend


def recorded_use(reads: object, claims: Sequence[LimitClaim]) -> Use | None:
    """Return the values of these claims' counters from the `reads` of a decision. None if one is missing."""
    found = {}
    for claim in claims:
        try:
            found[claim.limit.id] = decimal_of(value_at(reads, f"{READS}{claim.limit.id}", "used"))
        except ValueError:
            return None
    return found


def use_in_data(data: object, claims: Iterable[LimitClaim]) -> Use:
    """Return the values of counters from the data of a call: a number by id of the limit. An absent one is unknown."""
    found = ((each.limit.id, amount_of(value_at(data, each.limit.id))) for each in claims)
    return {id: amount for id, amount in found if amount is not None}


def list_counters(decided: PolicyDecided, uncounted: Collection[str] = ()) -> list[Json]:
    """Return the counters that a recorded decision read.

    `left` is the remaining amount, after the call if it was allowed and `is_counted`. `uncounted`
    are the ids of limits that do not count the call.
    """
    counters = []
    for path, json in object_at(decided.reads).items():
        if not path.startswith(READS):
            continue
        read = read_record(CounterRead, json)
        try:
            used, amount, most = map(decimal_of, (read.used, read.amount, read.max))
        except ValueError:  # masked
            continue
        limit = path.removeprefix(READS)
        is_counted = limit not in uncounted
        is_added = is_counted and decided.verdict == "allow"
        used_after = sum_exactly((used, amount)) if is_added else used
        left = max(difference_of(most, used_after), Decimal(0))
        counters.append({"limit": limit, **read.json, "is_counted": is_counted, "left": str(left)})
    return counters


def apply_limits(verdict: Verdict, claims: Sequence[LimitClaim], used_by_limit: Use) -> Verdict:
    """Return the verdict on a call that adds to these counters.

    `used_by_limit` has the amounts before the call. An unknown claim or counter denies the call.
    """
    if not claims or not (verdict.allows or verdict.asks):
        return verdict
    known = _select_known_claims(claims, used_by_limit)
    verdict = verdict._replace(reads={**verdict.reads, **_list_reads(known, used_by_limit)})
    if len(known) < len(claims):
        unknown = next(claim.limit for claim in claims if claim not in known)
        return _deny_by_limit(verdict, f"{UNKNOWN_LIMIT}:{unknown.id}", unknown)
    exceeded = [each.limit for each in known if not each.fits(used_by_limit[each.limit.id])]
    if exceeded:
        return _apply_exceeded(verdict, exceeded)
    return _remove_built_in_gate(verdict, {claim.limit.id for claim in claims})


def _select_known_claims(claims: Sequence[LimitClaim], used_by_limit: Use) -> list[LimitClaim]:
    """Return the claims whose amount and counter are known."""
    return [claim for claim in claims if claim.is_known and claim.limit.id in used_by_limit]


def _list_reads(claims: Sequence[LimitClaim], used_by_limit: Use) -> Json:
    """Return the `reads` of a decision for these counters, by path."""
    return {
        f"{READS}{each.limit.id}": each.to_read(used_by_limit[each.limit.id]) for each in claims
    }


def _apply_exceeded(verdict: Verdict, exceeded_limits: Sequence[CumulativeLimit]) -> Verdict:
    """Deny the call if one of these limits denies, otherwise request a decision for the first."""
    for limit in exceeded_limits:
        if limit.over == "deny":
            return _deny_by_limit(verdict, f"limit_exceeded:{limit.id}", limit)
    return _ask_by_limit(verdict, exceeded_limits[0])


def _deny_by_limit(verdict: Verdict, reason: str, limit: CumulativeLimit) -> Verdict:
    return verdict._replace(
        outcome="deny", stage="situation", reason=reason, rule="", gate="", limit=limit.id
    )


def _ask_by_limit(verdict: Verdict, limit: CumulativeLimit) -> Verdict:
    """Return the verdict that requires a person for a call beyond a limit. A gate that a rule requires is kept."""
    if verdict.outcome != "allow" and not verdict.is_built_in:
        return verdict
    return verdict._replace(
        outcome="allow_with_gate",
        stage="situation",
        reason=f"limit_exceeded:{limit.id}",
        rule="",
        gate=limit.gate,
        limit=limit.id,
        is_built_in=False,
    )


def _remove_built_in_gate(verdict: Verdict, kept_limits: set[str]) -> Verdict:
    """Return the verdict without the built-in gate, if a rule waives the gate within limits and the call stays within
    them.
    """
    lifting = verdict.without_gate
    if not verdict.is_built_in or not lifting or not kept_limits.issuperset(lifting):
        return verdict
    return verdict._replace(
        outcome="allow", reason=f"within_limit:{lifting[0]}", gate="", limit=lifting[0]
    )


class LimitedCall(NamedTuple):
    """The limits of one recorded call, with the values of their counters at that time."""

    claims: tuple[LimitClaim, ...] = ()
    used: Use | None = NOTHING
    """The values of the limits' counters; None if the log lacks them."""

    def apply(self, verdict: Verdict, claims: tuple[LimitClaim, ...] | None = None) -> Verdict:
        """Return the verdict with the limits applied. `claims` are those of the same call with
        other arguments.
        """
        return apply_limits(verdict, self.claims if claims is None else claims, self.used or {})

    def lacks_counters(self, verdict: Verdict) -> bool:
        """Return whether the verdict depends on counters that are missing in the log."""
        return self.used is None and (verdict.allows or verdict.asks)


def claims_to_reserve(
    verdict: Verdict, claims: Sequence[LimitClaim], *, is_lifted: bool
) -> tuple[LimitClaim, ...]:
    """Return the claims to reserve before a call: empty if the verdict forbids the call.

    A limit that asks a person counts only calls that no person decided about. So a call that a person approved
    (`is_lifted`) adds nothing to that limit.
    """
    if verdict.outcome != "allow":
        return ()
    return tuple(claim for claim in claims if not is_lifted or counts_approved_calls(claim.limit))


def counts_approved_calls(limit: CumulativeLimit) -> bool:
    """Return whether a limit counts the calls that a person approved."""
    return limit.over == "deny"
