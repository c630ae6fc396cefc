"""Result objects of a compiled entry: builds tuples, lists, dicts and other Python objects from a recipe.

A variable owns each object until a container takes it over, so that the cleanup block can release all of them.
"""

from collections.abc import Iterator

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.dispatch.entry_builder import EntryBuilder
from jitkernels.compiler.ir.call_abi import Rebuilt, Recipe
from jitkernels.runtime.abi_layout import Offset

OTHER, END_SLOT, FIRST_SLOT = 0, 0, 1
"""The tag of a choice that is no constant; the slots of a grown list's end and begin."""
NEW = {"tuple": "PyTuple_New", "list": "PyList_New"}
OBJECTS = (
    "ptr @PyList_New(i64)", "ptr @PyDict_New()", "i32 @PyDict_SetItem(ptr, ptr, ptr)",
    "ptr @PyType_GenericAlloc(ptr, i64)", "i32 @PyObject_GenericSetAttr(ptr, ptr, ptr)",
    "ptr @PyArray_Scalar(ptr, ptr, ptr)",
)  # fmt: skip
"""C API functions that building objects calls."""


class ResultObjects(EntryBuilder):
    """The part of the entry that follows a recipe."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.result_slots: list[str] = []
        self.leaf_objects: list[str] = []
        self.object_slots: list[str] = []
        self._free: Iterator[str] = iter(())

    def prepare_recipe(self, recipe: Recipe) -> None:
        """Allocate and clear a variable for each object, before anything can fail."""
        self.object_slots = [self.variable("ptr") for _ in range(_count(recipe))]
        for place in self.object_slots:
            self.line(f"  store ptr null, ptr {place}")
        self._free = iter(self.object_slots)

    def return_recipe(self, rebuilt: Rebuilt, recipe: Recipe) -> None:
        """Return what a recipe builds."""
        assert rebuilt.word is not None, "a recipe has objects in the context"
        returned = self._take(self._build(recipe, rebuilt.word))
        for variable in (*self.result_slots, *self.object_slots):
            self.line(f"  call void @Py_DecRef(ptr {self.new(f'load ptr, ptr {variable}')})")
        self.line(f"  ret ptr {returned}")

    def number_of(self, like: str, dtype: str, memory: str) -> str:
        """A Python or NumPy number from the value at `memory`."""
        if like == "scalar":
            return self.new(f"call ptr @PyArray_Scalar(ptr {memory}, ptr {self.dtype_object(dtype)}, ptr null)")
        if like == "float":
            return self.new(f"call ptr @PyFloat_FromDouble(double {self.load('double', memory, 0)})")
        if like == "complex":
            re, im = self.load("double", memory, 0), self.load("double", memory, 8)
            return self.new(f"call ptr @PyComplex_FromDoubles(double {re}, double {im})")
        if like == "bool":
            text = self.new(f"zext i8 {self.load('i8', memory, 0)} to i64")
            return self.new(f"call ptr @PyBool_FromLong(i64 {text})")
        return self.new(f"call ptr @PyLong_FromLong(i64 {self.load('i64', memory, 0)})")

    def memory_of(self, number: int) -> str:
        """The address of a result's data."""
        at = self.new(f"getelementptr i64, ptr %frame, i64 {self.results[number].word}")
        return self.new(f"load ptr, ptr {at}")

    def _take(self, variable: str) -> str:
        """Move the object out of a variable, with its reference."""
        object_ = self.new(f"load ptr, ptr {variable}")
        self.line(f"  store ptr null, ptr {variable}")
        return object_

    def _new(self, variable: str, text: str) -> str:
        """Store a new object in a variable; branch to cleanup where it is null."""
        object_ = self.new(f"call ptr @{text}")
        self.line(f"  store ptr {object_}, ptr {variable}")
        self.require(self.new(f"icmp ne ptr {object_}, null"), "undo")
        return object_

    def _store_new_reference(self, variable: str, object_: str) -> None:
        self.line(f"  call void @Py_IncRef(ptr {object_})\n  store ptr {object_}, ptr {variable}")

    def _context_object(self, word: int) -> str:
        return self.load("ptr", "%context", 8 * word)

    def _build(self, recipe: Recipe, word: int, at: str = "") -> str:
        """The variable that owns what a recipe builds, from element `at` of the results; `word`: its first object."""
        variable = next(self._free)
        parts, value = recipe.parts, recipe.value
        match recipe.kind:
            case "held":
                self._store_new_reference(variable, self._context_object(word + int(value)))
            case "input":
                self._store_new_reference(variable, self.leaf_objects[int(value)])
            case "output" if at:
                result = self.results[recipe.number]
                size = NUMBERS[result.dtype].size
                begin = self.new(f"mul i64 {at}, {size}")
                memory = self.new(f"getelementptr i8, ptr {self.memory_of(recipe.number)}, i64 {begin}")
                created = self.number_of(recipe.like, result.dtype, memory)
                self.line(f"  store ptr {created}, ptr {variable}")
                self.require(self.new(f"icmp ne ptr {created}, null"), "undo")
            case "output":
                self._store_new_reference(variable, self.new(f"load ptr, ptr {self.result_slots[recipe.number]}"))
            case "extent":
                self._new(variable, f"PyLong_FromLong(i64 {self.here(value)})")
            case "tuple" | "list":
                created = self._new(variable, f"{NEW[recipe.kind]}(i64 {len(parts)})")
                first = self.load("ptr", created, Offset.LIST_ITEMS) if recipe.kind == "list" and parts else created
                self._fill(first, 0 if recipe.kind == "list" else Offset.TUPLE_ITEMS, parts, word, at)
            case "named":
                created = self._new(
                    variable, f"PyType_GenericAlloc(ptr {self._context_object(word + int(value))}, i64 {len(parts)})"
                )
                self._fill(created, Offset.TUPLE_ITEMS, parts, word, at)
            case "dict" | "object":
                self._build_named(variable, recipe, word, at)
            case "choice":
                self._build_choice(variable, recipe, word, at)
            case _:
                self._build_list(variable, recipe, word)
        return variable

    def _fill(self, base: str, offset: int, parts: tuple[Recipe, ...], word: int, at: str) -> None:
        for i, part in enumerate(parts):
            item = self._take(self._build(part, word, at))
            address = self.new(f"getelementptr i8, ptr {base}, i64 {offset + 8 * i}")
            self.line(f"  store ptr {item}, ptr {address}")

    def _build_named(self, place: str, recipe: Recipe, word: int, at: str) -> None:
        """A dict, or an object whose attributes are set with ``object.__setattr__``."""
        first = word + int(recipe.value)
        if recipe.kind == "dict":
            made, call = self._new(place, "PyDict_New()"), "PyDict_SetItem"
        else:
            made = self._new(place, f"PyType_GenericAlloc(ptr {self._context_object(first)}, i64 0)")
            first, call = first + 1, "PyObject_GenericSetAttr"
        for i, part in enumerate(recipe.parts):
            found = self.new(f"load ptr, ptr {self._build(part, word, at)}")
            done = self.new(f"call i32 @{call}(ptr {made}, ptr {self._context_object(first + i)}, ptr {found})")
            self.require(self.new(f"icmp eq i32 {done}, 0"), "undo")

    def _build_choice(self, variable: str, recipe: Recipe, word: int, at: str) -> None:
        """One of several constants by its tag, or another object."""
        memory = self.memory_of(recipe.number)
        if at:
            memory = self.new(f"getelementptr i64, ptr {memory}, i64 {at}")
        tag = self.load("i64", memory, 0)
        constant, other, done = (self.label() for _ in range(3))
        is_other = self.new(f"icmp eq i64 {tag}, {OTHER}")
        self.settle()
        if recipe.parts:
            self.line(f"  br i1 {is_other}, label %{other}, label %{constant}\n{other}:")
            value = self._take(self._build(recipe.parts[0], word, at))
            self.settle()
            self.line(f"  store ptr {value}, ptr {variable}\n  br label %{done}\n{constant}:")
        before = self.new(f"getelementptr ptr, ptr {self._context_object(word + int(recipe.value))}, i64 {tag}")
        # Tags of constants start at 1.
        self._store_new_reference(variable, self.load("ptr", before, Offset.TUPLE_ITEMS - 8))
        if recipe.parts:
            self.line(f"  br label %{done}\n{done}:")

    def _build_list(self, place: str, recipe: Recipe, word: int) -> None:
        """A list whose length is known at run time only."""
        begin = "0"
        if recipe.kind == "grown":
            ends = self.memory_of(recipe.number)
            begin = self.load("i64", ends, 8 * FIRST_SLOT)
            count = self.new(f"sub i64 {self.load('i64', ends, 8 * END_SLOT)}, {begin}")
        else:
            count = self.here(recipe.value)
        made = self._new(place, f"PyList_New(i64 {count})")
        items, counter = self.load("ptr", made, Offset.LIST_ITEMS), self.variable("i64")
        head, body, done = (self.label() for _ in range(3))
        self.line(f"  store i64 0, ptr {counter}\n  br label %{head}\n{head}:")
        i = self.new(f"load i64, ptr {counter}")
        self.line(f"  br i1 {self.new(f'icmp slt i64 {i}, {count}')}, label %{body}, label %{done}\n{body}:")
        found = self._take(self._build(recipe.parts[0], word, self.new(f"add i64 {begin}, {i}")))
        to = i
        if recipe.kind == "grown" and recipe.value:
            to = self.new(f"sub i64 {self.new(f'sub i64 {count}, 1')}, {i}")
        self.line(f"  store ptr {found}, ptr {self.new(f'getelementptr ptr, ptr {items}, i64 {to}')}")
        self.line(f"  store i64 {self.new(f'add i64 {i}, 1')}, ptr {counter}")
        self.line(f"  br label %{head}\n{done}:")


def _count(recipe: Recipe) -> int:
    return 1 + sum(map(_count, recipe.parts))
