"""One object for equal bodies, so that what was derived from a body is found when it is traced again.

A loop that is run eagerly traces its body at each call. What costs time comes after that: lowering, linearising,
transposing; and all of it is kept on the body's jaxpr. So a body that is traced a second time is exchanged for the
first one. Equal are bodies of the same equations (primitives, parameters, literals, wiring, the user's lines) between
inputs of the same types. What a body captures is among its inputs, never in it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from threading import Lock
from typing import Any

import numpy as np

from ..core.ir import Atom, Jaxpr, Var

#: Bodies that are kept; the one not used for longest goes first.
MOST = 512
_bodies: OrderedDict[Hashable, Jaxpr] = OrderedDict()
_lock = Lock()


def interned(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr, or an equal one that was met before; itself where it holds what cannot be compared."""
    try:
        key = tuple(_structure(jaxpr))
        with _lock:
            found = _bodies.setdefault(key, jaxpr)
            _bodies.move_to_end(key)
            if len(_bodies) > MOST:
                _bodies.popitem(last=False)
    except TypeError:  # a parameter that is not hashable
        return jaxpr
    return found


def clear() -> None:
    """Forget all bodies, and what was derived from them."""
    with _lock:
        found = list(_bodies.values())
        _bodies.clear()
    for jaxpr in found:
        jaxpr.forget()


def _structure(jaxpr: Jaxpr) -> Iterator[Hashable]:
    """What two equal jaxprs have in common; variables are numbered in the order of their definition."""
    if jaxpr.consts:
        yield id(jaxpr)  # arrays inside: equal to itself alone
        return
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
    return type(value), value
