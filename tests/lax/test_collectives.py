"""Collectives under vmap: what they compute for the whole batch, in every transformation, and their errors."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax
from functrans.testing import check

N = 4
X = np.array([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0], [0.5, 4.0, 2.0], [-1.5, 1.0, 3.0]])  # examples by elements
Z = np.arange(N * N * 2.0).reshape(N, N, 2) ** 1.5
PERM = [(0, 1), (1, 2), (2, 3), (3, 0)]
GROUPS = [[0, 2], [3, 1]]


def spread(row, n=N):
    return np.broadcast_to(row, (n, *np.shape(row)))


def grouped(reduce):
    """The result of each group for its members."""

    def of(x):
        out = np.empty_like(x)
        for group in GROUPS:
            out[group] = reduce(x[group])
        return out

    return of


def shifted(x):
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


def to_all(x, split, concat, tiled):
    """`all_to_all` by its definition, one pair of examples at a time."""
    n = len(x)
    parts = [np.split(example, n, split) for example in x]
    rows = []
    for target in range(n):
        received = [parts[source][target] for source in range(n)]
        if tiled:
            rows.append(np.concatenate(received, concat))
        else:
            rows.append(np.stack([np.squeeze(part, split) for part in received], concat))
    return np.stack(rows)


#: Per-example functions with what they compute for the whole batch.
CASES = {
    "psum": (lambda x: lax.psum(x, "i"), X, lambda x: spread(x.sum(0))),
    "psum in groups": (lambda x: lax.psum(x, "i", axis_index_groups=GROUPS), X, grouped(lambda g: g.sum(0))),
    "psum over a position too": (lambda x: lax.psum(x, ("i", 0)), X, lambda x: spread(x.sum())),
    "pmean": (lambda x: lax.pmean(x, "i"), X, lambda x: spread(x.mean(0))),
    "pmean in groups": (
        lambda x: lax.pmean(x, "i", axis_index_groups=GROUPS),
        X,
        grouped(lambda g: g.mean(0)),
    ),
    "pmean over a position too": (lambda x: lax.pmean(x, (0, "i")), X, lambda x: spread(x.mean())),
    "pmax": (lambda x: lax.pmax(x, "i"), X, lambda x: spread(x.max(0))),
    "pmin in groups": (lambda x: lax.pmin(x, "i", axis_index_groups=GROUPS), X, grouped(lambda g: g.min(0))),
    "all_gather": (lambda x: lax.all_gather(x, "i"), X, spread),
    "all_gather at 1": (lambda x: lax.all_gather(x, "i", axis=1), X, lambda x: spread(x.T)),
    "all_gather tiled": (lambda x: lax.all_gather(x, "i", tiled=True), X, lambda x: spread(x.ravel())),
    "all_gather in groups": (
        lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS),
        X,
        lambda x: np.stack([x[[0, 2]], x[[3, 1]], x[[0, 2]], x[[3, 1]]]),
    ),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), Z, lambda z: z.sum(0)),
    "psum_scatter tiled": (
        lambda x: lax.psum_scatter(x, "i", tiled=True),
        np.concatenate([Z, -Z], 1),
        lambda z: z.sum(0).reshape(N, 2, 2),
    ),
    "psum_scatter at 1": (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
        Z.transpose(0, 2, 1),
        lambda z: z.sum(0).T,
    ),
    "psum_scatter in groups": (
        lambda x: lax.psum_scatter(x[:2], "i", axis_index_groups=GROUPS),
        Z,
        lambda z: np.stack(
            [z[[0, 2], 0].sum(0), z[[3, 1], 1].sum(0), z[[0, 2], 1].sum(0), z[[3, 1], 0].sum(0)]
        ),
    ),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 1), Z, lambda z: to_all(z, 0, 1, False)),
    "all_to_all tiled": (
        lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
        np.concatenate([Z, -Z], 1),
        lambda z: to_all(z, 0, 1, True),
    ),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), Z, lambda z: z.swapaxes(0, 1)),
    "ppermute": (lambda x: lax.ppermute(x, "i", PERM), X, lambda x: np.roll(x, 1, 0)),
    "ppermute with an end": (lambda x: lax.ppermute(x, "i", PERM[:3]), X, shifted),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [2, 0, 3, 1]), X, lambda x: x[[2, 0, 3, 1]]),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 2), X, lambda x: spread(x[2])),
    "axis_index": (lambda x: x * lax.axis_index("i"), X, lambda x: x * np.arange(N)[:, None]),
    "axis_size": (lambda x: x * lax.axis_size("i"), X, lambda x: x * N),
    "a constant": (lambda x: x + lax.psum(1, "i") + lax.psum(np.ones(1), "i"), X, lambda x: x + 2 * N),
}
SINGLE = [name for name in CASES if name not in ("pmax", "pmin in groups")]


def mapped(f):
    return ft.vmap(f, axis_name="i")


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    f, x, whole = CASES[name]
    expected = whole(x)
    np.testing.assert_allclose(mapped(f)(x), expected, rtol=1e-14)
    np.testing.assert_allclose(ft.jit(mapped(f))(x), expected, rtol=1e-14)
    np.testing.assert_allclose(mapped(ft.jit(f))(x), expected, rtol=1e-14)
    weights = np.cos(np.arange(expected.size)).reshape(expected.shape)
    # All of them but the extremes are affine, so finite differences are exact; the extremes have no ties here.
    step = 1e-4
    numeric = np.empty_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        numeric[place] = ((whole(up) - whole(down)) * weights).sum() / (2 * step)
    of_batch = ft.grad(lambda x: fnp.sum(mapped(f)(x) * weights))(x)
    np.testing.assert_allclose(of_batch, numeric, rtol=1e-6, atol=1e-8)
    # Derivatives of the examples: the sum over the batch is what is differentiated, as in JAX.
    inside = ft.vmap(ft.grad(lambda x, w: fnp.sum(f(x) * w)), axis_name="i")
    np.testing.assert_allclose(inside(x, weights), numeric, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ft.jit(inside)(x, weights), numeric, rtol=1e-6, atol=1e-8)
    direction = np.sin(1.0 + x)
    difference = (whole(x + step * direction) - whole(x - step * direction)) / (2 * step)
    for pushed in (
        lambda x, t: ft.jvp(mapped(f), (x,), (t,))[1],
        ft.vmap(lambda x, t: ft.jvp(f, (x,), (t,))[1], axis_name="i"),
    ):
        np.testing.assert_allclose(pushed(x, direction), difference, rtol=1e-6, atol=1e-8)


def test_compiled_programs_contain_no_collectives():
    step = mapped(lambda x: lax.psum(fnp.sin(x), "i") * lax.all_gather(x, "i")[0] + lax.axis_index("i"))
    text = str(ft.make_jaxpr(step)(X[:, 0]))
    assert "psum" not in text
    assert "all_gather" not in text
    assert "axis_index" not in text
    assert "reduce_sum" in text


def test_derivatives_of_the_rule_for_ties():
    x = np.array([2.0, 3.0, 3.0])
    np.testing.assert_array_equal(
        ft.vmap(ft.grad(lambda x: lax.pmax(x, "i")), axis_name="i")(x), [0.0, 1.5, 1.5]
    )


# --- several names ------------------------------------------------------------------------------------------


def test_nested_axes_and_tuples_of_names():
    y = np.arange(12.0).reshape(4, 3) ** 1.1

    def nested(f, *args):
        return ft.vmap(ft.vmap(f, axis_name="j"), axis_name="i")(*args)

    np.testing.assert_allclose(nested(lambda x: lax.psum(x, "i"), y), spread(y.sum(0)))
    np.testing.assert_allclose(nested(lambda x: lax.psum(x, "j"), y), spread(y.sum(1), 3).T)
    np.testing.assert_allclose(nested(lambda x: lax.psum(x, ("i", "j")), y), np.full((4, 3), y.sum()))
    np.testing.assert_allclose(nested(lambda x: lax.pmean(x, ("j", "i")), y), np.full((4, 3), y.mean()))
    np.testing.assert_array_equal(
        nested(lambda x: lax.axis_index(("i", "j")), y), np.arange(12).reshape(4, 3)
    )
    np.testing.assert_array_equal(
        nested(lambda x: lax.axis_index(("j", "i")), y), np.arange(12).reshape(3, 4).T
    )
    assert (nested(lambda x: x * 0 + lax.axis_size(("i", "j")), y) == 12).all()
    np.testing.assert_array_equal(nested(lambda x: lax.all_gather(x, ("i", "j")), y)[2, 1], y.ravel())
    np.testing.assert_array_equal(nested(lambda x: lax.all_gather(x, ("j", "i")), y)[2, 1], y.T.ravel())
    scattered = nested(lambda x: lax.psum_scatter(x * fnp.arange(12.0), ("i", "j")), y)
    np.testing.assert_allclose(scattered, y.sum() * np.arange(12.0).reshape(4, 3))
    sent = nested(lambda x: lax.all_to_all(x * fnp.arange(12.0), ("i", "j"), 0, 0), y)
    np.testing.assert_allclose(sent, np.arange(12.0).reshape(4, 3)[..., None] * y.ravel())
    # An inner axis without a name, and an inner one of the same name.
    rows = ft.vmap(lambda row: ft.vmap(lambda x: x - lax.psum(x, "i"))(row), axis_name="i")(y)
    np.testing.assert_allclose(rows, y - y.sum(0))
    same = ft.vmap(ft.vmap(lambda x: lax.psum(x, "i"), axis_name="i"), axis_name="i")(y)
    np.testing.assert_allclose(same, spread(y.sum(1), 3).T)


def test_pytrees_dtypes_and_constants():
    tree = ft.vmap(
        lambda x: lax.psum({"a": x, "b": (x > 0, 1, np.float32(2))}, "i"), axis_name="i", out_axes=None
    )(X[:, 0])
    assert tree["a"] == X[:, 0].sum()
    assert tree["b"] == (3, 4, np.float32(8))
    assert tree["b"][0].dtype == np.int64
    assert tree["b"][2].dtype == np.float32
    integers = ft.vmap(
        lambda x: (lax.psum(x, "i"), lax.pmean(x, "i"), lax.pmax(x, "i")), axis_name="i", out_axes=None
    )
    total, mean, largest = integers(np.array([1, 2, 6], np.int32))
    assert (total, mean, largest) == (9, 3.0, 6)
    assert total.dtype == largest.dtype == np.int32
    assert ft.vmap(lambda x: lax.axis_index("i"), axis_name="i")(X).dtype == np.int32
    alone = ft.vmap(lambda: lax.psum(2.0, "i") * lax.axis_index("i"), axis_name="i", axis_size=3)
    np.testing.assert_array_equal(alone(), [0.0, 6.0, 12.0])
    empty = ft.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(np.ones((0, 2)))
    assert empty.shape == (0, 2)


# --- in jit, loops, branches, rules -------------------------------------------------------------------------


def centred(x):
    return fnp.sin(x - lax.pmean(x, "i"))


def whole_centred(x):
    return np.sin(x - x.mean(0))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, ft.checkpoint], ids=["plain", "jit", "checkpoint"])
def test_in_loops_and_branches(wrap):
    x = X[:, 0]
    step = wrap(centred)
    expected = whole_centred(whole_centred(whole_centred(x)))
    scanned = mapped(lambda x: lax.scan(lambda c, _: (step(c), c), x, None, length=3)[0])
    np.testing.assert_allclose(scanned(x), expected)
    np.testing.assert_allclose(ft.jit(scanned)(x), expected)
    np.testing.assert_allclose(mapped(lambda x: lax.fori_loop(0, 3, lambda i, c: step(c), x))(x), expected)
    counted = mapped(
        lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (step(c[0]), c[1] + 1), (x, 0))[0]
    )
    np.testing.assert_allclose(counted(x), expected)
    same = mapped(lambda x: lax.cond(True, step, fnp.sin, x))
    np.testing.assert_allclose(same(x), whole_centred(x))
    own = mapped(lambda x: lax.cond(x > 0.75, step, fnp.cos, x))
    np.testing.assert_allclose(own(x), np.where(x > 0.75, whole_centred(x), np.cos(x)))
    np.testing.assert_allclose(ft.jit(own)(x), own(x))
    loss = ft.grad(lambda x: fnp.sum(scanned(x)))
    inside = mapped(ft.grad(lambda x: lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0]))
    np.testing.assert_allclose(inside(x), loss(x), rtol=1e-12)
    check(scanned, x)


def test_lanes_of_a_while_loop_go_together():
    def f(x):
        return lax.while_loop(lambda c: c < 10.0, lambda c: c + lax.psum(c, "i"), x)

    x = np.array([1.0, 2.0, 3.0])
    now = x.copy()
    while (now < 10.0).any():  # all lanes take part in the sums, also those that are done
        now = np.where(now < 10.0, now + now.sum(), now)
    np.testing.assert_array_equal(mapped(f)(x), now)
    np.testing.assert_array_equal(ft.jit(mapped(f))(x), now)
    largest = mapped(lambda x: lax.while_loop(lambda c: lax.pmax(c, "i") < 100, lambda c: c * 2, x))
    np.testing.assert_array_equal(largest(x), 64 * x)
    check(mapped(f), x)
    with pytest.raises(errors.NoRuleError, match="differentiate outside vmap"):
        mapped(ft.grad(lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * c + lax.psum(c, "i"), x)))(
            x
        )
    gradient = ft.grad(lambda x: fnp.sum(mapped(f)(x) * x))(x)
    np.testing.assert_allclose(mapped(ft.grad(lambda x: f(x) * x))(x), gradient)

    # The number of iterations of each lane, which its own derivative follows.
    def body(c):
        return 2.0 * c + lax.stop_gradient(lax.psum(c, "i"))

    own = ft.grad(lambda x: lax.while_loop(lambda c: c < 10.0, body, x))
    now, slopes = x.copy(), np.ones(3)
    while (now < 10.0).any():
        slopes = np.where(now < 10.0, 2.0 * slopes, slopes)
        now = np.where(now < 10.0, 2.0 * now + now.sum(), now)
    np.testing.assert_array_equal(mapped(own)(x), slopes)

    def times(x, n):
        return lax.fori_loop(0, n, lambda i, c: c + lax.psum(c, "i"), x)

    shared = ft.jit(ft.vmap(times, (0, None), axis_name="i"))
    np.testing.assert_array_equal(shared(x, 2), x + 5 * x.sum())
    np.testing.assert_array_equal(ft.jit(mapped(times))(x, np.array([0, 1, 2])), [1.0, 8.0, 27.0])

    def numbered(x, first, last):
        return lax.fori_loop(first, last, lambda i, c: c + i * lax.psum(x, "i"), x)

    shared = ft.jit(ft.vmap(numbered, (0, None, None), axis_name="i"))
    np.testing.assert_array_equal(shared(x, 2, 5), x + 9 * x.sum())
    own_bounds = np.array([[2, 3], [1, 1], [1, 4]])
    np.testing.assert_array_equal(
        ft.jit(mapped(numbered))(x, *own_bounds.T), x + np.array([2, 0, 6]) * x.sum()
    )
    # A loop without a collective stops on its own for each lane.
    np.testing.assert_array_equal(
        mapped(lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: 2 * c, x) + 0 * lax.psum(x, "i"))(x),
        [16, 16, 12],
    )


def test_in_custom_rules():
    @ft.custom_vjp
    def squares(x):
        return lax.psum(x**2, "i")

    squares.defvjp(lambda x: (squares(x), x), lambda x, ct: (3.0 * lax.psum(ct, "i") * x,))

    @ft.custom_jvp
    def doubled(x):
        return lax.psum(x, "i")

    @doubled.defjvp
    def _(primals, tangents):
        return doubled(*primals), 2.0 * lax.psum(tangents[0], "i")

    x = X[:, 0]
    for form in (lambda f: f, ft.jit):
        np.testing.assert_allclose(mapped(form(squares))(x), spread((x**2).sum()))
        np.testing.assert_allclose(mapped(form(ft.grad(squares)))(x), 3.0 * N * x)
        np.testing.assert_allclose(form(ft.grad(lambda x: fnp.sum(mapped(squares)(x))))(x), 3.0 * N * x)
        np.testing.assert_allclose(mapped(form(ft.grad(doubled)))(x), np.full(N, 2.0 * N))
    np.testing.assert_allclose(mapped(lambda x: squares(2.0))(x), np.full(N, 4.0 * N))


def test_one_jitted_function_under_several_axes():
    total = ft.jit(lambda x: lax.psum(x, "i") * lax.axis_size("i"))
    for n in (3, 2):
        np.testing.assert_array_equal(mapped(total)(np.ones(n)), np.full(n, float(n * n)))
    twice = ft.vmap(mapped(total))(np.ones((2, 2)))
    np.testing.assert_array_equal(twice, np.full((2, 2), 4.0))
    crossed = mapped(ft.vmap(total))(np.arange(4.0).reshape(2, 2))
    np.testing.assert_array_equal(crossed, [[4.0, 8.0], [4.0, 8.0]])
    # Nothing is mapped in the jitted function but the axis itself.
    np.testing.assert_array_equal(
        mapped(lambda x: ft.jit(lambda y: y * lax.axis_index("i"))(2.0))(X[:3, 0]), [0, 2, 4]
    )
    with pytest.raises(errors.UnboundAxisError):
        total(1.0)


# --- errors -------------------------------------------------------------------------------------------------


def test_unbound_names():
    with pytest.raises(
        NameError, match=r"psum: the axis name 'k' is not bound here; bound are: 'j', 'i'\. Name"
    ) as e:
        ft.vmap(ft.vmap(lambda x: lax.psum(x, "k"), axis_name="j"), axis_name="i")(X)
    assert "test_collectives.py" in str(e.value)
    assert type(e.value) is errors.UnboundAxisError
    for f in (
        lambda: lax.axis_index("k"),
        lambda: lax.pmean(1.0, "k"),
        lambda: ft.jit(lambda: lax.axis_size("k"))(),
    ):
        with pytest.raises(errors.UnboundAxisError, match="no vmap or shard_map around it names its axes"):
            f()
    with pytest.raises(errors.UnboundAxisError):  # the name ends with the function
        mapped(lambda x: x)(X), lax.psum(1.0, "i")


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: lax.psum(x, ("i", "i")), "contains 'i' twice"),
        (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]), "each of the 4 examples once"),
        (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 2], [3]]), "one length"),
        (lambda x: lax.psum(x, 1), "axis"),
        (lambda x: lax.all_gather(x, 0), "must be a name"),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), "each source once"),
        (lambda x: lax.ppermute(x, "i", [(0, 4)]), "each target once, from 0 to 3"),
        (lambda x: lax.pshuffle(x, "i", [0, 1]), "a permutation of range"),
        (lambda x: lax.pbroadcast(x, "i", 4), "from 0 to 3"),
        (lambda x: lax.all_to_all(x, "i", 0, 0), "an element for each of the 4 examples"),
        (lambda x: lax.psum_scatter(x, "i", tiled=True), "cannot be divided among 4"),
    ],
)
def test_wrong_arguments(f, message):
    with pytest.raises(errors.FunctransError, match=message):
        mapped(f)(X)


def test_names_of_axes():
    for name in (3, ["i"]):
        with pytest.raises(errors.ArgumentError, match="axis_name must be a string or another hashable"):
            ft.vmap(lambda x: x, axis_name=name)
    key = object()
    np.testing.assert_array_equal(
        ft.vmap(lambda x: lax.psum(x, key), 0, 0, key, 3, spmd_axis_name="devices")(np.ones(3)),
        np.full(3, 3.0),
    )
