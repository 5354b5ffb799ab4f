"""Running programs: failed computations, calls of Python, hooks, damaged memory."""

from __future__ import annotations

import numpy as np

from .base import FunctransError, JaxRuntimeError


class LinAlgError(FunctransError, np.linalg.LinAlgError):
    """A decomposition failed: a matrix that is not positive definite, or singular.

    >>> import numpy as np, functrans as ft, functrans.numpy as fnp
    >>> ft.jit(fnp.linalg.cholesky)(-np.eye(2))
    Traceback (most recent call last):
    ...
    functrans.errors.LinAlgError: cholesky: the matrix is not positive definite...

    ``except numpy.linalg.LinAlgError`` catches it. Add a small multiple of the identity, or let the result be NaN:

    >>> with ft.config.patch(linalg_errors="nan"):
    ...     bool(np.isnan(fnp.linalg.cholesky(-np.eye(2))).any())
    True
    """


class NaNError(FunctransError, FloatingPointError):
    """An operation returned NaN while ``config.debug_nans`` is on.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.jit
    ... def f(x):
    ...     return fnp.sum(fnp.log(x) * x)
    >>> with ft.config.patch(debug_nans=True):
    ...     f(fnp.asarray([1.0, -1.0]))
    Traceback (most recent call last):
    ...
    functrans.errors.NaNError: log returned NaN (1 of 2 elements, the first at (1,))...

    The message names the operation that returned it (in compiled functions too), or the backward of a custom operation
    (``MyOpBackward``), and shows your line. If the NaN is discarded, as in ``fnp.where(x > 0, fnp.log(x), 0.0)``, give
    the function valid numbers: ``fnp.log(fnp.where(x > 0, x, 1.0))``. This also fixes the gradient.
    """


class InfError(FunctransError, FloatingPointError):
    """An operation returned an infinity while ``config.debug_infs`` is on.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.jit
    ... def f(x):
    ...     return fnp.sum(1.0 / x)
    >>> with ft.debug_infs(True):
    ...     f(fnp.asarray([1.0, 0.0]))
    Traceback (most recent call last):
    ...
    functrans.errors.InfError: div returned inf (1 of 2 elements, the first at (1,))...

    The message names the operation that returned it (in compiled functions too), and shows your line.
    """


class CheckError(JaxRuntimeError, ValueError):
    """A condition that `functrans.experimental.checkify.check` states does not hold.

    >>> import functrans as ft
    >>> from functrans.experimental.checkify import check
    >>> @ft.jit
    ... def f(x):
    ...     check(x > 0, "x must be positive, got {}", x)
    ...     return 1 / x
    >>> f(-3.0)
    Traceback (most recent call last):
    ...
    functrans.errors.CheckError: x must be positive, got -3.0...

    The line is that of the check. `functrans.experimental.checkify.checkify` returns errors as values instead.
    """


class PartitionError(FunctransError, ValueError):
    """A partitioner made a choice that reverse mode cannot use.

    >>> import functrans as ft
    >>> declared = ft.ShapeDtypeStruct((), "float64")
    >>> def f(x):
    ...     return x * ft.pure_callback(abs, declared, ft.lax.stop_gradient(x))
    >>> ft.aot.trace_pair(f, declared, partition_fn=lambda joint: set())
    Traceback (most recent call last):
    ...
    functrans.errors.PartitionError: the partitioner <lambda> does not save what these equations compute...

    A partitioner returns variables of ``joint.primal``. What a callback returned must be saved, or computed from saved
    values without calling it again. The message names the equations and their lines.
    """


class SolverError(FunctransError, RuntimeError):
    """A SciPy solver found no solution, but its derivative is needed.

    >>> import functrans as ft
    >>> from functrans.scipy.optimize import brentq
    >>> ft.grad(lambda a: brentq(lambda y: y**3 + a * y - 1, 0.0, 1.0, maxiter=2))(1.3)
    Traceback (most recent call last):
    ...
    functrans.errors.SolverError: brentq: no root was found: convergence error...

    The derivative follows from the equation, which holds only at a solution. Without derivatives, SciPy's own warnings
    and flags apply. Start closer, widen the bracket, allow more iterations, or loosen the tolerances.
    """


class CallbackError(JaxRuntimeError, ValueError):
    """A callback did not return what was declared, or a transformation cannot go through it.

    >>> import numpy as np, functrans as ft
    >>> declared = ft.ShapeDtypeStruct((3,), float)
    >>> ft.jit(lambda x: ft.pure_callback(lambda x: x[:2], declared, x))(np.ones(3))
    Traceback (most recent call last):
    ...
    functrans.errors.CallbackError: pure_callback: the callback '<lambda>' returned an array of shape (2,)...

    The message names the callback, the leaf of its result, and both types. Callbacks have no derivative:

    >>> ft.grad(lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((), float), x))(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.CallbackError: pure_callback: the callback 'sin' has no derivative (JVP)...

    Define one with ``custom_jvp`` or ``custom_vjp``, or stop the derivative: ``functrans.lax.stop_gradient(x)``. To
    inspect values, use ``functrans.debug.print`` and ``functrans.debug.callback``, which derivatives pass through.
    """


class FormatError(FunctransError, ValueError, KeyError, IndexError):
    """A format string of ``debug.print`` does not match its arguments.

    >>> import functrans as ft
    >>> ft.debug.print("x = {x}", y=1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.FormatError: debug.print: 'x = {x}' asks for 'x', which is missing...

    Write ``debug.print("x = {x}", x=x)``, not an f-string, which is evaluated before the numbers are known.
    """

    __str__ = Exception.__str__  # KeyError's would quote the message


class ExportError(FunctransError, ValueError):
    """A function cannot be exported, or a file is not an export that can be read here.

    >>> import functrans.export
    >>> functrans.export.load("/dev/null")
    Traceback (most recent call last):
    ...
    functrans.errors.ExportError: /dev/null is not a whole export of functrans...

    The message names the file and what is wrong with it. Write the file again with ``functrans.export.save``, by the
    same minor version of functrans as reads it.
    """


class MemoryDamageError(FunctransError, RuntimeError):
    """A compiled function wrote outside its memory, or did not write its result. ``config.checked`` detects this.

    Programs written with functrans cannot cause it, unless functrans itself has a bug. A kernel written by hand in the
    loop IR can:

    >>> import numpy as np, functrans as ft
    >>> from functrans.lowering.backend import Options
    >>> from functrans.lowering.loops.builder import StatementBuilder
    >>> from functrans.lowering.run.compile import compile_kernel
    >>> b = StatementBuilder("shift")
    >>> x = b.buffer("x", np.dtype(float), (3,), "in")
    >>> y = b.buffer("y", np.dtype(float), (3,), "out")
    >>> with b.loop(3) as i:
    ...     b.store(y, (i + 1,), b.load(x, (i,)))
    >>> compile_kernel(b.finish(), Options(checked=True)).run((np.ones(3), np.zeros(3)))
    Traceback (most recent call last):
    ...
    functrans.errors.MemoryDamageError: kernel 'shift' wrote past the end of 'y', an output of type float64[3]...

    Outside checked mode, such a write corrupts other memory, and the process crashes later or computes wrong numbers.
    Please report it, with the program. Meanwhile, ``functrans.config.backend = "python"`` or
    ``functrans.disable_jit()`` run the program without compiled code.
    """


class HookError(FunctransError, RuntimeError):
    """A hook is on a value that is not differentiated, or returned something that cannot replace a cotangent.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> def f(x):
    ...     y = ft.cotangent_hook(2.0 * x, lambda ct: ct[:1])
    ...     return fnp.sum(y * y)
    >>> ft.grad(f)(fnp.ones(3))
    Traceback (most recent call last):
    ...
    functrans.errors.HookError: cotangent_hook: the hook '<lambda>' has changed the size of value: it got...

    Return an array of the shape and dtype that the hook gets, or None to keep it.

    >>> ft.register_hook(fnp.ones(3), print)
    Traceback (most recent call last):
    ...
    functrans.errors.HookError: register_hook: cannot register a hook on a value that is not being...

    Register it inside the function that is differentiated.
    """


class BackwardStateError(FunctransError, RuntimeError):
    """A `BackwardState` was used in the forward pass, or lacks a hook that the backward pass needs.

    >>> import functrans as ft
    >>> def f(x, state):
    ...     return ft.cotangent_hook(x, state.on_x)
    >>> ft.grad(f)(1.0, ft.BackwardState())
    Traceback (most recent call last):
    ...
    functrans.errors.BackwardStateError: BackwardState: 'on_x' was read in the forward pass, where the state is...

    Name the hook, ``ft.cotangent_hook(x, state, "on_x")``, and set it before the backward pass: ``state.on_x = clip``.
    """


class ProfileError(FunctransError, RuntimeError):
    """A profile is read while it is open, or before it has recorded anything, or opened while it is open.

    >>> import functrans as ft
    >>> with ft.profile() as p:
    ...     print(p)
    Traceback (most recent call last):
    ...
    functrans.errors.ProfileError: profile: it is still open. Read it after the with block...

    Take the ``print`` out of the block. To measure a part of what another profile measures, open a new one.
    """


class KeyReuseError(FunctransError, RuntimeError):
    """A key of `functrans.random` is used a second time, while ``config.debug_key_reuse`` is on.

    >>> import functrans as ft
    >>> from functrans import random
    >>> key = random.key(0)
    >>> with ft.debug_key_reuse():
    ...     x = random.normal(key)
    ...     y = random.uniform(key)
    Traceback (most recent call last):
    ...
    functrans.errors.KeyReuseError: random.uniform: the key 0 was used before...

    The two calls would draw from the same bits. Make a key for each: ``first, second = random.split(key)``, or
    ``random.fold_in(key, i)`` in a loop. Where the same numbers are wanted, pass ``random.clone(key)``.
    """
