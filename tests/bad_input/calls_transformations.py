"""Valid calls of the transformations, trees and tools, for `base_calls`."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import tree_util
from functrans.primitives.structure.linear import add_p

X = np.array([0.25, 0.5, 0.75])
VALUES = [X]
TREE = {"a": X, "b": (1.0, 2.0)}
DEFINITION = tree_util.tree_structure(TREE)
PAIR = tree_util.tree_structure((0, 0))
LIST = tree_util.tree_structure([0, 0, 0])


def f(x, y=1.0):
    return fnp.sum(x * x * y)


def g(x):
    return x * x


def plus(x, y):
    return x + y


def host(x):
    return np.sin(x)


def printed(*values):
    """A hook that only looks."""


def then(*given: Any) -> Callable[..., Any]:
    """Call what the function returns with the values given."""
    return lambda function, *args, **kwargs: function(*args, **kwargs)(*given)


def entered(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Enter the context that the function returns."""
    with function(*args, **kwargs):
        return ft.grad(f)(X)


def hooked(function: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Any:
    """Differentiate a function that hooks its argument, or what is given instead of it."""

    def loss(y: Any) -> Any:
        given = function(y if x is X else [y] if x is VALUES else x, *args, **kwargs)
        return f(y if given is None or isinstance(given, ft.RemovableHandle) else given)

    return ft.grad(loss)(X)


def consumed(function: Callable[..., Any], array: Any) -> Any:
    """Donate a copy of the array."""
    return function(np.array(array) if array is X else array)


def looped(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Give the decorator that the function returns the body of a loop."""
    return ft.lax.scan(function(*args, **kwargs)(lambda c, i: (c + 1.0, c)), 0.0, np.arange(3))


def ruled(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Define the rule that the decorator wants, and differentiate."""
    rule = function(*args, **kwargs)
    if hasattr(rule, "defvjp"):
        rule.defvjp(lambda x: (g(x), x), lambda x, ct: (2 * x * ct,))
    elif hasattr(rule, "defjvp"):
        rule.defjvp(lambda primals, tangents: (g(*primals), 2 * primals[0] * tangents[0]))
    elif hasattr(rule, "def_vmap"):
        rule.def_vmap(lambda axis_size, in_batched, x: (g(x), in_batched[0]))
    return rule(X)


@dataclasses.dataclass
class Point:
    """A class that can be registered as a tree."""

    x: Any
    y: Any

    def tree_flatten(self):
        return (self.x, self.y), None

    def tree_flatten_with_keys(self):
        return ((tree_util.GetAttrKey("x"), self.x), (tree_util.GetAttrKey("y"), self.y)), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


def registered(function: Callable[..., Any], cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Register a new class each time, since a class is registered once."""
    if cls is Point:
        cls = type("Point", (Point,), {})
    function(cls, *args, **kwargs)
    if isinstance(cls, type) and issubclass(cls, Point):
        return tree_util.tree_map(lambda x: x, cls(1.0, 2.0))
    return None


def keyed(p):
    return p.tree_flatten_with_keys()


def flat(p):
    return p.tree_flatten()


def unflat(aux, children):
    return Point(*children)


def square(x):
    return fnp.sin(x) * 2.0


def halved(r, x):
    return x / r


def saved(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Write into a file of its own."""
    with tempfile.TemporaryFile() as file:
        return function(*[file if a is FILE else a for a in args], **kwargs)


FILE = object()

#: name in the namespace -> (through, args, kwargs)
OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans": [
        *[(n, then(X), (f,), {}) for n in ("grad", "value_and_grad", "jacfwd", "jacrev", "hessian")],
        ("jit", then(X), (f,), {}),
        ("checkpoint", then(X), (f,), {}),
        ("remat", then(X), (f,), {}),
        ("checkpoint_name", None, (X, "name"), {}),
        ("clear_caches", None, (), {}),
        ("closure_convert", None, (f, X), {}),
        ("numba_call", then(X), (numba.njit(g),), {}),
        ("njit", then(X), (g,), {}),
        ("custom_gradient", then(X), (lambda x: (g(x), lambda ct: 2 * x * ct),), {}),
        ("custom_jvp", ruled, (g,), {}),
        ("custom_vjp", ruled, (g,), {}),
        ("custom_vmap", ruled, (g,), {}),
        ("disable_jit", entered, (), {}),
        ("eval_shape", None, (f, X), {}),
        ("io_callback", None, (host, X, X), {}),
        ("pure_callback", None, (host, X, X), {}),
        ("jvp", None, (f, (X,), (X,)), {}),
        ("linear_call", None, (halved, halved, 2.0, X), {}),
        ("linear_transpose", then(X), (lambda x: 2.0 * x, X), {}),
        ("linearize", None, (f, X), {}),
        ("vjp", None, (f, X), {}),
        ("make_jaxpr", then(X), (f,), {}),
        ("once_differentiable", None, (g,), {}),
        ("progress", looped, (3,), {}),
        ("saved_values_hooks", entered, (lambda x: x, lambda x: x), {}),
        ("vmap", then(X), (g,), {}),
        ("cotangent_hook", hooked, (X, host), {}),
        ("register_hook", hooked, (X, host), {}),
        ("register_multi_grad_hook", hooked, (VALUES, printed), {}),
        ("post_accumulate_hook", hooked, (X, printed), {}),
        ("hookable", then(X), (g,), {}),
        ("register_group_hooks", None, ([ft.hookable(g)], printed, printed), {}),
        ("donate", consumed, (X,), {}),
        ("BackwardState", None, (), {}),
        ("ShapeDtypeStruct", None, ((3,), np.float64), {}),
        ("Zero", None, (X,), {}),
    ],
    "functrans.tree_util": [
        ("all_leaves", None, ([1.0, 2.0],), {}),
        ("build_tree", None, (DEFINITION, TREE), {}),
        ("keystr", None, ((tree_util.DictKey("a"), tree_util.SequenceKey(0)),), {}),
        ("register_dataclass", registered, (Point, ("x", "y"), ()), {}),
        ("register_pytree_node", registered, (Point, flat, unflat), {}),
        ("register_pytree_node_class", registered, (Point,), {}),
        ("register_pytree_with_keys", registered, (Point, keyed, unflat), {}),
        ("register_pytree_with_keys_class", registered, (Point,), {}),
        ("register_static", registered, (Point,), {}),
        ("tree_broadcast", None, ({"a": 1.0, "b": 2.0}, TREE), {}),
        *[
            (n, None, (TREE,), {})
            for n in (
                "tree_all",
                "tree_flatten",
                "tree_flatten_one_level",
                "tree_flatten_with_path",
                "tree_leaves",
                "tree_leaves_with_path",
                "tree_structure",
            )
        ],
        ("tree_map", None, (plus, TREE, TREE), {}),
        ("tree_map_with_path", None, (lambda path, x: x, TREE), {}),
        ("tree_reduce", None, (plus, (1.0, 2.0)), {}),
        ("tree_transpose", None, (PAIR, LIST, ([1, 2, 3], [4, 5, 6])), {}),
        ("tree_unflatten", None, (DEFINITION, (X, 1.0, 2.0)), {}),
        ("treedef_children", None, (DEFINITION,), {}),
        ("treedef_is_leaf", None, (DEFINITION,), {}),
        ("treedef_tuple", None, ((DEFINITION, PAIR),), {}),
    ],
    "functrans.tree": [
        ("broadcast", None, ({"a": 1.0, "b": 2.0}, TREE), {}),
        *[
            (n, None, (TREE,), {})
            for n in ("all", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "structure")
        ],
        ("map", None, (plus, TREE, TREE), {}),
        ("map_only", lambda function, *args: function(*args)(g)(TREE), (float,), {}),
        ("map_with_path", None, (lambda path, x: x, TREE), {}),
        ("reduce", None, (plus, (1.0, 2.0)), {}),
        ("static", None, (), {"default": 1}),
        ("transpose", None, (PAIR, LIST, ([1, 2, 3], [4, 5, 6])), {}),
        ("unflatten", None, (DEFINITION, (X, 1.0, 2.0)), {}),
    ],
    "functrans.testing": [
        *[
            (n, None, (square, X), {})
            for n in (
                "derivatives_are_linear",
                "gradients_keep_types",
                "hessian_is_symmetric",
                "inputs_stay",
                "is_smooth",
                "jit_and_grad_commute",
                "jit_is_eager",
                "jvp_is_slope",
                "vjp_is_adjoint",
                "single_precision_agrees",
                "vjp_is_slope",
                "vmap_is_loop",
            )
        ],
        ("arrays", None, ((3,),), {}),
        ("broadcastable", None, (), {"count": 2}),
        ("in_axes_for", None, (X,), {}),
        ("programs", None, (), {"arity": 1}),
        ("pytrees", None, (), {"max_leaves": 3}),
        ("tangents_like", None, (TREE,), {}),
        ("operands", None, (1,), {}),
        ("check", None, (square, X), {"order": 1, "laws": "jvp_is_slope"}),
        ("derivative_is_right", None, (np.sin, X), {"derivative": lambda x: np.diag(np.cos(x))}),
        ("directional_derivative", None, (np.sin, [X], [X]), {}),
        ("given_op", None, (square,), {"max_examples": 1}),
        ("gradcheck", None, (square, (X,)), {}),
        ("gradgradcheck", None, (square, (X,)), {}),
        ("is_kink", None, (np.sin, [X], [X]), {}),
        ("jacobian", None, (np.sin, [X]), {}),
    ],
    "functrans.debug": [
        ("callback", None, (g, X), {}),
        ("log", None, ("{}", X), {}),
        ("print", None, ("{}", X), {}),
    ],
    "functrans.custom_batching": [("sequential_vmap", then(X), (g,), {})],
    "functrans.custom_derivatives": [
        ("custom_vjp_primal_tree_values", None, (TREE,), {}),
        ("zero_from_primal", None, (X,), {}),
    ],
    "functrans.flatten_util": [("ravel_pytree", None, (TREE,), {})],
    "functrans.checkpoint_policies": [
        *[
            (n, None, (add_p, X), {})
            for n in (
                "checkpoint_dots",
                "checkpoint_dots_with_no_batch_dims",
                "dots_saveable",
                "dots_with_no_batch_dims_saveable",
                "everything_saveable",
                "nothing_saveable",
            )
        ],
        *[
            (n, None, ("a", "b"), {})
            for n in (
                "save_any_names_but_these",
                "save_anything_except_these_names",
                "save_only_these_names",
            )
        ],
        (
            "save_from_both_policies",
            None,
            (ft.checkpoint_policies.dots_saveable, ft.checkpoint_policies.everything_saveable),
            {},
        ),
    ],
}
#: The same objects under another name, those that refuse every call, and those that write files.
LEFT_OUT = {
    # Classes that users do not call.
    "functrans": {"Array", "Function", "FunctionError", "MultiHandle", "RemovableHandle", "profile", "show_config"},
    "functrans.tree_util": {
        "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef", "SequenceKey",
    },
    "functrans.testing": {
        "Bools", "Case", "Distinct", "Domain", "Indices", "Interval", "LawViolation", "Numbers", "PositiveDefinite",
        "Triangular", "check_primitive", "check_custom_rule",
    },
    "functrans.custom_derivatives": {"CustomVJPPrimal", "SymbolicZero"},
    "functrans.export": {"Exported", "load", "save"},
    "functrans.checkpoint_policies": {"offload_dot_with_no_batch_dims", "save_and_offload_only_these_names"},
}  # fmt: skip
