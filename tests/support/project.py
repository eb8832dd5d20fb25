"""A project of a test's own, and the command in it: in the process of the test, or as it is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any, ClassVar, Final

from support import in_process
from support.checkpoints import vouch
from support.command_server import COGCLI, SECONDS, CommandServer

INSTALLED_ONLY: Final = bool(os.environ.get("COGCLI_TEST_INSTALLED"))
"""Whether every command runs as it is installed, whatever the test needs (`check.py --long` does so)."""


class Result:
    """What one command gave."""

    def __init__(self, arguments: tuple[str, ...], code: int, out: bytes, err: bytes) -> None:
        self.arguments = arguments
        self.code = code
        self.out_bytes = out
        self.err_bytes = err
        self.out = out.decode("utf-8")
        self.err = err.decode("utf-8")

    @property
    def json(self) -> Any:
        """Standard output as the JSON value it must be."""
        return json.loads(self.out)

    def assert_exit(self, code: int) -> Result:
        """Fail, showing both streams, unless the command ended with this code."""
        assert self.code == code, (
            f"{' '.join(self.arguments)}: exit {self.code}, expected {code}\n{self.out}\n{self.err}"
        )
        assert "Traceback" not in self.err or "--debug" in self.arguments, self.err
        return self

    def assert_ok(self) -> Result:
        """Fail unless the command succeeded."""
        return self.assert_exit(0)


class Project:
    """A project in a temporary directory; commands run in it with a home of their own.

    They keep compiled specs in `cache`, else in `warm`. Entries go by content, so all projects of a process share
    them and most commands are warm. A test of the cache itself deletes `XDG_CACHE_HOME` from `env`."""

    warm: ClassVar[Path | None] = None
    """A cache for all projects of this process (`conftest.py` sets it); without one each has its own at home."""
    server: ClassVar[CommandServer] = CommandServer()
    """Where commands of all projects of this process are forked (`conftest.py` closes it)."""

    def __init__(self, root: Path, cache: Path | None = None) -> None:
        cache = cache or self.warm
        self.root = root / "project"
        self.home = root / "home"
        self.root.mkdir()
        temporary = self.home / "temporary"
        temporary.mkdir(parents=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(temporary),
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "COGCLI_TRUST_PROJECT": "1",
            **{
                name: os.environ[name]
                for name in ("SYSTEMROOT", "PYTHONPYCACHEPREFIX")
                if name in os.environ
            },
            **({"XDG_CACHE_HOME": str(cache)} if cache else {}),
        }

    def copy_to(self, root: Path) -> Project:
        """Return another project under `root` with the files of this one, and with its home."""
        copy = Project(root)
        shutil.copytree(self.root, copy.root, symlinks=True, dirs_exist_ok=True)
        shutil.copytree(self.home, copy.home, symlinks=True, dirs_exist_ok=True)
        return copy

    def write(self, path: str, text: str | bytes) -> Path:
        """A file of the project; text is dedented."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            compiled.unlink()  # it goes by seconds and size, and a test may write twice in a second
        file.write_bytes(text if isinstance(text, bytes) else dedent(text).lstrip("\n").encode())
        return file

    def skill(
        self,
        id: str,
        steps: str,
        *,
        inputs: str = "{}",
        outputs: str = "{}",
        channel: str = "local",
    ) -> Path:
        """A skill with the YAML of its steps."""
        domain, slug = id.split(".")
        text = (
            f'id: {id}\nversion: "1.0.0"\nname: {slug}\ndescription: The skill {id}.\n'
            f"inputs: {inputs}\noutputs: {outputs}\nsteps:\n"
        )
        body = dedent(steps).strip("\n")
        text += "".join(f"  {line}\n" if line else "\n" for line in body.split("\n"))
        return self.write(f"skills/{channel}/{domain}/{slug}/skill.yaml", text.encode())

    def capability(
        self, id: str, function: str, *, inputs: str = "{text: {type: string, required: true}}",
        outputs: str = "{text: {type: string, required: true}}", extra: str = "",
        request: str = "{text: input.text}", response: str = "{text: response.text}",
    ) -> None:  # fmt: skip
        """A capability with a binding to a function of `demo_services`."""
        self.write(
            f"capabilities/{id}.yaml",
            f'id: {id}\nversion: "1.0.0"\ndescription: Calls {function}.\ninputs: {inputs}\noutputs: {outputs}\n'
            f"properties: {{side_effects: false}}\n{extra}",
        )
        name = id.replace(".", "_")
        self.write(
            f"bindings/local/{id}/{name}.yaml",
            f"id: {name}\ncapability: {id}\nservice: demo\nprotocol: pythoncall\noperation: {function}\n"
            f"request: {request}\nresponse: {response}\n",
        )

    def services(self, source: str) -> None:
        """The module behind the service `demo`."""
        self.write(
            "services/local/demo.yaml",
            "id: demo\nkind: pythoncall\nmodule: demo_services\nisolation: thread\n",
        )
        self.write("demo_services.py", source)

    def demo(self) -> Project:
        """Two small skills: `demo.greet` works, `demo.review` nests it and then fails."""
        self.services(
            """
            def upper(text: str) -> dict[str, object]:
                return {"text": text.upper()}

            def fail(text: str) -> dict[str, object]:
                raise ValueError("no luck with " + text)
            """
        )
        self.capability("demo.text.upper", "upper")
        self.capability("demo.text.score", "fail")
        text = "{text: {type: string, required: true}}"
        self.skill(
            "demo.greet",
            """
            - id: first
              uses: demo.text.upper
              input: {text: inputs.text}
              output: {text: vars.text}
            - id: second
              uses: demo.text.upper
              input: {text: vars.text}
              output: {text: outputs.text}
            """,
            inputs="{text: {type: string, required: true}, times: {type: integer, default: 2}}",
            outputs=text,
        )
        self.skill(
            "demo.review",
            """
            - id: inner
              uses: skill:demo.greet
              input: {text: inputs.text}
              output: {text: vars.text}
            - id: score
              uses: demo.text.score
              input: {text: vars.text}
              output: {text: vars.score}
            - id: report
              uses: demo.text.upper
              input: {text: vars.score}
              output: {text: outputs.text}
            """,
            inputs=text,
            outputs=text,
        )
        return self

    def run(
        self, *arguments: str, input: str | bytes | None = None, env: Mapping[str, str] | None = None,
        stdin_closed: bool = False,
    ) -> Result:  # fmt: skip
        """Run `cogcli` with these arguments in this process; stdin is empty unless given.

        Raises NeedsAProcess where a process of its own would make a difference; then use `installed`.
        """
        if INSTALLED_ONLY:
            return self.installed(*arguments, input=input, env=env, stdin_closed=stdin_closed)
        data = None if stdin_closed else input.encode() if isinstance(input, str) else input or b""
        gave = in_process.run(arguments, cwd=self.root, env={**self.env, **(env or {})}, data=data)
        return Result(arguments, *gave)

    def installed(
        self, *arguments: str, input: str | bytes | None = None, env: Mapping[str, str] | None = None,
        stdin_closed: bool = False,
    ) -> Result:  # fmt: skip
        """The same in a process of its own: the installed command, or in a short run one forked after its imports."""
        variables = {**self.env, **(env or {})}
        if INSTALLED_ONLY or stdin_closed or not self.server.can_serve(variables):
            return self.started(*arguments, input=input, env=env, stdin_closed=stdin_closed)
        data = input.encode() if isinstance(input, str) else input or b""
        return Result(arguments, *self.server.run(arguments, self.root, variables, data))

    def started(
        self, *arguments: str, input: str | bytes | None = None, env: Mapping[str, str] | None = None,
        stdin_closed: bool = False,
    ) -> Result:  # fmt: skip
        """The same with the installed command, whichever run of the tests it is."""
        data = input.encode() if isinstance(input, str) else input or b""
        shell = ("sh", "-c", 'exec "$0" "$@" <&-') if stdin_closed else ()
        done = subprocess.run(
            [*shell, COGCLI, *arguments],
            cwd=self.root,
            env={**self.env, **(env or {})},
            input=data,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        return Result(arguments, done.returncode, done.stdout, done.stderr)

    @property
    def episodes(self) -> list[Path]:
        """The directories of all episodes, newest first."""
        folder = self.root / ".cogcli" / "episodes"
        return (
            sorted((path for path in folder.glob("ep_*") if path.is_dir()), reverse=True)
            if folder.is_dir()
            else []
        )

    @property
    def episode(self) -> Path:
        """The directory of the newest episode."""
        return self.episodes[0]

    def cut_after(self, event_type: str) -> None:
        """Leave the newest episode as a crash right after its last event of this type would have."""
        episode = self.episode
        lines = (episode / "events.jsonl").read_bytes().splitlines(keepends=True)
        last = max(
            n for n, line in enumerate(lines) if json.loads(line)["event_type"] == event_type
        )
        (episode / "events.jsonl").write_bytes(b"".join(lines[: last + 1]))
        (episode / "learn.jsonl").write_bytes(b"")
        for name in ("state.json", "summary.json", "manifest.json"):
            (episode / name).unlink(missing_ok=True)
        vouch(episode, self.home)
