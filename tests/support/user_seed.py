"""What agents' runs leave of their users in the store of a test's project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cogcli.agent.learning import statements_of
from cogcli.agent.state import ReasoningContext
from cogcli.agent.stores.agent_store import AgentStore
from cogcli.agent.stores.interactions import Interaction
from cogcli.agent.stores.jobs import Job
from cogcli.agent.stores.learned import proposals_from
from cogcli.declarations.pack_spec import MemoryLayer

AT = "2026-11-01T09:30:00.000000Z"
LATER = "2026-11-01T09:40:00.000000Z"
SAID = {"role": "user", "content": "hello", "timestamp": AT}
AUTO = MemoryLayer(auto_promote=("preference",), confidence_floor=0.5)


def interaction(run: str = "run_1", **members: Any) -> Interaction:
    """A run that went well, in two iterations without a call."""
    given: dict[str, Any] = {
        "query": "how?",
        "response": "so",
        "success": True,
        "mode_used": "fast",
    }
    given |= {"iterations": 2, "calls": 0, "at": AT, **members}
    return Interaction(run, f"ep_{run}", "evt_1", **given)


def lease(store: AgentStore, now: str = AT, until: str = LATER, passed: Any = ()) -> Job:
    """The next job, which is there."""
    job = store.lease(now=now, until=until, passed=passed)
    assert job is not None
    return job


def learned(
    found: dict[str, Any], run: str = "run_1", consent: bool = True, user: str = "u"
) -> Any:
    """The proposals of what a model said after a run."""
    of = interaction(run, consent=("preference",) if consent else ())
    return proposals_from(statements_of(found, "synthesize", []), user, [of], confidence=0.5, at=AT)


def seed_user(
    path: Path, user: str = "cust_7", word: str = "short", *, tenant: str = "local", times: int = 1
) -> None:
    """A user with interactions, a session, a promoted profile and a job that waits; a word is in all of it."""
    store = AgentStore(path)
    for number in range(times):
        run = f"run_{word}_{number}"
        session = store.session(tenant, user, "trip")
        texts = (("user", f"{word} please"), ("assistant", f"so {word}"))
        said = [{"role": role, "content": text, "timestamp": AT} for role, text in texts]
        thought = ReasoningContext(f"be {word}", {word: word}, word, (word,), ({"thinking": word},))
        new = session._replace(
            messages=(*session.messages, *said),
            reasoning=thought,
            summary={"text": word},
            mode="deep",
        )
        made = interaction(run, query=f"{word} asks", response=word, intent=word, failure_code=word)
        store.consolidate(tenant, user, made, session=new)
        found = {"goals": [f"{word} {number}"], "preferences": {"tone": word}}
        store.finish(
            lease(store), learned(found, run, user=user), AUTO, at=AT, transcript={"reply": word}
        )
    store.consolidate(tenant, user, interaction(f"run_{word}_last", query=word), session=None)
    store.close()
