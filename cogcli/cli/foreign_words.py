"""Words of agent-skills, and what they are called here (docs/how-to/come-from-agent-skills.md#words).

Data, and how a command line with such a word reads in ours. Nothing is guessed: the command is only proposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

COMMANDS: Final = {
    "list": "skills ls",
    "describe": "skills show",
    "discover": "skills search",
    "activate": "bindings activate",
    "explain-capability": "bindings explain",
    "mcp-serve": "serve mcp",
    "validate_registry": "validate",
    "generate_catalog": "registry catalog",
    "registry_stats": "registry stats",
    "test_capability_contracts": "registry contracts",
    "verify_smoke_capabilities": "registry smoke",
    "compute_runtime_coverage": "registry coverage",
    "compute_runtime_stats": "registry stats",
    "compute_skill_executability": "registry executability",
}
"""By command or script of that tool ours."""
_LISTS: Final = {
    "skills show": "skills ls",
    "skills search": "skills ls",
    "capabilities show": "capabilities ls",
    "bindings activate": "bindings ls",
    "bindings explain": "capabilities ls",
}
"""By command what names its arguments, for a command line that has none."""
VERBS: Final = {
    "list": "ls",
    "describe": "show",
    "discover": "search",
    "explain-capability": "explain",
}
"""By its word ours, behind a group."""
FLAGS: Final = {"--host-root": "-C", "--report-file": "--report"}
MEANS: Final = {
    "-C": "which starts in the directory of the project",
    "--report": "which takes junit, json and md",
}
"""By flag of ours what it is."""
_KINDS: Final = {
    **{kind: kind for kind in ("skills", "capabilities", "bindings", "services")},
    **{kind[:-1]: kind for kind in ("skills", "bindings", "services")},
    "capability": "capabilities",
}
_RUNNER: Final = ("python", "python3", "main", "agent-skills")
"""What stands before the commands of that tool."""


def ours(words: Sequence[str]) -> str:
    """Our command for what a word of that tool stands before; empty for a word that is none of its."""
    name = _name(words[0]) if words else ""
    if name in _RUNNER:
        rest = next((n for n, word in enumerate(words) if _name(word) not in _RUNNER), len(words))
        return ours(words[rest:]) or (words[rest] if rest < len(words) else "")
    command = COMMANDS.get(name, "")
    if name == "list" and _kind(words[1:2]):
        return f"{_kind(words[1:2])} ls"
    if name == "describe" and len(words) > 1 and words[1].count(".") > 1:  # a skill has one dot
        return "capabilities show"
    return command


def rewritten(argv: Sequence[str], word: str = "", own: str = "") -> Iterator[list[str]]:
    """Command lines of ours for one with flags of that tool, and with this word of it instead of our command `own`;
    the closest first: whichever parses may be proposed."""
    host, flags = _translated(argv)
    if not word:
        yield [*host, *flags]
        word = next((each for number, each in enumerate(flags) if ours(flags[number:])), "")
        if not word:
            return
    place = flags.index(word)
    own = own or ours(flags[place:])
    before, rest = flags[:place], flags[place:]
    while rest and _name(rest[0]) in _RUNNER:
        rest = rest[1:]
    rest = rest[2:] if own.endswith(" ls") and _kind(rest[1:2]) else rest[1:]
    words = own.split()
    if before[-1:] == words[:1]:  # behind a group
        words = words[1:]
    yield [*host, *before, *words, *rest]
    yield [*host, *before, *words, *(each for each in rest if not each.startswith("-"))]
    yield [*host, *own.split(), *rest[:1]]
    yield [*host, *own.split()]
    yield [*host, *_LISTS.get(own, "skills ls").split()]


def _translated(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The flag of that tool for the directory as ours, which may stand in front of any command; the other words, its
    other flags as ours."""
    host: list[str] = []
    words: list[str] = []
    rest = iter(argv)
    for each in rest:
        flag, sign, given = each.partition("=")
        if flag not in FLAGS:
            words.append(each)
            continue
        value = given if sign else next(rest, "")
        if FLAGS[flag] == "-C":
            host = ["-C", value]
        else:
            words += [FLAGS[flag], f"json:{value}"]
    return host, words


def _kind(words: Sequence[str]) -> str:
    return _KINDS.get(words[0], "") if words else ""


def _name(word: str) -> str:
    """A command as it is typed, or the name of a script: `tools/validate_registry.py` is `validate_registry`."""
    return word.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
