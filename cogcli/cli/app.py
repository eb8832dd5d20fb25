"""The commands: where each is, its summary, and its row of the home screen. Data alone; nothing is imported for it."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run:run", "run a skill; its outputs are the answer"),
    "trace": ("trace:trace", "what happened in an episode; with a SKILL: run it, events live"),
    "state show": ("state:show", "state.json: a summary, a value, a check"),
    "ls": ("ls:ls", "episodes, newest first"),
    "report": ("report:report", "an episode as one HTML page, or several side by side"),
    "diff": ("diff:diff", "what is different between two episodes"),
    "graph": ("graph:graph", "steps and what they wait for; an episode adds their statuses"),
    "gc": ("gc:sweep", "remove old episodes; never one that runs, waits or is pinned"),
    "verify": ("verify:verify", "has an episode been altered?"),
    "resume": ("resume:resume", "go on with an interrupted or paused run, or answer what it asks"),
    "rerun": ("rerun:rerun", "run again as a new episode; results before a step are taken over"),
    "replay": (
        "replay:replay",
        "run an episode again from its log, calling nothing, and compare",
    ),
    "validate": ("validate:validate", "check spec files: all of the project, or these against the registry"),
    "test": ("test:run_tests", "run the test cases beside skills"),
    "registry contracts": (
        "registry:contracts",
        "capabilities keep their contracts: examples give what they say, wrong inputs are refused",
    ),
    "registry smoke": ("registry:smoke", "each capability is called once"),
    "registry executability": (
        "registry:executability",
        "which skills run here, by the cases beside them, and what the others need",
    ),
    "registry coverage": (
        "registry:coverage",
        "what of the registry really runs in examples and cases",
    ),
    "registry stats": (
        "registry:stats",
        "how many specs there are; calls and times of the runs that are kept",
    ),
    "registry catalog": ("registry:catalog", "all specs as one JSON object"),
    "doctor": ("doctor:doctor", "are machine and project ready?"),
    "openapi verify-bindings": (
        "openapi:verify_bindings",
        "call bindings as scenarios say, against mock servers or live",
    ),
    "openapi verify-invoker": (
        "openapi:verify_invoker",
        "the rules of an invoker, each shown against a server on this machine",
    ),
    "openapi verify-errors": (
        "openapi:verify_errors",
        "every error there is, provoked: class, code, exit, retry, fallback",
    ),
    "skills ls": ("inventory:ls", "what can be run"),
    "skills show": ("inventory:show", "a skill's fields, its layer and a line to run it"),
    "skills search": ("inventory:search", "find skills by words"),
    "skills explain": (
        "inventory:explain",
        "what a skill's capabilities are called through, and what is missing",
    ),
    "capabilities ls": ("inventory:ls", "capabilities: contracts"),
    "capabilities show": ("inventory:show", "one in full, its layer and what it replaces"),
    "capabilities search": ("inventory:search", "find capabilities by words"),
    "capabilities explain": (
        "inventory:explain",
        "which binding is chosen for a capability, and why",
    ),
    "bindings ls": ("inventory:ls", "bindings: ways to fulfil capabilities"),
    "bindings show": ("inventory:show", "one in full, its layer and what it replaces"),
    "bindings search": ("inventory:search", "find bindings by words"),
    "bindings explain": (
        "inventory:explain_capability",
        "which binding is chosen for a capability, and why no other",
    ),
    "bindings activate": (
        "bindings_activate:activate_binding",
        "choose a binding for this host, once it passes all checks",
    ),
    "agent chat": ("agent_chat:chat", "a conversation at the terminal: each message is a run"),
    "agent invoke": ("agent:invoke_agent", "one request to the agent of a pack: planned, governed, decided"),
    "agent profile show": (
        "agent_profile:show",
        "what is known of a user, and the episode behind each entry",
    ),
    "agent profile export": ("agent_profile:export", "all that is held of a user"),
    "agent profile forget": ("agent_profile:forget", "delete all that is held of a user, without a trace"),
    "agent sessions ls": ("agent_sessions:ls", "conversations, the last used first"),
    "agent sessions show": ("agent_sessions:show_one", "what was said in a conversation, with the episodes"),
    "agent sessions forget": ("agent_sessions:forget", "delete a conversation"),
    "agent jobs ls": ("agent_jobs:ls", "what is to be learned from users, and what failed"),
    "agent jobs run": ("agent_jobs:run", "learn now what waits to be learned"),
    "pack check": ("pack:check", "is a pack right as a whole: references, rules, contradictions?"),
    "pack hash": ("pack:hash_of", "the reference that names exactly this pack"),
    "pack pin": ("pack:pin", "what a pack's bare id stands for, once its checks and tests pass"),
    "policy check": ("policy:check", "is a policy right: references, contradictions, what can never decide?"),
    "policy test": ("policy:test", "the rules of a pack against the tests beside them"),
    "policy eval": ("policy:evaluate", "what a pack says of a call: 0 allow, 4 no, 5 a person decides"),
    "policy explain": (
        "policy:explain",
        "why governed calls were decided so, and what number decides otherwise",
    ),
    "policy diff": ("policy:diff", "two packs: which rules differ, which recorded decisions change"),
    "context compile": ("context:compile", "what a model would be given for a request; nothing is called"),
    "context explain": ("context:explain", "why each thing that a turn knew of was in its context, or not"),
    "context diff": ("context:diff", "what went into a context and out of it from one turn to another"),
    "metrics": (
        "metrics:metrics",
        "how well agents' runs went; --check: are the targets of their packs met?",
    ),
    "knowledge import": ("knowledge:import_file", "append statements with their evidence, all or none"),
    "knowledge query": ("knowledge:query", "what is known around an entity"),
    "knowledge snapshot": ("knowledge:snapshot", "the name of what the graph holds now"),
    "memory ls": ("memory:ls", "what is kept of users; --why: all about one memory or proposal"),
    "memory proposals": ("memory:proposals", "what waits to be kept"),
    "memory promote": ("memory:promote", "keep a proposal; what it contradicts is shown"),
    "memory reject": ("memory:reject", "refuse a proposal, or take memory back"),
    "memory recall": ("memory:recall", "what a request of a user would be given, and what not"),
    "services ls": ("inventory:ls", "services: what does the work"),
    "services show": ("inventory:show", "one in full, its layer and what it replaces"),
    "services search": ("inventory:search", "find services by words"),
    "services explain": (
        "inventory:explain",
        "what is called through a service, and what keeps it from being called",
    ),
    "services refresh": (
        "services:refresh",
        "what a service offers against what was agreed to; 1 if it differs",
    ),
    "skills export": (
        "skills_exchange:export_folders",
        "write skills as folders with a SKILL.md, for agents that read those",
    ),
    "skills import": (
        "skills_exchange:import_folder",
        "make a skill of a folder with a SKILL.md: one call, with its text and your request",
    ),
    "import agent-skills": (
        "import_agent_skills:agent_skills",
        "what to paste and to choose so that skills of the runner guide's tool run; writes nothing",
    ),
    "schema": ("schema:schema", "JSON Schemas of specs, artifacts and the envelope"),
    "new project": ("new:project", "a directory to work in, with a skill that runs at once"),
    "new skill": ("new:skill", "a skill that runs as it is, or a copy of another one"),
    "new capability": ("new:capability", "a contract: inputs, outputs, effects"),
    "new binding": ("new:binding", "capability, binding and service from the OpenAPI document of an API"),
    "new scenario": ("new:scenario", "a call of a binding with the answer of its mock server"),
    "new pack": ("new:pack", "what an agent may do, and how a request becomes a plan"),
    "serve mcp": (
        "serve:serve_mcp",
        "offer skills as tools of the Model Context Protocol: one client on stdin and stdout, or HTTP",
    ),
    "config show": ("config_show:show", "settings, and where each comes from"),
    "config trust": (
        "config_trust:change_trust",
        "accept every file of this project that decides; a change ends it",
    ),
    "completion show": ("completion:show", "the script with which a shell completes commands and values"),
    "completion install": ("completion:install", "write that script where your shell finds it"),
    "help": ("help:help", "a command, or one of the topics"),
    "explain": ("explain:explain", "an error code: what it means, an example, the cure"),
}
"""Command to module and name in `cli/commands/`, and its summary. The module is imported for its own command alone."""

TOPICS = ("exit-codes", "environment", "inputs", "paths", "formats")

ROWS = (
    ("Run", ("run", "resume", "rerun", "replay"), "run, continue, repeat, re-check"),
    ("Inspect", ("trace", "state", "ls", "diff", "report", "verify"), "what happened, is it unaltered?"),
    ("Author", ("skills", "capabilities", "bindings", "services"), "  ls, show, search, explain"),
    ("", ("new", "graph", "validate", "schema"), "begin, draw, check, editors"),
    ("Agent", ("agent", "policy", "pack", "context", "memory", "knowledge", "metrics"), "who decides?"),
    ("Check", ("doctor", "test", "registry", "openapi"), "is all ready? do they work?"),
    ("Manage", ("gc", "config", "completion", "serve", "import"), "clear, settings, tab key"),
    ("", ("explain", "help"), "codes, topics"),
)
"""The home screen's rows: heading, commands and groups, what they are for."""


def commands_of(group: str) -> list[str]:
    """The commands of a group and of the groups in it; empty for what is no group."""
    return [name for name in COMMANDS if name.startswith(f"{group} ")]


def verbs(group: str) -> list[str]:
    """The words that may follow a group: its commands, and the groups in it."""
    return list(dict.fromkeys(name.removeprefix(f"{group} ").split()[0] for name in commands_of(group)))


def first_words() -> list[str]:
    """What may stand first on a command line: commands without a group, and groups."""
    return list(dict.fromkeys(name.split()[0] for name in COMMANDS))
