"""Local rules of `simplify`: equations that equal one of their operands, or a cheaper equation, to the last
bit.

A rule takes the rewriter and an equation whose operands are already rewritten, and returns an atom that
equals its output, another equation for the same output, or None. Rules that would change a rounding, a signed
zero or a NaN are not here: ``x + 0.0`` stays (it turns -0 into 0), ``x - 0.0`` goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.ir import Atom, Eqn, Literal, Var
from ...core.passes import new_equation
from ...core.primitive import Primitive
from ...core.source import Source
from ...primitives.elementwise.arithmetic import convert_element_type_p
from ...primitives.families import add_p, mul_p
from ...primitives.reductions.reduce import reduce_max_p, reduce_min_p
from ...primitives.structure.linear import broadcast_in_dim_p, reshape_p
from .lowering_primitives import place_p, window_p


class Rewriter:
    """The state of one pass: what replaces each variable, and the equations so far."""

    def __init__(self) -> None:
        self.env: dict[Var, Atom] = {}
        self.eqns: list[Eqn] = []
        self.producer: dict[Var, Eqn] = {}
        self.source: Source | None = None  # of the equation being rewritten

    def read(self, a: Atom) -> Atom:
        """What stands for `a` now."""
        return self.env.get(a, a) if isinstance(a, Var) else a

    def emit(self, eqn: Eqn) -> None:
        """Append an equation."""
        self.eqns.append(eqn)
        for v in eqn.outvars:
            self.producer[v] = eqn

    def new(self, prim: Primitive, *args: Atom, **params: Any) -> Var:
        """The result of a new equation."""
        eqn = new_equation(prim, args, params, self.source)
        self.emit(eqn)
        return eqn.outvars[0]

    def made_by(self, a: Atom, name: str) -> Eqn | None:
        """The equation that gives `a`, if its primitive has that name."""
        found = self.producer.get(a) if isinstance(a, Var) else None
        return found if found is not None and found.primitive.name == name else None

    def uniform(self, a: Atom) -> Any:
        """The Python number that every element of `a` equals, or None."""
        while isinstance(a, Var):
            source = self.made_by(a, "broadcast_in_dim")
            if source is None:
                return None
            a = source.invars[0]
        value = a.value
        return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


Rule = Callable[[Rewriter, Eqn], Atom | Eqn | None]


def _is(value: Any, number: float) -> bool:
    """Whether a uniform value is that number, zeros told apart by sign."""
    if value is None or isinstance(value, (bool, complex)) or value != number:
        return False
    return number != 0 or isinstance(value, int) or math.copysign(1, value) == math.copysign(1, number)


def _add(rw: Rewriter, eqn: Eqn) -> Atom | None:
    x, y = eqn.invars
    # -0.0 is the neutral element of addition; integers have but one zero.
    if _is(rw.uniform(y), -0.0):
        return x
    return y if _is(rw.uniform(x), -0.0) else None


def _sub(rw: Rewriter, eqn: Eqn) -> Atom | None:
    x, y = eqn.invars
    return x if _is(rw.uniform(y), 0.0) else None


def _mul(rw: Rewriter, eqn: Eqn) -> Atom | None:
    x, y = eqn.invars
    if _is(rw.uniform(y), 1):
        return x
    return y if _is(rw.uniform(x), 1) else None


def _div(rw: Rewriter, eqn: Eqn) -> Atom | None:
    x, y = eqn.invars
    return x if _is(rw.uniform(y), 1) and eqn.outvars[0].aval.dtype.kind in "fc" else None


def _pow(rw: Rewriter, eqn: Eqn) -> Atom | None:
    x, y = eqn.invars
    return x if _is(rw.uniform(y), 1) else None


def _inverse_pair(rw: Rewriter, eqn: Eqn) -> Atom | None:
    """``neg(neg(x))``, ``not(not(x))``."""
    inner = rw.made_by(eqn.invars[0], eqn.primitive.name)
    return None if inner is None else inner.invars[0]


def _identity(rw: Rewriter, eqn: Eqn) -> Atom | None:
    return eqn.invars[0]


def _select(rw: Rewriter, eqn: Eqn) -> Atom | None:
    _, x, y = eqn.invars
    return x if x is y else None


def _convert(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    x, to = eqn.invars[0], eqn.outvars[0].aval.dtype
    if x.aval.dtype == to:
        return x
    inner = rw.made_by(x, eqn.primitive.name)
    if inner is None or not _holds_all(inner.invars[0].aval.dtype, x.aval.dtype):
        return None
    # Through a dtype that holds every value of the first, the second cast alone decides.
    source = inner.invars[0]
    if source.aval.dtype == to:
        return source
    return eqn.replace(invars=[source]) if source.aval.dtype.kind == to.kind else None


def _holds_all(source: np.dtype, target: np.dtype) -> bool:
    """Whether `target` has every value of `source`; NumPy calls a cast of int64 to float64 safe, which it is
    not.
    """
    wide = source.kind in "iu" and source.itemsize == 8 and target.kind in "fc"
    return source.kind != "b" and not wide and np.can_cast(source, target, "safe")


def _reshape(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    x, shape = eqn.invars[0], eqn.outvars[0].aval.shape
    if x.aval.shape == shape:
        return x
    inner = rw.made_by(x, "reshape")
    if inner is not None:
        return eqn.replace(invars=[inner.invars[0]])
    spread = rw.made_by(x, "broadcast_in_dim")
    if spread is not None and not spread.invars[0].aval.shape:
        return _broadcast_of(eqn, spread.invars[0], ())
    if not x.aval.shape:
        return _broadcast_of(eqn, x, ())
    return None


def _broadcast_of(eqn: Eqn, x: Atom, axes: tuple[int, ...]) -> Eqn:
    shape = eqn.outvars[0].aval.shape
    params = {"shape": shape, "broadcast_dimensions": axes}
    return eqn.replace(primitive=broadcast_in_dim_p, invars=[x], params=params)


def _broadcast(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    x, axes = eqn.invars[0], eqn.params["broadcast_dimensions"]
    if x.aval.shape == eqn.outvars[0].aval.shape and axes == tuple(range(x.aval.ndim)):
        return x
    inner = rw.made_by(x, "broadcast_in_dim")
    if inner is None:
        return None
    return _broadcast_of(eqn, inner.invars[0], tuple(axes[d] for d in inner.params["broadcast_dimensions"]))


def _transpose(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    x, order = eqn.invars[0], eqn.params["permutation"]
    if order == tuple(range(len(order))):
        return x
    long = [d for d in order if x.aval.shape[d] != 1]
    if long == sorted(long):  # only unit axes move
        return eqn.replace(primitive=reshape_p, invars=[x], params={"shape": eqn.outvars[0].aval.shape})
    inner = rw.made_by(x, "transpose")
    if inner is not None:
        first = inner.params["permutation"]
        order = tuple(first[d] for d in order)
        return eqn.replace(invars=inner.invars, params={"permutation": order})
    spread = rw.made_by(x, "broadcast_in_dim")
    if spread is not None:
        place = {d: i for i, d in enumerate(order)}
        return _broadcast_of(
            eqn, spread.invars[0], tuple(place[d] for d in spread.params["broadcast_dimensions"])
        )
    return _transposed_dot(rw, eqn)


def _transposed_dot(rw: Rewriter, eqn: Eqn) -> Eqn | None:
    """``transpose(dot(x, y))`` as ``dot(y, x)``, where only the free axes of the two change places."""
    dot = rw.made_by(eqn.invars[0], "dot_general")
    if dot is None:
        return None
    (lc, rc), (lb, rb) = dot.params["dimension_numbers"]
    x, y = dot.invars
    nb, nx, ny = len(lb), x.aval.ndim - len(lc) - len(lb), y.aval.ndim - len(rc) - len(rb)
    swapped = (*range(nb), *range(nb + nx, nb + nx + ny), *range(nb, nb + nx))
    if eqn.params["permutation"] != swapped:
        return None
    params = {**dot.params, "dimension_numbers": ((rc, lc), (rb, lb))}
    return eqn.replace(primitive=dot.primitive, invars=[y, x], params=params)


def _dot(rw: Rewriter, eqn: Eqn) -> Eqn | None:
    """Transposed operands read in place: the routines take a transpose for free. An outer product multiplies."""
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    if all(eqn.invars[0].aval.shape[d] == 1 for d in lc) and eqn.outvars[0].aval.dtype.kind in "iuf":
        return _outer(rw, eqn)
    x, lc, lb = _untransposed(rw, eqn.invars[0], lc, lb)
    y, rc, rb = _untransposed(rw, eqn.invars[1], rc, rb)
    if x is eqn.invars[0] and y is eqn.invars[1]:
        return None
    params = {**eqn.params, "dimension_numbers": ((lc, rc), (lb, rb))}
    return eqn.replace(invars=[x, y], params=params)


def _outer(rw: Rewriter, eqn: Eqn) -> Eqn:
    """A product that sums one term per element: elementwise, so it fuses with what reads it."""
    (x, y), out = eqn.invars, eqn.outvars[0]
    contracts, batches = eqn.params["dimension_numbers"]
    first = len(batches[0])
    factors = []
    for a, contract, batch in zip((x, y), contracts, batches):
        kept = [d for d in range(a.aval.ndim) if d not in contract]
        free = [d for d in kept if d not in batch]
        place = {**{d: i for i, d in enumerate(batch)}, **{d: first + i for i, d in enumerate(free)}}
        first += len(free)
        thin = rw.new(reshape_p, a, shape=tuple([a.aval.shape[d] for d in kept]))
        dims = tuple([place[d] for d in kept])
        factors.append(rw.new(broadcast_in_dim_p, thin, shape=out.aval.shape, broadcast_dimensions=dims))
    product = rw.new(mul_p, *factors)
    # A sum starts from zero: a product of -0.0 alone gives 0.0.
    zero = Literal(out.aval.dtype.type(0))
    return eqn.replace(primitive=add_p, invars=[product, zero], params={})


def _untransposed(
    rw: Rewriter, x: Atom, contracted: tuple[int, ...], batch: tuple[int, ...]
) -> tuple[Atom, tuple[int, ...], tuple[int, ...]]:
    inner = rw.made_by(x, "transpose")
    if inner is None:
        return x, contracted, batch
    order = inner.params["permutation"]
    free = [order[d] for d in range(len(order)) if d not in contracted and d not in batch]
    if free != sorted(free):  # the result's axes would change their order
        return x, contracted, batch
    return inner.invars[0], tuple(order[d] for d in contracted), tuple(order[d] for d in batch)


def _reduce(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    """A reduction of a transpose reduces the other axes of the operand, if the kept ones stay in order.

    One along axes of extent 1 is a reshape.
    """
    x, out = eqn.invars[0], eqn.outvars[0]
    if x.aval.size == out.aval.size > 0 and x.aval.dtype == out.aval.dtype:
        return eqn.replace(primitive=reshape_p, invars=[x], params={"shape": out.aval.shape})
    inner = rw.made_by(eqn.invars[0], "transpose")
    if inner is None or not eqn.params["axes"]:
        return None
    order, axes = inner.params["permutation"], eqn.params["axes"]
    kept = [order[d] for d in range(len(order)) if d not in axes]
    if kept != sorted(kept):
        return None
    params = {**eqn.params, "axes": tuple(sorted(order[d] for d in axes))}
    return eqn.replace(invars=inner.invars, params=params)


def _pad(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    """A pad without gaps is a window onto its operand: an index and a condition."""
    config = eqn.params["padding_config"]
    if all(c == (0, 0, 0) for c in config):
        return eqn.invars[0]
    if any(interior for _, _, interior in config):
        return None
    return eqn.replace(primitive=window_p)


def _extremum(rw: Rewriter, eqn: Eqn) -> Eqn | None:
    """``argmax`` as the first place that equals the maximum: two reductions, which vectorise."""
    x, axes = eqn.invars[0], eqn.params["axes"]
    if x.aval.dtype.kind == "c":
        return None
    if x.aval.dtype.kind == "b":
        x = rw.new(convert_element_type_p, x, dtype=np.dtype(np.int8))
    extreme = rw.new(reduce_max_p if eqn.primitive.name == "argmax" else reduce_min_p, x, axes=axes)
    kept = tuple(d for d in range(x.aval.ndim) if d not in axes)
    spread = rw.new(broadcast_in_dim_p, extreme, shape=x.aval.shape, broadcast_dimensions=kept)
    places = rw.new(place_p, x, spread, axis=axes[0])
    return eqn.replace(primitive=reduce_min_p, invars=[places], params={"axes": axes})


#: By name of primitive. These are identities between operations, not rules of a primitive.
RULES: dict[str, Rule] = {
    "name": lambda rw, eqn: eqn.invars[0],
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "neg": _inverse_pair,
    "not": _inverse_pair,
    "copy": _identity,
    "stop_gradient": _identity,
    "select": _select,
    "convert_element_type": _convert,
    "reshape": _reshape,
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "dot_general": _dot,
    "argmax": _extremum,
    "argmin": _extremum,
    "pad": _pad,
    **dict.fromkeys(
        ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or"), _reduce
    ),
}
