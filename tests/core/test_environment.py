"""Unusual environments: no home directory, shared folders, invalid variables."""

import os
from pathlib import Path

import pytest
from processes import python

from jitkernels.codegen import llvm_backend
from jitkernels.core import cpu_target
from jitkernels.runtime import cast_copy

CALL = """
import logging
logging.basicConfig(format="%(message)s")
import numpy as np, jitkernels as jk
x = np.arange(5.0)
assert (jk.vmul(x, x) == x * x).all()
"""
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX")


def test_user_without_a_home(tmp_path: Path) -> None:
    """A user whom the system does not know and who has no ``$HOME``, as in many containers."""
    code = f"""
import os, tempfile, platformdirs
from jitkernels.core import cache_dirs
tempfile.tempdir = {str(tmp_path)!r}
def no_home(name):
    raise RuntimeError("could not determine the home directory")
platformdirs.user_cache_dir = no_home
del os.environ["JITKERNELS_CACHE_DIR"]
print(cache_dirs.cache_root())
"""
    assert Path(python(code).strip()).parent == tmp_path


@posix
def test_folders_are_private_whatever_the_umask(private_cache: Path) -> None:
    private_cache.chmod(0o755)
    code = f"import os\nos.umask(0o002)\n{CALL}jk.tune(jk.VMulAttr(n=5, dtype='float64'))"
    python(code, private_cache, JITKERNELS_TUNE="auto")
    folders = [path for path in private_cache.rglob("*") if path.is_dir()]
    assert {path.name for path in folders} >= {"objects", "tuning"}
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}


@posix
def test_objects_in_a_shared_folder_are_not_loaded(private_cache: Path) -> None:
    python(CALL, private_cache)
    (objects,) = private_cache.glob("*/objects")
    before = sorted(objects.iterdir())
    for folder in (objects, objects.parent):
        folder.chmod(0o777)
        for path in before:
            path.unlink(missing_ok=True)
        python(CALL, private_cache)
        assert not list(objects.iterdir())
        folder.chmod(0o700)


@pytest.mark.parametrize("text", ["many", "0", "-1", "\u00b2", "9" * 30])
def test_invalid_number_of_threads_is_reported(text: str) -> None:
    code = f"import sys\nsys.stderr = sys.stdout\n{CALL}print(jk.get_num_threads())"
    said, _, number = python(code, JITKERNELS_NUM_THREADS=text).strip().rpartition("\n")
    assert "JITKERNELS_NUM_THREADS" in said
    assert int(number) == cpu_target.cpu_count()


def test_intermediates_that_cannot_be_written(private_cache: Path, tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.touch()
    python(CALL, private_cache, JITKERNELS_KEEP_INTERM="1", JITKERNELS_WORKDIR=str(taken))


@posix
def test_forked_child_ignores_set_num_threads() -> None:
    code = """
import os, signal, warnings
warnings.simplefilter("ignore")
import jitkernels as jk
from jitkernels.tools import testing
from jitkernels.dispatch.kernel import Kernel
from jitkernels.attrs.schema.registry import implementation
jk.set_num_threads(2)
attr = jk.VMulAttr(n=1 << 18)
kernel = Kernel(attr, implementation(type(attr), "gen"), {"vector_bytes": 32, "parallel": True})
testing.check_values(attr, kernel.callable)
child = os.fork()
if child == 0:
    signal.alarm(60)
    jk.set_num_threads(2)
    testing.check_values(attr, kernel.callable)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code, OMP_NUM_THREADS="2") == "7\n"


@posix
@pytest.mark.parametrize("look", ["at", "jk.tune"])
def test_fork_while_another_thread_looks_a_kernel_up(look: str) -> None:
    """Looked up or measured: the child inherits no lock that nobody releases."""
    code = f"""
import os, signal, threading, time, warnings
warnings.simplefilter("ignore")
import jitkernels as jk
from jitkernels.attrs.schema.registry import implements
inside = threading.Event()
@implements(jk.VMulAttr, name="slow")
def slow(attr):
    inside.set()
    time.sleep(0.5)
    raise jk.errors.BuildError("never mind")
at = jk.KernelFuncs.cache().at
def look():
    try:
        {look}(jk.VMulAttr(n=8))
    except jk.errors.BuildError:
        pass
thread = threading.Thread(target=look)
thread.start()
assert inside.wait(20)
child = os.fork()
if child == 0:
    signal.alarm(60)
    {look}(jk.VExpAttr(n=16))
    os._exit(7)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    pinned = "vmul=slow" if look == "at" else ""
    assert python(code, JITKERNELS_TUNE="auto", JITKERNELS_USE=pinned).splitlines()[-1] == "7"


def test_targets() -> None:
    """Vectors and registers match the manuals; no x86 feature reaches the LLVM of another architecture."""
    wide, narrow, plain, arm = (
        cpu_target.target_of(architecture, "any", frozenset(features))
        for architecture, features in (
            ("x86_64", ("avx2", "avx512f")), ("x86_64", ("avx2",)), ("x86_64", ()), ("aarch64", ("neon",)),
        )
    )  # fmt: skip
    found = [(target.vector_bytes, target.registers) for target in (wide, narrow, plain, arm)]
    assert found == [(64, 32), (32, 16), (16, 16), (16, 32)]
    assert [target.lanes("float32") for target in (wide, narrow, plain, arm)] == [16, 8, 4, 4]
    assert arm.lanes("float64") == 2
    assert arm.lanes("int8") == 16
    assert [target.widths for target in (wide, narrow, plain, arm)] == [(64, 32), (32,), (16,), (16,)]
    assert llvm_backend.features_of(wide, 64).endswith(",-prefer-256-bit")
    assert llvm_backend.features_of(narrow, 32).endswith(",+prefer-256-bit")
    assert "prefer" not in llvm_backend.features_of(arm, 16)
    assert "+neon" in llvm_backend.features_of(arm, 16)


@pytest.mark.parametrize(
    ("architecture", "features", "converts"),
    [("aarch64", (), True), ("arm64", ("neon",), True), ("x86_64", ("avx2",), False), ("x86_64", ("f16c",), True)],
)
def test_which_targets_convert_float16(
    architecture: str, features: tuple[str, ...], converts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every 64-bit Arm does, also where LLVM cannot detect features, as under emulation and on some systems."""
    target = cpu_target.target_of(architecture, "any", frozenset(features))
    monkeypatch.setattr(cpu_target, "target", lambda: target)
    assert cast_copy.has_float16() is converts


def test_target_of_this_machine() -> None:
    target = cpu_target.target()
    assert (target.name, target.features) == (cpu_target.cpu_name(), cpu_target.cpu_features())
    assert target == cpu_target.target_of(target.architecture, target.name, target.features)
    assert target.widths[0] == target.vector_bytes
