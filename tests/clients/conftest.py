"""These tests need environments of their own and minutes: they run by `make test-clients`, which sets CLIENTS."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("CLIENTS") else ["test_*.py"]
