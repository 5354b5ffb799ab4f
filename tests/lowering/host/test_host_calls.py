"""Host calls inside native loops: made once each, in order, from the middle of a kernel."""

import gc
import re
import threading
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.host import host_calls
from functrans.runtime.config import config

NUMBER = ft.ShapeDtypeStruct((), float)
XS = np.arange(1.0, 6.0)


@pytest.fixture(params=["llvm", "python"], autouse=True)
def backend(request):
    with config.patch(backend=request.param, verify=True):
        yield request.param


class Diary:
    """Functions that note how they are called."""

    def __init__(self):
        self.lines = []

    def note(self, *values):
        self.lines.append(tuple(float(v) for v in values))

    def doubled(self, value):
        self.lines.append(float(value))
        return np.asarray(value) * 2.0


def test_each_call_is_made_once_in_order_and_its_result_is_used():
    diary = Diary()

    def body(total, x):
        ft.debug.callback(diary.note, total, x)
        y = ft.io_callback(diary.doubled, NUMBER, x)
        return total + y, y

    total, ys = ft.jit(lambda xs: lax.scan(body, 0.0, xs))(XS)
    assert float(total) == 30.0
    np.testing.assert_array_equal(ys, 2 * XS)
    expected = []
    for before, x in zip([0.0, 2.0, 6.0, 12.0, 20.0], XS):
        expected += [(before, x), x]
    assert diary.lines == expected


def test_the_loop_is_one_kernel_and_its_text_does_not_name_the_call():
    def program(f):
        return ft.jit(
            lambda xs: lax.scan(lambda c, x: (c + ft.pure_callback(f, NUMBER, x), None), 0.0, xs)[0]
        )

    first, second = program(np.sin), program(np.cos)
    assert first(XS) == pytest.approx(np.sin(XS).sum())
    assert second(XS) == pytest.approx(np.cos(XS).sum())
    assert second.cache_info().compiles == 0
    text = first.lower(XS).as_text("python")
    assert text.count("def ") == 1
    assert re.search(r"for i in .*\n\s+host\(n\d+, ", text), text


def test_primitives_without_kernel_are_called_the_same_way():
    a = np.array([[2.0, 1.0], [0.5, 3.0]])

    def body(m, x):
        w = fnp.linalg.eigvals(m)
        return m + x, fnp.sum(w).real

    actual = ft.jit(lambda xs: lax.scan(body, a, xs)[1])(XS)
    np.testing.assert_allclose(actual, 5.0 + 2 * np.cumsum([0.0, *XS[:-1]]))


def test_arrays_and_rows_of_arrays_of_every_dtype():
    dtypes = [np.float32, np.int64, np.bool_, np.complex128, np.int8]

    def flipped(x):
        assert x.shape == (3,)
        assert not x.flags.writeable
        return np.asarray(x)[::-1]

    for dtype in dtypes:
        xs = (np.arange(12).reshape(4, 3) % 3).astype(dtype)
        like = ft.ShapeDtypeStruct((3,), dtype)
        f = ft.jit(
            lambda xs, like=like: lax.scan(lambda c, x: (c, ft.pure_callback(flipped, like, x)), 0, xs)[1]
        )
        actual = f(xs)
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, xs[:, ::-1])
    empty = ft.jit(lambda n: lax.scan(lambda c, x: (c, ft.pure_callback(np.array, x, x)), 0, n)[1])
    assert empty(np.zeros((3, 0))).shape == (3, 0)


def test_values_stored_by_a_callback_do_not_change():
    stored = []

    def body(c, x):
        ft.debug.callback(stored.append, c)
        return c + x, None

    ft.jit(lambda xs: lax.scan(body, np.zeros(100), xs)[0])(XS)
    np.testing.assert_array_equal([k[0] for k in stored], [0.0, 1.0, 3.0, 6.0, 10.0])


def test_an_exception_arrives_as_itself_with_the_line():
    class Own(Exception):
        pass

    seen = []

    def complain(x):
        seen.append(float(x))
        if x == 3.0:
            raise Own("no threes")

    def body(c, x):
        ft.debug.callback(complain, x)  # the line
        return c + x, None

    f = ft.jit(lambda xs: lax.scan(body, 0.0, xs)[0])
    for _ in range(3):
        seen.clear()
        with pytest.raises(Own, match="no threes") as caught:
            f(XS)
        assert seen == [1.0, 2.0, 3.0]
        assert caught.value.__notes__ == [
            "in the callback 'complain' of debug.callback, called\n"
            f"  at {__file__}:{body.__code__.co_firstlineno + 1}, "
            f"in {body.__qualname__}\n    ft.debug.callback(complain, x)  # the line"
        ]
        assert any(entry.name == "complain" for entry in caught.traceback)
    assert f(XS[:2]) == 3.0


def test_even_a_base_exception():
    def leave(x):
        raise SystemExit(7)

    f = ft.jit(lambda xs: lax.scan(lambda c, x: (c, ft.debug.callback(leave, x)), 0.0, xs)[0])
    with pytest.raises(SystemExit):
        f(XS)


def test_wrong_results_are_reported_as_outside_of_loops():
    f = ft.jit(lambda xs: lax.scan(lambda c, x: (c, ft.pure_callback(np.sin, NUMBER, c)), XS, xs)[1])
    with pytest.raises(ft.errors.CallbackError, match=r"shape \(5,\)"):
        f(XS)


def test_in_nested_loops():
    diary = Diary()

    def inner(c, y):
        ft.debug.callback(diary.note, c, y)
        return c + y, None

    def outer(c, x):
        c, _ = lax.scan(inner, c, x * np.ones(2))
        return lax.fori_loop(0, 2, lambda i, c: ft.io_callback(diary.doubled, NUMBER, c), c), None

    assert ft.jit(lambda xs: lax.scan(outer, 0.0, xs)[0])(np.array([1.0, 2.0])) == 48.0
    assert diary.lines == [(0, 1), (1, 1), 2.0, 4.0, (8, 2), (10, 2), 12.0, 24.0]


def test_order_among_host_calls_around_the_loop():
    order = []

    def tell(name):
        return lambda *_: order.append(name)

    def f(xs):
        ft.debug.callback(tell("before"))
        y, _ = lax.scan(lambda c, x: (c + x, ft.debug.callback(tell("first"), x)), 0.0, xs)
        ft.debug.callback(tell("between"))  # depends on nothing
        z, _ = lax.scan(lambda c, x: (c + x, ft.debug.callback(tell("second"), x)), 0.0, xs)
        ft.debug.callback(tell("after"))
        return y + z

    expected = ["before", "first", "first", "between", "second", "second", "after"]
    assert ft.jit(f)(np.ones(2)) == 4.0
    assert order == expected


def test_a_loop_for_its_effects_alone_is_not_dropped():
    diary = Diary()

    def f(xs):
        lax.scan(lambda c, x: (None, ft.debug.callback(diary.note, x)), None, xs)
        return 1.0

    assert ft.jit(f)(XS) == 1.0
    assert diary.lines == [(x,) for x in XS]


@pytest.mark.parametrize("fails_at", [0, 3])
def test_calls_before_a_failure_are_made_exactly_once(fails_at):
    diary = Diary()
    table = fnp.arange(3.0)

    def body(c, i):
        i = ft.io_callback(lambda i: (diary.note(i), np.asarray(i))[1], ft.ShapeDtypeStruct((), np.int64), i)
        y = table[i]
        ft.debug.callback(diary.note, y)
        return c + y, None

    def f(indices):
        ft.debug.callback(diary.note, 100.0)
        return lax.scan(body, 0.0, indices)[0]

    indices = np.array([0, 1, 2, 7, 1]) if fails_at else np.array([9, 1])
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3") as caught:
        ft.jit(f)(indices)
    assert "table[i]" in str(caught.value)
    expected = [(100.0,)]
    for i in indices[:fails_at]:
        expected += [(i,), (float(i),)]
    assert diary.lines == [*expected, (indices[fails_at],)]


def test_a_failure_before_the_loop_prevents_its_calls():
    diary = Diary()

    def f(x, i):
        y = x[i]
        return lax.scan(lambda c, x: (c + y, ft.debug.callback(diary.note, x)), 0.0, x)[0]

    with pytest.raises(IndexError):
        ft.jit(f)(XS, 9)
    assert diary.lines == []


def test_under_transformations():
    diary = Diary()

    def last(x):
        def body(c, _):
            ft.debug.callback(diary.note, c)
            return fnp.sin(c) * x, None

        return lax.scan(body, x, None, length=3)[0]

    def plain(x):
        c = x
        for _ in range(3):
            c = np.sin(c) * x
        return c

    slope = (plain(0.7 + 1e-6) - plain(0.7 - 1e-6)) / 2e-6
    assert ft.jit(ft.grad(last))(0.7) == pytest.approx(slope, rel=1e-8)
    assert len(diary.lines) == 3
    diary.lines.clear()
    assert ft.jvp(last, (0.7,), (1.0,))[1] == pytest.approx(slope, rel=1e-8)
    assert len(diary.lines) == 3
    diary.lines.clear()
    lanes = np.array([0.1, 0.2])
    np.testing.assert_allclose(ft.jit(ft.vmap(last))(lanes), [plain(x) for x in lanes])
    assert len(diary.lines) == 6


def test_a_callback_may_run_the_loop_that_it_is_called_from():
    def depth(n):
        return float(f(np.arange(float(n)))) + 1 if n > 0 else 0.0

    f = ft.jit(lambda xs: lax.scan(lambda c, x: (ft.pure_callback(depth, NUMBER, x), None), 0.0, xs)[0])
    assert f(np.arange(4.0)) == 3.0


def test_in_threads_at_once():
    f = ft.jit(lambda xs: lax.scan(lambda c, x: (c + ft.pure_callback(np.sin, NUMBER, x), None), 0.0, xs)[0])
    f(XS)
    results = {}

    def work(k):
        results[k] = [float(f(XS + k)) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        np.testing.assert_allclose(results[k], np.sin(XS + k).sum())


def test_callbacks_live_as_long_as_the_program():
    class Function:
        def __call__(self, x):
            return np.sin(x)

    def program():
        function = Function()
        call = lambda c, x: (c + ft.pure_callback(function, NUMBER, x), None)
        return ft.jit(lambda xs: lax.scan(call, 0.0, xs)[0]), weakref.ref(function)

    f, watched = program()
    f(XS)
    gc.collect()
    count = len(host_calls._entries)
    assert f(XS) == pytest.approx(np.sin(XS).sum())
    del f
    ft.clear_caches()
    gc.collect()
    assert watched() is None
    assert len(host_calls._entries) < count


def test_large_kernels_in_parts():
    diary = Diary()

    def f(x):
        for k in range(20):
            x = fnp.cumsum(x) + lax.scan(lambda c, r: (c + r, ft.debug.callback(diary.note, r)), 0.0, x)[0]
            x = x / (k + 2.0)
        return x

    def plain(x):
        for k in range(20):
            x = (np.cumsum(x) + x.sum()) / (k + 2.0)
        return x

    np.testing.assert_allclose(ft.jit(f)(XS), plain(XS))
    assert len(diary.lines) == 100


def test_eager_loops():
    diary = Diary()
    total, _ = lax.scan(lambda c, x: (c + x, ft.debug.callback(diary.note, x)), 0.0, XS)
    assert total == 15.0
    assert diary.lines == [(x,) for x in XS]


def test_scan_in_while_in_cond():
    diary = Diary()

    def row(c, x):
        ft.debug.callback(diary.note, c, x)
        return c + x, None

    def loop(c):
        return lax.while_loop(lambda c: c < 5.0, lambda c: lax.scan(row, c, np.array([1.0, 2.0]))[0], c)

    def otherwise(c):
        return ft.io_callback(diary.doubled, NUMBER, c)

    f = ft.jit(lambda p, c: lax.cond(p, loop, otherwise, c))
    assert f(True, 0.0) == 6.0
    assert diary.lines == [(0, 1), (1, 2), (3, 1), (4, 2)]
    diary.lines.clear()
    assert f(False, 4.0) == 8.0
    assert diary.lines == [4.0]


def test_in_the_condition_of_a_while_loop():
    diary = Diary()

    def test(c):
        ft.debug.callback(diary.note, c)
        return c < 3.0

    assert ft.jit(lambda c: lax.while_loop(test, lambda c: c + 1.0, c))(0.0) == 3.0
    assert diary.lines == [(0,), (1,), (2,), (3,)]


def test_lanes_of_a_mapped_while_loop_and_cond():
    seen = []

    def f(x):
        def body(c):
            ft.debug.callback(lambda c: seen.append(float(c)), c)
            return c * 2.0

        y = lax.while_loop(lambda c: c < 10.0, body, x)
        return lax.cond(
            x > 2.0, lambda y: ft.pure_callback(np.sin, NUMBER, y, vmap_method="sequential"), fnp.cos, y
        )

    actual = ft.jit(ft.vmap(f))(np.array([1.0, 3.0, 20.0]))
    np.testing.assert_allclose(actual, [np.cos(16.0), np.sin(12.0), np.sin(20.0)])
    assert sorted(seen) == [1.0, 2.0, 3.0, 4.0, 6.0, 8.0]


def test_a_while_loop_whose_body_fails_ends():
    table = fnp.arange(3.0)
    f = ft.jit(lambda i: lax.while_loop(lambda i: table[i] < 5.0, lambda i: i + 1, i))
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        f(0)
