"""A process with the durable engine alone: `python -m benchmarks.fleet_engine`, for `fleet.py`.

Standard input has one line: the URL of the database, the name of the process, and how many turns it
puts into the queue. Each turn has one step, which does nothing. The process prints a line when it
is ready, works after the next line, and prints at the end of its input how many steps it did.
"""

import sys
from typing import Any

from rooda.fleet.worker.durable import Durable, Steps, Turn

PROJECT = "bench"


def main() -> None:
    url, name, turns = sys.stdin.readline().split()
    done = 0

    def step() -> dict[str, Any]:
        nonlocal done
        done += 1
        return {}

    def take(_project: str, _run: str, _number: int, steps: Steps) -> str:
        steps("iteration", step)
        return "end"

    durable = Durable(url, name, PROJECT, (), take)
    durable.launch()
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(turns)):
        durable.enqueue(Turn(PROJECT, f"run-{number}", 1))
    sys.stdin.read()
    durable.close()
    print(done, flush=True)


if __name__ == "__main__":
    main()
