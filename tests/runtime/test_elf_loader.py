"""The ELF loader: the same code in memory as by LLVM's loader, for every kind of relocation."""

import ctypes
import platform
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from processes import python

from jitkernels.codegen.ir_source import IRSource
from jitkernels.codegen.source_protocol import External
from jitkernels.core.c_symbols import symbol_address
from jitkernels.errors import BuildError
from jitkernels.runtime.loading import elf_loader, elf_relocations, loader

COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_loader = pytest.mark.skipif(
    platform.machine() not in elf_loader.HERE or not COMPILER, reason="needs a C compiler and ELF objects"
)
CODE = """
#include <stdint.h>
#include <string.h>
extern int64_t outside(int64_t);
extern int64_t data_outside;
static int64_t counter = 3;
static int64_t zeroed[40];
int64_t shown = 11;
static const double table[] = {0.5, 1.5, 2.5, 3.5};
static const char *const names[] = {"one", "three", "fifteen"};
static int64_t twice(int64_t x) { return 2 * x; }
static int64_t thrice(int64_t x) { return 3 * x; }
static int64_t (*const functions[])(int64_t) = {twice, thrice};
__attribute__((noinline)) static int64_t apart(int64_t x) { return x * 7 + counter; }
int64_t entry(int64_t x) {
  char text[64];
  counter += x;
  zeroed[x & 31] += counter;
  shown += 1;
  memset(text, (int)x, sizeof text);
  memcpy(text + 8, &counter, 8);
  int64_t sum = apart(x) + outside(x) + functions[x & 1](x) + zeroed[x & 31] + shown;
  switch (x & 7) {
    case 0: sum += 1; break;
    case 1: sum ^= 77; break;
    case 2: sum -= 9; break;
    case 3: sum *= 3; break;
    case 4: sum += data_outside; break;
    default: sum += strlen(names[x % 3]);
  }
  for (int i = 0; i < 64; i++) sum = sum * 31 + text[i];
  return sum + (int64_t)(100 * table[x & 3]);
}
"""
FLAGS = [
    [level, *model]
    for level in ("-O0", "-O3")
    for model in (
        (["-fPIC"], ["-fPIC", "-fvisibility=hidden"], ["-fPIC", "-fno-plt"], ["-mcmodel=large", "-fno-pic"])
        if platform.machine() == "x86_64"
        else (["-fPIC"], ["-fPIC", "-fvisibility=hidden"], ["-mcmodel=large", "-fno-pic"], ["-mcmodel=tiny"])
    )
]


outside = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: 1000 - x)


DATA = ctypes.c_int64(4321)
EXTERNALS = {"outside": ctypes.cast(outside, ctypes.c_void_p).value or 0, "data_outside": ctypes.addressof(DATA)}


def address(name: str) -> int:
    return EXTERNALS.get(name) or symbol_address(name)


def compiled(folder: Path, flags: list[str], code: str = CODE) -> bytes:
    assert COMPILER is not None
    (folder / "one.c").write_text(code)
    command = [COMPILER, "-c", *flags, "-fno-stack-protector", "one.c", "-o", "one.o"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (folder / "one.o").read_bytes()


def results(entry: int) -> list[int]:
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(entry)
    return [call(x) for x in range(40)]


@needs_loader
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_code_behaves_as_under_llvms_loader(flags: list[str], tmp_path: Path) -> None:
    """Load all relocations that a C compiler emits, in each code model."""
    content = compiled(tmp_path, flags)
    ours = elf_loader.load_object(content, "entry", address)
    assert ours is not None
    library = tmp_path / "one.so"
    with_outside = f"int64_t (*outside_at)(int64_t); int64_t *data_at;\n{CODE}".replace(
        "extern int64_t outside(int64_t);", "#define outside outside_at"
    ).replace("extern int64_t data_outside;", "#define data_outside (*data_at)")
    with_outside = "#include <stdint.h>\n" + with_outside
    (tmp_path / "two.c").write_text(with_outside)
    assert COMPILER is not None
    subprocess.run([COMPILER, "-O1", "-fPIC", "-shared", "two.c", "-o", library], cwd=tmp_path, check=True)
    truth = ctypes.CDLL(str(library))
    ctypes.c_void_p.in_dll(truth, "outside_at").value = EXTERNALS["outside"]
    ctypes.c_void_p.in_dll(truth, "data_at").value = EXTERNALS["data_outside"]
    expected = results(ctypes.cast(truth.entry, ctypes.c_void_p).value or 0)
    assert results(ours.address) == expected
    assert ctypes.c_int64.from_address(ours.symbols["shown"]).value == 51


@needs_loader
def test_code_is_not_written_and_data_not_executed(tmp_path: Path) -> None:
    ours = elf_loader.load_object(compiled(tmp_path, ["-O1", "-fPIC"]), "entry", address)
    assert ours is not None
    rights: dict[str, str] = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, right, *_ = line.split()
        begin, end = (int(one, 16) for one in where.split("-"))
        rights |= {n: right for n, at in [("code", ours.address), ("data", ours.symbols["shown"])] if begin <= at < end}
    assert (rights["code"][:3], rights["data"][:3]) == ("r-x", "rw-")


@pytest.mark.skipif(platform.machine() not in elf_loader.HERE, reason="LLVM loads everything here")
def test_own_objects_are_placed_as_by_llvms_loader() -> None:
    """Launchers, dispatcher, kernels, threads and expressions."""
    objects, kinds = map(int, python("import both_loaders; print(*both_loaders.main())").split())
    assert objects > 10
    assert kinds > 8


LOW_BITS = (277, 278, 284, 285, 286, 299, 312)


def test_out_of_range_relocations_are_rejected() -> None:
    for machine, kinds in elf_relocations.KINDS.items():
        for number, kind in kinds.items():
            code = bytearray(16)
            if kind.near and number not in LOW_BITS:
                with pytest.raises(LookupError, match="is too far"):
                    kind.write(code, 4, 1 << 50, 0x1000)
                assert code == bytearray(16), (machine, number)


def field_of(number: int, value: int, place: int, before: int = 0) -> int:
    code = bytearray(struct.pack("<I", before))
    elf_relocations.KINDS[elf_relocations.AARCH64][number].write(code, 0, value, place)
    return int(struct.unpack("<I", code)[0])


def test_instructions_of_aarch64() -> None:
    """Encode relocated instructions as an assembler does."""
    assert field_of(275, 0x12345678, 0x12340000, 0x90000000) == 0xB0000020  # adrp x0, +5 pages
    assert field_of(275, 0x1000, 0x5000, 0x90000000) == 0x90FFFFE0  # adrp x0, -4 pages
    assert field_of(277, 0x12345678, 0, 0x91000000) == 0x9119E000  # add x0, x0, #0x678
    assert field_of(286, 0x12345678, 0, 0xF9400000) == 0xF9433C00  # ldr x0, [x0, #0x678]
    assert field_of(299, 0x12345670, 0, 0x3DC00000) == 0x3DC19C00  # ldr q0, [x0, #0x670]
    assert field_of(283, 0x1000, 0x2000, 0x94000000) == 0x97FFFC00  # bl -0x1000
    assert field_of(280, 0x2010, 0x2000, 0x54000000) == 0x54000080  # b.eq +0x10
    with pytest.raises(LookupError, match="is not aligned"):
        field_of(299, 0x12345678, 0, 0x3DC00000)


@needs_loader
def test_truncated_objects_are_rejected(tmp_path: Path) -> None:
    content = compiled(tmp_path, ["-O1", "-fPIC"])
    assert elf_loader.load_object(b"no object", "entry", address) is None
    for size in range(64, len(content), 97):
        try:
            elf_loader.load_object(content[:size], "entry", address)
        except LookupError:
            continue
    with pytest.raises(LookupError, match="does not define other"):
        elf_loader.load_object(content, "other", address)
    with pytest.raises((AttributeError, LookupError)):
        elf_loader.load_object(compiled(tmp_path, ["-fPIC"], CODE.replace("outside", "nowhere")), "entry", address)
    own = compiled(tmp_path, ["-fPIC"], "__thread int x; int entry(void) { return x++; }")
    with pytest.raises(LookupError, match=r"thread-local variables|not supported"):
        elf_loader.load_object(own, "entry", address)


def test_missing_externals_are_build_errors() -> None:
    missing = External("jk_test_nowhere", "int64", (), lambda: symbol_address("jk_test_nowhere"))
    call = "define i64 @entry() {\n  %x = call i64 @jk_test_nowhere()\n  ret i64 %x\n}\n"
    text = f"declare i64 @jk_test_nowhere()\n{call}"
    with pytest.raises(BuildError, match="cannot load nowhere"):
        loader.address_of(IRSource("nowhere", text, (missing,)))
