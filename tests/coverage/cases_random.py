"""functrans.random, with one key: the oracle is what JAX drew (tests/random has many more calls)."""

import sys
from pathlib import Path

import numpy as np
from coverage_table import Call, Entry

from functrans import random

sys.path.insert(0, str(Path(__file__).parents[1] / "random"))

from jax_calls import CALLS, SEED

RECORDED = np.load(Path(__file__).parents[1] / "random" / "jax_vectors.npz")
KEY = random.key(SEED)


#: Those that compile loops: tests/random draws from them in quick tests.
LOOPS = [
    "ball", "beta", "binomial", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "multinomial",
    "poisson", "t", "wald",
]  # fmt: skip


class Arguments:
    """Stands for the module: a call gives its arguments."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: (name, args, kwargs)


def entry(place):
    """The entry for a recorded call."""
    name, args, kwargs = eval(list(CALLS)[place], {"random": Arguments(), "key": KEY, "np": np})
    return Entry(
        name,
        Call(*args, **kwargs),
        oracle=lambda *args, **kwargs: RECORDED[str(place)],
        differentiable=False,
        skip={"numpy": "NumPy has generators instead"},
        slow=name in LOOPS,
    )


def by_name():
    """The last call in double precision of each sampler, or the last one."""
    calls = [c.replace(" ", "") for c in CALLS]
    names = {c.partition("(")[0] for c in calls if c.count("random.") == 1 and "PRNGKey" not in c}
    for name in sorted(names):
        own = [i for i, c in enumerate(calls) if c.startswith(f"{name}(") and c.count("random.") == 1]
        double = [i for i in own if "float32" not in calls[i] and ",0)" not in calls[i]]
        yield (double or own)[-1]


def data(f, *args, **kwargs):
    """The bits of the keys that a function makes."""
    return random.key_data(f(*args, **kwargs))


def text(f, *args, **kwargs):
    """What a function returns, as text."""
    return str(f(*args, **kwargs))


RAW = np.array([0, SEED], np.uint32)
SPLIT = RECORDED[str(list(CALLS).index("random.key_data(random.split(key, 5))"))]
FOLDED = RECORDED[str(list(CALLS).index("random.key_data(random.fold_in(key, 77))"))]
OF_KEYS = {"differentiable": False, "skip": {"numpy": "NumPy has generators instead"}}

TABLES = {
    "functrans.random": [
        Entry("key", Call(SEED), oracle=lambda *args: RAW, through=data, **OF_KEYS),
        Entry("PRNGKey", Call(SEED), oracle=lambda *args: RAW, **OF_KEYS),
        Entry("split", Call(KEY, 5), oracle=lambda *args: SPLIT, through=data, **OF_KEYS),
        Entry("fold_in", Call(KEY, 77), oracle=lambda *args: FOLDED, through=data, **OF_KEYS),
        Entry("clone", Call(KEY), oracle=lambda *args: RAW, through=data, **OF_KEYS),
        Entry("key_data", Call(KEY), oracle=lambda *args: RAW, **OF_KEYS),
        Entry("wrap_key_data", Call(RAW), oracle=lambda *args: RAW, through=data, **OF_KEYS),
        Entry("key_impl", Call(KEY), oracle=lambda *args: "threefry2x32", through=text, **OF_KEYS),
        Entry("key_dtype", Call(None), oracle=lambda *args: str(KEY.dtype), through=text, **OF_KEYS),
        *map(entry, by_name()),
    ]
}
