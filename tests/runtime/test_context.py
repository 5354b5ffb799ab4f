"""Tables that objects leave when they die, without Python code that an interrupt would leave; locks and forks."""

import ast
import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import functrans as ft
from functrans.lowering.backend import Options
from functrans.runtime.context import Living, LivingValues


class Node:
    pass


def test_living_objects_have_values():
    table, a, b = Living(), Node(), Node()
    assert table.setdefault(a, [1]) is table.setdefault(a, [2])
    table.setdefault(b, [3])
    assert (table.get(a), table.get(Node())) == ([1], None)
    assert table.items() == [(a, [1]), (b, [3])]
    del a
    gc.collect()
    assert (list(table), len(table)) == ([b], 1)
    table.clear()
    assert len(table) == 0
    table.add(b)
    table.discard(b)
    table.discard(Node())
    assert list(table) == []
    table.add(b)
    del b
    gc.collect()
    assert len(table) == 0


def test_values_by_key_live_as_long_as_others_hold_them():
    table, a, b = LivingValues(), Node(), Node()
    table[1], table["b", 2.0] = a, b
    assert (table[1], table.get(("b", 2.0)), table.get(3)) == (a, b, None)
    with pytest.raises(KeyError):
        table[3]
    del a
    assert (len(table), table.get(1)) == (1, None)
    table["b", 2.0] = other = Node()
    del b
    assert table["b", 2.0] is other
    table.clear()
    del other
    assert len(table) == 0


def test_dying_runs_no_python_code():
    """But for the memory of tapes."""
    sources = {p: p.read_text() for p in Path(ft.__file__).parent.rglob("*.py")}
    for word, files in {
        "WeakKeyDictionary()": [],
        "WeakValueDictionary()": [],
        "WeakSet()": [],
        "weakref.finalize(": [],
        "def __del__": ["tape.py"],
    }.items():
        assert [p.name for p, text in sources.items() if word in text] == files, word


def test_nothing_swallows_what_a_signal_handler_raises():
    """`np.array_equal` returns False for any exception: checked mode once took an interrupt for damaged memory."""
    public = "selection.py"  # NumPy's names, and their docstrings
    for path in Path(ft.__file__).parent.rglob("*.py"):
        found = {"array_equal", "array_equiv"} & _calls_of_numpy(path)
        assert not found or path.name == public, (path, found)


def _calls_of_numpy(path):
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return {f.attr for f in calls if isinstance(f, ast.Attribute) and getattr(f.value, "id", "") == "np"}


def test_the_key_of_options_is_hashed_by_c():
    key = Options(without=frozenset({"a"})).key
    assert {type(x) for x in key} <= {bool, str, frozenset}
    assert Options(specialize_below=3).key == Options().key != Options(strict=True).key


IN_A_CHILD = """
import os, signal, threading
from functrans.runtime.context import cached_property, new_lock, new_rlock

entered, done = threading.Event(), threading.Event()

class Owner:
    first = True

    @cached_property
    def value(self):
        if self.first:
            Owner.first = False
            entered.set()
            done.wait()
        return 3

locks = [new_lock(), new_rlock()]

def hold():
    with locks[0], locks[1]:
        Owner().value

thread = threading.Thread(target=hold)
thread.start()
entered.wait()
child = os.fork()
if not child:
    signal.alarm(20)  # ends a child that waits for ever
    with locks[0], locks[1]:
        os._exit(Owner().value)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
done.set()
thread.join()
assert code == 3, code
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_what_a_thread_of_its_parent_held():
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", IN_A_CHILD]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_has_no_other_cached_property():
    """That of `functools` has a lock before Python 3.12, which stays closed in a child."""
    files = Path(ft.__file__).parent.rglob("*.py")
    found = {
        f.name
        for f in files
        if re.search(
            r"@functools\.cached_property|from functools import.*cached_property", f.read_text("utf-8")
        )
    }
    assert found == set()
