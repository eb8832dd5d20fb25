"""The keys of a toy service, and its operations."""

from __future__ import annotations

from cogcli.declarations.spec import Spec
from cogcli.declarations.spec_types import Words
from cogcli.specs.protocol import Grammar

OPERATIONS = ("reverse", "repeat")


def _operation(operation: str) -> str:
    return "" if operation in OPERATIONS else f"one of {', '.join(OPERATIONS)}"


class ToyService(Spec):
    """A toy service."""

    mark: Words | None = None
    """What it writes below each text."""


GRAMMAR = Grammar(settings=ToyService, addresses=("mark",), operation=_operation)
