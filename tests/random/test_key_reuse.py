"""``config.debug_key_reuse``: the second use of a key raises, wherever it runs."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax, random
from functrans.errors import KeyReuseError


def twice(key):
    return random.normal(key) + random.uniform(key)


def captured():
    key = random.key(0)
    f = ft.jit(lambda x: x * random.normal(key))
    return f(1.0) + f(1.0)


def scanned():
    key = random.key(0)
    return lax.scan(lambda c, x: (c + random.normal(key), None), 0.0, np.arange(3.0))


REUSES = {
    "eager": lambda: twice(random.key(0)),
    "split": lambda: [(random.split(k), random.normal(k)) for k in [random.key(0)]],
    "jit": lambda: ft.jit(twice)(random.key(0)),
    "two calls": lambda: [ft.jit(random.normal)(k) + ft.jit(random.normal)(k) for k in [random.key(0)]],
    "captured": captured,
    "scan": scanned,
    "carry": lambda: lax.fori_loop(
        0, 2, lambda i, c: (c[0], c[1] + random.normal(c[0])), (random.key(0), 0.0)
    ),
    "while": lambda: [
        ft.jit(lambda k: lax.while_loop(lambda c: c < 5, lambda c: c + 1 + 0 * random.normal(k), 0.0))(
            random.key(0)
        )
    ],
    "branch": lambda: [
        lax.cond(True, random.normal, random.uniform, k) + random.normal(k) for k in [random.key(0)]
    ],
    "vmap": lambda: ft.vmap(twice)(random.split(random.key(0), 2)),
    "equal lanes": lambda: [
        ft.vmap(random.normal)(k[np.array([0, 0])]) for k in [random.split(random.key(0))]
    ],
    "element": lambda: [random.normal(k[0]) + random.normal(k[0]) for k in [random.split(random.key(0))]],
    "grad": lambda: ft.grad(lambda x: x * twice(random.key(0)))(1.0),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", REUSES)
def test_second_uses_raise(name):
    REUSES[name]()
    with ft.debug_key_reuse(), pytest.raises(KeyReuseError, match=r"was used before.*random\.split"):
        REUSES[name]()
    REUSES[name]()


def test_a_key_that_was_made_before_has_one_use_too():
    key = random.key(3)
    with ft.debug_key_reuse():
        random.normal(key)
        with pytest.raises(KeyReuseError, match="used before"):
            random.normal(key)


def _chain(key, n):
    total = 0.0
    for i in range(n):
        key, own = random.split(key)
        total += random.normal(own) * i
    return total


USES = {
    "split": lambda: _chain(random.key(0), 3),
    "jit": lambda: ft.jit(lambda k: _chain(k, 3))(random.key(0)),
    "made again": lambda: [random.normal(random.key(0)) for _ in range(2)],
    "clone": lambda: [random.normal(random.clone(k)) + random.normal(k) for k in [random.key(0)]],
    "fold_in": lambda: [[random.normal(random.fold_in(k, i)) for i in range(2)] for k in [random.key(0)]],
    "scan": lambda: lax.scan(lambda c, k: (c, random.normal(k)), 0.0, random.split(random.key(0), 3)),
    "carry": lambda: lax.scan(
        lambda k, _: (random.split(k)[0], random.normal(random.fold_in(k, 1))), random.key(0), None, length=3
    ),
    "cond": lambda: lax.cond(True, random.normal, random.uniform, random.key(0)),
    "vmap": lambda: ft.vmap(random.normal)(random.split(random.key(0), 3)),
    "grad": lambda: ft.jit(ft.grad(lambda x: x * random.normal(random.key(0))))(1.0),
    "checkpoint": lambda: ft.jit(ft.grad(ft.checkpoint(lambda x: x**2 * random.normal(random.key(0)))))(1.0),
    "raw": lambda: twice(random.PRNGKey(0)),
    "look": lambda: [(random.key_data(k), k == k, random.normal(k)) for k in [random.key(0)]],
}


@pytest.mark.wide(3)
@pytest.mark.parametrize("name", USES)
def test_other_uses_do_not(name):
    with ft.debug_key_reuse():
        for _ in range(2):
            USES[name]()


def test_the_error_names_both_lines():
    with ft.debug_key_reuse():
        key = random.key(5)
        random.normal(key)  # the first
        with pytest.raises(KeyReuseError, match=r"random\.gamma: the key 5") as caught:
            random.gamma(key, 1.0)
    assert "first used at" in str(caught.value)
    assert "test_key_reuse.py" in str(caught.value)
