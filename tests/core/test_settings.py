"""The environment variables: one table, and invalid values and names are reported."""

import decimal
import os
import re
import subprocess
import sys
from pathlib import Path

import processor_skips
import pytest
from processes import environment, finish, python, start

from jitkernels.core import cpu_target, settings
from jitkernels.errors import UnknownNameError

REFUSED = {
    "JITKERNELS_USE": ("nonsense", "vmul=nonsense", "nonsense=gen", "=", "\udcff", "vmul=gen=gen"),
    "JITKERNELS_TUNE": ("yes", "AUTO", "auto ", "\udcff"),
    "JITKERNELS_POLICY": ("slow", "\udcff"),
    "JITKERNELS_NUM_THREADS": ("0", "-1", "many", "2.5", "9" * 5000, "\udcff", "\u0663"),
    "JITKERNELS_CACHE_DIR": ("/proc/nowhere", "x" * 5000, "/dev/null"),
    "JITKERNELS_PACK": ("/proc/nowhere", "/dev/null", "x" * 5000, "\udcff"),
    "JITKERNELS_KEEP_INTERM": ("yes", "2", "\udcff"),
    "JITKERNELS_WORKDIR": ("/proc/nowhere", "/dev/null"),
    "JITKERNELS_OPT_LEVEL": ("4", "-4", "high", "1.0", "\udcff"),
    "JITKERNELS_BACKEND": ("Native", "Numba", "\udcff"),
    "JITKERNELS_COMPILER": ("thread", "Process", "\udcff"),
    "JITKERNELS_CPU_NAME": ("\udcff", "../x", "a b", "-v", "é", "a\n"),
    "JITKERNELS_CPU_FEATURES": ("avx2", "-nonsense", "-", "\udcff"),
}
"""Values that no variable can have; what is wrong must be said, whether it is an error or not."""
READ_BY_BUILDS = ("JITKERNELS_KEEP_INTERM", "JITKERNELS_WORKDIR", "JITKERNELS_COMPILER")
"""Nobody asks for these where all objects are in the cache."""
RUN = """
import jitkernels as jk
from jitkernels.core import settings
try:
    jk.JitConfig()
    print(jk.vmul([1.0], [2.0]))
except jk.errors.JitKernelsError as error:
    print("error:", ascii(str(error)))
"""


def test_every_setting_has_invalid_values() -> None:
    assert set(REFUSED) == set(settings.SETTINGS)


CASES = [
    pytest.param(name, value, marks=pytest.mark.full if number % 2 and number + 1 < len(values) else [])
    for name, values in REFUSED.items()
    for number, value in enumerate(values)
]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_invalid_values_are_reported(name: str, value: str, private_cache: Path) -> None:
    """An error or one line on stderr names the variable or its value; there is never a traceback."""
    others = {"JITKERNELS_TUNE": "replay"}  # which asks for the threads
    if name in READ_BY_BUILDS:
        others |= {"JITKERNELS_KEEP_INTERM": "1", "JITKERNELS_WORKDIR": str(private_cache / "work")}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**environment(private_cache if name in READ_BY_BUILDS else None, **others), name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.removeprefix("[2.]\n") + done.stderr
    about = {"JITKERNELS_CACHE_DIR": "no private cache folder", "JITKERNELS_WORKDIR": "intermediate files"}
    assert about.get(name, name) in said
    assert len(said.splitlines()) == 1


def test_unreadable_folders_are_reported(private_cache: Path) -> None:
    """A folder of another user below the cache costs one line, and no error."""
    forbidden = """
import os
looked = os.stat
def stat(path, **more):
    if str(path).endswith("objects"):
        raise PermissionError(13, "Permission denied", str(path))
    return looked(path, **more)
os.stat = stat
"""
    done = subprocess.run(
        [sys.executable, "-c", forbidden + RUN],
        env=environment(private_cache),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[2.]\n"
    assert "objects cannot be written, or is not private" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", settings.SETTINGS)
def test_empty_is_unset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "")
    assert settings.read(name) == settings.SETTINGS[name].fallback


def test_misspelt_names_are_reported_once(private_cache: Path) -> None:
    """With the likely name, at the first kernel and not at import; names of test suites are exempt."""
    code = f"import sys, jitkernels\nprint('imported', file=sys.stderr)\n{RUN}{RUN}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **environment(private_cache),
            "JITKERNELS_TUNNE": "off",
            "jitkernels_policy": "reproducible",
            "JITKERNELS_WHATEVER": "1",
            "JITKERNELS_TEST_THIS": "1",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    first, *said = done.stderr.splitlines()
    assert first == "imported"
    assert sorted(line.split(": ")[0] for line in said) == sorted(
        f"there is no setting {name!r}" for name in ("JITKERNELS_TUNNE", "jitkernels_policy", "JITKERNELS_WHATEVER")
    )
    assert any(line.endswith("did you mean JITKERNELS_TUNE?") for line in said)
    assert any(line.endswith("did you mean JITKERNELS_POLICY?") for line in said)


def test_search_for_misspelt_names_is_fast() -> None:
    """Microseconds in an ordinary environment, which the first call does not feel."""
    code = """
import time
from jitkernels.core import settings
settings.read("JITKERNELS_TUNE")
took = []
for _ in range(20):
    settings._reported_unknown = False
    started = time.perf_counter()
    settings.read("JITKERNELS_TUNE")
    took.append(time.perf_counter() - started)
print(min(took))
"""
    assert float(python(code)) < 0.002


def test_errors_name_the_accepted_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "never")
    with pytest.raises(UnknownNameError, match="JITKERNELS_TUNE: expected auto, replay or off, got 'never'"):
        settings.read("JITKERNELS_TUNE")


def test_errors_name_the_accepted_range() -> None:
    """The error that rejects a number states its bounds."""
    setting = settings.SETTINGS["JITKERNELS_NUM_THREADS"]
    least, most = (int(number) for number in re.findall(r"\d+", setting.expected))
    for right in (least, most, 12):
        assert int(setting.check(f" {right} ")) == right
    for wrong in (least - 1, most + 1, 10**20, 10**5000):
        with pytest.raises(UnknownNameError, match=f"NUM_THREADS: expected an int from {least} to {most}, got"):
            setting.check(f"{decimal.Decimal(wrong):f}")


def test_cpu_names_are_no_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU name becomes part of a file's name."""
    monkeypatch.setenv("JITKERNELS_CPU_NAME", f"..{os.sep}x")
    with pytest.raises(UnknownNameError):
        cpu_target.cpu_name.__wrapped__()


WRONG_WHATEVER_IS_BUILT = (
    ("JITKERNELS_CPU_NAME", "foo"),
    ("JITKERNELS_CPU_FEATURES", "-sse4.1"),
    ("JITKERNELS_CPU_FEATURES", "-64bit"),
    ("JITKERNELS_KEEP_INTERM", "yes"),
    ("JITKERNELS_COMPILER", "yes"),
)


def test_invalid_values_are_reported_with_cold_and_warm_caches(private_cache: Path) -> None:
    """Neither a crash nor LLVM's own message."""

    def report(name: str, value: str) -> str:
        code = f"""
import os
os.environ[{name!r}] = {value!r}
import jitkernels as jk
from jitkernels.errors import UnknownNameError
try:
    jk.vexp([1.0])
except UnknownNameError as error:
    print(str(error).startswith({name!r}))
"""
        return python(code, private_cache)

    said = ["True\n"] * len(WRONG_WHATEVER_IS_BUILT)
    assert [report(*one) for one in WRONG_WHATEVER_IS_BUILT] == said
    assert python("import jitkernels as jk\njk.vexp([1.0])", private_cache) == ""
    assert [report(*one) for one in WRONG_WHATEVER_IS_BUILT] == said


def test_numbers_of_every_type_without_instructions_for_float16(private_cache: Path) -> None:
    """Calls of float16 go through Python then."""
    code = """
import math
import numpy as np, jitkernels as jk
for code in "?bBhHiIlLqQefd":
    kind = np.dtype(code).type
    for given in (kind(1), np.array([kind(1)] * 40)):
        assert np.allclose(jk.vexp(given), math.e, rtol=1e-3), kind
        x = np.arange(4, dtype=np.float32)
        assert np.array_equal(jk.vmul(x, kind(1)), x), kind
"""
    assert python(code, private_cache, JITKERNELS_CPU_FEATURES="-f16c") == ""


@processor_skips.needs(cpu_target.target().is_x86, "the feature is one of x86-64")
def test_disabled_features_stay_disabled(private_cache: Path, tmp_path: Path) -> None:
    """LLVM enables a feature that another one implies."""
    code = """
import numpy as np, jitkernels as jk
x = np.ones((70, 40), np.float32)
for function in (jk.softmax, jk.seq_pool, jk.vexp):
    function(x)
jk.matmul(x, x.T)
"""
    kept = {"JITKERNELS_KEEP_INTERM": "1", "JITKERNELS_WORKDIR": str(tmp_path)}
    finish(start(code, private_cache, JITKERNELS_CPU_FEATURES="-avx", **kept))
    listings = [path.read_text() for path in tmp_path.rglob("*.s")]
    assert len(listings) > 4
    assert not any("%ymm" in listing for listing in listings)


@pytest.mark.full
def test_every_feature_can_be_disabled_or_is_rejected(private_cache: Path) -> None:
    """Disabling a single feature crashes neither LLVM nor the process, whatever the CPU has."""
    code = """
import os, sys
os.environ["JITKERNELS_CPU_FEATURES"] = "-" + {name!r}
import numpy as np, jitkernels as jk
from jitkernels.errors import UnknownNameError
x = np.linspace(-3, 3, 37, dtype=np.float32)
try:
    assert np.allclose(jk.vexp(x), np.exp(x))
    assert np.allclose(jk.vmul(x.astype(np.float16), x), x * x, atol=1e-2)
    jk.KernelFuncs.cache().at(jk.VExpAttr(n=8))
    assert np.allclose(jk.matmul(np.ones((9, 9)), np.ones((9, 9))), 9)
except UnknownNameError:
    print("refused")
"""
    for name in sorted(cpu_target.cpu_features()):
        refused = python(code.format(name=name), private_cache) == "refused\n"
        assert refused == (name in cpu_target.NEEDED), name
