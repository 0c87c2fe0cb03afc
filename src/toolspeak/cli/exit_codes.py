"""The exit codes of all commands. 0 means that the command did its work."""

FAILED, USAGE, LIMITED, INTERRUPTED = 1, 2, 3, 130
EPILOG = "Exit codes: 0 done, 1 the model or a tool failed, 2 wrong usage, 3 a limit ended the run or cut the answer, 130 interrupted."


def code_of(error: Exception) -> int:
    """Return the exit code of a command that ends with this error."""
    from ..errors import MissingExtra, UsageError  # here, because this module is imported before Ctrl-C is caught

    return USAGE if isinstance(error, UsageError) and not isinstance(error, MissingExtra) else FAILED
