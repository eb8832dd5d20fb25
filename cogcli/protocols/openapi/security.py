"""openapi: which credentials of a service satisfy an operation (docs/reference/protocols.md#credentials).

1. The first alternative of the document that the service can meet counts. One without credentials counts last.
2. An entry of `auth` meets the scheme of its name if it sends the same thing to the same place: the service file
   decides where credentials are sent, the document only what is required.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from cogcli.base.api_documents.openapi import OpenApiOperation, Scheme
from cogcli.declarations.service_spec import Credential

Usable = Callable[[Credential], bool]
"""Whether the values of credentials can be read."""


def find_credentials(
    operation: OpenApiOperation | None,
    declared: Mapping[str, Credential],
    given: Collection[str],
    is_usable: Usable,
) -> list[Credential]:
    """Return the credentials that a call sends. `given` are the names of its other headers, in lower case.

    If no alternative is usable, return the credentials of the first that the service declares, because reading them
    raises the
    error. If the document requires no credentials, or is missing, it is the first usable entry.
    """
    alternatives = operation.security if operation else ()
    if not alternatives:
        entries = list(declared.values())
        return [next(filter(is_usable, entries), entries[0])] if entries else []
    usable = {name: each for name, each in declared.items() if is_usable(each)}
    for known in (usable, declared):
        for schemes in sorted(alternatives, key=_is_empty):
            found = _credentials_for(schemes, known, given)
            if found is not None:
                return found
    return []


def is_met(
    operation: OpenApiOperation, declared: Mapping[str, Credential], given: Collection[str]
) -> bool:
    """Return whether `auth` and the other headers of a call meet an alternative of an operation."""
    alternatives = operation.security
    return not alternatives or any(
        _credentials_for(schemes, declared, given) is not None for schemes in alternatives
    )


def suggest_auth(operation: OpenApiOperation, declared: Mapping[str, Credential]) -> str:
    """Return a hint that completes the first supported alternative: a missing entry of `auth`, or one that does not
    fit. Empty without such a hint.
    """
    for schemes in operation.security:
        if all(scheme.kind for scheme in schemes):
            lacking = [each for each in schemes if each.name not in declared]
            if lacking:
                return f"add auth.{lacking[0].name}: {_entry_for(lacking[0])} to the service"
            misfits = ((each, explain_misfit(declared[each.name], each)) for each in schemes)
            return next((f"auth.{each.name}: {why}" for each, why in misfits if why), "")
    return ""


def _entry_for(scheme: Scheme) -> str:
    """Return an entry of `auth` for a scheme, with names of variables to be replaced."""
    if scheme.kind == "key":
        return f"{{api_key: NAME, in: {scheme.place}, name: {scheme.key}}}"
    if scheme.kind == "basic":
        return "{user: NAME, password: NAME}"
    word = "" if scheme.word.lower() == "bearer" else f", word: {scheme.word}"
    return f"{{bearer: NAME{word}}}"


def _is_empty(schemes: Collection[Scheme]) -> bool:
    """Return whether an alternative needs no credentials."""
    return not schemes


def _credentials_for(
    schemes: Collection[Scheme], known: Mapping[str, Credential], given: Collection[str]
) -> list[Credential] | None:
    """Return the credentials that meet all schemes of an alternative; None if one is not met."""
    found = []
    for scheme in schemes:
        credential = known.get(scheme.name)
        if credential is not None and not explain_misfit(credential, scheme):
            found.append(credential)
        elif not scheme.header or scheme.header.lower() not in given:
            return None
    return found


def explain_misfit(credential: Credential, scheme: Scheme) -> str:
    """Return why an entry of `auth` does not meet a scheme; empty if it does."""
    sent, wanted = _place_of(credential), f"{scheme.place} `{scheme.key}`"
    if not scheme.kind:
        return "the document asks for credentials of a kind that cannot be given"
    if sent.lower() != wanted.lower() if scheme.place == "header" else sent != wanted:
        return f"it is sent in {sent}, the document asks for {wanted}"
    is_basic = credential.user is not None
    if scheme.kind != "key" and is_basic != (scheme.kind == "basic"):
        return f"the document asks for {'a token' if is_basic else 'a user and a password'}"
    is_worded = scheme.kind == "token" and credential.bearer is not None
    if is_worded and credential.word.lower() != scheme.word.lower():
        return f"the document asks for the word `{scheme.word}` before the token"
    return ""


def _place_of(credential: Credential) -> str:
    if credential.api_key is None:
        return "header `Authorization`"
    return f"{credential.place} `{credential.name}`"
