"""The cumulative limits of a pack around one call: reserve, intent, call, settle (docs/reference/limits.md#order).

1. The counters are read and reserved in one transaction, before the decision is appended. The decision's `reads` hold
   what was read, so resume and replay decide without a store.
2. A resumed run reserves again for a call that its log decided about and never began. If there is no room any more, a
   second decision follows, caused by the first.
3. A reservation is released only once the log shows that its attempt has no intent, or did not leave. Until then the
   next attempt of the same call may take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.reading import read_record
from cogcli.policy.limits import (
    CallAttempt,
    LimitClaim,
    apply_limits,
    claims_to_reserve,
    recorded_use,
)

if TYPE_CHECKING:
    from decimal import Decimal

    from cogcli.declarations.envelope import Event
    from cogcli.policy.limits import Use
    from cogcli.policy.verdict import LiftedGates, Verdict
    from cogcli.run.engine.context import Engine, LimitAccount
    from cogcli.run.engine.ports import CallAccount
    from cogcli.run.engine.step_recorder import StepRecord


class CallReservations:
    """The claims of one call, and its reservation."""

    def __init__(
        self, record: StepRecord, claims: Sequence[LimitClaim], earlier: CallAccount | None
    ) -> None:
        """`earlier` are those of the step's attempt before, if it repeats its call."""
        self._record = record
        self._claims = claims
        self._account = record.run.engine.limits
        self._reserved: tuple[int, ...] = ()
        self.unsent: tuple[int, ...] = earlier.unsent if earlier else ()
        """Reservations of attempts that did not leave, which the log does not show yet."""
        self._has_begun = False
        self._is_read_now = False
        """Whether the counters were read live, not from the log. The decision is then final."""
        self._judged: tuple[Verdict, LiftedGates] | None = None

    def decide(self, verdict: Verdict, lifted: LiftedGates, cause: str | None) -> Verdict:
        """Return the verdict with the limits applied, and reserve the amounts of a permitted call.

        `cause` is the event before the decision: a person's answer or an earlier decision. A recorded decision is
        computed again from its own `reads`.
        """
        self._judged = verdict, lifted
        if not (verdict.allows or verdict.asks):
            return lifted.lift(verdict)
        recorded = find_recorded(
            self._record.run.engine, "policy.decided", self._reservation_key, cause
        )
        reads = read_record(PolicyDecided, recorded.payload).reads if recorded else None
        used = recorded_use(reads, [claim for claim in self._claims if claim.is_known])
        if recorded is not None and used is not None:
            return lifted.lift(apply_limits(verdict, self._claims, used))
        if self._account is None or not all(claim.is_known for claim in self._claims):
            return lifted.lift(apply_limits(verdict, self._claims, {}))
        dispatcher = self._record.run.engine.dispatcher
        if dispatcher is not None and not dispatcher.live:
            dispatcher.end_unanswered()  # a run that is being closed makes no further call
        return self._apply_and_reserve(self._account, verdict, lifted)

    def decide_again(
        self, verdict: Verdict, lifted: LiftedGates, decided: Verdict, cause: str
    ) -> Verdict | None:
        """Return the new verdict if the limits no longer permit the call that the event `cause` decided. Return None if
        that decision is still valid.
        """
        if decided.outcome != "allow" or self._is_read_now:
            return None
        engine, number = self._record.run.engine, self._next_attempt
        if find_recorded(engine, "policy.decided", self._reservation_key, cause):
            return self.decide(verdict, lifted, cause)
        if self._account is None or not self._may_begin(number):
            return None
        again = self._apply_and_reserve(self._account, verdict, lifted)
        return None if again.outcome == "allow" else again

    def repeat(self, number: int, cause: str) -> Verdict | None:
        """Reserve for another attempt of the call. Return the verdict that denies it, or None if it may be made.

        `cause` is the decision about the call.
        """
        self._has_begun = False
        if self._judged is None:
            return None
        if find_recorded(self._record.run.engine, "policy.decided", self._reservation_key, cause):
            decided = self.decide(*self._judged, cause)
        elif self._account is None or not self._may_begin(number):
            return None
        else:
            decided = self._apply_and_reserve(self._account, *self._judged)
        if decided.outcome == "allow":
            return None
        return decided._replace(outcome="deny", stage="situation", gate="")

    def record_begun(self) -> None:
        """Record that the log contains the intent of the attempt."""
        self._has_begun = True

    def settle(self, *, left: bool) -> None:
        """Settle the reservation of an attempt that has a result. Without `left`, the request did not leave, and the
        reservation is released.
        """
        numbers, self._reserved = self._reserved, ()
        if not left:
            self.unsent += numbers
        elif self._account is not None and numbers:
            self._account.ledger.mark_used(numbers)

    def settle_unfinished(self) -> None:
        """Settle the reservation of an attempt without a result: used if its intent is in the log, else released."""
        if self._has_begun:
            self.settle(left=True)
        elif self._account is not None and self._reserved:
            numbers, self._reserved = self._reserved, ()
            self._account.ledger.release(numbers)

    def release_unsent(self) -> None:
        """Release the reservations of attempts whose request did not leave, according to the log."""
        numbers, self.unsent = self.unsent, ()
        if self._account is not None and numbers:
            self._account.ledger.release(numbers)

    @property
    def _reservation_key(self) -> tuple[str, str]:
        return self._record.run_id, self._record.path

    @property
    def _next_attempt(self) -> int:
        return self._record.attempts_made + 1

    def _may_begin(self, number: int) -> bool:
        """Return whether the attempt may be made now: it is neither in the log, nor is its step closed there."""
        dispatcher = self._record.run.engine.dispatcher
        if dispatcher is None:
            return True
        is_open = dispatcher.ended_at(*self._reservation_key) is None
        return (
            dispatcher.live and is_open and not dispatcher.has_begun(*self._reservation_key, number)
        )

    def _apply_and_reserve(
        self, account: LimitAccount, verdict: Verdict, lifted: LiftedGates
    ) -> Verdict:
        """Return the verdict for the current counters, and reserve the amounts of a permitted call."""

        def decide(used: Use) -> Verdict:
            return lifted.lift(apply_limits(verdict, self._claims, used))

        def choose(used: Use) -> tuple[LimitClaim, ...]:
            decided = decide(used)
            is_lifted = decided.reason == "approved"
            return claims_to_reserve(decided, self._claims, is_lifted=is_lifted)

        attempt = CallAttempt(account.episode_id, *self._reservation_key, self._next_attempt)
        now = self._record.run.engine.clock.now()
        self._is_read_now = True
        used, self._reserved = account.ledger.reserve(
            attempt, self._claims, now, choose, instead_of=self.unsent
        )
        return decide(used)


def read_counters(engine: Engine, claims: Sequence[LimitClaim]) -> list[tuple[LimitClaim, Decimal]]:
    """Return the current values of the claims' counters. Empty if this process has no counters, as in a replay."""
    if engine.limits is None or not engine.is_live:
        return []
    counters = [claim.counter for claim in claims]
    used = engine.limits.ledger.read(counters, engine.clock.now())
    return list(zip(claims, used, strict=True))


def find_recorded(
    engine: Engine, event_type: str, key: tuple[str, str | None], cause: str | None = None
) -> Event | None:
    """Return the recorded event that the next draft of this type will match, or None."""
    dispatcher = engine.dispatcher
    return dispatcher.next_recorded(event_type, *key, cause) if dispatcher else None
