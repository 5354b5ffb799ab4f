"""Texts of programs that do not depend on the machine or on what ran before in this process."""

import itertools
import re
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from functrans.lowering.host import host_calls
from functrans.lowering.loops.passes import parallel
from functrans.runtime.config import config

#: The number of the first call of Python in a program; such as no kernel has that runs in this process.
FIRST = 1_000_000
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@contextmanager
def as_on_any_machine(threads):
    """A block in which kernels are lowered for so many threads, with all that some machine has."""
    every_machine = {"has_own_products": lambda letter: True, "can_set_threads": lambda: True}
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(parallel, **every_machine))
        stack.enter_context(patch.object(host_calls, "_numbers", itertools.count(FIRST)))
        stack.enter_context(config.patch(num_threads=threads, checked=False))
        yield


def without_addresses(text):
    return ADDRESS.sub("", text)
