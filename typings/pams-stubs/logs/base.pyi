from pams.market import Market
from pams.order import OrderKind
from pams.session import Session
from pams.simulator import Simulator

class Log:
    def read_and_write(self, logger: Logger) -> None: ...
    def read_and_write_with_direct_process(self, logger: Logger) -> None: ...

class OrderLog(Log):
    order_id: int
    market_id: int
    time: int
    agent_id: int
    is_buy: bool
    kind: OrderKind
    price: float | None
    volume: int
    ttl: int | None
    def __init__(
        self,
        order_id: int,
        market_id: int,
        time: int,
        agent_id: int,
        is_buy: bool,
        kind: OrderKind,
        volume: int,
        price: float | None = None,
        ttl: int | None = None,
    ) -> None: ...

class CancelLog(Log):
    order_id: int
    market_id: int
    cancel_time: int
    order_time: int
    agent_id: int
    is_buy: bool
    kind: OrderKind
    price: float | None
    volume: int
    ttl: int | None
    def __init__(
        self,
        order_id: int,
        market_id: int,
        cancel_time: int,
        order_time: int,
        agent_id: int,
        is_buy: bool,
        kind: OrderKind,
        volume: int,
        price: float | None = None,
        ttl: int | None = None,
    ) -> None: ...

class ExpirationLog(Log):
    order_id: int | None
    market_id: int
    time: int
    order_time: int | None
    agent_id: int
    is_buy: bool
    kind: OrderKind
    price: float | None
    volume: int
    ttl: int | None
    def __init__(
        self,
        order_id: int | None,
        market_id: int,
        time: int,
        order_time: int | None,
        agent_id: int,
        is_buy: bool,
        kind: OrderKind,
        volume: int,
        price: float | None = None,
        ttl: int | None = None,
    ) -> None: ...

class ExecutionLog(Log):
    market_id: int
    time: int
    buy_agent_id: int
    sell_agent_id: int
    buy_order_id: int
    sell_order_id: int
    price: float
    volume: int
    def __init__(
        self,
        market_id: int,
        time: int,
        buy_agent_id: int,
        sell_agent_id: int,
        buy_order_id: int,
        sell_order_id: int,
        price: float,
        volume: int,
    ) -> None: ...

class SimulationBeginLog(Log):
    simulator: Simulator
    def __init__(self, simulator: Simulator) -> None: ...

class SimulationEndLog(Log):
    simulator: Simulator
    def __init__(self, simulator: Simulator) -> None: ...

class SessionBeginLog(Log):
    simulator: Simulator
    session: Session
    def __init__(self, session: Session, simulator: Simulator) -> None: ...

class SessionEndLog(Log):
    simulator: Simulator
    session: Session
    def __init__(self, session: Session, simulator: Simulator) -> None: ...

class MarketStepBeginLog(Log):
    session: Session
    market: Market
    simulator: Simulator
    def __init__(self, session: Session, market: Market, simulator: Simulator) -> None: ...

class MarketStepEndLog(Log):
    session: Session
    market: Market
    simulator: Simulator
    def __init__(self, session: Session, market: Market, simulator: Simulator) -> None: ...

class Logger:
    simulator: Simulator
    pending_logs: list[Log]
    def __init__(self) -> None: ...
    def _set_simulator(self, simulator: Simulator) -> None: ...
    def write(self, log: Log) -> None: ...
    def bulk_write(self, logs: list[Log]) -> None: ...
    def write_and_direct_process(self, log: Log) -> None: ...
    def bulk_write_and_direct_process(self, logs: list[Log]) -> None: ...
    def _process(self) -> None: ...
    def process(self, logs: list[Log]) -> None: ...
    def process_order_log(self, log: OrderLog) -> None: ...
    def process_cancel_log(self, log: CancelLog) -> None: ...
    def process_expiration_log(self, log: ExpirationLog) -> None: ...
    def process_execution_log(self, log: ExecutionLog) -> None: ...
    def process_simulation_begin_log(self, log: SimulationBeginLog) -> None: ...
    def process_simulation_end_log(self, log: SimulationEndLog) -> None: ...
    def process_session_begin_log(self, log: SessionBeginLog) -> None: ...
    def process_session_end_log(self, log: SessionEndLog) -> None: ...
    def process_market_step_begin_log(self, log: MarketStepBeginLog) -> None: ...
    def process_market_step_end_log(self, log: MarketStepEndLog) -> None: ...
