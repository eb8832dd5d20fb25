"""What a rerun would do again outside: shown, asked at a terminal, or refused with the commands that say it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cogcli.app.rerun_effects import WORDS
from cogcli.cli.answers import parse_step_word
from cogcli.cli.prompt import can_ask, terminal_safe
from cogcli.core.errors import OK, UsageError
from cogcli.core.terminal_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogcli.app.rerun import Reuse
    from cogcli.app.rerun_effects import EffectQuestion
    from cogcli.cli.context import CommandContext

_MOST_NAMED = 5


def parse_effects(texts: Sequence[str]) -> dict[str, str]:
    """What `--effects STEP=WORD` says, by step path. Raises UsageError."""
    said: dict[str, str] = {}
    for text in texts:
        step, word = parse_step_word(text, "--effects", tuple(WORDS))
        if step is None:
            raise UsageError("usage.value", f"`--effects {text}` names no step", expected="STEP=WORD")
        if said.setdefault(step, word) != word:
            raise UsageError("usage.flag", f"`--effects {step}` is given twice", hint="keep one of them")
    return said


def ask_effects(context: CommandContext, reuse: Reuse) -> Reuse:
    """The same once the person at the terminal, if there is one, has said what happens to each effect.

    Raises UsageError `rerun.effects` where anything is left unsaid.
    """
    while (questions := reuse.again.questions) and can_ask(context):
        question = questions[0]
        word = _answered(context, reuse, question)
        if not word:
            break
        reuse = reuse._replace(again=reuse.again.answered({question.step: word}))
    if questions:
        raise _unsaid(context, reuse, questions)
    return reuse


def show_plan(context: CommandContext, reuse: Reuse) -> int:
    """Answer with what would be reused, called and asked; nothing begins."""
    plan = reuse.as_dict()
    context.own["plan"] = plan
    if context.json:
        return OK
    width = max(len(step["id"]) for step in plan["steps"])
    for step in plan["steps"]:
        why = (
            f"reused from {reuse.episode_id}"
            if step["what"] == "reused"
            else f"{step['what']}: {step['why']}"
        )
        context.screen.answer_lines([[(visible(f"{step['id']:<{width}}  {why}"), "")]])
        for effect in step["effects"]:
            words = ", ".join(f"--effects {effect['step']}={word}" for word in effect["words"])
            text = f"{'':<{width}}  {', '.join(effect['capabilities'])} is {effect['state']}: {words}"
            context.screen.answer_lines([[(visible(text), "")]])
    return OK


def _answered(context: CommandContext, reuse: Reuse, question: EffectQuestion) -> str:
    """A word for this question; empty where the person says none."""
    screen = context.screen
    capabilities = ", ".join(dict.fromkeys(effect.capability for effect in question.effects))
    text = f"{question.step}: {capabilities} is {question.state} in {reuse.episode_id}"
    screen.tell(terminal_safe(context, visible(text)) + "\n")
    words = "  ".join(f"[{word}]" for word in question.words)
    while True:
        screen.tell(terminal_safe(context, f"Again?  {words}  [quit] › "))
        line = sys.stdin.readline()
        if not line.endswith("\n"):
            screen.tell("\n")
            return ""
        word = line.strip().lower()
        if word in ("quit", "q"):
            return ""
        if word in question.words:
            return word


def _unsaid(context: CommandContext, reuse: Reuse, questions: list[EffectQuestion]) -> UsageError:
    named = [
        f"{question.step} ({question.effects[0].capability}, {question.state})"
        for question in questions[:_MOST_NAMED]
    ]
    more = f" and {len(questions) - _MOST_NAMED} more" if len(questions) > _MOST_NAMED else ""
    since = sorted(set(reuse.again.since.values()))
    made = f"; {', '.join(since[:_MOST_NAMED])} was told to make them again already" if since else ""
    words = "; ".join(f"{question.step}={'|'.join(question.words)}" for question in questions[:_MOST_NAMED])
    return UsageError(
        "rerun.effects",
        f"effects of `{reuse.episode_id}` would happen again: {', '.join(named)}{more}{made}",
        expected=f"--effects {words}",
        hint="reuse takes the recorded answer, repeat makes the call again, fail fails it; nothing was begun",
        next=tuple(_commands(context, questions)),
    )


def _commands(context: CommandContext, questions: list[EffectQuestion]) -> list[str]:
    """What was typed, with a word for every question: first those that do nothing again."""
    from shlex import join

    found = []
    for wanted in WORDS:
        words = [wanted if wanted in question.words else "fail" for question in questions]
        flags = [
            part
            for question, word in zip(questions, words, strict=True)
            for part in ("--effects", f"{question.step}={word}")
        ]
        found.append(join(["cogcli", *context.arguments.argv, *flags]))
    return list(dict.fromkeys(found))
