"""The minimum cut of a network without cycles, with integer capacities.

From most nodes a single path leads to the sink, so the flow through them is found in one pass. The rest is left to
Dinic's algorithm: E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation",
Soviet Math. Doklady 11 (1970), 1277-1280.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

Capacity = int | float
_INFINITE = float("inf")


class Network:
    """Nodes that are numbered from 0, the sink. Arcs lead to nodes with a lower number, or come from the source.

    Attributes
    ----------
    width : list of int or float
        For each node, the capacity of its arcs to other nodes together.

    Examples
    --------
    >>> network = Network()
    >>> one = network.node(network.SINK, 2)
    >>> two = network.node(one, 5, supply=3)
    >>> network.sink_side()
    [True, False, False]
    """

    SINK = 0

    def __init__(self) -> None:
        self.width: list[Capacity] = [_INFINITE]
        self._head = [self.SINK]
        self._supply: list[Capacity] = [0]
        self._forks: dict[int, Sequence[tuple[int, Capacity]]] = {}

    def node(self, head: int, capacity: Capacity, supply: Capacity = 0) -> int:
        """A new node with an arc to `head`, and with one from the source of capacity `supply`."""
        self._head.append(head)
        self.width.append(capacity)
        self._supply.append(supply)
        return len(self._head) - 1

    def fork(self, arcs: Sequence[tuple[int, Capacity]], supply: Capacity = 0) -> int:
        """A new node with several arcs: pairs of a head and a capacity."""
        node = self.node(self.SINK, sum([capacity for _, capacity in arcs]), supply)
        self._forks[node] = arcs
        return node

    def send(self, node: int, amount: Capacity) -> None:
        """Add to the capacity from the source to a node."""
        self._supply[node] += amount

    def sink_side(self) -> list[bool]:
        """For each node, whether it is on the side of the sink in a minimum cut; of several cuts the one nearest to it.

        That cut does not depend on the order of nodes and arcs.
        """
        supply, room = list(self._supply), list(self.width)
        # From the source on. What an arc cannot take stays behind: then it is full, and all before it is cut off.
        for node in range(len(room) - 1, 0, -1):
            if node not in self._forks:
                sent = min(supply[node], room[node])
                room[node] -= sent
                supply[self._head[node]] += sent
        decided = self._beyond_forks(supply, room) if self._forks else {}
        side = [True]
        for node in range(1, len(room)):
            there = decided.get(node)
            side.append(room[node] > 0 and side[self._head[node]] if there is None else there)
        return side

    def _beyond_forks(self, supply: Sequence[Capacity], room: Sequence[Capacity]) -> dict[int, bool]:
        """The sides of the forks, and of the nodes that can be reached from them."""
        region = {self.SINK}
        for arcs in self._forks.values():
            for node, _ in arcs:
                while node not in region and node not in self._forks:
                    region.add(node)
                    node = self._head[node]
        source = len(room)
        flow = _Flow(source, self.SINK)
        for node in sorted(region - {self.SINK}):
            flow.arc(node, self._head[node], room[node])
        for node, arcs in self._forks.items():
            flow.arc(source, node, supply[node])
            for head, capacity in arcs:
                flow.arc(node, head, capacity)
        level = flow.greatest()
        return {node: level[node] >= 0 for node in region.union(self._forks)}


class _Flow:
    """A flow from node `source`, the highest number, to `sink`, by Dinic's algorithm."""

    def __init__(self, source: int, sink: int):
        self.source = source
        self.sink = sink
        # Arc i goes to `heads[i]` and has `room[i]` left; arc i ^ 1 is its reverse.
        self.arcs: list[list[int]] = [[] for _ in range(source + 1)]
        self.heads: list[int] = []
        self.room: list[Capacity] = []

    def arc(self, tail: int, head: int, capacity: Capacity) -> None:
        """Add an arc."""
        self.arcs[tail].append(len(self.heads))
        self.arcs[head].append(len(self.heads) + 1)
        self.heads += [head, tail]
        self.room += [capacity, 0]

    def greatest(self) -> list[int]:
        """Send all that fits.

        Returns
        -------
        list of int
            For each node the fewest arcs with room from it to the sink; -1 without a path.
        """
        while True:
            level = self._levels()
            if level[self.source] < 0:
                return level
            place = [0] * len(self.arcs)
            while self._send(level, place):
                pass

    def _levels(self) -> list[int]:
        """See `greatest`."""
        level = [-1] * len(self.arcs)
        level[self.sink] = 0
        queue = deque([self.sink])
        while queue:
            node = queue.popleft()
            for i in self.arcs[node]:
                tail = self.heads[i]
                if level[tail] < 0 and self.room[i ^ 1]:
                    level[tail] = level[node] + 1
                    queue.append(tail)
        return level

    def _send(self, level: list[int], place: list[int]) -> Capacity:
        """Send flow along a shortest path; 0 if none is left. `place` skips arcs that led nowhere."""
        path: list[int] = []
        node = self.source
        while node != self.sink:
            arcs = self.arcs[node]
            while place[node] < len(arcs):
                i = arcs[place[node]]
                if self.room[i] and level[self.heads[i]] == level[node] - 1:
                    path.append(i)
                    node = self.heads[i]
                    break
                place[node] += 1
            else:
                if not path:
                    return 0
                node = self.heads[path.pop() ^ 1]
                place[node] += 1
        sent = min(self.room[i] for i in path)
        for i in path:
            self.room[i] -= sent
            self.room[i ^ 1] += sent
        return sent
