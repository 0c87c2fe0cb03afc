"""Reads the prices of models and the budgets of keys, and checks that each budget can be counted."""

from __future__ import annotations

from ...schema.suggestions import listed
from ..access.keys import opens
from .fields import ENOUGH, File, Table, number, whole
from .settings import Budget, GatewaySettings, Key, Price

MOST_MONEY = 1e12


def read_price(table: Table) -> Price:
    """Return the price in a table."""
    amount = number(0, MOST_MONEY)
    price = Price(
        table.take("input", amount, 0.0), table.take("output", amount, 0.0), table.take("cached", amount, None)
    )
    for name in ("input", "output"):
        if not table.has(name):
            table.wrong("expected the price of a million tokens, such as { input = 0.5, output = 1.5 }", name)
    table.close()
    return price


def read_budget(table: Table) -> Budget:
    """Return the budget in a table."""
    tokens = table.take("tokens", whole(1, ENOUGH), None)
    budget = Budget(tokens, table.take("money", number(0.000001, MOST_MONEY), None))
    table.close()
    return budget


def check_budget(key: Key, settings: GatewaySettings, file: File) -> None:
    """Find a budget that could not be counted."""
    place = ("keys", key.name, "budget")
    if key.budget and settings.store is None:
        file.wrong(place, 'budgets are counted in a file: expected [store] with path = "FILE"')
    if free := [] if key.budget.money is None else _without_price(key, settings, file):
        message = (
            f"there is no price of {listed(free)}: expected price = {{ input = …, output = … }} per million tokens"
        )
        file.wrong((*place, "money"), message)


def _without_price(key: Key, settings: GatewaySettings, file: File) -> list[str]:
    """Return a key's models without a price. A list of models or a price that is wrong has its own error."""
    if file.is_wrong("keys", key.name, "models"):
        return []
    opened = [model for name, model in settings.models.items() if opens(key, name)]
    free = [model.name for model in opened if model.price is None]
    return [name for name in free if not file.is_wrong("models", name, "price")]
