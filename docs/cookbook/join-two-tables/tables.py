"""Tables as lists of rows."""


def join(left: list, right: list, on: str) -> dict:
    """Each row of the left table with the fields of the right row that has the same value in the column."""
    by_key = {row[on]: row for row in right}
    return {"rows": [{**by_key.get(row[on], {}), **row} for row in left]}
