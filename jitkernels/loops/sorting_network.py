"""Bitonic sorting networks over integers in vector registers, as LLVM IR.

Elements compare with those whose place differs in one bit: between registers that is a minimum and a maximum, within
one a shuffle more, and a choice which lanes take which (Batcher, 1968).
"""

from jitkernels.native.source import IRFunction


def network(bits: int, count: int, lanes: int) -> IRFunction:
    """A function that sorts `count` integers of so many bits in memory, a power of two of vectors of `lanes`."""
    symbol, kind, vector = f"sorted_{count}_of_{bits}", f"i{bits}", f"<{lanes} x i{bits}>"
    lines = [f"define void @{symbol}(ptr %p) noinline nounwind {{"]
    rows = []
    for i in range(count // lanes):
        lines += [f"  %at{i} = getelementptr {kind}, ptr %p, i64 {i * lanes}"]
        lines += [f"  %x{i} = load {vector}, ptr %at{i}, align {bits // 8}"]
        rows.append(f"%x{i}")
    number = 0

    def new(text: str) -> str:
        nonlocal number
        number += 1
        lines.append(f"  %v{number} = {text}")
        return f"%v{number}"

    def extreme(which: str, one: str, other: str) -> str:
        return new(f"call {vector} @llvm.{which}.v{lanes}i{bits}({vector} {one}, {vector} {other})")

    size = 2
    while size <= count:
        distance = size // 2
        while distance:
            if distance >= lanes:
                for i in range(len(rows)):
                    other = i ^ distance // lanes
                    if other > i:
                        low, high = (
                            extreme("smin", rows[i], rows[other]),
                            extreme("smax", rows[i], rows[other]),
                        )
                        falls = bool(i * lanes & size)
                        rows[i], rows[other] = (high, low) if falls else (low, high)
            else:
                places = ", ".join(f"i32 {lane ^ distance}" for lane in range(lanes))
                for i, row in enumerate(rows):
                    turned = new(f"shufflevector {vector} {row}, {vector} poison, <{lanes} x i32> <{places}>")
                    low, high = extreme("smin", row, turned), extreme("smax", row, turned)
                    takes_low = [
                        bool(lane & distance) == bool(i * lanes + lane & size) for lane in range(lanes)
                    ]
                    mask = ", ".join(
                        f"i32 {lane + lanes * (not low_)}" for lane, low_ in enumerate(takes_low)
                    )
                    rows[i] = new(f"shufflevector {vector} {low}, {vector} {high}, <{lanes} x i32> <{mask}>")
            distance //= 2
        size *= 2
    lines += [f"  store {vector} {row}, ptr %at{i}, align {bits // 8}" for i, row in enumerate(rows)]
    return IRFunction(symbol, "void", (f"int{bits}*",), "\n".join([*lines, "  ret void", "}", ""]))
