"""Trust in a project: what is accepted, what ends it, and that nobody's change of the store is lost."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cogcli.app.settings import Settings, trust, trust_accept, trust_digests
from cogcli.base.errors import UnusableEnvironment
from cogcli.protocols.mcp import pins

pytestmark = pytest.mark.sampled(2)

ROUNDS = 100 if "COGCLI_LONG_TESTS" in os.environ else 20
"""How often what happens at once is tried."""
PLAIN = "id: plain\nkind: openapi\nbase_url: https://a.example\n"


class Place:
    """A project and a home in a temporary directory."""

    def __init__(self, root: Path) -> None:
        self.root = root / "project"
        self.root.mkdir()
        self.programs = root / "programs"
        self.programs.mkdir()
        self.environ = {"HOME": str(root / "home"), "PATH": str(self.programs)}
        self.write("cogcli.toml", 'registry = ["reg", "../beside", "link"]\n')
        for folder in ("reg", "../beside", "../linked"):
            (self.root / folder).mkdir()
        (self.root / "link").symlink_to(root / "linked")

    def write(self, path: str, text: str = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def program(self, path: str) -> Path:
        file = self.write(path, "#!/bin/sh\n")
        file.chmod(0o700)
        return file

    @property
    def now(self) -> trust.Trust:
        return trust.trust_of(str(self.root), self.environ)

    def accept(self) -> None:
        accept(self.root, self.environ)
        assert self.now.state == "accepted", self.now.changes


def accept(root: Path | str, environ: dict[str, str]) -> None:
    trust_accept.accept(trust_accept.take_project_snapshot(str(root), environ), environ)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def service(id: str, **said: Any) -> str:
    """A service file; JSON is YAML."""
    kind = "mcp" if "command" in said else "pythoncall"
    return "".join(
        f"{key}: {json.dumps(value)}\n" for key, value in {"id": id, "kind": kind, **said}.items()
    )


ROOTS = ("", "reg/", "../beside/", "link/", "tooling/openapi_scenarios/registry/")


@pytest.mark.sampled(12)
@pytest.mark.slow
@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize(
    "path",
    [
        "services/local/one.yaml",
        "services/one.yaml",
        "bindings/local/a.b/one.yaml",
        "bindings/a.b/one.yaml",
        "code.py",
        "code/__init__.py",
        "code/.deep/part.py",
        "code/part.so",
        "helpers/other.py",
        "run.sh",
        "conf/run.json",
        "server.py",
    ],
)
@pytest.mark.parametrize("change", ["added", "changed", "removed"])
def test_each_file_that_counts_ends_trust_by_its_change(
    place: Place, root: str, path: str, change: str
) -> None:
    place.write(f"{root}code.py" if path != "code.py" else f"{root}code/x.py")
    place.write(f"{root}services/code.yaml", service("code", module="code.part"))
    args = ["--config=conf/run.json", "server.py", "-m", "server"]
    place.write(f"{root}services/program.yaml", service("program", command="./run.sh", args=args))
    if change != "added" and not (root + path).endswith("services/one.yaml"):
        place.program(f"{root}{path}")
    elif change != "added":
        place.write(f"{root}{path}", PLAIN)
    place.accept()
    if change == "removed":
        (place.root / root / path).unlink()
    else:
        place.program(f"{root}{path}").write_text("#!/bin/sh\n# another\n")
    found = place.now
    assert found.state == "changed"
    assert not found
    name = os.path.normpath(f"{root}{path}")
    name = {"link": f"link/{path}"}.get(root.rstrip("/"), name)
    assert (change, name) in found.changes
    assert name in found.distrust
    place.accept()


MODEL = '[model]\nadapter = "openai"\nname = "m"\nbase_url = "http://127.0.0.1:1/v1"\nauth_ref = "KEY"\n'


@pytest.mark.parametrize(
    "after",
    [
        "",
        "# a remark\n",
        MODEL,
        MODEL.replace("127.0.0.1:1", "evil.example"),
        "builtin = false\n",
        "max_workers = 3\n",
    ],
)
def test_every_change_of_the_settings_ends_trust(
    place: Place, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        trust, "_SETTLED", -1_000_000_000_000
    )  # what was read is remembered at once
    place.write("cogcli.toml", f"max_workers = 2\n{MODEL}")
    place.accept()
    place.write("cogcli.toml", after)
    assert place.now.changes == [("changed", "cogcli.toml")]
    place.accept()
    (place.root / "cogcli.toml").unlink()
    assert place.now.changes == [("removed", "cogcli.toml")]


HOST_FILES = (
    ".agent-skills/services.yaml",
    ".agent-skills/active_bindings.json",
    ".agent-skills/overrides.yaml",
    ".agent-skills/capabilities/a.b.yaml",
    ".agent-skills/bindings/local/a.b/one.yaml",
    ".agent-skills/notes.txt",
)
SPEC_FILES = (
    "skills/local/a/b/skill.yaml",
    "skills/local/a/b/tests/one.yaml",
    "skills/local/a/b/_files/part.md",
    "capabilities/a.b.yaml",
    "bindings/local/a.b/one.yaml",
    "services/one.yaml",
    "policies/official_default_selection.yaml",
    "packs/desk/1.0.0.yaml",
    "cogcli.lock.json",
)
SCENARIO_FILES = (
    "tooling/openapi_scenarios/one.json",
    "tooling/mcp_scenarios/registry/skills/a/b/c.yaml",
)
DECIDING = (
    *HOST_FILES,
    *SCENARIO_FILES,
    *(f"{root}{path}" for root in ("", "reg/", "../beside/", "link/") for path in SPEC_FILES),
)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("path", DECIDING)
def test_every_file_of_specs_ends_trust_by_each_of_its_changes(
    place: Place, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        trust, "_SETTLED", -1_000_000_000_000
    )  # what was read is remembered at once
    place.accept()
    file = place.write(path, "one")
    assert place.now.changes == [("added", path)]
    place.accept()
    place.write(path, "two")
    assert place.now.changes == [("changed", path)]
    place.write(path, "one")
    assert place.now.state == "accepted"
    other = file.with_name(f"x{file.name}")
    file.rename(other)
    renamed = {path: "removed"}
    if not path.endswith("cogcli.lock.json"):
        renamed[os.path.relpath(other, place.root)] = "added"
    assert {name: what for what, name in place.now.changes} == renamed
    other.rename(file)
    assert place.now.state == "accepted"
    file.unlink()
    assert place.now.changes == [("removed", path)]


@pytest.mark.parametrize(
    "path", ["skills/local/a/b/skill.yaml", ".agent-skills/overrides.yaml", "cogcli.toml"]
)
def test_a_link_counts_by_its_target_and_by_its_content(place: Place, path: str) -> None:
    one, two = place.write("../elsewhere/one", "x"), place.write("../elsewhere/two", "x")
    link = place.write(path)
    link.unlink()
    link.symlink_to(one)
    place.accept()
    link.unlink()
    link.symlink_to(two)
    assert place.now.changes == [("changed", path)], "the same content at another place"
    place.accept()
    two.write_text("y")
    assert place.now.changes == [("changed", path)]
    place.accept()
    link.unlink()
    link.write_text("y")
    assert place.now.changes == [("changed", path)], "the same content, and no link any more"


def test_a_folder_behind_a_link_counts_by_its_target_and_by_its_files(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        trust, "_SETTLED", -1_000_000_000_000
    )  # what was read is remembered at once
    for name in ("one", "two"):
        place.write(f"../elsewhere/{name}/local/a/b/skill.yaml", "x")
    current = place.root.parent / "current"
    current.symlink_to("elsewhere/one")
    (place.root / "skills").symlink_to("../current")
    place.accept()
    current.unlink()
    current.symlink_to("elsewhere/two")
    assert place.now.changes == [("changed", "skills")], "retargeted behind the link of the project"
    place.accept()
    place.write("../elsewhere/two/local/a/b/tests/one.yaml")
    assert place.now.changes == [("added", "skills/local/a/b/tests/one.yaml")]


def test_a_link_to_itself_hides_no_file_beside_it(place: Place) -> None:
    place.write("skills/local/a/b/skill.yaml", "x")
    (place.root / "skills/local/a/b/loop").symlink_to("loop")
    place.accept()
    place.write("skills/local/a/b/skill.yaml", "y")
    assert place.now.changes == [("changed", "skills/local/a/b/skill.yaml")]


def test_a_root_with_two_names_counts_under_both(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        trust, "_SETTLED", -1_000_000_000_000
    )  # what was read is remembered at once
    place.write("cogcli.toml", 'registry = ["self"]\n')
    (place.root / "self").symlink_to(".")
    place.accept()
    place.write("../evil/capabilities/a.b.yaml")
    (place.root / "self").unlink()
    (place.root / "self").symlink_to("../evil")
    assert place.now.changes == [("changed", "self"), ("added", "self/capabilities/a.b.yaml")]


def test_a_root_that_appears_is_a_change(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        trust, "_SETTLED", -1_000_000_000_000
    )  # what was read is remembered at once
    place.write("cogcli.toml", 'registry = ["later"]\n')
    place.accept()
    place.write("later/services/one.yaml", PLAIN)
    assert place.now.changes == [("added", "later/services/one.yaml")]


@pytest.mark.parametrize(
    "path",
    [
        "notes.md", "data.json", "code/__pycache__/x.py", ".hidden/x.py", "node_modules/x/x.py", "env/lib/x.py",
        "skills/local/a/b/.skill.yaml.swp", ".agent-skills/.tmp-1", ".cogcli/episodes/x", "reg/notes.md",
    ],
)  # fmt: skip
def test_files_that_decide_nothing_end_no_trust(place: Place, path: str) -> None:
    place.write("services/code.yaml", service("code", module="code.part"))
    place.write("code/part.py")
    place.write("env/pyvenv.cfg")
    place.accept()
    place.write(path, "x")
    assert place.now.state == "accepted"


def test_modules_that_no_service_names_do_not_count(place: Place) -> None:
    place.write("services/one.yaml", service("one", module="cogcli.official.text"))
    place.write("script.py")
    place.accept()
    place.write("script.py", "changed")
    assert place.now.state == "accepted"


def test_an_installed_module_that_gets_a_namesake_in_the_project_ends_trust(place: Place) -> None:
    place.write("services/one.yaml", service("one", module="orjson"))
    place.accept()
    place.write("orjson.py")
    assert place.now.changes == [("added", "orjson.py")]


@pytest.mark.parametrize("address", ["", "base_url: https://a.example\n"])
def test_every_document_of_a_service_counts(place: Place, address: str) -> None:
    place.write("services/one.yaml", f"id: one\nkind: openapi\n{address}spec_ref: api/one.json\n")
    place.write("api/one.json", "{}")
    place.write("api/other.json", "{}")
    place.accept()
    place.write("api/other.json", "[]")
    assert place.now.state == "accepted"
    place.write("api/one.json", "[]")
    place.write("services/api/one.json", "{}")
    assert place.now.changes == [("changed", "api/one.json"), ("added", "services/api/one.json")]


def test_a_document_outside_of_the_root_of_its_service_is_never_read(place: Place) -> None:
    place.write("services/one.yaml", f"{PLAIN}spec_ref: ../../outside.json\n")
    place.write("../outside.json", "canary")
    look = trust_accept.take_project_snapshot(str(place.root), place.environ)
    assert not any("outside" in name for name in look.digests)
    assert b"canary" not in look.contents.values()


def test_a_root_that_the_project_names_anew_counts(place: Place) -> None:
    place.accept()
    place.write("more/services/one.yaml", service("one", module="m"))
    place.write("cogcli.toml", 'registry = ["link", "more"]\n')
    assert place.now.changes == [("changed", "cogcli.toml"), ("added", "more/services/one.yaml")]


def test_a_program_counts_by_where_it_is_found(place: Place, tmp_path: Path) -> None:
    place.write("services/one.yaml", service("one", command="tool", args=["x"]))
    place.program("../programs/tool")
    place.accept()
    place.program("../programs/tool").write_text("of another version")
    assert place.now.state == "accepted"
    place.program("bin/tool")
    place.environ["PATH"] = f"{place.root / 'bin'}:{place.programs}"
    assert ("changed", "program tool of service one in .") in place.now.changes
    place.accept()
    place.program("bin/tool").write_text("of the project")
    assert place.now.changes == [("changed", "bin/tool")]


@pytest.mark.parametrize(
    "args", [["-mtools.serve"], ["-u", "-m", "tools"], ["tools"], ["--app=tools"]]
)
def test_the_python_that_a_program_is_told_to_run_counts(place: Place, args: list[str]) -> None:
    place.write("services/one.yaml", service("one", command="tool", args=args))
    place.program("../programs/tool")
    for path in ("tools/__main__.py", "tools/part.py"):
        place.write(path)
    place.accept()
    place.write("tools/part.py", "changed")
    assert place.now.changes == [("changed", "tools/part.py")]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("lib", "lib/part.py"),
        ("lib", "lib/deep/part.rb"),
        ("lib", "lib/part.pyc"),
        ("lib", "lib/libx.so.1"),
        ("bin", "bin/tool-beside"),
        ("{root}/lib", "lib/part.py"),
        ("/nowhere:lib", "lib/part.pm"),
        ("${PATH}:lib", "lib/part.js"),
        ("${AT}/lib", "lib/part.js"),
        ("--require ./hook.js --no-warnings", "hook.js"),
        ("--no-warnings --import=./hook.mjs", "hook.mjs"),
        ("--import=file://{root}/hook.mjs", "hook.mjs"),
        ("--require ./hook", "hook.cjs"),
        ("--require ./hook", "hook/index.js"),
        ("-r./hook -Ilib", "hook.rb"),
        ("-r./hook -Ilib", "lib/part.rb"),
        ("'a folder/x.sh'", "a folder/x.sh"),
        ("a folder/x.sh", "a folder/x.sh"),
        ("setup", "setup"),
        (".", "other/part.py"),
    ],
)
@pytest.mark.parametrize("root", ["", "reg/"])
def test_what_a_variable_of_a_program_names_counts(
    place: Place, root: str, value: str, path: str
) -> None:
    place.environ["AT"] = str(place.root / root)
    value = value.replace("{root}", str(place.root / root).rstrip("/"))
    place.write(
        f"{root}services/one.yaml", service("one", command="tool", env={"ANY": value, "B": "x"})
    )
    place.program("../programs/tool")
    name = os.path.normpath(f"{root}{path}")
    place.program(name)
    place.accept()
    place.write(name, "changed")
    assert place.now.changes == [("changed", name)]
    (place.root / name).unlink()
    assert place.now.changes == [("removed", name)]


@pytest.mark.parametrize(
    "path",
    [
        "lib/notes.md",
        "lib/__pycache__/x.pyc",
        "lib/.git/hooks/x.sh",
        "lib/node_modules/x/x.js",
        "part.js",
    ],
)
def test_data_below_a_folder_that_a_variable_names_does_not_count(place: Place, path: str) -> None:
    place.write("services/one.yaml", service("one", command="tool", env={"DATA": "lib"}))
    place.write("lib/part.py")
    place.accept()
    place.write(path, "x")
    assert place.now.state == "accepted"


def test_no_value_of_a_variable_is_kept(place: Place) -> None:
    place.environ["TOKEN"] = "canary-of-the-environment"
    place.write(
        "services/one.yaml", service("one", command="tool", env={"T": "${TOKEN}", "P": "lib"})
    )
    place.accept()
    assert "canary" not in Path(trust.store_path(place.environ)).read_text()


def test_what_was_accepted_before_variables_counted_is_accepted_again(place: Place) -> None:
    place.write("services/one.yaml", service("one", command="tool", env={"P": "lib"}))
    place.accept()
    store = Path(trust.store_path(place.environ))
    body = json.loads(store.read_bytes())
    (entry,) = body["projects"].values()
    entry["programs"] = [each[:6] for each in entry["programs"]]
    store.write_text(json.dumps(body))
    assert place.now.state == "changed"
    place.accept()


def test_a_link_that_leads_elsewhere_is_a_change(place: Place) -> None:
    place.write("services/one.yaml", service("one", command="./tool"))
    for name in ("one", "two"):
        place.program(f"bin/{name}")
    (place.root / "tool").symlink_to("bin/one")
    place.accept()
    (place.root / "tool").unlink()
    (place.root / "tool").symlink_to("bin/two")
    assert not place.now


def test_a_package_behind_a_link_counts(place: Place) -> None:
    place.write("services/one.yaml", service("one", module="code"))
    place.write("../elsewhere/__init__.py")
    (place.root / "code").symlink_to("../elsewhere")
    (place.root / "code/loop").symlink_to(place.root)
    place.accept()
    place.write("../elsewhere/__init__.py", "x")
    assert place.now.changes == [("changed", "code/__init__.py")]


def test_a_folder_is_trusted_whatever_it_holds(place: Place) -> None:
    trust_accept.accept_folder(str(place.root), place.environ)
    place.write("services/one.yaml", service("one", module="m"))
    assert (place.now.state, bool(place.now)) == ("folder", True)
    assert trust_accept.revoke(str(place.root), place.environ)
    assert (place.now.state, bool(place.now)) == ("untrusted", False)
    assert not trust_accept.revoke(str(place.root), place.environ)


def test_what_covers_a_registry_beside_scenarios(place: Place) -> None:
    place.write("tooling/mcp_scenarios/registry/services/one.yaml", PLAIN)
    place.write("other/registry/services/one.yaml", PLAIN)
    place.accept()
    beside, other = (
        str(place.root / "tooling/mcp_scenarios/registry"),
        str(place.root / "other/registry"),
    )
    assert (place.now.covers(beside), place.now.covers(other), place.now.covers("/")) == (
        True,
        False,
        False,
    )
    trust_accept.accept_folder(str(place.root), place.environ)
    assert (place.now.covers(beside), place.now.covers(other), place.now.covers("/")) == (
        True,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("schema", "entry"),
    [
        ("cogcli.trust/1", "sha256:0"),
        ("cogcli.trust/2", {"accepted": {}, "modules": [], "programs": [], "documents": []}),
    ],
)
def test_an_entry_of_an_older_schema_trusts_nothing(place: Place, schema: str, entry: Any) -> None:
    store = Path(trust.store_path(place.environ))
    store.parent.mkdir(parents=True)
    store.write_text(
        json.dumps({"schema": schema, "projects": {str(place.root): entry, "/other": entry}})
    )
    assert (place.now.state, bool(place.now)) == ("outdated", False)
    assert "earlier version" in place.now.distrust
    place.accept()
    body = json.loads(store.read_text())
    assert body["schema"] == "cogcli.trust/3"
    assert body["projects"]["/other"] == schema


def test_a_folder_of_an_older_schema_stays_trusted(place: Place) -> None:
    store = Path(trust.store_path(place.environ))
    store.parent.mkdir(parents=True)
    entry = {"schema": "cogcli.trust/2", "projects": {str(place.root): {"folder": True}}}
    store.write_text(json.dumps(entry))
    assert place.now.state == "folder"


@pytest.mark.parametrize(
    "entry",
    [
        {}, {"accepted": []}, {"folder": 1}, {"folder": "yes"}, {"accepted": {}, "programs": []}, 7, None, [],
        "sha256:0",
        {"accepted": {}, "modules": [1], "programs": [], "documents": []},
        {"accepted": {}, "modules": [], "programs": [[]], "documents": []},
    ],
)  # fmt: skip
def test_a_damaged_entry_trusts_nothing(place: Place, entry: Any) -> None:
    store = Path(trust.store_path(place.environ))
    store.parent.mkdir(parents=True)
    store.write_text(json.dumps({"schema": trust.SCHEMA, "projects": {str(place.root): entry}}))
    assert not place.now


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", '{"schema": "cogcli.trust/9", "projects": {}}', "{broken"]
)
def test_a_damaged_store_trusts_nothing(place: Place, body: str) -> None:
    store = Path(trust.store_path(place.environ))
    store.parent.mkdir(parents=True)
    store.write_text(body)
    assert place.now.state == "untrusted"
    place.accept()


def test_more_than_can_be_looked_at_is_refused_and_ends_trust(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("services/one.yaml", service("one", module="code"))
    place.write("code/part.py", "x" * 1000)
    place.accept()
    monkeypatch.setattr(trust_digests, "MAX_BYTES", 500)
    assert place.now.state == "changed"
    with pytest.raises(UnusableEnvironment, match="more than can be accepted") as refused:
        accept(place.root, place.environ)
    assert refused.value.code == "trust.size"
    assert refused.value.next == ("cogcli config trust --folder",)


def test_a_large_project_is_not_read_again_unless_something_changed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("services/one.yaml", service("one", module="code"))
    file = place.write("code/part.py", "#" * 300_000)
    reads = []
    real = trust_digests.read_regular
    monkeypatch.setattr(
        trust_digests, "read_regular", lambda *a, **k: reads.append(a) or real(*a, **k)
    )
    monkeypatch.setattr(trust, "_SETTLED", -(10**12))
    place.accept()
    reads.clear()
    assert place.now.state == "accepted"
    assert reads == []
    known = file.stat()
    file.write_text("#" * 299_999 + "!")
    os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert file.stat().st_size == known.st_size
    assert place.now.changes == [("changed", "code/part.py")]
    file.write_text("#" * 300_000)
    assert place.now.state == "accepted"
    reads.clear()
    other = place.write("code/again.py", "#" * 300_000)
    os.replace(other, file)
    assert place.now.state == "accepted"
    assert reads, "another file in its place is read"


def test_what_changed_just_now_is_read_again(place: Place) -> None:
    place.write("services/one.yaml", service("one", module="code"))
    place.write("code/part.py", "#" * 300_000)
    place.accept()
    assert not (Path(place.environ["HOME"]) / ".cache/cogcli/trust").exists()


def test_names_that_are_no_text_are_told_apart(place: Place) -> None:
    place.write("services/one.yaml", service("one", module="code"))
    place.write("code/__init__.py")
    odd = os.fsencode(place.root) + b"/code/\xff.py"
    for name in (odd, odd.replace(b"\xff", b"\\xff"), odd.replace(b"\xff", b"\\udcff")):
        with open(name, "w") as file:
            file.write("x")
    accept(place.root, place.environ)
    assert place.now.state == "accepted"
    assert place.now.count == 7
    os.unlink(odd)
    assert [change for change, _ in place.now.changes] == ["removed"]


def test_settings_look_once_and_settings_of_another_run_anew(place: Place) -> None:
    settings = Settings({}, place.environ, base=str(place.root))
    assert settings.trust.state == "untrusted"
    trust_accept.accept_folder(str(place.root), place.environ)
    assert settings.trust.state == "untrusted"
    assert settings.copy_for_run().trust.state == "folder"


# -- at once ----------------------------------------------------------------------------------------------------------


def at_once(*actions: Callable[[], Any]) -> None:
    """Each action in a process of its own, all begun at the same moment."""
    ready, go = os.pipe()
    children = []
    for action in actions:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(go)
                os.read(ready, 1)
                action()
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    os.close(ready)
    os.close(go)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * len(
        children
    )


@pytest.mark.sampled(4)
@pytest.mark.slow
def test_all_who_trust_at_once_are_remembered(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    projects = [str(tmp_path / f"p{n}") for n in range(12)]
    for project in projects:
        os.mkdir(project)
    for _ in range(ROUNDS // 10):
        at_once(*((lambda p=project: accept(p, environ)) for project in projects))
        assert [trust.trust_of(project, environ).state for project in projects] == ["accepted"] * 12
        shutil.rmtree(tmp_path / ".config")


@pytest.mark.sampled(8)
@pytest.mark.slow
def test_a_trust_that_is_revoked_beside_another_stays_revoked(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    os.mkdir(one), os.mkdir(two)
    for _ in range(ROUNDS):
        trust_accept.accept_folder(one, environ)
        at_once(lambda: trust_accept.revoke(one, environ), lambda: accept(two, environ))
        assert (trust.trust_of(one, environ).state, trust.trust_of(two, environ).state) == (
            "untrusted",
            "accepted",
        )
        trust_accept.revoke(two, environ)


@pytest.mark.sampled(4)
@pytest.mark.slow
def test_all_tools_that_are_accepted_at_once_are_locked(tmp_path: Path) -> None:
    def accept(id: str) -> Callable[[], Any]:
        return lambda: pins.write_lock(str(tmp_path), id, [{"name": f"tool-{id}"}])

    for _ in range(ROUNDS // 10):
        at_once(*(accept(f"s{n}") for n in range(8)))
        for n in range(8):
            (tool,) = pins.read_locked(str(tmp_path), f"s{n}") or [{}]
            assert tool["name"] == f"tool-s{n}"
        (tmp_path / "cogcli.lock.json").unlink()


def test_looking_at_a_project_reads_each_file_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("services/one.yaml", service("one", module="code"))
    for n in range(100):
        place.write(f"code/part{n}.py", "#" * 2000)
    place.accept()
    reads: list[str] = []
    real = trust_digests.read_regular

    def counted(path: Any, *limits: Any, **more: Any) -> Any:
        reads.append(os.fspath(path))
        return real(path, *limits, **more)

    monkeypatch.setattr(trust_digests, "read_regular", counted)
    monkeypatch.setattr(trust, "_SETTLED", 10**18)
    assert place.now.state == "accepted"
    assert len([path for path in reads if "code/part" in path]) == 100
    assert len(reads) == len(set(reads))


def test_what_a_script_can_import_from_its_folder_counts(place: Place) -> None:
    place.program("../programs/python")
    place.write("tools/server.py", "import helper\n")
    place.write("tools/helper.py", "")
    place.write(
        "services/one.yaml", service("one", command="../programs/python", args=["tools/server.py"])
    )
    place.accept()
    assert place.now
    place.write("tools/helper.py", "import os\n")
    assert ("changed", "tools/helper.py") in place.now.changes
