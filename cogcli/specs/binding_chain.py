"""Selecting a binding: a run's options, the rules considered, the chain (docs/reference/binding.md#selection)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from cogcli.declarations.options import RunOptions

BY_NAME: Final = ("flag", "active", "override")
"""The rules that name one binding without alternatives."""
CANDIDATE: Final = "candidate"
"""The channel of bindings that are used only when they are named themselves."""


class SelectionOptions(NamedTuple):
    """A run's options for selection: `--bind` by capability, the conformance demanded, the environment, the services
    preferred, the first of them most, and whether a chain is its first binding alone."""

    binds: Mapping[str, str] = MappingProxyType({})
    conformance: str | None = None
    environ: Mapping[str, str] = MappingProxyType({})
    prefer: tuple[str, ...] = ()
    no_fallback: bool = False
    allow_hosts: tuple[str, ...] = ()
    """The public hosts that a project may call before it is trusted (docs/reference/service.md#trust)."""

    @classmethod
    def of(cls, options: RunOptions, environ: Mapping[str, str]) -> SelectionOptions:
        """How the bindings of a run with these options are chosen."""
        return cls(
            options.bind,
            options.conformance,
            environ,
            tuple(options.prefer),
            options.no_fallback,
            tuple(options.allow_hosts),
        )


class Reason(NamedTuple):
    """Why a binding is not eligible: a stable code, a short text, and hints, a line each."""

    code: str
    text: str
    cure: str = ""
    need: str = ""
    """The kind of need, where the code does not tell it."""
    short: str = ""
    """The reason in two or three words, such as `env OPENAI_API_KEY`."""


class Considered(NamedTuple):
    """A rule that was evaluated, the binding that it names if any, and why it was chosen or not."""

    rule: str
    binding_id: str | None
    chosen: bool
    reason: str


class ChainLink(NamedTuple):
    """A member of the fallback chain; `reasons`: why it is not eligible."""

    binding_id: str
    service_id: str | None
    conformance_profile: str | None
    reasons: tuple[Reason, ...] = ()

    @property
    def eligible(self) -> bool:
        """Whether it may be called."""
        return not self.reasons

    @property
    def reason(self) -> str:
        """Why it may not be called as one text, empty where it may."""
        return "; ".join(reason.text for reason in self.reasons)


class Selection(NamedTuple):
    """The chain chosen for a capability, and the rules that led to it."""

    capability_id: str
    selection_source: str
    primary_binding_id: str
    required_conformance_profile: str
    considered: tuple[Considered, ...]
    chain: tuple[ChainLink, ...]

    @property
    def tried(self) -> tuple[ChainLink, ...]:
        """The members of which the first eligible one is called first."""
        return self.chain[:1] if self.selection_source in BY_NAME else self.chain

    @property
    def usable(self) -> tuple[str, ...]:
        """The eligible bindings in calling order; a result of `select` has at least one."""
        return tuple(link.binding_id for link in self.chain if link.eligible)

    def to_payload(self) -> dict[str, Any]:
        """The explanation as a JSON object, as shown and recorded."""
        chain = [
            {
                "binding_id": link.binding_id,
                "service_id": link.service_id,
                "conformance_profile": link.conformance_profile,
                "eligible": link.eligible,
                "reason": link.reason,
            }
            for link in self.chain
        ]
        considered = [rule._asdict() for rule in self.considered]
        return self._asdict() | {"considered": considered, "chain": chain}
