"""Policies of `checkpoint`, which select the values to store for the backward pass, under JAX's names.

A policy is a function ``policy(primitive, *avals, **params) -> bool`` that says whether to store the results of an
operation. It is called for each operation of the function and of its derivative; other results are recomputed.

Examples
--------
>>> import functrans as ft, functrans.numpy as fnp
>>> @ft.checkpoint(policy=ft.checkpoint_policies.dots_saveable)
... def layer(w, x):
...     return fnp.tanh(w @ x)
>>> w, x = fnp.eye(2), fnp.asarray([0.0, 1.0])
>>> ft.grad(lambda w: fnp.sum(layer(w, x)))(w)
Array([[0.        , 1.        ],
       [0.        , 0.41997434]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .core import ArgumentError, Primitive
from .core.values import Param
from .frontend.checked import checked
from .primitives.elementwise.identities import name_p
from .primitives.products.dot import dot_general_p
from .primitives.windows.conv import conv_p
from .runtime.module_getattr import module_attributes as _module_attributes

Policy = Callable[..., bool]

__all__ = [
    "checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable", "dots_with_no_batch_dims_saveable",
    "everything_saveable", "nothing_saveable", "offload_dot_with_no_batch_dims", "save_and_offload_only_these_names",
    "save_any_names_but_these", "save_anything_except_these_names", "save_from_both_policies",
    "save_only_these_names",
]  # fmt: skip


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Store everything, as without a checkpoint.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> policy = ft.checkpoint_policies.everything_saveable
    >>> ft.grad(ft.checkpoint(lambda x: fnp.sin(2.0 * x), policy=policy))(0.0)
    Array(2.)
    """
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Store only the arguments, as without a policy.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> policy = ft.checkpoint_policies.nothing_saveable
    >>> ft.grad(ft.checkpoint(lambda x: fnp.sin(2.0 * x), policy=policy))(0.0)
    Array(2.)
    """
    return False


@checked
def dots_saveable(prim: Primitive, *_: Any, **__: Any) -> bool:
    """Store the results of matrix products and convolutions, which are expensive to compute.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> policy = ft.checkpoint_policies.dots_saveable
    >>> ft.grad(ft.checkpoint(lambda x: fnp.sin(fnp.dot(x, 2.0)), policy=policy))(0.0)
    Array(2.)
    """
    return prim in (dot_general_p, conv_p)


@checked
def dots_with_no_batch_dims_saveable(prim: Primitive, *_: Any, **params: Param) -> bool:
    """Store the results of matrix products without batch axes: those of layers, not those of attention.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> policy = ft.checkpoint_policies.dots_with_no_batch_dims_saveable
    >>> ft.grad(ft.checkpoint(lambda x: fnp.sin(fnp.dot(x, 2.0)), policy=policy))(0.0)
    Array(2.)
    """
    if prim is not dot_general_p:
        return False
    (_, _), batch = params["dimension_numbers"]
    return not any(batch)


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


@checked
def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Store values that `functrans.checkpoint_name` gave one of these names.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> policy = ft.checkpoint_policies.save_only_these_names("a")
    >>> ft.grad(ft.checkpoint(lambda x: fnp.sin(ft.checkpoint_name(2.0 * x, "a")), policy=policy))(0.0)
    Array(2.)
    """
    names = _checked("save_only_these_names", names_which_can_be_saved)

    def policy(prim: Primitive, *_: Any, **params: Param) -> bool:
        return prim is name_p and params["name"] in names

    return policy


@checked
def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Store all named values except those with these names.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> policy = ft.checkpoint_policies.save_any_names_but_these("b")
    >>> ft.grad(ft.checkpoint(lambda x: fnp.sin(ft.checkpoint_name(2.0 * x, "a")), policy=policy))(0.0)
    Array(2.)
    """
    names = _checked("save_any_names_but_these", names_not_to_save)

    def policy(prim: Primitive, *_: Any, **params: Param) -> bool:
        return prim is name_p and params["name"] not in names

    return policy


@checked
def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Store everything except values with one of these names.

    A named value is also the unnamed result of an operation, and may be stored as such.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> policy = ft.checkpoint_policies.save_anything_except_these_names("a")
    >>> ft.grad(ft.checkpoint(lambda x: fnp.sin(ft.checkpoint_name(2.0 * x, "a")), policy=policy))(0.0)
    Array(2.)
    """
    names = _checked("save_anything_except_these_names", names_not_to_save)

    def policy(prim: Primitive, *_: Any, **params: Param) -> bool:
        return prim is not name_p or params["name"] not in names

    return policy


@checked
def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Store the values that either policy stores.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> policies = ft.checkpoint_policies
    >>> policy = policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("a"))
    >>> ft.grad(ft.checkpoint(lambda x: fnp.sin(2.0 * x), policy=policy))(0.0)
    Array(2.)
    """

    def policy(prim: Primitive, *avals: Any, **params: Param) -> bool:
        return policy_1(prim, *avals, **params) or policy_2(prim, *avals, **params)

    return policy


def offload_dot_with_no_batch_dims(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: functrans has one memory, so residuals cannot be moved to another.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    Traceback (most recent call last):
    ...
    functrans.errors.ArgumentError: checkpoint_policies.offload_dot_with_no_batch_dims: moves residuals ...
    """
    raise _no_second_memory("offload_dot_with_no_batch_dims", "dots_with_no_batch_dims_saveable")


def save_and_offload_only_these_names(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: functrans has one memory, so residuals cannot be moved to another.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.checkpoint_policies.save_and_offload_only_these_names()
    Traceback (most recent call last):
    ...
    functrans.errors.ArgumentError: checkpoint_policies.save_and_offload_only_these_names: moves residuals ...
    """
    raise _no_second_memory("save_and_offload_only_these_names", "save_only_these_names")


def _no_second_memory(name: str, other: str) -> ArgumentError:
    return ArgumentError(
        f"checkpoint_policies.{name}: moves residuals from an accelerator's memory to the host's, but all arrays of "
        f"functrans are in the host's memory. Use {other}, or recompute them (nothing_saveable)"
    )


def _checked(what: str, names: tuple[Any, ...]) -> frozenset[str]:
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(
                f"checkpoint_policies.{what}: names must be strings, passed one by one; got {name!r} of type "
                f"{type(name).__name__}"
            )
    return frozenset(names)


__getattr__, __dir__ = _module_attributes("functrans.checkpoint_policies", globals())
