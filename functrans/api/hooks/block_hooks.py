"""The hooks of a block: around its calls, and on the cotangents of one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...control.hooks.hook_calls import Hook
from ...control.hooks.hooks import own_p
from ...core.aval import aval_of
from ...core.dtypes import is_inexact
from ...core.trace import Tracer
from ...core.values import PyTree, Value
from ...errors import HookError
from ...errors.source import Source
from ...frontend.arguments import name_of
from ...frontend.pytree import PyTreeDef, tree_flatten, tree_unflatten
from ...frontend.tree_spec import derivative_leaves
from ...runtime.records import dataclass


def new_args(args: tuple[Any, ...], new: Any) -> tuple[Any, ...]:
    """The arguments after a hook has returned `new`, which may be None."""
    if new is None:
        return args
    return new if isinstance(new, tuple) else (new,)


@dataclass(eq=False)
class BlockHook:
    """A hook registered on a block."""

    function: Callable[..., PyTree]
    mode: str
    source: Source | None
    active: bool = True
    with_kwargs: bool = False
    always: bool = False

    def before(
        self, block: Callable[..., PyTree], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments after it has run before the function."""
        if not self.with_kwargs:
            return new_args(args, self.function(block, args)), kwargs
        new = self.function(block, args, kwargs)
        if new is None:
            return args, kwargs
        if not (
            isinstance(new, tuple)
            and len(new) == 2
            and isinstance(new[0], tuple)
            and isinstance(new[1], dict)
        ):
            raise HookError(
                f"register_forward_pre_hook: the hook '{self.name}' must return a pair of a tuple of arguments and a "
                f"dict of keyword arguments, or None, but returned an object of type {type(new).__name__}",
                self.source,
            )
        return new

    def after(
        self, block: Callable[..., PyTree], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> Any:
        """What it returns after the function."""
        if self.with_kwargs:
            return self.function(block, args, kwargs, out)
        return self.function(block, args, out)

    def after_failure(
        self, block: Callable[..., PyTree], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> Any:
        """The same where an exception is on its way, which it must not replace."""
        try:
            return self.after(block, args, kwargs, out)
        except Exception as error:
            warnings.warn(
                f"register_forward_hook: the hook '{self.name}' with always_call=True raised {error!r} after another "
                "error",
                RuntimeWarning,
                stacklevel=2,
            )
            return None

    @property
    def name(self) -> str:
        """The name of the function."""
        return name_of(self.function)


# --- cotangents of a call -----------------------------------------------------------------------------------


class WatchedValues:
    """A tuple of arguments or results, as values that only this call of a block reads or returns."""

    def __init__(self, values: tuple[Value, ...]):
        self.leaves, self.treedef = tree_flatten(values)
        self.size = len(values)
        self.places = [
            i for i, x in enumerate(self.leaves) if isinstance(x, Tracer) and is_inexact(aval_of(x).dtype)
        ]
        self.values: Sequence[Any] = own_p.bind(*[self.leaves[i] for i in self.places]) if self.places else []

    def tree(self) -> tuple[Value, ...]:
        """The tuple, with these values."""
        leaves = list(self.leaves)
        for i, x in zip(self.places, self.values):
            leaves[i] = x
        return tree_unflatten(self.treedef, leaves)


class CotangentLayout:
    """The positions of a tuple's cotangents in its structure; holds no values."""

    def __init__(self, watched: WatchedValues):
        self.treedef: PyTreeDef = watched.treedef
        self.places, self.size, self.count = watched.places, watched.size, len(watched.leaves)

    def tree(self, cts: Sequence[PyTree]) -> tuple[Value, ...]:
        """The tuple of cotangents, with None where there is none."""
        leaves: list[Any] = [None] * self.count
        for i, ct in zip(self.places, cts):
            leaves[i] = ct
        return tree_unflatten(self.treedef, leaves)


class CallHook(Hook):
    """A hook of a block during one call."""

    dense = True
    block: Callable[..., PyTree]
    ins: CotangentLayout | None
    outs: CotangentLayout

    @classmethod
    def of(
        cls, hook: BlockHook, block: Callable[..., PyTree], ins: WatchedValues | None, outs: WatchedValues
    ) -> CallHook:
        """The hook for a call with these arguments and results."""
        call_hook = cls(hook.function, None, None, hook.mode, hook.source)
        call_hook.size = len(outs.values) + (0 if ins is None else len(ins.values))
        call_hook.block, call_hook.outs = block, CotangentLayout(outs)
        call_hook.ins = None if ins is None else CotangentLayout(ins)
        return call_hook

    def replaced(self, what: str, layout: CotangentLayout, new: Any) -> list[Any]:
        """The cotangents in the tuple that a hook returned."""
        if new is None:
            return [None] * len(layout.places)
        if not isinstance(new, tuple) and layout.size == 1:
            new = (new,)
        if not isinstance(new, tuple) or len(new) != layout.size:
            got = (
                f"{len(new)} of them" if isinstance(new, tuple) else f"an object of type {type(new).__name__}"
            )
            raise HookError(
                f"{self.label}: the hook '{self.name}' must return a tuple of {layout.size} for {what}, or None, but "
                f"returned {got}",
                self.source,
            )
        leaves = derivative_leaves(new, layout.treedef)
        if not isinstance(leaves, list):
            raise HookError(
                f"{self.label}: the hook '{self.name}' returned {leaves.got}{leaves.at} for {what}, where it got "
                f"{leaves.expected}",
                self.source,
            )
        return [leaves[i] for i in layout.places]


class BackwardPreHook(CallHook):
    """Runs before the backward pass of a call, on the cotangents of its results."""

    label = "register_full_backward_pre_hook"
    outlives = True

    def call(self, f: Callable[..., PyTree], cts: Sequence[Any]) -> Sequence[Value]:
        """The function receives the block, and the tuple of the cotangents of its results."""
        return self.replaced("grad_output", self.outs, f(self.block, self.outs.tree(cts)))


class FullBackwardHook(CallHook):
    """Runs after the backward pass of a call."""

    label = "register_full_backward_hook"
    outlives = True

    def call(self, f: Callable[..., PyTree], cts: Sequence[Any]) -> Sequence[Any]:
        """The function receives the block, and the tuples of the cotangents of its arguments and results."""
        assert self.ins is not None
        count = len(self.ins.places)
        grad_input, grad_output = self.ins.tree(cts[:count]), self.outs.tree(cts[count:])
        new_cts = self.replaced("grad_input", self.ins, f(self.block, grad_input, grad_output))
        return [*new_cts, *[None] * (len(cts) - count)]
