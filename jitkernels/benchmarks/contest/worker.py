"""The process of one contestant in one task: asked line by line, so that all of them can take turns.

Each line is ``{"size": n, "calls": k}``; the answer has the seconds of so many calls, the error of the last one, and
what the process holds at most. Whatever a library prints goes to stderr.
"""

import json
import os
import re
import sys
from pathlib import Path
from time import perf_counter
from typing import IO, Any

from jitkernels.contest.measures import timed
from jitkernels.contest.task import Program, all_tasks


def main(task_name: str, contestant: str) -> None:
    """Answer until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    task = all_tasks()[task_name]
    before = peak()
    begin = perf_counter()
    program = task.programs[contestant]()
    say(answers, {"importing": perf_counter() - begin, "bytes": peak() - before})
    for line in sys.stdin:
        asked = json.loads(line)
        seconds, value = calls(program, asked["size"], asked["calls"])
        say(
            answers, {"seconds": seconds, "error": task.error(asked["size"], value), "bytes": peak() - before}
        )


def calls(program: Program, size: int, count: int) -> tuple[list[float], Any]:
    """The seconds of each call, and the last answer."""
    measured, value = timed(program), None
    for _ in range(count):
        value = measured(size)
    return measured.seconds, value


def peak() -> int:
    """The most bytes of memory that this process has held; what the system counts for it includes its parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", status)[1])  # type: ignore[index]  # Linux has that line


def say(answers: IO[str], content: dict[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
