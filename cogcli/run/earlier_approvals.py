"""The unused approvals of an ended run, which a rerun takes over (docs/reference/episode.md#redeemed).

1. An approval is unused if no attempt at its call can have left: the log has no intent of it, or the result of each
   attempt says that it did not leave.
2. The rerun must do what was approved: the same step, capability, chain, input and evidence, with unchanged specs of
   that call, unchanged packs, and the same user, and before the approval expires.
3. Taking one over is on disk before the rerun records it (`episode.redeemed`). So one rerun alone can use it, and if
   that one is killed in between, the approval is spent: a person is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cogcli.base.calls import AskedCall
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import ApprovalOrigin, ApprovalRequested
from cogcli.declarations.run_start import EarlierApproval, RecordedStart, start_of
from cogcli.episode.redeemed import Redemption, read_redemption, redeem
from cogcli.policy.approvals import action_hash
from cogcli.run.effects import may_have_left
from cogcli.run.log_index import Grant, LogIndex
from cogcli.run.prepare import PreparedRun
from cogcli.specs.catalog import Catalog


def find_unused_approvals(log: LogIndex, prepared: PreparedRun) -> list[EarlierApproval]:
    """Return the approvals in the log of an ended run that a run of `prepared` may reuse. Empty if the packs, the user
    or the rules differ.
    """
    if log.started is None or log.stops_early:
        return []
    start = start_of(log.started)
    if not _is_same_policy(start, prepared):
        return []
    return [
        _earlier_approval(grant, start)
        for grant in log.unused_grants(may_have_left)
        if _is_same_action(grant.request, start, prepared.catalog)
    ]


def _is_same_policy(start: RecordedStart, prepared: PreparedRun) -> bool:
    """Return whether the policy of both runs is the same, apart from budgets."""
    before = start.policy.json if start.policy else {}
    call = prepared.request.policy
    after = call.to_payload() if call else {}
    names = (before.keys() | after.keys()) - {"budget"}
    if any(before.get(name) != after.get(name) for name in names):
        return False
    return _pack_pins(start.pins.specs) == _pack_pins(prepared.catalog.pins)


def _pack_pins(pins: Mapping[str, str]) -> dict[str, str]:
    return {name: digest for name, digest in pins.items() if name.startswith("pack:")}


def _is_same_action(request: Event, start: RecordedStart, catalog: Catalog) -> bool:
    """Return whether the specs and service variables of the requested call are unchanged. For a skill all specs
    count.
    """
    capability = ApprovalRequested.of(request.payload).capability or ""
    chain = start.selection.get(capability)
    before, after = start.pins.specs, catalog.pins
    if chain is None:
        return before == after
    services = {member.service_id for member in chain.members}
    names = [f"capability:{capability}", *(f"service:{id}" for id in services)]
    names += [f"binding:{member.binding_id}" for member in chain.members]
    if any(name not in before or before[name] != after.get(name) for name in names):
        return False
    return all(
        id in catalog.services
        and start.pins.variables.get(id, {}) == dict(catalog.services[id].values)
        for id in services
    )


def _earlier_approval(grant: Grant, start: RecordedStart) -> EarlierApproval:
    request, answer, event = ApprovalRequested.of(grant.request.payload), grant.answer, grant.event
    chain = start.selection.get(request.capability or "")
    return EarlierApproval(
        approval_id=request.approval_id,
        origin=ApprovalOrigin(
            episode_id=event.episode_id, event=event.id, granted_at=event.timestamp
        ),
        run_id=event.run_id or "",
        step_id=request.step_id or "",
        capability=request.capability or "",
        bindings=[member.binding_id for member in chain.members] if chain else [],
        gate=request.gate or "",
        action_hash=request.action_hash or "",
        evidence_hash=request.evidence_hash or "",
        expires_at=request.expires_at or "",
        by=answer.by or "",
        role=answer.role,
        os_uid=answer.os_uid,
        os_user=answer.os_user,
        signed=answer.signature is not None,
        reason=answer.reason or "",
    )


class RedeemableApprovals:
    """The unused approvals that a run may reuse, as listed in its first event."""

    def __init__(
        self,
        runs_dir: str | Path,
        episode_id: str,
        approvals: Sequence[EarlierApproval],
        *,
        shared: bool = False,
    ) -> None:
        self._runs_dir = Path(runs_dir)
        self._episode_id = episode_id
        self._shared = shared
        self._approvals = approvals
        self._refusals: dict[str, str] = {}
        """The reason why the latest approval of each step was not reused."""

    def redeem(self, call: AskedCall, now: str) -> EarlierApproval | None:
        """Transfer the earlier approval of this call to this run, on disk, and return it. Return None if the call has
        no earlier approval.
        """
        self._refusals.pop(call.step_id, None)
        for approval in self._approvals:
            if approval.step_id != call.step_id or approval.gate != call.gate:
                continue
            refusal = _explain_difference(approval, call, now) or self._transfer(approval)
            if not refusal:
                return approval
            origin = f"the approval {approval.approval_id} of {approval.origin.episode_id}"
            self._refusals[call.step_id] = f"{origin} {refusal}"
        return None

    def explain_refusal(self, step_id: str) -> str:
        """Return why an earlier approval of this step was not used. Empty if the step had none."""
        return self._refusals.get(step_id, "")

    def _transfer(self, approval: EarlierApproval) -> str:
        """Transfer an approval to this run, on disk. Return the reason if that failed; otherwise empty."""
        # A copied rerun in another runs directory cannot see who else takes the approval over.
        if not (self._runs_dir / approval.origin.episode_id).is_dir():
            return "cannot be taken over: its episode is not in this runs directory"
        redemption = Redemption(
            approval_id=approval.approval_id,
            from_episode=approval.origin.episode_id,
            by_episode=self._episode_id,
            expires_at=approval.expires_at,
        )
        try:
            redeem(self._runs_dir, redemption, shared=self._shared)
        except FileExistsError:
            return self._explain_spent(approval.approval_id)
        except OSError as error:
            return f"cannot be taken over: {error.strerror or error}"
        return ""

    def _explain_spent(self, approval_id: str) -> str:
        holder = read_redemption(self._runs_dir, approval_id).by_episode
        if holder == self._episode_id:
            return "is spent: this run was cut off after it took it over"
        return f"is spent: {holder or 'another run'} took it over"


def _explain_difference(approval: EarlierApproval, call: AskedCall, now: str) -> str:
    """Return why an approval does not permit this call. Empty if it does."""
    if approval.signed:
        return "is signed for that run alone"
    action = action_hash(
        run_id=approval.run_id,
        capability=call.capability,
        binding=call.bindings[0] if call.bindings else "",
        step_id=call.step_id,
        values=call.values,
    )
    if action != approval.action_hash or list(call.bindings) != approval.bindings:
        return "was for another call"
    if call.evidence_hash != approval.evidence_hash:
        return "was given on other evidence"
    if not approval.origin.granted_at <= now < approval.expires_at:
        return f"expired at {approval.expires_at}"
    return ""


def recorded_approvals(
    started: Event, directory: Path, *, shared: bool = False
) -> RedeemableApprovals | None:
    """Return the approvals that the run of an episode may reuse according to its first event; None without any."""
    approvals = start_of(started).approvals
    if not approvals:
        return None
    runs_dir = directory.resolve().parent
    unused = list(approvals.values())
    return RedeemableApprovals(runs_dir, started.episode_id, unused, shared=shared)


def is_in_runs_dir(directory: Path, runs_dir: str) -> bool:
    """Return whether an episode is a folder of the runs directory, whose reruns exclude each other."""
    return directory.is_dir() and directory.resolve().parent == Path(runs_dir).resolve()
