"""Decisions about effects that a rerun would repeat, from flags or prompts.

Without a terminal, a missing decision is an error that suggests the commands to make it
(docs/reference/episode.md#rerun).
"""

from __future__ import annotations

from collections.abc import Sequence

from cogcli.base.errors import OK, UsageError
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.inputs import parse_step_word
from cogcli.cli.options import wrong_flag, wrong_value
from cogcli.cli.prompt import ask, can_ask, terminal_safe
from cogcli.run.rerun import ReusedSteps
from cogcli.run.rerun_effects import EFFECT_CHOICES, EffectQuestion

_MAX_NAMED = 5


def parse_effects(texts: Sequence[str]) -> dict[str, str]:
    """Return the choices of `--effects STEP=WORD`, by step path. Raise UsageError."""
    choices: dict[str, str] = {}
    for text in texts:
        step, word = parse_step_word(text, "--effects", tuple(EFFECT_CHOICES))
        if step is None:
            raise wrong_value(f"`--effects {text}` names no step", expected="STEP=WORD")
        if choices.setdefault(step, word) != word:
            raise wrong_flag(f"`--effects {step}` is given twice", "keep one of them")
    return choices


def ask_effects(context: CommandContext, reuse: ReusedSteps) -> ReusedSteps:
    """Return a copy of `reuse` with a choice for every effect. Missing ones are prompted for at a
    terminal.

    Raise UsageError `rerun.effects` if a choice is still missing.
    """
    while (questions := reuse.effects.questions) and can_ask(context):
        question = questions[0]
        word = _prompt_choice(context, reuse, question)
        if not word:
            break
        reuse = reuse._replace(effects=reuse.effects.with_choices({question.step: word}))
    if questions:
        raise _missing_choices_error(context, reuse, questions)
    return reuse


def show_plan(context: CommandContext, reuse: ReusedSteps) -> int:
    """Write which steps would be reused, called and prompted for, without running any."""
    plan = reuse.to_payload()
    context.own["plan"] = plan
    lines, width = [], max(len(step["id"]) for step in plan["steps"])
    for step in plan["steps"]:
        why = f"{step['what']}: {step['why']}"
        if step["what"] == "reused":
            why = f"reused from {reuse.episode_id}"
        lines.append(f"{step['id']:<{width}}  {why}")
        for effect in step["effects"]:
            words = ", ".join(f"--effects {effect['step']}={word}" for word in effect["words"])
            lines.append(
                f"{'':<{width}}  {', '.join(effect['capabilities'])} is {effect['state']}: {words}"
            )
    context.answer([[(visible(line), "")] for line in lines])
    return OK


def _prompt_choice(context: CommandContext, reuse: ReusedSteps, question: EffectQuestion) -> str:
    """Prompt for the choice of an effect and return it; empty for `quit` and at the end of input."""
    capabilities = ", ".join(dict.fromkeys(effect.capability for effect in question.effects))
    text = f"{question.step}: {capabilities} is {question.state} in {reuse.episode_id}"
    context.screen.notify(terminal_safe(context, visible(text)) + "\n")
    words = "  ".join(f"[{word}]" for word in question.choices)
    while True:
        word = ask(context, f"Again?  {words}  [quit]")
        if word in (None, "quit", "q"):
            return ""
        if word in question.choices:
            return word


def _missing_choices_error(
    context: CommandContext, reuse: ReusedSteps, questions: list[EffectQuestion]
) -> UsageError:
    """Return the error for missing choices, with the commands that make them."""
    first = questions[:_MAX_NAMED]
    named = [
        f"{question.step} ({question.effects[0].capability}, {question.state})"
        for question in first
    ]
    more = f" and {len(questions) - _MAX_NAMED} more" if len(questions) > _MAX_NAMED else ""
    later = sorted(set(reuse.effects.repeated_in.values()))
    made = f"; {', '.join(later[:_MAX_NAMED])} was told to make them again already" if later else ""
    words = "; ".join(f"{question.step}={'|'.join(question.choices)}" for question in first)
    return UsageError(
        "rerun.effects",
        f"effects of `{reuse.episode_id}` would happen again: {', '.join(named)}{more}{made}",
        expected=f"--effects {words}",
        hint="reuse takes the recorded answer, repeat makes the call again, fail fails it; nothing was begun",
        next=tuple(_commands_with_choices(context, questions)),
    )


def _commands_with_choices(context: CommandContext, questions: list[EffectQuestion]) -> list[str]:
    """Return the typed command with a choice for every effect: one command per choice.

    The choice is `fail` for an effect that does not allow another one.
    """
    from shlex import join

    found = []
    for wanted in EFFECT_CHOICES:
        words = [wanted if wanted in question.choices else "fail" for question in questions]
        pairs = (f"{question.step}={word}" for question, word in zip(questions, words, strict=True))
        flags = [part for pair in pairs for part in ("--effects", pair)]
        found.append(join(["cogcli", *context.call.argv, *flags]))
    return list(dict.fromkeys(found))
