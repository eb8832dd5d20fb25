"""The selection of a binding: its options, the rules that were evaluated, and the resulting chain.

The rules are in docs/reference/binding.md#selection.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.options import RunOptions

BY_NAME: Final = ("flag", "active", "override")
"""The rules that name a single binding."""
CANDIDATE: Final = "candidate"
"""The channel of bindings that are used only if they are named explicitly."""


class SelectionOptions(NamedTuple):
    """The options of a run that affect selection.

    These are `--bind` by capability, the required conformance, the environment variables, the preferred services in
    order, and whether fallbacks are disabled.
    """

    binds: Mapping[str, str] = MappingProxyType({})
    conformance: str | None = None
    environ: Mapping[str, str] = MappingProxyType({})
    prefer: tuple[str, ...] = ()
    no_fallback: bool = False
    allow_hosts: tuple[str, ...] = ()
    """The public hosts that an untrusted project may call (docs/reference/service.md#trust)."""

    @classmethod
    def of(cls, options: RunOptions, environ: Mapping[str, str]) -> SelectionOptions:
        """Return the selection options for a run with these options."""
        return cls(
            options.bind,
            options.conformance,
            environ,
            tuple(options.prefer),
            options.no_fallback,
            tuple(options.allow_hosts),
        )


class Reason(NamedTuple):
    """Explains why a binding is not eligible: a stable code, a short string, and hints, one per line."""

    code: str
    text: str
    cure: str = ""
    need: str = ""
    """The kind of need, if the code does not determine it."""
    short: str = ""
    """The reason in two or three words, such as `env OPENAI_API_KEY`."""


class EvaluatedRule(NamedTuple):
    """A selection rule that was evaluated.

    It has the binding that the rule names, if any, and explains why that binding was chosen or not.
    """

    rule: str
    binding_id: str | None
    chosen: bool
    reason: str


class ChainLink(NamedTuple):
    """A binding of the fallback chain. `reasons` explain why it is not eligible."""

    binding_id: str
    service_id: str | None
    conformance_profile: str | None
    reasons: tuple[Reason, ...] = ()

    @property
    def eligible(self) -> bool:
        """Whether the binding may be called."""
        return not self.reasons

    @property
    def reason(self) -> str:
        """All reasons as one text. Empty if the binding is eligible."""
        return "; ".join(reason.text for reason in self.reasons)


class Selection(NamedTuple):
    """The chain chosen for a capability, and the rules that led to it."""

    capability_id: str
    selection_source: str
    primary_binding_id: str
    required_conformance_profile: str
    considered: tuple[EvaluatedRule, ...]
    chain: tuple[ChainLink, ...]

    @property
    def candidates(self) -> tuple[ChainLink, ...]:
        """The bindings of the chain that may be tried. The first eligible one is called first."""
        return self.chain[:1] if self.selection_source in BY_NAME else self.chain

    @property
    def usable(self) -> tuple[str, ...]:
        """The ids of the eligible bindings, in calling order. A result of `select` has at least one."""
        return tuple(link.binding_id for link in self.chain if link.eligible)

    def to_payload(self) -> Json:
        """Return the explanation as a JSON object. Commands print it, and the log records it."""
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
