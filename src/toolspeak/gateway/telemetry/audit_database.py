"""The SQLite file of decisions about calls, if the configuration names one."""

from __future__ import annotations

import logging

from ...audit import SqliteHandler, log
from ..config.settings import Audit


def use_audit_file(settings: Audit | None) -> None:
    """Write decisions to the file of these settings from now on, instead of any earlier one."""
    for one in [one for one in log.handlers if isinstance(one, GatewayAudit)]:
        log.removeHandler(one)
        one.close()
    if settings is not None:
        log.addHandler(GatewayAudit(settings.path, arguments=settings.arguments, age=settings.age))
        if not log.isEnabledFor(logging.INFO):
            log.setLevel(logging.INFO)


class GatewayAudit(SqliteHandler):
    """The audit file of this process's gateway."""
