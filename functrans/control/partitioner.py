"""What reverse mode keeps of a forward program, and what it computes again.

A linearized jaxpr names the values that its linear half reads. Each of them is saved, or computed again from saved
values and inputs. `min_cut` chooses the fastest way, by estimate: saving a value takes time in proportion to its bytes,
computing it again takes the time of its equation and needs the operands. This is a minimum cut. The nodes are equations
and values; those on the side of the sink belong to the backward program::

    source --cost of the equation--> equation --price of its bytes--> value --infinite--> sink, if the backward reads it
                                     equation <--infinite-- each operand

An arc from the source that is cut is an equation that runs again; an arc from an equation to its value that is cut is a
value that is saved. Arcs of infinite capacity make the operands of whatever runs again available.

If ``config.activation_memory_budget`` allows fewer bytes than that, `within_budget` gives up the saved values that are
cheapest to compute again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np

from ..core import Atom, Block, Eqn, Jaxpr, Literal, Primitive, Reduction, Var, subjaxprs
from ..core.config import config
from ..core.errors import PartitionError
from ..frontend.arguments import name_of
from ..passes.costs import ITERATIONS, cost
from ..passes.flow import Network
from ..passes.toolkit import backward_slice, forward_slice, new_equation
from ..primitives.elementwise.arithmetic import convert_element_type_p, ge_p, gt_p, mul_p, share_p
from ..primitives.structure.linear import add_p
from ..transforms.linearize_jaxpr import LinearizedJaxpr
from ..transforms.transpose import is_large
from .callback import CALLBACKS
from .rematerialize import inline_calls, recomputing, residual_atoms, second_run

#: The price of storing 8 bytes and reading them later, in additions: memory takes some 3 ns.
PRICE = 40
#: The same in a loop, where what is stored last is read first, from the cache.
PRICE_IN_LOOP = 16
#: The most selections that a knapsack keeps.
MOST = 1000
_INFINITE = float("inf")
#: Capacities are times in this unit, plus bytes: of equally fast cuts the one that saves less is chosen.
_TIME = 1 << 60
#: The kinds of equations that run again although the budget does not ask for it.
_CHEAP = ("fusible", "reduction")


class Joint:
    """The forward program of a function, and which of its values the backward program reads.

    Attributes
    ----------
    primal : Jaxpr
        From the inputs to the outputs, then the other values that the backward program reads.
    needed : tuple of Var
        The values that the backward program reads.
    num_outputs : int
        The number of the function's outputs.
    """

    def __init__(
        self,
        primal: Jaxpr,
        needed: Iterable[Atom],
        num_outputs: int,
        free: Collection[Atom] | None = None,
        shares: Mapping[Any, int] = MappingProxyType({}),
    ):
        self.primal = primal
        self.num_outputs = num_outputs
        self.needed = tuple(dict.fromkeys([a for a in needed if type(a) is Var]))
        self.free = {*primal.invars, *primal.constvars} if free is None else free
        self.shares = shares

    def kind(self, eqn: Eqn) -> str:
        """What it takes to run an equation again.

        Returns
        -------
        str
            ``"effect"`` if a user could notice; ``"fusible"`` if it becomes a part of the loops around it;
            ``"reduction"``; and ``"heavy"`` for all else: products, convolutions, decompositions, sorts, loops.
        """
        rule = eqn.primitive.kernel
        if isinstance(rule, Reduction):
            return "reduction"
        if rule is not None and not isinstance(rule, Block):
            return "fusible"
        if _is_noticed(eqn):
            return "effect"
        return "fusible" if eqn.primitive.moves_data and eqn.primitive.cost is not None else "heavy"

    def bytes(self, var: Var) -> int:
        """The memory of a value: 0 for inputs, which exist anyway."""
        return 0 if var in self.free else self.shares.get(var, _bytes(var))

    def size(self, values: Iterable[Any]) -> int:
        """The memory of several values, each counted once."""
        return sum(self.bytes(v) for v in set(values))


def _bytes(var: Var) -> int:
    return var.aval.size * var.aval.dtype.itemsize


def _is_noticed(eqn: Eqn) -> bool:
    """Whether a user could count how often the equation runs."""
    if not eqn.effects.shareable or eqn.primitive in CALLBACKS:
        return True
    return any(_is_noticed(e) for body in subjaxprs(eqn.params) for e in body.eqns)


def min_cut(joint: Joint, price: int = PRICE) -> set[Var]:
    """The values to save for the fastest backward program, by estimate; of equally fast ones the fewest bytes.

    Only cheap equations run again.
    """
    network = Network()
    nodes: dict[Any, int] = {v: network.SINK for v in joint.needed if v not in joint.free}
    makers: dict[Var, int] = {}
    forward = set(backward_slice(joint.primal.eqns, joint.primal.outvars[: joint.num_outputs]))
    readers = Counter(a for e in joint.primal.eqns for a in set(e.invars))
    for e in reversed(joint.primal.eqns):
        results = [v for v in e.outvars if v in nodes]
        if not results:
            continue
        save: list[int | float] = [_price(joint, v, price) for v in results]
        again: int | float = _INFINITE
        if joint.kind(e) in _CHEAP:  # what only the backward program reads runs once in any case
            again = cost(e) * _TIME if e in forward else 0
        if again >= sum(save):  # saving the results is at least as fast, whatever the operands
            maker = network.SOURCE
        else:
            maker = network.node()
            for i, v in enumerate(results):  # the flow of such a short path needs no search
                if nodes[v] == network.SINK:
                    flow = min(again, save[i])
                    again, save[i] = again - flow, save[i] - flow
            network.arc(network.SOURCE, maker, again)
            for a in e.invars:
                if type(a) is Var and a not in joint.free:
                    if a not in nodes:  # a value with a single reader needs no node of its own
                        nodes[a] = maker if readers[a] == 1 else network.node()
                    if nodes[a] != maker:
                        network.arc(nodes[a], maker, _INFINITE)
        for v, capacity in zip(results, save):
            makers[v] = maker
            network.arc(maker, nodes[v], capacity)
    for v in joint.primal.invars:
        if v in nodes:
            makers[v] = network.SOURCE
            network.arc(network.SOURCE, nodes[v], _price(joint, v, price))
    _, again_side = network.minimum_cut()
    return {v for v, maker in makers.items() if nodes[v] in again_side and maker not in again_side}


def _price(joint: Joint, v: Var, price: int) -> int:
    """The capacity of saving a value."""
    return price * joint.bytes(v) // 8 * _TIME + joint.bytes(v)


def save_all(joint: Joint) -> set[Var]:
    """All values that the backward program reads."""
    return {v for v in joint.needed if v not in joint.free}


def recompute_all(joint: Joint) -> set[Var]:
    """Only what effects returned: everything else is computed again from the inputs."""
    return {v for e in joint.primal.eqns if joint.kind(e) == "effect" for v in e.outvars}


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
    items = [v for v in _in_order(joint.primal, saved) if v not in kept]
    worth = [_time_again(joint, v, saved) for v in items]
    weights = [joint.bytes(v) for v in items]
    choices = (_exact if solver == "dp" else _greedy)(weights, worth)
    # The choices do not depend on the limit. So a lower one never leads to more bytes.
    sizes = [size for size, _ in choices]
    return {items[i] for i in choices[bisect_right(sizes, limit) - 1][1]} | kept


def _in_order(primal: Jaxpr, values: Collection[Var]) -> list[Var]:
    """The values in the order of their definition, which is the same in each process."""
    return [v for v in (*primal.invars, *[v for e in primal.eqns for v in e.outvars]) if v in values]


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
    """The same, and the equations that are in both programs.

    Expensive equations that run again are kept apart from their first run: otherwise a compiler that sees both would
    share them, and save their results after all.
    """
    primal = inline_calls(parts.primal)
    parts = parts._replace(primal=primal)
    joint = Joint(primal, residual_atoms(parts), len(parts.nonzero))
    saved = choose(joint)
    again = backward_slice(primal.eqns, joint.needed, {*joint.free, *saved})
    if not again:
        return parts, again
    parts = recomputing(parts, saved, separate=any(joint.kind(e) == "heavy" for e in again))
    forward = set(parts.primal.eqns)
    return parts, [e for e in again if e in forward]


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


def economical(parts: LinearizedJaxpr, num_consts: int, num_carry: int) -> LinearizedJaxpr:
    """A linearized loop body that saves fewer bytes in each iteration.

    Parameters
    ----------
    parts : LinearizedJaxpr
        From (constants, carry, rows) to (carry, rows). The constants are the same in each iteration; the rows of both
        sides are in memory anyway.
    num_consts, num_carry : int
    """
    if config.partitioner == "save_all":
        return parts
    primal = _with_small_shares(inline_calls(parts.primal), residual_atoms(parts))
    parts = parts._replace(primal=primal)
    varying = forward_slice(primal.eqns, primal.invars[num_consts:])
    invariant = [e for e in primal.eqns if varying.isdisjoint(e.outvars)]
    rows = [*primal.invars[num_consts + num_carry :], *primal.outvars[num_carry : len(parts.nonzero)]]
    # An enclosing loop may change a large constant, and would save it in each of its iterations.
    shares = {v: _bytes(v) // ITERATIONS for v in primal.invars[:num_consts] if is_large(v.aval)}
    stored: set[Any] = {*primal.invars[:num_consts], *rows} - shares.keys()
    free = stored | {*primal.constvars, *[v for e in invariant for v in e.outvars]}
    joint = Joint(primal, residual_atoms(parts), len(parts.nonzero), free, shares)
    saved = min_cut(joint, PRICE_IN_LOOP)
    if joint.size(saved) >= joint.size(joint.needed):
        saved = save_all(joint)
    # An invariant value larger than its operands, or made of numbers alone, is computed where it is read.
    given = forward_slice(primal.eqns, [*primal.invars, *primal.constvars])
    large = [e for e in invariant if _grows(e) or given.isdisjoint(e.outvars)]
    stored.update(v for e in invariant if joint.kind(e) == "heavy" or e not in large for v in e.outvars)
    return recomputing(parts, saved | stored)


def _with_small_shares(primal: Jaxpr, residuals: Sequence[Atom]) -> Jaxpr:
    """The shares of `max` and `min` in a tangent, which are 0, 1/2 or 1, as half of an integer of one byte."""
    wanted = {v for v in residuals if type(v) is Var}
    eqns: list[Eqn] = []
    for e in primal.eqns:
        small = e.primitive is share_p and e.outvars[0] in wanted and e.outvars[0].aval.dtype.kind == "f"
        eqns += _as_half_of_an_integer(e) if small else [e]
    return primal.replace(eqns=eqns)


def _as_half_of_an_integer(e: Eqn) -> list[Eqn]:
    eqns: list[Eqn] = []

    def add(prim: Primitive, *operands: Atom, **params: Any) -> Var:
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
