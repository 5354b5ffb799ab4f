"""Settings under which a program runs: options, and limits of passes low enough to matter for small programs."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

import functrans as ft
from functrans.control.bodies import building
from functrans.control.residuals import read_back
from functrans.lowering.loops.from_jaxpr import pair_nests, pairs, row_sums
from functrans.lowering.loops.passes import parallel, row_blocks, row_calls, split_functions
from functrans.runtime.passes import PASSES

from .choices import Choices, drawn_by


class Setting(NamedTuple):
    """Options of `functrans.config`, and names of `LIMITS`."""

    options: tuple[tuple[str, Any], ...] = ()
    limits: tuple[str, ...] = ()


#: Attributes of modules: short loops are divided among threads, small matrices are read block by block of rows, nests
#: of few pairs visit half of them, kernels of two loops are in parts, a loop always reads its residuals back from the
#: last array.
LIMITS = {
    "short chunks": [(parallel, "LEAST", 64), (parallel, "LEAST_CHUNK", 8), (parallel, "LITTLE", 0)],
    "blocks of rows": [
        (row_calls, "STREAMED", 0),
        (row_calls, "LONG", 0),
        (row_blocks, "LEAST", 0),
        (row_blocks, "BYTES", 64),
        (row_blocks, "FEWEST", 4),
        (row_blocks, "BLOCKS", 1),
        (row_calls, "MANY", 4),
        (row_blocks, "LEAST_WIDE", 1),
        (row_blocks, "FEWEST_WIDE", 4),
        (row_blocks, "MOST_WIDE", 4),
        (row_blocks, "LEAST_HEAD", 1),
        (building, "LARGE", 0),
    ],
    "half of the pairs": [(pairs, "LEAST", 2), (pair_nests, "ROWS", 2), (row_sums, "FEW", 2)],
    "parts": [(split_functions, "FEWEST", 2)],
    "read back": [(read_back, "SHARES", {"once": 0.0, "in a loop": 0.0})],
}
OPTIONS = {
    "num_threads": (1, 2, 2),
    "partitioner": ("min_cut", "save_all", "recompute_all"),
    "activation_memory_budget": (0.0, 0.3, 0.5, 0.8),
    "memory_budget_solver": ("dp", "greedy"),
    "specialize_below": (2, 5),
    "checked": (True, False),
    "verify": (True, False),
    "strict": (True,),
    "cache": (True,),
    "backend": ("llvm", "llvm", "python"),
}


#: Optimisations that can be turned off.
NAMES = [p.name for p in PASSES]


def draw_setting(choose: Choices) -> Setting:
    """A few options, and a few limits."""
    options = [(name, choose.of(OPTIONS[name])) for name in choose.some(list(OPTIONS), 0, 3)]
    if choose.chance(30):
        options.append(("without", frozenset(choose.some(NAMES, 1, 12))))
    limits = choose.some(list(LIMITS), 0, 2)
    if "short chunks" in limits:
        options = [*[o for o in options if o[0] != "num_threads"], ("num_threads", choose.of((2, 1)))]
    return Setting(tuple(options), tuple(limits))


settings = drawn_by(draw_setting)


@contextmanager
def under(setting: Setting):
    """A block under a setting."""
    with ExitStack() as stack:
        for name in setting.limits:
            for module, attribute, value in LIMITS[name]:
                stack.enter_context(mock.patch.object(module, attribute, value))
        options = dict(setting.options)
        if setting.limits:  # others would load what is compiled here
            options["cache"] = False
        stack.enter_context(ft.config.patch(**options))
        yield
