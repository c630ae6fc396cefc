"""The gates of one block of units in one row, as LLVM IR of one vector: LLVM needs a second to vectorize their loop.

With it goes the last loop of a layer that LLVM would have to make something of, so that layers are straight code
(`RangeKernel.straight`), built in half the time.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.microkernels.gemm.microkernel import element_size, element_type
from jitkernels.microkernels.maths.sigmoid import sigmoid_float32, sigmoid_float64
from jitkernels.microkernels.maths.tanh import tanh_float32, tanh_float64

GATE_ARGUMENTS = (
    ("ptr", "sums"), ("ptr", "tile"), ("ptr", "bias"), ("ptr", "carried"), ("ptr", "state"), ("i64", "live"),
)  # fmt: skip
FUNCTIONS: dict[str, dict[str, Any]] = {
    "float32": {"sigmoid": sigmoid_float32, "tanh": tanh_float32},
    "float64": {"sigmoid": sigmoid_float64, "tanh": tanh_float64},
}


def lstm_gates(symbol: str, dtype: str, lanes: int) -> str:
    """IR of the new cell state and state of the first `live` units."""

    def compute(block: "_Block") -> None:
        i, f, g, o = (block.gate(at, "tanh" if at == 2 else "sigmoid") for at in range(4))
        cell = block.add(block.multiply(f, block.loaded("carried", 0)), block.multiply(i, g))
        block.store(cell, "carried")
        block.store(block.multiply(o, block.called("tanh", cell)), "state")

    return _function(symbol, dtype, lanes, compute)


def gru_gates(symbol: str, dtype: str, lanes: int) -> str:
    """IR of the new state of the first `live` units; the fourth bias is of what the reset gate scales."""

    def compute(block: "_Block") -> None:
        r, z = block.gate(0, "sigmoid"), block.gate(1, "sigmoid")
        scaled = block.multiply(r, block.add(block.loaded("tile", 2), block.loaded("bias", 3)))
        n = block.called("tanh", block.add(block.add(block.loaded("sums", 2), block.loaded("bias", 2)), scaled))
        h = block.add(n, block.multiply(z, block.subtract(block.loaded("carried", 0), n)))
        block.store(h, "carried")
        block.store(h, "state")

    return _function(symbol, dtype, lanes, compute)


class _Block:
    """Instructions on vectors; where not all lanes are live, loads and stores are masked."""

    def __init__(self, dtype: str, lanes: int, functions: dict[str, str], *, is_part: bool) -> None:
        self.lanes, self.lines, self._functions, self._is_part = lanes, list[str](), functions, is_part
        self._number, self._size = element_type(dtype), element_size(dtype)
        self.vector, self.kind = f"<{lanes} x {self._number}>", f"v{lanes}f{8 * self._size}"
        self.mask, self._prefix, self._count = f"<{lanes} x i1>", "part" if is_part else "whole", 0

    def gate(self, at: int, function: str) -> str:
        """A gate of the sums of inputs, of the state, and the bias."""
        total = self.add(self.loaded("sums", at), self.loaded("bias", at))
        return self.called(function, self.add(total, self.loaded("tile", at)))

    def loaded(self, name: str, at: int) -> str:
        """The vector number `at` behind a pointer."""
        place = self._put(f"getelementptr {self._number}, ptr %{name}, i64 {at * self.lanes}")
        if not self._is_part:
            return self._put(f"load {self.vector}, ptr {place}, align {self._size}")
        return self._put(
            f"call {self.vector} @llvm.masked.load.{self.kind}.p0(ptr {place}, i32 {self._size}, "
            f"{self.mask} %on, {self.vector} zeroinitializer)"
        )

    def store(self, value: str, name: str) -> None:
        self.lines.append(
            f"call void @llvm.masked.store.{self.kind}.p0({self.vector} {value}, ptr %{name}, i32 {self._size}, "
            f"{self.mask} %on)"
            if self._is_part
            else f"store {self.vector} {value}, ptr %{name}, align {self._size}"
        )

    def add(self, x: str, y: str) -> str:
        return self._put(f"fadd contract {self.vector} {x}, {y}")

    def subtract(self, x: str, y: str) -> str:
        return self._put(f"fsub contract {self.vector} {x}, {y}")

    def multiply(self, x: str, y: str) -> str:
        return self._put(f"fmul contract {self.vector} {x}, {y}")

    def called(self, function: str, x: str) -> str:
        return self._put(f"call {self.vector} {self._functions[function]}({self.vector} {x})")

    def _put(self, instruction: str) -> str:
        self._count += 1
        name = f"%{self._prefix}.{self._count}"
        self.lines.append(f"{name} = {instruction}")
        return name

    @property
    def text(self) -> str:
        return "\n".join(f"  {line}" for line in self.lines)


def _function(symbol: str, dtype: str, lanes: int, compute: Callable[[_Block], None]) -> str:
    """IR of a function that computes one vector."""
    from jitkernels.codegen.python.simd_library import Library

    library = Library()
    functions = {name: library.called(one, [dtype], lanes)[0] for name, one in FUNCTIONS[dtype].items()}
    whole, part = (_Block(dtype, lanes, functions, is_part=is_part) for is_part in (False, True))
    compute(whole)
    compute(part)
    vector, mask, kind = whole.vector, whole.mask, whole.kind
    return f"""declare {vector} @llvm.masked.load.{kind}.p0(ptr, i32, {mask}, {vector})
declare void @llvm.masked.store.{kind}.p0({vector}, ptr, i32, {mask})
declare {mask} @llvm.get.active.lane.mask.v{lanes}i1.i64(i64, i64)
{library.text}
define void @{symbol}({", ".join(f"{kind} %{name}" for kind, name in GATE_ARGUMENTS)}) alwaysinline nounwind {{
  %is.whole = icmp sge i64 %live, {lanes}
  br i1 %is.whole, label %whole, label %part
whole:
{whole.text}
  ret void
part:
  %on = call {mask} @llvm.get.active.lane.mask.v{lanes}i1.i64(i64 0, i64 %live)
{part.text}
  ret void
}}
"""
