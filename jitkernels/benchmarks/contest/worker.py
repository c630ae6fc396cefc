"""The process of one contestant in one task: it serves requests line by line, so that contestants can be interleaved.

Each request is ``{"size": n, "calls": k}``; the reply has the seconds of the calls, the error of the last one, and
the peak memory of the process. Whatever a library prints goes to stderr.
"""

import json
import os
import re
import sys
from pathlib import Path
from time import perf_counter
from typing import IO, Any

from jitkernels.benchmarks.contest.measures import timed
from jitkernels.benchmarks.contest.task import Program, all_tasks


def main(task_name: str, contestant: str) -> None:
    """Serve requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    task = all_tasks()[task_name]
    before = peak()
    begin = perf_counter()
    program = task.programs[contestant]()
    say(answers, {"importing": perf_counter() - begin, "bytes": peak() - before})
    for line in sys.stdin:
        request = json.loads(line)
        seconds, value = calls(program, request["size"], request["calls"])
        say(answers, {"seconds": seconds, "error": task.error(request["size"], value), "bytes": peak() - before})


def calls(program: Program, size: int, count: int) -> tuple[list[float], Any]:
    """Return the seconds of each call, and the last result."""
    measured, value = timed(program), None
    for _ in range(count):
        value = measured(size)
    return measured.seconds, value


def peak() -> int:
    """Return the peak memory of this process in bytes, without the parent's share that getrusage includes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", status)[1])  # type: ignore[index]  # Linux has that line


def say(answers: IO[str], content: dict[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
