"""Compiled functions across processes: forks, kills and Ctrl-C during compilation."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import kill, python, start
from test_interruptions import Disturbed, interrupt

import jitkernels as jk

QUIET = "import warnings\nwarnings.simplefilter('ignore', DeprecationWarning)\n"
STEPS = 613
"""Every so many lines of a first call it is disturbed; a prime, so that runs of other lengths meet others."""


def made(number: int) -> tuple[Any, Any]:
    """A function that no other process has compiled, and the compiled one."""
    function = eval(f"lambda x, y: (x * {number + 0.25} + y).sum(-1) - x[..., 0]")
    return function, jk.jit(function)


def right(number: int) -> None:
    """Make a first call, and another."""
    function, compiled = made(number)
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    for _ in range(2):
        np.testing.assert_allclose(compiled(x, y), function(x, y))


def forks(count: int) -> None:
    """Fork while other threads compile; every child makes first calls of its own and calls what is compiled."""
    function, compiled = made(1000)
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    compiled(x, y)
    stop = threading.Event()

    def work(first: int) -> None:
        number = first
        while not stop.is_set():
            right(number)
            number += 1

    threads = [threading.Thread(target=work, args=(first,)) for first in (10_000, 20_000)]
    for thread in threads:
        thread.start()
    for number in range(count):
        time.sleep(0.013)
        child = os.fork()
        if child == 0:
            signal.alarm(40)
            try:
                np.testing.assert_allclose(compiled(x, y), function(x, y))
                right(30_000 + number)
                os._exit(0)
            except BaseException as error:  # noqa: BLE001  # the child ends here
                os.write(2, repr(error).encode())
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stop.set()
    for thread in threads:
        thread.join()
    sys.stdout.write("done\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forks_while_functions_are_compiled(private_cache: Path) -> None:
    code = f"{QUIET}import test_jit_processes\ntest_jit_processes.forks(10)"
    assert python(code, private_cache) == "done\n"


def test_kills_while_functions_are_compiled(private_cache: Path) -> None:
    """The next process finds a complete cache."""
    code = "import test_jit_processes as t\nprint('ready', flush=True)\n"
    code += "for number in range(10**6):\n    t.right(number)"
    for wait in (0.01, 0.05, 0.11, 0.2):
        process = start(code, private_cache)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(wait)
        finally:
            kill(process)
    code = "import test_jit_processes as t\nfor number in range(12):\n    t.right(number)\nprint('done')"
    assert python(code, private_cache) == "done\n"


def test_a_first_call_may_be_interrupted_at_any_line() -> None:
    """Later calls are right, and enter without Python."""
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    number, reached = 1, True
    while reached:
        function, compiled = made(50)
        disturbed = Disturbed(number, interrupt)
        try:
            with disturbed:
                compiled(x, y)
        except KeyboardInterrupt:
            pass
        reached = disturbed.left <= 0
        for _ in range(2):
            np.testing.assert_allclose(compiled(x, y), function(x, y))
        number += STEPS
    assert number > 3 * STEPS


def test_compiled_functions_are_pickled_by_name() -> None:
    import pickle

    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert doubled(np.ones(3))[0] == 2


@jk.jit
def doubled(x: Any) -> Any:
    return x * 2


FAR = """
import numpy as np
import jitkernels as jk

def made(number):
    return jk.jit(eval(f"lambda a: np.sqrt(a) * {number + 2.5} + a"))

x = np.arange(5.0)
for number in range(6):
    made(number)(x)
kept = []
for number in range(6, 24):
    kept.append(np.zeros(2**32, "u1"))  # addresses, not memory
    np.testing.assert_allclose(made(number)(x), np.sqrt(x) * (number + 2.5) + x)
    del kept[:-4]
print("done")
"""


def test_code_is_loaded_in_distant_memory() -> None:
    """Gigabytes lie between the code of two functions and the runtime that both call."""
    assert python(FAR).strip().endswith("done")
