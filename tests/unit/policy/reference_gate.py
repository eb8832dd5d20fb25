"""Reference governance gate: may this agent make this call, and all the calls of a run, under this pack?

Written from the rules alone (docs/reference/pack.md), for reading, not for speed. `decide` asks three checks in
order: permission (role and mode), rule (intent, rules that read neither facts nor arguments), situation (the other
rules, then host and named user). `decide_run`, at the end, adds people's answers and the budget of calls. Whatever
is unknown or broken is a no. The middle is a strict JsonLogic: no coercion, no silent null.
"""

# fmt: off
# ruff: noqa: B905, RUF007, E401, E701, E704, I001
import json, math, operator as op, re
from collections import namedtuple
from typing import Any

MODES = ["read_only", "local_write", "network", "delegated", "destructive"]  # lowest first
VERDICTS = ["deny", "refuse", "escalate", "allow_with_gate", "allow"]  # strictest first
DEFAULT_GATE = "GATE_OPERATOR"
RULE_STAGE_ROOTS = {"request", "user", "agent", "run", "call"}  # anything else is a fact or an argument
KNOWN_OBLIGATION = "idempotency_key|named_user|evidence|mask:.+"
MAX_OPERATIONS, MAX_DEPTH, MAX_RULE_BYTES, MAX_NUMBER, MANY = 10_000, 64, 16 * 1024, 2**53 - 1, 10**9
ARGUMENT_COUNTS = {  # operator: fewest and most arguments
    **dict.fromkeys("missing and or + * min max merge cat".split(), (1, MANY)), "if": (2, MANY),
    **dict.fromkeys("missing_some == === != !== > >= / % map filter all some none in".split(), (2, 2)),
    **dict.fromkeys("< <= substr".split(), (2, 3)), **dict.fromkeys("var -".split(), (1, 2)),
    **dict.fromkeys("! !!".split(), (1, 1)), **dict.fromkeys("?: reduce".split(), (3, 3))}
LOOPS = {"map", "filter", "reduce", "all", "some", "none"}  # their second argument is a body, run per item
LIST_MAKERS = {"missing", "missing_some", "map", "filter", "merge"}  # their result may serve as a condition

# ---- JSON values ------------------------------------------------------------------------------------------
class RuleError(Exception): """The rule has no answer; an enforced rule then denies."""
class MissingVariable(RuleError): """The rule read a variable that is not there and gave no default."""
NOT_THERE = object()
def kind(value: Any) -> str:
    """The JSON kind of a value; whole and other numbers are one kind, booleans are not numbers."""
    return {type(None): "null", bool: "boolean", int: "number", float: "number",
            str: "text", list: "list", dict: "object"}[type(value)]
def is_number(value: Any) -> bool:
    """A real, finite number (not a boolean, not NaN)."""
    return kind(value) == "number" and not (isinstance(value, float) and not math.isfinite(value))
def is_whole(value: Any) -> bool: return is_number(value) and value == int(value)
def path_of(name: Any) -> str | None:
    """The path a rule means by a text or a whole number; None for anything else."""
    return name if isinstance(name, str) else str(int(name)) if is_whole(name) else None
def same(left: Any, right: Any) -> bool:
    """JSON equality without coercion: 1 equals 1.0, true does not equal 1, at any depth."""
    if kind(left) != kind(right): return False
    if isinstance(left, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right
def without_nulls(value: Any) -> Any:
    """Remove null facts: keys that hold null go. Null list items keep their place; reading one is missing."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value

# ---- reading a rule before it runs ------------------------------------------------------------------------
def arguments_of(written: Any) -> list:
    """JsonLogic lets a single argument stand without its list."""
    return written if isinstance(written, list) else [written]
def check_form(expression: Any, depth: int = 1) -> None:
    """Raise unless every operation, also one never reached, is known, well-formed and not too deep."""
    if not isinstance(expression, (dict, list)): return
    parts, fits = expression, depth <= MAX_DEPTH
    if isinstance(expression, dict):
        operator, written = next(iter(expression.items()), ("", None))
        parts = arguments_of(written)
        fewest, most = ARGUMENT_COUNTS.get(operator, (1, 0))  # unknown: no number is right
        fits = fits and len(expression) == 1 and fewest <= len(parts) <= most
        fits = fits and (operator != "var" or path_of(parts[0]) is not None)  # the path is written out
    expect("rule", fits)
    for part in parts:
        check_form(part, depth + 1)
def reads_of(rule: dict) -> tuple[str, bool]:
    """The rule's stage, which follows from its reads, and whether it reads or limits the call's arguments."""
    paths: set = set()  # read outside of loop bodies
    computed = False  # does missing or missing_some get names that are not written out?
    limits = bool(rule["then"].get("args"))
    waiting = [rule["if"]]
    while waiting:  # a plain list of work, so that even an absurdly deep rule can be read
        expression = waiting.pop()
        if isinstance(expression, list):
            waiting += expression
        for operator, written in expression.items() if isinstance(expression, dict) else ():
            names, arguments = [], arguments_of(written)
            if operator == "var":
                names = [name for name in arguments[:1] if not isinstance(name, dict)]
            elif operator == "missing":
                names = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list) else arguments
            elif operator == "missing_some":
                names = [name for argument in arguments[1:] for name in arguments_of(argument)]
            paths |= {path_of(name) for name in names} - {None}
            computed = computed or any(isinstance(name, (dict, list)) for name in names)
            waiting += [argument for place, argument in enumerate(arguments)
                        if not (operator in LOOPS and place == 1)]
    roots = {path.split(".")[0] for path in paths}
    stage = "rule" if roots <= RULE_STAGE_ROOTS and not computed and not limits else "situation"
    return stage, limits or "args" in roots

# ---- strict JsonLogic -------------------------------------------------------------------------------------
# What an expression sees: all data, or (`in_body`) an item of a loop; `progress`: operations so far, last_path.
Scope = namedtuple("Scope", "data progress in_body", defaults=[False])
def holds(condition: Any, data: dict, progress: dict) -> bool:
    """Does a rule's `if` hold? Raises RuleError where it has no clear answer."""
    check_form(condition)
    written = json.dumps(condition, ensure_ascii=False, separators=(",", ":"))
    expect(written, len(written.encode("utf-8", "surrogatepass")) <= MAX_RULE_BYTES)
    try:
        result = evaluate(condition, Scope(data, progress))
    except ArithmeticError as error:  # division by zero, a number too large to work with
        raise RuleError from error
    return expect(result, isinstance(result, bool))
def evaluate(expression: Any, scope: Scope) -> Any:
    """The value of a (well-formed) expression."""
    if isinstance(expression, list):
        return [evaluate(item, scope) for item in expression]
    if not isinstance(expression, dict):
        return expression
    scope.progress["operations"] += 1
    expect(expression, scope.progress["operations"] <= MAX_OPERATIONS)
    [(operator, written)] = expression.items()
    arguments = arguments_of(written)
    if operator in UNEVALUATED:  # these decide themselves which arguments to evaluate, and how
        return UNEVALUATED[operator](operator, arguments, scope)
    values = [evaluate(argument, scope) for argument in arguments]
    if operator in ("missing", "missing_some"):
        return missing_names(operator, values, scope)
    if operator in ("==", "===", "!=", "!=="):
        expect(values[0], kind(values[0]) == kind(values[1]))
        return same(*values) == operator.startswith("=")
    if operator == "in":
        return contains(*values)
    if operator == "cat":
        return "".join(expect(value, isinstance(value, str)) for value in values)
    if operator == "substr":
        return substring(*values)
    return calculate(operator, [expect(value, is_number(value)) for value in values])
def expect(value: Any, fits: bool) -> Any:
    """The value, if it fits where it stands."""
    if not fits:
        raise RuleError
    return value
def truth(expression: Any, scope: Scope) -> tuple[bool, Any]:
    """A condition's truth, and its value: a boolean, or whether a list made in the rule itself has items."""
    value = evaluate(expression, scope)
    if isinstance(value, bool):
        return value, value
    operator = next(iter(expression)) if isinstance(expression, dict) else ""
    made_here = isinstance(expression, list) or operator in LIST_MAKERS
    return bool(expect(value, made_here)), value
def look_up(path: str, scope: Scope) -> Any:
    """Follow a dotted path through objects and lists; NOT_THERE if it ends nowhere or at null."""
    if not scope.in_body:  # in a loop body paths belong to the item: not remembered
        scope.progress["last_path"] = path
    found = scope.data
    for part in path.split(".") if path else []:
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and re.fullmatch("0|[1-9][0-9]{0,8}", part) and int(part) < len(found):
            found = found[int(part)]
        else:
            return NOT_THERE
    return NOT_THERE if found is None else found
def read_variable(_: str, arguments: list, scope: Scope) -> Any:
    value = look_up(path_of(arguments[0]), scope)
    if value is NOT_THERE and len(arguments) == 1:
        raise MissingVariable
    return evaluate(arguments[1], scope) if value is NOT_THERE else value
def missing_names(operator: str, values: list, scope: Scope) -> list:
    """`missing`: the names not there. `missing_some`: the same, or none if enough names are there."""
    names = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    if operator == "missing_some":
        names = expect(values[1], is_whole(values[0]) and isinstance(values[1], list))
    paths = [path_of(expect(name, path_of(name) is not None)) for name in names]
    absent = [name for name, path in zip(names, paths) if look_up(path, scope) is NOT_THERE]
    return [] if operator == "missing_some" and len(names) - len(absent) >= values[0] else absent
def choose(_: str, arguments: list, scope: Scope) -> Any:
    """if / else if / else; null where nothing applies and there is no else."""
    for place in range(0, len(arguments) - 1, 2):
        if truth(arguments[place], scope)[0]:
            return evaluate(arguments[place + 1], scope)
    return evaluate(arguments[-1], scope) if len(arguments) % 2 else None
def negate(operator: str, arguments: list, scope: Scope) -> bool:
    return truth(arguments[0], scope)[0] == (operator == "!!")
def join(operator: str, arguments: list, scope: Scope) -> Any:
    """`and` / `or`: the value of the operand that settles it, else of the last; later ones are not run."""
    value = None
    for argument in arguments:
        holds_true, value = truth(argument, scope)
        if holds_true == (operator == "or"):
            break
    return value
def loop(operator: str, arguments: list, scope: Scope) -> Any:
    """map, filter, all, some, none, reduce: every item is looked at, so an error in any item is an error."""
    items, body = evaluate(arguments[0], scope), arguments[1]
    expect(items, kind(items) == "list")
    if operator == "reduce":
        total = evaluate(arguments[2], scope)
        for item in items:
            total = evaluate(body, Scope({"current": item, "accumulator": total}, scope.progress, True))
        return total
    item_scopes = [Scope(item, scope.progress, True) for item in items]
    if operator == "map":
        return [evaluate(body, item_scope) for item_scope in item_scopes]
    answers = [truth(body, item_scope)[0] for item_scope in item_scopes]
    if operator == "filter":
        return [item for item, answer in zip(items, answers) if answer]
    return {"all": bool(answers) and all(answers), "some": any(answers), "none": not any(answers)}[operator]
def merge(_: str, arguments: list, scope: Scope) -> list:
    """One list of the items of several; a constant scalar counts as one item."""
    merged: list = []
    for argument in arguments:
        value = evaluate(argument, scope)
        merged += expect(value, isinstance(value, list)) if isinstance(argument, (dict, list)) else [value]
    return merged
UNEVALUATED = {"var": read_variable, "if": choose, "?:": choose, "and": join, "or": join, "!": negate,
               "!!": negate, "merge": merge, **dict.fromkeys(LOOPS, loop)}
def contains(needle: Any, where: Any) -> bool:
    if isinstance(where, str):
        return expect(needle, isinstance(needle, str)) in where
    expect(where, isinstance(where, list) and all(kind(item) == kind(needle) for item in where))
    return any(same(needle, item) for item in where)
def substring(text: Any, start: Any, length: Any = NOT_THERE) -> str:
    """A negative start counts from the end; a negative length leaves out that many at the end."""
    tail = expect(text, isinstance(text, str))[int(expect(start, is_whole(start))):]
    return tail if length is NOT_THERE else tail[:int(expect(length, is_whole(length)))]
ORDERINGS = {"<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}
ARITHMETIC = {"+": op.add, "-": op.sub, "*": op.mul, "/": op.truediv,
              "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1)}
def calculate(operator: str, numbers: list) -> Any:
    """Ordering and arithmetic on numbers; no computed number, nor any on the way to it, is out of range."""
    if operator in ORDERINGS:
        return all(ORDERINGS[operator](a, b) for a, b in zip(numbers, numbers[1:]))
    if operator in ("min", "max"):
        return min(numbers) if operator == "min" else max(numbers)
    if operator == "-" and len(numbers) == 1:
        numbers = [0, *numbers]
    steps = [numbers[0]]
    for number in numbers[1:]:
        steps.append(ARITHMETIC[operator](steps[-1], number))  # may raise an ArithmeticError
    return expect(steps, all(is_number(step) and abs(step) <= MAX_NUMBER for step in steps[1:] or steps))[-1]

# ---- one rule ---------------------------------------------------------------------------------------------
# A rule that matched, or has no answer (then `matched` is false and the verdict deny).
Finding = namedtuple("Finding", "rule matched verdict stage reason")
def judge(rule: dict, stage: str, arguments: dict | None, facts: dict) -> Finding | None:
    """What one rule says about the call; None if it does not match."""
    then, progress = rule["then"], {"operations": 0, "last_path": ""}
    try:
        if not holds(rule["if"], facts, progress):
            return None
    except RuleError as error:
        unknown = isinstance(error, MissingVariable) and stage == "situation"
        reason = f"evidence_missing:{progress['last_path']}" if unknown else "policy_eval_error"
        return Finding(rule, False, "deny", stage, reason)
    limits = (then.get("args") or {}).items()
    kept = all(within(limit, (arguments or {}).get(name, NOT_THERE)) for name, limit in limits)
    if kept and not all(re.fullmatch(KNOWN_OBLIGATION, item) for item in then.get("obligations") or []):
        return Finding(rule, True, "deny", stage, "policy_eval_error")
    return Finding(rule, True, then["verdict"] if kept else "deny", stage, rule["rule_id"])
def within(limit: dict, value: Any) -> bool:
    """Does an argument keep to its limits {max?, min?, enum?}? An absent one does not."""
    if value is NOT_THERE or (("max" in limit or "min" in limit) and not is_number(value)):
        return False
    if ("max" in limit and value > limit["max"]) or ("min" in limit and value < limit["min"]):
        return False
    return "enum" not in limit or any(same(value, allowed) for allowed in limit["enum"])
def matches_any(patterns: list, name: str) -> bool:
    """Is the name listed? `*` stands for any text; nothing else is special."""
    return any(re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name, re.DOTALL) for pattern in patterns)
def applies(rule: dict, intent: str, capability_id: str) -> bool:
    """A rule without a list of intents (or capabilities) is for all of them."""
    of = rule.get("applies_to") or {}
    pairs = [(of.get("intents"), intent), (of.get("capabilities"), capability_id)]
    return all(patterns is None or matches_any(patterns, name) for patterns, name in pairs)

# ---- the gate ---------------------------------------------------------------------------------------------
def approval_mode(pack: dict, capability: dict) -> str:
    """The highest of effect class, trust level, irreversible effect and the pack's own word."""
    properties, safety = capability.get("properties") or {}, capability.get("safety") or {}
    effects = properties.get("side_effects")
    repeatable = effects is True and properties.get("idempotent") is True
    modes = ["read_only" if effects is False else "local_write" if repeatable else "network"]
    by_trust = {"elevated": "delegated", "privileged": "destructive"}
    modes.append(by_trust.get(safety.get("trust_level"), "read_only"))
    if safety.get("reversible") is False and effects is not False:
        modes.append("destructive")
    tool = (pack["tooling_layer"].get("capabilities") or {}).get(capability["id"]) or {}
    modes.append(tool.get("approval_mode") or "read_only")
    return max(modes, key=MODES.index)
def decide(pack: dict, capability: dict, call: dict) -> dict:
    """The decision on one call: see the module's docstring for the order of checks."""
    mode, name = approval_mode(pack, capability), capability["id"]
    level = MODES.index(mode)
    policy, matched, would = pack["policy_layer"], [], []
    def decision(verdict, stage, reason, rule="", gate="", obligations=()):
        return {"verdict": verdict, "stage": stage, "reason": reason, "rule": rule, "gate": gate,
                "approval_mode": mode, "obligations": list(obligations), "matched": matched, "would": would}
    # 1. Permission: the role, then the ceiling.
    of_role = [each for each in policy.get("permissions") or [] if each["role"] == call["role"]]
    if not any(name in (each.get("allow") or []) for each in of_role):
        return decision("deny", "permission", "permission_denied")
    if level > MODES.index(call["safety_mode"]):
        return decision("deny", "permission", "above_safety_mode")
    # 2. Rule: listed for the intent; then rules that look at the request only. 3. Situation: the other rules.
    meant = [each for each in pack["decision_layer"].get("intents") or [] if each["id"] == call["intent"]]
    if not any(name in (each.get("capabilities") or []) for each in meant):
        return decision("deny", "rule", "not_in_intent")
    facts, enforced = without_nulls(call["data"]), []
    rules = [(rule, *reads_of(rule)) for rule in policy.get("rules") or [] if applies(rule, call["intent"], name)]
    for stage in ("rule", "situation"):
        for rule, rule_stage, on_arguments in rules:
            if rule_stage != stage or (on_arguments and call["arguments"] is None):
                continue
            finding = judge(rule, stage, call["arguments"], facts)
            if finding and rule.get("mode") == "shadow":
                would.append({"rule": rule["rule_id"], "verdict": finding.verdict})
            elif finding:
                enforced.append(finding)
                matched += [rule["rule_id"]] if finding.matched else []
        if any(finding.verdict in ("deny", "refuse") for finding in enforced):
            break
    # The strictest enforced match wins, the first among equals; no match is allow.
    verdict, stage, reason, rule_id, gate = "allow", "situation", "no_rule", "", ""
    if enforced:
        deciding = min(enforced, key=lambda finding: VERDICTS.index(finding.verdict))
        verdict, stage, reason = deciding.verdict, deciding.stage, deciding.reason
        rule_id, then = deciding.rule["rule_id"], deciding.rule["then"]
        gate = then.get("gate") or "" if then["verdict"] == verdict else ""  # only of the rule's own verdict
    asked = [item for finding in enforced if finding.matched for item in finding.rule["then"].get("obligations") or []]
    obligations = list(dict.fromkeys(asked)) if verdict == "escalate" else []  # they bind after a person's yes, too
    if verdict in ("allow", "allow_with_gate"):
        asked += ["idempotency_key"] if level > MODES.index("read_only") else []
        asked += ["named_user"] if level > MODES.index("network") else []
        obligations = list(dict.fromkeys(asked))  # each once
        hosts = pack["tooling_layer"].get("hosts")
        if hosts is not None and call["host"] and call["host"] not in hosts:
            return decision("deny", "situation", "host_not_listed")
        if "named_user" in obligations and not call["named_user"]:
            return decision("deny", "situation", "named_user")
        if verdict == "allow" and mode == "destructive":
            verdict, reason = "allow_with_gate", "destructive"
    if verdict in ("allow_with_gate", "escalate"): gate = gate or DEFAULT_GATE
    return decision(verdict, stage, reason, rule_id, gate, obligations)

# ---- a run: approvals, then budgets -----------------------------------------------------------------------
CALL_LIMITS = {"tool_calls.per_turn": 8, "tool_calls.per_workflow": 32}  # of a run of one turn both count alike
REFUSALS = {"deny": "policy.denied", "refuse": "policy.refused"}
def may_answer(pack: dict, gate: str, answer: dict, user: str, agent: str) -> bool:
    """Somebody in a role of the gate (none named: any); a yes is neither the requesting user's nor the agent's."""
    declared = (pack["policy_layer"].get("gates") or {}).get(gate) or {}
    roles, others = declared.get("approver_roles") or [], {agent} if declared.get("allow_self") else {agent, user}
    return (not roles or answer["role"] in roles) and not (answer["granted"] and answer["by"] in others)
def request_of(pack: dict, call: dict, decision: dict) -> dict:
    """What a person is asked. The answer counts for exactly this: action, pack and decision, as long as it lives."""
    action = {name: call[name] for name in ("capability", "binding", "step", "arguments")}
    declared = (pack["policy_layer"].get("gates") or {}).get(decision["gate"]) or {}
    return {"action": action, "pack": pack, "decision": decision, "ttl_s": declared.get("ttl_s", 7 * 24 * 3600)}
def redeem(waiting: list, request: dict) -> tuple[str, str]:
    """Use up answers to the step until one is a no or holds: what was said, and when (`age_s` after the request)."""
    said, at = "asked", ""
    while waiting and said not in ("rejected", "approved"):
        answer = waiting.pop(0)
        valid = "changed" if answer["request"] != request else "approved"
        valid = "expired" if valid == "approved" and answer["age_s"] >= request["ttl_s"] else valid
        said, at = valid if answer["granted"] else "rejected", answer["at"]
    return said, at
def judge_call(pack: dict, call: dict, waiting: list) -> tuple[list, str, str, dict]:
    """The decisions on one call, how it ends, why, and the last request: judged again as of each yes it was given."""
    run, decided, lifted = call["data"]["run"], [], set()
    while True:
        decision = decide(pack, call["spec"], {**call, "data": {**call["data"], "run": run}})
        if decision["verdict"] == "escalate":  # what a person cannot lift
            named = "named_user" in decision["obligations"] or decision["approval_mode"] in ("delegated", "destructive")
            hosts = pack["tooling_layer"].get("hosts")
            unkept = "named_user" if named and not call["named_user"] else ""
            unkept = "host_not_listed" if hosts is not None and call["host"] and call["host"] not in hosts else unkept
            decision = {**decision, "verdict": "deny", "reason": unkept, "rule": "", "gate": ""} if unkept else decision
        verdict, gate, request = decision["verdict"], decision["gate"], request_of(pack, call, decision)
        asks = verdict in ("allow_with_gate", "escalate")
        passed = asks and (verdict, gate) in lifted  # a yes to a gate lifts no other, and no escalation
        decided.append(("allow", "approved") if passed else (verdict, decision["reason"]))
        if not asks or passed:
            return decided, REFUSALS.get(verdict, "done"), "", request
        said, at = redeem(waiting, request)
        if said == "rejected":
            return decided, "safety.rejected", "", request
        if said != "approved":
            code = "policy.escalated" if (said, verdict) == ("asked", "escalate") else "policy.approval"
            return decided, code, said, request
        lifted.add((verdict, gate))
        run = {**run, "now": at}
def decide_run(pack: dict, calls: list, limits: dict, answers: dict) -> list:
    """What becomes of a run's calls in order, up to the first that is not done; `answers` are lists by step."""
    outcomes, spent = [], 0
    for call in calls:
        decided, end, why, request = judge_call(pack, call, answers.get(call["step"], []))
        for _ in range(call["attempts"] if end == "done" else 0):  # each attempt is a call; a question is none
            spent_up = [key for key, limit in CALL_LIMITS.items() if spent >= limits.get(key, limit)]
            end, why = ("budget.exceeded", spent_up[0]) if spent_up else (end, why)
            spent += not spent_up
        outcomes.append({"step": call["step"], "decided": decided, "end": end, "why": why, "request": request})
        if end != "done":
            break
    return outcomes
