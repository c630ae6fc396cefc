"""The link function of fallbacks: it guards types and calls the plain Python function.

context: callable, number of positional arguments, tuple of names or null, most elements of an array, number of all
    arguments, how many calls it serves until Python decides again (-1: all); and for each argument its type and, for
    arrays, dtype, number of dimensions and flags, for others an object that it must equal, or null
"""

import functools

from jitkernels.codegen.ir_source import LIGHT_PIPELINE, IRSource
from jitkernels.runtime import c_api
from jitkernels.runtime.abi_layout import ALIGNED, CONTIGUOUS, DTYPE_MASK, DTYPE_WORD, IN_FORTRAN_ORDER, Offset

FLAGS = ALIGNED | CONTIGUOUS | IN_FORTRAN_ORDER
"""Array flags that must be equal."""
CALLS_WORD, DESCRIPTORS_WORD = 5, 6
"""Words of the context: the remaining calls, and the first argument's descriptor."""
TEXT = f"""@jk_ndarray = external global i8
@jk_str = external global i8
@jk_int = external global i8
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
define ptr @entry(ptr %context, ptr %objects, ptr %out) nounwind {{
start:
  %alone = icmp eq ptr %out, null
  br i1 %alone, label %begin, label %no
begin:
  %calls.at = getelementptr i64, ptr %context, i64 {CALLS_WORD}
  %calls = load i64, ptr %calls.at
  %over = icmp eq i64 %calls, 0
  br i1 %over, label %no, label %on
on:
  %most.at = getelementptr i64, ptr %context, i64 3
  %most = load i64, ptr %most.at
  %all.at = getelementptr i64, ptr %context, i64 4
  %all = load i64, ptr %all.at
  br label %next
next:
  %i = phi i64 [ 0, %on ], [ %i.next, %fits ]
  %more = icmp slt i64 %i, %all
  br i1 %more, label %look, label %call
look:
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %object.at
  %type.at = getelementptr i8, ptr %object, i64 {int(Offset.TYPE)}
  %type = load ptr, ptr %type.at
  %word = mul i64 %i, 4
  %first = add i64 %word, {DESCRIPTORS_WORD}
  %descriptor = getelementptr i64, ptr %context, i64 %first
  %wanted = load ptr, ptr %descriptor
  %i.next = add i64 %i, 1
  %alike = icmp eq ptr %type, %wanted
  br i1 %alike, label %kind, label %no
kind:
  %is.array = icmp eq ptr %type, @jk_ndarray
  br i1 %is.array, label %array, label %other
other:
  %same.at = getelementptr i64, ptr %descriptor, i64 1
  %same = load ptr, ptr %same.at
  %any = icmp eq ptr %same, null
  %is.same = icmp eq ptr %same, %object
  %passes = or i1 %any, %is.same
  br i1 %passes, label %fits, label %equal
equal:
  %is.str = icmp eq ptr %type, @jk_str
  %is.int = icmp eq ptr %type, @jk_int
  %compares = or i1 %is.str, %is.int
  br i1 %compares, label %compare, label %no
compare:
  %equals = call i32 @PyObject_RichCompareBool(ptr %object, ptr %same, i32 2)
  %are.equal = icmp eq i32 %equals, 1
  br i1 %are.equal, label %fits, label %no
array:
  %dtype.at = getelementptr i8, ptr %object, i64 {int(Offset.ARRAY_DTYPE)}
  %dtype = load ptr, ptr %dtype.at
  %wanted.dtype.at = getelementptr i64, ptr %descriptor, i64 1
  %wanted.dtype = load ptr, ptr %wanted.dtype.at
  %dtype.word.at = getelementptr i8, ptr %dtype, i64 {DTYPE_WORD}
  %dtype.word = load i64, ptr %dtype.word.at
  %wanted.word.at = getelementptr i8, ptr %wanted.dtype, i64 {DTYPE_WORD}
  %wanted.word = load i64, ptr %wanted.word.at
  %dtype.bits = xor i64 %dtype.word, %wanted.word
  %dtype.other = and i64 %dtype.bits, {DTYPE_MASK}
  %same.dtype = icmp eq i64 %dtype.other, 0
  %dimensions.at = getelementptr i8, ptr %object, i64 {int(Offset.ARRAY_DIMENSIONS)}
  %dimensions.short = load i32, ptr %dimensions.at
  %dimensions = zext i32 %dimensions.short to i64
  %wanted.dimensions.at = getelementptr i64, ptr %descriptor, i64 2
  %wanted.dimensions = load i64, ptr %wanted.dimensions.at
  %same.dimensions = icmp eq i64 %dimensions, %wanted.dimensions
  %flags.at = getelementptr i8, ptr %object, i64 {int(Offset.ARRAY_FLAGS)}
  %flags.all = load i32, ptr %flags.at
  %flags.masked = and i32 %flags.all, {FLAGS}
  %flags = zext i32 %flags.masked to i64
  %wanted.flags.at = getelementptr i64, ptr %descriptor, i64 3
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
  %limited = icmp sgt i64 %calls, 0
  %less = sext i1 %limited to i64
  %calls.left = add i64 %calls, %less
  store i64 %calls.left, ptr %calls.at
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
    return IRSource("plain_call", f"{LIGHT_PIPELINE}{TEXT}", c_api.externals())
