"""A conversation at a terminal: each message is a run of the agent, each `/word` inspects or
controls it (docs/reference/agent-run.md#chat)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shlex import quote, split
from typing import Final

import orjson

from cogcli.agent.modes import CALLS
from cogcli.agent.use_cases.builtin_pack import find_skill
from cogcli.agent.use_cases.invoke_agent import AgentCommandInput, invoke
from cogcli.agent.use_cases.user_memory import profile_payload
from cogcli.app.signed_answers import sign_answers
from cogcli.base.errors import ABORTED, OK, CogcliError
from cogcli.base.jsonvalue import object_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import visible_block
from cogcli.cli.approve import interruptible, show_request
from cogcli.cli.context import CommandContext
from cogcli.cli.display import Display
from cogcli.cli.envelope import dumps
from cogcli.cli.live_run import AgentOutputs, DisplayListener, find_say, resume_run, watch_start
from cogcli.cli.main import report_error
from cogcli.cli.prompt import terminal_safe
from cogcli.cli.render_error import error_lines
from cogcli.cli.run_flags import RunFlags, TraceFlags
from cogcli.cli.run_report import error_of
from cogcli.cli.run_skill import run_skill
from cogcli.cli.streamed_response import StreamedResponse
from cogcli.cli.trace_episode import inspect
from cogcli.declarations.documents import DecisionFile
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.log_reader import iterate_events
from cogcli.report.humanize import count_of, short_episode
from cogcli.run.log_index import LogIndex
from cogcli.run.results import RunResult
from cogcli.run.resume import ResumeRequest

COMMAND: Final = "agent chat"
_PROMPT: Final = "› "
_HIDDEN_MEMBERS: Final = ("entries", "schema_version", "synthesis_version", "tenant_id")
Ask = Callable[[str, str], AgentCommandInput]
"""A function that builds the request of a message, in a mode."""


class ChatCommand(NamedTuple):
    """A `/word` of a conversation: its description, and the method that handles its argument."""

    help: str
    run: Callable[[Chat, str], None]


class _Person(NamedTuple):
    """The person who answers a request, as `NAME` or `NAME:ROLE`, and the file of the key that signs the answer."""

    by: str = ""
    key: str = ""


class _AgentPart(Record):
    """The member `x-agent` of `state.json`."""

    reasoning: Json


class ChatIdentity(NamedTuple):
    """The tenant of the agent's pack, and the user.

    `guided` is set without a pack and a model: then a message only finds a skill. `has_store` is
    false for a pack from an untrusted project.
    """

    tenant: str
    user: str
    guided: bool = False
    has_store: bool = True


class Chat:
    """A conversation. `ask` builds the request of a message; `title` names the agent."""

    def __init__(
        self, context: CommandContext, ask: Ask, mode: str, party: ChatIdentity, title: str
    ) -> None:
        self._context, self._ask, self._mode = context, ask, mode
        self._party, self._title = party, title
        self._response = StreamedResponse(context.screen)
        self._last: RunResult | None = None
        self._waiting: list[Path] = []
        """The episodes of this conversation that wait for a person, the newest last."""
        self._open = True
        self._exit_code = OK

    def run(self) -> int:
        """Handle lines until `/quit`, the end of input, or a signal that ends the process. Return
        the exit code.
        """
        with interruptible():
            self._run_prompt_loop()
        return self._exit_code

    def _run_prompt_loop(self) -> None:
        """Prompt for lines and handle each of them."""
        self._write_line(f"{self._title}   /help, /quit", "dim")
        while self._open:
            self._context.screen.release_stdout()
            try:
                line = input(terminal_safe(self._context, _PROMPT)).strip()
            except EOFError:
                self._context.screen.notify("\n")
                break
            except KeyboardInterrupt:
                self._write_line("\n/quit or Ctrl-D leaves", "dim")
                continue
            try:
                self._handle_line(line)
            except CogcliError as error:
                report_error(self._context.screen, COMMAND, error, argv=[], context=self._context)
            except (EOFError, KeyboardInterrupt):  # at a nested question
                self._context.screen.notify("\n")

    def _handle_line(self, line: str) -> None:
        """Handle a line: run a `/word`, or send a message."""
        # The project may have changed since the last message.
        self._context.settings.reread_trust()
        word, _, rest = line.partition(" ")
        if not word.startswith("/"):
            if line:
                (self._find_and_run_skill if self._party.guided else self._run_message)(line)
        elif word in WORDS:
            WORDS[word].run(self, rest.strip())
        else:
            self._write_line(f"no {word}; there are {' '.join(WORDS)}")

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _run_message(self, message: str) -> None:
        """Run the agent on a message, and report the result."""
        given = self._ask(message, self._mode)._replace(on_response=self._response)
        listener = DisplayListener(Display(self._context.screen))
        result = invoke(
            self._context.settings,
            given,
            lambda _, control: watch_start(self._context, listener, control),
        )
        self._report_result(result)

    def _find_and_run_skill(self, message: str) -> None:
        """Find the skill for a message without a model.

        Run it with the typed inputs after a confirmation. If no skill matches, display the nearest
        ones.
        """
        answer = find_skill(self._context.settings, message)
        self._write_line(answer.text)
        if answer.hit is None:
            return
        given = []
        for name in answer.hit.missing:
            value = input(f"{name} (@FILE for a file's text): ").strip()
            if not value:
                self._write_line("nothing was run", "dim")
                return
            given.append(f"{name}={value}")
        self._write_line(
            " ".join(["cogcli run", answer.hit.skill_id, *(f"-p {quote(each)}" for each in given)])
        )
        if input("run it? [y/N] ").strip().lower() in ("y", "yes"):
            code = run_skill(self._context, answer.hit.skill_id, RunFlags({"p": given}))
            self._end_after_signal(code)

    def _resume_run(self, directory: Path, request: ResumeRequest) -> None:
        """Resume a waiting run with an answer, and report the result."""
        result, _ = resume_run(self._context, directory, request)
        self._report_result(result)

    def _report_result(self, result: RunResult) -> None:
        """Display the result of a run, and list the requests that wait for an answer."""
        self._last, directory = result, Path(result.directory)
        self._waiting = [each for each in self._waiting if each != directory]
        if result.status == "pending":
            self._waiting.append(directory)
        self._show_result(result)
        if self._waiting and result.status != "pending" and self._open:
            self._write_line(self._count_waiting(), "dim")

    def _count_waiting(self) -> str:
        """Return a text with the number of runs that wait for an answer, and the command to answer."""
        verb = "wait" if len(self._waiting) > 1 else "waits"
        return f"{count_of(len(self._waiting), 'request')} still {verb}: /approve or /reject"

    def _show_result(self, result: RunResult) -> None:
        """Display the response of a run, or the reason for its absence."""
        response = read_record(AgentOutputs, result.outputs).response or ""
        if not self._response.close(response) and response:
            self._context.screen.answer(f"{visible_block(response)}\n")
        if say := find_say(result):
            self._context.screen.answer(f"{visible_block(say)}\n")
        if result.status == "pending":
            self._show_request()
        elif result.status == "aborted":
            self._write_line("stopped", "dim")
            self._end_after_signal(result.exit_code)
        elif error := error_of(result, self._context.again, here=True):
            self._write_error(error)
        elif result.status == "partial":
            self._write_line(self._describe_undone(), "dim")
        elif not response:
            self._context.screen.answer(f"{dumps(result.outputs, indent=True)}\n")

    def _describe_undone(self) -> str:
        """Return the line about a run that did only a part, with its reason where it has one."""
        decision = self._read_decision()
        reason = decision.status_reason if decision else ""
        return f"not done: {reason}" if reason else "not done"

    def _write_error(self, error: Json) -> None:
        """Write an error to stderr."""
        screen = self._context.screen
        for line in error_lines(error, base=self._context.base, width=screen.err.width):
            screen.notify_line(line)

    def _end_after_signal(self, code: int) -> None:
        """End the conversation after any signal but Ctrl-C, which only ends a run."""
        if code == ABORTED["SIGTERM"]:
            self._open, self._exit_code = False, code

    # -- words ---------------------------------------------------------------------------------------------------------

    def show_help(self, _: str) -> None:
        """List the words."""
        for word, row in WORDS.items():
            self._write_line(f"{word:<10} {row.help}")

    def explain(self, _: str) -> None:
        """Display the reasons of the last outcome: the decision, each call, and the pack's verdicts
        on it.
        """
        decision = self._read_decision()
        if decision is None:
            return
        reason = f": {decision.status_reason}" if decision.status_reason else ""
        self._write_line(f"{decision.intent or 'no intent'}: {decision.status}{reason}")
        for each in decision.policy_decisions:
            why = each["rule"] or each["reason"] or ""
            self._write_line(
                f"  {each['capability']}: {each['verdict']}{f' ({why})' if why else ''}"
            )
        for gate in decision.evidence_gates:
            self._write_line(f"  {gate['name']}: {gate['status']}")
        self._write_line(
            f"cogcli context explain {short_episode(self._last.episode_id) if self._last else ''}",
            "dim",
        )

    def show_state(self, _: str) -> None:
        """Display the state of the agent's reasoning."""
        state = self._read_document("state")
        reasoning = read_record(_AgentPart, state.get("x-agent")).reasoning
        if state and not reasoning:
            self._write_line("no model reasons here")
        for name in ("goal", "strategy", "facts", "insights"):
            if value := reasoning.get(name):
                self._write_line(f"{name}: {value if isinstance(value, str) else dumps(value)}")

    def show_trace(self, _: str) -> None:
        """Display the trace of the last run."""
        if self._last is None:
            self._write_line("nothing was asked yet")
        else:
            inspect(self._context, Path(self._last.directory), "", TraceFlags())

    def show_budget(self, _: str) -> None:
        """Display the used part of each limit."""
        decision = self._read_decision()
        if decision is None:
            return
        for key, used in decision.budget.used.items():
            self._write_line(f"{key}: {used} of {decision.budget.limits.get(key, 'any')}")

    def set_mode(self, word: str) -> None:
        """Set the mode of the next messages; without a valid word display the current one."""
        if word in (*CALLS, "adapt"):
            self._mode = word
        self._write_line(
            f"mode {self._mode}" if word == self._mode else f"fast, deep or adapt; now {self._mode}"
        )

    def approve(self, arguments: str) -> None:
        """Display the open request, and approve it after an explicit yes."""
        self._answer_request(arguments, is_granted=True)

    def reject(self, arguments: str) -> None:
        """Display the open request, and reject it."""
        self._answer_request(arguments, is_granted=False)

    def _answer_request(self, arguments: str, *, is_granted: bool) -> None:
        """Display the open request, and record this answer. `arguments` name the person and the
        signing key.
        """
        shown_request = self._show_request()
        if shown_request is None:
            return
        directory, request = shown_request
        verb = "approve" if is_granted else "reject"
        person = _parse_person(arguments)
        if person is None:
            self._write_line(f"write /{verb} NAME:ROLE, or /{verb} NAME:ROLE --sign FILE")
        elif is_granted and request.approver_roles and not person.by:
            roles = ", ".join(request.approver_roles)
            self._write_line(f"as whom? /approve NAME:ROLE, ROLE one of {roles}")
        elif request.signed and not person.key:
            self._write_line(f"only a signed answer counts: /{verb} NAME:ROLE --sign FILE")
        elif not is_granted or input("approve? [y/N] ").strip().lower() in ("y", "yes"):
            self._record_answer(directory, request.approval_id, person, is_granted=is_granted)

    def _record_answer(
        self, directory: Path, approval_id: str, person: _Person, *, is_granted: bool
    ) -> None:
        """Sign the answer if a key was named, record it, and continue the run."""
        by = person.by or self._context.user
        approve, reject = ((approval_id,), ()) if is_granted else ((), (approval_id,))
        answer = ResumeRequest(approve=approve, reject=reject, by=by)
        if person.key:
            settings = self._context.settings
            signed = sign_answers(settings, directory, approve, reject, by, person.key)
            answer = answer._replace(signatures=signed)
        self._resume_run(directory, answer)

    def show_profile(self, _: str) -> None:
        """Display the remembered facts about the user."""
        if not self._party.has_store:
            self._write_line("nothing is remembered: the project is not trusted", "dim")
            return
        profile = profile_payload(self._context.settings, self._party.tenant, self._party.user)
        kept = {
            name: value for name, value in profile.items() if value and name not in _HIDDEN_MEMBERS
        }
        self._context.screen.answer(f"{dumps(kept, indent=True)}\n")

    def leave(self, _: str) -> None:
        """End the conversation. Its session is kept, and so are runs that wait."""
        self._open = False
        for directory in self._waiting:
            self._write_line(f"waits: cogcli resume {directory.name}", "dim")

    # -- what is read and written --------------------------------------------------------------------------------------

    def _show_request(self) -> tuple[Path, ApprovalRequested] | None:
        """Display and return the newest open request of this conversation, with its episode; None without one."""
        while self._waiting:
            directory = self._waiting[-1]
            requests = LogIndex(iterate_events(directory)).open_requests
            if requests:
                show_request(self._context, requests[0], in_full=False)
                self._write_line("/approve or /reject", "dim")
                return directory, read_record(ApprovalRequested, requests[0].payload)
            self._waiting.pop()  # it was answered elsewhere
        self._write_line("nothing waits for an approval")
        return None

    def _read_decision(self) -> DecisionFile | None:
        """Return the decision of the last run; None if it has none."""
        document = self._read_document("decision")
        return read_record(DecisionFile, document) if document else None

    def _read_document(self, name: str) -> Json:
        """Return a document of the last run; empty before the first run."""
        if self._last is None:
            self._write_line("nothing was asked yet")
            return {}
        return object_of(orjson.loads((Path(self._last.directory) / f"{name}.json").read_bytes()))

    def _write_line(self, text: str, style: str = "") -> None:
        """Write text to stderr line by line."""
        for line in visible_block(text).split("\n"):
            self._context.screen.notify_line([(line, style)])


def _parse_person(arguments: str) -> _Person | None:
    """Return the person in the words after `/approve` or `/reject`; None if they cannot be read."""
    try:
        parts = split(arguments)
    except ValueError:  # a quote without its end
        return None
    match parts:
        case []:
            return _Person()
        case ["--sign", key]:
            return _Person("", key)
        case [by] if not by.startswith("-"):
            return _Person(by)
        case [by, "--sign", key]:
            return _Person(by, key)
    return None


WORDS: Final[dict[str, ChatCommand]] = {
    "/help": ChatCommand("these words", Chat.show_help),
    "/why": ChatCommand("why the last answer is what it is", Chat.explain),
    "/state": ChatCommand("goal, strategy, facts and insights", Chat.show_state),
    "/trace": ChatCommand("the last run, turn by turn", Chat.show_trace),
    "/budget": ChatCommand("what the last run used", Chat.show_budget),
    "/mode": ChatCommand("fast, deep or adapt, from the next message on", Chat.set_mode),
    "/approve": ChatCommand("[NAME[:ROLE]] [--sign FILE]: let what waits go on", Chat.approve),
    "/reject": ChatCommand("[NAME[:ROLE]] [--sign FILE]: do not", Chat.reject),
    "/profile": ChatCommand("what is remembered of you", Chat.show_profile),
    "/quit": ChatCommand("leave; the conversation is kept", Chat.leave),
}
"""The words that may be typed instead of a message."""
