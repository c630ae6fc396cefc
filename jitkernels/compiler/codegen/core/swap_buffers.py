"""A function that swaps the contents of arrays whose buffers a loop has swapped, once behind the loop."""

SWAP_IR = """define internal void @jk_swapped(ptr %one, ptr %other, i64 %size) noinline nounwind {
  %same = icmp eq ptr %one, %other
  br i1 %same, label %done, label %more
more:
  %i = phi i64 [ 0, %0 ], [ %next, %inside ]
  %left = icmp slt i64 %i, %size
  br i1 %left, label %inside, label %done
inside:
  %here = getelementptr i8, ptr %one, i64 %i
  %there = getelementptr i8, ptr %other, i64 %i
  %a = load i8, ptr %here
  %b = load i8, ptr %there
  store i8 %b, ptr %here
  store i8 %a, ptr %there
  %next = add nsw i64 %i, 1
  br label %more
done:
  ret void
}"""
"""Swaps the contents of two arrays that are the same one, or do not overlap."""
