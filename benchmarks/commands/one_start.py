"""A process that imports one library and compiles two functions; prints milliseconds of processor time as JSON.

It imports nothing itself that a library under test could import.
"""

import importlib
import json
import sys
from time import process_time


def measure(name, function="cos"):
    """Milliseconds of each step, and how many modules the import loads; `function` makes programs differ."""
    start, before = process_time(), len(sys.modules)
    library = importlib.import_module(name)
    times = {"import": 1e3 * (process_time() - start), "modules": len(sys.modules) - before}
    if name not in ("functrans", "jax"):
        return times
    numpy, theirs = importlib.import_module("numpy"), importlib.import_module(f"{name}.numpy")
    x = numpy.ones((5, 6))
    for step, factor in (("first compile", 3.0), ("second compile", 5.0)):

        def f(x, factor=factor):
            return theirs.sum(getattr(theirs, function)(x @ x.T) * factor) - theirs.sum(x) ** factor

        start = process_time()
        numpy.asarray(library.jit(library.grad(f))(x))
        times[step] = 1e3 * (process_time() - start)
    return times


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
