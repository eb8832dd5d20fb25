"""What settings and trust give to every call: one place, so that no entry point forgets a part of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cogcli.app.run_skill import environment_of
from cogcli.app.services import build_call_context
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError
from cogcli.base.redact import Redactor
from cogcli.protocols.invoker import InvokerContext
from cogcli.run.launch import build_live_runner
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions


def settings_of(tmp_path: Path, *, trusted: bool) -> Settings:
    project = tmp_path / "project"
    project.mkdir()
    (project / "cogcli.toml").write_text("")
    environ = {"HOME": str(tmp_path), **({"COGCLI_TRUST_PROJECT": "1"} if trusted else {})}
    return Settings({}, environ, base=str(project))


def contexts(settings: Settings) -> list[InvokerContext]:
    """Those of a run and of `services refresh`."""
    environment = environment_of(settings)
    runner = build_live_runner(environment, Catalog(), SelectionOptions({}, None, {}), Redactor(()))
    return [runner._context, build_call_context(settings)]


def test_every_call_of_an_untrusted_project_reads_only_its_files(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, trusted=False)
    (tmp_path / "outside.txt").write_text("x")
    for context in contexts(settings):
        assert context.reads is not None
        assert context.reads.folder == str(tmp_path / "project")
        with pytest.raises(CogcliError, match="is not read"):
            context.reads.checked_path(str(tmp_path / "outside.txt"))


def test_a_trusted_project_reads_any_file(tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("x")
    for context in contexts(settings_of(tmp_path, trusted=True)):
        assert context.reads is not None
        assert context.reads.folder == ""
        assert context.reads.checked_path(str(tmp_path / "outside.txt")) == str(
            tmp_path / "outside.txt"
        )


def test_files_named_on_the_command_line_may_be_read(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, trusted=False)
    named = tmp_path / "named.txt"
    named.write_text("x")
    reads = environment_of(settings).reads
    assert reads is not None
    reads = reads.with_typed([{"paths": [str(named)]}])
    assert reads.checked_path(str(named)) == str(named)


def test_a_pipe_or_device_that_is_named_is_refused_as_what_it_is(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, trusted=False)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "elsewhere").mkdir()
    reads = environment_of(settings).reads
    assert reads is not None
    reads = reads.with_typed([str(pipe), "/dev/null", str(tmp_path / "elsewhere")])
    for path, kind in ((str(pipe), "a named pipe"), ("/dev/null", "a device")):
        with pytest.raises(CogcliError) as refused:
            reads.checked_path(path)
        assert (refused.value.code, refused.value.message) == (
            "call.rejected",
            f"`{path}` is {kind}, not a regular file",
        )
    below = str(tmp_path / "elsewhere/below.txt")
    assert reads.checked_path(below) == below
    with pytest.raises(CogcliError, match="not trusted"):
        reads.checked_path(str(tmp_path))
    with pytest.raises(
        CogcliError, match="not trusted"
    ):  # nobody named it: what it is stays untold
        reads.checked_path("/dev/zero")
