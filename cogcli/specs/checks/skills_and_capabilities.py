"""The checks of skills and capabilities, which read nothing but skills and capabilities.

1. They judge a closure by its skills and capabilities alone: no service, file or variable changes what they find.
2. If they find nothing, that is kept in the compiled cache under the digest of all that they read, so that a warm run
   loads none of them. Problems are not kept: they are found again.
"""

from __future__ import annotations

from typing import Final

from cogcli.base.canonical import digest_of
from cogcli.specs.cache import CompiledFile
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks.context import CheckContext

_KIND: Final = "sound"
_SOUND: Final = CompiledFile({}, [])


def check_skills_and_capabilities(context: CheckContext) -> None:
    """Report the problems of skills and capabilities: in references, graph, dataflow, contracts and gates."""
    cache, key = context.catalog.places.cache, _closure_key(context.catalog)
    if cache is None or not key:
        _check_anew(context)
    elif cache.get(_KIND, key) is None:
        _check_anew(context)
        if not context.has_problems:
            cache.keep(_KIND, key, _SOUND)


def _check_anew(context: CheckContext) -> None:
    from cogcli.specs.checks import capabilities, skills  # a warm run does without

    skills.check_skills(context)
    skills.check_nesting(context)
    capabilities.check_capabilities(context)


def _closure_key(catalog: Catalog) -> str:
    """Return the digest of all that these checks read, or an empty string if nothing may be kept.

    That is so if not all skills and capabilities of the closure are checked, and if one of them has no mapping.
    """
    names = [f"skill:{id}" for id in catalog.skills]
    names += [f"capability:{id}" for id in catalog.capabilities]
    is_whole_closure = catalog.partial and catalog.only is None
    if not is_whole_closure or any(name not in catalog.raw for name in names):
        return ""
    specs = {name: catalog.raw[name] for name in names}
    replaced = {id: [each.json for each in before] for id, before in catalog.replaced.items()}
    return digest_of([specs, catalog.aliases, sorted(catalog.broken), replaced])
