"""Run one program in this process, on whatever ``jax`` is: ``python -m benchmarks.libraries.one NAME``.

It prints a line of JSON: the seconds of the start (import, and a first compiled function) and of the program's first
call, both of the processor, since these are long, and other processes disturb them; the least of later calls; and
the numbers.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings

#: Calls go on for this many seconds, so that short ones are measured often.
SECONDS = 0.5


def measured(name: str, samples: int) -> dict[str, object]:
    """The times and the numbers of a program."""
    start = time.process_time()
    module = importlib.import_module(f"benchmarks.libraries.{name}_program")
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.jit(lambda x: x + 1.0)(jax.numpy.ones(2)).block_until_ready()
    imported = time.process_time() - start
    start = time.process_time()
    call, args = module.program()
    out = jax.block_until_ready(call(*args))
    cold = time.process_time() - start
    leaves = [jax.numpy.ravel(leaf).tolist() for leaf in jax.tree.leaves(out)]
    times: list[float] = []
    while len(times) < samples or sum(times) < SECONDS:
        start = time.perf_counter()
        jax.block_until_ready(call(*args))
        times.append(time.perf_counter() - start)
    on = "functrans" if hasattr(jax, "__functrans__") else "jax"
    return {"on": on, "start": imported, "cold": cold, "warm": min(times), "values": leaves}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10)))
