"""The minimum cut of a network with integer capacities, by Dinic's algorithm.

E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", Soviet Math.
Doklady 11 (1970), 1277-1280.
"""

from __future__ import annotations

from collections import deque


class Network:
    """Nodes that are numbered from 0, and arcs with capacities; node 0 is the source and node 1 the sink.

    Examples
    --------
    >>> network = Network()
    >>> middle = network.node()
    >>> network.arc(network.SOURCE, middle, 3)
    >>> network.arc(middle, network.SINK, 2)
    >>> network.minimum_cut()
    (2, {1})
    """

    SOURCE, SINK = 0, 1

    def __init__(self) -> None:
        # Arc i goes to `heads[i]` and has `room[i]` left; arc i ^ 1 is its reverse.
        self.arcs: list[list[int]] = [[], []]
        self.heads: list[int] = []
        self.room: list[int | float] = []

    def node(self) -> int:
        """The number of a new node."""
        self.arcs.append([])
        return len(self.arcs) - 1

    def arc(self, tail: int, head: int, capacity: int | float) -> None:
        """Add an arc; the capacity is an integer, or infinity."""
        if not capacity:
            return
        self.arcs[tail].append(len(self.heads))
        self.arcs[head].append(len(self.heads) + 1)
        self.heads += [head, tail]
        self.room += [capacity, 0]

    def minimum_cut(self) -> tuple[int | float, set[int]]:
        """The capacity of a minimum cut, and the nodes on its side of the sink; of several cuts the one nearest to it.

        That cut does not depend on the order of nodes and arcs. The capacity is infinite if no cut is finite.
        """
        total: int | float = 0
        while True:
            level = self._levels()
            if level[self.SOURCE] < 0:
                return total, {n for n, distance in enumerate(level) if distance >= 0}
            place = [0] * len(self.arcs)
            while sent := self._send(level, place):
                if sent == float("inf"):
                    return sent, {self.SINK}
                total += sent

    def _levels(self) -> list[int]:
        """For each node, the fewest arcs with room from it to the sink; -1 without a path."""
        level = [-1] * len(self.arcs)
        level[self.SINK] = 0
        queue = deque([self.SINK])
        while queue:
            node = queue.popleft()
            for i in self.arcs[node]:
                tail = self.heads[i]
                if level[tail] < 0 and self.room[i ^ 1]:
                    level[tail] = level[node] + 1
                    queue.append(tail)
        return level

    def _send(self, level: list[int], place: list[int]) -> int | float:
        """Send flow along a shortest path; 0 if none is left. `place` skips arcs that led nowhere."""
        path: list[int] = []
        node = self.SOURCE
        while node != self.SINK:
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
