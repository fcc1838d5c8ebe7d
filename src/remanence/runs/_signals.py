"""A request to stop, noticed between two updates."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class Stopped(KeyboardInterrupt):
    """A signal stopped several jobs; every one of them has been saved.

    Example:
        >>> Stopped(15).number
        15
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class StopRequest:
    """Remembers the signal that asked the run to stop.

    Example:
        >>> StopRequest().signal is None
        True
    """

    def __init__(self) -> None:
        self.signal: int | None = None


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Turns SIGTERM and Ctrl-C into a request; a second Ctrl-C interrupts at once.

    Outside the main thread, where Python delivers no signals, nothing is caught.

    Example:
        >>> with stop_requests() as request:
        ...     signal.raise_signal(signal.SIGTERM)
        ...     request.signal == signal.SIGTERM
        True
    """
    request = StopRequest()

    def note(number: int, frame: object) -> None:
        if request.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        request.signal = number

    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
