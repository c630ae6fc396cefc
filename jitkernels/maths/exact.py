"""Arithmetic whose order counts, in LLVM IR: no flag of a caller reaches it, and numba has nothing to compile.

Rounding adds up with the number of additions one after another. So a long sum is cut into blocks, each added
up in many accumulators at once, and the blocks are joined with what each of these few additions lost (Knuth's
two-sum; Neumaier, ZAMM 1974). The error is that of one block, however many there are:

    lost += lost_in(total, part)
    total = plus(total, part)
    ...
    total = settled(total, lost)
"""

from dataclasses import dataclass

from jitkernels.native.source import IRFunction


@dataclass(frozen=True)
class Exact:
    """The functions of one dtype.

    plus(a, b), times(a, b): sum and product.
    lost_in(a, b): what ``plus(a, b)`` rounded away, exactly.
    settled(total, lost): their sum; the total alone where nothing was lost, so that a negative zero stays one,
    and where it is infinite, as infinities have no difference.
    distance(x, unit, mean): ``x * unit - mean``, which ``reassoc`` would take out of a sum, to cancel there.
    times_plus(x, scale, bias): ``x * scale + bias``, where ``reassoc`` would multiply the factors of x first,
    which may overflow.
    """

    plus: IRFunction
    times: IRFunction
    lost_in: IRFunction
    settled: IRFunction
    distance: IRFunction
    times_plus: IRFunction


def _exact(kind: str) -> Exact:
    def function(name: str, parameters: str, body: str) -> IRFunction:
        symbol = f"jk_{name}_{kind}"
        listed = ", ".join(f"{kind} %{parameter}" for parameter in parameters.split())
        lines = body.replace("TYPE", kind)
        text = f"define {kind} @{symbol}({listed}) alwaysinline {{\n{lines}  ret {kind} %result\n}}\n"
        return IRFunction(symbol, kind, (kind,) * len(parameters.split()), text)

    return Exact(
        plus=function("plus", "a b", "  %result = fadd TYPE %a, %b\n"),
        times=function("times", "a b", "  %result = fmul TYPE %a, %b\n"),
        lost_in=function(
            "lost_in",
            "a b",
            """  %sum = fadd TYPE %a, %b
  %b_added = fsub TYPE %sum, %a
  %a_added = fsub TYPE %sum, %b_added
  %a_lost = fsub TYPE %a, %a_added
  %b_lost = fsub TYPE %b, %b_added
  %result = fadd TYPE %a_lost, %b_lost
""",
        ),
        settled=function(
            "settled",
            "total lost",
            """  %sum = fadd TYPE %total, %lost
  %some = fcmp one TYPE %lost, 0.0
  %result = select i1 %some, TYPE %sum, TYPE %total
""",
        ),
        distance=function(
            "distance",
            "x unit mean",
            """  %scaled = fmul contract TYPE %x, %unit
  %result = fsub contract TYPE %scaled, %mean
""",
        ),
        times_plus=function(
            "times_plus",
            "x scale bias",
            """  %scaled = fmul contract TYPE %x, %scale
  %result = fadd contract TYPE %scaled, %bias
""",
        ),
    )


EXACT = {"float32": _exact("float"), "float64": _exact("double")}
