"""The contest itself: every contestant of a task in a process of its own, all of them in turns, size by size."""

import json
import math
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Self

from jitkernels.contest.task import NEEDS, Task, reason_to_miss

ROUNDS = 7
"""Turns that each contestant has at each size."""
MOST_CALLS = 1000
PATIENCE = 120
"""Seconds that an answer may take, compiling included."""


@dataclass
class Result:
    """What a contestant came to in a task at one size.

    first: seconds of the first call at this size, compiling included. seconds and spread: of later calls, the least and
    how far the median lies above it. bytes: the most that the process held by then, beyond what Python and NumPy do.
    """

    first: float
    error: float
    bytes: int
    seconds: float = math.inf
    spread: float = 0.0
    seen: list[float] = field(default_factory=list, repr=False)

    def take(self, seconds: list[float]) -> None:
        self.seen.append(min(seconds))
        ordered = sorted(self.seen)
        self.seconds, self.spread = ordered[0], ordered[len(ordered) // 2] - ordered[0]


class Contestant:
    """A process that answers how long its program took."""

    def __init__(self, task: Task, name: str, threads: int, cache: str) -> None:
        counts = ("OMP", "OPENBLAS", "MKL", "NUMBA", "JITKERNELS", "TF_NUM_INTRAOP", "TF_NUM_INTEROP")
        settings = {f"{one}_NUM_THREADS": str(threads) for one in counts}
        settings |= {"TF_NUM_INTRAOP_THREADS": str(threads), "TF_NUM_INTEROP_THREADS": "1"}
        settings |= {"JITKERNELS_CACHE_DIR": cache, "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"}
        settings["PYTHONPATH"] = os.pathsep.join(place or "." for place in sys.path)
        self.name = name
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # closed below
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jitkernels.contest.worker", task.name, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,  # a pipe that nobody reads would stop it
            text=True,
            env={**os.environ, **settings},
        )
        self.importing = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            if stream is not None:
                with suppress(OSError):  # what was not read any more
                    stream.close()

    def begun(self) -> str:
        """Wait until it has what it needs; what went wrong, or nothing."""
        answer = self._answer()
        self.importing = answer.get("importing", 0.0)
        return str(answer.get("wrong", ""))

    def asked(self, size: int, calls: int) -> dict[str, Any]:
        """Seconds, error and bytes of so many calls, or what is ``wrong``."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"size": size, "calls": calls}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], PATIENCE)[0]:
            self._process.kill()
            return {"wrong": f"took longer than {PATIENCE} s"}
        line = self._process.stdout.readline()
        if line:
            return dict(json.loads(line))
        self._process.wait()
        self._said.seek(0)
        last = [text for text in self._said.read().strip().splitlines() if text.strip()][-1:]
        return {"wrong": "".join(last) or f"ended with {self._process.returncode}"}


def contest(
    task: Task, sizes: tuple[int, ...], threads: int, seconds: float
) -> Iterator[tuple[int, dict[str, Result], dict[str, str]]]:
    """For each size what every contestant came to, and why others did not take part or dropped out.

    Compiled code of ours is looked for in an empty folder, so that all contestants compile.
    """
    missing = {name: reason_to_miss(name) for name in NEEDS}
    missing |= {name: f"has no program for {task.name}" for name in NEEDS if name not in task.programs}
    with ExitStack() as stack:
        there = []
        for name in NEEDS:
            if not missing[name]:
                cache = stack.enter_context(tempfile.TemporaryDirectory(prefix="jitkernels-contest-"))
                one = stack.enter_context(Contestant(task, name, threads, cache))
                missing[name] = one.begun()
                there += [one] if not missing[name] else []
        for size in sizes:
            results: dict[str, Result] = {}
            for one in list(there):
                answer = one.asked(size, 1)
                if "wrong" in answer:
                    missing[one.name] = answer["wrong"]
                    there.remove(one)
                else:
                    results[one.name] = Result(answer["seconds"][0], answer["error"], answer["bytes"])
            for _ in range(ROUNDS):
                for one in there:
                    _turn(one, size, results[one.name], seconds / ROUNDS)
            yield size, results, {name: reason for name, reason in missing.items() if reason}


def _turn(one: Contestant, size: int, result: Result, seconds: float) -> None:
    usual = result.seconds if result.seen else result.first
    answer = one.asked(size, min(max(int(seconds / max(usual, 1e-7)), 1), MOST_CALLS))
    if "wrong" not in answer:
        result.take(answer["seconds"])
        result.bytes = answer["bytes"]
