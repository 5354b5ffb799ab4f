"""Where timed kernels have marks, and that these change nothing that a kernel computes."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.backend import Options
from functrans.lowering.loops import ir, queries
from functrans.lowering.lower import lower
from functrans.lowering.run.executable import compile_jaxpr
from functrans.lowering.steps import COUNTERS

X = np.random.default_rng(0).normal(size=(60, 60)) / 10


def marks(f, *args, timed=True):
    """The marks of the only kernel of a program, each with the number of loops around it; and its sites."""
    (step,) = lower(ft.make_jaxpr(f)(*args), Options(timed=timed)).steps
    found = []

    def look(body, depth):
        for s in body.statements:
            if type(s) is ir.Mark:
                found.append((s.place, depth))
            for inner in queries.bodies_of(s):
                look(inner, depth + 1)

    look(step.kernel.body, 0)
    return found, step.sites


def chain(x):
    y = x @ x
    z = fnp.sin(y) @ x
    return fnp.sum(z)


def test_each_long_nest_has_a_mark():
    found, sites = marks(chain, X)
    assert found[0] == ("first", 0)
    assert found[-1] == ("last", 0)
    assert [s.name.split()[0] for s in sites.sites[:2]] == ["dot_general", "sin"]
    assert marks(chain, X, timed=False) == ([], None)


def test_short_nests_share_one():
    found, sites = marks(lambda x: (fnp.cumsum(x), fnp.sort(x), fnp.sum(x)), np.ones(4))
    assert [place for place, _ in found] == ["first", "next", "last"]
    assert len(sites.sites) == 1


@pytest.mark.parametrize(("x", "inside"), [(X, True), (X[:2, :2].copy(), False)])
def test_bodies_of_loops_have_marks_if_they_are_long(x, inside):
    def f(x):
        return lax.fori_loop(0, 10, lambda i, c: fnp.tanh(c @ x) @ x, x)

    found, sites = marks(f, x)
    assert any(depth for _, depth in found) == inside
    assert bool(sites.sites[0].inner) == inside
    lines = {share.source.line for share in sites.sites[0].shares}
    assert len(lines) == 1  # that of the body


def test_bytes_are_those_of_the_arrays():
    _, sites = marks(lambda x: fnp.sin(x) * 2.0, np.ones(20_000))
    shares = sites.sites[0].shares
    assert sum(s.read for s in shares) == sum(s.written for s in shares) == 160_000


def many(x):
    """Enough loops for a kernel that is split into parts, some of them equal."""
    for _ in range(8):
        x = fnp.sort(x, axis=0) @ x
        x = fnp.tanh(x - fnp.max(x, axis=1, keepdims=True))
    return x


def threads(x):
    return fnp.sum(fnp.sin(fnp.exp(fnp.tile(x, (30, 30)))), axis=0)


@pytest.mark.parametrize("f", [chain, many, threads, ft.grad(chain)])
@pytest.mark.parametrize("checked", [False, True])
def test_timed_kernels_compute_the_same_bits(f, checked):
    jaxpr = ft.make_jaxpr(f)(X)
    with ft.config.patch(checked=checked, num_threads=2):
        (plain,) = compile_jaxpr(jaxpr)(X)
        exe = compile_jaxpr(jaxpr, timed=True)
        (timed,) = exe(X)
    assert np.array_equal(plain, timed)
    (unit,) = exe.kernels
    assert COUNTERS in unit.kernel.storages
    (counted,) = unit.counters.read()
    assert counted.calls == 1
    assert 0 < counted.sites[:, 0].sum() <= counted.time
    assert (counted.sites[:, 1] > 0).any()
    assert len(counted.events) == 1
