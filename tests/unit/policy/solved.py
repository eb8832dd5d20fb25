"""What the solver z3 answers about terms, without the values of a solution."""

from __future__ import annotations

from collections.abc import Sequence

from cogcli.policy.smt_script import SmtScript


def solve(script: SmtScript, terms: Sequence[str], *assumed: str) -> list[bool | None]:
    """Return for each term whether it may be true under these constants; None if the solver gave up."""
    import z3

    names = [script.ask(term) for term in terms]
    solver = z3.Solver()
    solver.from_string(script.text)
    answers = {"sat": True, "unsat": False}
    return [answers.get(str(solver.check(*map(z3.Bool, (name, *assumed))))) for name in names]
