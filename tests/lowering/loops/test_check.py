"""The verifier of the loop IR: each of its rules, by a small kernel that breaks it and one that keeps it."""

import numpy as np
import pytest

from functrans.lowering.loops import ir
from functrans.lowering.loops.check import LoopIRError, verified, verify, verify_parts, verify_plan
from functrans.lowering.loops.passes.split_functions import PartCall
from functrans.runtime.config import config

F8, F4, C16 = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.complex128)
I8, I4 = ir.INT64, ir.INT32
ZERO, ONE, FOUR = ir.Extent(0), ir.Extent(1), ir.Extent(4)
TRUE = ir.Const(True, ir.BOOL)


def number(x, dtype=F8):
    return ir.Const(x, dtype)


def buffers():
    return {
        "x": ir.BufferDecl("x", F8, (4,), "in"),
        "y": ir.BufferDecl("y", F8, (4,), "out"),
        "z": ir.BufferDecl("z", C16, (4,), "scratch"),
        "s": ir.BufferDecl("s", F8, (3, 4), "scratch", dealt=True),
        "t": ir.BufferDecl("t", F8, (3, 4), "tape"),
    }


def kernel(*statements, declared=None, **options):
    return ir.Kernel("k", list(declared or buffers().values()), ir.StatementList(list(statements)), **options)


def let(op, *args, to=F8):
    return ir.Let(ir.Value(np.dtype(to)), op, args)


def block(*statements):
    return ir.StatementList(list(statements))


def loop(*statements, var=None, start=ZERO, stop=FOUR, **options):
    return ir.For(var or ir.Value(I8), start, stop, block(*statements), **options)


# --- operations ---------------------------------------------------------------------------------------------

GOOD_LETS = [
    let("add", number(1.0), number(2.0)),
    let("select", TRUE, number(1.0), number(2.0)),
    let("cast", number(1, I8)),
    let("lt", number(1.0), number(2.0), to=ir.BOOL),
    let("and", TRUE, TRUE, to=ir.BOOL),
    let("xor", number(1, I8), number(2, I8), to=I8),
    let("shl", number(1, I8), number(2, I8), to=I8),
    let("irem", number(1, I4), number(2, I4), to=I4),
    let("div", number(1.0), number(2.0)),
    let("div", number(1j, C16), number(2j, C16), to=C16),
    let("abs", number(1j, C16)),
]

BAD_LETS = {
    "operation 'nothing' of 1": let("nothing", number(1.0)),
    "operation 'add' of 1": let("add", number(1.0)),
    "operation 'add' of 3": let("add", number(1.0), number(1.0), number(1.0)),
    "select of": let("select", number(1, I8), number(1.0), number(2.0)),
    "select of (": let("select", TRUE, number(1.0), number(2.0, F4)),
    "add of different dtypes": let("add", number(1.0), number(2.0, F4)),
    "and of float64": let("and", number(1.0), number(1.0)),
    "not of float64": let("not", number(1.0)),
    "shl of float64": let("shl", number(1.0), number(1.0)),
    "idiv of bool": let("idiv", TRUE, TRUE, to=ir.BOOL),
    "div of int64": let("div", number(1, I8), number(1, I8), to=I8),
    "add gives float64": let("add", number(1.0), number(2.0), to=F4),
    "lt gives bool": let("lt", number(1.0), number(2.0)),
}


@pytest.mark.parametrize("statement", GOOD_LETS, ids=lambda s: s.op)
def test_good_operations(statement):
    verify(kernel(statement))


@pytest.mark.parametrize("message", sorted(BAD_LETS))
def test_bad_operations(message):
    with pytest.raises(LoopIRError) as error:
        verify(kernel(BAD_LETS[message]))
    assert message in str(error.value)


def test_functions_of_complex_parts():
    name, count = next(iter(ir.C_CALLS.items()))
    verify(kernel(let(name, *[number(1.0)] * count, to=C16)))
    with pytest.raises(LoopIRError, match=f"{name} of {count - 1} operands"):
        verify(kernel(let(name, *[number(1.0)] * (count - 1), to=C16)))
    with pytest.raises(LoopIRError, match="should have dtype float64"):
        verify(kernel(let(name, *[number(1.0, F4)] * count, to=C16)))
    twice = let(name, *[number(1.0)] * count, to=C16)
    with pytest.raises(LoopIRError, match="defined twice"):
        verify(kernel(twice, twice))


# --- definitions and operands -------------------------------------------------------------------------------


def test_values_are_defined_once_and_before_their_use():
    first = let("add", number(1.0), number(2.0))
    second = let("neg", first.value)
    verify(kernel(first, second))
    with pytest.raises(LoopIRError, match="used where it is not defined"):
        verify(kernel(second, first))
    with pytest.raises(LoopIRError, match="defined twice"):
        verify(kernel(first, first))


@pytest.mark.parametrize("inside", ["loop", "while", "then", "else"])
def test_values_of_a_block_end_with_it(inside):
    value = let("add", number(1.0), number(2.0))
    blocks = {
        "loop": loop(value),
        "while": ir.While(block(), TRUE, block(value)),
        "then": ir.If(TRUE, block(value), block()),
        "else": ir.If(TRUE, block(), block(value)),
    }
    verify(kernel(blocks[inside]))
    with pytest.raises(LoopIRError, match="used where it is not defined"):
        verify(kernel(blocks[inside], let("neg", value.value)))


def test_what_a_loop_tests_is_not_seen_by_its_body():
    test = let("lt", number(1.0), number(2.0), to=ir.BOOL)
    verify(kernel(ir.While(block(test), test.value, block())))
    with pytest.raises(LoopIRError, match="used where it is not defined"):
        verify(kernel(ir.While(block(test), test.value, block(let("not", test.value, to=ir.BOOL)))))
    with pytest.raises(LoopIRError, match="should have dtype bool"):
        verify(kernel(ir.While(block(), ONE, block())))


def test_parameters_have_slots():
    one, of_float, of_complex = ir.Param(0, I8), ir.Param(0, F8), ir.Param(0, C16)
    verify(kernel(let("neg", one, to=I8), ints=1))
    verify(kernel(let("neg", of_float), floats=1))
    verify(kernel(let("neg", of_complex, to=C16), floats=2))
    for bad, slots in [
        (let("neg", one, to=I8), {"floats": 1}),
        (let("neg", ir.Param(-1, I8), to=I8), {"ints": 1}),
        (let("neg", ir.Param(1, I8), to=I8), {"ints": 1}),
        (let("neg", of_float), {"ints": 1}),
        (let("neg", of_complex, to=C16), {"floats": 1}),
    ]:
        with pytest.raises(LoopIRError, match="outside the parameter slots"):
            verify(kernel(bad, **slots))
    with pytest.raises(LoopIRError, match="a parameter of dtype int32"):
        verify(kernel(let("neg", ir.Param(0, I4), to=I4), ints=1, floats=1))
    with pytest.raises(LoopIRError, match="is not an operand"):
        verify(kernel(let("neg", 1.0)))


# --- memory -------------------------------------------------------------------------------------------------


def test_declarations():
    def declared(*args, **options):
        verify(ir.Kernel("k", [ir.BufferDecl(*args)], block(), **options))

    declared("x", F8, (4, 0), "in")
    declared("x", F8, (ir.Param(0, I8),), "in", ints=1)
    for args, message in [
        (("x", F8, (4,), "other"), "bad declaration"),
        (("1x", F8, (4,), "in"), "bad declaration"),
        (("x", F8, (-1,), "in"), "bad extent -1"),
        (("x", F8, (2.0,), "in"), "bad extent 2.0"),
        (("x", F8, (ir.Param(0, I8),), "stack"), "bad extent"),
    ]:
        with pytest.raises(LoopIRError, match=message):
            declared(*args, ints=1)
    with pytest.raises(LoopIRError, match="outside the parameter slots"):
        declared("x", F8, (ir.Param(0, I8),), "in")
    with pytest.raises(LoopIRError, match="should have dtype int64"):
        declared("x", F8, (ir.Param(0, F8),), "in", floats=1)
    with pytest.raises(LoopIRError, match="duplicate buffer names"):
        verify(ir.Kernel("k", [buffers()["x"], buffers()["x"]], block()))


def test_reads_and_writes():
    b = buffers()

    def check(*statements):
        verify(kernel(*statements, declared=b.values()))

    check(ir.Load(ir.Value(F8), b["x"], (ZERO,)), ir.Store(b["y"], (ONE,), number(1.0)))
    check(ir.Load(ir.Value(F8), b["z"], (ZERO,), 1), ir.Store(b["z"], (ONE,), number(1.0), 0))
    for bad, message in [
        (ir.Load(ir.Value(F8), b["x"], ()), "0 indices"),
        (ir.Load(ir.Value(F8), b["s"], (ZERO,)), "1 indices"),
        (ir.Load(ir.Value(F8), b["x"], (number(0.0),)), "should have dtype int64"),
        (ir.Load(ir.Value(F4), b["x"], (ZERO,)), "the value's dtype is not the buffer's"),
        (ir.Load(ir.Value(F8), b["z"], (ZERO,), 2), "part 2"),
        (ir.Load(ir.Value(F8), b["x"], (ZERO,), 0), "a part of float64"),
        (ir.Load(ir.Value(C16), b["z"], (ZERO,), 0), "the value's dtype is not the buffer's"),
        (ir.Store(b["x"], (ZERO,), number(1.0)), "store to input x"),
        (ir.Store(b["y"], (ZERO,), number(1.0, F4)), "should have dtype float64"),
        (ir.Store(b["z"], (ZERO,), number(1.0)), "should have dtype complex128"),
        (ir.Copy(b["z"], b["x"]), "copy between dtypes"),
        (ir.Copy(b["x"], b["y"]), "copy to an input"),
        (ir.Copy(b["y"], ir.BufferDecl("other", F8, (4,), "in")), "buffer other is not declared"),
        (ir.Reserve(b["s"], ONE, ONE), "no tape"),
        (ir.Reserve(b["t"], number(1.0), ONE), "should have dtype int64"),
        (ir.Reserve(b["t"], ONE, number(1.0)), "should have dtype int64"),
        (ir.Fail(number(1.0), 0), "should have dtype bool"),
        (ir.HostCall(number(1.0), (), 0), "should have dtype int64"),
        (ir.HostCall(ONE, (ir.Address(b["x"], number(1.0)),), 1), "should have dtype int64"),
    ]:
        with pytest.raises(LoopIRError, match=message):
            check(bad)
    check(ir.Copy(b["y"], b["x"]), ir.Reserve(b["t"], ONE, ONE), ir.Fail(TRUE, 0))
    check(ir.HostCall(ONE, (ir.Address(b["x"], ONE),), 1))
    alias = ir.BufferDecl("again", F8, (2, 2), "in", "x")
    verify(kernel(ir.Copy(alias, b["x"]), declared=[*b.values(), alias]))  # the same memory


def test_locals():
    var = ir.LocalVar(F8)
    declare, get = ir.Declare(var, number(0.0)), ir.Get(ir.Value(F8), var)
    verify(kernel(declare, get, ir.Set(var, get.value)))
    for bad, message in [
        ([get], "the local is not declared here"),
        ([ir.Set(var, number(1.0))], "the local is not declared here"),
        ([declare, declare], "defined twice"),
        ([ir.Declare(var, number(0, I8))], "should have dtype float64"),
        ([declare, ir.Get(ir.Value(F4), var)], "the value's dtype is not the local's"),
        ([declare, ir.Set(var, number(0, I8))], "should have dtype float64"),
        ([loop(declare), get], "the local is not declared here"),
        ([declare, get, get], "defined twice"),
    ]:
        with pytest.raises(LoopIRError, match=message):
            verify(kernel(*bad))


def test_calls_of_routines():
    b = buffers()
    var = ir.LocalVar(I4)
    good = ["N", ONE, number(1.0), ir.Address(b["x"]), (number(1.0), number(2.0))]
    verify(kernel(ir.Call("gemm", "d", tuple(good)), declared=b.values()))
    verify(kernel(ir.Declare(var, number(0, I4)), ir.Call("potrf", "d", (var,), ir.Value(I4))))
    undefined = ir.Value(F8)
    for argument, message in [
        ("NT", "character argument 'NT'"),
        (var, "the local is not declared here"),
        (ir.Address(b["x"], number(1.0)), "should have dtype int64"),
        ((number(1.0), undefined), "used where it is not defined"),
        (undefined, "used where it is not defined"),
    ]:
        with pytest.raises(LoopIRError, match=message):
            verify(kernel(ir.Call("gemm", "d", (argument,)), declared=b.values()))
    twice = ir.Call("dot", "d", (), ir.Value(F8))
    with pytest.raises(LoopIRError, match="defined twice"):
        verify(kernel(twice, twice))


def test_only_statements():
    class Other:
        __slots__ = ()

    with pytest.raises((LoopIRError, AssertionError)):
        verify(kernel(Other()))


# --- loops --------------------------------------------------------------------------------------------------


def test_bounds_and_counters_of_loops_are_int64():
    for bad in (loop(start=number(0.0)), loop(stop=number(4.0)), loop(var=ir.Value(I4))):
        with pytest.raises(LoopIRError, match="int64"):
            verify(kernel(bad))
    var = ir.Value(I8)
    with pytest.raises(LoopIRError, match="defined twice"):
        verify(kernel(loop(var=var), loop(var=var)))


def independent(b, body, stop=FOUR):
    var = ir.Value(I8)
    return kernel(loop(*body(var), var=var, stop=stop, independent=True), declared=b.values())


def test_independent_iterations_have_elements_of_their_own():
    b = buffers()
    plus = ir.Value(I8)

    def shifted(i):
        return ir.Let(plus, "add", (i, ONE))

    one = number(1.0)
    verify(independent(b, lambda i: [ir.Store(b["y"], (i,), one), ir.Store(b["s"], (i, ONE), one)]))
    verify(independent(b, lambda i: [shifted(i), ir.Store(b["y"], (plus,), one)]))
    verify(independent(b, lambda i: [ir.Load(ir.Value(F8), b["x"], (ZERO,)), ir.Store(b["y"], (i,), one)]))
    flat = ir.BufferDecl("flat", F8, (12,), "scratch", "s")
    both = {**b, "flat": flat}
    for body, message in [
        (lambda i: [ir.Store(b["y"], (ZERO,), one)], "share elements of y"),
        (lambda i: [ir.Store(b["s"], (i, i), one)], "share elements of s"),
        (lambda i: [shifted(i), ir.Store(b["y"], (i,), one), ir.Store(b["y"], (plus,), one)], "share elem"),
        (lambda i: [ir.Store(b["s"], (i, ONE), one), ir.Store(flat, (i,), one)], "overlap in s"),
        (lambda i: [ir.Copy(b["y"], b["x"])], "share y"),
    ]:
        with pytest.raises(LoopIRError, match=message):
            verify(independent(both, body))
        verify(independent(both, body, stop=ONE))  # one iteration shares with no other


def test_strips_of_iterations_are_apart():
    b = buffers()
    start, k, j = (ir.Value(I8) for _ in range(3))

    def strips(length, size=2):
        def body(i):
            inside = [ir.Let(j, "add", (start, k)), ir.Store(b["y"], (j,), number(1.0))]
            row = loop(*inside, var=k, stop=ir.Extent(length), independent=True)
            return [ir.Let(start, "mul", (i, ir.Extent(size))), row]

        return independent(b, body, stop=ir.Extent(2))

    verify(strips(2))
    verify(strips(1))
    with pytest.raises(LoopIRError, match="share elements of y"):
        verify(strips(3))
    with pytest.raises(LoopIRError, match="share elements of y"):
        verify(strips(2, size=0))


def test_independent_iterations_share_no_local():
    var, mine = ir.LocalVar(F8), ir.LocalVar(F8)
    declare, write = ir.Declare(var, number(0.0)), ir.Set(var, number(1.0))
    own = [ir.Declare(mine, number(0.0)), ir.Set(mine, number(1.0))]
    verify(kernel(declare, loop(*own, independent=True)))
    with pytest.raises(LoopIRError, match="share a local"):
        verify(kernel(declare, loop(write, independent=True)))


def test_threads_share_nothing():
    b = buffers()
    var, outer, mine = ir.Value(I8), ir.LocalVar(F8), ir.LocalVar(F8)
    worker = ir.Value(I8)

    def check(*body, size=ONE):
        team = ir.Team(worker, size, False)
        around = ir.Declare(outer, number(0.0))
        verify(kernel(around, loop(*body, var=var, team=team), declared=b.values()))

    one = number(1.0)
    check(ir.Declare(mine, one), ir.Set(mine, one), ir.Get(ir.Value(F8), mine))
    check(ir.Store(b["s"], (worker, ONE), one))
    check(ir.Store(b["s"], (var, ONE), one))
    check(ir.Load(ir.Value(F8), b["x"], (ZERO,)))
    for bad, message in [
        (ir.HostCall(ONE, (), 0), "cannot call Python"),
        (ir.Reserve(b["t"], ONE, ONE), "cannot call Python or enlarge a pool"),
        (ir.Set(outer, one), "threads share a local"),
        (ir.Get(ir.Value(F8), outer), "threads share a local"),
        (ir.Store(b["s"], (ZERO, ONE), one), "threads share s"),
        (ir.Load(ir.Value(F8), b["s"], (ONE, ONE)), "threads share s"),
    ]:
        with pytest.raises(LoopIRError, match=message):
            check(bad)
    with pytest.raises(LoopIRError, match="should have dtype int64"):
        check(size=number(1.0))


# --- plans --------------------------------------------------------------------------------------------------


def test_values_that_live_together_do_not_share_a_storage():
    def planned(a_storage, b_storage, last):
        x, y = buffers()["x"], buffers()["y"]
        a = ir.BufferDecl("a", F8, (4,), "scratch", a_storage)
        b = ir.BufferDecl("b", F8, (4,), "scratch", b_storage)
        k = kernel(
            ir.Copy(a, x), ir.Copy(y, a), ir.Copy(b, x), ir.Copy(y, a if last else b), declared=[x, y, a, b]
        )
        verify_plan(k, {id(x): "x", id(y): "y", id(a): "a", id(b): "b"})

    planned("a", "b", True)
    planned("a", "a", False)
    with pytest.raises(LoopIRError, match="a is still needed in the storage a"):
        planned("a", "a", True)


def test_a_storage_stays_one():
    x, y = buffers()["x"], buffers()["y"]
    a, again = (ir.BufferDecl(n, F8, (4,), "scratch") for n in ("a", "again"))
    k = kernel(ir.Copy(a, x), ir.Copy(y, again), declared=[x, y, a, again])
    verify_plan(k, {id(x): "x", id(y): "y", id(a): "a", id(again): "again"})
    with pytest.raises(LoopIRError, match="one storage became"):
        verify_plan(k, {id(x): "x", id(y): "y", id(a): "a", id(again): "a"})


def test_a_stack_that_a_part_receives_is_for_it_alone():
    def calls(*stacks):
        mine, result = ir.BufferDecl("s", F8, (4,), "stack"), ir.BufferDecl("r", F8, (4,), "out")
        part = kernel(ir.Copy(result, mine), declared=[mine, result])
        y = buffers()["y"]
        return [PartCall(part, "", [s, y], ["y"], [], [], []) for s in stacks]

    a, b = (ir.BufferDecl(n, F8, (4,), "stack") for n in "ab")
    verify_parts(calls(a, b))
    with pytest.raises(LoopIRError, match="a outlives the part"):
        verify_parts(calls(a, a))
    with pytest.raises(LoopIRError, match="s outlives the part"):
        verify_parts(calls(ir.BufferDecl("s", F8, (4,), "scratch")))


def test_it_runs_only_if_enabled():
    bad = kernel(let("add", number(1.0)))
    with config.patch(verify=False):
        assert verified(bad) is bad
    with config.patch(verify=True), pytest.raises(LoopIRError, match="kernel 'k': operation 'add'"):
        verified(bad)
