"""The composition root: builds the runner and the engine of a run tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cogcli.engine.context import Engine, RunOptions
from cogcli.engine.doubt import EarlierCalls
from cogcli.specs.selection import SelectionOptions, select

if TYPE_CHECKING:
    from cogcli.app.settings import Settings
    from cogcli.bindings.live_runner import LiveRunner
    from cogcli.core.calls import BindingChain
    from cogcli.core.ports import Clock, IdSource
    from cogcli.core.redact import Redactor
    from cogcli.engine.doubt import Doubts
    from cogcli.engine.ports import CapabilityRunner, EventOrder, EventSink
    from cogcli.events.envelope import Event
    from cogcli.governance.approvals import Approvals, Asked
    from cogcli.mapping.apply import ReusedResult
    from cogcli.protocols.pythoncall.readable_files import Reads
    from cogcli.specs.catalog import Catalog


def live_runner(
    settings: Settings,
    catalog: Catalog,
    selection: SelectionOptions,
    redactor: Redactor,
    *,
    max_workers: int = 8,
    selected: Mapping[str, BindingChain] | None = None,
) -> LiveRunner:
    """A runner that calls services through the selected bindings of a catalog; secrets in use are added to `redactor`.

    `selected` are the chains recorded when the run began, by capability: they replace the selection.
    """
    from cogcli.app.user_dirs import state_home
    from cogcli.bindings.breaker import process_circuits
    from cogcli.bindings.live_runner import LiveRunner
    from cogcli.protocols.invoker import InvokerContext
    from cogcli.protocols.secrets import Secrets

    context = InvokerContext(
        secrets=Secrets(settings.environ, redactor.add),
        clock=settings.clock,
        state_dir=state_home(settings.environ),
        environ=settings.environ,
        max_workers=max_workers,
        use_env_proxy=settings.value("use_env_proxy"),
        reads=_reads(settings),
    )
    return LiveRunner(
        catalog,
        lambda capability_id: select(catalog, capability_id, selection),
        context,
        process_circuits(),
        selected,
    )


def _reads(settings: Settings) -> Reads | None:
    if settings.project is None or settings.trust:
        return None
    from cogcli.protocols.pythoncall.readable_files import reads_of

    return reads_of(settings.project, settings.named)


def engine_of(
    catalog: Catalog,
    *,
    options: RunOptions,
    sink: EventSink,
    runner: CapabilityRunner,
    clock: Clock,
    ids: IdSource,
    listener: Callable[[Event], None] | None = None,
    approvals: Approvals | None = None,
    taken_over: Mapping[str, ReusedResult] | None = None,
    order: EventOrder | None = None,
    doubts: Doubts | None = None,
    asked: Mapping[str, Asked] | None = None,
    effects: Mapping[str, Any] | None = None,
    behind: Mapping[str, str] | None = None,
) -> Engine:
    """The engine of one run tree over a catalog; capabilities are found by id and by alias.

    `effects` are those of the run that this one repeats, as in its `run.started`; `behind` as in EarlierCalls.
    """
    by_name = {
        alias: catalog.capabilities[id] for alias, id in catalog.aliases.items() if id in catalog.capabilities
    }
    return Engine(
        sink=sink,
        runner=runner,
        clock=clock,
        ids=ids,
        options=options,
        capabilities={**by_name, **catalog.capabilities},
        skills=catalog.skills,
        listener=listener,
        approvals=approvals,
        taken_over=taken_over,
        order=order,
        doubts=doubts,
        asked=asked,
        earlier=EarlierCalls(effects, behind) if effects else None,
    )


def options_from(recorded: dict[str, Any]) -> RunOptions:
    """The RunOptions recorded in `run.started`; unknown members are left out."""
    known = {name: value for name, value in recorded.items() if name in RunOptions._fields}
    known["confirmed_capabilities"] = frozenset(known.get("confirmed_capabilities") or ())
    return RunOptions(**known)
