"""The names of the kernels. Each row of the registry adds its own, so nothing here lists them."""

from collections.abc import Iterator


class _Members(type):
    """Makes ``KernelType.VMUL``, ``KernelType["VMUL"]``, iteration and ``len`` work on the class."""

    _members: dict[str, "KernelType"]

    def __getattr__(cls, name: str) -> "KernelType":
        if not name.startswith("_") and name in cls._members:
            return cls._members[name]
        raise AttributeError(f"no kernel type {name!r}; known: {', '.join(cls._members)}")

    def __getitem__(cls, name: str) -> "KernelType":
        return cls._members[name]

    def __contains__(cls, item: object) -> bool:
        return item in cls._members.values()

    def __iter__(cls) -> Iterator["KernelType"]:
        return iter(cls._members.values())

    def __len__(cls) -> int:
        return len(cls._members)


class KernelType(metaclass=_Members):
    """The name of a kernel, like an enum member, made by the row (attr class) it belongs to."""

    __slots__ = ("name",)
    _members: dict[str, "KernelType"] = {}
    name: str

    @classmethod
    def add(cls, name: str) -> "KernelType":
        """The member of that name, made if it does not exist."""
        if name not in cls._members:
            member = super().__new__(cls)
            member.name = name
            cls._members[name] = member
        return cls._members[name]

    def __new__(cls, name: str) -> "KernelType":  # noqa: PYI034  # nobody derives from it
        """The existing member of that name; raises ValueError for another."""
        if name not in cls._members:
            raise ValueError(f"{name!r} is not a kernel type; known: {', '.join(cls._members)}")
        return cls._members[name]

    def __repr__(self) -> str:
        return f"KernelType.{self.name}"

    def __reduce__(self) -> tuple[type["KernelType"], tuple[str]]:
        return KernelType, (self.name,)
