"""How far a run is: one line that changes on a terminal, few lines in a log."""

import sys
from collections.abc import Callable
from time import monotonic
from typing import TextIO

LOG_EVERY = 100  # steps between two lines where lines cannot change


class Progress:
    """Shows step, loss, speed, and the time that is left.

    Args:
        label: what runs.
        total: its steps.
        done: those that an earlier sitting did.
        shown: False: say nothing, as processes do that do not lead.
        stream: where to write; None: the standard error.
        clock: seconds that go by.

    >>> ticks = iter([0.0, 10.0, 11.0])
    >>> progress = Progress("mini", 300, stream=sys.stdout, clock=lambda: next(ticks))
    >>> for step in (99, 100, 101):
    ...     progress.show(step, 6.5)
    mini: step 100 of 300, loss 6.500, 10.0 steps/s, 0:00:20 left
    """

    def __init__(
        self,
        label: str,
        total: int,
        *,
        done: int = 0,
        shown: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = monotonic,
    ):
        self.label, self.total, self.before, self.shown = label, total, done, shown
        self.stream = sys.stderr if stream is None else stream
        self.clock, self.start = clock, clock()
        self.changes = self.stream.isatty()

    def show(self, step: int, loss: float) -> None:
        """Tell that a step is done, if it is time to."""
        last = step == self.total
        if not self.shown or not (self.changes or last or step % LOG_EVERY == 0):
            return
        rate = (step - self.before) / max(self.clock() - self.start, 1e-9)
        text = (
            f"{self.label}: step {step} of {self.total}, loss {loss:.3f}, "
            f"{rate:.1f} steps/s, {clock_time((self.total - step) / rate)} left"
        )
        if self.changes:
            text = f"\r{text}\033[K" + "\n" * last
        print(text, end="" if self.changes else "\n", file=self.stream, flush=True)


def clock_time(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock_time(3723.4)
    '1:02:03'
    """
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
