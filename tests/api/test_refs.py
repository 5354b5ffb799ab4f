"""Refs: cells that programs write, in every transformation, against the same program on a NumPy array."""

import gc
import pickle
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax
from functrans.testing import check

X = np.array([1.0, -2.0, 3.0, 0.5])
FORMS = [lambda f: f, ft.jit, lambda f: ft.jit(ft.jit(f))]


def new(x=X):
    return ft.new_ref(x)


# --- eager --------------------------------------------------------------------------------------------------


def test_a_ref_is_read_and_written_as_an_array():
    expected, r = X.copy(), new()
    assert (r.shape, r.dtype, r.ndim, r.size, len(r)) == ((4,), np.float64, 1, 4, 4)
    places = [0, -1, slice(1, 3), [2, 0], np.array([True, False, True, False]), ..., (slice(None, None, -1),)]
    for k, place in enumerate(places):
        expected[place] += k + 0.5
        r[place] += k + 0.5
        expected[place] = expected[place] * 2
        r[place] = r[place] * 2
        np.testing.assert_array_equal(r[place], expected[place])
        np.testing.assert_array_equal(r[...], expected)
    np.testing.assert_array_equal(np.stack(list(r)), expected)
    np.add.at(expected, [0, 0, 1], [1.0, 2.0, 3.0])
    r.addupdate([1.0, 2.0, 3.0], [0, 0, 1])
    assert r.swap(7.0, 2) == expected[2]
    expected[2] = 7.0
    np.testing.assert_array_equal(r.get(), expected)
    assert repr(r) == repr(fnp.asarray(expected)).replace("Array", "Ref")


def test_what_was_read_and_what_was_given_stay():
    x = X.copy()
    r = ft.new_ref(x)
    x[0] = 100.0
    whole, part, view = r[...], r[1:3], r[...].T
    for i in range(4):
        r[i] = -1.0
    np.testing.assert_array_equal(whole, X)
    np.testing.assert_array_equal(part, X[1:3])
    np.testing.assert_array_equal(view, X)
    assert isinstance(whole, ft.Array)
    assert not part.flags.writeable
    array = fnp.asarray(X)
    ft.new_ref(array)[0] = 5.0
    assert array[0] == 1.0
    _, pullback = ft.vjp(lambda y: fnp.sum(y * r[...]), X)
    r[0] = 9.0
    np.testing.assert_array_equal(pullback(1.0)[0], [-1.0] * 4)


def test_dtypes_and_numbers():
    assert ft.new_ref(1.0).dtype == np.float64
    assert ft.new_ref(True).dtype == np.bool_
    r = ft.new_ref(np.zeros(2, np.float32))
    r[...] = np.array([1.5, 2.5])
    r[0] += 1
    assert r.dtype == r[...].dtype == np.float32
    np.testing.assert_array_equal(r[...], [2.5, 2.5])
    number = ft.new_ref(3)
    number[...] += 1
    number[()] = number[()] * 2
    assert number[...] == 8
    assert number[...].shape == ()
    for value in (1j, np.array(1j), fnp.asarray([1j, 2.0])[0]):
        with pytest.raises(errors.DtypeError, match="complex value"):
            r[0] = value


def test_the_functions():
    r = ft.ref.new_ref(X)
    ft.ref.set(r, 0, 4.0)
    ft.ref.addupdate(r, (slice(1, 3),), 1.0)
    assert ft.ref.get(r, 0) == 4.0
    assert ft.ref.swap(r, 3, 0.0) == 0.5
    np.testing.assert_array_equal(ft.ref.freeze(r), [4.0, -1.0, 4.0, 0.0])
    empty = ft.empty_ref(ft.ShapeDtypeStruct((2, 3), "int32"), memory_space=None)
    assert (empty.shape, empty.dtype) == ((2, 3), np.int32)
    assert isinstance(r, ft.Ref)
    assert not isinstance(X, ft.Ref)
    ft.free_ref(empty)


# --- in traced code -----------------------------------------------------------------------------------------


def sums(x):
    """The running sums, the long way."""
    r = ft.new_ref(fnp.zeros(len(x)))
    r[0] = x[0]

    def add(i, last):
        r[i] = r[i - 1] + x[i] * last
        return last

    lax.fori_loop(1, len(x), add, 1.0)
    return r[...]


def products(x):
    total = ft.new_ref(fnp.ones_like(x[0]))

    def step(c, row):
        total[...] *= row
        return c + 1, total[...]

    return lax.scan(step, 0, x)[1]


def until(x):
    r = ft.new_ref(x)

    def body(n):
        r[0] *= 1.5
        r[1:] += 0.1 * r[0]
        return n + 1

    n = lax.while_loop(lambda n: r[0] < 20.0, body, 0)
    return r[...] * n


def branched(x):
    r = ft.new_ref(x)
    seen = ft.new_ref(0.0)

    def grow():
        r[1] = fnp.sin(r[0])

    def shrink():
        r[...] = 0.5 * r[...]
        seen[...] = 1.0

    lax.cond(fnp.sum(x) > 0, grow, shrink)
    lax.switch(1, [shrink, grow, lambda: None])
    return r[...] + seen[...]


def nested(x):
    r = ft.new_ref(x)

    @ft.jit
    def inner(i):
        def body(j, _):
            r[j] = r[j] * x[i]

        lax.fori_loop(0, 2, body, None)
        lax.cond(i > 1, lambda: r.addupdate(1.0, 3), lambda: None)

    lax.fori_loop(0, 3, lambda i, _: inner(i), None)
    return ft.checkpoint(lambda: r[...] ** 2)()


def whole_until(x):
    x, n = x.copy(), 0
    while x[0] < 20.0:
        x[0] *= 1.5
        x[1:] += 0.1 * x[0]
        n += 1
    return x * n


def whole_branched(x):
    x = x.copy()
    seen = 0.0
    if x.sum() > 0:
        x[1] = np.sin(x[0])
    else:
        x, seen = 0.5 * x, 1.0
    x[1] = np.sin(x[0])
    return x + seen


def whole_nested(x):
    r = x.copy()
    for i in range(3):
        r[:2] *= x[i]
        r[3] += i > 1
    return r**2


PROGRAMS = {
    "fori_loop": (sums, np.cumsum),
    "scan": (products, np.cumprod),
    "while_loop": (until, whole_until),
    "cond": (branched, whole_branched),
    "nested": (nested, whole_nested),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_refs_inside(name):
    f, whole = PROGRAMS[name]
    for form in FORMS:
        np.testing.assert_allclose(form(f)(fnp.asarray(X)), whole(X))
    batch = np.stack([X, X[::-1] + 3.0, 0.5 - X])
    batch[:, 0] = np.abs(batch[:, 0])
    expected = np.stack([whole(x) for x in batch])
    np.testing.assert_allclose(ft.vmap(f)(batch), expected)
    np.testing.assert_allclose(ft.jit(ft.vmap(f, in_axes=1, out_axes=1))(batch.T), expected.T)
    with ft.disable_jit():
        np.testing.assert_allclose(f(fnp.asarray(X)), whole(X))
    check(f, X, order=1)


def test_a_program_with_refs_is_pure():
    text = str(ft.make_jaxpr(sums)(X))
    assert "scan" in text
    assert "ref" not in text
    (loop,) = [e for e in ft.make_jaxpr(sums)(X).eqns if e.primitive.name == "scan"]
    assert loop.params["num_carry"] == 2  # what is only read is not carried


# --- refs from outside --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS, ids=["eager", "jit", "jit of jit"])
def test_arguments(form):
    @form
    def f(r, x, state):
        r[0] += x
        state["count"][...] += 1
        return r[1] * x

    r, count, unused = new(), ft.new_ref(0), new()
    for k in range(3):
        assert f(r, 2.0, {"count": count, "unused": unused}) == -4.0
        assert r[0] == 1.0 + 2.0 * (k + 1)
        assert count[...] == k + 1
    r[1] = 5.0
    assert f(r, 1.0, {"count": count, "unused": unused}) == 5.0
    np.testing.assert_array_equal(unused[...], X)


def test_compiled_functions_write_into_the_memory_of_an_argument():
    f = ft.jit(lambda r, i: r.addupdate(1.0, i))
    r = ft.new_ref(np.zeros(1000))
    f(r, 0)
    before = r[...]
    f(r, 1)
    assert before[1] == 0.0  # what was read keeps its memory
    del before
    f(r, 2)
    addresses = set()
    for i in range(3, 9):
        f(r, i)
        addresses.add(r._value.ctypes.data)
    assert len(addresses) == 1
    np.testing.assert_array_equal(r[...], [1.0] * 9 + [0.0] * 991)
    _, pullback = ft.vjp(lambda y: fnp.sum(y * r[...]), np.ones(1000))
    f(r, 9)
    assert pullback(1.0)[0][9] == 0.0  # nor does a residual lose its own
    r[9] = 0.0
    both = ft.jit(lambda r, x: (r.set(x), r[...])[1])
    out = both(r, 3.0)
    both(r, 4.0)
    assert out[0] == 3.0
    failing = ft.jit(lambda r, i: r.set(5.0, i))
    with pytest.raises(errors.IndexOutOfBoundsError):
        failing(r, 5000)
    np.testing.assert_array_equal(r[...], [4.0] * 1000)


def test_arguments_compile_once_and_types_are_distinguished():
    f = ft.jit(lambda r: r.set(r[...] * 2))
    for x in (X, X + 1.0, np.arange(3), X):
        r = ft.new_ref(x)
        f(r)
        np.testing.assert_array_equal(r[...], 2 * x)
        assert r.dtype == np.asarray(x).dtype
    assert f.cache_info().compiles == 2


@pytest.mark.parametrize("form", FORMS, ids=["eager", "jit", "jit of jit"])
def test_captured_refs(form):
    r, s = new(), ft.new_ref(10.0)

    @form
    def f(x):
        def body(i, c):
            r[i] += x
            return c + s[...]

        return lax.fori_loop(0, 3, body, 0.0)

    expected = X.copy()
    for k in range(3):
        s[...] = float(k)
        assert f(2.0) == 3.0 * k
        expected[:3] += 2.0
        np.testing.assert_array_equal(r[...], expected)
    np.testing.assert_array_equal(ft.grad(lambda y: fnp.sum(r[...] * y**2))(X), 2.0 * X * expected)
    # A condition that reads what the body writes, without a loop body of its own.
    n = ft.new_ref(0)
    form(lambda: lax.while_loop(lambda c: n[...] < 5, lambda c: n.addupdate(2), None))()
    assert n[...] == 6


def test_mapped_arguments():
    @ft.vmap
    def f(r, x):
        r[0] += x
        return r[1]

    r = ft.new_ref(np.stack([X, X + 1.0]))
    np.testing.assert_array_equal(f(r, np.array([10.0, 20.0])), [-2.0, -1.0])
    np.testing.assert_array_equal(r[...], [[11.0, *X[1:]], [22.0, *(X[1:] + 1.0)]])
    columns = ft.new_ref(np.zeros((4, 3)))
    ft.jit(ft.vmap(lambda c, x: c.set(x * fnp.arange(4.0)), in_axes=(-1, 0)))(
        columns, np.array([1.0, 2.0, 3.0])
    )
    np.testing.assert_array_equal(columns[...], np.outer(np.arange(4.0), [1, 2, 3]))
    shared = new()
    np.testing.assert_array_equal(ft.vmap(lambda r, i: r[i], in_axes=(None, 0))(shared, np.arange(4)), X)
    ft.vmap(lambda r, i: r.set(0.0, 1), in_axes=(None, 0))(shared, np.arange(4))  # the same for all
    assert shared[1] == 0.0


def test_values_leave_a_derivative():
    log = ft.new_ref(np.zeros(2))

    def loss(x):
        y = fnp.sin(x)
        log[0] = lax.stop_gradient(y)
        log[1] += 1.0
        return y * y

    for f in (ft.grad(loss), ft.jit(ft.grad(loss)), ft.grad(ft.jit(loss))):
        log[...] = 0.0
        np.testing.assert_allclose(f(0.5), np.sin(1.0))
        np.testing.assert_allclose(log[...], [np.sin(0.5), 1.0])
    np.testing.assert_allclose(ft.grad(lambda x, r: fnp.sum(r[...] * x), argnums=0)(2.0, log), log[...].sum())


def test_a_ref_made_in_a_transformation():
    def f(x):
        r = ft.new_ref(x)
        r[0] = r[0] ** 2
        jitted = ft.jit(lambda s, y: s.set(s[1] * y, 1))
        jitted(r, 3.0)
        return fnp.sum(r[...])

    np.testing.assert_allclose(ft.grad(f)(X), [2.0, 3.0, 1.0, 1.0])
    np.testing.assert_allclose(ft.hessian(f)(X)[0, 0], 2.0)
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.stack([X, 2 * X]))[:, 0], [2.0, 4.0])
    np.testing.assert_allclose(ft.jvp(f, (X,), (np.ones(4),))[1], 2.0 + 3.0 + 2.0)


def test_refs_are_freed():
    r = new()
    ft.jit(lambda r: r.set(0.0, 0))(r)
    gone = weakref.ref(r)
    del r
    gc.collect()
    assert gone() is None


# --- errors -------------------------------------------------------------------------------------------------


def test_wrong_uses():
    r = new()
    for f, message in (
        (
            lambda: ft.jit(lambda a, b: a[...] + b[...])(r, r),
            r"argument 0 \('a'\) and argument 1 \('b'\) are the same",
        ),
        (lambda: ft.jit(lambda a: a[...] + r[...])(r), "also uses it from outside"),
        (lambda: ft.jit(lambda a: a)(r), "the result of <lambda> is a Ref"),
        (lambda: ft.vmap(lambda x: ft.new_ref(x))(X), "the result of <lambda> is a Ref"),
        (lambda: ft.grad(lambda a: a[0])(r), "argument 0 .* is a Ref of type f64"),
        (lambda: lax.scan(lambda c, _: (c, None), r, None, length=2), "scan of <lambda>: init is a Ref"),
        (lambda: lax.while_loop(lambda c: r.swap(1.0, 0) > 5, lambda c: c, 0), "but may only read it"),
        (lambda: ft.new_ref(r), "init_val is a Ref"),
        (lambda: fnp.sum(r), r"read it, r\[...\]"),
        (lambda: fnp.ones(4) + r, r"read it, r\[...\]"),
        (lambda: bool(r), "no truth value"),
        (lambda: ft.vmap(lambda x: r.set(x))(X), "traced by vmap was written to a Ref .* from outside"),
        (lambda: ft.grad(lambda x: r.set(x, 0) or x)(1.0), "traced by grad was written .* stop_gradient"),
        (lambda: ft.make_jaxpr(lambda x: r.set(x, 0))(1.0), "was written to a Ref .* from outside"),
    ):
        with pytest.raises(errors.RefError, match=message) as caught:
            f()
        assert "test_refs.py" in str(caught.value)
    np.testing.assert_array_equal(r[...], X)  # nothing was written
    with pytest.raises(TypeError):
        r + 1.0
    with pytest.raises(errors.ShapeError):
        r[0] = np.ones(2)
    with pytest.raises(IndexError):
        r[9] = 1.0
    with pytest.raises(errors.AxisError):
        ft.vmap(lambda r: r[...], in_axes=1)(r)
    with pytest.raises(errors.PicklingError):
        pickle.dumps(r)
    for f in (
        lambda: ft.freeze(1.0),
        lambda: ft.ref.get(X),
        lambda: ft.empty_ref(3),
        lambda: ft.new_ref("a"),
    ):
        with pytest.raises(errors.ArgumentError):
            f()


def test_ends():
    for end, word in ((ft.freeze, "frozen"), (ft.free_ref, "freed")):
        r = new()
        end(r)
        for use in (lambda r: r[0], lambda r: r.set(1.0), end, lambda r: ft.jit(lambda a: a[0])(r)):
            with pytest.raises(errors.RefError, match=f"after it was {word} at test_refs.py"):
                use(r)
        assert word in repr(r)
    r = new()
    with pytest.raises(errors.RefError, match="frozen in a function that uses it from outside"):
        ft.jit(lambda: ft.freeze(r))()
    assert ft.jit(lambda x: ft.freeze(ft.new_ref(x)))(2.0) == 2.0


def test_leaks():
    kept = []
    for transform in (ft.jit, ft.grad, ft.vmap, ft.checkpoint):
        x = X if transform is ft.vmap else 1.0
        transform(lambda x: kept.append(ft.new_ref(x)) or x)(x)
        with pytest.raises(errors.UnexpectedTracerError, match="after the function in which it was made"):
            kept[-1][...]
    lax.fori_loop(0, 2, lambda i, c: kept.append(ft.new_ref(c)) or c, 1.0)
    with pytest.raises(errors.UnexpectedTracerError):
        kept[-1][...] = 1.0
