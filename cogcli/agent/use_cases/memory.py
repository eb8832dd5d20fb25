"""The memory of a project: its proposals, decisions about them, recall and explanations
(docs/reference/pack.md#memory)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from cogcli.agent.context.inputs import User
from cogcli.agent.context.memory import fault_of, recall
from cogcli.agent.stores.memory_rows import CODE, STATES, StoredProposal
from cogcli.agent.stores.memory_store import Decision, MemoryStore
from cogcli.app.packs import find_pack
from cogcli.app.settings import Settings
from cogcli.app.stores import is_of_project, store_directory, store_refusal
from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.system_text import require_text
from cogcli.base.terminal_text import is_plain_name
from cogcli.declarations.pack_spec import MemoryLayer
from cogcli.declarations.value_types import Json
from cogcli.specs.id_grammar import USER_ID_WORDS, is_user_id
from cogcli.stores import MEMORY

_MAX_BY: Final = 100
FETCHED: Final = 4
"""The number of fetched memories in units of `top_k`: of those that may be recalled, and of others."""


class MemoryScope(NamedTuple):
    """The tenant and the user of a memory, and the rules of a pack. An empty `user_id` stands for all users."""

    tenant_id: str = "local"
    user_id: str = ""
    consent: tuple[str, ...] = ()
    layer: MemoryLayer = MemoryLayer()

    @property
    def user(self) -> User:
        """The user whose request recalls."""
        return User(self.user_id or "default", consent=self.consent)


@contextmanager
def open_memory(settings: Settings) -> Iterator[MemoryStore]:
    """Open the memory of the project or of the user, and create it if necessary. Raise the errors of `Database`."""
    store = MemoryStore(store_directory(settings) / MEMORY)
    try:
        yield store
    finally:
        store.close()


def scope_of(
    settings: Settings,
    *,
    tenant: str | None,
    user: str | None,
    consent: Collection[str],
    pack: str | None,
) -> MemoryScope:
    """Return the memory scope that flags select. With a pack, it has the tenant of the pack. Raise
    UsageError; with a pack the
    errors of `find_pack`, and ServiceResolutionError `service.untrusted` for the pack of an untrusted project.
    """
    if user is not None and not is_user_id(user):
        raise UsageError("usage.value", f"`--user`: found `{user[:60]}`", expected=USER_ID_WORDS)
    named = MemoryScope(tenant or "local", user or "", tuple(consent))
    if pack is None:
        return named
    named_pack = find_pack(settings, pack)
    if is_of_project(settings, named_pack.file):
        raise store_refusal("its pack recalls no memory")
    found = named_pack.pack
    if tenant not in (None, found.tenant):
        text = f"`--tenant {tenant}`, but the pack's tenant is `{found.tenant}`"
        raise UsageError("usage.flag", text, hint="leave it out: a pack names its tenant")
    return named._replace(tenant_id=found.tenant, layer=found.memory)


def list_proposals(
    settings: Settings, scope: MemoryScope, states: Collection[str] = ("promoted",)
) -> list[Json]:
    """Return the payloads of the proposals in these states, the oldest first."""
    with open_memory(settings) as store:
        found = store.proposals(scope.tenant_id, states=states, user_id=scope.user_id or None)
    return [payload_of(stored) for stored in found]


def decide(
    settings: Settings, scope: MemoryScope, id: str, state: str, *, by: str, reason: str = ""
) -> Decision:
    """Promote or reject a proposal by a person's decision.

    Raise UsageError `memory.unknown`, UnusableEnvironment `memory.consent`.
    """
    who = require_text(by, "the name of the person who decides", "give another one with --by")
    if not is_plain_name(who) or len(who) > _MAX_BY or who.casefold() == CODE:
        text = f"at most {_MAX_BY} characters, no space around them, all visible, and not `{CODE}`"
        raise UsageError("usage.value", "`--by`: no name of a person", expected=text)
    at = settings.clock.now()
    with open_memory(settings) as store:
        if state == "rejected":
            return store.reject(
                scope.tenant_id, id, by=who, at=at, reason=reason, user_id=scope.user_id
            )
        return store.promote(
            scope.tenant_id, id, by=who, at=at, user_id=scope.user_id, consent=scope.consent
        )


def recall_memories(
    settings: Settings, scope: MemoryScope, query: str
) -> tuple[list[Json], list[Json]]:
    """Return the payloads of the memories that a request with these words would recall, the nearest first; and
    the omitted ones, as `{memory_id, reason}`.
    """
    now, limit = settings.clock.now(), FETCHED * scope.layer.top_k
    with open_memory(settings) as store:
        fetched = store.recall(
            scope.tenant_id, scope.user, query, scope.layer, now=now, limit=limit
        )
        found = recall(fetched, scope.layer, scope.user, tenant_id=scope.tenant_id, now=now)
        rows = [
            store.explain(scope.tenant_id, memory.memory_id)[0].stored for memory in found.memories
        ]
    return [payload_of(stored) for stored in rows], list(found.omitted)


def why(settings: Settings, scope: MemoryScope, id: str) -> Json:
    """Explain a proposal or memory.

    The result contains its evidence, runs, state and decision, and the memories that it contradicts now or has
    superseded. It also contains why the scope's pack did not promote it, and whether it is recalled for the scope's
    user. Raise UsageError `memory.unknown`.
    """
    with open_memory(settings) as store:
        decision, runs = store.explain(scope.tenant_id, id, user_id=scope.user_id)
        named = (
            decision.stored.contradiction["existing"]
            if decision.stored.verdict == "supersedes"
            else ()
        )
        superseded = [store.explain(scope.tenant_id, other)[0].stored for other in named]
    stored = decision.stored
    reason = _not_recalled(stored, scope, settings.clock.now())
    return {
        **payload_of(stored),
        "runs": list(runs),
        "contradicts": [payload_of(other) for other in decision.existing],
        "supersedes": [payload_of(other) for other in superseded],
        "waits_for": _list_promotion_obstacles(decision, scope.layer),
        "recall": {"recalled": not reason, "reason": reason or None},
    }


def payload_of(stored: StoredProposal) -> Json:
    """Return a proposal with its user, and the decision about it."""
    return {
        **stored.to_payload(),
        "tenant_id": stored.tenant_id,
        "user_id": stored.user_id,
        "data_class": stored.proposal.data_class,
        "decided_by": stored.decided_by or None,
        "decided_at": stored.decided_at or None,
        "reason": stored.reason or None,
    }


def _list_promotion_obstacles(decision: Decision, layer: MemoryLayer) -> list[str]:
    """Return why a pack does not promote a waiting proposal."""
    if decision.stored.state != "proposed":
        return []
    proposal = decision.stored.proposal
    verdict = proposal.relation_to(other.proposal for other in decision.existing)
    return list(proposal.promotion_obstacles(layer, verdict))


def _not_recalled(stored: StoredProposal, scope: MemoryScope, now: str) -> str:
    """Return why a request of the scope's user does not recall it. Empty if it does."""
    if stored.state != "promoted":
        return stored.state
    user = scope.user if scope.user_id else scope.user._replace(user_id=stored.user_id)
    return fault_of(stored.to_memory(), scope.layer, user, scope.tenant_id, now)


NOT_PROMOTED: Final = tuple(state for state in STATES if state != "promoted")
"""The states that `memory proposals --all` lists."""
