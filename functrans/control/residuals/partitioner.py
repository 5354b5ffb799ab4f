"""What reverse mode keeps of a forward program, and what it computes again.

A linearized jaxpr names the values that its linear half reads. Each of them is saved, or computed again from saved
values and inputs. ``config.partitioner`` names the strategy that chooses. If ``config.activation_memory_budget`` allows
fewer bytes than that, `within_budget` gives up the saved values that are cheapest to compute again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...core import Atom, Eqn, Jaxpr, Literal, Primitive, Var, is_float
from ...core.values import Param
from ...errors import PartitionError
from ...frontend.arguments import name_of
from ...passes.costs import ITERATIONS, cost
from ...passes.toolkit import backward_slice, forward_slice, new_equation
from ...primitives.elementwise.arithmetic import convert_element_type_p, ge_p, gt_p, mul_p, share_p
from ...primitives.structure.linear import add_p
from ...runtime.config import config
from ...runtime.passes import ECONOMY
from ...transforms.linearize_jaxpr import LinearizedJaxpr, in_loop
from ...transforms.transpose import is_large
from . import read_back
from .joint import Joint, cheapest, min_cut, nbytes, recompute_all, save_all
from .rematerialize import inline_calls, residual_atoms, second_run, with_second_run

#: The price of saving in a loop, where what is stored last is read first, from the cache.
PRICE_IN_LOOP = 16
#: The price in a checkpoint: what can run again does.
_DEAR = 1 << 20
#: The golden ratio, in units of 2**-32.
_GOLDEN = 2654435769
#: The most selections that a knapsack keeps.
MOST = 1000

# --- budgets --------------------------------------------------------------------------------------------------


def within_budget(joint: Joint, saved: set[Var], budget: float, solver: str) -> set[Var]:
    """Of the `saved` values those most worth their memory, within a share of that of `save_all`.

    Results of effects are always kept, and not counted.
    """
    if budget >= 1:  # no strategy saves more than that
        return saved
    kept = recompute_all(joint)
    limit = int(budget * joint.size(save_all(joint) - kept))
    if joint.size(saved - kept) <= limit:
        return saved
    items = _spread([v for v in _in_order(joint.primal, saved) if v not in kept])
    worth = [_time_again(joint, v, saved) for v in items]
    weights = [joint.bytes(v) for v in items]
    choices = (_exact if solver == "dp" else _greedy)(weights, worth)
    # The choices do not depend on the limit. So a lower one never leads to more bytes.
    sizes = [size for size, _ in choices]
    return {items[i] for i in choices[bisect_right(sizes, limit) - 1][1]} | kept


def _in_order(primal: Jaxpr, values: Collection[Var]) -> list[Var]:
    """The values in the order of their definition, which is the same in each process."""
    return [v for v in (*primal.invars, *[v for e in primal.eqns for v in e.outvars]) if v in values]


def _spread(values: Sequence[Var]) -> list[Var]:
    """The values in an order of which each beginning is spread evenly: multiples of the golden ratio, modulo 1.

    Among values of equal worth the first are chosen. So what is computed again together is short, and takes little
    memory at once.
    """
    turns = sorted(range(len(values)), key=lambda i: i * _GOLDEN % (1 << 32))
    return [v for _, v in sorted(zip(turns, values), key=lambda pair: pair[0])]


def _time_again(joint: Joint, v: Var, saved: set[Var]) -> int:
    """The time to compute a value from the other saved ones and the inputs."""
    given: set[Any] = {*joint.free, *saved}
    again: list[Eqn] = backward_slice(joint.primal.eqns, [v], given - {v})
    return sum([cost(e) for e in again])


#: The total weight of a selection, and the numbers of its items.
Selection = tuple[int, tuple[int, ...]]


def _exact(weights: Sequence[int], worth: Sequence[int]) -> list[Selection]:
    """For each total weight the selection of most worth, by dynamic programming; the weights increase.

    If they are too many, some selections are left out, never the empty one.
    """
    best: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
    for i, (weight, gain) in enumerate(zip(weights, worth)):
        longer = [(size + weight, total + gain, (*chosen, i)) for size, total, chosen in best]
        merged = sorted([*best, *longer], key=lambda s: (s[0], -s[1]))
        best = merged[:1]
        for selection in merged[1:]:
            if selection[1] > best[-1][1]:
                best.append(selection)
        step = -(-len(best) // MOST)
        best = best[:: max(step, 1)]
    return [(size, chosen) for size, _, chosen in best]


def _greedy(weights: Sequence[int], worth: Sequence[int]) -> list[Selection]:
    """The items of most worth by weight: none, one, two and so on."""
    order = sorted(range(len(weights)), key=lambda i: (-worth[i] / max(weights[i], 1), i))
    totals = [0, *accumulate(weights[i] for i in order)]
    return [(total, tuple(order[:count])) for count, total in enumerate(totals)]


# --- calls and loops ------------------------------------------------------------------------------------------

_STRATEGIES: dict[str, Callable[[Joint], set[Var]]] = {
    "min_cut": min_cut,
    "save_all": save_all,
    "recompute_all": recompute_all,
}


def partition(joint: Joint) -> set[Var]:
    """The values to save under the current configuration."""
    saved = _STRATEGIES[config.partitioner](joint)
    return within_budget(joint, saved, config.activation_memory_budget, config.memory_budget_solver)


#: A function that chooses the values to save.
Partitioner = Callable[[Joint], Collection[Var]]


def partitioned(parts: LinearizedJaxpr, choose: Partitioner = partition) -> LinearizedJaxpr:
    """A linearized jaxpr that saves the values that `choose` selects."""
    return cut_in_two(parts, choose)[0]


def cut_in_two(parts: LinearizedJaxpr, choose: Partitioner) -> tuple[LinearizedJaxpr, list[Eqn]]:
    """The same, and what the linear half computes again.

    Expensive equations that run again are kept apart from their first run: otherwise a compiler that sees both would
    share them, and save their results after all.
    """
    primal = inline_calls(parts.primal)
    parts = parts._replace(primal=primal)
    residuals = residual_atoms(parts)
    joint = Joint(primal, residuals, len(parts.nonzero))
    again, leaves = second_run(primal, residuals, choose(joint))
    if not again:
        return parts, again
    separate = joint.has_heavy(again)
    return with_second_run(parts, again, leaves, separate=separate), again


def checked_choice(choose: Partitioner) -> Partitioner:
    """A user's partitioner, which raises `PartitionError` if its choice is invalid."""
    name = name_of(choose)

    def checked(joint: Joint) -> Collection[Var]:
        saved = choose(joint)
        if not isinstance(saved, Collection) or not all(type(v) is Var for v in saved):
            raise PartitionError(
                f"the partitioner {name} returned {saved!r}. Return a set of variables of joint.primal: inputs, or "
                "outvars of its equations"
            )
        defined = {*joint.primal.invars, *joint.primal.constvars}
        defined.update(v for e in joint.primal.eqns for v in e.outvars)
        foreign = [v for v in saved if v not in defined]
        if foreign:
            raise PartitionError(
                f"the partitioner {name} returned {foreign}, which joint.primal does not define. Choose among its "
                "inputs and the outvars of its equations"
            )
        again, _ = second_run(joint.primal, joint.needed, set(saved))
        twice = [e for e in again if joint.kind(e) == "effect"]
        if twice:
            listed = "\n".join(
                f"  {e}" + ("" if e.source is None else f"\n  {e.source.describe()}") for e in twice
            )
            raise PartitionError(
                f"the partitioner {name} does not save what these equations compute, so the backward program would run "
                f"them a second time, which can be noticed:\n{listed}\nSave their outvars, or the values computed from "
                "them that joint.needed lists"
            )
        return saved

    return checked


def economical(
    parts: LinearizedJaxpr, num_consts: int, num_carry: int, last: Collection[Var] = ()
) -> LinearizedJaxpr:
    """A linearized loop body that saves fewer bytes in each iteration.

    Parameters
    ----------
    parts : LinearizedJaxpr
        From (constants, carry, rows) to (carry, rows). The constants are the same in each iteration; the rows of both
        sides are in memory anyway.
    num_consts, num_carry : int
    last : collection of Var
        The constants that are last arrays (see `read_back`): only the linear half of the result reads them.
    """
    parts = read_back.after_the_loop(parts._replace(primal=inline_calls(parts.primal)), last)
    if config.partitioner == "save_all" or not config.runs(ECONOMY):
        return read_back.recomputing_marked(parts, set(residual_atoms(parts)))
    primal = _with_small_shares(parts.primal, residual_atoms(parts))
    parts = parts._replace(primal=primal)
    varying = forward_slice(primal.eqns, primal.invars[num_consts:])
    invariant = [e for e in primal.eqns if varying.isdisjoint(e.outvars)]
    rows = [*primal.invars[num_consts + num_carry :], *primal.outvars[num_carry : len(parts.nonzero)]]
    shares = _shares(primal.invars[:num_consts], last)
    stored: set[Any] = {*primal.invars[:num_consts], *rows} - shares.keys()
    again = read_back.marks(primal).keys() - stored
    free = stored | again | {*primal.constvars, *[v for e in invariant for v in e.outvars]}
    joint = Joint(primal, residual_atoms(parts), len(parts.nonzero), free, shares)
    saved = _saved_in_loop(joint, bool(again))
    # An invariant value larger than its operands, or made of numbers alone, is computed where it is read.
    given = forward_slice(primal.eqns, [*primal.invars, *primal.constvars])
    large = [e for e in invariant if _grows(e) or given.isdisjoint(e.outvars)]
    stored.update(v for e in invariant if joint.kind(e) == "heavy" or e not in large for v in e.outvars)
    return read_back.recomputing_marked(parts, saved | stored)


def economical_branch(parts: LinearizedJaxpr, last: Collection[Var]) -> LinearizedJaxpr:
    """The same for a linearized branch, of which all inputs are operands of its linear half."""
    parts = read_back.after_the_loop(parts._replace(primal=inline_calls(parts.primal)), last)
    if config.partitioner == "save_all" or not config.runs(ECONOMY):
        return read_back.recomputing_marked(parts, set(residual_atoms(parts)))
    primal = parts.primal
    shares = _shares(primal.invars, last)
    stored: set[Any] = {*primal.invars, *primal.outvars[: len(parts.nonzero)]} - shares.keys()
    again = read_back.marks(primal).keys() - stored
    joint = Joint(
        primal, residual_atoms(parts), len(parts.nonzero), stored | again | {*primal.constvars}, shares
    )
    saved = _saved_in_loop(joint, bool(again))
    return read_back.recomputing_marked(parts, saved | stored)


def _saved_in_loop(joint: Joint, waits: bool) -> set[Var]:
    if in_loop.get() == "checkpoint":
        return cheapest(joint, _DEAR)
    saved = cheapest(joint, PRICE_IN_LOOP, waits=waits)
    return saved if joint.size(saved) < joint.size(joint.needed) else save_all(joint)


def _shares(consts: Sequence[Var], last: Collection[Var]) -> dict[Var, int]:
    """The bytes that constants cost in each iteration, because an enclosing loop may change them and save them."""
    if not in_loop.get():
        return {}
    return {v: nbytes(v) // ITERATIONS for v in consts if is_large(v.aval) and v not in last}


def _with_small_shares(primal: Jaxpr, residuals: Sequence[Atom]) -> Jaxpr:
    """The shares of `max` and `min` in a tangent, which are 0, 1/2 or 1, as half of an integer of one byte."""
    wanted = {v for v in residuals if type(v) is Var}
    eqns: list[Eqn] = []
    for e in primal.eqns:
        small = e.primitive is share_p and e.outvars[0] in wanted and is_float(e.outvars[0].aval.dtype)
        eqns += _as_half_of_an_integer(e) if small else [e]
    return primal.replace(eqns=eqns)


def _as_half_of_an_integer(e: Eqn) -> list[Eqn]:
    eqns: list[Eqn] = []

    def add(prim: Primitive, *operands: Atom, **params: Param) -> Var:
        eqns.append(new_equation(prim, operands, params, e.source))
        return eqns[-1].outvars[0]

    (share,) = e.outvars
    dtype = share.aval.dtype
    above, level = add(gt_p, *e.invars), add(ge_p, *e.invars)  # both are false for NaN
    parts = [add(convert_element_type_p, v, dtype=np.dtype(np.int8), weak=False) for v in (above, level)]
    twice = add(convert_element_type_p, add(add_p, *parts), dtype=dtype, weak=False)
    return [*eqns, e.replace(primitive=mul_p, invars=[twice, Literal(dtype.type(0.5))], params={})]


def _grows(e: Eqn) -> bool:
    return sum(v.aval.size for v in e.outvars) > sum(a.aval.size for a in e.invars if type(a) is Var)
