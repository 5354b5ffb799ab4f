"""Share one object between equal jaxprs, so that a jaxpr traced again reuses what was derived from it.

A loop that runs eagerly traces its body at each call. The expensive steps come later (lowering, linearizing,
transposing), and their results are cached on the jaxpr. So when a jaxpr is traced again, the first one replaces it.
Jaxprs are equal if they have the same equations (primitives, parameters, literals, wiring, user's lines) between inputs
of the same types. Values that a body captures are among its inputs, never inside it.

A jaxpr with a user's rule is neither replaced nor cached: the rule may depend on anything. The same holds for a jaxpr
that holds arrays, or a function that would otherwise die before the process: the cache would keep it alive.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...core import Atom, Jaxpr, Var, new_lock
from ...core.values import Value

#: The most jaxprs in the cache; the least recently used one is dropped first.
MOST = 512
_bodies: OrderedDict[Hashable, Jaxpr] = OrderedDict()
_lock = new_lock()


class UserCode:
    """Base class of parameters that hold users' functions.

    Attributes
    ----------
    shared : bool
        Whether jaxprs with an equal parameter are equal, and may be cached.
    """

    __slots__ = ()
    shared = False


def lasting(f: Any) -> bool:
    """Whether a function lives as long as the process and holds nothing: a module's function without a closure."""
    if isinstance(f, np.ufunc | type):
        return True
    if isinstance(f, BuiltinFunctionType):
        return f.__self__ is None or isinstance(f.__self__, ModuleType)
    if type(f) is not FunctionType or f.__closure__ or f.__defaults__ or f.__kwdefaults__ or f.__dict__:
        return False
    module = sys.modules.get(f.__module__)
    return module is not None and vars(module) is f.__globals__


class _Unshared(Exception):
    """Raised for a jaxpr that holds something that must not be cached, or that cannot be compared."""


def interned(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr, or an equal one from the cache; the jaxpr itself if it must not be replaced."""
    try:
        key = tuple(_structure(jaxpr, _refused))
        with _lock:
            shared = _bodies.setdefault(key, jaxpr)
            _bodies.move_to_end(key)
            if len(_bodies) > MOST:
                _bodies.popitem(last=False)
    except (_Unshared, TypeError):  # TypeError: an unhashable parameter
        return jaxpr
    return shared


def derive_from_all(jaxprs: Sequence[Jaxpr], key: Hashable, build: Callable[[], Any]) -> Any:
    """Like `Jaxpr.derive`, for objects derived from several jaxprs.

    The object holds all of them. So it is cached on one with user's code, if any: that one does not live long.
    """
    holder = next((j for j in jaxprs if not _is_shareable(j)), jaxprs[0])
    return holder.derive((*jaxprs, key), build)


def _is_shareable(jaxpr: Jaxpr) -> bool:
    def shareable() -> bool:
        try:
            for eqn in jaxpr.eqns:
                for value in eqn.params.values():
                    _parameter(value, _refused)
        except _Unshared:
            return False
        return not jaxpr.consts

    return jaxpr.derive("shareable", shareable)


def clear() -> None:
    """Drop all jaxprs, and what was derived from them."""
    with _lock:
        jaxprs = list(_bodies.values())
        _bodies.clear()
    for jaxpr in jaxprs:
        jaxpr.forget()


def compared(jaxpr: Jaxpr, objects: bool = False) -> Hashable:
    """A key that is equal for jaxprs that compute the same if their constants are equal; None if there is none.

    With `objects`, users' code is compared by identity, and kept alive by the key; without, there is no key for it.
    """
    try:
        key = tuple(_structure(jaxpr, _Identical if objects else _refused, jaxpr.constvars))
        hash(key)
    except (_Unshared, TypeError):  # TypeError: an unhashable parameter
        return None
    return key


def alike(a: Jaxpr, b: Jaxpr) -> bool:
    """Whether two jaxprs compute the same by equal equations; names and the user's lines do not matter."""
    return list(_structure(a, _Identical, None)) == list(_structure(b, _Identical, None))


def _structure(
    jaxpr: Jaxpr, users: Callable[[Any], Hashable], captured: Sequence[Var] | None = ()
) -> Iterator[Hashable]:
    """The key that equal jaxprs share; variables are numbered in the order of their definition.

    `captured` are variables of captured arrays, which are inputs. If it is None, captured arrays are compared by their
    elements, and neither names nor the user's lines are compared.
    """
    plain = captured is None
    if captured is None:
        captured = jaxpr.constvars
        yield from map(_array, jaxpr.consts)
    if len(jaxpr.constvars) > len(captured):
        raise _Unshared
    number: dict[Atom, int] = {v: i for i, v in enumerate((*captured, *jaxpr.invars))}

    def atom(a: Atom) -> Hashable:
        return number[a] if type(a) is Var else _literal(a)

    yield None if plain else jaxpr.name
    yield tuple([(a.aval.shape, a.aval.dtype, a.aval.weak, a.aval.vma) for a in (*captured, *jaxpr.invars)])
    for eqn in jaxpr.eqns:
        source = eqn.source
        yield eqn.primitive
        yield tuple([atom(a) for a in eqn.invars])
        yield tuple([(k, _parameter(eqn.params[k], users, plain)) for k in sorted(eqn.params)])
        yield None if plain or source is None else (id(source.code), source.lasti)
        for v in eqn.outvars:
            number[v] = len(number)
    yield tuple([atom(a) for a in jaxpr.outvars])


def _literal(a: Any) -> Hashable:
    """Equal numbers may compute differently: 1 and 1.0, 0.0 and -0.0."""
    value = a.value
    if isinstance(value, np.generic):
        return value.dtype, value.tobytes()
    return type(value), repr(value) if type(value) in (float, complex) else value


def _array(value: Value) -> Hashable:
    if isinstance(value, np.ndarray) and value.dtype.hasobject is False:
        return value.shape, value.dtype, value.tobytes()
    return id(value)


def _parameter(value: Any, users: Callable[[Any], Hashable], plain: bool = False) -> Hashable:
    if isinstance(value, Jaxpr):
        return tuple(_structure(value, users, None if plain else ()))
    if type(value) is tuple:
        return tuple([_parameter(v, users, plain) for v in value])
    if type(value) in (float, complex):
        return type(value), repr(value)
    if not (value.shared if isinstance(value, UserCode) else not callable(value) or lasting(value)):
        return users(value)
    return type(value), value


def _refused(value: Value) -> Hashable:
    raise _Unshared


class _Identical:
    """Users' code as part of a key."""

    __slots__ = ("value",)

    def __init__(self, value: Value):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Identical and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
