"""`files.roots` and `files.write_roots` of settings (docs/reference/service.md#roots)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SOURCE = """
    from cogcli import sdk

    def keep(path):
        with sdk.open_for_reading(path, 100) as file:
            return {"path": sdk.write_file("out/kept.txt", file.read(), replace=True)}
"""


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Documents are read in ordinary folders alone."""
    return ordinary_path


@pytest.fixture
def files(project: Any) -> Any:
    for name in ("in/a.txt", "other/a.txt", "out/b.txt"):
        project.write(name, "A text.")
    return project


def test_a_shipped_skill_reads_below_the_roots_alone(files: Any) -> None:
    files.write("cogcli.toml", '[files]\nroots = ["in"]\n')
    files.run("run", "doc.digest", "-p", "path=in/a.txt", "-q").assert_ok()
    refused = files.run("run", "doc.digest", "-p", "path=other/a.txt")
    assert refused.code != 0
    assert "outside of `files.roots`" in refused.err
    del files.env["COGCLI_TRUST_PROJECT"]
    # No setting of a project counts before it is trusted.
    files.run("run", "doc.digest", "-p", "path=other/a.txt", "-q").assert_ok()


def test_the_user_and_the_project_both_bound(files: Any) -> None:
    user = files.home / ".config/cogcli/config.toml"
    user.parent.mkdir(parents=True)
    user.write_text(f'[files]\nroots = ["{files.root}/in"]\n')
    files.write("cogcli.toml", '[files]\nroots = ["other", "in"]\n')
    files.run("run", "doc.digest", "-p", "path=in/a.txt", "-q").assert_ok()
    assert files.run("run", "doc.digest", "-p", "path=other/a.txt").code != 0


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_functions_of_a_project_keep_them_by_the_sdk(files: Any, isolation: str) -> None:
    files.services(SOURCE)
    service = files.root / "services/local/demo.yaml"
    service.write_text(service.read_text().replace("thread", isolation))
    fields = {
        "inputs": "{path: {type: string, required: true}}",
        "outputs": "{path: {type: string}}",
    }
    files.capability(
        "t.file.keep",
        "keep",
        **fields,
        request="{path: input.path}",
        response="{path: response.path}",
    )
    files.skill(
        "t.keep",
        "- {id: keep, uses: t.file.keep, input: {path: inputs.path}, output: {path: outputs.path}}",
        **fields,
    )
    run = ("run", "t.keep", "-q", "-p")
    if isolation == "thread":
        files.run(*run, "path=other/a.txt").assert_ok()
    files.write("cogcli.toml", '[files]\nroots = ["in"]\nwrite_roots = ["out"]\n')
    files.run(*run, "path=in/a.txt").assert_ok()
    assert "files.roots" in files.run(*run, "path=other/a.txt").assert_exit(1).err
    files.write("cogcli.toml", '[files]\nwrite_roots = ["in"]\n')
    assert "files.write_roots" in files.run(*run, "path=in/a.txt").assert_exit(1).err
