"""Questions about the statements of the loop IR: what is inside of them, what they read, how long they may run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from .ir import (
    SHORT,
    Call,
    Copy,
    Declare,
    Extent,
    Fail,
    For,
    Get,
    HostCall,
    If,
    Let,
    Load,
    Mark,
    Reserve,
    Set,
    Statement,
    StatementList,
    Store,
    While,
)


def may_fail(body: StatementList) -> bool:
    """Whether any statement in a block may set the status."""
    return any(type(s) in (Fail, HostCall) for s in walk(body))


def rounds(loop: For, otherwise: int) -> int:
    """How often a loop runs, if that is a literal."""
    a, b = loop.start, loop.stop
    return b.value - a.value if type(a) is Extent and type(b) is Extent else otherwise


def is_long(statement: Statement) -> bool:
    """Whether a statement is a loop that checks for signals: it may be interrupted, and is not short."""
    if type(statement) is While:
        return True
    return (
        type(statement) is For and statement.interruptible and not 0 <= rounds(statement, SHORT + 1) <= SHORT
    )


def is_shared(statement: Statement) -> bool:
    """Whether a statement is a loop that several threads run."""
    return type(statement) is For and statement.team is not None


def bodies_of(statement: Statement) -> tuple[StatementList, ...]:
    """The blocks inside a statement."""
    match statement:
        case For(body=body):
            return (body,)
        case If(then=then, orelse=orelse):
            return (then, orelse)
        case While(test=test, body=body):
            return (test, body)
        case (
            Let()
            | Load()
            | Store()
            | Declare()
            | Get()
            | Set()
            | Copy()
            | Call()
            | Fail()
            | HostCall()
            | Reserve()
            | Mark()
        ):
            return ()
        case _:
            assert_never(statement)


def walk(body: StatementList) -> Iterator[Statement]:
    """All statements, outer ones before inner ones."""
    for statement in body.statements:
        yield statement
        for inner in bodies_of(statement):
            yield from walk(inner)


def operands_of(statement: Statement) -> tuple[Any, ...]:
    """The operands that a statement reads (for a `Call`, its arguments)."""
    match statement:
        case Let(args=args) | Call(args=args):
            return args
        case Load(index=index):
            return index
        case Store(index=index, x=x):
            return (*index, x)
        case For(start=start, stop=stop, team=team):
            return (start, stop) if team is None else (start, stop, team.size)
        case If(condition=condition) | Fail(condition=condition) | While(condition=condition):
            return (condition,)
        case Declare(init=x) | Set(x=x):
            return (x,)
        case HostCall(number=number, refs=refs):
            return (number, *refs)
        case Reserve(needed=needed, limit=limit):
            return (needed, limit)
        case Mark(site=site):
            return (site,)
        case Get() | Copy():
            return ()
        case _:
            assert_never(statement)
