"""What is known of an index holds for each of its values."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.core import INT64, Literal
from functrans.passes.indices.index_sums import Sum, _SumEmitter, _SumScalar, known_sum, passed_sums, sum_of

#: Steps on earlier values; those in the second row are no sums.
STEPS = {
    "add": lambda x, y, n: x + y,
    "subtract": lambda x, y, n: x - y,
    "add a number": lambda x, y, n: n + x,
    "subtract from a number": lambda x, y, n: n - x,
    "multiply": lambda x, y, n: x * n,
    "multiply by a number": lambda x, y, n: n * x,
    "negate": lambda x, y, n: -x,
    "spread": lambda x, y, n: fnp.reshape(fnp.broadcast_to(x, (1,)), ()),
    "reshape": lambda x, y, n: fnp.reshape(fnp.reshape(x, (1,)), ()),
    "product": lambda x, y, n: x * y,
    "remainder": lambda x, y, n: x % (abs(n) + 1),
    "quotient": lambda x, y, n: x // (abs(n) + 1),
    "maximum": lambda x, y, n: fnp.maximum(x, n),
    "smaller": lambda x, y, n: fnp.where(x < y, x, y),
}
PROGRAMS = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9), st.integers(-5, 5)),
    max_size=8,
)


def program(steps):
    def f(i, j):
        values = [i, j]
        for name, a, b, n in steps:
            values.append(STEPS[name](values[a % len(values)], values[b % len(values)], n))
        return values

    return f


def value_of(known, numbers):
    return known.number + sum(times * numbers[symbol] for symbol, times in known.terms.items())


def known_and_values(jaxpr, i, j):
    """Of each result of an equation what is known of it, and its value."""
    sums = {v: Sum(0, {v: 1}) for v in jaxpr.invars}
    values = dict(zip(jaxpr.invars, (np.int64(i), np.int64(j))))
    for e in jaxpr.eqns:
        operands = [a.value if isinstance(a, Literal) else values[a] for a in e.invars]
        outs = e.primitive.bind(*operands, **e.params)
        values.update(zip(e.outvars, outs if e.primitive.multiple_results else (outs,)))
        known = sum_of(e, sums)
        if known is not None:
            sums[e.outvars[0]] = known
            yield known, values[e.outvars[0]], {v: int(values[v]) for v in jaxpr.invars}


@settings(max_examples=150)
@given(PROGRAMS, st.integers(-20, 20), st.integers(-20, 20))
def test_sums_have_the_values_of_the_program(steps, i, j):
    for known, value, numbers in known_and_values(ft.make_jaxpr(program(steps))(1, 2), i, j):
        assert np.all(value == value_of(known, numbers))


def test_every_linear_step_is_followed():
    linear = [
        "add",
        "subtract",
        "add a number",
        "subtract from a number",
        "multiply",
        "multiply by a number",
        "negate",
    ]
    for name in [*linear, "spread", "reshape"]:
        jaxpr = ft.make_jaxpr(program([(name, 0, 1, 3)]))(1, 2)
        assert len(list(known_and_values(jaxpr, 4, 7))) == len(jaxpr.eqns) > 0, name


def test_a_multiple_that_int64_might_not_hold_is_unknown():
    jaxpr = ft.make_jaxpr(lambda i, j: (i * (1 << 41), j + (1 << 41), i * (1 << 39)))(1, 2)
    assert [known.terms[jaxpr.invars[0]] for known, _, _ in known_and_values(jaxpr, 1, 1)] == [1 << 39]


def test_numbers_of_another_dtype_are_unknown():
    assert known_sum(Literal(np.int32(3)), {}) is None
    assert known_sum(Literal(3.0), {}) is None
    assert known_sum(Literal(np.int64(3)), {}).number == 3
    jaxpr = ft.make_jaxpr(lambda i, j: (i.astype("i4") + fnp.int32(1), j.astype(float) * 2))(1, 2)
    assert all(
        e.outvars[0].aval.dtype == INT64
        for e in jaxpr.eqns
        if sum_of(e, {v: Sum(0, {v: 1}) for v in jaxpr.invars})
    )


def test_rules_that_compute_with_numbers_of_python():
    """A kernel rule may say ``2 * x - 3``."""
    emitter = _SumEmitter()
    x, y = [_SumScalar(emitter, INT64, Sum(0, {name: 1})) for name in "xy"]
    unknown = _SumScalar(emitter, INT64, None)
    for found, number, terms in (
        (2 * x - 3, -3, {"x": 2}),
        (3 - x, 3, {"x": -1}),
        (x + 5 + y, 5, {"x": 1, "y": 1}),
        (-(x * 4), 0, {"x": -4}),
        (emitter.const(7, INT64) + x, 7, {"x": 1}),
    ):
        assert (found.sum.number, found.sum.terms) == (number, terms)
        assert found.dtype == INT64
    for none in (x * y, unknown + 1, 1 - unknown, x < 3, emitter.const(7.0, np.float64) + 1.0):
        assert none.sum is None


def test_a_sum_in_other_turns_and_in_a_body():
    total = Sum(3, {"i": 2, "j": -1}).in_turns({"i": Sum(1, {"k": 5}), "j": Sum(0, {"k": 10})})
    assert (total.number, total.terms) == (5, {})
    jaxpr = ft.make_jaxpr(lambda i, j: (i, j))(1, 2)
    i, j = jaxpr.invars
    passed = passed_sums([("inside", i), ("unknown", j)], {i: Sum(4, {})})
    assert {v: x.number for v, x in passed.items()} == {"inside": 4}
