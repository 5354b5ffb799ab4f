"""Examples draw without a window, and run whatever backend of Matplotlib the user has."""

import os

os.environ["MPLBACKEND"] = "agg"
