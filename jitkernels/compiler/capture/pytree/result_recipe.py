"""Result recipes: how a compiled entry builds tuples, lists, dicts and objects without Python."""

import dataclasses
import operator
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.carried_trees import ContainerForm, Form, LeafForm
from jitkernels.compiler.capture.control_flow.dynamic_list import DeferredResult, ListSnapshot
from jitkernels.compiler.capture.control_flow.growing_list import GrowableList
from jitkernels.compiler.capture.control_flow.tagged_union import Alternatives, TaggedUnion
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.ir import pytree, symbolic_dims
from jitkernels.compiler.ir.call_abi import NUMBERS, Recipe

MAX_RECIPE_PARTS = 100
"""Most parts of a recipe: each adds instructions to the entry."""
KEYS = (str, int, bool, type(None))
"""Types of keys that any equal key may replace."""


class WrittenRecipe(NamedTuple):
    """A recipe, the objects it refers to, and the returned type of outputs: "array", "scalar" or a Python type."""

    recipe: Recipe
    held: tuple[Any, ...]
    kinds: Mapping[int, str]


def concrete_key(key: Any) -> Any:
    """The Python key for a traced key, whose value the trace knows."""
    if type(key) is SymInt:
        return int(key)
    if type(key) is Traced:
        return key.python(key._value()) if key.is_weak else key._value()
    return tuple(map(concrete_key, key)) if type(key) is tuple else key


def kind_of_output(value: Traced) -> str | None:
    """How an output is returned: "array", "scalar" or the name of a Python type; None for another dtype than its."""
    kind: str = value.python.__name__ if value.is_weak else "scalar" if value.is_scalar else "array"
    return None if value.is_weak and NUMBERS.get(kind) != value.node.dtype else kind


class _NoRecipeError(Exception):
    """The result has no recipe; Python builds it."""


class _RecipeWriter:
    """`outputs`: their indices by identity of array or storage; `finished`: the elements of grown lists."""

    def __init__(
        self,
        arguments: Mapping[int, int],
        outputs: Mapping[int, int],
        finished: Mapping[int, ListSnapshot],
        constants: Any,
    ) -> None:
        self.arguments, self.outputs, self.finished, self.constants = arguments, outputs, finished, constants
        self.held: list[Any] = []
        self.kinds: dict[int, str] = {}
        self._seen: set[int] = set()
        self._parts = 0

    def of(self, value: Any) -> Recipe:
        """The recipe of a part of the result."""
        self._parts += 1
        if self._parts > MAX_RECIPE_PARTS:
            raise _NoRecipeError
        if type(value) is Traced:
            return self._array(value)
        if type(value) is SymInt:
            return self._whole(value)
        if value is None or isinstance(value, self.constants):
            return Recipe("held", self._add_held(value))
        if type(value) is TaggedUnion:
            other = () if value.alternatives.other is None else (self.of(value.other),)
            return self._choice(value.alternatives, self._number_of(value.tag), other)
        if id(value) in self._seen:
            raise _NoRecipeError  # the same object occurs twice
        self._seen.add(id(value))
        if type(value) is ListSnapshot or (type(value) is GrowableList and value.dynamic is not None):
            return self._grown(value if type(value) is ListSnapshot else self.finished[id(value)])
        if type(value) is DeferredResult:
            return self._later(value)
        if type(value) is GrowableList and value.rows is not None:
            return self._rows(value)
        if type(value) in (tuple, list, GrowableList):
            return Recipe("tuple" if type(value) is tuple else "list", 0, tuple(map(self.of, [*value])))
        keys = [*map(concrete_key, value)] if type(value) is dict else []
        if type(value) is dict and all(type(key) in KEYS for key in keys):
            return Recipe("dict", self._add_held(*keys), tuple(map(self.of, value.values())))
        return self._object(value)

    def _whole(self, value: SymInt) -> Recipe:
        """An int; computed ones may exceed 64 bits and have no recipe."""
        if value.leaf is not None:
            return Recipe("input", value.leaf)
        if type(value.extent) is int:
            return Recipe("held", self._add_held(value.extent))
        if symbolic_dims.bare(value.extent) is None:
            raise _NoRecipeError
        return Recipe("extent", value.extent)

    def _add_held(self, *objects: Any) -> int:
        self.held += objects
        return len(self.held) - len(objects)

    def _output(self, of: Any, kind: str) -> int:
        number = self.outputs[id(of)]
        if self.kinds.setdefault(number, kind) != kind:
            raise _NoRecipeError
        return number

    def _array(self, value: Traced) -> Recipe:
        leaf = self.arguments.get(id(value))
        if leaf is not None:
            return Recipe("input", leaf)
        view, storage = value.view, value.view.storage
        if storage.leaf is not None:
            raise _NoRecipeError
        of: Any = storage if view.parent is None else value
        if id(of) not in self.outputs:
            raise _NoRecipeError  # a view of another result
        kind = kind_of_output(value)
        if kind is None:
            raise _NoRecipeError
        return Recipe("output", number=self._output(of, kind))

    def _number_of(self, tag: Any) -> int:
        result = self.of(tag)
        if result.kind != "output" or self.kinds[result.number] != "int":
            raise _NoRecipeError
        return result.number

    def _choice(self, alternatives: Alternatives, number: int, other: tuple[Recipe, ...]) -> Recipe:
        return Recipe("choice", self._add_held(alternatives.constants), other, number)

    def _rows(self, value: GrowableList) -> Recipe:
        assert value.rows is not None, "the caller checked it"
        array, kind = value.rows.array, value.rows.kind
        if kind is None or array.ndim != 1:
            raise _NoRecipeError
        number = self._output(array, "array")
        return Recipe("rows", array.extents[0], (self._element(kind, number, array),))

    def _later(self, value: DeferredResult) -> Recipe:
        """A reversed list."""
        result = self.of(value.operand)
        if result.kind == "grown" and isinstance(value.function, type):
            return result
        if result.kind == "grown" and isinstance(value.function, operator.itemgetter):
            return dataclasses.replace(result, value=1 - int(result.value))
        raise _NoRecipeError

    def _element(self, kind: Any, number: int, of: Traced) -> Recipe:
        like = kind.__name__ if isinstance(kind, type) else "scalar"
        if like != "scalar" and NUMBERS.get(like) != of.node.dtype:
            raise _NoRecipeError
        return Recipe("output", number=number, like=like)

    def _grown(self, value: ListSnapshot) -> Recipe:
        columns = zip(value.columns, value.elements.kinds, strict=True)

        def element(form: Form) -> Recipe:
            if isinstance(form, ContainerForm):
                if form.kind is not tuple:
                    raise _NoRecipeError
                return Recipe("tuple", 0, tuple(map(element, form.parts)))
            column, kind = next(columns)
            number = self._output(column, "array")
            if isinstance(form, Alternatives):
                other = () if form.other is None else (element(form.other),)
                return self._choice(form, number, other)
            if not isinstance(form, LeafForm):
                raise _NoRecipeError
            return self._element(kind, number, column)

        result = element(value.elements.form)
        return Recipe("grown", int(value.is_reversed), (result,), self._output(value.ends, "array"))

    def _object(self, value: Any) -> Recipe:
        """A named tuple or a dataclass, if its construction only sets fields."""
        kind = type(value)
        new: Any = kind.__new__
        if pytree.is_named_tuple(value):
            own = isinstance(new, types.FunctionType) and new.__globals__.get("__name__", "").startswith("namedtuple_")
            if not own or kind.__init__ is not object.__init__:
                raise _NoRecipeError
            return Recipe("named", self._add_held(kind), tuple(map(self.of, [*value])))
        if not pytree.is_dataclass(value) or new is not object.__new__:
            raise _NoRecipeError
        names = pytree.attribute_names(value)
        return Recipe("object", self._add_held(kind, *names), tuple(self.of(getattr(value, name)) for name in names))


def write_recipe(
    value: Any,
    arguments: Mapping[int, int],
    outputs: Mapping[int, int],
    finished: Mapping[int, ListSnapshot],
    constants: tuple[type, ...],
) -> WrittenRecipe | None:
    """The recipe of a result; None where Python builds it."""
    writer = _RecipeWriter(arguments, outputs, finished, constants)
    try:
        return WrittenRecipe(writer.of(value), tuple(writer.held), writer.kinds)
    except _NoRecipeError:
        return None
