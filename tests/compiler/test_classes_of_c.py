"""Objects of classes written in C have state that no attribute shows: only those of Python's are made in a trace.

CPython moves classes of its extension modules to the heap, from version to version, where those of Python are.
"""

import array
import collections
import datetime as dt
import decimal
import fractions
import functools
import io
import itertools
import random
import re
import threading
import types
from typing import Any, Self

import numpy as np
import pytest

from jitkernels.compiler.capture.pytree.unflatten import blank
from jitkernels.compiler.ir.builder import UnsupportedError


class Plain:
    pass


class WithNew(Plain):
    def __new__(cls, *_: Any) -> Self:
        raise AssertionError("called")


@pytest.mark.parametrize("kind", [Plain, WithNew, types.SimpleNamespace, fractions.Fraction])
def test_classes_of_python_are_made_without_their_new(kind: type) -> None:
    assert type(blank(kind)) is kind


@pytest.mark.parametrize("kind", [
    io.StringIO, io.BytesIO, io.TextIOWrapper, random.Random, array.array, collections.deque, collections.OrderedDict,
    collections.Counter, decimal.Decimal, functools.partial, re.Pattern, itertools.count, threading.local,
    dt.date, OSError, np.ndarray, np.float64, np.random.Generator,
])  # fmt: skip
def test_classes_of_c_are_refused(kind: type) -> None:
    with pytest.raises(UnsupportedError, match="which is a"):
        blank(kind)
