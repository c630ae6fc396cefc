"""The steps of a loop shared among threads, as one function: the entry of OpenMP's object.

Every expression whose size shows in a call alone may come to need it. Where each had its own, a tenth of the time that
making their code takes would go there.
"""

WORK = 131072
"""What a thread gets at least, in additions of four bytes, which take it 3 to 5 us: to share costs about 2."""

AMONG_THREADS = f"""
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
define i64 @entry(ptr %data, ptr %function, i64 %extent, i64 %work) {{
start:
  %given = alloca {{ ptr, ptr, i64 }}
  %parts = sdiv i64 %work, {WORK}
  %fewer = icmp slt i64 %extent, %parts
  %wanted = select i1 %fewer, i64 %extent, i64 %parts
  %few = icmp slt i64 %wanted, 2
  br i1 %few, label %serial, label %ask
ask:
  %team = call i64 @jk_team(i64 %wanted)
  %several = icmp sgt i64 %team, 1
  br i1 %several, label %fork, label %serial
serial:
  %status = call i64 %function(ptr %data, i64 0, i64 %extent)
  ret i64 %status
fork:
  %at1 = getelementptr {{ ptr, ptr, i64 }}, ptr %given, i32 0, i32 1
  %at2 = getelementptr {{ ptr, ptr, i64 }}, ptr %given, i32 0, i32 2
  store ptr %data, ptr %given
  store ptr %function, ptr %at1
  store i64 %extent, ptr %at2
  call void @jk_parallel(ptr @jk_part, ptr %given, i64 %team)
  ret i64 0
}}
define internal void @jk_part(ptr %given) nounwind {{
start:
  %at1 = getelementptr {{ ptr, ptr, i64 }}, ptr %given, i32 0, i32 1
  %at2 = getelementptr {{ ptr, ptr, i64 }}, ptr %given, i32 0, i32 2
  %data = load ptr, ptr %given
  %function = load ptr, ptr %at1
  %extent = load i64, ptr %at2
  %number32 = call i32 @omp_get_thread_num()
  %team32 = call i32 @omp_get_num_threads()
  %number = sext i32 %number32 to i64
  %team = sext i32 %team32 to i64
  %few = icmp slt i64 %extent, 4096
  %shift = select i1 %few, i64 0, i64 6
  %block = select i1 %few, i64 1, i64 64
  %more = add i64 %block, -1
  %padded = add i64 %extent, %more
  %blocks = lshr i64 %padded, %shift
  %rounded = add i64 %blocks, %team
  %enough = add i64 %rounded, -1
  %each = udiv i64 %enough, %team
  %share = shl i64 %each, %shift
  %begin = mul i64 %number, %share
  %stop = add i64 %begin, %share
  %over = icmp sgt i64 %stop, %extent
  %end = select i1 %over, i64 %extent, i64 %stop
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %work, label %done
work:
  %status = call i64 %function(ptr %data, i64 %begin, i64 %end)
  br label %done
done:
  ret void
}}
"""

ALONE = """
define i64 @entry(ptr %data, ptr %function, i64 %extent, i64 %work) {
  %status = tail call i64 %function(ptr %data, i64 0, i64 %extent)
  ret i64 %status
}
"""
