"""The table of commands: module, summary and row of the home screen. It is pure data and imports
nothing."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run:run", "run a skill and print its outputs"),
    "batch merge": ("batch:merge", "merge the results of shards, or of lines that ran again"),
    "trace": ("trace:trace", "show what happened in a run; with a SKILL: run it, events live"),
    "state show": ("state:show", "show state.json: a summary, one value, or a check"),
    "ls": ("ls:ls", "list runs, newest first"),
    "report": ("report:report", "write an HTML page about a run, or about several side by side"),
    "diff": ("diff:diff", "show what differs between two runs"),
    "graph": ("graph:graph", "draw the steps of a skill or run, and what they wait for"),
    "gc": ("gc:sweep", "remove old episodes, except running, waiting and pinned ones"),
    "episodes archive": ("episodes:archive", "move finished episodes into archives"),
    "episodes extract": ("episodes:extract", "write the folders of archived episodes"),
    "verify": ("verify:verify", "check whether an episode was altered"),
    "resume": ("resume:resume", "resume a stopped or paused run, or answer its request"),
    "approvals ls": ("approvals:ls", "list what waits for a person, in all runs, newest first"),
    "approvals show": ("approvals:show_requests", "show requests in full"),
    "approvals approve": ("approvals:approve", "approve requests, all or none; --resume continues"),
    "approvals reject": ("approvals:reject", "reject requests, all or none; --resume continues"),
    "rerun": ("rerun:rerun", "run again as a new episode, keeping the results before a step"),
    "replay": ("replay:replay", "run an episode again from its log without any call, and compare"),
    "validate": ("validate:validate", "check spec files: the whole project, or the given files"),
    "test": ("test:run_tests", "run the test cases of skills"),
    "registry contracts": (
        "registry:contracts",
        "check capabilities against their examples and contracts",
    ),
    "registry smoke": ("registry:smoke", "call each capability once"),
    "registry executability": (
        "registry:executability",
        "run the cases of each skill, and show what other skills need",
    ),
    "registry coverage": ("registry:coverage", "show which specs run in examples and cases"),
    "registry stats": (
        "registry:stats",
        "count specs, and the calls of kept runs with their times",
    ),
    "registry catalog": ("registry:catalog", "print all specs as one JSON object"),
    "doctor": ("doctor:doctor", "check that this machine and this project are ready"),
    "openapi verify-bindings": (
        "openapi:verify_bindings",
        "test bindings with scenarios, against mock servers or live",
    ),
    "openapi verify-invoker": (
        "openapi:verify_invoker",
        "test the rules of an invoker against a local server",
    ),
    "openapi verify-errors": (
        "openapi:verify_errors",
        "provoke every error, and check class, code, exit, retry, fallback",
    ),
    "skills ls": ("inventory:ls", "list skills: what can run here, and why not"),
    "skills show": (
        "inventory:show",
        "show a skill: inputs, outputs, steps, and a line that runs it",
    ),
    "skills search": ("inventory:search", "find skills by words"),
    "skills explain": (
        "inventory:explain",
        "show the bindings that a skill calls, and what is missing",
    ),
    "capabilities ls": ("inventory:ls", "list capabilities"),
    "capabilities show": (
        "inventory:show",
        "show a capability: fields, layer, and what it replaces",
    ),
    "capabilities search": ("inventory:search", "find capabilities by words"),
    "capabilities explain": (
        "inventory:explain",
        "show which binding is chosen for a capability, and why",
    ),
    "bindings ls": ("inventory:ls", "list bindings"),
    "bindings show": ("inventory:show", "show a binding: request, response, layer"),
    "bindings search": ("inventory:search", "find bindings by words"),
    "bindings explain": (
        "inventory:explain_capability",
        "show which binding is chosen, and why no other",
    ),
    "bindings activate": (
        "bindings_activate:activate_binding",
        "choose a binding for this host, once it passes all checks",
    ),
    "agent chat": ("agent_chat:chat", "talk to an agent at the terminal; each message is a run"),
    "agent invoke": ("agent:invoke_agent", "send one request to the agent of a pack"),
    "agent profile show": (
        "agent_profile:show",
        "show what is known about a user, with the episode of each entry",
    ),
    "agent profile export": (
        "agent_profile:export",
        "print everything that is stored about a user",
    ),
    "agent profile forget": (
        "agent_profile:forget",
        "delete everything that is stored about a user",
    ),
    "agent sessions ls": ("agent_sessions:ls", "list conversations, newest first"),
    "agent sessions show": (
        "agent_sessions:show_one",
        "show the messages of a conversation, with their episodes",
    ),
    "agent sessions forget": ("agent_sessions:forget", "delete a conversation"),
    "agent jobs ls": (
        "agent_jobs:ls",
        "list waiting and failed jobs that learn from users",
    ),
    "agent jobs run": ("agent_jobs:run", "run the waiting jobs now"),
    "pack check": ("pack:check", "check a pack: references, rules, contradictions"),
    "pack hash": ("pack:print_hash", "print the reference that names exactly this pack"),
    "pack pin": ("pack:pin", "pin a pack's bare id to a version, once checks and tests pass"),
    "policy check": ("policy:check", "check the rules of a pack: references, contradictions"),
    "policy test": ("policy:test", "run the tests of a pack's rules"),
    "policy eval": ("policy:evaluate", "judge one call by a pack: 0 allow, 4 deny, 5 ask a person"),
    "policy explain": ("policy:explain", "explain the decisions about governed calls"),
    "policy diff": (
        "policy:diff",
        "compare the rules of two packs, and their effect on recorded calls",
    ),
    "context compile": (
        "context:compile",
        "print what a model would receive for a request; calls nothing",
    ),
    "context explain": (
        "context:explain",
        "explain what the context of a turn contained, and what it left out",
    ),
    "context diff": ("context:diff", "compare the contexts of two turns"),
    "metrics": (
        "metrics:metrics",
        "measure the runs of agents; --check compares them with pack targets",
    ),
    "knowledge import": (
        "knowledge:import_file",
        "add statements with their evidence, all or none",
    ),
    "knowledge query": ("knowledge:query", "show what is known about an entity"),
    "knowledge snapshot": (
        "knowledge:snapshot",
        "print the name of the graph's current state",
    ),
    "memory ls": ("memory:ls", "list what is kept about users; --why explains one entry"),
    "memory proposals": ("memory:proposals", "list the proposals that wait for a decision"),
    "memory promote": ("memory:promote", "keep a proposal; contradictions are shown"),
    "memory reject": ("memory:reject", "reject a proposal, or withdraw a memory"),
    "memory recall": ("memory:recall", "show what a user's request would recall"),
    "services ls": ("inventory:ls", "list services"),
    "services show": ("inventory:show", "show a service: address, layer, and what it replaces"),
    "services search": ("inventory:search", "find services by words"),
    "services explain": (
        "inventory:explain",
        "show what calls a service, and what prevents the calls",
    ),
    "services refresh": (
        "services:refresh",
        "compare a service with what was accepted; 1 if it differs",
    ),
    "services login": (
        "services_login:login",
        "log in to an MCP server, in a browser or as a client",
    ),
    "services logout": ("services_login:logout", "end a login, also at its server"),
    "skills export": (
        "skills_exchange:export_folders",
        "write skills as folders with a SKILL.md for other agents",
    ),
    "skills import": (
        "skills_exchange:import_folder",
        "make a skill from a folder with a SKILL.md",
    ),
    "import agent-skills": (
        "import_agent_skills:agent_skills",
        "show the settings that skills of agent-skills need; writes nothing",
    ),
    "schema": ("schema:schema", "print JSON Schemas of specs, artifacts and the envelope"),
    "new project": ("new:project", "create a project with a skill that runs at once"),
    "new skill": ("new:skill", "create a skill that runs at once, or a copy of another one"),
    "new capability": ("new:capability", "create a capability: inputs, outputs, effects"),
    "new binding": (
        "new:binding",
        "create capability, binding and service from an API or an MCP server",
    ),
    "new scenario": ("new:scenario", "create a test scenario for a binding"),
    "new pack": ("new:pack", "create a pack: what an agent may do"),
    "gateway serve": (
        "gateway:serve",
        "offer the tools of MCP servers again, each call governed and recorded",
    ),
    "gateway status": (
        "gateway:status",
        "list the sessions of gateways, with their calls, denials and open requests",
    ),
    "gateway learn": (
        "gateway_learn:learn",
        "propose a pack from recorded sessions, for a person to review",
    ),
    "gateway tools": (
        "gateway:list_tools",
        "list the tools of the servers behind a gateway: offered, asking, withheld",
    ),
    "gateway hook": (
        "gateway_hook:hook",
        "decide about a call that a host makes itself: the command of its hooks",
    ),
    "gateway config": (
        "gateway_hook:show_config",
        "print or write the hooks of a host that let cogcli decide",
    ),
    "gateway doctor": (
        "gateway_hook:check",
        "check the hooks of a host, and say what lets a call run in spite of them",
    ),
    "gateway mark": (
        "gateway_hook:mark",
        "mark tools of a host as read-only, so that no person is asked",
    ),
    "gateway accept": (
        "gateway:accept",
        "accept the tools of a server in the lock, and mark read-only ones",
    ),
    "serve mcp": ("serve:serve_mcp", "serve skills as MCP tools, on stdin and stdout or over HTTP"),
    "config show": ("config_show:show", "show settings and their origins"),
    "config trust": (
        "config_trust:change_trust",
        "trust this project: accept every file that decides",
    ),
    "completion show": ("completion:show", "print the completion script of a shell"),
    "completion install": ("completion:install", "install the completion script of your shell"),
    "help": ("help:help", "show help for a command or a topic"),
    "explain": ("explain:explain", "explain an error code: meaning, example, cure"),
}
"""Module, function and summary of each command in `cli/commands/`. A module is imported only for
its own command."""

TOPICS = ("commands", "exit-codes", "environment", "inputs", "paths", "formats")
"""The help topics. The first is built from the commands; the others are files in `app/pages/`."""

COMMON = {
    "skills ls": "show what can run here, and why not",
    "run SKILL": "run a skill and print its outputs",
    "ls": "list runs, newest first",
    "trace [EP]": "show what happened in a run",
    "report [EP]": "write an HTML page about a run",
    "resume [EP]": "resume a stopped or paused run",
    "verify [EP]": "check whether a run was altered",
    "new project NAME": "create a project with a skill that runs at once",
    "validate": "check your spec files",
    "doctor": "check that this machine is ready",
}
"""The ten commands of the home screen, in the order of a first hour."""

GROUPS = {
    "Run": ("run", "resume", "approvals", "rerun", "replay", "batch"),
    "Inspect": ("trace", "state", "ls", "diff", "report", "graph", "verify"),
    "Author": ("skills", "capabilities", "bindings", "services", "new", "validate", "schema"),
    "Agent": ("agent", "policy", "pack", "context", "memory", "knowledge", "metrics"),
    "Check": ("doctor", "test", "registry", "openapi"),
    "Manage": (
        "gc",
        "episodes",
        "config",
        "completion",
        "serve",
        "gateway",
        "import",
        "explain",
        "help",
    ),
}
"""The first words of commands by heading of `help commands`."""


def commands_of(group: str) -> list[str]:
    """Return the commands of a group and of its subgroups; empty for a word that is not a group."""
    return [name for name in COMMANDS if name.startswith(f"{group} ")]


def verbs(group: str) -> list[str]:
    """Return the words that may follow a group: its commands and subgroups."""
    return list(
        dict.fromkeys(name.removeprefix(f"{group} ").split()[0] for name in commands_of(group))
    )


def first_words() -> list[str]:
    """Return the possible first words of a command line: groups, and commands without a group."""
    return list(dict.fromkeys(name.split()[0] for name in COMMANDS))
