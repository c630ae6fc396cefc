"""The array object of `jk.xp`: NumPy's array, or an expression that is evaluated when its elements are needed.

Arrays are values: an assignment to elements, or an operator such as ``+=``, changes no other array. Memory is shared
until one of the sharing arrays is written to, which copies it first.
"""

from typing import Any, ClassVar
from weakref import ref

import numpy as np

from jitkernels.errors import ArgumentError, shown
from jitkernels.xp.expression import LazyNode

DEVICE = "cpu"
MIN_LAZY_ELEMENTS = 1 << 15
"""Elements from which on functions are recorded: an expression of one function takes 7 us to record and to evaluate,
NumPy's additions of so many elements take about as long. (Zen 4, `bench array_api`.)
"""
API_VERSION = "2024.12"
API_VERSIONS = frozenset({"2021.12", "2022.12", "2023.12", API_VERSION})


class NamespaceArray:
    """An array of the Array API standard. Functions of `jk.xp` make these; NumPy, and others by DLPack, read them."""

    __slots__ = ("__weakref__", "_expression", "_is_shared", "_value")
    __array_priority__ = 500.0
    __hash__ = None  # type: ignore[assignment]
    _namespace: ClassVar[Any] = None

    def __init__(self, value: Any, is_shared: bool = True) -> None:  # keywords take longer
        """`is_shared`: whether others may have the memory of `value`, so that it is copied before it is written to."""
        self._value: Any = value
        self._expression: LazyNode | None = None
        self._is_shared = is_shared

    @classmethod
    def _of_expression(cls, expression: LazyNode) -> "NamespaceArray":
        array = cls(None)
        array._expression = expression
        expression.owner = ref(array)
        return array

    @property
    def is_small(self) -> bool:
        """Whether the elements are in memory, and so few that functions of them run at once."""
        if self._expression is not None and self._expression.result is not None:
            self._elements()
        return self._value is not None and self._value.size < MIN_LAZY_ELEMENTS

    @property
    def is_evaluated(self) -> bool:
        """Whether the elements are in memory."""
        return self._value is not None or self._operand().result is not None

    def _operand(self) -> Any:
        """The expression of an array that has one, or its elements."""
        return self._value if self._expression is None else self._expression

    def _elements(self) -> Any:
        """The elements as an array of NumPy, which must not be written to."""
        if self._expression is not None:
            self._value, self._expression = self._expression.evaluate(), None
        return self._value

    def _writable(self) -> Any:
        """The elements, which no other array shares."""
        elements = self._elements()
        if self._is_shared or not elements.flags.writeable:
            self._value, self._is_shared = elements.copy(), False
        return self._value

    def _replace(self, other: "NamespaceArray") -> "NamespaceArray":
        """Take the value of another array of the same shape and dtype: what an operator such as ``+=`` does."""
        if other.shape != self.shape:
            raise ArgumentError(f"expected a result of shape {self.shape}, got one of shape {other.shape}")
        if other.dtype != self.dtype:
            raise TypeError(f"cannot assign a result of dtype {other.dtype} to an array of dtype {self.dtype}")
        self._value, self._expression, self._is_shared = other._value, other._expression, True
        if self._expression is not None:
            self._expression.owner = ref(self)
        return self

    @property
    def dtype(self) -> Any:
        return self._operand().dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._operand().shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def device(self) -> str:
        return DEVICE

    @property
    def T(self) -> "NamespaceArray":  # noqa: N802  # a name of the standard
        if self.ndim != 2:
            raise ArgumentError(f"T: expected 2 dimensions, got {self.ndim}")
        return view(self, self._elements().T)

    @property
    def mT(self) -> "NamespaceArray":  # noqa: N802
        if self.ndim < 2:
            raise ArgumentError(f"mT: expected at least 2 dimensions, got {self.ndim}")
        return view(self, self._elements().mT)

    def is_memory_of(self, elements: Any) -> bool:
        """Whether the elements are those of an array of NumPy, and nothing was assigned to them."""
        return self._value is elements

    def to_device(self, device: Any, /, *, stream: Any = None) -> "NamespaceArray":
        """The array itself: there is one device."""
        check_device(device)
        if stream is not None:
            raise ArgumentError(f"stream: expected None, got {shown(stream)}")
        return self

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        if api_version is not None and api_version not in API_VERSIONS:
            raise ArgumentError(f"api_version: expected {API_VERSION} or an earlier one, got {shown(api_version)}")
        return self._namespace

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._is_shared = True
        return np.array(self._elements(), dtype, copy=copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        self._is_shared = True
        return self._elements().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._elements().__dlpack_device__()  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"expected an array of integers as an index, got one of dtype {self.dtype}")
        return int(self._scalar("index"))

    def _scalar(self, wanted: str) -> Any:
        if self.ndim:
            raise TypeError(f"{wanted}: expected an array of 0 dimensions, got {self.ndim}")
        return self._elements()[()]

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of an array of 0 dimensions")
        return self.shape[0]

    def __getitem__(self, key: Any, /) -> "NamespaceArray":
        return view(self, self._elements()[plain_key(key)])

    def __setitem__(self, key: Any, value: Any, /) -> None:
        kept = value._elements() if type(value) is NamespaceArray else value
        given = np.asarray(kept)
        if type(value) is NamespaceArray and not np.can_cast(given.dtype, self.dtype, "same_kind"):
            raise TypeError(f"cannot assign elements of dtype {given.dtype} to an array of dtype {self.dtype}")
        self._writable()[plain_key(key)] = kept

    def __repr__(self) -> str:
        return f"xp.{np.array_repr(self._elements())}".replace("\n", "\n   ")

    def __reduce__(self) -> Any:
        return NamespaceArray, (self._elements(),)

    def __copy__(self) -> "NamespaceArray":
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: Any) -> "NamespaceArray":
        return NamespaceArray(self._elements().copy(), False)


def view(source: NamespaceArray, elements: Any) -> NamespaceArray:
    """An array of elements of another one."""
    if type(elements) is not np.ndarray:
        return NamespaceArray(np.asarray(elements), False)
    source._is_shared = True
    return NamespaceArray(elements)


def plain_key(key: Any) -> Any:
    """An index with NumPy arrays in place of ours."""
    if type(key) is NamespaceArray:
        return key._elements()
    if type(key) is tuple:
        return tuple([one._elements() if type(one) is NamespaceArray else one for one in key])
    return key


def check_device(device: Any) -> None:
    """Raise ArgumentError for any device but the CPU."""
    if device is not None and device != DEVICE:
        raise ArgumentError(f"device: expected {DEVICE!r}, got {shown(device)}")
