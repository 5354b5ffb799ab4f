"""Hooks on cotangents: `cotangent_hook`, `register_hook`, `register_multi_grad_hook`, `post_accumulate_hook`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...control.hooks.hook_calls import FirstHook, Hook, MultiHook, PostAccumulateHook
from ...control.hooks.hooks import first_p, hook_p, note_p, supply_p
from ...core.attachment import Attachment
from ...core.aval import aval_of
from ...core.backward_state import BackwardState, StateAval, state_value
from ...core.dtypes import is_inexact
from ...core.trace import Tracer, current_trace
from ...core.values import ArrayLike, PyTree, Value
from ...custom.closures import captured_tracers
from ...errors import ArgumentError, ArgumentValueError, HookError
from ...errors.source import user_source
from ...frontend.arguments import result, value_of
from ...frontend.checked import checked
from ...runtime.tracebacks import boundary

MODES = ("host", "inline")


class RemovableHandle:
    """What a registration returns; ``remove()`` ends it, before or after the function is compiled.

    Also a context manager, which removes the hook at the end of the block.

    Examples
    --------
    >>> import functrans as ft
    >>> def f(x):
    ...     handle = ft.register_hook(x, lambda ct: 10.0 * ct)
    ...     handle.remove()
    ...     return x * x
    >>> ft.grad(f)(3.0)
    Array(6.)
    """

    __slots__ = ("_hook",)

    def __init__(self, hook: Any):
        self._hook = hook

    def remove(self) -> None:
        """End the registration; a second call does nothing."""
        self._hook.active = False

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<handle of the hook '{self._hook.name}'{'' if self._hook.active else ', removed'}>"


def _hook(kind: type[Hook], fn: Any, name: Any, mode: str) -> tuple[Hook, tuple[Any, ...]]:
    """The hook of a registration, and its further operands: what it captured, and the traced state that it needs."""
    what = kind.label
    if mode not in MODES:
        raise ArgumentValueError(f"{what}: mode must be 'host' or 'inline', got {mode!r}")
    if isinstance(fn, BackwardState):
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(
                f"{what}: expected the name of a hook after the BackwardState, {what}(x, state, 'on_x'), got {name!r}"
            )
        state = state_value(fn)
        traced = isinstance(state, Tracer)
        return kind(None, None if traced else fn, name, mode, user_source()), (state,) if traced else ()
    if name is not None:
        raise ArgumentError(
            f"{what}: the name {name!r} belongs to a BackwardState, but the argument before it is of type "
            f"{type(fn).__name__}"
        )
    if not callable(fn):
        raise ArgumentError(
            f"{what}: fn must be a function of the cotangent, or a BackwardState followed by a name, got "
            f"{str(fn)[:60]!r} of type {type(fn).__name__}"
        )
    found = captured_tracers([fn], ())
    captures = tuple([c for c in found if type(c.tracer.aval) is not StateAval])
    hook = kind(fn, None, None, mode, user_source(), captures=captures)
    return hook, tuple([c.tracer for c in captures])


def _differentiable(what: str, x: ArrayLike, where: str = "x") -> PyTree:
    if isinstance(x, dict | list | tuple):
        raise ArgumentError(
            f"{what}: {where} must be one array, got a {type(x).__name__}. For each array of a tree, write "
            f"functrans.tree.map(lambda leaf: {what}(leaf, hook), tree)"
        )
    value = value_of(x, lambda: f"{what}: {where}")
    dtype = aval_of(value).dtype
    if not is_inexact(dtype):
        raise HookError(
            f"{what}: cannot register a hook on a value of dtype {dtype}: only float and complex values have "
            "cotangents. Convert it: x.astype(float)"
        )
    return value


def _attached(what: str, attachment: Attachment) -> RemovableHandle:
    if not current_trace.get().attach(attachment):
        raise HookError(
            f"{what}: cannot register a hook on a value that is not being differentiated. Register it inside the "
            "function that is passed to grad, value_and_grad or vjp, on a value that depends on a differentiated "
            "argument"
        )
    return RemovableHandle(attachment.hook)


@boundary
@checked
def cotangent_hook(x: PyTree, fn: Any, name: str | None = None, /, *, mode: str = "host") -> Value:
    """Return `x`, with a hook on the cotangent of the result.

    Parameters
    ----------
    x : array
        Float or complex.
    fn : callable or BackwardState
        ``fn(ct) -> ct or None``: receives the cotangent, a read-only array, and returns another one of the same shape
        and dtype, or None to keep it. Or a state in which the hook is looked up as `name` when it runs.
    name : str, optional
        The name of the hook in the state.
    mode : {"host", "inline"}
        How compiled code runs the hook: as a call of Python on numbers in each backward pass, or compiled into the
        backward pass. Then each pass traces it, and compiles it again if its equations or arrays differ; a `jit` around
        the pass traces it once, with all other code.

    Returns
    -------
    array
        Equal to `x`. The hook sees the cotangent of uses of this result; `register_hook` sees all uses of `x`.

    Raises
    ------
    HookError
        If `x` has an integer dtype; in the backward pass if the hook returns another shape or dtype, or not an array.
    BackwardStateError
        In the backward pass, if the state lacks the hook.
    NoRuleError
        In a second derivative of compiled code with ``mode="host"``.

    Notes
    -----
    It costs nothing if nothing is differentiated. Outside `jit` the hook is called directly; `vmap` calls it once on a
    traced example. Compiled code calls it once per backward pass, in a loop once per iteration (the last one first),
    and under `vmap` once per example.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> def f(x):
    ...     y = ft.cotangent_hook(3.0 * x, lambda ct: fnp.clip(ct, -1.0, 1.0))
    ...     return fnp.sum(y * y)
    >>> ft.grad(f)(fnp.asarray([0.1, 2.0]))
    Array([1.8, 3. ])
    """
    hook, extra = _hook(Hook, fn, name, mode)
    value = _differentiable("cotangent_hook", x)
    (out,) = hook_p.bind(value, *extra, hook=hook, tokens=(), lanes=(), order=(0,))
    return result(out, {id(value)})


class _RegisteredHook(Hook):
    label = "register_hook"


@boundary
@checked
def register_hook(x: PyTree, fn: Any, name: str | None = None, /, *, mode: str = "host") -> RemovableHandle:
    """Attach a hook to a value: it sees the total cotangent of all uses of `x`, even earlier ones.

    Parameters
    ----------
    x : array
        A value that is being differentiated: an argument, or computed from one.
    fn, name, mode
        As for `cotangent_hook`.

    Returns
    -------
    RemovableHandle

    Raises
    ------
    HookError
        If `x` is not being differentiated, or has an integer dtype; later as for `cotangent_hook`.
    UnexpectedTracerError
        In the backward pass, if `fn` reads a traced value that was not in its closure when it was registered.

    Notes
    -----
    This is ``Tensor.register_hook`` of PyTorch. `fn` may read values of the forward pass that its closure holds when it
    is registered. Hooks of one value run in the order of registration. Inside `jit` it is
    not known yet what will be differentiated: a hook on any other value never runs. A hook on an argument of a jitted
    function sees the total cotangent of what was passed, also of uses outside of that function.

    Examples
    --------
    >>> import functrans as ft
    >>> def f(x):
    ...     y = 2.0 * x
    ...     before = y + 1.0
    ...     handle = ft.register_hook(y, lambda ct: 2.0 * ct)
    ...     return before + 3.0 * y
    >>> ft.grad(f)(1.0)
    Array(16.)
    """
    hook, extra = _hook(_RegisteredHook, fn, name, mode)
    value = _differentiable("register_hook", x)
    return _attached("register_hook", Attachment(hook_p, note_p, supply_p, hook, (value,), 1, extra))


@boundary
@checked
def register_multi_grad_hook(values: Any, fn: Callable[..., PyTree], mode: str = "all") -> RemovableHandle:
    """Attach a hook to several values: it looks at their cotangents once per backward pass.

    Parameters
    ----------
    values : sequence of arrays
    fn : callable
        With ``"all"``, ``fn(cts)`` is called when all cotangents are complete, with a list in the order of `values`;
        None stands for a value without a cotangent. With ``"any"``, ``fn(ct)`` is called with the first cotangent that
        is complete. What it returns is ignored.
    mode : {"all", "any"}

    Returns
    -------
    RemovableHandle

    Raises
    ------
    HookError
        If none of the values is being differentiated, or one has an integer dtype; if some belong to a loop body or a
        jitted function and others do not.

    Examples
    --------
    >>> import functrans as ft
    >>> def f(x, y):
    ...     handle = ft.register_multi_grad_hook([x, y], lambda cts: print([float(ct) for ct in cts]))
    ...     return x * y
    >>> _ = ft.grad(f, (0, 1))(2.0, 3.0)
    [3.0, 2.0]
    """
    what = MultiHook.label
    if mode not in ("all", "any"):
        raise ArgumentValueError(f"{what}: mode must be 'all' or 'any', got {mode!r}")
    if not isinstance(values, list | tuple) or not values:
        raise ArgumentError(
            f"{what}: values must be a list or tuple of arrays, got an object of type {type(values).__name__}"
            + (" without elements" if isinstance(values, list | tuple) else "")
        )
    hook, extra = _hook(MultiHook if mode == "all" else FirstHook, fn, None, "host")
    tracers = tuple([_differentiable(what, x, f"values[{i}]") for i, x in enumerate(values)])
    if mode == "all":
        hook.size = len(tracers)
    primitive = hook_p if mode == "all" else first_p
    order = tuple(range(len(tracers)))
    return _attached(what, Attachment(primitive, note_p, supply_p, hook, tracers, None, extra, order=order))


@boundary
@checked
def post_accumulate_hook(x: Any, fn: Any, name: str | None = None, /) -> RemovableHandle:
    """Attach a hook to an argument: it sees the final gradient, after all other hooks of the backward pass.

    Parameters
    ----------
    x : array
        An argument of the function that is differentiated.
    fn : callable or BackwardState
        ``fn(gradient) -> None``; or a state, in which the hook is looked up as `name`.
    name : str, optional

    Returns
    -------
    RemovableHandle

    Raises
    ------
    HookError
        If `x` is not such an argument; in the backward pass if the hook returns anything.

    Examples
    --------
    >>> import functrans as ft
    >>> def f(x):
    ...     handle = ft.post_accumulate_hook(x, lambda gradient: print("gradient", gradient))
    ...     handle = ft.register_hook(x, lambda ct: 10.0 * ct)
    ...     return x * x
    >>> ft.grad(f)(3.0)
    gradient 60.0
    Array(60.)
    """
    hook, extra = _hook(PostAccumulateHook, fn, name, "host")
    value = _differentiable(hook.label, x)
    return _attached(hook.label, Attachment(hook_p, note_p, supply_p, hook, (value,), 1, extra))
