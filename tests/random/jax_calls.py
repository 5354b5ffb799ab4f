"""What is compared with JAX: calls of samplers, whose results `record_jax.py` stores in ``jax_vectors.npz``.

Each call is a text, evaluated with `random` (the module of either library), `key` and `np`. A number is the largest
distance, in units in the last place, of results that go through a transcendental function; the others are equal.
"""

import numpy as np

SEED = 12345

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
RANGES = ((0, 100), (-5, 5), (3, 3), (5, 2), (0, 2**40), (-(2**63), 2**63 - 1), (0, 256), (-(2**31), 2**31))


def _calls():
    yield "random.key_data(random.split(key, 5))", 0
    yield "random.key_data(random.split(key, (2, 3)))", 0
    yield "random.key_data(random.fold_in(key, 77))", 0
    yield "random.key_data(random.fold_in(key, 2**32 - 1))", 0
    yield "random.PRNGKey(2**33 + 5)", 0
    yield "random.split(random.PRNGKey(7))", 0
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        for shape in ("()", "(0,)", "(7, 5)"):
            yield f"random.bits(key, {shape}, '{dtype}')", 0
    for dtype in FLOATS:
        for shape in ("()", "(2, 0)", "(40,)", "(2, 1, 3)"):
            yield f"random.uniform(key, {shape}, '{dtype}')", 0
            yield f"random.normal(key, {shape}, '{dtype}')", 32
        yield f"random.uniform(key, (50,), '{dtype}', -2.0, 3.0)", 0
        yield f"random.uniform(key, (2, 3), '{dtype}', np.arange(3.0), 5.0)", 0
        yield f"random.truncated_normal(key, -1.0, 2.5, (50,), '{dtype}')", 32
        yield f"random.truncated_normal(key, np.arange(3.0), 4.0, None, '{dtype}')", 32
    for dtype in INTEGERS:
        for low, high in RANGES:
            yield f"random.randint(key, (12,), {low}, {high}, '{dtype}')", 0
    yield "random.randint(key, (2, 3), np.arange(3), 10)", 0
    yield "random.bernoulli(key, 0.3, (50,))", 0
    yield "random.bernoulli(key, np.linspace(0, 1, 7))", 0
    yield "random.bernoulli(key, np.float32(0.3), (50,), 'high')", 0
    for dtype in ("int64", "float32"):
        yield f"random.rademacher(key, (20,), '{dtype}')", 0
    yield from _inverted()
    yield from _chosen()
    yield from _others()


def _inverted():
    for dtype in FLOATS:
        last = f"'{dtype}'"
        for name in ("exponential", "laplace", "logistic", "cauchy"):
            yield f"random.{name}(key, (40,), {last})", 4096
        for mode in ("low", "high", "highest"):
            yield f"random.gumbel(key, (40,), {last}, '{mode}')", 4096
        yield f"random.pareto(key, 2.5, (40,), {last})", 64
        yield f"random.rayleigh(key, np.arange(1, 4, dtype={last}), None, {last})", 16
        yield f"random.triangular(key, 0.0, 1.0, 4.0, (40,), {last})", 16
        yield f"random.weibull_min(key, 2.0, 3.0, (40,), {last})", 128
    yield "random.geometric(key, 0.2, (40,))", 0
    yield "random.geometric(key, np.float32(0.01), (40,), 'int32')", 0


def _chosen():
    table, weights = "np.arange(12).reshape(3, 4)", "np.array([0.1, 0.2, 0.3, 0.4, 0.0])"
    yield "random.permutation(key, 200)", 0
    yield f"random.permutation(key, {table})", 0
    yield f"random.permutation(key, {table}, 1)", 0
    yield f"random.permutation(key, {table}, 1, True)", 0
    yield "random.choice(key, 10)", 0
    yield "random.choice(key, 10, (5,))", 0
    yield "random.choice(key, 10, (2, 3), False)", 0
    yield f"random.choice(key, {table}, (2, 2), True, axis=1)", 0
    yield f"random.choice(key, {table}, (2,), False, axis=1)", 0
    yield f"random.choice(key, np.arange(5.0), (50,), True, {weights})", 0
    yield f"random.choice(key, 5, (3,), False, {weights})", 0
    yield f"random.categorical(key, np.log(1e-3 + {weights}), shape=(50,))", 0
    yield "random.categorical(key, np.arange(12.0).reshape(3, 4), axis=0)", 0
    yield "random.categorical(key, np.arange(12.0).reshape(3, 4), shape=(5, 3))", 0
    yield "random.categorical(key, np.arange(4, dtype='float32'), shape=(50,), mode='high')", 0


def _others():
    for dtype in FLOATS:
        last = f"'{dtype}'"
        yield f"random.lognormal(key, 0.5, (40,), {last})", 64
        yield f"random.maxwell(key, (10,), {last})", 64
        yield f"random.double_sided_maxwell(key, 1.0, 2.0, (10,), {last})", 256
        yield f"random.gamma(key, 2.5, (40,), {last})", 256
        yield f"random.gamma(key, 0.3, (40,), {last})", 256
        yield f"random.loggamma(key, 0.01, (40,), {last})", 512
        yield f"random.binomial(key, 10, 0.3, (40,), {last})", 0
    yield "random.multivariate_normal(key, np.zeros(3), np.eye(3) + 0.5, (5,))", 4096
    yield "random.orthogonal(key, 3, (2,), m=4)", 4096
    yield "random.beta(key, 0.5, 2.0, (40,))", 256
    yield "random.dirichlet(key, np.array([0.5, 1.0, 3.0]), (10,))", 256
    yield "random.chisquare(key, 3.0, (40,))", 256
    yield "random.t(key, 3.0, (40,))", 256
    yield "random.f(key, 3.0, 5.0, (40,))", 256
    yield "random.generalized_normal(key, 1.5, (40,))", 256
    yield "random.ball(key, 3, 2, (10,))", 256
    yield "random.wald(key, 2.0, (40,))", 256
    yield "random.binomial(key, 100, np.array([0.3, 0.7]), (40, 2))", 0
    yield "random.binomial(key, np.array([5, 2000]), 0.4, (40, 2))", 0
    yield "random.multinomial(key, 100, np.array([0.2, 0.3, 0.5]))", 0
    yield "random.poisson(key, 4.0, (40,))", 0
    yield "random.poisson(key, np.array([0.5, 20.0, 300.0, 0.0]), (20, 4), 'int32')", 0


CALLS = dict(_calls())


def distance(got, expected):
    """The largest distance in units in the last place."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if not got.size:
        return 0
    if got.dtype.kind not in "fc":
        return 0 if np.array_equal(got, expected) else np.inf
    size = np.abs(expected)
    return np.max(np.where(got == expected, 0, np.abs(got - expected) / np.spacing(size)))
