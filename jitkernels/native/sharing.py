"""The steps of a loop shared among threads, as one function: the entry of the object that regions are in.

Parts begin at multiples of a unit: where steps are lanes, a part of fewer than a vector has takes as long as all of it.

Every expression whose size shows in a call alone may come to need it. Where each had its own, a tenth of the time that
making their code takes would go there.
"""

WORK = 131072
"""What a thread gets at least, in additions of four bytes, which take it 3 to 5 us: to share costs about 2."""

PART, MOST_PARTS = 65536, 4
"""What a part is at least, in additions as well, and parts for each thread at most: who comes late finds some left."""

AMONG_THREADS = f"""
define i64 @entry(ptr %data, ptr %function, i64 %extent, i64 %unit, i64 %work) {{
start:
  %given = alloca {{ ptr, ptr, i64, i64, i64 }}
  %little = icmp slt i64 %work, {2 * WORK}
  br i1 %little, label %serial, label %count
count:  ; which divides: that would be felt where there is little to do
  %more = add i64 %extent, %unit
  %padded = sub i64 %more, 1
  %units = sdiv i64 %padded, %unit
  %shares = sdiv i64 %work, {WORK}
  %wanted = call i64 @llvm.smin.i64(i64 %units, i64 %shares)
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
  %at1 = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr %given, i32 0, i32 1
  %at2 = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr %given, i32 0, i32 2
  %at3 = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr %given, i32 0, i32 3
  store ptr %data, ptr %given
  store ptr %function, ptr %at1
  store i64 %extent, ptr %at2
  store i64 %unit, ptr %at3
  %at4 = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr %given, i32 0, i32 4
  store i64 0, ptr %at4
  %worth = sdiv i64 %work, {PART}
  %most = mul i64 %team, {MOST_PARTS}
  %fewer = call i64 @llvm.smin.i64(i64 %worth, i64 %most)
  %parts = call i64 @llvm.smin.i64(i64 %fewer, i64 %units)
  call void @jk_parallel(ptr @jk_part, ptr %given, i64 %team, i64 %parts)
  %statuses = load i64, ptr %at4
  ret i64 %statuses
}}
define internal void @jk_part(ptr %given, i64 %part, i64 %parts) nounwind {{
start:
  %at1 = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr %given, i32 0, i32 1
  %at2 = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr %given, i32 0, i32 2
  %at3 = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr %given, i32 0, i32 3
  %data = load ptr, ptr %given
  %function = load ptr, ptr %at1
  %extent = load i64, ptr %at2
  %unit = load i64, ptr %at3
  %more = add i64 %extent, %unit
  %padded = sub i64 %more, 1
  %units = sdiv i64 %padded, %unit
  %first = mul i64 %part, %units
  %next = add i64 %first, %units
  %low = sdiv i64 %first, %parts
  %high = sdiv i64 %next, %parts
  %begin = mul i64 %low, %unit
  %stop = mul i64 %high, %unit
  %end = call i64 @llvm.smin.i64(i64 %stop, i64 %extent)
  %status = call i64 %function(ptr %data, i64 %begin, i64 %end)
  %at4 = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr %given, i32 0, i32 4
  atomicrmw or ptr %at4, i64 %status monotonic
  ret void
}}
"""

ALONE = """
define i64 @entry(ptr %data, ptr %function, i64 %extent, i64 %unit, i64 %work) {
  %status = tail call i64 %function(ptr %data, i64 0, i64 %extent)
  ret i64 %status
}
"""
