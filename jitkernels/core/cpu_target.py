"""What this machine and installation are: CPU, versions, cores, and where results about them are kept.

Everything that decides machine code or a measurement is in one of the two environments here, and the hash
of an environment names the folder of what was made under it. A changed environment is therefore a miss.
"""

import contextlib
import functools
import json
import os
import platform
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from jitkernels import dtypes, processor, settings
from jitkernels.checksums import sha256
from jitkernels.errors import UnknownNameError
from jitkernels.records import record

PACKAGES_OF_CODE = ("jitkernels", "llvmlite", "numpy")
PACKAGES_OF_TIMINGS = ("mkl", "scipy-openblas32", "onednn-cpu-gomp", "onednn-cpu-iomp")


@functools.cache
def _versions() -> dict[str, str]:
    """Versions of all installed distributions by normalised name, the first on the path winning.

    Read off the names of their ``.dist-info`` folders: importing `importlib.metadata` takes 15 ms, a fifth
    of what a whole warm start may.
    """
    found: dict[str, str] = {}
    for place in sys.path:
        try:
            names = os.listdir(place or ".")  # names are all that is needed
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info"):
                package, _, number = name.removesuffix(".dist-info").partition("-")
                found.setdefault(package.lower().replace("_", "-"), number)
    return found


def version(package: str) -> str:
    """The installed version of a distribution, or "absent"."""
    return _versions().get(package, "absent")


@functools.cache
def _host() -> tuple[str, dict[str, bool]]:
    """LLVM's name of the host CPU, and whether it has each of the features that it has names for."""
    found = processor.host()
    if found is None:
        import llvmlite.binding as llvm

        found = str(llvm.get_host_cpu_name()), dict(llvm.get_host_cpu_features())
    return found


def has_compiler() -> bool:
    """Whether LLVM is installed, without which there is only what was built before."""
    return version("llvmlite") != "absent" and sys.modules.get("llvmlite", sys) is not None


@functools.cache
def cpu_name() -> str:
    """LLVM's name of the host CPU, overridden by ``JITKERNELS_CPU_NAME``.

    Raises UnknownNameError for a name that LLVM does not know, where it is installed.
    """
    asked = settings.read("JITKERNELS_CPU_NAME")
    if asked and has_compiler() and not _is_cpu(asked):
        expected = settings.SETTINGS["JITKERNELS_CPU_NAME"].expected
        raise UnknownNameError(f"JITKERNELS_CPU_NAME: expected {expected}, got {asked!r}")
    return asked or _host()[0]


def _is_cpu(name: str) -> bool:
    """Whether LLVM knows a CPU. It goes on without, and says so on standard error alone."""
    import tempfile

    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    with tempfile.TemporaryFile() as heard:
        kept = os.dup(2)
        try:
            os.dup2(heard.fileno(), 2)
            llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(cpu=name)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        heard.seek(0)
        return b"not a recognized processor" not in heard.read()


NEEDED = frozenset(
    (
        "64bit", "cmov", "cx8", "cx16", "fxsr", "mmx", "popcnt", "sahf", "sse", "sse2", "sse3", "ssse3", "sse4.1",
        "sse4.2", "x87", "xsave", "neon", "fp-armv8",
    )
)  # fmt: skip
"""What every CPU has that NumPy runs on; LLVM's code calls what is nowhere, or crashes, without some of it."""


NEEDING = {
    "avx": {"avx2", "fma", "f16c", "vpclmulqdq", "xop", "fma4", "sm3"},
    "avx2": {
        "avx512f", "vaes", "sha512", "sm4", "avxvnni", "avxifma", "avxneconvert", "avxvnniint8", "avxvnniint16",
    },
}  # fmt: skip
"""What brings a feature back in LLVM if it stays itself."""


@functools.cache
def cpu_features() -> frozenset[str]:
    """LLVM's names of the features of the host CPU, overridden by ``JITKERNELS_CPU_FEATURES`` ("+avx2,-avx512f").

    An override can only take features away: code for a feature that the CPU lacks would crash. Raises
    UnknownNameError for a feature that LLVM does not know, or that no code does without.
    """
    known = _host()[1]
    found = frozenset(name for name, present in known.items() if present)
    asked = [part.strip() for part in settings.read("JITKERNELS_CPU_FEATURES").split(",") if part.strip()]
    for part in asked:
        if part[0] not in "+-" or part[1:] not in known or (part[0] == "-" and part[1:] in NEEDED):
            why = ", which no code does without" if part[1:] in NEEDED else ""
            expected = settings.SETTINGS["JITKERNELS_CPU_FEATURES"].expected
            raise UnknownNameError(f"JITKERNELS_CPU_FEATURES: expected {expected}, got {part!r}{why}")
    removed = {part[1:] for part in asked if part.startswith("-")}
    return found - _dependents(removed)


def _dependents(removed: set[str]) -> set[str]:
    """The removed features and those that cannot exist without them (avx512* need avx512f, and so on)."""
    gone = set(removed)
    for feature in ("avx", "avx2"):
        if feature in gone:
            gone |= NEEDING[feature]
    if "avx512f" in gone:
        gone |= {name for name in _host()[1] if name.startswith("avx512")}
    return gone


@record
class Target:
    """What generated code is made for: everything about a CPU that kernels choose their code by.

    name and features are LLVM's; `vector_bytes` is the width of the widest vector registers, `registers` how
    many of them there are.
    """

    architecture: str
    name: str
    features: frozenset[str]
    vector_bytes: int
    registers: int

    def lanes(self, dtype: str) -> int:
        """Elements of a type in one vector register."""
        return self.vector_bytes // dtypes.named(dtype).size

    def masked_lanes(self, dtype: str, vector_bytes: int = 64) -> int:
        """Elements in a vector of so many bytes, or of the widest, whose lanes can be off; 0 without masks."""
        width = min(vector_bytes, self.vector_bytes)
        return width // dtypes.named(dtype).size if "avx512vl" in self.features else 0

    @property
    def is_x86(self) -> bool:
        return self.architecture in ("x86_64", "amd64")

    @property
    def is_arm(self) -> bool:
        """64-bit Arm, which has NEON and conversions of float16 even where LLVM tells no features."""
        return self.architecture in ("aarch64", "arm64")

    @property
    def fuses(self) -> bool:
        """Whether it multiplies and adds in one instruction, which rounds once."""
        return "fma" in self.features or not self.is_x86

    @property
    def waits_to_write(self) -> bool:
        """Whether a store to a line that is not in the first cache holds up those behind it, unless it was asked for.

        Intel's processors write in order, and fetch lines ahead of that for stores to one place alone. On Emerald
        Rapids, rows of Jacobi's step that are written two at once take 47 ns for 98 numbers with arrays of 80 kB, and
        23 with their lines asked for; the second cache added but a sixth to what Zen 4 took in the first one.
        """
        return self.is_x86 and not self.name.startswith("znver")

    def does(self, word: str) -> bool:
        """Whether what `native.source.instruction` calls so is one instruction, for whole vectors."""
        return {"fma": self.fuses, "ldexp": "avx512dq" in self.features}[word]

    @property
    def widths(self) -> tuple[int, ...]:
        """Bytes of the vectors worth trying: a CPU may run slower for its widest ones."""
        return (64, 32) if self.vector_bytes == 64 else (self.vector_bytes,)


def target_of(architecture: str, name: str, features: frozenset[str]) -> Target:
    """The target that a CPU of these features is: AVX-512, AVX2, or 16-byte vectors, of which NEON has 32."""
    if "avx512f" in features:
        return Target(architecture, name, features, vector_bytes=64, registers=32)
    if "avx2" in features:
        return Target(architecture, name, features, vector_bytes=32, registers=16)
    registers = 32 if architecture in ("aarch64", "arm64") else 16
    return Target(architecture, name, features, vector_bytes=16, registers=registers)


@functools.cache
def target() -> Target:
    """What code is generated for here: this machine, less what ``JITKERNELS_CPU_FEATURES`` takes away."""
    return target_of(platform.machine().lower(), cpu_name(), cpu_features())


@functools.cache
def cpu_count() -> int:
    """Cores this process may use: its affinity mask, cut to the quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _quota(cores)))


def _quota(unlimited: int) -> int:
    """The CPU quota of the control group in whole cores, rounded up (version 2, then version 1 files)."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return unlimited if limit == "max" else -(-int(limit) // int(period))
    except (OSError, ValueError):
        pass
    try:
        quota = int(Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").read_text())
        period_us = int(Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us").read_text())
        return unlimited if quota <= 0 else -(-quota // period_us)
    except (OSError, ValueError):
        return unlimited


@functools.cache
def second_cache_bytes() -> int:
    """Bytes of a core's second-level cache; 1 MB where the system does not tell."""
    try:
        told = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
        return int(told.removesuffix("K")) << 10 if told.endswith("K") else 1 << 20
    except (OSError, ValueError):
        return 1 << 20


@functools.cache
def environment_of_code() -> dict[str, str]:
    """Everything besides a source that decides the machine code made from it."""
    return {
        "cpu": cpu_name(),
        "features": ",".join(sorted(cpu_features())),
        "system": f"{sys.platform}-{platform.machine()}",
        **{name: version(name) for name in PACKAGES_OF_CODE},
    }


def environment_of_timings(threads: int) -> dict[str, str]:
    """Everything besides an attr that decides which implementation measures best."""
    python = f"{platform.python_implementation()}-{platform.python_version()}"
    versions = {name: version(name) for name in PACKAGES_OF_TIMINGS}
    return {**environment_of_code(), **versions, "python": python, "threads": str(threads)}


def digest(content: object) -> str:
    """SHA-256 of a JSON value with sorted keys, in hexadecimal."""
    return str(sha256(json.dumps(content, sort_keys=True).encode()).hexdigest())


@functools.cache
def cache_root() -> Path | None:
    """The folder of everything kept between processes, or None when no private folder can be had.

    ``JITKERNELS_CACHE_DIR`` if set, else the user's cache folder, else a folder of the user's own below the
    system's temporary folder. A folder that another user owns or may write to is never used: loading
    machine code from it would hand them this process.
    """
    chosen = settings.read("JITKERNELS_CACHE_DIR")
    if chosen:
        return private(Path(chosen).absolute())
    return next((place for place in _places() if place.is_absolute() and private(place)), None)


def _places() -> Iterator[Path]:
    """Where the cache may be, if nobody says."""
    import platformdirs

    with contextlib.suppress(RuntimeError):  # a user without a home, as in many containers
        yield Path(platformdirs.user_cache_dir("jitkernels"))
    import tempfile

    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()) / f"jitkernels-{user}"


def private(place: Path) -> Path | None:
    """The folder itself, made with mode 0700 if missing, or None if it is not ours alone."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = place.stat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (
        status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        return None
    return place


def work_directory() -> Path:
    """Where intermediate files are kept on request: ``JITKERNELS_WORKDIR``, else ``jitkernels-work`` here."""
    place = Path(settings.read("JITKERNELS_WORKDIR"))
    place.mkdir(parents=True, exist_ok=True)
    return place


def timings_directory(threads: int) -> Path | None:
    """Where measurements for this environment and number of threads lie, or None without a cache."""
    root = cache_root()
    return root and _timings_below(root, threads)


@functools.cache
def _timings_below(root: Path, threads: int) -> Path:
    """Neither machine nor versions change while a process lives."""
    return root / digest(environment_of_timings(threads))[:16] / "tuning"


def has_timings(name: str, threads: int) -> bool:
    """Whether any attr of a kernel was measured; looked up anew when the folder has changed."""
    place = timings_directory(threads)
    try:
        return place is not None and _has_timings(place, name, place.stat().st_mtime_ns)
    except OSError:
        return False


@functools.lru_cache(maxsize=8)
def _has_timings(place: Path, name: str, _: int) -> bool:
    return next(place.glob(f"{name}-*.json"), None) is not None
