"""What makes loops ask for signals: a variable that rounds take from, see `jitkernels.graph.emit.polls`."""

from dataclasses import dataclass, field

from jitkernels.graph.emit import polls
from jitkernels.graph.emit.blocks import Register
from jitkernels.graph.emit.elements import Elements
from jitkernels.graph.ir import Node


@dataclass
class Patience(Elements):
    """The variable, if any loop asks. `part`: the loop of which this is the function of some rounds."""

    part: Node | None = field(default=None, kw_only=True)
    patience: str = field(default="", kw_only=True)

    def _poll(self, weight: int) -> None:
        """Leave if somebody has pressed Ctrl-C, which is asked once in a while."""
        if not weight:
            return
        self._begin_patience()
        left = self._new(f"load i64, ptr {self.patience}")
        left = self._new(f"sub nsw i64 {left}, {weight}")
        ask, onwards = self.function.label(), self.function.label()
        ends = self._new(f"icmp slt i64 {left}, 0")
        later = self._new(f"icmp slt i64 {left}, {-polls.LONG}")
        again = self._new(f"select i1 {later}, i64 {polls.SHORT}, i64 {polls.PATIENCE}")
        self.block.lines += [
            f"  store i64 {left}, ptr {self.patience}",
            f"  br i1 {ends}, label %{ask}, label %{onwards}, !prof !4",
            f"{ask}:",
            f"  store i64 {again}, ptr {self.patience}",
        ]
        asked = "@jk_interrupted()" if self.part is None else "@jk_interrupted_there(ptr %words)"
        raised = self._new(f"call i1 {asked}")
        self.block.lines += [f"  br i1 {raised}, label %interrupted, label %{onwards}", f"{onwards}:"]

    def _begin_patience(self) -> None:
        if not self.patience:
            self.patience = self.function.variable("i64")
            self.function.memory.append(f"  store i64 {polls.PATIENCE}, ptr {self.patience}")

    def _take_patience(self, at: str, begin: Register, *, is_up: bool) -> None:
        """Have the loop around ask the sooner, the further an int has come."""
        self._begin_patience()
        ends = [begin.text, self._get(at, "int64").text]
        rounds = self._new("sub i64 {}, {}".format(*(reversed(ends) if is_up else ends)))
        left = self._new(f"load i64, ptr {self.patience}")
        left = self._new(f"sub i64 {left}, {rounds}")
        self.block.lines.append(f"  store i64 {left}, ptr {self.patience}")

    def _block_end(self, counter: str, end: str, step: int) -> str:
        """Where a block of rounds ends that begins here, between which nothing is asked."""
        self._begin_patience()
        for name in ("llvm.smax.i64", "llvm.umin.i64"):
            self.function.library.declare(name, "i64", ["i64", "i64"])
        left = self._new(f"load i64, ptr {self.patience}")
        some = self._new(f"ashr i64 {left}, {polls.OF_BLOCK}")
        some = self._new(f"call i64 @llvm.smax.i64(i64 {some}, i64 1)")
        here, is_up = self._get(counter, "int64").text, step > 0
        apart = self._new(f"sub i64 {end if is_up else here}, {here if is_up else end}")
        if abs(step) > 1:  # rounded up: the last step may go beyond the end
            apart = self._new(f"add i64 {apart}, {abs(step) - 1}")
            apart = self._new(f"udiv i64 {apart}, {abs(step)}")
        rounds = self._new(f"call i64 @llvm.umin.i64(i64 {apart}, i64 {some})")
        rounds = self._new(
            f"freeze i64 {rounds}"
        )  # LLVM takes rounds together only where their number is simple
        moved = self._new(f"mul nsw i64 {rounds}, {step}")
        return self._new(f"add nsw i64 {here}, {moved}")
