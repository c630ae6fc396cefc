"""The object cache between processes: races, kills, damage, full disks, foreign owners, edited sources."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import processor_skips
import pytest
from processes import finish, kill, python, start

from jitkernels.codegen import object_cache
from jitkernels.core import cpu_target, environment, hashing

KILLS = 20
"""How often eight processes are killed; all but the first time with ``-m full``."""

PREPARE = """
import logging, os, sys
logging.basicConfig(stream=sys.stdout, format="logged: %(message)s")
import numpy as np
import toy
import jitkernels as jk
from jitkernels.runtime.loading import loader as load
from jitkernels.attrs.schema.registry import implements

original = load.object_cache.fetch
def counted(text, suffix, build):
    def announced():
        print("built:", text.partition("\\n")[0], flush=True)
        return build()
    return original(text, suffix, announced)
load.object_cache.fetch = counted
toy.register()
implements(toy.ToyAttr, name="gen")(toy.right)
"""
CALL = """
attr = toy.ToyAttr(n=9)
function = jk.KernelFuncs.cache().at(attr)
arrays = attr.signature().sample()
function(*arrays)
assert np.array_equal(arrays[3], arrays[0] + arrays[1][arrays[2]])
print("ran", function.__self__.implementation, "jitkernels.codegen.python.kernel_module" in sys.modules)
"""
KERNEL = PREPARE + CALL
MANY_ROWS = (
    PREPARE
    + """
from jitkernels.tools import testing
from jitkernels.attrs.schema.registry import all_schemas
for row in all_schemas()[::6]:
    attr = testing.middle(row, "float32")
    testing.check_values(attr, jk.KernelFuncs.cache().at(attr))
"""
)


def built(printed: str) -> list[str]:
    """The symbols that a process compiled."""
    return [line.removeprefix("built: ") for line in printed.splitlines() if line.startswith("built: ")]


def logged(printed: str) -> list[str]:
    return [line for line in printed.splitlines() if line.startswith("logged: ")]


def objects(cache: Path) -> list[Path]:
    return sorted(cache.glob("*/objects/*.o"))


@pytest.fixture(scope="module")
def used_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A cache that one process has filled, and what it built."""
    place = tmp_path_factory.mktemp("used")
    place.chmod(0o700)
    return place, built(python(KERNEL, place))


@pytest.fixture
def filled(used_once: tuple[Path, list[str]], private_cache: Path) -> Path:
    """A copy of such a cache."""
    shutil.copytree(used_once[0], private_cache, dirs_exist_ok=True)
    return private_cache


def test_second_process_builds_nothing(private_cache: Path) -> None:
    """It loads every object, the launcher's included, and translates nothing."""
    first, second = python(KERNEL, private_cache), python(KERNEL, private_cache)
    assert any("toy" in symbol for symbol in built(first))
    assert built(second) == []
    assert first.splitlines()[-1] == "ran gen True"
    assert second.splitlines()[-1] == "ran gen False"
    assert logged(first) == logged(second) == []
    assert len(objects(private_cache)) == len(built(first))
    assert private_cache.stat().st_mode & 0o077 == 0
    folders = [entry for entry in private_cache.rglob("*") if entry.is_dir()]
    assert all(folder.stat().st_mode & 0o022 == 0 for folder in folders)


def test_sixteen_cold_processes(private_cache: Path) -> None:
    """All that start at once on one kernel are right, and every object is built exactly once."""
    running = [start(KERNEL, private_cache) for _ in range(16)]
    printed = [finish(process) for process in running]
    assert all("ran gen" in text for text in printed)
    symbols = [symbol for text in printed for symbol in built(text)]
    assert symbols
    assert sorted(symbols) == sorted(set(symbols))
    assert [line for text in printed for line in logged(text)] == []
    assert not list(private_cache.rglob(".unfinished-*"))


BLOCKED = PREPARE.replace(
    "return build()",
    """if "toy" in text:
            print("blocked", flush=True)
            import time
            time.sleep(600)
        return build()""",
)


def test_killed_while_building(private_cache: Path) -> None:
    """A process that waits for a killed builder takes over at once, and no partial file remains."""
    builder = start(BLOCKED + CALL, private_cache)
    assert builder.stdout is not None
    assert any(line == "blocked\n" for line in iter(builder.stdout.readline, ""))
    waiting = start(KERNEL, private_cache)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(2.0)
    builder.send_signal(signal.SIGKILL)
    builder.communicate()
    assert "ran gen" in finish(waiting)
    assert built(python(KERNEL, private_cache)) == []


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, KILLS))])
def test_eight_cold_processes_killed(private_cache: Path, seed: int) -> None:
    """After a kill at any time, all files are complete, and the next process builds only the missing ones."""
    chance = random.Random(seed)
    enough, deadline = chance.randrange(1, 10), time.monotonic() + 60
    running = [start(MANY_ROWS, private_cache) for _ in range(8)]
    while len(objects(private_cache)) < enough and time.monotonic() < deadline:
        time.sleep(chance.random() * 0.05)
    for process in running:
        kill(process)
    left = objects(private_cache)
    assert left
    assert all(object_cache.read(path) is not None for path in left), "a torn object"
    following = python(MANY_ROWS, private_cache)
    assert logged(following) == []
    assert built(following), "they were killed too late to be seen at work"
    assert len(objects(private_cache)) == len(left) + len(built(following))
    assert built(python(MANY_ROWS, private_cache)) == []


def test_killed_while_writing(private_cache: Path) -> None:
    """A file is published whole or not at all: the partial file of a killed writer is never read."""
    code = (
        PREPARE
        + """
import os
from jitkernels.core import atomic_files as disk
disk.os.replace = lambda *arguments: os.kill(os.getpid(), 9)
"""
        + CALL
    )
    python(code, private_cache, status=-signal.SIGKILL)
    assert objects(private_cache) == []
    assert "ran gen" in python(KERNEL, private_cache)


DAMAGES: tuple[Callable[[bytes], bytes], ...] = (
    lambda c: c[: len(c) // 2],
    lambda c: c[: len(c) // 2] + bytes([c[len(c) // 2] ^ 1]) + c[len(c) // 2 + 1 :],
    lambda c: c[:-1] + bytes([c[-1] ^ 1]),
    lambda c: b"",
    lambda c: c + b"\0",
    lambda c: bytes(len(c)),
)


@pytest.mark.parametrize("turn", [0, len(DAMAGES) // 2])
def test_damaged_objects(filled: Path, used_once: tuple[Path, list[str]], turn: int) -> None:
    """Each is a miss with one log line; it is rebuilt, and the next process loads it."""
    whole = {path: path.read_bytes() for path in objects(filled)}
    assert len(whole) >= len(DAMAGES) // 2, "not every damage is done"
    for number, (path, content) in enumerate(whole.items()):
        path.write_bytes(DAMAGES[(turn + number) % len(DAMAGES)](content))
    again = python(KERNEL, filled)
    assert "ran gen" in again
    assert sorted(built(again)) == sorted(used_once[1])
    for path in whole:
        assert len([line for line in logged(again) if str(path) in line and "damaged" in line]) == 1
    assert built(python(KERNEL, filled)) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_in_the_cache_are_ignored(filled: Path) -> None:
    """Nobody writes to them: reading would wait for ever."""
    for path in objects(filled):
        path.unlink()
        os.mkfifo(path)
    assert "ran gen" in python(KERNEL, filled)
    assert built(python(KERNEL, filled)) == []


def test_full_disk(private_cache: Path, used_once: tuple[Path, list[str]]) -> None:
    """No byte can be written: calls work all the same, and log it."""
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    for _ in range(2):
        printed = python(full + KERNEL, private_cache)
        assert "ran gen" in printed
        assert len(logged(printed)) == 1
        assert "cannot write" in logged(printed)[0]
    assert objects(private_cache) == []
    printed = python(full + KERNEL, used_once[0])
    assert built(printed) == [], "a full disk can still be read"
    assert logged(printed) == []


def test_cache_folder_below_a_file(tmp_path: Path) -> None:
    """No permission helps, not even root's."""
    (tmp_path / "file").write_text("")
    printed = python(KERNEL, tmp_path / "file" / "cache")
    assert "ran gen" in printed
    assert len(logged(printed)) == 1
    assert "rebuilt in each process" in logged(printed)[0]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners and modes here")
@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_folders_writable_by_others_are_not_used(filled: Path, mode: int) -> None:
    """Their objects could be anybody's code: they are neither read nor written."""
    filled.chmod(mode)
    before = sorted(filled.rglob("*"))
    printed = python(KERNEL, filled)
    assert "ran gen" in printed
    assert built(printed), "an object was loaded from a folder that others may write to"
    assert len(logged(printed)) == 1
    assert sorted(filled.rglob("*")) == before


def test_folders_of_another_user_are_not_used(filled: Path) -> None:
    """The other owner is simulated, since only root could create one."""
    printed = python(f"import os\nown = os.getuid()\nos.getuid = lambda: own + 1\n{KERNEL}", filled)
    assert "ran gen" in printed
    assert built(printed)


FEATURES = """
import sys
from pathlib import Path
import jitkernels as jk
from jitkernels.core import cpu_target, environment, hashing; from jitkernels.tools import testing
from jitkernels.attrs.schema.registry import all_schemas
for row in all_schemas()[::8]:
    attr = testing.middle(row, "float32")
    testing.check_values(attr, next(iter(jk.get_all_candidates(attr).values())))
print(hashing.digest(environment.environment_of_code())[:16], cpu_target.target().vector_bytes)
"""


def test_fewer_features(private_cache: Path, tmp_path: Path) -> None:
    """Without the widest vectors every eighth row is right, and has code in a folder of its own."""
    removed = next(name for name in ("avx512f", "avx2", "sse4.2", "neon") if name in cpu_target.target().features)
    folder, width = python(
        FEATURES,
        private_cache,
        JITKERNELS_CPU_FEATURES=f"-{removed}",
        JITKERNELS_KEEP_INTERM="1",
        JITKERNELS_WORKDIR=str(tmp_path / "work"),
    ).split()
    assert int(width) <= 32
    assemblies = list((tmp_path / "work").glob("*.s"))
    assert len(assemblies) > 9
    assert not any("zmm" in assembly.read_text() for assembly in assemblies)
    assert [path.name for path in private_cache.iterdir() if path.is_dir()] == [folder]
    full = python(KERNEL, private_cache)
    assert built(full), "an object for other features was taken"

    expected = {folder, hashing.digest(environment.environment_of_code())[:16]}
    assert {path.name for path in private_cache.iterdir() if path.is_dir()} == expected


LOOPS = '''
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined

STEP = 10

@inlined()
def deepest(value):
    return value + 1

@inlined()
def helper(value):
    """Says what it does."""
    return deepest(value) + STEP

def nest():
    def body(x, n, begin, end):
        for i in range(begin, end):
            x[i] = helper(x[i])
    return RangeKernel("edited", ("double*", "int64"), body, extent=1)
'''
USE_LOOPS = (
    PREPARE
    + """
import ctypes
import loops
values = (ctypes.c_double * 3)(1, 2, 3)
address = load.address_of(loops.nest())
ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(address)(ctypes.addressof(values), 3)
print("values:", *values)
"""
)


@processor_skips.needs(cpu_target.target().is_x86, "the instruction looked for is one of x86")
def test_large_results_use_streaming_stores(private_cache: Path, tmp_path: Path) -> None:
    """By whole vectors in either dtype: LLVM may turn such a store into an ordinary one."""
    code = """
import jitkernels as jk
from jitkernels.dispatch.kernel import Kernel
from jitkernels.attrs.schema.registry import implementation

for dtype in ("float32", "float64"):
    attr, gen = jk.VMulAttr(n=1 << 20, dtype=dtype), implementation(jk.VMulAttr, "gen")
    assert Kernel(attr, gen, {"stream": True, "parallel": False}).callable
"""
    python(code, private_cache, JITKERNELS_KEEP_INTERM="1", JITKERNELS_WORKDIR=str(tmp_path / "work"))
    found = [path.read_text() for path in (tmp_path / "work").glob("jk_vmul_*.s")]
    assert len(found) == 2
    assert all(assembly.count("movntp") >= 2 for assembly in found)


def test_edited_sources_are_misses(private_cache: Path, tmp_path: Path) -> None:
    """Edits that change the code are misses, however deep; others are hits."""
    module = tmp_path / "loops.py"

    def run() -> tuple[bool, str]:
        code = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nsys.dont_write_bytecode = True\n{USE_LOOPS}"
        printed = python(code, private_cache)
        return bool(built(printed)), printed.splitlines()[-1]

    module.write_text(LOOPS)
    assert run() == (True, "values: 12.0 13.0 14.0")
    assert run() == (False, "values: 12.0 13.0 14.0")
    os.utime(module, (1, 1))
    assert run() == (False, "values: 12.0 13.0 14.0")
    module.write_text(LOOPS.replace("Says what it does.", "Says something else.").replace("STEP = 10", "STEP = 10  #"))
    assert run() == (False, "values: 12.0 13.0 14.0")
    module.write_text(LOOPS.replace("value + 1", "value + 2"))
    assert run() == (True, "values: 13.0 14.0 15.0")
    module.write_text(LOOPS.replace("STEP = 10", "STEP = 20"))
    assert run() == (True, "values: 22.0 23.0 24.0")
    module.write_text(LOOPS)
    assert run() == (False, "values: 12.0 13.0 14.0")


def test_each_environment_has_its_own_folder() -> None:
    """The name of the folder covers everything that decides machine code."""

    assert {"cpu", "features", "system", "llvmlite", "numpy", "jitkernels"} <= set(environment.environment_of_code())
    timings = environment.environment_of_timings(2)
    assert timings.items() > environment.environment_of_code().items()
    assert hashing.digest(timings) != hashing.digest(environment.environment_of_timings(3))
    for key in timings:
        assert hashing.digest(timings | {key: "another"}) != hashing.digest(timings)


def test_intermediate_forms(private_cache: Path, tmp_path: Path) -> None:
    """On request, Python text, LLVM IR and assembly are kept side by side; otherwise no file remains."""
    kept = tmp_path / "kept"
    python(KERNEL, private_cache, JITKERNELS_KEEP_INTERM="1", JITKERNELS_WORKDIR=str(kept))
    suffixes = {path.suffix for path in kept.iterdir() if path.name.startswith("jk_toy")}
    assert {".py", ".ll", ".s"} <= suffixes
    assert "x[i] + table[ids[i]]" in next(kept.glob("jk_toy*.py")).read_text()
    other = tmp_path / "other"
    python(KERNEL, tmp_path / "cache2", JITKERNELS_WORKDIR=str(other))
    assert not other.exists() or not list(other.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="looks for files that a process has open")
def test_default_folder_is_private(tmp_path: Path) -> None:
    """Without a setting the cache lies below the user's cache folder, with mode 0700."""
    code = "from jitkernels.core import cache_dirs as c\nprint(c.cache_root(), oct(c.cache_root().stat().st_mode))"
    printed = python(code, JITKERNELS_CACHE_DIR="", XDG_CACHE_HOME=str(tmp_path)).split()
    assert printed == [str(tmp_path / "jitkernels"), "0o40700"]
