"""Which attributes of its instance a method may read, according to its code.

The method, the functions inside it, and the methods and properties that it names must use `self` only to read
attributes by name. If they use `self` in another way (pass it on, or assign it to another name), they may read any
attribute.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType, FunctionType, MemberDescriptorType
from typing import Any

#: Names by which a function can reach its variables, or `self`, other than by name.
_HIDDEN = frozenset(("super", "eval", "exec", "locals", "_getframe", "currentframe", "stack", "__class__"))
#: Instructions that may mention a name without using the variable.
_OTHER_NAMES = frozenset(("LOAD_CONST", "LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "STORE_ATTR"))
#: Marks a missing attribute.
MISSING = object()


def attributes_read(method: Any, cls: type) -> set[str] | None:
    """The names of the attributes of its first argument that a method may read; None for any."""
    if of_class(cls, "__getattribute__") is not object.__getattribute__:
        return None
    names: set[str] = set()
    todo, seen = [method], set()
    while todo:
        f = _function_of(todo.pop())
        if f is None or not f.__code__.co_argcount:
            return None
        if f in seen:
            continue
        seen.add(f)
        more = _names_in(f.__code__, f.__code__.co_varnames[0])
        if more is None:
            return None
        names |= more
        for name in more:
            x = of_class(cls, name)
            if x is MISSING and hasattr(cls, "__getattr__"):
                todo.append(cls.__getattr__)
            if hasattr(type(x), "__get__") and not isinstance(x, staticmethod | MemberDescriptorType):
                todo.append(x)
    return names


def _function_of(x: Any) -> FunctionType | None:
    """The function that receives the instance when a method or property is read; None if unknown."""
    for kind, name in ((property, "fget"), (classmethod, "__func__"), (functools.cached_property, "func")):
        if isinstance(x, kind):
            x = getattr(x, name)
    if type(x).__module__ == f"{__package__}.jit":
        x = x._fun
    return x if type(x) is FunctionType else None


def _names_in(code: CodeType, variable: str) -> set[str] | None:
    """The names of the attributes of a variable that code reads; None if it uses the variable in another way."""
    if not _HIDDEN.isdisjoint(code.co_names) or not _HIDDEN.isdisjoint(code.co_freevars):
        return None
    names: set[str] = set()
    cell = variable in code.co_cellvars or variable in code.co_freevars
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    for i, after in zip(instructions, [*instructions[1:], None]):
        mentions = i.argval == variable or (isinstance(i.argval, tuple) and variable in i.argval)
        if not mentions or i.opname in _OTHER_NAMES:
            continue
        if i.opname in ("LOAD_CLOSURE", "MAKE_CELL") or (cell and i.opname == "LOAD_FAST"):
            continue  # for an inner function, which is checked below
        if after is None or not i.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "STORE_FAST_LOAD_FAST")):
            return None
        if isinstance(i.argval, tuple) and variable in i.argval[:-1]:  # of two variables the last is on top
            return None
        if after.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            names.add(after.argval)
        elif after.opname != "STORE_ATTR":
            return None
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and variable in inner.co_freevars:
            more = _names_in(inner, variable)
            if more is None:
                return None
            names |= more
    return names


def of_class(cls: type, name: str) -> Any:
    """The raw entry of a name in a class or its bases, or `MISSING`."""
    for c in cls.__mro__:
        space = c.__dict__
        if name in space:
            return space[name]
    return MISSING
