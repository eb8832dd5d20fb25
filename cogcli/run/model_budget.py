"""The budget of the model that services ask inside calls of a run (docs/reference/mcp.md#sampling)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cogcli.base.calls import TakeSample
from cogcli.base.named_tuple import NamedTuple
from cogcli.policy.budgets import DEFAULTS, Budgets, flatten, merge_limits
from cogcli.policy.prices import COST
from cogcli.run.policy import pack_of
from cogcli.run.policy_request import PolicyRequest
from cogcli.specs.catalog import Catalog

TOKENS: Final = "tokens.workflow"
"""The budget for the tokens of models."""
OUTPUT: Final = "tokens.output"
"""The budget for the tokens of one reply."""


class ModelBudget(NamedTuple):
    """The limits of a run for the model that its services ask, and what they have used of them."""

    budgets: Budgets
    most_output: int
    """The most tokens of one reply."""


OpenSampler = Callable[
    [Callable[[str], None], Catalog, PolicyRequest | None, Mapping[str, int]], TakeSample | None
]
"""Opens the configured model for a run of a catalog, with its policy flags, and what earlier processes used of the
budget. The secrets of the model are passed to the first argument. Returns None without a model."""


def model_budget(
    catalog: Catalog, request: PolicyRequest | None, spent: Mapping[str, int]
) -> ModelBudget:
    """Return the budget that the pack of a run gives its model, without a pack the defaults. `spent` is what earlier
    processes of the run used. Raise the errors of `pack_of`.
    """
    limits = dict(flatten(DEFAULTS))
    if request is not None and request.pack:
        limits = merge_limits(DEFAULTS, pack_of(catalog, request).meta.defaults.budget)
    own: dict[str, int] = {key: int(limits[key]) for key in (TOKENS, COST) if key in limits}
    budgets = Budgets(own)
    budgets.settle({}, spent)
    return ModelBudget(budgets, int(limits[OUTPUT]))
