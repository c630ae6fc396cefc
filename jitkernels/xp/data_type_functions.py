"""The data types of the Array API standard, and the functions of them."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.xp.array_object import API_VERSION, DEVICE, NamespaceArray, check_device
from jitkernels.xp.dispatch import elements_of, new_array
from jitkernels.xp.elementwise_functions import cast

DTYPES = {
    name: np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
        "complex64", "complex128",
    )
}  # fmt: skip
KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


def astype(x: NamespaceArray, dtype: Any, /, *, copy: bool = True, device: Any = None) -> NamespaceArray:
    """The elements in another dtype. Raises TypeError for complex ones in a real dtype."""
    check_device(device)
    wanted = np.dtype(dtype)
    if x.dtype == wanted:
        return new_array(elements_of(x).copy()) if copy else x
    if x.dtype.kind == "c" and wanted.kind not in "cb":
        raise TypeError(f"astype: expected a complex dtype for elements of {x.dtype}, got {wanted}")
    return cast(x, wanted)  # type: ignore[no-any-return]


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether elements of one dtype, or of an array, have equal ones in another."""
    return bool(np.can_cast(from_.dtype if isinstance(from_, NamespaceArray) else from_, to))


class FloatingLimits(NamedTuple):
    """What `finfo` gives: the limits as Python numbers, whatever the dtype. For complex dtypes those of a component."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class IntegerLimits(NamedTuple):
    """What `iinfo` gives."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> FloatingLimits:  # noqa: A002  # a name of the standard
    """The limits of a floating-point dtype, or of that of an array. Raises ValueError for other dtypes."""
    one = np.finfo(_dtype_of(type))
    limits = float(one.eps), float(one.max), float(one.min), float(one.smallest_normal)
    return FloatingLimits(int(one.bits), *limits, one.dtype)


def iinfo(type: Any, /) -> IntegerLimits:  # noqa: A002
    """The limits of an integer dtype, or of that of an array. Raises ValueError for other dtypes."""
    one = np.iinfo(_dtype_of(type))
    return IntegerLimits(int(one.bits), int(one.max), int(one.min), one.dtype)


def _dtype_of(given: Any) -> Any:
    return given.dtype if isinstance(given, NamespaceArray | np.ndarray) else given


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is one of a kind, or of a tuple of kinds."""
    return bool(np.isdtype(dtype, kind))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype to which arrays, dtypes and Python numbers are promoted."""
    return np.result_type(
        *[one.dtype if isinstance(one, NamespaceArray) else elements_of(one) for one in arrays_and_dtypes]
    )


class NamespaceInfo:
    """What the namespace supports."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and data-dependent shapes are supported; as many dimensions as NumPy has."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device of new arrays."""
        return DEVICE

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of Python numbers and of indices."""
        check_device(device)
        names = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}
        return {kind: DTYPES[name] for kind, name in names.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """All dtypes, or those of a kind or of a tuple of kinds."""
        check_device(device)
        if kind is None:
            return dict(DTYPES)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        unknown = [one for one in kinds if one not in KINDS]
        if unknown:
            raise ValueError(f"kind: expected one of {', '.join(KINDS)}, got {unknown[0]!r}")
        return {name: DTYPES[name] for one in kinds for name in KINDS[one]}

    def devices(self) -> list[str]:
        """All devices."""
        return [DEVICE]


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  # a name of the standard
    """What the namespace supports: see the Array API standard."""
    return NamespaceInfo()


__array_api_version__ = API_VERSION
