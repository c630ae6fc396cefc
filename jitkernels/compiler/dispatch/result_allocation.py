"""Results of a compiled entry: allocates them or checks the ``out`` arrays, and returns them."""

from typing import Any

from jitkernels.compiler.dispatch.result_objects import ResultObjects
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.call_abi import ArrayArgument, Rebuilt, ResultArray
from jitkernels.compiler.ir.symbolic_dims import same
from jitkernels.runtime import workspace_allocator
from jitkernels.runtime.abi_layout import ALIGNED, WRITEABLE, Offset

MAX_OUT_CHECKS = 400
"""Most pairs of arrays whose memory is compared in code that takes ``out``; with more, such calls go through Python."""


class ResultAllocation(ResultObjects):
    """The part of the entry that allocates and returns results."""

    def _take_results(self) -> str:
        """Check ``out`` before any side effect, or allocate the results; an i1 value: whether ``out`` is used."""
        if self.rebuilt is not None:
            return self._prepare_rebuilt(self.rebuilt)
        places = [self.function.variable("ptr") for _ in self.results]
        self.result_slots = places
        self.block.lines += [f"  store ptr null, ptr {place}" for place in places]
        if not self._takes_out():
            self.require(self.new("icmp eq ptr %out, null"))
            self.settle()
            self._make_results()
            return "false"
        given = self.new("icmp ne ptr %out, null")
        check, make, go = (self.function.label() for _ in range(3))
        self.settle()
        self.block.lines += [f"  br i1 {given}, label %{check}, label %{make}", f"{check}:"]
        # Extents are computed before the branch, where they dominate both sides.
        block, self.block.lines = self.block, self.block.lines
        for number, (result, place) in enumerate(zip(self.results, places, strict=True)):
            array = "%out" if not self.is_tuple else self._out_item(number)
            self.array(array)
            self.settle()
            self.kind(array, result.dtype, len(result.shape), ALIGNED | WRITEABLE | result.flags)
            self.settle()
            if not result.flags:
                self._check_order(array, result)
            shape = self.load("ptr", array, Offset.ARRAY_EXTENTS) if result.shape else ""
            for i, extent in enumerate(result.shape):
                found = self.load("i64", shape, 8 * i)
                self.expect(self.new(f"icmp eq i64 {found}, {self.here(extent)}"))
            data = self.load("i64", array, Offset.ARRAY_DATA)
            self._check_disjoint(data, result)
            self.keep(result.word, "i64", data)
            block.lines.append(f"  store ptr {array}, ptr {place}")
        if self.is_tuple and len(self.results) > 1:
            self._check_outs_disjoint()
        self.settle()
        if self.results:
            block.lines.append("  call void @Py_IncRef(ptr %out)")
        block.lines += [f"  br label %{go}", f"{make}:"]
        self._make_results()
        block.lines += [f"  br label %{go}", f"{go}:"]
        return given

    def _takes_out(self) -> bool:
        """Whether calls with ``out`` are for this code: all results are arrays, and not too many."""
        if not self.results or any(result.kind for result in self.results):
            return False
        pairs = len(self.results) * (len(self.results) + len(self.arguments))
        return pairs <= MAX_OUT_CHECKS and (not self.is_tuple or all(one.shape for one in self.results))

    def _make_results(self) -> None:
        """Allocate the arrays of results, and memory of numbers."""
        for result, place in zip(self.results, self.result_slots, strict=False):  # what is returned beside them follows
            if result.kind:
                self.keep(result.word, "ptr", self.function.variable("<2 x i64>"))  # 16 bytes: complex128
                continue
            array = self._allocate_array(result)
            self.keep(result.word, "ptr", self.load("ptr", array, Offset.ARRAY_DATA))
            self.line(f"  store ptr {array}, ptr {place}")

    def _prepare_rebuilt(self, rebuilt: Rebuilt) -> str:
        """Allocate results, and collect what else the returned object is built from; ``out`` is not supported."""
        self.require(self.new("icmp eq ptr %out, null"))
        if rebuilt.recipe is not None:
            self.prepare_recipe(rebuilt.recipe)
            rebuilt = Rebuilt(rebuilt.word, (), ())
        count = len(self.results) + len(rebuilt.inputs) + len(rebuilt.symbols)
        self.result_slots = [self.function.variable("ptr") for _ in range(count)]
        self.block.lines += [f"  store ptr null, ptr {slot}" for slot in self.result_slots]
        self._make_results()
        places = iter(self.result_slots[len(self.results) :])
        for number in rebuilt.inputs:
            self.line(f"  call void @Py_IncRef(ptr {self.leaf_objects[number]})")
            self.line(f"  store ptr {self.leaf_objects[number]}, ptr {next(places)}")
        for symbol in rebuilt.symbols:
            number_of = self.new(f"call ptr @PyLong_FromLong(i64 {self.block.known['atom', symbol]})")
            self.require(self.new(f"icmp ne ptr {number_of}, null"), "undo")
            self.line(f"  store ptr {number_of}, ptr {next(places)}")
        return "false"

    def _return_by_python(self, word: int, result_tuple: str) -> None:
        """Return what a Python callable in the context makes of a tuple."""
        argument_array = self.function.variable("[1 x ptr]")
        self.line(f"  store ptr {result_tuple}, ptr {argument_array}")
        function = self.load("ptr", "%context", 8 * word)
        returned = self.new(f"call ptr @PyObject_Vectorcall(ptr {function}, ptr {argument_array}, i64 1, ptr null)")
        self.line(f"  call void @Py_DecRef(ptr {result_tuple})")
        self.line(f"  ret ptr {returned}")

    def _out_item(self, number: int) -> str:
        if number == 0:
            self.require(self.new(f"icmp eq ptr {self.load('ptr', '%out', Offset.TYPE)}, @jk_tuple"))
            size = self.load("i64", "%out", Offset.TUPLE_SIZE)
            self.require(self.new(f"icmp eq i64 {size}, {len(self.results)}"))
        return self.load("ptr", "%out", Offset.TUPLE_ITEMS + 8 * number)

    def _check_disjoint(self, data: str, result: ResultArray) -> None:
        """Guard that a result aliases no argument, except one that it may overwrite elementwise."""
        sizes: dict[Any, str] = {}

        def bytes_of(one: ArrayArgument | ResultArray) -> str:
            nbytes = symbolic_dims.product(one.shape) * one.size
            key = symbolic_dims.key_of(nbytes)
            if key not in sizes:
                sizes[key] = self.here(nbytes)
            return sizes[key]

        size = bytes_of(result)
        for argument in self.arguments:
            if argument.number or argument.is_own:
                continue
            at = self.new(f"getelementptr i64, ptr %frame, i64 {argument.word}")
            low = self.new(f"load i64, ptr {at}")
            low, span = (low, bytes_of(argument)) if argument.contiguous else self.span(low, argument)
            fine, ahead = self.disjoint((data, size), (low, span))
            if argument.may_be_out and argument.size == result.size:
                fine = self.new(f"or i1 {fine}, {self.new(f'icmp eq i64 {ahead}, 0')}")
            self.expect(fine)

    def _check_outs_disjoint(self) -> None:
        """Guard that the ``out`` arrays are disjoint."""
        for i, one in enumerate(self.results):
            for j, other in enumerate(self.results[:i]):
                data = [
                    self.load("i64", self.new(f"load ptr, ptr {self.result_slots[k]}"), Offset.ARRAY_DATA)
                    for k in (i, j)
                ]
                sizes = [self.here(symbolic_dims.product(r.shape) * r.size) for r in (one, other)]
                self.expect(self.disjoint((data[0], sizes[0]), (data[1], sizes[1]))[0])

    def _allocate_array(self, result: ResultArray) -> str:
        """Allocate an array. On failure release the earlier ones; NumPy has set the exception."""
        count = max(len(result.shape), 1)
        shape = self.function.variable(f"[{count} x i64]")
        for i, extent in enumerate(result.shape):
            at = self.new(f"getelementptr i64, ptr {shape}, i64 {i}")
            self.block.lines.append(f"  store i64 {self.here(extent)}, ptr {at}")
        dtype = self.dtype_object(result.dtype)
        self.block.lines.append(f"  call void @Py_IncRef(ptr {dtype})")
        if result.order is not None and not result.fortran:
            strides = self.function.variable(f"[{count} x i64]")
            for i, stride_of_dim in enumerate(builder.contiguous(result.shape, result.order)):
                at = self.new(f"getelementptr i64, ptr {strides}, i64 {i}")
                self.block.lines.append(f"  store i64 {self.here(stride_of_dim * result.size)}, ptr {at}")
            given = f"ptr {dtype}, i32 {count}, ptr {shape}, ptr {strides}"
            made = f"PyArray_NewFromDescr(ptr @jk_ndarray, {given}, ptr null, i32 0, ptr null)"
        else:
            made = (
                f"{workspace_allocator.EMPTY_ARRAY}(i32 {len(result.shape)}, ptr {shape}, ptr {dtype}, "
                f"i32 {int(result.fortran)})"
            )
        array = self.new(f"call ptr @{made}")
        self.require(self.new(f"icmp ne ptr {array}, null"), "undo")
        return array

    def _check_order(self, array: str, result: ResultArray) -> None:
        """Guard that an ``out`` array has the memory order that the code writes."""
        strides = self.load("ptr", array, Offset.ARRAY_STRIDES)
        for i, stride_of_dim in enumerate(builder.contiguous(result.shape, result.order)):
            if not same(result.shape[i], 1):
                stride = self.load("i64", strides, 8 * i)
                self.expect(self.new(f"icmp eq i64 {stride}, {self.here(stride_of_dim * result.size)}"))

    def _return_results(self, uses_out: str) -> None:
        """Return the results: scalars for 0-d arrays, unless they are ``out`` arrays."""
        loaded = [self.new(f"load ptr, ptr {place}") for place in self.result_slots]
        for number, result in enumerate(self.results):
            if result.kind:
                loaded[number] = self.number_of(result.kind, result.dtype, self.memory_of(number))
                self.line(f"  store ptr {loaded[number]}, ptr {self.result_slots[number]}")
                self.require(self.new(f"icmp ne ptr {loaded[number]}, null"), "undo")
        if self.rebuilt is not None and self.rebuilt.recipe is not None:
            self.return_recipe(self.rebuilt, self.rebuilt.recipe)
            return
        if self.rebuilt is not None and self.rebuilt.word is None:
            self.line(f"  ret ptr {loaded[0]}")
            return
        if not self.results and not self.is_tuple:
            self.block.lines += ["  call void @Py_IncRef(ptr @jk_none)", "  ret ptr @jk_none"]
            return
        if not self.is_tuple:
            if self.results[0].shape or self.results[0].kind:
                self.block.lines.append(f"  ret ptr {loaded[0]}")
                return
            taken, made = self.function.label(), self.function.label()
            self.block.lines += [f"  br i1 {uses_out}, label %{taken}, label %{made}", f"{taken}:"]
            self.block.lines += [f"  ret ptr {loaded[0]}", f"{made}:"]
            scalar = self.new(f"call ptr @PyArray_Return(ptr {loaded[0]})")
            self.block.lines.append(f"  ret ptr {scalar}")
            return
        taken, made = self.function.label(), self.function.label()
        self.block.lines += [f"  br i1 {uses_out}, label %{taken}, label %{made}", f"{taken}:"]
        self.block.lines += ["  ret ptr %out", f"{made}:"]
        whole = self.new(f"call ptr @PyTuple_New(i64 {len(loaded)})")
        self.require(self.new(f"icmp ne ptr {whole}, null"), "undo")
        for number, array in enumerate(loaded):
            value = array
            if self.rebuilt is None and not (self.results[number].shape or self.results[number].kind):
                value = self.new(f"call ptr @PyArray_Return(ptr {array})")
            at = self.new(f"getelementptr i8, ptr {whole}, i64 {Offset.TUPLE_ITEMS + 8 * number}")
            self.block.lines.append(f"  store ptr {value}, ptr {at}")
        if self.rebuilt is not None and self.rebuilt.word is not None:
            self._return_by_python(self.rebuilt.word, whole)
            return
        self.block.lines.append(f"  ret ptr {whole}")

    def _cleanup(self) -> str:
        """The cleanup block: release allocated results or ``out`` where memory is short."""
        lines = ["undo:"]
        if self.results and self.rebuilt is None:
            lines += [
                "  %undo.given = icmp ne ptr %out, null",
                "  br i1 %undo.given, label %undo.out, label %undo.made",
            ]
            lines += ["undo.out:", "  call void @Py_DecRef(ptr %out)", "  br label %no", "undo.made:"]
        for number, place in enumerate((*self.result_slots, *self.object_slots)):
            lines += [f"  %undo.{number} = load ptr, ptr {place}", f"  call void @Py_DecRef(ptr %undo.{number})"]
        return "\n".join([*lines, "  br label %no"])
