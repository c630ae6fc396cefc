"""Windows over the height and width of images: options of convolution and pooling, and the extents of results.

Images are arrays of batch, height, width and channels, the channels last.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import power_of_two
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.errors import AttrError, shown

MAX_WINDOW_NUMBER = (1 << 31) - 1
"""The largest stride, dilation, padding or window, so that no index overflows 64 bits."""
Pair = tuple[int, int]
A_PAIR = "an int of 1 or more, or a pair of them: (vertical, horizontal)"
A_PAIR_OF_ZERO = "an int of 0 or more, or a pair of them: (vertical, horizontal)"
BORDERS = "an int of 0 or more, a pair (vertical, horizontal), or ((top, bottom), (left, right))"


def pair(value: Any) -> Pair:
    """Return ``(vertical, horizontal)`` for an int or a pair of ints, each at least 1. Raises ValueError."""
    first, second = _two(value, A_PAIR)
    return _integer(first, 1, A_PAIR), _integer(second, 1, A_PAIR)


def pair_of_zero(value: Any) -> Pair:
    """Return ``(vertical, horizontal)`` for an int or a pair of ints, each at least 0. Raises ValueError."""
    first, second = _two(value, A_PAIR_OF_ZERO)
    return _integer(first, 0, A_PAIR_OF_ZERO), _integer(second, 0, A_PAIR_OF_ZERO)


def pair_or_none(value: Any) -> Pair | None:
    """Return the same, or None."""
    return None if value is None else pair(value)


def borders(value: Any) -> tuple[Pair, Pair]:
    """Return ``((top, bottom), (left, right))`` for an int, a pair of ints, or a pair of pairs. Raises ValueError."""
    vertical, horizontal = (_two(sides, BORDERS) for sides in _two(value, BORDERS))
    (top, bottom), (left, right) = ([_integer(size, 0, BORDERS) for size in sides] for sides in (vertical, horizontal))
    return (top, bottom), (left, right)


def listed(value: Any) -> Any:
    """Return nested tuples as nested lists, for JSON."""
    return [listed(item) for item in value] if isinstance(value, tuple) else value


def _two(value: Any, meaning: str) -> tuple[Any, Any]:
    if isinstance(value, np.ndarray) and value.shape in ((2,), (2, 2)):
        value = value.tolist()
    if not isinstance(value, tuple | list):
        return value, value
    if len(value) != 2:
        raise ValueError(f"expected {meaning}, got {shown(value)}")
    return value[0], value[1]


def _integer(value: Any, least: int, meaning: str) -> int:
    cause: Exception | None = None
    if not isinstance(value, bool | np.bool_ | np.ndarray):
        try:
            number = operator.index(value)
        except Exception as error:  # noqa: BLE001  # any error of the object's __index__
            cause = error
        else:
            if least <= number <= MAX_WINDOW_NUMBER:
                return number
    raise ValueError(f"expected {meaning}, got {shown(value)}") from cause


def window_extents(label: str, fields: Mapping[str, Any], window: Sequence[Any], *, ceil_mode: bool) -> dict[str, Any]:
    """Return the extents of the result and the parts of the options, by name, of windows with such extents.

    A window covers ``dilation * (extent - 1) + 1`` elements along an axis of the padded image, and the next one begins
    `stride` elements on. With `ceil_mode` the last one may reach beyond the padding, if it begins before the padding
    behind. Raises AttrError for a window that does not fit into the padded image.
    """
    result: dict[str, Any] = {}
    stride = fields["stride"] or window
    for axis, name in enumerate(("height", "width")):
        before, after = fields["padding"][axis]
        step, size = stride[axis], fields[name]
        covered = fields["dilation"][axis] * (window[axis] - 1) + 1
        free = size + before + after - covered
        if window[axis] < 1 or free < 0:
            raise AttrError(
                f"{label}: {name}: expected a window of 1 or more, and of at most the {size + before + after} elements "
                f"of the padded image, got {covered}"
            )
        count = free // step + 1
        if ceil_mode:
            count = min((free + step - 1) // step + 1, (size + before + step - 1) // step)
        result |= {f"out_{name}": count, f"stride_{name}": step, f"dilation_{name}": fields["dilation"][axis]}
    return result | {"pad_top": fields["padding"][0][0], "pad_left": fields["padding"][1][0]}


def transposed_extents(label: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the extents of the result of a transposed convolution, and the parts of its options, by name.

    Raises AttrError for a result without pixels.
    """
    result: dict[str, Any] = {}
    for axis, name in enumerate(("height", "width")):
        before, after = fields["padding"][axis]
        step, size, dilation = fields["stride"][axis], fields[name], fields["dilation"][axis]
        whole = step * (size - 1) + dilation * (fields[f"kernel_{name}"] - 1) + 1 + fields["output_padding"][axis]
        if size < 1 or whole - before - after < 1:
            raise AttrError(
                f"{label}: {name}: expected images of 1 or more, and results of more than the {before + after} "
                f"elements that padding cuts off, got {size} and {whole}"
            )
        result |= {f"out_{name}": whole - before - after, f"stride_{name}": step, f"dilation_{name}": dilation}
    return result | {"pad_top": fields["padding"][0][0], "pad_left": fields["padding"][1][0]}


def group_channels_of(label: str, fields: Mapping[str, Any]) -> Any:
    """Return the channels of a group. Raises AttrError for groups that do not divide channels and filters."""
    channels, filters, groups = fields["channels"], fields["filters"], fields["groups"]
    if channels % groups or filters % groups:
        raise AttrError(
            f"{label}: groups: expected a divisor of the {channels} channels and the {filters} filters, got {groups}"
        )
    return channels // groups


def class_sizes(fields: Mapping[str, Any]) -> dict[str, int]:
    """Return sizes rounded up to powers of two: of channels and filters those of a group."""
    groups, sizes = fields["groups"], {name: int(power_of_two(fields[name])) for name in ("batch", "height", "width")}
    return sizes | {name: groups * int(power_of_two(fields[name] // groups)) for name in ("channels", "filters")}


def windows_of(attr: Any, padded: AnyArray, window: Pair) -> AnyArray:
    """Return the windows over padded images, as a view: [batch, out_height, out_width, channels, height, width]."""
    (step_down, step_right), (down, right) = attr.stride or window, attr.dilation
    covered = down * (window[0] - 1) + 1, right * (window[1] - 1) + 1
    views = np.lib.stride_tricks.sliding_window_view(padded, covered, axis=(1, 2))
    return views[:, ::step_down, ::step_right, :, ::down, ::right][:, : attr.out_height, : attr.out_width]
