"""Products stored past the cache: a result too large to stay there is not worth reading its lines first.

LLVM's vectoriser refuses such stores, since they need whole aligned vectors and it cannot know where an array lies.
"""

from jitkernels import dtypes, machine
from jitkernels.native.source import IRFunction

LINE_BYTES = 64
"""A line of the cache, which is stored whole or else read first after all."""
TOGETHER = 2
"""Lines per step of the loop."""
STREAM_BYTES = 1 << 20
"""From this size of the result on, stores past the cache are worth measuring."""


def elements_per_step(dtype: str) -> int:
    """What `products_past_cache` takes whole multiples of."""
    return TOGETHER * LINE_BYTES // dtypes.named(dtype).size


def elements_to_line(dtype: str) -> IRFunction:
    """``(z)``: how many elements lie between z and the next line of the cache, 0 where z begins one."""
    size, symbol = dtypes.named(dtype).size, f"elements_to_line_{dtype}"
    text = f"""define i64 @{symbol}(ptr %z) alwaysinline nounwind {{
  %at = ptrtoint ptr %z to i64
  %back = sub i64 0, %at
  %bytes = and i64 %back, {LINE_BYTES - 1}
  %elements = lshr i64 %bytes, {size.bit_length() - 1}
  ret i64 %elements
}}
"""
    return IRFunction(symbol, "int64", (f"{dtype}*",), text)


def products_past_cache(dtype: str) -> IRFunction:
    """``(x, y, z, n)``: z = x * y for a z that begins a line and an n of whole steps; 0 when all can be seen.

    Every element is read before it is written, so z may be x or y.
    """
    element, symbol = dtypes.named(dtype), f"products_past_cache_{dtype}"
    width = min(machine.target().vector_bytes, LINE_BYTES)
    lanes = width // element.size
    vector, number, size = f"<{lanes} x {element.llvm}>", element.llvm, element.size
    vectors = range(TOGETHER * LINE_BYTES // width)

    def address(name: str, array: str, v: int) -> str:
        return f"  %{name}{v}.at = getelementptr {number}, ptr %{array}, i64 %i{v}\n"

    products = "\n".join(
        f"  %i{v} = add nuw nsw i64 %i, {v * lanes}\n"
        + address("x", "x", v)
        + address("y", "y", v)
        + f"  %x{v} = load {vector}, ptr %x{v}.at, align {size}\n"
        + f"  %y{v} = load {vector}, ptr %y{v}.at, align {size}\n"
        + f"  %z{v} = fmul {vector} %x{v}, %y{v}"
        for v in vectors
    )
    stores = "\n".join(
        address("z", "z", v) + f"  store {vector} %z{v}, ptr %z{v}.at, align {width}, !nontemporal !0"
        for v in vectors
    )
    text = f"""define i64 @{symbol}(ptr %x, ptr %y, ptr %z, i64 %n) alwaysinline nounwind {{
start:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %step, label %end
step:
  %i = phi i64 [ 0, %start ], [ %i.next, %step ]
{products}
{stores}
  %i.next = add nuw nsw i64 %i, {elements_per_step(dtype)}
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %step, label %end, !llvm.loop !1
end:
  fence seq_cst
  ret i64 0
}}
!0 = !{{i32 1}}
!1 = distinct !{{!1, !2}}
!2 = !{{!"llvm.loop.unroll.disable"}}
"""
    return IRFunction(symbol, "int64", (f"{dtype}*", f"{dtype}*", f"{dtype}*", "int64"), text)
