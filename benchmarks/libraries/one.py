"""Run one program in this process, on whatever ``jax`` is: ``python -m benchmarks.libraries.one NAME``.

It prints a line of JSON: the seconds of the import and of the first call (of the processor, since these are long, and
other processes disturb them), the least of later ones, and the numbers.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings


def measured(name: str, samples: int) -> dict[str, object]:
    """The times and the numbers of a program."""
    start = time.process_time()
    module = importlib.import_module(f"benchmarks.libraries.{name}_program")
    import jax

    jax.config.update("jax_enable_x64", True)
    imported = time.process_time() - start
    start = time.process_time()
    call, args = module.program()
    out = jax.block_until_ready(call(*args))
    cold = time.process_time() - start
    values = [float(v) for leaf in jax.tree.leaves(out) for v in jax.numpy.ravel(leaf).tolist()]
    warm = float("inf")
    for _ in range(samples):
        start = time.perf_counter()
        jax.block_until_ready(call(*args))
        warm = min(warm, time.perf_counter() - start)
    on = "functrans" if hasattr(jax, "__functrans__") else "jax"
    return {"on": on, "import": imported, "cold": cold, "warm": warm, "values": values}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10)))
