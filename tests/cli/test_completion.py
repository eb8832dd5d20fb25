"""Completion as shells ask for it: words with descriptions, nothing in trouble, quickly, and from paths and caches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_imports import HEAVY

from cogcli.cli.completion import SHELLS
from cogcli.cli.completion_values import NEWEST

pytestmark = pytest.mark.sampled(4)

COGCLI = str(Path(sys.executable).parent / "cogcli")
GREET = ("run", "demo.greet", "-p", "text=hi")


def asked(
    project: Any, line: str, *, shell: str = "fish", env: dict[str, str] | None = None
) -> list[str]:
    """The lines of the answer for a line that ends where the cursor is; fish has a description behind a tab."""
    variables = {
        "_COGCLI_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": line,
        **(env or {}),
    }
    if shell == "fish":
        variables["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    if shell == "powershell":
        variables["_TYPER_COMPLETE_WORD_TO_COMPLETE"] = line.rpartition(" ")[2]
    if shell == "bash":
        words = line.split(" ")
        variables |= {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    result = project.run(env=variables).assert_ok()
    assert result.err == ""
    return [text for text in result.out.split("\n") if text]


def words(project: Any, line: str) -> list[str]:
    """The offered words without their descriptions."""
    return [text.partition("\t")[0] for text in asked(project, line)]


def test_commands_verbs_and_flags_come_with_their_summaries(demo: Any) -> None:
    found = asked(demo, "cogcli ")
    assert "ls\tlist runs, newest first" in found
    assert "skills\tls, show, search, explain, export, import" in found
    assert asked(demo, "cogcli skills sh") == [
        "show\tshow a skill: inputs, outputs, steps, and a line that runs it"
    ]
    assert asked(demo, "cogcli ls --ou") == ["--outcome\tonly with this outcome"]
    assert asked(demo, "cogcli ls --js") == [
        "--json\tprint exactly one JSON envelope on stdout, also on failure"
    ]


def test_values_are_ids_episodes_steps_codes_topics_and_the_words_of_a_flag(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    demo.run("bindings", "ls").assert_ok()  # compiles them
    newest = demo.episode.name
    for line, expected in {
        "cogcli run demo.": ["demo.greet", "demo.review"],
        "cogcli capabilities show demo.text.u": ["demo.text.upper"],
        "cogcli bindings show demo_text_u": ["demo_text_upper"],
        "cogcli bindings activate demo.text.upper ": ["demo_text_upper"],
        "cogcli services show dem": ["demo"],
        "cogcli run demo.greet --confirm demo.text.u": ["demo.text.upper"],
        "cogcli run demo.greet --bind demo.text.u": ["demo.text.upper="],
        "cogcli run demo.greet --bind demo.text.upper=": ["demo.text.upper=demo_text_upper"],
        "cogcli trace @": ["@last", "@failed"],
        "cogcli state show ep_": [newest],
        "cogcli trace @last --step ": ["first", "second"],
        "cogcli explain call.time": ["call.timeout"],
        "cogcli help exi": ["exit-codes"],
        "cogcli ls --color ": ["auto", "always", "never"],
        "cogcli run demo.greet --trust-level e": ["elevated"],
        "cogcli config show max": ["max_workers"],
        "cogcli completion show z": ["zsh"],
    }.items():
        assert words(demo, line) == expected, line
    assert asked(demo, f"cogcli trace {newest[:8]}") == [f"{newest}\tdemo.greet ok"]
    assert asked(demo, "cogcli trace @last --step f") == ["first\tdone demo.text.upper"]


def test_choices_of_bindings_are_those_of_the_skill_at_hand(demo: Any) -> None:
    demo.skill(
        "demo.nesting", "- {id: inner, uses: 'skill:demo.greet', input: {text: {$literal: x}}}"
    )
    demo.capability("demo.text.other", "other")
    everything = words(demo, "cogcli run demo.nesting --bind ")
    assert "demo.text.other=" in everything  # no spec is read for a completion
    demo.run("validate")
    assert words(demo, "cogcli run demo.nesting --bind ") == ["demo.text.upper="]
    assert words(demo, "cogcli run demo.greet --bind ") == ["demo.text.upper="]


INPUTS = """{
  text: {type: string, required: true, description: "What is said."},
  tone: {type: string, enum: [kind, blunt]}, loud: {type: boolean}}"""


def test_inputs_are_offered_by_name_and_by_value_where_there_is_a_list(demo: Any) -> None:
    step = "- {id: say, uses: demo.text.upper, input: {text: inputs.text}, output: {text: outputs.text}}"
    demo.skill("demo.say", step, inputs=INPUTS)
    assert words(demo, "cogcli run demo.say -p ") == []  # no spec is read for a completion
    demo.run("validate").assert_ok()
    assert asked(demo, "cogcli run demo.say -p te") == ["text=\tstring, required What is said."]
    for line, expected in {
        "cogcli run demo.say -p text=hi -p ": ["tone=", "loud="],
        "cogcli trace demo.say -p to": ["tone="],
        "cogcli run demo.say -p tone=": ["tone=kind", "tone=blunt"],
        "cogcli run demo.say -p loud=t": ["loud=true"],
        "cogcli run demo.say -p text=": [],
        "cogcli run demo.none -p ": [],
        "cogcli validate --report s": ["sarif:"],
    }.items():
        assert words(demo, line) == expected, line


def test_the_effects_of_a_rerun_are_steps_and_words(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    assert words(demo, "cogcli rerun @last --effects f") == ["first="]
    assert words(demo, "cogcli rerun @last --effects first=re") == ["first=reuse", "first=repeat"]


def test_global_flags_before_the_value_are_followed(demo: Any, tmp_path: Path) -> None:
    demo.run(*GREET, "--runs-dir", "elsewhere").assert_ok()
    assert len(words(demo, "cogcli --runs-dir elsewhere trace ep_")) == 1
    assert words(demo, "cogcli trace ep_") == []
    demo.write("deep/cogcli.toml", "")
    assert "demo.greet" not in words(demo, "cogcli -C deep run demo.")


def test_only_the_newest_episodes_are_offered(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    source = demo.episode
    for number in range(NEWEST + 5):
        name = f"ep_01ARZ3NDEKTSV4RRFFQ69G{number:04d}"
        shutil.copytree(source, source.parent / name)
    assert len(words(demo, "cogcli trace ep_")) == NEWEST


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("cogcli nothing ", {}),
        ("cogcli trace ep_none --step ", {}),
        ("cogcli -C nowhere run ", {}),
        ("cogcli --registry nowhere run ", {}),
        ("cogcli trace ", {"COGCLI_RUNS_DIR": "/dev/null/x"}),
        ("cogcli run 'half", {}),
        ("cogcli run ", {"_COGCLI_COMPLETE": "complete_tcsh"}),
        ("cogcli run ", {"_COGCLI_COMPLETE": "x"}),
    ],
)
def test_in_trouble_nothing_is_said_and_the_code_is_0(
    demo: Any, line: str, broken: dict[str, str]
) -> None:
    assert asked(demo, line, env=broken) == []


def test_a_variable_without_a_value_asks_for_nothing(demo: Any) -> None:
    assert (
        demo.run("lss", env={"_COGCLI_COMPLETE": ""})
        .assert_exit(2)
        .err.startswith("error[usage.command]")
    )


def test_a_broken_spec_and_a_damaged_cache_are_no_trouble(demo: Any) -> None:
    del demo.env["XDG_CACHE_HOME"]
    demo.run(*GREET).assert_ok()
    demo.run("bindings", "ls").assert_ok()
    assert words(demo, "cogcli bindings show demo_") != []
    demo.write("skills/local/demo/broken/skill.yaml", "id: [")
    for file in (demo.home / ".cache").rglob("*.db"):
        file.write_bytes(b"no database")
    assert "demo.greet" in words(demo, "cogcli run demo.")
    assert words(demo, "cogcli bindings show demo_") == []


HOSTILE = (
    "a$(touch owned)",
    "b`touch owned`",
    "c\\$(touch owned)",
    "d;touch owned",
    "e f",
    "g\nh",
    "-i",
    "j\x1b[31m",
)


@pytest.mark.parametrize("shell", SHELLS)
def test_names_in_a_project_that_a_shell_would_act_on_are_not_offered(
    demo: Any, shell: str
) -> None:
    for name in HOSTILE:
        demo.write(f"skills/local/demo/{name}/skill.yaml", "id: x")
        demo.write(f"capabilities/{name}.yaml", "id: x")
    for line in ("cogcli run ", "cogcli run x --bind "):
        answer = "\n".join(asked(demo, line, shell=shell))
        assert "demo" in answer
        assert "touch" not in answer
        assert not set("$`;\x1b").intersection(answer), line


def test_texts_of_an_episode_are_offered_without_what_a_shell_would_act_on(demo: Any) -> None:
    demo.skill(
        "demo.hostile",
        r"""
        - id: first
          uses: demo.text.upper
          description: 'it is \\$(touch owned) `touch owned` "done"'
          input: {text: "'a'"}
          output: {text: outputs.text}
        """,
        outputs="{text: {type: string, required: true}}",
    )
    demo.run("run", "demo.hostile").assert_ok()
    (answer,) = asked(demo, "cogcli trace @last --step ")
    assert answer.startswith("first\tdone ")
    assert not set('$`\\"').intersection(answer)
    assert not set("$`").intersection(
        "".join(asked(demo, "cogcli trace @last --step ", shell="zsh"))
    )


@pytest.mark.parametrize(
    "line",
    [
        "cogcli ",
        "cogcli run demo.",
        "cogcli trace ",
        "cogcli explain ",
        "cogcli run x --bind demo.text.upper=",
    ],
)
def test_completion_imports_nothing_heavy(demo: Any, line: str) -> None:
    demo.run(*GREET).assert_ok()
    script = (
        "import sys; from cogcli.__main__ import main; main(); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=demo.root, capture_output=True, text=True, check=True,
        env={
            **demo.env, "_COGCLI_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    )  # fmt: skip
    assert done.stdout
    assert not {name.partition(".")[0] for name in done.stderr.split()} & HEAVY


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script_and_is_answered_in_its_way(demo: Any, shell: str) -> None:
    script = demo.run("completion", "show", shell).assert_ok().out
    assert f"_COGCLI_COMPLETE{' ' if shell == 'powershell' else '='}" in script
    assert f"complete_{shell}" in script
    answer = asked(demo, "cogcli completion sh", shell=shell)
    said = {
        "bash": "show",
        "zsh": 'show":"print the completion script',
        "fish": "show\tprint the completion script",
        "powershell": "show:::print the completion script",
    }
    assert said[shell] in "".join(answer)


@pytest.mark.sampled(8)
def test_the_real_bash_completes(demo: Any) -> None:
    script = """
        source <(cogcli completion show bash)
        complete -p cogcli
        for line in "cogcli tra" "cogcli run demo." "cogcli ls --outcome v" "cogcli skills show demo.gr"; do
            COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
            _cogcli_completion cogcli
            echo "${COMPREPLY[*]}"
        done
    """
    assert in_shell(demo, "bash", script).splitlines()[1:] == [
        "trace", "demo.greet demo.review", "vetoed", "demo.greet"
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_the_real_zsh_reads_the_script(demo: Any) -> None:
    script = 'autoload -U compinit; compinit -D; eval "$(cogcli completion show zsh)"; echo ${_comps[cogcli]}'
    assert in_shell(demo, "zsh", script) == "_cogcli_completion\n"


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_the_real_fish_completes(demo: Any) -> None:
    script = "cogcli completion show fish | source; complete -C 'cogcli skills sh'"
    assert in_shell(demo, "fish", script).startswith("show\ta skill's fields")


@pytest.mark.skipif(shutil.which("pwsh") is None, reason="no PowerShell here")
def test_the_real_powershell_completes(demo: Any) -> None:
    script = (
        "cogcli completion show powershell | Out-String | Invoke-Expression;"
        "(TabExpansion2 'cogcli skills sh' 16).CompletionMatches.CompletionText"
    )
    assert in_shell(demo, "pwsh", script) == "show\n"


def in_shell(project: Any, shell: str, script: str) -> str:
    """Standard output of a script in a shell, with the command on its path."""
    path = os.pathsep.join([str(Path(COGCLI).parent), os.environ["PATH"]])
    done = subprocess.run(
        [shell, "-c", script], cwd=project.root, env={**project.env, "PATH": path}, capture_output=True,
        text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def test_install_writes_the_script_and_names_it_in_the_shells_file(demo: Any) -> None:
    result = demo.run("completion", "install", "bash").assert_ok()
    written = Path(result.out.strip())
    assert written.is_relative_to(demo.home)
    assert "_COGCLI_COMPLETE=complete_bash" in written.read_text()
    assert str(written) in (demo.home / ".bashrc").read_text()
    before = (demo.home / ".bashrc").read_text().count(str(written))
    demo.run("completion", "install", "bash").assert_ok()
    assert (demo.home / ".bashrc").read_text().count(str(written)) == before
    body = demo.run("completion", "install", "fish", "--json").assert_ok().json
    assert Path(body["file"]).read_text().startswith("complete --command cogcli")


def test_a_home_that_cannot_be_written_is_told(demo: Any) -> None:
    (demo.home / ".bashrc").mkdir()
    body = demo.run("completion", "install", "bash", "--json").assert_exit(3).json
    assert body["error"]["code"] == "env.disk"


def test_an_unknown_shell_is_refused(demo: Any) -> None:
    body = demo.run("completion", "show", "bsh", "--json").assert_exit(2).json
    assert (body["error"]["code"], body["error"]["hint"]) == (
        "usage.value",
        "did you mean `bash` or `zsh`?",
    )
    assert "bash, zsh, fish, powershell" in body["error"]["expected"]
