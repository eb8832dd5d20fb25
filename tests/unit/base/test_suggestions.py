"""Words that are suggested for one that is not known (cogcli/base/problems.py)."""

from __future__ import annotations

from cogcli.base.problems import did_you_mean, suggestion

OUTCOMES = ("ok", "error", "altered", "pending")


def test_a_word_of_the_same_meaning_comes_before_one_of_similar_letters() -> None:
    assert did_you_mean("failed", OUTCOMES) == ["error"]
    assert did_you_mean("waiting", OUTCOMES) == ["pending"]


def test_a_word_of_the_same_meaning_is_suggested_only_where_it_is_known() -> None:
    assert did_you_mean("failed", ("filed", "ok")) == ["filed"]


def test_other_capitals_come_first_and_nothing_similar_is_no_hint() -> None:
    assert did_you_mean("OK", ("oks", "ok"))[0] == "ok"
    assert suggestion("nonsense", OUTCOMES) == ""
