from __future__ import annotations

from threading import Event, Thread

import pytest

from cogcli.declarations.binding_spec import Binding
from cogcli.specs import shape_of_spec as building
from cogcli.specs.shape import RecordKey


def test_no_thread_sees_a_shape_before_it_has_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_SHAPES", {})
    begun, may_go_on = Event(), Event()
    build = building._build_key

    def build_slowly(*arguments: object) -> RecordKey:
        begun.set()
        may_go_on.wait()
        return build(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(building, "_build_key", build_slowly)
    found: list[set[str]] = []

    def read_keys() -> None:
        found.append({*building.shape_of_spec(Binding).keys})

    threads = [Thread(target=read_keys), Thread(target=read_keys)]
    threads[0].start()
    begun.wait()
    threads[1].start()
    threads[1].join(0.05)  # time to see the incomplete shape
    may_go_on.set()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert "request" in found[0]
