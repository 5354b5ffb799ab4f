"""Keys as values: what moves data moves keys, nothing computes with them, all transformations take them."""

import copy
import pickle

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax, random

KEY = random.key(0)
KEYS = random.split(KEY, 4)


def words(keys):
    return np.asarray(random.key_data(keys))


WORDS = words(KEYS)


def test_a_key_prints_as_its_number():
    assert repr(random.key(7)) == "Array(7, dtype=key<fry>)"
    assert str(ft.make_jaxpr(lambda k: k[0])(KEYS)).startswith("lambda a:key<fry>[4].")


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (np.int32(-1), [0, 2**32 - 1]),
        (np.int8(-3), [0, 2**32 - 3]),
        (np.uint8(3), [0, 3]),
        (np.int64(-1), [2**32 - 1, 2**32 - 1]),
        (np.int64(2**40 + 3), [256, 3]),
        (-1, [2**32 - 1, 2**32 - 1]),
    ],
)
def test_the_words_of_a_seed(seed, expected):
    """JAX's: of fewer than 64 bits the high word is 0."""
    assert words(random.key(seed)).tolist() == words(ft.jit(random.key)(seed)).tolist() == expected


MOVES = {
    "index": (lambda k: k[1], lambda w: w[1]),
    "slice": (lambda k: k[1:3], lambda w: w[1:3]),
    "reverse": (lambda k: k[::-1], lambda w: w[::-1]),
    "gather": (lambda k: k[np.array([0, 2, 2])], lambda w: w[[0, 2, 2]]),
    "reshape": (lambda k: k.reshape(2, 2).T, lambda w: w.reshape(2, 2, 2).transpose(1, 0, 2)),
    "stack": (lambda k: fnp.stack([k, k]), lambda w: np.stack([w, w])),
    "concatenate": (lambda k: fnp.concatenate([k, k[:1]]), lambda w: np.concatenate([w, w[:1]])),
    "list": (lambda k: fnp.array([k[0], k[3]]), lambda w: w[[0, 3]]),
    "broadcast": (lambda k: fnp.broadcast_to(k, (2, 4)), lambda w: np.broadcast_to(w, (2, 4, 2))),
    "where": (lambda k: fnp.where(np.arange(4) > 1, k, k[0]), lambda w: w[[0, 0, 2, 3]]),
    "set": (lambda k: k.at[1].set(k[0]), lambda w: w[[0, 0, 2, 3]]),
    "fill": (lambda k: k.at[9].get(mode="fill"), lambda w: 0 * w[0]),
    "roll": (lambda k: fnp.roll(k, 1), lambda w: np.roll(w, 1, 0)),
    "dynamic slice": (lambda k: lax.dynamic_slice(k, (1,), (2,)), lambda w: w[1:3]),
    "cond": (lambda k: lax.cond(True, lambda: k[0], lambda: k[1]), lambda w: w[0]),
    "permutation": (lambda k: fnp.sort(random.permutation(KEY, k)), lambda w: w[[1, 0, 3, 2]]),
}


def test_what_moves_data_moves_keys():
    both = ft.jit(lambda k: [move(k) for move, _ in MOVES.values()])(KEYS)
    for name, (move, expected), compiled in zip(MOVES, MOVES.values(), both):
        if name != "permutation":
            np.testing.assert_array_equal(words(move(KEYS)), expected(WORDS), name)
            np.testing.assert_array_equal(words(compiled), expected(WORDS), name)
        assert compiled.dtype == KEY.dtype


def test_keys_compare_equal():
    same = [True, False, True, False]
    other = fnp.where(np.array(same), KEYS, KEYS[::-1])
    for equal in (lambda a, b: a == b, ft.jit(lambda a, b: a == b)):
        np.testing.assert_array_equal(equal(KEYS, other), same)


@pytest.mark.parametrize(
    "compute",
    [
        lambda k: k + 1,
        lambda k: 2.0 * k,
        lambda k: -k,
        lambda k: k < k,
        lambda k: k @ k,
        lambda k: k.sum(),
        lambda k: k.max(),
        lambda k: fnp.astype(k, float),
        fnp.sin,
        fnp.cumsum,
        fnp.mean,
        lambda k: fnp.concatenate([k, np.zeros(1)]),
        lambda k: fnp.where(True, k, 0.0),
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, ft.make_jaxpr], ids=["eager", "traced"])
def test_nothing_computes_with_keys(compute, transform):
    with pytest.raises(errors.DtypeError, match=r"keys of functrans\.random, which are not numbers"):
        transform(compute)(KEYS)


def test_a_key_has_no_derivative():
    with pytest.raises(errors.GradientError, match="key<fry>"):
        ft.grad(random.normal)(KEY)
    assert ft.grad(lambda x, k: x * random.normal(k))(2.0, KEY) == random.normal(KEY)
    assert ft.jvp(lambda x: x * random.normal(KEY), (2.0,), (3.0,))[1] == 3.0 * random.normal(KEY)


def test_copies_and_pytrees():
    for other in (copy.copy(KEYS), copy.deepcopy(KEYS), pickle.loads(pickle.dumps(KEYS))):
        np.testing.assert_array_equal(words(other), WORDS)
        assert random.normal(other[2]) == random.normal(KEYS[2])
    doubled = ft.tree.map(lambda k: fnp.stack([k, k]), {"a": KEYS[0], "b": (KEYS,)})
    assert doubled["b"][0].shape == (2, 4)


def test_shapes_of_keys_are_known_without_keys():
    key = ft.ShapeDtypeStruct((), random.key_dtype())
    assert ft.eval_shape(random.normal, key).shape == ()
    assert ft.eval_shape(lambda k: random.split(k, 3), key).dtype == KEY.dtype


# --- transformations --------------------------------------------------------------------------------------------

DRAWS = [
    lambda k: random.normal(k, (3,)),
    lambda k: random.randint(k, (2, 2), 0, 10),
    lambda k: random.split(k, 3)[2],
    lambda k: random.gamma(k, np.array([0.5, 2.0])),
    lambda k: random.poisson(k, np.array([2.0, 30.0])),
    lambda k: random.permutation(k, 5),
]


@pytest.mark.wide(2)
@pytest.mark.parametrize("draw", DRAWS)
def test_vmap_draws_what_a_loop_draws(draw):
    mapped = ft.vmap(draw)(KEYS)
    for i, key in enumerate(KEYS):
        one, expected = np.asarray(mapped)[i], np.asarray(draw(key))
        if expected.dtype.kind == "f":  # loops of other lengths may round otherwise
            np.testing.assert_array_max_ulp(one, expected, 4)
        else:
            np.testing.assert_array_equal(one, expected)


def test_vmap_over_parameters():
    rates = np.array([0.5, 2.0, 7.0])
    mapped = ft.vmap(lambda a: random.gamma(KEY, a, (2,)))(rates)
    np.testing.assert_array_max_ulp(
        np.asarray(mapped), np.array([random.gamma(KEY, a, (2,)) for a in rates]), 4
    )
    both = ft.vmap(lambda k, a: random.normal(k) * a)(KEYS[:3], rates)
    np.testing.assert_array_equal(both, [random.normal(k) * a for k, a in zip(KEYS, rates)])


def test_loops_carry_keys_and_read_them():
    def step(key, x):
        key, own = random.split(key)
        return key, x + random.normal(own)

    key, expected = KEY, []
    for x in np.arange(3.0):
        key, y = step(key, x)
        expected.append(y)
    last, drawn = lax.scan(step, KEY, np.arange(3.0))
    np.testing.assert_array_equal(drawn, expected)
    np.testing.assert_array_equal(words(last), words(key))
    _, read = lax.scan(lambda c, k: (c, random.uniform(k)), 0.0, KEYS)
    np.testing.assert_array_equal(read, [random.uniform(k) for k in KEYS])
    folded = lax.fori_loop(0, 3, lambda i, k: random.fold_in(k, i), KEY)
    key = KEY
    for i in range(3):
        key = random.fold_in(key, i)
    np.testing.assert_array_equal(words(folded), words(key))
    _, found = lax.while_loop(
        lambda s: s[1] < 0.9, lambda s: (random.split(s[0])[0], random.uniform(s[0])), (KEY, 0.0)
    )
    assert found >= 0.9


def test_gradients_through_loops_of_draws():
    def total(scale):
        return lax.scan(lambda c, k: (c + scale * random.normal(k), None), 0.0, KEYS)[0]

    expected = sum(random.normal(k) for k in KEYS)
    for derivative in (ft.grad(total), ft.jit(ft.grad(ft.checkpoint(total))), ft.jacfwd(total)):
        np.testing.assert_allclose(derivative(2.0), expected, rtol=1e-14)


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [3, 1.5, "seed", None, np.zeros(2), np.zeros(3, np.uint32), [0, 7]])
def test_what_is_no_key(key):
    with pytest.raises(
        errors.ArgumentError,
        match=r"random\.normal: key must be a key from functrans\.random\.key\(seed\), got",
    ):
        random.normal(key)


def test_one_key_is_not_many():
    for keys in (KEYS, random.key_data(KEYS)):
        with pytest.raises(errors.ShapeError, match=r"an array of keys of shape \(4,\).*keys\[0\].*vmap"):
            random.normal(keys)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.key(2**64), errors.IntegerRangeError, "does not fit in 64 bits"),
        (lambda: random.key(1.5), errors.DtypeError, "seed must be an integer"),
        (lambda: random.key(np.arange(3)), errors.ShapeError, "vmap"),
        (lambda: random.key(0, impl="rbg"), errors.ArgumentValueError, "'rbg' does not exist"),
        (lambda: random.fold_in(KEY, 2**32), errors.IntegerRangeError, "uint32"),
        (lambda: random.wrap_key_data(np.zeros(3)), errors.ArgumentError, "uint32"),
        (lambda: random.normal(KEY, 3.5), errors.ArgumentError, "shape"),
        (lambda: random.normal(KEY, (-1,)), errors.ArgumentValueError, "negative"),
        (lambda: random.normal(KEY, (), int), errors.DtypeError, "float or complex"),
        (lambda: random.bits(KEY, (), float), errors.DtypeError, "unsigned"),
        (lambda: random.randint(KEY, (), 0, 9, float), errors.DtypeError, "an integer"),
        (lambda: random.uniform(KEY, (2,), minval=np.zeros(3)), errors.ShapeError, r"minval \(3,\)"),
        (lambda: random.bernoulli(KEY, -0.1), errors.ArgumentValueError, "p must be at least 0, got -0.1"),
        (lambda: random.binomial(KEY, 5, 1.5), errors.ArgumentValueError, "p must be at most 1"),
        (lambda: random.geometric(KEY, 0.0), errors.ArgumentValueError, "p must be greater than 0"),
        (lambda: random.poisson(KEY, -1.0), errors.ArgumentValueError, "lam"),
        (lambda: random.gamma(KEY, [1.0, -2.0]), errors.ArgumentValueError, "a must be at least 0, got -2"),
        (lambda: random.gamma(KEY, 1j), errors.DtypeError, "a must be real"),
        (
            lambda: random.choice(KEY, 3, (5,), False),
            errors.ArgumentValueError,
            "5 draws without replacement",
        ),
        (lambda: random.choice(KEY, 3, p=[0.5, 0.5]), errors.ShapeError, r"\(3,\)"),
        (lambda: random.choice(KEY, 0), errors.ArgumentValueError, "elements"),
        (lambda: random.permutation(KEY, 1.5), errors.ArgumentError, "x must be an integer"),
        (lambda: random.permutation(KEY, np.ones(3), 1), errors.AxisError, "axis 1"),
        (lambda: random.gumbel(KEY, mode="fine"), errors.ArgumentValueError, "'low' or 'high' or 'highest'"),
        (lambda: random.categorical(KEY, np.zeros((2, 3)), shape=(4,)), errors.ShapeError, "must end in"),
        (lambda: random.dirichlet(KEY, 1.0), errors.ShapeError, "at least one axis"),
        (
            lambda: random.multivariate_normal(KEY, np.zeros(2), np.eye(3)),
            errors.ShapeError,
            r"\(\.\.\., n, n\)",
        ),
        (
            lambda: ft.jit(lambda n: random.permutation(KEY, n))(3),
            errors.TracerIntegerConversionError,
            "static",
        ),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_both_forms_of_keys_draw_the_same():
    raw = random.PRNGKey(3)
    assert random.normal(raw) == random.normal(random.key(3))
    np.testing.assert_array_equal(random.split(raw), words(random.split(random.key(3))))
    np.testing.assert_array_equal(words(random.wrap_key_data(raw)), raw)
