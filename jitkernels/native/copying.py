"""Runs of elements from one dtype and stride to another, as LLVM IR: what brings any operand into a kernel's form.

``copy_run(pair, to, to_step, from, from_step, count)`` reads and writes through byte strides, so that strided,
reversed, broadcast (stride 0) and converted operands are one case. A pair is ``4 * source + target``, see `pair`.
"""

import re

from jitkernels import machine

BOOL, INT64, FLOAT32, FLOAT64, FLOAT16 = 0, 7, 11, 12, 23
"""NumPy's type numbers."""
TARGETS = (FLOAT32, FLOAT64, INT64, FLOAT16)
DENSE = (
    *((source, target) for source in range(8) for target in (FLOAT32, FLOAT64)),
    *((source, target) for source in (FLOAT32, FLOAT64) for target in (FLOAT32, FLOAT64)),
    (INT64, INT64), (FLOAT16, FLOAT32), (FLOAT32, FLOAT16),
)  # fmt: skip
"""Pairs whose runs without gaps are worth whole vectors."""
LANES = 16
_INTEGERS = {
    0: ("i8", "uitofp"), 1: ("i8", "sitofp"), 2: ("i8", "uitofp"), 3: ("i16", "sitofp"), 4: ("i16", "uitofp"),
    5: ("i32", "sitofp"), 6: ("i32", "uitofp"), 7: ("i64", "sitofp"), 8: ("i64", "uitofp"), 9: ("i64", "sitofp"),
    10: ("i64", "uitofp"),
}  # fmt: skip
_FLOATS = {FLOAT32: ("float", 4), FLOAT64: ("double", 8), FLOAT16: ("half", 2)}


def has_float16() -> bool:
    """Whether the processor converts between float16 and float32 itself; LLVM calls a library otherwise."""
    target = machine.target()
    return target.is_arm or "f16c" in target.features


def pair(source: int, target: int) -> int:
    """The number of a pair of NumPy's type numbers."""
    return 4 * source + TARGETS.index(target)


def ir() -> str:
    """The function ``copy_run`` and its loops."""
    loops, cases = [], []
    for source in (*_INTEGERS, *_FLOATS):
        for target in TARGETS:
            steps = _conversion(source, target)
            if steps is None:
                continue
            name = f"run_{source}_{target}"
            cases.append(f"    i64 {pair(source, target)}, label %{name}")
            loops.append(_loop(name, source, target, steps))
    listed = "\n".join(cases)
    body = "".join(loops)
    parameters = "i64 %pair, i64 %to, i64 %to.step, i64 %from, i64 %from.step, i64 %n"
    return f"""define internal i64 @copy_run({parameters}) nounwind {{
start:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %which, label %done
which:
  switch i64 %pair, label %done [
{listed}
  ]
{body}done:
  ret i64 0
}}
{_fills()}"""


def _fills() -> str:
    """``fill(to, item, n)``: the element at `to` again and again, n times in all."""
    text = "define internal i64 @fill(i64 %to, i64 %item, i64 %n) nounwind {\nstart:\n"
    text += "  %p = inttoptr i64 %to to ptr\n  %whole = and i64 %n, -16\n"
    text += "  %single = icmp eq i64 %item, 4\n  br i1 %single, label %fill4, label %fill8\n"
    for item, kind in ((4, "i32"), (8, "i64")):
        text += f"""fill{item}:
  %x{item} = load {kind}, ptr %p
  %one{item} = insertelement <16 x {kind}> poison, {kind} %x{item}, i32 0
  %all{item} = shufflevector <16 x {kind}> %one{item}, <16 x {kind}> poison, <16 x i32> zeroinitializer
  br label %many{item}
many{item}:
  %j{item} = phi i64 [ 0, %fill{item} ], [ %further{item}, %vector{item} ]
  %wide{item} = icmp slt i64 %j{item}, %whole
  br i1 %wide{item}, label %vector{item}, label %few{item}
vector{item}:
  %put{item} = getelementptr {kind}, ptr %p, i64 %j{item}
  store <16 x {kind}> %all{item}, ptr %put{item}, align {item}
  %further{item} = add i64 %j{item}, 16
  br label %many{item}
few{item}:
  %i{item} = phi i64 [ %whole, %many{item} ], [ %next{item}, %element{item} ]
  %more{item} = icmp slt i64 %i{item}, %n
  br i1 %more{item}, label %element{item}, label %done
element{item}:
  %at{item} = getelementptr {kind}, ptr %p, i64 %i{item}
  store {kind} %x{item}, ptr %at{item}
  %next{item} = add i64 %i{item}, 1
  br label %few{item}
"""
    return text + "done:\n  ret i64 0\n}\n\n"


def _type(kind: int) -> str:
    return _FLOATS[kind][0] if kind in _FLOATS else _INTEGERS[kind][0]


def _conversion(source: int, target: int) -> list[str] | None:
    """Instructions from %x of the source's type to %y of the target's; None for pairs that do not exist."""
    one, other = _type(source), _type(target)
    if FLOAT16 in (source, target) and not has_float16():
        return None
    if target == INT64:
        if source not in _INTEGERS or source == BOOL:
            return None
        signed = "sext" if _INTEGERS[source][1] == "sitofp" else "zext"
        return [f"%y = {signed} {one} %x to i64"] if one != "i64" else ["%y = add i64 %x, 0"]
    if source == BOOL and target != FLOAT16:  # any byte but 0 is true
        return ["%w = icmp ne i8 %x, 0", f"%y = uitofp i1 %w to {other}"]
    if source in _INTEGERS:
        return None if target == FLOAT16 else [f"%y = {_INTEGERS[source][1]} {one} %x to {other}"]
    if source == target:
        return [f"%y = select i1 true, {one} %x, {one} %x"]
    if {source, target} == {FLOAT16, FLOAT64}:
        if target == FLOAT16:
            return None  # rounding twice would be wrong, once needs a library
        return ["%w = fpext half %x to float", "%y = fpext float %w to double"]
    wider = _FLOATS[source][1] < _FLOATS[target][1]
    return [f"%y = {'fpext' if wider else 'fptrunc'} {one} %x to {other}"]


def _loop(name: str, source: int, target: int, steps: list[str]) -> str:
    """One element after the other; where a run has no gaps, whole vectors come first."""
    dense = (source, target) in DENSE
    head, (first, at, put) = "", ("0", "%from", "%to")
    before = "which"
    if dense:
        head = _dense(name, source, target, steps)
        before = f"rest_{name}"
        first, at, put = f"%done.{name}", f"%at.rest.{name}", f"%put.rest.{name}"
    converted = _renamed(steps, name)
    return f"""{head}{"" if not dense else "some_"}{name}:
  %i.{name} = phi i64 [ {first}, %{before} ], [ %i.next.{name}, %{"some_" if dense else ""}{name} ]
  %at.{name} = phi i64 [ {at}, %{before} ], [ %at.next.{name}, %{"some_" if dense else ""}{name} ]
  %put.{name} = phi i64 [ {put}, %{before} ], [ %put.next.{name}, %{"some_" if dense else ""}{name} ]
  %from.{name} = inttoptr i64 %at.{name} to ptr
  %x.{name} = load {_type(source)}, ptr %from.{name}
{converted}
  %to.{name} = inttoptr i64 %put.{name} to ptr
  store {_type(target)} %y.{name}, ptr %to.{name}
  %i.next.{name} = add i64 %i.{name}, 1
  %at.next.{name} = add i64 %at.{name}, %from.step
  %put.next.{name} = add i64 %put.{name}, %to.step
  %more.{name} = icmp slt i64 %i.next.{name}, %n
  br i1 %more.{name}, label %{"some_" if dense else ""}{name}, label %done
"""


def _renamed(steps: list[str], suffix: str, lanes: int = 0) -> str:
    """The conversion with names of its own, of single elements or of vectors."""
    lines = []
    for step in steps:
        for name in ("x", "y", "w"):
            step = step.replace(f"%{name}", f"%{name}.{suffix}")
        if lanes:
            for kind in ("float", "double", "half", "i64", "i32", "i16", "i8", "i1"):
                step = re.sub(rf"(?<![\w.%<]){kind}(?![\w>.]| true)", f"<{lanes} x {kind}>", step)
            step = step.replace("select i1 true, ", "select i1 true, ").replace(", 0", ", zeroinitializer")
        lines.append(f"  {step}")
    return "\n".join(lines)


def _dense(name: str, source: int, target: int, steps: list[str]) -> str:
    """Vectors of `LANES` elements while a run without gaps lasts; the loop over elements does the rest."""
    one, other = f"<{LANES} x {_type(source)}>", f"<{LANES} x {_type(target)}>"
    backwards, other_way, joined = "", "apart", ""
    if source == target:
        backwards, other_way = _backwards(name, source), "turned"
        joined = f", [ %whole.{name}, %back_{name} ]"
    joined += f", [ %whole.{name}, %gather_{name} ]"
    backwards += _gathered(name, source, target, steps)
    return f"""{name}:
  %near.{name} = icmp eq i64 %from.step, {_size(source)}
  %close.{name} = icmp eq i64 %to.step, {_size(target)}
  %dense.{name} = and i1 %near.{name}, %close.{name}
  %whole.{name} = and i64 %n, {-LANES}
  %many.{name} = icmp sgt i64 %whole.{name}, 0
  %wide.{name} = and i1 %dense.{name}, %many.{name}
  br i1 %wide.{name}, label %dense_{name}, label %{other_way}_{name}
{backwards}dense_{name}:
  %j.{name} = phi i64 [ 0, %{name} ], [ %j.next.{name}, %dense_{name} ]
  %get.{name} = mul i64 %j.{name}, {_size(source)}
  %set.{name} = mul i64 %j.{name}, {_size(target)}
  %get.at.{name} = add i64 %from, %get.{name}
  %set.at.{name} = add i64 %to, %set.{name}
  %get.p.{name} = inttoptr i64 %get.at.{name} to ptr
  %set.p.{name} = inttoptr i64 %set.at.{name} to ptr
  %x.v.{name} = load {one}, ptr %get.p.{name}, align {_size(source)}
{_renamed(steps, f"v.{name}", LANES)}
  store {other} %y.v.{name}, ptr %set.p.{name}, align {_size(target)}
  %j.next.{name} = add i64 %j.{name}, {LANES}
  %again.{name} = icmp slt i64 %j.next.{name}, %whole.{name}
  br i1 %again.{name}, label %dense_{name}, label %rest_{name}
rest_{name}:
  %done.{name} = phi i64 [ 0, %apart_{name} ], [ %whole.{name}, %dense_{name} ]{joined}
  %skipped.{name} = mul i64 %done.{name}, %from.step
  %put.skipped.{name} = mul i64 %done.{name}, %to.step
  %at.rest.{name} = add i64 %from, %skipped.{name}
  %put.rest.{name} = add i64 %to, %put.skipped.{name}
  %left.{name} = icmp slt i64 %done.{name}, %n
  br i1 %left.{name}, label %some_{name}, label %done
"""


def _gathered(name: str, source: int, target: int, steps: list[str]) -> str:
    """Elements with gaps between them to a place without: vectors put together from single elements."""
    kind, one = _type(source), f"<{LANES} x {_type(source)}>"
    loads, at, vector = [], f"%g.from.{name}", "poison"
    for i in range(LANES):
        loads += [
            f"  %g.p{i}.{name} = inttoptr i64 {at} to ptr",
            f"  %g.x{i}.{name} = load {kind}, ptr %g.p{i}.{name}",
            f"  %g.v{i}.{name} = insertelement {one} {vector}, {kind} %g.x{i}.{name}, i32 {i}",
            f"  %g.at{i}.{name} = add i64 {at}, %from.step",
        ]
        at, vector = f"%g.at{i}.{name}", f"%g.v{i}.{name}"
    converted = _renamed(steps, f"g.{name}", LANES).replace(f"%x.g.{name}", vector)
    listed = "\n".join(loads)
    return f"""apart_{name}:
  %g.worth.{name} = and i1 %close.{name}, %many.{name}
  br i1 %g.worth.{name}, label %gather_{name}, label %rest_{name}
gather_{name}:
  %g.{name} = phi i64 [ 0, %apart_{name} ], [ %g.next.{name}, %gather_{name} ]
  %g.from.{name} = phi i64 [ %from, %apart_{name} ], [ {at}, %gather_{name} ]
{listed}
{converted}
  %g.set.{name} = mul i64 %g.{name}, {_size(target)}
  %g.to.{name} = add i64 %to, %g.set.{name}
  %g.q.{name} = inttoptr i64 %g.to.{name} to ptr
  store <{LANES} x {_type(target)}> %y.g.{name}, ptr %g.q.{name}, align {_size(target)}
  %g.next.{name} = add i64 %g.{name}, {LANES}
  %g.more.{name} = icmp slt i64 %g.next.{name}, %whole.{name}
  br i1 %g.more.{name}, label %gather_{name}, label %rest_{name}
"""


def _backwards(name: str, kind: int) -> str:
    """The same from the end to the beginning, each vector turned round."""
    vector = f"<{LANES} x {_type(kind)}>"
    mask = ", ".join(f"i32 {LANES - 1 - i}" for i in range(LANES))
    return f"""turned_{name}:
  %behind.{name} = icmp eq i64 %from.step, {-_size(kind)}
  %turns.{name} = and i1 %behind.{name}, %close.{name}
  %worth.{name} = and i1 %turns.{name}, %many.{name}
  br i1 %worth.{name}, label %back_{name}, label %apart_{name}
back_{name}:
  %b.{name} = phi i64 [ 0, %turned_{name} ], [ %b.next.{name}, %back_{name} ]
  %b.next.{name} = add i64 %b.{name}, {LANES}
  %b.last.{name} = add i64 %b.{name}, {LANES - 1}
  %b.get.{name} = mul i64 %b.last.{name}, {_size(kind)}
  %b.set.{name} = mul i64 %b.{name}, {_size(kind)}
  %b.at.{name} = sub i64 %from, %b.get.{name}
  %b.to.{name} = add i64 %to, %b.set.{name}
  %b.p.{name} = inttoptr i64 %b.at.{name} to ptr
  %b.q.{name} = inttoptr i64 %b.to.{name} to ptr
  %b.x.{name} = load {vector}, ptr %b.p.{name}, align {_size(kind)}
  %b.y.{name} = shufflevector {vector} %b.x.{name}, {vector} poison, <{LANES} x i32> <{mask}>
  store {vector} %b.y.{name}, ptr %b.q.{name}, align {_size(kind)}
  %b.more.{name} = icmp slt i64 %b.next.{name}, %whole.{name}
  br i1 %b.more.{name}, label %back_{name}, label %rest_{name}
"""


def _size(kind: int) -> int:
    return _FLOATS[kind][1] if kind in _FLOATS else int(_INTEGERS[kind][0][1:]) // 8
