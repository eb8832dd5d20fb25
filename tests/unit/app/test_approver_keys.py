"""Whose signature counts (`app/settings/approvers.py`): keys, times, roles and files, with the real program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.ssh_keys import make_key, person, require_ssh

from cogcli.app.settings import Settings
from cogcli.app.settings.approvers import ApproverKeys, explain_change_by_others
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.ssh_signatures import fingerprint_of, fingerprint_of_key, sign
from cogcli.policy.approvals import NAMESPACE, AnswerStatement, SignedAnswer

AT = "2026-06-01T12:00:00.000000Z"
STATEMENT = AnswerStatement("ap_1", True, "ann", "finance", "sha256:aa", "sha256:bb")


class Desk:
    """A home with settings, and two keys."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / ".config/cogcli/config.toml"
        self.file.parent.mkdir(parents=True)
        self.ann, self.bob = make_key(home / "ann"), make_key(home / "bob")
        self.environ = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC"}

    def keys(self, text: str, environ: Mapping[str, str] | None = None) -> ApproverKeys:
        self.file.write_text(text)
        return ApproverKeys(Settings({}, environ or self.environ, base=str(self.home)))

    def signed(
        self, statement: AnswerStatement = STATEMENT, key: str = "ann", namespace: str = NAMESPACE
    ) -> SignedAnswer:
        path = str(self.home / key)
        return SignedAnswer(statement, sign(statement.to_bytes(), path, namespace, self.environ))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    require_ssh()
    return Desk(tmp_path)


def test_a_signature_counts_for_what_was_signed_alone(desk: Desk) -> None:
    keys = desk.keys(person("ann", desk.ann) + person("bob", desk.bob, roles='"finance"'))
    good = desk.signed()
    assert keys.find_rejection_reason(good, AT) == ""
    assert keys.judge(good, AT).code == "approval.signed"
    others = {
        "granted": False, "role": "", "action_hash": "sha256:cc", "evidence_hash": "sha256:cc",
        "approval_id": "ap_2",
    }  # fmt: skip
    for name, value in others.items():
        other = good._replace(statement=STATEMENT._replace(**{name: value}))
        assert "does not fit" in keys.find_rejection_reason(other, AT), name
        assert keys.judge(other, AT)[:2] == ("approval.forged", "error"), name
    another_person = good._replace(statement=STATEMENT._replace(by="bob"))
    assert keys.find_rejection_reason(another_person, AT)
    assert "another purpose" in keys.find_rejection_reason(desk.signed(namespace="git"), AT)
    assert "not one of theirs" in keys.find_rejection_reason(desk.signed(key="bob"), AT)
    swapped = good._replace(signature=desk.signed(STATEMENT._replace(role="")).signature)
    assert "does not fit" in keys.find_rejection_reason(swapped, AT)
    for text in ("", "yes", good.signature[:-40], good.signature.replace("SSH SIG", "PGP SIG")):
        assert "not a signature" in keys.find_rejection_reason(good._replace(signature=text), AT)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("", ""),
        ('valid-before="20260701" ', ""),
        ('valid-before="20260101" ', "not valid then"),
        ('valid-after="20260701" ', "not valid then"),
        ('valid-after="20260101",valid-before="20260701" ', ""),
        (f'namespaces="{NAMESPACE}" ', ""),
        ('namespaces="git" ', "another purpose"),
    ],
)
def test_a_key_counts_within_its_time_and_for_its_purpose(
    desk: Desk, options: str, why: str
) -> None:
    found = desk.keys(person("ann", options + desk.ann)).find_rejection_reason(desk.signed(), AT)
    assert why in found
    assert bool(why) == bool(found)


def test_a_revoked_key_never_counts_whoever_has_it(desk: Desk) -> None:
    text = person("ann", desk.ann) + person("bob", desk.bob, revoked=desk.bob)
    keys = desk.keys(text)
    assert keys.find_rejection_reason(desk.signed(), AT) == ""
    of_bob = STATEMENT._replace(by="bob")
    assert "revoked" in keys.find_rejection_reason(desk.signed(of_bob, "bob"), AT)
    assert keys.judge(desk.signed(of_bob, "bob"), AT).severity == "error"


def test_a_person_needs_the_role_and_the_very_name(desk: Desk) -> None:
    keys = desk.keys(person("ann", desk.ann, roles='"support"'))
    assert "no role `finance`" in keys.find_rejection_reason(desk.signed(), AT)
    cyrillic = desk.signed(STATEMENT._replace(by="\u0430nn"))
    assert "`ann` is written otherwise" in keys.find_rejection_reason(cyrillic, AT)
    unknown = keys.judge(desk.signed(STATEMENT._replace(by="eve")), AT)
    assert unknown[:2] == ("approval.unknown", "warning")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[approvers.'a:b']\n", "not a name"),
        ("[approvers.ann]\n[approvers.'\u0430nn']\n", "look alike"),
        ("[approvers.ann]\nkeys = ['KEY']\n[approvers.bob]\nkeys = ['KEY']\n", "the same key"),
        ("[approvers.ann]\nkeys = ['* KEY']\n", "is not a line"),
        ("[approvers.ann]\nkeys = ['cert-authority KEY']\n", "is not a line"),
        ("[approvers.ann]\nkeys = ['ssh-ed25519 QUFB']\n", "is not a line"),
        ("[approvers.ann]\nkeys = 'KEY'\n", "expected tables"),
        ("[approvers.ann]\nrole = ['x']\n", "expected tables"),
        ("approvers = 'ann'\n", "expected tables"),
    ],
)
def test_settings_that_name_nobody_for_sure_count_for_nobody(
    desk: Desk, text: str, why: str
) -> None:
    keys = desk.keys(text.replace("KEY", desk.ann))
    assert why in keys.find_rejection_reason(desk.signed(), AT)
    assert keys.judge(desk.signed(), AT).severity != "info"


def test_settings_that_others_can_change_count_for_nobody(desk: Desk, tmp_path: Path) -> None:
    text = person("ann", desk.ann)
    desk.keys(text)
    desk.file.chmod(0o620)
    assert "other users can write" in desk.keys(text).find_rejection_reason(desk.signed(), AT)
    desk.file.chmod(0o600)
    desk.file.parent.chmod(0o770)
    assert "other users can write" in desk.keys(text).find_rejection_reason(desk.signed(), AT)
    desk.file.parent.chmod(0o700)
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    shared.chmod(0o770)
    real = desk.file.rename(shared / "config.toml")
    desk.file.symlink_to(real)  # a link is followed to where others can write
    found = ApproverKeys(Settings({}, desk.environ, base=str(desk.home)))
    assert "other users can write" in found.find_rejection_reason(desk.signed(), AT)
    shared.chmod(0o700)
    found = ApproverKeys(Settings({}, desk.environ, base=str(desk.home)))
    assert found.find_rejection_reason(desk.signed(), AT) == ""
    assert explain_change_by_others(str(tmp_path / "absent"))


def test_without_the_program_nothing_counts_and_nothing_is_signed(desk: Desk) -> None:
    without = {**desk.environ, "PATH": "/nowhere"}
    good = desk.signed()
    keys = desk.keys(person("ann", desk.ann), without)
    assert "`ssh-keygen`, which is not on PATH" in keys.find_rejection_reason(good, AT)
    assert keys.judge(good, AT)[:2] == ("approval.unknown", "warning")
    folder = desk.home / "bin"
    folder.mkdir()
    (folder / "ssh-keygen").write_text("#!/bin/sh\nexit 0\n")
    (folder / "ssh-keygen").chmod(0o755)
    silent = desk.keys(person("ann", desk.ann), {**desk.environ, "PATH": str(folder)})
    assert silent.find_rejection_reason(good, AT), (
        "a program that only ends well says nothing about a key"
    )
    cwd = os.getcwd()
    os.chdir(desk.home)
    try:
        relative = desk.keys(person("ann", desk.ann), {**desk.environ, "PATH": "bin:"})
        assert "not on PATH" in relative.find_rejection_reason(good, AT)
    finally:
        os.chdir(cwd)
    for key, environ in (("ann", without), ("absent", desk.environ), ("ann.txt", desk.environ)):
        (desk.home / "ann.txt").write_text("no key")
        with pytest.raises(UnusableEnvironment) as refused:
            sign(b"x", str(desk.home / key), NAMESPACE, environ)
        assert refused.value.code == "signing.ssh"


def test_a_project_names_no_approvers_and_opens_no_episodes(tmp_path: Path) -> None:
    (tmp_path / "cogcli.toml").write_text(
        '[approvers.eve]\nroles = ["finance"]\n\n[episodes]\nmode = "group"\n'
    )
    environ = {"HOME": str(tmp_path / "home"), "COGCLI_TRUST_PROJECT": "1"}
    settings = Settings({}, environ, base=str(tmp_path))
    messages = [problem.message for problem in settings.problems]
    assert any("cannot say whose signatures count" in text for text in messages)
    assert any("cannot say who may use your episodes" in text for text in messages)
    assert settings.with_origin("episodes.mode")[0] == "private"
    assert settings.with_origin("approvers")[0] == {}
    with pytest.raises(CogcliError):
        settings.value("approvers")


def test_a_fingerprint_is_that_of_the_program(desk: Desk) -> None:
    named = fingerprint_of(desk.signed().signature)
    assert named.startswith("SHA256:")
    assert named == fingerprint_of_key(desk.ann)
    assert fingerprint_of_key(f'valid-before="20270101" {desk.ann}') == named
    for text in ("", "ann " + desk.ann, desk.ann + "\n" + desk.bob, "ssh-ed25519 !", "x y z"):
        assert fingerprint_of_key(text) == "", text
