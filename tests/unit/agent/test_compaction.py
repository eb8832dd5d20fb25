"""A conversation that is too long is shown with its oldest messages as one block."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cogcli.agent.compaction import compact_messages
from cogcli.agent.context.blocks import SUMMARY
from cogcli.agent.context.tokenizer import ESTIMATE


def said(*texts: str) -> list[dict[str, Any]]:
    return [
        {"role": "assistant" if n % 2 else "user", "content": text, "message_id": f"m{n}"}
        for n, text in enumerate(texts)
    ]


def test_a_conversation_with_room_is_whole() -> None:
    messages = said("One. Two.", "Yes.")
    found = compact_messages(messages, 100)
    assert (found.summary, found.left, found.kept) == (None, (), tuple(messages))
    assert compact_messages([], 0).kept == ()


def test_the_first_sentences_of_the_user_are_the_summary() -> None:
    messages = said(*(f"Question {n}. More words of it." for n in range(60)))
    found = compact_messages(messages, 10_000)
    assert found.summary
    assert len(found.kept) == 40
    assert found.summary.content == " ".join(f"Question {n}." for n in range(0, 20, 2))
    assert found.summary.provenance_refs == tuple(f"m{n}" for n in range(20))
    assert (found.summary.block_id, found.summary.bucket, found.summary.treatment) == (
        SUMMARY,
        "session",
        "data_only",
    )
    assert (found.summary.truncated, found.summary.trust) == (True, "untrusted")
    assert found.kept == tuple(messages[20:])


def test_a_summary_of_a_model_takes_their_place() -> None:
    found = compact_messages(said(*["word " * 50] * 4), 110, summary="They talked.")
    assert found.summary
    assert found.summary.content == "They talked."
    assert len(found.left) == 3


def test_a_summary_has_a_quarter_of_the_bucket() -> None:
    found = compact_messages(said(*["word " * 30] * 20), 403)
    assert found.summary
    assert (found.summary.tokens, len(found.kept)) == (100, 10)
    assert found.summary.content.startswith("word word")
    assert found.summary.content.endswith(" tokens]")


def test_messages_without_an_id_are_named_by_their_place() -> None:
    messages = [{"role": "user", "content": "word " * 90}] * 3
    found = compact_messages(messages, 130)
    assert found.summary
    assert found.summary.provenance_refs == ("message:1", "message:2")


@given(st.lists(st.text("ab. \n", max_size=60), max_size=60), st.integers(0, 400))
def test_a_compaction_loses_no_message_and_keeps_to_its_room(texts: list[str], room: int) -> None:
    messages = said(*texts)
    found = compact_messages(messages, room)
    assert [*found.left, *found.kept] == messages
    assert len(found.kept) <= 40
    kept = sum(ESTIMATE.count(each["content"]) for each in found.kept)
    assert kept + (found.summary.tokens if found.summary else 0) <= room
    assert bool(found.summary) == bool(found.left)
