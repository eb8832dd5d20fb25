"""The errors for a capability without a usable binding, with hints (docs/reference/binding.md#selection)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cogcli.base.errors import BindingResolutionError
from cogcli.base.problems import did_you_mean, suggestion
from cogcli.specs.binding_chain import CANDIDATE, ChainLink, Reason, Selection, SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import reasons

_PROPOSED: Final = 2
"""The maximum number of bindings that a hint lists with commands."""
_SHOWN: Final = 5
"""The maximum number of bindings that a message lists."""
_INELIGIBLE: Final = "binding.ineligible"


def no_binding_error(
    catalog: Catalog, id: str, candidates: Sequence[str]
) -> BindingResolutionError:
    """Return the error `binding.none`: the capability has no bindings, or only candidates and unreadable files."""
    files = (
        file
        for key, file in catalog.broken.items()
        if key.startswith("binding:") and f"/{id}/" in file
    )
    if broken := next(files, ""):
        return _build_error(
            "binding.none", id, f"no binding: {broken} has errors", f"cogcli validate {broken}"
        )
    hint = f"add one in bindings/CHANNEL/{id}"
    if candidates:
        hint = f"candidates are used only when named: {_suggest_commands(id, candidates[0])}"
    return _build_error("binding.none", id, "no binding", hint)


def no_usable_binding_error(id: str, text: str, hint: str, *, file: str) -> BindingResolutionError:
    """Return the error `binding.none` for a file that should name a usable binding but does not. The problem in `file`
    is reported separately, and the error refers to it.
    """
    error = _build_error("binding.none", id, text, hint)
    error.file = file
    return error


def ambiguous_error(
    catalog: Catalog, id: str, ids: Sequence[str], options: SelectionOptions
) -> BindingResolutionError:
    """Return the error `binding.ambiguous`.

    It lists the bindings, eligible ones first, and explains how to choose one.
    """
    usable, rest = usable_bindings(catalog, ids, options)
    hint = (
        f"name one: {_suggest_commands(id, usable[0])}"
        if usable
        else "none of them can be called here"
    )
    hint += _explain_hint(id, rest)
    text = f"{len(ids)} bindings and no rule names one: {_list_names([*usable, *rest])}"
    return _build_error("binding.ambiguous", id, text, hint)


def usable_bindings(
    catalog: Catalog, ids: Sequence[str], options: SelectionOptions
) -> tuple[list[str], list[str]]:
    """Split bindings by whether they are eligible. Return the eligible ones and the others."""
    usable = [name for name in ids if not reasons(catalog, catalog.bindings[name], options)]
    return usable, [name for name in ids if name not in usable]


def unknown_binding_reason(
    catalog: Catalog, id: str, name: str, options: SelectionOptions | None = None
) -> Reason:
    """Explain why a name is not a binding of the capability. With `options`, the cure proposes only usable bindings."""
    file = catalog.broken.get(f"binding:{name}")
    if file:
        return Reason(_INELIGIBLE, f"its file {file} has errors", f"cogcli validate {file}")
    other = catalog.bound(name) if catalog.bound else None
    if other is not None and other != id:
        return other_capability_reason(catalog, id, other, options)
    return Reason(
        _INELIGIBLE, "there is no such binding", _suggest_binding(catalog, id, name, options)
    )


def other_capability_reason(
    catalog: Catalog, id: str, other_capability: str, options: SelectionOptions | None = None
) -> Reason:
    """Explain that a binding is for another capability. `options` is as in `unknown_binding_reason`."""
    return Reason(
        _INELIGIBLE, f"it binds `{other_capability}`", _suggest_binding(catalog, id, "", options)
    )


def _collect_reasons(links: Sequence[ChainLink]) -> list[Reason]:
    return [reason for link in links for reason in link.reasons]


def _join_reasons(
    beginning: str, chain: Sequence[ChainLink], other_links: Sequence[ChainLink]
) -> str:
    """Return why the binding, its fallbacks and the other bindings of a rule are ineligible, in this order."""
    parts = [f"{beginning}: {chain[0].reason}"]
    parts += [f"its fallback `{link.binding_id}`: {link.reason}" for link in chain[1:]]
    parts += [f"`{link.binding_id}`: {link.reason}" for link in other_links]
    return "; ".join(parts)


def ineligible_error(
    catalog: Catalog,
    selection: Selection,
    options: SelectionOptions,
    *,
    others: Sequence[ChainLink] = (),
    proposed: bool = False,
) -> BindingResolutionError:
    """Return the error for a named binding that is not eligible.

    Its code is `binding.ineligible`, or the code that all reasons have in common. Its hint lists the eligible bindings.
    `others` are the other bindings that the same rule names. `proposed` is true if a user is about to choose the
    binding.
    """
    id, name, tried = selection.capability_id, selection.primary_binding_id, selection.candidates
    all_reasons = _collect_reasons((*tried, *others))
    codes = {reason.code for reason in all_reasons}
    namer = _find_naming_file(catalog, selection)
    beginning = f"`{name}`" if proposed else _describe_origin(selection, namer)
    message = _join_reasons(beginning, tried, others)
    cures = [reason.cure for reason in all_reasons]
    if not proposed:
        cures += _list_usable(catalog, id, options)
    hint = "\n".join(dict.fromkeys(filter(None, cures)))
    error = _build_error(codes.pop() if len(codes) == 1 else _INELIGIBLE, id, message, hint)
    binding = catalog.bindings.get(name)
    if binding and len(tried) == 1:
        error.service_id = binding.service
    if not proposed and (binding is None or binding.capability != id):
        error.file = namer  # it has a problem of its own
    return error


def _describe_origin(selection: Selection, namer: str) -> str:
    """Return the beginning of a sentence that states where the binding was named."""
    if selection.selection_source == "only":
        return f"its only binding `{selection.primary_binding_id}`"
    return f"{namer or '`--bind`'} names `{selection.primary_binding_id}`"


def _find_naming_file(catalog: Catalog, selection: Selection) -> str:
    """Return the file that selects the binding; empty if no file does."""
    id, source = selection.capability_id, selection.selection_source
    if source == "active":
        return catalog.host.active[id].file
    if source == "override":
        return catalog.host.overrides[id].file
    return catalog.defaults.files.get(id, "a policy") if source == "policy" else ""


def _list_usable(catalog: Catalog, id: str, options: SelectionOptions) -> Iterator[str]:
    """Yield hint lines that list the usable bindings, and the commands and flags that choose them."""
    ids = [n for n in catalog.bindings_of.get(id, ()) if catalog.bindings[n].channel != CANDIDATE]
    usable, _ = usable_bindings(catalog, ids, options)
    if usable:
        yield f"or use {_list_names(usable)}:"
    for name in usable[:_PROPOSED]:
        yield from _suggest_commands(id, name).split("\n")


def _suggest_commands(id: str, name: str) -> str:
    return f"cogcli bindings activate {id} {name}\nfor one run: --bind {id}={name}"


def _suggest_binding(catalog: Catalog, id: str, name: str, options: SelectionOptions | None) -> str:
    """Return a hint with the bindings of the capability that are similar to a word, or with all of them.

    With `options`, only usable bindings are included.
    """
    known: Sequence[str] = catalog.bindings_of.get(id, ())
    usable, rest = usable_bindings(catalog, known, options) if options else (known, [])
    if near := suggestion(name, usable):
        return near + _explain_hint(
            id, [each for each in did_you_mean(name, known) if each in rest]
        )
    none = "no binding that can be called here" if rest else "no binding"
    return f"`{id}` has {_list_names(usable) if usable else none}{_explain_hint(id, rest)}"


def _explain_hint(id: str, unlisted: Sequence[str]) -> str:
    return f"\nwhy not {_list_names(unlisted)}: cogcli bindings explain {id}" if unlisted else ""


def _list_names(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _build_error(code: str, id: str, text: str, hint: str) -> BindingResolutionError:
    error = BindingResolutionError(code, f"capability `{id}`: {text}", hint=hint)
    error.capability_id = id
    return error
