"""Forks at any moment, also during first calls of other threads: parent and child go on without deadlock."""

import os
import re
import sys
from pathlib import Path

import pytest
from processes import kill, python, start

FORKS, MANY_FORKS = {"cold": 4, "warm": 10}, 300
AT_ONCE = 20
"""Forks of one process; more are shared out, since what a process does first is what forks may disturb most."""
QUIET = "import warnings\nwarnings.simplefilter('ignore', DeprecationWarning)  # forks of many threads, Python 3.12\n"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@pytest.mark.parametrize("cache", FORKS)
def test_forks_during_first_calls(private_cache: Path, cache: str) -> None:
    _fork(private_cache, cache == "cold", FORKS[cache])


@pytest.mark.full
@pytest.mark.parametrize("cache", FORKS)
def test_many_forks_during_first_calls(private_cache: Path, cache: str) -> None:
    _fork(private_cache, cache == "cold", MANY_FORKS)


def _fork(private_cache: Path, cold: bool, wanted: int) -> None:
    """Cold, each process has a cache of its own; warm, they share that of all tests."""
    for start_at in range(0, wanted, AT_ONCE):
        count = min(AT_ONCE, wanted - start_at)
        place = private_cache / str(start_at) if cold else None
        if place is not None:
            place.mkdir(mode=0o700)
        code = f"import first_calls\nfirst_calls.fork_meanwhile({count}, cold={cold})"
        figures = python(QUIET + code, place, timeout=60 + 4 * count)
        assert figures.startswith(f"{count} forks")
        sys.stdout.write(figures)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_pools(private_cache: Path, method: str) -> None:
    code = f"import first_calls\nfirst_calls.pool({method!r})"
    assert python(QUIET + code, private_cache) == "done\n"


BUILD_AND_FORK = """
import os, time
from jitkernels.codegen import object_cache as cache

def build():
    if os.fork() == 0:
        print("forked", flush=True)
        time.sleep(600)
        os._exit(0)
    raise OSError("nothing was built")

try:
    cache.fetch("text", ".o", build)
except OSError:
    time.sleep(600)
"""


def test_child_holds_no_lock_of_its_parent(private_cache: Path) -> None:
    """After a fork inside a build, such as a signal handler's, others do not wait once the builder gives up."""
    holder = start(BUILD_AND_FORK, private_cache)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "forked\n"
        code = "from jitkernels.codegen import object_cache as it\nprint(it.fetch('text', '.o', lambda: b'built')[0])"
        assert python(code, private_cache, timeout=30) == "b'built'\n"
    finally:
        kill(holder)


ORDER = """
import sys, threading, types

held = threading.local()

class Ordered:
    def __init__(self, name, forbidden):
        self.name, self.forbidden, self.lock = name, forbidden, threading.RLock()
    def __enter__(self):
        inside = held.__dict__.setdefault("names", [])
        if self.name not in inside:
            assert not self.forbidden & set(inside), f"{self.name} taken inside {inside}"
        self.lock.acquire()
        inside.append(self.name)
        used.add(self.name)
    def __exit__(self, *raised):
        held.names.pop()
        self.lock.release()

used = set()
locks = types.ModuleType("jitkernels.core.fork_locks")
locks.build_lock, locks.writing = Ordered("build_lock", {"writing"}), Ordered("writing", set())
sys.modules["jitkernels.core.fork_locks"] = locks
import first_calls
import jitkernels as jk
with jk.use("refer"):
    first_calls.plant(cold=True)
    for number in range(6):
        first_calls.first_call(number)
for number in range(18):
    first_calls.first_call(number)
jk.set_num_threads(1)
jk.KernelFuncs.cache().clear()
print(sorted(used))
"""


def test_order_of_locks(private_cache: Path) -> None:
    """A fork takes locks in the order in which all code takes them."""
    assert python(ORDER, private_cache) == "['build_lock', 'writing']\n"


def test_every_lock_is_registered_for_forks() -> None:
    """Else a child would find a lock taken for ever."""
    import jitkernels

    texts = {path.name: path.read_text() for path in Path(jitkernels.__file__).parent.rglob("*.py")}
    makers = [
        name for name, text in texts.items() if re.search(r"\b(Lock|RLock|allocate_lock|Condition|Semaphore)\(", text)
    ]
    assert "fork_locks.py" in makers
    by_process = {"compiler_process.py"}  # a child of a fork has a helper, and a lock, of its own
    assert "os.getpid()" in texts["compiler_process.py"]
    assert [name for name in makers if name not in by_process and "register_at_fork" not in texts[name]] == []


def test_forks_take_the_lock_of_llvmlite() -> None:
    """Its name is private to llvmlite."""
    from llvmlite.binding import ffi

    from jitkernels.core import fork_locks

    with fork_locks._hold_compiler_lock():
        assert ffi.lib._lock._lock._is_owned()
    assert not ffi.lib._lock._lock._is_owned()


IMPORT_AND_FORK = """
import os, signal, sys, threading, time
from jitkernels.core import fork_locks as locks
locks.LAZY += ("imported_slowly",)
importing = threading.Thread(target=__import__, args=("imported_slowly",))
importing.start()
time.sleep(0.3)
child = os.fork()
if child == 0:
    signal.alarm(20)
    import imported_slowly
    os._exit(imported_slowly.end)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
importing.join()
"""


def test_fork_during_an_import(tmp_path: Path) -> None:
    """The module that another thread imports is complete in the child, which could not import it otherwise."""
    (tmp_path / "imported_slowly.py").write_text("import time\ntime.sleep(1)\nend = 7\n")
    code = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{QUIET}{IMPORT_AND_FORK}"
    assert python(code) == "7\n"


LOG_AND_FORK = """
import os, sys, threading, time
import jitkernels.core.fork_locks as locks
assert "logging" not in sys.modules
from jitkernels.core.atomic_files import warn_once
if {before}:
    import logging
inside, forking = threading.Event(), threading.Event()
def hold():
    with locks.build_lock:
        inside.set()
        forking.wait()
        time.sleep(0.3)
        warn_once("topic", "said while another thread forks")
        import logging
        logging.getLogger("jitkernels.another").warning("and this")  # takes the lock of the module
thread = threading.Thread(target=hold)
thread.start()
inside.wait()
os.register_at_fork(before=forking.set)
child = os.fork()
if child == 0:
    warn_once("child", "said by the child")
    os._exit(0)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("before", [False, True])
def test_a_thread_may_log_while_a_fork_waits_for_it(before: bool) -> None:
    """Whether `logging` was imported before the fork hooks, after them, or during the fork."""
    assert python(QUIET + LOG_AND_FORK.format(before=before), timeout=30) == "0\n"
