"""Runs of elements from one dtype and stride to another, as LLVM IR: what brings any operand into a kernel's form.

``copy_run(pair, to, to_step, from, from_step, count)`` reads and writes through byte strides, so that strided,
reversed, broadcast (stride 0) and converted operands are one case. A pair is ``4 * source + target``, see `pair`.
"""

from jitkernels import machine

BOOL, INT64, FLOAT32, FLOAT64, FLOAT16 = 0, 7, 11, 12, 23
"""NumPy's type numbers."""
TARGETS = (FLOAT32, FLOAT64, INT64, FLOAT16)
DENSE = (
    (11, 11),
    (12, 12),
    (11, 12),
    (12, 11),
    (7, 11),
    (7, 12),
    (7, 7),
    (5, 11),
    (5, 12),
    (23, 11),
    (11, 23),
)
"""Pairs whose runs without gaps have a loop of their own, in whole vectors."""
_INTEGERS = {
    0: ("i8", "uitofp"), 1: ("i8", "sitofp"), 2: ("i8", "uitofp"), 3: ("i16", "sitofp"), 4: ("i16", "uitofp"),
    5: ("i32", "sitofp"), 6: ("i32", "uitofp"), 7: ("i64", "sitofp"), 8: ("i64", "uitofp"), 9: ("i64", "sitofp"),
    10: ("i64", "uitofp"),
}  # fmt: skip
_FLOATS = {FLOAT32: ("float", 4), FLOAT64: ("double", 8), FLOAT16: ("half", 2)}


def has_float16() -> bool:
    """Whether the processor converts between float16 and float32 itself; LLVM calls a library otherwise."""
    return bool({"f16c", "fullfp16", "neon"} & machine.cpu_features())


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
            if (source, target) in DENSE:
                loops.append(_dense(name, source, target, steps))
                name = f"stepped_{name}"
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
{_fills()}!1 = distinct !{{!1, !2, !3}}
!2 = !{{!"llvm.loop.vectorize.enable", i1 false}}
!3 = !{{!"llvm.loop.unroll.disable"}}
"""


def _fills() -> str:
    """``fill(to, item, n)``: the element at `to` again and again, n times in all."""
    text = "define internal i64 @fill(i64 %to, i64 %item, i64 %n) nounwind {\nstart:\n  %p = inttoptr i64 %to to ptr\n"
    text += "  %single = icmp eq i64 %item, 4\n  br i1 %single, label %fill4, label %fill8\n"
    for item, kind in ((4, "i32"), (8, "i64")):
        text += f"""fill{item}:
  %x{item} = load {kind}, ptr %p
  br label %loop{item}
loop{item}:
  %i{item} = phi i64 [ 0, %fill{item} ], [ %next{item}, %loop{item} ]
  %at{item} = getelementptr {kind}, ptr %p, i64 %i{item}
  store {kind} %x{item}, ptr %at{item}
  %next{item} = add i64 %i{item}, 1
  %more{item} = icmp slt i64 %next{item}, %n
  br i1 %more{item}, label %loop{item}, label %done
"""
    return text + "done:\n  ret i64 0\n}\n"


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
    renamed = [
        step.replace("%x", f"%x.{name}").replace("%y", f"%y.{name}").replace("%w", f"%w.{name}")
        for step in steps
    ]
    converted = "\n".join(f"  {step}" for step in renamed)
    before = name.removeprefix("stepped_") if name.startswith("stepped_") else "which"
    return f"""{name}:
  %i.{name} = phi i64 [ 0, %{before} ], [ %i.next.{name}, %{name} ]
  %at.{name} = phi i64 [ %from, %{before} ], [ %at.next.{name}, %{name} ]
  %put.{name} = phi i64 [ %to, %{before} ], [ %put.next.{name}, %{name} ]
  %from.{name} = inttoptr i64 %at.{name} to ptr
  %x.{name} = load {_type(source)}, ptr %from.{name}
{converted}
  %to.{name} = inttoptr i64 %put.{name} to ptr
  store {_type(target)} %y.{name}, ptr %to.{name}
  %i.next.{name} = add i64 %i.{name}, 1
  %at.next.{name} = add i64 %at.{name}, %from.step
  %put.next.{name} = add i64 %put.{name}, %to.step
  %more.{name} = icmp slt i64 %i.next.{name}, %n
  br i1 %more.{name}, label %{name}, label %done, !llvm.loop !1
"""


def _dense(name: str, source: int, target: int, steps: list[str]) -> str:
    """The same without gaps on either side; it branches to the other loop where there are some."""
    one, other = _type(source), _type(target)
    renamed = [
        step.replace("%x", f"%x.d{name}").replace("%y", f"%y.d{name}").replace("%w", f"%w.d{name}")
        for step in steps
    ]
    converted = "\n".join(f"  {step}" for step in renamed)
    return f"""{name}:
  %near.{name} = icmp eq i64 %from.step, {_size(source)}
  %close.{name} = icmp eq i64 %to.step, {_size(target)}
  %dense.{name} = and i1 %near.{name}, %close.{name}
  br i1 %dense.{name}, label %pointers_{name}, label %stepped_{name}
pointers_{name}:
  %from.d{name} = inttoptr i64 %from to ptr
  %to.d{name} = inttoptr i64 %to to ptr
  br label %dense_{name}
dense_{name}:
  %i.d{name} = phi i64 [ 0, %pointers_{name} ], [ %i.next.d{name}, %dense_{name} ]
  %at.d{name} = getelementptr {one}, ptr %from.d{name}, i64 %i.d{name}
  %x.d{name} = load {one}, ptr %at.d{name}
{converted}
  %put.d{name} = getelementptr {other}, ptr %to.d{name}, i64 %i.d{name}
  store {other} %y.d{name}, ptr %put.d{name}
  %i.next.d{name} = add i64 %i.d{name}, 1
  %more.d{name} = icmp slt i64 %i.next.d{name}, %n
  br i1 %more.d{name}, label %dense_{name}, label %done
"""


def _size(kind: int) -> int:
    return _FLOATS[kind][1] if kind in _FLOATS else int(_INTEGERS[kind][0][1:]) // 8
