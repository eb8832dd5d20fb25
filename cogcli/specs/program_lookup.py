"""Finding the program of an MCP service without starting it (docs/reference/protocols.md#mcp-stdio)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import NamedTuple

from cogcli.specs.id_grammar import PLACEHOLDER
from cogcli.specs.service import Service


class ProgramFault(NamedTuple):
    """Why a program cannot be started: the key of the service at fault, a message, a hint."""

    key: str
    text: str
    hint: str


def find_program_fault(service: Service, environ: Mapping[str, str]) -> ProgramFault | None:
    """Why the program of a service cannot be started; None where it can, there is none, or it is not known."""
    command, directory = service.settings.get("command"), service.settings.get("cwd") or ""
    search = (service.settings.get("env") or {}).get("PATH") or environ.get("PATH", os.defpath)
    if not command or PLACEHOLDER.search(search):
        return None
    place = os.path.join(service.root, directory)
    if not os.path.isdir(place):
        hint = "write it relative to the directory that holds services/"
        return ProgramFault("cwd", f"there is no directory `{directory}` to start `{command}` in", hint)
    named = os.path.join(place, command) if os.path.dirname(command) else command
    if shutil.which(named, path=search) is not None:
        return None
    if os.path.dirname(command) and os.path.isfile(named):
        return ProgramFault(
            "command", f"program `{command}` may not be started", f"chmod u+x {os.path.normpath(named)}"
        )
    hint = "install it, or put it on the PATH"
    if " " in command:
        hint = f"command names one program: write command: {command.split()[0]}, and the rest as args"
    elif os.path.dirname(command):
        hint = "write it relative to cwd, else to the directory that holds services/"
    return ProgramFault("command", f"program `{command}` is not found", hint)
