"""Emit LLVM IR of a call: checks, the lookup of a kernel, the call of its address, and the fallback to Python."""

from collections.abc import Callable, Sequence
from typing import Any

import numba.core.types
from llvmlite import ir
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed, impl_ret_new_ref
from numba.np import arrayobj

from jitkernels.dispatch.native import launcher
from jitkernels.dispatch.numba_extension.call_site import GOLDEN, SLOTS, CallSite
from jitkernels.dispatch.numba_extension.shape_emitter import BIT, INT, ShapeEmitter

types: Any = numba.core.types
BYTES = ir.IntType(8).as_pointer()
WORDS = INT.as_pointer()


def lowering_of(site: CallSite, names: Sequence[str]) -> Callable[..., Any]:
    """The function that numba calls to emit a call; `names` are the parameters in the order of its arguments."""

    def lower(context: Any, builder: Any, sig: Any, args: Sequence[Any]) -> Any:
        kinds = dict(zip(names, sig.args, strict=True))
        emitter = _CallEmitter(site, context, builder, kinds, dict(zip(names, args, strict=True)), sig.return_type)
        return emitter.call()

    return lower


class _CallEmitter:
    """Emits one call."""

    def __init__(
        self, site: CallSite, context: Any, builder: Any, kinds: dict[str, Any], values: dict[str, Any], result: Any
    ) -> None:
        self.site, self.context, self.builder = site, context, builder
        self.kinds, self.values, self.result_type = kinds, values, result
        self.has_out = not isinstance(kinds["out"], types.Omitted | types.NoneType)

    def call(self) -> Any:
        """Emit the whole call; returns its result."""
        builder = self.builder
        result = cgutils.alloca_once(builder, self.context.get_value_type(self.result_type))
        slow, done = builder.append_basic_block("slow"), builder.append_basic_block("done")
        if self.site.reason is None:
            self._native(result, slow)
            builder.branch(done)
        else:
            builder.branch(slow)
        builder.position_at_end(slow)
        self._slow(result)
        builder.branch(done)
        builder.position_at_end(done)
        value = builder.load(result)
        returned = impl_ret_borrowed if self.has_out else impl_ret_new_ref
        return returned(self.context, builder, self.result_type, value)

    def _fail_unless(self, condition: Any, elsewhere: Any) -> None:
        """Branch to `elsewhere` unless a condition holds."""
        after = self.builder.append_basic_block("checked")
        self.builder.cbranch(condition, after, elsewhere)
        self.builder.position_at_end(after)

    def _native(self, result: Any, slow: Any) -> None:
        """Check the arguments and call the kernel; a failed check branches to `slow`."""
        builder, context, site = self.builder, self.context, self.site
        shapes = ShapeEmitter(self)
        bypass = self._address(launcher.bypass_address(), WORDS)
        shapes.require(builder.icmp_signed("==", builder.load(bypass), INT(0)))
        shapes.solve()
        out_pointers = shapes.output_pointers() if self.has_out else []
        self._fail_unless(shapes.holds, slow)
        entry = self._kernel(shapes, slow)
        new_results = [] if self.has_out else [self._new(shapes, i) for i in range(len(site.outputs))]
        result_pointers = out_pointers or [pointer for _, pointer, _ in new_results]
        pointers = [builder.bitcast(pointer, BYTES) for pointer in (*shapes.pointers, *result_pointers)]
        integers = [shapes.symbols[name] for name, _ in site.signature.integers]
        floats = [builder.bitcast(shapes.floats[name], BYTES) for name, _ in site.signature.floats]
        arguments = [*pointers, *integers, *floats]
        function = ir.FunctionType(INT, [argument.type for argument in arguments])
        status = builder.call(builder.inttoptr(entry, function.as_pointer()), arguments)
        failed = builder.append_basic_block("failed")
        self._fail_unless(builder.icmp_signed("==", status, INT(0)), failed)
        values = [self._value(new_result) for new_result in new_results]
        if self.has_out:
            returned = self.values["out"]
        else:
            returned = values[0] if len(values) == 1 else context.make_tuple(builder, self.result_type, values)
        builder.store(returned, result)
        with builder.goto_block(failed):
            for kind, _, value in new_results:
                if isinstance(kind, types.Array):
                    context.nrt.decref(builder, kind, value)
            builder.branch(slow)

    def _address(self, address: int, kind: Any) -> Any:
        """A pointer to memory of this process; code with one is not cached on disk."""
        return self.builder.bitcast(self.context.add_dynamic_addr(self.builder, address, info="jitkernels"), kind)

    def _kernel(self, shapes: Any, slow: Any) -> Any:
        """The entry of the kernel for the extents; branches to `slow` if the table has none."""
        builder = self.builder
        key = shapes.key()
        mixed: Any = INT(0)
        for word in key:
            mixed = builder.mul(builder.add(builder.add(mixed, word), INT(1)), INT(GOLDEN))
        index = builder.lshr(mixed, INT(64 - (SLOTS.bit_length() - 1)))
        slots = self._address(self.site.slots.ctypes.data, WORDS)
        slot = builder.gep(slots, [index])
        descriptor = builder.load_atomic(slot, "acquire", 8)
        self._fail_unless(builder.icmp_signed("!=", descriptor, INT(0)), slow)
        words = builder.inttoptr(descriptor, WORDS)
        same: Any = BIT(1)
        for i, word in enumerate(key, 1):
            known = builder.load(builder.gep(words, [INT(i)]))
            same = builder.and_(same, builder.icmp_signed("==", known, word))
        self._fail_unless(same, slow)
        return builder.load(words)

    def _new(self, shapes: Any, index: int) -> tuple[Any, Any, Any]:
        """Allocate a result: its type, the pointer for the kernel, and the array that owns it."""
        builder, context = self.builder, self.context
        several = isinstance(self.result_type, types.BaseTuple)
        kind = self.result_type.types[index] if several else self.result_type
        if isinstance(kind, types.Array):
            array = arrayobj._empty_nd_impl(context, builder, kind, shapes.result(index))
            return kind, array.data, array._getvalue()
        pointer = cgutils.alloca_once(builder, context.get_data_type(kind))
        return kind, pointer, None

    def _value(self, new_result: tuple[Any, Any, Any]) -> Any:
        kind, pointer, value = new_result
        if isinstance(kind, types.Array):
            return value
        return self.context.unpack_value(self.builder, kind, pointer)

    def _slow(self, result: Any) -> None:
        """The fallback: the everyday call in Python, with the interpreter lock."""
        builder, context, site = self.builder, self.context, self.site
        names = [*site.operands, *site.scalars, *(["out"] if self.has_out else [])]
        python = context.get_python_api(builder)
        lock = python.gil_ensure()
        environment = context.get_env_manager(builder)
        objects = []
        for name in names:
            kind = self.kinds[name]
            if context.enable_nrt:
                context.nrt.incref(builder, kind, self.values[name])  # boxing takes a reference
            objects.append(python.from_native_value(kind, self.values[name], environment))
        slow = site.slow
        site._alive.append(slow)  # each access creates a new bound method
        function = self._address(id(slow), BYTES)
        answer = python.call_function_objargs(function, objects)
        for item in objects:
            python.decref(item)
        with builder.if_then(cgutils.is_null(builder, answer), likely=False):
            python.gil_release(lock)
            context.call_conv.return_exc(builder)
        if self.has_out:
            builder.store(self.values["out"], result)
            python.decref(answer)
            python.gil_release(lock)
            return
        native = python.to_native_value(self.result_type, answer)
        builder.store(native.value, result)
        if native.cleanup is not None:
            native.cleanup()
        python.decref(answer)
        python.gil_release(lock)
        with builder.if_then(native.is_error, likely=False):
            context.call_conv.return_exc(builder)
