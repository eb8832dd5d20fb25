"""Options that a text lists, and the skills or agents that fit a text best by shared words."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import NamedTuple

from cogcli.official.analysis import clauses
from cogcli.official.options import numbers_in
from cogcli.official.passages import Passage, blocks, stems, strings_in
from cogcli.sdk import Refused, skills

_MAX_LISTED = 100
_MAX_QUERY = 20_000
_LEAST = 0.15
_ID_WORTH = 3
SKILL_WORTH = 2
_LISTED = re.compile(
    r"\b(?:options|alternatives|choices|candidates)(?: are| include)?(?::| )\s{0,5}(?P<list>[^.;?\n]{3,500})",
    re.IGNORECASE,
)
_EITHER = re.compile(
    r"\b(?:either|between|whether(?: to)?|choose(?: between| from)?)\s+(?P<list>[^.;?\n]{3,300})",
    re.IGNORECASE,
)
_OR = re.compile(r",\s*(?:or|and)\s+|\s+(?:or|and|versus|vs\.?)\s+|,\s+", re.IGNORECASE)
_NUMBERED = re.compile(
    r"^(?:option|plan|variant|alternative) [a-z0-9]{1,3}\s?[:.)-]\s*", re.IGNORECASE
)
_STRATEGIES = ("best", "keyword", "lexical")


class RouteOption(NamedTuple):
    """A skill or agent to choose from: its id, its name and tags, and its description."""

    id: str
    name_text: str
    description_text: str


class ScoredRoute(NamedTuple):
    """A choice and its score from 0 to 1: the share of the text's words that occur in the choice, with rare words
    weighing more.
    """

    id: str
    score: float


def find_options(
    goal: str,
    context: str | None = None,
    constraints: dict[str, object] | None = None,
    max_options: float = 10,
) -> dict[str, object]:
    """Return the options that the context lists, else those of the goal.

    Recognized are list items, `options: a, b`, `either a or b` and `Option 1: a`. Each option has
    `id` (its words before a colon), `text` and place, `source`, and the numbers in its text as
    `attributes`. Constraints are not applied here. Raise Refused `needs-model` if fewer than two
    are listed.
    """
    options_by_source = [
        (source, _listed_options(text))
        for source, text in (("context", context or ""), ("goal", goal))
    ]
    source, listed = next(
        ((source, listed) for source, listed in options_by_source if listed), ("", [])
    )
    if not listed:
        message = "the text lists no two options"
        raise Refused(
            "needs-model",
            message,
            "list them in the context, or choose a binding of a language model",
        )
    chosen = listed[: min(_MAX_LISTED, max(2, int(max_options)))]
    options = [passage.quote(id=_option_id(passage.text), source=source) for passage in chosen]
    options = [option | {"attributes": numbers_in(str(option["text"]))} for option in options]
    notes = f"{len(chosen)} of {len(listed)} options that the {source} lists"
    notes += "; constraints are checked by eval.option.analyze" if constraints else ""
    return {"options": options, "generation_notes": notes, "method": "rules:listed"}


def _listed_options(text: str) -> list[Passage]:
    items = [
        Passage(text[b.start : b.end], b.start, b.end) for b in blocks(text) if b.kind == "item"
    ]
    numbered = [passage for passage in _lines_with_places(text) if _NUMBERED.match(passage.text)]
    for found in (items, numbered, *(_split_list(text, pattern) for pattern in (_LISTED, _EITHER))):
        unique = list(
            {_option_id(passage.text).casefold(): passage for passage in reversed(found)}.values()
        )[::-1]
        if len(unique) > 1:
            return unique
    return []


def _option_id(text: str) -> str:
    """Return the words of an option before a colon, without the number it is listed under."""
    return _NUMBERED.sub("", text).partition(":")[0].strip()[:80]


def _lines_with_places(text: str) -> list[Passage]:
    """Return the lines of a text, stripped, with their places."""
    lines, start = [], 0
    for line in text.splitlines(keepends=True):
        begin = start + len(line) - len(line.lstrip())
        lines.append(Passage(line.strip(), begin, begin + len(line.strip())))
        start += len(line)
    return lines


def _split_list(text: str, pattern: re.Pattern[str]) -> list[Passage]:
    """Return the parts of the first list that a pattern finds in a text, each with its place."""
    match = pattern.search(text)
    if match is None:
        return []
    parts, start = [], match.start("list")
    ends = [(m.start(), m.end()) for m in _OR.finditer(text, start, match.end("list"))]
    for end, following in [*ends, (match.end("list"), 0)]:
        part = text[start:end].strip()
        if part:
            begin = text.index(part, start)
            parts.append(Passage(part, begin, begin + len(part)))
        start = following
    return parts


def route_input(
    input: object = None,
    query: str | None = None,
    agents: list[object] | None = None,
    routing_strategy: str | None = None,
) -> dict[str, object]:
    """Return the agent or skill of the catalog whose name, tags and description share most words
    with the input.

    `confidence` is the difference between the two best scores. Raise Refused `no-evidence` if
    `input` and `query` have no words, if no agent shares one, or if the best two are equal;
    `unsupported` for an unknown strategy.
    """
    if routing_strategy is not None and routing_strategy not in _STRATEGIES:
        message = f"routing_strategy {routing_strategy!r:.40} is not known; known are {', '.join(_STRATEGIES)}"
        raise Refused("unsupported", message)
    text = query or "\n".join(text for _, text in strings_in(input))
    choices = (
        [_agent_option(agent, number) for number, agent in enumerate(agents, 1)]
        if agents
        else skill_choices()
    )
    ranked = rank(text, choices, 1 if agents else SKILL_WORTH)
    best = best_unless_tied(ranked)
    if best is None or (not agents and best.score < _LEAST):
        tied = (
            ", ".join(one.id for one in ranked if one.score == ranked[0].score)
            if ranked and best is None
            else ""
        )
        raise Refused(
            "no-evidence",
            f"equally near: {tied:.200}" if tied else "too few of its words lead to any of them",
        )
    margin = best.score - (ranked[1].score if len(ranked) > 1 else 0)
    answer: dict[str, object] = {"route": best.id, "confidence": round(margin, 4)}
    candidates = [{"id": one.id, "score": one.score} for one in ranked[:5]]
    return answer | {"candidates": candidates, "method": "rules:shared-words"}


def _agent_option(agent: object, number: int) -> RouteOption:
    """Return the option of an agent that the caller gave as text or object. Raise Refused
    `bad-data`.
    """
    if isinstance(agent, str):
        return RouteOption(agent, "", "")
    if not isinstance(agent, dict):
        raise Refused(
            "bad-data", f"agent {number}: expected text or an object, found {type(agent).__name__}"
        )
    name = next(
        (str(agent[key]) for key in ("id", "name", "agent") if isinstance(agent.get(key), str)), ""
    )
    if not name:
        raise Refused("bad-data", f"agent {number}: it has no `id` or `name`")
    tags = " ".join(
        text
        for key in ("tags", "keywords", "skills", "name")
        for _, text in strings_in(agent.get(key))
    )
    return RouteOption(name, tags, " ".join(text for _, text in strings_in(agent)))


def skill_choices() -> list[RouteOption]:
    """Return the skills of the run's registry. Raise Refused `unsupported` outside of a run."""
    return [
        RouteOption(
            item.id,
            f"{item.name} {' '.join(item.tags)}",
            " ".join((item.description, *item.use_cases)),
        )
        for item in skills()
    ]


def rank(text: str, choices: list[RouteOption], min_worth: int = 1) -> list[ScoredRoute]:
    """Return the choices whose shared words are worth at least `min_worth`, best first. Equal
    scores are sorted by id.

    A word of the id is worth three, one of name and tags two, one of the description one. The score
    is 1 if the id has all words of the text and no others.
    """
    query = set(stems(text[:_MAX_QUERY]))
    worth = {choice.id: _weight_by_word(choice) for choice in choices}
    choices_with_word = Counter(word for worth_by_word in worth.values() for word in worth_by_word)
    # The rarer a word among the choices, the more it tells; one that none of them holds tells least.
    weight = {
        word: math.log(1 + len(choices) / (choices_with_word[word] or len(choices) or 1))
        for word in sorted(query)
    }
    total = _ID_WORTH * math.fsum(weight.values()) or 1
    ranked = []
    for name, worth_by_word in worth.items():
        shared = {word: worth_by_word[word] for word in weight if word in worth_by_word}
        if sum(shared.values()) >= min_worth:
            score = math.fsum(weight[word] * value for word, value in shared.items()) / total
            ranked.append(ScoredRoute(name, round(score * _id_factor(shared, worth_by_word), 4)))
    return sorted(ranked, key=lambda one: (-one.score, one.id))


def _id_factor(shared: dict[str, int], worth_by_word: dict[str, int]) -> float:
    """Return a factor from 0.9 to 1 by the share of the id's words that the text has."""
    words_of_id = sum(worth == _ID_WORTH for worth in worth_by_word.values())
    return 0.9 + 0.1 * sum(worth == _ID_WORTH for worth in shared.values()) / (words_of_id or 1)


def _weight_by_word(choice: RouteOption) -> dict[str, int]:
    """Return the weight of each word of a choice: its highest weight in the id, the names and the description."""
    places = ((choice.description_text, 1), (choice.name_text, 2), (choice.id, _ID_WORTH))
    return {word: worth for text, worth in places for word in _stems_of_name(text)}


def _stems_of_name(text: str) -> list[str]:
    return stems(re.sub(r"[._:/-]+", " ", text))


def best_unless_tied(ranked: list[ScoredRoute]) -> ScoredRoute | None:
    """Return the first of the ranked choices. None without choices, or if the second has the same score."""
    return ranked[0] if ranked and (len(ranked) == 1 or ranked[0].score > ranked[1].score) else None


def generate_plan(
    objective: str, context: object = None, max_steps: float = 20
) -> dict[str, object]:
    """Return a step for each clause of the objective, with the skill of the catalog that shares
    most words with it.

    A step has `text` and place of its clause, `uses`, `score` and `alternatives`. Clauses without a
    skill, or with two equal ones, are `unmatched`. Words of the context decide between equal skills
    only. Raise Refused `no-evidence` if no clause leads to a skill.
    """
    choices = skill_choices()
    hints = " ".join(text for _, text in strings_in(context))[:_MAX_QUERY]
    parts = clauses(objective)
    steps: list[dict[str, object]] = []
    unmatched: list[dict[str, object]] = []
    for part in parts[: max(1, int(max_steps))]:
        ranked = rank(part.text, choices, SKILL_WORTH)
        best = best_unless_tied(ranked) or _break_tie(ranked, hints, choices)
        if best is None or best.score < _LEAST:
            unmatched.append(part.quote(candidates=[one.id for one in ranked[:3]]))
            continue
        others = [one.id for one in ranked if one.id != best.id][:3]
        step = part.quote(
            id=f"s{len(steps) + 1}", uses=f"skill:{best.id}", score=best.score, alternatives=others
        )
        steps.append(step | {"depends_on": [str(steps[-1]["id"])] if steps else []})
    if not steps:
        raise Refused(
            "no-evidence",
            "no part of the objective leads to a skill of the catalog",
            "cogcli skills ls",
        )
    left_out = max(0, len(parts) - len(steps) - len(unmatched))
    plan: dict[str, object] = {
        "objective": objective,
        "steps": steps,
        "unmatched": unmatched,
        "left_out": left_out,
    }
    return {"plan": plan, "step_count": len(steps), "method": "rules:shared-words"}


def _break_tie(
    ranked: list[ScoredRoute], hints: str, choices: list[RouteOption]
) -> ScoredRoute | None:
    """Return the best choice by the words of `hints` among those that share the highest score, or
    None.
    """
    tied = [one for one in ranked if one.score == ranked[0].score]
    nearest = best_unless_tied(
        rank(hints, [choice for choice in choices if choice.id in {one.id for one in tied}])
    )
    return next((one for one in tied if nearest and one.id == nearest.id), None)
