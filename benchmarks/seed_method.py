"""The baseline: the whole simulation is pickled for each chunk.

This is what one gets from PAMS's process runner by sending chunks instead of single agents. It is
kept as small as it can be, so that what it costs is the pickling and nothing else.
"""

from __future__ import annotations

import pickle
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeAlias

from pams import Cancel, Market, Order, Session
from pams.agents import Agent
from pams.runners import SequentialRunner

Orders: TypeAlias = list[Order | Cancel]


def ask_chunk(task: bytes) -> list[tuple[Orders, Any]]:
    """Ask the agents of a task, in a worker; return the orders and the generator of each."""
    agents: list[Agent]
    markets: list[Market]
    agents, markets = pickle.loads(task)
    return [(agent.submit_orders(markets), agent.prng.getstate()) for agent in agents]


class SeedMethodRunner(SequentialRunner):
    """Sends agents and markets, hence all that they refer to, with each of ``numParallel`` chunks.

    Attributes:
        task_sizes: bytes of each task of the run, by batch.
    """

    _executor: ProcessPoolExecutor
    task_sizes: list[list[int]]

    def _run(self) -> None:
        self.task_sizes = []
        with ProcessPoolExecutor(self.settings["simulation"]["numParallel"]) as self._executor:
            super()._run()

    def _collect_orders_from_normal_agents(self, session: Session) -> list[Orders]:
        agents = self.simulator.normal_frequency_agents
        agents = self._prng.sample(agents, len(agents))
        collected: list[Orders] = []
        while agents and len(collected) < session.max_normal_orders:
            missing = session.max_normal_orders - len(collected)
            batch, agents = agents[:missing], agents[missing:]
            collected += [orders for orders in self._ask(batch) if orders]
        return collected

    def _ask(self, batch: list[Agent]) -> list[Orders]:
        workers = self.settings["simulation"]["numParallel"]
        size = -(-len(batch) // workers)
        chunks = [batch[start : start + size] for start in range(0, len(batch), size)]
        sizes: list[int] = []
        futures: list[Future[list[tuple[Orders, Any]]]] = []
        for chunk in chunks:
            task = pickle.dumps((chunk, self.simulator.markets))
            sizes.append(len(task))
            # submitted before the next is pickled: the first worker need not wait for the last task
            futures.append(self._executor.submit(ask_chunk, task))
        self.task_sizes.append(sizes)
        answers = [answer for future in futures for answer in future.result()]
        for agent, (_, prng_state) in zip(batch, answers, strict=True):
            agent.prng.setstate(prng_state)
        return [orders for orders, _ in answers]
