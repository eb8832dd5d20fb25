"""What the process of a hook and the server of its session have in common (docs/reference/hosts.md#protocol).

A host starts a process for each call of a tool. So this module imports nothing that such a process does not need.
"""

import json
import os
import socket
import struct
import sys

MOST_BYTES = 16 * 1024 * 1024
"""The most bytes of the input of a hook."""
GREETING = b"cogcli-hook/1\n"
"""The first bytes from the server. After reading them, a process may send its request, once."""
SECONDS = {"claude-code": 55, "cursor": 55, "gemini-cli": 55, "codex": 55, "copilot": 25}
"""The seconds after which a hook denies, by host. The host's own limit is longer."""
SESSION_MEMBERS = {
    "claude-code": "session_id",
    "cursor": "conversation_id",
    "gemini-cli": "session_id",
    "codex": "session_id",
    "copilot": "sessionId",
}
"""By host: the member of the input with the id of the session."""
PROJECT_VARIABLES = {
    "claude-code": "CLAUDE_PROJECT_DIR",
    "cursor": "CURSOR_PROJECT_DIR",
    "gemini-cli": "GEMINI_PROJECT_DIR",
    "codex": "",
    "copilot": "",
}
"""By host: the variable with the directory of the project. Empty if the host sets none."""


def render_decision(host: str, is_allowed: bool, reason: str) -> tuple[str, int]:
    """Return a hook's text for stdout, and its exit code: 0, or 2 for a denial. For Copilot the code is always 0,
    because Copilot reads the decision from stdout only.
    """
    word = "allow" if is_allowed else "deny"
    body: dict[str, object]
    if host == "cursor":
        body = {"permission": word}
        if not is_allowed:
            body |= {"user_message": reason, "agent_message": reason}
    elif host == "gemini-cli":
        body = {"decision": word} if is_allowed else {"decision": word, "reason": reason}
    elif host == "copilot":
        body = {"permissionDecision": word, "permissionDecisionReason": reason}
        return json.dumps(body), 0
    elif host == "codex" and is_allowed:
        body = {}  # its parser is strict, and an empty object lets the call run
    else:
        decision = {"permissionDecision": word, "permissionDecisionReason": reason}
        body = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}
    return json.dumps(body), 0 if is_allowed else 2


def state_folder(environ: "os._Environ[str] | dict[str, str]") -> str:
    """Return the folder of the sockets: `hooks` in the user's state directory.

    The directory is that of `cogcli.app.settings.user_dirs`, whose modules take longer to load than a hook may.
    """
    named = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(named):
        return os.path.join(named, "cogcli", "hooks")
    home = environ.get("HOME") or _home_of_user()
    middle = "Library/Application Support" if sys.platform == "darwin" else ".local/state"
    return os.path.join(home, middle, "cogcli", "hooks")


def _home_of_user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.sep


def require_private(folder: str) -> None:
    """Make a folder that only this user can enter. Raise OSError if it is not one."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or not (found.st_mode & 0o40000):
        raise PermissionError(f"{folder} is not a folder of this user alone: chmod 700 it")


def is_own_peer(connection: socket.socket) -> bool:
    """Return whether the process at the other end belongs to this user. False if the system does not report the
    user.
    """
    try:
        if hasattr(socket, "SO_PEERCRED"):
            packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return bool(struct.unpack("iII", packed)[1] == os.getuid())
        if sys.platform == "darwin":
            packed = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: struct xucred
            return bool(struct.unpack_from("II", packed)[1] == os.getuid())
    except (OSError, struct.error):
        pass
    return False
