"""What holds for every test."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import psutil
import pytest
from configs import child_processes, wait_for_end

# A shell that starts the tests in the background has Ctrl-C ignored, which programs that the tests
# start would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Fail the test that leaves a process behind; end what it left."""
    yield
    # one that was told to end may need a moment
    wait_for_end(child_processes(), timeout=1)
    left = child_processes()
    found = [str(process) for process in left]
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=5)
    assert not left, f"processes left behind: {found}"
