import random
from typing import Any

from .agents.base import Agent
from .events.base import EventABC, EventHook
from .fundamentals import Fundamentals
from .logs.base import CancelLog, ExecutionLog, Logger, OrderLog
from .market import Market
from .order import Cancel, Order
from .session import Session

class Simulator:
    _prng: random.Random
    logger: Logger | None
    n_events: int
    events: list[EventABC]
    id2event: dict[int, EventABC]
    event_hooks: list[EventHook]
    events_dict: dict[str, dict[int | None, list[EventHook]]]
    name2event: dict[str, EventABC]
    n_agents: int
    agents: list[Agent]
    high_frequency_agents: list[Agent]
    normal_frequency_agents: list[Agent]
    id2agent: dict[int, Agent]
    name2agent: dict[str, Agent]
    agents_group_name2agent: dict[str, list[Agent]]
    n_markets: int
    markets: list[Market]
    id2market: dict[int, Market]
    name2market: dict[str, Market]
    markets_group_name2market: dict[str, list[Market]]
    fundamentals: Fundamentals
    n_sessions: int
    sessions: list[Session]
    id2session: dict[int, Session]
    name2session: dict[str, Session]
    current_session: Session | None
    def __init__(
        self,
        prng: random.Random,
        logger: Logger | None = None,
        fundamental_class: type[Fundamentals] = ...,
    ) -> None: ...
    def _add_event(self, event_hook: EventHook) -> None: ...
    def _add_market(self, market: Market, group_name: str | None = None) -> None: ...
    def _add_agent(self, agent: Agent, group_name: str | None = None) -> None: ...
    def _add_session(self, session: Session) -> None: ...
    def _update_time_on_market(self, market: Market) -> None: ...
    def _update_times_on_markets(self, markets: list[Market]) -> None: ...
    def _update_agents_for_execution(self, execution_logs: list[ExecutionLog]) -> None: ...
    def _check_event_class_and_instance(
        self,
        check_object: object,
        class_requirement: type[Any] | None = None,
        instance_requirement: object | None = None,
    ) -> bool: ...
    def _trigger_event_before_order(self, order: Order) -> None: ...
    def _trigger_event_after_order(self, order_log: OrderLog) -> None: ...
    def _trigger_event_before_cancel(self, cancel: Cancel) -> None: ...
    def _trigger_event_after_cancel(self, cancel_log: CancelLog) -> None: ...
    def _trigger_event_after_execution(self, execution_log: ExecutionLog) -> None: ...
    def _trigger_event_before_session(self, session: Session) -> None: ...
    def _trigger_event_after_session(self, session: Session) -> None: ...
    def _trigger_event_before_step_for_market(self, market: Market) -> None: ...
    def _trigger_event_after_step_for_market(self, market: Market) -> None: ...
