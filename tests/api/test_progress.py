"""`progress`: what a bar reports while a compiled loop runs."""

import sys
import threading

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.api.progress import Line

XS = np.arange(10.0)


class Bar:
    """Records what it reports, for all bars of a test."""

    def __init__(self, total, desc):
        self.reported.append((total, desc))

    def update(self, n):
        self.reported.append(n)

    def close(self):
        self.reported.append("closed")


@pytest.fixture
def reported():
    Bar.reported = []
    return Bar.reported


def add(c, x):
    return c + x, 2.0 * x


SHOWN = [(10, "add"), 3, 3, 3, 1, "closed"]


def test_one_call_every_so_many_iterations_and_at_the_end(reported):
    body = ft.progress(10, every=3, bar=Bar)(add)
    f = ft.jit(lambda xs: lax.scan(body, 0.0, xs))
    for _ in range(2):
        total, ys = f(XS)
        assert total == 45.0
        np.testing.assert_array_equal(ys, 2.0 * XS)
        assert reported == SHOWN
        reported.clear()
    assert f.cache_info().compiles == 1
    assert f.lower(XS).as_text("python").count("def ") == 1


@pytest.mark.parametrize("every", [1, 2, 5, 9, 10, 11, 1000])
def test_all_iterations_are_reported(reported, every):
    body = ft.progress(10, every=every, bar=Bar)(add)
    assert lax.scan(body, 0.0, XS)[0] == 45.0
    assert reported[0] == (10, "add")
    assert reported[-1] == "closed"
    assert sum(reported[1:-1]) == 10
    assert len(reported[1:-1]) == -(-10 // every)
    assert all(n == every for n in reported[1:-2])


def _pushed(f):
    return lambda x: ft.jvp(f, (x,), (x,))[1]


def test_transformations(reported):
    body = ft.progress(10, every=3, bar=Bar)(lambda c, x: (fnp.sin(c) + x, None))
    plain = lambda xs: lax.scan(lambda c, x: (fnp.sin(c) + x, None), 0.0, xs)[0]
    f = lambda xs: lax.scan(body, 0.0, xs)[0]
    lanes = np.linspace(0.0, 1.0, 30).reshape(3, 10)
    expected = [(10, "<lambda>"), 3, 3, 3, 1, "closed"]
    for transform, x in (
        (ft.jit, XS),
        (ft.grad, XS),
        (lambda f: ft.jit(ft.grad(f)), XS),
        (lambda f: ft.grad(ft.jit(f)), XS),
        (ft.vmap, lanes),
        (lambda f: ft.jit(ft.vmap(ft.grad(f))), lanes),
        (_pushed, XS),
    ):
        reported.clear()
        np.testing.assert_allclose(transform(f)(x), transform(plain)(x), rtol=1e-13)
        assert reported == expected


def test_in_other_loops(reported):
    step = ft.progress(10, every=5, bar=Bar, desc="sum")(lambda i, c: c + i)
    shown = [(10, "sum"), 5, 5, "closed"]
    assert lax.fori_loop(0, 10, step, 1.0) == 46.0
    assert reported == shown
    assert ft.jit(lambda n: lax.fori_loop(0, n, step, 1.0))(10) == 46.0
    assert reported == 2 * shown
    np.testing.assert_array_equal(
        lax.map(ft.progress(10, every=5, bar=Bar, desc="sum")(fnp.sqrt), XS), np.sqrt(XS)
    )
    assert reported == 3 * shown


def test_backwards_without_rows_and_with_trees(reported):
    body = ft.progress(10, every=3, bar=Bar)(lambda c, _: ({"x": c["x"] + 1, "y": c["x"]}, None))
    last, _ = lax.scan(body, {"x": 0, "y": 0}, None, length=10, reverse=True)
    assert last == {"x": 10, "y": 9}
    assert reported == [(10, "<lambda>"), *SHOWN[1:]]


def test_as_python(reported):
    body = ft.progress(10, every=3, bar=Bar)(add)
    with ft.disable_jit():
        assert lax.scan(body, 0.0, XS)[0] == 45.0
    assert reported == SHOWN
    with ft.config.patch(backend="python"):
        assert ft.jit(lambda xs: lax.scan(body, 0.0, xs)[0])(XS) == 45.0
    assert reported == 2 * SHOWN


def test_nested_loops(reported):
    inner = ft.progress(3, every=3, bar=Bar, desc="inner")(lambda i, c: c + 1.0)
    outer = ft.progress(2, every=1, bar=Bar, desc="outer")(lambda c, _: (lax.fori_loop(0, 3, inner, c), None))
    assert ft.jit(lambda x: lax.scan(outer, x, None, length=2)[0])(0.0) == 6.0
    one = [(3, "inner"), 3, "closed"]
    assert reported == [(2, "outer"), *one, 1, *one, 1, "closed"]


def test_an_object_of_the_users_is_not_closed(reported):
    class Own:
        def update(self, n):
            reported.append(n)

        def close(self):
            raise AssertionError

    body = ft.progress(10, every=4, bar=Own())(add)
    lax.scan(body, 0.0, XS)
    lax.scan(body, 0.0, XS)
    assert reported == [4, 4, 2, 4, 4, 2]


def test_a_run_that_was_interrupted_ends_its_bar_at_the_next(reported):
    fail = [True]

    def body(c, x):
        ft.debug.callback(lambda x: 1 / 0 if fail[0] and x == 5.0 else None, x)
        return c + x, None

    f = ft.jit(lambda xs: lax.scan(ft.progress(10, every=3, bar=Bar, desc="add")(body), 0.0, xs)[0])
    with pytest.raises(ZeroDivisionError):
        f(XS)
    assert reported == [(10, "add"), 3]
    fail[0] = False
    assert f(XS) == 45.0
    assert reported == [(10, "add"), 3, "closed", *SHOWN]


def test_threads_have_their_own_bars():
    bars = []

    class Mine:
        def __init__(self, total, desc):
            self.thread, self.done = threading.get_ident(), 0
            bars.append(self)

        def update(self, n):
            assert threading.get_ident() == self.thread
            self.done += n

    body = ft.progress(10, every=1, bar=Mine)(add)
    f = ft.jit(lambda xs: lax.scan(body, 0.0, xs)[0])
    threads = [threading.Thread(target=f, args=(XS,)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [b.done for b in bars] == [10] * 4


def test_the_default_is_a_line_without_tqdm(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    lax.scan(ft.progress(200)(add), 0.0, np.ones(200))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith("\n")
    lines = shown.err.strip("\n").split("\r")[1:]
    assert len(lines) == 101
    assert lines[0].startswith("add:   0% [....")
    assert "50/200" in lines[25]
    assert lines[-1].startswith("add: 100% [####")


def test_the_default_is_a_bar_of_tqdm_where_there_is_one(monkeypatch, reported):
    monkeypatch.setitem(sys.modules, "tqdm", type(sys)("tqdm"))
    module = type(sys)("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    lax.scan(ft.progress(10, every=3)(add), 0.0, XS)
    assert reported == SHOWN


def test_the_body_is_still_a_function():
    body = ft.progress(10)(add)
    assert body(1.0, 2.0) == (3.0, 4.0)
    assert body.__name__ == "add"
    assert lax.scan(ft.progress(0)(add), 1.0, XS[:0])[0] == 1.0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ft.progress(2.5), ft.errors.ArgumentError, "length must be an integer, got 2.5"),
        (lambda: ft.progress(-1), ValueError, "length must be at least 0, got -1"),
        (lambda: ft.progress(5, every=0), ValueError, "every must be at least 1, got 0"),
        (lambda: ft.progress(5, bar=7), TypeError, r"bar must have a method update\(n\).* '7' of type int"),
        (lambda: ft.progress(5)(3), TypeError, "progress"),
        (
            lambda: lax.scan(ft.progress(9)(add), 0.0, XS),
            ValueError,
            "scan.*progress expects 9 iterations, but the loop has 10",
        ),
    ],
)
def test_mistakes(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_the_line():
    line = Line(3, "a")
    line.update(1)
    assert line.done == 1
    line.close()
