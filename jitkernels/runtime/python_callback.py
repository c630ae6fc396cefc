"""Callback from compiled code into Python: call a Python function with arrays that wrap existing memory.

``i64 f(ptr callee, i64 count, ptr arguments, i64 results, ptr descriptors, i64 reports)`` calls a function with
positional arguments. Six words describe each argument: its kind (`KINDS`), the address of its elements, and, for arrays
and NumPy scalars, the dtype object, the number of dimensions, and the addresses of extents and of strides in bytes (0
if dense). Six words describe each result: its index in a tuple (-1: the whole result), the destination address, the
dtype object, dimensions, extents, and bytes.

It returns 0, `REFUSED` if the function raised or returned something unexpected, or `INTERRUPTED` if it raised a
BaseException that ends programs, or a signal handler did. With `reports`, floating-point errors are left in the
processor's flags; otherwise they are dropped.
"""

import functools
import itertools
from _thread import _local
from functools import partial
from typing import Any

import numpy as np
from numpy._core import umath

from jitkernels.codegen.ir_source import LIGHT_PIPELINE, IRSource
from jitkernels.codegen.source_protocol import External
from jitkernels.core import signal_exceptions
from jitkernels.runtime import c_api, errstate, fp_status
from jitkernels.runtime.abi_layout import ALIGNED, CONTIGUOUS, WRITEABLE, Offset
from jitkernels.runtime.c_api import link

ARRAY, SCALAR, FLOAT, INT, BOOL = range(5)
ARGUMENT_WORDS = 6
MAX_CALLBACK_ARGUMENTS = 16
"""Arguments of a call."""
REFUSED, INTERRUPTED = 2, 4
CALLBACK_NAME = "jk_numpy_call"
_last_error = np.zeros(1, np.int64)
"""The sequence number of the last error NumPy reported in any thread: unchanged by a call without errors."""
_numbers = itertools.count(1)


class _ThreadErrors(_local):
    """The errors that NumPy reported in this thread, as processor flags."""

    flags = 0


_thread_errors = _ThreadErrors()


def _record(_: str, number: int) -> None:
    """NumPy's error handler: record the flags."""
    for bit, kind in errstate.BITS.items():
        if number & bit:
            _thread_errors.flags |= fp_status.bits()[kind]
    _last_error[0] = next(_numbers)


def _take_flags() -> int:
    """Read and clear this thread's recorded flags."""
    flags, _thread_errors.flags = _thread_errors.flags, 0
    return flags


@functools.cache
def _settings() -> Any:
    """NumPy error settings with this module's handler."""
    make: Any = umath._make_extobj  # as in `numpy.errstate`
    return make(divide="call", over="call", invalid="call", under="ignore", call=_record)


TEXT = f"""@jk_ndarray = external global i8
@jk_exception = external global i8
@jk_errors = external global i8
@jk_settings = external global i8
@jk_last_error = external global i64
@jk_take_flags = external global i8
@jk_true = external global i8
@jk_of_handler = external global i8
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_ExceptionMatches(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare i64 @PyLong_AsLong(ptr)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyLong_FromLong(i64)
declare ptr @PySequence_GetItem(ptr, i64)
declare ptr @PyContextVar_Set(ptr, ptr)
declare i32 @PyContextVar_Reset(ptr, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @PyArray_Return(ptr)
declare ptr @PyArray_CheckFromAny(ptr, ptr, i32, i32, i32, ptr)
declare i32 @PyArray_CopyInto(ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i64 @entry(ptr %callee, i64 %count, ptr %inputs, i64 %results, ptr %outputs, i64 %reports) nounwind {{
start:
  %objects = alloca [{MAX_CALLBACK_ARGUMENTS} x ptr]
  %pending = alloca [3 x ptr]
  %gil = call i32 @PyGILState_Ensure()
  %before = call i32 @flags_now()
  %quiet = icmp eq i64 %reports, 0
  %last.before = load i64, ptr @jk_last_error
  br i1 %quiet, label %next, label %listen
listen:
  %token = call ptr @PyContextVar_Set(ptr @jk_errors, ptr @jk_settings)
  %no.token = icmp eq ptr %token, null
  br i1 %no.token, label %leave.early, label %next
next:
  %held = phi ptr [ null, %start ], [ %token, %listen ], [ %held, %made ]
  %i = phi i64 [ 0, %start ], [ 0, %listen ], [ %i.after, %made ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %make, label %call
make:
  %word = mul i64 %i, {ARGUMENT_WORDS}
  %descriptor = getelementptr i64, ptr %inputs, i64 %word
  %kind = load i64, ptr %descriptor
  %data.at = getelementptr i64, ptr %descriptor, i64 1
  %data = load ptr, ptr %data.at
  switch i64 %kind, label %array [ i64 {FLOAT}, label %float i64 {INT}, label %int i64 {BOOL}, label %bool ]
float:
  %double = load double, ptr %data
  %float.object = call ptr @PyFloat_FromDouble(double %double)
  br label %stored
int:
  %whole = load i64, ptr %data
  %int.object = call ptr @PyLong_FromLong(i64 %whole)
  br label %stored
bool:
  %byte = load i8, ptr %data
  %bit = zext i8 %byte to i64
  %bool.object = call ptr @PyBool_FromLong(i64 %bit)
  br label %stored
array:
  %dtype.at = getelementptr i64, ptr %descriptor, i64 2
  %dtype = load ptr, ptr %dtype.at
  %nd.at = getelementptr i64, ptr %descriptor, i64 3
  %nd = load i32, ptr %nd.at
  %extents.at = getelementptr i64, ptr %descriptor, i64 4
  %extents = load ptr, ptr %extents.at
  %steps.at = getelementptr i64, ptr %descriptor, i64 5
  %steps = load ptr, ptr %steps.at
  call void @Py_IncRef(ptr %dtype)
  %made.array = call ptr @PyArray_NewFromDescr(ptr @jk_ndarray, ptr %dtype, i32 %nd,
      ptr %extents, ptr %steps, ptr %data, i32 {ALIGNED | WRITEABLE}, ptr null)
  %is.scalar = icmp eq i64 %kind, {SCALAR}
  br i1 %is.scalar, label %scalar, label %stored
scalar:
  %scalar.object = call ptr @PyArray_Return(ptr %made.array)
  br label %stored
stored:
  %object = phi ptr [ %float.object, %float ], [ %int.object, %int ], [ %bool.object, %bool ],
      [ %made.array, %array ], [ %scalar.object, %scalar ]
  %missing = icmp eq ptr %object, null
  br i1 %missing, label %done, label %made
made:
  %place = getelementptr ptr, ptr %objects, i64 %i
  store ptr %object, ptr %place
  %i.after = add i64 %i, 1
  br label %next
call:
  %result = call ptr @PyObject_Vectorcall(ptr %callee, ptr %objects, i64 %count, ptr null)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %done, label %take
take:
  %j = phi i64 [ 0, %call ], [ %j.after, %stored.result ]
  %wanted = icmp slt i64 %j, %results
  br i1 %wanted, label %get, label %all
get:
  %word.out = mul i64 %j, {ARGUMENT_WORDS}
  %descriptor.out = getelementptr i64, ptr %outputs, i64 %word.out
  %index = load i64, ptr %descriptor.out
  %target.at = getelementptr i64, ptr %descriptor.out, i64 1
  %target = load ptr, ptr %target.at
  %dtype.out.at = getelementptr i64, ptr %descriptor.out, i64 2
  %dtype.out = load ptr, ptr %dtype.out.at
  %nd.out.at = getelementptr i64, ptr %descriptor.out, i64 3
  %nd.out = load i32, ptr %nd.out.at
  %extents.out.at = getelementptr i64, ptr %descriptor.out, i64 4
  %extents.out = load ptr, ptr %extents.out.at
  %is.whole = icmp slt i64 %index, 0
  br i1 %is.whole, label %itself, label %part
itself:
  call void @Py_IncRef(ptr %result)
  br label %look
part:
  %item = call ptr @PySequence_GetItem(ptr %result, i64 %index)
  %none = icmp eq ptr %item, null
  br i1 %none, label %unfit, label %look
look:
  %value = phi ptr [ %result, %itself ], [ %item, %part ]
  %type.at = getelementptr i8, ptr %value, i64 {int(Offset.TYPE)}
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, @jk_ndarray
  br i1 %is.array, label %compare, label %convert
convert:
  %converted = call ptr @PyArray_CheckFromAny(ptr %value, ptr null, i32 0, i32 0, i32 0, ptr null)
  call void @Py_DecRef(ptr %value)
  %no.array = icmp eq ptr %converted, null
  br i1 %no.array, label %unfit, label %compare
compare:
  %found = phi ptr [ %value, %look ], [ %converted, %convert ]
  %found.dtype.at = getelementptr i8, ptr %found, i64 {int(Offset.ARRAY_DTYPE)}
  %found.dtype = load ptr, ptr %found.dtype.at
  %same.dtype = icmp eq ptr %found.dtype, %dtype.out
  %found.nd.at = getelementptr i8, ptr %found, i64 {int(Offset.ARRAY_DIMENSIONS)}
  %found.nd = load i32, ptr %found.nd.at
  %same.nd = icmp eq i32 %found.nd, %nd.out
  %alike = and i1 %same.dtype, %same.nd
  %found.extents.at = getelementptr i8, ptr %found, i64 {int(Offset.ARRAY_EXTENTS)}
  %found.extents = load ptr, ptr %found.extents.at
  %dimensions = sext i32 %nd.out to i64
  br i1 %alike, label %extent, label %let.go
extent:
  %d = phi i64 [ 0, %compare ], [ %d.after, %longer ]
  %left = icmp slt i64 %d, %dimensions
  br i1 %left, label %longer, label %bring
longer:
  %one.at = getelementptr i64, ptr %found.extents, i64 %d
  %one = load i64, ptr %one.at
  %other.at = getelementptr i64, ptr %extents.out, i64 %d
  %other = load i64, ptr %other.at
  %d.after = add i64 %d, 1
  %same.extent = icmp eq i64 %one, %other
  br i1 %same.extent, label %extent, label %let.go
bring:
  %flags.at = getelementptr i8, ptr %found, i64 {int(Offset.ARRAY_FLAGS)}
  %flags = load i32, ptr %flags.at
  %contiguous.bit = and i32 %flags, {CONTIGUOUS}
  %contiguous = icmp ne i32 %contiguous.bit, 0
  br i1 %contiguous, label %copy, label %arrange
copy:
  %source.at = getelementptr i8, ptr %found, i64 {int(Offset.ARRAY_DATA)}
  %source = load ptr, ptr %source.at
  %size.at = getelementptr i64, ptr %descriptor.out, i64 5
  %size = load i64, ptr %size.at
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  call void @Py_DecRef(ptr %found)
  br label %stored.result
arrange:
  call void @Py_IncRef(ptr %dtype.out)
  %view = call ptr @PyArray_NewFromDescr(ptr @jk_ndarray, ptr %dtype.out, i32 %nd.out,
      ptr %extents.out, ptr null, ptr %target, i32 {ALIGNED | WRITEABLE}, ptr null)
  %no.view = icmp eq ptr %view, null
  br i1 %no.view, label %let.go, label %rearrange
rearrange:
  %copied = call i32 @PyArray_CopyInto(ptr %view, ptr %found)
  call void @Py_DecRef(ptr %view)
  call void @Py_DecRef(ptr %found)
  %fine = icmp eq i32 %copied, 0
  br i1 %fine, label %stored.result, label %unfit
stored.result:
  %j.after = add i64 %j, 1
  br label %take
let.go:
  call void @Py_DecRef(ptr %found)
  br label %unfit
unfit:
  call void @Py_DecRef(ptr %result)
  br label %done
all:
  call void @Py_DecRef(ptr %result)
  br label %done
done:
  %good = phi i1 [ false, %stored ], [ false, %call ], [ false, %unfit ], [ true, %all ]
  %last = phi i64 [ %i, %stored ], [ %count, %call ], [ %count, %unfit ], [ %count, %all ]
  br label %free
free:
  %k = phi i64 [ 0, %done ], [ %k.after, %freed ]
  %some = icmp slt i64 %k, %last
  br i1 %some, label %freed, label %reset
freed:
  %own.at = getelementptr ptr, ptr %objects, i64 %k
  %own = load ptr, ptr %own.at
  call void @Py_DecRef(ptr %own)
  %k.after = add i64 %k, 1
  br label %free
reset:
  br i1 %quiet, label %flag, label %forget
forget:
  %ignored = call i32 @PyContextVar_Reset(ptr @jk_errors, ptr %held)
  call void @Py_DecRef(ptr %held)
  %last.after = load i64, ptr @jk_last_error
  %no.errors = icmp eq i64 %last.after, %last.before
  br i1 %no.errors, label %flag, label %ask
ask:
  %pending.value = getelementptr ptr, ptr %pending, i64 1
  %pending.trace = getelementptr ptr, ptr %pending, i64 2
  call void @PyErr_Fetch(ptr %pending, ptr %pending.value, ptr %pending.trace)
  %taken = call ptr @PyObject_Vectorcall(ptr @jk_take_flags, ptr %objects, i64 0, ptr null)
  %untaken = icmp eq ptr %taken, null
  br i1 %untaken, label %restore, label %answered.flags
answered.flags:
  %taken.wide = call i64 @PyLong_AsLong(ptr %taken)
  %taken.flags = trunc i64 %taken.wide to i32
  call void @Py_DecRef(ptr %taken)
  br label %restore
restore:
  %errors = phi i32 [ 0, %ask ], [ %taken.flags, %answered.flags ]
  %first = load ptr, ptr %pending
  %second = load ptr, ptr %pending.value
  %third = load ptr, ptr %pending.trace
  call void @PyErr_Restore(ptr %first, ptr %second, ptr %third)
  br label %flag
flag:
  %errors.now = phi i32 [ 0, %reset ], [ 0, %forget ], [ %errors, %restore ]
  %own.flags = or i32 %before, %errors.now
  call void @flags_become(i32 %own.flags)
  br i1 %good, label %leave, label %why
leave.early:
  br label %why
why:
  %error = call ptr @PyErr_Occurred()
  %silent = icmp eq ptr %error, null
  br i1 %silent, label %leave, label %which
which:
  %is.error = call i32 @PyErr_ExceptionMatches(ptr @jk_exception)
  %ends = icmp eq i32 %is.error, 0
  br i1 %ends, label %leave, label %clear
clear:
  %raised.value = getelementptr ptr, ptr %pending, i64 1
  %raised.trace = getelementptr ptr, ptr %pending, i64 2
  call void @PyErr_Fetch(ptr %pending, ptr %raised.value, ptr %raised.trace)
  %raised.one = load ptr, ptr %pending
  %raised.two = load ptr, ptr %raised.value
  %raised.three = load ptr, ptr %raised.trace
  %traceless = icmp eq ptr %raised.three, null
  br i1 %traceless, label %own.error, label %whose
whose:
  %answer = call ptr @PyObject_Vectorcall(ptr @jk_of_handler, ptr %raised.trace, i64 1, ptr null)
  %unanswered = icmp eq ptr %answer, null
  br i1 %unanswered, label %own.error, label %answered
answered:
  call void @Py_DecRef(ptr %answer)
  %of.handler = icmp eq ptr %answer, @jk_true
  br i1 %of.handler, label %keep, label %own.error
keep:
  call void @PyErr_Restore(ptr %raised.one, ptr %raised.two, ptr %raised.three)
  br label %leave
own.error:
  call void @PyErr_Restore(ptr %raised.one, ptr %raised.two, ptr %raised.three)
  call void @PyErr_Clear()
  br label %leave
leave:
  %status = phi i64 [ 0, %flag ], [ {REFUSED}, %why ], [ {INTERRUPTED}, %which ],
      [ {INTERRUPTED}, %keep ], [ {REFUSED}, %own.error ]
  call void @PyGILState_Release(i32 %gil)
  ret i64 %status
}}
"""


@functools.cache
def _source() -> IRSource:
    own = (
        *c_api.calling(),
        link("jk_exception", partial(id, Exception)),
        link("jk_errors", partial(id, errstate.variable)),
        link("jk_settings", lambda: id(_settings())),
        link("jk_last_error", lambda: _last_error.ctypes.data),
        link("jk_take_flags", partial(id, _take_flags)),
        link("jk_true", partial(id, True)),
        link("jk_of_handler", partial(id, signal_exceptions.is_behind)),
    )
    return IRSource("numpy_call", f"{LIGHT_PIPELINE}{fp_status.text()}{TEXT}", (*c_api.externals(), *own))


@functools.cache
def entry() -> External:
    """The callback, as an external function of compiled code."""
    from jitkernels.runtime.loading import loader

    return External(
        CALLBACK_NAME,
        "int64",
        ("ptr", "int64", "ptr", "int64", "ptr", "int64"),
        lambda: loader.address_of(_source()),
        _source,
    )
