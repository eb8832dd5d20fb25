"""Every command and flag as one table: parsing, help and `docs/cli.md` all follow from it.

Read on every start, `--help` included: it imports nothing and builds only small plain objects.
"""

from __future__ import annotations

SWITCH, TEXT, INTEGER, NUMBER, CHOICE = "switch", "text", "integer", "number", "choice"
GROUPS = ("Input", "Execution", "Safety", "Output", "Options")

LEVELS = ("sandbox", "standard", "elevated", "privileged")
PROFILES = ("experimental", "standard", "strict")
DURABILITIES = ("process", "power", "none")
PROGRESS = ("auto", "live", "lines", "json", "none")
WHENS = ("auto", "always", "never")
OUTCOMES = ("ok", "error", "vetoed", "aborted", "partial", "interrupted")
VIEWS = ("tree", "timeline", "table", "lineage", "events")
LIST_FORMATS = ("text", "jsonl", "tsv", "csv", "md")


class Flag:
    """One flag. `default` is what help shows; an absent flag has no value when parsed."""

    __slots__ = (
        "choices",
        "default",
        "group",
        "help",
        "kind",
        "least",
        "metavar",
        "most",
        "name",
        "repeatable",
    )

    def __init__(
        self,
        name: str,
        help: str,
        *,
        kind: str = SWITCH,
        metavar: str = "",
        default: str = "",
        group: str = "Options",
        choices: tuple[str, ...] = (),
        repeatable: bool = False,
        least: float | None = None,
        most: float | None = None,
    ) -> None:
        self.name = name
        self.help = help
        self.kind = kind
        self.metavar = metavar
        self.default = default
        self.group = group
        self.choices = choices
        self.repeatable = repeatable
        self.least = least
        self.most = most

    @property
    def spelling(self) -> str:
        """How the flag is typed: `-q`, `--input JSON`."""
        names = {"--help": "-h, --help", "--quiet": "-q, --quiet", "--verbose": "-v, --verbose"}
        return f"{names.get(self.name, self.name)} {self.metavar}".strip()


class Command:
    """One command: `name` is its words, `arguments` the positional ones as help shows them."""

    __slots__ = ("arguments", "examples", "exits", "flags", "least", "most", "name", "summary")

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        arguments: str = "",
        least: int = 0,
        most: int = 0,
        flags: tuple[Flag, ...] = (),
        examples: tuple[tuple[str, str], ...] = (),
        exits: tuple[int, ...] = (0, 2),
    ) -> None:
        self.name = name
        self.summary = summary
        self.arguments = arguments
        self.least = least
        self.most = most
        self.flags = flags
        self.examples = examples
        self.exits = exits


def _text(name: str, metavar: str, help: str, group: str = "Options", *, default: str = "") -> Flag:
    return Flag(name, help, kind=TEXT, metavar=metavar, group=group, default=default)


def _many(name: str, metavar: str, help: str, group: str = "Options") -> Flag:
    return Flag(name, help, kind=TEXT, metavar=metavar, group=group, repeatable=True)


def _choice(
    name: str, metavar: str, choices: tuple[str, ...], help: str, group: str = "Options", *, default: str = ""
) -> Flag:
    return Flag(name, help, kind=CHOICE, metavar=metavar, choices=choices, group=group, default=default)


GLOBAL_FLAGS: tuple[Flag, ...] = (
    _text("-C", "DIR", "start as if in DIR", default="."),
    _many("--registry", "DIR", "one more registry root (repeatable, later wins)"),
    _text("--runs-dir", "DIR", "where episodes live"),
    Flag("--json", "stdout is exactly one JSON envelope, on failure too"),
    _choice("--color", "WHEN", WHENS, "auto, always, never", default="auto"),
    Flag("--quiet", "stderr: errors only"),
    Flag("--verbose", "stderr: every event and every cause"),
    Flag("--debug", "tracebacks, never with values"),
    Flag("--help", "this help"),
    Flag("--version", "the version"),
)

SHORT = {"-C": "-C", "-p": "-p", "-q": "--quiet", "-v": "--verbose", "-h": "--help"}

TRACE_ID = _text("--trace-id", "ID", "correlate runs", "Input", default="32 hex")

RUN_FLAGS: tuple[Flag, ...] = (
    _text("--input", "JSON|@FILE|-", "inputs as JSON, from a file, from stdin", "Input", default="{}"),
    _text("--input-file", "FILE", "inputs from a file (.json, .yaml)", "Input"),
    _many("-p", "k=v", "one input: k=text, k=@FILE, k:=JSON (repeatable, wins)", "Input"),
    TRACE_ID,
    _text("--goal", "TEXT", "the frame's goal", "Input"),
    _text("--frame-file", "FILE", "all six fields of the frame (.json, .yaml)", "Input"),
    _many("--tag", "k=v", "a tag of the episode (repeatable)", "Input"),
    Flag("--seed", "recorded seed", kind=INTEGER, metavar="N", default="0", group="Input",
         least=0, most=2**53 - 1),
    Flag("--plan", "check all, show the plan; run and write nothing", group="Execution"),
    Flag("--keep-going", "after a failure run the steps that do not need it", group="Execution"),
    Flag("--max-workers", "calls at a time", kind=INTEGER, metavar="N", default="8", group="Execution",
         least=1, most=256),
    Flag("--timeout", "seconds for the run", kind=NUMBER, metavar="S", default="none", group="Execution",
         least=0, most=31_536_000),
    Flag("--step-timeout", "seconds for a step", kind=NUMBER, metavar="S", default="60", group="Execution",
         least=0, most=31_536_000),
    _many("--bind", "CAP=BINDING", "use this binding (repeatable)", "Execution"),
    _choice("--conformance", "WORD", PROFILES, "least profile of bindings", "Execution"),
    _choice("--trust-level", "LEVEL", LEVELS, "sandbox, standard (default), elevated, privileged", "Safety"),
    _many("--confirm", "CAP", "confirm a capability in advance (repeatable)", "Safety"),
    _choice("--durability", "WORD", DURABILITIES, "what survives what: process, power, none", "Output",
            default="process"),
    _choice("--progress", "WORD", PROGRESS, "auto, live, lines, json, none", "Output", default="auto"),
)  # fmt: skip

RERUN_FLAGS = frozenset(
    (
        "--trust-level", "--confirm", "--bind", "--keep-going", "--max-workers", "--timeout", "--step-timeout",
        "--conformance", "--tag", "--durability", "--progress",
    )
)  # fmt: skip
"""Of the flags of `run` those that also make sense for a run that is repeated."""

HEADER = Flag("--header", "piped tables begin with a header line", group="Output")
_FORMAT = _choice("--format", "WORD", LIST_FORMATS, "text, jsonl, tsv, csv, md", "Output", default="text")


def _inventory(kind: str, what: str, example: str, domain: str, word: str) -> tuple[Command, ...]:
    """`ls`, `show` and `search` of one kind of spec."""
    return (
        Command(
            f"{kind} ls",
            f"{kind}: {what}",
            flags=(
                _text("--domain", "WORD", "only of this domain"),
                _text("--channel", "WORD", "only of this channel"),
                Flag("--usable", "only what can be called here"),
                _FORMAT,
                HEADER,
            ),
            examples=(
                (f"cogcli {kind} ls", "all"),
                (f"cogcli {kind} ls --domain {domain} --usable", "some"),
                (f"cogcli {kind} ls --format jsonl", "for scripts"),
            ),
            exits=(0, 2, 3),
        ),
        Command(
            f"{kind} show",
            "one in full, its layer and what it replaces",
            arguments="ID",
            least=1,
            most=1,
            flags=(Flag("--source", "the file itself"),),
            examples=(
                (f"cogcli {kind} show {example}", "what it says"),
                (f"cogcli {kind} show {example} --source", "its file"),
                (f"cogcli {kind} show {example} --json | jq .spec", "for scripts"),
            ),
            exits=(0, 2, 3),
        ),
        Command(
            f"{kind} search",
            f"find {kind} by words",
            arguments="TEXT",
            least=1,
            most=100,
            flags=(
                Flag(
                    "--limit", "at most so many", kind=INTEGER, metavar="N", default="10", least=1, most=10**9
                ),
                _FORMAT,
                HEADER,
            ),
            examples=(
                (f"cogcli {kind} search {word}", "by a word"),
                (f"cogcli {kind} search {domain} {word} --limit 3", "by several"),
                (f"cogcli {kind} search {word} --format jsonl", "for scripts"),
            ),
            exits=(0, 2, 3),
        ),
    )


def _explain(kind: str, argument: str, summary: str, example: str) -> Command:
    return Command(
        f"{kind} explain",
        summary,
        arguments=argument,
        least=1,
        most=1,
        examples=(
            (f"cogcli {kind} explain {example}", "in words"),
            (f"cogcli {kind} explain {example} --json | jq .explanation", "for scripts"),
            (f"cogcli {kind} explain {example} -C ../other", "as another project has it"),
        ),
        exits=(0, 2, 3, 4),
    )


COMMANDS: tuple[Command, ...] = (
    Command(
        "run",
        "run a skill; its outputs are the answer",
        arguments="SKILL",
        least=1,
        most=1,
        flags=RUN_FLAGS,
        examples=(
            ("cogcli run text.summarize -p text=@notes.md", "one input from a file"),
            ("cogcli run text.summarize --input-file in.json | jq .", "all inputs from a file"),
            ("cogcli run text.summarize -p text=@notes.md --plan", "what would run?"),
        ),
        exits=(0, 1, 2, 3, 4, 5, 6, 70, 130, 143),
    ),
    Command(
        "trace",
        "what happened in an episode; with a SKILL: run it, events live",
        arguments="[EP|SKILL]",
        most=1,
        flags=(
            _choice("--view", "WORD", VIEWS, ", ".join(VIEWS), "Output", default="tree"),
            _text("--step", "ID", "only this step and what is inside it", "Output"),
            Flag("--io", "what the steps were given and gave", group="Output"),
            _text("--why", "REF", "what made a value what it is, or kept it away: outputs.report", "Output"),
            Flag("--full", "with --view events: a section per event", group="Output"),
            _text("-o", "FILE", "into a new file, long values whole", "Output"),
            Flag("--follow", "of a run that goes on: events as they come, until it ends", group="Output"),
            _choice("--format", "WORD", (*LIST_FORMATS, "mermaid", "dot", "otlp", "chrome"),
                    "text, jsonl, tsv, csv, md, mermaid, dot, otlp, chrome", "Output", default="text"),
            HEADER,
            *RUN_FLAGS,
        ),
        examples=(
            ("cogcli trace @last", "the newest episode as a tree"),
            ("cogcli trace --trace-id trace-001 --why outputs.report", "why is this so, or missing?"),
            ("cogcli trace text.summarize -p text=@notes.md", "run, events live"),
        ),
        exits=(0, 1, 2, 3, 4, 5, 6, 70, 130, 143),
    ),
    Command(
        "state show",
        "state.json: a summary, a value, a check",
        arguments="[EP]",
        most=1,
        flags=(
            _text("--path", "P", "one value: outcomes.actions[0].tool", "Output"),
            _text("--default", "V", "what an absent path prints, with exit 0", "Output"),
            _choice("--format", "WORD", ("raw", "json"), "text bare, or as JSON", "Output", default="raw"),
            Flag("--check", "is it what its events project, byte for byte?"),
            Flag("--project", "the document rebuilt from the events"),
        ),
        examples=(
            ("cogcli state show @last", "a summary"),
            ("cogcli state show @last --path outcomes.status", "one value"),
            ("cogcli state show @last --check", "is it what its events say?"),
        ),
        exits=(0, 1, 2, 3),
    ),
    Command(
        "ls",
        "episodes, newest first",
        flags=(
            Flag("--limit", "at most so many", kind=INTEGER, metavar="N", default="20", least=1, most=10**9),
            Flag("--all", "no limit"),
            _text("--skill", "ID", "only runs of this skill"),
            _text("--outcome", "WORD", "only with this outcome"),
            _many("--tag", "k=v", "only with this tag (repeatable)"),
            _text("--trace-id", "ID", "only of this trace"),
            _text("--since", "AGE", "only younger ones: 30d, 12h, 45m"),
            _FORMAT,
            HEADER,
        ),
        examples=(
            ("cogcli ls", "the newest twenty"),
            ("cogcli ls --outcome error --since 7d", "what went wrong this week"),
            ("cogcli ls --format jsonl | jq -r .episode_id", "for scripts"),
        ),
        exits=(0, 2, 3),
    ),
    Command(
        "diff",
        "what is different between two episodes",
        arguments="[EP EP]",
        most=2,
        flags=(Flag("--exit-code", "1 if they differ", group="Output"),),
        examples=(
            ("cogcli diff", "the newest with the one before"),
            ("cogcli diff @last~5 @last", "with an older one"),
            ("cogcli diff ep_01M7XJNZDYM9 @last --exit-code", "for scripts"),
        ),
        exits=(0, 1, 2, 3),
    ),
    Command(
        "graph",
        "steps and what they wait for; an episode adds their statuses",
        arguments="SKILL|EP",
        least=1,
        most=1,
        flags=(_choice("--format", "WORD", ("text", "mermaid", "dot"), "text, mermaid, dot", "Output",
                       default="text"),),
        examples=(
            ("cogcli graph text.summarize", "a skill"),
            ("cogcli graph @last --format mermaid", "a run, for a page"),
            ("cogcli graph @last --format dot | dot -Tsvg > run.svg", "a run, as a picture"),
        ),
        exits=(0, 2, 3),
    ),
    Command(
        "gc",
        "remove old episodes; never one that runs, waits or is pinned",
        flags=(
            Flag("--keep", "keep so many of the newest", kind=INTEGER, metavar="N", least=0, most=10**9),
            _text("--older-than", "AGE", "only older ones: 30d, 12h, 45m"),
            _choice("--outcome", "WORD", OUTCOMES, "only with this outcome"),
            Flag("--dry-run", "tell what would go; remove nothing"),
            Flag("--yes", "do not ask; needed without a terminal", group="Safety"),
            _many("--pin", "EP", "keep this episode whatever happens (repeatable)", "Safety"),
            _many("--unpin", "EP", "no longer (repeatable)", "Safety"),
        ),
        examples=(
            ("cogcli gc --keep 50 --older-than 30d --dry-run", "what would go?"),
            ("cogcli gc --older-than 90d --outcome ok --yes", "in scripts"),
            ("cogcli gc --pin @last", "keep this one"),
        ),
        exits=(0, 2, 3, 130),
    ),
    Command(
        "verify",
        "has an episode been altered?",
        arguments="[EP...]",
        most=1000,
        flags=(
            Flag("--all", "every episode of the runs directory"),
            Flag("--key", "the key that must have signed it", kind=TEXT, metavar="FILE"),
            Flag("--head", "the hash that its log must end with", kind=TEXT, metavar="HASH"),
            Flag("--repair", "first finish what a crash while sealing left, and move a damaged last line away"),
            Flag("--report", "write junit:PATH, json:PATH or md:PATH", kind=TEXT, metavar="KIND:PATH", repeatable=True),
        ),
        examples=(
            ("cogcli verify @last", "the newest episode"),
            ("cogcli verify @last --key team.pub.pem", "signed by this key?"),
            ("cogcli verify ./mailed/ep_01M7XJNZDYM9 --json", "a copy, for scripts"),
        ),
        exits=(0, 1, 2, 3),
    ),
    Command(
        "resume",
        "go on with an interrupted or paused run, or answer what it asks",
        arguments="EP",
        least=1,
        most=1,
        flags=(
            _many("--approve", "ID|GATE|CAP", "allow this one action (repeatable)", "Safety"),
            _many("--reject", "ID|GATE|CAP", "refuse it: the step is vetoed (repeatable)", "Safety"),
            _text("--by", "NAME[:ROLE]", "who answers", "Safety", default="OS user"),
            _text("--reason", "TEXT", "why", "Safety"),
            _many("--in-doubt", "[STEP=]WORD", "an effect that may have happened: rerun, skip or fail it, or say that"
                  " it is done (repeatable)", "Safety"),
            _many("--output", "[STEP=]JSON", "with done: what it answered, as JSON or @FILE (repeatable)", "Safety"),
            Flag("--allow-changed-specs", "go on although specs were changed since", group="Safety"),
            Flag("--abort", "close the run: nothing more is called, it ends as aborted", group="Safety"),
            _choice("--progress", "WORD", PROGRESS, "auto, live, lines, json, none", "Output", default="auto"),
        ),
        examples=(
            ("cogcli resume @last", "go on"),
            ("cogcli resume @last --approve release.publish", "allow what it asks for, and go on"),
            ("cogcli resume @last --in-doubt done --output @answer.json", "it did happen, and this was its answer"),
        ),
        exits=(0, 1, 2, 3, 4, 5, 6),
    ),
    Command(
        "rerun",
        "run again as a new episode; results before a step are taken over",
        arguments="EP",
        least=1,
        most=1,
        flags=(
            _text("--from", "STEP", "the first step to run again", "Execution", default="first"),
            _many("--effects", "STEP=WORD", "an effect that would happen again: reuse its answer, repeat or fail it"
                  " (repeatable)", "Safety"),
            next(flag for flag in RUN_FLAGS if flag.name == "--plan"),
            *(flag for flag in RUN_FLAGS if flag.name in RERUN_FLAGS),
        ),
        examples=(
            ("cogcli rerun @last", "all of it"),
            ("cogcli rerun @failed --plan", "what would be reused, called and asked"),
            ("cogcli rerun @failed --from summarize", "keep what stands before, try again from there"),
        ),
        exits=(0, 1, 2, 3, 4, 5, 6),
    ),
    Command(
        "replay",
        "run an episode again from its log, calling nothing; does it tell the same story?",
        arguments="[EP]",
        most=1,
        flags=(Flag("--at", "the state as it was after this event", kind=INTEGER, metavar="SEQ", least=0, most=10**9),),
        examples=(
            ("cogcli replay @last", "the newest episode"),
            ("cogcli replay @last --at 3", "what was known after event 3"),
            ("cogcli replay ./mailed/ep_01M7XJNZDYM9", "a copy, with no project around it"),
        ),
        exits=(0, 1, 2, 3),
    ),
    Command(
        "validate",
        "check spec files: all of the project, or these against the registry",
        arguments="[PATH...|-]",
        most=100_000,
        flags=(
            _choice("--format", "WORD", ("text", "concise", "github", "jsonl"), "text, concise, github, jsonl",
                    "Output", default="text"),
            _many("--report", "KIND:PATH", "also write junit, sarif, json, md; github: annotations on stderr "
                  "(repeatable)", "Output"),
            Flag("--strict", "warnings fail, too"),
            _text("--stdin-filename", "FILE", "the file that the text read by `-` stands for"),
        ),
        examples=(
            ("cogcli validate", "everything"),
            ("cogcli validate --report junit:junit.xml --report sarif:cogcli.sarif", "for CI"),
            ("cogcli validate --strict --format github", "in CI"),
        ),
        exits=(0, 1, 2, 3),
    ),
    Command(
        "doctor",
        "are machine and project ready?",
        flags=(
            Flag("--net", "also ask the servers of services whether they answer; no secret is sent"),
            Flag("--strict", "warnings fail, too"),
        ),
        examples=(
            ("cogcli doctor", "all checks"),
            ("cogcli doctor --net --strict", "in CI"),
            ("cogcli doctor --json | jq .checks", "for scripts"),
        ),
        exits=(0, 1, 2, 3),
    ),
    Command(
        "openapi verify-bindings",
        "call bindings as scenarios say, against mock servers or live",
        flags=(
            Flag("--all", "every scenario"),
            _many("--scenario", "FILE", "this one: a file, or a name of the list (repeatable)"),
            _text("--scenarios-dir", "DIR", "where scenarios are", default="tooling/PROTOCOL_scenarios"),
            _choice("--protocol", "WORD", ("openapi", "openrpc", "mcp"), "openapi, openrpc, mcp", default="openapi"),
            Flag("--live", "call the services themselves where a scenario names no mock server"),
            Flag("--jobs", "scenarios at a time", kind=INTEGER, metavar="N", default="4", least=1, most=64),
            _many("--report", "KIND:PATH", "also write junit, json, md; github: annotations on stderr (repeatable)",
                  "Output"),
        ),
        examples=(
            ("cogcli openapi verify-bindings --all", "every scenario, against mock servers"),
            ("cogcli openapi verify-bindings --scenario data.schema.validate.mock", "one"),
            ("cogcli openapi verify-bindings --all --report junit:bindings.xml", "for CI"),
        ),
        exits=(0, 1, 2, 3),
    ),
    Command(
        "openapi verify-invoker",
        "the rules of an invoker, each shown against a server on this machine",
        flags=(
            _choice("--protocol", "WORD", ("openapi", "openrpc", "mcp"), "openapi, openrpc, mcp", default="openapi"),
            _many("--report", "KIND:PATH", "also write junit, json, md; github: annotations on stderr (repeatable)",
                  "Output"),
        ),
        examples=(
            ("cogcli openapi verify-invoker", "timeouts, headers, modes, caps, retries"),
            ("cogcli openapi verify-invoker --json | jq '.scenarios[] | select(.passed | not)'", "what failed"),
            ("cogcli openapi verify-invoker --report junit:invoker.xml", "for CI"),
        ),
        exits=(0, 1, 2, 3),
    ),
    Command(
        "openapi verify-errors",
        "every error there is, provoked: class, code, exit, retry, fallback",
        flags=(
            _many("--report", "KIND:PATH", "also write junit, json, md; github: annotations on stderr (repeatable)",
                  "Output"),
        ),
        examples=(
            ("cogcli openapi verify-errors", "every row of the failure model"),
            ("cogcli openapi verify-errors --json | jq -r '.scenarios[].id'", "which there are"),
            ("cogcli openapi verify-errors --report junit:errors.xml", "for CI"),
        ),
        exits=(0, 1, 2, 3),
    ),
    Command(
        "skills ls",
        "what can be run",
        flags=(
            _text("--domain", "WORD", "only of this domain"),
            _text("--channel", "WORD", "only of this channel"),
            Flag("--usable", "only those that can run here"),
            _FORMAT,
            HEADER,
        ),
        examples=(
            ("cogcli skills ls", "all skills"),
            ("cogcli skills ls --domain text --usable", "some"),
            ("cogcli skills ls --format jsonl", "for scripts"),
        ),
        exits=(0, 2, 3),
    ),
    Command(
        "skills show",
        "a skill's fields, its layer and a line to run it",
        arguments="ID",
        least=1,
        most=1,
        flags=(Flag("--source", "the file itself"),),
        examples=(
            ("cogcli skills show text.summarize", "what it takes"),
            ("cogcli skills show text.summarize --source", "its YAML"),
            ("cogcli skills show text.summarize --json | jq .spec.inputs", "for scripts"),
        ),
        exits=(0, 2, 3),
    ),
    Command(
        "skills search",
        "find skills by words",
        arguments="TEXT",
        least=1,
        most=100,
        flags=(
            Flag("--limit", "at most so many", kind=INTEGER, metavar="N", default="10", least=1, most=10**9),
            _FORMAT,
            HEADER,
        ),
        examples=(
            ("cogcli skills search summary", "by a word"),
            ("cogcli skills search pdf text --limit 3", "by several"),
            ("cogcli skills search json --format jsonl", "for scripts"),
        ),
        exits=(0, 2, 3),
    ),
    _explain("skills", "ID", "what a skill's capabilities are called through, and what is missing", "text.summarize"),
    *_inventory("capabilities", "contracts", "text.content.summarize", "text", "summary"),
    _explain("capabilities", "ID", "which binding is chosen for a capability, and why", "text.content.summarize"),
    *_inventory("bindings", "ways to fulfil capabilities", "python_text_content_summarize_lead", "text", "summarize"),
    _explain("bindings", "CAP", "which binding is chosen for a capability, and why no other", "text.content.summarize"),
    Command(
        "bindings activate",
        "choose a binding for this host, once it passes all checks",
        arguments="CAP BINDING",
        least=2,
        most=2,
        examples=(
            ("cogcli bindings activate text.keyword.extract python_text_keyword_extract_stems", "this one from now on"),
            ("cogcli bindings explain text.keyword.extract", "what can be chosen?"),
            ("cogcli bindings activate web.page.extract python_web_page_extract --json", "for scripts"),
        ),
        exits=(0, 2, 3),
    ),
    *_inventory("services", "what does the work", "official_text", "text", "csv"),
    _explain("services", "ID", "what is called through a service, and what keeps it from being called",
             "official_text"),
    Command(
        "services refresh",
        "what a service offers against what was agreed to; 1 if it differs",
        arguments="ID",
        least=1,
        most=1,
        flags=(Flag("--accept", "agree: write cogcli.lock.json, or the document", group="Safety"),),
        examples=(
            ("cogcli services refresh clock", "what is different"),
            ("cogcli services refresh clock --accept", "agree to it"),
            ("cogcli services refresh clock --json | jq .services", "for scripts"),
        ),
        exits=(0, 1, 2, 3, 4, 6),
    ),
    Command(
        "skills export",
        "write skills as folders with a SKILL.md, for agents that read those",
        arguments="ID...",
        least=1,
        most=1000,
        flags=(_text("--to", "DIR", "where the folders go; needed", "Output"),),
        examples=(
            ("cogcli skills export text.brief --to skills-for-agents", "one: text-brief/SKILL.md"),
            ("cogcli skills export text.brief doc.digest --to .claude/skills", "several"),
            ("cogcli skills export text.brief --to out --json | jq -r '.created[]'", "for scripts"),
        ),
        exits=(0, 2, 3),
    ),
    Command(
        "skills import",
        "make a skill of a folder with a SKILL.md: one call, with its text and your request",
        arguments="DIR",
        least=1,
        most=1,
        flags=(_text("--capability", "CAP", "what is called with the text; needed"),),
        examples=(
            ("cogcli skills import ./pdf-forms --capability llm.text.generate", "as imported.pdf-forms"),
            ("cogcli skills import ./release-notes --capability text.content.summarize", "with one that is here"),
            ("cogcli skills import ./pdf-forms --capability llm.text.generate --json", "for scripts"),
        ),
        exits=(0, 2, 3),
    ),
    Command(
        "schema",
        "JSON Schemas of specs, artifacts and the envelope",
        arguments="[NAME]",
        most=1,
        flags=(Flag("--all", "write every schema"), _text("-o", "DIR", "where --all writes", "Output")),
        examples=(
            ("cogcli schema", "which there are"),
            ("cogcli schema skill > skill.schema.json", "one"),
            ("cogcli schema --all -o schemas", "all"),
        ),
    ),
    Command(
        "serve mcp",
        "offer skills as tools of the Model Context Protocol: one client on stdin and stdout, or HTTP",
        flags=(
            Flag("--http", "listen there instead; on loopback, unless a token is asked for", kind=TEXT,
                 metavar="[HOST:]PORT"),
            Flag("--token-file", "with --http: every request must bear the token in this file", kind=TEXT,
                 metavar="FILE", group="Safety"),
            _many("--skill", "GLOB", "only this skill, or those that match `text.*` (repeatable)"),
            _choice("--tool-names", "WORD", ("underscore", "dots"), "dots of ids as `__`, or as they are",
                    default="underscore"),
            *(flag for flag in RUN_FLAGS if flag.name in RERUN_FLAGS and flag.name != "--progress"),
        ),
        examples=(
            ("cogcli serve mcp", "what a client starts"),
            ("cogcli serve mcp --skill text.brief", "one tool, named text__brief"),
            ("cogcli serve mcp --http 8765", "on http://127.0.0.1:8765/mcp"),
        ),
        exits=(0, 2, 3, 70, 130, 143),
    ),
    Command(
        "config show",
        "settings, and where each comes from",
        arguments="[KEY]",
        most=1,
        flags=(Flag("--origin", "where each value comes from", group="Output"),),
        examples=(
            ("cogcli config show --origin", "all, with origins"),
            ("cogcli config show max_workers", "one"),
            ("cogcli config show --json", "for scripts"),
        ),
        exits=(0, 2, 3),
    ),
    Command(
        "config trust",
        "let the services of this project start code",
        arguments="[DIR]",
        most=1,
        flags=(
            Flag("--folder", "whatever it holds, now and later: for a project of your own", group="Safety"),
            Flag("--revoke", "no longer", group="Safety"),
        ),
        examples=(
            ("cogcli config trust", "the project around you, as it is now"),
            ("cogcli config trust --folder", "a project of your own"),
            ("cogcli config trust --revoke", "no longer"),
        ),
        exits=(0, 2, 3),
    ),
    Command(
        "help",
        "a command, or one of the topics",
        arguments="[TOPIC]",
        most=3,
        examples=(
            ("cogcli help run", "a command"),
            ("cogcli help exit-codes", "a topic"),
            ("cogcli help inputs", "another"),
        ),
    ),
    Command(
        "explain",
        "an error code: what it means, an example, the cure",
        arguments="[CODE]",
        most=1,
        flags=(Flag("--list", "every code"),),
        examples=(
            ("cogcli explain ref.unwritten", "one code"),
            ("cogcli explain --list", "every code"),
            ("cogcli explain input.type --json", "for scripts"),
        ),
    ),
)  # fmt: skip

BY_NAME: dict[str, Command] = {command.name: command for command in COMMANDS}
VERBS: dict[str, tuple[str, ...]] = {
    group: tuple(name.split()[1] for name in BY_NAME if name.startswith(f"{group} "))
    for group in dict.fromkeys(name.split()[0] for name in BY_NAME if " " in name)
}
TOPICS = ("exit-codes", "environment", "inputs", "paths", "formats")
