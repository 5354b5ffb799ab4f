"""Products of rows in groups, beside loops over the groups in NumPy."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ArgumentError, ArgumentValueError, DtypeError, NoRuleError, ShapeError
from functrans.testing import check

RUNS = [lambda f: f, ft.jit]
BASIC = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def sizes_of(rng, shape, rows, groups):
    """Sizes of groups, some zero: of all rows, of fewer, of more, of none."""
    sizes = np.zeros((*shape, groups), int)
    for place in np.ndindex(*shape):
        total = rng.choice([rows, rng.integers(0, rows + 1), rows + 3, 0])
        weights = rng.random(groups) * (rng.random(groups) < 0.7)
        weights = weights / weights.sum() if weights.any() else np.full(groups, 1 / groups)
        sizes[place] = rng.multinomial(total, weights)
    return sizes


def group_of(sizes, rows):
    """The group of each row, or -1."""
    own = np.repeat(np.arange(len(sizes)), sizes)[:rows]
    return np.concatenate([own, np.full(rows - len(own), -1)])


def looped(x, y, sizes):
    out = np.zeros((len(x), y.shape[2]), np.result_type(x, y))
    for i, group in enumerate(group_of(sizes, len(x))):
        if group >= 0:
            out[i] = x[i] @ y[group]
    return out


@pytest.mark.parametrize("run", RUNS)
def test_ragged_dot(run):
    rng = np.random.default_rng(0)
    f = run(lax.ragged_dot)
    for m, g in [(1, 1), (7, 3), (40, 1), (5, 9), (64, 4), (300, 2), (1, 4)]:
        for _ in range(3):
            x, y = rng.standard_normal((m, 3)), rng.standard_normal((g, 3, 2))
            sizes = sizes_of(rng, (), m, g)
            np.testing.assert_allclose(f(x, y, sizes), looped(x, y, sizes), atol=1e-14)


@pytest.mark.parametrize("run", RUNS)
def test_gradients(run):
    """Of row i by y[group of i] transposed, and of the matrix of a group by sums over its rows."""
    rng = np.random.default_rng(1)
    for m, g in [(7, 3), (5, 9), (130, 2)]:
        x, y, ct = rng.standard_normal((m, 3)), rng.standard_normal((g, 3, 2)), rng.standard_normal((m, 2))
        sizes = sizes_of(rng, (), m, g)
        pull = ft.vjp(run(lambda x, y, s=sizes: lax.ragged_dot(x, y, s)), x, y)[1]
        of_x, of_y = pull(ct)
        own = group_of(sizes, m)
        np.testing.assert_allclose(of_x, looped(ct, y.transpose(0, 2, 1), sizes), atol=1e-13)
        expected = np.stack([x[own == k].T @ ct[own == k] for k in range(g)])
        np.testing.assert_allclose(of_y, expected, atol=1e-13)


@pytest.mark.wide(3)
def test_transformations():
    rng = np.random.default_rng(2)
    sizes = np.array([2, 0, 3])
    x, y = rng.standard_normal((6, 2)), rng.standard_normal((3, 2, 2))
    check(lambda x, y: lax.ragged_dot(x, y, sizes), x, y)
    check(lambda x, y: lax.ragged_dot(x, y, sizes), x + 0.5j, y - 1j)
    contracted = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    check(lambda x, y: lax.ragged_dot_general(x, y, sizes, contracted), x, x[:, ::-1])


@pytest.mark.parametrize("run", RUNS)
def test_vmap_over_each_operand(run):
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((4, 6, 2)), rng.standard_normal((4, 3, 2, 5))
    sizes = sizes_of(rng, (4,), 6, 3)
    for mapped in itertools.product([True, False], repeat=3):
        if not any(mapped):
            continue
        args = [a if own else a[0] for a, own in zip((x, y, sizes), mapped)]
        got = run(ft.vmap(lax.ragged_dot, in_axes=[0 if own else None for own in mapped]))(*args)
        rows = [[a[i] if own else a for a, own in zip(args, mapped)] for i in range(4)]
        np.testing.assert_allclose(got, [looped(*row) for row in rows], atol=1e-14)


def test_dtypes():
    x, y, sizes = np.ones((3, 2), np.float32), np.ones((1, 2, 2), np.float32), np.array([2], np.uint8)
    assert lax.ragged_dot(x, y, sizes).dtype == np.float32
    assert lax.ragged_dot(x, y.astype(float), sizes).dtype == np.float64
    assert lax.ragged_dot(x, y, sizes, preferred_element_type=np.float64).dtype == np.float64
    small = lax.ragged_dot(
        np.full((1, 2), 100, np.int8), np.full((1, 2, 1), 100, np.int8), [1], None, np.int32
    )
    assert (small.dtype, small.tolist()) == (np.int32, [[20000]])
    assert ft.grad(lambda x: lax.ragged_dot(x, y, sizes, None, float).sum())(x).dtype == np.float32


def test_empty():
    for m, k, n, g in [(0, 2, 3, 4), (5, 0, 3, 4), (5, 2, 0, 4), (5, 2, 3, 0)]:
        x, y, sizes = np.ones((m, k)), np.ones((g, k, n)), np.ones(g, int)
        np.testing.assert_array_equal(lax.ragged_dot(x, y, sizes), np.zeros((m, n)))
        contracted = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
        got = lax.ragged_dot_general(x, np.ones((m, n)), sizes, contracted)
        np.testing.assert_array_equal(got, looped_sums(x, np.ones((m, n)), sizes))


def looped_sums(x, y, sizes):
    own = group_of(sizes, len(x))
    shape = (len(sizes), x.shape[1], y.shape[1])
    return np.array([x[own == k].T @ y[own == k] for k in range(len(sizes))]).reshape(shape)


def test_what_is_outside_of_groups_is_not_read():
    x = np.array([[1.0], [np.nan], [np.inf]])
    y = np.array([[[2.0]], [[np.inf]]])
    np.testing.assert_array_equal(lax.ragged_dot(x, y, [1, 0]), [[2.0], [0.0], [0.0]])
    grads = ft.grad(lambda x, y: lax.ragged_dot(x, y, [1, 0]).sum(), argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(grads[0], [[2.0], [0.0], [0.0]])
    np.testing.assert_array_equal(grads[1], [[[1.0]], [[0.0]]])


def general(x, y, sizes, numbers):
    """`ragged_dot_general` by a mask (rows, groups) for each index of the axes that sizes may vary over."""
    ((a, b), (c, d)), (ragged,), group = numbers
    left, right = list("abcdefgh"[: x.ndim]), list("stuvwxyz"[: y.ndim])
    for i, j in (*zip(a, b), *zip(c, d)):
        right[j] = left[i]
    free = [left[i] for i in range(x.ndim) if i not in (*a, *c)]
    kind = c if ragged in c else a if ragged in a else [i for i in range(x.ndim) if i not in (*a, *c)]
    before = [left[i] for i in kind[: list(kind).index(ragged)]]
    outer = before if ragged in c else [left[i] for i in c] + before
    extent = dict(zip(left, x.shape))
    sizes = np.broadcast_to(sizes, (*[extent[i] for i in outer], sizes.shape[-1]))
    mask = np.zeros((*sizes.shape[:-1], x.shape[ragged], sizes.shape[-1]))
    for place in np.ndindex(*sizes.shape[:-1]):
        own = group_of(sizes[place], x.shape[ragged])
        mask[place] = own[:, None] == np.arange(sizes.shape[-1])
    masked = "".join([*outer, left[ragged]]) + "G"
    if group:
        right[group[0]] = "G"
    out = [left[i] for i in c] + free
    out += [right[j] for j in range(y.ndim) if j not in (*b, *d, *group)]
    if ragged in c:
        return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y)
    out = (["G"] if ragged in a else []) + out
    return np.einsum(f"{''.join(left)},{''.join(right)},{masked}->{''.join(out)}", x, y, mask)


def problem(rng, kind):
    """Operands with up to two axes of each kind, in any order, one of which is ragged."""
    counts = {"b": rng.integers(3), "c": rng.integers(3), "l": rng.integers(3), "r": rng.integers(3)}
    counts[kind] = max(1, counts[kind])
    axes = {k: [(k, i) for i in range(n)] for k, n in counts.items()}
    ragged = axes[kind][rng.integers(counts[kind])]
    extent = {axis: int(rng.integers(1, 4)) for own in axes.values() for axis in own}
    extent[ragged] = int(rng.integers(1, 9))
    groups = extent["g"] = int(rng.integers(1, 6))
    left = axes["b"] + axes["c"] + axes["l"]
    right = axes["b"] + axes["c"] + axes["r"] + ["g"] * (kind == "l")
    left, right = ([own[i] for i in rng.permutation(len(own))] for own in (left, right))
    batch, contract = ([own[i] for i in rng.permutation(len(own))] for own in (axes["b"], axes["c"]))
    pairs = tuple((tuple(map(left.index, own)), tuple(map(right.index, own))) for own in (contract, batch))
    group = (right.index("g"),) if kind == "l" else ()
    numbers = lax.RaggedDotDimensionNumbers(pairs, (left.index(ragged),), group)
    own = {"b": batch, "c": contract, "l": [axis for axis in left if axis[0] == "l"]}[kind]
    before = ([] if kind == "b" else batch) + own[: own.index(ragged)]
    shape = [extent[axis] for axis in before] if rng.random() < 0.6 else []
    x, y = (rng.standard_normal([extent[axis] for axis in own]) for own in (left, right))
    return x, y, sizes_of(rng, shape, extent[ragged], groups), numbers


@pytest.mark.parametrize("kind", ["l", "c", "b"], ids=["free", "contracted", "batch"])
def test_ragged_dot_general(kind):
    rng = np.random.default_rng(4)
    for _ in range(25):
        x, y, sizes, numbers = problem(rng, kind)
        got = lax.ragged_dot_general(x, y, sizes, numbers)
        expected = general(x, y, sizes, numbers)
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, atol=1e-13)


def test_work_does_not_grow_with_rows_times_groups():
    """As many groups as rows cost about what one product with one matrix costs."""

    def flops(groups):
        args = np.ones((512, 16)), np.ones((groups, 16, 16)), np.ones(groups, int)
        return ft.ir.cost_analysis(ft.make_jaxpr(lax.ragged_dot)(*args))["flops"]

    assert flops(512) < 2 * flops(1)


def test_bad_input():
    x, y, sizes = np.ones((4, 2)), np.ones((3, 2, 5)), np.array([1, 1, 1])
    with pytest.raises(NotImplementedError, match="group_offset") as caught:
        lax.ragged_dot(x, y, sizes, group_offset=np.array([0]))
    assert isinstance(caught.value, NoRuleError)
    with pytest.raises(DtypeError, match="group_sizes must be integers, got float64"):
        lax.ragged_dot(x, y, sizes * 1.0)
    with pytest.raises(ShapeError, match=r"expected shapes \(m, k\), \(g, k, n\) and \(g,\)"):
        lax.ragged_dot(x, y[0], sizes)
    with pytest.raises(ShapeError, match=r"group_sizes has 2 groups, rhs of shape \(3, 2, 5\) has 3 along"):
        lax.ragged_dot(x, y, sizes[:2])
    with pytest.raises(ShapeError, match="differ along the contracted axes"):
        lax.ragged_dot(x[:, :1], y, sizes)
    with pytest.raises(ShapeError, match="group_sizes must have an axis"):
        lax.ragged_dot(x, y, 3)
    with pytest.raises(ArgumentError, match=r"must be a RaggedDotDimensionNumbers, got .* of type tuple"):
        lax.ragged_dot_general(x, y, sizes, tuple(BASIC))
    with pytest.raises(ArgumentValueError, match="dot_dimension_numbers must be two pairs"):
        lax.ragged_dot_general(x, y, sizes, BASIC._replace(dot_dimension_numbers=()))
    with pytest.raises(ArgumentValueError, match=r"lhs_ragged_dimensions must be one axis of 2, got \(2,\)"):
        lax.ragged_dot_general(x, y, sizes, BASIC._replace(lhs_ragged_dimensions=(2,)))
    with pytest.raises(ArgumentValueError, match=r"rhs_group_dimensions must be one axis of 3, got \(\)"):
        lax.ragged_dot_general(x, y, sizes, BASIC._replace(rhs_group_dimensions=()))
    with pytest.raises(ArgumentValueError, match="rhs_group_dimensions must be no axis"):
        lax.ragged_dot_general(x, y, sizes, BASIC._replace(lhs_ragged_dimensions=(1,)))
    with pytest.raises(ArgumentValueError, match="must neither be contracted nor a batch axis"):
        lax.ragged_dot_general(x, y, sizes, BASIC._replace(rhs_group_dimensions=(1,)))
    with pytest.raises(ShapeError, match=r"group_sizes of shape \(3,\) or \(3,\), got \(2, 3\)"):
        lax.ragged_dot_general(x, y, np.ones((2, 3), int), BASIC)
    assert fnp.shape(lax.ragged_dot(x, y, sizes, out_sharding="cpu")) == (4, 5)
