"""The part of typer that is loaded, and the rest of it, which may be needed later."""

from __future__ import annotations

import subprocess
import sys

import pytest

IN_TURN = {
    "a name of the package": "import typer; typer.Typer(); assert typer.core is core",
    "a name imported from it": "from typer import Typer; Typer(); import typer.main",
    "its completion": "from typer.completion import shell_complete; import typer; typer.Option()",
    "a name that it lacks": "import typer; assert not hasattr(typer, 'no_such_name'); typer.Typer()",
}


@pytest.mark.parametrize("later", IN_TURN.values(), ids=IN_TURN)
def test_the_rest_of_typer_is_loaded_when_it_is_used(later: str) -> None:
    script = "\n".join(
        [
            "import sys; from cogcli.cli import typer_core; from typer import core",
            "assert 'typer.main' not in sys.modules",
            later,
            "assert 'typer.main' in sys.modules",
            "assert core.TyperCommand is typer_core.TyperCommand",
            "assert issubclass(sys.modules['typer'].BadParameter, typer_core.UsageError)",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_typer_that_is_loaded_already_stays() -> None:
    script = "import typer; from cogcli.cli import typer_core; assert typer.Typer().info"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
