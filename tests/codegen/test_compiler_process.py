"""``JITKERNELS_COMPILER=process``: LLVM runs in a helper process, which keeps this one small."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jitkernels.core import cpu_target

pytestmark = pytest.mark.skipif(not cpu_target.has_compiler(), reason="llvmlite is not installed")

HEAD = """
import linecache, logging, os, signal, sys, threading, time, warnings
import numpy as np, jitkernels as jk
from jitkernels.codegen import compiler_process
logging.basicConfig(level=logging.WARNING, format="WARNED %(message)s", stream=sys.stdout)
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6
def made(number):
    body = f"t = x * {number}.5", "for i in range(len(x)):", "    t = t + y[i] * x", "return np.exp(-t)"
    text = "\\n    ".join(["def function(x, y):", *body]) + "\\n"
    file = f"<made {number}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    names = {"np": np}
    exec(compile(text, file, "exec"), names)
    return names["function"]
x = np.arange(9.0) / 9
def check(number):
    plain = made(number)
    compiled = jk.jit(plain)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x, x), plain(x, x), rtol=1e-12)
    assert compiled.stats().kernels, compiled.stats()
def llvm():
    return any(name.startswith("llvmlite.binding") for name in sys.modules)
"""


def ran(program: str, cache: Path | None, mode: str = "process", **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("JITKERNELS_")},
        "JITKERNELS_COMPILER": mode,
        "JITKERNELS_CACHE_DIR": str(cache or "/proc/none"),
        **more,
    }
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_first_compilation_leaves_llvm_out_of_the_process(tmp_path: Path) -> None:
    program = "first = rss()\ncheck(1)\nprint(rss() - first, llvm())"
    added, has_llvm = ran(program, tmp_path / "a").stdout.split()
    assert has_llvm == "False"
    assert float(added) < 50
    usual, has_llvm = ran(program, tmp_path / "b", "inprocess").stdout.split()
    assert has_llvm == "True"
    assert float(usual) > float(added) + 40  # or else the test is of nothing


def objects(cache: Path) -> dict[str, str]:
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in cache.rglob("*.o")}


def test_both_modes_build_the_same_objects(tmp_path: Path) -> None:
    program = "check(1)\njk.softmax(np.ones((3, 40), np.float32))\njk.matmul(np.ones((9, 9)), np.ones((9, 9)))\n"
    for mode in ("process", "inprocess"):
        ran(program, tmp_path / mode, mode)
    found, expected = objects(tmp_path / "process"), objects(tmp_path / "inprocess")
    assert len(expected) > 4
    assert found == expected


def test_without_a_cache_objects_are_sent_through_the_pipe() -> None:
    assert "False" in ran("check(1)\ncheck(2)\nprint(llvm())", None).stdout


def test_the_helper_exits_and_restarts(tmp_path: Path) -> None:
    program = """
check(1)
process = compiler_process._client._helper._process
for _ in range(200):
    if process.poll() is not None:
        break
    time.sleep(0.1)
assert process.returncode == 0, process.returncode
check(2)
process = compiler_process._client._helper._process
assert process.poll() is None
process.kill()
process.wait()
check(3)
assert compiler_process._client._helper._process is not process
assert not llvm()
"""
    assert "WARNED" not in ran(program, tmp_path).stdout


def test_a_helper_whose_process_is_killed_ends_in_silence(tmp_path: Path) -> None:
    program = """
plain = compiler_process._write
def written(pipe, text):
    plain(pipe, text)
    os.kill(os.getpid(), signal.SIGKILL)
compiler_process._write = written
check(1)
"""
    environment = os.environ | {"JITKERNELS_COMPILER": "process", "JITKERNELS_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program], env=environment, capture_output=True, text=True, timeout=300
    )  # until the helper, which has the same streams, has ended, too
    assert done.returncode == -signal.SIGKILL
    assert not done.stderr


def test_without_a_helper_one_warning_and_in_process_compilation(tmp_path: Path) -> None:
    for broken in ("sys.executable = '/nowhere/python'", "compiler_process.START = 'raise SystemExit(3)'"):
        out = ran(f"{broken}\ncheck(1)\ncheck(2)\nassert llvm()", tmp_path / broken[:3]).stdout
        assert out.count("WARNED the helper process of JITKERNELS_COMPILER=process is lost") == 1, out


def test_a_crash_of_llvm_is_a_python_error(tmp_path: Path) -> None:
    program = """
check(1)
compiler_process.START = "import os; os.abort()"
compiler_process._client = None
check(2)
assert not llvm()
"""
    out = ran(program, tmp_path).stdout
    assert "LLVM crashed the helper process that compiled" in out
    assert "by signal 6" in out


def test_llvm_errors_equal_those_of_in_process_compilation(tmp_path: Path) -> None:
    program = """
from jitkernels.errors import BuildError
from jitkernels.codegen.ir_source import IRSource
from jitkernels.runtime.loading import loader as load
try:
    load.address_of(IRSource("wrong", "define nonsense"))
except BuildError as error:
    print(error)
check(1)
"""
    texts = {ran(program, tmp_path / mode, mode).stdout for mode in ("process", "inprocess")}
    assert len(texts) == 1
    assert "the LLVM code of wrong is wrong" in texts.pop()


def test_threads_and_forked_children_compile(tmp_path: Path) -> None:
    program = """
warnings.simplefilter("ignore", DeprecationWarning)  # of forks in programs with threads
check(0)
failed = []
def some(first):
    try:
        for number in range(first, first + 3):
            check(number)
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=some, args=(10 * one,)) for one in (1, 2, 3, 4)]
for one in threads:
    one.start()
child = os.fork()
if not child:
    some(100)
    os._exit(1 if failed or llvm() else 0)
for one in threads:
    one.join()
_, status = os.waitpid(child, 0)
assert not failed, failed
assert status == 0, status
check(200)
assert not llvm()
"""
    assert "WARNED" not in ran(program, tmp_path).stdout


def test_an_interrupted_wait_does_not_break_the_next_compilation(tmp_path: Path) -> None:
    program = """
check(0)
start, compiler_process.START = compiler_process.START, "import time; time.sleep(100)"
compiler_process._client = None
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.time()
try:
    check(1)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
assert time.time() - began < 50
compiler_process.START = start
check(2)
assert not llvm()
"""
    out = ran(program, tmp_path).stdout
    assert out.split() == ["interrupted"], out


def test_a_signal_handler_may_compile_while_its_thread_waits(tmp_path: Path) -> None:
    program = """
check(0)
def handler(*_):
    check(50)
    print("handled")
signal.signal(signal.SIGALRM, handler)
ask = compiler_process.Helper.ask
is_first = [True]
def slow(helper, job):
    if is_first.pop() if is_first else False:
        os.kill(os.getpid(), signal.SIGALRM)
    return ask(helper, job)
compiler_process.Helper.ask = slow
check(1)
"""
    assert "handled" in ran(program, tmp_path).stdout
