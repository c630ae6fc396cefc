"""C functions of other libraries as kernel sources: a wrapper calls them by address and adapts the result."""

from typing import Any, ClassVar

from jitkernels.codegen.ir_source import LIGHT_PIPELINE, IRSource
from jitkernels.codegen.source_protocol import External
from jitkernels.core import cffi_values, dtypes
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.runtime.cffi_library import address_of

TARGET = "jk_c_function"
STATUS = {
    "int64": "ret i64 %result",
    "int32": "%status = sext i32 %result to i64\n  ret i64 %status",
    "void": "ret i64 0",
}


@frozen_dataclass
class CFunctionSource:
    """A cffi function pointer with a schema's signature; `function` keeps its library open.

    Its address is part of the text: two functions of one type are two kernels. The address differs in other
    processes, so the object is not cached.
    """

    name: str
    arguments: tuple[str, ...]
    function: Any
    suffix: ClassVar[str] = ".o"
    has_range: ClassVar[bool] = False
    is_transient: ClassVar[bool] = True

    @property
    def _result(self) -> str:
        return cffi_values.prototype_of(self.function)[0]

    @property
    def externals(self) -> tuple[External, ...]:
        function = self.function
        return (External(TARGET, self._result, self.arguments, lambda: address_of(function)),)

    @property
    def text(self) -> str:
        """LLVM IR that calls the function and returns its status, 0 if it has none."""
        kinds = [dtypes.c_type(text).llvm for text in self.arguments]
        listed = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
        result = dtypes.c_type(self._result).llvm
        assigned = "" if result == "void" else "%result = "
        return (
            f"{LIGHT_PIPELINE}; at {address_of(self.function):#x}\n"
            f"declare {result} @{TARGET}({', '.join(kinds)})\n"
            f"define i64 @entry({listed}) nounwind {{\n"
            f"  {assigned}call {result} @{TARGET}({listed})\n  {STATUS[self._result]}\n}}\n"
        )

    def object_code(self, symbol: str) -> bytes:
        """Compile the wrapper to an object file."""
        return IRSource(self.name, self.text, self.externals).object_code(symbol)
