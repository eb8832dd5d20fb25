"""The defects that the invariants of an agent's state exclude, as replacements in its modules. Each has to be caught.

The first of each invariant is what a first draft of such code is likely to have.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import cogcli

PACKAGE = Path(cogcli.__file__).resolve().parent

TESTS = "test_agent_invariants"


class Defect(NamedTuple):
    """What is replaced in which file, and the test that has to fail then."""

    test: str
    what: str
    file: str
    good: str
    bad: str


_UPDATE = "agent/update.py"
DEFECTS = (
    Defect(
        "test_inv_01",
        "a run goes on only while calls are pending",
        _UPDATE,
        "    return not ended and execution.iteration",
        "    return not ended and bool(execution.pending_calls) and execution.iteration",
    ),
    Defect(
        "test_inv_02",
        "an empty list of calls leaves the old ones",
        _UPDATE,
        "set_tool_calls(_with_insights(state, reply.insights, notes), reply.calls, now)",
        "set_tool_calls(_with_insights(state, reply.insights, notes),"
        " reply.calls or state.execution.pending_calls, now)",
    ),
    Defect(
        "test_inv_03",
        "a response beside calls ends the run",
        _UPDATE,
        "    draft, response = (answer, None) if state.execution.pending_calls else (None, answer)",
        "    draft, response = None, answer",
    ),
    Defect(
        "test_inv_03",
        "calls are left pending at the end",
        _UPDATE,
        "_with_execution(state, stop_reason=reason, pending_calls=())",
        "_with_execution(state, stop_reason=reason)",
    ),
    Defect(
        "test_inv_04",
        "facts of a reply are forgotten",
        _UPDATE,
        "    state = then(update_facts(state, reply.facts, now))\n",
        "",
    ),
    Defect(
        "test_inv_04",
        "the goal is whatever the reply says",
        "agent/update.py",
        '        if text:\n            state = _with_reasoning(',
        '        if True:\n            state = _with_reasoning(',
    ),
    Defect(
        "test_inv_05",
        "every switch is made",
        _UPDATE,
        "    if switch.refused:",
        "    if False:",
    ),
    Defect(
        "test_inv_05",
        "a prompt may be in any mode",
        "agent/prompts.py",
        "    if mode not in CALLS:\n        raise ValueError(",
        "    if mode not in CALLS:\n        mode = str(",
    ),
    Defect("test_inv_06", "an updated fact keeps its place", _UPDATE, "            kept.pop(key, None)\n", ""),
    Defect(
        "test_inv_07",
        "characters are cut where tokens are meant",
        "agent/compress.py",
        'cut_text("\\n".join(lines), max_tokens, tokenizer.count, tokenizer)',
        'CutText("\\n".join(lines)[:max_tokens])',
    ),
    Defect(
        "test_inv_07",
        "a cut in the middle of a word",
        "agent/context/truncation.py",
        "ends = [end for _, end in words]",
        "ends = list(range(1, len(text)))",
    ),
    Defect(
        "test_inv_08",
        "entries are compared as they are written",
        "agent/bounds.py",
        "item.strip().casefold() != folded",
        "item != text",
    ),
    Defect(
        "test_inv_09",
        "results are kept without end",
        _UPDATE,
        'newest(completed, MAX_ITEMS["completed_calls"], "completed_calls", notes)',
        "completed",
    ),
    Defect(
        "test_inv_09",
        "outputs of any size",
        "agent/bounds.py",
        "    short, cut = shorten_json(plain_json(value, subject, notes), limit)",
        "    short, cut = plain_json(value, subject, notes), False",
    ),
    Defect(
        "test_inv_10_payload",
        "a field that is written and not read",
        "agent/stored.py",
        "        members[name] = tuple(value)",
        '        if name != "draft_response":\n            members[name] = tuple(value)',
    ),
    Defect(
        "test_inv_11",
        "a synthesis at no interaction",
        "agent/learning.py",
        "    if read_only or count < 1:",
        "    if read_only:",
    ),
    Defect(
        "test_inv_11",
        "any field may be learnt",
        "agent/learning.py",
        "        if key in keys:",
        "        if key in UserProfile._fields:\n            keys = {**keys, key: key}",
    ),
    Defect(
        "test_inv_12",
        "a text is a list of its letters",
        "agent/reply.py",
        'enumerate(context.optional("insights", list) or ())',
        'enumerate(context.value.get("insights") or ())',
    ),
    Defect(
        "test_inv_12",
        "one wrong field drops its neighbours",
        "agent/learning.py",
        "    return [each for each in statements if each]",
        "    return [] if notes else [each for each in statements if each]",
    ),
    Defect(
        "test_inv_13",
        "half of a surrogate pair raises",
        "agent/reply_text.py",
        'text.encode("utf-8", "surrogatepass")',
        "text.encode()",
    ),
    Defect(
        "test_inv_13",
        "calls are objects, surely",
        "agent/reply.py",
        "    if not isinstance(value, dict):\n        raise _bad_type(path,",
        "    if value is None:\n        raise _bad_type(path,",
    ),
    Defect(
        "test_inv_14",
        "data as it came",
        "agent/data_lines.py",
        'return f"@data {names} {json_text(encodable(self.text))}"',
        'return f"@data {names} {encodable(self.text)}"',
    ),
    Defect(
        "test_inv_14",
        "separators of lines that JSON lets pass",
        "agent/data_lines.py",
        "    return visible_json(canonical(value).decode())",
        "    return canonical(value).decode()",
    ),
    Defect(
        "test_inv_14",
        "origins as they came",
        "agent/data_lines.py",
        'return _NO_WORD.sub("_", text[:_LONGEST]) or "_"',
        "return text",
    ),
    Defect(
        "test_inv_14",
        "labels in the values of a digest",
        "agent/compress.py",
        "{visible(encodable(text))}",
        "{text}",
    ),
    Defect("test_inv_15", "times without a zone", "agent/stored.py", ".tzinfo is not None", " is not None"),
)  # fmt: skip


@contextmanager
def planted(defect: Defect) -> Iterator[None]:
    """The modules of the agent, imported anew, one of them with the defect; those before are put back."""
    path = PACKAGE / defect.file
    source = path.read_text(encoding="utf-8")
    assert source.count(defect.good) == 1, f"{defect.what}: the code to replace is not there once"
    name = ".".join(("cogcli", *Path(defect.file).with_suffix("").parts))
    import_module(TESTS)  # so that there is a module of each name to put back
    before = {
        key: module for key, module in sys.modules.items() if _is_reloaded(key) or key == name
    }
    for key in before:
        del sys.modules[key]
    parents = {
        key: vars(sys.modules[key]).copy() for key in ("cogcli.agent", "cogcli.agent.context")
    }
    try:
        _load(name, path, source.replace(defect.good, defect.bad))
        yield
    finally:
        for key in [key for key in sys.modules if _is_reloaded(key) or key == name]:
            del sys.modules[key]
        sys.modules.update(before)
        for key, members in parents.items():
            vars(sys.modules[key]).update(members)


def _is_reloaded(name: str) -> bool:
    if name in ("agent_strategies", TESTS):
        return True
    is_folder = hasattr(sys.modules[name], "__path__")
    return name.startswith("cogcli.agent.") and name.count(".") == 2 and not is_folder


def _load(name: str, path: Path, source: str) -> None:
    """The module of this source, as if it stood in the file; it imports its neighbours, which may import it."""
    parent, _, last = name.rpartition(".")
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__package__ = parent
    package = import_module(parent)
    sys.modules[name] = module
    exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    setattr(package, last, module)
