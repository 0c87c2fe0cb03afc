"""Finds values in a request that an argument can take: names, numbers, dates, units."""
