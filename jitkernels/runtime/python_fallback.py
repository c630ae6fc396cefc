"""The function of links by which calls are the plain function's: it looks at types and calls.

context: callable, number of arguments by position, tuple of names or null, most elements of an array, number of
    arguments in all; and for each of these its type and, of arrays, dtype, number of dimensions and flags, of
    others the very object that it has to be, or null
"""

import functools

from jitkernels.native import c_api
from jitkernels.native.ir import STRAIGHT, IRSource
from jitkernels.native.layout import ALIGNED, CONTIGUOUS, IN_FORTRAN_ORDER, Offset

FLAGS = ALIGNED | CONTIGUOUS | IN_FORTRAN_ORDER
"""What has to be the same in arrays."""
TEXT = f"""@jk_ndarray = external global i8
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
define ptr @entry(ptr %context, ptr %objects, ptr %out) nounwind {{
start:
  %alone = icmp eq ptr %out, null
  br i1 %alone, label %begin, label %no
begin:
  %most.at = getelementptr i64, ptr %context, i64 3
  %most = load i64, ptr %most.at
  %all.at = getelementptr i64, ptr %context, i64 4
  %all = load i64, ptr %all.at
  br label %next
next:
  %i = phi i64 [ 0, %begin ], [ %i.next, %fits ]
  %more = icmp slt i64 %i, %all
  br i1 %more, label %look, label %call
look:
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %object.at
  %type.at = getelementptr i8, ptr %object, i64 {int(Offset.TYPE)}
  %type = load ptr, ptr %type.at
  %word = mul i64 %i, 4
  %first = add i64 %word, 5
  %record = getelementptr i64, ptr %context, i64 %first
  %wanted = load ptr, ptr %record
  %i.next = add i64 %i, 1
  %alike = icmp eq ptr %type, %wanted
  br i1 %alike, label %kind, label %no
kind:
  %is.array = icmp eq ptr %type, @jk_ndarray
  br i1 %is.array, label %array, label %other
other:
  %same.at = getelementptr i64, ptr %record, i64 1
  %same = load ptr, ptr %same.at
  %any = icmp eq ptr %same, null
  %is.same = icmp eq ptr %same, %object
  %passes = or i1 %any, %is.same
  br i1 %passes, label %fits, label %no
array:
  %dtype.at = getelementptr i8, ptr %object, i64 {int(Offset.ARRAY_DTYPE)}
  %dtype = load ptr, ptr %dtype.at
  %wanted.dtype.at = getelementptr i64, ptr %record, i64 1
  %wanted.dtype = load ptr, ptr %wanted.dtype.at
  %same.dtype = icmp eq ptr %dtype, %wanted.dtype
  %dimensions.at = getelementptr i8, ptr %object, i64 {int(Offset.ARRAY_DIMENSIONS)}
  %dimensions.short = load i32, ptr %dimensions.at
  %dimensions = zext i32 %dimensions.short to i64
  %wanted.dimensions.at = getelementptr i64, ptr %record, i64 2
  %wanted.dimensions = load i64, ptr %wanted.dimensions.at
  %same.dimensions = icmp eq i64 %dimensions, %wanted.dimensions
  %flags.at = getelementptr i8, ptr %object, i64 {int(Offset.ARRAY_FLAGS)}
  %flags.all = load i32, ptr %flags.at
  %flags.masked = and i32 %flags.all, {FLAGS}
  %flags = zext i32 %flags.masked to i64
  %wanted.flags.at = getelementptr i64, ptr %record, i64 3
  %wanted.flags = load i64, ptr %wanted.flags.at
  %same.flags = icmp eq i64 %flags, %wanted.flags
  %both = and i1 %same.dtype, %same.dimensions
  %every = and i1 %both, %same.flags
  br i1 %every, label %sized, label %no
sized:
  %extents.at = getelementptr i8, ptr %object, i64 {int(Offset.ARRAY_EXTENTS)}
  %extents = load ptr, ptr %extents.at
  br label %extent
extent:
  %d = phi i64 [ 0, %sized ], [ %d.next, %longer ]
  %size = phi i64 [ 1, %sized ], [ %size.next, %longer ]
  %left = icmp slt i64 %d, %dimensions
  br i1 %left, label %longer, label %whole
longer:
  %one.at = getelementptr i64, ptr %extents, i64 %d
  %one = load i64, ptr %one.at
  %size.next = mul i64 %size, %one
  %d.next = add i64 %d, 1
  br label %extent
whole:
  %small = icmp sle i64 %size, %most
  br i1 %small, label %fits, label %no
fits:
  br label %next
call:
  %callee = load ptr, ptr %context
  %count.at = getelementptr i64, ptr %context, i64 1
  %count = load i64, ptr %count.at
  %names.at = getelementptr i64, ptr %context, i64 2
  %names = load ptr, ptr %names.at
  %found = call ptr @PyObject_Vectorcall(ptr %callee, ptr %objects, i64 %count, ptr %names)
  ret ptr %found
no:
  ret ptr null
}}
"""


@functools.cache
def source() -> IRSource:
    return IRSource("plain_call", f"{STRAIGHT}{TEXT}", c_api.externals())
