"""`Array`: an ndarray to everybody, and changed by nobody."""

import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special

from functrans.arrays.array import Array, unwrap, wrap
from functrans.errors import ArgumentError, ImmutableArrayError

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.fixture
def x():
    return wrap(X.copy())


def is_array(a):
    return type(a) is Array and not a.flags.writeable


def test_wrap_is_a_read_only_view_and_leaves_the_flags_of_its_argument():
    mine = X.copy()
    a = wrap(mine)
    assert is_array(a)
    assert np.shares_memory(a, mine)
    assert mine.flags.writeable
    assert type(unwrap(a)) is np.ndarray
    assert not unwrap(a).flags.writeable


@pytest.mark.parametrize(
    "value", [np.float64(3.0), np.bool_(True), np.complex64(1j), 3, 2.5, 1j, np.array(7)]
)
def test_numbers_become_arrays_without_axes(value):
    a = wrap(value)
    assert isinstance(a, Array)
    assert not a.flags.writeable
    assert a.weak_type == (type(value) in (int, float, complex))
    assert a.shape == ()
    assert a == value
    assert a.dtype == np.asarray(value).dtype


def test_wrap_gives_other_objects_back():
    assert wrap(None) is None
    a = wrap(X)
    assert wrap(a) is a


def test_constructor_is_refused():
    with pytest.raises(ArgumentError, match=r"functrans\.numpy\.asarray"):
        Array((2, 3))


def test_operators_and_methods_give_arrays(x):
    results = [
        x + 1,
        1 + x,
        x - x,
        2.0 * x,
        x / X,
        X / x,
        x @ x.T,
        X @ x.T,
        x @ X.T,
        x**2,
        -x,
        +x,
        abs(x),
        ~(x > 2),
        x > 2,
        x == x,
        divmod(x, 2)[1],
        divmod(X, x)[1],
        np.float64(2.0) * x,
        x * np.float64(2.0),
        np.float64(2.0) < x,
        x.sum(),
        x.sum(axis=0),
        x.mean(),
        x.T,
        x.reshape(3, 2),
        x[0],
        x[0, 1],
        x[x > 2],
        x[[1, 0]],
        x.astype(int),
        x.ravel(),
        x.real,
        x.flatten(),
        x.max(axis=1),
        x.argsort(),
        x.nonzero()[0],
        x.view(np.int64),
        next(iter(x)),
        Array(X),
        Array([1.0, 2.0]),
    ]
    for k, a in enumerate(results):
        assert is_array(a), (k, type(a))
        with pytest.raises(ImmutableArrayError):
            a[...] = 0
    assert np.array_equal(x, X)


def leaves(actual):
    return [part for a in actual for part in leaves(a)] if isinstance(actual, tuple | list) else [actual]


@pytest.mark.parametrize(
    "f",
    [
        np.sin,
        lambda x: np.add(x, 1),
        lambda x: np.multiply(np.float64(2.0), x),
        np.add.reduce,
        lambda x: np.add.outer(x, x),
        np.modf,
        lambda x: np.maximum(X, x),
        lambda x: np.sum(x, axis=0),
        lambda x: np.where(x > 2, x, 0),
        lambda x: np.concatenate([x, x]),
        lambda x: np.linalg.inv(x[:, :2]),
        lambda x: np.linalg.eigh(x[:, :2]),
        np.linalg.svd,
        lambda x: np.split(x, 2),
        np.fft.fft,
        scipy.special.erf,
        lambda x: np.median(x, axis=0),
        np.transpose,
        np.ravel,
        np.atleast_3d,
        np.squeeze,
        np.flip,
        np.real,
        np.zeros_like,
        np.copy,
        lambda x: np.full_like(x, 2.0),
        lambda x: x.copy(),
    ],
)
def test_results_of_numpy_are_plain_and_writable(x, f):
    for actual, plain in zip(leaves(f(x)), leaves(f(X)), strict=True):
        assert type(actual) is np.ndarray
        assert np.array_equal(actual, plain)
        actual[...] = 0
    assert np.array_equal(x, X)


def test_numpy_reduces_to_its_own_scalars(x):
    assert type(np.sum(x)) is np.float64
    assert type(np.sin(x[0, 0])) is np.float64


def test_read_only_are_views_that_numpy_makes_so(x):
    for view in (np.broadcast_to(x, (2, 2, 3)), np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)):
        assert type(view) is np.ndarray
        assert np.shares_memory(view, x)
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 0


def test_work_space_that_numpy_allocates_is_changed_and_not_copied_silently(x):
    y = np.array(x, subok=True)
    assert type(y) is Array
    part, same = y[1:], y
    part += 1
    y *= 2.0
    y[0] = 7.0
    np.add.at(y, (0, 0), 1.0)
    np.add(y, 1.0, out=y)
    np.copyto(y[:, 1], -1.0)
    y[:, 2].sort()
    twin = copy.copy(y)
    y.fill(0)
    assert same is y
    assert np.array_equal(twin, [[9.0, -1.0, 8.0], [11.0, -1.0, 15.0]])
    assert np.array_equal(x, X)


def test_results_agree_with_numpy(x):
    for f in (
        lambda a: a + 1,
        lambda a: 1 - a,
        lambda a: 2.0 / a,
        lambda a: a // 2,
        lambda a: 7 % a,
        lambda a: a**2,
        lambda a: 2**a,
        lambda a: a @ a.T,
        lambda a: np.array([1, 2, 3]) + a,
        lambda a: a.sum(axis=1, keepdims=True),
        lambda a: a.clip(2, 4),
        lambda a: a.take([0, 2], axis=1),
        lambda a: np.percentile(a, 30),
        lambda a: a.dot(a.T),
        lambda a: a < 3,
        lambda a: 3 <= a,  # noqa: SIM300
        lambda a: a != a[0],
        lambda a: np.float32(2) * a,
        lambda a: a * [1, 2, 3],
        lambda a: a.astype(int) & 3,
        lambda a: 1 << a.astype(int),
        lambda a: ~a.astype(bool),
    ):
        ours, theirs = f(x), f(X)
        assert np.array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_augmented_assignment_rebinds(x):
    for statement in (
        "y += 1",
        "y -= 1",
        "y *= 2",
        "y /= 2",
        "y //= 2",
        "y %= 2",
        "y **= 2",
    ):
        names = {"y": x}
        exec(statement, names)
        assert names["y"] is not x
        assert is_array(names["y"])
    i = wrap(np.arange(4))
    for statement in ("y &= 1", "y |= 1", "y ^= 1", "y <<= 1", "y >>= 1"):
        names = {"y": i}
        exec(statement, names)
        assert is_array(names["y"])
    y = wrap(np.eye(2))
    y @= np.ones((2, 2))
    assert is_array(y)
    assert np.array_equal(x, X)
    assert np.array_equal(i, np.arange(4))


def test_plain_arrays_are_changed_by_arrays_of_ours(x):
    y = np.zeros((2, 3))
    y += x
    y[0] = x[1]
    np.add(x, x, out=y)
    assert type(y) is np.ndarray
    assert np.array_equal(y, 2 * X)


WRITES = {
    "x[i] = v": lambda x: x.__setitem__(0, 1.0),
    "out=x": lambda x: np.add(X, X, out=x),
    "out=(x,)": lambda x: np.add(x, X, out=(x,)),
    "np.sum(..., out=x)": lambda x: np.cumsum(X, axis=1, out=x),
    "np.clip": lambda x: np.clip(X, 0, 1, out=x),
    "x.clip(out=x)": lambda x: x.clip(0, 1, out=x),
    "x.sort": lambda x: x.sort(),
    "x.fill": lambda x: x.fill(0),
    "x.put": lambda x: x.put([0], [1]),
    "x.resize": lambda x: x.resize((3, 2)),
    "x.partition": lambda x: x.partition(1),
    "x.setfield": lambda x: x.setfield(1.0, np.float64),
    "x.flags.writeable": lambda x: setattr(x.flags, "writeable", True),
    "x.flags['WRITEABLE']": lambda x: x.flags.__setitem__("WRITEABLE", True),
    "x.setflags": lambda x: x.setflags(write=True),
    "np.copyto": lambda x: np.copyto(x, 0),
    "np.put": lambda x: np.put(x, [0], [1]),
    "np.place": lambda x: np.place(x, x > 1, [0]),
    "np.putmask": lambda x: np.putmask(x, x > 1, 0),
    "np.fill_diagonal": lambda x: np.fill_diagonal(x, 0),
    "np.put_along_axis": lambda x: np.put_along_axis(x, np.array([[0]]), 1, 0),
    "np.add.at": lambda x: np.add.at(x, 0, 1),
    "x.shape": lambda x: setattr(x, "shape", (3, 2)),
    "x.real": lambda x: setattr(x, "real", 0),
    "x.name": lambda x: setattr(x, "name", "x"),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_refused_with_the_form_to_use(x, name):
    with pytest.raises(ImmutableArrayError, match=r"cannot be changed in place\. ") as caught:
        WRITES[name](x)
    assert "test_array.py" in str(caught.value)
    assert np.array_equal(x, X)


@pytest.mark.parametrize(
    "write", [lambda x: x.flat.__setitem__(0, 1), lambda x: memoryview(x).__setitem__((0, 0), 1.0)]
)
def test_other_ways_meet_a_read_only_buffer(x, write):
    with pytest.raises((ValueError, TypeError)):
        write(x)


def test_views_of_arrays_cannot_be_written(x):
    for view in (x.T, x[0], x.reshape(-1), x.real, np.asarray(x), np.asanyarray(x)[1:]):
        with pytest.raises(ValueError):
            view[...] = 0


def test_np_array_is_a_copy_to_write(x):
    y = np.array(x)
    assert type(y) is np.ndarray
    y[0] = 0
    assert np.array_equal(x, X)


def test_copies_and_pickles(x):
    assert copy.copy(x) is x
    assert copy.deepcopy(x) is x
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        for a in (x, x[0, 0], x.T, x.astype(np.complex64)):
            b = pickle.loads(pickle.dumps(a, protocol))
            assert is_array(b)
            assert np.array_equal(a, b)
            assert a.dtype == b.dtype
    file = io.BytesIO()
    np.save(file, x)
    file.seek(0)
    assert np.array_equal(np.load(file), X)


def test_unhashable(x):
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x[0, 0])


def test_prints_like_numpy_under_its_own_name(x):
    assert repr(x) == repr(X).replace("array", "Array")
    assert repr(wrap(2.5)) == "Array(2.5)"
    assert repr(wrap(np.float32(2.5))) == "Array(2.5, dtype=float32)"
    assert str(x) == str(X)
    assert f"{wrap(2.5):.3f}" == "2.500"


def test_numbers_behave_as_numbers(x):
    assert float(x[0, 0]) == 1.0
    assert int(wrap(3)) == 3
    assert [10, 20][wrap(1)] == 20
    assert bool(wrap(0.0)) is False
    assert x[0, 1].item() == 2.0
    assert len(x) == 2
    assert x.tolist() == X.tolist()
    assert round(wrap(2.567), 1) == 2.6
    assert list(range(wrap(3))) == [0, 1, 2]


def test_comparison_with_other_objects_as_numpy(x):
    assert np.array_equal(x == None, X == None)  # noqa: E711
    assert np.array_equal(x != "a", X != "a")
    assert (x == (1.0, 2.0, 3.0)).tolist() == (X == (1.0, 2.0, 3.0)).tolist()


def test_scipy_takes_it(x):
    square = x[:, :2]
    assert np.allclose(scipy.linalg.solve(square, np.ones(2)), np.linalg.solve(X[:, :2], np.ones(2)))
    assert np.allclose(scipy.linalg.cholesky(x @ x.T), scipy.linalg.cholesky(X @ X.T))


def test_matplotlib_takes_it(x):
    pytest.importorskip("matplotlib")
    program = (
        "import matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as plt, numpy as np\n"
        "from functrans.arrays.array import wrap\n"
        "x = wrap(np.linspace(0, 1, 5)); plt.plot(x, x ** 2); plt.hist(x); plt.imshow(wrap(np.eye(3)))\n"
        "plt.errorbar(x, x, yerr=x); plt.savefig(__import__('io').BytesIO()); print('drawn')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "drawn\n", done.stderr


def test_pandas_takes_it(x):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(x, columns=list("abc"))
    assert frame["b"].tolist() == [2.0, 5.0]
    assert (pd.Series([1.0, 2.0]) + x[:, 0]).tolist() == [2.0, 6.0]
    assert isinstance(x[:, 0] + pd.Series([1.0, 2.0]), pd.Series)


def test_scipys_solvers_start_from_an_array():
    start = wrap(np.full(2, 0.5))
    actual = scipy.optimize.least_squares(lambda p: p**2 - [1.0, 4.0], start)
    np.testing.assert_allclose(actual.x, [1.0, 2.0], rtol=1e-6)
