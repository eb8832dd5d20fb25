"""The completions of values (docs/reference/command-line.md#completion).

Values come from paths and caches; no spec is parsed. Each kind of value imports only the modules
that it needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from cogcli.app.explain import pages
from cogcli.app.settings import Settings
from cogcli.app.settings.config import KEYS
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.named_tuple import NamedTuple
from cogcli.cli.app import COMMANDS, TOPICS, first_words
from cogcli.declarations.field_spec import FieldSpec
from cogcli.declarations.record import Record
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import Json
from cogcli.specs.host_layout import layout_of
from cogcli.specs.layout import Layout, LayoutFile

NEWEST: Final = 50
"""The most episodes that completion offers."""


class TypedArguments(Record):
    """The flags and words typed before the value, as far as completion uses them."""

    directory: str | None = None
    registry: list[str] | None = None
    runs_dir: str | None = None
    capability: str | None = None
    skill: str | None = None
    target: str | None = None
    episode: str | None = None
    p: list[str] | None = None


class CompletionQuery(NamedTuple):
    """A request for completions: the command, the words before the value, and the beginning of the
    value.
    """

    command: str
    typed: TypedArguments
    incomplete: str

    @property
    def settings(self) -> Settings:
        """The settings under the typed global flags. Changes to the directory of `-C`."""
        typed = self.typed
        if typed.directory:
            os.chdir(typed.directory)
        flags = {"registry": typed.registry, "runs_dir": typed.runs_dir}
        return Settings({name: value for name, value in flags.items() if value}, os.environ)


def find_values(kinds: str, query: CompletionQuery) -> list[tuple[str, str]]:
    """Return the possible words for a value of these kinds, with their descriptions."""
    found = [pair for name in kinds.split() for pair in _COMPLETERS[name](query)]
    return [
        (word, _SHELL_CHARACTERS.sub(" ", meaning))
        for word, meaning in found
        if _PLAIN_WORD.fullmatch(word)
    ]


_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@.=/#-]*")
_SHELL_CHARACTERS: Final = re.compile(r"""[^\w ',.:;()<>/=+-]""")
"""Characters that a shell would interpret: a shell inserts a word verbatim, and zsh evaluates the
answer."""


def _spec_ids(kind: str, query: CompletionQuery) -> list[tuple[str, str]]:
    """Return the ids of specs of a kind."""
    settings = query.settings
    files = [file for layout in _registry_layouts(settings) for file in layout.all(kind)]
    found = _ids_in_files(settings, files) if kind == "binding" else {file.id for file in files}
    return [(id, kind) for id in sorted(found)]


def _complete_bindings(query: CompletionQuery) -> list[tuple[str, str]]:
    """Return the ids of bindings, only those of the typed capability if there is one."""
    if not query.typed.capability:
        return _spec_ids("binding", query)
    return [
        (id, "binding") for id in _binding_ids_of_capability(query.settings, query.typed.capability)
    ]


def _complete_specs(query: CompletionQuery) -> list[tuple[str, str]]:
    """Return the ids of specs of the kind that the command's group names."""
    kind = query.command.split()[0]
    return _spec_ids("capability" if kind == "capabilities" else kind.removesuffix("s"), query)


def _complete_binding_choices(query: CompletionQuery) -> list[tuple[str, str]]:
    """Return `CAP=` words, or after `=` the `CAP=BINDING` words of the capability.

    The capabilities are those of the typed skill, or all if it is not in the cache.
    """
    capability, sign, _ = query.incomplete.partition("=")
    if sign:
        return [
            (f"{capability}={id}", "binding")
            for id in _binding_ids_of_capability(query.settings, capability)
        ]
    ids = _capabilities_of_typed_skill(query)
    found = [(id, "capability") for id in ids] if ids else _spec_ids("capability", query)
    return [(f"{id}=", meaning) for id, meaning in found]


def _capabilities_of_typed_skill(query: CompletionQuery) -> list[str]:
    """Return the capabilities that the typed skill and its nested skills use, as far as they are in
    the cache.
    """
    found: set[str] = set()
    waiting = [query.typed.skill or query.typed.target or ""]
    seen: set[str] = set()
    while waiting:
        skill = waiting.pop()
        if skill in seen:
            continue
        seen.add(skill)
        used = _targets_in(_compiled_skill(query.settings, skill))
        found |= {id for id in used if not id.startswith(NESTED)}
        waiting += [id.removeprefix(NESTED) for id in used if id.startswith(NESTED)]
    return sorted(found)


def _targets_in(value: object) -> set[str]:
    """Return the values of all members `uses` in a compiled skill."""
    if isinstance(value, list):
        return set().union(*map(_targets_in, value))
    if not isinstance(value, dict):
        return set()
    own = {value["uses"]} if isinstance(value.get("uses"), str) else set()
    return own.union(*map(_targets_in, value.values()))


def _binding_ids_of_capability(settings: Settings, capability: str) -> list[str]:
    """Return the ids of the bindings in a capability's folder."""
    files = [file for layout in _registry_layouts(settings) for file in layout.bindings(capability)]
    return sorted(_ids_in_files(settings, files))


def _ids_in_files(settings: Settings, files: list[LayoutFile]) -> set[str]:
    """Return the ids in binding files. Their file names may differ from the ids."""
    return {str(raw["id"]) for raw in _read_cached_specs(settings, "binding", files)}


def _read_cached_specs(settings: Settings, kind: str, files: list[LayoutFile]) -> list[Json]:
    """Return the cached content of files, without files outside the cache. No file is parsed."""
    from cogcli.base.canonical import digest
    from cogcli.specs.cache import CompiledCache, cached_kind

    ceilings = settings.ceilings
    name = cached_kind(kind, ceilings)
    cache, found = CompiledCache(settings.cache_file), []
    for file in files:
        with suppress(UnreadableFile):
            compiled = cache.get(name, digest(read_regular(file.path, limit=ceilings.yaml_bytes)))
            if compiled:
                found.append(compiled.raw)
    cache.close()
    return found


def _complete_inputs(query: CompletionQuery) -> list[tuple[str, str]]:
    """Return `NAME=` words for the inputs of the typed skill, or after `=` the listed values of one
    input.
    """
    fields = _fields_of_typed_skill(query)
    name, sign, _ = query.incomplete.partition("=")
    if sign:
        field = fields.get(name)
        if field is None:
            return []
        values = ("true", "false") if field.type == "boolean" else field.enum or ()
        return [(f"{name}={value}", "value") for value in values]
    given = {pair.partition("=")[0] for pair in query.typed.p or ()}
    return [
        (f"{name}=", _describe_field(field)) for name, field in fields.items() if name not in given
    ]


def _fields_of_typed_skill(query: CompletionQuery) -> dict[str, FieldSpec]:
    """Return the inputs of the typed skill, by name; empty for an unknown skill."""
    skill = _compiled_skill(query.settings, query.typed.skill or query.typed.target or "")
    return {name: FieldSpec.of(field) for name, field in skill.get("inputs", {}).items()}


def _compiled_skill(settings: Settings, skill_id: str) -> Json:
    """Return the cached content of a skill's file; empty for a skill that is not in the cache."""
    files = [
        file
        for layout in _registry_layouts(settings)
        for file in layout.all("skill")
        if file.id == skill_id
    ]
    compiled = _read_cached_specs(settings, "skill", files)
    return compiled[-1] if compiled else {}


def _describe_field(field: FieldSpec) -> str:
    """Return the description of an input."""
    needed = ", required" if field.required else ""
    return f"{field.type}{needed} {field.description}".rstrip()


def _complete_effects(query: CompletionQuery) -> list[tuple[str, str]]:
    """Return `STEP=` words for the steps of an episode, or after `=` the choices for an effect."""
    step, sign, _ = query.incomplete.partition("=")
    if sign:
        return [(f"{step}={word}", "effect") for word in ("reuse", "repeat", "fail")]
    return [(f"{word}=", meaning) for word, meaning in _complete_steps(query)]


def _registry_layouts(settings: Settings) -> list[Layout]:
    return [layout_of(layer) for layer in settings.layers]


def _complete_episodes(query: CompletionQuery) -> list[tuple[str, str]]:
    """Return the newest episodes, and the names for the last ones."""
    from cogcli.cli.episode_completion import newest_episodes

    return newest_episodes(query.settings, NEWEST)


def _complete_steps(query: CompletionQuery) -> list[tuple[str, str]]:
    """Return the steps of the typed episode, or of the newest."""
    from cogcli.cli.episode_completion import steps_of_episode

    return steps_of_episode(query.settings, query.typed.target or query.typed.episode)


def _complete_codes(query: CompletionQuery) -> list[tuple[str, str]]:
    """Return the codes of errors and problems."""
    return [(code, meaning) for code, (meaning, _, _) in pages().items()]


def _complete_topics(query: CompletionQuery) -> list[tuple[str, str]]:
    """Return the help topics and the first words of commands."""
    topics = [(name, "topic") for name in TOPICS]
    return [*topics, *((name, COMMANDS.get(name, ("", "group"))[1]) for name in first_words())]


def _complete_settings(query: CompletionQuery) -> list[tuple[str, str]]:
    """Return the names of settings."""
    return [(name, "setting") for name in (*KEYS, "runs_dir", "project", "trust")]


_COMPLETERS: Final[dict[str, Callable[[CompletionQuery], list[tuple[str, str]]]]] = {
    "skills": partial(_spec_ids, "skill"),
    "capabilities": partial(_spec_ids, "capability"),
    "bindings": _complete_bindings,
    "services": partial(_spec_ids, "service"),
    "packs": partial(_spec_ids, "pack"),
    "specs": _complete_specs,
    "choices": _complete_binding_choices,
    "episodes": _complete_episodes,
    "steps": _complete_steps,
    "inputs": _complete_inputs,
    "effects": _complete_effects,
    "codes": _complete_codes,
    "topics": _complete_topics,
    "settings": _complete_settings,
}
"""The function that finds the words, by the names in `cli/options.py` and the commands."""
