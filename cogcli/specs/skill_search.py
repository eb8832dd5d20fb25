"""Which skill a message asks for: the words of `skills search`, those that few skills have counting most
(docs/reference/agent-run.md#without-pack). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any, Final, NamedTuple

import orjson

from cogcli.core.redact import MASK, names_secret
from cogcli.specs.capability import Capability
from cogcli.specs.fields import Fields
from cogcli.specs.skill import NESTED

NEAREST: Final = 3
"""How many are named where none is clear."""
_WORD: Final = re.compile(r"[^\W_]+")
_SHORTEST: Final = 3
_COMMON: Final = frozenset(
    "about against and any are can could did does for from get give has have help how into let make need not our out "
    "please run show some tell than that the them then there these they this those turn use want was were what when "
    "where which who why will with would you your".split()
)
"""Words of requests that say nothing of what is asked for."""
_CLEAR: Final = 2
"""How many times the next one's weight a clear hit has."""
_EXAMPLES: Final = {
    "string": "=…",
    "integer": "=1",
    "number": "=1.5",
    "boolean": "=true",
    "array": ":='[]'",
    "object": ":='{}'",
    "any": "=…",
}
_FILES: Final = ("text", "content", "document", "html", "markdown", "source")


class FoundSkill(NamedTuple):
    """A skill that may be meant: what it lacks to run, and a line to run it."""

    skill_id: str
    description: str
    missing: tuple[str, ...]
    run: str

    @property
    def text(self) -> str:
        """The skill in two lines: what it does and needs, and how to run it."""
        needs = f" It needs {', '.join(self.missing)}." if self.missing else ""
        return f"{self.skill_id}: {' '.join(self.description.split())}{needs}\n  {self.run}"


class SkillAnswer(NamedTuple):
    """What a message asks for: one skill that is clearly meant, else the nearest ones."""

    hit: FoundSkill | None
    nearest: tuple[FoundSkill, ...] = ()

    @property
    def text(self) -> str:
        """The answer to whoever asked."""
        if self.hit is not None:
            return self.hit.text
        if not self.nearest:
            return "There is no skill for this."
        return "\n".join(["No skill is clearly meant. The nearest:", *(each.text for each in self.nearest)])


def words_found(words: Iterable[str], text: str) -> list[str]:
    """Those of some words in lower case that a text has somewhere."""
    folded = text.lower()
    return [word for word in words if word in folded]


def rank(message: str, tools: Mapping[str, Capability]) -> dict[str, int]:
    """The weight of each of some skill tools for a message, the heaviest first, then by id. A word weighs more the
    fewer of them have it, twice where the name or the description has it, four times where the id has it."""
    texts = {id: _texts(tool) for id, tool in tools.items()}
    weights = dict.fromkeys(sorted(tools), 0)
    for word in _stems(message):
        found = {id: sum(bool(words_found([word], text)) for text in each) for id, each in texts.items()}
        having = [id for id, places in found.items() if places]
        for id in having:
            near = 2 ** (found[id] - 1)
            weights[id] += near * 1000 * (len(tools) + 1 - len(having)) // len(having)
    return dict(sorted(weights.items(), key=lambda each: -each[1]))


def answer_for(message: str, given: Mapping[str, Any], tools: Mapping[str, Capability]) -> SkillAnswer:
    """What a message asks for among these tools; `given` are the inputs that it came with."""
    weights = rank(message, tools)
    found = tuple(_found(tools[id], given) for id in list(weights)[:NEAREST])
    best, second = [*weights.values(), 0, 0][:2]
    return SkillAnswer(found[0]) if best > 0 and best >= _CLEAR * second else SkillAnswer(None, found)


def _texts(tool: Capability) -> tuple[str, str, str]:
    """Its id; that with name and description; all these with the names of its fields and of what it reaches. A space is
    before each word."""
    id, about = tool.id.removeprefix(NESTED), (tool.name, tool.description)
    parts = (*tool.inputs, *tool.outputs, *(each.id for each in tool.reaches))
    return _spaced(id), _spaced(id, *about), _spaced(id, *about, *parts)


def _spaced(*texts: str) -> str:
    return "".join(f" {word}" for text in texts for word in _WORD.findall(text))


def _stems(message: str) -> list[str]:
    """How the words of a message begin, each once, without the ends by which forms of a word differ; a space before."""
    words = [
        word for word in _WORD.findall(message.lower()) if len(word) >= _SHORTEST and word not in _COMMON
    ]
    return list(dict.fromkeys(f" {word[: max(4, len(word) - 2)]}" for word in words))


def _found(tool: Capability, given: Mapping[str, Any]) -> FoundSkill:
    required = [name for name, field in tool.inputs.items() if field.required and field.default is None]
    missing = tuple(name for name in required if given.get(name) is None)
    id = tool.id.removeprefix(NESTED)
    return FoundSkill(id, tool.description, missing, run_line(id, tool.inputs, given))


def run_line(skill_id: str, inputs: Fields, given: Mapping[str, Any] = {}) -> str:
    """A line to paste: every input that is given, and every other required one with a value of its type to replace."""
    words = [f"cogcli run {skill_id}"]
    for name, field in inputs.items():
        value = given.get(name)
        if value is not None and value != MASK and not names_secret(name):
            words.append(f"-p {name}{_written(value)}")
        elif field.required and field.default is None:
            example = _EXAMPLES.get(field.type, "=…")
            if field.enum:
                example = f"={field.enum[0]}"
            elif field.type == "string" and name in _FILES:
                example = "=@FILE"
            words.append(f"-p {name}{example}")
    return " ".join(words)


def _written(value: Any) -> str:
    """A given value as `-p` takes it."""
    if isinstance(value, str) and not value.startswith("@"):
        return f"={quote(value)}"
    return f":={quote(orjson.dumps(value).decode())}"
