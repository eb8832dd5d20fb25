"""Finds the skill that a message requests, by the word search of `skills search`. Pure.

The rules are in docs/reference/agent-run.md#without-pack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.base.jsonvalue import only_texts
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import MASK, names_secret
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.sample_inputs import written_value
from cogcli.specs.word_search import SearchField, Weight, stems, weigh

NEAREST: Final = 3
"""The number of skills in the answer if none is clearly requested."""
_CLEAR: Final = 1.1
"""The weight of a clear hit is at least this many times the next weight."""
_NOTHING: Final = Weight(0.0, 0.0)
_SAID: Final = 0.5
"""The minimum share of a message's words that a clear hit matches."""
_EXAMPLES: Final = {
    "string": "=…",
    "integer": "=1",
    "number": "=1.5",
    "boolean": "=true",
    "array": ":='[]'",
    "object": ":='{}'",
    "any": "=…",
    "file": "=@FILE",
}
_FILES: Final = ("text", "content", "document", "html", "markdown", "source")


class SkillMatch(NamedTuple):
    """A skill that a message may request, with its missing inputs and a command that runs it."""

    skill_id: str
    description: str
    missing: tuple[str, ...]
    run: str

    @property
    def text(self) -> str:
        """Two lines about the skill: its description and missing inputs, and the command that runs it."""
        needs = f" It needs {', '.join(self.missing)}." if self.missing else ""
        return f"{self.skill_id}: {' '.join(self.description.split())}{needs}\n  {self.run}"


class SkillAnswer(NamedTuple):
    """The result of a search: one skill that is clearly requested, or the skills that match best."""

    hit: SkillMatch | None
    nearest: tuple[SkillMatch, ...] = ()

    @property
    def text(self) -> str:
        """The answer for the user."""
        if self.hit is not None:
            return self.hit.text
        if not self.nearest:
            return "There is no skill for this."
        return "\n".join(
            ["No skill is clearly meant. The nearest:", *(each.text for each in self.nearest)]
        )


class SearchWords(Record):
    """The search words in the metadata of a skill or capability. The metadata of a skill is not checked, so the lists
    may contain values that are not strings.
    """

    tags: list[object]
    use_cases: list[object]

    @property
    def tag_texts(self) -> list[str]:
        """Return the tags that are strings."""
        return only_texts(self.tags)


def search_metadata(spec: Skill | Capability) -> SearchWords:
    """Return the metadata of a spec that its search uses."""
    return read_record(SearchWords, spec.metadata)


def skill_texts(
    id: str,
    name: str,
    description: str,
    words: SearchWords,
    fields: Iterable[str],
    calls: Iterable[str],
) -> list[SearchField]:
    """Return the strings in which a skill is searched, with decreasing weight.

    These are id and use cases, name, tags and description, names of fields, ids of called specs.
    """
    return [
        SearchField(id, 4),
        SearchField(" ".join(only_texts(words.use_cases)), 4),
        SearchField(name, 3),
        SearchField(" ".join(words.tag_texts), 2),
        SearchField(description, 2),
        SearchField(" ".join(fields), 0.5),
        SearchField(" ".join(calls), 0.3),
    ]


def rank(message: str, tools: Mapping[str, Capability]) -> dict[str, Weight]:
    """Return the weight of each skill tool for a message, the highest first, then by id.

    The weight of the search is multiplied by up to 2, by the share of the id's words that the message contains.
    """
    wanted = stems(message)
    found = weigh(wanted, {id: _tool_texts(tools[id]) for id in sorted(tools)})
    weights = {
        id: Weight(weight.value * (1 + _matched_id_share(id, wanted)), weight.share)
        for id, weight in found.items()
    }
    return dict(sorted(weights.items(), key=lambda each: -each[1].value))


def answer_for(
    message: str, inputs: Mapping[str, object], tools: Mapping[str, Capability]
) -> SkillAnswer:
    """Return the skills among these tools that a message requests. `inputs` are the inputs in the
    message.
    """
    weights = rank(message, tools)
    found = tuple(_build_found_skill(tools[id], inputs) for id in list(weights)[:NEAREST])
    best, second = [*weights.values(), _NOTHING, _NOTHING][:2]
    clear = best.share >= _SAID and best.value >= _CLEAR * second.value
    return SkillAnswer(found[0]) if clear else SkillAnswer(None, found)


def _tool_texts(tool: Capability) -> list[SearchField]:
    calls = (each.id for each in tool.reaches)
    id = tool.id.removeprefix(NESTED)
    return skill_texts(
        id,
        tool.name,
        tool.description,
        search_metadata(tool),
        (*tool.inputs, *tool.outputs),
        calls,
    )


def _matched_id_share(id: str, message_stems: list[str]) -> float:
    """Return the share of the words in an id that are also in the message."""
    words = stems(id.removeprefix(NESTED))
    return sum(word in message_stems for word in words) / max(1, len(words))


def _build_found_skill(tool: Capability, inputs: Mapping[str, object]) -> SkillMatch:
    required = [name for name, field in tool.inputs.items() if field.needs_value]
    missing = tuple(name for name in required if inputs.get(name) is None)
    id = tool.id.removeprefix(NESTED)
    return SkillMatch(id, tool.description, missing, run_line(id, tool.inputs, inputs))


def run_line(skill_id: str, inputs: Fields, values: Mapping[str, object] = {}) -> str:
    """Return a command that runs a skill with these input values.

    Other required inputs get a sample value.
    """
    words = [f"cogcli run {skill_id}"]
    for name, field in inputs.items():
        value = values.get(name)
        if value is not None and value != MASK and not names_secret(name):
            words.append(f"-p {name}{written_value(value, field.type)}")
        elif field.needs_value:
            example = _EXAMPLES.get(field.type, "=…")
            if field.enum:
                example = f"={field.enum[0]}"
            elif field.type == "string" and name in _FILES:
                example = "=@FILE"
            words.append(f"-p {name}{example}")
    return " ".join(words)
