"""An Adam step on donated states: beside the same step with new ones, JAX's, and Numba written by hand in place."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
from numba import njit

from .. import backends
from ..measure import alternate, disagreement, number, ratio, table
from ..workloads.handwritten import fast

#: Numbers in each state: 40 MB.
SIZE = 5_000_000


def adam(state: Any, gradient: Any, t: Any, *, np: Any) -> Any:
    """One step: parameters, and the running means of the gradient and of its square."""
    p, mean, square = state
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient * gradient
    return p - 1e-3 * (mean / (1.0 - 0.9**t)) / (np.sqrt(square / (1.0 - 0.999**t)) + 1e-8), mean, square


def adam_in_place(p, mean, square, gradient, t):
    c, d = 1.0 - 0.9**t, 1.0 - 0.999**t
    for i in range(p.size):
        g = gradient[i]
        mean[i] = 0.9 * mean[i] + 0.1 * g
        square[i] = 0.999 * square[i] + 0.001 * g * g
        p[i] -= 1e-3 * (mean[i] / c) / (math.sqrt(square[i] / d) + 1e-8)


#: With the arithmetic of functrans, and with all of fastmath, which multiplies by reciprocals of the corrections.
exact, quick = njit(fastmath={"contract"}, error_model="numpy")(adam_in_place), fast(adam_in_place)


class _Stepper:
    """A contestant and its state."""

    def __init__(self, step: Callable[..., Any], state: Any, gradient: Any, wait: Callable[[Any], Any]):
        self.step, self.state, self.gradient, self.wait = step, state, gradient, wait

    def __call__(self) -> Any:
        self.state = self.wait(self.step(self.state, self.gradient, 3.0))
        return self.state


def _by_hand(step: Callable[..., Any], state: Any, gradient: Any, t: float) -> Any:
    step(*state, gradient, t)
    return state


def _peak(call: Callable[[], Any]) -> float:
    """The most bytes that Python's allocators hold in addition while a call runs."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def report(repeats: int) -> bool:
    """Print the table; whether results differ, or the step misses its limits of memory and time."""
    rng = numpy.random.default_rng(0)
    start = [rng.normal(size=SIZE), rng.normal(size=SIZE), rng.random(SIZE)]
    gradient = rng.normal(size=SIZE)

    calls: dict[str, _Stepper] = {}
    for backend in (backends.functrans(), backends.jax()):
        for donated in (True, False):
            options = {"donate_argnums": 0} if donated else {}
            step = backend.api.jit(backend.bind(adam), **options)
            state = tuple(backend.asarray(x.copy()) for x in start)
            name = f"{backend.name}, {'donated' if donated else 'new states'}"
            calls[name] = _Stepper(step, state, backend.asarray(gradient), backend.wait)
    for name, step in (("Numba in place", exact), ("Numba in place, fastmath", quick)):
        calls[name] = _Stepper(partial(_by_hand, step), [x.copy() for x in start], gradient, lambda x: x)

    results = {name: [numpy.array(x) for x in call()] for name, call in calls.items()}
    reference = results["Numba in place"]
    faults = [name for name, r in results.items() if not disagreement(r, reference) < 1e-10]
    del results, reference
    memory = {name: _peak(call) for name, call in calls.items() if "JAX" not in name}
    times = alternate(calls, repeats)
    hand = times["Numba in place"]
    rows = [
        [name, number(1e3 * t), ratio(t, hand), number(memory[name] / 1e6) if name in memory else "-"]
        for name, t in times.items()
    ]
    print(
        "Median milliseconds of an Adam step on three states of 40 MB, and the megabytes that it needs more.\n"
    )
    print(table(("Adam step", "ms", "ms / Numba in place", "MB more"), rows))
    for name in faults:
        print(f"{name}: differs from Numba")
    own = "functrans, donated"
    return bool(faults) or memory[own] > 1e6 or times[own] > 1.15 * hand
