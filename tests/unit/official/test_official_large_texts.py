"""Large texts are read in the time of their length, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support.growth import assert_linear

from cogcli.official import (
    actions,
    classify,
    extract,
    markup,
    prose,
    sentiment,
    similarity,
    templates,
)
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(4)

MIB_8 = 8 * 1024 * 1024
PARTS = ("a", "a@", "1,", "# x\n", "Hi. ", "<a ", "[a](", "{{a", "\u202e\u05d0 ", "東京", "-- A: ")
LABELS = ["billing", {"label": "harbour", "keywords": ["quay"]}]
READERS: dict[str, Callable[[str], Any]] = {
    "summarize": lambda text: prose.summarize_by_frequency(text, max_length=200),
    "keywords": prose.extract_keywords,
    "entities": extract.find_entities,
    "actions": actions.extract_actions,
    "labels": lambda text: classify.classify_by_cues(text, LABELS),
    "kinds": classify.classify_by_cues,
    "body": lambda text: markup.extract_body(text, {"owner": "string"}),
    "vector": similarity.embed_by_hash,
    "comparison": lambda text: similarity.compare_texts(text, text[1:]),
    "sentiment": sentiment.rate_sentiment,
    "template": lambda text: templates.fill_template(text, {"a": "x"}),
}


def read(name: str, part: str, size: int) -> bool:
    """Read a text of `size` characters made of one part: whether that was not refused, which is an answer, too."""
    try:
        json.dumps(READERS[name](part * (size // len(part))), allow_nan=False)
    except Refused:
        return False
    return True


@pytest.mark.slow
@pytest.mark.sampled(24)
@pytest.mark.parametrize("part", PARTS, ids=repr)
@pytest.mark.parametrize("name", READERS)
def test_a_line_of_8_mib_is_read_or_refused_in_linear_time(name: str, part: str) -> None:
    assert_linear(partial(read, name, part), MIB_8)


@pytest.mark.sampled(48)
@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS, ids=repr)
@pytest.mark.parametrize("name", READERS)
def test_a_text_that_is_just_read_takes_linear_time(name: str, part: str) -> None:
    """Measured at the largest of some sizes that is read: a larger one is refused, at a smaller one noise decides."""
    for size in (1_000_000, 500_000, 200_000, 100_000):
        if read(name, part, size):
            assert_linear(partial(read, name, part), size)
            return
