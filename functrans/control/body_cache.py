"""One object for equal jaxprs, so that what was derived from one is found when it is traced again.

A loop that is run eagerly traces its body at each call. What costs time comes after that: lowering, linearising,
transposing; and all of it is kept on the jaxpr. So a jaxpr that is traced a second time is exchanged for the first
one. Equal are jaxprs of the same equations (primitives, parameters, literals, wiring, the user's lines) between inputs
of the same types. What a body captures is among its inputs, never in it.

A jaxpr with a rule of the user's is neither exchanged nor kept: what the rule does may depend on anything. Nor is one
that holds arrays, or a function that dies before the process does: it would be kept alive here.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..core.context import new_lock
from ..core.ir import Atom, Jaxpr, Var

#: Jaxprs that are kept; the one not used for longest goes first.
MOST = 512
_bodies: OrderedDict[Hashable, Jaxpr] = OrderedDict()
_lock = new_lock()


class UserCode:
    """Base class of parameters that hold functions of the user's.

    Attributes
    ----------
    shared : bool
        Whether jaxprs with an equal parameter are equal, and may be kept.
    """

    __slots__ = ()
    shared = False


def lasting(f: Any) -> bool:
    """Whether a function lives as long as the process, and holds nothing: one of a module, without a closure."""
    if isinstance(f, np.ufunc | type):
        return True
    if isinstance(f, BuiltinFunctionType):
        return f.__self__ is None or isinstance(f.__self__, ModuleType)
    if type(f) is not FunctionType or f.__closure__ or f.__defaults__ or f.__kwdefaults__ or f.__dict__:
        return False
    module = sys.modules.get(f.__module__)
    return module is not None and vars(module) is f.__globals__


class _Unshared(Exception):
    """The jaxpr holds what must not be kept, or cannot be compared."""


def interned(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr, or an equal one that was met before; itself where it must not be exchanged."""
    try:
        key = tuple(_structure(jaxpr))
        with _lock:
            found = _bodies.setdefault(key, jaxpr)
            _bodies.move_to_end(key)
            if len(_bodies) > MOST:
                _bodies.popitem(last=False)
    except (_Unshared, TypeError):  # TypeError: a parameter that is not hashable
        return jaxpr
    return found


def derive_from_all(jaxprs: Sequence[Jaxpr], key: Hashable, build: Callable[[], Any]) -> Any:
    """As `Jaxpr.derive`, for what is made of several jaxprs.

    It holds them all. So it is kept on one with code of the user's, if there is one: that does not live long.
    """
    holder = next((j for j in jaxprs if not _is_shareable(j)), jaxprs[0])
    return holder.derive((*jaxprs, key), build)


def _is_shareable(jaxpr: Jaxpr) -> bool:
    def shareable() -> bool:
        try:
            for eqn in jaxpr.eqns:
                for value in eqn.params.values():
                    _parameter(value)
        except _Unshared:
            return False
        return not jaxpr.consts

    return jaxpr.derive("shareable", shareable)


def clear() -> None:
    """Forget all jaxprs, and what was derived from them."""
    with _lock:
        found = list(_bodies.values())
        _bodies.clear()
    for jaxpr in found:
        jaxpr.forget()


def _structure(jaxpr: Jaxpr) -> Iterator[Hashable]:
    """What two equal jaxprs have in common; variables are numbered in the order of their definition."""
    if jaxpr.consts:
        raise _Unshared
    number: dict[Atom, int] = {v: i for i, v in enumerate(jaxpr.invars)}

    def atom(a: Atom) -> Hashable:
        return number[a] if type(a) is Var else _literal(a)

    yield jaxpr.name
    yield tuple([(a.shape, a.dtype, a.weak) for a in jaxpr.in_avals])
    for eqn in jaxpr.eqns:
        source = eqn.source
        yield eqn.primitive
        yield tuple([atom(a) for a in eqn.invars])
        yield tuple([(k, _parameter(v)) for k, v in eqn.params.items()])
        yield None if source is None else (id(source.code), source.lasti)
        for v in eqn.outvars:
            number[v] = len(number)
    yield tuple([atom(a) for a in jaxpr.outvars])


def _literal(a: Any) -> Hashable:
    """Numbers that are equal may compute differently: 1 and 1.0, 0.0 and -0.0."""
    value = a.value
    if isinstance(value, np.generic):
        return value.dtype, value.tobytes()
    return type(value), repr(value) if type(value) in (float, complex) else value


def _parameter(value: Any) -> Hashable:
    if isinstance(value, Jaxpr):
        return tuple(_structure(value))
    if type(value) is tuple:
        return tuple([_parameter(v) for v in value])
    if type(value) in (float, complex):
        return type(value), repr(value)
    if not (value.shared if isinstance(value, UserCode) else not callable(value) or lasting(value)):
        raise _Unshared
    return type(value), value
