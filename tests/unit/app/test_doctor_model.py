"""What `doctor` says of the language model (docs/reference/models.md#settings)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.tinymodel import TinyModel

from cogcli.agent.use_cases.doctor_model import model_checks
from cogcli.app.checks.doctor_services import DoctorCheck
from cogcli.app.settings import Settings

KEY = "sk-canary-5e1f0c77"


def checks(
    root: Path, text: str = "", *, net: bool = False, trusted: bool = True, **environ: str
) -> list[DoctorCheck]:
    (root / "cogcli.toml").write_text(text)
    given = {"HOME": str(root), "XDG_CONFIG_HOME": str(root / "config"), **environ}
    given |= {"COGCLI_TRUST_PROJECT": "1"} if trusted else {}
    found = list(model_checks(Settings({}, given, base=str(root)), net=net))
    assert all((check.group, check.name) == ("project", "model") for check in found)
    assert KEY not in repr(found)
    return found


def table(base_url: str, name: str = "bigram") -> str:
    return f"[model]\nadapter = 'openai'\nname = '{name}'\nbase_url = '{base_url}'\nauth_ref = 'MODEL_KEY'\n"


def statuses(found: list[DoctorCheck]) -> list[str]:
    return [check.status for check in found]


def test_no_model_is_no_fault(tmp_path: Path) -> None:
    (check,) = checks(tmp_path, net=True)
    assert (check.status, check.message) == (
        "ok",
        "none: agents follow the templates of their pack",
    )


def test_a_model_is_named_with_its_origin_and_asked_only_when_that_is_wanted(
    tmp_path: Path, tiny_model: TinyModel
) -> None:
    tiny_model.key = KEY
    text = table(tiny_model.base_url)
    first, second = checks(tmp_path, text, MODEL_KEY=KEY)
    assert (first.status, first.message) == (
        "ok",
        f"openai bigram at {tiny_model.base_url} (cogcli.toml:2)",
    )
    assert (second.status, second.message) == ("skipped", "not checked (add --net)")
    assert tiny_model.requests == []
    _, asked = checks(tmp_path, text, net=True, MODEL_KEY=KEY)
    usage = tiny_model.usage
    assert (
        asked.message
        == f"bigram answers ({usage.tokens_in} tokens in, {usage.tokens_out} out, counted)"
    )
    assert len(tiny_model.requests) == 1


def test_a_variable_names_the_model_too(tmp_path: Path, tiny_model: TinyModel) -> None:
    script = tmp_path / "a.yaml"
    script.write_text("replies: [{text: hello}]\n")
    (check,) = checks(tmp_path, COGCLI_MODEL="scripted:a.yaml", net=True)
    assert (check.status, check.message) == ("ok", "scripted a.yaml (COGCLI_MODEL)")


def test_what_is_wrong_with_an_answer_is_said(tmp_path: Path, tiny_model: TinyModel) -> None:
    tiny_model.key = KEY
    wrong: dict[str, Any] = {"net": True, "MODEL_KEY": "sk-another-one"}
    _, refused = checks(tmp_path, table(tiny_model.base_url), **wrong)
    assert (refused.status, "HTTP 401" in refused.message) == ("error", True)
    assert "sk-another-one" not in refused.message
    assert "auth_ref" in refused.fix
    right: dict[str, Any] = {"net": True, "MODEL_KEY": KEY}
    _, unknown = checks(tmp_path, table(tiny_model.base_url, "large"), **right)
    assert (unknown.status, "no model large" in unknown.message) == ("error", True)
    _, gone = checks(tmp_path, table("http://127.0.0.1:9"), **right)
    assert (gone.status, "refused" in gone.message) == ("error", True)
    assert gone.fix


def test_a_key_or_a_file_that_is_not_there_is_an_error_with_its_cure(tmp_path: Path) -> None:
    (check,) = checks(tmp_path, table("http://127.0.0.1:9"))
    assert (check.status, check.fix) == ("error", "export MODEL_KEY=…")
    assert "`MODEL_KEY` is not set" in check.message
    (check,) = checks(tmp_path, "[model]\nadapter = 'scripted'\nname = 'gone.yaml'\n")
    assert (check.status, check.details[0].partition(":")[0]) == ("error", "gone.yaml")
    (check,) = checks(tmp_path, COGCLI_MODEL="opnai:x")
    assert (check.status, check.fix) == ("error", "did you mean `openai:x`?")


def test_a_table_that_does_not_count_is_a_warning(tmp_path: Path) -> None:
    found = checks(tmp_path, table("http://127.0.0.1:9"), trusted=False)
    assert statuses(found) == ["warning", "ok"]
    assert found[0].fix == "cogcli config trust"
    assert found[1].message.startswith("none")
