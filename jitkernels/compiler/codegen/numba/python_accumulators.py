"""Reductions in printed Python: how each begins, takes an element, and becomes the result.

Long sums of floats are added up in parts of `MAX_ADDITIONS_OF_PART` elements. Joining the parts keeps
what rounding loses beside the total (Knuth's two-sum), as the accumulators of the LLVM generator do, so that the error
is that of one part.
"""

from dataclasses import dataclass

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder, Register, llvm_type
from jitkernels.compiler.codegen.numba.python_expressions import constant_text
from jitkernels.compiler.codegen.numba.spelling import FLOATS, Spelling
from jitkernels.compiler.transforms.reduction_identity import COMBINING, identity

MAX_ADDITIONS_OF_PART = 16
"""Elements of a part, whatever lanes numba makes of it: so many additions at most before parts are joined."""
FREE = {"sum": "fadd", "prod": "fmul"}


@dataclass
class PrintedReduction:
    """One reduction. `name`: the variable of its value, an element of scratch memory where rows are computed together.

    `index` is the variable of the index that it finds; `lost` that of what joining parts rounds away.
    """

    kind: str
    dtype: str
    name: str
    index: str = ""
    in_parts: bool = False

    def __post_init__(self) -> None:
        self.inner = "float32" if self.dtype == "float16" else self.dtype
        self.is_index = self.kind in ("argmin", "argmax")

    @property
    def now(self) -> str:
        """The value so far: bools are bytes in scratch memory."""
        return f"({self.name} != 0)" if self._is_byte else self.part

    @property
    def _is_byte(self) -> bool:
        return self.inner == "bool" and "[" in self.name

    def _set(self, text: str) -> str:
        return f"{self.part} = {f'uint8({text})' if self._is_byte else text}"

    def begin(self) -> list[str]:
        lines = [f"{self.name} = {self.first()}"]
        if self.is_index:
            lines.append(f"{self.index} = 0")
        if self.in_parts:
            lines.append(f"{self.name}_lost = {self.first()}")
        return lines

    @property
    def part(self) -> str:
        return f"{self.name}_part" if self.in_parts else self.name

    def begin_part(self) -> list[str]:
        return [f"{self.part} = {self.first()}"] if self.in_parts else []

    def accumulate_element(self, spelling: Spelling, value: str, index: str) -> list[str]:
        """The statements that take one element."""
        if self.is_index:
            return [f"if {self._precedes(value)}:", f"    {self._set(value)}", f"    {self.index} = {index}"]
        return [self._set(self.combined(spelling, self.now, value))]

    def end_part(self) -> list[str]:
        """Add a part to the total."""
        if not self.in_parts:
            return []
        whole, added, lost = (f"{self.name}_{word}" for word in ("whole", "added", "lost"))
        return [
            f"{whole} = {self.name} + {self.part}",
            f"{added} = {whole} - {self.name}",
            f"{lost} = {lost} + ({self.name} - ({whole} - {added}) + ({self.part} - {added}))",
            f"{self.name} = {whole}",
        ]

    def result(self) -> list[str]:
        """The statements behind the loops. What infinities lose is NaN, and not added."""
        if not self.in_parts:
            return []
        lost = f"{self.name}_lost"
        return [f"if {lost} == {lost}:", f"    {self.name} = {self.name} + {lost}"]

    def value(self) -> tuple[str, str]:
        """The result and its dtype."""
        if self.is_index:
            return self.index, "int64"
        return f"{self.name} != 0" if self._is_byte else self.name, self.inner

    def combined(self, spelling: Spelling, left: str, right: str) -> str:
        """Two values as one; sums and products of floats in any order, so that LLVM may take several at once.

        Rows that are reduced together need no other order: their elements are added up as NumPy adds them.
        """
        if self.inner in FLOATS and self.kind in FREE and "[" not in self.name:
            return self._instruction(
                spelling, f"{FREE[self.kind]} reassoc nsz", f"{self.kind}_in_any_order", left, right
            )
        if self.inner in FLOATS and self.kind in ("min", "max"):
            # Which of two zeros is the result is not said, as it is not by NumPy.
            kind = llvm_type(self.inner)
            name = f"llvm.{self.kind}imum.f{8 * NUMBERS[self.inner].size}"

            def code(function: FunctionBuilder, operands: list[Register]) -> Register:
                function.library.declare(name, kind, [kind, kind])
                passed = ", ".join(f"{kind} {register.text}" for register in operands)
                return Register(function.new(function.block, f"call nsz {kind} @{name}({passed})"), self.inner)

            return spelling.call(
                f"{self.kind}imum_{self.inner}_reduced", [left, right], [self.inner] * 2, self.inner, code
            )
        return spelling.elementwise(COMBINING[self.kind], [left, right], [self.inner] * 2, self.inner)

    def _instruction(self, spelling: Spelling, instruction: str, name: str, left: str, right: str) -> str:
        kind = llvm_type(self.inner)

        def code(function: FunctionBuilder, operands: list[Register]) -> Register:
            text = f"{instruction} {kind} {operands[0].text}, {operands[1].text}"
            return Register(function.new(function.block, text), self.inner)

        return spelling.call(f"{name}_{self.inner}", [left, right], [self.inner] * 2, self.inner, code)

    def _precedes(self, value: str) -> str:
        """Whether an element comes before the one found so far; NaN comes before all numbers."""
        sign = "<" if self.kind == "argmin" else ">"
        if self.inner in FLOATS:
            return f"{self.name} == {self.name} and not ({value} {'>=' if sign == '<' else '<='} {self.name})"
        if self.inner == "bool":
            return f"{value} != {self.now} and {'not ' if sign == '<' else ''}{value}"
        return f"{value} {sign} {self.name}"

    def first(self) -> str:
        """The identity, as text."""
        return constant_text(identity(self.kind, self.inner), self.inner)
