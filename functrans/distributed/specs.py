"""`P`: which axes of a mesh divide the axes of an array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import ArgumentError, ArgumentValueError, ShardingError

#: The axes of the mesh that divide one axis of an array.
Names = tuple[str, ...]


class PartitionSpec:
    """Which axes of a mesh divide each axis of an array; also `P`.

    Parameters
    ----------
    *axes : str, tuple of str, or None
        For each axis of the array, the axis of the mesh that divides it, several of them, or None. Axes of the array
        that have no entry are not divided. An axis of the mesh that is nowhere in it has copies of the array.

    Raises
    ------
    ArgumentError
        If an entry is something else.
    ArgumentValueError
        If an axis of the mesh occurs twice.

    Examples
    --------
    >>> from functrans.distributed import P
    >>> P("dp", None)
    P('dp', None)
    >>> P(("x", "y")) == P(["x", "y"])
    True
    """

    __slots__ = ("_axes",)

    def __init__(self, *axes: Any):
        entries: list[Any] = []
        for entry in axes:
            if isinstance(entry, list | tuple):
                entry = tuple(entry)
            known = entry if isinstance(entry, tuple) else (entry,)
            if entry is not None and not all(isinstance(name, str) for name in known):
                raise ArgumentError(
                    f"P: an entry is the name of an axis of the mesh, a tuple of names, or None, got {entry!r}"
                )
            entries.append(entry)
        self._axes = tuple(entries)
        names = [name for entry in self.names for name in entry]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ArgumentValueError(f"P: {twice[0]!r} divides two axes of an array in {self!r}")

    @property
    def names(self) -> list[Names]:
        """For each axis of the array, the axes of the mesh that divide it."""
        return [() if e is None else (e,) if isinstance(e, str) else e for e in self._axes]

    def __len__(self) -> int:
        return len(self._axes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._axes)

    def __getitem__(self, i: Any) -> Any:
        return self._axes[i]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return self._axes == other._axes
        return isinstance(other, tuple) and self._axes == other

    def __hash__(self) -> int:
        return hash(self._axes)

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self._axes))})"


P = PartitionSpec


def names_of(spec: Any, mesh: Any, place: str) -> list[Names]:
    """The axes of the mesh that divide each axis of an array, checked; `place` is for messages."""
    if not isinstance(spec, PartitionSpec):
        raise ArgumentError(f"{place} must be a P (PartitionSpec), or a tree of them, got {spec!r}")
    for name in [name for names in spec.names for name in names]:
        if name not in mesh.shape:
            axes = ", ".join(map(repr, mesh.shape))
            raise ShardingError(
                f"{place} is {spec!r}, but the mesh has no axis {name!r}. Its axes are {axes}"
            )
    return spec.names
