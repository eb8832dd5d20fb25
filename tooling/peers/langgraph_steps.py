"""A chain or a fan-out of N nodes in LangGraph, with checkpoints in SQLite. Prints the seconds of one run."""

import operator
import sys
import time
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

shape, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]


class State(TypedDict):
    n: int
    made: Annotated[list[int], operator.add]


def node(state: State) -> dict:
    return {"made": [state["n"]]}


graph = StateGraph(State)
for index in range(count):
    graph.add_node(f"s{index}", node)
    before = START if shape == "fan-out" or index == 0 else f"s{index - 1}"
    graph.add_edge(before, f"s{index}")
    if shape == "fan-out" or index == count - 1:
        graph.add_edge(f"s{index}", END)

with SqliteSaver.from_conn_string(f"{folder}/state.db") as saver:
    app = graph.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": count + 10}
    started = time.perf_counter()
    result = app.invoke({"n": 1, "made": []}, config)
    seconds = time.perf_counter() - started
assert len(result["made"]) == count
print(seconds)
