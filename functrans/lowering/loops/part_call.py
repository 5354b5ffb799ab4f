"""A call of a part of a kernel (see `split_functions`)."""

from __future__ import annotations

from ...runtime.records import dataclass
from . import ir


@dataclass(eq=False, slots=True)
class PartCall:
    """One call of a part.

    Attributes
    ----------
    part : Kernel
        The part, shared by all its equal calls.
    text : str
        The part's text.
    buffers : list of BufferDecl
        The caller's declarations for ``part.buffers``, except those for `results`.
    places : list of str
        The caller's storages for ``part.storages``; the last ones hold `results`.
    ints, floats : list of operands
        The arguments for the part's parameters.
    results : list of Value
        Values of the caller that the part computes, each in its own storage at the end of `places`.
    """

    part: ir.Kernel
    text: str
    buffers: list[ir.BufferDecl]
    places: list[str]
    ints: list[ir.Operand]
    floats: list[ir.Operand]
    results: list[ir.Value]
