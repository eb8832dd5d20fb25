"""Lists of objects: duplicates, joins, merges and renamed or computed fields."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from cogcli.official.data import overlaid
from cogcli.official.values import Record, columns_of, identity, records_of, require_columns
from cogcli.sdk import Refused, compile_expression

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

_MAX_JOINED = 100_000
_JOINS = ("inner", "left", "right", "outer")
_STRATEGIES = ("first", "last", "strict", "deep")
_CHANGES = ("rename", "defaults", "computed", "select")


def deduplicate(records: list[Record], key_fields: list[str] | None = None) -> dict[str, object]:
    """Return the records without those that equal an earlier one in the key fields, by default in
    all fields.

    A missing field counts as null. Raise Refused for a field that no record has.
    """
    require_columns(records_of(records, "records"), key_fields or (), "field")
    kept: dict[Hashable, Record] = {}
    for record in records:
        key = identity([record.get(field) for field in key_fields] if key_fields else record)
        kept.setdefault(key, record)
    return {"records": list(kept.values()), "duplicates": len(records) - len(kept)}


def join_records(
    records_a: list[Record], records_b: list[Record], key_field: str, join_type: str = "inner"
) -> dict[str, object]:
    """Return the pairs of records with equal, non-null key as one record each.

    Left, right and outer keep records without partner, with null for the fields of the other side.
    A field of B that A also has gets `_b` after its name. `matched_count` counts the pairs,
    `unmatched_count` the records of both sides without partner. At most 100,000 records are
    returned; `truncated` is true if there are more. Raise Refused for a key that one side does not
    have.
    """
    if join_type not in _JOINS:
        raise Refused("unsupported", f"no join {join_type!r:.40}", f"there are {', '.join(_JOINS)}")
    for side, records in (("records_a", records_a), ("records_b", records_b)):
        require_columns(records_of(records, side), [key_field], f"field of {side}")
    groups_a, groups_b = _group_by_key(records_a, key_field), _group_by_key(records_b, key_field)
    matched = sum(len(found) * len(groups_b.get(key, ())) for key, found in groups_a.items())
    unmatched_a = len(records_a) - sum(
        len(found) for key, found in groups_a.items() if key in groups_b
    )
    unmatched_b = len(records_b) - sum(
        len(found) for key, found in groups_b.items() if key in groups_a
    )
    keeps_a, keeps_b = join_type in ("left", "outer"), join_type in ("right", "outer")
    total = matched + unmatched_a * keeps_a + unmatched_b * keeps_b
    rows = _join_records(records_a, records_b, key_field, keeps_a, keeps_b)
    joined = list(islice(rows, _MAX_JOINED))
    return {
        "records": joined,
        "matched_count": matched,
        "unmatched_count": unmatched_a + unmatched_b,
        "truncated": len(joined) < total,
    }


def _group_by_key(records: list[Record], field: str) -> dict[Hashable, list[Record]]:
    """Return the records by key value. Records whose key is missing or null are left out."""
    groups: dict[Hashable, list[Record]] = {}
    for record in records:
        if record.get(field) is not None:
            groups.setdefault(identity(record[field]), []).append(record)
    return groups


def _join_records(
    records_a: list[Record], records_b: list[Record], key_field: str, keeps_a: bool, keeps_b: bool
) -> Iterator[Record]:
    """Yield the joined records."""
    names = _result_names_of_b(columns_of(records_a), columns_of(records_b), key_field)
    groups_a, groups_b = _group_by_key(records_a, key_field), _group_by_key(records_b, key_field)
    nulls_of_a = dict.fromkeys(columns_of(records_a))
    nulls_of_b = dict.fromkeys(name for name in names.values() if name != key_field)
    for record in records_a:
        partners = groups_b.get(identity(record.get(key_field)), ())
        yield from (record | _rename_fields(partner, names) for partner in partners)
        if keeps_a and not partners:
            yield record | nulls_of_b
    for record in records_b if keeps_b else ():
        if identity(record.get(key_field)) not in groups_a:
            yield nulls_of_a | _rename_fields(record, names)


def _result_names_of_b(
    columns_a: list[str], columns_b: list[str], key_field: str
) -> dict[str, str]:
    """Return the name in the result of each field of B, different from the fields of A and from
    each other.
    """
    taken, names = {*columns_a, *columns_b}, {}
    for name in columns_b:
        new = name
        while name != key_field and name in columns_a and new in taken:
            new += "_b"
        names[name] = new
        taken.add(new)
    return names


def _rename_fields(record: Record, names: dict[str, str]) -> Record:
    return {names.get(name, name): value for name, value in record.items()}


def merge_records(records: list[Record], strategy: str = "last") -> dict[str, object]:
    """Return one record merged from several.

    The first or last non-null value of each field counts. `deep` also merges nested objects field
    by field; `strict` refuses records that disagree. `conflicts` lists, as JSON pointers, the
    places with different values.
    """
    if strategy not in _STRATEGIES:
        raise Refused(
            "unsupported", f"no strategy {strategy!r:.40}", f"there are {', '.join(_STRATEGIES)}"
        )
    names = columns_of(records_of(records, "records"))
    conflicts: list[str] = []
    merged: Record = {}
    for record in reversed(records) if strategy == "first" else records:
        present = {name: value for name, value in record.items() if value is not None}
        merged = overlaid(merged, present, conflicts, deep=strategy == "deep")
    conflicts = list(dict.fromkeys(conflicts))
    if strategy == "strict" and conflicts:
        text = f"the records disagree at {', '.join(conflicts)!s:.200}"
        raise Refused("bad-data", text, "take first, last or deep")
    merged = {name: merged.get(name) for name in names}
    return {"record": merged, "field_count": len(merged), "conflicts": conflicts}


def transform_records(records: list[Record], mapping: Record) -> dict[str, object]:
    """Return the records with fields renamed, filled, computed and selected, in this order.

    `rename` maps old to new names, `defaults` fills absent and null fields, `computed` gives
    expressions over the fields (`record.price`, or `price` alone), `select` lists the fields to
    keep. A mapping without these keys maps each new name to an old one, and keeps no other field.
    Raise Refused for a field that no record has, for two fields of one name, and for an expression
    without a value, with the number of its record.
    """
    changes = _parse_mapping(mapping)
    rename, defaults, computed, select = (changes[name] for name in _CHANGES)
    require_columns(records_of(records, "records"), rename, "field")
    names = [rename.get(name, name) for name in columns_of(records)]
    if len(set(names)) < len(names):
        raise Refused("bad-data", "two fields would have one name", "rename the other one, too")
    changed = [_rename_fields(record, rename) for record in records]
    filled = sum(record.get(name) is None for record in changed for name in defaults)
    changed = [
        record | {name: value for name, value in defaults.items() if record.get(name) is None}
        for record in changed
    ]
    if computed and changed:  # without records nobody knows what names there are
        values = _compute_fields(changed, computed)
        changed = [
            record | record_values for record, record_values in zip(changed, values, strict=True)
        ]
    if select is not None:
        require_columns(changed, select, "field")
        changed = [{name: record[name] for name in select if name in record} for record in changed]
    summary = {
        "records": len(changed),
        "fields": columns_of(changed),
        "renamed": len(rename),
        "filled": filled,
        "computed": len(computed),
    }
    return {"records": changed, "transform_summary": summary}


def _compute_fields(records: list[Record], computed: dict[str, str]) -> Iterator[Record]:
    """Yield the values of the expressions over each record."""
    columns = columns_of(records)
    compiled = {
        name: compile_expression(text, ["record", *columns]) for name, text in computed.items()
    }
    for number, record in enumerate(records, 1):
        try:
            yield {
                name: value_of({**record, "record": record}) for name, value_of in compiled.items()
            }
        except Refused as refused:
            raise Refused(
                refused.reason, f"record {number}: {refused.message}", refused.hint
            ) from None


def _parse_mapping(mapping: Record) -> dict[str, Any]:
    """Return the four parts of a mapping. Raise Refused for an invalid one."""
    if not isinstance(mapping, dict) or not mapping:
        raise Refused("bad-data", f"`mapping` says nothing to do; it has {', '.join(_CHANGES)}")
    if not set(mapping).intersection(_CHANGES):
        mapping = {"rename": {old: new for new, old in mapping.items()}, "select": list(mapping)}
    kinds = {"select": list}
    for name, value in mapping.items():
        if name not in _CHANGES:
            raise Refused(
                "bad-data", f"`mapping` has {name!r:.40}", f"it has {', '.join(_CHANGES)}"
            )
        texts = value.values() if isinstance(value, dict) and name in ("rename", "computed") else ()
        names = value if isinstance(value, list) else ()
        if not isinstance(value, kinds.get(name, dict)) or not all(
            isinstance(text, str) for text in (*texts, *names)
        ):
            shape = "a list" if name == "select" else "an object"
            raise Refused("bad-data", f"`mapping.{name}` is not {shape} of names")
    return {"rename": {}, "defaults": {}, "computed": {}, "select": None} | mapping
