"""The callable type of compiled functions: a ``vectorcall`` entry in machine code that walks the inline cache.

An object has two words behind CPython's header: the vectorcall function, and the address of its inline cache table
(see `inline_cache`).

If NumPy's settings raise for floating-point errors, the plain callable is called, or the slow one if there is none or
``out`` is given (see `errstate`). If they warn, and a function has set processor flags (see `fp_flag_handler`), the
link's reporter is called with the same arguments; an exception that it raises propagates.

Link functions are ``ptr f(ptr context, ptr objects, ptr out)``, see `jitkernels.compiler.dispatch.entry_point`; `out`
is null for None, or the keyword argument ``out``. If one returns `BAILOUT` (a bailout), the table's plain callable
is called directly, if it has one and no ``out`` is given; after many bailouts the slow one.
"""

import ctypes
import functools
from typing import Any

import numpy as np

from jitkernels.codegen.ir_source import LIGHT_PIPELINE, IRSource
from jitkernels.codegen.source_protocol import External
from jitkernels.core import dtypes
from jitkernels.errors import WorkspaceError
from jitkernels.runtime import abi_check, c_api, errstate, fp_flag_handler, fp_status, workspace_allocator
from jitkernels.runtime.abi_layout import Offset
from jitkernels.runtime.inline_cache import (
    BAILOUT,
    BAILOUTS,
    CALLS_IN_PROGRESS,
    CELL,
    MANY_BAILOUTS,
    NAMES,
    OUT_NAME,
    PLAIN_FUNCTION_WORD,
    STAYS_LAST,
)
from jitkernels.runtime.loading import loader

VECTORCALL, TABLE, SIZE = 16, 24, 32
"""Byte offsets in an object, and its size."""
HAVE_VECTORCALL, BASETYPE, FLAGS_OFFSET = 1 << 11, 1 << 10, 168
NO_WORKSPACE = "a kernel of a compiled function has no memory for its workspace"

TEXT = f"""@jk_errors = external global i8
@jk_none = external global i8
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
define ptr @entry(ptr %callable, ptr %objects, i64 %flagged, ptr %names) nounwind {{
begin:
  %table.at = getelementptr i8, ptr %callable, i64 {TABLE}
  %table = load ptr, ptr %table.at
  %choices = call i32 @choices()
  %unsupported = and i32 %choices, {errstate.UNSUPPORTED}
  %quiet = icmp eq i32 %unsupported, 0
  br i1 %quiet, label %start, label %raising, !prof !8
raising:
  ; NumPy computes, which raises: without Python in between, unless it is to say where results go.
  %raising.at = getelementptr i64, ptr %table, i64 {PLAIN_FUNCTION_WORD}
  %raising.callee = load ptr, ptr %raising.at
  %is.derivative = icmp eq ptr %raising.callee, null
  br i1 %is.derivative, label %slow, label %raising.names
raising.names:
  %raising.unnamed = icmp eq ptr %names, null
  br i1 %raising.unnamed, label %raise, label %raising.out
raising.out:
  %raising.size.at = getelementptr i8, ptr %names, i64 {int(Offset.TUPLE_SIZE)}
  %raising.size = load i64, ptr %raising.size.at
  br label %raising.name
raising.name:
  %raising.number = phi i64 [ 0, %raising.out ], [ %raising.after, %raising.other ]
  %raising.more = icmp slt i64 %raising.number, %raising.size
  br i1 %raising.more, label %raising.look, label %raise
raising.look:
  %raising.items = getelementptr i8, ptr %names, i64 {int(Offset.TUPLE_ITEMS)}
  %raising.item.at = getelementptr ptr, ptr %raising.items, i64 %raising.number
  %raising.item = load ptr, ptr %raising.item.at
  %raising.out.at = getelementptr i64, ptr %table, i64 {OUT_NAME}
  %raising.out.name = load ptr, ptr %raising.out.at
  %raising.after = add i64 %raising.number, 1
  %raising.takes = icmp eq ptr %raising.out.name, null
  br i1 %raising.takes, label %raise, label %raising.compare
raising.compare:
  %raising.equal = call i32 @PyObject_RichCompareBool(ptr %raising.item, ptr %raising.out.name, i32 2)
  %raising.is.out = icmp eq i32 %raising.equal, 1
  br i1 %raising.is.out, label %slow, label %raising.other
raising.other:
  br label %raising.name
raise:
  %raised.by = tail call ptr @PyObject_Vectorcall(ptr %raising.callee, ptr %objects, i64 %flagged, ptr %names)
  ret ptr %raised.by
start:
  %count = and i64 %flagged, {2**63 - 1}
  %plain = icmp eq ptr %names, null
  br i1 %plain, label %first, label %named
named:
  %size.at = getelementptr i8, ptr %names, i64 {int(Offset.TUPLE_SIZE)}
  %size = load i64, ptr %size.at
  %before = sub i64 %size, 1
  %names.at = getelementptr i8, ptr %names, i64 {int(Offset.TUPLE_ITEMS)}
  %name.at = getelementptr ptr, ptr %names.at, i64 %before
  %name = load ptr, ptr %name.at
  %out.name.at = getelementptr i64, ptr %table, i64 {OUT_NAME}
  %out.name = load ptr, ptr %out.name.at
  %is_out = icmp eq ptr %name, %out.name
  br i1 %is_out, label %given, label %first
given:
  %all = add i64 %count, %before
  %out.at = getelementptr ptr, ptr %objects, i64 %all
  %found = load ptr, ptr %out.at
  %none = icmp eq ptr %found, @jk_none
  %taken = select i1 %none, ptr null, ptr %found
  br label %first
first:
  %out = phi ptr [ null, %start ], [ null, %named ], [ %taken, %given ]
  %named.count = phi i64 [ 0, %start ], [ %size, %named ], [ %before, %given ]
  %says.where = phi i1 [ false, %start ], [ false, %named ], [ true, %given ]
  %head.at = getelementptr i64, ptr %table, i64 1
  %under.at = getelementptr i64, ptr %table, i64 {CALLS_IN_PROGRESS}
  %under = load i64, ptr %under.at
  %one.more = add i64 %under, 1
  store i64 %one.more, ptr %under.at
  br label %next
next:
  %at = phi ptr [ %head.at, %first ], [ %link, %other ], [ %link, %failed ]
  %link = load ptr, ptr %at
  %end = icmp eq ptr %link, null
  br i1 %end, label %not.taken, label %try
try:
  %own.at = getelementptr i64, ptr %link, i64 3
  %own = load i64, ptr %own.at
  %same = icmp eq i64 %own, %count
  br i1 %same, label %called, label %other
other:
  br label %next
called:
  %by.name.at = getelementptr i64, ptr %link, i64 4
  %by.name = load i64, ptr %by.name.at
  %as.many = icmp eq i64 %by.name, %named.count
  br i1 %as.many, label %name.next, label %other
name.next:
  %name.number = phi i64 [ 0, %called ], [ %name.after, %name.same ]
  %more.names = icmp slt i64 %name.number, %by.name
  br i1 %more.names, label %name.look, label %look
name.look:
  %item.base = getelementptr i8, ptr %names, i64 {int(Offset.TUPLE_ITEMS)}
  %item.at = getelementptr ptr, ptr %item.base, i64 %name.number
  %item = load ptr, ptr %item.at
  %name.word = add i64 %name.number, {NAMES}
  %wanted.at = getelementptr i64, ptr %link, i64 %name.word
  %wanted = load ptr, ptr %wanted.at
  %name.after = add i64 %name.number, 1
  %agrees = icmp eq ptr %item, %wanted
  br i1 %agrees, label %name.same, label %name.compare, !prof !8
name.compare:
  %alike.names = call i32 @PyObject_RichCompareBool(ptr %item, ptr %wanted, i32 2)
  %are.alike = icmp eq i32 %alike.names, 1
  br i1 %are.alike, label %name.same, label %other
name.same:
  br label %name.next
look:
  %watches.at = getelementptr i64, ptr %link, i64 5
  %watches = load i64, ptr %watches.at
  %behind = add i64 %by.name, {NAMES}
  br label %watch
watch:
  %number = phi i64 [ 0, %look ], [ %number.next, %unchanged ]
  %more = icmp slt i64 %number, %watches
  br i1 %more, label %inspect, label %call
inspect:
  %word = mul i64 %number, 3
  %first.word = add i64 %word, %behind
  %watch.at = getelementptr i64, ptr %link, i64 %first.word
  %place = load ptr, ptr %watch.at
  %key.at = getelementptr i64, ptr %watch.at, i64 1
  %key = load ptr, ptr %key.at
  %expected.at = getelementptr i64, ptr %watch.at, i64 2
  %expected = load ptr, ptr %expected.at
  %is_cell = icmp eq ptr %place, null
  br i1 %is_cell, label %cell, label %entry_of
cell:
  %held.at = getelementptr i8, ptr %key, i64 {CELL}
  %held = load ptr, ptr %held.at
  br label %compare
entry_of:
  %bound = call ptr @PyDict_GetItemWithError(ptr %place, ptr %key)
  br label %compare
compare:
  %now = phi ptr [ %held, %cell ], [ %bound, %entry_of ]
  %number.next = add i64 %number, 1
  %unchanged.bit = icmp eq ptr %now, %expected
  br i1 %unchanged.bit, label %unchanged, label %other
unchanged:
  br label %watch
call:
  %function.at = getelementptr i64, ptr %link, i64 1
  %function = load ptr, ptr %function.at
  %context.at = getelementptr i64, ptr %link, i64 2
  %context = load ptr, ptr %context.at
  %flags.before = call i32 @flags_now()
  %stale = icmp ne i32 %flags.before, 0
  br i1 %stale, label %clear, label %go, !prof !9
clear:
  call void @flags_become(i32 0)
  br label %go
go:
  %result = call ptr %function(ptr %context, ptr %objects, ptr %out)
  %for.plain = icmp eq ptr %result, inttoptr (i64 {BAILOUT} to ptr)
  br i1 %for.plain, label %refused, label %returned, !prof !9
returned:
  %failures = call i32 @flags_now()
  %flagged.errors = icmp ne i32 %failures, 0
  br i1 %flagged.errors, label %errors, label %finished, !prof !9
errors:
  %computed = icmp ne ptr %result, null
  br i1 %computed, label %report, label %finished
report:
  %kept = call ptr @report_flags(ptr %link, i32 %failures, ptr %result, ptr %objects, i64 %flagged, ptr %names)
  %no.exception = icmp ne ptr %kept, null
  br i1 %no.exception, label %took, label %return
finished:
  %done = icmp ne ptr %result, null
  br i1 %done, label %took, label %why
took:
  ; What was called last is looked at first; unless it stays behind others, or the chain has changed meanwhile.
  %is.head = icmp eq ptr %at, %head.at
  br i1 %is.head, label %return, label %stays
stays:
  %flags.at = getelementptr i64, ptr %link, i64 {STAYS_LAST}
  %flags = load i64, ptr %flags.at
  %may.move = icmp eq i64 %flags, 0
  %there = load ptr, ptr %at
  %unmoved = icmp eq ptr %there, %link
  %moves = and i1 %may.move, %unmoved
  br i1 %moves, label %move, label %return
move:
  %behind.link = load ptr, ptr %link
  store ptr %behind.link, ptr %at
  %head = load ptr, ptr %head.at
  store ptr %head, ptr %link
  store ptr %link, ptr %head.at
  br label %return
return:
  %answer = phi ptr [ %result, %took ], [ %result, %stays ], [ %result, %move ], [ null, %why ], [ null, %report ]
  %still = load i64, ptr %under.at
  %one.less = sub i64 %still, 1
  store i64 %one.less, ptr %under.at
  ret ptr %answer
why:
  %error = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %return, label %failed
failed:
  br label %next
not.taken:
  %last.still = load i64, ptr %under.at
  %last.less = sub i64 %last.still, 1
  store i64 %last.less, ptr %under.at
  br label %slow
refused:
  ; Not where what it called was interrupted: that is raised.
  %pending = call ptr @PyErr_Occurred()
  %is.raised = icmp ne ptr %pending, null
  br i1 %is.raised, label %why, label %free
free:
  %plain.at = getelementptr i64, ptr %table, i64 {PLAIN_FUNCTION_WORD}
  %plain.callee = load ptr, ptr %plain.at
  %no.plain = icmp eq ptr %plain.callee, null
  %not.plain = or i1 %no.plain, %says.where
  br i1 %not.plain, label %failed, label %ask
ask:
  call void @flags_become(i32 0)
  %bailouts.at = getelementptr i64, ptr %link, i64 {BAILOUTS}
  %bailouts.before = load i64, ptr %bailouts.at
  %bailouts = add i64 %bailouts.before, 1
  store i64 %bailouts, ptr %bailouts.at
  %are.many = icmp sge i64 %bailouts, {MANY_BAILOUTS}
  br i1 %are.many, label %not.taken, label %plain.call, !prof !9
plain.call:
  %answered = call ptr @PyObject_Vectorcall(ptr %plain.callee, ptr %objects, i64 %flagged, ptr %names)
  %ask.still = load i64, ptr %under.at
  %ask.less = sub i64 %ask.still, 1
  store i64 %ask.less, ptr %under.at
  ret ptr %answered
slow:
  %callee = load ptr, ptr %table
  %last = tail call ptr @PyObject_Vectorcall(ptr %callee, ptr %objects, i64 %flagged, ptr %names)
  ret ptr %last
}}
!8 = !{{!"branch_weights", i32 1000, i32 1}}
!9 = !{{!"branch_weights", i32 1, i32 1000}}
"""


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )  # fmt: skip


_kept: list[Any] = []


def dtype_object(name: str) -> External:
    """A dtype object, by its symbol in code."""
    return External(f"jk_dtype_{name}", "void", (), functools.partial(id, np.dtype(name)))


def externals() -> tuple[External, ...]:
    """The external symbols of functions that serve calls, dtype objects included."""
    names = [*(name for name, dtype in dtypes.TABLE.items() if dtype.storage == name), "complex64", "complex128"]
    return (
        *c_api.externals(),
        External("jk_workspace_error", "void", (), functools.partial(id, WorkspaceError)),
        External("jk_workspace_text", "void", (), functools.partial(id, NO_WORKSPACE)),
        *workspace_allocator.externals(),
        External("jk_errors", "void", (), functools.partial(id, errstate.variable)),
        *map(dtype_object, names),
        *(External(f"jk_type_{name}", "void", (), functools.partial(id, np.dtype(name).type)) for name in names),
        *map(dtype_object, ("longlong", "ulonglong")),
        External("jk_type_float", "void", (), functools.partial(id, float)),
        External("jk_type_complex", "void", (), functools.partial(id, complex)),
        External("jk_type_int", "void", (), functools.partial(id, int)),
    )


@functools.cache
def source() -> IRSource:
    """The entry of all calls."""
    text = f"{LIGHT_PIPELINE}{TEXT}{fp_flag_handler.TEXT}{fp_status.text()}"
    return IRSource("vectorcall", text, externals())


@functools.cache
def base() -> type | None:
    """The base type of compiled functions; None if Python serves all calls."""
    if abi_check.reason_for_python() is not None or not errstate.is_word_known():
        return None
    if not loader.is_loadable(source()):
        return None
    entry = loader.address_of(source())
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", 19, VECTORCALL, 1, None), _Member(None, 0, 0, 0, None))
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value
    slots = (_Slot * 3)(_Slot(50, call), _Slot(72, ctypes.addressof(members)), _Slot(0, None))
    spec = _Spec(b"jitkernels.runtime.vectorcall.Callable", SIZE, 0, HAVE_VECTORCALL | BASETYPE, slots)
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p,)
    type_: type = make(ctypes.addressof(spec))
    _kept.extend((members, slots, spec, entry))
    return type_


def prepare(kind: type) -> None:
    """Make a derived type's objects vectorcall too, which some versions of Python do not inherit."""
    flags = ctypes.c_ulong.from_address(id(kind) + FLAGS_OFFSET)
    if not flags.value & HAVE_VECTORCALL:
        flags.value |= HAVE_VECTORCALL


def attach(target: object, table: "np.ndarray[Any, np.dtype[np.int64]]") -> None:
    """Set an object's vectorcall entry and its inline cache table."""
    entry = _kept[3]
    ctypes.c_int64.from_address(id(target) + TABLE).value = table.ctypes.data
    ctypes.c_int64.from_address(id(target) + VECTORCALL).value = entry
