"""What a program costs: `costs` of its equations, `cost_analysis` of all of it."""

from __future__ import annotations

from typing import Any

from ..core.ir import Eqn, Jaxpr, Var, subjaxprs
from ..core.primitive import Effect
from ..errors import JaxprError
from ..runtime.records import NamedTuple
from ..runtime.tracebacks import boundary
from .costs import work


class Cost(NamedTuple):
    """What an equation costs; `costs` lists them.

    Attributes
    ----------
    flops : int
        Operations on numbers: one for each element of an elementwise result, one for each element that a reduction
        reads, ``2 m n k`` for a product of matrices. Moving data is none.
    transcendentals : int
        Functions of a maths library, one for each element of the result. They are not among the `flops`.
    bytes_accessed : int
        The bytes of operands and results; of a loop, those of the equations in its body.
    unknown_loops : int
        Loops whose number of iterations is known only at run time. They are counted as if they ran once.
    """

    flops: int = 0
    transcendentals: int = 0
    bytes_accessed: int = 0
    unknown_loops: int = 0

    def plus(self, other: Cost) -> Cost:
        """Both, one after the other."""
        return Cost(*[a + b for a, b in zip(self, other)])

    def times(self, n: int) -> Cost:
        """The same so often; loops of unknown length are not more for it."""
        return Cost(self.flops * n, self.transcendentals * n, self.bytes_accessed * n, self.unknown_loops)

    def as_dict(self) -> dict[str, int]:
        """Under the names of `cost_analysis`."""
        return dict(zip(NAMES, self))


NAMES = ("flops", "transcendentals", "bytes accessed", "unknown loops")


@boundary
def costs(jaxpr: Jaxpr) -> list[tuple[Eqn, Cost]]:
    """The cost of each equation of a program.

    Parameters
    ----------
    jaxpr : Jaxpr

    Returns
    -------
    list of (Eqn, Cost)
        In the order of the program. The cost of a loop is that of its body times its length, of a branch the largest of
        each kind, of a call that of what it calls.

    Raises
    ------
    JaxprError
        If the argument is not a jaxpr.

    Notes
    -----
    What an operation does stands in its record, or follows from its family; derivatives that store less than they
    could, and policies of what is computed again, read the same. Decompositions have the counts of LAPACK Working Note
    41, Fourier transforms ``5 n log2(n)``. What Python functions do in a callback is not known, and counts nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> program = ir.trace(lambda w, x: np.tanh(w @ x), np.ones((3, 4)), np.ones((4, 5)))
    >>> for eqn, cost in ir.costs(program):
    ...     print(eqn.primitive.name, cost.flops, cost.transcendentals, cost.bytes_accessed)
    dot_general 120 0 376
    tanh 0 15 240
    """
    if not isinstance(jaxpr, Jaxpr):
        raise JaxprError(
            f"costs: expected a Jaxpr, got {str(jaxpr)[:60]!r} of type {type(jaxpr).__name__}. "
            "functrans.ir.trace makes one of a function; lowered and compiled functions have .cost_analysis()"
        )
    known: dict[Jaxpr, Cost] = {}
    return [(e, _cost(e, known)) for e in jaxpr.eqns]


@boundary
def cost_analysis(jaxpr: Jaxpr) -> dict[str, int]:
    """The cost of a program, under JAX's names.

    Parameters
    ----------
    jaxpr : Jaxpr

    Returns
    -------
    dict
        ``"flops"``, ``"transcendentals"``, ``"bytes accessed"`` and ``"unknown loops"``; see `Cost`.

    Raises
    ------
    JaxprError
        If the argument is not a jaxpr.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> ir.cost_analysis(ir.trace(lambda x: np.sum(np.exp(x) * x), np.ones(100)))
    {'flops': 200, 'transcendentals': 100, 'bytes accessed': 4808, 'unknown loops': 0}
    """
    return _total([cost for _, cost in costs(jaxpr)]).as_dict()


def _total(parts: list[Cost]) -> Cost:
    return Cost(*map(sum, zip(*parts))) if parts else Cost()


def _of_jaxpr(jaxpr: Jaxpr, known: dict[Jaxpr, Cost]) -> Cost:
    cost = known.get(jaxpr)
    if cost is None:
        cost = known[jaxpr] = _total([_cost(e, known) for e in jaxpr.eqns])
    return cost


def _cost(eqn: Eqn, known: dict[Jaxpr, Cost]) -> Cost:
    bodies = [_of_jaxpr(body, known) for body in subjaxprs(eqn.params)]
    call = eqn.primitive.call
    if not bodies and call is not None and call.expand is not None and eqn.effects is Effect.NONE:
        return _of_jaxpr(call.expand(*[a.aval for a in eqn.invars], **eqn.params), known)
    if not bodies:
        done = work(eqn)
        return Cost(done.flops, done.transcendentals, _bytes(eqn))
    if "branches" in eqn.params:
        return Cost(*map(max, zip(*bodies)))
    once = _total(bodies)
    if call is not None:
        return once
    length = eqn.params.get("length")
    return once.plus(Cost(unknown_loops=1)) if length is None else once.times(length)


def _bytes(eqn: Eqn) -> int:
    """The bytes of operands, each once, and of results; literals are in the code."""
    read: dict[Any, None] = dict.fromkeys(a for a in eqn.invars if type(a) is Var)
    return sum([a.aval.size * a.aval.dtype.itemsize for a in (*read, *eqn.outvars)])
