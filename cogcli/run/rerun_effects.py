"""The effects of an earlier run that a rerun would repeat, and the choices that they need
(docs/reference/episode.md#rerun, ADR 11).

1. A call of class effect that the earlier run made, or may have made, needs a choice before the rerun starts: `reuse`
   its recorded output, `repeat` the call, or `fail` it.
2. The choice for a step applies to its items, gates and nested steps. The longest matching step path takes precedence.
3. If another rerun already repeats the call, a probe's promise of no effect does not allow another repeat.
4. Only calls in steps that run again need a choice. All known effects go into the first event of the new run, so that a
   rerun of the rerun also has them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Final

from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.base.step_path import StepPath
from cogcli.declarations.events import RunStarted
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.layout import is_own_id
from cogcli.episode.log_reader import EventLog
from cogcli.episode.store import Store
from cogcli.run.effects import DONE, Effect
from cogcli.run.engine.doubt import DoubtResolution

EFFECT_CHOICES: Final = {"reuse": "done", "repeat": "rerun", "fail": "fail"}
"""Each choice for an effect, with the choice of the resulting DoubtResolution."""


class _EffectOrigin(Record):
    """The write-ahead record of a call, identified by its episode and event."""

    event: str


class _EffectResolution(Record):
    """The recorded decision about a call."""

    choice: str


class _RecordedEffect(Record):
    """An entry of `effects` in the first event of a rerun."""

    origin: _EffectOrigin
    resolution: _EffectResolution


class EffectQuestion(NamedTuple):
    """Effects of one step or of one of its parts that need the same choice."""

    step: str
    effects: tuple[Effect, ...]

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices that are possible for all effects. `reuse` is possible only if every output is recorded."""
        known = all(effect.output is not None for effect in self.effects)
        return tuple(EFFECT_CHOICES) if known else ("repeat", "fail")

    @property
    def state(self) -> str:
        """The states of the effects (`run/effects.py`) without duplicates, joined with commas."""
        return ", ".join(dict.fromkeys(effect.state for effect in self.effects))

    def to_payload(self) -> Json:
        """Return the object for the envelope (`--json`)."""
        capabilities = list(dict.fromkeys(effect.capability for effect in self.effects))
        return {
            "step": self.step,
            "capabilities": capabilities,
            "state": self.state,
            "words": list(self.choices),
        }


class RerunEffects(NamedTuple):
    """The effects of an earlier run, the effects that a rerun would repeat, and the choices about them."""

    known: Mapping[str, Effect]
    """All effects by step path."""
    repeatable: tuple[Effect, ...]
    """The effects of class `effect` in steps that run again."""
    choices: Mapping[str, str]
    """By step path: a key of EFFECT_CHOICES."""
    by_probe: Mapping[str, DoubtResolution] = {}
    """By step path: the resolution from a probe."""
    repeated_in: Mapping[str, str] = {}
    """By step path: the id of a later episode that repeats the call."""

    @property
    def questions(self) -> list[EffectQuestion]:
        """The effects without a choice, grouped by root step if one choice is possible for all effects of the step."""
        return _group_questions(
            [effect for effect in self.repeatable if not choice_for(effect, self.choices)],
            self.choices,
        )

    def with_choices(self, choices: Mapping[str, str]) -> RerunEffects:
        """Return a copy with additional choices.

        Raise UsageError `step.unknown`, or `usage.value` for `reuse` without an output.
        """
        for step, word in choices.items():
            self._require_possible(step, word)
        return self._replace(choices={**self.choices, **choices})

    def with_probe_answer(self, effect: Effect, found: DoubtResolution) -> RerunEffects:
        """Return a copy that contains the decision of a probe about an effect in doubt."""
        word = next(word for word, choice in EFFECT_CHOICES.items() if choice == found.choice)
        now = effect._replace(state=DONE, output=found.output) if word == "reuse" else effect
        return self._replace(
            known={**self.known, effect.step: now},
            repeatable=tuple(now if each.step == effect.step else each for each in self.repeatable),
            choices={**self.choices, effect.step: word},
            by_probe={**self.by_probe, effect.step: found},
        )

    def _require_possible(self, step: str, word: str) -> None:
        below = [effect for effect in self.repeatable if step in path_prefixes(effect.step)]
        if not below:
            known = [question.step for question in _group_questions(self.repeatable)]
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
        """Return whether this step has effects and the choice for all of them is `reuse`."""
        below = [effect for effect in self.repeatable if effect.step == step]
        return bool(below) and all(choice_for(effect, self.choices) == "reuse" for effect in below)

    def to_payload(self, by: str) -> Json:
        """Return `effects` of the new run's first event: all known effects by step path, with their resolutions.

        `by` is the user, who made each choice that no probe made.
        """
        payload = {}
        for step, effect in self.known.items():
            word = choice_for(effect, self.choices)
            entry = effect.to_payload()
            if word:
                found = self.by_probe.get(step)
                entry["resolution"] = {
                    "choice": EFFECT_CHOICES[word],
                    "by": found.by if found else f"human:{by}",
                }
            payload[step] = entry
        return payload


def find_repeats(runs_dir: str | Path, episode_id: str) -> dict[str, str]:
    """Return the calls that later reruns repeat. Each id of a write-ahead record maps to the id of the newest such
    episode. The first line of every newer episode is read.
    """
    found: dict[str, str] = {}
    store = Store(runs_dir)
    for name in store.ids():
        if not is_own_id(name) or name <= episode_id:
            break
        try:
            first = next((event for _, event in EventLog(store.runs_dir / name)), None)
        except UnusableEnvironment:
            continue  # unreadable, or removed in the meantime
        start = read_record(RunStarted, first.payload if first else None)
        for entry in start.effects.values():
            call = read_record(_RecordedEffect, entry)
            if call.origin.event and call.resolution.choice == EFFECT_CHOICES["repeat"]:
                found.setdefault(call.origin.event, name)
    return found


def select_effects(
    known: Mapping[str, Effect], steps: Iterable[str], taken: Container[str] = ()
) -> RerunEffects:
    """Return the effects that a rerun of these root steps would repeat, without choices.

    Items in `taken` are omitted, since their results are reused.
    """
    steps = set(steps)
    called = [
        effect
        for effect in known.values()
        if effect.kind == "effect" and path_prefixes(effect.step)[-1] in steps
        if not any(path in taken for path in path_prefixes(effect.step))
    ]
    return RerunEffects(known, tuple(called), {})


def choice_for(effect: Effect, choices: Mapping[str, str]) -> str:
    """Return the choice with the longest matching step path, or an empty string. `reuse` applies only to a
    recorded output.
    """
    for step in path_prefixes(effect.step):
        word = choices.get(step, "")
        if word and (word != "reuse" or effect.output is not None):
            return word
    return ""


def _group_questions(effects: Iterable[Effect], chosen: Iterable[str] = ()) -> list[EffectQuestion]:
    """Return one question for each root step without a choice whose effects have the same possible choices. For
    other steps, return one question per effect.
    """
    by_step: dict[str, list[Effect]] = {}
    for effect in effects:
        by_step.setdefault(path_prefixes(effect.step)[-1], []).append(effect)
    found = []
    for step, group in by_step.items():
        if step not in chosen and len({effect.output is not None for effect in group}) == 1:
            found.append(EffectQuestion(step, tuple(group)))
        else:
            found += [EffectQuestion(effect.step, (effect,)) for effect in group]
    return found


def path_prefixes(step: str) -> list[str]:
    """Return a step path and all paths that contain it, from longest to shortest: `a#3/b`, `a#3`, `a`."""
    found = [step]
    while parent := StepPath(found[-1]).parent:
        found.append(parent)
    return found
