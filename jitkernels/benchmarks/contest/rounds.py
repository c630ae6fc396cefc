"""Run a contest: each contestant of a task in its own process, interleaved, one size after another."""

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

from jitkernels.benchmarks.contest.task import NEEDS, Task, reason_unavailable

TURNS = 7
"""Interleaved measurements of each contestant at each size."""
MAX_CALLS_PER_ROUND = 1000
TIMEOUT_SECONDS = 120
"""Seconds until a request fails, compilation included."""


@dataclass
class Result:
    """The measurements of a contestant in a task at one size.

    first: seconds of the first call at this size, with compilation. seconds and spread: of later calls, the minimum and
    the relative distance of the median. bytes: peak memory of the process so far, less that of Python and NumPy.
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
    """A worker process that measures one program on request."""

    def __init__(self, task: Task, name: str, threads: int, cache: str) -> None:
        counts = ("OMP", "OPENBLAS", "MKL", "NUMBA", "JITKERNELS", "TF_NUM_INTRAOP", "TF_NUM_INTEROP")
        settings = {f"{library}_NUM_THREADS": str(threads) for library in counts}
        settings |= {"TF_NUM_INTRAOP_THREADS": str(threads), "TF_NUM_INTEROP_THREADS": "1"}
        settings |= {"JITKERNELS_CACHE_DIR": cache, "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"}
        settings["PYTHONPATH"] = os.pathsep.join(path or "." for path in sys.path)
        self.name = name
        self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # closed below
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jitkernels.benchmarks.contest.worker", task.name, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,  # a full pipe that nobody reads would block the worker
            text=True,
            env={**os.environ, **settings},
        )
        self.importing = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with suppress(OSError):  # drain the remaining output
                    stream.close()

    def wait_until_ready(self) -> str:
        """Wait until the worker is ready; return its error message, or ""."""
        answer = self._answer()
        self.importing = answer.get("importing", 0.0)
        return str(answer.get("wrong", ""))

    def request(self, size: int, calls: int) -> dict[str, Any]:
        """Request `calls` calls; return their seconds, error and memory, or an error message under ``wrong``."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"size": size, "calls": calls}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], TIMEOUT_SECONDS)[0]:
            self._process.kill()
            return {"wrong": f"took longer than {TIMEOUT_SECONDS} s"}
        line = self._process.stdout.readline()
        if line:
            return dict(json.loads(line))
        self._process.wait()
        self._stderr.seek(0)
        last = [text for text in self._stderr.read().strip().splitlines() if text.strip()][-1:]
        return {"wrong": "".join(last) or f"ended with {self._process.returncode}"}


def contest(
    task: Task, sizes: tuple[int, ...], threads: int, seconds: float
) -> Iterator[tuple[int, dict[str, Result], dict[str, str]]]:
    """Return for each size the results of every contestant, and why others did not start or dropped out.

    The object cache of jitkernels is an empty folder, so that all contestants compile.
    """
    missing = {name: reason_unavailable(name) for name in NEEDS}
    missing |= {name: f"has no program for {task.name}" for name in NEEDS if name not in task.programs}
    with ExitStack() as stack:
        active = []
        for name in NEEDS:
            if not missing[name]:
                cache = stack.enter_context(tempfile.TemporaryDirectory(prefix="jitkernels-contest-"))
                contestant = stack.enter_context(Contestant(task, name, threads, cache))
                missing[name] = contestant.wait_until_ready()
                active += [contestant] if not missing[name] else []
        for size in sizes:
            results: dict[str, Result] = {}
            for contestant in list(active):
                answer = contestant.request(size, 1)
                if "wrong" in answer:
                    missing[contestant.name] = answer["wrong"]
                    active.remove(contestant)
                else:
                    results[contestant.name] = Result(answer["seconds"][0], answer["error"], answer["bytes"])
            for _ in range(TURNS):
                for contestant in active:
                    _turn(contestant, size, results[contestant.name], seconds / TURNS)
            yield size, results, {name: reason for name, reason in missing.items() if reason}


def _turn(contestant: Contestant, size: int, result: Result, seconds: float) -> None:
    usual = result.seconds if result.seen else result.first
    answer = contestant.request(size, min(max(int(seconds / max(usual, 1e-7)), 1), MAX_CALLS_PER_ROUND))
    if "wrong" not in answer:
        result.take(answer["seconds"])
        result.bytes = answer["bytes"]
