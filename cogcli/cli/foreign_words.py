"""Words of agent-skills, and their counterparts in cogcli
(docs/how-to/come-from-agent-skills.md#words).

A translated command is only suggested, never run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile
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
"""Commands of cogcli, by command or script of agent-skills."""
_LISTS: Final = {
    "skills show": "skills ls",
    "skills search": "skills ls",
    "capabilities show": "capabilities ls",
    "bindings activate": "bindings ls",
    "bindings explain": "capabilities ls",
}
"""Commands that list possible arguments, for command lines without arguments."""
VERBS: Final = {
    "list": "ls",
    "describe": "show",
    "discover": "search",
    "explain-capability": "explain",
}
"""Verbs of cogcli after a group, by their word in agent-skills."""
FLAGS: Final = {"--host-root": "-C", "--report-file": "--report"}
MEANS: Final = {
    "-C": "which starts in the directory of the project",
    "--report": "which takes junit, json and md",
}
"""The meaning in cogcli of flags that agent-skills uses differently."""
_KINDS: Final = {
    **{kind: kind for kind in ("skills", "capabilities", "bindings", "services")},
    **{kind[:-1]: kind for kind in ("skills", "bindings", "services")},
    "capability": "capabilities",
}
_RUNNER: Final = ("python", "python3", "main", "agent-skills")
"""Words that come before the commands of agent-skills."""


def translate_word(words: Sequence[str]) -> str:
    """Return cogcli's command for a word of agent-skills; empty for an unknown word."""
    name = _command_name(words[0]) if words else ""
    if name in _RUNNER:
        rest = _words_from_command(words)
        return translate_word(rest) or (rest[0] if rest else "")
    command = COMMANDS.get(name, "")
    if name == "list" and _spec_kind(words[1:2]):
        return f"{_spec_kind(words[1:2])} ls"
    if name == "describe" and len(words) > 1 and words[1].count(".") > 1:  # a skill has one dot
        return "capabilities show"
    return command


def translate_line(argv: Sequence[str], word: str = "", own: str = "") -> Iterator[list[str]]:
    """Yield translations of a command line with flags and words of agent-skills, closest first.

    `word` is replaced by the command `own`. The caller suggests the first one that parses.
    """
    host, flags = _translate_flags(argv)
    if not word:
        yield [*host, *flags]
        word = next(
            (each for number, each in enumerate(flags) if translate_word(flags[number:])), ""
        )
        if not word:
            return
    place = flags.index(word)
    own = own or translate_word(flags[place:])
    before, rest = flags[:place], _words_from_command(flags[place:])
    rest = rest[2:] if own.endswith(" ls") and _spec_kind(rest[1:2]) else rest[1:]
    words = own.split()
    if before[-1:] == words[:1]:  # after a group
        words = words[1:]
    yield [*host, *before, *words, *rest]
    yield [*host, *before, *words, *(each for each in rest if not each.startswith("-"))]
    yield [*host, *own.split(), *rest[:1]]
    yield [*host, *own.split()]
    yield [*host, *_LISTS.get(own, "skills ls").split()]


def _words_from_command(words: Sequence[str]) -> list[str]:
    """Return the words from the command on, without the program that runs it."""
    return list(dropwhile(lambda word: _command_name(word) in _RUNNER, words))


def _translate_flags(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the flag for the directory in cogcli's form, and the other words with translated
    flags.
    """
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


def _spec_kind(words: Sequence[str]) -> str:
    """Return the kind of spec that the words are about."""
    return _KINDS.get(words[0], "") if words else ""


def _command_name(word: str) -> str:
    """Return the name of a command or script: `tools/validate_registry.py` is `validate_registry`."""
    return word.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
