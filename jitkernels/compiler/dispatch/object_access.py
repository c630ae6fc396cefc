"""LLVM IR of object access: loads a call's leaves from tuples, dicts, objects and closures, and guards the rest.

A step uses earlier steps only. The context slots hold the objects that guards compare with.
"""

from typing import Protocol

from jitkernels.compiler.ir.call_abi import AccessStep
from jitkernels.runtime.abi_layout import Offset
from jitkernels.runtime.c_api import METHOD, OPTIONAL_ATTRIBUTE


class Writer(Protocol):
    """The part of the entry builder that emits object access."""

    def new(self, expression: str) -> str: ...
    def load(self, kind: str, base: str, offset: int) -> str: ...
    def expect(self, condition: str) -> None: ...
    def require(self, condition: str, otherwise: str = "no") -> None: ...
    def settle(self, otherwise: str = "no") -> None: ...
    def line(self, text: str) -> None: ...
    def variable(self, kind: str) -> str: ...
    def label(self) -> str: ...


DECLARED = (
    "i32 @PyDict_Next(ptr, ptr, ptr, ptr)", "ptr @PyDict_GetItemWithError(ptr, ptr)", "ptr @PyObject_GetAttr(ptr, ptr)",
    "i32 @PyObject_RichCompareBool(ptr, ptr, i32)", "void @PyErr_Clear()",
    "void @PyErr_Fetch(ptr, ptr, ptr)", "void @PyErr_Restore(ptr, ptr, ptr)", "ptr @PyErr_Occurred()",
    "i64 @PyLong_AsLong(ptr)", f"i32 @{METHOD}(ptr, ptr, ptr)",
    *([f"i32 @{OPTIONAL_ATTRIBUTE}(ptr, ptr, ptr)"] if OPTIONAL_ATTRIBUTE else []),
)  # fmt: skip
FUNCTIONS = {
    "jk_attribute": """define internal i1 @jk_attribute(ptr %object, ptr %name, ptr %place) nounwind {
  %found = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  store ptr %found, ptr %place
  %none = icmp eq ptr %found, null
  br i1 %none, label %missing, label %there
missing:
  call void @PyErr_Clear()
  ret i1 false
there:
  call void @Py_DecRef(ptr %found)
  ret i1 true
}
""",
    "jk_method": f"""define internal i1 @jk_method(ptr %object, ptr %name, ptr %place) nounwind {{
  store ptr null, ptr %place
  %bare = call i32 @{METHOD}(ptr %object, ptr %name, ptr %place)
  %found = load ptr, ptr %place
  %none = icmp eq ptr %found, null
  br i1 %none, label %missing, label %there
missing:
  call void @PyErr_Clear()
  ret i1 false
there:
  call void @Py_DecRef(ptr %found)
  %is.method = icmp eq i32 %bare, 1
  ret i1 %is.method
}}
""",
    "jk_absent": f"""define internal i1 @jk_absent(ptr %object, ptr %name) nounwind {{
  %place = alloca ptr
  %found = call i32 @{OPTIONAL_ATTRIBUTE}(ptr %object, ptr %name, ptr %place)
  %absent = icmp eq i32 %found, 0
  br i1 %absent, label %yes, label %no
no:
  %value = load ptr, ptr %place
  %none = icmp eq ptr %value, null
  br i1 %none, label %raised, label %there
raised:
  call void @PyErr_Clear()
  ret i1 false
there:
  call void @Py_DecRef(ptr %value)
  ret i1 false
yes:
  ret i1 true
}}
""",
    "jk_entry": """define internal ptr @jk_entry(ptr %table, ptr %admit, ptr %object) nounwind {
  %found = call ptr @PyDict_GetItemWithError(ptr %table, ptr %object)
  %is.there = icmp ne ptr %found, null
  br i1 %is.there, label %known, label %new
known:
  ret ptr %found
new:
  call void @PyErr_Clear()
  %arguments = alloca ptr
  store ptr %object, ptr %arguments
  %made = call ptr @PyObject_Vectorcall(ptr %admit, ptr %arguments, i64 1, ptr null)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %refused, label %look
refused:
  call void @PyErr_Clear()
  ret ptr null
look:
  call void @Py_DecRef(ptr %made)
  %again = call ptr @PyDict_GetItemWithError(ptr %table, ptr %object)
  ret ptr %again
}
""",
    "jk_release": """define internal void @jk_release(ptr %locks, i64 %count) nounwind {
start:
  %error = alloca [3 x ptr]
  %value.at = getelementptr ptr, ptr %error, i64 1
  %traceback.at = getelementptr ptr, ptr %error, i64 2
  call void @PyErr_Fetch(ptr %error, ptr %value.at, ptr %traceback.at)
  br label %look
look:
  %i = phi i64 [ 0, %start ], [ %next, %free ]
  %on = icmp slt i64 %i, %count
  br i1 %on, label %free, label %done
free:
  %next = add i64 %i, 2
  %behind = add i64 %i, 1
  %at = getelementptr ptr, ptr %locks, i64 %behind
  %release = load ptr, ptr %at
  %none = call ptr @PyObject_Vectorcall(ptr %release, ptr null, i64 0, ptr null)
  call void @Py_DecRef(ptr %none)
  br label %look
done:
  %type = load ptr, ptr %error
  %value = load ptr, ptr %value.at
  %traceback = load ptr, ptr %traceback.at
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %traceback)
  ret void
}
""",
    "jk_acquire": """define internal i1 @jk_acquire(ptr %locks, i64 %count) nounwind {
start:
  %arguments = alloca ptr
  %no = call ptr @PyBool_FromLong(i64 0)
  %yes = call ptr @PyBool_FromLong(i64 1)
  store ptr %no, ptr %arguments
  br label %look
look:
  %i = phi i64 [ 0, %start ], [ %next, %held ]
  %on = icmp slt i64 %i, %count
  br i1 %on, label %try, label %done
try:
  %at = getelementptr ptr, ptr %locks, i64 %i
  %acquire = load ptr, ptr %at
  %found = call ptr @PyObject_Vectorcall(ptr %acquire, ptr %arguments, i64 1, ptr null)
  %failed = icmp eq ptr %found, null
  br i1 %failed, label %clear, label %see
clear:
  call void @PyErr_Clear()
  br label %done
see:
  call void @Py_DecRef(ptr %found)
  %is.held = icmp eq ptr %found, %yes
  br i1 %is.held, label %held, label %done
held:
  %next = add i64 %i, 2
  br label %look
done:
  %all = phi i1 [ true, %look ], [ false, %clear ], [ false, %see ]
  call void @Py_DecRef(ptr %no)
  call void @Py_DecRef(ptr %yes)
  br i1 %all, label %finish, label %undo
undo:
  call void @jk_release(ptr %locks, i64 %i)
  br label %finish
finish:
  ret i1 %all
}
""",
    "jk_equal": """define internal i1 @jk_equal(ptr %object, ptr %other) nounwind {
  %same = icmp eq ptr %object, %other
  br i1 %same, label %yes, label %look
look:
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.at
  %wanted.at = getelementptr i8, ptr %other, i64 8
  %wanted = load ptr, ptr %wanted.at
  %alike = icmp eq ptr %type, %wanted
  br i1 %alike, label %compare, label %no
compare:
  %found = call i32 @PyObject_RichCompareBool(ptr %object, ptr %other, i32 2)
  %equal = icmp eq i32 %found, 1
  ret i1 %equal
yes:
  ret i1 true
no:
  ret i1 false
}
""",
    "jk_bound": f"""define internal i1 @jk_bound(ptr %table, ptr %names) nounwind {{
start:
  %size.at = getelementptr i8, ptr %names, i64 {int(Offset.TUPLE_SIZE)}
  %size = load i64, ptr %size.at
  %first = getelementptr i8, ptr %names, i64 {int(Offset.TUPLE_ITEMS)}
  br label %look
look:
  %i = phi i64 [ 0, %start ], [ %next, %fine ]
  %on = icmp slt i64 %i, %size
  br i1 %on, label %see, label %done
see:
  %name.at = getelementptr ptr, ptr %first, i64 %i
  %value.at = getelementptr ptr, ptr %name.at, i64 1
  %like.at = getelementptr ptr, ptr %name.at, i64 2
  %name = load ptr, ptr %name.at
  %value = load ptr, ptr %value.at
  %like = load ptr, ptr %like.at
  %found = call ptr @PyDict_GetItemWithError(ptr %table, ptr %name)
  %absent = icmp eq ptr %value, %table
  %wanted = select i1 %absent, ptr null, ptr %value
  %same = icmp eq ptr %found, %wanted
  br i1 %same, label %fine, label %other
other:
  %there = icmp ne ptr %found, null
  %equal.will.do = icmp eq ptr %like, %value
  %compares = and i1 %there, %equal.will.do
  br i1 %compares, label %compare, label %no
compare:
  %equal = call i1 @jk_equal(ptr %found, ptr %value)
  br i1 %equal, label %fine, label %no
fine:
  %next = add i64 %i, 3
  br label %look
done:
  ret i1 true
no:
  ret i1 false
}}
""",
    "jk_whole": """define internal i1 @jk_whole(ptr %object, ptr %place) nounwind {
  %number = call i64 @PyLong_AsLong(ptr %object)
  store i64 %number, ptr %place
  %doubtful = icmp eq i64 %number, -1
  br i1 %doubtful, label %look, label %fine
look:
  %error = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %large, label %fine
large:
  call void @PyErr_Clear()
  ret i1 false
fine:
  ret i1 true
}
""",
}
"""Helpers in LLVM IR. Attributes live in the object, methods in its class; Python ints may exceed 64 bits."""


def reached(writer: Writer, steps: tuple[AccessStep, ...]) -> list[str]:
    """Emit all steps; the loaded object of each, "" where a step only checks."""
    loaded: list[str] = []
    dict_positions: dict[int, str] = {}
    for step in steps:
        if step.kind in LOOKING:
            writer.settle()
        base = loaded[step.of] if step.of < len(loaded) else ""
        word = writer.load("ptr", "%context", 8 * step.word) if step.kind in WORDED else ""
        text = ""
        match step.kind:
            case "global":
                table = writer.load("ptr", "%context", 8 * step.number)
                text = writer.new(f"call ptr @PyDict_GetItemWithError(ptr {table}, ptr {word})")
                writer.expect(writer.new(f"icmp ne ptr {text}, null"))
            case "cell":
                text = writer.load("ptr", word, Offset.CELL_VALUE)
                writer.expect(writer.new(f"icmp ne ptr {text}, null"))
            case "content":
                text = writer.load("ptr", base, Offset.CELL_VALUE)
                writer.expect(writer.new(f"icmp ne ptr {text}, null"))
            case "argument":
                text = writer.load("ptr", "%objects", 8 * step.number)
            case "type":
                writer.expect(writer.new(f"icmp eq ptr {writer.load('ptr', base, Offset.TYPE)}, {word}"))
            case "size":
                size = writer.load("i64", base, Offset.TUPLE_SIZE)
                writer.expect(writer.new(f"icmp eq i64 {size}, {step.number}"))
            case "item":
                text = writer.load("ptr", base, Offset.TUPLE_ITEMS + 8 * step.number)
            case "element":
                text = writer.load("ptr", writer.load("ptr", base, Offset.LIST_ITEMS), 8 * step.number)
            case "value":
                text = _value(writer, dict_positions, base, step, word)
            case "held":
                text = word
            case "entry":
                admit = writer.load("ptr", "%context", 8 * (step.word + 1))
                text = writer.new(f"call ptr @jk_entry(ptr {word}, ptr {admit}, ptr {base})")
                writer.require(writer.new(f"icmp ne ptr {text}, null"))
            case "alike":
                writer.expect(writer.new(f"icmp eq ptr {base}, {loaded[step.number]}"))
            case "part":
                text = writer.load("ptr", base, step.number)
            case "attribute" | "method":
                slot = writer.variable("ptr")
                call = f"call i1 @jk_{step.kind}(ptr {base}, ptr {word}, ptr {slot})"
                writer.expect(writer.new(call))
                text = writer.new(f"load ptr, ptr {slot}")
            case "absent":
                writer.expect(writer.new(f"call i1 @jk_absent(ptr {base}, ptr {word})"))
            case "bound" | "unchanged":
                _bound(writer, step, word)
            case "same":
                writer.expect(writer.new(f"icmp eq ptr {base}, {word}"))
            case _:
                writer.expect(writer.new(f"call i1 @jk_equal(ptr {base}, ptr {word})"))
        loaded.append(text)
    writer.settle()
    return loaded


LOOKING = frozenset({
    "type", "size", "item", "element", "value", "attribute", "method", "part", "equal", "bound", "unchanged", "content",
    "entry", "absent",
})  # fmt: skip
"""Steps that dereference the object of another step: pending guards must hold first."""
WORDED = frozenset({
    "global", "cell", "held", "type", "value", "attribute", "method", "same", "equal", "bound", "unchanged", "entry",
    "absent",
})  # fmt: skip


def _bound(writer: Writer, step: AccessStep, names: str) -> None:
    """Guard the bindings of names, only after the dict has changed where it has a version."""
    table = writer.load("ptr", "%context", 8 * step.number)
    if step.kind == "unchanged":
        version = writer.load("i64", table, Offset.DICT_VERSION)
        version_slot = writer.new(f"getelementptr i8, ptr %context, i64 {8 * (step.word + 1)}")
        look, behind = writer.label(), writer.label()
        same = writer.new(f"icmp eq i64 {version}, {writer.new(f'load i64, ptr {version_slot}')}")
        writer.line(f"  br i1 {same}, label %{behind}, label %{look}, !prof !9")
        writer.line(f"{look}:")
    writer.require(writer.new(f"call i1 @jk_bound(ptr {table}, ptr {names})"))
    if step.kind == "unchanged":
        writer.line(f"  store i64 {version}, ptr {version_slot}")
        writer.line(f"  br label %{behind}")
        writer.line(f"{behind}:")


def _value(writer: Writer, dict_positions: dict[int, str], base: str, step: AccessStep, word: str) -> str:
    """The next value of a dict, in insertion order; guard its key."""
    if step.of not in dict_positions:
        dict_positions[step.of] = writer.variable("i64")
        writer.line(f"  store i64 0, ptr {dict_positions[step.of]}")
    key, value = writer.variable("ptr"), writer.variable("ptr")
    more = writer.new(f"call i32 @PyDict_Next(ptr {base}, ptr {dict_positions[step.of]}, ptr {key}, ptr {value})")
    writer.require(writer.new(f"icmp ne i32 {more}, 0"))
    writer.require(writer.new(f"call i1 @jk_equal(ptr {writer.new(f'load ptr, ptr {key}')}, ptr {word})"))
    return writer.new(f"load ptr, ptr {value}")
