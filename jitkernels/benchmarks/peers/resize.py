"""Peers of RESIZE2D in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.resize import Resize2DAttr
from jitkernels.attrs.schema.argument_binding import arguments_by_name
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch


@equivalent(Resize2DAttr)
def resize2d(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Multiply by the matrix of weights of each axis, or take the nearest rows and columns."""
    given = arguments_by_name(Resize2DAttr, arguments, named)
    x, size = np.asarray(given["x"]), np.broadcast_to(given["size"], 2)
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    options = {name: given[name] for name in ("mode", "coordinates", "rounding")}
    height, width = x.shape[-3:-1]
    extents = {"batch": 1, "height": height, "width": width, "channels": 1, "size": tuple(map(int, size))}
    attr = Resize2DAttr(**extents, **options, dtype="float64")
    if given["mode"] == "nearest":
        (rows, _), (columns, _) = attr.neighbours(0)[0], attr.neighbours(1)[0]
        result = x[..., rows[:, np.newaxis], columns, :]
    else:
        result = np.einsum("ik,...klc,jl->...ijc", attr.matrix(0), x, attr.matrix(1), optimize=True).astype(x.dtype)
    if out is None:
        return result
    out[...] = result
    return out


@peer(Resize2DAttr)
def numpy_resize(attr: Resize2DAttr, x: AnyArray, y: AnyArray) -> Bound:
    own = {name: value for name, value in attr.fields().items() if name in attr.options}
    return partial(resize2d, x, out=y, **own)


@partial(of_torch, Resize2DAttr)
def torch_resize(attr: Resize2DAttr, torch: Any, x: Any, y: Any) -> Bound | None:
    """Use memory with channels last, as ours is."""
    settings: dict[tuple[str, ...], dict[str, Any]] = {
        ("nearest", "asymmetric", "floor"): {"mode": "nearest"},
        ("linear", "half_pixel"): {"mode": "bilinear", "align_corners": False},
        ("linear", "align_corners"): {"mode": "bilinear", "align_corners": True},
        ("cubic", "half_pixel"): {"mode": "bicubic", "align_corners": False},
        ("cubic", "align_corners"): {"mode": "bicubic", "align_corners": True},
    }
    rounding = (attr.rounding,) if attr.mode == "nearest" else ()
    known = settings.get((attr.mode, attr.coordinates, *rounding))
    if known is None or not x.numel():
        return None
    resize = partial(torch.nn.functional.interpolate, x.permute(0, 3, 1, 2), attr.size, **known)

    def call() -> None:
        y.copy_(resize().permute(0, 2, 3, 1))

    return partial(call)


@ordinary_calls(Resize2DAttr)
def images(elements: int) -> Iterator[OrdinaryCall]:
    x = values((2, 3, 4, 1 + elements % 7))
    yield OrdinaryCall("plain", (x, (6, 8)))
    for mode in ("nearest", "cubic"):
        yield OrdinaryCall(mode, (x, (6, 8), mode))
    yield OrdinaryCall("by name", (x,), {"size": 5, "mode": "linear", "coordinates": "align_corners"})
    yield OrdinaryCall("asymmetric", (x, (6, 8), "nearest", "asymmetric", "floor"))
    yield OrdinaryCall("one image", (x[0], (2, 3)))
    yield OrdinaryCall("no image", (x[:0], (2, 3)))
    yield from in_dtypes(x, fixed=((6, 8),))
    yield from in_layouts(x, fixed=((6, 8),), label="all {}")
    yield from with_outs((x, (6, 8)), 6, np.zeros((2, 6, 8, x.shape[3]), np.float32))
