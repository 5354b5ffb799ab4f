"""The forward program with what the backward program reads of it, and ways to choose what is saved.

`min_cut` chooses the fastest way, by estimate: saving a value takes time in proportion to its bytes, computing it again
takes the time of its equation and needs the operands. This is a minimum cut. The nodes are equations and values; those
on the side of the sink belong to the backward program::

    source --cost of the equation--> equation --price of its bytes--> value --infinite--> sink, if the backward reads it
                                     equation <--infinite-- each operand

An arc from the source that is cut is an equation that runs again; an arc from an equation to its value that is cut is a
value that is saved. Arcs of infinite capacity make the operands of whatever runs again available.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ...core import Atom, Eqn, Indexed, Jaxpr, Pointwise, Reduction, Reshape, Var
from ...passes.costs import cost
from ...passes.flow import Network
from ...passes.toolkit import backward_slice
from ..callbacks.callback import is_noticed

#: The price of storing 8 bytes and reading them later, in additions: memory takes some 3 ns.
PRICE = 40
#: The price at which bytes that take next to no time are saved.
SCARCE = 8 * PRICE
_INFINITE = float("inf")
#: Capacities are times in this unit, plus bytes: of equally fast cuts the one that saves less is chosen.
_TIME = 1 << 60
_KINDS = {Pointwise: "fusible", Indexed: "fusible", Reshape: "fusible", Reduction: "reduction"}
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
        kind = _KINDS.get(type(eqn.primitive.kernel))
        if kind is not None:
            return kind
        if is_noticed(eqn):
            return "effect"
        return "fusible" if eqn.primitive.moves_data and eqn.primitive.cost is not None else "heavy"

    def has_heavy(self, eqns: Iterable[Eqn]) -> bool:
        """Whether one of the equations is heavy."""
        return any(type(e.primitive.kernel) not in _KINDS and self.kind(e) == "heavy" for e in eqns)

    def bytes(self, var: Var) -> int:
        """The memory of a value: 0 for inputs, which exist anyway."""
        return 0 if var in self.free else self.shares.get(var, nbytes(var))

    def size(self, values: Iterable[Any]) -> int:
        """The memory of several values, each counted once."""
        return sum(self.bytes(v) for v in set(values))


def nbytes(var: Var) -> int:
    """The memory of a value."""
    return var.aval.size * var.aval.dtype.itemsize


def save_all(joint: Joint) -> set[Var]:
    """All values that the backward program reads."""
    return {v for v in joint.needed if v not in joint.free}


def recompute_all(joint: Joint) -> set[Var]:
    """Only what effects returned: everything else is computed again from the inputs."""
    return {v for e in joint.primal.eqns if joint.kind(e) == "effect" for v in e.outvars}


def min_cut(joint: Joint) -> set[Var]:
    """The values to save for the fastest backward program, by estimate; of equally fast ones the fewest bytes.

    Only cheap equations run again. Where products take the time, fewer bytes may cost a hundredth of it.
    """
    saved = cheapest(joint, PRICE)
    eqns = joint.primal.eqns
    if not joint.has_heavy(eqns):
        return saved
    fewer = cheapest(joint, SCARCE)
    if fewer == saved:
        return saved
    # The backward pass takes twice the time of the forward pass.
    allowed = 3 * sum(map(cost, eqns)) // 100
    return fewer if _second_time(joint, fewer) - _second_time(joint, saved) <= allowed else saved


def _second_time(joint: Joint, saved: set[Var]) -> int:
    """The time of the equations that run again."""
    return sum(map(cost, backward_slice(joint.primal.eqns, joint.needed, {*joint.free, *saved})))


def cheapest(joint: Joint, price: int, *, waits: bool = False) -> set[Var]:
    """The values to save at a price of 8 bytes, in additions.

    If the forward program `waits` for numbers anyway, it computes what only the backward one reads at no cost.
    """
    cut = _Cut(joint, price)
    known = cut.readers.keys()
    forward = set(joint.primal.outvars[: joint.num_outputs])
    for e in reversed(joint.primal.eqns):
        # What only the backward program reads runs once in any case.
        runs_before = not forward.isdisjoint(e.outvars)
        if runs_before:
            forward.update(e.invars)
        if known.isdisjoint(e.outvars):
            continue
        again: int | float = _INFINITE
        if type(e.primitive.kernel) in _KINDS or joint.kind(e) in _CHEAP:
            hidden = waits and all(v.aval.size == 1 for v in e.outvars)
            again = cost(e) * _TIME if runs_before or hidden else 0
        if len(e.outvars) == 1:
            maker = cut.add(e.outvars[0], again)
        else:
            maker = cut.add_several([v for v in e.outvars if v in cut.readers], again)
        if maker is not None:
            cut.read(e.invars, maker)
    for v in joint.primal.invars:
        if v in cut.readers:
            cut.save(v)
    return cut.saved()


class _Cut:
    """The network of `cheapest`, which grows from the sink to the source."""

    def __init__(self, joint: Joint, price: int):
        self.joint = joint
        self.price = price
        self.network = Network()
        # The nodes that read each value: the sink if the backward program does, else those of equations.
        self.readers: dict[Any, int | list[int]] = dict.fromkeys(save_all(joint), Network.SINK)
        self.capacities: dict[int, int] = {}
        # What may be saved: a value, the node of its equation, and the node that reads it.
        self.values: list[tuple[Var, int | None, int]] = []

    def add(self, v: Var, again: int | float) -> int | None:
        """Add an equation with the result `v` that takes the time `again`; returns its node, None for the source."""
        node = self.reader(v)
        capacity = self.capacities.get(id(v.aval))  # most results share their aval with others
        if capacity is None:
            capacity = self.capacities[id(v.aval)] = self.capacity(v)
        if again >= capacity:  # saving the result is at least as fast, whatever the operands
            self.save(v)
            return None
        if capacity >= self.network.width[node]:  # so is saving what is computed from it
            self.network.send(node, again)
            return node
        maker = self.network.node(node, capacity, again)
        self.values.append((v, maker, node))
        return maker

    def add_several(self, results: list[Var], again: int | float) -> int | None:
        """The same for an equation with several results."""
        arcs = [(self.reader(v), self.capacity(v)) for v in results]
        if again >= sum([capacity for _, capacity in arcs]):
            for v in results:
                self.save(v)
            return None
        maker = self.network.fork(arcs, again)
        self.values += [(v, maker, node) for v, (node, _) in zip(results, arcs)]
        return maker

    def save(self, v: Var) -> None:
        """Add a value that is not computed again."""
        node = self.reader(v)
        self.network.send(node, self.capacity(v))
        self.values.append((v, None, node))

    def read(self, operands: Iterable[Atom], reader: int) -> None:
        """Note that a node reads values."""
        readers, free = self.readers, self.joint.free
        for a in operands:
            if type(a) is Var and a not in free:
                known = readers.setdefault(a, reader)
                if known and known != reader:
                    if isinstance(known, int):
                        readers[a] = [known, reader]
                    else:
                        known.append(reader)

    def reader(self, v: Var) -> int:
        """A node from which one can go to all readers of a value."""
        nodes = self.readers[v]
        if isinstance(nodes, int):
            return nodes
        node = self.readers[v] = self.network.fork([(node, _INFINITE) for node in dict.fromkeys(nodes)])
        return node

    def capacity(self, v: Var) -> int:
        """The price of saving a value."""
        size = self.joint.bytes(v)
        return self.price * size // 8 * _TIME + size

    def saved(self) -> set[Var]:
        """The values on the border of the minimum cut."""
        side = self.network.sink_side()
        return {v for v, maker, node in self.values if side[node] and (maker is None or not side[maker])}
