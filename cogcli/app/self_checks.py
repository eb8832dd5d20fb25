"""Self-verification: the rules of an invoker and the rows of the failure model, each provoked
(docs/reference/protocols.md#own-rules); here are those rows that keep a run from starting."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.core.errors import ENVIRONMENT, FAILURE_OF, CogcliError, UsageError
from cogcli.core.problems import ProblemsFound
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker_rule import InvokerRule, InvokerRules, RuleBroken, require
from cogcli.protocols.pythoncall.stdout_capture import divert_streams
from cogcli.runs.prepare import RunRequest, prepare
from cogcli.specs.layers import Layer
from cogcli.specs.registry import Registry
from cogcli.verification import failure_rules
from cogcli.verification.check_result import CheckResult, CheckResults, verify_all
from cogcli.verification.harness import Bench, check_rule

_AT_ONCE: Final = 8

_SKILL: Final = """\
id: bench.read
version: "1.0.0"
name: Read
description: A skill of the bench.
inputs:
  text: {type: string, required: true}
  word: {type: string, enum: [a, b]}
  count: {type: integer, schema: {minimum: 1}}
outputs: {}
steps:
  - {id: only, uses: bench.text.read, input: {text: inputs.text}, output: {}}
"""
_CAPABILITY: Final = """\
id: bench.text.read
version: "1.0.0"
description: A capability of the bench.
inputs: {text: {type: string, required: true}}
outputs: {text: {type: string}}
properties: {side_effects: false}
"""
_BINDING: Final = """\
id: bench_text_read
capability: bench.text.read
service: bench
protocol: pythoncall
operation: normalize
request: {text: input.text}
response: {text: response.text}
"""
_SERVICE: Final = "id: bench\nkind: pythoncall\nmodule: cogcli.official.text\n"


class RefusedStart(NamedTuple):
    """A run that does not start: its code, its request, and the files that differ from those above."""

    code: str
    what: str = ""
    skill: str = "bench.read"
    inputs: Mapping[str, Any] = {}
    frame: Mapping[str, Any] = {}
    files: Mapping[str, str] = {}


_NO_CAPABILITY: Final = "capability.not-found"
_FILES: Final = {
    "skills/local/bench/read/skill.yaml": _SKILL,
    "capabilities/bench.text.read.yaml": _CAPABILITY,
    "bindings/local/bench.text.read/one.yaml": _BINDING,
    "services/local/bench.yaml": _SERVICE,
}
_STARTS: Final = (
    RefusedStart("skill.not-found", skill="bench.raed"),
    RefusedStart("input.unknown", inputs={"text": "x", "txet": "y"}),
    RefusedStart("input.missing"),
    RefusedStart("input.type", inputs={"text": 1}),
    RefusedStart("input.enum", inputs={"text": "x", "word": "c"}),
    RefusedStart("input.schema", inputs={"text": "x", "count": 0}),
    RefusedStart("frame.field", inputs={"text": "x"}, frame={"gaol": "y"}),
    RefusedStart(
        "step.uses",
        "in a skill",
        inputs={"text": "x"},
        files={
            "skills/local/bench/read/skill.yaml": _SKILL.replace(
                "bench.text.read", "bench.text.raed"
            )
        },
    ),
    RefusedStart(
        "key.unknown",
        "in a capability",
        inputs={"text": "x"},
        files={"capabilities/bench.text.read.yaml": f"{_CAPABILITY}safty: {{}}\n"},
    ),
)


def _start_rules() -> InvokerRules:
    """The rules of runs that do not start: nothing may be called, no episode may appear."""
    starts = {f"{start.code} {start.what}".rstrip(): _start_rule(start) for start in _STARTS}
    row = FAILURE_OF[_NO_CAPABILITY]
    return {
        **starts,
        _NO_CAPABILITY: InvokerRule(f"{row.cls.__name__}, exit {row.exit}", _show_no_capability),
    }


def _show_no_capability(bench: Bench) -> None:
    row = FAILURE_OF[_NO_CAPABILITY]
    try:
        layer = Layer("bench", bench.directory, True)
        Registry([layer], protocols=PROTOCOLS, base=bench.directory).about("bench.text.raed")
    except CogcliError as error:
        found = (type(error).__name__, error.code, error.exit_code)
        require(found, (row.cls.__name__, _NO_CAPABILITY, row.exit), "the error")
    else:
        raise RuleBroken(f"it was found, expected {_NO_CAPABILITY}")


def _start_rule(start: RefusedStart) -> InvokerRule:
    row = FAILURE_OF.get(start.code)
    rule = (
        f"{row.cls.__name__}, exit {row.exit}" if row else f"a problem of specs, exit {ENVIRONMENT}"
    )
    return InvokerRule(rule, lambda bench: _show(bench, start))


def _show(bench: Bench, start: RefusedStart) -> None:
    row = FAILURE_OF.get(start.code)
    error = _refused(bench, start)
    # What keeps a run from starting is told together, under the code of the first.
    allowed = {ProblemsFound.__name__, *([row.cls.__name__] if row else ())}
    if type(error).__name__ not in allowed:
        raise RuleBroken(f"found {type(error).__name__}, expected {' or '.join(sorted(allowed))}")
    require(error.code, start.code, "code")
    require(error.exit_code, row.exit if row else ENVIRONMENT, "exit code")
    require(os.path.exists(_runs_dir(bench)), False, "a runs directory")


def _refused(bench: Bench, start: RefusedStart) -> CogcliError:
    root = os.path.join(bench.directory, "registry")
    for name, text in {**_FILES, **start.files}.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    home = {"HOME": bench.directory, "XDG_CACHE_HOME": os.path.join(bench.directory, "cache")}
    settings = Settings(
        {"registry": [root], "runs_dir": _runs_dir(bench)}, home, base=bench.directory
    )
    try:
        request = RunRequest(start.skill, dict(start.inputs), dict(start.frame), None)
        prepare(open_registry(settings).reach(start.skill), request, settings.environ)
    except CogcliError as error:
        return error
    raise RuleBroken(f"it started, expected {start.code}")


def _runs_dir(bench: Bench) -> str:
    return os.path.join(bench.directory, "runs")


def list_invoker_rules(protocol: str) -> InvokerRules:
    """The rules of one protocol by id. Raises UsageError for a protocol without rules."""
    row = PROTOCOLS.get(protocol)
    if row is None or row.rules is None:
        ruled = [name for name, row in PROTOCOLS.items() if row.rules]
        raise UsageError(
            "usage.value", f"`--protocol`: found `{protocol}`, expected {', '.join(ruled)}"
        )
    return row.rules()


def list_failure_rules() -> InvokerRules:
    """The rows of the failure model by id: first those that keep a run from starting."""
    return {**_start_rules(), **failure_rules.lines()}


def provoke_rules(
    lines: InvokerRules, *, listener: Callable[[CheckResult], None] | None = None
) -> CheckResults:
    """Run every rule, some at a time; `listener` gets each result, in the order of the rules."""

    def provoke(line: tuple[str, InvokerRule]) -> CheckResult:
        with Bench() as bench:
            return check_rule(*line, bench)

    with divert_streams():
        return verify_all(lines.items(), provoke, _AT_ONCE, listener)
