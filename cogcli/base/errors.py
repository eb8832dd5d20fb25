"""Every error that a user can see: its class, stable code and exit code.

The module imports nothing, because every command loads it.

`FAILURES` is the failure model as one table (docs/reference/execution.md#errors): an error is
raised with one of the codes of its class, and exit code, `retryable` and `falls_back` follow from
the code alone."""

from __future__ import annotations

OK, NO, USAGE, ENVIRONMENT, VETOED, PENDING, TRANSIENT, BUG = 0, 1, 2, 3, 4, 5, 6, 70
ABORTED = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 143, "ABORT": OK}
"""Exit codes by the reason that ended a run. A run that a person aborted ended as intended."""


class CogcliError(Exception):
    """An error with a stable code, shown to the user in five parts (docs/reference/command-line.md#errors).

    `message` is one sentence without the code. `where`, `expected` and `found` may be empty. `next` contains commands
    that the user can paste.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        next: tuple[str, ...] = (),
        expected: str = "",
        found: str = "",
        file: str = "",
        line: int = 0,
        column: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.next = next
        self.expected = expected
        self.found = found
        self.file = file
        self.line = line
        self.column = column
        self.typed: dict[str, bytes] = {}
        """The origin of a text, such as `--input`, by the `file` that denotes it. Contains only texts that are not
        files.
        """
        self.samples: dict[str, str] = {}
        """An example value for `-p`, by the name of an input that may be missing."""

    # Members of errors of runs. Every error has their defaults, so that no reader asks for its class.
    left: bool | None = None
    attempts: list[dict[str, object]] | tuple[()] = ()
    say: str = ""
    step_id: str | None = None
    capability_id: str | None = None
    binding_id: str | None = None
    service_id: str | None = None

    @property
    def retryable(self) -> bool:
        """Whether `config.retry` may repeat the call after this error."""
        return False

    @property
    def exit_code(self) -> int:
        """Return the process exit code of this error's code."""
        return exit_code(self.code)


class UsageError(CogcliError):
    """A usage error: nothing ran, nothing was written."""


class UnusableEnvironment(CogcliError):
    """The command cannot use the environment, the project or an episode."""


class PathNotFoundError(CogcliError):
    """A requested path does not exist in the document (exit 1, stdout is empty)."""


class RuntimeErrorBase(CogcliError):
    """An error of a run (docs/reference/execution.md#errors). The raising code adds known
    identifiers.

    `left` is the published name of "sent": whether a byte of the request may have been sent. None
    if no request was made.
    """

    def __init__(
        self, code: str, message: str, *, hint: str = "", left: bool | None = None
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.left = left
        self.skill_id: str | None = None
        self.run_id: str | None = None
        self.step_id: str | None = None
        self.capability_id: str | None = None
        self.binding_id: str | None = None
        self.service_id: str | None = None
        self.effect: str | None = None
        """`unknown` if a call got no answer and nothing declares whether it has effects."""
        self.attempts: list[dict[str, object]] = []
        self.record: dict[str, object] | None = None
        """The network exchange before the failure, as members of the attempt's record
        (docs/reference/protocols.md#record).
        """
        self.usage: dict[str, int] | None = None
        """The usage in a reply that was refused."""
        self.reply = ""
        """The reply, as one short line without secrets."""
        self.retry_after: float | None = None
        """Seconds to wait before the next call, if the service demands a wait."""
        self.place: tuple[str | int, ...] = ()
        """Keys and indices of the member of the binding's file whose value could not be read."""
        self.lacking = ""
        """The part of `expected` that is missing."""
        self.present: tuple[str, ...] = ()
        """The keys that are there instead."""
        self.reason = ""
        """Of a refusal by a Python function: its kind, such as `bad-data` (docs/reference/sdk.md#refused)."""
        self.say = ""
        """The text of a pack for the customer (docs/reference/pack.md#say)."""

    @property
    def retryable(self) -> bool:
        """Whether `config.retry` may repeat the call after this error."""
        return FAILURE_OF[self.code].retryable if self.code in FAILURE_OF else False

    @property
    def falls_back(self) -> bool:
        """Whether the next binding of the chain may be tried after this error."""
        return FAILURE_OF[self.code].falls_back if self.code in FAILURE_OF else False


class SkillNotFoundError(RuntimeErrorBase):
    """No registry layer contains a skill with this id."""


class InputValidationError(RuntimeErrorBase):
    """The caller's input or frame does not fit the skill."""


class InvalidSkillSpecError(RuntimeErrorBase):
    """The skill's file has errors."""


class InvalidCapabilitySpecError(RuntimeErrorBase):
    """A capability's file has errors."""


class CapabilityNotFoundError(RuntimeErrorBase):
    """No registry layer contains a capability with this id."""


class MaxSkillDepthExceededError(RuntimeErrorBase):
    """Nested skills go deeper than the limit."""


class InputMappingError(RuntimeErrorBase):
    """A step's input cannot be built from the state."""


class ReferenceResolutionError(RuntimeErrorBase):
    """A reference leads to no value. The message names the failing segment and the existing keys."""


class ExpressionError(RuntimeErrorBase):
    """An expression cannot be evaluated."""


class StepExecutionError(RuntimeErrorBase):
    """A step failed. It has the code and the exit code of the original error (`__cause__`)."""


class BindingResolutionError(RuntimeErrorBase):
    """No binding can be chosen for a capability."""


class ServiceResolutionError(RuntimeErrorBase):
    """A binding's service is missing or cannot be used here."""


class RequestMappingError(RuntimeErrorBase):
    """The binding's request template cannot be filled."""


class ResponseMappingError(RuntimeErrorBase):
    """The service answered, but the response lacks a value that the binding requires."""


class ProtocolRoutingError(RuntimeErrorBase):
    """No invoker implements the binding's protocol."""


class TransportError(RuntimeErrorBase):
    """The service could not be reached."""


class CallTimeoutError(RuntimeErrorBase):
    """One attempt got no response in time."""


class StepTimeoutError(RuntimeErrorBase):
    """A step took longer than its limit."""


class RunTimeoutError(RuntimeErrorBase):
    """The run took longer than its limit."""


class OverloadedError(RuntimeErrorBase):
    """The service reports that it is overloaded."""


class ServerFaultError(RuntimeErrorBase):
    """The service failed."""


class RejectedError(RuntimeErrorBase):
    """The service refused the request."""


class EffectInDoubtError(RuntimeErrorBase):
    """An effect may have happened, and no response confirms or denies it."""


class InputRequiredError(RuntimeErrorBase):
    """A service answered a call with a form, and the call continues after a person's answer. `forms` are those of
    `InputRequested`. `request_state` is returned to the service with the answer.
    """

    def __init__(
        self, code: str, message: str, *, hint: str = "", left: bool | None = None
    ) -> None:
        super().__init__(code, message, hint=hint, left=left)
        self.forms: list[dict[str, object]] = []
        self.request_state: str | None = None


class OutputMappingError(RuntimeErrorBase):
    """The output of a step cannot be written to its targets."""


class FinalOutputValidationError(RuntimeErrorBase):
    """The skill's declared outputs are missing or of another type."""


class SafetyTrustLevelError(RuntimeErrorBase):
    """The run's trust level is below the capability's (docs/reference/execution.md#safety)."""


class SafetyGateFailedError(RuntimeErrorBase):
    """A mandatory gate refused, or returned no clear answer (docs/reference/execution.md#gates)."""


class SafetyScopeError(RuntimeErrorBase):
    """The capability or the service does not permit a target or an address."""


class SafetyConfirmationRequiredError(RuntimeErrorBase):
    """A human has to confirm first (docs/reference/execution.md#approvals)."""


class PolicyDeniedError(RuntimeErrorBase):
    """The policy of a run forbids a call (docs/reference/pack.md#checks)."""


class PolicyApprovalError(RuntimeErrorBase):
    """The policy of a run requires an approval, or an existing approval does not cover the call."""


class BudgetExceededError(RuntimeErrorBase):
    """A call would exceed a budget of its run (docs/reference/pack.md#budgets)."""


class AgentError(RuntimeErrorBase):
    """An agent found no plan that may run, or its context is too small for required items
    (docs/reference/agent-run.md#ends).
    """


class ModelAccessError(RuntimeErrorBase):
    """A language model does not accept the credentials (docs/reference/models.md#errors)."""


class InternalError(RuntimeErrorBase):
    """A bug in cogcli."""


def out_of_memory(detail: str = "") -> InternalError:
    """Return the error that reports a MemoryError."""
    hint = "raise the limit of memory (ulimit -v), or make fewer calls at once (--max-workers)"
    return InternalError("internal", ": ".join(filter(None, ("out of memory", detail))), hint=hint)


class FailureRow:
    """One row of the failure model: which exit code, retry and fallback an error code leads to."""

    __slots__ = ("category", "cls", "codes", "exit", "falls_back", "retryable")

    def __init__(
        self,
        category: str,
        cls: type[CogcliError],
        codes: str,
        exit: int,
        *,
        retryable: bool = False,
        falls_back: bool = False,
    ) -> None:
        self.category = category
        self.cls = cls
        self.codes = tuple(codes.split())
        self.exit = exit
        self.retryable = retryable
        self.falls_back = falls_back


_AGAIN = {"retryable": True, "falls_back": True}
"""The call may be repeated, or made through the next binding."""
FAILURES: tuple[FailureRow, ...] = (
    FailureRow("usage", SkillNotFoundError, "skill.not-found", USAGE),
    FailureRow(
        "usage",
        InputValidationError,
        "input.unknown input.missing input.type input.enum input.schema frame.field",
        USAGE,
    ),
    # These classes also take any code of the static checks, which has no row: see `exit_code`.
    FailureRow("specs", InvalidSkillSpecError, "", ENVIRONMENT),
    FailureRow("specs", InvalidCapabilitySpecError, "", ENVIRONMENT),
    FailureRow("specs", CapabilityNotFoundError, "capability.not-found", ENVIRONMENT),
    FailureRow("specs", MaxSkillDepthExceededError, "skill.depth", ENVIRONMENT),
    FailureRow("input mapping", InputMappingError, "input.reference input.contract", NO),
    FailureRow(
        "control",
        ExpressionError,
        "expr.missing expr.type expr.limit router.no-case foreach.items foreach.limit scatter.failed",
        NO,
    ),
    FailureRow(
        "binding resolution",
        BindingResolutionError,
        "binding.none binding.ambiguous binding.ineligible",
        ENVIRONMENT,
    ),
    FailureRow(
        "service resolution",
        ServiceResolutionError,
        "service.unknown service.module service.untrusted service.forbidden service.login env.missing env.extra",
        ENVIRONMENT,
    ),
    FailureRow(
        "request mapping", RequestMappingError, "request.missing request.value request.size", NO
    ),
    FailureRow(
        "response mapping",
        ResponseMappingError,
        "response.missing response.type response.not-json response.size response.pages",
        NO,
        falls_back=True,
    ),
    FailureRow("protocol routing", ProtocolRoutingError, "protocol.unsupported", ENVIRONMENT),
    FailureRow(
        "invocation: unreachable",
        TransportError,
        "call.transport call.circuit-open",
        TRANSIENT,
        **_AGAIN,
    ),
    FailureRow("invocation: late", CallTimeoutError, "call.timeout", TRANSIENT, **_AGAIN),
    FailureRow("invocation: late", StepTimeoutError, "step.timeout", TRANSIENT, retryable=True),
    FailureRow("invocation: late", RunTimeoutError, "run.timeout", TRANSIENT),
    FailureRow("invocation: overloaded", OverloadedError, "call.overloaded", TRANSIENT, **_AGAIN),
    FailureRow("invocation: server fault", ServerFaultError, "call.server-error", NO, **_AGAIN),
    FailureRow("invocation: rejected", RejectedError, "call.rejected", NO),
    FailureRow("invocation: effect unknown", EffectInDoubtError, "effect.in-doubt", PENDING),
    FailureRow("invocation: unfinished", InputRequiredError, "input.required", PENDING),
    FailureRow(
        "output mapping",
        OutputMappingError,
        "output.missing output.path output.slot-type output.merge",
        NO,
    ),
    FailureRow("final outputs", FinalOutputValidationError, "outputs.missing outputs.type", NO),
    FailureRow("safety", SafetyTrustLevelError, "safety.trust", VETOED),
    FailureRow(
        "safety", SafetyGateFailedError, "safety.gate safety.gate-error safety.rejected", VETOED
    ),
    FailureRow("safety", SafetyScopeError, "safety.scope", VETOED),
    FailureRow("safety", SafetyConfirmationRequiredError, "safety.confirmation", PENDING),
    FailureRow("policy", PolicyDeniedError, "policy.denied policy.refused", VETOED),
    FailureRow("approval", PolicyApprovalError, "policy.approval policy.escalated", PENDING),
    FailureRow("budget", BudgetExceededError, "budget.exceeded", VETOED),
    FailureRow(
        "agent", AgentError, "agent.replans agent.reply context.overpacked model.context", NO
    ),
    FailureRow("agent", ModelAccessError, "model.auth", ENVIRONMENT),
    FailureRow("else", InternalError, "internal", BUG),
    FailureRow(
        "command line",
        UsageError,
        "usage.flag usage.value usage.command input.file input.json input.size input.empty input.encoding"
        " episode.unknown episode.unknown-approval episode.ambiguous episode.sealed episode.archived step.unknown"
        " output.exists"
        " registry.missing rerun.effects memory.unknown session.unknown batch.unknown batch.changed"
        " batch.parts batch.plain-address",
        USAGE,
    ),
    FailureRow("command line", PathNotFoundError, "path.absent", NO),
    FailureRow("command line", CogcliError, "metrics.missed", NO),
    FailureRow("command line", CogcliError, "replay.differs", NO),
    FailureRow("batch", CogcliError, "batch.worker-died", NO),
    FailureRow("batch", CogcliError, "batch.executor-lost", TRANSIENT),
    FailureRow(
        "environment",
        UnusableEnvironment,
        "episode.foreign episode.unreadable episode.altered episode.renamed episode.busy run.exclusive"
        " resume.changed-specs"
        " resume.masked"
        " env.runs-dir env.runs-shared env.disk env.threads signing.key signing.ssh project.none project.link"
        " config.key gateway.file specs.invalid service.leftover binding.fallback export.failed hook.failed"
        " registry.size trust.size"
        " resume.untrusted"
        " pack.unknown pack.mismatch pack.unpinned"
        " archive.unreadable archive.busy archive.refused"
        " limits.lost memory.damaged memory.busy memory.consent snapshot.mismatch session.busy check.nothing"
        " batch.busy batch.collision batch.damaged batch.foreign batch.input-changed batch.rows batch.worker-differs"
        " batch.answer-refused trace.left-out",
        ENVIRONMENT,
    ),
)

FAILURE_OF: dict[str, FailureRow] = {code: row for row in FAILURES for code in row.codes}


def class_of(code: str) -> type[RuntimeErrorBase]:
    """Return the class of the errors of runs that have this code; InternalError if there is none."""
    row = FAILURE_OF.get(code)
    return row.cls if row and issubclass(row.cls, RuntimeErrorBase) else InternalError


def exit_code(code: str) -> int:
    """Return the exit code of an error code.

    A code that `FAILURES` does not list belongs to spec checks
    (docs/reference/failures.md#codes-of-checks-and-findings). It exits as an environment error.
    """
    row = FAILURE_OF.get(code)
    return row.exit if row else ENVIRONMENT
