"""The sections of a prompt, and how they shrink (docs/reference/agent-state.md#sizes). Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from cogcli.agent.context.tokenizer import Tokenizer
from cogcli.agent.context.truncation import CutText, cut_text, mark_truncated
from cogcli.agent.data_lines import DataLine
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json


class PromptSection(NamedTuple):
    """A section of a prompt, its size, and whether a part is missing."""

    name: str
    tokens: int
    truncated: bool = False


class PromptCut(NamedTuple):
    """A line that a prompt lacks (`no_room`) or shows in part (`cut`), and the number of missing tokens."""

    line_id: str
    tokens: int
    reason: str


class Prompt(NamedTuple):
    """The messages `{role, content}` for a model, with the sizes of their sections and the omitted content."""

    messages: tuple[dict[str, str], ...]
    sections: tuple[PromptSection, ...] = ()
    cuts: tuple[PromptCut, ...] = ()

    @property
    def tokens(self) -> int:
        """The size of all sections."""
        return sum(section.tokens for section in self.sections)

    @property
    def truncated(self) -> bool:
        """Whether a section lacks a part."""
        return any(section.truncated for section in self.sections)

    def to_payload(self) -> Json:
        """Return the prompt as JSON."""
        sections = [section._asdict() for section in self.sections]
        return {"messages": list(self.messages), "sections": sections, "tokens": self.tokens}


class DataSection(NamedTuple):
    """A header with lines of data, the most important first."""

    name: str
    lines: Sequence[DataLine] = ()
    truncated: bool = False
    """Whether a part was missing before."""
    kept: int = 0
    """The number of first lines that always stay."""


class FittedSection(NamedTuple):
    """The fitted text of a section."""

    text: str
    size: PromptSection
    cuts: tuple[PromptCut, ...] = ()


def fit_sections(
    sections: Iterable[DataSection], max_tokens: int, tokenizer: Tokenizer
) -> list[FittedSection]:
    """Fit the sections into `max_tokens` tokens. The last sections shrink first. Headers and kept lines are never
    removed.
    """
    fitted = [
        _render_section(section, [line.render() for line in section.lines], tokenizer)
        for section in sections
    ]
    given = list(sections)
    over = sum(each.size.tokens for each in fitted) - max_tokens
    for place in reversed(range(len(fitted))):
        if over > 0 and len(given[place].lines) > given[place].kept:
            before = fitted[place].size.tokens
            shorter = _shrink_section(given[place], before - over, tokenizer)
            if shorter.size.tokens < before:  # the marker may be longer than what it stands for
                fitted[place] = shorter
                over -= before - shorter.size.tokens
    return fitted


def _shrink_section(section: DataSection, max_tokens: int, tokenizer: Tokenizer) -> FittedSection:
    """Return the first lines of the section, the next one truncated at a word, and the number of missing tokens."""
    sizes = [tokenizer.count(line.render()) + 1 for line in section.lines]
    tokens_left = (
        max_tokens - tokenizer.count(f"{section.name}\n{mark_truncated('', sum(sizes))}") - 1
    )
    whole = max(section.kept, bisect_right(list(accumulate(sizes)), tokens_left))
    rest = tokens_left - sum(sizes[:whole]) - 1
    kept = [line.render() for line in section.lines[:whole]]
    cuts: list[PromptCut] = []
    for line in section.lines[whole : whole + 1]:
        shortened = _cut_line(line, rest, tokenizer)
        if shortened.text:
            kept.append(line._replace(text=shortened.text).render())
            cuts.append(PromptCut(line.block_id, shortened.missing, "cut"))
    for line, tokens in zip(section.lines[len(kept) :], sizes[len(kept) :], strict=True):
        cuts.append(PromptCut(line.block_id, tokens, "no_room"))
    if missing := sum(sizes[len(kept) :]):
        kept.append(mark_truncated("", missing))
    fitted = _render_section(section, kept, tokenizer, truncated=True)
    return fitted._replace(cuts=tuple(cuts))


def _cut_line(line: DataLine, max_tokens: int, tokenizer: Tokenizer) -> CutText:
    def size(text: str) -> int:
        return tokenizer.count(line._replace(text=text).render())

    return cut_text(line.text, max_tokens, size, tokenizer)


def _render_section(
    section: DataSection, lines: Iterable[str], tokenizer: Tokenizer, *, truncated: bool = False
) -> FittedSection:
    text = "\n".join((section.name, *lines))
    return FittedSection(
        text, PromptSection(section.name, tokenizer.count(text) + 1, truncated or section.truncated)
    )
