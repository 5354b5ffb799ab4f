"""``python -m functrans`` prints what functrans found on this machine; see `show_config`."""

from .api.configuration import show_config

show_config()
