"""A `cogcli.toml` that would take all memory or all time of every command, completion among them."""

from __future__ import annotations

import sys
import tomllib
from typing import Any

import pytest
from attack import attack
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.toml_bounds import LONGEST_KEY, MAX_LEVELS, find_excess

pytestmark = pytest.mark.sampled(10)

if sys.platform == "win32":
    pytest.skip("no such limits here", allow_module_level=True)

BOMBS = {
    "dotted key": "a." * 50_000 + "a = 1\n",
    "dotted key with spaces": "a . " * 40_000 + "a = 1\n",
    "quoted parts": '"". ' * 40_000 + '"" = 1\n',
    "header": "[" + "a." * 50_000 + "a]\n",
    "header of tables": "[[" + "a." * 50_000 + "a]]\n",
    "key in an inline table": "x = {" + "a." * 50_000 + "a = 1}\n",
    "key behind a string": 'x = {y = """a"""", ' + "a." * 50_000 + 'a = 1, z = "q"}\n',
    "arrays": "x = " + "[" * 100_000 + "\n",
    "inline tables": "x = " + "{a = " * 30_000 + "\n",
    "long key": "k" * 100_000 + " = 1\n",
    "size": "# " + "x" * 1_000_000 + "\n",
    "many keys": "".join(f"a{number} = 1\n" for number in range(20_000)),
    "many directories": "registry = [" + "'x', " * 40_000 + "]\n",
    "many roots": "".join(f'[roots."r{number}"]\n' for number in range(8_000)),
    "many members": "[model]\n" + "".join(f"a{number} = 1\n" for number in range(20_000)),
}


def _limit_memory() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2 * 1024**3, 2 * 1024**3))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_in_the_settings_of_a_project_is_refused_with_its_place(
    demo: Any, bomb: str
) -> None:
    demo.write("cogcli.toml", f"trust_level = 'standard'\n{BOMBS[bomb]}")
    outcome = attack(demo, "run", "demo.greet", "-p", "text=hi", "--json", before=_limit_memory)
    assert (outcome.code, outcome.error) == (3, "config.key")
    place = outcome.envelope["error"]
    assert place["file"].endswith("cogcli.toml")
    if bomb != "size":
        assert place["line"] >= 2
    if bomb not in ("size", "many members"):
        assert place["column"] >= 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_in_the_settings_of_the_user_is_refused(demo: Any, bomb: str) -> None:
    folder = demo.home / ".config/cogcli"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(BOMBS[bomb])
    outcome = attack(demo, "run", "demo.greet", "-p", "text=hi", "--json", before=_limit_memory)
    assert (outcome.code, outcome.error) == (3, "config.key")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bomb", BOMBS)
def test_completion_beside_a_bomb_offers_what_it_can(demo: Any, bomb: str) -> None:
    demo.write("cogcli.toml", BOMBS[bomb])
    line = {"_COGCLI_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "cogcli run "}
    assert attack(demo, env=line, before=_limit_memory).code == 0


def test_what_is_within_the_bounds_is_read(demo: Any) -> None:
    texts = "\n".join(f'"some.pack{number}" = "1.0.{number}"' for number in range(300))
    names = ", ".join(f"'{'x' * 60}{number}'" for number in range(100))
    demo.write("cogcli.toml", f"prefer = [{names}]\n# {'.' * 5000}\n[packs.pins]\n{texts}\n")
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()


PARTS = st.sampled_from(
    [
        "a",
        ".",
        "=",
        "\n",
        " ",
        '"',
        "'",
        '"""',
        "'''",
        "\\",
        "#",
        "[",
        "]",
        "{",
        "}",
        ",",
        "1",
        '"b"',
        "x = ",
        "[a]\n",
    ]
)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


@given(st.lists(PARTS, max_size=60).map("".join), st.integers(2, 30))
def test_no_text_hides_a_long_key_from_the_bounds(text: str, parts: int) -> None:
    """What the parser accepts and the bounds let through has no more levels than they allow, whatever stands before."""
    whole = text + ".".join("k" for _ in range(parts)) + " = 1\n"
    try:
        value = tomllib.loads(whole)
    except tomllib.TOMLDecodeError:
        return
    if find_excess(whole) is None:
        assert _depth(value) <= 3 * MAX_LEVELS
    if parts > MAX_LEVELS and _depth(value) > 2 * MAX_LEVELS:
        assert find_excess(whole) is not None


def test_the_bounds_are_those_of_the_reference() -> None:
    assert (MAX_LEVELS, LONGEST_KEY) == (16, 1000)
    assert find_excess(".".join("k" * MAX_LEVELS) + " = 1") is None
    assert find_excess(".".join("k" * (MAX_LEVELS + 1)) + " = 1") == (
        "a key has more than 16 parts",
        1,
        1,
    )
