"""The warning path of compiled calls.

Floating-point flags that a call has set are reported to its link's reporter. It is not called if
nothing is to be warned of, nor while its skip count for the same flags is positive.
"""

from jitkernels.runtime import errstate

REPORTER, FLAGS, SKIPS = 7, 8, 9
"""Words of a link: its reporter or null, the last reported flags, and the skip count for these."""

TEXT = f"""define internal ptr @report_flags(
  ptr %link, i32 %failures, ptr %result, ptr %objects, i64 %flagged, ptr %names
) noinline nounwind {{
begin:
  %reporter.at = getelementptr i64, ptr %link, i64 {REPORTER}
  %reporter = load ptr, ptr %reporter.at
  %has.reporter = icmp ne ptr %reporter, null
  br i1 %has.reporter, label %check, label %fine
check:
  %failures.at = getelementptr i64, ptr %link, i64 {FLAGS}
  %failures.word = zext i32 %failures to i64
  %failures.before = load i64, ptr %failures.at
  %skips.at = getelementptr i64, ptr %link, i64 {SKIPS}
  %skips = load i64, ptr %skips.at
  %some = icmp sgt i64 %skips, 0
  %alike = icmp eq i64 %failures.before, %failures.word
  %skips.this = and i1 %some, %alike
  br i1 %skips.this, label %skip, label %look
skip:
  %fewer = sub i64 %skips, 1
  store i64 %fewer, ptr %skips.at
  br label %fine
look:
  %choices = call i32 @choices()
  %warned = and i32 %choices, {errstate.WARNED}
  %warns = icmp ne i32 %warned, 0
  br i1 %warns, label %report, label %fine
report:
  call void @flags_become(i32 0)
  store i64 %failures.word, ptr %failures.at
  store i64 0, ptr %skips.at
  call void @Py_IncRef(ptr %reporter)
  %reported = call ptr @PyObject_Vectorcall(ptr %reporter, ptr %objects, i64 %flagged, ptr %names)
  call void @Py_DecRef(ptr %reporter)
  %no.exception = icmp ne ptr %reported, null
  br i1 %no.exception, label %done, label %raised
done:
  call void @Py_DecRef(ptr %reported)
  br label %fine
raised:
  call void @Py_DecRef(ptr %result)
  ret ptr null
fine:
  ret ptr %result
}}
define internal i32 @choices() alwaysinline nounwind {{
  %errors.at = alloca ptr
  %status = call i32 @PyContextVar_Get(ptr @jk_errors, ptr null, ptr %errors.at)
  %errors = load ptr, ptr %errors.at
  %settings.at = getelementptr i8, ptr %errors, i64 {errstate.POINTER}
  %settings = load ptr, ptr %settings.at
  %found = load i32, ptr %settings
  call void @Py_DecRef(ptr %errors)
  ret i32 %found
}}
"""
