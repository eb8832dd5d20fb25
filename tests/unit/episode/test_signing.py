"""What stands behind an episode: nothing, a signature, a hash kept elsewhere. `verify` says which, no more."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from fakes.logged import is_clean

from cogcli.base.canonical import canonical
from cogcli.base.errors import ServiceResolutionError, UnusableEnvironment
from cogcli.base.redact import Redactor
from cogcli.base.system import FakeClock, FakeIds
from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.seal import seal
from cogcli.episode.signing import is_valid_signature, public_key, signer
from cogcli.episode.store import Store
from cogcli.episode.verify.check import level_of, verify
from cogcli.episode.verify.trusted import TrustAnchors

pytestmark = pytest.mark.sampled(2)


def pem(key: Any, *, password: bytes | None = None) -> bytes:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    data: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return data


def key_file(folder: Path, name: str = "key.pem", key: Any = None, mode: int = 0o600) -> Path:
    key = key or Ed25519PrivateKey.generate()
    file = folder / name
    file.write_bytes(pem(key))
    file.chmod(mode)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub").write_bytes(public)
    return file


def signed(folder: Path, key: Path) -> Path:
    ids = FakeIds(0)
    journal = Store(folder / "runs", sign=signer(str(key))).create(
        f"ep_{ids.ulid()}",
        trace_id=ids.trace_id(),
        clock=FakeClock(1_700_000_000),
        ids=ids,
        redactor=Redactor(),
    )
    sample.write_run(journal)
    seal(journal)
    journal.close()
    return journal.directory


def codes(directory: Path, **trusted: Any) -> set[str]:
    return {finding.code for finding in verify(directory, TrustAnchors(**trusted))}


def level(directory: Path, **trusted: Any) -> str:
    return level_of(verify(directory, TrustAnchors(**trusted)))


def head_of(directory: Path) -> str:
    head: str = json.loads((directory / "manifest.json").read_bytes())["chain"]["head"]
    return head


def test_a_signature_is_over_the_canonical_manifest_without_it(tmp_path: Path) -> None:
    directory = signed(tmp_path, key_file(tmp_path))
    manifest = json.loads((directory / "manifest.json").read_bytes())
    signature = manifest.pop("signature")
    assert list(signature) == ["alg", "key_id", "value"]
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["key_id"]))
    key.verify(bytes.fromhex(signature["value"]), canonical(manifest))


def test_each_level_says_what_it_proves(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    directory = signed(tmp_path, key)
    public = public_key(str(tmp_path / "key.pem.pub"))
    assert public == public_key(str(key))
    assert (level(directory), codes(directory)) == ("consistent", {"signature.unknown"})
    assert level(directory, key=public) == "signed"
    assert level(directory, head=head_of(directory)) == "anchored"
    assert level(directory, key=public, head=head_of(directory)) == "anchored"
    unsigned = sample.sealed_episode(tmp_path / "unsigned")
    assert (level(unsigned), codes(unsigned)) == ("consistent", {"signature.none"})


@pytest.mark.sampled(8)
@pytest.mark.slow
def test_every_bit_of_a_signed_manifest_is_held(tmp_path: Path) -> None:
    directory = signed(tmp_path, key_file(tmp_path))
    file = directory / "manifest.json"
    data = file.read_bytes()
    for place in range(0, len(data), 1 if "COGCLI_LONG_TESTS" in os.environ else 5):
        file.write_bytes(data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :])
        assert not is_clean(verify(directory)), place


def test_an_episode_written_anew_by_somebody_without_the_key_is_found(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    directory = signed(tmp_path, key)
    public = public_key(str(key))
    other = signed(tmp_path / "other", key_file(tmp_path, "other.pem"))
    assert "signature.other" in codes(other, key=public)
    assert "signature.missing" in codes(sample.sealed_episode(tmp_path / "unsigned"), key=public)
    forged = json.loads((other / "manifest.json").read_bytes())
    forged["signature"]["key_id"] = public
    (other / "manifest.json").write_bytes(to_bytes(forged))
    assert "signature.invalid" in codes(other, key=public)
    assert level(directory, key=public) == "signed"


@pytest.mark.parametrize("key", [0, 1, 1 << 255, 2**255 - 20, 2**255 - 19, 2**255 - 18])
def test_a_key_without_a_secret_signs_nothing(key: int) -> None:
    """Whatever the text: of the multiples of such a point there are at most eight."""
    named = {"alg": "ed25519", "key_id": key.to_bytes(32, "little").hex(), "value": "0" * 128}
    point = {**named, "value": named["key_id"] + "0" * 64}
    for n in range(32):
        assert not is_valid_signature({"n": n, "signature": named})
        assert not is_valid_signature({"n": n, "signature": point})


@pytest.mark.parametrize(
    "signature",
    [{}, "x", {"alg": "none", "key_id": "0" * 64, "value": "0" * 128}, {"alg": "ed25519", "key_id": "", "value": ""},
     {"alg": "ed25519", "key_id": "0" * 64, "value": "0" * 128},
     {"alg": "ed25519", "key_id": "0" * 64, "value": "0" * 128, "more": 1}],
)  # fmt: skip
def test_what_is_no_signature_is_found(tmp_path: Path, signature: Any) -> None:
    directory = sample.sealed_episode(tmp_path)
    manifest = json.loads((directory / "manifest.json").read_bytes())
    manifest["signature"] = signature
    (directory / "manifest.json").write_bytes(to_bytes(manifest))
    assert "signature.invalid" in codes(directory)


def test_a_head_kept_elsewhere_tells_a_log_written_anew(tmp_path: Path) -> None:
    directory = sample.sealed_episode(tmp_path / "one")
    other = sample.sealed_episode(tmp_path / "two", seed=500)
    assert "head.other" in codes(other, head=head_of(directory))
    assert level(other, head=head_of(directory)) == "altered"


def test_a_head_of_an_earlier_line_vouches_for_the_log_up_to_there(tmp_path: Path) -> None:
    directory = sample.sealed_episode(tmp_path)
    second = json.loads((directory / "events.jsonl").read_bytes().splitlines()[1])
    assert "head.earlier" in codes(directory, head=second["prev"])
    assert level(directory, head=second["prev"]) == "consistent"


def test_sealing_again_gives_the_same_bytes(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    directory = signed(tmp_path, key)
    before = (directory / "manifest.json").read_bytes()
    (directory / "manifest.json").unlink()
    journal = (
        Store(directory.parent, sign=signer(str(key)))
        .reopen(directory, clock=FakeClock(1_800_000_000), ids=FakeIds(9_000), redactor=Redactor())
        .journal
    )
    seal(journal)
    journal.close()
    assert (directory / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(UnusableEnvironment) as refused:
        signer(str(key_file(tmp_path, mode=mode)))
    assert (refused.value.code, refused.value.exit_code) == ("signing.key", 3)
    assert refused.value.hint.startswith("chmod 600")


def test_what_is_no_ed25519_key_is_refused(tmp_path: Path) -> None:
    ours, theirs = Ed25519PrivateKey.generate(), generate_private_key(SECP256R1())
    public = theirs.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    contents = {
        "elliptic": pem(theirs),
        "encrypted": pem(ours, password=b"secret"),
        "garbage": b"garbage",
        "empty": b"",
        "large": b"x" * 20_000,
        "public": public,
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
        (tmp_path / name).chmod(0o600)
        for read in (signer, public_key):
            with pytest.raises(UnusableEnvironment) as refused:
                read(str(tmp_path / name))
            assert refused.value.code == "signing.key", name
    for path in (tmp_path / "none", tmp_path, Path("\0")):
        with pytest.raises(UnusableEnvironment):
            signer(str(path))


def test_without_the_library_nothing_is_signed_and_a_signature_is_left_unchecked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_file(tmp_path)
    directory = signed(tmp_path, key)
    public = public_key(str(key))
    for name in [name for name in sys.modules if name.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for act in (
        lambda: signer(str(key)),
        lambda: public_key(str(tmp_path / "key.pem.pub")),
        lambda: verify(directory, TrustAnchors(public)),
    ):
        with pytest.raises(ServiceResolutionError) as refused:
            act()
        assert (refused.value.code, refused.value.hint) == (
            "env.extra",
            "pip install 'cogcli[sign]'",
        )
    assert codes(directory) == {"signature.unchecked"}
