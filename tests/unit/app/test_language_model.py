"""Which language model is meant (docs/reference/models.md#settings)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cogcli.agent.models.settings import TEMPLATE, ModelSettings
from cogcli.agent.use_cases.language_model import chosen_model, model_of
from cogcli.app.settings import Settings
from cogcli.app.settings.config import KEYS
from cogcli.app.settings.model_adapters import MODELS
from cogcli.base.errors import (
    CogcliError,
    ModelAccessError,
    ServiceResolutionError,
    UnusableEnvironment,
    UsageError,
)
from cogcli.base.problems import ProblemsFound
from cogcli.cli.render_error import error_lines

TABLE = """\
max_workers = 2
[model]
adapter = "openai"
name = "small-1"
base_url = "http://127.0.0.1:8080/v1"
auth_ref = "MODEL_KEY"
timeout_s = 5
"""
SMALL = ModelSettings("openai", "small-1", "", "http://127.0.0.1:8080/v1", "MODEL_KEY", 5.0)


class Place:
    """A project and a user's directory."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.user = root / "config" / "cogcli"
        self.project.mkdir()
        self.user.mkdir(parents=True)
        self.environ = {"XDG_CONFIG_HOME": str(root / "config"), "HOME": str(root)}
        (self.project / "cogcli.toml").write_text("")

    def settings(self, *, trusted: bool = True, **environ: str) -> Settings:
        given = {"COGCLI_TRUST_PROJECT": "1"} if trusted else {}
        return Settings({}, {**self.environ, **given, **environ}, base=str(self.project))

    def write(self, text: str) -> None:
        (self.project / "cogcli.toml").write_text(text)

    def write_user(self, text: str) -> None:
        (self.user / "config.toml").write_text(text)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def chosen(settings: Settings, flag: str = "") -> tuple[ModelSettings, str]:
    """What is meant, without the path of a file that its name might be."""
    found = chosen_model(settings, flag)
    return found.settings._replace(file=""), found.origin


def refused(settings: Settings, flag: str = "") -> CogcliError:
    with pytest.raises(CogcliError) as caught:
        chosen_model(settings, flag)
    return caught.value


def test_the_setting_knows_every_adapter() -> None:
    assert set(KEYS["model.adapter"].type.words) == {TEMPLATE, *MODELS}


def test_without_a_word_there_is_no_model(place: Place) -> None:
    assert chosen(place.settings()) == (ModelSettings(), "default")
    assert model_of(place.settings()) is None
    place.write(TABLE)
    assert model_of(place.settings(), "template") is None
    assert model_of(place.settings(COGCLI_MODEL="template")) is None


def test_flag_beats_variable_beats_project_beats_user(place: Place) -> None:
    place.write_user("[model]\nadapter = 'anthropic'\nname = 'of-user'\n")
    assert chosen(place.settings()) == (
        ModelSettings("anthropic", "of-user"),
        f"{place.user}/config.toml:2",
    )
    place.write(TABLE)
    assert chosen(place.settings()) == (SMALL, "cogcli.toml:3")
    other = place.settings(COGCLI_MODEL="openai:other")
    assert chosen(other) == (SMALL._replace(name="other"), "COGCLI_MODEL")
    assert chosen(other, "openai:third") == (SMALL._replace(name="third"), "--model")
    assert chosen(other, "openai") == (SMALL, "--model")


def test_a_projects_model_counts_only_once_it_is_trusted(place: Place) -> None:
    place.write(TABLE)
    assert chosen(place.settings(trusted=False)) == (ModelSettings(), "default")
    place.write_user("[model]\nadapter = 'anthropic'\nname = 'of-user'\n")
    assert chosen(place.settings(trusted=False))[0].name == "of-user"


def test_no_address_of_one_file_meets_the_key_of_another(place: Place) -> None:
    place.write_user("[model]\nadapter = 'openai'\nname = 'mine'\nauth_ref = 'MY_KEY'\n")
    place.write(
        "[model]\nbase_url = 'http://elsewhere.example/v1'\nadapter = 'openai'\nname = 'theirs'\n"
    )
    found, _ = chosen(place.settings())
    assert (found.name, found.base_url, found.auth_ref) == (
        "theirs",
        "http://elsewhere.example/v1",
        "",
    )


def test_another_adapter_takes_nothing_of_the_table(place: Place) -> None:
    place.write(TABLE)
    assert chosen(place.settings(), "anthropic:big") == (
        ModelSettings("anthropic", "big"),
        "--model",
    )


def test_a_file_is_relative_to_where_it_is_named(place: Place, tmp_path: Path) -> None:
    place.write_user("[model]\nadapter = 'scripted'\nname = 'mine.yaml'\n")
    settings = place.settings()
    assert chosen_model(settings).settings.file == str(place.user / "mine.yaml")
    assert chosen_model(settings, "scripted:mine.yaml").settings.file == str(
        place.user / "mine.yaml"
    )
    named = chosen_model(settings, "scripted:models/own.yaml").settings
    assert (named.name, named.file) == ("models/own.yaml", str(place.project / "models/own.yaml"))


def test_the_proxy_is_used_only_by_its_setting(place: Place) -> None:
    place.write(TABLE)
    assert not chosen(place.settings(HTTP_PROXY="http://p"))[0].use_env_proxy
    assert chosen(place.settings(COGCLI_USE_ENV_PROXY="1"))[0].use_env_proxy


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("opnai:x", "did you mean `openai:x`?"),
        (" openai:x:y", "did you mean `openai:x:y`?"),
        ("OPENAI:x", "did you mean `openai:x`?"),
        ("scriptd", "write scripted:NAME"),
        ("templat:", "did you mean `template`?"),
        ("nonsense", "adapters: template, scripted"),
        ("openai", "write openai:NAME"),
        ("scripted:", "write scripted:NAME"),
    ],
)
def test_a_wrong_flag_is_usage(place: Place, flag: str, says: str) -> None:
    error = refused(place.settings(), flag)
    assert (type(error), error.exit_code) == (UsageError, 2)
    assert says in error.hint
    assert "COGCLI_MODEL" in refused(place.settings(COGCLI_MODEL=flag)).message


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[model]\nadapter = 'opena'\n", 2, "one of template, scripted, openai, anthropic, replay"),
        ("[model]\n\nadaptor = 'openai'\n", 3, "unknown key `model.adaptor`"),
        ("[model]\nadapter = 'openai'\n", 2, "needs the name of a model"),
        ("[model]\nadapter = 'openai'\nname = ''\n", 3, "a text of one line"),
        ("[model]\nbase_url = 'ftp://x'\n", 2, "an http or https URL"),
        ("[model]\nbase_url = 'http://user:secret-word@x'\n", 2, "without user info"),
        ("[model]\nbase_url = 'http://x/v1?key=secret-word'\n", 2, "and query"),
        ("[model]\nauth_ref = 'sk-secret-word'\n", 2, "`NAME`, `env:NAME`"),
        ("[model]\ntimeout_s = 0\n", 2, "a number above 0"),
        ("[model]\ncontext_tokens = 1.5\n", 2, "a whole number"),
        ("model = 'openai'\n", 1, "expected a table"),
    ],
)
def test_a_wrong_line_is_told_with_its_place_and_without_a_secret(
    place: Place, text: str, line: int, says: str
) -> None:
    place.write(text)
    error = refused(place.settings())
    assert (type(error), error.code, error.file, error.line) == (
        UnusableEnvironment,
        "config.key",
        "cogcli.toml",
        line,
    )
    assert says in f"{error.message} {error.hint}"
    assert "secret-word" not in error.message
    told = {"code": error.code, "message": error.message, "hint": error.hint, "file": error.file}
    told |= {"line": error.line, "column": error.column}
    shown = error_lines(told, base=str(place.project), width=100)
    assert "secret-word" not in repr(shown)
    assert f"cogcli.toml:{line}" in repr(shown)


def test_a_key_that_is_not_set_is_said_before_anything_is_asked(place: Place) -> None:
    place.write(TABLE)
    with pytest.raises(ServiceResolutionError, match="MODEL_KEY") as caught:
        model_of(place.settings())
    assert (caught.value.code, caught.value.exit_code) == ("env.missing", 3)
    with pytest.raises(ModelAccessError, match="is empty"):
        model_of(place.settings(MODEL_KEY="  "))
    learned: list[str] = []
    model = model_of(place.settings(MODEL_KEY="sk-1234567890"), learn=learned.append)
    assert model is not None
    assert learned == ["sk-1234567890"]
    assert model.describe().name == "small-1"


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_a_key_goes_unasked_to_the_providers_own_address_alone(place: Place, adapter: str) -> None:
    with pytest.raises(ServiceResolutionError, match=f"{adapter.upper()}_API_KEY"):
        model_of(place.settings(), f"{adapter}:big")
    place.write(f"[model]\nadapter = '{adapter}'\nname = 'x'\nbase_url = 'http://127.0.0.1:9'\n")
    assert model_of(place.settings()) is not None


def test_faults_of_a_script_are_usage_where_a_flag_names_it(place: Place) -> None:
    (place.project / "bad.yaml").write_text("replies:\n- txt: hello\n")
    for given, code in ((("scripted:bad.yaml",), 2), ((), 3)):
        place.write("[model]\nadapter = 'scripted'\nname = 'bad.yaml'\n")
        with pytest.raises(ProblemsFound) as caught:
            model_of(place.settings(), *given)
        found: Any = caught.value
        assert found.exit_code == code
        assert {(p.code, p.file, p.line, p.column) for p in found.problems} == {
            ("key.unknown", "bad.yaml", 2, 3),
            ("key.missing", "bad.yaml", 2, 3),
        }
