"""Kernels and host calls in turn: in an order that the program allows, and in as few rounds as it needs."""

import itertools

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functrans.core.evaluation import evaluate
from functrans.core.ir import Literal
from functrans.core.primitive import Effect, Primitive
from functrans.lowering.jaxpr.partition import HostStep, KernelStep, partition, with_distinct_outputs
from functrans.primitives.elementwise.arithmetic import mul_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.indexing.gather_scatter import gather_p
from functrans.primitives.structure.linear import add_p, broadcast_in_dim_p, reduce_sum_p

N = 4
host_p = Primitive("host", lambda x: x, lambda x: x[::-1] + 1.0)
tell_p = Primitive("tell", lambda x: x, lambda x: x, effects=lambda: Effect.HOST)
#: Operations on two vectors, with a vector as result.
KINDS = {
    "kernel": lambda x, y: add_p.bind(x, y),
    "product": lambda x, y: mul_p.bind(exp_p.bind(mul_p.bind(x, 0.01)), y),
    "raises": lambda x, y: gather_p.bind(x, np.arange(N)[::-1], axes=(0,), mode="raise"),
    "host": lambda x, y: host_p.bind(y),
    "tell": lambda x, y: tell_p.bind(x),
    "spread": lambda x, y: broadcast_in_dim_p.bind(
        reduce_sum_p.bind(x, axes=(0,)), shape=(N,), broadcast_dimensions=()
    ),
}
PROGRAMS = st.lists(
    st.tuples(st.sampled_from([*KINDS, "host", "kernel"]), st.integers(0, 20), st.integers(0, 20)),
    max_size=12,
)


def program(steps, outs):
    def f(x, y):
        values = [x, y]
        for kind, a, b in steps:
            values.append(KINDS[kind](values[-1 - a % len(values)], values[-1 - b % len(values)]))
        return [values[-1 - n % len(values)] for n in outs]

    return f


def raises(e):
    return e.effects.may_raise


def on_host(e):
    return e.primitive in (host_p, tell_p)


def needs(jaxpr):
    """For each equation those that must run before it: operands, and what the effects demand."""
    maker, before = {}, {}
    told = raised = None
    for e in jaxpr.eqns:
        before[e] = {maker[a] for a in e.invars if not isinstance(a, Literal) and a in maker}
        if e.primitive is tell_p:
            before[e] |= {d for d in (told, *(raised or ())) if d is not None}
            told = e
        if raises(e):
            raised = (*(raised or ()), e)
        maker.update(dict.fromkeys(e.outvars, e))
    return before


def rounds_of(jaxpr):
    """For each equation the most rounds of host calls before it, its own included."""
    rounds = {}
    for e, before in needs(jaxpr).items():
        rounds[e] = max([rounds[d] for d in before], default=0) + on_host(e)
    return rounds


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PROGRAMS, st.lists(st.integers(0, 20), min_size=1, max_size=3))
def test_the_order_of_steps(stage, steps, outs):
    x, y = np.linspace(0.1, 0.4, N), np.linspace(1.0, -1.0, N)
    jaxpr = stage(program(steps, outs), x, y)
    parts = partition(jaxpr)
    before, rounds = needs(jaxpr), rounds_of(jaxpr)
    originals = {e.outvars[0]: e for e in jaxpr.eqns}
    place, env = {}, dict(zip([*jaxpr.constvars, *jaxpr.invars], [*jaxpr.consts, x, y]))
    value = lambda a: a.value if isinstance(a, Literal) else env[a]
    for n, part in enumerate(parts):
        if isinstance(part, HostStep):
            assert on_host(part.eqn)
            place[part.eqn] = n
            env[part.eqn.outvars[0]] = part.eqn.primitive.bind(*map(value, part.eqn.invars))
            continue
        assert isinstance(part, KernelStep)
        eqns = [originals[e.outvars[0]] for e in part.jaxpr.eqns]
        assert eqns
        assert not any(map(on_host, eqns))
        place.update(dict.fromkeys(eqns, n))
        env.update(zip(part.jaxpr.outvars, evaluate(part.jaxpr, [env[v] for v in part.jaxpr.invars])))
        assert not set(part.jaxpr.outvars) & set(part.jaxpr.invars)
    assert set(place) == set(jaxpr.eqns)
    for e, earlier in before.items():
        assert all(place[d] < place[e] or (place[d] == place[e] and not on_host(e)) for d in earlier)
    # Kernels are as few as the rounds between them: one before the first, and one after each.
    kernels = [type(p) is KernelStep for p in parts]
    assert not any(a and b for a, b in itertools.pairwise(kernels))
    assert sum(kernels) <= max(rounds.values(), default=0) + 1
    order = [e for e in jaxpr.eqns if e.primitive is tell_p]
    assert sorted(order, key=place.__getitem__) == order
    for a, b in zip(jaxpr.outvars, evaluate(jaxpr, [x, y])):
        np.testing.assert_array_equal(value(a), b)


def test_what_is_computed_late_makes_kernels_pass_less(stage):
    """A broadcast waits for the kernel that reads it, if all its readers are there; its operand does not."""

    def f(x):
        total = reduce_sum_p.bind(x, axes=(0,))
        wide = broadcast_in_dim_p.bind(total, shape=(N,), broadcast_dimensions=())
        return add_p.bind(host_p.bind(x), wide)

    first, _, last = partition(stage(f, np.ones(N)))
    assert [e.primitive.name for e in first.jaxpr.eqns] == ["reduce_sum"]
    assert [e.primitive.name for e in last.jaxpr.eqns] == ["broadcast_in_dim", "add"]

    def read_by_the_host(x):
        wide = broadcast_in_dim_p.bind(reduce_sum_p.bind(x, axes=(0,)), shape=(N,), broadcast_dimensions=())
        return add_p.bind(host_p.bind(wide), wide)

    first, _, last = partition(stage(read_by_the_host, np.ones(N)))
    assert [e.primitive.name for e in first.jaxpr.eqns] == ["reduce_sum", "broadcast_in_dim"]
    assert [e.primitive.name for e in last.jaxpr.eqns] == ["add"]

    def returned(x):
        wide = broadcast_in_dim_p.bind(reduce_sum_p.bind(x, axes=(0,)), shape=(N,), broadcast_dimensions=())
        return wide, add_p.bind(host_p.bind(x), wide)

    first, *_ = partition(stage(returned, np.ones(N)))
    assert [e.primitive.name for e in first.jaxpr.eqns] == ["reduce_sum", "broadcast_in_dim"]


def test_outputs_in_separate_memory(stage):
    def f(x, y):
        z = add_p.bind(x, y)
        return z, z, x, 2.5, z, x

    jaxpr = stage(f, np.ones(N), np.ones(N))
    distinct = with_distinct_outputs(jaxpr)
    made = [v for e in distinct.eqns for v in e.outvars]
    assert len(set(distinct.outvars)) == len(distinct.outvars) == 6
    assert set(distinct.outvars) <= set(made)
    assert distinct.outvars[0] is jaxpr.outvars[0]
    assert [e.primitive.name for e in distinct.eqns] == ["add", *["same"] * 5]
    for a, b in zip(evaluate(distinct, [np.ones(N)] * 2), evaluate(jaxpr, [np.ones(N)] * 2), strict=True):
        np.testing.assert_array_equal(a, b)
