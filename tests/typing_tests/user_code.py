"""A user's program, as a type checker sees it. ``test_wheel_types.py`` checks it; nothing runs it.

It may use only what a user on Python 3.10 has: the standard library, PAMS and pams_parallel.
"""

from __future__ import annotations

import io
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import pams
import pams.agents
import pams.events
import pams.logs
import pams.utils
from pams import LIMIT_ORDER, Cancel, Market, Order, Session, Simulator
from pams.agents import Agent, FCNAgent, HighFrequencyAgent
from pams.events import EventABC, EventHook
from pams.logs import CancelLog, ExecutionLog, Logger, MarketStepEndLog, MarketStepSaver, OrderLog
from pams.runners import Runner, SequentialRunner

import pams_parallel
from pams_parallel import (
    CodecBackend,
    DillBackend,
    MultiProcessAgentParallelRunner,
    PickleBackend,
    References,
    SyncedAttributesMixin,
)

if sys.version_info >= (3, 11):
    from typing import assert_type


class CountingAgent(FCNAgent):
    """Lists an attribute without any base class of ours."""

    synced_attributes = ("counter",)
    counter: int

    def setup(
        self,
        settings: dict[str, Any],
        accessible_markets_ids: list[int],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().setup(settings, accessible_markets_ids, *args, **kwargs)
        self.counter = 0

    def submit_orders(self, markets: list[Market]) -> list[Order | Cancel]:
        self.counter += 1
        orders = super().submit_orders(markets)
        prices: list[float] = [market.get_market_price() for market in markets]
        if prices and self.prng.random() < 0.5:
            market = markets[0]
            order = Order(
                agent_id=self.agent_id,
                market_id=market.market_id,
                is_buy=True,
                kind=LIMIT_ORDER,
                volume=1,
                price=prices[0] * self.order_margin,
                ttl=self.time_window_size,
            )
            orders.append(order)
            orders.append(Cancel(order))
        return orders

    def submitted_order(self, log: OrderLog) -> None:
        self.counter += log.order_id

    def executed_order(self, log: ExecutionLog) -> None:
        self.cash_amount += log.price * log.volume

    def canceled_order(self, log: CancelLog) -> None:
        self.counter -= log.cancel_time


class MixedInAgent(SyncedAttributesMixin, FCNAgent):
    """Lists an attribute with the mixin."""

    synced_attributes = ("counter",)
    counter: int = 0

    def submit_orders(self, markets: list[Market]) -> list[Order | Cancel]:
        self.counter += 1
        return super().submit_orders(markets)


class FastAgent(HighFrequencyAgent):
    """Fills in the one abstract method of an agent."""

    def submit_orders(self, markets: list[Market]) -> list[Order | Cancel]:
        return []


class Shock(EventABC):
    """Overrides every hook of an event."""

    size: float = 0.0

    def setup(self, settings: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        self.size = settings["size"]

    def hook_registration(self) -> list[EventHook]:
        market = self.simulator.name2market["market"]
        return [
            EventHook(self, "market", is_before=True, time=[1, 2], specific_instance=market),
            EventHook(event=self, hook_type="market", is_before=False, specific_class=Market),
        ]

    def hooked_before_order(self, simulator: Simulator, order: Order) -> None:
        order.price = None if order.price is None else order.price * self.size

    def hooked_after_order(self, simulator: Simulator, order_log: OrderLog) -> None: ...

    def hooked_before_cancel(self, simulator: Simulator, cancel: Cancel) -> None: ...

    def hooked_after_cancel(self, simulator: Simulator, cancel_log: CancelLog) -> None: ...

    def hooked_after_execution(self, simulator: Simulator, execution_log: ExecutionLog) -> None: ...

    def hooked_before_session(self, simulator: Simulator, session: Session) -> None: ...

    def hooked_after_session(self, simulator: Simulator, session: Session) -> None: ...

    def hooked_before_step_for_market(self, simulator: Simulator, market: Market) -> None:
        market.change_fundamental_price(scale=1.0 + self.size)

    def hooked_after_step_for_market(self, simulator: Simulator, market: Market) -> None: ...


class PriceLogger(Logger):
    """Keeps the prices of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.prices: list[float] = []

    def process_market_step_end_log(self, log: MarketStepEndLog) -> None:
        self.prices.append(log.market.get_market_price())


class _OwnPickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO, references: References) -> None:
        super().__init__(buffer)
        self._references = references

    def persistent_id(self, obj: object) -> object | None:
        return self._references.persistent_id(obj)


class _OwnUnpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, references: References) -> None:
        super().__init__(buffer)
        self._references = references

    def persistent_load(self, pid: object) -> object:
        return self._references.persistent_load(pid)


class OwnBackend:
    """A backend of the user's own: the members are enough, no base class is needed."""

    name: str = "own"

    def dumps(self, obj: object, references: References) -> bytes:
        buffer = io.BytesIO()
        _OwnPickler(buffer, references).dump(obj)
        return buffer.getvalue()

    def loads(self, data: bytes, references: References) -> object:
        return _OwnUnpickler(io.BytesIO(data), references).load()


SETTINGS: dict[str, Any] = {"simulation": {"markets": [], "agents": [], "sessions": []}}


def all_codecs() -> list[MultiProcessAgentParallelRunner]:
    """Every kind of ``codec=``."""
    own: CodecBackend = OwnBackend()
    return [
        MultiProcessAgentParallelRunner(SETTINGS),
        MultiProcessAgentParallelRunner(SETTINGS, prng=random.Random(1), codec="pickle"),
        MultiProcessAgentParallelRunner(SETTINGS, prng=random.Random(1), codec="dill"),
        MultiProcessAgentParallelRunner(SETTINGS, prng=random.Random(1), codec=PickleBackend()),
        MultiProcessAgentParallelRunner(SETTINGS, prng=random.Random(1), codec=DillBackend()),
        MultiProcessAgentParallelRunner(SETTINGS, prng=random.Random(1), codec=OwnBackend()),
        MultiProcessAgentParallelRunner(SETTINGS, random.Random(1), PriceLogger(), codec=own),
    ]


def all_settings() -> list[Runner]:
    """Every kind of settings."""
    with open("settings.json", encoding="utf-8") as opened:
        return [
            MultiProcessAgentParallelRunner("settings.json"),
            MultiProcessAgentParallelRunner(Path("settings.json")),
            MultiProcessAgentParallelRunner(opened),
            SequentialRunner("settings.json", logger=MarketStepSaver()),
            SequentialRunner(Path("settings.json"), simulator_class=Simulator),
            SequentialRunner(opened),
            SequentialRunner(io.StringIO("{}")),
        ]


def use(runner: MultiProcessAgentParallelRunner) -> None:
    """What is read from a runner has a type, and no Any slips in."""
    runner.class_register(CountingAgent)
    runner.class_register(MixedInAgent)
    runner.class_register(FastAgent)
    runner.class_register(Shock)
    runner.main()

    n: int = runner.num_parallel
    simulator: Simulator = runner.simulator
    agents: list[Agent] = simulator.agents
    first: float = agents[0].cash_amount
    best: float | None = simulator.markets[0].get_best_buy_price()
    session: Session | None = simulator.current_session
    version: str = pams.__version__
    print(n, first, best, session, version, pams_parallel.__name__)

    if sys.version_info >= (3, 11):
        assert_type(runner, pams_parallel.MultiProcessAgentParallelRunner)
        assert_type(runner.num_parallel, int)
        assert_type(runner.logger, Logger | None)
        assert_type(runner.settings, dict[str, Any])
        assert_type(runner.simulator, Simulator)
        assert_type(runner.simulator.agents, list[Agent])
        assert_type(runner.simulator.id2market, dict[int, Market])
        assert_type(runner.simulator.markets[0].get_mid_price(), float | None)
        assert_type(runner.simulator.markets[0].buy_order_book.priority_queue, list[Order])
        assert_type(runner.simulator.sessions[0].simulator, Simulator)
        assert_type(runner.simulator.fundamentals.prices, dict[int, list[float]])
        assert_type(agents[0].submit_orders([]), list[Order | Cancel])
        assert_type(agents[0].prng, random.Random)
        assert_type(agents[0].logger, Logger | None)
        assert_type(pams.utils.find_class("FCNAgent"), type[Any])
        assert_type(PickleBackend().dumps(1, _references()), bytes)
        assert_type(DillBackend().loads(b"", _references()), object)
        assert_type(PickleBackend().name, str)


def _references() -> References:
    """A table of the user's own, as a test of a backend has one."""

    class Nothing:
        def persistent_id(self, obj: object, /) -> object | None:
            return None

        def persistent_load(self, pid: Any, /) -> object:
            raise KeyError(pid)

    return Nothing()
