"""Arrays of more than 2 ** 31 elements: every index is computed in 64 bits, in every implementation of every row.

The arrays are memory that nobody has touched. Of each kernel its range function computes what lies at the end of them,
so that a few pages come to be there; the truth is the reference of the same slices. Implementations in C have no such
function: their text is read. What is computed of whole arrays is computed of a sparse file.
"""

import ctypes
import math
import mmap
import re
from pathlib import Path
from typing import Any

import cases
import numpy as np
import pytest
from parts import arguments_of, has_independent_slices, part, symbol_in

import jitkernels as jk
from jitkernels import more
from jitkernels.attrs.schema import error_bounds
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import Variant, implementations
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import symbol_of
from jitkernels.core import bfloat16
from jitkernels.errors import AttrError
from jitkernels.runtime.loading import loader
from jitkernels.tools import testing

MAX_INT32 = 1 << 31
OFFSET, STRIDE = "offset", "stride"
"""Fields by which rows declare what results depend on beside the values of a part: its position and remainder."""
MAX_STEPS = 1 << 18
"""Of a part that is computed."""
FEW = {
    "seq_pool.c": {"v", "count", "whole"},
    "primitive_cache.c": {"count", "given", "i", "moves"},
    "primitives.c": {"different", "found", "kind", "large"},
    "recurrence.c": {"count", "given", "i"},
}
"""Narrow integers of C code that count the registers of a step, or the slots of a table."""
Row = Any


def untouched(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> AnyArray:
    """An array of zeros that takes no memory before it is written."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    found: AnyArray = np.frombuffer(mmap.mmap(-1, max(size, 1), flags=flags), dtype, size // dtype.itemsize)
    return found.reshape(shape)


def enlarged(attr: KernelAttr, name: str) -> KernelAttr | None:
    """The attr with an extent so long that some array has more elements than an int32 counts."""
    own = getattr(attr, name)
    longest = max((a for a in arguments_of(attr) if symbol_in(a, name)), key=lambda a: size_of(a, attr), default=None)
    if longest is None or not own:
        return None
    rest = size_of(longest, attr) // own
    try:
        return type(attr)(**attr.fields() | {name: MAX_INT32 // rest + 1003})
    except AttrError:
        return None


def size_of(argument: Argument, attr: KernelAttr) -> int:
    array = argument.array(vars(attr))  # derived extents included
    return int(np.prod(array.shape, dtype=np.int64)) if array else 0


def nests(attr: KernelAttr) -> list[tuple[str, Any, Variant]]:
    """The usable implementations that are range kernels: some variants, none of threads, whose ranges are the same."""
    found = []
    for name, one in implementations(type(attr)).items():
        if one.is_reference or one.reason_against(attr) is not None:
            continue
        serial = [variant for variant in one.variants(attr) if not variant.get("parallel")]
        for variant in {str(variant): variant for variant in (*serial[:2], *serial[-1:])}.values():
            found += [(f"{name}{variant}", one, variant)] * isinstance(one.source(attr, variant), RangeKernel)
    return found


def extents_of(attr: KernelAttr, nest: RangeKernel) -> list[str]:
    """The names of the extents that the range of a nest goes over."""
    signature = attr.signature()
    integers = [name for name, _ in signature.integers]
    places = (nest.extent,) if isinstance(nest.extent, int) else nest.extent
    places = tuple(place - len(signature.arrays) for place in places)
    return [integers[place] for place in places] if 0 <= min(places) <= max(places) < len(integers) else []


def check_end(attr: KernelAttr, label: str, one: Any, variant: Variant) -> bool:
    """The last part of a nest's range, in arrays beyond int32; whether there was one."""
    name, *inner = extents_of(attr, one.source(attr, variant)) or [""]
    big = enlarged(attr, name) if name else None
    if big is None or one.reason_against(big) is not None:
        return False
    counted = {name: value for name, value in attr.fields().items() if name in (OFFSET, STRIDE) and type(value) is int}
    if not has_independent_slices(attr, name) and not counted:
        return True  # each part needs those before it
    nest = one.source(big, variant)  # whose blocks may be larger
    if nest.exact and variant not in one.variants(big):
        return False  # it is not for sizes like these
    each = nest.splits * math.prod(getattr(attr, other) for other in inner)
    step = math.lcm(nest.block, each, each * counted.get(STRIDE, 1)) // each
    extent = getattr(big, name)
    begin = (extent - 5) // step * step
    if (extent - begin) * each > MAX_STEPS:
        return True  # it is one part, or few: too much to compute
    placed = {OFFSET: counted[OFFSET] + begin} if OFFSET in counted else {}
    small = type(attr)(**attr.fields() | {name: extent - begin} | placed)
    arguments = arguments_of(attr)
    given = small.signature().sample(7)
    arrays = [untouched(a.shape, a.numpy) for a in big.signature().arrays]
    for array, argument, values in zip(arrays, arguments, given, strict=True):
        view = part(array, argument, big, name, begin, extent)
        view[...] = values.reshape(view.shape)
    expected = [value.copy() for value in given]
    jk.get_refer(small)(*expected)
    symbol = f"{symbol_of(nest)}_range"
    words = [a.ctypes.data for a in arrays] + [int(v) for _, v in big.signature().integers]
    floats = [ctypes.c_double(value) for _, value in big.signature().floats]
    words += [ctypes.addressof(value) for value in floats] + [begin * each, extent * each]
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(words))(
        loader.functions_of(nest, (symbol,))[symbol]
    )
    assert function(*words) == 0, label
    results = [
        np.ascontiguousarray(part(array, argument, big, name, begin, extent)).reshape(value.shape)
        for array, argument, value in zip(arrays, arguments, given, strict=True)
    ]
    outputs = [place for place, argument in enumerate(arguments) if argument.role == "out"]
    parameters = small.signature().arrays
    true = [parameters[place].numbers(expected[place]) for place in outputs]
    allowed = error_bounds.allowed(small, given, true, slack=2)
    for place, right, within in zip(outputs, true, allowed, strict=True):
        got = parameters[place].numbers(results[place])
        assert not error_bounds.beyond(got, right, within).any(), f"{label} of {big} at {begin} of {name}"
    return True


@pytest.mark.skipif(np.dtype(np.intp).itemsize < 8, reason="addresses of 64 bits")
@pytest.mark.parametrize("row", cases.every_row())
def test_indices_beyond_int32(row: Row) -> None:
    first, *others = testing.middles(row)
    for attr in (first, *(other for other in others if other.fields()["dtype"] == bfloat16.BFLOAT16_NAME)):
        checked = [check_end(attr, label, one, variant) for label, one, variant in nests(attr)]
        assert any(checked), "no implementation was looked at"


def test_c_code_indexes_with_64_bits() -> None:
    """No C code subscripts, or offsets a pointer, with an integer of fewer than 64 bits."""
    declared = re.compile(r"\b(?:unsigned|int|int32_t|uint32_t|long)\b +([a-z_]+) *[=,;)]")
    for path in sorted(Path(next(iter(more.__path__))).rglob("*.[ch]")):
        text = re.sub(r"//[^\n]*|/\*.*?\*/|typedef[^\n]*", "", path.read_text(), flags=re.DOTALL)
        for name in set(declared.findall(text)) - FEW.get(path.name, set()):
            used = re.search(rf"\[[^]]*\b{name}\b|[+*] *{name}\b|\b{name} *[+*] *[a-z]", text)
            assert used is None, f"{path.name}: {name} in {used and used[0]!r}"


def test_rows_of_a_sparse_file(tmp_path: Path) -> None:
    """Everyday calls read rows beyond int32 of a sparse file, and write to them in place."""
    width = 64
    height = MAX_INT32 // width + 40
    table = np.memmap(tmp_path / "table", np.float32, "w+", shape=(height, width))
    last = np.arange(height - 20, height)
    steps = np.random.default_rng(0).random((20, width), np.float32)
    table[last] = 1.0
    assert jk.sgd(np.asarray(table), steps, last, lr=0.5, out=np.asarray(table)) is not None
    np.testing.assert_allclose(table[last], 1 - 0.5 * steps, rtol=1e-6)
    assert not table[last[0] - 1].any()
    pooled = jk.emb_seq_pool(np.asarray(table), last[:, np.newaxis])
    np.testing.assert_allclose(pooled, (1 - 0.5 * steps).sum(axis=0), rtol=1e-5)
    flat = np.asarray(table).reshape(-1)
    np.testing.assert_allclose(jk.vmul(flat[-100:], flat[-100:]), flat[-100:] ** 2, rtol=1e-6)
    strided = flat[:: 1 << 26]
    assert jk.vmul(strided, 2.0).size == strided.size
