import random
from typing import Any

from .logs.base import Logger
from .simulator import Simulator

class Session:
    session_id: int
    name: str
    prng: random.Random
    simulator: Simulator
    logger: Logger | None
    iteration_steps: int
    max_high_frequency_orders: int
    max_normal_orders: int
    with_order_execution: bool
    with_order_placement: bool
    with_print: bool
    high_frequency_submission_rate: float
    session_start_time: int
    def __init__(
        self,
        session_id: int,
        prng: random.Random,
        session_start_time: int,
        simulator: Simulator,
        name: str,
        logger: Logger | None = None,
    ) -> None: ...
    def __repr__(self) -> str: ...
    def setup(self, settings: dict[str, Any], *args: Any, **kwargs: Any) -> None: ...
