"""Sums of equal elements as products: ``sum(broadcast(x))`` is ``n * x``, through elementwise equations and reshapes.

The gradient of a function of ``tile(x)`` or ``repeat(x)`` adds what it computes for each copy
of an element. Each copy gives the same number, so it is computed once, and multiplied by the number of copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod

import numpy as np

from ...core import Atom, Aval, Eqn, Literal, Primitive, Source, Var
from ...core.values import Param
from ...passes.toolkit import new_equation
from ...primitives.elementwise.arithmetic import mul_p
from ...primitives.structure.linear import add_p, broadcast_in_dim_p, reduce_sum_p, reshape_p
from ...runtime.records import NamedTuple
from .reshapes import is_elementwise, reshape_groups

#: Elementwise equations with other readers are computed once more if this makes them smaller by such a factor.
MUCH_SMALLER = 8
#: Longer chains of equations are not followed.
_DEEPEST = 64

Shape = tuple[int, ...]


def multiply_repeated(eqns: list[Eqn], outvars: Iterable[Atom]) -> list[Eqn]:
    """The equations with sums along axes on which their operand is constant as products; itself if there are none.

    The equations that computed the repeated elements become dead code, unless something else reads them.
    """
    if not any(e.primitive is broadcast_in_dim_p for e in eqns):
        return eqns
    done = _RepeatedSums(eqns, outvars).done
    return eqns if len(done) == len(eqns) else done


class _FromBroadcasts(NamedTuple):
    """Elementwise equations and reshapes from broadcasts to a value, and the shape of a broadcast of an array."""

    length: int
    origin: Shape | None


class _RepeatedSums:
    def __init__(self, eqns: list[Eqn], outvars: Iterable[Atom]):
        self.producer: dict[Atom, Eqn] = {v: e for e in eqns for v in e.outvars}
        self.readers = Counter(a for e in eqns for a in set(e.invars))
        self.readers.update(outvars)
        self.chains: dict[Atom, _FromBroadcasts] = {}
        self.constant: dict[tuple[Atom, Shape], frozenset[int]] = {}
        self.done: list[Eqn] = []
        for eqn in eqns:
            product = self.product(eqn)
            for e in product or [eqn]:
                if product:
                    self.producer[e.outvars[0]] = e
                    self.readers.update(set(e.invars))
                chain = self.chain_of(e)
                if chain is not None and chain.length <= _DEEPEST:
                    self.chains[e.outvars[0]] = chain
                self.done.append(e)

    def chain_of(self, e: Eqn) -> _FromBroadcasts | None:
        """The chain to the equation's result, if all its elements come from broadcasts."""
        if e.primitive is broadcast_in_dim_p:
            return _FromBroadcasts(0, e.outvars[0].aval.shape if e.invars[0].aval.size > 1 else None)
        if e.primitive is not reshape_p and not is_elementwise(e):
            return None
        chains = [self.chains.get(a) for a in e.invars if a.aval.shape]
        known = [c for c in chains if c is not None]
        if not chains or len(known) < len(chains):
            return None
        origin = next((c.origin for c in known if c.origin is not None), None)
        return _FromBroadcasts(1 + max(c.length for c in known), origin)

    def product(self, e: Eqn) -> list[Eqn] | None:
        """The equations that compute a sum of equal elements as a product; None for another equation."""
        if e.primitive is not reduce_sum_p or e.invars[0] not in self.chains or not e.invars[0].aval.size:
            return None
        x, out = e.invars[0], e.outvars[0].aval
        if out.dtype.kind not in "iuf":  # a product of complex numbers spreads NaN
            return None
        shape, axes = self.split(x, e.params["axes"])
        equal = self.constant_axes(x, shape).intersection(axes)
        copies = prod([shape[d] for d in equal])
        count = Literal(np.asarray(copies).astype(out.dtype)[()])
        if copies < 2 or (out.dtype.kind == "f" and float(count.value) != copies) or not self.pays(x, copies):
            return None
        once = _WithoutRepeats(self.producer, shape, equal, e.source)
        y = once.in_full(once.of(x))
        summed = tuple([i for i, d in enumerate(once.rest) if d in axes])
        if summed:
            y = once.add(reduce_sum_p, y, axes=summed)
        y = once.add(mul_p, y, count)
        if out.dtype.kind == "f" and not summed:
            y = once.add(add_p, y, Literal(out.dtype.type(0)))  # a sum of -0.0 is 0.0
        once.add(reshape_p, y, shape=out.shape)
        once.eqns[-1] = once.eqns[-1].replace(outvars=e.outvars)
        return once.eqns

    def split(self, x: Atom, axes: Shape) -> tuple[Shape, Shape]:
        """The shape and the axes of a sum, with those axes split that a reshape of repeated elements merged."""
        shape, finer = x.aval.shape, self.chains[x].origin
        if finer is None or finer == shape:
            return shape, axes
        groups = reshape_groups(finer, shape)
        if any(len(right) != 1 for _, right in groups):
            return shape, axes
        return finer, tuple([d for left, (right,) in groups if right in axes for d in left])

    def constant_axes(self, a: Atom, shape: Shape) -> frozenset[int]:
        """The axes of `shape` along which `a`, reshaped to it, is constant."""
        every = frozenset(range(len(shape)))
        if not a.aval.shape:
            return every
        if (a, shape) not in self.constant:
            e = self.producer[a]
            if e.primitive is broadcast_in_dim_p:
                own = set(_own_axes(e))
                groups = reshape_groups(a.aval.shape, shape)
                axes = every.difference(*[right for left, right in groups if own.intersection(left)])
            else:
                axes = every.intersection(*[self.constant_axes(b, shape) for b in e.invars])
            self.constant[a, shape] = axes
        return self.constant[a, shape]

    def pays(self, a: Atom, copies: int) -> bool:
        """Whether the repeated elements are not needed otherwise, or cost much more than computing them once."""
        if copies >= MUCH_SMALLER or a not in self.chains or not self.chains[a].length:
            return True
        e = self.producer[a]
        unread = e.primitive is reshape_p or self.readers[a] == 1
        return unread and all(self.pays(b, copies) for b in set(e.invars))


class _WithoutRepeats:
    """Computes a value that is constant along some axes of a shape without these axes."""

    def __init__(self, producer: dict[Atom, Eqn], shape: Shape, equal: frozenset[int], source: Source | None):
        self.producer, self.shape, self.source = producer, shape, source
        self.rest = [d for d in range(len(shape)) if d not in equal]
        self.rest_shape = tuple([shape[d] for d in self.rest])
        self.eqns: list[Eqn] = []
        self.known: dict[Atom, Atom] = {}

    def add(self, prim: Primitive, *args: Atom, **params: Param) -> Var:
        """Append an equation, and return its result."""
        self.eqns.append(new_equation(prim, args, params, self.source))
        return self.eqns[-1].outvars[0]

    def reshaped(self, a: Atom, shape: Shape) -> Atom:
        """An array in another shape."""
        return a if a.aval.shape == shape else self.add(reshape_p, a, shape=shape)

    def spread(self, a: Atom, shape: Shape, axes: Shape) -> Atom:
        """An array repeated along the other axes of a shape."""
        if a.aval.shape == shape and axes == tuple(range(len(shape))):
            return a
        return self.add(broadcast_in_dim_p, a, shape=shape, broadcast_dimensions=axes)

    def in_full(self, a: Atom) -> Atom:
        """A value or a number in the shape of the remaining axes."""
        return a if a.aval.shape == self.rest_shape else self.spread(a, self.rest_shape, ())

    def of(self, a: Atom) -> Atom:
        """The value without the axes, or a number if all elements are equal."""
        if not a.aval.shape:
            return a
        if a not in self.known:
            e = self.producer[a]
            if e.primitive is reshape_p:
                self.known[a] = self.of(e.invars[0])
            elif e.primitive is broadcast_in_dim_p:
                self.known[a] = self.of_broadcast(e)
            else:
                self.known[a] = self.of_elements(e)
        return self.known[a]

    def of_elements(self, e: Eqn) -> Atom:
        """The elementwise equation of the smaller operands."""
        operands = [self.of(a) for a in e.invars]
        shape = self.rest_shape if any(a.aval.shape for a in operands) else ()
        out = Var(Aval(shape, e.outvars[0].aval.dtype))
        self.eqns.append(e.replace(invars=operands, outvars=[out]))
        return out

    def of_broadcast(self, e: Eqn) -> Atom:
        """The array that a broadcast repeats, repeated along the remaining axes alone."""
        x, target, own = e.invars[0], e.params["shape"], _own_axes(e)
        if not own:
            return self.reshaped(x, ())
        groups = [g for g in reshape_groups(target, self.shape) if set(own).intersection(g[0])]
        before, after = [d for left, _ in groups for d in left], [d for _, right in groups for d in right]
        y = self.reshaped(x, tuple([target[d] for d in own]))
        y = self.spread(y, tuple([target[d] for d in before]), tuple([before.index(d) for d in own]))
        y = self.reshaped(y, tuple([self.shape[d] for d in after]))
        return self.spread(y, self.rest_shape, tuple([self.rest.index(d) for d in after]))


def _own_axes(e: Eqn) -> Shape:
    """The axes of a broadcast's result along which its operand's elements differ, in the operand's order."""
    return tuple([d for n, d in zip(e.invars[0].aval.shape, e.params["broadcast_dimensions"]) if n != 1])
