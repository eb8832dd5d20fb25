"""The keys of a toy service, and its operations."""

from cogcli.specs.protocol import Grammar
from cogcli.specs.shape import Text

OPERATIONS = ("reverse", "repeat")


def _operation(operation: str) -> str:
    return "" if operation in OPERATIONS else f"one of {', '.join(OPERATIONS)}"


GRAMMAR = Grammar(keys={"mark": Text(empty=False)}, addresses=("mark",), operation=_operation)
