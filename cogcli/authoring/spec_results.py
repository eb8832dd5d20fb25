"""The results of checks over all specs of a kind, and the selection of specs
(docs/reference/command-line.md#registry-checks)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import Final

from cogcli.app.needs import MissingRequirement, count_first_needs, describe_counts
from cogcli.app.registry import Layers, open_registry, selection_options
from cogcli.app.settings import Settings
from cogcli.authoring.verification.check_result import FAILED, PASSED, CheckResult
from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound, suggestion
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.layers import BUILT_IN

TRUST: Final = MissingRequirement("trust", "its layer is not trusted", "cogcli config trust")


class SpecResult(NamedTuple):
    """The result of one capability or skill, and its unmet needs if it did not run."""

    result: CheckResult
    needs: tuple[MissingRequirement, ...] = ()
    shipped: bool = False
    """Whether it is shipped, and the project is not the repository of the shipped specs."""

    @property
    def needs_trust(self) -> bool:
        """Whether the spec was not checked because its layer is not trusted."""
        return any(need.kind == "trust" for need in self.needs)


def count_passed_results(results: Sequence[SpecResult], *, shipped: bool) -> tuple[int, int]:
    """Return the number of passed results and their total number, either of shipped specs or of the
    others.
    """
    statuses = [each.result.status for each in results if each.shipped == shipped]
    return statuses.count(PASSED), len(statuses)


def summary_line(results: Sequence[SpecResult], noun: str) -> str:
    """Return the results in one line: `86/97 contracts: 11 need a model (5), the web (6)`.

    The user's specs are counted separately: `yours 1/1, shipped 86/97 contracts`.
    """
    statuses = [each.result.status for each in results]
    lacking = [each.needs for each in results if each.needs]
    failed = statuses.count(FAILED)
    parts = [f"{failed} failed"] if failed else []
    parts += (
        [f"{len(lacking)} need {describe_counts(count_first_needs(lacking))}"] if lacking else []
    )
    yours, shipped = (count_passed_results(results, shipped=each) for each in (False, True))
    passed = f"{statuses.count(PASSED)}/{len(results)}"
    if yours[1] and shipped[1]:
        passed = f"yours {yours[0]}/{yours[1]}, shipped {shipped[0]}/{shipped[1]}"
    return f"{passed} {noun}{': ' if parts else ''}{', '.join(parts)}"


def is_shipped(settings: Settings, file: str) -> bool:
    """Return whether a file, given by its display path, is shipped and does not belong to the project."""
    root = next((layer.root for layer in settings.layers if layer.name == BUILT_IN), "")
    return root != settings.project and Layers(settings).of(file) == BUILT_IN


def load_valid_catalog(settings: Settings) -> Catalog:
    """Return all specs of all layers. Raise ProblemsFound if one has errors, because the checks
    need valid specs.
    """
    catalog = open_registry(settings).everything()
    found = check(catalog, options=selection_options(settings))
    errors = [problem for problem in found if problem.severity == "E"]
    if errors:
        raise ProblemsFound(errors)
    return catalog


def match_ids(words: Sequence[str], known_ids: Collection[str], kind: str) -> list[str]:
    """Return the sorted ids that match the words (ids or patterns); all ids without words.

    Raise UsageError `usage.value` for a word without a match.
    """
    for word in words:
        if not any(fnmatchcase(id, word) for id in known_ids):
            hint = suggestion(word, sorted(known_ids))
            raise UsageError("usage.value", f"there is no {kind} `{word}`", hint=hint)
    return sorted(
        id for id in known_ids if not words or any(fnmatchcase(id, word) for word in words)
    )
