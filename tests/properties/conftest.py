"""Two profiles: ``suite`` is short and always the same, ``soak`` long and always new."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

common = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.filter_too_much, HealthCheck.too_slow],
}
settings.register_profile("suite", max_examples=40, derandomize=True, **common)
settings.register_profile("soak", max_examples=int(os.environ.get("EXAMPLES", "200")), **common)
settings.load_profile(os.environ.get("DEEPMF_PROFILE", "suite"))
