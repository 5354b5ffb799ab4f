"""Which buffers the statements of the loop IR use, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ...runtime.records import dataclass
from . import ir, queries

#: The argument to which a product writes. Other routines may write to any of theirs.
RESULTS = {"gemm": 11, "gemv": 9}


@dataclass(frozen=True, slots=True)
class Touch:
    """How a statement uses a buffer.

    Parameters
    ----------
    buffer : BufferDecl
    writes : bool
        False if it only reads.
    strided : int
        The first axis from which the statement needs extents: 0 if it needs the size of the whole buffer, 1 for the
        address of an element, ``len(buffer.shape)`` for none.
    """

    buffer: ir.BufferDecl
    writes: bool
    strided: int


def touches_of(statement: ir.Statement) -> tuple[Touch, ...]:
    """The buffers that a statement uses, without those in its blocks.

    All code that decides about memory (storages, parameters, roles) must ask this function.
    """
    match statement:
        case ir.Load(buffer=buffer):
            return (Touch(buffer, False, 1),)
        case ir.Store(buffer=buffer) | ir.Reserve(tape=buffer):
            return (Touch(buffer, True, 1),)
        case ir.Mark(counters=counters):
            return (Touch(counters, True, 1),)
        case ir.Copy(target=target, source=source):
            return (Touch(target, True, 0), Touch(source, False, 0))
        case ir.Call(routine=routine, args=args):
            only = RESULTS.get(routine)
            return tuple(
                [
                    Touch(a.buffer, only in (None, i), len(a.buffer.shape))
                    for i, a in enumerate(args)
                    if type(a) is ir.Address
                ]
            )
        case ir.HostCall(refs=refs, reads=reads):
            return tuple([Touch(a.buffer, i >= reads, len(a.buffer.shape)) for i, a in enumerate(refs)])
        case ir.Let() | ir.For() | ir.While() | ir.If() | ir.Declare() | ir.Get() | ir.Set() | ir.Fail():
            return ()
        case _:
            assert_never(statement)


def touches(body: ir.StatementList) -> Iterator[Touch]:
    """The uses of buffers by the statements of a block, at any depth."""
    for statement in queries.walk(body):
        yield from touches_of(statement)
