"""Donated arguments of jit: results in their memory, and numbers that do not depend on it."""

import pickle
import threading
import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.api.compiled.donation import donating


def address(x):
    return x.__array_interface__["data"][0]


def in_place(f, *args):
    """Whether the first result of a call stands in the memory of the first argument."""
    before = address(args[0])
    out = f(*args)
    return address(out[0] if isinstance(out, tuple) else out) == before


def fresh(x):
    """An Array of the same numbers in memory of its own."""
    return fnp.asarray(np.array(x))


def arrays(*shapes):
    rng = np.random.default_rng(sum(map(len, shapes)))
    return [fnp.asarray(rng.normal(size=shape)) for shape in shapes]


# --- what is overwritten, and what must not be ------------------------------------------------------------------


def test_the_result_takes_the_memory_and_the_argument_is_empty():
    f = ft.jit(lambda x: 2.0 * x + 1.0, donate_argnums=0)
    for _ in range(3):  # the first call traces, later ones take the fast path
        x = fnp.arange(5.0)
        where = address(x)
        y = f(x)
        assert address(y) == where
        assert (x.is_deleted(), y.is_deleted()) == (True, False)
        np.testing.assert_array_equal(y, [1.0, 3.0, 5.0, 7.0, 9.0])


UPDATES = {
    "elementwise": lambda x, y: fnp.sin(x) + y,
    "its own sum": lambda x, y: x / fnp.sum(x * x),
    "another's transpose": lambda x, y: x + y.T,
    "one element": lambda x, y: x.at[1, 2].set(7.0),
    "a row at a traced place": lambda x, y: x.at[y.astype(int)[0, 0] % 4].add(1.0),
    "shifted rows": lambda x, y: x - fnp.roll(x, 1, axis=0),
    "two products": lambda x, y: (x @ y) @ y,
    "an update of an update": lambda x, y: fnp.tanh(x.at[0].set(3.0)) * 2.0,
}
COPIES = {
    "its transpose": lambda x, y: x + x.T,
    "its neighbours": lambda x, y: x.at[1:].add(x[:-1]),
    "reversed": lambda x, y: x[::-1] * 2.0,
    "a product": lambda x, y: x @ y,
    "its own rows": lambda x, y: x - fnp.mean(x, axis=1, keepdims=True),
    "a permuted reshape": lambda x, y: (2.0 * x).reshape(2, 8).T.reshape(4, 4),
    "a permutation": lambda x, y: fnp.sort(x, axis=0)[fnp.argsort(x[:, 0])],
}


@pytest.mark.parametrize("name", [*UPDATES, *COPIES])
def test_values_do_not_depend_on_donation(name):
    f = {**UPDATES, **COPIES}[name]
    x, y = arrays((4, 4), (4, 4))
    expected = np.array(ft.jit(f)(x, y))
    donating = ft.jit(f, donate_argnums=0)
    assert in_place(donating, fresh(x), y) == (name in UPDATES)
    np.testing.assert_array_equal(donating(fresh(x), y), expected)
    np.testing.assert_array_equal(donating(fnp.array(x), y), expected)
    assert not x.is_deleted()


LOOPS = {
    "counted": lambda x, y: ft.lax.fori_loop(0, 3, lambda i, c: 0.5 * c + y, x),
    "of two buffers": lambda x, y: ft.lax.fori_loop(0, 3, lambda i, c: 0.5 * c + fnp.roll(c, 1), x),
    "while": lambda x, y: ft.lax.while_loop(lambda c: fnp.sum(c * c) > 1e-2, lambda c: 0.5 * c, x),
    "scan": lambda x, y: ft.lax.scan(lambda c, row: (c * 0.5 + row, fnp.sum(c)), x, fnp.stack([y, y])),
    "nested": lambda x, y: ft.lax.fori_loop(
        0, 2, lambda i, c: ft.lax.fori_loop(0, 2, lambda j, d: d * 0.5 + c, c), x
    ),
    "whose steps read everything first": lambda x, y: ft.lax.fori_loop(
        0, 3, lambda i, c: fnp.cumsum(fnp.cumsum(c)[::-1]) * 0.1, x
    ),
    "whose indices are in bounds": lambda x, y: ft.lax.fori_loop(
        0, 3, lambda i, c: c.at[i].set(c[(c[i] > 9.0) + i + 1]), x
    ),
    "after another": lambda x, y: ft.lax.fori_loop(0, 2, lambda i, c: c + y, fnp.tanh(x)),
}
KEPT = {
    "the start, too": lambda x, y: ft.lax.fori_loop(0, 3, lambda i, c: 0.5 * c + x, x),
    "both parts": lambda x, y: ft.lax.fori_loop(0, 3, lambda i, c: (c[1], c[0] + y), (x, x)),
    "may fail": lambda x, y: ft.lax.fori_loop(
        0, 3, lambda i, c: c.at[i].set(c[fnp.where(c[i] > 9.0, 99, i + 1)]), x
    ),
}


@pytest.mark.parametrize("name", [*LOOPS, *KEPT])
def test_loops_begin_in_the_memory_of_the_donated_state(name):
    f = {**LOOPS, **KEPT}[name]
    x, y = arrays((40,), (40,))
    expected = ft.tree.map(np.array, ft.jit(f)(x, y))
    donating = ft.jit(f, donate_argnums=0)
    assert in_place(donating, fresh(x), y) == (name in LOOPS)
    for got, wanted in zip(ft.tree.leaves(donating(fresh(x), y)), ft.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_reads_of_two_outputs_and_swapped_states():
    def step(a, b):
        return b, a + b, fnp.sum(a), a[::-1] * b

    a, b = arrays((6,), (6,))
    expected = [np.array(x) for x in step(a, b)]
    for got, target in zip(ft.jit(step, donate_argnums=(0, 1))(a, b), expected, strict=True):
        np.testing.assert_allclose(got, target, rtol=1e-14)


def test_outputs_in_another_order_need_no_copy():
    f = ft.jit(
        lambda u, before: (2.0 * u - before, u), donate_argnums=(0, 1)
    )  # the wave equation's two levels
    u, before = arrays((50,), (50,))
    places = {address(u), address(before)}
    new, old = f(u, before)
    assert {address(new), address(old)} == places


def test_results_returned_unchanged_are_not_copied():
    f = ft.jit(lambda state: {"x": state["x"] + 1.0, "frozen": state["frozen"]}, donate_argnums=0)
    state = dict(zip(("x", "frozen"), arrays((3,), (4,))))
    places = {k: address(v) for k, v in state.items()}
    assert {k: address(v) for k, v in f(state).items()} == places


def test_the_same_array_twice():
    for donated in (0, 1, (0, 1)):
        x = fnp.arange(4.0)
        a, b = ft.jit(lambda x, y: (3.0 * x + y, x - y), donate_argnums=donated)(x, x)
        np.testing.assert_array_equal(a, [0.0, 4.0, 8.0, 12.0])
        np.testing.assert_array_equal(b, np.zeros(4))
        assert x.is_deleted()


@pytest.mark.parametrize(
    "view", [lambda x: np.asarray(x), lambda x: x[1:], lambda x: x.reshape(2, 2), lambda x: x.T]
)
def test_a_view_keeps_its_values(view):
    f = ft.jit(lambda x: -x, donate_argnums=0)
    x = fnp.arange(4.0)
    seen = view(x)
    before = np.array(seen)
    y = f(x)
    np.testing.assert_array_equal(seen, before)
    np.testing.assert_array_equal(y, [0.0, -1.0, -2.0, -3.0])
    assert x.is_deleted()


def test_memory_outlives_the_array_where_a_memoryview_reads_it():
    x = fnp.arange(100_000.0)
    seen = memoryview(x)
    ft.jit(lambda x: x + 1.0, donate_argnums=0)(x)
    assert len(seen.tolist()) == 100_000  # not freed; the numbers are those of the result


def test_donation_in_a_chain_costs_no_copy():
    f = ft.jit(lambda x: x + 1.0, donate_argnums=0)
    first = fnp.arange(4.0)
    where = address(first)
    assert address(f(f(f(first)))) == where


def test_ndarrays_numbers_and_weak_arrays_are_untouched():
    f = ft.jit(lambda x, n: (x * n, n + 1), donate_argnums=(0, 1))
    x, n = np.arange(3.0), fnp.asarray(2.0)
    weak = ft.jit(lambda: 3)()
    for number in (n, 2.0, np.float64(2.0), weak, weak):
        f(x, number)
    np.testing.assert_array_equal(x, [0.0, 1.0, 2.0])
    assert weak == 3


def test_residuals_of_an_earlier_pullback_survive():
    x = fnp.arange(1.0, 4.0)
    y, pullback = ft.vjp(lambda x: x * x, x)
    ft.jit(lambda x: x * 0.0, donate_argnums=0)(x)
    np.testing.assert_array_equal(pullback(fnp.ones(3))[0], [2.0, 4.0, 6.0])
    ft.jit(lambda x: x * 0.0, donate_argnums=0)(y)
    np.testing.assert_array_equal(pullback(fnp.ones(3))[0], [2.0, 4.0, 6.0])


def test_captured_arrays_stay_alive():
    x = fnp.arange(3.0)
    f = ft.jit(lambda y: x + y, donate_argnums=0)
    np.testing.assert_array_equal(f(x), [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(f(fnp.zeros(3)), [0.0, 1.0, 2.0])


def test_inside_other_transformations_nothing_is_consumed():
    f = ft.jit(lambda x: fnp.sin(x), donate_argnums=0)
    x = fnp.arange(3.0)
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(f(x)))(x), np.cos(x))
    np.testing.assert_allclose(ft.vmap(f)(x), np.sin(x))
    np.testing.assert_allclose(ft.jvp(f, (x,), (x,))[1], x * np.cos(x))
    np.testing.assert_allclose(ft.jit(lambda x: f(x) + x)(x), np.sin(x) + x)
    with ft.disable_jit():
        f(x)
    assert not x.is_deleted()


# --- failures ----------------------------------------------------------------------------------------------------


def test_an_error_leaves_the_argument_as_it_was():
    f = ft.jit(lambda x, i: (x * 2.0).at[i].set(0.0), donate_argnums=0)
    x, bad = fnp.arange(4.0), np.array([1, 9])
    for _ in range(2):
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            f(x, bad)
        assert not x.is_deleted()
        np.testing.assert_array_equal(x, np.arange(4.0))
    assert f(x, np.array([1, 2])).tolist() == [0.0, 0.0, 0.0, 6.0]
    assert x.is_deleted()


def test_a_failure_is_explained_from_the_values_at_the_call():
    # The index comes from the donated array itself; a host call and a kernel that may fail come after the update.
    def f(x, table):
        y = x + 1.0
        z = ft.pure_callback(np.cumsum, ft.ShapeDtypeStruct((4,), "float64"), y)
        return y, table[x.astype(int)] + z

    jitted = ft.jit(f, donate_argnums=0)
    table = fnp.arange(10.0)
    with pytest.raises(IndexError, match="index 12 is out of bounds"):
        jitted(fnp.array([1.0, 12.0, 3.0, 11.0]), table)
    np.testing.assert_array_equal(jitted(fnp.array([1.0, 2.0, 3.0, 4.0]), table)[1], [3.0, 7.0, 12.0, 18.0])


def test_where_a_later_host_call_raises_the_argument_is_consumed():
    def stop(_):
        raise OSError("full")

    def f(x):
        y = x + 1.0
        ft.io_callback(stop, None, fnp.sum(y))
        return y

    x = fnp.arange(3.0)
    with pytest.raises(OSError, match="full"):
        ft.jit(f, donate_argnums=0)(x)
    with pytest.raises(ft.errors.StaleValueError):
        x + 1


def test_arguments_of_a_host_call_keep_their_values():
    stored = []

    def f(x):
        ft.debug.callback(stored.append, x)
        return x + 1.0

    jitted = ft.jit(f, donate_argnums=0)
    y = jitted(jitted(fnp.zeros(3)))
    np.testing.assert_array_equal(stored, [[0.0] * 3, [1.0] * 3])
    np.testing.assert_array_equal(y, [2.0] * 3)


def test_an_interrupted_call_consumes_its_argument(monkeypatch):
    lowered = ft.jit(lambda x: x + 1.0).lower(fnp.zeros(3))
    call = donating(lowered.jaxpr, (0,)).compile()

    def interrupted(*values):
        values[0][0] = 7.0  # a kernel stopped halfway
        raise KeyboardInterrupt

    monkeypatch.setattr(call._executable, "call", interrupted)
    x = fnp.zeros(3)
    with pytest.raises(KeyboardInterrupt):
        call(x)
    assert x.is_deleted()


USES = {
    "operator": lambda x: x + 1.0,
    "reflected": lambda x: 1.0 - x,
    "list": lambda x: [1.0, 2.0] @ x,
    "comparison": lambda x: x == 1.0,
    "index": lambda x: x[0],
    "at": lambda x: x.at[0].set(1.0),
    "shape": lambda x: x.shape,
    "method": lambda x: x.sum(),
    "iteration": lambda x: list(x),
    "length": len,
    "number": float,
    "bool": bool,
    "format": lambda x: f"{x:.2f}",
    "ufunc": lambda x: np.sin(x),
    "ufunc of functrans": lambda x: fnp.sin(x),
    "function of NumPy": lambda x: np.concatenate([x, x]),
    "asarray": lambda x: fnp.asarray(x),
    "through NumPy": lambda x: fnp.sin(np.asarray(x)),
    "jit": ft.jit(lambda x: x + 1.0),
    "grad": ft.grad(lambda x: x.sum()),
    "vmap": ft.vmap(lambda x: x),
    "tree": lambda x: ft.tree.map(lambda y: y + 1.0, {"x": x}),
    "copy": lambda x: x.copy(),
    "pickle": lambda x: pickle.dumps(x),
    "donation": ft.jit(lambda x: x + 1.0, donate_argnums=0),
    "donate": lambda x: ft.donate(x),
}


@pytest.mark.parametrize("use", USES)
def test_use_after_donation(use):
    step = ft.jit(lambda x: x * 2.0, donate_argnums=0)
    x = fnp.ones(2)
    step(x)  # the line of the donation
    with pytest.raises(
        ft.errors.StaleValueError, match=r"Array float64\[2\] was donated to <lambda>"
    ) as error:
        USES[use](x)
    assert "step(x)  # the line of the donation" in str(error.value)
    assert "test_donation.py" in str(error.value).rpartition("\n  at ")[2]
    assert "donated to <lambda>" in repr(x)


def test_two_threads_cannot_consume_one_array():
    step = ft.jit(lambda x: x + 1.0, donate_argnums=0)
    step(fnp.zeros(1000))
    for _ in range(50):
        x, outcomes = fnp.zeros(1000), []
        start = threading.Barrier(4)

        def run(x=x, outcomes=outcomes, start=start):
            start.wait()
            try:
                outcomes.append(float(step(x)[0]))
            except ft.errors.StaleValueError:
                outcomes.append("stale")

        threads = [threading.Thread(target=run) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(map(str, outcomes)) == ["1.0", "stale", "stale", "stale"]


# --- which arguments ---------------------------------------------------------------------------------------------


def test_by_number_and_by_name():
    def f(a, b, *, c=0.0):
        return a + b + c

    for options, expected in (
        ({"donate_argnums": -1}, "b"),
        ({"donate_argnums": (0, 0)}, "a"),
        ({"donate_argnames": "b"}, "b"),
        ({"donate_argnames": ["c"]}, "c"),
        ({"donate_argnums": 0, "donate_argnames": "c"}, "ac"),
    ):
        for call in (lambda f, x: f(x["a"], x["b"], c=x["c"]), lambda f, x: f(c=x["c"], b=x["b"], a=x["a"])):
            x = dict(zip("abc", arrays((3,), (3,), (3,))))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                call(ft.jit(f, **options), x)
            assert "".join(k for k in "abc" if x[k].is_deleted()) == expected


def test_with_static_arguments():
    f = ft.jit(
        lambda n, x, *, flag: x * n if flag else x, static_argnums=0, static_argnames="flag", donate_argnums=1
    )
    x = fnp.ones(3)
    np.testing.assert_array_equal(f(2, x, flag=True), [2.0, 2.0, 2.0])
    assert x.is_deleted()


def test_methods():
    class Model:
        @ft.jit
        def plain(self, x):
            return x + 1.0

        def _step(self, x):
            return x + 1.0

        step = ft.jit(_step, donate_argnums=1)

    model, x = Model(), fnp.zeros(2)
    model.plain(x)
    assert in_place(model.step, x)
    assert x.is_deleted()


def test_compiled_ahead_of_time():
    step = ft.jit(lambda x: x + 1.0, donate_argnums=0)
    compiled = step.lower(ft.ShapeDtypeStruct((3,), "float64")).compile()
    x = fnp.zeros(3)
    assert in_place(compiled, x)
    assert x.is_deleted()
    assert "(update)" in compiled.as_text("python")


def test_pickled():
    step = pickle.loads(pickle.dumps(ft.jit(np.negative, donate_argnums=0)))
    assert in_place(step, fnp.ones(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"donate_argnums": 3}, "donate_argnums has 3, but the function has 2 positional parameters"),
        ({"donate_argnums": -3}, "donate_argnums has -3, but the function has 2 positional parameters"),
        ({"donate_argnames": "z"}, "donate_argnames has 'z', but its parameters are: x, y"),
        ({"donate_argnums": 0, "static_argnums": 0}, r"argument 0 \('x'\) is both static and donated"),
        ({"donate_argnames": "y", "static_argnums": 1}, r"argument 1 \('y'\) is both static and donated"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ft.errors.ArgumentValueError, match=message):
        ft.jit(lambda x, y: x, **options)


def test_a_useless_donation_warns_once():
    f = ft.jit(lambda x, batch: x + fnp.sum(batch), donate_argnames=("x", "batch"))
    with pytest.warns(
        UserWarning, match=r"argument 1 \('batch'\) is donated, but no result has its shape and dtype"
    ):
        f(fnp.ones(3), fnp.ones(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(fnp.ones(3), fnp.ones(4))
