"""A chain of N actions in Burr, with its state in SQLite after each. Prints the seconds of one run."""

import sys
import time
from itertools import pairwise

from burr.core import ApplicationBuilder, State, action
from burr.core.persistence import SQLitePersister

shape, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if shape != "linear":
    sys.exit(
        "a fan-out of one graph is not a feature of Burr: its parallel actions are graphs of their own"
    )


@action(reads=["n"], writes=["n"])
def step(state: State) -> State:
    return state.update(n=state["n"] + 1)


persister = SQLitePersister(db_path=f"{folder}/state.db", table_name="burr_state")
persister.initialize()
names = [f"s{index}" for index in range(count)]
app = (
    ApplicationBuilder()
    .with_actions(**dict.fromkeys(names, step))
    .with_transitions(*pairwise(names))
    .with_state(n=0)
    .with_entrypoint(names[0])
    .with_identifiers(app_id="bench", partition_key="bench")
    .with_state_persister(persister)
    .build()
)
started = time.perf_counter()
_, _, state = app.run(halt_after=[names[-1]])
seconds = time.perf_counter() - started
assert state["n"] == count
print(seconds)
