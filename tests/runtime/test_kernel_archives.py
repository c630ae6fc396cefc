"""Kernel archives: their content, use without compiler or cache, and damaged or foreign ones."""

import ctypes
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from processes import python

from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.attrs.schema.schema_queries import is_everyday
from jitkernels.benchmarks.peers import ordinary_calls_of
from jitkernels.codegen import c_source, kernel_archive
from jitkernels.codegen.source_protocol import symbol_of
from jitkernels.runtime.loading import loader

WITHOUT = """
import logging, sys
for name in ("llvmlite", "numba"):
    sys.modules[name] = None  # importing it fails as if it were not there
logging.basicConfig(stream=sys.stdout, format="logged: %(message)s")
import numpy as np
import jitkernels as jk
"""
"""A process without a compiler."""
CALLS = """
x, m = np.linspace(0.5, 1.5, 1000, dtype=np.float32), np.arange(12.0).reshape(3, 4)
assert np.array_equal(jk.vmul(x, x), x * x)
assert np.array_equal(jk.vmul(x[::2], x[::2]), x[::2] * x[::2])
assert np.array_equal(jk.vmul([1, 2, 3], 2), [2, 4, 6])
assert np.array_equal(jk.vmul(m.astype("i2"), m), m * m)
vmul, z = jk.KernelFuncs.cache().at(jk.VMulAttr(n=1000)), np.empty_like(x)
vmul(x, x, z)
assert np.array_equal(z, x * x)
assert jk.KernelFuncs.cache().at(jk.VMulAttr(n=12345)).__self__.implementation != "refer"
print(type(vmul).__name__, vmul.__self__.implementation != "refer", sys.modules["llvmlite"])
"""
FUNCTION = """
import numpy as np
import jitkernels as jk

@jk.jit
def between(x, low):
    return np.sqrt(x * x + low) - np.abs(low)

def use():
    x = np.linspace(0.0, 1.0, 50_000)
    for _ in range(3):
        between(x, 2.0)
"""
CALLED = """
import json
calls, arrays = json.loads('CALLS'), dict(np.load("ARRAYS"))
for name, arguments, named in calls:
    found = getattr(jk, name)(*[arrays[v["array"]] if isinstance(v, dict) else v for v in arguments], **named)
    found = found if isinstance(found, tuple) else (found,)
    assert all(np.array_equal(one, arrays[f"{name} {i}"], equal_nan=True) for i, one in enumerate(found)), name
"""
"""Everyday calls, with the results of the process that wrote the archive."""
COMPILED = """
from packed_function import between
x = np.linspace(0.0, 3.0, 70_000)
for _ in range(3):
    assert np.allclose(between(x, 2.0), between.__wrapped__(x, 2.0))
print(between.stats().kernels)
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of one kernel and of one compiled function."""
    folder = tmp_path_factory.mktemp("packs")
    (folder / "packed_function.py").write_text(FUNCTION)
    place = folder / "some.pack"
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from jitkernels.tools.cli import cache; "
    code += f"from pathlib import Path; cache.pack(Path({str(place)!r}), ('vmul', 'packed_function:use'))"
    assert "objects and" in python(code)
    return place


def without(code: str, pack: Path | str, cache: Path, tune: str = "replay") -> str:
    folder = str(Path(str(pack).partition(os.pathsep)[0]).parent)
    start = f"{WITHOUT}sys.path.insert(0, {folder!r})\n"
    return python(start + code, cache, JITKERNELS_PACK=str(pack), JITKERNELS_TUNE=tune)


def private(tmp_path: Path) -> Path:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    return cache


def test_an_archive_needs_no_compiler(archive: Path, tmp_path: Path) -> None:
    """First calls in many forms, and kernels by attr, run from the archive alone."""
    cache = private(tmp_path)
    assert without(CALLS, archive, cache) == "builtin_function_or_method True None\n"
    assert not [path for path in cache.rglob("*") if path.suffix in (".o", ".so")], "it is read where it lies"


def test_compiled_functions(archive: Path, tmp_path: Path) -> None:
    assert without(COMPILED, archive, private(tmp_path)) == "1\n"


def test_the_object_cache_may_be_missing(archive: Path) -> None:
    assert without(CALLS, archive, Path("/proc/nowhere")).endswith("builtin_function_or_method True None\n")


def test_forked_children_read_the_archive(archive: Path, tmp_path: Path) -> None:
    fork = f"import os\nchild = os.fork()\n{CALLS}if child:\n    os.waitpid(child, 0)\n"
    assert without(fork, archive, private(tmp_path)).count("True None") == 2


THREADS = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
from packed_function import between
x = np.linspace(0.0, 3.0, 70_000)
found = []
def calls(is_reversed):
    def product():
        return np.array_equal(jk.vmul(x, x), x * x)
    def function():
        return np.allclose(between(x, 2.0), between.__wrapped__(x, 2.0))
    works = [product, function]
    found.extend(work() for work in (works[::-1] if is_reversed else works))
threads = [threading.Thread(target=calls, args=(number % 2,)) for number in range(4)]
for thread in threads:
    thread.start()
children = []
for number in range(4):
    time.sleep(0.005)
    child = os.fork()
    if child == 0:
        found.clear()
        calls(number % 2)
        os._exit(0 if found == [True, True] else 1)
    children.append(child)
for thread in threads:
    thread.join()
print(found == [True] * 8, [os.waitpid(child, 0)[1] for child in children])
"""
"""First calls of several threads at once, and of children of forks in the midst of them."""


def test_threads_and_forks_at_first_calls(archive: Path, tmp_path: Path) -> None:
    assert without(THREADS, archive, private(tmp_path)) == "True [0, 0, 0, 0]\n"


def test_missing_code_falls_back_with_one_message(archive: Path, tmp_path: Path) -> None:
    """For kernels that are in no archive, and for all kernels without any archive."""
    code = "m = np.ones((2, 3))\nfor _ in range(2):\n    assert np.allclose(jk.softmax(m), 1 / 3)\n"
    output = without(code, archive, private(tmp_path))
    assert output.count("logged: ") == output.count("softmax falls back to NumPy") == 1
    (tmp_path / "other").mkdir(mode=0o700)
    output = python(WITHOUT + code + COMPILED_NOWHERE, tmp_path / "other")
    assert output.count("falls back to NumPy: neither") == 1
    assert output.endswith("3.0\n")


COMPILED_NOWHERE = """
assert np.array_equal(jk.jit(lambda x: x * 2 + 1)(np.ones(100_000)), np.full(100_000, 3.0))
print(jk.jit(lambda x: x * 2 + 1)(np.ones(100_000))[5])
"""


EVERY_CALL = f"""{CALLED}
from jitkernels.dispatch.operators import everyday
from jitkernels.runtime.loading import loader as load
from jitkernels.dispatch.kernel_cache import KernelFuncs
for name, *_ in calls:
    assert everyday(name).__class__.__name__ == "builtin_function_or_method", name
left = [kernel.attr.text() for kernel in KernelFuncs.cache()._classes.values() if not kernel.address]
print(len(calls), len(load._loaded) > len(calls), left)
"""


def test_every_everyday_function_runs_from_an_archive(tmp_path: Path) -> None:
    """Without a compiler, all rows give the results of the process that wrote the archive.

    By static picks: records of other tests in their cache may name variants that the archive lacks.
    """
    names = [row.kernel_type.name.lower() for row in all_schemas() if is_everyday(row) and ordinary_calls_of(row, 8)]
    pack, arrays = tmp_path / "all.pack", tmp_path / "arrays.npz"
    given = json.dumps([str(pack), str(arrays), names])
    make = "import json; from jitkernels.benchmarks.entries.packed import make; print(json.dumps(make(*{})))"
    calls = python(make.format(f"json.loads({given!r})"), JITKERNELS_TUNE="off").splitlines()[-1]
    text = WITHOUT + EVERY_CALL.replace("ARRAYS", str(arrays)).replace("'CALLS'", repr(calls))
    cache = private(tmp_path)
    output = python(text, cache, JITKERNELS_PACK=str(pack), JITKERNELS_TUNE="off")
    assert output == f"{len(names)} True []\n"
    assert not [path for path in cache.rglob("*") if path.suffix in (".o", ".so")]


def test_libraries_of_archives_are_not_confused() -> None:
    """They are opened as files in memory, with one file number after the other."""
    for number in (1, 2, 3):
        source = c_source.CSource(f"number_{number}", (), "number", f"int64_t number(void) {{ return {number}; }}")
        symbol = symbol_of(source)
        opened = loader._open(source.object_code(symbol), None, symbol)
        assert ctypes.CFUNCTYPE(ctypes.c_int64)(opened.address)() == number


def header_of(place: Path) -> tuple[dict[str, object], bytes]:
    content = place.read_bytes()
    begin = len(kernel_archive.MAGIC) + kernel_archive.LENGTH_BYTES + kernel_archive.CHECKSUM_BYTES
    length = int.from_bytes(content[len(kernel_archive.MAGIC) :][: kernel_archive.LENGTH_BYTES], "little")
    return json.loads(content[begin : begin + length]), content[begin + length :]


def changed(archive: Path, place: Path, **wanted: str) -> Path:
    """The pack with another environment in its header, all else as it should be."""
    header, contents = header_of(archive)
    header["for"] = {**header["for"], **wanted}  # type: ignore[dict-item]  # the environment
    text = json.dumps(header).encode()
    checksum = hashlib.sha256(text).digest()
    place.write_bytes(
        kernel_archive.MAGIC + len(text).to_bytes(kernel_archive.LENGTH_BYTES, "little") + checksum + text + contents
    )
    return place


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"cpu": "knl"}, "it is for cpu knl, this is"),
        ({"features": "avx1024"}, "it is for another CPU: it needs avx1024 and is without"),
        ({"numpy": "1.0"}, "it is for numpy 1.0, this is"),
        ({"python": "cpython-20"}, "it is for python cpython-20, this is"),
        ({"jitkernels": "9"}, "it is for jitkernels 9, this is"),
        ({"compiler": "x"}, "it was made by another state of this version of jitkernels"),
        ({"system": "plan9"}, "it is for system plan9, this is"),
    ],
)
def test_foreign_archives_are_ignored(archive: Path, tmp_path: Path, wanted: dict[str, str], reason: str) -> None:
    other = changed(archive, tmp_path / "other.pack", **wanted)
    output = python(f"{LOGGED}print(len(packs.opened()), len(packs.opened()))", JITKERNELS_PACK=str(other))
    lines = output.splitlines()
    assert lines[-1] == "0 0"
    assert lines[0].startswith(f"logged: JITKERNELS_PACK: leaving out the pack {other}: {reason}")
    assert len(lines) == 2


LOGGED = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="logged: %(message)s")
from jitkernels.codegen import kernel_archive as packs
"""


def test_several_archives_are_searched_in_order(archive: Path, tmp_path: Path) -> None:
    """An archive of another environment does not hide the next one."""
    other = changed(archive, tmp_path / "other.pack", cpu="knl")
    both = os.pathsep.join([str(other), str(archive)])
    assert without(CALLS, both, private(tmp_path)).endswith("builtin_function_or_method True None\n")


def test_damaged_archives_are_ignored(archive: Path, tmp_path: Path) -> None:
    """Truncated anywhere, with any header byte changed, or another file: one message is logged."""
    content = archive.read_bytes()
    header = len(content) - len(header_of(archive)[1])
    place = tmp_path / "torn.pack"
    damaged = [content[:size] for size in (0, 10, len(kernel_archive.MAGIC) + 4, header - 5, header, len(content) - 1)]
    damaged += [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in (3, 30, 50, 200, header - 1)]
    damaged += [b"", b"{}" * 100, os.urandom(5000)]
    for other in damaged:
        place.write_bytes(other)
        with pytest.raises((ValueError, OSError)):
            kernel_archive.KernelArchive(place)
    output = python(f"{LOGGED}print(packs.opened(), packs.opened())", JITKERNELS_PACK=str(place))
    assert output.count("logged: JITKERNELS_PACK: leaving out the pack") == 1


def test_damaged_code_is_not_loaded(archive: Path, tmp_path: Path) -> None:
    content = bytearray(archive.read_bytes())
    for at in range(len(content) - len(header_of(archive)[1]), len(content), 50):
        content[at] ^= 1
    place = tmp_path / "damaged.pack"
    place.write_bytes(content)
    shutil.copy(archive.parent / "packed_function.py", tmp_path)
    code = "x = np.ones(5)\nassert (jk.vmul(x, x) == 1).all()\nprint(jk.KernelFuncs.cache().at(jk.VMulAttr(n=8)))\n"
    output = without(code, place, private(tmp_path))
    assert output.count("is damaged: some of its code is left out") == 1
    assert "by gen" not in output  # a C compiler may be there still


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no rights of this kind here")
def test_archives_writable_by_others_are_ignored(archive: Path, tmp_path: Path) -> None:
    place = tmp_path / "open.pack"
    shutil.copy(archive, place)
    place.chmod(0o666)
    with pytest.raises(ValueError, match="others may write to it"):
        kernel_archive.KernelArchive(place)
    with pytest.raises((ValueError, OSError)):
        kernel_archive.KernelArchive(tmp_path)


def test_measurements_are_used(tmp_path: Path) -> None:
    """Records of the archive select kernels for their class and nearby ones."""
    cache, place = private(tmp_path), tmp_path / "tuned.pack"
    tune = (
        "from pathlib import Path; import jitkernels as jk; from jitkernels.tools.cli import cache; "
        "from jitkernels.selection import records as store; from jitkernels.selection.records import Measured, Record; "
        "from jitkernels.selection.size_classes import class_of; "
        "from jitkernels.runtime.threads.num_threads import get_num_threads; "
        "attr = class_of(jk.VMulAttr(n=1000)); variant = {'unroll': 1, 'vector_bytes': %d, 'stream': False, "
        "'parallel': False}; "
        "store.save(attr, Record((Measured('gen', variant, 1e-7, 0.0), Measured('refer', {}, 1e-6, 0.0))), "
        f"get_num_threads()); cache.pack(Path({str(place)!r}), ('vmul',))"
    )
    from jitkernels.core import cpu_target

    output = python(tune % cpu_target.target().widths[0], cache, JITKERNELS_TUNE="replay")
    assert "1 measurements" in output
    ask = (
        "for n in (1000, 3000):\n"
        "    kernel = jk.KernelFuncs.cache().at(jk.VMulAttr(n=n)).__self__\n"
        "    print(kernel.rule, kernel.variant['unroll'])\n"
    )
    (tmp_path / "other").mkdir(mode=0o700)
    assert without(ask, place, tmp_path / "other") == "measured 1\nnearby 1\n"


def test_an_archive_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        kernel_archive.write(tmp_path / "nowhere" / "one.pack", {}, {})
    kernel_archive.write(tmp_path / "none.pack", {"key": b"content"}, {})
    assert kernel_archive.KernelArchive(tmp_path / "none.pack").find("key") == b"content"
    assert kernel_archive.KernelArchive(tmp_path / "none.pack").find("other") is None
    assert [path.name for path in tmp_path.iterdir()] == ["none.pack"]
    assert sys.implementation.cache_tag == kernel_archive.archive_environment()["python"]
