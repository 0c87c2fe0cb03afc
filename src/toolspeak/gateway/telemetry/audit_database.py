"""The SQLite file of decisions about calls, if the configuration names one."""

from __future__ import annotations

import logging

from ...audit import SqliteHandler, log
from ..config.settings import Audit


def use_audit_file(settings: Audit | None) -> list[GatewayAudit]:
    """Write decisions to the file of these settings from now on, and return the replaced handlers, which are to be
    closed: that may wait for a locked file.
    """
    older = [one for one in log.handlers if isinstance(one, GatewayAudit)]
    if settings in [one.settings for one in older]:
        return []
    if settings is not None:
        log.addHandler(GatewayAudit(settings))
        if not log.isEnabledFor(logging.INFO):
            log.setLevel(logging.INFO)
    for one in older:
        log.removeHandler(one)
    return older


def close_audit() -> None:
    """Write no more decisions, and wait for those that are not written yet."""
    for one in use_audit_file(None):
        one.close()


class GatewayAudit(SqliteHandler):
    """The audit file of this process's gateway."""

    def __init__(self, settings: Audit) -> None:
        super().__init__(settings.path, arguments=settings.arguments, age=settings.age)
        self.settings = settings
