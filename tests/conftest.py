"""Settings that all tests share."""

from hypothesis import settings

# No deadline: the first call of a kernel compiles it.
settings.register_profile("default", max_examples=50, deadline=None)
settings.register_profile("soak", max_examples=5000, deadline=None)
settings.load_profile("default")
