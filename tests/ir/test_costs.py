"""What programs cost: counts by hand, published counts, and those of JAX for products."""

import itertools

import numpy as np
import pytest
from generator import drawing
from hypothesis import HealthCheck, given, reject, settings

import functrans as ft
import functrans.numpy as fnp
from functrans import ir, lax
from functrans.api.encoding import known_primitives
from functrans.core import Block, Effect, subjaxprs
from functrans.errors import FunctransError, JaxprError

X = np.ones((4, 6))


def flops(f, *args):
    return ir.cost_analysis(ir.trace(f, *args))["flops"]


def transcendentals(f, *args):
    return ir.cost_analysis(ir.trace(f, *args))["transcendentals"]


@pytest.mark.parametrize(
    ("f", "args", "count"),
    [
        (lambda x: x + x * 2.0, (X,), 48),
        (lambda x, y: x - y, (X, np.ones(6)), 24),  # of the broadcast result
        (lambda x: x**3, (X,), 24),
        (lambda x: fnp.where(x > 0, x, 0.0), (X,), 48),
        (lambda x: x // 2.0 + x % 2.0, (X,), 72),
        (lambda x: fnp.sum(x, axis=0), (X,), 24),
        (fnp.argmax, (X,), 24),
        (lambda x: fnp.cumsum(x, axis=1), (X,), 24),
        (lambda x: x.T.reshape(24)[::2], (X,), 0),
        (lambda x: fnp.concatenate([x, x]), (X,), 0),
        (lambda x: x[np.array([0, 2])], (X,), 0),
        (lambda x: x.astype(np.float32), (X,), 24),
        (lambda x: x.at[np.array([0, 1])].add(np.ones((2, 6))), (X,), 12),
        (lambda x: x @ x.T, (X,), 2 * 4 * 4 * 6),
        (lambda x: x @ np.ones(6), (X,), 2 * 4 * 6),
        (lambda x: fnp.einsum("bij,bjk->bik", x, x), (np.ones((3, 5, 5)),), 2 * 3 * 125),
        (lambda x: fnp.linalg.cholesky(x), (np.ones((2, 9, 9)),), 2 * 243),
        (lambda x: fnp.linalg.solve(x, np.ones((9, 2))), (np.eye(9),), 2 * 9**3 // 3 + 2 * 81 * 2),
        (lambda x: fnp.fft.fft(x), (np.ones((3, 16), complex),), 3 * 5 * 16 * 4),
        (lambda x: fnp.fft.rfft(x), (np.ones((3, 16)),), 3 * 5 * 16 * 4 // 2),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 3), (1, 1), "valid"), (X,), 3 * 4 * 6),
        (lambda x: ft.jit(lambda x: x + x)(x), (X,), 24),
        (lambda x: ft.checkpoint(lambda x: x + x)(x), (X,), 24),
        (lambda x: ft.pure_callback(np.sin, x, x), (X,), 0),
    ],
)
def test_flops_counted_by_hand(f, args, count):
    assert flops(f, *args) == count


def test_mathematical_functions_are_counted_apart():
    assert ir.cost_analysis(ir.trace(lambda x: fnp.sin(x) * x, X)) == {
        "flops": 24,
        "transcendentals": 24,
        "bytes accessed": 5 * 24 * 8,
        "unknown loops": 0,
    }
    from_scipy = [ft.scipy.special.gammaln, ft.scipy.special.erf, ft.scipy.special.j0, fnp.sqrt, fnp.tanh]
    for f in from_scipy:
        assert transcendentals(f, X) == 24
    for f in (fnp.abs, fnp.floor, fnp.sign, fnp.isnan, lambda x: x / 3.0):
        assert transcendentals(f, X) == 0
    assert transcendentals(ft.scipy.special.gamma, np.ones(5, complex)) == 5


def body(c, _):
    return fnp.sin(c) + c, None


def test_loops_times_their_length():
    def scan(n):
        return lambda x: lax.scan(body, x, None, length=n)[0]

    once = ir.cost_analysis(ir.trace(lambda x: body(x, None)[0], X))
    assert ir.cost_analysis(ir.trace(scan(7), X)) == {name: 7 * n for name, n in once.items()}
    nested = ir.cost_analysis(
        ir.trace(lambda x: lax.scan(lambda c, _: (scan(3)(c), None), x, None, length=5)[0], X)
    )
    assert nested == {name: 15 * n for name, n in once.items()}
    assert flops(lambda x: lax.fori_loop(0, 9, lambda i, c: c + c, x), X) >= 9 * 24


def test_loops_of_unknown_length_count_once():
    cost = ir.cost_analysis(
        ir.trace(lambda x: lax.while_loop(lambda c: c < 3.0, lambda c: c + c, x), np.float64(1))
    )
    assert cost == {"flops": 2, "transcendentals": 0, "bytes accessed": 9 + 24 - 8, "unknown loops": 1}
    inside = lambda x: lax.scan(
        lambda c, _: (lax.while_loop(lambda c: c < 3.0, lambda c: c + c, c), None), x, None, length=5
    )[0]
    cost = ir.cost_analysis(ir.trace(inside, np.float64(1)))
    assert (cost["flops"], cost["unknown loops"]) == (10, 1)


def test_branches_cost_the_dearest():
    f = lambda p, x: lax.cond(p, lambda x: x + x, lambda x: x * x - fnp.exp(x), x)
    cost = {e.primitive.name: c for e, c in ir.costs(ir.trace(f, True, X))}["cond"]
    assert (cost.flops, cost.transcendentals) == (48, 24)


def test_gradients_of_products_are_two_products():
    w = np.ones((6, 5))
    forward = flops(lambda w: fnp.sum(X @ w), w) - 20
    both = ir.trace(ft.grad(lambda w: fnp.sum((X @ w) ** 2)), w)
    products = [c.flops for e, c in ir.costs(both) if e.primitive.name == "dot_general"]
    assert products == [forward, forward] == [2 * 4 * 6 * 5] * 2


def test_bytes_are_those_of_operands_and_results():
    ((e, add),) = ir.costs(ir.trace(lambda x: x + x, np.ones(10, np.float32)))
    assert e.primitive.name == "add"
    assert add.bytes_accessed == 80  # the operand once, though it is there twice


def test_compiled_programs_access_what_kernels_read_and_write():
    def f(x):
        y = fnp.exp(x) * x
        return fnp.sum(y) + y

    x = np.ones(1000)
    lowered = ft.jit(f).lower(x)
    before, after = lowered.cost_analysis(), lowered.compile().cost_analysis()
    assert before["bytes accessed"] == 8 * (2000 + 3000 + 1001 + 2001)
    assert after["bytes accessed"] == 16000
    assert {k: after[k] for k in ("flops", "transcendentals")} == {"flops": 3000, "transcendentals": 1000}
    host = ft.jit(lambda x: fnp.exp(ft.pure_callback(np.sin, x, x))).lower(x).compile()
    assert host.cost_analysis()["bytes accessed"] == 2 * 16000


def test_every_first_order_primitive_is_counted():
    """In its record, or by its family: no operation on numbers is free for want of a count."""
    free = {
        "check", "empty_tape", "add_tapes", "same_tape", "scatter", "putitem", "dynamic_update_slice", "write_window",
        "lu_pivots_to_permutation", "host", "silent", "njit", "numba_call",
    }  # fmt: skip
    ft.jit(lambda x: x)(1.0)
    for name in ("cholesky", "sort", "fft"):
        ir.primitive(name)
    for name, prim in known_primitives().items():
        if isinstance(prim.kernel, Block) and name not in free | {"scan", "while", "cond"}:
            assert prim.cost is not None or prim.factors is not None, name


def traced(program):
    """The jaxpr of a drawn program, if its statements suit each other."""
    try:
        return ir.trace(program, *program.inputs)
    except FunctransError:
        reject()


@settings(max_examples=20, suppress_health_check=[*HealthCheck], deadline=None)
@given(drawing.programs(drawing.WITHOUT_NUMBA, most=6))
def test_costs_of_any_program(program):
    """Never negative; loops cost their body so often; the whole is the sum of its equations."""
    jaxpr = traced(program)
    parts = ir.costs(jaxpr)
    assert [e for e, _ in parts] == list(jaxpr.eqns)
    total = ir.cost_analysis(jaxpr)
    assert [sum(c) for c in zip(*[cost for _, cost in parts])] == list(total.values()) or not parts
    for e, cost in parts:
        assert min(cost) >= 0
        bodies = [ir.cost_analysis(b) for b in subjaxprs(e.params)]
        if "length" in e.params and e.params["length"] is not None:
            assert cost.flops == e.params["length"] * sum(b["flops"] for b in bodies)
        elif e.effects is Effect.NONE and not bodies:
            assert cost.unknown_loops == 0


def test_what_is_no_program():
    for function in (ir.costs, ir.cost_analysis):
        with pytest.raises(JaxprError, match=r"expected a Jaxpr.*\.cost_analysis\(\)"):
            function(ft.jit(fnp.sin).lower(1.0))


@pytest.mark.slow
def test_products_cost_what_jax_says():
    jax = pytest.importorskip("jax")
    for m, n, k in itertools.product((1, 7, 12), repeat=3):
        a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
        theirs = jax.jit(lambda a, b: a @ b).lower(a, b).cost_analysis()["flops"]  # before XLA rewrites it
        assert flops(lambda a, b: a @ b, a, b) == theirs
