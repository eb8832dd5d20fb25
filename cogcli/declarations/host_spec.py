"""Files with several selections: the default bindings of a registry, and the files of a host
(docs/reference/binding.md#host-overrides).
"""

from __future__ import annotations

from typing import Annotated, Literal

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.field import key
from cogcli.declarations.service_spec import Service
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import (
    BoundBinding,
    BoundCapability,
    CapabilityRef,
    PlainId,
    ServiceRef,
)

ActiveBindings = dict[
    BoundCapability,
    Annotated[
        BoundBinding, SpecLimits(hint="name a binding by its id; `cogcli bindings ls` lists them")
    ],
]
"""`active_bindings.json`."""


class DefaultBindings(Spec):
    """`official_default_selection.yaml`: the bindings of a registry that are used by default."""

    defaults: dict[
        BoundCapability, BoundBinding | Annotated[tuple[BoundBinding, ...], SpecLimits(minimum=1)]
    ] = key(nullable=True)
    """Capability to the binding that is used by default, or to a list of bindings."""


class OverrideEntry(Spec):
    """An entry of `overrides.yaml`."""

    capabilities: Annotated[
        tuple[CapabilityRef, ...], SpecLimits(minimum=1, code="overrides.shape")
    ]
    """The capabilities to which the rule applies."""
    binding: Annotated[PlainId, SpecLimits(ids="bindings")] | None = None
    """The binding that is chosen."""
    service: ServiceRef | None = None
    """The service whose binding is chosen, instead of `binding`."""
    mode: Literal["replace", "prefer"] = "replace"
    """`replace`: only this binding may be used. `prefer`: if it is not usable, the next rule applies."""


class OverridesFile(Spec):
    """`overrides.yaml`: the selections of this host."""

    overrides: tuple[OverrideEntry, ...] = key(default=(), required=True, nullable=True)
    """Choices for this machine, each for some capabilities."""


class ServicesFile(Spec):
    """`services.yaml`: several services, each without its id."""

    services: dict[PlainId, Service] = key(default=NOTHING, required=True, nullable=True)
    """Id to a service without its id."""
