"""The statements of random programs, each with its effect on magnitudes and errors."""

from typing import Any

import numpy as np
from random_programs import Exactness

CASTS = ("float64", "float32", "float16", "int64", "int32", "int16", "uint8", "bool")
LEAST = 1e-150
_MANTISSA = {"float16": 11, "float32": 24, "float64": 53}


def rounded(facts: Exactness, dtype: Any) -> Exactness | None:
    """Return the facts about values after rounding to a dtype; None if they may overflow."""
    if dtype.kind in "iub":
        if facts.error:
            return None
        return Exactness(min(facts.bound, 2.0**63), 1.0)
    if facts.bound * 4 > float(np.finfo(dtype).max) or facts.error * 100 > 1 + facts.bound:
        return None
    if facts.error or facts.bound / facts.grain >= 2.0 ** _MANTISSA[dtype.name]:
        error = facts.error + 2.0 ** -_MANTISSA[dtype.name] * facts.bound
        return Exactness(facts.bound, facts.grain, error)
    return facts


Statement = tuple[str, Exactness]


def sum_of(first: Exactness, second: Exactness) -> Exactness:
    return Exactness(first.bound + second.bound, min(first.grain, second.grain), first.error + second.error)


def either(first: Exactness, second: Exactness) -> Exactness:
    return Exactness(max(first.bound, second.bound), min(first.grain, second.grain), max(first.error, second.error))


def product_of(first: Exactness, second: Exactness) -> Exactness:
    error = first.error * second.bound + second.error * first.bound
    return Exactness(first.bound * second.bound, max(first.grain * second.grain, LEAST), error)


def rough(bound: float, error: float, dtype: Any) -> Exactness:
    """Return the facts about values that are never exact."""
    name = np.dtype(dtype).name if np.dtype(dtype).kind == "f" else "float64"
    name = "float16" if np.dtype(dtype).name in ("int8", "uint8", "bool") else name
    name = "float32" if np.dtype(dtype).name in ("int16", "uint16") else name
    return Exactness(bound, LEAST, error + bound * 8 * 2.0 ** -_MANTISSA[name])


def arithmetic(maker: Any) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    other = maker.operand(one)
    sign = maker.pick("++--**")
    left, right = (one, other) if maker.chance(0.7) else (other, one)
    x, y = maker.exactness_of(one), maker.exactness_of(other)
    return f"{left} {sign} {right}", product_of(x, y) if sign == "*" else sum_of(x, y)


def fused(maker: Any) -> Statement | None:
    """Combine several operations in one statement."""
    one = maker.array("f")
    if one is None:
        return None
    x, (b, c) = maker.exactness_of(one), (maker.operand(one), maker.operand(one))
    y, z = maker.exactness_of(b), maker.exactness_of(c)
    return f"{one} * {b} + {c}", sum_of(product_of(x, y), z)


def unary(maker: Any) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x = maker.exactness_of(one)
    kind = maker.scope[one].dtype.kind
    dtype = maker.scope[one].dtype
    same = ["-@", "abs(@)", "np.abs(@)", "np.positive(@)", "@.copy()", "np.copy(@)", "np.ascontiguousarray(@)"]
    steps = ["np.sign(@)", "np.floor(@)", "np.ceil(@)", "np.trunc(@)", "np.rint(@)", "@.round()", "np.logical_not(@)"]
    tests = ["np.isnan(@)", "np.isinf(@)", "np.isfinite(@)", "@ > 0", "@ != @"]
    smooth = {
        "np.sin(@)": 1, "np.cos(@)": 1, "np.tanh(@)": 1, "np.arctan(@)": 2, "np.log(abs(@) + 1)": 100, "np.arcsinh(@)": 100,
    }  # fmt: skip
    choice = maker.chosen.random()
    if kind in "iub" and choice < 0.3:
        return f"~{one}" if maker.chance(0.5) else f"np.invert({one})", Exactness(
            max(x.bound + 1, 2.0**64 if kind == "u" else 0)
        )
    if choice < 0.35:
        bound = x.bound if kind != "u" else 2.0**64
        return maker.pick(same).replace("@", one), Exactness(bound, x.grain, x.error)
    if choice < 0.45:
        return maker.pick(("np.square(@)", "@ ** 2", "@ * @")).replace("@", one), product_of(x, x)
    if choice < 0.65 and not x.error:
        return maker.pick(steps).replace("@", one), Exactness(x.bound + 1)
    if choice < 0.75 and not x.error:
        return maker.pick(tests).replace("@", one), Exactness(1)
    if choice < 0.9:
        text = maker.pick(list(smooth))
        return text.replace("@", one), rough(min(float(smooth[text]), 100.0), x.error, dtype)
    if choice < 0.95:
        return f"np.exp(np.minimum({one}, 3))", rough(np.exp(3.0), x.error * np.exp(3.0), dtype)
    return f"np.sqrt(abs({one}))", rough(np.sqrt(x.bound), np.sqrt(x.error), dtype)


def exact_pair(maker: Any) -> tuple[str, str] | None:
    """Return two exact operands, so that comparisons of them are certain."""
    one = maker.array(exact=True)
    if one is None:
        return None
    other = maker.operand(one, exact=True)
    return None if maker.exactness_of(other).error else (one, other)


def compared(maker: Any) -> Statement | None:
    pair = exact_pair(maker)
    if pair is None:
        return None
    return f"{pair[0]} {maker.pick(('<', '<=', '>', '>=', '==', '!='))} {pair[1]}", Exactness(1)


def extreme(maker: Any) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    other = maker.operand(one)
    name = maker.pick(("maximum", "minimum", "fmax", "fmin"))
    return f"np.{name}({one}, {other})", either(maker.exactness_of(one), maker.exactness_of(other))


def integer(maker: Any) -> Statement | None:
    one = maker.array("iub")
    if one is None:
        return None
    other = maker.operand(one, exact=True)
    x, y = maker.exactness_of(one), maker.exactness_of(other)
    if y.error:
        return None
    sign = maker.pick(("&", "|", "^", "//", "%", "<<", ">>"))
    return f"{one} {sign} {other}", Exactness(2.0**63 if sign == "<<" else x.bound + y.bound + 1)


def logical(maker: Any) -> Statement | None:
    pair = exact_pair(maker)
    if pair is None:
        return None
    return f"np.logical_{maker.pick(('and', 'or', 'xor'))}({pair[0]}, {pair[1]})", Exactness(1)


def division(maker: Any) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x, dtype = maker.exactness_of(one), maker.scope[one].dtype
    if maker.chance(0.5):
        divisor = maker.pick(("2", "4.0", "0.5", "8"))
        return f"{one} / {divisor}", Exactness(x.bound * 2, x.grain / 8, x.error * 2)
    other = maker.operand(one)
    y = maker.exactness_of(other)
    if maker.chance(0.4) and not x.error and not y.error:
        return f"{one} {maker.pick(('//', '%'))} {maker.pick(('2', '0.75', '-3', '0'))}", Exactness(
            x.bound * 2 + 3, x.grain / 4
        )
    return f"{one} / (abs({other}) + 1)", rough(x.bound, x.error + x.bound * y.error, dtype)


def choice(maker: Any) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x = maker.exactness_of(one)
    kind = maker.chosen.random()
    if kind < 0.3:
        low, high = maker.pick((("-1", "2"), ("0", "1"), ("None", "1.5"), ("0", "None"), ("2", "1")))
        text = maker.pick((f"np.clip({one}, {low}, {high})", f"{one}.clip({low}, {high})"))
        return text, Exactness(x.bound + 2, min(x.grain, 0.5), x.error)
    condition = maker.array("b", exact=True) or "True"
    if kind < 0.5 and not x.error:
        condition = f"{one} > 0"
    other = maker.operand(one)
    return f"np.where({condition}, {one}, {other})", either(x, maker.exactness_of(other))


def cast(maker: Any) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x, value = maker.exactness_of(one), maker.scope[one]
    dtype = maker.pick(CASTS)
    source = one
    if value.dtype.kind == "f" and dtype[0] in "iu":
        if x.error:
            return None
        source = f"np.clip(np.nan_to_num({one}), {0 if dtype[0] == 'u' else -100}, 100)"
        x = Exactness(100)
    if np.dtype(dtype).kind in "iu":
        x = Exactness(max(x.bound, 2.0 ** (8 * np.dtype(dtype).itemsize)) if x.bound > 100 else max(x.bound, 256))
    if dtype == "bool":
        if x.error:
            return None
        x = Exactness(1)
    return f"{source}.astype({maker.pick((repr(dtype), f'np.{dtype}' if dtype != 'bool' else 'bool'))})", x


def view(maker: Any) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    return view_text(maker, one), maker.exactness_of(one)


def view_text(maker: Any, one: str) -> str:
    options = [
        "@[1:]", "@[:-1]", "@[::2]", "@[1::3]", "@[::-1]", "@[-2::-2]", "@[1:-1]", "@[...]", "@.T", "@[None]", "@[..., None]",
        "@.reshape(-1)", "@[0]", "@[-1]", "@.ravel()", "@[:0]", "@[2:2]", "np.squeeze(@)",
    ]  # fmt: skip
    if maker.scope[one].ndim > 1:
        options += [
            "@[:, 0]", "@[:, ::-1]", "@[:, 1:-1]", "@[1:, :-1]", "@[:, None]", "@.swapaxes(0, 1)", "@[0, 1:]", "@[::-1, ::-1]",
            "np.moveaxis(@, 0, -1)", "@[..., -1]", "@.reshape(@.shape[1], -1)", "@[::2, 1::2]", "np.diagonal(@)", "@.T[1:]",
            "np.flip(@)", "np.flip(@, 1)", "np.swapaxes(@, 0, -1)",
        ]  # fmt: skip
    return str(maker.pick(options)).replace("@", one)


def reduction(maker: Any) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x, value = maker.exactness_of(one), maker.scope[one]
    axes = ["None", "0", "-1", *(["(0, 1)", "1", "(0, -1)"] if value.ndim > 1 else [])]
    if value.ndim == 0:
        axes = ["None"]
    axis = maker.pick(axes)
    keep = maker.pick(("", "", ", keepdims=True"))
    count = max(value.size, 4900)
    name = maker.pick(
        ("sum", "sum", "max", "min", "mean", "any", "all", "argmax", "argmin", "prod", "cumsum", "count", "ptp", "var")
    )
    large = 2.0**63 if value.dtype.kind in "iu" else 0.0
    if name in ("any", "all", "argmax", "argmin", "prod", "count") and x.error:
        return None
    if name in ("argmax", "argmin"):
        return f"{one}.{name}({maker.pick(('', '0', 'axis=-1'))})", Exactness(5000)
    if name in ("any", "all"):
        return f"{one}.{name}(axis={axis}{keep})", Exactness(1)
    if name == "count":
        return f"np.count_nonzero({one}, axis={axis})", Exactness(5000)
    if name in ("max", "min"):
        running = f"np.{name}imum.accumulate({one}, axis={axis if axis in ('0', '-1') else '0'})"
        return maker.pick((f"{one}.{name}(axis={axis}{keep})", f"np.{name}({one}, axis={axis}{keep})", running)), x
    if name == "ptp":
        return f"np.ptp({one}, axis={axis})", Exactness(max(2 * x.bound, large), x.grain, 2 * x.error)
    if name == "prod":
        return (f"{one}.prod(axis={axis}{keep})", Exactness(2.0**63)) if value.dtype.kind in "iub" else None
    if value.dtype == np.float16 and name in ("var", "mean") and x.bound > 50:
        return None
    half = value.dtype == np.float16
    total = Exactness(x.bound * count, x.grain, x.error * count)
    if half:
        total = Exactness(x.bound * min(value.size, count), x.grain, x.error * count)
        if total.bound / total.grain > 2000:  # rounded after each addition, in any order
            total.error += total.bound * 2.0**-9
    if name == "cumsum":
        axis = axis if axis in ("None", "0", "-1") else "0"
        return f"{one}.cumsum(axis={axis})", total
    if name == "sum":
        return maker.pick(
            (
                f"{one}.sum(axis={axis}{keep})",
                f"np.sum({one}, axis={axis}{keep})",
                f"np.add.reduce({one}, axis={axis if axis != 'None' or value.ndim else '0'})",
            )
        ), total
    dtype = value.dtype if value.dtype.kind == "f" else np.dtype("float64")
    if name == "mean":
        return f"{one}.mean(axis={axis}{keep})", rough(x.bound, x.error + total.error / count, dtype)
    wide = rough(x.bound**2, x.error * 4 * x.bound, dtype)
    wide.error *= 4
    return f"{one}.var(axis={axis}{keep})", wide


def write(maker: Any) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x = maker.exactness_of(one)
    target = maker.pick(("@[1:-1]", "@[...]", "@[:]", "@[::2]", "@[0]", "@[1:]", "@[:-1]", "@[::-1]", "@[-1]")).replace(
        "@", one
    )
    if maker.scope[one].ndim > 1 and maker.chance(0.5):
        target = maker.pick(("@[:, 0]", "@[1:, 1:]", "@[:, ::2]", "@[0, :]", "@[:, 1:-1]", "@[..., 0]")).replace(
            "@", one
        )
    other = maker.operand(one)
    kind = maker.chosen.random()
    y = maker.exactness_of(other)
    if maker.scope[one].dtype.kind in "iub":
        if y.error or np.asarray(eval(other, maker.scope)).dtype.kind == "f":
            maker.tidy()
            return None
        maker.tidy()
    if kind < 0.3:
        return f"!{target} = {other}", y
    if kind < 0.5:
        return f"!{target} += {other}", sum_of(x, y)
    if kind < 0.6:
        return f"!{one} *= {other}", product_of(x, y)
    if kind < 0.7:
        source = view_text(maker, one)
        return f"!{target} = {source}", x
    if kind < 0.8:
        return f"!{one} += {view_text(maker, one)}", sum_of(x, x)
    if kind < 0.9 and not x.error:
        return f"!{one}[{one} > 0] = 1", either(x, Exactness(1))
    return f"!np.add({one}, {other}, out={one})", sum_of(x, y)


def joined(maker: Any) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    other = maker.array() or one
    if maker.scope[other].shape[1:] != maker.scope[one].shape[1:] or maker.chance(0.4):
        other = one
    found = either(maker.exactness_of(one), maker.exactness_of(other))
    texts = (
        "np.concatenate([@, $])", "np.concatenate(($, @), axis=-1)", "np.stack([@, $])", "np.stack([@, $], axis=-1)",
        "np.roll(@, 1)", "np.pad(@, 1)", "np.tile(@, 2)", "np.repeat(@, 2, axis=0)", "np.hstack([@, $])", "np.take(@, [0, -1], axis=0)",
        "@[[0, -1]]", "np.tril(@)", "np.diff(@, axis=0)", "np.zeros_like(@)", "np.ones(@.shape, @.dtype) - @", "np.arange(@.shape[0]) + @.size",
    )  # fmt: skip
    bound = Exactness(max(found.bound * 2, 20_000 if True else 0), found.grain, found.error * 2)
    text = maker.pick(texts)
    return text.replace("@", one).replace(
        "$", other
    ), bound if "diff" in text or "- @" in text or "arange" in text else found


def picked(maker: Any) -> Statement | None:
    """Gather elements by indices in bounds; the array's facts are those of its elements."""
    one, numbers = maker.array(), maker.array("iu", exact=True)
    if one is None or numbers is None or not maker.scope[one].ndim:
        return None
    texts = (
        "@[$ % @.shape[0]]", "@[abs($) % @.shape[0] - @.shape[0]]", "@[..., $ % @.shape[-1]]", "@[$.ravel() % @.shape[0]]",
        "np.take(@, $ % @.size)", "np.take(@, abs($) % @.shape[-1] - @.shape[-1], axis=-1)", "@.T[$ % @.shape[-1]]", "@[::-1][$ % @.shape[0]]",
    )  # fmt: skip
    x = maker.exactness_of(one)
    if maker.chance(0.3):
        target = maker.pick(("@[$ % @.shape[0]]", "@[..., $ % @.shape[-1]]", "@[$ % @.shape[0] - @.shape[0]]"))
        text = maker.pick((f"!{target} = 1", f"!{target} += 1", f"!{target} = {target} + 1"))
        return text.replace("@", one).replace("$", numbers), sum_of(x, Exactness(1))
    return maker.pick(texts).replace("@", one).replace("$", numbers), x


STATEMENTS = (
    *[arithmetic] * 5, fused, *[unary] * 4, *[compared] * 2, *[extreme] * 2, integer, logical, division, *[choice] * 2, cast,
    *[view] * 4, *[reduction] * 4, *[write] * 4, *[joined] * 2,
    *[picked] * 2,
)  # fmt: skip
