"""Valid calls of `functrans.ir` and `functrans.profiler`, for `base_calls`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans import ir, profiler

X = np.array([0.25, 0.5, 0.75])
PROGRAM = ir.trace(lambda x: fnp.sum(fnp.exp(x) * 2.0 + 1.0), X)
RULE = ir.Rule(ir.Op("exp", ir.Any("x")), lambda m: fnp.exp(m["x"]))


def in_a_folder(function: Callable[..., Any], jaxpr: Any, path: Any) -> Any:
    """Call with a path in a temporary folder, which is removed; names that are not strings stay what they are."""
    with tempfile.TemporaryDirectory() as folder:
        return function(jaxpr, os.path.join(folder, path) if isinstance(path, str) else path)


def entered(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Enter the context that the function returns."""
    with function(*args, **kwargs):
        return fnp.sin(X)


def traced_to(function: Callable[..., Any], log_dir: Any) -> Any:
    """Profile to a temporary folder, which is removed."""
    with tempfile.TemporaryDirectory() as folder:
        return entered(function, os.path.join(folder, log_dir) if isinstance(log_dir, str) else log_dir)


def begun(function: Callable[..., Any], log_dir: Any, *args: Any, **kwargs: Any) -> Any:
    """Begin a trace to a temporary folder, which is removed, and end it."""
    with tempfile.TemporaryDirectory() as folder:
        function(os.path.join(folder, log_dir) if isinstance(log_dir, str) else log_dir, *args, **kwargs)
        profiler.stop_trace()


def ended(function: Callable[..., Any]) -> Any:
    """End a trace that is running."""
    with tempfile.TemporaryDirectory() as folder:
        profiler.start_trace(folder)
        function()


def built(function: Callable[..., Any], *avals: Any, **kwargs: Any) -> Any:
    """A program of one equation."""
    builder = function(*avals, **kwargs)
    return builder.build(builder.add("exp", *builder.inputs))


def run(function: Callable[..., Any], jaxpr: Any) -> Any:
    """Make an interpreter and run it."""
    return function(jaxpr).run(X)


def transformed(function: Callable[..., Any], jaxpr: Any) -> Any:
    """Make a transformer and run it."""
    return function(jaxpr).transform()


def searched(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Look for a pattern."""
    return ir.match(PROGRAM, function(*args, **kwargs))


def below(function: Callable[..., Any], name: Any) -> Any:
    """Look for a pattern that has any value as its operand."""
    return ir.match(PROGRAM, ir.Op("exp", function(name)))


#: name in the namespace -> (through, args, kwargs)
OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans.ir": [
        ("Any", below, ("x",), {}),
        ("Builder", built, (ir.Aval((3,), np.dtype(float)),), {"name": "f"}),
        ("Interpreter", run, (PROGRAM,), {}),
        ("Op", searched, ("mul", ir.Any("x"), 2.0), {}),
        ("Rule", None, (RULE.pattern, RULE.replacement), {"where": lambda m: True}),
        ("Transformer", transformed, (PROGRAM,), {}),
        ("as_function", lambda function, jaxpr: function(jaxpr)(X), (PROGRAM,), {}),
        ("cost_analysis", None, (PROGRAM,), {}),
        ("costs", None, (PROGRAM,), {}),
        ("draw", in_a_folder, (PROGRAM, "program.svg"), {}),
        ("eliminate_common_subexpressions", None, (PROGRAM,), {}),
        ("eliminate_dead_code", None, (PROGRAM,), {}),
        ("equal", None, (PROGRAM, PROGRAM), {}),
        ("eval_jaxpr", None, (PROGRAM, X), {}),
        ("fold_constants", None, (PROGRAM,), {"max_bytes": 100}),
        ("inline", None, (PROGRAM,), {}),
        ("match", None, (PROGRAM, ir.Op("exp", ir.Any("x"))), {}),
        ("primitive", None, ("exp",), {}),
        ("rewrite", None, (PROGRAM, [RULE]), {"repeat": False}),
        ("simplify", None, (PROGRAM,), {}),
        ("split", None, (PROGRAM, lambda eqn: eqn.primitive.name), {}),
        ("to_dot", None, (PROGRAM,), {}),
        ("to_svg", None, (PROGRAM,), {}),
        ("trace", None, (lambda x: fnp.exp(x), X), {}),
        ("verify", None, (PROGRAM,), {}),
    ],
    "functrans.profiler": [
        ("profile", entered, (), {}),
        ("trace", traced_to, ("profiles",), {}),
        ("TraceAnnotation", entered, ("a part",), {}),
        ("StepTraceAnnotation", entered, ("a step",), {}),
        ("start_trace", begun, ("profiles",), {}),
        ("stop_trace", ended, (), {}),
        (
            "annotate_function",
            lambda function, *args, **kw: function(*args, **kw)(X),
            (fnp.sin,),
            {"name": "s"},
        ),
    ],
}
LEFT_OUT = {
    # Records of the compiler's, whose fields are trusted, and what `match`, `costs` and `split` return.
    "functrans.ir": {
        *("Aval", "Cost", "Effect", "Eqn", "Jaxpr", "Literal", "Match", "Primitive", "Split", "Var"),
    },
    "functrans.profiler": {"Profile"},
}
