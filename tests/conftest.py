"""Every test runs with the verifier between passes and in checked mode, and hypothesis without clocks."""

import os

import pytest
from hypothesis import settings

os.environ.setdefault("FUNCTRANS_CHECKED", "1")  # for this process, and for those that tests start

from functrans.core.config import config

settings.register_profile("functrans", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("functrans")


@pytest.fixture(autouse=True, scope="session")
def _verify_between_passes():
    """Set for the process, not patched: the threads that tests start must see it too."""
    config.verify = True
    yield
    config.verify = False
