"""The countdown of work between two signal polls of a loop (see `signal_polls`)."""

from dataclasses import dataclass, field

from jitkernels.compiler.codegen.control_flow import signal_polls
from jitkernels.compiler.codegen.control_flow.scalar_emitter import ScalarEmitter
from jitkernels.compiler.codegen.core.ir_builder import Register
from jitkernels.compiler.ir.graph import Node


@dataclass
class PollCountdown(ScalarEmitter):
    """Maintains the poll countdown. `part`: the loop whose outlined iterations this function runs, if any."""

    part: Node | None = field(default=None, kw_only=True)
    countdown: str = field(default="", kw_only=True)

    def _poll(self, weight: int) -> None:
        """Subtract `weight` from the countdown, and poll for signals once it is negative."""
        if not weight:
            return
        self._begin_countdown()
        remaining = self._new(f"load i64, ptr {self.countdown}")
        remaining = self._new(f"sub nsw i64 {remaining}, {weight}")
        poll, resume = self.function.label(), self.function.label()
        expired = self._new(f"icmp slt i64 {remaining}, 0")
        overrun = self._new(f"icmp slt i64 {remaining}, {-signal_polls.OVERRUN_COUNTDOWN}")
        reset = self._new(f"select i1 {overrun}, i64 {signal_polls.RESTART_COUNTDOWN}, i64 {signal_polls.COUNTDOWN}")
        self.block.lines += [
            f"  store i64 {remaining}, ptr {self.countdown}",
            f"  br i1 {expired}, label %{poll}, label %{resume}, !prof !4",
            f"{poll}:",
            f"  store i64 {reset}, ptr {self.countdown}",
        ]
        poll_call = "@jk_interrupted()" if self.part is None else "@jk_interrupted_there(ptr %words)"
        raised = self._new(f"call i1 {poll_call}")
        self.block.lines += [f"  br i1 {raised}, label %interrupted, label %{resume}", f"{resume}:"]

    def _begin_countdown(self) -> None:
        if not self.countdown:
            self.countdown = self.function.variable("i64")
            self.function.memory.append(f"  store i64 {signal_polls.COUNTDOWN}, ptr {self.countdown}")

    def _charge_countdown(self, address: str, begin: Register, *, is_up: bool) -> None:
        """Subtract an inner loop's trip count, which an int's progress tells, from the enclosing loop's countdown."""
        self._begin_countdown()
        ends = [begin.text, self._get(address, "int64").text]
        trip_count = self._new("sub i64 {}, {}".format(*(reversed(ends) if is_up else ends)))
        remaining = self._new(f"load i64, ptr {self.countdown}")
        remaining = self._new(f"sub i64 {remaining}, {trip_count}")
        self.block.lines.append(f"  store i64 {remaining}, ptr {self.countdown}")

    def _block_end(self, counter: str, end: str, step: int) -> str:
        """Return the induction variable at which the next block of iterations without a poll ends."""
        self._begin_countdown()
        for name in ("llvm.smax.i64", "llvm.umin.i64"):
            self.function.library.declare(name, "i64", ["i64", "i64"])
        remaining = self._new(f"load i64, ptr {self.countdown}")
        block_length = self._new(f"ashr i64 {remaining}, {signal_polls.BLOCK_SHIFT}")
        block_length = self._new(f"call i64 @llvm.smax.i64(i64 {block_length}, i64 1)")
        current, is_up = self._get(counter, "int64").text, step > 0
        distance = self._new(f"sub i64 {end if is_up else current}, {current if is_up else end}")
        if abs(step) > 1:  # ceiling division: the last step may pass the end
            distance = self._new(f"add i64 {distance}, {abs(step) - 1}")
            distance = self._new(f"udiv i64 {distance}, {abs(step)}")
        trip_count = self._new(f"call i64 @llvm.umin.i64(i64 {distance}, i64 {block_length})")
        trip_count = self._new(
            f"freeze i64 {trip_count}"
        )  # LLVM unrolls and vectorizes only loops with a simple trip count
        offset = self._new(f"mul nsw i64 {trip_count}, {step}")
        return self._new(f"add nsw i64 {current}, {offset}")
