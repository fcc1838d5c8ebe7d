"""From errors to exit codes.

0 done, 2 bad input, 3 not finite, 4 in use, 5 cannot write, 6 no checkpoint, 7 untrusted code, 130 and 143 for signals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import typer

from remanence._validate import out_of_memory
from remanence._wording import printable
from remanence.data import DataError
from remanence.runs import RunError

BAD_INPUT = 2


def say(text: str) -> None:
    """Prints to the standard error; a name in it from a stranger's file sends no commands to the terminal.

    Example:
        >>> say("error: no such file")
    """
    typer.echo("\n".join(map(printable, text.splitlines())), err=True)


@contextlib.contextmanager
def exit_codes() -> Iterator[None]:
    """Turns what a user can mend into one line and an exit code.

    Example:
        >>> try:
        ...     with exit_codes():
        ...         raise ValueError("`seed` must be an int >= 0; got -1")
        ... except typer.Exit as stop:
        ...     stop.exit_code
        2
        >>> try:
        ...     with exit_codes():
        ...         raise MemoryError
        ... except typer.Exit as stop:
        ...     stop.exit_code
        2
    """
    try:
        yield
    except RunError as error:
        say(f"error: {error}")
        raise typer.Exit(error.exit_code) from error
    except (ValueError, TypeError, DataError, OSError, ImportError, RecursionError) as error:
        say(f"error: {error}")
        raise typer.Exit(BAD_INPUT) from error
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        told = str(error).splitlines()[0] if str(error) else "Python found none"
        say(f"error: out of memory; use smaller batches or a smaller model. {told}")
        raise typer.Exit(BAD_INPUT) from error
