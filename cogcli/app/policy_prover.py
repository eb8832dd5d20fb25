"""`policy diff --prove`: two packs, their registry and the solver (docs/reference/pack.md#prove)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from cogcli.app.packs import PackInRegistry
from cogcli.base.errors import ServiceResolutionError
from cogcli.base.extras import install_line, missing_module
from cogcli.policy.policy_proof import PolicyProof, prove
from cogcli.specs.skill_tools import find_tool

EXTRA: Final = "prove"
_TIMEOUT_MS: Final = 10_000
"""The time limit of the solver for one question, in milliseconds."""


def prove_packs(old: PackInRegistry, new: PackInRegistry) -> PolicyProof:
    """Prove how the policy of a new pack relates to the policy of an old pack.

    The capabilities of both packs come from the new registry.

    Raise ServiceResolutionError `env.extra` if the solver is not installed."""
    missing = missing_module(EXTRA)
    if missing:
        text = f"`{missing}`, which proves policies, is not installed"
        raise ServiceResolutionError("env.extra", text, hint=install_line(EXTRA))
    return prove(old.pack, new.pack, lambda name: find_tool(new.catalog, name), Z3Solver)


class Z3Solver:
    """The solver z3 over a script (docs/adr/0038-proofs.md)."""

    def __init__(self, script: str) -> None:
        import z3

        self._z3 = z3
        self._solver = z3.Solver()
        self._solver.set("timeout", _TIMEOUT_MS)
        self._solver.from_string(script)
        self._values: dict[str, Fraction] = {}

    def check(self, assumptions: Sequence[str]) -> bool | None:
        """Return whether the script is satisfiable under these constants; None if the solver gave up."""
        found = str(self._solver.check(*map(self._z3.Bool, assumptions)))
        if found == "sat":
            model = self._solver.model()
            constants = [each() for each in model.decls() if each.arity() == 0]
            values = {
                str(each): _read_value(model.eval(each, model_completion=True))
                for each in constants
            }
            self._values = {name: value for name, value in values.items() if value is not None}
        return {"sat": True, "unsat": False}.get(found)

    def value(self, name: str) -> Fraction:
        """Return the value of a constant in the last solution. A constant that does not matter is 0."""
        return self._values.get(name, Fraction(0))


def _read_value(value: object) -> Fraction | None:
    """Return a number or a condition of the solver; of a root the first digits. None for a named term."""
    text = str(value)
    if text in ("True", "False"):
        return Fraction(text == "True")
    is_number = text.lstrip("-")[:1].isdigit()
    return Fraction(text.removesuffix("?")) if is_number else None
