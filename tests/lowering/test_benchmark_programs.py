"""The programs of the benchmarks, at their real sizes, are the same with and without the passes over large arrays."""

import numpy as np
import pytest
from benchmark_modules import benchmark_module

import functrans as ft

#: Thousands of small arrays take long to compile, and are none of these passes' business.
PROGRAMS = {
    name: entry
    for name, entry in benchmark_module("commands.one_memory").programs().items()
    if "000 arrays" not in name
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name):
    _, program = PROGRAMS[name]
    f, _, _ = benchmark_module("commands.one_memory").functions(program)
    arguments = benchmark_module("backends").functrans().arrays(program.arguments())
    results = []
    for threads, without in ((1, {"row_blocks", "strips", "teams"}), (1, set()), (2, set())):
        with ft.config.patch(num_threads=threads, without=without):
            results.append(ft.tree_util.tree_leaves(ft.jit(lambda *x: f(*x))(*arguments)))
    for found in results[1:]:
        for x, y in zip(found, results[0], strict=True):
            scale = np.abs(y).max(initial=0) if x.dtype.kind in "fc" else 0
            tolerance = 1e-3 if x.dtype.itemsize == 4 else 1e-8
            np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * scale)
