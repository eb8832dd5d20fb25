"""Each defect that an invariant of the agent's state excludes is caught by the test of this invariant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import HypothesisException
from seeded_defects import DEFECTS, PACKAGE, TESTS, Defect, planted

_ALWAYS = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def same_examples() -> Iterator[None]:
    """The properties are tried with the same examples each time, and not shrunk."""
    before = settings.get_current_profile_name()
    settings.register_profile("seeded", _ALWAYS)
    settings.load_profile("seeded")
    yield
    settings.load_profile(before)


def test_each_defect_has_its_place() -> None:
    """A defect whose place has changed is never planted, and few runs draw it."""
    sources = [(defect, (PACKAGE / defect.file).read_text(encoding="utf-8")) for defect in DEFECTS]
    assert [each.what for each, source in sources if source.count(each.good) != 1] == []


@pytest.mark.sampled(8)
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")  # of large examples
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect.test}: {defect.what}")
def test_a_defect_is_caught(defect: Defect) -> None:
    with planted(defect):
        tests = import_module(TESTS)
        with pytest.raises(BaseException) as caught:  # noqa: PT011  # an assertion, or what the defect raises
            getattr(tests, defect.test)()
    assert not isinstance(caught.value, NameError | ImportError | SyntaxError | HypothesisException)


def test_every_invariant_has_its_defect() -> None:
    source = (Path(__file__).parent / "test_agent_invariants.py").read_text(encoding="utf-8")
    tests = set(re.findall(r"^def (test_inv_\d\d\w*)", source, re.MULTILINE))
    assert {test[9:11] for test in tests} == {f"{number:02}" for number in range(1, 16)}
    assert {defect.test for defect in DEFECTS} == tests


def test_without_a_defect_nothing_is_caught() -> None:
    same = DEFECTS[0]._replace(bad=DEFECTS[0].good)
    with planted(same):
        getattr(import_module(TESTS), same.test)()
