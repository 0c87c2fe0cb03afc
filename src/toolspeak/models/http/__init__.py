"""Models over HTTP: any server with an API of `api/`."""

from .client import Http as Http
