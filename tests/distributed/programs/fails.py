"""Programs that do not end as they should; the first argument says how."""

import os
import signal
import sys
import time

import numpy as np

import functrans as ft
from functrans.distributed import make_mesh


def raises(mesh):
    """One rank raises, the others wait for it."""
    if mesh.rank == 1:
        raise KeyError("of rank 1")
    mesh.communicator("dp").barrier()


def raises_pending(mesh):
    """And it had started a collective."""
    mesh.communicator("dp").start("barrier") if mesh.rank == 1 else None
    raises(mesh)


def raises_busy(mesh):
    """And the others compute."""
    if mesh.rank == 1:
        raise KeyError("of rank 1")
    time.sleep(100)


def exits(mesh):
    """One rank exits."""
    if mesh.rank == 1:
        sys.exit(7)
    mesh.communicator("dp").barrier()


def killed(mesh):
    """One rank is killed."""
    if mesh.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    mesh.communicator("dp").barrier()


def forgets(mesh):
    """One rank ends although a collective that it started has not."""
    if mesh.rank == 1:
        mesh.communicator("dp").start("barrier")
    else:
        time.sleep(100)


def leaves(mesh):
    """All ends well, though nothing is waited for or closed."""
    for _ in range(3):
        mesh.communicator("dp").start("all_reduce", np.ones(1000), np.ones(1000), "sum")


def differs(mesh):
    """Ranks call different collectives."""
    c = mesh.communicator("dp")
    with ft.config.patch(check_collectives=True):
        c.barrier()
        x = np.zeros(2 + mesh.rank)
        c.all_reduce(x, x, "sum") if mesh.rank else c.all_gather(x, np.zeros((c.size, 2)))


def sleeps(mesh):
    """Longer than anyone waits."""
    sys.stdout.write(
        "asleep\n"
    )  # at once, where `print` writes the end of the line apart if PYTHONUNBUFFERED is set
    sys.stdout.flush()
    time.sleep(100)


if __name__ == "__main__":
    if sys.argv[2:]:
        with open(f"{sys.argv[2]}.{os.getpid()}", "w"):
            pass
    made = make_mesh(int(os.environ.get("RANKS", 2)), "dp")
    globals()[sys.argv[1]](made)
    print("end", flush=True)
