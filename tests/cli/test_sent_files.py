"""Files in requests: which may be sent, what a person sees of them, and that nothing else is opened
(docs/reference/spec-files.md#file-inputs, docs/reference/protocols.md#files).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.asgi import serving_app
from support.project import Project
from support.service_app import app, photos

from cogcli.base.pinned_file import pin_file
from cogcli.declarations.field_spec import FieldSpec
from cogcli.protocols.http.open_files import OpenFiles
from cogcli.protocols.pythoncall.readable_files import ReadableFiles
from cogcli.run.file_inputs import FileScope, pin_inputs
from cogcli.run.input_origins import CALLER, CLIENT, FILE, TYPED

CANARY = b"canary-8f31c2d7e9-bytes\0\xff\r\n--x"
DIGEST = hashlib.sha256(CANARY).hexdigest()
FORGED = {"path": "/etc/hostname", "name": "hostname", "bytes": 1, "sha256": "0" * 64}
STEP = """
- id: send
  uses: desk.photo
  input: {{picture: {picture}, title: Cat}}
  output: {{result: outputs.answer}}
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving_app(app) as url:
        yield url


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, warm_cache: Path, address: str) -> Project:
    """A project that sends a photo, with the photo `cat.png`. Each test has a copy: to make one takes a second."""
    project = Project(tmp_path_factory.mktemp("template"), warm_cache)
    project.run("new", "project", ".").assert_ok()
    document = app.openapi()
    kept = {key: document["paths"][key] for key in ("/photos", "/blobs/{key}", "/pictures")}
    project.write("api.json", json.dumps({**document, "paths": kept}))
    words = ("new", "binding", "desk", "--from-openapi", "api.json", "--all", "--base-url", address)
    project.run(*words).assert_ok()
    project.write("cat.png", CANARY)
    send(project, "inputs.photo")
    return project


@pytest.fixture
def desk(template: Project, tmp_path: Path) -> Project:
    photos.clear()
    return template.copy_to(tmp_path)


def send(project: Project, picture: str, photo: str = "{type: file, required: true}") -> None:
    """The skill `demo.send`."""
    inputs = f"{{photo: {photo}}}"
    steps = STEP.format(picture=picture)
    project.skill("demo.send", steps, inputs=inputs, outputs="{answer: {type: any}}")


def told(project: Project, *words: str, exit: int = 2) -> str:
    """What a run of the skill that must fail says."""
    return project.run("run", "demo.send", *words).assert_exit(exit).err


def ask_before_each_call(project: Project) -> None:
    path = project.root / "capabilities/desk.photo.yaml"
    path.write_text(path.read_text() + "safety: {requires_confirmation: true}\n")


@pytest.mark.sampled(6)
def test_a_typed_file_is_sent_and_only_its_digest_is_logged(desk: Project) -> None:
    for given in ("photo=@cat.png", "photo=cat.png", 'photo:="cat.png"'):
        answer = desk.run("run", "demo.send", "-p", given).assert_ok().json["answer"]
        want = {"name": "cat.png", "type": "image/png", "bytes": len(CANARY), "sha256": DIGEST}
        assert answer["picture"] == want
    logs = [path.read_bytes() for path in desk.root.glob(".cogcli/**/*") if path.is_file()]
    assert not any(b"canary" in data for data in logs)
    logs = [path.read_text() for path in desk.root.glob(".cogcli/episodes/ep_*/events.jsonl")]
    pinned = json.loads(logs[0].partition("\n")[0])["payload"]["inputs"]["photo"]
    assert pinned.pop("path") == str(desk.root / "cat.png")
    assert pinned == {"name": "cat.png", "bytes": len(CANARY), "sha256": DIGEST}
    (desk.root / "cat.png").unlink()
    desk.run("replay", "@last").assert_ok()
    desk.run("verify", "@last").assert_ok()


@pytest.mark.sampled(6)
def test_lists_of_files_bytes_and_ranges_of_types_are_sent(desk: Project) -> None:
    desk.write("large.bin", b"\0" * 3_000_000)
    steps = """
    - id: photo
      uses: desk.photo
      input: {picture: inputs.one, title: Cat, more: inputs.more}
      output: {result: outputs.photo}
    - id: blob
      uses: desk.blob
      input: {key: {$literal: ab}, body: inputs.one}
      output: {result: outputs.blob}
    - id: image
      uses: desk.image
      input: {body: inputs.one}
      output: {result: outputs.image}
    - id: each
      uses: desk.image
      config: {foreach: {items: inputs.more}}
      input: {body: item}
      output: {result: outputs.each}
    """
    inputs = "{one: {type: file, required: true}, more: {type: array, required: true, items: {type: file}}}"
    outputs = "{photo: {type: any}, blob: {type: any}, image: {type: any}, each: {type: any}}"
    desk.skill("demo.all", steps, inputs=inputs, outputs=outputs)
    desk.run("validate", "--strict").assert_ok()
    given = json.dumps({"one": "cat.png", "more": ["large.bin", "cat.png"]})
    found = desk.run("run", "demo.all", "--input", given).assert_ok().json
    assert [each["bytes"] for each in found["photo"]["more"]] == [3_000_000, len(CANARY)]
    want = {"length": str(len(CANARY)), "bytes": len(CANARY), "sha256": DIGEST}
    assert found["blob"] == {"key": "ab", "type": "application/octet-stream", **want}
    assert found["image"] == {"type": "image/png", **want}
    assert [each["type"] for each in found["each"]] == ["application/octet-stream", "image/png"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ['a"b\r\nX-Evil: 1\r\n.png', "smörgås 写真.png", "a;b\\c%22.png"])
def test_any_name_of_a_file_stays_within_its_part(desk: Project, name: str) -> None:
    desk.write(name, CANARY)
    answer = desk.run("run", "demo.send", "-p", f"photo={name}").assert_ok().json["answer"]
    assert answer["title"] == "Cat"
    sent = answer["picture"]["name"]
    assert (sent == name) or (sent.isprintable() and "\n" not in sent)
    assert answer["picture"]["sha256"] == DIGEST


@pytest.mark.sampled(6)
def test_what_is_no_regular_file_of_a_sane_size_is_refused_before_anything_runs(
    desk: Project,
) -> None:
    os.mkfifo(desk.root / "pipe")
    with (desk.root / "huge").open("wb") as huge:
        huge.truncate((1 << 30) + 1)
    assert "is a named pipe" in told(desk, "-p", "photo=pipe")
    assert "is a directory" in told(desk, "-p", "photo=capabilities")
    assert "is a device" in told(desk, "-p", "photo=/dev/zero")
    assert "`nothing` does not exist" in told(desk, "-p", "photo=nothing")
    assert "no file has such a name" in told(desk, "-p", "photo=")
    assert "input.size" in told(desk, "-p", "photo=huge")
    assert "expected the path of a file" in told(desk, "-p", f"photo:={json.dumps(FORGED)}")
    assert "expected the path of a file" in told(desk, "--input", json.dumps({"photo": FORGED}))
    assert "stdin is none" in told(desk, "-p", "photo=@-")
    assert "input.missing" in told(desk)
    assert not list(desk.root.glob(".cogcli/episodes/ep_*"))


@pytest.mark.sampled(6)
def test_a_path_that_no_person_typed_stays_in_the_project(desk: Project) -> None:
    outside = desk.home / "secret.txt"
    outside.write_text("private")
    (desk.root / "link.txt").symlink_to(outside)
    (desk.root / "inner.png").symlink_to("cat.png")
    desk.write(".git/config", "[core]")
    desk.write("in.json", json.dumps({"photo": str(outside)}))
    assert "is not a file of the project" in told(desk, "--input-file", "in.json")
    for default in ("link.txt", ".git/config"):
        send(desk, "inputs.photo", f"{{type: file, default: {default}}}")
        assert "is not a file of the project" in told(desk)
    for default in ("../home/secret.txt", str(outside)):
        send(desk, "inputs.photo", f"{{type: file, default: {default}}}")
        assert "field.default" in told(desk, exit=3)
    send(desk, "inputs.photo", "{type: file, default: inner.png}")
    answer = desk.run("run", "demo.send").assert_ok().json["answer"]
    assert answer["picture"]["sha256"] == DIGEST
    typed = desk.run("run", "demo.send", "-p", "photo=link.txt").assert_ok().json["answer"]
    assert typed["picture"]["name"] == "link.txt"


def test_the_default_of_a_file_counts_only_for_the_skill_that_is_run(desk: Project) -> None:
    photo = "{type: file, default: cat.png}"
    send(desk, "inputs.photo", photo)
    for name, given in (("alone", "{}"), ("passes", "{photo: inputs.photo}")):
        step = f"- {{id: send, uses: 'skill:demo.send', input: {given}, output: {{answer: outputs.answer}}}}"
        outputs = "{answer: {type: any}}"
        desk.skill(f"demo.{name}", step, inputs=f"{{photo: {photo}}}", outputs=outputs)
    photos.clear()
    refused = desk.run("run", "demo.alone").assert_exit(1).err
    assert "picture" in refused
    assert not photos
    answer = desk.run("run", "demo.passes").assert_ok().json["answer"]
    assert answer["picture"]["sha256"] == DIGEST


@pytest.mark.sampled(3)
def test_a_value_of_the_same_form_opens_no_file(desk: Project) -> None:
    """Data from a step, in a loop and as a literal: the form of a file makes none."""
    desk.services(
        f"def forge(text: str) -> dict[str, object]:\n    return {{'files': [{FORGED!r}]}}\n"
    )
    desk.capability(
        "demo.forge", "forge", outputs="{files: {type: any}}", response="{files: response.files}"
    )
    forge = "- {id: forge, uses: demo.forge, input: {text: x}, output: {files: vars.files}}"
    both = "{answer: {type: any}}"
    step = (
        "{id: s, uses: desk.image, input: {body: vars.files.0}, output: {result: outputs.answer}}"
    )
    direct = f"{forge}\n- {step}"
    desk.skill("demo.direct", direct, outputs=both)
    refused = desk.run("run", "demo.direct").assert_exit(3).err
    assert "`vars.files.0` is any, `body` wants file" in refused
    loop = (
        f"{forge}\n- {{id: s, uses: desk.image, config: {{foreach: {{items: vars.files}}}},"
        " input: {body: item}, output: {result: outputs.answer}}"
    )
    desk.skill("demo.loop", loop, outputs=both)
    assert (
        "no file that an input of this run gave" in desk.run("run", "demo.loop").assert_exit(1).err
    )
    send(desk, json.dumps({"$literal": FORGED}))
    failed = told(desk, "-p", "photo=cat.png", exit=1)
    assert "`/etc/hostname`, which is no file that an input of this run gave" in failed
    assert photos == []


def test_an_approval_shows_the_file_and_a_changed_one_is_not_sent(desk: Project) -> None:
    ask_before_each_call(desk)
    desk.run("run", "demo.send", "-p", "photo=cat.png").assert_exit(5)
    shown = desk.run("approvals", "show", "desk.photo").assert_ok().out
    for each in ("input.picture.name", "cat.png", str(len(CANARY)), DIGEST):
        assert each in shown
    desk.write("cat.png", CANARY[::-1])
    resumed = desk.run("resume", "@last", "--approve", "desk.photo").assert_exit(1).err
    assert "cat.png` has changed since the run began" in resumed
    assert photos == []


def test_a_file_that_is_gone_is_not_sent_and_one_that_is_back_is(desk: Project) -> None:
    ask_before_each_call(desk)
    words = ("resume", "@last", "--approve", "desk.photo")
    desk.run("run", "demo.send", "-p", "photo=cat.png").assert_exit(5)
    (desk.root / "cat.png").rename(desk.root / "moved.png")
    assert "cat.png` does not exist" in desk.run(*words).assert_exit(1).err
    assert photos == []
    desk.write("cat.png", CANARY)
    desk.run("run", "demo.send", "-p", "photo=cat.png").assert_exit(5)
    (desk.root / "cat.png").unlink()
    os.link(desk.root / "moved.png", desk.root / "cat.png")
    assert desk.run(*words).assert_ok().json["answer"]["picture"]["sha256"] == DIGEST


@pytest.mark.sampled(6)
def test_a_log_of_another_user_sends_nothing_by_itself(desk: Project) -> None:
    ask_before_each_call(desk)
    desk.run("run", "demo.send", "-p", "photo=cat.png").assert_exit(5)
    desk.env["HOME"] = str(desk.home / "another")
    refused = desk.run("resume", "@last", "--approve", "desk.photo").assert_exit(3).err
    assert f"it records: sending `{desk.root}/cat.png`" in refused
    assert photos == []


@pytest.mark.sampled(3)
def test_a_client_names_no_file_and_a_text_in_the_api_none_outside(desk: Project) -> None:
    outside = desk.home / "secret.txt"
    outside.write_text("private")
    fields = {"photo": FieldSpec(type="file", required=True)}
    scope = FileScope(ReadableFiles(""), (str(desk.root),))
    for origin, path, is_pinned in (
        (CLIENT, "cat.png", False),
        (CALLER, "cat.png", True),
        (CALLER, str(outside), False),
        (FILE, "../home/secret.txt", False),
        (TYPED, str(outside), True),
    ):
        found = pin_inputs(fields, {"photo": path}, {"photo": origin}, lambda: scope)
        assert (not found.problems) == is_pinned == bool(found.files), (origin, path)


def test_a_large_file_is_sent_in_pieces_from_a_copy(desk: Project) -> None:
    path = desk.write("large.bin", os.urandom(1 << 21))
    pinned = pin_file(str(path), "large.bin")
    with OpenFiles(frozenset([pinned]), 1 << 30) as files:
        sent = files.open(pinned.to_payload(), "the body")
        path.write_bytes(b"changed meanwhile")
        pieces = list(sent.chunks())
        assert not isinstance(sent.content, io.BytesIO)
    assert max(map(len, pieces)) == 1 << 16
    assert hashlib.sha256(b"".join(pieces)).hexdigest() == pinned.sha256
    assert sent.content.closed


@pytest.mark.sampled(6)
def test_a_rerun_takes_over_unchanged_files(desk: Project) -> None:
    desk.run("run", "demo.send", "-p", "photo=cat.png").assert_ok()
    again = ("rerun", "@last", "--from", "send", "--effects", "send=repeat")
    assert desk.run(*again).assert_ok().json["answer"]["picture"]["sha256"] == DIGEST
    desk.write("cat.png", b"other")
    assert "has changed since the earlier run" in desk.run(*again).assert_exit(2).err
    other = desk.run(*again, "-p", "photo=@cat.png").assert_ok().json["answer"]
    assert other["picture"]["bytes"] == 5


@pytest.mark.sampled(3)
def test_requests_have_a_limit(desk: Project) -> None:
    (binding,) = desk.root.glob("bindings/local/desk.photo/*.yaml")
    binding.write_text(binding.read_text() + "metadata: {max_request_bytes: 20}\n")
    failed = told(desk, "-p", "photo=cat.png", exit=1)
    assert "set max_request_bytes of the binding" in failed
    assert photos == []


@pytest.mark.sampled(6)
def test_bindings_of_files_are_verified(desk: Project) -> None:
    for name in ("photo", "blob", "image"):
        desk.run("new", "scenario", f"openapi_desk_{name}").assert_ok()
    verified = desk.run("openapi", "verify-bindings", "--all", "--json").assert_ok()
    assert [each["passed"] for each in verified.json["scenarios"]] == [True] * 3
    path = desk.root / "capabilities/desk.photo.yaml"
    text = path.read_text()
    path.write_text(text.replace("picture: {type: file", "picture: {type: string"))
    wrong = desk.run("validate").assert_exit(1)
    assert (
        "`body.picture` of operation `photo` is a file, and no input of the type file" in wrong.out
    )
    path.write_text(text.replace("title: {type: string", "title: {type: file"))
    assert (
        "`body.title` of operation `photo` takes no file" in desk.run("validate").assert_exit(1).out
    )


WITHOUT = """
id: plain
capability: desk.plain
service: plain
protocol: {protocol}
operation: {operation}
request: {request}
response: {{answer: response}}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("protocol", "request_value", "says"),
    [
        ("openapi", "{picture: input.picture}", "no document describes the request"),
        ("openapi", "{body: {inner: input.picture}}", "`request.body.inner` of service `plain`"),
        ("openrpc", "{picture: input.picture}", "openrpc has no files"),
        ("mcp", "{pictures: [input.picture]}", "mcp has no files"),
    ],
)
def test_a_file_is_sent_as_a_file_or_not_at_all(
    project: Project, address: str, protocol: str, request_value: str, says: str
) -> None:
    project.run("new", "project", ".").assert_ok()
    place = {
        "openapi": f"base_url: {address}",
        "openrpc": f"url: {address}",
        "mcp": "server: official_text_tools",
    }[protocol]
    project.write("services/local/plain.yaml", f"id: plain\nkind: {protocol}\n{place}\n")
    project.write(
        "capabilities/desk.plain.yaml",
        'id: desk.plain\nversion: "1.0.0"\ndescription: Sends.\nproperties: {side_effects: true}\n'
        "inputs: {picture: {type: file}}\noutputs: {answer: {type: any}}\n",
    )
    operation = "/photos" if protocol == "openapi" else "photos"
    text = WITHOUT.format(protocol=protocol, operation=operation, request=request_value)
    project.write("bindings/local/desk.plain/plain.yaml", text)
    found = project.run("validate").assert_exit(1).out
    assert "error[wire.type]" in found
    assert says in found


@pytest.mark.sampled(6)
def test_a_run_that_sent_a_file_becomes_a_case_that_passes_anywhere(desk: Project) -> None:
    desk.run("run", "demo.send", "-p", "photo=@cat.png", "-q").assert_ok()
    desk.run("test", "--record", "@last").assert_ok()
    (case,) = desk.root.glob("skills/local/demo/send/tests/*.yaml")
    assert str(desk.root) not in case.read_text()
    assert "photo: cat.png" in case.read_text()
    desk.run("test", "demo.send").assert_ok()
    outside = desk.home / "dog.png"
    outside.write_bytes(b"dog")
    desk.run("run", "demo.send", "-p", f"photo=@{outside}", "-q").assert_ok()
    assert "outside the project" in desk.run("test", "--record", "@last").assert_exit(2).err


def test_an_untrusted_project_sends_nothing(desk: Project) -> None:
    del desk.env["COGCLI_TRUST_PROJECT"]
    desk.env["HOME"] = str(desk.home / "another")  # whose user accepted nothing
    refused = desk.run("run", "demo.send", "-p", "photo=cat.png")
    assert refused.code in (3, 4), refused.err
    assert photos == []
