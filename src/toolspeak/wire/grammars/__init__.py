"""Builds one grammar from a dialect and its tools, in the forms that engines accept."""
