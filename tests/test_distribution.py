"""What is published: the wheel and the source distribution are built, installed in fresh environments, and run."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLE = "examples/cox_regression.py"
#: Without the paths by which this process finds functrans.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "FUNCTRANS_CACHE_DIR")}

pytestmark = pytest.mark.slow


def run(*command, folder):
    done = subprocess.run(
        [str(c) for c in command], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(folder, *packages):
    """The Python of a new environment with some packages."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(python, "-m", "pip", "install", "-q", *packages, folder=folder.parent)
    return python


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the source distribution, of the files that git knows, or of all."""
    folder = tmp_path_factory.mktemp("distribution")
    ignored = shutil.ignore_patterns(".*", "_build", "build", "dist", "__pycache__")
    for name in ("functrans", "tests", "examples", "docs", "benchmarks"):
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=ignored)
    for path in (*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "pyproject.toml"):
        shutil.copy(path, folder / "source")
    python = environment(folder / "tools", "hatchling>=1.26")
    run(python, "-m", "hatchling", "build", "-d", folder / "dist", folder=folder / "source")
    (wheel,), (archive,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return wheel, archive


def modules(names):
    return {name for name in names if name.startswith("functrans/") and not name.endswith("/")}


def test_the_wheel_has_the_package_and_nothing_else(built):
    names = zipfile.ZipFile(built[0]).namelist()
    ours = [p.relative_to(ROOT).as_posix() for p in (ROOT / "functrans").rglob("*") if p.is_file()]
    # pytest's plugin stands beside the package.
    moved = "functrans/testing/pytest_plugin.py"
    assert modules(names) == {name for name in ours if "__pycache__" not in name and name != moved}
    assert {n.partition("/")[0].partition("-")[0] for n in names} == {"functrans", "pytest_functrans.py"}


def coefficients(output):
    """What the example computed, and what was published, of each line of its table."""
    return [
        (float(m[1]), float(m[2]))
        for m in re.finditer(r"^\w+ +(\S+) +\(\S+\) +(\S+) +\(\S+\)$", output, re.M)
    ]


def test_the_example_runs_from_any_folder(built, tmp_path):
    """As users install it, and as packagers do: from the source distribution alone."""
    wheel, archive = built
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert (source / "tests" / "conftest.py").is_file()
    for name, package in (("users", wheel), ("packagers", source)):
        folder = tmp_path / name
        shutil.copytree(source / "examples" / "data", folder / "data")
        shutil.copy(source / EXAMPLE, folder)
        python = environment(folder / "env", package)
        table = coefficients(run(python, Path(EXAMPLE).name, folder=folder))
        assert len(table) == 7
        assert all(abs(computed - published) <= 0.001 for computed, published in table)
        place = run(python, "-c", "import functrans; print(functrans.__file__)", folder=folder)
        assert str(folder / "env") in place
