"""What a rerun would do again outside, and what is said about it before anything begins (ADR 11).

1. A call of class effect that the earlier run made, or may have made, is made again only where somebody says so:
   `reuse` takes its recorded answer, `repeat` makes it again, `fail` fails it.
2. A word for a step holds for its items, gates and nested steps, too; the most particular word counts.
3. A service's word that a call takes no effect any more is no leave to make it again where another rerun was told to.
4. Only calls below steps that are not taken over are asked about. All that is known goes into the new run's first
   event, so that a rerun of the rerun asks, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.core.errors import UsageError
from cogcli.core.problems import suggestion
from cogcli.episode.effects import DONE

if TYPE_CHECKING:
    from pathlib import Path

    from cogcli.engine.doubt import DoubtResolution
    from cogcli.episode.effects import Effect

WORDS: Final = {"reuse": "done", "repeat": "rerun", "fail": "fail"}
"""What may be said about an effect, and the resolution that it stands for."""
_PART: Final = re.compile(r"[/#@][^/#@]*$")


class EffectQuestion(NamedTuple):
    """A step, or a part of one, whose effects would be made again: which they are, and what may be said about them."""

    step: str
    effects: tuple[Effect, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words that hold for all of them: an answer can be taken only where there is one."""
        known = all(effect.output is not None for effect in self.effects)
        return tuple(WORDS) if known else ("repeat", "fail")

    @property
    def state(self) -> str:
        """What became of them, in the words of `Effect.state`."""
        return ", ".join(dict.fromkeys(effect.state for effect in self.effects))

    def as_dict(self) -> dict[str, Any]:
        """The question as it stands in the envelope."""
        capabilities = list(dict.fromkeys(effect.capability for effect in self.effects))
        return {
            "step": self.step,
            "capabilities": capabilities,
            "state": self.state,
            "words": list(self.words),
        }


class Again(NamedTuple):
    """What is known of the earlier run's effects: those that would be made again, and what was said about them."""

    known: Mapping[str, Effect]
    called: tuple[Effect, ...]
    """Those of class effect below steps that would be called."""
    said: Mapping[str, str]
    """By step path: a word of WORDS."""
    by_probe: Mapping[str, DoubtResolution] = {}
    """By step path: what a service says."""
    since: Mapping[str, str] = {}
    """By step path: the later run that was told to make the call again."""

    @property
    def questions(self) -> list[EffectQuestion]:
        """What nobody has answered yet: a question for a step, where one word can answer for all of it."""
        return _questions([effect for effect in self.called if not word_for(effect, self.said)], self.said)

    def answered(self, said: Mapping[str, str]) -> Again:
        """The same with more said. Raises UsageError for what cannot be said."""
        for step, word in said.items():
            self._require_possible(step, word)
        return self._replace(said={**self.said, **said})

    def known_from(self, effect: Effect, found: DoubtResolution) -> Again:
        """The same with what a service says about an effect in doubt."""
        word = next(word for word, choice in WORDS.items() if choice == found.choice)
        now = effect._replace(state=DONE, output=found.output) if word == "reuse" else effect
        return self._replace(
            known={**self.known, effect.step: now},
            called=tuple(now if each.step == effect.step else each for each in self.called),
            said={**self.said, effect.step: word},
            by_probe={**self.by_probe, effect.step: found},
        )

    def _require_possible(self, step: str, word: str) -> None:
        below = [effect for effect in self.called if step in parts_above(effect.step)]
        if not below:
            known = [question.step for question in _questions(self.called)]
            raise UsageError(
                "step.unknown",
                f"`--effects {step}={word}`: no effect of that step would be made again",
                expected=f"one of: {', '.join(known[:20]) or 'nothing'}",
                hint=suggestion(step, known),
            )
        if word == "reuse" and not any(effect.output is not None for effect in below):
            raise UsageError(
                "usage.value",
                f"`--effects {step}=reuse`: no answer of `{below[0].capability}` is recorded, it is {below[0].state}",
                expected="repeat or fail",
            )

    def reuses(self, step: str) -> bool:
        """Whether all that this step would do again is taken from the earlier run instead."""
        below = [effect for effect in self.called if effect.step == step]
        return bool(below) and all(word_for(effect, self.said) == "reuse" for effect in below)

    def told(self, by: str) -> dict[str, Any]:
        """All of it as the first event of the new run tells it."""
        told = {}
        for step, effect in self.known.items():
            word = word_for(effect, self.said)
            entry = effect.as_dict()
            if word:
                found = self.by_probe.get(step)
                entry["resolution"] = {"choice": WORDS[word], "by": found.by if found else f"human:{by}"}
            told[step] = entry
        return told


def again_since(runs_dir: str | Path, episode_id: str) -> dict[str, str]:
    """The calls that later runs were told to make again, by the id of the event that told of the call: the newest such
    run. Reads the first line of every episode that is newer than this one."""
    from cogcli.core.errors import EnvironmentRefusal
    from cogcli.episode.layout import is_own_id
    from cogcli.episode.log_reader import EventLog
    from cogcli.episode.store import Store

    found: dict[str, str] = {}
    store = Store(runs_dir)
    for name in store.ids():
        if not is_own_id(name) or name <= episode_id:
            break
        try:
            first = next((event for _, event in EventLog(store.runs_dir / name)), None)
        except EnvironmentRefusal:
            continue  # it is none that can be read, or it is gone by now
        for entry in ((first.payload.get("effects") if first else None) or {}).values():
            if (entry.get("resolution") or {}).get("choice") == WORDS["repeat"]:
                found.setdefault(entry["origin"]["event"], name)
    return found


def again_of(known: Mapping[str, Effect], steps: Iterable[str]) -> Again:
    """What a rerun that calls these steps would do again."""
    steps = set(steps)
    called = [
        effect
        for effect in known.values()
        if effect.kind == "effect" and parts_above(effect.step)[-1] in steps
    ]
    return Again(known, tuple(called), {})


def word_for(effect: Effect, said: Mapping[str, str]) -> str:
    """The most particular word that was said about an effect and that holds for it; empty where none was."""
    for step in parts_above(effect.step):
        word = said.get(step, "")
        if word and (word != "reuse" or effect.output is not None):
            return word
    return ""


def _questions(effects: Iterable[Effect], said: Iterable[str] = ()) -> list[EffectQuestion]:
    """One for a step whose effects can all be answered alike and that no word was said for, else one for each."""
    by_step: dict[str, list[Effect]] = {}
    for effect in effects:
        by_step.setdefault(parts_above(effect.step)[-1], []).append(effect)
    found = []
    for step, group in by_step.items():
        if step not in said and len({effect.output is not None for effect in group}) == 1:
            found.append(EffectQuestion(step, tuple(group)))
        else:
            found += [EffectQuestion(effect.step, (effect,)) for effect in group]
    return found


def parts_above(step: str) -> list[str]:
    """A step path and all that it is a part of, the most particular first: `a#3/b`, `a#3`, `a`."""
    found = [step]
    while shorter := _PART.sub("", found[-1], count=1):
        if shorter == found[-1]:
            break
        found.append(shorter)
    return found
