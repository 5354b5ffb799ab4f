"""The work for large programs of `benchmarks sizes` grows as they do: functions called, statements, bytes."""

import math
import sys
import threading
from pathlib import Path

import pytest

import functrans as ft

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.workloads.sizes import FAMILIES

#: The power with which work grows at most.
BOUND = 1.1
#: Less memory than this, in bytes, is not compared.
LITTLE = 1 << 16
#: Two sizes of each family, and the bounds that are larger: in nests, each level looks at what is inside, and each loop
#: of two steps doubles the residuals.
CASES = [
    ("elementwise operations, gradient", (600, 1_800), {}),
    ("mixed operations, gradient", (200, 600), {}),
    ("branches, gradient", (100, 300), {}),
    ("elements written, gradient", (300, 900), {}),
    ("body of a scan, gradient", (300, 900), {}),
    ("nested cond, gradient", (6, 12), {"trace": 1.4, "lowering": 1.6, "compile": 1.4, "statements": 1.2}),
    ("nested scan, gradient", (6, 12), {"trace": 1.2, "compile": 1.4}),
    ("branch in a loop, Hessian", (4, 8), {"trace": 1.4, "lowering": 1.5, "compile": 1.7, "memory": 4.2}),
    ("leaves, gradient", (300, 900), {}),
    ("an array, value and gradient", (10**4, 10**6), {}),
    ("lanes of a while loop", (10**3, 10**5), {}),
]


def functions_called(f):
    """The result of `f`, and how many functions of Python and of C it calls, also in the thread that compiles."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        result = f()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return result, count


def work(family, size):
    """What each stage does, the statements of the kernels, and the bytes that a call takes."""
    ft.clear_caches()
    f, arguments = family.make(size)
    done = {}
    lowered, done["trace"] = functions_called(lambda: ft.jit(f).trace(*arguments).lower())
    _, done["lowering"] = functions_called(lowered.drawn)
    compiled, done["compile"] = functions_called(lowered.compile)
    done["statements"] = lowered.as_text("loops").count("\n")
    memory = compiled.memory_analysis()
    done["code"] = memory.generated_code_size_in_bytes
    taken = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    done["memory"] = max(taken, LITTLE)
    return done


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes", "larger"), CASES, ids=[name for name, _, _ in CASES])
def test_work_grows_as_the_program(name, sizes, larger):
    (family,) = [family for family in FAMILIES if family.name == name]
    with ft.config.patch(num_threads=1, verify=False, checked=False):
        work(family, family.sizes[0])  # what the first programs load
        small, large = (work(family, size) for size in sizes)
    powers = {k: math.log(large[k] / small[k]) / math.log(sizes[1] / sizes[0]) for k in small}
    beyond = {k: round(p, 2) for k, p in powers.items() if p > larger.get(k, BOUND)}
    assert beyond == {}, "stages, and the powers with which their work grows"
