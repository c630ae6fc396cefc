"""Calls of the loop nests of a region: fill the callee's own frame, call each nest, read the results."""

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.control_flow.region_evaluator import StridedPointer, Values
from jitkernels.compiler.codegen.control_flow.scalar_emitter import ScalarEmitter
from jitkernels.compiler.codegen.core.ir_builder import Register, memory_type
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import is_at_least, is_loop_variant, product
from jitkernels.compiler.schedule.region_stages import NestGroup


class NestCalls(ScalarEmitter):
    """Emits the calls of a group's loop nests into the function of a loop or branch."""

    def _call_nests(self, group: NestGroup, values: Values) -> None:
        """Call the loop nests of `group` with a frame on the stack, and set `values` of its results."""
        program = group.program
        frame = self.function.variable(f"[{len(program.words) + len(program.symbols) + 1} x i64]")
        scalars = self._fill_frame(group, values, frame)
        previous: frozenset[int] = frozenset()
        for call, product_node in group.calls:
            if call.serpentine_words and (not previous or call.serpentine_words & previous):
                self._turn(frame, len(program.words) + len(program.symbols))
            previous = call.serpentine_words or previous
            after_label = self._skip_if_empty(product_node, group, frame) if product_node is not None else ""
            end = "1" if call.extent is None else self.function.extent(call.extent)
            began = call.clock.start(self._new) if call.clock else ""
            status = self._new(f"call i64 @{call.name}(ptr {frame}, i64 0, i64 {end})")
            if call.clock:
                self.block.lines.append(call.clock.stop(began))
            # A kernel may be unable to allocate its workspace.
            self._bail_out_if(Register(self._new(f"icmp ne i64 {status}, 0"), "bool"))
            if after_label:
                self.block.lines += [f"  br label %{after_label}", f"{after_label}:"]
        self._set_results(group, values, lambda node: self._loaded(scalars[node], node.dtype))

    def _fill_frame(self, group: NestGroup, values: Values, frame: str) -> dict[Node, str]:
        """Store symbols and addresses to the frame of a group's nests; return the slots of the numbers they store."""
        program, function = group.program, self.function
        invariant_pointers = {*self.pointers.values()}

        def store_slot(word: int, kind: str, text: str, *, moves: bool = False) -> None:
            head = self.block if moves else function.block
            head.lines.append(f"  store {kind} {text}, ptr {function.slot(head, word, frame)}")

        for name, word in program.symbols.items():
            if name not in function.loop_variant:
                store_slot(word, "i64", function.extent_of(name))
            elif name in function.variables:  # other symbols belong to other loops
                store_slot(word, "i64", function.current(name), moves=True)
        for node, captured in zip(program.graph.inputs, group.captured, strict=True):
            value = values[captured]
            if isinstance(value, StridedPointer):
                moves = value.pointer not in invariant_pointers
                store_slot(program.words[node], "ptr", value.pointer, moves=moves)
            else:
                address = function.variable(memory_type(value.dtype))
                store_slot(program.words[node], "ptr", address)
                self._stored(address, value)
        scalars: dict[Node, str] = {}
        for node in program.allocated:
            if node.ndim:
                address = self._memory(group.words[node], group)
            else:
                address = scalars[node] = function.variable(memory_type(node.dtype))
            store_slot(program.words[node], "ptr", address)
        return scalars

    def _turn(self, frame: str, word: int) -> None:
        """Flip the serpentine direction word of `frame`, so that the next nests start where the previous ones ended."""
        head = self.function.block
        at = self.function.slot(head, word, frame)
        head.lines.append(f"  store i64 0, ptr {at}")
        now = self._new(f"load i64, ptr {at}")
        self.block.lines.append(f"  store i64 {self._new(f'xor i64 {now}, 1')}, ptr {at}")

    def _memory(self, word: int, group: NestGroup) -> str:
        """The address of scratch at a frame word; without a noalias parameter if other nests share that memory."""
        if word not in group.sharing or word in self.pointers:
            return self._pointer(word)
        return self.function.load_slot(self.function.block, word, "ptr")

    def _skip_if_empty(self, node: Node, group: NestGroup, frame: str) -> str:
        """Branch around a GEMM whose reduction is empty in this iteration, storing zeros; return the label after it."""
        sizes = product([*node.inputs[0].shape, node.shape[-1]])
        if not is_loop_variant(sizes) or is_at_least(sizes, 1):
            return ""
        some, none, behind = (self.function.label() for _ in range(3))
        more = self._new(f"icmp sgt i64 {self.function.extent(sizes)}, 0")
        self.block.lines += [f"  br i1 {more}, label %{some}, label %{none}", f"{none}:"]
        pointer = self.function.load_slot(self.block, group.arrays[node].word, "ptr", frame)
        size = self.function.extent(product(node.shape) * NUMBERS[node.dtype].size)
        name = "llvm.memset.p0.i64"
        self.function.library.declare(name, "void", ["ptr", "i8", "i64", "i1"])
        self.block.lines.append(f"  call void @{name}(ptr {pointer}, i8 0, i64 {size}, i1 false)")
        self.block.lines += [f"  br label %{behind}", f"{some}:"]
        return behind
