"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest
from configs import child_processes, wait_for_end


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
