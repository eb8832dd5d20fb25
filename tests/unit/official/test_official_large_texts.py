"""Large texts are read in the time of their length, or refused."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from cogcli.official import actions, classify, extract, markup, prose, sentiment, similarity, templates
from cogcli.sdk import Refused

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


def read(name: str, text: str) -> float:
    """The seconds of computing that it took."""
    before = time.process_time()
    with contextlib.suppress(Refused):
        json.dumps(READERS[name](text), allow_nan=False)
    return time.process_time() - before


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", READERS)
def test_a_line_of_8_mib_is_read_or_refused_within_two_seconds(name: str) -> None:
    for part in PARTS:
        assert read(name, part * (MIB_8 // len(part))) < 2, part


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("part", PARTS, ids=repr)
@pytest.mark.parametrize("name", READERS)
def test_a_text_that_is_just_read_takes_no_longer(name: str, part: str) -> None:
    for size in (1_000_000, 500_000, 200_000, 100_000):
        assert read(name, part * (size // len(part))) < 4  # on a machine that does other things, too
