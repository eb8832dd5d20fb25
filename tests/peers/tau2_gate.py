"""The actions of tau2 under the packs of its desks: which are allowed, and which seeded violations are denied."""

from __future__ import annotations

import importlib.util
import os
import random
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import orjson
from ruamel.yaml import YAML
from tau2_desk import DOMAINS, Action, Desk, Json, read_desk, read_tasks
from tau2_seeds import SEEDERS

from cogcli.declarations.pack_spec import Pack
from cogcli.policy.pack_policy import GovernedCall, Policy
from cogcli.policy.verdict import Verdict

PACKS = Path(__file__).with_name("tau2")
_READS = ("get_", "find_", "search_", "calculate", "transfer_")


class Report(NamedTuple):
    """What the gate says of one desk. `refused` are right actions that it denies: number of the task, tool, rule."""

    actions: int
    refused: list[tuple[int, str, str]]
    seeds: Counter[str]
    """By rule, how many violations were seeded."""
    passed: list[tuple[str, Json]]
    """The seeded violations that were not denied: rule and arguments."""
    other: int
    """Denials for another reason than the seeded rule."""

    def to_payload(self) -> Json:
        """What the page of figures needs. Nothing of it is data of tau2 but names of its tools."""
        rules = {rule: self.seeds[rule] for rule in sorted(self.seeds)}
        return {
            "actions": self.actions, "allowed": self.actions - len(self.refused), "refused": self.refused,
            "seeded": self.seeds.total(), "denied": self.seeds.total() - len(self.passed),
            "by_another_rule": self.other, "rules": rules,
        }  # fmt: skip


def find_data() -> Path | None:
    """The directory of the domains: `COGCLI_TAU2_DIR`, or that of the installed package. None without either."""
    named = os.environ.get("COGCLI_TAU2_DIR")
    spec = None if named else importlib.util.find_spec("inspect_evals")
    packages = (spec.submodule_search_locations if spec else None) or ()
    roots = [Path(named)] if named else [Path(each) / "tau2/data/domains" for each in packages]
    return next((root for root in roots if (root / "retail" / "tasks.json").exists()), None)


def read_pack(domain: str) -> Json:
    """The pack of a desk, as its file has it."""
    raw = YAML(typ="safe").load(PACKS / f"{domain}.yaml")
    found: Json = orjson.loads(orjson.dumps(raw))
    return found


def judge(policy: Policy, domain: str, desk: Desk, action: Action) -> Verdict:
    """The verdict on an action, with what the look-ups of the desk give."""
    data = {**desk.facts(action), "args": action.arguments, "inputs": {"reason": action.reason}}
    mode = "read_only" if action.name.startswith(_READS) else "network"
    call = GovernedCall(f"{domain}.{action.name}", mode, "clerk", "network", action.arguments)
    return policy.decide(f"{domain}.desk", call, data)


def measure(data: Path, domain: str) -> Report:
    """Judge each right action after those before it in its task, then what is seeded from it."""
    whole, policy, draw = (
        read_desk(data, domain),
        Policy.of(Pack.of(read_pack(domain))),
        random.Random(27),
    )
    report = Report(0, [], Counter(), [], 0)
    for number, actions in enumerate(read_tasks(data, domain, whole)):
        desk = whole.copy_for(actions)
        for action in actions:
            verdict = judge(policy, domain, desk, action)
            report = report._replace(actions=report.actions + 1)
            if not verdict.allows:
                report.refused.append((number, action.name, verdict.reason))
                continue
            for seed in SEEDERS[domain](desk, action, draw).list():
                found = judge(policy, domain, seed.desk, seed.action)
                report.seeds[seed.rule] += 1
                if found.allows:
                    report.passed.append((seed.rule, seed.action.arguments))
                report = report._replace(
                    other=report.other + (not found.allows and found.reason != seed.rule)
                )
            desk.apply(action)
    return report


def measure_all(data: Path) -> dict[str, Json]:
    """The figures of all desks."""
    return {domain: measure(data, domain).to_payload() for domain in DOMAINS}
