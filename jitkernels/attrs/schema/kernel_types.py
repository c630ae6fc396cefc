"""The names of the kernels. Each schema of the registry adds its own; no list exists elsewhere."""

from collections.abc import Iterator
from typing import ClassVar

from jitkernels.core import hooks


class _Members(type):
    """The metaclass of ``KernelType.VMUL``, ``KernelType["VMUL"]``, iteration and ``len``."""

    _members: dict[str, "KernelType"]

    def __getattr__(cls, name: str) -> "KernelType":
        if not name.startswith("_") and cls._knows(name):
            return cls._members[name]
        raise AttributeError(f"no kernel type {name!r}; known: {', '.join(cls._members)}")

    def __getitem__(cls, name: str) -> "KernelType":
        cls._knows(name)
        return cls._members[name]

    def __contains__(cls, item: object) -> bool:
        return item in cls._members.values()

    def __iter__(cls) -> Iterator["KernelType"]:
        hooks.discover_schemas()
        return iter(list(cls._members.values()))

    def __len__(cls) -> int:
        hooks.discover_schemas()
        return len(cls._members)

    def _knows(cls, name: str) -> bool:
        """Whether a member of that name exists, plug-ins included."""
        if name not in cls._members:
            hooks.discover_schemas()
        return name in cls._members


class KernelType(metaclass=_Members):
    """The name of a kernel, like an enum member, created by the schema (attr class) it belongs to.

    `hooks.discover_schemas`, which the registry provides, imports the members of plug-ins.
    """

    __slots__ = ("name",)
    _members: ClassVar[dict[str, "KernelType"]] = {}
    name: str

    @classmethod
    def add(cls, name: str) -> "KernelType":
        """The member of that name, created if it does not exist."""
        if name not in cls._members:
            member = super().__new__(cls)
            member.name = name
            cls._members[name] = member
        return cls._members[name]

    @classmethod
    def unlisted(cls, name: str) -> "KernelType":
        """A kernel type that is not a member: for schemas that are created on demand."""
        kernel_type = super().__new__(cls)
        kernel_type.name = name
        return kernel_type

    @classmethod
    def remove(cls, name: str) -> None:
        """Delete a member after its schema is removed."""
        cls._members.pop(name, None)

    def __new__(cls, name: str) -> "KernelType":  # noqa: PYI034  # nobody derives from it
        """The existing member of that name; raises ValueError for another name."""
        if not cls._knows(name):
            raise ValueError(f"{name!r} is not a kernel type; known: {', '.join(cls._members)}")
        return cls._members[name]

    def __repr__(self) -> str:
        return f"KernelType.{self.name}"

    def __reduce__(self) -> tuple[type["KernelType"], tuple[str]]:
        return KernelType, (self.name,)
