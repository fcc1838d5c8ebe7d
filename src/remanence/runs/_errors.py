"""How a run may end before its time. Every error has an exit code of its own, so that scripts can tell them apart."""

from __future__ import annotations

from typing import ClassVar


class RunError(RuntimeError):
    """A run could not go on; what was reached is in its folder.

    Attributes:
        exit_code: what the command line ends with.

    Example:
        >>> RunError.exit_code, RunLockedError.exit_code
        (1, 4)
    """

    exit_code: ClassVar[int] = 1


class NonFiniteError(RunError):
    """The loss, a gradient or a weight is NaN or infinite; the last good state and the batch are kept.

    Example:
        >>> NonFiniteError.exit_code
        3
    """

    exit_code = 3


class RunLockedError(RunError):
    """Another process works on this run.

    Example:
        >>> RunLockedError.exit_code
        4
    """

    exit_code = 4


class StorageError(RunError):
    """The run folder cannot be written, as on a full disk; the last checkpoint is intact.

    Example:
        >>> StorageError.exit_code
        5
    """

    exit_code = 5


class CheckpointError(RunError):
    """There is no checkpoint that could be read, or what lies in the folder does not fit.

    Example:
        >>> CheckpointError.exit_code
        6
    """

    exit_code = 6


class DamagedFileError(RunError, ValueError):
    """A file of a run is missing, unreadable, or not what it should be; the message names it.

    Example:
        >>> DamagedFileError.exit_code
        2
    """

    exit_code = 2


class UntrustedCodeError(RunError):
    """Stored settings name code, and the user has neither named it nor said to trust it.

    Example:
        >>> UntrustedCodeError.exit_code
        7
    """

    exit_code = 7
