"""``jitkernels explain``: which implementation computes an attr, and why."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

from rich.markup import escape

import jitkernels
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.fields import Field
from jitkernels.attrs.schema.registry import op_schema
from jitkernels.errors import AttrError
from jitkernels.tools.cli import output

BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def run(kernel: str, fields: Sequence[str]) -> int:
    """Print the explanation of an attr."""
    output.console().print(escape(str(jitkernels.explain(attr_of(kernel, fields)))), soft_wrap=True)
    return 0


def attr_of(kernel: str, assignments: Sequence[str]) -> KernelAttr:
    """Return the attr for assignments such as ``n=1024 dtype=float32``. Raises AttrError naming the existing fields."""
    attr_class = op_schema(kernel)
    fields = {field.name: field for field in dataclasses.fields(attr_class)}  # type: ignore[arg-type]  # a dataclass
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or name not in fields:
            raise AttrError(f"{assignment!r}: expected field=value with a field of {_field_list(attr_class)}")
        if name in values:
            raise AttrError(f"{assignment!r}: expected each field once, got {name} twice")
        values[name] = _value(f"{attr_class.__name__}: {name}", attr_class.known_fields()[name], text)
    missing = [name for name, field in fields.items() if _required(field) and name not in values]
    if missing:
        raise AttrError(f"{', '.join(missing)} missing: expected the fields of {_field_list(attr_class)}")
    return attr_class(**values)


def _required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _field_list(attr_class: type[KernelAttr]) -> str:
    fields = dataclasses.fields(attr_class)  # type: ignore[arg-type]  # a dataclass
    return f"{attr_class.__name__}: {', '.join(f.name if _required(f) else f'{f.name}={f.default}' for f in fields)}"


def _value(label: str, field: Field, text: str) -> Any:
    """Parse a field's value from its text; invalid text is returned unchanged, for the attr to reject."""
    if field.kind == "bool":
        if text.lower() not in BOOLEANS:
            raise AttrError(f"{label}: expected one of {', '.join(BOOLEANS)}, got {text!r}")
        return BOOLEANS[text.lower()]
    readers: dict[str, Callable[[str], Any]] = {"int": int, "whole": int, "float": float}
    read = readers.get(field.kind, str)
    if field.kind in ("tuple", "custom"):
        read = _from_json(field)
    try:
        return read(text)
    except (ValueError, TypeError, LookupError, RecursionError):
        return text


def _from_json(field: Field) -> Callable[[str], Any]:
    return lambda text: field.from_json(json.loads(text))
