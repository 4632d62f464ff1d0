"""The fixtures of a package that is not installed."""

pytest_plugins = ["destkit.plugin", "pytester"]
