"""A log that another process changes while the run writes it (docs/reference/episode.md#writing)."""

from __future__ import annotations

from typing import Any

import pytest

SOURCE = """
    import os, zlib
    from pathlib import Path

    def log():
        return next(Path(".cogcli/episodes").glob("ep_*/events.jsonl"))

    def cut(text):
        data = log().read_bytes().splitlines(keepends=True)
        os.truncate(log(), sum(map(len, data[:-1])))
        return {"text": text}

    def alter(text):
        lines = log().read_bytes().split(b"\\n")
        stem = lines[0][:-18].replace(b'"hello"', b'"HELLO"')
        lines[0] = stem + b',"sum":"%08x"}' % zlib.crc32(stem)
        log().write_bytes(b"\\n".join(lines))
        return {"text": text}

    def remove(text):
        os.unlink(log())
        return {"text": text}

    def keep(text):
        return {"text": text}
"""
STEPS = "- {id: a, uses: t.text.%s, input: {text: inputs.text}, output: {text: outputs.text}}"


@pytest.fixture
def changing(project: Any) -> Any:
    project.services(SOURCE)
    for name in ("cut", "alter", "remove", "keep"):
        project.capability(f"t.text.{name}", name)
        project.skill(
            f"t.{name}",
            STEPS % name,
            inputs="{text: {type: string}}",
            outputs="{text: {type: string}}",
        )
    return project


@pytest.mark.sampled(2)
@pytest.mark.parametrize("durability", ["process", "none"])
@pytest.mark.parametrize("how", ["cut", "alter", "remove"])
def test_a_run_whose_log_was_changed_ends_with_3(changing: Any, how: str, durability: str) -> None:
    ended = changing.run(
        "run", f"t.{how}", "-p", "text=hello", "--durability", durability, "--json"
    ).assert_exit(3)
    assert ended.json["error"]["code"] in ("episode.altered", "env.disk", "episode.unreadable")
    assert not (changing.episode / "manifest.json").exists()
    assert "✓ ok" not in changing.run("ls").out
    changing.run("verify").assert_exit(3 if how == "remove" else 1)


def test_a_log_that_nobody_changed_ends_with_0(changing: Any) -> None:
    changing.run("run", "t.keep", "-p", "text=hello").assert_ok()
    changing.run("verify").assert_ok()
