"""`frozen_dataclass`: frozen dataclasses whose classes are created in a quarter of the time.

`dataclass(frozen=True)` compiles six functions from text for each class, which takes half a millisecond: the classes
that an expression needs would take as long as its code. `frozen_dataclass` compiles only ``__init__``; the other
methods are closures.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)
ABSENT = object()


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen_dataclass(cls: Class) -> Class:
    """Give a class the methods of ``dataclass(frozen=True)``; all fields are passed by position or name."""
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(cls)
    shown = [field.name for field in fields if field.repr]
    compared = [field.name for field in fields if field.compare]
    key_of = attrgetter(*compared) if compared else lambda _: ()

    def same(self: Any, other: Any) -> Any:
        return key_of(self) == key_of(other) if other.__class__ is self.__class__ else NotImplemented

    def number(self: Any) -> int:
        return hash(key_of(self))

    def text(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({values})"

    methods = {
        "__init__": _init(cls, fields), "__eq__": same, "__hash__": number, "__repr__": text,
        "__setattr__": _refuse, "__delattr__": _refuse,
    }  # fmt: skip
    own = set(vars(cls))
    if vars(cls).get("__hash__", ABSENT) is None:
        own.discard("__hash__")  # Python sets it to None where the class defines __eq__
    for name in methods.keys() - own:
        setattr(cls, name, methods[name])
    return cls


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"a {type(self).__name__} is frozen: cannot assign or delete {name}")


def _init(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """Compile the ``__init__`` that assigns every field."""
    namespace: dict[str, Any] = {"put": object.__setattr__, "ABSENT": ABSENT}
    parameters, lines = ["self"], []
    for field in fields:
        value, name = field.name, field.name
        if field.default is not dataclasses.MISSING:
            namespace[f"default_{name}"] = field.default
            parameters.append(f"{name}=default_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            namespace[f"new_{name}"] = field.default_factory
            parameters.append(f"{name}=ABSENT")
            value = f"new_{name}() if {name} is ABSENT else {name}"
        else:
            parameters.append(name)
        lines.append(f" put(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *(lines or [" pass"])]), namespace)
    init: Callable[..., None] = namespace["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init
