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
