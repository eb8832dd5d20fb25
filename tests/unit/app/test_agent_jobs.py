"""Working on what is to be learned: with a model, without one, late, and wrong (docs/reference/user-memory.md#jobs)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cogcli.agent.context.inputs import User
from cogcli.agent.models.port import LanguageModel
from cogcli.agent.stores.interactions import Interaction
from cogcli.agent.use_cases import jobs as agent_jobs
from cogcli.agent.use_cases.jobs import work_after_answer, work_jobs
from cogcli.agent.use_cases.language_model import model_of
from cogcli.agent.use_cases.user_memory import (
    consolidate,
    forget,
    open_agent_store,
    profile_of,
    profile_payload,
)
from cogcli.app.settings import Settings
from cogcli.declarations.pack_spec import MemoryLayer

AT = "2026-11-01T09:30:00.000000Z"


def settings_of(root: Path, **environ: str) -> Settings:
    (root / "cogcli.toml").touch()
    given = {"HOME": str(root), "XDG_CONFIG_HOME": str(root), "COGCLI_TRUST_PROJECT": "1"}
    return Settings({}, {**given, **environ}, base=str(root))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path)


def ask(settings: Settings, *runs: str, user: str = "u", **members: Any) -> None:
    """Runs of a user, as they end."""
    given: dict[str, Any] = {
        "query": "how?",
        "response": "so",
        "success": True,
        "mode_used": "fast",
    }
    given |= {"iterations": 1, "calls": 0, "at": AT, "consent": ("preference",), **members}
    for run in runs:
        consolidate(settings, "t", user, Interaction(run, f"ep_{run}", "evt_1", **given))


def model(settings: Settings, *replies: dict[str, Any]) -> LanguageModel:
    """The scripted model with these replies."""
    path = Path(settings.base, "replies.yaml")
    path.write_text(json.dumps({"replies": list(replies)}), encoding="utf-8")
    opened = model_of(settings, f"scripted:{path}")
    assert opened is not None
    return opened


def rows(settings: Settings, **members: Any) -> list[dict[str, Any]]:
    with open_agent_store(settings) as store:
        return [
            row
            for row in store.export("t", "u")["proposal"]
            if all(row[k] == v for k, v in members.items())
        ]


def transcripts(settings: Settings) -> list[dict[str, Any]]:
    with open_agent_store(settings) as store:
        return [job.transcript for job in store.jobs("t", "u")]


def test_without_a_store_nothing_is_done_and_none_is_made(settings: Settings) -> None:
    assert work_jobs(settings) == []
    assert not Path(settings.base, ".cogcli").exists()


def test_without_a_model_what_happened_is_counted(settings: Settings) -> None:
    ask(settings, "run_1", "run_2", intent="support.refund", template="refund")
    ask(settings, "run_3", success=False, failure_code="call.timeout", intent="other")
    worked = work_jobs(settings)
    assert [(each.job.kind, each.job.to_n, each.outcome) for each in worked] == [
        ("extract", 1, "done"), ("extract", 2, "done"), ("extract", 3, "done"), ("synthesize", 3, "done"),
    ]  # fmt: skip
    assert {(row["predicate"], row["confidence"], row["state"]) for row in rows(settings)} == {
        ("success_patterns.refund", 1.0, "proposed"),
        ("failure_patterns.call.timeout", 1.0, "proposed"),
        ("interests.support.refund", 1.0, "proposed"),
    }
    (success,) = rows(settings, predicate="success_patterns.refund")
    assert success["evidence"] == ["ep_run_1/evt_1", "ep_run_2/evt_1"]
    profile = profile_of(settings, "t", User("u"), MemoryLayer())
    assert profile is not None
    assert (profile.interaction_count, profile.synthesis_version, profile.interests) == (3, 2, ())


def test_a_model_is_asked_once_a_job_and_its_words_are_proposals(settings: Settings) -> None:
    ask(settings, "run_1", calls=3)
    learned = {"preferences": {"tone": "short"}, "goals": ["ship"], "user_id": "root"}
    asked = model(
        settings,
        {"json": learned},
        {"json": {"communication_style": "technical", "goals": ["Ship "]}},
    )
    first, second = work_jobs(settings, asked)
    assert (first.outcome, len(first.proposal_ids), second.outcome, len(second.proposal_ids)) == (
        "done",
        2,
        "done",
        2,
    )
    assert sorted((row["predicate"], row["confidence"]) for row in rows(settings, state="proposed")) == [
        ("communication_style", 0.5), ("goals.Ship", 0.5), ("goals.ship", 0.5), ("preferences.tone", 0.5),
    ]  # fmt: skip
    (transcript, _) = transcripts(settings)
    assert transcript["model"]["adapter"] == "scripted"
    assert "how?" in json.dumps(transcript["request"])
    assert json.loads(transcript["reply"]["text"]) == learned
    assert {note["code"] for note in transcript["notes"]} == {"not_allowed"}


def test_as_the_pack_said_and_the_user_consented_it_is_promoted(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, COGCLI_AGENT_PROFILE="auto")
    rules = {"auto_promote": ("preference",), "confidence_floor": 0.5}
    ask(settings, "run_1", **rules)
    ask(settings, "run_2", **{**rules, "consent": ()})
    ask(settings, "run_3", **{**rules, "confidence_floor": 0.6})
    answers = [{"json": {"preferences": {name: 1}}} for name in ("a", "b", "c", "d")]
    work_jobs(settings, model(settings, *answers), limit=3)
    found = profile_payload(settings, "t", "u")
    assert found["preferences"] == {"a": 1}
    recalled = [
        profile_of(settings, tenant, User("u", consent=consent), layer)
        for tenant, consent, layer in (
            ("t", ("preference",), MemoryLayer()),
            ("t", (), MemoryLayer()),
            ("t", ("preference",), MemoryLayer(max_class="public")),
            ("s", ("preference",), MemoryLayer()),
        )
    ]
    assert [each and each.preferences for each in recalled] == [{"a": 1}, {}, {}, None]
    (entry,) = found["entries"]
    assert (entry["field"], entry["name"], entry["episodes"], entry["decided_by"]) == (
        "preferences", "a", ["ep_run_1"], "code",
    )  # fmt: skip


def test_a_synthesis_is_consented_to_in_each_interaction(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, COGCLI_AGENT_PROFILE="auto")
    rules = {"auto_promote": ("preference",), "confidence_floor": 0.5}
    ask(settings, "run_1", **rules, consent=())
    ask(settings, "run_2", "run_3", **rules, data_class="restricted")
    empty = [{"json": {}}] * 3
    work_jobs(settings, model(settings, *empty, {"json": {"goals": ["ship"]}}))
    (row,) = rows(settings)
    assert (row["state"], row["consent"], row["data_class"]) == ("proposed", 0, "restricted")
    assert row["evidence"] == ["ep_run_1/evt_1", "ep_run_2/evt_1", "ep_run_3/evt_1"]


def test_a_newer_preference_takes_the_place_of_the_older_one(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, COGCLI_AGENT_PROFILE="auto")
    ask(settings, "run_1", "run_2", auto_promote=("preference",), confidence_floor=0.0)
    work_jobs(
        settings,
        model(settings, *({"json": {"preferences": {"tone": tone}}} for tone in ("short", "long"))),
    )
    assert profile_payload(settings, "t", "u")["preferences"] == {"tone": "long"}
    (old,) = rows(settings, state="superseded")
    assert (old["value"], old["decided_by"]) == ("short", "code")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"text": "I would rather not"}, "not_json"),
        ({"text": "[]"}, "not_object"),
        ({"error": {"kind": "overloaded"}}, "call.overloaded"),
        ({"error": {"kind": "auth"}}, "model.auth"),
    ],
)
def test_what_cannot_be_used_is_tried_again_five_times(
    settings: Settings, reply: Any, error: str
) -> None:
    ask(settings, "run_1", "run_2")
    outcomes = []
    for _ in range(5):
        (worked, *_) = work_jobs(settings, model(settings, reply), limit=1)
        outcomes.append(worked.outcome)
        assert worked.error.startswith(error)
    assert outcomes == ["queued"] * 4 + ["failed"]
    assert transcripts(settings)[0]["request"]["messages"]
    (after,) = work_jobs(settings, model(settings, {"json": {}}))
    assert (after.job.to_n, after.outcome) == (2, "done")


def test_a_job_that_fails_is_not_tried_twice_in_a_row(settings: Settings) -> None:
    ask(settings, "run_1", "run_2")
    assert len(work_jobs(settings, model(settings, {"text": "no", "times": 9}))) == 1


def test_a_model_that_takes_longer_than_the_grace_costs_no_attempt(settings: Settings) -> None:
    ask(settings, "run_1")
    (worked,) = work_jobs(settings, model(settings, {"json": {}, "delay_ms": 60_000}), grace_s=0.2)
    assert worked.outcome == "given_back"
    (again,) = work_jobs(settings, model(settings, {"json": {}}))
    assert (again.outcome, again.job.attempts) == ("done", 1)


def test_a_worker_that_is_interrupted_leaves_its_job(settings: Settings) -> None:
    class Interrupting:
        def describe(self) -> Any:
            raise KeyboardInterrupt

    ask(settings, "run_1")
    with pytest.raises(KeyboardInterrupt):
        work_jobs(settings, Interrupting())  # type: ignore[arg-type]
    assert [each.outcome for each in work_jobs(settings)] == ["done"]


def test_what_was_learned_of_a_user_who_is_forgotten_meanwhile_is_dropped(
    settings: Settings,
) -> None:
    ask(settings, "run_1")
    asked = model(settings, {"json": {"goals": ["ship"]}})

    class Forgetting:
        describe = asked.describe

        def generate(self, *arguments: Any) -> Any:
            forget(settings, "t", "u")
            return asked.generate(*arguments)

    (worked,) = work_jobs(settings, Forgetting())  # type: ignore[arg-type]
    assert (worked.outcome, worked.proposal_ids) == ("forgotten", ())
    assert rows(settings) == []


def test_after_an_answer_nothing_is_raised(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    ask(settings, "run_1")
    assert [each.outcome for each in work_after_answer(settings)] == ["done"]
    (tmp_path / ".cogcli/memory.db").write_bytes(b"no database" * 100)
    assert work_after_answer(settings) == []
    off = settings_of(tmp_path, COGCLI_AGENT_SYNTHESIS_GRACE_S="0")
    assert work_after_answer(off) == []


def test_the_next_command_does_three(settings: Settings) -> None:
    ask(settings, "run_1", "run_2", "run_3", "run_4", "run_5")
    agent_jobs.work_after_answer(settings, limit=agent_jobs.NEXT_JOBS)
    assert len(agent_jobs.list_jobs(settings)) == 3
    assert len(agent_jobs.list_jobs(settings, "t", "u", all=True)) == 6
    assert agent_jobs.list_jobs(settings, "s") == []
