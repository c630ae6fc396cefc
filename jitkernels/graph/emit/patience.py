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
        self.block.lines += [
            f"  store i64 {left}, ptr {self.patience}",
            f"  br i1 {ends}, label %{ask}, label %{onwards}, !prof !4",
            f"{ask}:",
            f"  store i64 {polls.PATIENCE}, ptr {self.patience}",
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
