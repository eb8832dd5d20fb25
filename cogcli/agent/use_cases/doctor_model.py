"""The checks of `doctor` for the language model: which one is chosen, the origin of the choice, and with `--net`
whether it answers (docs/reference/models.md#settings)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from cogcli.agent.models.port import LanguageModel, ModelError, ModelRequest
from cogcli.agent.use_cases.language_model import ChosenModel, chosen_model, open_chosen
from cogcli.app.checks.doctor_services import DoctorCheck, place_of
from cogcli.app.settings import WHOLE_TABLE, Settings
from cogcli.app.settings.model_adapters import MODELS, TEMPLATE
from cogcli.base.calls import Cancellation
from cogcli.base.errors import CogcliError
from cogcli.base.problems import ProblemsFound

_QUESTION: Final = ModelRequest(
    ({"role": "user", "content": "Say: ok"},), max_tokens=16, timeout_ms=30_000
)
_check = partial(DoctorCheck, "project", "model")


def model_checks(settings: Settings, *, net: bool) -> Iterator[DoctorCheck]:
    """Check the chosen model. With `net` an online model gets one request."""
    yield from _check_untrusted_table(settings)
    chosen = None
    try:
        chosen = chosen_model(settings)
        model = open_chosen(settings, chosen, learn=lambda secret: None)
    except ProblemsFound as error:
        details = tuple(f"{place_of(problem)}: {problem.message}" for problem in error.problems)
        yield _check("error", f"{_check_title(chosen)}: {error.message}", details, error.hint)
    except CogcliError as error:
        yield _check(
            "error",
            f"{_check_title(chosen)}: {error.message}",
            tuple(filter(None, [place_of(error)])),
            error.hint,
        )
    else:
        yield _check("ok", _check_title(chosen))
        if model is not None and MODELS[chosen.settings.adapter].online:
            yield _check_answer(model) if net else _check("skipped", "not checked (add --net)")


def _check_title(chosen: ChosenModel | None) -> str:
    if chosen is None:
        return "not known"
    return (
        chosen.title if chosen.settings.adapter == TEMPLATE else f"{chosen.title} ({chosen.origin})"
    )


def _check_untrusted_table(settings: Settings) -> Iterator[DoctorCheck]:
    """Warn about the table of an untrusted project, which is ignored."""
    for file in settings.files:
        if (
            file.project
            and not settings.trust
            and any(name.startswith(f"{WHOLE_TABLE}.") for name in file.values)
        ):
            message = f"[{WHOLE_TABLE}] of {file.shown} does not count: the project is not trusted"
            yield _check("warning", message, fix="cogcli config trust")


def _check_answer(model: LanguageModel) -> DoctorCheck:
    """Send one short request, and return a check of whether the model answers."""
    try:
        reply = model.generate(_QUESTION, Cancellation())
    except ModelError as error:
        return _check(
            "error",
            error.message,
            fix=error.hint or "is it running, and are address and name right?",
        )
    usage = reply.usage
    counted = "estimated" if usage.estimated else "counted"
    what = f"{usage.tokens_in} tokens in, {usage.tokens_out} out, {counted}"
    return _check("ok", f"{reply.model or model.describe().name} answers ({what})")
