"""Statements and expressions of a jitted function, on traced values."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...runtime.context import pass_on, run_quietly
from ...runtime.private.numba_names import as_dtype, ir, types
from ..numba_parts import Expression, NumbaType, Signature, Statement
from .functions import Callables
from .state import Flag, dtype_of, views_in
from .values import (
    ArrayView,
    Counted,
    Elements,
    RowsOf,
    cast,
    is_known,
    is_number,
    is_slice,
)

_PLAIN = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
    operator.ifloordiv: operator.floordiv,
    operator.imod: operator.mod,
    operator.ipow: operator.pow,
    operator.iand: operator.and_,
    operator.ior: operator.or_,
    operator.ixor: operator.xor,
    operator.ilshift: operator.lshift,
    operator.irshift: operator.rshift,
    operator.imatmul: operator.matmul,
}
_DIVISIONS = (operator.truediv, operator.floordiv, operator.mod)
_UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}


class Expressions(Callables):
    """Statements and expressions; `Machine` adds control flow."""

    # ---------------------------------------------------------------- statements

    def statement(self, statement: Statement) -> None:
        """Run one statement."""
        self.here = statement.loc
        if isinstance(statement, ir.Assign):
            name = statement.target.name
            value = self.typed(self.expression(statement.value, name), self.function.typemap[name])
            self.variables[name] = value
            self.note_offset(statement.value, value)
        elif isinstance(statement, ir.SetItem):
            self.assign(statement, self.variables[statement.index.name])
        elif isinstance(statement, ir.StaticSetItem):
            self.assign(statement, statement.index)
        elif not isinstance(statement, ir.Del):
            raise self.unsupported(_NAMES.get(type(statement).__name__, type(statement).__name__))

    def assign(self, statement: Statement, index: Any) -> None:
        """``target[index] = value``."""
        target, value = self.variables[statement.target.name], self.variables[statement.value.name]
        if not isinstance(target, ArrayView):
            raise self.unsupported(f"a write to a {self.type_of(statement.target)}")
        taken = self.indexed(target, index)
        if taken is not None:
            if isinstance(value, (tuple, list)):
                value = fnp.asarray(self.content(tuple(value)))
            self.store(taken, value)
            return
        array, place = self.content(target), self.content(index)
        if getattr(place, "dtype", None) == np.dtype(bool) and np.ndim(value) == 0:
            self.store(target, fnp.where(place, cast(value, array.dtype), array))
        else:
            self.store(target, fnp.asarray(array).at[place].set(self.content(value), mode="clip"))

    def typed(self, value: Any, kind: NumbaType) -> Any:
        """A value with the dtype that Numba infers."""
        if isinstance(value, ArrayView):
            array = self.state.heap[value.storage].value
            if isinstance(kind, types.Array) and array.dtype != as_dtype(kind.dtype):
                return self.elementwise(lambda x: x.astype(as_dtype(kind.dtype)), value)
            return value
        if is_number(value) and isinstance(kind, (types.Number, types.Boolean)):
            return cast(value, np.dtype(as_dtype(kind)))
        if type(value) is tuple and isinstance(kind, types.BaseTuple):
            parts = [self.typed(v, k) for v, k in zip(value, kind.types, strict=True)]
            return kind.instance_class(*parts) if isinstance(kind, types.BaseNamedTuple) else tuple(parts)
        return value

    # ---------------------------------------------------------------- expressions

    def expression(self, value: Any, name: str) -> Any:
        """The value of the right-hand side of an assignment."""
        if isinstance(value, ir.Var):
            return self.variables[value.name]
        if isinstance(value, ir.Arg):
            return self.variables[f"arg.{value.name}"]
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            return self.constant(value.value, value)
        if not isinstance(value, ir.Expr):
            raise self.unsupported(_NAMES.get(type(value).__name__, f"'{value}'"))
        method = getattr(self, f"_{value.op}", None)
        if method is None:
            raise self.unsupported(_NAMES.get(value.op, f"'{value.op}'"))
        return method(value)

    def constant(self, value: Any, node: Any = None) -> Any:
        """A global, a closure variable or a literal."""
        if isinstance(value, np.ndarray):
            return self.fresh(np.array(value), f"the global array '{getattr(node, 'name', '?')}'")
        if isinstance(value, tuple):
            parts = [self.constant(v, node) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value.item() if isinstance(value, np.generic) else value

    def truth(self, var: Any) -> Any:
        """A condition."""
        value = self.variables[var.name]
        if is_number(value):
            return cast(value, np.dtype(bool))
        return bool(value)

    def _cast(self, expr: Expression) -> Any:
        return self.variables[expr.value.name]

    def _build_tuple(self, expr: Expression) -> Any:
        return tuple([self.variables[v.name] for v in expr.items])

    def _build_list(self, expr: Expression) -> Any:
        """A list literal, which only functions like ``np.array`` read."""
        return [self.variables[v.name] for v in expr.items]

    def _exhaust_iter(self, expr: Expression) -> Any:
        value = self.variables[expr.value.name]
        if isinstance(value, tuple):
            return value
        if isinstance(value, ArrayView) and is_known(value.shape[0]) and value.shape[0] == expr.count:
            return tuple([self.load(value.taken([k])) for k in range(expr.count)])
        raise self.unsupported("unpacking of this value")

    def _getiter(self, expr: Expression) -> Any:
        return self.counted_of(self.variables[expr.value.name])

    def counted_of(self, value: Any) -> Counted:
        """What a ``for`` loop goes over."""
        if isinstance(value, Counted):
            return value
        if isinstance(value, ArrayView):
            return RowsOf(value.shape[0], value)
        if isinstance(value, tuple):
            return Elements(len(value), value)
        raise self.unsupported("a loop over this value")

    def _iternext(self, expr: Expression) -> Any:
        if expr.value.name not in self.iterations:
            raise self.unsupported("next()")
        return self.iterations.pop(expr.value.name)

    def _pair_first(self, expr: Expression) -> Any:
        return self.variables[expr.value.name][0]

    def _pair_second(self, expr: Expression) -> Any:
        return self.variables[expr.value.name][1]

    def element_of(self, items: tuple[Any, ...], k: Any) -> Any:
        """An element of a tuple at a place known only at run time."""
        if is_known(k):
            return items[k]
        if all(type(i) is tuple and len(i) == len(items[0]) for i in items):
            return tuple([self.element_of(parts, k) for parts in zip(*items, strict=True)])
        if all(isinstance(i, ArrayView) and i.shape == items[0].shape and not is_slice(i) for i in items):
            stacked = self.fresh(fnp.stack(list(map(self.content, items))))
            self.tie(stacked, *items)
            return self.load(stacked.taken([k]))
        if not all(map(is_number, items)):
            raise self.unsupported("a loop over a tuple of arrays of several shapes")
        return fnp.stack([fnp.asarray(i) for i in items]).at[k].get(mode="clip")

    # ---------------------------------------------------------------- operators

    def _binop(self, expr: Expression) -> Any:
        a, b = self.variables[expr.lhs.name], self.variables[expr.rhs.name]
        return self.operate(expr.fn, a, b, self.function.calltypes[expr])

    def _inplace_binop(self, expr: Expression) -> Any:
        a, b = self.variables[expr.lhs.name], self.variables[expr.rhs.name]
        value = self.operate(_PLAIN[expr.fn], a, b, self.function.calltypes[expr])
        if not isinstance(a, ArrayView):
            return value
        self.store(a, value)
        return a

    def operate(self, f: Any, a: Any, b: Any, signature: Signature) -> Any:
        """A binary operator."""
        if f in (operator.is_, operator.is_not) or a is None or b is None:
            return f(a is None, b is None) if a is None or b is None else f(a, b)
        if isinstance(a, (tuple, str)) or isinstance(b, (tuple, str)):
            return self._on_tuples(f, a, b)
        if is_slice(a) or is_slice(b):
            if f is operator.matmul:
                return self.contracted(a, b)
            kinds = signature.args
            return self.elementwise(f, *[self.operand(v, k) for v, k in zip((a, b), kinds, strict=True)])
        x, y = self.operand(a, signature.args[0]), self.operand(b, signature.args[1])
        if f in _DIVISIONS and not isinstance(a, ArrayView) and not isinstance(b, ArrayView):
            self.check_divisor(y)
            if is_known(y) and y == 0:
                x = np.float64(x) if is_known(x) else x
                y = np.float64(y)
        if is_known(x) and is_known(y):
            value = run_quietly(f, x, y)
        elif f is operator.pow and is_known(b) and isinstance(b, int):
            value = x**b
        else:
            value = f(x, y)
        return self.result(value)

    def result(self, value: Any) -> Any:
        """An array result is a new array."""
        if is_number(value):
            return value.item() if isinstance(value, np.generic) else value
        return self.fresh(value) if hasattr(value, "shape") else value

    def operand(self, value: Any, kind: NumbaType) -> Any:
        """An operand as the operator takes it."""
        if isinstance(value, ArrayView):
            return value if is_slice(value) else self.content(value)
        if is_number(value):
            return cast(value, dtype_of(kind, value))
        return value

    def check_divisor(self, y: Any) -> None:
        """Fail if the divisor is zero and the function raises then."""
        if self.function.raises_on_zero and not (is_known(y) and y != 0):
            self.fail(y == 0, ZeroDivisionError, ("division by zero",))

    def _on_tuples(self, f: Any, a: Any, b: Any) -> Any:
        known = (operator.eq, operator.ne, operator.add, operator.mul)
        flat = [*(a if isinstance(a, tuple) else [a]), *(b if isinstance(b, tuple) else [b])]
        if f in known and (f is operator.add or all(is_known(v) or isinstance(v, str) for v in flat)):
            return f(a, b)
        raise self.unsupported(f"'{f.__name__}' of tuples or strings")

    def _unary(self, expr: Expression) -> Any:
        value = self.variables[expr.value.name]
        f = _UNARY.get(expr.fn, expr.fn)
        if not isinstance(value, ArrayView) and not is_number(value):
            return f(value)
        if is_slice(value):
            return self.elementwise(f if f is not operator.not_ else fnp.logical_not, value)
        x = self.operand(value, self.function.calltypes[expr].args[0])
        if f is operator.not_:
            return not x if is_known(x) else fnp.logical_not(cast(x, np.dtype(bool)))
        return self.result(f(x))

    # ---------------------------------------------------------------- indexing

    def _getitem(self, expr: Expression) -> Any:
        return self.item(self.variables[expr.value.name], self.variables[expr.index.name])

    def _static_getitem(self, expr: Expression) -> Any:
        index = expr.index
        return self.item(self.variables[expr.value.name], index)

    _typed_getitem = _getitem

    def item(self, value: Any, index: Any) -> Any:
        """``value[index]``."""
        if isinstance(value, (tuple, list)):
            if isinstance(index, slice) or is_known(index):
                return value[index]
            self.check_index(index, len(value))
            return self.element_of(tuple(value), fnp.where(index < 0, index + len(value), index))
        if not isinstance(value, ArrayView):
            raise self.unsupported("an index of this value")
        taken = self.indexed(value, index)
        if taken is not None:
            return self.load(taken)
        try:
            return self.result(fnp.asarray(self.content(value)).at[self.content(index)].get(mode="clip"))
        except Exception as error:
            pass_on(error)
            raise self.unsupported(
                f"this index ({error})", "use an index whose result has a known shape"
            ) from error

    def indexed(self, view: ArrayView, index: Any) -> ArrayView | None:
        """The view of a basic index; None for an index with arrays."""
        places = list(index) if isinstance(index, tuple) else [index]
        if any(isinstance(p, (ArrayView, list)) or p is None for p in places):
            return None
        if Ellipsis in [p for p in places if not hasattr(p, "aval")]:
            k = next(n for n, p in enumerate(places) if p is Ellipsis)
            places[k : k + 1] = [slice(None)] * (len(view.order) - len(places) + 1)
        return view.taken([self.place(p, n) for p, n in zip(places, view.shape, strict=False)])

    def place(self, index: Any, size: Any) -> Any:
        """One index, counted from the start."""
        if isinstance(index, slice):
            return self.span(index, size)
        if is_known(index) and is_known(size):
            self.check_index(index, size)
            return min(max(int(index) + (size if index < 0 else 0), 0), max(size - 1, 0))
        self.check_index(index, size)
        if is_known(index) and index < 0:
            return index + size
        return index

    def check_index(self, index: Any, size: int) -> None:
        """Fail if an index is out of bounds and the function checks them."""
        if self.function.checks_bounds:
            outside = (index < -size) | (index >= size)
            self.fail(outside, IndexError, ("index is out of bounds",))

    # ---------------------------------------------------------------- failures

    def failure(self, kind: type[BaseException], args: tuple[Any, ...]) -> tuple[int, list[tuple[Flag, Any]]]:
        """The number of a failure, and the flags that hold the values of its arguments."""
        values = [self.content(a) for a in args]
        known = all(is_known(v) or isinstance(v, str) for v in values)
        key = (kind, tuple(values)) if known else (kind, self.path, str(self.here))
        number = self.failures[key][0] if key in self.failures else len(self.failures) + 1
        places: list[tuple[Flag, Any]] = []
        template: list[Any] = []
        for k, value in enumerate(values):
            if is_number(value) and not is_known(value):
                flag = ("argument", number, k, np.dtype(value.dtype))
                places.append((flag, value))
                template.append(flag)
            else:
                template.append(value)
        self.failures[key] = (number, kind, tuple(template))
        return number, places

    def exception(self, statement: Statement) -> tuple[type[BaseException], tuple[Any, ...]]:
        """The class and arguments that a ``raise`` raises."""
        if isinstance(statement, (ir.StaticRaise, ir.DynamicRaise)):
            kind, args = statement.exc_class, statement.exc_args or ()
            found = tuple([self.variables[a.name] if isinstance(a, ir.Var) else a for a in args])
            return kind, found
        value = None if statement.exception is None else self.variables[statement.exception.name]
        if isinstance(value, type):
            return value, ()
        raise self.unsupported("this raise", "raise a class of exception with plain arguments")

    def arrays(self) -> Iterator[ArrayView]:
        """The arrays of all variables."""
        return views_in(tuple(self.variables.values()))


_NAMES = {
    "Yield": "a generator",
    "yield_": "a generator",
    "build_map": "a dict",
    "build_set": "a set",
    "build_list": "a list",
    "make_function": "a function made inside",
    "DelItem": "del",
    "Print": "print",
    "EnterWith": "a with block",
    "PopBlock": "a with block",
    "StoreMap": "a dict",
    "TryRaise": "try",
    "StaticTryRaise": "try",
    "DynamicTryRaise": "try",
}
