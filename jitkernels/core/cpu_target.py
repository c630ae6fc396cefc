"""The target of generated code: the CPU, its features, vector registers, cores and caches."""

import functools
import os
import platform
import sys
from pathlib import Path

from jitkernels.core import cpuid, dtypes, settings, versions
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import UnknownNameError

CACHE_LINE_BYTES = 64
"""Bytes of a cache line, of all x86-64 processors and most 64-bit Arm ones: the unit of alignment, of prefetches, of
streaming stores and of memory that threads do not share. Code stays correct where lines are longer."""


@functools.cache
def _host() -> tuple[str, dict[str, bool]]:
    """LLVM's name of the host CPU, and a bool for each feature that LLVM names."""
    host = cpuid.host()
    if host is None:
        import llvmlite.binding as llvm

        host = str(llvm.get_host_cpu_name()), dict(llvm.get_host_cpu_features())
    return host


def has_compiler() -> bool:
    """Whether LLVM is installed; without it only cached objects can run."""
    return versions.version("llvmlite") != "absent" and sys.modules.get("llvmlite", sys) is not None


@functools.cache
def cpu_name() -> str:
    """LLVM's name of the host CPU, overridden by ``JITKERNELS_CPU_NAME``.

    Raises UnknownNameError for a name that LLVM does not know, where it is installed.
    """
    requested = settings.read("JITKERNELS_CPU_NAME")
    if requested and has_compiler() and not _is_cpu(requested):
        expected = settings.SETTINGS["JITKERNELS_CPU_NAME"].expected
        raise UnknownNameError(f"JITKERNELS_CPU_NAME: expected {expected}, got {requested!r}")
    return requested or _host()[0]


def _is_cpu(name: str) -> bool:
    """Whether LLVM knows a CPU name. LLVM reports an unknown one on standard error only, so that is captured."""
    import tempfile

    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    with tempfile.TemporaryFile() as captured:
        stderr = os.dup(2)
        try:
            os.dup2(captured.fileno(), 2)
            llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(cpu=name)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        captured.seek(0)
        return b"not a recognized processor" not in captured.read()


NEEDED = frozenset(
    (
        "64bit", "cmov", "cx8", "cx16", "fxsr", "mmx", "popcnt", "sahf", "sse", "sse2", "sse3", "ssse3", "sse4.1",
        "sse4.2", "x87", "xsave", "neon", "fp-armv8",
    )
)  # fmt: skip
"""Features of every CPU that NumPy runs on; without some of them LLVM emits calls to missing functions, or crashes."""


NEEDING = {
    "avx": {"avx2", "fma", "f16c", "vpclmulqdq", "xop", "fma4", "sm3"},
    "avx2": {
        "avx512f", "vaes", "sha512", "sm4", "avxvnni", "avxifma", "avxneconvert", "avxvnniint8", "avxvnniint16",
    },
}  # fmt: skip
"""For each feature, the features that make LLVM enable it again unless they are disabled as well."""


NEVER_USED = frozenset(
    (
        "adx", "cldemote", "clflushopt", "clwb", "clzero", "enqcmd", "fsgsbase", "hreset", "invpcid", "kl", "lwp",
        "movdir64b", "movdiri", "mwaitx", "pconfig", "pku", "prefetchi", "ptwrite", "rdpid", "rdpru", "rdrnd", "rdseed",
        "rtm", "serialize", "sgx", "shstk", "tsxldtrk", "uintr", "usermsr", "waitpkg", "wbnoinvd", "widekl", "xsavec",
        "xsaveopt", "xsaves",
    )
)  # fmt: skip
"""Features whose instructions LLVM selects for intrinsics alone that no kernel uses. Hypervisors hide some of them, so
without them machines of one family have the same features, and code that one has built serves all."""


@functools.cache
def cpu_features() -> frozenset[str]:
    """LLVM's names of the features of the host CPU, without `NEVER_USED`.

    ``JITKERNELS_CPU_FEATURES`` ("+avx2,-avx512f") overrides them. It can only remove features: code for a feature that
    the CPU lacks would crash. Raises UnknownNameError for a feature that LLVM does not know, or that generated code
    always requires.
    """
    known = _host()[1]
    present_features = frozenset(name for name, present in known.items() if present) - NEVER_USED
    requested = [part.strip() for part in settings.read("JITKERNELS_CPU_FEATURES").split(",") if part.strip()]
    for part in requested:
        if part[0] not in "+-" or part[1:] not in known or (part[0] == "-" and part[1:] in NEEDED):
            why = ", which all generated code requires" if part[1:] in NEEDED else ""
            expected = settings.SETTINGS["JITKERNELS_CPU_FEATURES"].expected
            raise UnknownNameError(f"JITKERNELS_CPU_FEATURES: expected {expected}, got {part!r}{why}")
    removed = {part[1:] for part in requested if part.startswith("-")}
    return present_features - _dependents(removed)


def _dependents(removed: set[str]) -> set[str]:
    """The removed features and those that require them (avx512* require avx512f, and so on)."""
    gone = set(removed)
    for feature in ("avx", "avx2"):
        if feature in gone:
            gone |= NEEDING[feature]
    if "avx512f" in gone:
        gone |= {name for name in _host()[1] if name.startswith("avx512")}
    return gone


@frozen_dataclass
class Target:
    """The CPU facts that kernels choose their code by.

    `name` and `features` are LLVM's; `vector_bytes` is the width of the widest vector registers, `registers` their
    number.
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
        """Lanes of a masked vector of `vector_bytes`, or of the widest registers; 0 without masked instructions."""
        width = min(vector_bytes, self.vector_bytes)
        return width // dtypes.named(dtype).size if "avx512vl" in self.features else 0

    def loads_masked(self, size: int) -> bool:
        """Whether a masked load of elements of `size` bytes is an instruction; else LLVM branches for each lane."""
        if "avx512vl" in self.features:
            return size >= 4 or "avx512bw" in self.features
        return size >= 4 and "avx2" in self.features

    def stores_masked(self, size: int) -> bool:
        """Whether a masked store of elements of `size` bytes is fast.

        AVX2's is microcode on AMD's processors: on Zen 3 it takes 3 ns, a store of each half, quarter and eighth that
        is there less than 1.
        """
        return self.loads_masked(size) and ("avx512vl" in self.features or not self.name.startswith("znver"))

    def remainder_lanes(self, dtype: str, vector_bytes: int = 64) -> int:
        """Lanes of the masked vector behind the last full one of a loop whose iterations are expensive; 0 for none.

        A masked store of microcode still takes less than a few iterations of an exponential function.
        """
        size = dtypes.named(dtype).size
        return min(vector_bytes, self.vector_bytes) // size if self.loads_masked(size) else 0

    @property
    def is_x86(self) -> bool:
        return self.architecture in ("x86_64", "amd64")

    @property
    def is_arm(self) -> bool:
        """64-bit Arm, which has NEON and float16 conversions even where LLVM reports no features."""
        return self.architecture in ("aarch64", "arm64")

    @property
    def fuses(self) -> bool:
        """Whether the CPU has a fused multiply-add, which rounds once."""
        return "fma" in self.features or not self.is_x86

    @property
    def stalls_on_store_miss(self) -> bool:
        """Whether a store that misses the L1 cache stalls the stores behind it unless its line was prefetched.

        Intel's processors commit stores in order and prefetch lines for one store stream only. On Emerald Rapids, rows
        of a Jacobi step, written two at a time, take 47 ns for 98 elements with arrays of 80 kB, and 23 ns with
        prefetched lines; on Zen 4 the L2 cache adds only a sixth to the time in L1.
        """
        return self.is_x86 and not self.name.startswith("znver")

    @property
    def accesses_halves(self) -> bool:
        """Whether vectors of 64 bytes are loaded and stored as two halves, so that loads that straddle are slow too.

        Zen 4 takes a cycle more for a load and about one and a quarter for a store of 64 bytes that straddles two
        lines, but a quarter where the halves do not. A copy in L1 takes 3.6 cycles per line into an array 16 bytes
        behind a line, 2.3 into one 32 behind, and 2.1 into lines; a product of two arrays 2.5, and 4.7 where both are
        16 bytes behind. Intel's processors serve two lines in a cycle.
        """
        return self.name == "znver4"

    @property
    def stalls_on_aliases(self) -> bool:
        """Whether a load waits long for a store before it to the same place in another page (4K aliasing).

        On Zen 4 a product of two arrays takes 28 cycles per line instead of 2.4 if its result lies a line behind them
        in their pages and lines are taken two at a time, 9 if it loads four lines before it stores any.
        """
        return self.name.startswith("znver")

    def does(self, word: str) -> bool:
        """Whether the operation that `native.source.instruction` calls `word` is one or few instructions on vectors."""
        return {"fma": self.fuses, "ldexp": "avx512dq" in self.features, "minimum": True, "maximum": True}[word]

    @property
    def widths(self) -> tuple[int, ...]:
        """Vector widths in bytes worth trying: a CPU may run slower with its widest vectors."""
        return (64, 32) if self.vector_bytes == 64 else (self.vector_bytes,)


def target_of(architecture: str, name: str, features: frozenset[str]) -> Target:
    """The target of a CPU with these features: AVX-512, AVX2, or 16-byte vectors (32 registers on NEON)."""
    if "avx512f" in features:
        return Target(architecture, name, features, vector_bytes=64, registers=32)
    if "avx2" in features:
        return Target(architecture, name, features, vector_bytes=32, registers=16)
    registers = 32 if architecture in ("aarch64", "arm64") else 16
    return Target(architecture, name, features, vector_bytes=16, registers=registers)


@functools.cache
def target() -> Target:
    """The target of generated code: this machine, without the features that ``JITKERNELS_CPU_FEATURES`` removes."""
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
def l1_cache_bytes() -> int:
    """Bytes of a core's L1 data cache; 32 KB where the system does not report it."""
    return _cache_bytes(0, 32 << 10)


@functools.cache
def l2_cache_bytes() -> int:
    """Bytes of a core's L2 cache; 1 MB where the system does not report it."""
    return _cache_bytes(2, 1 << 20)


@functools.cache
def l3_cache_bytes() -> int:
    """Bytes of the L3 cache that the cores share; 32 MB where the system does not report it."""
    return _cache_bytes(3, 32 << 20)


def _cache_bytes(index: int, default: int) -> int:
    try:
        size = Path(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size").read_text().strip()
        return int(size.removesuffix("K")) << 10 if size.endswith("K") else default
    except (OSError, ValueError):
        return default
