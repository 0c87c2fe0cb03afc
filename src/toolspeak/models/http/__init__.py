"""Models over HTTP: any server that speaks an API of `api/`."""

from .client import Http as Http
