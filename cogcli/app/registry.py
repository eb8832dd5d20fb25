"""The registry of a command, and the layers and display of its specs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cogcli.app.settings import Settings
from cogcli.base.errors import ServiceResolutionError, UnusableEnvironment
from cogcli.base.files import UnreadableFile, hint_for_write, read_regular
from cogcli.base.redact import Redactor
from cogcli.base.terminal_text import visible
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.options import RunOptions
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.specs.cache import CompiledCache
from cogcli.specs.registry import Registry
from cogcli.specs.selection import SelectionOptions


def open_registry(settings: Settings) -> Registry:
    """Open the registry of all layers, with the user's cache of compiled specs.

    Invalid settings of a project that is not trusted raise an error only when the layers of the
    project are read."""
    layers, refusal = settings.find_layers()
    return Registry(
        layers, protocols=PROTOCOLS, cache=CompiledCache(settings.cache_file), base=settings.base,
        environ=settings.environ, refusal=refusal, ceilings=settings.ceilings,
    )  # fmt: skip


def selection_options(settings: Settings) -> SelectionOptions:
    """Return the options for the selection of bindings in commands that run nothing: no flags, and
    the present environment."""
    names = ("conformance", "prefer", "no_fallback")
    options = RunOptions(**{name: settings.value(name) for name in names})
    return SelectionOptions.of(options, settings.environ)


def is_untrusted(settings: Settings, kind: str, id: str) -> bool:
    """Return whether a skill or a pack belongs to an untrusted project. An empty id means a shipped
    spec.
    """
    if settings.project is None or settings.trust or not id:
        return False
    return not open_registry(settings).for_run(kind, id).is_trusted


def untrusted_warning(settings: Settings, kind: str, id: str) -> ServiceResolutionError | None:
    """Return the warning of a run that ignores parts of an untrusted project, or None.

    An empty id means a shipped spec.
    """
    if settings.project is None or settings.trust:
        return None
    text = _describe_omission(settings, kind, id)
    if not text:
        return None
    why = visible(settings.trust.distrust) or "it is not trusted"
    warning = ServiceResolutionError("service.untrusted", f"{text}: {why}")
    warning.next = ("cogcli config trust",)
    return warning


def _describe_omission(settings: Settings, kind: str, id: str) -> str:
    """Return the parts of an untrusted project that a run ignores, as text; empty if it ignores nothing."""
    registry = open_registry(settings)
    own = settings.project_file
    own_names = own.values.keys() - {"registry"} if own is not None else ()
    has_settings = registry.refusal is not None or bool(own_names)
    if not id or registry.for_run(kind, id).is_trusted:
        if registry.is_trusted and not has_settings:
            return ""  # this project is the repository of the shipped specs
        subject = f"`{id}`" if id else "what is shipped"
        return f"{subject} runs as in an empty directory, without the specs and settings of the project"
    if kind == "pack":
        without = "memory, knowledge, sessions and the settings of the project"
        return f"`{id}` runs without {without}"
    if has_settings:
        return f"the settings of the project do not count for `{id}`"
    if settings.trust.distrust:
        return f"the specs of the project count for `{id}` as far as they compute"
    return ""


class Layers:
    """Finds the registry layer of a file by its display path."""

    def __init__(self, settings: Settings) -> None:
        self._base = settings.base
        self._roots = [
            (layer.name, os.path.realpath(layer.root) + os.sep) for layer in settings.layers
        ]

    def of(self, file: str) -> str:
        """Return the name of the strongest layer that contains the file; empty if no layer does."""
        path = os.path.realpath(os.path.join(self._base, file))
        return next((name for name, root in reversed(self._roots) if path.startswith(root)), "")


@contextmanager
def writing_to(display_name: str) -> Iterator[None]:
    """Convert an OSError in the `with` block to UnusableEnvironment `env.disk`, which names the file
    as `display_name`."""
    try:
        yield
    except OSError as error:
        raise UnusableEnvironment(
            "env.disk",
            f"{display_name} cannot be written: {error.strerror}",
            hint=hint_for_write(error),
        ) from error


def read_spec_text(settings: Settings, file: str) -> str:
    """Return the text of the file of a spec. Raise UnusableEnvironment `specs.invalid`."""
    try:
        return read_regular(
            os.path.join(settings.base, file), limit=settings.ceilings.yaml_bytes
        ).decode("utf-8", "replace")
    except UnreadableFile as error:
        raise UnusableEnvironment("specs.invalid", f"`{file}` {error.message}") from error


def fields_to_payload(fields: Fields) -> Json:
    """Return fields as JSON. Defaults and enums under secret names are masked."""
    redactor = Redactor()

    def mask(name: str, value: object) -> object:
        return redactor.mask({name: value})[name]

    return {
        name: {
            "type": field.type,
            "required": field.required,
            "default": mask(name, field.default),
            "enum": field.enum and [mask(name, value) for value in field.enum],
            "description": field.description,
        }
        for name, field in fields.items()
    }
