"""Digests of reasoning and profile for a prompt: the newest entries under fixed labels, within tokens
(docs/reference/agent-state.md#digests). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.agent.bounds import encodable
from cogcli.agent.context.tokenizer import ESTIMATE, Tokenizer
from cogcli.agent.context.truncation import CutText, cut_text
from cogcli.agent.data_lines import DataLine, json_text
from cogcli.agent.profile import UserProfile
from cogcli.agent.state import AgentState, ReasoningContext
from cogcli.base.terminal_text import visible
from cogcli.declarations.value_types import Json

SITUATED: Final = "USER CONTEXT:"
_FACTS: Final = 5
_RECENT: Final = 3
_MANY: Final = 5
_LAST_THINKING: Final = 200
"""The maximal length of the last thinking."""


def compress_for_context(
    reasoning: ReasoningContext, max_tokens: int = 1000, tokenizer: Tokenizer = ESTIMATE
) -> CutText:
    """Return the digest of reasoning, with one line per label."""
    last = str(reasoning.thoughts[-1].get("thinking", "")) if reasoning.thoughts else ""
    found = {
        "GOAL": reasoning.goal,
        "STRATEGY": reasoning.strategy,
        "FACTS": "; ".join(_labeled_texts(reasoning.facts, _FACTS)),
        "INSIGHTS": "; ".join(reasoning.insights[-_RECENT:]),
        "LAST THINKING": cut_text(last, _LAST_THINKING).text,
    }
    return _render_digest(found, max_tokens, tokenizer)


def compress_for_injection(
    profile: UserProfile, max_tokens: int = 800, tokenizer: Tokenizer = ESTIMATE
) -> CutText:
    """Return the digest of a profile, with one line per label."""
    found = {
        "COMMUNICATION": profile.communication_style,
        "CURRENT GOALS": "; ".join(profile.goals[-_RECENT:]),
        "PREFERENCES": ", ".join(_labeled_texts(profile.preferences, _MANY)),
        "ACTIVE PROJECTS": "; ".join(_labeled_texts(profile.projects, _RECENT)),
        "EXPERTISE": ", ".join(profile.expertise_areas[-_MANY:]),
        "CONSTRAINTS": "; ".join(profile.constraints[-_RECENT:]),
    }
    return _render_digest(found, max_tokens, tokenizer)


def get_situated_context(state: AgentState) -> str:
    """Return the profile of the user as a section of a prompt. Empty for an unknown user."""
    digest = compress_for_injection(state.user_profile).text if state.user_profile else ""
    lines = [line.render() for line in digest_lines(digest, "profile")]
    return "\n".join((SITUATED, *lines, "", "")) if lines else ""


def digest_lines(digest: str, origin: str) -> list[DataLine]:
    """Return the lines of a digest as lines of data."""
    lines = enumerate(digest.splitlines())
    return [DataLine(f"{origin}:{number}", origin, "untrusted", line) for number, line in lines]


def _labeled_texts(members: Json, maximum: int) -> Iterable[str]:
    for name, value in list(members.items())[-maximum:]:
        yield f"{name}: {value if isinstance(value, str) else json_text(value)}"


def _render_digest(
    text_by_label: Mapping[str, str], max_tokens: int, tokenizer: Tokenizer
) -> CutText:
    """Return lines of labels and texts. Line ends in texts are removed, so that no text looks like another label."""
    lines = [
        f"{label}: {visible(encodable(text))}" for label, text in text_by_label.items() if text
    ]
    return cut_text("\n".join(lines), max_tokens, tokenizer.count, tokenizer)
