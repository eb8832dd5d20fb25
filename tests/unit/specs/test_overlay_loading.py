"""Host overrides in a registry: what they replace, what stays visible, what is pinned."""

from __future__ import annotations

import os

import pytest
from small_registry import BINDING, CAPABILITY, Write

from cogcli.base.errors import BindingResolutionError
from cogcli.protocols import PROTOCOLS
from cogcli.specs.cache import CompiledCache
from cogcli.specs.catalog import Shadow
from cogcli.specs.checks import check
from cogcli.specs.layers import Layer, Root, layers_for
from cogcli.specs.registry import Registry
from cogcli.specs.selection import SelectionOptions, select

LOUD = BINDING.replace("echo_py", "loud").replace("pythoncall", "mcp")
HOST = {
    ".agent-skills/bindings/local/text.echo/loud.yaml": LOUD,
    ".agent-skills/active_bindings.json": '{"text.echo": "loud"}\n',
}


def registry(root: str, cache: str = "") -> Registry:
    layers = layers_for(project=root, project_trusted=True)[1:]
    return Registry(
        layers, protocols=PROTOCOLS, base=root, cache=CompiledCache(cache) if cache else None
    )


def test_host_overrides_are_the_last_layer_of_a_project(root: Write) -> None:
    path, extra = root(files=HOST), root("extra")
    layers = layers_for(project=path, project_trusted=False, registries=[Root(extra)])
    assert layers[-1] == Layer("host", f"{path}/.agent-skills", False, host=True)
    assert layers[-1].home == path
    assert [layer.name for layer in layers_for(project=extra)] == ["built-in", "project"]


def test_what_the_host_says_is_reached_with_the_skill(root: Write) -> None:
    catalog = registry(root(files=HOST)).reach("t.s")
    assert check(catalog) == []
    assert sorted(catalog.bindings) == ["echo_py", "loud"]
    loud = catalog.bindings["loud"]
    assert (loud.layer, loud.channel, loud.trusted) == ("host", "local", True)
    selection = select(catalog, "text.echo", SelectionOptions())
    assert (selection.selection_source, selection.usable) == ("active", ("loud",))


def test_services_of_one_file_replace_those_of_earlier_layers_and_hide_them_visibly(
    root: Write,
) -> None:
    services = "services:\n  echo: {kind: mcp, url: https://tools.example/mcp}\n  other: {kind: mcp, command: x}\n"
    path = root(files={".agent-skills/services.yaml": services})
    catalog = registry(path).everything()
    echo = catalog.services["echo"]
    assert (echo.settings, echo.layer, echo.file) == (
        {"url": "https://tools.example/mcp"}, "host", ".agent-skills/services.yaml",
    )  # fmt: skip
    assert echo.root == path
    assert echo.at == ("services", "echo")
    assert catalog.shadows == (Shadow("service", "echo", "project", "services/local/echo.yaml"),)
    assert sorted(registry(path).ids("service")) == ["echo", "other"]


def test_a_broken_service_costs_only_itself_and_nothing_earlier_steps_in(root: Write) -> None:
    services = (
        "services:\n  echo: {kind: nonsense}\n  fine: {kind: mcp, server: official_text_tools}\n"
    )
    found = registry(root(files={".agent-skills/services.yaml": services}))
    catalog = found.everything()
    assert sorted(catalog.services) == ["fine"]
    assert catalog.broken["service:echo"] == ".agent-skills/services.yaml"
    told = {(p.code, p.file, p.line) for p in check(found.reach("t.s"))}
    assert ("value.choice", ".agent-skills/services.yaml", 2) in told


def test_a_broken_service_that_a_skill_does_not_need_cannot_stop_it(root: Write) -> None:
    services = "services:\n  else: {kind: nonsense}\n"
    found = registry(root(files={".agent-skills/services.yaml": services}))
    assert check(found.reach("t.s")) == []
    assert [p.code for p in check(found.everything())] == ["value.choice"]


@pytest.mark.parametrize("name", ["services.yaml", "active_bindings.json", "overrides.yaml"])
@pytest.mark.parametrize("text", ["[1]", "{", "services: {}\nnonsense: 1\n"])
def test_a_file_that_cannot_be_read_stops_every_run(root: Write, name: str, text: str) -> None:
    found = registry(root(files={f".agent-skills/{name}": text})).reach("t.s")
    assert f".agent-skills/{name}" in {p.file for p in check(found) if p.severity == "E"}


def test_a_fifo_is_a_problem_and_never_waited_for(root: Write) -> None:
    path = root(files=HOST)
    os.unlink(f"{path}/.agent-skills/active_bindings.json")
    os.mkfifo(f"{path}/.agent-skills/active_bindings.json")
    assert "yaml.io" in {p.code for p in check(registry(path).reach("t.s"))}


def test_choices_for_capabilities_a_skill_does_not_call_are_no_concern_of_it(root: Write) -> None:
    files = {
        ".agent-skills/active_bindings.json": '{"no.such": "x"}',
        ".agent-skills/overrides.yaml": "overrides:\n  - {capabilities: [no.other], binding: x}\n",
    }
    found = registry(root(files=files))
    assert check(found.reach("t.s")) == []
    assert [p.code for p in check(found.everything())] == [
        "active.capability",
        "overrides.unresolved",
    ]


def test_an_alias_in_a_choice_means_its_capability(root: Write) -> None:
    files = {
        **HOST,
        "capabilities/text.echo.yaml": CAPABILITY + "aliases: [text.old]\n",
        ".agent-skills/active_bindings.json": '{"text.old": "loud"}\n',
        ".agent-skills/overrides.yaml": "overrides:\n  - {capabilities: [text.echo], binding: loud}\n"
        "  - {capabilities: [text.old], service: echo}\n",
    }
    catalog = registry(root(files=files)).everything()
    assert select(catalog, "text.echo", SelectionOptions()).primary_binding_id == "loud"
    (problem,) = check(catalog)
    assert (problem.code, problem.line, problem.column) == ("overrides.duplicate", 3, 21)


def test_a_host_capability_may_not_weaken_safety(root: Write) -> None:
    guarded = CAPABILITY + "safety: {trust_level: elevated}\n"
    files = {
        "capabilities/text.echo.yaml": guarded,
        ".agent-skills/capabilities/text.echo.yaml": CAPABILITY,
    }
    assert "safety.weakened" in {p.code for p in check(registry(root(files=files)).reach("t.s"))}
    files = {
        "capabilities/text.echo.yaml": CAPABILITY,
        ".agent-skills/capabilities/text.echo.yaml": guarded,
    }
    stricter = registry(root("stricter", files)).reach("t.s")
    assert check(stricter) == []
    assert stricter.capabilities["text.echo"].safety is not None


def test_pins_tell_what_was_chosen_for_the_capabilities_of_the_run_alone(root: Write) -> None:
    services = "services:\n  {id}: {{kind: mcp, server: official_text_tools}}\n"
    files = {**HOST, ".agent-skills/services.yaml": services.format(id="echo")}
    path = root(files=files)
    before = registry(path).reach("t.s").pins
    assert {"active:text.echo", "binding:loud", "service:echo"} <= before.keys()

    def pins(**changed: str) -> dict[str, str]:
        for name, text in changed.items():
            ending = "json" if name == "active_bindings" else "yaml"
            with open(f"{path}/.agent-skills/{name}.{ending}", "w") as file:
                file.write(text)
        return registry(path).reach("t.s").pins

    more = services.format(id="echo") + "  more: {kind: mcp, server: official_text_tools}\n"
    assert pins(active_bindings='{"text.echo": "loud", "x.y": "z"}', services=more) == before
    assert (
        pins(active_bindings='{"text.echo": "echo_py"}')["active:text.echo"]
        != before["active:text.echo"]
    )
    assert "active:text.echo" not in pins(active_bindings="{}")
    assert "override:text.echo" in pins(
        overrides="overrides: [{capabilities: [text.echo], service: echo}]"
    )
    assert pins(services="services: {}")["service:echo"] != before["service:echo"]


def test_the_cache_gives_what_the_files_give(root: Write) -> None:
    files = {
        **HOST,
        ".agent-skills/services.yaml": "services: {echo: {kind: mcp, url: https://a.example}, bad: {kind: none}}\n",
        ".agent-skills/overrides.yaml": "overrides: [{capabilities: [text.echo], service: nowhere}]\n",
    }
    path = root(files=files)
    cold = registry(path, f"{path}/cache.db").everything()
    told = check(cold)
    warm = registry(path, f"{path}/cache.db").everything()
    assert (warm.services, warm.host, warm.pins) == (cold.services, cold.host, cold.pins)
    assert check(warm) == told
    assert "value.choice" in {p.code for p in told}


def test_files_of_host_overrides_are_validated_by_name(root: Write) -> None:
    path = root(
        files={**HOST, ".agent-skills/overrides.yaml": "overrides: [{capabilities: [text.ecko]}]\n"}
    )
    found = registry(path)
    assert [p.code for p in check(found.files([".agent-skills/active_bindings.json"]))] == []
    assert [p.code for p in check(found.files([".agent-skills/overrides.yaml"]))] == [
        "overrides.shape"
    ]
    assert [p.code for p in check(found.files([".agent-skills"]))] == ["overrides.shape"]


def test_a_folder_of_host_overrides_outside_every_layer_is_judged_as_such(root: Write) -> None:
    elsewhere = root("example", {"active_bindings.json": '{"text.echo": "louder"}'}, bare=True)
    found = registry(root())
    assert [(p.code, p.file) for p in check(found.files([elsewhere]))] == [
        ("active.binding", f"{elsewhere}/active_bindings.json")
    ]
    lone = root(
        "lone",
        {"active_bindings.json": '{"text.ecko": "x"}', "s.yaml": "services: {a: {}}"},
        bare=True,
    )
    assert [p.code for p in check(found.files([f"{lone}/active_bindings.json"]))] == [
        "active.capability"
    ]
    assert {p.code for p in check(found.files([f"{lone}/s.yaml"]))} == {"key.missing"}


def test_positions_in_json_with_tabs_and_escapes_are_told(root: Write) -> None:
    text = '\ufeff{\n\t"text.echo":\t"lo\\u0075der",\n\t"x-note": "a \\" b"\n}\n'
    found = registry(root(files={".agent-skills/active_bindings.json": text}))
    told = [
        (p.code, p.line, p.column) for p in check(found.everything()) if p.file.endswith(".json")
    ]
    assert told == [("active.binding", 2, 15)]


def test_a_broken_choice_is_told_to_whoever_asks_for_a_binding(root: Write) -> None:
    found = registry(root(files={".agent-skills/active_bindings.json": "{"})).reach("t.s")
    with pytest.raises(BindingResolutionError) as caught:
        select(found, "text.echo", SelectionOptions())
    assert ".agent-skills/active_bindings.json has errors" in caught.value.message


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {".agent-skills/active_bindings.json": '{"text.echo": "loud_py"}'},
            "R .agent-skills/active_bindings.json:1:15 `text.echo`: binding `loud_py`: there is no such binding",
        ),
        (
            {".agent-skills/active_bindings.json": '{"text.echo": 3}'},
            "E .agent-skills/active_bindings.json:1:15 active bindings: `text.echo`: found number 3, expected text",
        ),
        ({".agent-skills/active_bindings.json": "{"}, "E .agent-skills/active_bindings.json:1:2 "),
        (
            {
                ".agent-skills/overrides.yaml": "overrides: [{capabilities: [text.echo], service: ecko}]"
            },
            "R .agent-skills/overrides.yaml:1:50 override 1: `text.echo` has no binding on service `ecko`",
        ),
        (
            {"policies/official_default_selection.yaml": "defaults: {text.echo: nobody}"},
            "E policies/official_default_selection.yaml:1:23 `text.echo`: binding `nobody`: there is no such binding",
        ),
    ],
)
def test_a_wrong_choice_is_told_once_where_it_is_made(
    root: Write, files: dict[str, str], told: str
) -> None:
    found = registry(root(files=files))
    for catalog in (found.reach("t.s"), found.everything()):
        (problem,) = check(catalog)
        place = f"{problem.file}:{problem.line}:{problem.column}"
        assert f"{problem.severity} {place} {problem.message}".startswith(told)
        assert problem.hint


def test_a_wrong_active_binding_is_told_with_the_line_that_mends_it(root: Write) -> None:
    files = {**HOST, ".agent-skills/active_bindings.json": '{"text.echo": "lout"}'}
    (problem,) = check(registry(root(files=files)).reach("t.s"))
    assert problem.hint == "did you mean `loud`?\ncogcli bindings activate text.echo loud"
