"""`map` on the ranks of a mesh, with errors."""

import sys

import numpy as np
import pytest

from functrans.distributed import make_mesh, map
from functrans.errors import CollectiveError


class Odd(Exception):
    """Cannot be made from its arguments."""

    def __init__(self, a, b):
        super().__init__(a + b)


class Counting:
    """A bar that remembers."""

    made = None

    def __init__(self, total, desc):
        type(self).made = self
        self.total, self.desc, self.steps, self.closed = total, desc, [], False

    def update(self, n):
        self.steps.append(n)

    def close(self):
        self.closed = True


def fit(seed):
    return {"seed": seed, "mean": np.random.default_rng(seed).normal(size=3)}


def check_results(mesh):
    for n in (0, 1, 2, 5, 13):
        got = map(fit, range(n), mesh, bar=False)
        assert [r["seed"] for r in got] == [*range(n)]
        for r in got:
            np.testing.assert_array_equal(r["mean"], fit(r["seed"])["mean"])


def check_bar(mesh):
    class Own(Counting):
        pass

    map(fit, range(13), mesh, bar=Own)
    if mesh.rank == 0:
        bar = Own.made
        assert (bar.total, bar.desc, bar.closed, sum(bar.steps)) == (13, "fit", True, 13)
    else:
        assert Own.made is None


def check_errors(mesh):
    calls = []

    def fails(item):
        calls.append(item)
        if item == 3:
            raise KeyError("three")
        return item

    owner = 3 % mesh.size
    with pytest.raises(KeyError, match="three") as caught:
        map(fails, range(1000), mesh, bar=False)
    notes = "\n".join(caught.value.__notes__)
    assert f"map: item 3, 3, on rank {owner} of {mesh.size}" in notes
    assert len(calls) < 900
    assert mesh.rank == owner or ", in fails\n" in notes
    check_results(mesh)  # it goes on

    def odd(item):
        raise Odd(f"odd {item} on ", "purpose")

    with pytest.raises(Odd if mesh.rank == 0 else CollectiveError, match="odd 0 on purpose"):
        map(odd, range(5), mesh, bar=False)
    with pytest.raises(CollectiveError, match="cannot pickle its results"):
        map(lambda item: lambda: item, range(5), mesh, bar=False)
    check_results(mesh)


def check_lengths(mesh):
    if mesh.size > 1:
        with pytest.raises(CollectiveError, match="rank 0: map: 3 items\n  rank 1: map: 4 items"):
            map(fit, range(3 + mesh.rank), mesh, bar=False)


def check(mesh):
    check_results(mesh)
    check_bar(mesh)
    check_errors(mesh)
    check_lengths(mesh)


if __name__ == "__main__":
    with make_mesh(int(sys.argv[1]), "dp") as made:
        check(made)
    print("all right")
