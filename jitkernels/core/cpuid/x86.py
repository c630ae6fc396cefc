"""Names and features of x86-64 CPUs, from the instruction ``cpuid``.

The bit positions are in Intel's and AMD's manuals. LLVM decides which of them it reads, how it combines them and what
it calls models: an unknown model gets the name of a known one with the same features.
"""

import ctypes
import mmap
from collections.abc import Callable, Mapping
from typing import NamedTuple

CPUID = bytes.fromhex("53 89f8 89f1 4989d0 0fa2 418900 41895804 41894808 4189500c 5b c3")
"""``void (uint32 leaf, uint32 subleaf, uint32 *registers)``: stores eax, ebx, ecx and edx of cpuid."""
XGETBV = bytes.fromhex("31c9 0f01d0 c3")
"""``uint32 ()``: the register states that the system saves for each thread."""


class Registers(NamedTuple):
    """The result of cpuid."""

    a: int
    b: int
    c: int
    d: int


Leaf = Callable[[int, int], Registers]
EXTENDED = 0x80000000
BITS: dict[tuple[int, int], dict[str, dict[str, int]]] = {
    (1, 0): {
        "d": {"cx8": 8, "cmov": 15, "mmx": 23, "fxsr": 24, "sse": 25, "sse2": 26},
        "c": {
            "sse3": 0, "pclmul": 1, "ssse3": 9, "fma": 12, "cx16": 13, "sse4.1": 19, "sse4.2": 20, "crc32": 20,
            "movbe": 22, "popcnt": 23, "aes": 25, "xsave": 26, "avx": 28, "f16c": 29, "rdrnd": 30,
        },
    },
    (EXTENDED + 1, 0): {
        "c": {
            "sahf": 0, "lzcnt": 5, "sse4a": 6, "prfchw": 8, "xop": 11, "lwp": 15, "fma4": 16, "tbm": 21, "mwaitx": 29,
        },
        "d": {"64bit": 29},
    },
    (EXTENDED + 8, 0): {"b": {"clzero": 0, "rdpru": 4, "wbnoinvd": 9}},
    (7, 0): {
        "b": {
            "fsgsbase": 0, "sgx": 2, "bmi": 3, "avx2": 5, "bmi2": 8, "invpcid": 10, "rtm": 11, "avx512f": 16,
            "avx512dq": 17, "rdseed": 18, "adx": 19, "avx512ifma": 21, "clflushopt": 23, "clwb": 24, "avx512cd": 28,
            "sha": 29, "avx512bw": 30, "avx512vl": 31,
        },
        "c": {
            "avx512vbmi": 1, "pku": 4, "waitpkg": 5, "avx512vbmi2": 6, "shstk": 7, "gfni": 8, "vaes": 9,
            "vpclmulqdq": 10, "avx512vnni": 11, "avx512bitalg": 12, "avx512vpopcntdq": 14, "rdpid": 22, "kl": 23,
            "cldemote": 25, "movdiri": 27, "movdir64b": 28, "enqcmd": 29,
        },
        "d": {
            "uintr": 5, "avx512vp2intersect": 8, "serialize": 14, "tsxldtrk": 16, "pconfig": 18, "amx-bf16": 22,
            "avx512fp16": 23, "amx-tile": 24, "amx-int8": 25,
        },
    },
    (7, 1): {
        "a": {
            "sha512": 0, "sm3": 1, "sm4": 2, "raoint": 3, "avxvnni": 4, "avx512bf16": 5, "cmpccxadd": 7, "amx-fp16": 21,
            "hreset": 22, "avxifma": 23, "movrs": 31,
        },
        "d": {
            "avxvnniint8": 4, "avxneconvert": 5, "amx-complex": 8, "avxvnniint16": 10, "prefetchi": 14, "usermsr": 15,
            "egpr": 21, "push2pop2": 21, "ppx": 21, "ndd": 21, "ccmp": 21, "nf": 21, "cf": 21, "zu": 21,
        },
    },
    (0xD, 1): {"a": {"xsaveopt": 0, "xsavec": 1, "xsaves": 3}},
    (0x14, 0): {"b": {"ptwrite": 4}},
    (0x19, 0): {"b": {"widekl": 2}},
    (0x1E, 1): {"a": {"amx-fp8": 4, "amx-tf32": 6, "amx-avx512": 7, "amx-movrs": 8}},
}  # fmt: skip
"""The bit of each feature, by LLVM's name: leaf and subleaf, register, bit number."""
AVX10, AVX10_VERSIONS = 19, {"avx10.1": 1, "avx10.2": 2}
"""The bit of (7, 1) that says whether leaf 0x24 has a version."""

OF_AVX = frozenset({
    "avx", "fma", "xsave", "f16c", "xop", "fma4", "avx2", "vaes", "vpclmulqdq", "avxvnni", "avxifma", "avxvnniint8",
    "avxneconvert", "avxvnniint16", "xsaveopt", "xsavec", "xsaves",
})  # fmt: skip
"""Features that need the AVX registers, whose state the system may not save."""
SAVES_AVX, SAVES_AVX512, SAVES_AMX = 0x6, 0xE0, 0x60000
OSXSAVE, IS_AVX = 1 << 27, 1 << 28


def features(leaf: Leaf, saved_state: Callable[[], int]) -> dict[str, bool]:
    """Whether the CPU has each feature of `BITS`, from cpuid and xgetbv."""
    last = {0: leaf(0, 0).a, EXTENDED: leaf(EXTENDED, 0).a}
    first = leaf(1, 0).c
    state = saved_state() if first & OSXSAVE else 0
    has_avx = bool(first & IS_AVX) and state & SAVES_AVX == SAVES_AVX
    has_avx512 = has_avx and state & SAVES_AVX512 == SAVES_AVX512
    has_amx = state & SAVES_AMX == SAVES_AMX
    present: dict[str, bool] = {}
    for (number, part), registers in BITS.items():
        exists = last[number & EXTENDED] >= number and (number != 7 or leaf(7, 0).a >= part)
        values = leaf(number, part) if exists else Registers(0, 0, 0, 0)
        for register, bits in registers.items():
            word: int = getattr(values, register)
            for name, bit in bits.items():
                present[name] = bool(word >> bit & 1)
        if (number, part) == (7, 1):
            version = leaf(0x24, 0).b & 0xFF if values.d >> AVX10 & 1 and last[0] >= 0x24 else 0
            present |= {name: version >= least for name, least in AVX10_VERSIONS.items()}
    for name in present:
        if name in OF_AVX:
            present[name] &= has_avx
        elif name.startswith("avx512"):
            present[name] &= has_avx512
        elif name.startswith("amx-"):
            present[name] &= has_amx
    return present


INTEL = {
    "core2": (0x0F, 0x16), "penryn": (0x17, 0x1D), "nehalem": (0x1A, 0x1E, 0x1F, 0x2E), "westmere": (0x25, 0x2C, 0x2F),
    "sandybridge": (0x2A, 0x2D), "ivybridge": (0x3A, 0x3E), "haswell": (0x3C, 0x3F, 0x45, 0x46),
    "broadwell": (0x3D, 0x47, 0x4F, 0x56), "skylake": (0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6), "rocketlake": (0xA7,),
    "cannonlake": (0x66,), "icelake-client": (0x7D, 0x7E), "tigerlake": (0x8C, 0x8D), "alderlake": (0x97, 0x9A),
    "gracemont": (0xBE,), "raptorlake": (0xB7, 0xBA, 0xBF), "meteorlake": (0xAA, 0xAC), "arrowlake": (0xC5, 0xB5),
    "arrowlake-s": (0xC6,), "lunarlake": (0xBD,), "pantherlake": (0xCC,), "graniterapids": (0xAD,),
    "graniterapids-d": (0xAE,), "icelake-server": (0x6A, 0x6C), "emeraldrapids": (0xCF,), "sapphirerapids": (0x8F,),
    "bonnell": (0x1C, 0x26, 0x27, 0x35, 0x36), "silvermont": (0x37, 0x4A, 0x4D, 0x5A, 0x5D, 0x4C),
    "goldmont": (0x5C, 0x5F), "goldmont-plus": (0x7A,), "tremont": (0x86, 0x8A, 0x96, 0x9C), "sierraforest": (0xAF,),
    "grandridge": (0xB6,), "clearwaterforest": (0xDD,), "knl": (0x57,), "knm": (0x85,),
}  # fmt: skip
"""Models of Intel's family 6."""
LIKE_INTEL = (
    ("avx512vp2intersect", "tigerlake"), ("avx512vbmi2", "icelake-client"), ("avx512vbmi", "cannonlake"),
    ("avx512bf16", "cooperlake"), ("avx512vnni", "cascadelake"), ("avx512vl", "skylake-avx512"),
    ("clflushopt", "skylake"), ("adx", "broadwell"), ("avx2", "haswell"), ("avx", "sandybridge"),
    ("sse4.2", "nehalem"), ("sse4.1", "penryn"),
)  # fmt: skip
"""Features of unknown models, and the name of the model they imply; the first match wins."""
SMALL = {"skylake": ("sha", "goldmont"), "nehalem": ("movbe", "silvermont")}
"""Atom-class models, distinguished from large ones by a feature."""
AMD = {
    16: (("amdfam10", 0x00, 0xFF),),
    18: (("amdfam10", 0x00, 0xFF),),
    20: (("btver1", 0x00, 0xFF),),
    21: (
        ("bdver4", 0x60, 0x7F), ("bdver3", 0x30, 0x3F), ("bdver2", 0x10, 0x1F), ("bdver2", 0x02, 0x02),
        ("bdver1", 0x00, 0xFF),
    ),
    22: (("btver2", 0x00, 0xFF),),
    23: (
        ("znver2", 0x30, 0x3F), ("znver2", 0x47, 0x47), ("znver2", 0x60, 0x7F), ("znver2", 0x84, 0x87),
        ("znver2", 0x90, 0xAF), ("znver1", 0x00, 0xFF),
    ),
    25: (("znver4", 0x10, 0x1F), ("znver4", 0x60, 0x7F), ("znver4", 0xA0, 0xAF), ("znver3", 0x00, 0xFF)),
    26: (("znver5", 0x00, 0xFF),),
}  # fmt: skip
"""Names of AMD's families by ranges of models; the first match wins."""


def name(leaf: Leaf, has: Mapping[str, bool]) -> str:
    """LLVM's name of a CPU with these features."""
    _, b, c, d = leaf(0, 0)
    vendor = b"".join(word.to_bytes(4, "little") for word in (b, d, c))
    a = leaf(1, 0).a
    family, model = a >> 8 & 15, a >> 4 & 15
    if family in (6, 15):
        model += (a >> 16 & 15) << 4
    if family == 15:
        family += a >> 20 & 0xFF
    if vendor == b"GenuineIntel":
        return _intel(family, model, has)
    if vendor == b"AuthenticAMD":
        if family == 15:
            return "k8-sse3" if has["sse3"] else "k8"
        return next((n for n, low, high in AMD.get(family, ()) if low <= model <= high), "generic")
    return "generic"


def _intel(family: int, model: int, has: Mapping[str, bool]) -> str:
    if (family, model) == (0x13, 1):
        return "diamondrapids"
    if family == 15:
        return "nocona"
    if family != 6:
        return "generic"
    if model == 0x55:
        return "cooperlake" if has["avx512bf16"] else "cascadelake" if has["avx512vnni"] else "skylake-avx512"
    known = next((model_name for model_name, models in INTEL.items() if model in models), None)
    if known is None:
        known = next((model_name for feature, model_name in LIKE_INTEL if has[feature]), "core2")
        feature, small = SMALL.get(known, ("", ""))
        known = small if feature and has[feature] else known
    return known


def host() -> tuple[str, dict[str, bool]]:
    """The name and the features of this CPU. Raises OSError where executable memory is denied."""
    memory = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    memory.write(CPUID.ljust(64, b"\xcc") + XGETBV)
    view = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(view)
    system = ctypes.CDLL(None, use_errno=True)
    if system.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "no memory for code")
    words = (ctypes.c_uint32 * 4)()
    cpuid = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(address)
    leaves: dict[tuple[int, int], Registers] = {}

    def leaf(number: int, part: int) -> Registers:
        if (number, part) not in leaves:  # under a hypervisor each call takes microseconds
            cpuid(number, part, ctypes.addressof(words))
            leaves[number, part] = Registers(*words)
        return leaves[number, part]

    has = features(leaf, ctypes.CFUNCTYPE(ctypes.c_uint32)(address + 64))
    result = name(leaf, has), has
    del view
    memory.close()
    return result
