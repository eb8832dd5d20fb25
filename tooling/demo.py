"""Run a shipped skill on a real PDF and show what it leaves: outputs, the episode, its verified state."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COGCLI = Path(sys.executable).parent / "cogcli"
DOCUMENT = "docs/samples/trial-report.pdf"


def main() -> int:
    print(f"$ cogcli run pdf.brief -p path={DOCUMENT}", flush=True)
    run = _cogcli("run", "pdf.brief", "-p", f"path={DOCUMENT}", "--json", "-q")
    envelope = json.loads(run.stdout)
    if run.returncode != 0:
        print(run.stdout)
        return run.returncode
    print(json.dumps(envelope["outputs"], indent=2, ensure_ascii=False))
    episode = envelope["episode_id"]
    for command in (["trace", episode], ["verify", episode], ["state", "show", episode, "--check"]):
        print(f"\n$ cogcli {' '.join(command)}", flush=True)
        shown = _cogcli(*command)
        print(shown.stdout + shown.stderr, end="")
        if shown.returncode != 0:
            return shown.returncode
    print(f"\nThe episode is in {envelope['dir']}; try: jq .outcomes {envelope['dir']}/state.json")
    return 0


def _cogcli(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(COGCLI), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
