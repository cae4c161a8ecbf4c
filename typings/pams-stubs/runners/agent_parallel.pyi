import os
import random
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from io import TextIOBase
from typing import Any, TextIO

from ..agents import Agent
from ..logs.base import Logger
from ..market import Market
from ..order import Cancel, Order
from ..session import Session
from ..simulator import Simulator
from .sequential import SequentialRunner

def _submit_orders_in_worker(
    agent: Agent, markets: list[Market]
) -> tuple[list[Order | Cancel], Any]: ...

class MultiThreadAgentParallelRunner(SequentialRunner):
    _parallel_pool_provider: type[ThreadPoolExecutor] | type[ProcessPoolExecutor]
    num_parallel: int
    executor: Executor | None
    def __init__(
        self,
        settings: dict[str, Any] | TextIOBase | TextIO | os.PathLike[str] | str,
        prng: random.Random | None = None,
        logger: Logger | None = None,
        simulator_class: type[Simulator] = ...,
    ) -> None: ...
    def _setup(self) -> None: ...
    def _get_executor(self) -> Executor: ...
    def _shutdown_executor(self) -> None: ...
    def _run(self) -> None: ...
    def _receive_orders_from_worker(
        self, agent: Agent, future: Future[tuple[list[Order | Cancel], Any]]
    ) -> list[Order | Cancel]: ...
    def _collect_orders_from_normal_agents(
        self, session: Session
    ) -> list[list[Order | Cancel]]: ...

class MultiProcessAgentParallelRunner(MultiThreadAgentParallelRunner):
    _parallel_pool_provider: type[ThreadPoolExecutor] | type[ProcessPoolExecutor]
    def _receive_orders_from_worker(
        self, agent: Agent, future: Future[tuple[list[Order | Cancel], Any]]
    ) -> list[Order | Cancel]: ...
