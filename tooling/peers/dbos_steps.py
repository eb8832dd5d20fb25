"""A workflow of N steps in DBOS, in a row or at once, with its record in SQLite. Prints the seconds of one run."""

import asyncio
import sys
import time

from dbos import DBOS, DBOSConfig

shape, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
config: DBOSConfig = {
    "name": "bench",
    "system_database_url": f"sqlite:///{folder}/state.db",
    "log_level": "ERROR",
}
DBOS(config=config)


@DBOS.step()
async def same(n: int) -> int:
    return n


@DBOS.workflow()
async def many(n: int) -> int:
    if shape == "linear":
        return len([await same(n) for _ in range(count)])
    return len(await asyncio.gather(*(same(n) for _ in range(count))))


async def main() -> float:
    DBOS.launch()
    started = time.perf_counter()
    made = await many(1)
    seconds = time.perf_counter() - started
    assert made == count
    return seconds


print(asyncio.run(main()))
DBOS.destroy()
