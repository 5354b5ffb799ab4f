"""Forwards that run on the host: NumPy and SciPy code that cannot be traced.

Where the numbers are known ``forward`` is called with them; inside of `jit` and `vmap` a callback calls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays.array import unwrap
from ..control.callback import FlatCallback, pure_callback_p
from ..core.aval import Aval, aval_of
from ..core.dtypes import canonical
from ..core.errors import CallbackError, FunctionDefinitionError
from ..core.source import last_line
from ..core.trace import PYTHON_KEYS, concrete, eval_trace, tracing
from ..frontend.arguments import struct_of
from ..frontend.pytree import tree_map, tree_structure
from ..transforms.batch import BatchTracer
from ..transforms.jvp import JVPTracer
from .function_class import Definition
from .partition import Arguments, Outputs, own_value


class HostForward:
    """The forward of one call.

    Parameters
    ----------
    definition : Definition
    arguments : Arguments
    """

    def __init__(self, definition: Definition, arguments: Arguments):
        self._definition = definition
        self._arguments = arguments

    def __call__(self, values: Sequence[Any]) -> tuple[Outputs, list[Any]]:
        """The structure of the outputs, and the arrays in them."""
        # A callback says that it has no derivative, where a value is being differentiated.
        known = [None if isinstance(x, JVPTracer) else concrete(x) for x in values]
        if all(x is not None for x in known):
            outputs, arrays = Outputs.of(self._run(known))
            return outputs, [
                own_value(x, lambda: f"{self._definition.name}.forward: an output") for x in arrays
            ]
        return self._called_back(values)

    def _run(self, arrays: Sequence[Any]) -> Any:
        """What the user's function returns, numbers in it as arrays."""
        args = self._arguments.filled([_read_only(x) for x in arrays])
        found = tracing(eval_trace, self._arguments.call, self._definition.forward, args)
        return tree_map(lambda x: np.asarray(x) if type(x) in PYTHON_KEYS else unwrap(x), found)

    def _called_back(self, values: Sequence[Any]) -> tuple[Outputs, list[Any]]:
        outputs, promised = Outputs.of(tree_map(self._stand_in, self._promised(values)))
        if not promised:
            raise FunctionDefinitionError(
                f"{self._definition.name}: shape returned no array. Return a functrans.ShapeDtypeStruct(shape, dtype) "
                "for each array that forward returns, in the same order and structure"
            )
        avals = tuple([aval_of(x) for x in promised])
        tree = tree_structure((0,) * len(avals))

        def forward(*arrays: Any) -> tuple[Any, ...]:
            found, results = Outputs.of(self._run(arrays))
            self._check_promise(outputs, avals, found, results)
            return tuple(results)

        forward.__name__ = f"{self._definition.name}.forward"
        call = FlatCallback(forward, tree_structure(((0,) * len(values), {})), (), tree)
        method = self._definition.vmap_method
        return outputs, pure_callback_p.bind(*values, call=call, result_avals=avals, vmap_method=method)

    def _check_promise(
        self, promised: Outputs, avals: Sequence[Aval], found: Outputs, results: Sequence[Any]
    ) -> None:
        """Raise where forward returned another structure or dtype than shape told; shapes may be those of a batch."""
        name = self._definition.name
        if found.layout is not promised.layout or found.many != promised.many:
            raise CallbackError(
                f"{name}: forward returned {found}, but shape promises {promised}. Return the same structure from "
                "both, with a functrans.ShapeDtypeStruct in the place of each array and number",
                last_line(self._definition.forward),
            )
        for i, (x, aval) in enumerate(zip(results, avals)):
            if x.dtype != aval.dtype:
                raise CallbackError(
                    f"{name}: forward returned an array of dtype {x.dtype} (array {i} of its outputs), but shape "
                    f"promises {aval.dtype}. Convert it in forward (x.astype), or promise that dtype",
                    last_line(self._definition.forward),
                )

    def _stand_in(self, x: Any) -> Any:
        """An array without memory for something that has a shape and a dtype; anything else as it is."""
        if type(x) in PYTHON_KEYS:  # what it stands for in forward, too
            return np.asarray(x)
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            return x
        dtype = canonical(x.dtype, f"{self._definition.name}.shape: an output")
        return np.broadcast_to(np.empty((), dtype), tuple(x.shape))

    def _promised(self, values: Sequence[Any]) -> Any:
        """The types of the results, as a tree of `ShapeDtypeStruct`."""
        shape = self._definition.shape
        if shape is not None:
            args = self._arguments.filled([struct_of(aval_of(x).strong()) for x in values])
            return self._arguments.call(shape, args)
        example = [_first_example(x) for x in values]
        if any(x is None for x in example):
            raise FunctionDefinitionError(
                f"{self._definition.name}: host forward has no shape rule. Write the staticmethod shape(*args), which "
                "returns a functrans.ShapeDtypeStruct(shape, dtype) for each output of forward; in the place of arrays "
                "it gets such structs"
            )
        return self._run(example)


def _first_example(x: Any) -> Any:
    """The numbers of the first of the examples that `vmap` maps over; None where they are not known."""
    if type(x) is not BatchTracer:
        return concrete(x)
    whole = _first_example(x.value)
    return None if whole is None or not whole.shape[x.dim] else whole.take(0, axis=x.dim)


def _read_only(x: Any) -> np.ndarray:
    found = unwrap(x).view() if isinstance(x, np.ndarray) else np.asarray(x)
    found.flags.writeable = False
    return found
