"""Objects of Python that compiled calls make: tuples, lists, dicts and others, by a recipe.

Each is in a variable of its own until it is part of another, so that all are let go of where memory is short.
"""

from collections.abc import Iterator

from jitkernels.graph.emit.call_text import CallText
from jitkernels.graph.emit.interface import Rebuilt, Recipe
from jitkernels.native.language.types import NUMBERS
from jitkernels.native.layout import Offset

OTHER, END, BEGIN = 0, 0, 1
"""The number of what is no constant of a choice; where a list that has grown says where it ends and begins."""
NEW = {"tuple": "PyTuple_New", "list": "PyList_New"}
OBJECTS = (
    "ptr @PyList_New(i64)", "ptr @PyDict_New()", "i32 @PyDict_SetItem(ptr, ptr, ptr)",
    "ptr @PyType_GenericAlloc(ptr, i64)", "i32 @PyObject_GenericSetAttr(ptr, ptr, ptr)",
    "ptr @PyArray_Scalar(ptr, ptr, ptr)",
)  # fmt: skip
"""What making them calls."""


class MadeObjects(CallText):
    """The part of the function that follows a recipe."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.places: list[str] = []
        self.given: list[str] = []
        self.owned: list[str] = []
        self._free: Iterator[str] = iter(())

    def prepare(self, recipe: Recipe) -> None:
        """Have variables for all objects, before anything can fail."""
        self.owned = [self.variable("ptr") for _ in range(_count(recipe))]
        for place in self.owned:
            self.line(f"  store ptr null, ptr {place}")
        self._free = iter(self.owned)

    def follow(self, rebuilt: Rebuilt, recipe: Recipe) -> None:
        """Give back what a recipe makes."""
        assert rebuilt.word is not None, "only arguments themselves need none"
        found = self._taken(self._made(recipe, rebuilt.word))
        for place in (*self.places, *self.owned):
            self.line(f"  call void @Py_DecRef(ptr {self.new(f'load ptr, ptr {place}')})")
        self.line(f"  ret ptr {found}")

    def number_of(self, like: str, dtype: str, memory: str) -> str:
        """A number of Python's or NumPy's that lies somewhere."""
        if like == "scalar":
            return self.new(
                f"call ptr @PyArray_Scalar(ptr {memory}, ptr {self.dtype_object(dtype)}, ptr null)"
            )
        if like == "float":
            return self.new(f"call ptr @PyFloat_FromDouble(double {self.load('double', memory, 0)})")
        if like == "bool":
            text = self.new(f"zext i8 {self.load('i8', memory, 0)} to i64")
            return self.new(f"call ptr @PyBool_FromLong(i64 {text})")
        return self.new(f"call ptr @PyLong_FromLong(i64 {self.load('i64', memory, 0)})")

    def memory_of(self, number: int) -> str:
        """Where a result lies."""
        at = self.new(f"getelementptr i64, ptr %frame, i64 {self.results[number].word}")
        return self.new(f"load ptr, ptr {at}")

    def _taken(self, place: str) -> str:
        """What is in a variable, which is its owner no more."""
        found = self.new(f"load ptr, ptr {place}")
        self.line(f"  store ptr null, ptr {place}")
        return found

    def _new(self, place: str, text: str) -> str:
        """A new object, in a variable."""
        made = self.new(f"call ptr @{text}")
        self.line(f"  store ptr {made}, ptr {place}")
        self.require(self.new(f"icmp ne ptr {made}, null"), "undo")
        return made

    def _again(self, place: str, found: str) -> None:
        """One more reference to an object, in a variable."""
        self.line(f"  call void @Py_IncRef(ptr {found})\n  store ptr {found}, ptr {place}")

    def _held(self, word: int) -> str:
        return self.load("ptr", "%context", 8 * word)

    def _made(self, recipe: Recipe, word: int, at: str = "") -> str:
        """The variable with what a recipe makes, in an element `at` some place of results; `word`: of its objects."""
        place = next(self._free)
        parts, value = recipe.parts, recipe.value
        match recipe.kind:
            case "held":
                self._again(place, self._held(word + int(value)))
            case "input":
                self._again(place, self.given[int(value)])
            case "output" if at:
                result = self.results[recipe.number]
                size = NUMBERS[result.dtype].size
                begin = self.new(f"mul i64 {at}, {size}")
                memory = self.new(f"getelementptr i8, ptr {self.memory_of(recipe.number)}, i64 {begin}")
                made = self.number_of(recipe.like, result.dtype, memory)
                self.line(f"  store ptr {made}, ptr {place}")
                self.require(self.new(f"icmp ne ptr {made}, null"), "undo")
            case "output":
                self._again(place, self.new(f"load ptr, ptr {self.places[recipe.number]}"))
            case "extent":
                self._new(place, f"PyLong_FromLong(i64 {self.here(value)})")
            case "tuple" | "list":
                made = self._new(place, f"{NEW[recipe.kind]}(i64 {len(parts)})")
                first = self.load("ptr", made, Offset.LIST_ITEMS) if recipe.kind == "list" and parts else made
                self._fill(first, 0 if recipe.kind == "list" else Offset.TUPLE_ITEMS, parts, word, at)
            case "named":
                made = self._new(
                    place, f"PyType_GenericAlloc(ptr {self._held(word + int(value))}, i64 {len(parts)})"
                )
                self._fill(made, Offset.TUPLE_ITEMS, parts, word, at)
            case "dict" | "object":
                self._by_names(place, recipe, word, at)
            case "choice":
                self._chosen(place, recipe, word, at)
            case _:
                self._listed(place, recipe, word)
        return place

    def _fill(self, base: str, offset: int, parts: tuple[Recipe, ...], word: int, at: str) -> None:
        for i, part in enumerate(parts):
            found = self._taken(self._made(part, word, at))
            to = self.new(f"getelementptr i8, ptr {base}, i64 {offset + 8 * i}")
            self.line(f"  store ptr {found}, ptr {to}")

    def _by_names(self, place: str, recipe: Recipe, word: int, at: str) -> None:
        """A dict, or an object whose attributes are as Python sets them that asks no class."""
        first = word + int(recipe.value)
        if recipe.kind == "dict":
            made, call = self._new(place, "PyDict_New()"), "PyDict_SetItem"
        else:
            made = self._new(place, f"PyType_GenericAlloc(ptr {self._held(first)}, i64 0)")
            first, call = first + 1, "PyObject_GenericSetAttr"
        for i, part in enumerate(recipe.parts):
            found = self.new(f"load ptr, ptr {self._made(part, word, at)}")
            done = self.new(f"call i32 @{call}(ptr {made}, ptr {self._held(first + i)}, ptr {found})")
            self.require(self.new(f"icmp eq i32 {done}, 0"), "undo")

    def _chosen(self, place: str, recipe: Recipe, word: int, at: str) -> None:
        """One of some constants, or something else."""
        memory = self.memory_of(recipe.number)
        if at:
            memory = self.new(f"getelementptr i64, ptr {memory}, i64 {at}")
        which = self.load("i64", memory, 0)
        constant, other, done = (self.label() for _ in range(3))
        is_other = self.new(f"icmp eq i64 {which}, {OTHER}")
        self.settle()
        if recipe.parts:
            self.line(f"  br i1 {is_other}, label %{other}, label %{constant}\n{other}:")
            found = self._taken(self._made(recipe.parts[0], word, at))
            self.settle()
            self.line(f"  store ptr {found}, ptr {place}\n  br label %{done}\n{constant}:")
        before = self.new(f"getelementptr ptr, ptr {self._held(word + int(recipe.value))}, i64 {which}")
        # Numbers of constants begin with one.
        self._again(place, self.load("ptr", before, Offset.TUPLE_ITEMS - 8))
        if recipe.parts:
            self.line(f"  br label %{done}\n{done}:")

    def _listed(self, place: str, recipe: Recipe, word: int) -> None:
        """A list of as many elements as is known now."""
        begin = "0"
        if recipe.kind == "grown":
            ends = self.memory_of(recipe.number)
            begin = self.load("i64", ends, 8 * BEGIN)
            count = self.new(f"sub i64 {self.load('i64', ends, 8 * END)}, {begin}")
        else:
            count = self.here(recipe.value)
        made = self._new(place, f"PyList_New(i64 {count})")
        items, counter = self.load("ptr", made, Offset.LIST_ITEMS), self.variable("i64")
        head, body, done = (self.label() for _ in range(3))
        self.line(f"  store i64 0, ptr {counter}\n  br label %{head}\n{head}:")
        i = self.new(f"load i64, ptr {counter}")
        self.line(f"  br i1 {self.new(f'icmp slt i64 {i}, {count}')}, label %{body}, label %{done}\n{body}:")
        found = self._taken(self._made(recipe.parts[0], word, self.new(f"add i64 {begin}, {i}")))
        to = i
        if recipe.kind == "grown" and recipe.value:
            to = self.new(f"sub i64 {self.new(f'sub i64 {count}, 1')}, {i}")
        self.line(f"  store ptr {found}, ptr {self.new(f'getelementptr ptr, ptr {items}, i64 {to}')}")
        self.line(f"  store i64 {self.new(f'add i64 {i}, 1')}, ptr {counter}")
        self.line(f"  br label %{head}\n{done}:")


def _count(recipe: Recipe) -> int:
    return 1 + sum(map(_count, recipe.parts))
