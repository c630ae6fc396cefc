"""Row copies and transposes behind `transfer`, as LLVM IR: without casts, for rows that are dense.

Matrices with strided rows are copied row by row in one loop, and transposed matrices tile by tile, which takes a
fraction of assembling vectors from single elements.
"""

MIN_ROW, WIDE_ROW = 16, 64
"""Bytes of the vectors that copy rows: the least bytes of a row, and those of wide rows."""
SQUARE = 8
"""Rows and columns of a transposed tile, and the least of a matrix."""


def provided() -> dict[str, str]:
    """LLVM IR of the functions, by name."""
    return {"rows": _rows(), "transpose": _transpose()}


def _rows() -> str:
    """``rows(bytes, to, to_step, from, from_step, n)``: copy n runs of at least `MIN_ROW` bytes.

    The last vector of a run overlaps the one before it.
    """
    loops = ""
    for width in (MIN_ROW, WIDE_ROW):
        vector, at = f"<{width} x i8>", f".{width}"
        loops += f"""rows{at}:
  %last{at} = sub nsw i64 %bytes, {width}
  br label %row{at}
row{at}:
  %i{at} = phi i64 [ %n, %rows{at} ], [ %left{at}, %end{at} ]
  %p{at} = phi ptr [ %p, %rows{at} ], [ %p.next{at}, %end{at} ]
  %q{at} = phi ptr [ %q, %rows{at} ], [ %q.next{at}, %end{at} ]
  br label %test{at}
test{at}:
  %j{at} = phi i64 [ 0, %row{at} ], [ %j.next{at}, %step{at} ]
  %more{at} = icmp slt i64 %j{at}, %last{at}
  br i1 %more{at}, label %step{at}, label %end{at}
step{at}:
{_moved(vector, f"%p{at}", f"%q{at}", f"%j{at}", f"step{at}")}
  %j.next{at} = add nuw nsw i64 %j{at}, {width}
  br label %test{at}
end{at}:
{_moved(vector, f"%p{at}", f"%q{at}", f"%last{at}", f"end{at}")}
  %p.next{at} = getelementptr i8, ptr %p{at}, i64 %from.step
  %q.next{at} = getelementptr i8, ptr %q{at}, i64 %to.step
  %left{at} = add nsw i64 %i{at}, -1
  %again{at} = icmp sgt i64 %left{at}, 0
  br i1 %again{at}, label %row{at}, label %done
"""
    parameters = "i64 %bytes, i64 %to, i64 %to.step, i64 %from, i64 %from.step, i64 %n"
    return f"""define internal i64 @rows({parameters}) nounwind {{
start:
  %p = inttoptr i64 %from to ptr
  %q = inttoptr i64 %to to ptr
  %wide = icmp sge i64 %bytes, {WIDE_ROW}
  br i1 %wide, label %rows.{WIDE_ROW}, label %rows.{MIN_ROW}
{loops}done:
  ret i64 0
}}
"""


def _moved(vector: str, start: str, target: str, offset: str, name: str) -> str:
    return f"""  %get.{name} = getelementptr i8, ptr {start}, i64 {offset}
  %put.{name} = getelementptr i8, ptr {target}, i64 {offset}
  %x.{name} = load {vector}, ptr %get.{name}, align 1
  store {vector} %x.{name}, ptr %put.{name}, align 1"""


def _transpose() -> str:
    """``transpose(item, to, to_step, from, from_step, rows, columns)``: column j of `from` becomes row j of `to`.

    `rows` dense runs of `columns` elements of 4 or 8 bytes, at a stride in bytes; at least one tile of both. The last
    tiles overlap the ones before them.
    """
    loops = ""
    for size in (4, 8):
        at = f".{size}"
        loops += f"""outer{at}:
  %i{at} = phi i64 [ 0, %start ], [ %i.next{at}, %end{at} ]
  %i.whole{at} = icmp slt i64 %i{at}, %last.row
  %i.first{at} = select i1 %i.whole{at}, i64 %i{at}, i64 %last.row
  %from.row{at} = mul i64 %i.first{at}, %from.step
  %p.row{at} = getelementptr i8, ptr %p, i64 %from.row{at}
  %q.row{at} = getelementptr i{8 * size}, ptr %q, i64 %i.first{at}
  br label %inner{at}
inner{at}:
  %j{at} = phi i64 [ 0, %outer{at} ], [ %j.next{at}, %inner{at} ]
  %j.whole{at} = icmp slt i64 %j{at}, %last.column
  %j.first{at} = select i1 %j.whole{at}, i64 %j{at}, i64 %last.column
  %p0{at} = getelementptr i{8 * size}, ptr %p.row{at}, i64 %j.first{at}
  %to.row{at} = mul i64 %j.first{at}, %to.step
  %q0{at} = getelementptr i8, ptr %q.row{at}, i64 %to.row{at}
{_square(size, at)}  %j.next{at} = add nuw nsw i64 %j{at}, {SQUARE}
  %j.more{at} = icmp slt i64 %j.next{at}, %columns
  br i1 %j.more{at}, label %inner{at}, label %end{at}
end{at}:
  %i.next{at} = add nuw nsw i64 %i{at}, {SQUARE}
  %i.more{at} = icmp slt i64 %i.next{at}, %rows
  br i1 %i.more{at}, label %outer{at}, label %done
"""
    parameters = "i64 %item, i64 %to, i64 %to.step, i64 %from, i64 %from.step, i64 %rows, i64 %columns"
    return f"""define internal i64 @transpose({parameters}) nounwind {{
start:
  %p = inttoptr i64 %from to ptr
  %q = inttoptr i64 %to to ptr
  %last.row = sub nsw i64 %rows, {SQUARE}
  %last.column = sub nsw i64 %columns, {SQUARE}
  %single = icmp eq i64 %item, 4
  br i1 %single, label %outer.4, label %outer.8
{loops}done:
  ret i64 0
}}
"""


def _square(size: int, at: str) -> str:
    """Transpose a tile with rows at %p0, columns at %q0.

    For each bit of an index in turn, swap the elements whose row and column differ in it.
    """
    vector, lines = f"<{SQUARE} x i{8 * size}>", ""
    rows = [f"%r{i}{at}" for i in range(SQUARE)]
    for i in range(SQUARE):
        if i:
            lines += f"  %p{i}{at} = getelementptr i8, ptr %p{i - 1}{at}, i64 %from.step\n"
        lines += f"  {rows[i]} = load {vector}, ptr %p{i}{at}, align 1\n"
    for bit in (1, 2, 4):
        lower = [SQUARE + j - bit if j & bit else j for j in range(SQUARE)]
        upper = [SQUARE + j if j & bit else j + bit for j in range(SQUARE)]
        previous = list(rows)
        for i in range(SQUARE):
            pair_rows = [previous[i & ~bit], previous[i | bit]]
            rows[i] = f"%r{i}.{bit}{at}"
            mask = ", ".join(f"i32 {lane}" for lane in (upper if i & bit else lower))
            both = ", ".join(f"{vector} {row}" for row in pair_rows)
            lines += f"  {rows[i]} = shufflevector {both}, <{SQUARE} x i32> <{mask}>\n"
    for i in range(SQUARE):
        if i:
            lines += f"  %q{i}{at} = getelementptr i8, ptr %q{i - 1}{at}, i64 %to.step\n"
        lines += f"  store {vector} {rows[i]}, ptr %q{i}{at}, align 1\n"
    return lines
