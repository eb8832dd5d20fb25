from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cogcli.base.errors import ServiceResolutionError
from cogcli.protocols.secrets import Secrets


def resolved(ref: str, **environ: str) -> tuple[str, list[str]]:
    learned: list[str] = []
    return Secrets(environ, learned.append).resolve(ref), learned


def test_a_variable_is_told_to_the_redactor_with_or_without_its_scheme() -> None:
    assert resolved("TOKEN", TOKEN="s3cret-value") == ("s3cret-value", ["s3cret-value"])
    assert resolved("env:TOKEN", TOKEN="s3cret-value") == ("s3cret-value", ["s3cret-value"])


def test_a_file_of_its_owner_alone_loses_one_final_newline(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret-value\n\n")
    file.chmod(0o600)
    assert resolved(f"file:{file}") == ("s3cret-value\n", ["s3cret-value\n"])


@pytest.mark.parametrize(
    ("content", "mode"), [("x", 0o640), ("x", 0o604), ("", 0o600), ("x" * 65_537, 0o600)]
)
def test_other_files_are_refused(tmp_path: Path, content: str, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(ServiceResolutionError) as caught:
        resolved(f"file:{file}")
    assert caught.value.code == "env.missing"
    assert caught.value.hint


def test_the_command_for_a_file_that_others_may_read_runs_as_printed(tmp_path: Path) -> None:
    file = tmp_path / "my key"
    file.write_text("s3cret-value")
    file.chmod(0o644)
    with pytest.raises(ServiceResolutionError) as caught:
        resolved(f"file:{file}")
    assert shlex.split(caught.value.hint) == ["chmod", "600", str(file)]


def test_a_link_or_a_directory_is_no_secret_file(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("s3cret-value")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("link", ""):
        with pytest.raises(ServiceResolutionError):
            resolved(f"file:{tmp_path / name}")


def test_an_unset_variable_says_how_to_set_it() -> None:
    with pytest.raises(ServiceResolutionError) as caught:
        resolved("TOKEN")
    assert (caught.value.code, "export TOKEN" in caught.value.hint) == ("env.missing", True)


def test_texts_are_filled_in_once_and_every_value_is_learned() -> None:
    learned: list[str] = []
    secrets = Secrets({"A": "${B}", "B": "never"}, learned.append)
    assert secrets.expand("Bearer ${A} ${A}") == "Bearer ${B} ${B}"
    assert set(learned) == {"${B}"}
