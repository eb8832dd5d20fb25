"""pythoncall in a thread (docs/reference/protocols.md#pythoncall)."""

from __future__ import annotations

import gc
import importlib.util
import py_compile
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fakes.surroundings import surroundings

from cogcli.base.calls import Cancellation
from cogcli.base.errors import RuntimeErrorBase
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.protocols.invoker import (
    CallLimits,
    InvocationRequest,
    InvocationResponse,
    InvokerContext,
)
from cogcli.protocols.pythoncall.invoker import PythonCall
from cogcli.protocols.pythoncall.stdout_capture import CAP, capture_output, divert_streams

pytestmark = pytest.mark.sampled(4)

Invoke = Callable[..., InvocationResponse]


def asked(
    service: Service,
    operation: str,
    payload: dict[str, Any],
    limit: float = 5.0,
    context: InvokerContext | None = None,
) -> InvocationResponse:
    caller = PythonCall(context or surroundings())
    try:
        return call(caller, service, operation, payload, limit)
    finally:
        caller.close(1.0)


def call(
    caller: PythonCall,
    service: Service,
    operation: str,
    payload: dict[str, Any],
    limit: float = 5.0,
) -> InvocationResponse:
    binding = Binding(
        id="b",
        capability="c.a",
        service=service.id,
        protocol="pythoncall",
        operation=operation,
        request={},
        response={},
    )
    request = InvocationRequest(
        service, binding, operation, payload, "none", "k", "c.a", "run_1", "s", 1
    )
    return caller.invoke(request, CallLimits(time.monotonic() + limit, Cancellation()))


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Callable[..., Invoke]]:
    """Writes a module below a root of its own and gives a way to call it."""
    names: list[str] = []

    def write(
        source: str, *, name: str = "", trusted: bool = True, root: Path | None = None
    ) -> Invoke:
        own = name or f"mod_{tmp_path.name.replace('-', '_')}_{len(names)}"
        names.append(own.partition(".")[0])
        file = tmp_path.joinpath(*own.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        where = root if root is not None else tmp_path
        service = Service(
            id="svc",
            kind="pythoncall",
            module=own,
            isolation="thread",
            root=str(where),
            trusted=trusted,
        )
        return lambda operation="f", limit=5.0, **payload: asked(service, operation, payload, limit)

    yield write
    for name in list(sys.modules):
        if name.partition(".")[0] in names:
            del sys.modules[name]


def refused(invoke: Invoke, *args: Any, **kwargs: Any) -> RuntimeErrorBase:
    with pytest.raises(RuntimeErrorBase) as caught:
        invoke(*args, **kwargs)
    return caught.value


def test_a_call_gets_nothing_from_a_trusted_service_with_the_same_ids(tmp_path: Path) -> None:
    """What calls of a binding share is kept for one service and one binding, not for their ids."""
    service = Service(id="svc", kind="pythoncall", module="cogcli.official.memory", trusted=True)
    caller = PythonCall(surroundings()._replace(store_dir=str(tmp_path)))
    given = {"key": "k", "value": "v"}
    call(caller, service, "store_entry", given)
    untrusted = service.replace(trusted=False)
    assert refused(call, caller, untrusted, "store_entry", given).code == "call.rejected"
    caller.close(1.0)


@pytest.mark.parametrize("trusted", [True, False])
def test_a_service_that_is_not_trusted_has_no_store(tmp_path: Path, trusted: bool) -> None:
    module = "cogcli.official.memory"
    service = Service(id="svc", kind="pythoncall", module=module, trusted=trusted)
    context = surroundings()._replace(store_dir=str(tmp_path))
    call = partial(asked, service, "store_entry", {"key": "k", "value": "v"}, context=context)
    if trusted:
        call()
    else:
        assert refused(call).code == "call.rejected"
    assert (tmp_path / "entries.db").exists() is trusted
    found = asked(service, "retrieve_entry", {"key": "k"}, context=context).body
    assert found["found"] is trusted


def test_payload_keys_are_keyword_arguments(module: Any) -> None:
    f = module("def f(a, *, b=2, **rest):\n    return {'got': [a, b, rest]}\n")
    assert f(a=1, c=3).body == {"got": [1, 2, {"c": 3}]}


# -- rule 1: what may be imported --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["os", "os.path", "subprocess", "builtins", "test.support", "__main__", "cogcli", "cogcli.base.files", "cogcli.app",
     "cogcli.officialx", "", "a b", "a..b", ".a", "a-b", "../a"],
)  # fmt: skip
def test_other_modules_are_refused_before_any_import(name: str) -> None:
    service = Service(id="svc", kind="pythoncall", module=name, root="/nowhere", trusted=True)
    before = set(sys.modules)
    with pytest.raises(RuntimeErrorBase) as caught:
        asked(service, "f", {})
    assert (caught.value.code, caught.value.left) == ("service.forbidden", False)
    assert set(sys.modules) == before


def test_an_untrusted_project_imports_nothing_of_its_own(module: Any, tmp_path: Path) -> None:
    f = module(f"open({str(tmp_path / 'imported')!r}, 'w')\ndef f(): return {{}}\n", trusted=False)
    assert refused(f).code == "service.untrusted"
    assert not (tmp_path / "imported").exists()


def test_bytecode_that_came_with_a_project_is_never_run(module: Any, tmp_path: Path) -> None:
    """What was accepted is source: bytecode beside it, or in its place, may say anything."""
    compiled = py_compile.compile  # both ways in which Python would believe it
    evil = tmp_path / "evil.py"
    evil.write_text("def f():\n    return {'text': 'evil'}\n")
    name = "pack_with_bytecode"
    source = f"from {name}.part import g\ndef f(): return {{'text': g()}}\n"
    module(source, name=f"{name}.__init__")
    (tmp_path / name / "part.py").write_text("def g():\n    return 'good'\n")
    for part in ("__init__.py", "part.py"):
        cached = importlib.util.cache_from_source(str(tmp_path / name / part))
        compiled(
            str(evil), cfile=cached, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )
    service = Service(
        id="svc",
        kind="pythoncall",
        module=name,
        isolation="thread",
        root=str(tmp_path),
        trusted=True,
    )
    assert asked(service, "f", {}).body == {"text": "good"}
    worker = service.replace(isolation="process")
    assert asked(worker, "f", {}, 30.0).body == {"text": "good"}
    assert not list(tmp_path.glob("*.pyc"))
    compiled(str(evil), cfile=str(tmp_path / "sourceless.pyc"))
    alone = service.replace(module="sourceless")
    assert refused(lambda: asked(alone, "f", {})).code == "service.module"


@pytest.mark.sampled(16)
@pytest.mark.slow
def test_modules_of_many_roots_are_imported_at_once(tmp_path: Path) -> None:
    def call(n: int) -> Any:
        root = tmp_path / f"root{n}"
        root.mkdir()
        (root / f"of_root_{n}.py").write_text(f"import string\ndef f(): return {{'n': {n}}}\n")
        service = Service(
            id="svc",
            kind="pythoncall",
            module=f"of_root_{n}",
            isolation="thread",
            root=str(root),
            trusted=True,
        )
        return asked(service, "f", {}).body

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(call, range(60))) == [{"n": n} for n in range(60)]


def test_a_module_that_looks_for_others_itself_gets_source_alone(
    module: Any, tmp_path: Path
) -> None:
    (tmp_path / "lib_own").mkdir()
    helper = tmp_path / "lib_own/helper_of_a_test.py"
    helper.write_text("WORD = 'evil'\n")
    cached = importlib.util.cache_from_source(str(helper))
    py_compile.compile(
        str(helper), cfile=cached, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    helper.write_text("WORD = 'good'\n")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
        packed.writestr("packed_of_a_test.py", "WORD = 'evil'\n")
    f = module(
        "import os, sys\nhere = os.path.dirname(os.path.abspath(__file__))\n"
        "sys.path[:0] = [os.path.join(here, 'lib_own'), os.path.join(here, 'packed.zip')]\n"
        "try:\n    import packed_of_a_test as found\nexcept ImportError:\n    import helper_of_a_test as found\n"
        "finally:\n    del sys.path[:2]\n"
        "def f(): return {'text': found.WORD}\n"
    )
    try:
        assert f().body == {"text": "good"}
    finally:
        sys.modules.pop("helper_of_a_test", None)


def test_shipped_modules_need_no_trust() -> None:
    import cogcli.official as official

    name = next(
        p.stem for p in Path(official.__file__ or "").parent.glob("*.py") if p.stem != "__init__"
    )
    service = Service(id="svc", kind="pythoncall", module=f"cogcli.official.{name}", trusted=False)
    with pytest.raises(RuntimeErrorBase) as caught:
        asked(service, "no_such_function", {})
    assert caught.value.code == "service.module"


# -- rule 2: where it is found ----------------------------------------------------------------------------------------


def test_a_root_serves_the_allowed_module_and_its_package_only(module: Any, tmp_path: Path) -> None:
    (tmp_path / "neighbour_x.py").write_text("def g(): return {}\n")
    f = module(
        "import importlib\ndef f():\n    importlib.import_module('neighbour_x')\n    return {}\n"
    )
    assert "neighbour_x" in refused(f).message
    inside = module("from . import other\ndef f(): return {'n': other.N}\n", name="pack_x.main")
    (tmp_path / "pack_x" / "__init__.py").write_text("")
    (tmp_path / "pack_x" / "other.py").write_text("N = 4\n")
    assert inside().body == {"n": 4}


def test_what_was_installed_below_a_root_is_not_served(module: Any, tmp_path: Path) -> None:
    """The trust in a project does not look into it."""
    for folder in ("beside_x", "beside_x/env", "beside_x/node_modules"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
        (tmp_path / folder / "inner.py").write_text("N = 4\n")
    (tmp_path / "beside_x/env/pyvenv.cfg").write_text("")
    f = module(
        "import importlib\ndef f(name): return {'n': importlib.import_module(name).N}\n",
        name="asks_x",
    )
    assert f(name="beside_x.inner").body == {"n": 4}
    assert "beside_x.env" in refused(f, name="beside_x.env.inner").message
    assert "beside_x.node_modules" in refused(f, name="beside_x.node_modules.inner").message


def test_the_working_directory_is_not_searched(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    f = module("def f(): return {}\n", root=elsewhere)
    assert refused(f).code == "service.module"


def test_the_finder_of_a_module_is_taken_away_again(module: Any) -> None:
    module("def f(): return {}\n", name="first_x")()  # the one for packages beside modules stays
    before = list(sys.meta_path)
    module("def f(): return {}\n")()
    refused(module("raise ValueError('boom')\n"))
    assert sys.meta_path == before


@pytest.mark.parametrize(
    "line",
    ["raise ValueError('boom')", "import sys; sys.exit(3)", "raise BaseException('b')", "def ("],
)
def test_a_module_that_cannot_be_imported_is_told(module: Any, line: str) -> None:
    error = refused(module(line + "\n"))
    assert (error.code, error.left) == ("service.module", False)


# -- rule 3: which functions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "class f:\n    pass\n",
        "f = lambda: {}\n",
        "f = len\n",
        "from os.path import join as f\n",
        "import functools\nf = functools.partial(dict)\n",
        "f = {}\n",
        "x = 1\n",
        "class F:\n    def __call__(self): return {}\nf = F()\n",
    ],
)
def test_only_functions_written_in_the_module_are_operations(module: Any, source: str) -> None:
    error = refused(module(source))
    assert (error.code, error.left) == ("service.module", False)
    assert "`f`" in error.message


@pytest.mark.parametrize("name", ["_f", "__init__", "f.g", "f()", "", "__builtins__"])
def test_names_that_are_no_operations(module: Any, name: str) -> None:
    f = module("def _f(): return {}\ndef f(): return {}\nf.g = _f\n")
    assert refused(f, name).code == "service.module"


def test_a_decorated_function_is_still_of_its_module(module: Any) -> None:
    f = module(
        "import functools\n"
        "def d(g):\n    @functools.wraps(g)\n    def w(**k): return g(**k)\n    return w\n"
        "@d\ndef f(a): return {'a': a}\n"
    )
    assert f(a=1).body == {"a": 1}


# -- rule 4: arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signature", "payload"),
    [
        ("a, b", {"a": 1}),
        ("a", {"a": 1, "c": 2}),
        ("*, a", {}),
        ("a, /", {"a": 1}),
        ("a, /, **rest", {"a": 1}),
        ("*args", {"args": []}),
        ("", {"a": 1}),
    ],
)
def test_payloads_that_do_not_fit_the_signature_never_enter(
    module: Any, signature: str, payload: dict[str, Any]
) -> None:
    error = refused(module(f"def f({signature}): raise SystemError\n"), **payload)
    assert (error.code, error.left) == ("request.value", False)


@pytest.mark.parametrize(
    "signature", ["a=1", "a=1, /, b=2, c=3, d=4", "*, a=1", "*args, **kwargs", "a=1, *, b=2"]
)
def test_defaults_need_not_be_given(module: Any, signature: str) -> None:
    assert module(f"def f({signature}): return {{}}\n")().body == {}


def test_a_type_error_from_inside_is_a_server_fault(module: Any) -> None:
    error = refused(module("def g(a): pass\ndef f(): return g()\n"))
    assert (error.code, error.left) == ("call.server-error", True)


# -- rule 5: results --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ("{'a': [1, object()]}", "`a.1`"),
        ("{'a': float('nan')}", "`a`"),
        ("{'a': {'b': float('-inf')}}", "`a.b`"),
        ("{'a': 2**53}", "`a`"),
        ("{'a': {1: 2}}", "`a`"),
        ("{'a': b'x'}", "`a`"),
        ("{'a': {1, 2}}", "`a`"),
        ("{'a': '\\ud800'}", "`a`"),
        ("[1]", "expected an object"),
        ("None", "expected an object"),
        ("'text'", "expected an object"),
        ("(x for x in 'a')", "generator"),
        ("[[]] and (lambda l: (l.append(l), {'l': l})[1])([])", "deeper"),
    ],
)
def test_results_that_are_no_json_object_are_refused_with_their_place(
    module: Any, expression: str, place: str
) -> None:
    error = refused(module(f"def f(): return {expression}\n"))
    assert (error.code, error.left) == ("response.not-json", True)
    assert place in error.message


def test_tuples_are_lists(module: Any) -> None:
    assert module("def f(): return {'t': (1, (2, ()))}\n")().body == {"t": [1, [2, []]]}


RECORDS = """
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

class Tone(str, Enum):
    CALM = "calm"

class Rank(IntEnum):
    ONE = 1

class Point(NamedTuple):
    x: int
    y: float

class Sly(dict):
    def items(self): raise OSError
    __iter__ = keys = __getitem__ = items

@dataclass
class Reply:
    tone: Tone
    point: Point
    more: dict

def f():
    return Reply(Tone.CALM, Point(Rank.ONE, 0.5), Sly(a=OrderedDict({Tone.CALM: [Rank.ONE]})))

def g(n):
    return {"a": {"b": [Tone.CALM, Point(1, [2**53, float("nan"), {1}][n])]}}
"""


@pytest.mark.parametrize("isolation", ["thread", pytest.param("process", marks=pytest.mark.slow)])
def test_values_of_other_types_are_taken_as_what_they_are(
    module: Any, tmp_path: Path, isolation: str
) -> None:
    module(RECORDS, name="mod_of_records")
    service = Service(
        id="svc",
        kind="pythoncall",
        module="mod_of_records",
        isolation=isolation,
        root=str(tmp_path),
        trusted=True,
    )
    assert asked(service, "f", {}).body == {
        "tone": "calm",
        "point": {"x": 1, "y": 0.5},
        "more": {"a": {"calm": [1]}},
    }
    for n in range(3):
        error = refused(asked, service, "g", {"n": n})
        assert error.code == "response.not-json"
        assert "`a.b.1.y`" in error.message


def test_results_are_copies(module: Any) -> None:
    f = module("KEPT = {'l': [1]}\ndef f(): return KEPT\n")
    f().body["l"].append(2)
    assert f().body == {"l": [1]}


def test_values_that_cannot_be_looked_at_do_not_crash(module: Any) -> None:
    f = module(
        "class M(type):\n    @property\n    def __name__(self): raise OSError('no')\n"
        "class K(metaclass=M): pass\n"
        "def f(): return {'a': K()}\n"
    )
    assert refused(f).code == "response.not-json"


# -- what goes wrong inside -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["raise ValueError('boom')", "raise SystemExit(3)", "raise KeyboardInterrupt", "raise BaseException('x')",
     "raise GeneratorExit", "import asyncio; raise asyncio.CancelledError", "raise TimeoutError('own')",
     "raise MemoryError", "raise ImportError('x')", "import no_such_module_x", "raise StopIteration"],
)  # fmt: skip
@pytest.mark.parametrize("prefix", ["", "async "])
def test_whatever_a_function_raises_is_a_server_fault(module: Any, line: str, prefix: str) -> None:
    error = refused(module(f"{prefix}def f():\n    {line}\n"))
    assert (error.code, error.left) == ("call.server-error", True)


def test_endless_recursion_is_a_server_fault(module: Any) -> None:
    gc.collect()  # what earlier tests left would be finalized without a frame to spare
    assert refused(module("def f(): return f()\n")).code == "call.server-error"


def test_messages_are_cut_and_a_message_that_fails_is_replaced(module: Any) -> None:
    assert len(refused(module("def f(): raise ValueError('x' * 10_000)\n")).message) <= 500
    error = refused(
        module("class E(Exception):\n    def __str__(self): raise OSError\ndef f(): raise E\n")
    )
    assert error.message.startswith("E: (its message cannot be shown) (at ")


REFUSING = """
from cogcli.sdk import Refused
class Own(Refused):
    pass
def plain(): raise Refused("bad-data", "row 3 has no date", "write it as 2024-05-01")
def short(): raise Refused("no-evidence", "nothing says so")
def derived(): raise Own("too-large", "more than 8 MiB")
def caused():
    try:
        int("x")
    except ValueError as error:
        raise Refused("bad-data", "no number") from error
async def later(): raise Refused("needs-model", "only a model can")
def empty(): raise Refused("unsupported", "")
class Wrong(Refused):
    def __init__(self): self.reason = self.message = object(); self.hint = None
def wrong(): raise Wrong()
def endless(): raise Refused("r" * 900, "m" * 900, "h" * 900)
"""
REFUSALS = [
    ("plain", "bad-data", "row 3 has no date", "write it as 2024-05-01"),
    ("short", "no-evidence", "nothing says so", ""),
    ("derived", "too-large", "more than 8 MiB", ""),
    ("caused", "bad-data", "no number", ""),
    ("later", "needs-model", "only a model can", ""),
    ("empty", "unsupported", "unsupported", ""),
    ("endless", "r" * 40, "m" * 500, "h" * 500),
]


@pytest.mark.parametrize(("name", "reason", "message", "hint"), REFUSALS)
def test_what_a_function_refuses_is_rejected_with_its_reason_message_and_hint(
    module: Any, name: str, reason: str, message: str, hint: str
) -> None:
    error = refused(module(REFUSING), name)
    assert (error.code, error.left, error.exit_code) == ("call.rejected", True, 1)
    assert (error.reason, error.message, error.hint) == (reason, message, hint)
    assert (error.retryable, error.falls_back) == (False, False)


def test_a_refusal_of_other_things_than_texts_is_still_one(module: Any) -> None:
    error = refused(module(REFUSING), "wrong")
    assert (error.code, error.message[:7]) == ("call.rejected", "<object")


@pytest.mark.parametrize("where", ["import", "call"])
def test_a_missing_extra_is_told_with_its_install_line(
    module: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    source = (
        "import pypdf\ndef f(): return {}\n"
        if where == "import"
        else "def f():\n    import pypdf\n    return {}\n"
    )
    error = refused(module(source))
    assert (error.code, error.exit_code, error.hint) == (
        "env.extra",
        3,
        "pip install 'cogcli[pdf]'",
    )


def test_async_functions_have_their_own_loop_cancelled_at_the_deadline(module: Any) -> None:
    f = module(
        "import asyncio\nSEEN = []\n"
        "async def f(s):\n"
        "    try:\n        await asyncio.sleep(s)\n"
        "    except asyncio.CancelledError:\n        SEEN.append(1)\n        raise\n"
        "    return {'ok': True}\n"
        "def seen(): return {'n': len(SEEN)}\n"
    )
    assert f(s=0).body == {"ok": True}
    started = time.monotonic()
    error = refused(f, limit=0.1, s=60)
    assert (error.code, error.left) == ("call.timeout", True)
    assert time.monotonic() - started < 20
    assert f("seen").body == {"n": 1}


# -- usage ------------------------------------------------------------------------------------------------------------


def test_usage_is_taken_from_the_top_of_the_body_and_only_whole_counts(module: Any) -> None:
    f = module("def f(u): return {'usage': u}\n")
    good = {"input_tokens": 3, "output_tokens": 0}
    assert (
        f(
            u={**good, "total": 5, "bad_tokens": -1, "odd_tokens": 1.5, "true_tokens": True}
        ).meta.usage
        == good
    )
    for nothing in ({}, None, 5, [], {"input_tokens": "3"}):
        assert f(u=nothing).meta.usage is None


# -- rule 8: what is printed ------------------------------------------------------------------------------------------

PRINTER = """
import sys, threading
print("while importing")
def f():
    print("plain"); print("err", file=sys.stderr); sys.stdout.write("w"); sys.stdout.writelines(["a", "b"])
    sys.stdout.buffer.write(b"bytes"); sys.stdout.flush(); sys.stderr.flush()
    t = threading.Thread(target=lambda: print("from a thread")); t.start(); t.join()
    return {}
"""


def test_nothing_a_function_prints_reaches_our_streams(
    module: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with divert_streams():
        module(PRINTER)()
        print("ours")
        print("ours too", file=sys.stderr)
    assert capfd.readouterr() == ("ours\n", "ours too\n")


def test_what_a_function_prints_is_told_however_it_ends(module: Any) -> None:
    f = module("def f(bad):\n    print('looking')\n    return {'n': 1 // (0 if bad else 1)}\n")
    with divert_streams():
        assert f(bad=False).meta.printed == "looking\n"
        assert refused(f, bad=True).record == {"printed": "looking\n"}
        assert module("def f(): return {}\n")().meta.printed == ""


def test_a_failure_names_the_line_of_its_own_module_and_no_value(module: Any) -> None:
    source = "import json\ndef f(text):\n    return g(text)\ndef g(text):\n    json.loads(text)\n    return {}\n"
    message = refused(module(source, name="deep.notes"), text="sesame-open").message
    assert (
        message == "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (at deep/notes.py:5)"
    )
    late = refused(module("async def f():\n    raise ValueError('x' * 900)\n")).message
    assert late.endswith(".py:2)")
    assert len(late) <= 500


def test_a_call_in_another_thread_is_captured_too(
    module: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    f = module(PRINTER)
    with divert_streams():
        worker = threading.Thread(target=f)
        worker.start()
        worker.join()
    assert capfd.readouterr() == ("", "")


def test_an_abandoned_call_stays_captured_after_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    inside, go, done = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        with capture_output():
            inside.set()
            go.wait(60)
            print("late")
        done.set()

    before = sys.stdout, sys.stderr
    try:
        with divert_streams():
            threading.Thread(target=call).start()
            inside.wait(60)
        print("the answer")
        go.set()
        done.wait(60)
    finally:
        sys.stdout, sys.stderr = before
    assert capfd.readouterr() == ("the answer\n", "")


def test_a_thread_does_not_print_because_one_that_has_ended_had_its_identifier(
    capfd: pytest.CaptureFixture[str],
) -> None:
    inside, go = threading.Event(), threading.Event()

    def call() -> None:
        with capture_output():
            inside.set()
            go.wait(60)

    abandoned = threading.Thread(target=call)

    def run() -> None:
        with divert_streams():
            abandoned.start()
            inside.wait(60)

    before = sys.stdout, sys.stderr
    try:
        first = threading.Thread(target=run)
        first.start()
        first.join()
        with divert_streams():
            for _ in range(20):
                stray = threading.Thread(target=print, args=("stray",))
                stray.start()
                stray.join()
    finally:
        go.set()
        abandoned.join()
        sys.stdout, sys.stderr = before
    assert capfd.readouterr() == ("", "")


def test_streams_are_given_back_and_output_kept_is_bounded() -> None:
    before = sys.stdout
    with divert_streams(), capture_output():
        assert sys.stdout is not before
        for _ in range(20):
            print("x" * CAP)
    assert sys.stdout is before


# -- arguments, and lists that are carried -----------------------------------------------------------------------------


def test_a_function_may_change_its_arguments_and_the_caller_keeps_its_own(module: Any) -> None:
    f = module("def f(rows):\n    rows[0]['n'] = 'changed'\n    return {'rows': rows}\n")
    rows = [{"n": n} for n in range(70)]
    assert f(rows=rows).body["rows"][0] == {"n": "changed"}
    assert rows[0] == {"n": 0}


def test_a_long_list_that_a_function_adds_to_keeps_its_elements(module: Any) -> None:
    f = module("def f(rows):\n    return {'rows': rows + [{'n': 'new'}]}\n")
    rows = [{"n": n} for n in range(70)]
    found = f(rows=rows).body["rows"]
    assert all(one is other for one, other in zip(rows, found, strict=False))
    assert found[70:] == [{"n": "new"}]
