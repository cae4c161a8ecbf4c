import random
from abc import ABC, abstractmethod
from typing import Any

from pams.logs.base import CancelLog, ExecutionLog, OrderLog
from pams.market import Market
from pams.order import Cancel, Order
from pams.session import Session
from pams.simulator import Simulator

class EventHook:
    event: EventABC
    hook_type: str
    is_before: bool
    time: list[int] | None
    specific_class: type[Market] | None
    specific_instance: Market | None
    # Narrower than PAMS writes it: anything but markets is a ValueError there.
    def __init__(
        self,
        event: EventABC,
        hook_type: str,
        is_before: bool,
        time: list[int] | None = None,
        specific_class: type[Market] | None = None,
        specific_instance: Market | None = None,
    ) -> None: ...
    def __repr__(self) -> str: ...

class EventABC(ABC):
    event_id: int
    prng: random.Random
    simulator: Simulator
    name: str
    session: Session
    def __init__(
        self,
        event_id: int,
        prng: random.Random,
        session: Session,
        simulator: Simulator,
        name: str,
    ) -> None: ...
    def __repr__(self) -> str: ...
    def setup(self, settings: dict[str, Any], *args: Any, **kwargs: Any) -> None: ...
    @abstractmethod
    def hook_registration(self) -> list[EventHook]: ...
    def hooked_before_order(self, simulator: Simulator, order: Order) -> None: ...
    def hooked_after_order(self, simulator: Simulator, order_log: OrderLog) -> None: ...
    def hooked_before_cancel(self, simulator: Simulator, cancel: Cancel) -> None: ...
    def hooked_after_cancel(self, simulator: Simulator, cancel_log: CancelLog) -> None: ...
    def hooked_after_execution(self, simulator: Simulator, execution_log: ExecutionLog) -> None: ...
    def hooked_before_session(self, simulator: Simulator, session: Session) -> None: ...
    def hooked_after_session(self, simulator: Simulator, session: Session) -> None: ...
    def hooked_before_step_for_market(self, simulator: Simulator, market: Market) -> None: ...
    def hooked_after_step_for_market(self, simulator: Simulator, market: Market) -> None: ...
