"""`resume` and `verify --repair` sign what the user's key vouches for, and nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sealed import chained, events, forged
from support.project import Project


@pytest.fixture
def keys(demo: Any) -> tuple[dict[str, str], str]:
    """The environment of one who signs, and the public key."""
    secret, public = demo.home / "key.pem", demo.home / "key.pub.pem"
    make = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", secret]
    subprocess.run(make, check=True, capture_output=True)
    subprocess.run(
        ["openssl", "pkey", "-in", secret, "-pubout", "-out", public],
        check=True,
        capture_output=True,
    )
    secret.chmod(0o600)
    return {"COGCLI_SIGNING_KEY": str(secret)}, str(public)


def _manifest(project: Project) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((project.episode / "manifest.json").read_bytes())
    return document


def _forged_and_ended(project: Project) -> Path:
    """A forged run that has ended and was not sealed: the next command seals it."""
    project.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    folder = project.episode
    forged(folder)
    for name in ("manifest.json", "checkpoint.jsonl"):
        (folder / name).unlink()
    return folder


@pytest.mark.parametrize("command", [("verify", "@last", "--repair"), ("resume", "@last")])
def test_sealing_a_forged_log_signs_none_of_it(
    demo: Any, keys: tuple[dict[str, str], str], command: tuple[str, ...]
) -> None:
    env, public = keys
    folder = _forged_and_ended(demo)
    demo.run(*command, env=env).assert_ok()
    assert _manifest(demo)["signature"] is None
    refused = demo.run("verify", "@last", "--key", public, "--json", env=env).assert_exit(1).json
    assert refused["error"]["code"] == "signature.missing"
    shown = demo.run("verify", "@last", env=env).assert_ok().out
    assert f"{folder.name}  consistent, unsigned\n" in shown
    assert "nothing altered" not in shown


def test_resuming_a_forged_log_signs_only_what_comes_after(
    demo: Any, keys: tuple[dict[str, str], str]
) -> None:
    env, public = keys
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    folder = demo.episode
    kinds = [event["event_type"] for event in events(folder)]
    kept = 1 + kinds.index("step.completed")
    log = [json.loads(json.dumps(event).replace('"HI"', '"HO"')) for event in events(folder)][:kept]
    chained(folder, log)
    for name in ("state.json", "summary.json", "manifest.json", "checkpoint.jsonl"):
        (folder / name).unlink()
    (folder / "learn.jsonl").write_bytes(b"")
    demo.run("resume", "@last", env=env).assert_ok()
    manifest = _manifest(demo)
    assert manifest["unsigned"] == [[0, kept - 1]]
    assert manifest["signature"]["alg"] == "ed25519"
    for flags in ((), ("--key", public)):
        shown = demo.run("verify", "@last", *flags, env=env).assert_ok().out
        assert f"except events 0 to {kept - 1}" in shown
        assert f"{folder.name}  consistent, vouched for in part\n" in shown
        assert "nothing altered" not in shown
    refused = (
        demo.run("verify", "@last", "--key", public, "--require-signature", "--json")
        .assert_exit(1)
        .json
    )
    assert refused["error"]["code"] == "signature.missing"
    manifest["unsigned"] = []
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    assert demo.run("verify", "@last", "--key", public).assert_exit(1)


def test_a_rerun_warns_of_results_that_nothing_vouches_for(
    demo: Any, keys: tuple[dict[str, str], str]
) -> None:
    env, _ = keys
    step = "- {{id: {0}, uses: demo.text.upper, input: {{text: {1}}}, output: {{text: {2}}}}}"
    steps = [
        step.format("one", "inputs.text", "vars.one"),
        step.format("two", "vars.one", "outputs.text"),
    ]
    demo.skill(
        "demo.twice",
        "\n".join(steps),
        inputs="{text: {type: string}}",
        outputs="{text: {type: string}}",
    )
    demo.run("run", "demo.twice", "-p", "text=hi", env=env).assert_ok()
    own = demo.run("rerun", "@last", "--from", "two", "--json", env=env).assert_ok()
    assert own.json["warnings"] == []
    folder = demo.episode
    chained(
        folder, [json.loads(json.dumps(event).replace('"HI"', '"HO"')) for event in events(folder)]
    )
    (folder / "checkpoint.jsonl").unlink()
    again = demo.run("rerun", "@last", "--from", "two", "--json", env=env).assert_ok()
    (warning,) = again.json["warnings"]
    assert warning["code"] == "resume.untrusted"
    assert "results of one, which are reused" in warning["message"]
    assert demo.run("rerun", "@last", "--json", env=env).assert_ok().json["warnings"] == []


def test_a_signed_pause_can_be_checked_by_others_and_is_signed_whole_at_the_end(
    demo: Any, keys: tuple[dict[str, str], str], tmp_path: Path
) -> None:
    env, public = keys
    guarded = "demo.text.guarded"
    demo.capability(guarded, "upper", extra="safety: {requires_confirmation: true}\n")
    call = f'- {{id: ask, uses: {guarded}, input: {{text: "x"}}, output: {{text: outputs.text}}}}'
    demo.skill("demo.waits", call, outputs="{text: {type: string}}")
    demo.run("run", "demo.waits", env=env).assert_exit(5)
    other = {"XDG_CONFIG_HOME": str(tmp_path / "another-user")}
    required = ("verify", "@last", "--key", public, "--require-signature")
    assert "nothing altered, not sealed" in demo.run(*required, env=other).assert_ok().out
    demo.run("resume", "@last", "--approve", guarded, env=env).assert_ok()
    assert "unsigned" not in _manifest(demo)
    assert "nothing altered\n" in demo.run(*required, env=other).assert_ok().out


def test_an_own_run_that_was_not_signed_before_is_signed_by_its_owner(
    demo: Any, keys: tuple[dict[str, str], str]
) -> None:
    env, public = keys
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    (demo.episode / "manifest.json").unlink()
    demo.run("verify", "@last", "--repair", env=env).assert_ok()
    assert "nothing altered" in demo.run("verify", "@last", "--key", public).assert_ok().out
