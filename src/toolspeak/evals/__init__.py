"""Measures how well models call functions: cases, contenders, verdicts, tables, reports, comparisons."""
