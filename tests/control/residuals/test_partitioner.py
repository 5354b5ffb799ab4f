"""What reverse mode keeps: the cut of least time, budgets, and the right numbers from what is kept."""

import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from generator.choices import drawn_by
from generator.drawing import draw_program
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.control.call import _linearized
from functrans.control.residuals import partitioner
from functrans.control.residuals.joint import PRICE
from functrans.control.residuals.rematerialize import residual_atoms, second_run
from functrans.errors import ConfigError
from functrans.lowering.jaxpr.simplify import simplify
from functrans.passes.costs import cost
from functrans.passes.toolkit import backward_slice
from functrans.runtime.config import config
from functrans.transforms.linearize_jaxpr import linearize_jaxpr

X, M = np.linspace(0.2, 0.9, 5), np.linspace(-0.4, 0.5, 25).reshape(5, 5)

#: Cheap, expensive and long operations.
WEIGHTS = dict.fromkeys(
    ("multiply", "add", "tanh alone", "half", "bell", "power of numbers", "product of two", "mean", "deviation",
     "outer", "sort", "sum", "quotient"), 1
)  # fmt: skip


@drawn_by
def programs(choose):
    """Functions of a vector and a matrix."""
    program = draw_program(choose, WEIGHTS, most=6, depth=0, inputs=[X, M])
    last = int(np.argmax(program.outs))
    return lambda x, m: program(x, m)[last]


def joint_of(f, *args):
    primal = ft.make_jaxpr(f)(*args).jaxpr
    parts = linearize_jaxpr(primal, (True,) * len(args))
    parts = parts._replace(primal=partitioner.inline_calls(parts.primal))
    return partitioner.Joint(parts.primal, residual_atoms(parts), len(parts.nonzero))


def time_of(joint, saved, again):
    forward = backward_slice(joint.primal.eqns, joint.primal.outvars[: joint.num_outputs])
    return sum(PRICE * joint.bytes(v) // 8 for v in saved) + sum(cost(e) for e in again if e in forward)


@settings(max_examples=25)
@given(programs())
def test_the_cut_takes_the_least_time(f):
    """And of equally fast ones the fewest bytes: compared with all subsets of few values, the small ones of many."""
    joint = joint_of(f, X, M)
    values = [v for e in joint.primal.eqns for v in e.outvars]
    best = (float("inf"), 0)
    for count in range((len(values) if len(values) <= 9 else 3) + 1):
        for saved in map(set, combinations(values, count)):
            again, read = second_run(joint.primal, joint.needed, saved)
            if all(joint.kind(e) in ("fusible", "reduction") for e in again):
                best = min(best, (time_of(joint, saved, again), joint.size(saved)))
    cut = partitioner.cheapest(joint, PRICE)
    again, read = second_run(joint.primal, joint.needed, cut)
    assert cut <= set(read)
    assert all(joint.kind(e) in ("fusible", "reduction") for e in again)
    assert (time_of(joint, cut, again), joint.size(cut)) <= best


def test_where_products_take_the_time_exponentials_run_again():
    """Attention keeps scores, not their exponentials with the mask of the maximum; without products it does not."""

    def softmax(scores):
        p = fnp.exp(scores - fnp.max(scores, axis=-1, keepdims=True))
        return p / fnp.sum(p, axis=-1, keepdims=True)

    def attention(x, w):
        return softmax(x @ w @ x.T) @ x @ w

    x, w = np.ones((64, 256)), np.ones((256, 256))
    joint = joint_of(attention, x, w)
    products = {v for e in joint.primal.eqns if e.primitive.name == "dot_general" for v in e.outvars}
    assert joint.size(partitioner.min_cut(joint)) <= joint.size(products)
    alone = joint_of(lambda s, w: softmax(fnp.sin(fnp.log(s))), x, w)
    assert partitioner.min_cut(alone) == partitioner.cheapest(alone, PRICE)


@settings(max_examples=12)
@given(programs(), st.sampled_from(["dp", "greedy"]), st.sampled_from(["min_cut", "save_all"]))
def test_less_budget_means_fewer_bytes_and_the_same_derivative(f, solver, strategy):
    primal = ft.make_jaxpr(f)(X, M).jaxpr
    whole = joint_of(f, X, M)
    most = whole.size(partitioner.save_all(whole))
    t = np.cos(np.ones(ft.eval_shape(f, X, M).shape))
    expected = [ft.vjp(f, X, M)[1](t)]
    sizes = []
    for budget in (1, 0.7, 0.5, 0.35, 0.1, 0):
        with config.patch(partitioner=strategy, activation_memory_budget=budget, memory_budget_solver=solver):
            halves = _linearized(primal, (True, True))
            joint = partitioner.Joint(halves.primal, residual_atoms(halves), len(halves.nonzero))
            sizes.append(joint.size(partitioner.save_all(joint)))
            assert sizes[-1] <= budget * most
            got = ft.vjp(ft.jit(lambda *a: f(*a)), X, M)[1](t) if budget in (0.5, 0) else expected[0]
            for a, b in zip(got, expected[0], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0


@pytest.mark.parametrize("strategy", ["min_cut", "save_all", "recompute_all"])
def test_strict_gradients_are_equal_bit_for_bit(strategy):
    def f(x, m):
        h = fnp.tanh(m @ x)
        return fnp.sum(fnp.exp(-h) * fnp.log1p(h * h) + fnp.sqrt(1 + (m @ h) ** 2))

    with config.patch(strict=True, partitioner="save_all"):
        expected = ft.vjp(ft.jit(lambda *a: f(*a)), X, M)[1](1.0)
    for budget in (1.0, 0.5, 0.2, 0.0):
        with config.patch(strict=True, partitioner=strategy, activation_memory_budget=budget):
            for g in (
                ft.vjp(ft.jit(lambda *a: f(*a)), X, M)[1](1.0),
                ft.jit(ft.grad(ft.jit(f), (0, 1)))(X, M),
            ):
                for a, b in zip(g, expected, strict=True):
                    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("budget", [1, 0.5, 0])
@pytest.mark.parametrize("strategy", ["min_cut", "save_all", "recompute_all"])
def test_nothing_that_a_user_can_count_happens_twice(strategy, budget):
    calls = []

    def host(x):
        calls.append(x)
        return np.sin(x)

    @ft.custom_vjp
    def counted(x):
        return ft.pure_callback(host, ft.ShapeDtypeStruct(x.shape, x.dtype), x)

    counted.defvjp(lambda x: (counted(x), x), lambda x, ct: (ct * fnp.cos(x),))

    def f(x):
        return fnp.sum(fnp.exp(counted(fnp.tanh(x)) * x))

    with config.patch(partitioner=strategy, activation_memory_budget=budget):
        for g in (lambda x: f(x), lambda x: ft.checkpoint(f)(x)):
            calls.clear()
            _, pull = ft.vjp(ft.jit(g), X)
            assert len(calls) == 1
            (slope,) = pull(1.0)
            assert len(calls) == 1
            np.testing.assert_allclose(ft.jit(ft.grad(ft.jit(g)))(X), slope)
            assert len(calls) == 2
    h = np.tanh(X)
    inner = np.exp(np.sin(h) * X)
    np.testing.assert_allclose(slope, inner * (np.sin(h) + X * np.cos(h) * (1 - h * h)), rtol=1e-12)


@pytest.mark.parametrize("value", [-0.1, 1.5, "half", None, True, float("nan")])
def test_bad_budgets(value):
    with pytest.raises(ConfigError, match="activation_memory_budget must be a number from 0 to 1"):
        config.activation_memory_budget = value
    with pytest.raises(ConfigError, match="'min_cut' or 'save_all' or 'recompute_all'"):
        config.partitioner = "mincut"


def stored_bytes(f, *args, length):
    """The bytes that the first scan of a gradient stacks for each iteration."""
    jaxpr = ft.make_jaxpr(ft.grad(f))(*args)
    scan = next(e for e in jaxpr.eqns if e.primitive.name == "scan")
    rows = scan.outvars[scan.params["num_carry"] :]
    return sum(v.aval.size * v.aval.dtype.itemsize for v in rows) // length


def runge_kutta(field, c, h):
    k1 = field(c)
    k2 = field(c + h / 2 * k1)
    k3 = field(c + h / 2 * k2)
    k4 = field(c + h * k3)
    return c + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lorenz(p, n=50):
    def field(c):
        x, y, z = c
        return fnp.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])

    last = lax.scan(lambda c, _: (runge_kutta(field, c, 0.01), None), fnp.ones(3), None, length=n)[0]
    return fnp.sum(last)


def test_a_step_of_arithmetic_keeps_its_carry():
    assert stored_bytes(lorenz, np.array([10.0, 28.0, 8 / 3]), length=50) == 24


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        (lambda c, w: fnp.tanh(c), 800),  # the slope from the result, which is dear
        (lambda c, w: fnp.sin(c) * w, 800),  # the slope: the cosine
        (lambda c, w: c + 0.1 * c * (1 - c) * w, 800),
        (lambda c, w: fnp.tanh(c) * fnp.exp(w), 800),  # exp(w) is the same in all iterations
        (lambda c, w: c + fnp.sum(c * c), 800),
        (lambda c, w: c * w, 0),
        (lambda c, w: c * fnp.sum(fnp.tanh(c)), 1608),  # the sum of many is kept, beside c and tanh(c)
    ],
)
def test_residuals_of_other_bodies(body, stored):
    def f(c, w):
        return fnp.sum(lax.scan(lambda c, _: (body(c, w), None), c, None, length=3)[0])

    c, w = np.linspace(0.1, 0.5, 100), np.linspace(0.5, 1.0, 100)
    assert stored_bytes(f, c, w, length=3) == stored

    def plain(c, w):
        for _ in range(3):
            c = body(c, w)
        return fnp.sum(c)

    for d in (
        ft.grad,
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.grad(lambda *a: fnp.sum(ft.grad(f)(*a) ** 2)),
    ):
        np.testing.assert_allclose(d(f)(c, w), d(plain)(c, w), rtol=1e-9, atol=1e-12)


def test_rows_that_a_scan_returns_anyway_are_stored_once():
    def f(c):
        last, ys = lax.scan(lambda c, _: (c * c, c * 1.0), c, None, length=4)
        return fnp.sum(last) + fnp.sum(ys)

    assert stored_bytes(f, np.ones(100), length=4) <= 1600
    np.testing.assert_allclose(
        ft.grad(f)(np.array([1.1])),
        ft.grad(lambda c: fnp.sum(c**16 + c + c**2 + c**4 + c**8))(np.array([1.1])),
    )


def test_what_runs_again_is_spread_and_runs_late():
    """Of a chain of equal layers, each segment between saved values is computed when the backward program is there."""

    def chain(x, m):
        for _ in range(16):
            x = fnp.tanh(m @ x)
        return x

    with config.patch(activation_memory_budget=0.25):
        backward = ft.aot.trace_pair(chain, X, M).backward
        got = ft.vjp(ft.jit(chain), X, M)[1](X)
    steps = {"tanh": "again ", "one_minus_square": "back "}
    order = "".join(steps.get(e.primitive.name, "") for e in backward.eqns)
    assert order.count("again") > 6
    assert "again " * 5 not in order
    for a, b in zip(got, ft.vjp(chain, X, M)[1](X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_expensive_work_that_runs_again_stays_apart_in_one_program():
    def f(x, m):
        h = fnp.tanh(m @ x)
        return fnp.sum(fnp.tanh(m @ h))

    def products(budget):
        with config.patch(activation_memory_budget=budget):
            return str(simplify(ft.make_jaxpr(ft.value_and_grad(ft.jit(lambda x: f(x, M))))(X))).count(
                "dot_general"
            )

    assert products(0.0) > products(1.0)


def test_a_checkpoint_inside_keeps_its_promise():
    def block(h, m):
        return fnp.tanh(m @ fnp.tanh(m @ h))

    def bytes_of(f):
        return ft.vjp(ft.jit(f), X, M)[1].residual_bytes

    with config.patch(partitioner="save_all"):
        assert bytes_of(lambda x, m: ft.checkpoint(block)(x, m)) == 0
        named = ft.checkpoint(
            lambda x, m: block(ft.checkpoint_name(m @ x, "product"), m),
            policy=ft.checkpoint_policies.save_only_these_names("product"),
        )
        assert bytes_of(lambda x, m: named(x, m)) == X.nbytes


def test_the_environment_sets_a_budget():
    program = "import functrans as ft; print(ft.config.activation_memory_budget, ft.config.partitioner)"
    env = {**os.environ, "FUNCTRANS_ACTIVATION_MEMORY_BUDGET": "0.25", "FUNCTRANS_PARTITIONER": "save_all"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout.split() == ["0.25", "save_all"]
    env["FUNCTRANS_ACTIVATION_MEMORY_BUDGET"] = "much"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=env
    )
    assert "FUNCTRANS_ACTIVATION_MEMORY_BUDGET must be a number from 0 to 1, got 'much'" in done.stderr


def test_a_loop_keeps_a_byte_of_each_maximum():
    """And the right derivatives, at ties and NaN too."""

    def f(c, x):
        return fnp.sum(lax.fori_loop(1, 6, lambda i, c: c.at[i].set(fnp.maximum(c[i - 1] * 0.5, x[i])), c))

    c, x = np.array([1.0, 0, 0, 0, 0, 0]), np.array([0.0, 0.5, 0.1, np.nan, 0.2, -1.0])
    assert stored_bytes(lambda x: f(c, x), x, length=5) <= 8 + 2

    def plain(c, x):
        for i in range(1, 6):
            c = c.at[i].set(fnp.maximum(c[i - 1] * 0.5, x[i]))
        return fnp.sum(c)

    for d in (ft.grad(f, (0, 1)), ft.jit(ft.grad(f, (0, 1)))):
        for got, expected in zip(d(c, x), ft.grad(plain, (0, 1))(c, x), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_residual_bytes_count_tapes():
    def halved(x):
        return lax.while_loop(lambda c: fnp.sum(c) > 1.0, lambda c: 0.5 * fnp.sin(c), x)

    x, rounds = np.ones(100), 0
    y = x
    while y.sum() > 1.0:
        y, rounds = 0.5 * np.sin(y), rounds + 1
    assert ft.vjp(ft.jit(halved), x)[1].residual_bytes >= rounds * x.nbytes


def test_branches_in_loops_store_what_arithmetic_starts_from():
    """A branch that keeps its operands and what its slot holds anyway, not each value between."""
    x = np.linspace(0.5, 1.5, 60)

    def f(x):
        long = lambda c, a: fnp.exp(fnp.sin(c) * a) * a + fnp.cos(fnp.sin(c * a))
        step = lambda c, a: (lax.cond(a > 1, long, lambda c, a: fnp.tanh(c * a), c, a), None)
        return fnp.sum(lax.scan(step, x[:20], x)[0])

    found = {}
    for strategy in ("min_cut", "save_all"):
        with config.patch(partitioner=strategy):
            _, pull = ft.vjp(ft.jit(lambda x: f(x)), x)
            found[strategy] = pull.residual_bytes, pull(1.0)[0]
    assert found["min_cut"][0] < found["save_all"][0]
    np.testing.assert_allclose(found["min_cut"][1], found["save_all"][1], rtol=1e-12)
