"""The options of a run, each declared once (docs/reference/execution.md#options).

The declaration of an option contains its type and default, its flag and help, whether it is a
setting, which other commands accept it, and where the log records it. The flags, the keys of the
configuration, the arguments of `cogcli.api` and the `options` of `run.started` are derived from it.
A value of `RunOptions` carries the options of one run from the command line to the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from cogcli.declarations.field import Declaration, fields_of
from cogcli.declarations.option_types import (
    AnyText,
    BooleanOption,
    EnumOption,
    HostList,
    IdList,
    IntegerOption,
    MatchingText,
    NamedValues,
    NumberPairs,
    OptionType,
    PositiveNumber,
    TextList,
    TextPairs,
    TextSet,
)
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json

INPUT, EXECUTION, SAFETY, OUTPUT = "Input", "Execution", "Safety", "Output"
PANELS: Final = (INPUT, EXECUTION, SAFETY, OUTPUT)
"""Groups of flags in help."""

TRUST_LEVELS: Final = ("sandbox", "standard", "elevated", "privileged")
"""The lowest first."""
CONFORMANCE_PROFILES: Final = ("experimental", "standard", "strict")
"""The weakest first."""
SAFETY_MODES: Final = ("read_only", "local_write", "network", "delegated", "destructive")
"""The lowest first."""
DURABILITIES: Final = ("process", "power", "none")
PROGRESS: Final = ("auto", "live", "lines", "json", "none")
"""The setting for displaying the progress of a run. It is no option of the run."""
HOOKS: Final = ("on_pause", "on_failure", "on_end")
"""The settings of the table `hooks` that contain a command."""

TRACE_ID: Final = MatchingText(
    r"[A-Za-z0-9._:-]{1,128}", "1 to 128 letters, digits, `.`, `_`, `:` or `-`"
)
USER_ID: Final = MatchingText(
    r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}",
    "1 to 64 letters, digits, `.`, `_`, `@` or `-`, the first a letter or a digit",
)
"""Users and sessions of agents."""
HELD_NAME: Final = MatchingText(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
    "1 to 64 letters, digits, `.`, `_` or `-`, the first a letter or a digit",
)
"""A name that only one run at a time may hold."""

SERVE, RERUN, AGENT, CASES = "serve", "rerun", "agent", "cases"
"""The users of some options: three commands and test cases. `run`, `trace SKILL` and the API accept all options."""
_MANY_RUNS: Final = (SERVE, RERUN)
_SKILL_RUNS: Final = (SERVE, RERUN, CASES)
_ANY_RUN: Final = (SERVE, RERUN, AGENT)
_EVERYWHERE: Final = (*_ANY_RUN, CASES)


class Option(Declaration):
    """The declaration of an option."""

    name: str
    """Of the field, the argument of the API and the setting."""

    def __init__(
        self,
        type: OptionType,
        flag: str,
        help: str,
        group: str,
        *,
        default: object = None,
        shown: str | None = None,
        completes: str = "",
        also: tuple[str, ...] = (),
        setting: bool = False,
        logged: str = "",
        logged_inverted: bool = False,
        logged_if_given: bool = False,
        logged_after: str = "",
        help_after: str = "",
    ) -> None:
        super().__init__(default)
        self.type = type
        self.flag, _, self.metavar = flag.partition(" ")
        self.help = help
        self.group = group
        """The group of its flag in help."""
        self.shown_default = shown if shown is not None else _describe_default(default)
        """The default as displayed by help; empty for none."""
        self.completes = completes
        """The words that completion offers, by a name of `cli/completion_values.py`."""
        self.also = also
        """The users of the option in addition to `run`, `trace SKILL` and the API."""
        self.setting = setting
        """Whether it is a key of the configuration and a variable of the environment."""
        self.logged = logged
        """The path in `run.started` that records the option; empty if the log does not."""
        self.logged_inverted = logged_inverted
        """Whether the log records the opposite."""
        self.logged_if_given = logged_if_given
        """Whether the log records it only if it differs from the default. Older logs lack it."""
        self.logged_after = logged_after
        """The option that precedes it in the log, if older logs have another order."""
        self.help_after = help_after
        """The option that precedes it in help, if that is not the previous declaration."""


def _declare_option(type: OptionType, flag: str, help: str, group: str, **more: Any) -> Any:
    """Return the declaration of an option, for use as the default of a field."""
    return Option(type, flag, help, group, **more)


def _describe_default(default: object) -> str:
    """Return the default as help displays it; empty if there is none."""
    is_absent = default is None or default is False or default in ([], {})
    return "" if is_absent else str(default)


class RunOptions(Record):
    """The options of a run, shared by all its nested runs. They do not change during the run.

    Times are in seconds.
    """

    trace_id: str | None = _declare_option(
        TRACE_ID,
        "--trace-id ID",
        "a trace id for related runs",
        INPUT,
        shown="a random one",
        also=(AGENT,),
    )
    goal: str | None = _declare_option(AnyText(), "--goal TEXT", "the frame's goal", INPUT)
    frame: Json = _declare_option(
        NamedValues("a mapping of the six fields of a frame"),
        "--frame-file FILE",
        "all six fields of the frame, from a file (.json, .yaml)",
        INPUT,
        default={},
    )
    tags: dict[str, str] = _declare_option(
        TextPairs("a mapping of texts"),
        "--tag k=v",
        "a tag of the episode (repeatable)",
        INPUT,
        default={},
        also=_EVERYWHERE,
        logged="tags",
    )
    seed: int = _declare_option(
        IntegerOption(), "--seed N", "a seed to record", INPUT, default=0, logged="seed"
    )
    trust_level: str = _declare_option(
        EnumOption(*TRUST_LEVELS),
        "--trust-level LEVEL",
        "sandbox, standard (default), elevated, privileged",
        SAFETY,
        default="standard",
        shown="",
        also=_EVERYWHERE,
        setting=True,
        logged="options.trust_level",
    )
    confirm: list[str] = _declare_option(
        TextSet("a list of capabilities"),
        "--confirm CAP",
        "confirm a capability in advance (repeatable)",
        SAFETY,
        default=[],
        completes="capabilities",
        also=_EVERYWHERE,
        logged="options.confirmed_capabilities",
    )
    keep_going: bool = _declare_option(
        BooleanOption(),
        "--keep-going",
        "after a failure, run the steps that do not need it",
        EXECUTION,
        default=False,
        also=_SKILL_RUNS,
        setting=True,
        logged="options.fail_fast",
        logged_inverted=True,
    )
    max_workers: int = _declare_option(
        IntegerOption(1, 256),
        "--max-workers N",
        "number of calls at the same time",
        EXECUTION,
        default=8,
        also=_SKILL_RUNS,
        setting=True,
        logged="options.max_workers",
    )
    timeout: float | None = _declare_option(
        PositiveNumber(),
        "--timeout S",
        "limit of the run in seconds",
        EXECUTION,
        shown="none",
        also=_EVERYWHERE,
        setting=True,
        logged="options.timeout_seconds",
        logged_after="step_timeout",
    )
    step_timeout: float | None = _declare_option(
        PositiveNumber(),
        "--step-timeout S",
        "limit of a step in seconds",
        EXECUTION,
        shown="60, or a call's own",
        also=_SKILL_RUNS,
        setting=True,
        logged="options.step_timeout_seconds",
    )
    bind: dict[str, str] = _declare_option(
        TextPairs("a mapping of capabilities to bindings"),
        "--bind CAP=BINDING",
        "use this binding (repeatable)",
        EXECUTION,
        default={},
        completes="choices",
        also=_EVERYWHERE,
        logged="options.binds",
    )
    conformance: str | None = _declare_option(
        EnumOption(*CONFORMANCE_PROFILES),
        "--conformance WORD",
        "minimum conformance of bindings",
        EXECUTION,
        also=_SKILL_RUNS,
        setting=True,
        logged="options.required_conformance_profile",
        help_after="no_fallback",
    )
    prefer: list[str] = _declare_option(
        IdList(),
        "--prefer SERVICE",
        "prefer the bindings of this service if they can be called (repeatable)",
        EXECUTION,
        default=[],
        completes="services",
        also=_MANY_RUNS,
        setting=True,
        logged="options.prefer",
        logged_if_given=True,
    )
    no_fallback: bool = _declare_option(
        BooleanOption(),
        "--no-fallback",
        "fail instead of calling a fallback binding",
        EXECUTION,
        default=False,
        also=_ANY_RUN,
        setting=True,
        logged="options.no_fallback",
        logged_if_given=True,
    )
    allow_hosts: list[str] = _declare_option(
        HostList(),
        "--allow-host HOST",
        "a public host that an untrusted skill may call (repeatable)",
        SAFETY,
        default=[],
        also=_ANY_RUN,
    )
    approval_ttl: float = _declare_option(
        PositiveNumber(),
        "--approval-ttl S",
        "how long a request for approval waits, in seconds; a gate of a pack has its own `ttl_s`",
        SAFETY,
        default=604_800.0,
        shown="7 days",
        also=_ANY_RUN,
        setting=True,
        logged="options.approval_ttl_s",
        logged_if_given=True,
    )
    exclusive: str = _declare_option(
        HELD_NAME,
        "--exclusive NAME",
        "hold a name until the run ends, pauses included: no other run that asks for it starts",
        EXECUTION,
        default="",
        also=(RERUN,),
        logged="options.exclusive",
        logged_if_given=True,
    )
    pack: str = _declare_option(
        AnyText("ID or ID@VERSION"),
        "--pack ID[@VERSION]",
        "govern the calls by a pack",
        SAFETY,
        default="",
        completes="packs",
        also=(AGENT, CASES),
        logged="policy.pack",
    )
    with_packs: list[str] = _declare_option(
        TextList("a list of ID or ID@VERSION"),
        "--with-pack ID[@VERSION]",
        "add the rules, guardrails and texts of another pack (repeatable)",
        SAFETY,
        default=[],
        completes="packs",
        also=(AGENT,),
        logged="policy.with_packs",
        logged_if_given=True,
    )
    intent: str = _declare_option(
        AnyText(),
        "--intent ID",
        "an intent of the pack",
        SAFETY,
        default="",
        also=(AGENT, CASES),
        logged="policy.intent",
    )
    user: str = _declare_option(
        USER_ID,
        "--user ID",
        "the user who makes the request, for the pack's rules",
        SAFETY,
        default="",
        also=(AGENT, CASES),
        logged="policy.user",
    )
    safety_mode: str = _declare_option(
        EnumOption(*SAFETY_MODES),
        "--safety-mode MODE",
        "the highest mode that a call may have",
        SAFETY,
        default="",
        also=(AGENT, CASES),
        logged="policy.safety_mode",
    )
    shadow: bool = _declare_option(
        BooleanOption(),
        "--shadow",
        "record what the rules of the pack decide, and enforce none of them",
        SAFETY,
        default=False,
        logged="policy.shadow",
        logged_if_given=True,
    )
    budget: dict[str, int] = _declare_option(
        NumberPairs("a mapping of names to whole numbers"),
        "--budget k=N",
        "lower a budget of the pack (repeatable)",
        SAFETY,
        default={},
        also=(AGENT, CASES),
        logged="policy.budget",
    )
    durability: str = _declare_option(
        EnumOption(*DURABILITIES),
        "--durability WORD",
        "which crashes the log survives: process, power, none",
        OUTPUT,
        default="process",
        also=_ANY_RUN,
        setting=True,
    )

    def to_payload(self) -> Json:
        """Return the `options` of `run.started`."""
        return self._logged_members("options")

    @property
    def policy(self) -> Json:
        """Return the `policy` of `run.started`; empty for the default policy."""
        return {name: value for name, value in self._logged_members("policy").items() if value}

    def _logged_members(self, parent: str) -> Json:
        """Return the options that the log records in this member of `run.started`."""
        payload = {}
        for option in _LOGGED:
            above, _, name = option.logged.rpartition(".")
            value = getattr(self, option.name)
            if above != parent or (option.logged_if_given and value == option.default):
                continue
            payload[name] = _log_value(option, value)
        return payload


def _log_value(option: Option, value: Any) -> object:
    """Return the value of an option in the form of the log."""
    if option.logged_inverted:
        return not value
    return option.type.recorded_form(value)


def _declared_options() -> Iterator[Option]:
    for field in fields_of(RunOptions):
        if isinstance(field.declaration, Option):
            field.declaration.name = field.name
            yield field.declaration


def _in_order(options: Iterable[Option], attribute: str) -> list[Option]:
    """Return the options in order of declaration. An option that refers to another one in `attribute` is moved after
    that option.
    """
    found = list(options)
    for option in [each for each in found if getattr(each, attribute)]:
        before = OPTIONS[getattr(option, attribute)]
        found.remove(option)
        found.insert(found.index(before) + 1, option)
    return found


OPTIONS: Final[Mapping[str, Option]] = {option.name: option for option in _declared_options()}
"""The options of a run by name, in the order of the settings."""
BY_HELP: Final = _in_order(OPTIONS.values(), "help_after")
"""In the order of help, within each group."""
_LOGGED: Final = _in_order((each for each in OPTIONS.values() if each.logged), "logged_after")


def normalized(values: Mapping[str, object]) -> Json:
    """Return the values of options by name, each in its canonical form.

    Null means that an option is not set.
    """
    given = {name: value for name, value in values.items() if value is not None}
    return {name: OPTIONS[name].type.normalize(value) for name, value in given.items()}


def options_from_log(started: Mapping[str, Any]) -> RunOptions:
    """Return the options that a checked payload of `run.started` records.

    Options that the payload lacks have their defaults.
    """
    found: Json = {}
    for option in _LOGGED:
        above, _, name = option.logged.rpartition(".")
        members = started.get(above) if above else started
        if members and (value := members.get(name)) is not None:
            found[option.name] = not value if option.logged_inverted else value
    return RunOptions(**found)
