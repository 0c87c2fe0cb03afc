"""The SQLite file of decisions about calls, where the configuration names one."""

from __future__ import annotations

import logging

from ...audit import SqliteHandler, log
from ..config.settings import Audit


def use_audit_file(settings: Audit | None) -> None:
    """Has decisions written to the file of the settings from now on, and to none that was named before."""
    for one in [one for one in log.handlers if isinstance(one, GatewayAudit)]:
        log.removeHandler(one)
        one.close()
    if settings is not None:
        log.addHandler(GatewayAudit(settings.path, arguments=settings.arguments, age=settings.age))
        if not log.isEnabledFor(logging.INFO):
            log.setLevel(logging.INFO)


class GatewayAudit(SqliteHandler):
    """The file of this process's gateway."""
