"""The calls whose results in JAX are recorded: expressions of `image` and `arrays()`."""

import itertools

import numpy as np

METHODS = ("nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area")
SHAPES = ("(3, 9)", "(11, 4)", "(5, 6)", "(1, 13)")
RESIZED = [
    f"image.resize(x, {shape}, {method!r}, {antialias})"
    for shape, method, antialias in itertools.product(SHAPES, METHODS, (True, False))
]
WARPS = ("a([1.0, 1.0]), a([0.0, 0.0])", "a([0.5, 2.0]), a([1.0, -3.0])", "a([1.7, 0.3]), a([-2.2, 4.0])")
SCALED = [
    f"image.scale_and_translate(y, (8, 2, 5), (0, 2), {warp}, {method!r}, {antialias})"
    for warp, method, antialias in itertools.product(WARPS, METHODS[1:], (True, False))
]
CALLS = [*RESIZED, *SCALED]


def arrays():
    """The images, and what makes arrays."""
    random = np.random.default_rng(5)
    return {"a": np.array, "x": random.normal(size=(5, 6)), "y": random.normal(size=(6, 2, 7))}
