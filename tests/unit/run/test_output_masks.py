"""Masks of an output (docs/reference/pack.md#obligations)."""

from __future__ import annotations

import pytest

from cogcli.base.calls import Answer
from cogcli.base.errors import RejectedError, RuntimeErrorBase, ServerFaultError, TransportError
from cogcli.run.engine.output_masks import mask_answer, withhold_reply

MASK = "[masked]"
CARDS = {"cards": [{"no": 1, "of": "a"}, {"no": 2}], "total": 3, "none": None}


@pytest.mark.parametrize(
    ("path", "output"),
    [
        ("total", {**CARDS, "total": MASK}),
        ("none", {**CARDS, "none": MASK}),
        ("cards", {**CARDS, "cards": MASK}),
        ("cards.no", {**CARDS, "cards": [{"no": MASK, "of": "a"}, {"no": MASK}]}),
        ("cards.1.no", {**CARDS, "cards": [{"no": 1, "of": "a"}, {"no": MASK}]}),
        ("cards.9.no", CARDS),
        ("cards.of", {**CARDS, "cards": [{"no": 1, "of": MASK}, {"no": 2}]}),
        ("total.cents", {**CARDS, "total": MASK}),
        ("none.cents", CARDS),
        ("absent.no", CARDS),
    ],
)
def test_the_value_at_a_path_is_masked(path: str, output: object) -> None:
    record = {"reply": {"media_type": "text/plain", "body": "3"}, "printed": "3", "url": "u"}
    found = mask_answer(Answer(CARDS, None, record), (path,))
    assert found.output == output
    assert found.record == {"reply": {"media_type": "text/plain", "body": MASK}, "url": "u"}
    assert mask_answer(found, (path,)) == found, "a recorded answer stays the same"


def test_without_a_mask_an_answer_is_unchanged() -> None:
    answer = Answer(CARDS)
    assert mask_answer(answer, ()) is answer


@pytest.mark.parametrize("kind", [RejectedError, ServerFaultError])
def test_the_error_of_a_service_that_answered_does_not_quote_it(
    kind: type[RuntimeErrorBase],
) -> None:
    error = kind("call.rejected", "found: card 4111", hint="card 4111")
    error.record = {"reply": {"media_type": "text/plain", "body": "card 4111"}}
    withhold_reply(error, ("card",))
    assert "4111" not in f"{error.message} {error} {error.hint} {error.record}"
    error.message = "as an older log has it"
    withhold_reply(error, ("card",))
    assert error.message == "as an older log has it", "a recorded error stays the same"


def test_an_error_without_a_reply_keeps_its_message() -> None:
    error = RejectedError("call.rejected", "the server is not trusted")
    refused = TransportError("call.transport", "no connection")
    for each in (error, refused):
        before = each.message
        withhold_reply(each, ("card",))
        assert each.message == before
