"""The names of the kernels. Each row of the registry adds its own, so nothing here lists them."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import ClassVar


class _Members(type):
    """Makes ``KernelType.VMUL``, ``KernelType["VMUL"]``, iteration and ``len`` work on the class."""

    _members: dict[str, "KernelType"]
    look_further: "Callable[[], None]"

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
        cls.look_further()
        return iter(list(cls._members.values()))

    def __len__(cls) -> int:
        cls.look_further()
        return len(cls._members)

    def _knows(cls, name: str) -> bool:
        """Whether there is a member of that name, in another package if not here."""
        if name not in cls._members:
            cls.look_further()
        return name in cls._members


def _registry() -> None:
    """Import the registry, which makes the rows and takes this over, unless that is what is under way."""
    import_module("jitkernels.registry")
    if KernelType.look_further is not _registry:
        KernelType.look_further()


class KernelType(metaclass=_Members):
    """The name of a kernel, like an enum member, made by the row (attr class) it belongs to.

    look_further: what imports the rows of other packages; the registry, which lies above, sets it.
    """

    __slots__ = ("name",)
    _members: ClassVar[dict[str, "KernelType"]] = {}
    look_further: ClassVar[Callable[[], None]] = staticmethod(_registry)
    name: str

    @classmethod
    def add(cls, name: str) -> "KernelType":
        """The member of that name, made if it does not exist."""
        if name not in cls._members:
            member = super().__new__(cls)
            member.name = name
            cls._members[name] = member
        return cls._members[name]

    @classmethod
    def unlisted(cls, name: str) -> "KernelType":
        """One that is no member: of rows that are made when they are met."""
        found = super().__new__(cls)
        found.name = name
        return found

    @classmethod
    def remove(cls, name: str) -> None:
        """Forget a member, after its row is gone."""
        cls._members.pop(name, None)

    def __new__(cls, name: str) -> "KernelType":  # noqa: PYI034  # nobody derives from it
        """The existing member of that name; raises ValueError for another."""
        if not cls._knows(name):
            raise ValueError(f"{name!r} is not a kernel type; known: {', '.join(cls._members)}")
        return cls._members[name]

    def __repr__(self) -> str:
        return f"KernelType.{self.name}"

    def __reduce__(self) -> tuple[type["KernelType"], tuple[str]]:
        return KernelType, (self.name,)
