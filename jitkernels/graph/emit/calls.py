"""The function between Python and a segment: ``ptr @call(ptr context, ptr objects, ptr out)``.

It looks whether the arguments are what the code was made for, reads extents and strides from them, makes the results or
takes those given as ``out``, lends the memory between nests, calls the segment, and returns the result. A null pointer
means that the arguments are of another kind (nothing has happened then), or that an exception is set.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jitkernels.graph import extents
from jitkernels.graph.emit import objects
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.extents import Extent, Guard, Number
from jitkernels.graph.short import MANY, MOST
from jitkernels.native.language.lanes import Library
from jitkernels.native.layout import ALIGNED, CONTIGUOUS, WRITEABLE, Offset

LONG = 400_000
"""Additions from which on other Python threads may run meanwhile: about 20 us."""


@dataclass(frozen=True)
class Argument:
    """An array that is given: its word in the frame, dtype, bytes of an element, shape, strides in elements.

    `contiguous`: it lies without gaps. `may_be_out`: a result may be the very same memory. `source`: the step that gives
    it, or, from 0 down by -1, which of the objects in the context. `number`: it is no array but a number of this type.
    """

    word: int
    dtype: str
    size: int
    shape: tuple[Number, ...]
    strides: tuple[Number, ...]
    contiguous: bool
    may_be_out: bool
    source: int = 0
    number: str = ""
    is_written: bool = False


@dataclass(frozen=True)
class Result:
    """An array that is given back: `fortran`: it lies in Fortran order; `argument`: it is an argument itself, or -1."""

    word: int
    dtype: str
    size: int
    shape: tuple[Number, ...]
    fortran: bool = False


@dataclass(frozen=True)
class Kept:
    """An array between nests."""

    word: int
    size: int
    shape: tuple[Number, ...]


@dataclass(frozen=True)
class Whole:
    """A symbol that is the value of an argument, or that with its sign changed. `input`: the number of the argument."""

    symbol: str
    input: int
    negated: bool


@dataclass(frozen=True)
class Bound:
    """What an argument that is a number has to be: ``truth == (argument <operation> bound)``; ``is`` compares bits."""

    input: int
    operation: str
    bound: float | int
    truth: bool


@dataclass(frozen=True)
class Reach:
    """How arguments are reached, and what is required of those that are numbers."""

    steps: tuple[objects.Step, ...]
    wholes: tuple[Whole, ...] = ()
    bounds: tuple[Bound, ...] = ()


@dataclass
class Caller:
    """Writes the function."""

    arguments: Sequence[Argument]
    results: Sequence[Result]
    kept: Sequence[Kept]
    guards: Sequence[Guard]
    symbols: Mapping[str, int]
    words: int
    work: Number
    is_tuple: bool
    reach: Reach
    library: Library = field(default_factory=Library)

    def text(self) -> str:
        """LLVM IR of the function, and of what it declares."""
        self.function = Function(self.library, {})
        self.block = self.function.block
        self.known: set[str] = set()
        self.dtypes: set[str] = set()
        self.types: set[str] = set()
        self.reached = objects.reached(self, self.reach.steps)
        self.given = [self._object(argument) for argument in self.arguments]
        self.numbers = [
            self._number(argument, found) if argument.number else ""
            for argument, found in zip(self.arguments, self.given, strict=True)
        ]
        for whole in self.reach.wholes:
            self._whole(whole)
        for bound in self.reach.bounds:
            self._bound(bound)
        for argument, found in zip(self.arguments, self.given, strict=True):
            if not argument.number:
                self._argument(argument, found)
        for guard in self.guards:
            self._guard(guard)
        self._written_apart()
        outs = self._outs()
        self._lent()
        self._run()
        self._given(outs)
        body = "\n".join([*self.function.memory, *self.block.lines])
        named = [
            *(f"jk_dtype_{name}" for name in sorted(self.dtypes)),
            *(f"jk_type_{name}" for name in sorted(self.types)),
        ]
        lines = [f"declare {text}" for text in (*DECLARED, *objects.DECLARED)] + [
            f"@{name} = external global i8" for name in named
        ]
        declared = "\n".join(lines)
        return (
            f"{declared}\n@jk_ndarray = external global i8\n@jk_tuple = external global i8\n@jk_none = external global i8\n"
            f"{objects.TEXT if self.reach.steps else ''}"
            f"define ptr @entry(ptr %context, ptr %objects, ptr %out) nounwind {{\n"
            f"  %frame = alloca [{self.words} x i64], align 64\n{body}\n{self._undone()}\nno:\n  ret ptr null\n}}\n"
            '!9 = !{!"branch_weights", i32 1000, i32 1}\n'
        )

    def new(self, expression: str) -> str:
        return self.function.new(self.block, expression)

    def load(self, kind: str, base: str, offset: int) -> str:
        at = self.new(f"getelementptr i8, ptr {base}, i64 {int(offset)}") if offset else base
        return self.new(f"load {kind}, ptr {at}")

    def _dtype(self, name: str) -> str:
        """The dtype object, which the loader knows by this name."""
        self.dtypes.add(name)
        return f"@jk_dtype_{name}"

    def require(self, condition: str, otherwise: str = "no") -> None:
        """Go on if a condition holds; ``undo`` gives back what was made or taken."""
        label = self.function.label()
        self.block.lines += [f"  br i1 {condition}, label %{label}, label %{otherwise}, !prof !9", f"{label}:"]

    def _undone(self) -> str:
        """What becomes of results that were made, or of those given, where memory is short."""
        lines = ["undo:"]
        if self.results:
            lines += ["  %undo.given = icmp ne ptr %out, null", "  br i1 %undo.given, label %undo.out, label %undo.made"]
            lines += ["undo.out:", "  call void @Py_DecRef(ptr %out)", "  br label %no", "undo.made:"]
        for number, place in enumerate(self.places):
            lines += [
                f"  %undo.{number} = load ptr, ptr {place}",
                f"  call void @Py_DecRef(ptr %undo.{number})",
            ]
        return "\n".join([*lines, "  br label %no"])

    def keep(self, word: int, kind: str, value: str) -> None:
        at = self.new(f"getelementptr i64, ptr %frame, i64 {word}")
        self.block.lines.append(f"  store {kind} {value}, ptr {at}")

    def extent(self, extent: Number) -> str:
        """An extent of symbols that are known by now."""
        return self.function.extent(extent)

    def _array(self, array: str, dtype: str, dimensions: int, flags: int) -> None:
        """Require an array of a dtype, so many dimensions and some flags."""
        self.require(self.new(f"icmp eq ptr {self.load('ptr', array, Offset.TYPE)}, @jk_ndarray"))
        self.require(
            self.new(f"icmp eq ptr {self.load('ptr', array, Offset.ARRAY_DTYPE)}, {self._dtype(dtype)}")
        )
        self.require(
            self.new(f"icmp eq i32 {self.load('i32', array, Offset.ARRAY_DIMENSIONS)}, {dimensions}")
        )
        masked = self.new(f"and i32 {self.load('i32', array, Offset.ARRAY_FLAGS)}, {flags}")
        self.require(self.new(f"icmp eq i32 {masked}, {flags}"))

    def line(self, text: str) -> None:
        self.block.lines.append(text)

    def variable(self, kind: str) -> str:
        return self.function.variable(kind)

    def _object(self, argument: Argument) -> str:
        if argument.source < 0:
            return self.load("ptr", "%context", 8 * ~argument.source)
        return self.reached[argument.source]

    def _number(self, argument: Argument, found: str) -> str:
        """Require a number of a type, and have its address in the frame; the address."""
        self.types.add(argument.number)
        kind = self.load("ptr", found, Offset.TYPE)
        self.require(self.new(f"icmp eq ptr {kind}, @jk_type_{argument.number}"))
        if argument.number == "int":
            place = self.variable("i64")
            self.require(self.new(f"call i1 @jk_whole(ptr {found}, ptr {place})"))
        else:
            place = self.new(f"getelementptr i8, ptr {found}, i64 {int(Offset.FLOAT_VALUE)}")
        self.keep(argument.word, "ptr", place)
        return place

    def _whole(self, whole: Whole) -> None:
        value = self.new(f"load i64, ptr {self.numbers[whole.input]}")
        if whole.negated:
            value = self.new(f"sub i64 0, {value}")
        self.known.add(whole.symbol)
        self.block.known["atom", whole.symbol] = value
        if whole.symbol in self.symbols:
            self.keep(self.symbols[whole.symbol], "i64", value)

    def _bound(self, bound: Bound) -> None:
        place = self.numbers[bound.input]
        if self.arguments[bound.input].number == "int" or bound.operation == "is":
            sign = {"<": "slt", "<=": "sle"}.get(bound.operation, "eq")
            number = bound.bound if isinstance(bound.bound, int) else struct.unpack("<q", struct.pack("<d", bound.bound))[0]
            text = f"icmp {sign} i64 {self.new(f'load i64, ptr {place}')}, {number}"
        else:
            sign = {"<": "olt", "<=": "ole"}.get(bound.operation, "oeq")
            bits = struct.pack(">d", float(bound.bound)).hex().upper()
            text = f"fcmp {sign} double {self.new(f'load double, ptr {place}')}, 0x{bits}"
        holds = self.new(text)
        self.require(holds if bound.truth else self.new(f"xor i1 {holds}, true"))

    def _argument(self, argument: Argument, array: str) -> None:
        flags = ALIGNED | (CONTIGUOUS if argument.contiguous else 0) | (WRITEABLE if argument.is_written else 0)
        self._array(array, argument.dtype, len(argument.shape), flags)
        shape = self.load("ptr", array, Offset.ARRAY_EXTENTS) if argument.shape else ""
        for i, extent in enumerate(argument.shape):
            self._symbol(extent, self.load("i64", shape, 8 * i), least=2)
        if len(argument.shape) > 1 and isinstance(argument.shape[-1], Extent):
            # Large arrays whose last extent is short have code of their own.
            long = self.new(f"icmp sgt i64 {self.extent(argument.shape[-1])}, {MOST}")
            few = self.new(f"icmp slt i64 {self.extent(extents.product(argument.shape))}, {MANY}")
            self.require(self.new(f"or i1 {long}, {few}"))
        if not argument.contiguous:
            strides = self.load("ptr", array, Offset.ARRAY_STRIDES)
            for i, stride in enumerate(argument.strides):
                found = self.load("i64", strides, 8 * i)
                if not isinstance(stride, Extent):
                    self.require(self.new(f"icmp eq i64 {found}, {int(stride) * argument.size}"))
                    continue
                rest = self.new(f"and i64 {found}, {argument.size - 1}")
                self.require(self.new(f"icmp eq i64 {rest}, 0"))
                self._symbol(stride, self.new(f"sdiv exact i64 {found}, {argument.size}"))
        self.keep(argument.word, "ptr", self.load("ptr", array, Offset.ARRAY_DATA))

    def _symbol(self, extent: Number, found: str, least: int | None = None) -> None:
        """An extent that was read: a number, a symbol for the first time, or one that is known."""
        name = _bare(extent)
        if name is None or name in self.known:
            self.require(self.new(f"icmp eq i64 {found}, {self.extent(extent)}"))
            return
        self.known.add(name)
        self.block.known["atom", name] = found
        if least is not None:
            self.require(self.new(f"icmp sge i64 {found}, {least}"))
        if name in self.symbols:
            self.keep(self.symbols[name], "i64", found)

    def _guard(self, guard: Guard) -> None:
        sign = {"==": "eq", "!=": "ne", ">": "sgt", ">=": "sge"}[guard.sign]
        self.require(self.new(f"icmp {sign} i64 {self.extent(guard.extent)}, 0"))

    def _written_apart(self) -> None:
        """Require that what is written overlaps no other argument."""
        arrays = [one for one in self.arguments if not one.number]
        for target in arrays:
            for other in arrays if target.is_written else ():
                if other is target or (other.is_written and other.word < target.word):
                    continue
                data, at = (
                    self.new(f"load i64, ptr {self.new(f'getelementptr i64, ptr %frame, i64 {one.word}')}")
                    for one in (target, other)
                )
                size = self.extent(extents.product(target.shape) * target.size)
                low, span = at, self.extent(extents.product(other.shape) * other.size)
                if not other.contiguous:
                    low, span = self._span(at, other)
                ahead, back = self.new(f"sub i64 {low}, {data}"), self.new(f"sub i64 {data}, {low}")
                self.require(self.new(f"icmp uge i64 {ahead}, {size}"))
                self.require(self.new(f"icmp uge i64 {back}, {span}"))

    def _outs(self) -> str:
        """Whether results are given; they are looked at before anything is done, and are apart from all arguments."""
        if not self.results or (self.is_tuple and not all(result.shape for result in self.results)):
            self.require(self.new("icmp eq ptr %out, null"))
        given = self.new("icmp ne ptr %out, null")
        check, make, go = (self.function.label() for _ in range(3))
        places = [self.function.variable("ptr") for _ in self.results]
        self.places = places
        self.block.lines += [f"  store ptr null, ptr {place}" for place in places]
        self.block.lines += [f"  br i1 {given}, label %{check}, label %{make}", f"{check}:"]
        # Extents are computed in front of the branch, where both sides see them.
        block, self.block.lines = self.block, self.block.lines
        for number, (result, place) in enumerate(zip(self.results, places, strict=True)):
            array = "%out" if not self.is_tuple else self._item(number)
            order = 0x2 if result.fortran else CONTIGUOUS
            self._array(array, result.dtype, len(result.shape), ALIGNED | WRITEABLE | order)
            shape = self.load("ptr", array, Offset.ARRAY_EXTENTS) if result.shape else ""
            for i, extent in enumerate(result.shape):
                found = self.load("i64", shape, 8 * i)
                self.require(self.new(f"icmp eq i64 {found}, {self._here(extent)}"))
            self._apart(array, result)
            data = self.load("ptr", array, Offset.ARRAY_DATA)
            self.keep(result.word, "ptr", data)
            block.lines.append(f"  store ptr {array}, ptr {place}")
        if self.is_tuple and len(self.results) > 1:
            self._all_apart()
        if self.results:
            block.lines.append("  call void @Py_IncRef(ptr %out)")
        block.lines += [f"  br label %{go}", f"{make}:"]
        for result, place in zip(self.results, places, strict=True):
            array = self._empty(result)
            self.keep(result.word, "ptr", self.load("ptr", array, Offset.ARRAY_DATA))
            block.lines.append(f"  store ptr {array}, ptr {place}")
        block.lines += [f"  br label %{go}", f"{go}:"]
        return given

    def _here(self, extent: Number) -> str:
        """An extent computed here alone: what is known of it in front of a branch holds behind it, not the other way."""
        known = dict(self.block.known)
        found = self.function.extent(extent)
        self.block.known = known
        return found

    def _item(self, number: int) -> str:
        if number == 0:
            self.require(self.new(f"icmp eq ptr {self.load('ptr', '%out', Offset.TYPE)}, @jk_tuple"))
            size = self.load("i64", "%out", Offset.TUPLE_SIZE)
            self.require(self.new(f"icmp eq i64 {size}, {len(self.results)}"))
        return self.load("ptr", "%out", Offset.TUPLE_ITEMS + 8 * number)

    def _apart(self, array: str, result: Result) -> None:
        """Require that a result overlaps no argument, unless it may be that very one."""
        data = self.load("i64", array, Offset.ARRAY_DATA)
        size = self._here(extents.product(result.shape) * result.size)
        for argument in self.arguments:
            if argument.number:
                continue
            at = self.new(f"getelementptr i64, ptr %frame, i64 {argument.word}")
            other = self.new(f"load i64, ptr {at}")
            low, span = other, self._here(extents.product(argument.shape) * argument.size)
            if not argument.contiguous:
                low, span = self._span(other, argument)
            ahead, back = self.new(f"sub i64 {low}, {data}"), self.new(f"sub i64 {data}, {low}")
            after, before = (
                self.new(f"icmp uge i64 {ahead}, {size}"),
                self.new(f"icmp uge i64 {back}, {span}"),
            )
            fine = self.new(f"and i1 {after}, {before}")
            if argument.may_be_out and argument.size == result.size:
                fine = self.new(f"or i1 {fine}, {self.new(f'icmp eq i64 {ahead}, 0')}")
            self.require(fine)

    def _span(self, data: str, argument: Argument) -> tuple[str, str]:
        """The lowest address of an array with gaps, and how many bytes it spans."""
        low, high = data, data
        for extent, stride in zip(argument.shape, argument.strides, strict=True):
            reach = self._here((extent - 1) * stride * argument.size)
            negative = self.new(f"icmp slt i64 {reach}, 0")
            lower, upper = self.new(f"add i64 {low}, {reach}"), self.new(f"add i64 {high}, {reach}")
            low = self.new(f"select i1 {negative}, i64 {lower}, i64 {low}")
            high = self.new(f"select i1 {negative}, i64 {high}, i64 {upper}")
        span = self.new(f"sub i64 {high}, {low}")
        return low, self.new(f"add i64 {span}, {argument.size}")

    def _all_apart(self) -> None:
        """Require that results given do not overlap one another."""
        for i, one in enumerate(self.results):
            for j, other in enumerate(self.results[:i]):
                data = [
                    self.load("i64", self.new(f"load ptr, ptr {self.places[k]}"), Offset.ARRAY_DATA)
                    for k in (i, j)
                ]
                ahead = self.new(f"sub i64 {data[1]}, {data[0]}")
                back = self.new(f"sub i64 {data[0]}, {data[1]}")
                sizes = [self._here(extents.product(r.shape) * r.size) for r in (one, other)]
                after = self.new(f"icmp uge i64 {ahead}, {sizes[0]}")
                before = self.new(f"icmp uge i64 {back}, {sizes[1]}")
                self.require(self.new(f"and i1 {after}, {before}"))

    def _empty(self, result: Result) -> str:
        """A new array. Where there is no memory for it, those made before are given up, and the exception is set."""
        count = max(len(result.shape), 1)
        shape = self.function.variable(f"[{count} x i64]")
        for i, extent in enumerate(result.shape):
            at = self.new(f"getelementptr i64, ptr {shape}, i64 {i}")
            self.block.lines.append(f"  store i64 {self._here(extent)}, ptr {at}")
        dtype = self._dtype(result.dtype)
        self.block.lines.append(f"  call void @Py_IncRef(ptr {dtype})")
        array = self.new(
            f"call ptr @PyArray_Empty(i32 {len(result.shape)}, ptr {shape}, ptr {dtype}, i32 {int(result.fortran)})"
        )
        self.require(self.new(f"icmp ne ptr {array}, null"), "undo")
        return array

    def _lent(self) -> None:
        """Memory for arrays between nests, in one piece."""
        self.memory = ""
        if not self.kept:
            return
        total: Number = 64
        starts = []
        for kept in self.kept:
            starts.append(total)
            total = total + (extents.product(kept.shape) * kept.size + 127) // 64 * 64
        self.memory = self.new(f"call ptr @malloc(i64 {self._here(total)})")
        self.require(self.new(f"icmp ne ptr {self.memory}, null"), "undo")
        address = self.new(f"ptrtoint ptr {self.memory} to i64")
        aligned = self.new(f"and i64 {address}, -64")
        for kept, start in zip(self.kept, starts, strict=True):
            self.keep(kept.word, "i64", self.new(f"add i64 {aligned}, {self._here(start)}"))

    def _run(self) -> None:
        """Call the segment; while it is long, without the interpreter's lock."""
        long = self.new(f"icmp sgt i64 {self._here(self.work)}, {LONG}")
        apart, short, after = (self.function.label() for _ in range(3))
        self.block.lines += [
            f"  br i1 {long}, label %{apart}, label %{short}",
            f"{apart}:",
            # What holds the arguments may let go of them meanwhile.
            *(f"  call void @Py_IncRef(ptr {one})" for one in self.given),
            "  %state = call ptr @PyEval_SaveThread()",
            "  %long.status = call i64 @segment(ptr %frame)",
            "  call void @PyEval_RestoreThread(ptr %state)",
            *(f"  call void @Py_DecRef(ptr {one})" for one in self.given),
            f"  br label %{after}",
            f"{short}:",
            "  %short.status = call i64 @segment(ptr %frame)",
            f"  br label %{after}",
            f"{after}:",
        ]
        if self.memory:
            self.block.lines.append(f"  call void @free(ptr {self.memory})")

    def _given(self, given: str) -> None:
        """Return the results: numbers for arrays without dimensions, unless they were given."""
        loaded = [self.new(f"load ptr, ptr {place}") for place in self.places]
        if not self.results and not self.is_tuple:
            self.block.lines += ["  call void @Py_IncRef(ptr @jk_none)", "  ret ptr @jk_none"]
            return
        if not self.is_tuple:
            if self.results[0].shape:
                self.block.lines.append(f"  ret ptr {loaded[0]}")
                return
            taken, made = self.function.label(), self.function.label()
            self.block.lines += [f"  br i1 {given}, label %{taken}, label %{made}", f"{taken}:"]
            self.block.lines += [f"  ret ptr {loaded[0]}", f"{made}:"]
            scalar = self.new(f"call ptr @PyArray_Return(ptr {loaded[0]})")
            self.block.lines.append(f"  ret ptr {scalar}")
            return
        taken, made = self.function.label(), self.function.label()
        self.block.lines += [f"  br i1 {given}, label %{taken}, label %{made}", f"{taken}:"]
        self.block.lines += ["  ret ptr %out", f"{made}:"]
        whole = self.new(f"call ptr @PyTuple_New(i64 {len(loaded)})")
        self.require(self.new(f"icmp ne ptr {whole}, null"), "undo")
        for number, (array, result) in enumerate(zip(loaded, self.results, strict=True)):
            value = array
            if not result.shape:
                value = self.new(f"call ptr @PyArray_Return(ptr {array})")
            at = self.new(f"getelementptr i8, ptr {whole}, i64 {Offset.TUPLE_ITEMS + 8 * number}")
            self.block.lines.append(f"  store ptr {value}, ptr {at}")
        self.block.lines.append(f"  ret ptr {whole}")


DECLARED = (
    "ptr @PyArray_Empty(i32, ptr, ptr, i32)", "ptr @PyArray_Return(ptr)", "void @Py_IncRef(ptr)", "void @Py_DecRef(ptr)", "ptr @PyTuple_New(i64)",
    "ptr @PyEval_SaveThread()", "void @PyEval_RestoreThread(ptr)", "ptr @malloc(i64)", "void @free(ptr)",
)  # fmt: skip


def _bare(extent: Number) -> str | None:
    """The name of a symbol that an extent is, if it is nothing else."""
    if not isinstance(extent, Extent) or len(extent.terms) != 1:
        return None
    ((monomial, count),) = extent.terms.items()
    if count != 1 or len(monomial) != 1 or monomial[0].operation:
        return None
    return monomial[0].text
