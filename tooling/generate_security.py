"""Write the page of figures about what packs deny, or with `--check` report whether it is stale.

`--measure` first judges the actions of tau2 again (`tests/peers/tau2_gate.py`) and writes `docs/security.json`. The
data is that of the package `inspect-evals`, in a virtual environment of its own: `COGCLI_TAU2_DIR` names its directory
`inspect_evals/tau2/data/domains`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
MEASURED: Final = ROOT / "docs" / "security.json"
PAGE: Final = ROOT / "docs" / "security.md"
_HEAD: Final = """# Security

This page shows what packs allow and deny on a public benchmark. `python tooling/generate_security.py` writes it from
`docs/security.json`.

<a id="tau2"></a>
## The desks of tau2

[tau2](https://github.com/sierra-research/tau2-bench) has conversations with an airline and a shop. For each task its
authors list the actions that are right. A pack for each desk was written from the text of its policy
([airline](../tests/peers/tau2/airline.yaml), [retail](../tests/peers/tau2/retail.yaml)). The facts of a rule are what
the database of the benchmark says at that moment of the task.
"""
_TAIL: Final = """<a id="limits"></a>
### What this does not show

- The packs judge calls. What an agent says, whether it asks for a confirmation, and whether it acts are not judged.
- The data has no reason for a cancellation. A user with an insurance is taken to give one that is covered.
- A user is the one whom the first action of a task names. That this user was identified is not judged.
- The violations were made by the authors of the packs. They show that each rule holds, not that no rule is missing.

<a id="again"></a>
## Measure it again

The data is in the package `inspect-evals`. It is not part of this project, and belongs in a virtual environment of its
own. Set `COGCLI_TAU2_DIR` to its directory `inspect_evals/tau2/data/domains`, and run
`python tooling/generate_security.py --measure`. The same figures are a long test, `tests/peers/test_tau2.py`."""
_ITS_TOOL: Final = "; the benchmark's own tool refuses it, too"
_WHY: Final = {
    "cancel_terms": "the reservation is two weeks old, in economy and without insurance",
    "cancel_flown": "the flights of the reservation have landed",
    "bags_to_add": "the member's free bags cover what the action charges for",
    "money_goes_back": "the money goes neither to the method of the payment nor to a gift card" + _ITS_TOOL,
    "delivered": "the order is pending" + _ITS_TOOL,
    "card_covers_the_difference": "the gift card has less than the difference" + _ITS_TOOL,
}  # fmt: skip
"""By rule what the database of the benchmark says of an action that its authors hold to be right."""


def main(words: list[str]) -> int:
    """Exit code 0, or 1 if `--check` found the page to differ or `--measure` found no data."""
    if "--measure" in words and not measure():
        return 1
    text = page(json.loads(MEASURED.read_text("utf-8")))
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in words:
        name = PAGE.relative_to(ROOT)
        print(f"stale: {name} (python tooling/generate_security.py)", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE)
    return 0


def measure() -> bool:
    """Judge all actions and write the figures. Return False without the data."""
    sys.path.insert(0, str(ROOT / "tests" / "peers"))
    from tau2_gate import find_data, measure_all

    data = find_data()
    if data is None:
        print("no data of tau2: COGCLI_TAU2_DIR names its directory", file=sys.stderr)
        return False
    MEASURED.write_text(json.dumps(measure_all(data), indent=1) + "\n", encoding="utf-8")
    return True


def page(measured: dict[str, Any]) -> str:
    """Return the page."""
    return "\n".join([*_list_lines(measured)]) + "\n"


def _list_lines(measured: dict[str, Any]) -> Iterator[str]:
    desks = list(measured.values())
    sums = {
        name: sum(desk[name] for desk in desks)
        for name in ("actions", "allowed", "seeded", "denied")
    }
    share = 100 * sums["denied"] / sums["seeded"]
    refused = sums["actions"] - sums["allowed"]
    yield _HEAD
    yield (
        f"- Right actions: {sums['allowed']:,} of {sums['actions']:,} are allowed."
        f" The other {refused} break the text of the policy, see below."
    )
    yield (
        f"- Seeded violations: {sums['denied']:,} of {sums['seeded']:,} are denied, {share:.1f} %."
        " Each changes one right action or the entity that it is about, so that it breaks one rule."
    )
    yield ""
    yield "| desk | right actions | allowed | seeded violations | denied | by another rule than the seeded one |"
    yield "|---|---|---|---|---|---|"
    for name, desk in measured.items():
        cells = (
            name,
            desk["actions"],
            desk["allowed"],
            desk["seeded"],
            desk["denied"],
            desk["by_another_rule"],
        )
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    yield '<a id="denied"></a>\n### Right actions that are denied'
    yield ""
    yield "| desk | task | tool | rule | the database says |"
    yield "|---|---|---|---|---|"
    for name, desk in measured.items():
        for task, tool, rule in desk["refused"]:
            yield f"| {name} | {task} | `{tool}` | `{rule}` | {_WHY.get(rule, '')} |"
    yield ""
    yield '<a id="rules"></a>\n### Seeded violations by rule'
    yield ""
    yield "| desk | rule | violations |"
    yield "|---|---|---|"
    for name, desk in measured.items():
        for rule, count in desk["rules"].items():
            yield f"| {name} | `{rule}` | {count} |"
    yield ""
    yield _TAIL


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
