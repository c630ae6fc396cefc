"""The name and features of the CPU, read without LLVM, are those of LLVM."""

import llvmlite.binding as llvm
import pytest

from jitkernels.core import cpu_target, cpuid
from jitkernels.core.cpuid import arm, x86

NEW_AVX = 1 << 27 | 1 << 28
"""Bits of leaf 1: the system keeps registers, and AVX is there."""


def test_detected_cpu_and_features_equal_llvms() -> None:
    found = cpuid.host()
    assert found is not None or cpu_target.target().architecture not in ("x86_64", "aarch64")
    if found is not None:
        assert found == (llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features()))


def leaves(vendor: bytes, family: int, model: int, **words: int) -> x86.Leaf:
    """A processor; `words` are its registers by ``<register><leaf>_<part>`` in hexadecimal."""
    base = min(family, 15)
    signature = base << 8 | (family - base) << 20 | (model & 15) << 4 | model >> 4 << 16
    table = {"a0_0": 0x1F, "a1_0": signature, "a80000000_0": 0x80000008, **words}
    for i, register in enumerate("bdc"):
        table[f"{register}0_0"] = int.from_bytes(vendor[4 * i : 4 * i + 4], "little")

    def leaf(number: int, part: int) -> x86.Registers:
        return x86.Registers(*(table.get(f"{register}{number:x}_{part}", 0) for register in "abcd"))

    return leaf


def test_each_feature_has_a_cpuid_bit() -> None:
    """With all bits set, every feature that LLVM names exists; with none, no feature does."""
    every = {f"{register}{number:x}_{part}": 0xFFFFFFFF for number, part in x86.BITS for register in "abcd"}
    every |= {"a7_0": 1, "b24_0": 2, "a0_0": 0x29}
    found = x86.features(leaves(b"GenuineIntel", 6, 0x8F, **every), lambda: 0xFFFFFFFF)
    assert all(found.values())
    assert not any(x86.features(leaves(b"GenuineIntel", 6, 0x8F), lambda: 0xFFFFFFFF).values())
    if cpuid.host() is not None and cpu_target.target().is_x86:
        assert set(found) == set(llvm.get_host_cpu_features())


@pytest.mark.parametrize(
    ("kept", "there", "absent"), [(0, "sse3", "avx"), (6, "avx2", "avx512f"), (0xE6, "avx512f", "amx-tile")]
)
def test_registers_that_the_system_does_not_save_are_not_used(kept: int, there: str, absent: str) -> None:
    every = {f"{register}{number:x}_{part}": 0xFFFFFFFF for number, part in x86.BITS for register in "abcd"}
    every |= {"a0_0": 0x1F}
    found = x86.features(leaves(b"GenuineIntel", 6, 0x8F, **every), lambda: kept)
    assert (found[there], found[absent]) == (True, False)


@pytest.mark.per_push
@pytest.mark.parametrize(
    ("vendor", "family", "model", "words", "name"),
    [
        (b"GenuineIntel", 6, 0x3F, {}, "haswell"),
        (b"GenuineIntel", 6, 0x55, {}, "skylake-avx512"),
        (b"GenuineIntel", 6, 0x55, {"c7_0": 1 << 11}, "cascadelake"),
        (b"GenuineIntel", 6, 0x55, {"c7_0": 1 << 11, "a7_1": 1 << 5, "a7_0": 1}, "cooperlake"),
        (b"GenuineIntel", 6, 0x8F, {}, "sapphirerapids"),
        (b"GenuineIntel", 6, 0xFE, {"b7_0": 1 << 5}, "haswell"),
        (b"GenuineIntel", 6, 0xFE, {"b7_0": 1 << 23 | 1 << 29}, "goldmont"),
        (b"GenuineIntel", 6, 0xFE, {}, "sandybridge"),
        (b"AuthenticAMD", 15, 0x41, {}, "k8"),
        (b"AuthenticAMD", 23, 0x01, {}, "znver1"),
        (b"AuthenticAMD", 23, 0x31, {}, "znver2"),
        (b"AuthenticAMD", 25, 0x01, {}, "znver3"),
        (b"AuthenticAMD", 25, 0x61, {}, "znver4"),
        (b"AuthenticAMD", 26, 0x02, {}, "znver5"),
        (b"AuthenticAMD", 99, 0x02, {}, "generic"),
        (b"HygonGenuine", 24, 0x01, {}, "generic"),
    ],
)
def test_names(vendor: bytes, family: int, model: int, words: dict[str, int], name: str) -> None:
    leaf = leaves(vendor, family, model, **{"c1_0": NEW_AVX, **words})
    assert x86.name(leaf, x86.features(leaf, lambda: 0xE6)) == name


LINUX = """processor\t: 0
Features\t: {features}
CPU implementer\t: {implementer}
CPU architecture: 8
CPU part\t: {part}

processor\t: 1
Features\t: fp
"""


@pytest.mark.parametrize(
    ("implementer", "part", "features", "name", "found"),
    [
        (
            "0x41",
            "0xd0c",
            "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimddp",
            "neoverse-n1",
            {"fp-armv8": True, "sha2": True, "lse": True, "neon": True, "crc": True, "aes": True, "sve": False,
             "rand": False},
        ),
        (
            "0xc0",
            "0xac3",
            "fp asimd crc32 rng",
            "ampere1",
            {"fp-armv8": True, "sha2": False, "neon": True, "crc": True, "aes": False, "sve": False, "rand": True},
        ),
        ("0x99", "0x001", "", "generic", {"sha2": False, "aes": False, "sve": False, "rand": False}),
    ],
)  # fmt: skip
def test_arm(implementer: str, part: str, features: str, name: str, found: dict[str, bool]) -> None:
    """Compare with LLVM 22 on such a /proc/cpuinfo."""
    text = LINUX.format(implementer=implementer, part=part, features=features)
    assert arm.described(text) == (name, found)
