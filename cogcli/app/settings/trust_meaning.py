"""The meaning of changes in an accepted project: the new actions that they allow
(docs/reference/service.md#trust).

Each changed file is read in its accepted and its present form, for the declarations that guard or
reach something. Two declarations of the same thing are compared, wherever their files are: a
renamed file means nothing by itself."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from difflib import unified_diff
from itertools import islice
from shlex import quote
from typing import Any, Final, NamedTuple

from cogcli.app.settings.config import PROJECT_FILE
from cogcli.app.settings.trust_accept import ProjectSnapshot
from cogcli.app.settings.trust_copies import Copies
from cogcli.base.files import FileRefused, read_regular
from cogcli.base.jsonvalue import list_of, object_of
from cogcli.base.source_lines import hide_secrets
from cogcli.base.toml_bounds import find_excess
from cogcli.base.yaml.reader import DOCUMENT, parse
from cogcli.declarations.capability_spec import GATES, STRICTNESS, TRUST_RANKS
from cogcli.declarations.pack_spec import VERDICTS
from cogcli.declarations.value_types import Json
from cogcli.specs.host_layout import ACTIVE_FILE, OVERRIDES_FILE, SERVICES_FILE
from cogcli.specs.id_grammar import PLACEHOLDER
from cogcli.specs.layers import builtin_root
from cogcli.specs.service import IN_ADDRESS
from cogcli.specs.service_variables import ADDRESSES

# Each of these begins at a fixed text: a search from every letter of a long word would take the square of its length.
_HOST: Final = re.compile(r"://(?:[^/?#\s\"'@]*@)?([^/?#\s\"',;<>@]+)")
_PLAIN_HOST: Final = re.compile(r"(?i:http)" + _HOST.pattern)
_USER: Final = re.compile(r"://[^/?#\s\"'@]*@")
_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_LONGEST_SETTINGS: Final = 256 * 1024
_LONGEST_LINE: Final = 400
_MOST_LINES: Final = 2000
_LARGEST_DIFF: Final = 512 * 1024

_ISOLATIONS: Final = ("thread", "process", "sandbox")
"""The isolations of functions, the weakest first."""

Declarations = dict[tuple[str, str], Json]
"""By kind and subject what each file declares, by the name of the file."""


class Meaning(NamedTuple):
    """An action that a change allows, and its severity.

    0: a guard is lost; 1: something new is reached or started; 2: something else is called or
    chosen; 3: a setting; 4: all else."""

    severity: int
    text: str


class FileChange(NamedTuple):
    """A file or program that was `added`, `changed` or `removed`, its contents, and what the change means, the gravest
    first.

    `before` is also None if no copy of the accepted file is left; then `meaning` says so.
    """

    change: str
    name: str
    before: bytes | None
    after: bytes | None
    meaning: tuple[Meaning, ...]
    copy: str = ""
    """The path of the copy of the accepted file; empty without one."""

    @property
    def severity(self) -> int:
        """Return the severity of its gravest meaning. Files without a meaning come last, code
        before specs."""
        if self.meaning:
            return self.meaning[0].severity
        return _SPEC_ALONE if _is_spec(self.name) else _CODE_ALONE

    def diff(self) -> str:
        """Return the changed text as a unified diff, with secrets hidden. For hidden parts a line
        shows the command that prints them."""
        if max(len(self.before or b""), len(self.after or b"")) > _LARGEST_DIFF:
            return f"{self.name}: too large to be shown{self._see}\n"
        try:
            old, new = ((data or b"").decode().splitlines() for data in (self.before, self.after))
        except UnicodeDecodeError:
            return f"{self.name}: no text{self._see}\n"
        lines = unified_diff(
            old, new, f"accepted/{self.name}", f"now/{self.name}", n=2, lineterm=""
        )
        shown = [_masked(line) for line in islice(lines, _MOST_LINES)]
        if left := sum(1 for _ in lines):
            shown.append(f"{self.name}: {left:,} more lines{self._see}")
        return "".join(f"{line}\n" for line in shown)

    @property
    def _see(self) -> str:
        """Return the command that shows all of the change."""
        if self.copy and self.after is not None:
            return f"; all: diff -u {quote(self.copy)} {quote(self.name)}"
        return f"; all: less {quote(self.copy or self.name)}"

    def to_payload(self) -> Json:
        """Return the change as a JSON object, without contents."""
        return {
            "change": self.change,
            "name": self.name,
            "meaning": [each.text for each in self.meaning],
        }


def changes_of(look: ProjectSnapshot, environ: Mapping[str, str]) -> list[FileChange]:
    """Return the changes of a project since it was accepted, each with its meaning, the gravest
    first.

    Empty for the first time."""
    copies, accepted = Copies(look.project, environ), look.before or {}

    def content(digest: str) -> bytes | None:
        own = digest.partition(" ")[0]
        found = look.contents.get(own)
        return copies.read(own) if found is None else found

    contents = {
        name: (content(accepted.get(name, "")), content(look.digests.get(name, "")))
        for _, name in look.changes
    }
    old, new = Declarations(), Declarations()
    for name, (before, after) in contents.items():
        for found, data in ((old, before), (new, after)):
            for key, value in _declared(name, data).items():
                found.setdefault(key, {})[name] = value
    meant: dict[str, list[Meaning]] = {name: [] for name in contents}
    for key in sorted(old.keys() | new.keys()):
        for name, one, other in _pairs(old.get(key, {}), new.get(key, {})):
            severity = _severity_of(key)
            meant[name] += (
                Meaning(severity, _masked(text)) for text in _find_new_actions(key, one, other)
            )
    changes = []
    for change, name in look.changes:
        before, after = contents[name]
        about = _about_file(name, accepted.get(name, ""), look.digests.get(name, ""), before, after)
        meanings = sorted(dict.fromkeys((*about, *meant[name])), key=lambda each: each.severity)
        copy = copies.path_of(accepted[name].partition(" ")[0]) if before is not None else ""
        changes.append(FileChange(change, name, before, after, tuple(meanings), copy))
    return sorted(changes, key=lambda each: each.severity)


_CODE_ALONE: Final = 5
_SPEC_ALONE: Final = 6
_LOST_GUARDS: Final = frozenset(
    (
        "safety",
        "rule",
        "guardrail",
        "gate",
        "base",
        "effect",
        "repeat",
        "isolation",
        "plain",
        "network",
    )
)
_REACHES: Final = frozenset(
    ("host", "pack hosts", "variable", "program", "environment", "directory", "module", "document")
)


def _severity_of(key: tuple[str, str]) -> int:
    """Return the severity of a changed declaration, as in `Meaning`.

    A skill may name hosts in any text, and a project may have many `x-` settings. These must not
    hide other changes."""
    kind, subject = key
    if kind in _LOST_GUARDS or (kind == "setting" and "@" in subject):
        return 0
    if kind in _REACHES:
        return 2 if subject.startswith("skill ") else 1
    if kind == "setting":
        return 4 if subject.startswith("x-") else 3
    return 2


_MISSING: Final = object()
"""The value of a declaration that no file contains."""


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the values of one declaration to compare, with the file to name.

    They are those of the same file, and those of a removed file with those of a new one."""
    gone = {name: value for name, value in before.items() if name not in after}
    for name, value in after.items():
        if name in before:
            yield name, before[name], value
        else:
            yield from ((name, one, value) for one in gone.values() or (_MISSING,))
    if not after.keys() - before.keys():
        yield from ((name, value, _MISSING) for name, value in gone.items())


def _masked(text: str) -> str:
    """Return a text without credentials, at most one line long."""
    return _USER.sub("://***@", hide_secrets(text[: 10 * _LONGEST_LINE]))[:_LONGEST_LINE]


def _about_file(
    name: str, accepted: str, now: str, before: bytes | None, after: bytes | None
) -> Iterator[Meaning]:
    """Yield the changed target of a link or place of a program, and why the meaning of a change is
    unknown."""
    link, was_link = now.partition("link to ")[2], accepted.partition("link to ")[2]
    if link != was_link:
        yield Meaning(1, f"leads to {link}" if link else "is not a link any more")
    if name.startswith("program "):
        yield Meaning(1, f"is found at {now}" if now else "is found nowhere")
    if accepted.startswith("sha256:") and before is None:
        yield Meaning(
            0, "no copy of the accepted file is left: what has changed in it is not known"
        )
    if after is not None and _is_spec(name) and _value_of(name, after) is None:
        yield Meaning(4, "cannot be read: what it means is not known")


# -- what a file declares ---------------------------------------------------------------------------------------------


def _is_spec(name: str) -> bool:
    return name.endswith((".yaml", ".yml", ".json", ".toml"))


def _value_of(name: str, data: bytes) -> Json | None:
    """Return the mapping in a file, None if it cannot be read."""
    if name.endswith(".toml"):
        return _toml_of(data)
    return parse(data, file=name, limits=DOCUMENT).value


def _toml_of(data: bytes) -> Json | None:
    try:
        text = data[: _LONGEST_SETTINGS + 1].decode("utf-8-sig")
        if len(data) > _LONGEST_SETTINGS or find_excess(text):
            return None
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _declared(name: str, data: bytes | None) -> dict[tuple[str, str], Any]:
    value = _value_of(name, data) if data is not None and _is_spec(name) else None
    if value is None:
        return {}
    if name == PROJECT_FILE:
        return dict(_settings(value))
    # A channel, a pack or a root may have the name of a spec folder, and a document may have any key. So a file is read
    # as all that it can be.
    *folders, file = name.split("/")
    readers = [read for folder, key, read in _READERS if folder in folders and key in value]
    readers += [read for own, read in _FILES if own == file]
    readers += [_document] if "paths" in value or "servers" in value else []
    return {key: each for read in readers for key, each in read(name, value)}


Declared = Iterator[tuple[tuple[str, str], Any]]


def _capability(name: str, raw: Json) -> Declared:
    id = str(raw.get("id"))
    properties = object_of(raw.get("properties"))
    yield ("safety", id), raw.get("safety")
    yield ("effect", id), properties.get("side_effects")
    yield ("repeat", id), properties.get("idempotent") is True
    yield ("base", id), raw.get("extends")


def _pack(name: str, raw: Json) -> Declared:
    meta, policy = object_of(raw.get("pack_meta")), object_of(raw.get("policy_layer"))
    pack = f"{meta.get('pack_id')}@{meta.get('pack_version')}"
    for entry in map(object_of, list_of(policy.get("rules"))):
        yield ("rule", f"{pack}: rule {entry.get('rule_id')}"), entry
    for entry in map(object_of, list_of(policy.get("permissions"))):
        yield ("permission", f"{pack}: role {entry.get('role')}"), _texts(entry.get("allow"))
    for kind in ("must_refuse", "must_escalate"):
        for entry in map(object_of, list_of(object_of(policy.get("guardrails")).get(kind))):
            yield ("guardrail", f"{pack}: {kind} {entry.get('id')}"), entry
    for gate, entry in object_of(policy.get("gates")).items():
        yield ("gate", f"{pack}: gate {gate}"), entry
    hosts = object_of(raw.get("tooling_layer")).get("hosts")
    yield ("pack hosts", pack), None if hosts is None else _texts(hosts)
    yield ("setting", f"{pack}: safety_mode"), object_of(meta.get("defaults")).get("safety_mode")
    yield ("setting", f"{pack}: read_only_actions"), policy.get("read_only_actions")
    tools = object_of(object_of(raw.get("tooling_layer")).get("capabilities"))
    for tool, entry in tools.items():
        yield ("setting", f"{pack}: {tool}: approval_mode"), object_of(entry).get("approval_mode")
    memory = object_of(raw.get("memory_layer"))
    for key in ("consent", "max_class", "auto_promote"):
        yield ("setting", f"{pack}: memory_layer.{key}"), memory.get(key)


def _service(name: str, raw: Json) -> Declared:
    service = f"service {raw.get('id')}"
    yield ("host", service), _hosts_in(_with_defaults(raw))
    yield ("plain", service), _hosts_in(_with_defaults(raw), _PLAIN_HOST)
    yield ("variable", service), _variables_in(raw)
    yield ("program", service), _program_of(raw)
    yield ("directory", service), raw.get("cwd")
    for variable, text in object_of(raw.get("env")).items():
        yield ("environment", f"{service}: variable {variable}"), text
    yield ("module", service), raw.get("module")
    yield ("isolation", service), raw.get("isolation")
    yield ("document", service), raw.get("spec_ref")
    yield ("network", service), raw.get("network") == "private"


def _binding(name: str, raw: Json) -> Declared:
    binding = f"binding {raw.get('id')}"
    called = f"{raw.get('operation')} of service {raw.get('service')}"
    method = object_of(raw.get("metadata")).get("method")
    yield ("call", binding), f"{method} {called}" if method else called
    yield ("host", binding), _hosts_in(raw)
    yield ("variable", binding), _variables_in(raw)


def _skill(name: str, raw: Json) -> Declared:
    skill = f"skill {raw.get('id')}"
    yield ("calls", skill), set(_members(raw, "uses"))
    yield ("host", skill), _hosts_in(raw)


def _policy(name: str, raw: Json) -> Declared:
    for id, binding in object_of(raw.get("defaults")).items():
        yield ("choice", str(id)), binding


def _active(name: str, raw: Json) -> Declared:
    for id, binding in raw.items():
        yield ("choice", str(id)), binding


def _overrides(name: str, raw: Json) -> Declared:
    for entry in map(object_of, list_of(raw.get("overrides"))):
        chosen = str(entry.get("binding") or f"service {entry.get('service')}")
        for id in list_of(entry.get("capabilities")):
            yield ("override", str(id)), f"{chosen} ({entry.get('mode') or 'replace'})"


def _services(name: str, raw: Json) -> Declared:
    for id, entry in object_of(raw.get("services")).items():
        yield from _service(name, {**object_of(entry), "id": id})


def _document(name: str, raw: Json) -> Declared:
    paths = object_of(raw.get("paths"))
    for path, item in paths.items():
        if "$ref" in object_of(item):
            yield ("operation", f"{name}: path {path}"), str(item["$ref"])
        for method, operation in object_of(item).items():
            if method in _METHODS and isinstance(operation, dict):
                called = f"{method.upper()} {path}"
                yield (
                    ("operation", f"{name}: operation {operation.get('operationId', called)}"),
                    called,
                )
    yield ("host", name), _hosts_in({key: raw.get(key) for key in ("servers", "paths")})


def _settings(value: Json, above: str = "") -> Declared:
    for key, member in value.items():
        if isinstance(member, dict):
            yield from _settings(member, f"{above}{key}.")
        else:
            yield ("setting", f"{above}{key}"), member


_Read = Callable[[str, Json], Declared]
_READERS: Final[tuple[tuple[str, str, _Read], ...]] = (
    ("skills", "steps", _skill),
    ("capabilities", "version", _capability),
    ("bindings", "capability", _binding),
    ("services", "kind", _service),
    ("packs", "pack_meta", _pack),
    ("policies", "defaults", _policy),
)
"""Per kind the folder that its files are in, at any depth, and a key that no file of the kind is loaded without."""
_FILES: Final[tuple[tuple[str, _Read], ...]] = (
    (SERVICES_FILE, _services),
    (ACTIVE_FILE, _active),
    (OVERRIDES_FILE, _overrides),
)


def _texts(value: Any) -> set[str]:
    return set(map(str, list_of(value)))


def _hosts_in(value: Any, pattern: re.Pattern[str] = _HOST) -> set[str]:
    return {host.lower() for text in _all_texts(value) for host in pattern.findall(text)}


def _with_defaults(raw: Json) -> Json:
    """Return a service whose addresses have the defaults of its variables."""
    defaults = {
        name: object_of(each).get("default")
        for name, each in object_of(raw.get("variables")).items()
    }

    def filled(address: Any) -> Any:
        if not isinstance(address, str):
            return address
        return IN_ADDRESS.sub(lambda found: str(defaults.get(found[1]) or found[0]), address)

    return {**raw, **{key: filled(raw[key]) for key in ADDRESSES if key in raw}}


def _variables_in(raw: Json) -> set[str]:
    named = {name for text in _all_texts(raw) for name in PLACEHOLDER.findall(text)}
    named |= {str(name).removeprefix("env:") for name in _members(raw, "auth_ref")}
    return named | set(map(str, _members(object_of(raw.get("variables")), "env")))


def _program_of(raw: Json) -> str | None:
    command = raw.get("command")
    if not isinstance(command, str):
        return None
    return " ".join((command, *map(str, list_of(raw.get("args")))))


def _all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _all_texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _all_texts(member)


def _members(value: Any, name: str) -> Iterator[str]:
    """Yield the texts under a key, at any depth."""
    if isinstance(value, dict):
        for key, member in value.items():
            if key == name and isinstance(member, str):
                yield member
            else:
                yield from _members(member, name)
    elif isinstance(value, list):
        for member in value:
            yield from _members(member, name)


# -- what has changed -------------------------------------------------------------------------------------------------


class _Change(NamedTuple):
    """A declaration that changed. `before` and `after` are None where it is absent, or declares null; `was_declared`
    distinguishes the two for `before`."""

    kind: str
    subject: str
    before: Any
    after: Any
    was_declared: bool


def _find_new_actions(key: tuple[str, str], before: Any, after: Any) -> Iterator[str]:
    """Yield the new actions that a changed declaration allows."""
    kind, subject = key
    if kind == "safety":
        return _weaker_safety(subject, before, after)
    old = None if before is _MISSING else before
    new = None if after is _MISSING else after
    return _COMPARISONS[kind](_Change(kind, subject, old, new, before is not _MISSING))


def _added_members(change: _Change) -> Iterator[str]:
    for each in sorted((change.after or set()) - (change.before or set())):
        yield f"{change.subject}: {_NEW[change.kind]} {each}"


def _removed_or_changed(change: _Change) -> Iterator[str]:
    if change.before is not None and change.before != change.after:
        how = "is gone" if change.after is None else "has changed"
        yield f"{change.subject}: {_GONE[change.kind]} {how}"


def _replaced(change: _Change) -> Iterator[str]:
    if change.after is not None and change.before != change.after:
        yield _changed(_REPLACED[change.kind].format(change.subject), change.before, change.after)


def _weakened_rule(change: _Change) -> Iterator[str]:
    return _weaker_rule(change.subject, object_of(change.before), object_of(change.after))


def _more_pack_hosts(change: _Change) -> Iterator[str]:
    before, after = change.before, change.after
    if before is not None and after is None:
        yield f"{change.subject}: calls may reach any host"
    elif before is not None and after - before:
        yield f"{change.subject}: calls may reach {', '.join(sorted(after - before))}"


def _denied_effect(change: _Change) -> Iterator[str]:
    if change.was_declared and change.before is not False and change.after is False:
        yield f"capability {change.subject} now declares no side effects"


def _allowed_repeat(change: _Change) -> Iterator[str]:
    if change.was_declared and change.after and not change.before:
        yield f"capability {change.subject} may now be called again after a failure"


def _weaker_isolation(change: _Change) -> Iterator[str]:
    before, after = (str(value or "process") for value in (change.before, change.after))
    is_named = change.was_declared or change.after
    if is_named and _rank(_ISOLATIONS, after) < _rank(_ISOLATIONS, before):
        yield f"{change.subject}: isolation {after}, was {before}"


def _changed_environment(change: _Change) -> Iterator[str]:
    name = change.subject.rpartition(" ")[2]
    if change.after is not None and change.before != change.after:
        before = _shown(name, change.before) if change.was_declared else None
        yield _changed(change.subject, before, _shown(name, change.after))


def _opened_network(change: _Change) -> Iterator[str]:
    if change.after and not change.before:
        yield f"{change.subject}: may reach private addresses"


def _changed_setting(change: _Change) -> Iterator[str]:
    if change.before != change.after:
        before, after = _shown(change.subject, change.before), _shown(change.subject, change.after)
        yield _changed(change.subject, before, after)


_NEW: Final = {
    "host": "new host",
    "plain": "calls without encryption",
    "variable": "new variable or secret",
    "permission": "may now call",
    "calls": "now calls",
}
_GONE: Final = {
    "guardrail": "the guardrail",
    "gate": "the gate",
    "base": "its base, with the safety that it gave,",
}
_REPLACED: Final = {
    "program": "{}: new program",
    "directory": "{}: starts in",
    "module": "{}: new module",
    "document": "{}: new document",
    "call": "{} calls",
    "operation": "{} is",
    "choice": "capability {} is called through",
    "override": "capability {} is always called through",
}


_COMPARISONS: Final[dict[str, Callable[[_Change], Iterator[str]]]] = {
    **dict.fromkeys(_NEW, _added_members),
    **dict.fromkeys(_GONE, _removed_or_changed),
    **dict.fromkeys(_REPLACED, _replaced),
    "rule": _weakened_rule,
    "pack hosts": _more_pack_hosts,
    "effect": _denied_effect,
    "repeat": _allowed_repeat,
    "isolation": _weaker_isolation,
    "environment": _changed_environment,
    "network": _opened_network,
    "setting": _changed_setting,
}
"""The function that finds the new actions, by kind of declaration, except `safety`."""


def _changed(what: str, before: Any, after: Any) -> str:
    return f"{what} {after}" if before is None else f"{what} {after}, was {before}"


def _shown(key: str, value: Any) -> str | None:
    """Return a setting as text, hidden if it could hold a secret."""
    if value is None:
        return "not set"
    return _masked(f"{key.rpartition('.')[2]} = {value}").partition(" = ")[2]


def _weaker_safety(id: str, before: Any, after: Any) -> Iterator[str]:
    """Yield the demands that the safety block of a capability drops. A shipped capability counts as
    the earlier one of a new override."""
    capability = f"capability {id}"
    old = object_of(_shipped_safety(id) if before is _MISSING else before)
    if after is _MISSING:
        after = _shipped_safety(id)
        if old and not after:
            yield f"{capability} is gone, with its safety block"
            return
    new = object_of(after)
    if not old:
        return
    if not new:
        yield f"{capability} has no safety block any more: it had {', '.join(sorted(map(str, old)))}"
        return
    yield from _dropped_demands(capability, old, new)
    for phase in GATES:
        gates = {str(gate.get("capability")): gate for gate in _gates_in(new, phase)}
        for gate in _gates_in(old, phase):
            yield from _weaker_gate(capability, gate, gates.get(str(gate.get("capability"))))
    yield from _wider_scope(capability, old, new)


def _dropped_demands(capability: str, old: Json, new: Json) -> Iterator[str]:
    levels = [TRUST_RANKS.get(str(each.get("trust_level") or "sandbox"), 0) for each in (old, new)]
    if levels[1] < levels[0]:
        yield f"{capability}: trust_level {new.get('trust_level') or 'sandbox'}, was {old['trust_level']}"
    if old.get("requires_confirmation") is True and new.get("requires_confirmation") is not True:
        yield f"{capability} no longer requires confirmation"
    if old.get("reversible") is False and new.get("reversible") is not False:
        yield f"{capability} no longer says that its effect cannot be undone"


def _wider_scope(capability: str, old: Json, new: Json) -> Iterator[str]:
    targets, were = _texts(new.get("allowed_targets")), _texts(old.get("allowed_targets"))
    if were and not targets:
        yield f"{capability} may reach any target"
    elif were and targets - were:
        yield f"{capability} may reach {', '.join(sorted(targets - were))}"
    for lost in sorted(_texts(old.get("scope_constraints")) - _texts(new.get("scope_constraints"))):
        yield f"{capability} loses the constraint {lost}"


def _gates_in(safety: Json, phase: str) -> Iterator[Json]:
    """Yield the gates of a phase; one may be written as a name."""
    for gate in list_of(safety.get(phase)):
        yield {"capability": gate} if isinstance(gate, str) else object_of(gate)


def _weaker_gate(capability: str, old: Json, new: Json | None) -> Iterator[str]:
    name = old.get("capability")
    if new is None:
        yield f"{capability} loses the gate {name}"
        return
    ranks = [_rank(STRICTNESS, str(gate.get("on_fail") or "block")) for gate in (old, new)]
    if ranks[1] < ranks[0]:
        yield f"{capability}: gate {name} says {new.get('on_fail')}, was {old.get('on_fail') or 'block'}"
    elif old != new:
        yield f"{capability}: gate {name} has changed"


def _weaker_rule(rule: str, old: Json, new: Json) -> Iterator[str]:
    if not old:
        return
    was = str(object_of(old.get("then")).get("verdict"))
    if not new:
        yield f"{rule} is gone, was {was}"
        return
    verdict = str(object_of(new.get("then")).get("verdict"))
    strictness = tuple(reversed(VERDICTS))
    if _rank(strictness, verdict) < _rank(strictness, was):
        yield f"{rule} says {verdict}, was {was}"
    if old.get("mode") == "enforce" and new.get("mode") != "enforce":
        yield f"{rule} is no longer enforced"
    if verdict == was and old.get("then") != new.get("then"):
        yield f"{rule} ({verdict}) has another gate, other limits or obligations"
    if any(old.get(key) != new.get(key) for key in ("if", "applies_to")):
        yield f"{rule} ({verdict}) has other conditions"


def _rank(words: tuple[str, ...], word: str) -> int:
    return words.index(word) if word in words else -1


def _shipped_safety(id: str) -> Any:
    """Return the safety block of a shipped capability that a project's own replaces."""
    path = os.path.join(builtin_root(), "capabilities", f"{os.path.basename(id)}.yaml")
    try:
        data = read_regular(path, limit=DOCUMENT.bytes)
    except FileRefused:
        return None
    return object_of(parse(data, file=path).value).get("safety")
