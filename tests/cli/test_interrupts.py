import signal
from typing import Annotated

import pytest
import typer

from remanence.cli._help import use_plain_help


@pytest.fixture
def interrupts():
    """Python's own handler: a process that was started in the background ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_while_the_command_line_is_read_is_not_lost():
    """Typer's validators drop an exception that a signal raises inside them."""
    lost = []
    begun = []

    def validator(value: int) -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            lost.append(value)
        return value

    app = typer.Typer()

    @app.command()
    def command(number: Annotated[int, typer.Option(callback=validator)] = 1) -> None:
        begun.append(number)

    use_plain_help(app)
    with pytest.raises(SystemExit) as stop:
        app(["--number", "3"])
    assert stop.value.code == 130
    assert not lost
    assert not begun
