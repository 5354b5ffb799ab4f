"""Products with tall matrices, block by block of rows, beside NumPy; and the laws by which statements come together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax
from functrans.lowering.loops import ir, queries
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.check import verify
from functrans.lowering.loops.passes import row_blocks, row_calls
from functrans.lowering.python.emit import emit_python
from functrans.lowering.python.runtime import python_function
from functrans.lowering.run.executable import KernelUnit, compile_jaxpr

N, D = 350, 5


@pytest.fixture(autouse=True, params=[16 << 20, 0], ids=["", "streamed"])
def _small(monkeypatch, request):
    """Blocks of a few rows, so that small matrices have several, and a last one that is not full; small matrices that
    are read as large ones are."""
    if not request.param:
        monkeypatch.setattr(row_calls, "STREAMED", 0)
        monkeypatch.setattr(row_calls, "LONG", 0)
    monkeypatch.setattr(row_blocks, "LEAST", 0)
    monkeypatch.setattr(row_blocks, "BYTES", 1 << 10)
    monkeypatch.setattr(row_blocks, "FEWEST", 8)


def data(seed=0, dtype=float, n=N, d=D):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) + (1j * rng.normal(size=(n, d)) if np.dtype(dtype).kind == "c" else 0)
    return x.astype(dtype), rng.normal(size=d).astype(dtype), (rng.random(n) < 0.5).astype(dtype)


def kernels(f, *args, threads=1):
    """The kernels of a function before their numbers become parameters, and their scratch memory."""
    with ft.config.patch(num_threads=threads):
        executable = compile_jaxpr(ft.jit(f).lower(*args).jaxpr)
    return [s for s in executable.steps if isinstance(s, KernelUnit)]


def blocks(f, *args, threads=1):
    """The loops that contain others or products, and how many of these: each list is a loop of blocks."""
    found = []
    for unit in kernels(f, *args, threads=threads):
        for s in queries.walk(unit.kernel.body):
            if type(s) is ir.For and s.interruptible and any(type(t) is ir.For for t in s.body.statements):
                found.append([type(t).__name__ for t in s.body.statements if type(t) in (ir.For, ir.Call)])
    return found


def both(f, *args, threads=1, rtol=1e-11):
    """The result in blocks, which equals that without, in NumPy's operations."""
    with ft.config.patch(num_threads=threads):
        found = ft.jit(lambda *args: f(*args))(*args)
    with ft.config.patch(without={"row_blocks"}, num_threads=1):
        expected = ft.jit(lambda *args: f(*args))(*args)
    for a, b in zip(*map(ft.tree_util.tree_leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.max(np.abs(b), initial=0.0))
    return found


def logistic(w, x, y):
    z = x @ w
    return fnp.sum(fnp.logaddexp(0.0, z) - y * z)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_logistic_regression_reads_its_matrix_once(threads):
    x, w, y = data()
    value, g = both(ft.value_and_grad(logistic), w, x, y, threads=threads)
    z = x @ w
    np.testing.assert_allclose(value, np.sum(np.log1p(np.exp(z)) - y * z), rtol=1e-12)
    np.testing.assert_allclose(g, (1 / (1 + np.exp(-z)) - y) @ x, rtol=1e-10)
    (inside,) = blocks(ft.value_and_grad(logistic), w, x, y, threads=threads)
    assert len(inside) >= 3


def test_what_only_a_block_needs_has_room_for_one():
    x, w, y = data(n=20_000)
    (unit,) = kernels(ft.grad(logistic), w, x, y)
    assert sum(unit.scratch.values()) < 4096
    with ft.config.patch(without={"row_blocks"}):
        (unit,) = kernels(lambda w, x, y: ft.grad(logistic)(w, x, y), w, x, y)
    assert sum(unit.scratch.values()) >= 20_000 * 8


@pytest.mark.parametrize("threads", [1, 2])
def test_hessian_whose_lanes_have_the_rows_on_the_last_axis(threads):
    x, w, y = data()
    h = both(ft.hessian(logistic), w, x, y, threads=threads)
    p = 1 / (1 + np.exp(-(x @ w)))
    np.testing.assert_allclose(h, (x.T * (p * (1 - p))) @ x, rtol=1e-10, atol=1e-12)
    assert blocks(ft.hessian(logistic), w, x, y, threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("columns", [None, 16])
def test_dtypes_and_several_columns(dtype, columns, threads):
    x, w, _ = data(1, dtype, d=20)
    if columns is not None:
        w = np.stack([w] * columns, 1) * np.arange(1, columns + 1, dtype=np.float32).astype(dtype)
    f = lambda w, x: x.T @ (2.0 * (x @ w))
    rtol = 2e-5 if dtype in ("float32", "complex64") else 1e-12
    found = both(f, w, x, threads=threads, rtol=rtol)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, x.T @ (2 * (x @ w)), rtol=10 * rtol, atol=10 * rtol)
    assert blocks(f, w, x, threads=threads)


def test_sums_in_single_precision_keep_their_digits(monkeypatch):
    """A total of all rows in float32 would have lost four digits."""
    monkeypatch.undo()
    x, w = np.full((400_000, 8), 0.1, np.float32), np.ones(8, np.float32)
    assert blocks(lambda w, x: (x @ w) @ x, w, x)
    found = ft.jit(lambda w, x: (x @ w) @ x)(w, x)
    np.testing.assert_allclose(found, np.sum(x.astype(float).sum(1)[:, None] * x, 0), rtol=4e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_softmax_with_labels_that_choose(threads):
    x, _, _ = data(2)
    rng = np.random.default_rng(3)
    w, labels = rng.normal(size=(D, 10)), rng.integers(0, 10, N)

    def loss(w, x, labels):
        z = x @ w
        top = fnp.max(z, axis=1, keepdims=True)
        total = fnp.log(fnp.sum(fnp.exp(z - top), axis=1)) + top[:, 0]
        return fnp.sum(total - fnp.take_along_axis(z, labels[:, None], axis=1)[:, 0])

    value, g = both(ft.value_and_grad(loss), w, x, labels, threads=threads)
    z = np.exp(x @ w)
    p = z / z.sum(1, keepdims=True)
    np.testing.assert_allclose(value, -np.sum(np.log(p[np.arange(N), labels])), rtol=1e-12)
    np.testing.assert_allclose(g, x.T @ (p - np.eye(10)[labels]), rtol=1e-9, atol=1e-10)
    if threads == 1:
        assert len(blocks(ft.value_and_grad(loss), w, x, labels)) == 1
    bad = labels.copy()
    bad[N // 2] = 10
    with pytest.raises(errors.IndexOutOfBoundsError, match="index 10 is out of bounds"):
        ft.jit(ft.grad(loss))(w, x, bad)


def test_what_all_rows_need_ends_a_group():
    """The mean of all rows is known only after the last one."""
    x, w, _ = data(4)

    def f(w, x):
        z = x @ w
        return (z - fnp.mean(z)) @ x, fnp.max(z)

    found = both(f, w, x)
    z = x @ w
    np.testing.assert_allclose(found[0], (z - z.mean()) @ x, rtol=1e-11)
    assert found[1] == np.max(z)


def test_neighbours_end_a_group():
    x, w, _ = data(5)
    f = lambda w, x: fnp.diff(x @ w, append=0.0) @ x
    np.testing.assert_allclose(both(f, w, x), np.diff(x @ w, append=0.0) @ x, rtol=1e-10)


def test_values_that_are_results_too():
    x, w, y = data(6)

    def f(w, x, y):
        z = x @ w
        r = fnp.tanh(z) - y
        return z, r, r @ x, fnp.flip(r), r[7]

    z = x @ w
    r = np.tanh(z) - y
    for threads in (1, 2):
        for a, b in zip(both(f, w, x, y, threads=threads), (z, r, r @ x, r[::-1], r[7]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_matrix_with_its_rows_side_by_side(threads):
    """As columns in memory."""
    x, w, y = data(7)
    f = lambda w, x, y: x @ (fnp.tanh(w @ x) - y)
    columns = np.ascontiguousarray(x.T)
    found = both(f, w, columns, y, threads=threads)
    np.testing.assert_allclose(found, columns @ (np.tanh(w @ columns) - y), rtol=1e-11)


def test_a_loop_that_reads_the_matrix_once_more():
    """Squares of the rows' gradients: their sums are not a product."""
    x, w, y = data(8)

    def f(w, x, y):
        r = fnp.tanh(x @ w) - y
        return fnp.sum((x * r[:, None]) ** 2, axis=0)

    np.testing.assert_allclose(
        both(f, w, x, y), np.sum((x * (np.tanh(x @ w) - y)[:, None]) ** 2, 0), rtol=1e-11
    )
    assert blocks(f, w, x, y)


def test_in_a_loop_of_gradient_steps():
    x, w, y = data(9)

    def fit(w, x, y):
        return lax.fori_loop(0, 5, lambda _, w: w - 0.001 * ft.grad(logistic)(w, x, y), w)

    found = both(fit, w, x, y)
    for _ in range(5):
        w = w - 0.001 * ((1 / (1 + np.exp(-(x @ w))) - y) @ x)
    np.testing.assert_allclose(found, w, rtol=1e-11)
    assert blocks(fit, w, x, y)


def test_a_donated_vector_is_overwritten_row_by_row():
    x, w, y = data(10)
    f = ft.jit(lambda w, x, y: (y - x @ w, (y - x @ w) @ x), donate_argnums=2)
    expected = y - x @ w
    r, g = f(w, x, fnp.array(y))
    np.testing.assert_allclose(r, expected, rtol=1e-12)
    np.testing.assert_allclose(g, expected @ x, rtol=1e-11, atol=1e-12)


def test_rows_that_are_not_finite():
    x, w, y = data(11)
    x[3, 1], x[200, 2], x[349, 0] = np.nan, np.inf, -np.inf
    f = lambda w, x, y: ((x @ w) > 0, (x @ w) * y, (x.T @ y))
    with np.errstate(invalid="ignore"):
        z = x @ w
        for a, b in zip(ft.jit(f)(w, x, y), (z > 0, z * y, x.T @ y), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11)


def test_equal_bits_with_two_threads():
    x, w, y = data(12, n=5_000)
    with ft.config.patch(num_threads=2):
        f = ft.jit(ft.value_and_grad(logistic))
        first = f(w, x, y)
        for _ in range(20):
            for a, b in zip(first, f(w, x, y), strict=True):
                np.testing.assert_array_equal(a, b)


def test_timed_programs_have_marks_in_blocks():
    x, w, y = data(13)
    f = ft.jit(ft.value_and_grad(logistic))
    expected = f(w, x, y)
    with ft.profile() as p:
        found = f(w, x, y)
    assert p.total > 0
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def product_between_loops(shape, place, distance, side_by_side):
    """A kernel that puts ``2 x`` into scratch memory, ``z = 2 x @ w`` into part of more, and ``(z + 1) @ x`` into `g`.

    `place` gives the index of a row's element in scratch of this `shape`; `distance` is how far apart elements are.
    """
    b, f8 = StatementBuilder("k"), np.dtype("f8")
    x, w, g = b.buffer("x", f8, (N, 3), "in"), b.buffer("w", f8, (3,), "in"), b.buffer("g", f8, (3,), "out")
    twice = b.buffer("twice", f8, (3, N) if side_by_side else (N, 3), "scratch")
    z = b.buffer("z", f8, shape, "scratch")
    with b.loop(N, independent=True) as i, b.loop(3) as j:
        b.store(twice, (j, i) if side_by_side else (i, j), b.load(x, (i, j)) * 2.0)
    matrix = ("N", N, 3, 1.0, twice, N) if side_by_side else ("T", 3, N, 1.0, twice, 3)
    b.extern("gemv", *matrix, w, 1, 0.0, z, distance)
    with b.loop(N, independent=True) as i:
        b.store(z, place(i), b.load(z, place(i)) + 1.0)
    b.extern("gemv", "N", 3, N, 1.0, x, 3, z, distance, 0.0, g, 1)
    return b.finish()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize(
    ("shape", "place", "distance"),
    [
        ((N,), lambda i: (i,), 1),
        ((2, N), lambda i: (0, i), 1),
        ((3, N), lambda i: (0, i), 1),
        ((N, 2), lambda i: (i, 0), 2),
        ((N, N), lambda i: (i, 0), N),
    ],
    ids=["alone", "one row of two", "one row of three", "every second", "one column"],
)
def test_a_vector_in_larger_memory_keeps_the_distance_of_its_elements(
    shape, place, distance, side_by_side, threads
):
    """Cut to the rows of a block, a matrix whose rows lie side by side has other distances; a vector has not."""
    kernel = product_between_loops(shape, place, distance, side_by_side)
    row_blocks.block_rows(kernel, threads)
    verify(kernel)
    parts = {y.name for y in kernel.buffers if y.name.endswith("_rows")}
    assert parts == ({"z_rows", "twice_rows"} if side_by_side else {"z_rows"})
    rng = np.random.default_rng(14)
    x, w = rng.normal(size=(N, 3)), rng.normal(size=3)
    memory = {"x": x, "w": w, "g": np.full(3, np.nan)}
    for y in kernel.buffers:  # what nothing writes is not read either
        if y.role == "scratch":
            assert y.place == y.name
            memory[y.name] = np.full(y.shape, np.nan)
    buffers = [y for y in kernel.buffers if y.role not in ("stack", "tape")]
    assert python_function(kernel, emit_python(kernel))(*[memory[y.name] for y in buffers]) == 0
    np.testing.assert_allclose(memory["g"], (2.0 * x @ w + 1.0) @ x, rtol=1e-12)


UNARY = {"tanh": fnp.tanh, "square": fnp.square, "neg": lambda v: -v, "cumsum": fnp.cumsum, "sort": fnp.sort}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("map"), st.sampled_from(sorted(UNARY))),
        st.tuples(st.just("matvec"), st.booleans()),
        st.tuples(st.just("fold"), st.booleans()),
        st.tuples(st.just("add"), st.integers(0, 5)),
        st.tuples(st.just("sum"), st.sampled_from(["sum", "max", "min"])),
        st.tuples(st.just("outer"), st.integers(0, 5)),
    ),
    min_size=2,
    max_size=9,
)


def program(steps):
    """Products with a tall matrix, and what goes on between them."""

    def f(np_, x, w, y):
        tall, short, numbers = [y], [w], []
        for kind, which in steps:
            if kind == "map":
                tall.append(
                    (UNARY if np_ is fnp else {k: getattr(np, k, np.negative) for k in UNARY})[which](
                        tall[-1]
                    )
                )
            elif kind == "matvec":
                tall.append((x @ short[-1 if which else 0]) * 0.1)
            elif kind == "fold":
                short.append(((tall[-1] if which else tall[0]) @ x) * 0.01)
            elif kind == "add":
                tall.append(tall[-1] + tall[which % len(tall)])
            elif kind == "sum":
                numbers.append(getattr(np_, which)(tall[-1]))
                tall.append(tall[-1] * 0.5 + numbers[-1] * 0.01)
            else:
                scaled = x * tall[which % len(tall)][:, None]
                short.append(np_.sum(scaled @ w, 0) * 0.01 * short[0] + (x.T @ scaled) @ short[-1] * 0.001)
        return tall[-1], short[-1], *numbers

    return f


def compare(steps, threads, seed):
    x, w, y = data(seed, n=97, d=3)
    f = program(steps)
    expected = f(np, x, w, y)
    with ft.config.patch(num_threads=threads):
        found = ft.jit(lambda x, w, y: f(fnp, x, w, y))(x, w, y)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * np.max(np.abs(b), initial=1.0))


@settings(max_examples=15, deadline=None)
@given(STEPS, st.sampled_from([1, 2]), st.integers(0, 3))
def test_random_programs(steps, threads, seed):
    compare(steps, threads, seed)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(STEPS, st.sampled_from([1, 2]), st.integers(0, 3))
def test_many_random_programs(steps, threads, seed):
    compare(steps, threads, seed)


@pytest.mark.parametrize(
    ("rows", "columns", "dtype", "loads"),
    [
        (
            1 << 17,
            40,
            float,
            [1, 4, 1],
        ),  # from memory row by row; then from the cache, four at a time, and the rest
        (1 << 14, 40, float, [4, 1, 4, 1]),  # 5 MB
        (1 << 19, 10, float, [4, 1, 4, 1]),  # short rows
        (1 << 18, 40, np.float32, [4, 1, 4, 1]),
        (1 << 18, 64, np.float32, [1, 4, 1]),
    ],
)
def test_the_first_product_reads_a_large_matrix_in_one_stream(monkeypatch, rows, columns, dtype, loads):
    monkeypatch.undo()
    large = np.broadcast_to(np.ones((), dtype), (rows, columns))
    (unit,) = kernels(lambda x, w: x.T @ (x @ w), large, np.ones(columns, dtype))
    (x,) = {b.place for b in unit.kernel.buffers if b.role == "in" and len(b.shape) == 2}
    found = [
        sum(type(t) is ir.Load and t.buffer.place == x for t in s.body.statements)
        for s in queries.walk(unit.kernel.body)
        if type(s) is ir.For
    ]
    assert [n for n in found if n] == loads


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("order", ["C", "F", "negative"])
def test_one_product_alone(dtype, order, threads):
    x, w, y = data(4, dtype)
    x = x[::-1] if order == "negative" else np.asarray(x, order=order)
    rtol = 1e-4 if dtype == "float32" else 1e-11
    for f, v in ((lambda x, w: x @ w, w), (lambda x, y: y @ x, y), (lambda x, w: x.T.T @ w, w)):
        found = both(f, x, v, threads=threads, rtol=rtol)
        np.testing.assert_allclose(found, f(x, v), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    ("rows", "columns", "own"),
    [(1 << 17, 40, True), (1 << 14, 40, False), (1 << 19, 10, False), (40, 1 << 17, False)],
)
def test_one_product_alone_is_blas_unless_it_reads_a_large_matrix(monkeypatch, rows, columns, own):
    monkeypatch.undo()
    large = np.broadcast_to(np.ones(()), (rows, columns))
    for f, n in ((lambda x, w: x @ w, columns), (lambda x, y: y @ x, rows)):
        (unit,) = kernels(f, large, np.ones(n))
        assert any(type(s) is ir.Call for s in queries.walk(unit.kernel.body)) != own
