"""Cast and copy loops behind `copy_run` and `fill`, as LLVM IR. Elements may be unaligned.

Only casts depend on the pair of dtypes, all else on the element size: so there are two short loops per possible pair,
by elements and by vectors, and few others.
"""

import re

from jitkernels.core import cpu_target

BOOL, INT64, FLOAT32, FLOAT64, FLOAT16 = 0, 7, 11, 12, 23
"""NumPy's type numbers."""
BFLOAT16 = FLOAT32 + 2
"""The dispatcher's number of bfloat16, whose own differs per process: NumPy's of a dtype that no kernel takes."""
SWAPPED = 3
"""The offset to the numbers of byte-swapped float32 and float64: NumPy's numbers of complex dtypes."""
TARGETS = (FLOAT32, FLOAT64, INT64, FLOAT16)
LANES = 16
NEIGHBOURS = 4
"""Elements with addresses computed from one base, so that address computations do not form one chain."""
WIDE = {1: (2,), 2: (2,), 4: (2, 3, 4), 8: (2, 3, 4)}
"""By element size, the strides for which elements are extracted from full vectors."""
SAME = 256
"""Flag in a pair's form: no cast is needed."""
_INTEGERS = {
    0: ("i8", "u"), 1: ("i8", "s"), 2: ("i8", "u"), 3: ("i16", "s"), 4: ("i16", "u"), 5: ("i32", "s"), 6: ("i32", "u"),
    7: ("i64", "s"), 8: ("i64", "u"), 9: ("i64", "s"), 10: ("i64", "u"),
}  # fmt: skip
_NARROW = (0, 1, 2, 3, 4)
"""Integers that float32 represents exactly: with others a kernel computes in float64."""
_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "bfloat": 2, "float": 4, "double": 8}
_FLOATS = {FLOAT32: "float", FLOAT64: "double", BFLOAT16: "bfloat", FLOAT16: "half"}
_SWAPPED = {FLOAT32 + SWAPPED: "i32", FLOAT64 + SWAPPED: "i64"}


def has_float16() -> bool:
    """Return whether the processor converts between float16 and float32; LLVM calls a library otherwise."""
    target = cpu_target.target()
    return target.is_arm or "f16c" in target.features


def pair(source: int, target: int) -> int:
    """The number of a pair of NumPy's type numbers."""
    return 4 * source + TARGETS.index(target)


def provided() -> dict[str, str]:
    """LLVM IR of the functions and the table that `copy_run` and `transfer` use, by name."""
    functions = {
        "convert": _convert(),
        "each": _each(),
        "gather": _gather(),
        "spread": _spread(),
        "turn": _turn(),
        "fill": _fill(),
    }
    return {**functions, "jk_forms": _forms()}


def _kind(number: int) -> str:
    return _INTEGERS[number][0] if number in _INTEGERS else (_FLOATS | _SWAPPED)[number]


def _vector(kind: str) -> str:
    return f"<{LANES} x {kind}>"


def _pairs() -> dict[tuple[int, int], list[str]]:
    """For every possible pair, the instructions that cast a vector %x to a vector %y."""
    result = {}
    for source in (*_INTEGERS, *_FLOATS, *_SWAPPED):
        for target in TARGETS:
            steps = _conversion(source, target)
            if steps is not None and (has_float16() or FLOAT16 not in (source, target)):
                result[source, target] = steps
    return result


def _conversion(source: int, target: int) -> list[str] | None:
    source_kind, target_kind = _kind(source), _kind(target)
    if source in _SWAPPED:
        own, whole = _vector(_FLOATS[source - SWAPPED]), _vector(source_kind)
        swap = f"%w = call {whole} @llvm.bswap.v{LANES}{source_kind}({whole} %x)"
        if source - SWAPPED == target:
            return [swap, f"%y = bitcast {whole} %w to {own}"]
        if target != FLOAT64:
            return None
        return [swap, f"%v = bitcast {whole} %w to {own}", f"%y = fpext {own} %v to {_vector(target_kind)}"]
    if source_kind == target_kind:
        return [] if source != FLOAT16 else None
    if target == INT64:
        if source not in _INTEGERS or source == BOOL:
            return None
        return [f"%y = {_INTEGERS[source][1].replace('u', 'z')}ext {_vector(source_kind)} %x to {_vector(target_kind)}"]
    if source in _INTEGERS and (target == FLOAT16 or target == FLOAT32 and source not in _NARROW):
        return None
    if source == BOOL:  # any nonzero byte is true
        test = f"%w = icmp ne {_vector(source_kind)} %x, zeroinitializer"
        ones, zeros = (
            f"{_vector(target_kind)} splat ({target_kind} 1.0)",
            f"{_vector(target_kind)} splat ({target_kind} 0.0)",
        )
        return [test, f"%y = select {_vector('i1')} %w, {ones}, {zeros}"]
    if source in _INTEGERS:
        return [f"%y = {_INTEGERS[source][1]}itofp {_vector(source_kind)} %x to {_vector(target_kind)}"]
    if (source, target) == (FLOAT64, FLOAT16):
        return None  # rounding twice would be wrong, once needs a library
    if (source, target) == (FLOAT16, FLOAT64):
        single = f"%w = fpext {_vector(source_kind)} %x to {_vector('float')}"
        return [single, f"%y = fpext {_vector('float')} %w to {_vector(target_kind)}"]
    if (source, target) == (BFLOAT16, FLOAT16):
        return None  # no kernel with float16 results takes bfloat16
    wider = _BYTES[source_kind] < _BYTES[target_kind]
    return [f"%y = {'fpext' if wider else 'fptrunc'} {_vector(source_kind)} %x to {_vector(target_kind)}"]


def _forms() -> str:
    """The element sizes of each pair, the target's times 16, plus `SAME` if no cast is needed."""
    words = [0] * (4 * (FLOAT16 + 1))
    for (source, target), steps in _pairs().items():
        form = _BYTES[_kind(source)] + 16 * _BYTES[_kind(target)]
        words[pair(source, target)] = form if steps else form + SAME
    return f"@jk_forms = internal constant [{len(words)} x i64] [{', '.join(f'i64 {word}' for word in words)}]\n"


def _convert() -> str:
    """``convert(pair, to, from, n)``: cast n dense elements, a positive multiple of `LANES`."""
    cases, loops = [], []
    for (source, target), steps in _pairs().items():
        name, source_type, target_type = f"run{pair(source, target)}", _kind(source), _kind(target)
        cases.append(f"i64 {pair(source, target)}, label %{name}")
        renamed = "\n".join("  " + _named(step, name) for step in steps)
        loops.append(f"""{name}:
  %j.{name} = phi i64 [ 0, %start ], [ %next.{name}, %{name} ]
  %get.{name} = getelementptr {source_type}, ptr %p, i64 %j.{name}
  %x.{name} = load {_vector(source_type)}, ptr %get.{name}, align 1
{renamed}
  %put.{name} = getelementptr {target_type}, ptr %q, i64 %j.{name}
  store {_vector(target_type)} %{"y" if steps else "x"}.{name}, ptr %put.{name}, align 1
  %next.{name} = add nuw nsw i64 %j.{name}, {LANES}
  %more.{name} = icmp slt i64 %next.{name}, %n
  br i1 %more.{name}, label %{name}, label %done
""")
    turns = "".join(f"declare {_vector(k)} @llvm.bswap.v{LANES}{k}({_vector(k)})\n" for k in _SWAPPED.values())
    return f"""{turns}define internal i64 @convert(i64 %pair, i64 %to, i64 %from, i64 %n) nounwind {{
start:
  %p = inttoptr i64 %from to ptr
  %q = inttoptr i64 %to to ptr
  switch i64 %pair, label %done [ {" ".join(cases)} ]
{"".join(loops)}done:
  ret i64 0
}}
"""


def _named(step: str, suffix: str) -> str:
    for name in ("x", "y", "w", "v"):
        step = step.replace(f"%{name}", f"%{name}.{suffix}")
    return step


def _each() -> str:
    """``each(pair, to, to_step, from, from_step, n)``: cast strided elements one by one."""
    cases, loops = [], []
    for (source, target), steps in _pairs().items():
        name, source_type, target_type = f"run{pair(source, target)}", _kind(source), _kind(target)
        cases.append(f"i64 {pair(source, target)}, label %{name}")
        renamed = "\n".join("  " + _named(_single(step), name) for step in steps)
        loops.append(f"""{name}:
  %i.{name} = phi i64 [ %n, %which ], [ %left.{name}, %{name} ]
  %get.{name} = phi ptr [ %p, %which ], [ %get.next.{name}, %{name} ]
  %put.{name} = phi ptr [ %q, %which ], [ %put.next.{name}, %{name} ]
  %x.{name} = load {source_type}, ptr %get.{name}, align 1
{renamed}
  store {target_type} %{"y" if steps else "x"}.{name}, ptr %put.{name}, align 1
  %get.next.{name} = getelementptr i8, ptr %get.{name}, i64 %from.step
  %put.next.{name} = getelementptr i8, ptr %put.{name}, i64 %to.step
  %left.{name} = add nsw i64 %i.{name}, -1
  %more.{name} = icmp sgt i64 %left.{name}, 0
  br i1 %more.{name}, label %{name}, label %done
""")
    parameters = "i64 %pair, i64 %to, i64 %to.step, i64 %from, i64 %from.step, i64 %n"
    turns = "".join(f"declare {k} @llvm.bswap.{k}({k})\n" for k in _SWAPPED.values())
    return f"""{turns}define internal i64 @each({parameters}) nounwind {{
start:
  %p = inttoptr i64 %from to ptr
  %q = inttoptr i64 %to to ptr
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %which, label %done
which:
  switch i64 %pair, label %done [ {" ".join(cases)} ]
{"".join(loops)}done:
  ret i64 0
}}
"""


def _single(step: str) -> str:
    """A vector instruction as a scalar one."""
    step = re.sub(r"splat \(\w+ ([\d.]+)\)", r"\1", step)
    step = step.replace(f".v{LANES}", ".").replace(f"<{LANES} x ", "").replace(">", "")
    return step.replace("zeroinitializer", "0")


def _gather() -> str:
    """``gather(item, to, from, from_step, n, known)``: gather n elements of `item` bytes into a dense buffer.

    n as in `convert`. Vectors are assembled in registers: small stores cannot be forwarded to a vector load. For
    small strides elements are extracted from full vectors, as long as a further element is `known` to follow; for
    elements of two bytes assembling a single vector is faster. The empty inline assembly prevents LLVM from chaining
    the address additions.
    """
    steps = ""
    for i in range(1, NEIGHBOURS + 1):
        steps += f"  %times{i} = mul i64 %from.step, {i}\n"
        steps += f"""  %step{i} = call i64 asm "", "=r,0"(i64 %times{i})\n"""
    cases = " ".join(f"i64 {size}, label %which{size}" for size in WIDE)
    parameters = "i64 %item, i64 %to, i64 %from, i64 %from.step, i64 %n, i64 %known"
    return f"""define internal i64 @gather({parameters}) nounwind alwaysinline {{
start:
  %p = inttoptr i64 %from to ptr
  %q = inttoptr i64 %to to ptr
{steps}  switch i64 %item, label %done [ {cases} ]
{"".join(map(_gather_elements, WIDE))}done:
  ret i64 0
}}
"""


def _gather_elements(size: int) -> str:
    """Write the blocks that gather elements of `size` bytes: a switch by stride, a loop for each, and one for any."""
    names = [f"{gap}.{size}" for gap in WIDE[size]]
    cases = "".join(f" i64 {gap * size}, label %one{name}" for gap, name in zip(WIDE[size], names, strict=True))
    entries = [f"[ 0, %none{size} ]", *(f"[ %e.next.{name}, %last{name} ]" for name in names)]
    begins = [f"[ %p, %none{size} ]", *(f"[ %e.behind.{name}, %last{name} ]" for name in names)]
    return f"""which{size}:
  %some.{size} = icmp sgt i64 {"%n" if size == 2 else "%known"}, {LANES}
  br i1 %some.{size}, label %some{size}, label %none{size}
some{size}:
  switch i64 %from.step, label %none{size} [{cases} ]
none{size}:
  br label %gather{size}
{"".join(_extract_loop(size, gap) for gap in WIDE[size])}gather{size}:
  %j.{size} = phi i64 {", ".join(entries)}, [ %next.{size}, %gather{size} ]
  %from.{size} = phi ptr {", ".join(begins)}, [ %p{LANES}.{size}, %gather{size} ]
{_assemble_vector(size)}  %put.{size} = getelementptr i{8 * size}, ptr %q, i64 %j.{size}
  store {_vector(f"i{8 * size}")} %v{LANES - 1}.{size}, ptr %put.{size}, align 1
  %next.{size} = add nuw nsw i64 %j.{size}, {LANES}
  %more.{size} = icmp slt i64 %next.{size}, %n
  br i1 %more.{size}, label %gather{size}, label %done
"""


def _extract_loop(size: int, gap: int) -> str:
    """Write the loop that extracts each `gap`-th element of full vectors."""
    name, kind, both = f"{gap}.{size}", f"i{8 * size}", f"<{gap * LANES} x i{8 * size}>"
    picked = ", ".join(f"i32 {gap * i}" for i in range(LANES))
    return f"""one{name}:
  %e.{name} = phi i64 [ 0, %some{size} ], [ %e.next.{name}, %one{name} ]
  %e.times.{name} = mul nuw nsw i64 %e.{name}, {gap}
  %e.p.{name} = getelementptr {kind}, ptr %p, i64 %e.times.{name}
  %e.x.{name} = load {both}, ptr %e.p.{name}, align 1
  %e.y.{name} = shufflevector {both} %e.x.{name}, {both} poison, <{LANES} x i32> <{picked}>
  %e.q.{name} = getelementptr {kind}, ptr %q, i64 %e.{name}
  store {_vector(kind)} %e.y.{name}, ptr %e.q.{name}, align 1
  %e.next.{name} = add nuw nsw i64 %e.{name}, {LANES}
  %e.behind.{name} = getelementptr {kind}, ptr %e.p.{name}, i64 {gap * LANES}
  %e.end.{name} = add nuw nsw i64 %e.next.{name}, {LANES}
  %e.some.{name} = icmp slt i64 %e.end.{name}, %known
  %e.left.{name} = icmp slt i64 %e.next.{name}, %n
  %e.more.{name} = and i1 %e.some.{name}, %e.left.{name}
  br i1 %e.more.{name}, label %one{name}, label %last{name}
last{name}:
  br i1 %e.left.{name}, label %gather{size}, label %done
"""


def _assemble_vector(size: int) -> str:
    """Write the loads of `LANES` elements from `%from.size` on, and their insertion into one vector."""
    kind, vector, at = f"i{8 * size}", "poison", f"%from.{size}"
    lines, base = "", at
    for i in range(LANES):
        lines += f"""  %x{i}.{size} = load {kind}, ptr {at}, align 1
  %v{i}.{size} = insertelement {_vector(kind)} {vector}, {kind} %x{i}.{size}, i32 {i}
  %p{i + 1}.{size} = getelementptr i8, ptr {base}, i64 %step{i % NEIGHBOURS + 1}
"""
        vector, at = f"%v{i}.{size}", f"%p{i + 1}.{size}"
        base = at if (i + 1) % NEIGHBOURS == 0 else base
    return lines


def _spread() -> str:
    """``spread(item, to, to_step, from, from_step, n)``: copy strided elements; n is a multiple of `NEIGHBOURS`."""
    steps, loops = "", ""
    for i in range(1, NEIGHBOURS + 1):
        for way in ("from", "to"):
            steps += f"  %{way}.times{i} = mul i64 %{way}.step, {i}\n"
            steps += f"""  %{way}{i} = call i64 asm "", "=r,0"(i64 %{way}.times{i})\n"""
    for size in (4, 8):
        kind = f"i{8 * size}"
        loops += f"""spread{size}:
  %i.{size} = phi i64 [ %n, %start ], [ %left.{size}, %spread{size} ]
  %p0.{size} = phi ptr [ %p, %start ], [ %p{NEIGHBOURS}.{size}, %spread{size} ]
  %q0.{size} = phi ptr [ %q, %start ], [ %q{NEIGHBOURS}.{size}, %spread{size} ]
"""
        for i in range(NEIGHBOURS):
            loops += f"""  %x{i}.{size} = load {kind}, ptr %p{i}.{size}, align 1
  store {kind} %x{i}.{size}, ptr %q{i}.{size}, align 1
  %p{i + 1}.{size} = getelementptr i8, ptr %p0.{size}, i64 %from{i + 1}
  %q{i + 1}.{size} = getelementptr i8, ptr %q0.{size}, i64 %to{i + 1}
"""
        loops += f"""  %left.{size} = add nsw i64 %i.{size}, -{NEIGHBOURS}
  %more.{size} = icmp sgt i64 %left.{size}, 0
  br i1 %more.{size}, label %spread{size}, label %done
"""
    parameters = "i64 %item, i64 %to, i64 %to.step, i64 %from, i64 %from.step, i64 %n"
    return f"""define internal i64 @spread({parameters}) nounwind {{
start:
  %p = inttoptr i64 %from to ptr
  %q = inttoptr i64 %to to ptr
{steps}  switch i64 %item, label %done [ i64 4, label %spread4 i64 8, label %spread8 ]
{loops}done:
  ret i64 0
}}
"""


def _turn() -> str:
    """``turn(item, to, from, n)``: copy n elements downwards from `from` (reversed), a positive multiple of `LANES`."""
    loops = ""
    for size in (4, 8):
        vector = _vector(f"i{8 * size}")
        mask = ", ".join(f"i32 {LANES - 1 - i}" for i in range(LANES))
        loops += f"""turn{size}:
  %j.{size} = phi i64 [ 0, %start ], [ %next.{size}, %turn{size} ]
  %next.{size} = add nuw nsw i64 %j.{size}, {LANES}
  %down.{size} = sub i64 {1 - LANES}, %j.{size}
  %p.{size} = getelementptr i{8 * size}, ptr %last, i64 %down.{size}
  %x.{size} = load {vector}, ptr %p.{size}, align 1
  %y.{size} = shufflevector {vector} %x.{size}, {vector} poison, <{LANES} x i32> <{mask}>
  %q.{size} = getelementptr i{8 * size}, ptr %first, i64 %j.{size}
  store {vector} %y.{size}, ptr %q.{size}, align 1
  %more.{size} = icmp slt i64 %next.{size}, %n
  br i1 %more.{size}, label %turn{size}, label %done
"""
    return f"""define internal i64 @turn(i64 %item, i64 %to, i64 %from, i64 %n) nounwind alwaysinline {{
start:
  %last = inttoptr i64 %from to ptr
  %first = inttoptr i64 %to to ptr
  %single = icmp eq i64 %item, 4
  br i1 %single, label %turn4, label %turn8
{loops}done:
  ret i64 0
}}
"""


def _fill() -> str:
    """``fill(to, item, n)``: replicate the element at `to` n times."""
    text = "define internal i64 @fill(i64 %to, i64 %item, i64 %n) nounwind {\nstart:\n"
    text += f"  %p = inttoptr i64 %to to ptr\n  %whole = and i64 %n, -{LANES}\n"
    text += "  %single = icmp eq i64 %item, 4\n  br i1 %single, label %fill4, label %fill8\n"
    for item, kind in ((4, "i32"), (8, "i64")):
        vector = _vector(kind)
        text += f"""fill{item}:
  %x{item} = load {kind}, ptr %p, align 1
  %one{item} = insertelement {vector} poison, {kind} %x{item}, i32 0
  %all{item} = shufflevector {vector} %one{item}, {vector} poison, <{LANES} x i32> zeroinitializer
  br label %many{item}
many{item}:
  %j{item} = phi i64 [ 0, %fill{item} ], [ %further{item}, %vector{item} ]
  %wide{item} = icmp slt i64 %j{item}, %whole
  br i1 %wide{item}, label %vector{item}, label %few{item}
vector{item}:
  %put{item} = getelementptr {kind}, ptr %p, i64 %j{item}
  store {vector} %all{item}, ptr %put{item}, align 1
  %further{item} = add i64 %j{item}, {LANES}
  br label %many{item}
few{item}:
  %i{item} = phi i64 [ %whole, %many{item} ], [ %next{item}, %element{item} ]
  %more{item} = icmp slt i64 %i{item}, %n
  br i1 %more{item}, label %element{item}, label %done
element{item}:
  %at{item} = getelementptr {kind}, ptr %p, i64 %i{item}
  store {kind} %x{item}, ptr %at{item}, align 1
  %next{item} = add i64 %i{item}, 1
  br label %few{item}
"""
    return text + "done:\n  ret i64 0\n}\n"
