from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from small_registry import BINDING, CAPABILITY, FILES, SKILL, Write

from cogcli.base.errors import SkillNotFoundError
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.protocols import PROTOCOLS
from cogcli.specs import spec_reader
from cogcli.specs.cache import CompiledCache
from cogcli.specs.catalog import Catalog, Shadow
from cogcli.specs.checks import check
from cogcli.specs.layers import Layer, Root, builtin_root, distinct, layers_for
from cogcli.specs.registry import Registry

pytestmark = pytest.mark.sampled(2)


def registry(*roots: str) -> Registry:
    return Registry(
        [Layer(os.path.basename(root), root, True) for root in roots],
        protocols=PROTOCOLS,
        base=roots[0],
    )


def codes(catalog: Catalog) -> list[str]:
    return [problem.code for problem in check(catalog)]


def test_reach_loads_only_what_the_skill_needs(root: Write) -> None:
    other = CAPABILITY.replace("text.echo", "text.other")
    catalog = registry(
        root(files={"capabilities/text.other.yaml": other, "capabilities/broken.one.yaml": "a: ["})
    )
    reached = catalog.reach("t.s")
    assert (list(reached.skills), list(reached.capabilities)) == (["t.s"], ["text.echo"])
    assert (list(reached.bindings), list(reached.services)) == (["echo_py"], ["echo"])
    assert reached.partial
    assert check(reached) == []
    assert sorted(catalog.everything().capabilities) == ["text.echo", "text.other"]


def test_a_run_reads_no_file_of_the_registry_but_those_of_its_closure(
    root: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def read_and_note(path: str, limit: int) -> bytes:
        read.append(path)
        return read_regular(path, limit=limit)

    shipped = builtin_root()
    own = root(
        files={"capabilities/text.other.yaml": CAPABILITY.replace("text.echo", "text.other")}
    )
    layers = [Layer("built-in", shipped, True), Layer("own", own, True)]
    monkeypatch.setattr(spec_reader, "read_regular", read_and_note)
    reached = Registry(layers, protocols=PROTOCOLS, base=own).reach("t.s")
    assert list(reached.capabilities) == ["text.echo"]
    choices = f"{shipped}/policies/official_default_selection.yaml"
    assert sorted(read) == sorted([choices, *(f"{own}/{file}" for file in FILES)])


def test_reach_follows_nested_skills_gates_fallbacks_and_bases(root: Write) -> None:
    files = {
        "skills/other/t/outer/skill.yaml": SKILL.replace("t.s", "t.outer").replace(
            "text.echo", "skill:t.s"
        ),
        "capabilities/text.echo.yaml": "id: text.echo\nversion: '1.0.0'\ndescription: d\nextends: text.base\n"
        "safety: {mandatory_pre_gates: [gate.check]}\n",
        "capabilities/text.base.yaml": CAPABILITY.replace("text.echo", "text.base"),
        "capabilities/gate.check.yaml": CAPABILITY.replace("text.echo", "gate.check").replace(
            "outputs:", "outputs:\n  allowed: {type: boolean, required: true}"
        ),
        "bindings/official/gate.check/g.yaml": BINDING.replace("text.echo", "gate.check").replace(
            "echo_py", "g"
        ),
    }
    catalog = registry(root(files=files)).reach("t.outer")
    assert sorted(catalog.skills) == ["t.outer", "t.s"]
    assert sorted(catalog.capabilities) == ["gate.check", "text.echo"]
    assert list(catalog.capabilities["text.echo"].inputs) == ["text"]
    assert sorted(catalog.bindings) == ["echo_py", "g"]
    assert "capability:text.base" in catalog.pins


def test_an_unknown_skill_is_not_found_and_similar_ids_are_named(root: Write) -> None:
    with pytest.raises(SkillNotFoundError) as caught:
        registry(root()).reach("t.ss")
    assert (caught.value.code, caught.value.exit_code) == ("skill.not-found", 2)
    assert caught.value.hint == "did you mean `t.s`?"


@pytest.mark.parametrize("name", ["../../etc/passwd", "t.s\n", "T.S", "t.s.u", "", "t./s"])
def test_what_is_no_id_is_looked_up_nowhere(root: Write, name: str) -> None:
    with pytest.raises(SkillNotFoundError):
        registry(root()).reach(name)


def test_a_later_layer_replaces_a_spec_whole_and_the_replaced_one_stays_visible(
    root: Write,
) -> None:
    second = {"capabilities/text.echo.yaml": CAPABILITY.replace("Echo.", "Louder.")}
    catalog = registry(root("one"), root("two", second, bare=True)).reach("t.s")
    assert catalog.capabilities["text.echo"].description == "Louder."
    assert catalog.shadows == (
        Shadow("capability", "text.echo", "one", "capabilities/text.echo.yaml"),
    )


def test_a_binding_of_a_later_layer_replaces_the_one_of_equal_id(root: Write) -> None:
    moved = {
        "bindings/official/text.echo/other.yaml": BINDING.replace("pythoncall", "mcp").replace(
            "normalize", "x"
        )
    }
    catalog = registry(root("one"), root("two", moved, bare=True)).reach("t.s")
    binding = catalog.bindings["echo_py"]
    assert (binding.operation, binding.channel, binding.layer) == ("x", "official", "two")
    assert catalog.bindings_of == {"text.echo": ("echo_py",)}


def test_a_broken_later_file_does_not_bring_back_the_earlier_one(root: Write) -> None:
    catalog = registry(
        root("one"), root("two", {"capabilities/text.echo.yaml": "id: [\n"}, bare=True)
    ).reach("t.s")
    assert "text.echo" not in catalog.capabilities
    assert [name for name in catalog.broken if name.startswith("capability:")] == [
        "capability:text.echo"
    ]
    assert "step.uses" in codes(catalog)


def test_equal_ids_in_one_layer_load_neither(root: Write) -> None:
    catalog = registry(root(files={"skills/official/t/s/skill.yaml": SKILL})).reach("t.s")
    assert not catalog.skills
    assert [p.code for p in catalog.problems] == ["id.duplicate", "id.duplicate"]


def test_an_alias_stands_for_its_capability_everywhere(root: Write) -> None:
    files = {
        "skills/local/t/s/skill.yaml": SKILL.replace("uses: text.echo", "uses: text.old"),
        "capabilities/text.echo.yaml": CAPABILITY + "aliases: [text.old]\n",
        "bindings/local/text.old/old.yaml": BINDING.replace("echo_py", "old").replace(
            "text.echo", "text.old"
        ),
        "policies/official_default_selection.yaml": "defaults: {text.old: echo_py}\n",
    }
    catalog = registry(root(files=files)).reach("t.s")
    assert catalog.aliases == {"text.old": "text.echo"}
    assert catalog.bindings_of == {"text.echo": ("echo_py", "old")}
    assert catalog.defaults.bindings == {"text.echo": ("echo_py",)}
    assert catalog.capability("text.old") is catalog.capabilities["text.echo"]


def test_places_without_a_channel_count_as_local(root: Write) -> None:
    files = {
        "bindings/text.echo/plain.yaml": BINDING.replace("echo_py", "plain"),
        "services/extra.yaml": "id: extra\nkind: mcp\nurl: https://a.example\n",
    }
    catalog = registry(root(files=files)).everything()
    assert catalog.bindings["plain"].channel == "local"
    assert "extra" in catalog.services


def test_one_directory_in_two_layers_counts_once_as_the_earlier(
    root: Write, tmp_path: Path
) -> None:
    path = root()
    os.symlink(path, tmp_path / "again")
    layers = [Layer("a", path, True), Layer("b", str(tmp_path / "again"), False)]
    assert distinct(layers) == layers[:1]


def test_layers_are_built_in_then_project_then_each_registry(root: Write) -> None:
    one, two = root("one"), root("two")
    layers = layers_for(project=one, project_trusted=False, registries=[Root(two)])
    assert layers == [
        Layer("built-in", builtin_root(), True),
        Layer("project", one, False),
        Layer(two, two, True),
    ]


def test_ids_are_told_by_paths_alone(root: Write) -> None:
    found = registry(
        root(files={"capabilities/broken.one.yaml": "][", "capabilities/_draft.yaml": "x"})
    )
    assert found.ids("capability") == ["broken.one", "text.echo"]
    assert found.ids("skill") == ["t.s"]
    assert found.ids("service") == ["echo"]
    assert found.ids("binding") == ["echo"]


def test_a_fifo_in_a_spec_place_is_a_problem_and_never_waited_for(root: Write) -> None:
    path = root()
    os.mkfifo(f"{path}/capabilities/a.fifo.yaml")
    catalog = registry(path).everything()
    assert [(p.code, p.file) for p in catalog.problems] == [("yaml.io", "capabilities/a.fifo.yaml")]


def test_named_files_are_judged_against_the_registry_and_only_theirs_are_told(
    root: Write, tmp_path: Path
) -> None:
    path = root(files={"capabilities/bad.one.yaml": "id: bad.one\n"})
    outside = tmp_path / "elsewhere.yaml"
    outside.write_text(SKILL.lstrip().replace("uses: text.echo", "uses: text.ecko"))
    catalog = registry(path).files([str(outside)])
    assert [(p.code, p.file) for p in check(catalog)] == [("step.uses", str(outside))]
    assert [p.file for p in check(registry(path).files(["capabilities"]))] == [
        "capabilities/bad.one.yaml"
    ] * 4


BROKEN = Path(__file__).parents[2] / "specs/broken"


def test_a_file_given_by_name_has_the_problems_that_a_check_of_everything_tells_of_it(
    tmp_path: Path,
) -> None:
    cache = str(tmp_path / "specs.db")
    layers = [Layer("broken", str(BROKEN), True)]

    def specs() -> Registry:
        return Registry(layers, protocols=PROTOCOLS, base=str(BROKEN), cache=CompiledCache(cache))

    whole = specs().everything()
    kinds = (whole.skills, whole.capabilities, whole.bindings, whole.services)
    told = check(whole)
    for kind in kinds:
        for file in random.sample(sorted({each.file for each in kind.values()}), 4):
            named = check(specs().files([file]))
            assert [p for p in named if p.file == file] == [p for p in told if p.file == file]
            assert {p.file for p in named if not p.file.startswith("docs/")} <= {file}


def test_given_bytes_stand_for_those_of_a_file(root: Write) -> None:
    changed = SKILL.lstrip().replace("text.echo", "text.ecko").encode()
    catalog = registry(root()).files(
        ["skills/local/t/s/skill.yaml"], contents={"skills/local/t/s/skill.yaml": changed}
    )
    assert codes(catalog) == ["step.uses"]


def test_a_directory_with_spec_folders_counts_as_a_layer(root: Write) -> None:
    other = root("other", {"capabilities/new.one.yaml": "id: new.one\n"}, bare=True)
    catalog = registry(root()).files([other])
    assert {p.file for p in check(catalog)} == {f"{other}/capabilities/new.one.yaml"}


def test_a_file_that_does_not_exist_is_a_problem(root: Write) -> None:
    assert codes(registry(root()).files(["nothing.yaml"])) == ["yaml.io"]


def test_a_binding_that_is_not_chosen_cannot_stop_a_run(root: Write) -> None:
    files = {
        "bindings/local/text.echo/bad.yaml": "id: bad\n",
        "bindings/local/text.echo/odd.yaml": BINDING.replace("echo_py", "odd").replace(
            "service: echo", "service: x"
        ),
        "policies/official_default_selection.yaml": "defaults: {text.echo: echo_py}\n",
    }
    found = registry(root(files=files))
    assert check(found.reach("t.s")) == []
    assert check(found.everything()) != []


def test_the_binding_that_is_chosen_stops_a_run_with_its_errors(root: Write) -> None:
    files = {
        "bindings/local/text.echo/bad.yaml": "id: bad\n",
        "policies/official_default_selection.yaml": "defaults: {text.echo: bad}\n",
    }
    found = {(p.code, p.file) for p in check(registry(root(files=files)).reach("t.s"))}
    assert ("key.missing", "bindings/local/text.echo/bad.yaml") in found
    assert ("policy.binding", "policies/official_default_selection.yaml") in found


def test_bytes_hashed_are_the_bytes_parsed(root: Write) -> None:
    path = root()
    pins = registry(path).reach("t.s").pins
    assert sorted(pins) == ["binding:echo_py", "capability:text.echo", "service:echo", "skill:t.s"]
    assert all(digest.startswith("sha256:") for digest in pins.values())


@pytest.mark.slow
def test_a_warm_reach_imports_no_heavy_library(root: Write, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from cogcli.protocols import PROTOCOLS\n"
        "from cogcli.specs.cache import CompiledCache\n"
        "from cogcli.specs.checks import check\n"
        "from cogcli.specs.layers import Layer\n"
        "from cogcli.specs.registry import Registry\n"
        f"cache = CompiledCache({str(tmp_path / 'cache' / 'specs.db')!r})\n"
        f"catalog = Registry([Layer('p', {root()!r}, True)], cache=cache, protocols=PROTOCOLS, base='/').reach('t.s')\n"
        "assert catalog.skills and check(catalog) == [], check(catalog)\n"
        "cache.close()\n"
        "heavy = {'ruamel', 'jsonschema', 'pydantic', 'httpx', 'rich'}\n"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))\n"
    )
    for expected in ("['ruamel']", "[]"):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected


@pytest.mark.slow
def test_a_known_warning_is_placed_without_parsing_again(root: Write, tmp_path: Path) -> None:
    unused = SKILL.replace("{text: outputs.out}", "{text: outputs.out, inputs.text: vars.unused}")
    script = (
        "import sys\n"
        "from cogcli.protocols import PROTOCOLS\n"
        "from cogcli.specs.cache import CompiledCache\n"
        "from cogcli.specs.checks import check\n"
        "from cogcli.specs.layers import Layer\n"
        "from cogcli.specs.registry import Registry\n"
        f"cache = CompiledCache({str(tmp_path / 'specs.db')!r})\n"
        f"root = {root(files={'skills/local/t/s/skill.yaml': unused})!r}\n"
        "found = check(Registry([Layer('p', root, True)], cache=cache, protocols=PROTOCOLS, base=root).reach('t.s'))\n"
        "print([(p.code, p.line, p.column) for p in found], 'ruamel' in sys.modules)\n"
    )
    for parsed in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == f"[('vars.unused', 13, 46)] {parsed}"


def test_a_file_edited_after_loading_is_not_remembered(root: Write, tmp_path: Path) -> None:
    path = root(files={"skills/local/t/s/skill.yaml": SKILL.replace("inputs.text", "vars.none")})
    layer, file = Layer("p", path, True), Path(path, "skills/local/t/s/skill.yaml")
    text = file.read_text()
    cache = CompiledCache(str(tmp_path / "specs.db"))
    Registry([layer], cache=cache, protocols=PROTOCOLS, base=path).reach("t.s")
    catalog = Registry([layer], cache=cache, protocols=PROTOCOLS, base=path).reach("t.s")
    file.write_text(f"# new\n{text}")
    assert [p.line for p in check(catalog)] == [13]
    file.write_text(text)
    assert [
        p.line
        for p in check(Registry([layer], cache=cache, protocols=PROTOCOLS, base=path).reach("t.s"))
    ] == [12]


@pytest.mark.slow
def test_thousands_of_steps_are_checked(root: Write) -> None:
    lines = [
        f"  - {{id: s{n}, uses: text.echo, input: {{text: vars.v{n - 1}}}, output: {{text: vars.v{n}}}}}\n"
        for n in range(1, 2000)
    ]
    steps = SKILL[SKILL.index("  - id: a") :].replace("outputs.out", "vars.v0") + "".join(lines)
    last = (
        "  - {id: last, uses: text.echo, input: {text: vars.v1999}, output: {text: outputs.out}}\n"
    )
    skill = SKILL[: SKILL.index("  - id: a")] + steps + last
    assert check(registry(root(files={"skills/local/t/s/skill.yaml": skill})).reach("t.s")) == []


def test_a_file_that_can_be_read_only_at_the_second_try_is_pinned_by_what_was_read(
    root: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = root()
    whole = registry(place).reach("t.s").pins
    refused: set[str] = set()

    def once(path: str, *, limit: int) -> bytes:
        if path not in refused:
            refused.add(path)
            raise UnreadableFile(path, "unreadable", "cannot be read: Too many open files")
        return read_regular(path, limit=limit)

    monkeypatch.setattr(spec_reader, "read_regular", once)
    catalog = registry(place).reach("t.s")
    assert refused
    assert (catalog.pins, codes(catalog)) == (whole, [])
