"""The answers of `--in-doubt` and `--output` about calls in doubt (docs/reference/episode.md#doubts).

The two flags pair by their step. An output is always an object, so a text with `{` or `@` in front is one, and
anything else before `=` is a step. Without a step both are for the only open call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cogcli.cli.inputs import object_of
from cogcli.core.errors import UsageError
from cogcli.core.problems import suggestion
from cogcli.engine.doubt import CHOICES
from cogcli.runs.doubt_decisions import DoubtAnswer


def doubt_answers(words: Sequence[str], outputs: Sequence[str]) -> tuple[DoubtAnswer, ...]:
    """The answers in the order of their words. Raises UsageError."""
    given = _outputs(outputs)
    answers = []
    for text in words:
        step, word = parse_step_word(text, "--in-doubt", CHOICES)
        output = given.pop(step, None) if word == "done" else None
        answers.append(DoubtAnswer(step, word, output))
    done = [n for n, answer in enumerate(answers) if answer.choice == "done"]
    if None in given and len(done) == 1 and answers[done[0]].output is None:
        answers[done[0]] = answers[done[0]]._replace(output=given.pop(None))
    for step in given:
        what = "`--output`" if step is None else f"`--output {step}=…`"
        hint = "say which call it is for: --in-doubt STEP=done --output STEP=JSON"
        raise UsageError("usage.flag", f"{what} answers no `--in-doubt` with done", hint=hint)
    return tuple(answers)


def parse_step_word(text: str, flag: str, words: Sequence[str]) -> tuple[str | None, str]:
    """A step path, or None, and a word out of `[STEP=]WORD`. Raises UsageError."""
    step, equals, word = text.rpartition("=")
    if word not in words or (equals and not step):
        raise UsageError(
            "usage.value",
            f"`{flag}`: found `{text[:60]}`, expected one of {', '.join(words)}",
            hint=suggestion(word, list(words)),
        )
    return step or None, word


def _outputs(texts: Sequence[str]) -> dict[str | None, dict[str, Any]]:
    found: dict[str | None, dict[str, Any]] = {}
    for text in texts:
        step: str | None = None
        if not text.lstrip().startswith(("{", "@")):
            name, equals, rest = text.partition("=")
            if equals:
                step, text = name, rest
        if step in found:
            raise UsageError("usage.flag", "`--output` is given twice for one call", hint="keep one of them")
        found[step] = object_of(text, "--output")
    return found
