"""What agents see in a worker, what comes back from there, and what they are warned about."""

from __future__ import annotations

import copy
import enum
import os
import random
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import sample_agents
from configs import (
    SAMPLE_CLASSES,
    InlineRunner,
    RunnerClass,
    ThreadRunner,
    assert_same,
    check_same_as_sequential,
    full_settings,
    main,
    make_parallel,
    make_sequential,
    make_settings,
    run_parallel,
    run_sequential,
    session,
    setup,
)
from pams import Market, Order, SequentialRunner, Session
from pams.agents import Agent
from pams.logs import Log, Logger
from sample_agents import (
    CHANGES,
    BoardAgent,
    CallbackAgent,
    CollectorAgent,
    CountingAgent,
    DeletingAgent,
    FalsyAgent,
    ForgetfulAgent,
    GetstateAgent,
    HelperAgent,
    KeeperAgent,
    LastDrawRandom,
    LastOrdersAgent,
    LearnerAgent,
    MarketNotesAgent,
    MixinAgent,
    Note,
    Orders,
    OwnRandomAgent,
    QueueAgent,
    ReduceAgent,
    RenamingAgent,
    SampleAgent,
    SetattrAgent,
    SetstateAgent,
    SlottedAgent,
    TrackerAgent,
    TranscriptLogger,
    TunedAgent,
    limit,
    reference_targets,
    resting_orders,
    unpicklable,
)

from pams_parallel import LoggerStateError, MultiProcessAgentParallelRunner

LOST = "Changes to attributes not listed in synced_attributes are lost"


def agents_of(runner: Any, cls: type[Any]) -> list[Any]:
    """Return the runner's agents of a class."""
    return [agent for agent in runner.simulator.agents if type(agent) is cls]


def run_sample(
    cls: type[Agent],
    number: int = 4,
    *,
    runner_class: RunnerClass = MultiProcessAgentParallelRunner,
    logger: Logger | None = None,
    codec: str | None = None,
    **arguments: Any,
) -> Any:
    """Run a simulation of one class of agents with our runner."""
    settings = make_settings({cls.__name__: number}, **arguments)
    classes = SAMPLE_CLASSES if cls in SAMPLE_CLASSES else (*SAMPLE_CLASSES, cls)
    return run_parallel(
        settings, classes, 42, runner_class=runner_class, logger=logger, codec=codec
    )


# -------------------------------------------------------------- 4. what comes back: attributes


def test_learner_comes_back_with_two_names_for_one_list() -> None:
    """Six listed names come back after every call, and two names for one list stay that."""
    settings = make_settings({"LearnerAgent": 8}, steps=12, max_normal_orders=5)
    _, parallel = check_same_as_sequential(settings)
    learners: list[LearnerAgent] = agents_of(parallel, LearnerAgent)
    assert all(learner.draws is learner.same_draws for learner in learners)
    assert all(len(learner.draws) == learner.n_asked > 0 for learner in learners)
    moods = [hasattr(learner, "mood") for learner in learners]
    assert any(moods)
    assert not all(moods)


def test_attributes_come_back_when_there_are_no_orders() -> None:
    """An agent that returns no orders gets its listed attributes and its generator all the same."""
    settings = make_settings({"CountingAgent": 6}, max_normal_orders=2)
    sequential, parallel = check_same_as_sequential(settings)
    for left, right in zip(
        agents_of(sequential, CountingAgent), agents_of(parallel, CountingAgent), strict=True
    ):
        assert left.asked_at == right.asked_at
        assert left.prng.getstate() == right.prng.getstate()
    assert sum(agent.n_asked for agent in agents_of(parallel, CountingAgent)) > 12


def test_attributes_are_there_before_the_orders_are_handled() -> None:
    """Callbacks of an order read what the call that returned the order has set."""
    settings = make_settings({"CallbackAgent": 5}, steps=8)
    _, parallel = check_same_as_sequential(settings)
    agents: list[CallbackAgent] = agents_of(parallel, CallbackAgent)
    plans = [plan for agent in agents for plan in agent.plans_at_submission]
    assert len(plans) > 8
    assert len(set(plans)) > 8
    assert any(agent.plans_at_execution for agent in agents)


def test_falsy_values_are_set_as_they_are() -> None:
    """None, 0, -0.0, an empty str, False and an empty list replace what main had."""
    for agent in agents_of(run_sample(FalsyAgent, steps=1), FalsyAgent):
        for name, value in FalsyAgent.FALSY.items():
            assert repr(getattr(agent, name)) == repr(value)


def test_deleted_attributes_are_deleted() -> None:
    """A deleted name goes in main, one that never was is no error, one of the class stays."""
    runner = run_sample(DeletingAgent, steps=3)
    for agent in agents_of(runner, DeletingAgent):
        assert "gone" not in vars(agent)
        assert "never" not in vars(agent)
        assert "of_class" not in vars(agent)
        assert agent.of_class == "class"


def test_what_getstate_drops_is_deleted() -> None:
    """A listed name that __getstate__ leaves out of what is sent is deleted in main."""
    runner = run_sample(sample_agents.DroppingAgent, max_normal_orders=4, steps=1)
    assert all("scratch" not in vars(agent) for agent in runner.simulator.agents)


def test_slots_come_back() -> None:
    """A listed value in a slot comes back."""
    _, parallel = check_same_as_sequential(make_settings({"SlottedAgent": 4}))
    agents: list[SlottedAgent] = agents_of(parallel, SlottedAgent)
    assert sum(agent.level for agent in agents) == 18
    assert all("level" not in vars(agent) for agent in agents)


def test_values_are_set_with_setattr() -> None:
    """A __setattr__ of the agent's class is gone through in main."""
    runner = run_sample(SetattrAgent, 3, max_normal_orders=3, steps=4)
    for agent in agents_of(runner, SetattrAgent):
        assert agent.level == 4
        assert agent.times_set == 1 + 4


def test_a_list_of_names_and_the_typed_mixin() -> None:
    """synced_attributes may be a list, and may be declared by the mixin."""
    _, parallel = check_same_as_sequential(make_settings({"MixinAgent": 4}))
    assert sum(agent.n_asked for agent in agents_of(parallel, MixinAgent)) == 18


class RelistingRunner(MultiProcessAgentParallelRunner):
    """Changes what an agent lists before every step."""

    def _update_markets(self, session: Any) -> None:
        time = self.simulator.markets[0].get_time()
        for agent in agents_of(self, RenamingAgent):
            agent.synced_attributes = (("left",), ["right"], ("left", "right"), ())[time]
        super()._update_markets(session)


@pytest.mark.filterwarnings(f"ignore:{LOST}")
def test_names_are_read_at_every_call() -> None:
    """What an instance lists may change at any time, and holds from the next call on."""
    runner = run_sample(RenamingAgent, steps=4, runner_class=RelistingRunner)
    for agent in agents_of(runner, RenamingAgent):
        # the calls are +1 each: at times 0 and 2 left comes back, at times 1 and 2 right
        assert (agent.left, agent.right) == (2, 2)


@pytest.mark.filterwarnings(f"ignore:{LOST}")
def test_nothing_else_comes_back() -> None:
    """Unlisted attributes of main's agent stay what and which they were."""
    settings = make_settings({"UnlistedAgent": 4})
    runner = make_parallel(settings, SAMPLE_CLASSES, 1)
    setup(runner)
    before = [dict(vars(agent)) for agent in runner.simulator.agents]
    runner._run()
    for agent, old in zip(runner.simulator.agents, before, strict=True):
        assert list(vars(agent)) == list(old)
        assert all(
            value is old[name] for name, value in vars(agent).items() if name != "cash_amount"
        )


def test_the_agents_own_containers_come_back_as_copies() -> None:
    """A listed list is replaced by a copy: who held the old one sees no change."""
    runner = make_parallel(make_settings({"CountingAgent": 3}), SAMPLE_CLASSES, 1)
    setup(runner)
    old = [agent.asked_at for agent in runner.simulator.agents]
    runner._run()
    for agent, asked_at in zip(runner.simulator.agents, old, strict=True):
        assert agent.asked_at is not asked_at
        assert agent.asked_at
        assert asked_at == []


class HookedRunner(MultiProcessAgentParallelRunner):
    """Notes the calls of both receiving hooks, which it lets do their work."""

    calls: list[tuple[str, int, Any]]

    def _receive_synced_attributes_from_worker(
        self, agent: Agent, attributes: dict[str, object]
    ) -> None:
        before = getattr(agent, "n_asked", None)
        super()._receive_synced_attributes_from_worker(agent=agent, attributes=attributes)
        self.calls.append(("attributes", agent.agent_id, (dict(attributes), before)))

    def _receive_orders_from_worker(self, agent: Agent, orders: Orders, prng_state: Any) -> Orders:
        received = super()._receive_orders_from_worker(
            agent=agent, orders=orders, prng_state=prng_state
        )
        self.calls.append(("orders", agent.agent_id, getattr(agent, "n_asked", None)))
        assert agent.prng.getstate() == prng_state
        return received


def test_hooks_see_attributes_then_orders_agent_by_agent() -> None:
    """The attributes of an agent come first, then its generator and orders, also when empty."""
    settings = make_settings({"CountingAgent": 3, "IdleAgent": 3}, max_normal_orders=6, steps=3)
    runner = make_parallel(settings, SAMPLE_CLASSES, 4, runner_class=HookedRunner)
    runner.calls = []
    main(runner)
    hooks = [(hook, agent) for hook, agent, _ in runner.calls]
    assert hooks.count(("attributes", 0)) >= 3
    assert not [agent for hook, agent in hooks if hook == "attributes" and agent >= 3]
    for i, (hook, agent) in enumerate(hooks):
        if hook == "attributes":
            assert hooks[i + 1] == ("orders", agent)
        elif agent < 3:
            assert hooks[i - 1] == ("attributes", agent)
    for hook, agent_id, seen in runner.calls:
        if hook == "attributes":
            attributes, before = seen
            assert set(attributes) == {"n_asked", "asked_at"}
            assert attributes["n_asked"] == before + 1
        elif agent_id < 3:
            assert seen is not None
    assert len(runner.calls) > len(set(hooks))
    assert_same(run_sequential(settings, SAMPLE_CLASSES, 4), runner)


class OrderChangingRunner(MultiProcessAgentParallelRunner):
    """Drops the orders of one agent and doubles the volume of the others'."""

    def _receive_orders_from_worker(self, agent: Agent, orders: Orders, prng_state: Any) -> Orders:
        received = super()._receive_orders_from_worker(agent, orders, prng_state)
        if agent.agent_id == 0:
            return []
        for order in received:
            if isinstance(order, Order):
                order.volume *= 2
        return received


def test_orders_that_a_hook_returns_are_those_that_are_placed() -> None:
    """A hook may replace and change the orders of an agent."""
    logger = TranscriptLogger()
    run_sample(SampleAgent, runner_class=OrderChangingRunner, logger=logger, max_normal_orders=4)
    placed = [line for line in logger.lines if line.startswith("OrderLog")]
    assert len(placed) == 3 * 6
    assert all("'volume': 2" in line for line in placed)
    assert not [line for line in placed if "'agent_id': 0" in line]


# -------------------------------------------------------------- 4. what comes back: identity


def test_a_returned_order_that_is_also_kept_is_one_object() -> None:
    """An order that an agent returns and keeps in a listed attribute is the one in the book."""
    _, parallel = check_same_as_sequential(make_settings({"LastOrdersAgent": 4}, markets=2))
    found = 0
    for agent in agents_of(parallel, LastOrdersAgent):
        for order in agent.last_orders:
            if order.volume > 0:
                market = parallel.simulator.id2market[order.market_id]
                assert any(order is other for other in resting_orders(market))
                found += 1
    assert found


def test_the_returned_list_itself_comes_back() -> None:
    """A listed list that the agent returns is the agent's list: a callback may pop from it."""
    settings = make_settings({"QueueAgent": 4}, steps=5)
    sequential, _ = check_same_as_sequential(settings)
    agents: list[QueueAgent] = agents_of(sequential, QueueAgent)
    # self-check: the callback really took something off before it was placed
    assert any(len(agent.waiting) < 4 for agent in agents)


def test_a_cancel_of_an_order_of_the_same_call() -> None:
    """[order, Cancel(order)] places the order and cancels it."""
    logger = TranscriptLogger()
    run_sample(sample_agents.CancelAtOnceAgent, logger=logger)
    names = [line.split()[0] for line in logger.lines]
    assert names.count("OrderLog") == names.count("CancelLog") == 3 * 6


def test_agents_of_one_task_share_what_they_shared() -> None:
    """A list that agents of one task share and list is one list afterwards, with all changes."""
    settings = make_settings({"BoardAgent": 4}, num_parallel=1, max_normal_orders=4, steps=1)
    runner = make_parallel(settings, SAMPLE_CLASSES, 5)
    setup(runner)
    agents: list[BoardAgent] = agents_of(runner, BoardAgent)
    board: list[int] = []
    for agent in agents:
        agent.board = board
    runner._run()
    assert len({id(agent.board) for agent in agents}) == 1
    assert sorted(agents[0].board) == [0, 1, 2, 3]
    assert sorted(agent.n_seen for agent in agents) == [0, 1, 2, 3]


def test_a_helper_refers_to_its_agent_of_main() -> None:
    """A listed object that refers back to its agent refers to main's agent."""
    _, parallel = check_same_as_sequential(make_settings({"HelperAgent": 4}))
    agents: list[HelperAgent] = agents_of(parallel, HelperAgent)
    assert all(agent.helper.agent is agent for agent in agents)
    assert sum(agent.helper.n_chosen for agent in agents) == 18


def test_a_dict_keyed_by_markets() -> None:
    """The keys of a listed dict are main's markets."""
    _, parallel = check_same_as_sequential(make_settings({"MarketNotesAgent": 4}, markets=3))
    markets: list[Market] = parallel.simulator.markets
    for agent in agents_of(parallel, MarketNotesAgent):
        assert [id(market) for market in agent.notes] == [id(market) for market in markets]
        assert all(agent.notes[market] >= 1 for market in markets)


def test_a_tracker_finds_and_cancels_its_orders() -> None:
    """Orders kept in a listed list are those of the book, in a worker and in main."""
    logger = TranscriptLogger()
    settings = make_settings({"TrackerAgent": 4}, steps=12)
    parallel = run_parallel(settings, SAMPLE_CLASSES, 2, logger=logger)
    assert_same(run_sequential(settings, SAMPLE_CLASSES, 2, TranscriptLogger()), parallel)
    assert sum(line.startswith("CancelLog") for line in logger.lines) > 4
    agents: list[TrackerAgent] = agents_of(parallel, TrackerAgent)
    book = parallel.simulator.markets[0].buy_order_book.priority_queue
    mine = [order for agent in agents for order in agent.mine]
    assert mine
    assert all(any(order is other for other in book) for order in mine if order.volume)


def test_what_the_market_wrote_into_a_kept_order_is_seen() -> None:
    """A kept order shows its id, time, volume and cancellation, and is that of the book."""
    settings = make_settings({"KeeperAgent": 4}, steps=14)
    _, parallel = check_same_as_sequential(settings)
    agents: list[KeeperAgent] = agents_of(parallel, KeeperAgent)
    last = [fields for agent in agents for fields in agent.seen[-1]]
    assert all(number is not None and time is not None for number, time, _, _ in last)
    assert any(volume == 0 for _, _, volume, _ in last)
    assert any(canceled for _, _, _, canceled in last)
    assert any(agent.n_resting for agent in agents)


# ------------------------------------------------------------------------- 4. generators


class GaussAgent(SampleAgent):
    """Leaves a second gauss value pending at every other call."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Draw once or twice."""
        shift = self.prng.gauss(0.0, 2.0)
        if markets[0].get_time() % 2:
            shift += self.prng.gauss(0.0, 2.0)
        return [limit(self, markets[0], shift, is_buy=shift > 0)]


def test_the_pending_gauss_value_comes_back() -> None:
    """The generator's state comes back with version, words and the pending gauss value."""
    settings = make_settings({"GaussAgent": 5}, steps=5)
    _, parallel = check_same_as_sequential(settings, classes=(*SAMPLE_CLASSES, GaussAgent))
    pending = [agent.prng.getstate()[2] for agent in parallel.simulator.agents]
    assert any(value is not None for value in pending)


def test_generators_of_a_users_class_come_back_through_their_getstate() -> None:
    """A random.Random subclass with a state of its own is brought back through it."""
    sequential, parallel = check_same_as_sequential(make_settings({"OwnRandomAgent": 4}))
    draws = [
        [agent.prng.n_draws for agent in agents_of(runner, OwnRandomAgent)]
        for runner in (sequential, parallel)
    ]
    assert draws[0] == draws[1]
    assert all(type(a.prng) is LastDrawRandom for a in agents_of(parallel, OwnRandomAgent))


def test_the_generator_of_an_agent_stays_the_same_object() -> None:
    """Only the state of agent.prng changes, in place: others may hold the generator."""
    runner = make_parallel(make_settings({"SampleAgent": 4}), SAMPLE_CLASSES, 1)
    setup(runner)
    before = [(agent.prng, agent.prng.getstate()) for agent in runner.simulator.agents]
    runner._run()
    for agent, (prng, state) in zip(runner.simulator.agents, before, strict=True):
        assert agent.prng is prng
        assert agent.prng.getstate() != state


class StatelessGeneratorAgent(SampleAgent):
    """Holds a generator that has no state at all; it makes a new one wherever it is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.system = random.SystemRandom()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "system"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.system = random.SystemRandom()

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Use it, without any consequence."""
        self.system.random()
        return super().submit_orders(markets)


def test_a_generator_without_a_state_stops_nothing() -> None:
    """An agent that holds random.SystemRandom, whose getstate raises, is asked as any other."""
    settings = make_settings({"StatelessGeneratorAgent": 4})
    check_same_as_sequential(settings, classes=(*SAMPLE_CLASSES, StatelessGeneratorAgent))


# ------------------------------------------------------------------------- 5. references


@pytest.mark.parametrize("codec", ["pickle", "dill"])
@pytest.mark.parametrize("runner_class", [MultiProcessAgentParallelRunner, ThreadRunner])
def test_references_to_the_simulation_are_main_objects(
    codec: str, runner_class: RunnerClass
) -> None:
    """Every kind of simulation object, generator and container comes back as that of main."""
    settings = full_settings(
        population={"CollectorAgent": 2, "TrackerAgent": 3},
        sessions=[session(4, 9, events=["PriceLimit"])],
        num_parallel=2,
    )
    sent: list[dict[str, object]] = []

    class SendingRunner(runner_class):  # type: ignore[valid-type,misc]  # a parameter
        def _split_agents_into_chunks(self, agents: list[Agent]) -> list[list[Agent]]:
            if any(isinstance(agent, CollectorAgent) for agent in agents):
                sent.append(reference_targets(self.simulator, self.simulator.markets))
            return super()._split_agents_into_chunks(agents=agents)  # type: ignore[no-any-return]

    runner = run_parallel(
        settings,
        SAMPLE_CLASSES,
        6,
        codec=codec,
        runner_class=SendingRunner,
        logger=TranscriptLogger(),
    )
    assert any(key.startswith("resting order") for key in sent[-1])
    for agent in agents_of(runner, CollectorAgent):
        assert set(agent.found) == set(sent[-1])
        different = [key for key, obj in agent.found.items() if obj is not sent[-1][key]]
        assert different == []


class KnowsMarketsAgent(SampleAgent):
    """Lists whether the markets that it gets are those of its simulator."""

    synced_attributes = ("is_same", "is_known")
    is_same = False
    is_known = False

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Compare identities."""
        self.is_same = markets is self.simulator.markets
        self.is_known = self.simulator.id2agent[self.agent_id] is self and (
            self.simulator.agents[self.agent_id] is self
        )
        return []


def test_markets_are_the_list_of_the_simulator() -> None:
    """In a worker markets is self.simulator.markets, and the agent is among its agents."""
    runner = run_sample(KnowsMarketsAgent, steps=1)
    assert all(agent.is_same for agent in runner.simulator.agents)
    assert all(agent.is_known for agent in runner.simulator.agents)


class ExecutedOrderAgent(SampleAgent):
    """Keeps orders that are in no book any more."""

    synced_attributes = ("kept", "same")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kept: list[Order] = []
        self.same: list[Order] = self.kept

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order that expires at once, and keep it."""
        order = limit(self, markets[0], -50, is_buy=True, ttl=1)
        self.kept.append(order)
        return [order]


def test_orders_in_no_book_are_the_agents_own() -> None:
    """An expired order that is kept stays one object within the agent, with all its fields."""
    settings = make_settings({"ExecutedOrderAgent": 3}, steps=7, max_normal_orders=3)
    _, parallel = check_same_as_sequential(settings, classes=(*SAMPLE_CLASSES, ExecutedOrderAgent))
    for agent in agents_of(parallel, ExecutedOrderAgent):
        assert agent.kept is agent.same
        assert [order.placed_at for order in agent.kept] == list(range(7))


# ------------------------------------------------- 5. classes of __main__ and of functions


def make_local_classes() -> tuple[type[Any], type[enum.Enum], list[str]]:
    """Return an agent class, an enum and a record of subclassing, all made here."""
    subclassed: list[str] = []

    class Base:
        def __init_subclass__(cls, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            subclassed.append(cls.__name__)

    class Mood(enum.Enum):
        CALM = 1
        WILD = 2

    class Policy(Base):
        def __init__(self) -> None:
            self.rule: Callable[[int], int] = lambda draw: draw % 5 - 2
            self.mood = Mood.CALM

    class LocalAgent(SampleAgent):
        synced_attributes = ("policy", "mood", "kinds", "is_stable", "n_asked")
        answers: ClassVar[dict[Mood, int]] = {Mood.CALM: 0, Mood.WILD: 1}

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.policy = Policy()
            self.mood = Mood.CALM
            self.kinds: list[type] = []
            self.is_stable = True
            self.n_asked = 0

        def submit_orders(self, markets: list[Market]) -> Orders:
            import sample_agents

            # which process this is does not matter to results; whether the class is one does
            sample_agents.remembered_classes.append(type(self))
            same = all(cls is type(self) for cls in sample_agents.remembered_classes)
            self.is_stable = self.is_stable and same and isinstance(self.policy, Policy)
            self.n_asked += 1
            self.mood = Mood.WILD if self.mood is Mood.CALM else Mood.CALM
            self.policy.mood = self.mood
            self.kinds = [Policy, Mood, type(self)]
            shift = self.policy.rule(self.prng.randint(0, 9)) + self.answers[self.mood]
            return [limit(self, self.pick(markets), shift)]

    return LocalAgent, Mood, subclassed


@pytest.fixture
def fresh_memory() -> Iterator[None]:
    """Forget which classes agents remembered in this process."""
    sample_agents.remembered_classes.clear()
    yield
    sample_agents.remembered_classes.clear()


@pytest.mark.usefixtures("fresh_memory")
@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_classes_of_a_function_through_dill(start_method: str) -> None:
    """Local classes stay main's own on the way back and one class in each worker."""
    local_agent, mood, subclassed = make_local_classes()
    settings = make_settings({"LocalAgent": 5}, start_method=start_method, steps=5)
    classes = (*SAMPLE_CLASSES, local_agent)
    parallel = run_parallel(settings, classes, 3, codec="dill")
    assert subclassed == ["Policy"]  # main's class, once; no copy of it was made here
    for agent in parallel.simulator.agents:
        assert type(agent) is local_agent
        assert agent.is_stable
        assert agent.n_asked > 0
        assert any(agent.mood is member for member in mood)
        assert agent.policy.mood is agent.mood
        assert agent.kinds == [type(agent.policy), mood, local_agent]
    sample_agents.remembered_classes.clear()
    sequential: Any = run_sequential(settings, classes, 3)
    assert_same(sequential, parallel)


SCRIPT_OF_MAIN = """
    import enum, random, sys
    from pams import SequentialRunner
    from configs import assert_same, make_settings
    from sample_agents import SampleAgent, limit
    from pams_parallel import MultiProcessAgentParallelRunner

    class Mood(enum.Enum):
        CALM = 1
        WILD = 2

    class Base:
        subclasses = []
        def __init_subclass__(cls, **kwargs):
            Base.subclasses.append(cls)

    class Policy(Base):
        pass

    class MainAgent(SampleAgent):
        synced_attributes = ("mood", "policy", "n_asked")
        n_asked = 0

        def submit_orders(self, markets):
            self.n_asked += 1
            self.mood = Mood(1 + self.n_asked % 2)
            self.policy = Policy()
            self.policy.mood = self.mood
            return [limit(self, self.pick(markets), 3 if self.mood is Mood.WILD else -3)]

    if __name__ == "__main__":
        settings = make_settings({"MainAgent": 4}, start_method=sys.argv[1])
        sequential = SequentialRunner(settings, random.Random(1))
        parallel = MultiProcessAgentParallelRunner(settings, random.Random(1), codec="dill")
        for runner in (sequential, parallel):
            runner.class_register(MainAgent)
            runner.main()
        assert_same(sequential, parallel)
        assert Base.subclasses == [Policy]
        for agent in parallel.simulator.agents:
            assert type(agent) is MainAgent and agent.n_asked > 0
            assert agent.mood is Mood.WILD or agent.mood is Mood.CALM
            assert type(agent.policy) is Policy and agent.policy.mood is agent.mood
        print("all is well")
    """


@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_classes_of_main_through_dill(start_method: str, tmp_path: Path) -> None:
    """Classes and enums of a script come back as the script's own."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT_OF_MAIN))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), start_method],
        env={**os.environ, "PYTHONPATH": str(Path(sample_agents.__file__).parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "all is well" in done.stdout


# ------------------------------------------------------------------- 6. what an agent sees


def test_agents_read_the_whole_simulation() -> None:
    """Cash, assets, sessions, events, fundamentals, books and the logger are those of main."""
    settings = make_settings(
        {"ReaderAgent": 5, "SampleAgent": 2},
        markets=2,
        sessions=[session(4, 4, name="one"), session(4, 2, name="two")],
        events=["PriceLimit", "Tax"],
    )
    check_same_as_sequential(settings)


@pytest.mark.parametrize("agent_class", ["GetstateAgent", "SlottedAgent", "PropertyAgent"])
@pytest.mark.parametrize("codec", ["pickle", "dill"])
def test_agents_that_say_how_they_travel(agent_class: str, codec: str) -> None:
    """__getstate__ with __setstate__, slots and properties give the same."""
    check_same_as_sequential(make_settings({agent_class: 4}, markets=2), codec=codec)


@pytest.mark.parametrize("codec", ["pickle", "dill"])
def test_reduce_is_gone_through(codec: str) -> None:
    """An agent with __reduce__ is rebuilt through it in the worker, and main's is not touched."""
    runner = run_sample(ReduceAgent, 3, max_normal_orders=3, steps=3, codec=codec)
    for agent in agents_of(runner, ReduceAgent):
        assert agent.was_rebuilt
        assert not agent.is_rebuilt
        assert agent.n_asked == 3


@pytest.mark.parametrize("codec", ["pickle", "dill"])
def test_setstate_is_gone_through(codec: str) -> None:
    """An agent with __setstate__ is loaded through it in the worker, and main's is not touched."""
    runner = run_sample(SetstateAgent, 3, max_normal_orders=3, steps=2, codec=codec)
    for agent in agents_of(runner, SetstateAgent):
        assert agent.was_loaded
        assert not agent.is_loaded


def test_getstate_leaves_the_agent_of_main_alone() -> None:
    """What __getstate__ drops and nobody lists stays in main."""
    runner = run_sample(GetstateAgent)
    assert all(agent.cache is not None for agent in agents_of(runner, GetstateAgent))


@pytest.mark.filterwarnings(f"ignore:{LOST}")
@pytest.mark.parametrize("num_parallel", [1, 2])
@pytest.mark.parametrize("runner_class", [MultiProcessAgentParallelRunner, ThreadRunner])
def test_unlisted_changes_are_not_seen_later(num_parallel: int, runner_class: RunnerClass) -> None:
    """What a call changed in its own copy and in the simulation's is gone at the next batch."""
    runner = run_sample(
        ForgetfulAgent,
        5,
        steps=4,
        max_normal_orders=1,  # batches of one agent: what one of them changes none may see
        num_parallel=num_parallel,
        runner_class=runner_class,
    )
    expected = (0, 0, 1.0, 300.0, 5, None, "day")
    for agent in agents_of(runner, ForgetfulAgent):
        assert agent.seen == [expected] * 4
        assert agent.counter == 0
        assert agent.scratch == []
    assert runner.simulator.markets[0].tick_size == 1.0
    assert len(runner.simulator.name2agent) == 5


class TuningRunner(SequentialRunner):
    """Sets things on the simulator and on agents before every step, as user code may."""

    def _update_markets(self, session: Session) -> None:
        simulator: Any = self.simulator
        time = simulator.markets[0].get_time()
        simulator.tuning["shift"] = time
        if time == 2:
            simulator.tuning = {"shift": 100}
        for agent in simulator.agents:
            agent.offset = time % 3 + agent.agent_id
        super()._update_markets(session)


class TunedParallelRunner(TuningRunner, MultiProcessAgentParallelRunner):
    """Ours, tuned."""


def test_what_user_code_sets_is_seen() -> None:
    """Objects put on the simulator, on other agents and on the agent itself are seen next."""
    settings = make_settings({"TunedAgent": 4}, max_normal_orders=4, steps=4)
    sequential: Any = make_sequential(settings, SAMPLE_CLASSES, 3, runner_class=TuningRunner)
    parallel = make_parallel(settings, SAMPLE_CLASSES, 3, runner_class=TunedParallelRunner)
    for runner in (sequential, parallel):
        setup(runner)
        runner.simulator.tuning = {"shift": -1}  # put there between _setup and _run
        runner._run()
    assert_same(sequential, parallel)
    seen = agents_of(parallel, TunedAgent)[1].seen
    assert seen == [(0, 0, 1), (1, 1, 2), (100, 2, 3), (3, 0, 1)]


def test_what_changes_between_runs_is_seen() -> None:
    """A second run after one setup sees what was set after the first."""
    settings = make_settings({"TunedAgent": 3}, max_normal_orders=3, steps=1)
    runner = make_parallel(settings, SAMPLE_CLASSES, 3)
    setup(runner)
    runner._run()
    runner.simulator.tuning = {"shift": 5}
    runner.simulator.agents[0].offset = 7
    runner._run()
    for agent in agents_of(runner, TunedAgent):
        own = 7 if agent.agent_id == 0 else 0
        assert agent.seen == [(0, 0, 0), (5, 7, own)]


class ReplacingRunner(SequentialRunner):
    """Puts a deep copy of the simulator in the place of the old one, in the middle of a run."""

    def _update_markets(self, session: Session) -> None:
        super()._update_markets(session)
        if self.simulator.markets[0].get_time() == 1:
            self.simulator.agents = copy.copy(self.simulator.agents)
            self.simulator.id2agent = copy.copy(self.simulator.id2agent)


class ReplacingParallelRunner(ReplacingRunner, MultiProcessAgentParallelRunner):
    """Ours, replacing."""


def test_replaced_containers_of_the_simulation() -> None:
    """New lists and dicts in the place of the simulator's old ones work."""
    settings = make_settings({"ReaderAgent": 4, "LearnerAgent": 2})
    sequential = make_sequential(settings, SAMPLE_CLASSES, 3, runner_class=ReplacingRunner)
    parallel = make_parallel(settings, SAMPLE_CLASSES, 3, runner_class=ReplacingParallelRunner)
    for runner in (sequential, parallel):
        main(runner)
    assert_same(sequential, parallel)


@pytest.mark.parametrize("when", ["before the run", "between runs"])
def test_a_deep_copied_simulator(when: str) -> None:
    """A deep copy in the place of the old simulator works, with a logger of its own."""
    settings = make_settings(
        {"LogWriterAgent": 4, "TrackerAgent": 3, "LearnerAgent": 3}, markets=2, events=["Tax"]
    )
    runners = [
        make_sequential(settings, SAMPLE_CLASSES, 9, TranscriptLogger()),
        make_parallel(settings, SAMPLE_CLASSES, 9, logger=TranscriptLogger()),
    ]
    for runner in runners:
        setup(runner)
        if when == "between runs":
            runner._run()
        old = runner.simulator
        runner.simulator = copy.deepcopy(old)
        n_notes = len(runner.logger.notes())
        runner._run()
        assert runner.simulator.logger is not runner.logger
        assert len(runner.simulator.logger.notes()) > len(runner.logger.notes()) == n_notes
    assert_same(*runners)
    logs = [runner.simulator.logger.lines for runner in runners]
    assert logs[0] == logs[1]


@pytest.fixture
def empty_memory() -> Iterator[None]:
    """Forget what agents put into their module in this process."""
    sample_agents.worker_memory.clear()
    yield
    sample_agents.worker_memory.clear()


@pytest.mark.usefixtures("empty_memory")
@pytest.mark.parametrize("num_parallel", [1, 2])
def test_workers_keep_what_modules_keep(num_parallel: int) -> None:
    """What an agent puts into its module in a worker is there at all later steps."""
    runner = run_sample(
        sample_agents.CachingAgent, 4, num_parallel=num_parallel, max_normal_orders=4, steps=5
    )
    agents = agents_of(runner, sample_agents.CachingAgent)
    pids = set().union(*(agent.pids for agent in agents))
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= num_parallel
    assert sum(agent.n_asked for agent in agents) == 20
    assert sum(agent.n_hits for agent in agents) == 20 - len(pids)


# ----------------------------------------------------------------------------- 6. the logger


class CallLogger(TranscriptLogger):
    """Notes how it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def write(self, *args: Any, **kwargs: Any) -> None:
        """Note the call."""
        self._note("write", args, kwargs)
        super().write(*args, **kwargs)

    def bulk_write(self, *args: Any, **kwargs: Any) -> None:
        """Note the call."""
        self._note("bulk_write", args, kwargs)
        super().bulk_write(*args, **kwargs)

    def write_and_direct_process(self, *args: Any, **kwargs: Any) -> None:
        """Note the call."""
        self._note("write_and_direct_process", args, kwargs)
        super().write_and_direct_process(*args, **kwargs)

    def bulk_write_and_direct_process(self, *args: Any, **kwargs: Any) -> None:
        """Note the call."""
        self._note("bulk_write_and_direct_process", args, kwargs)
        super().bulk_write_and_direct_process(*args, **kwargs)

    def _note(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        logs = [log for arg in (*args, *kwargs.values()) for log in _as_list(arg)]
        texts = [log.text if isinstance(log, Note) else type(log).__name__ for log in logs]
        self.calls.append(f"{method}/{len(args)}/{sorted(kwargs)} {texts}")


def _as_list(logs: Any) -> list[Log]:
    return logs if isinstance(logs, list) else [logs]


def test_log_calls_reach_the_logger_as_made() -> None:
    """All ways of writing arrive in asked order, by the same method and arguments."""
    settings = make_settings({"LogWriterAgent": 8}, max_normal_orders=5, num_parallel=3, steps=8)
    sequential, parallel = check_same_as_sequential(settings, logger=CallLogger)
    assert isinstance(sequential.logger, CallLogger)
    assert sequential.logger.calls == parallel.logger.calls
    written = " ".join(sequential.logger.calls)
    for word in ("write/1", "bulk_write/1", "/0/['log']", "/0/['logs']"):
        assert word in written
    for word in (
        "write ",
        "bulk ",
        "bulk again ",
        "direct ",
        "direct bulk ",
        "own ",
        "own direct ",
    ):
        assert f"['{word}" in written or f", '{word}" in written


def test_an_agent_may_have_a_logger_of_its_own() -> None:
    """What an agent writes goes to the object of main that its logger stands for."""
    settings = make_settings({"StealthAgent": 3}, max_normal_orders=3, steps=2)
    runner = make_parallel(settings, SAMPLE_CLASSES, 3, logger=TranscriptLogger())
    setup(runner)
    own = TranscriptLogger()
    runner.simulator.agents[1].logger = own
    runner._run()
    assert own.notes() == ["1", "1"]
    assert sorted(runner.logger.notes()) == ["0", "0", "2", "2"]


class LogCountingAgent(SampleAgent):
    """Reads the logger through a method of it, and writes to it."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order, or nothing, by the number of notes."""
        assert isinstance(self.logger, TranscriptLogger)
        number = len(self.logger.notes())
        Note(f"{self.agent_id} saw {number}").read_and_write_with_direct_process(self.logger)
        return [limit(self, markets[0], number % 7 - 3)] if number % 3 else []


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_the_state_of_the_logger_is_that_of_main(start_method: str) -> None:
    """An agent reads in the logger what was there when its batch was sent."""
    settings = make_settings(
        {"LogCountingAgent": 4}, max_normal_orders=1, steps=8, start_method=start_method
    )
    _, parallel = check_same_as_sequential(settings, classes=(*SAMPLE_CLASSES, LogCountingAgent))
    assert len(parallel.logger.notes()) > 8


class FileLogger(TranscriptLogger):
    """Writes to an open file, so that it cannot be pickled."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.stream = path.open("w")

    def process(self, logs: list[Log]) -> None:
        """Write the lines to the file too."""
        super().process(logs)
        self.stream.write("".join(f"{line}\n" for line in self.lines[-len(logs) :]))


@pytest.mark.parametrize("codec", ["pickle", "dill"])
def test_a_logger_that_cannot_be_pickled_stops_nothing(codec: str, tmp_path: Path) -> None:
    """Agents may write to a logger with an open file."""
    loggers = [FileLogger(tmp_path / name) for name in ("sequential", "parallel")]
    settings = make_settings({"StealthAgent": 5}, options={"unused": 1})
    sequential = run_sequential(settings, SAMPLE_CLASSES, 3, loggers[0])
    parallel = run_parallel(settings, SAMPLE_CLASSES, 3, logger=loggers[1], codec=codec)
    for logger in loggers:
        logger.stream.close()
        del logger.stream
    assert_same(sequential, parallel)
    files = [(tmp_path / name).read_text() for name in ("sequential", "parallel")]
    assert files[0] == files[1]
    assert "Note" in files[0]


class LazyLogger(TranscriptLogger):
    """Holds what no serializer takes."""

    def __init__(self) -> None:
        super().__init__()
        self.source = unpicklable()


@pytest.mark.parametrize("codec", ["pickle", "dill"])
def test_reading_a_logger_that_cannot_be_pickled_is_an_error(codec: str) -> None:
    """The error of reading it in a worker names the logger and what was read."""
    settings = make_settings({"StealthAgent": 3}, options={"reads": "source"})
    runner = make_parallel(settings, SAMPLE_CLASSES, 3, logger=LazyLogger(), codec=codec)
    with pytest.raises(RuntimeError, match=r"'source'.*LazyLogger") as caught:
        main(runner)
    assert isinstance(caught.value, LoggerStateError)
    assert runner.executor is None


class Hoard:
    """Notes when it is pickled."""

    n_pickled = 0

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        Hoard.n_pickled += 1
        return (Hoard, ())


class HoardingLogger(TranscriptLogger):
    """Holds what must not be pickled for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.hoard = Hoard()
        self.collected = [Hoard()]


@pytest.mark.parametrize("reads", [None, "hoard"])
@pytest.mark.parametrize("codec", ["pickle", "dill"])
def test_a_logger_that_nobody_reads_costs_nothing(reads: str | None, codec: str) -> None:
    """What a logger holds is pickled only when an agent reads it."""
    Hoard.n_pickled = 0
    run_sample(
        sample_agents.StealthAgent,
        logger=HoardingLogger(),
        options={"reads": reads} if reads else {},
        codec=codec,
    )
    assert (Hoard.n_pickled > 0) == (reads is not None)


# -------------------------------------------------------------------- 7. lost changes


@pytest.mark.parametrize("change", CHANGES)
def test_which_assignments_are_lost_changes(change: str) -> None:
    """Equal values that cannot change are not reported, all others are."""
    settings = make_settings({"ChangingAgent": 2}, options={"change": change}, steps=1)
    runner = make_parallel(settings, SAMPLE_CLASSES, 3, runner_class=InlineRunner)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        main(runner)
    texts = [str(w.message) for w in caught if str(w.message).startswith(LOST)]
    if CHANGES[change].is_reported:
        assert len(texts) == 1
        assert "'value'" in texts[0]
    else:
        assert texts == []


class NamedRunner(MultiProcessAgentParallelRunner):
    """Has a name of its own."""


@pytest.mark.parametrize("num_parallel", [1, 2])
def test_the_warning_about_lost_changes(num_parallel: int) -> None:
    """One warning for each class and name, with the class, the sorted names and the runner."""
    settings = make_settings({"UnlistedAgent": 4}, num_parallel=num_parallel)
    for _ in range(2):  # each runner warns for itself
        runner = make_parallel(settings, SAMPLE_CLASSES, 3, runner_class=NamedRunner)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            main(runner)
        lost = [w for w in caught if "lost" in str(w.message)]
        assert len(lost) == 1
        assert lost[0].category is UserWarning
        text = str(lost[0].message)
        assert text.startswith(LOST)
        parts = ["UnlistedAgent", "'alpha', 'fresh', 'victim', 'zeta'", "NamedRunner"]
        places = [text.index(part) for part in parts]
        assert places == sorted(places)
        assert "synced_attributes" in text[places[-1] :]


class LateAgent(SampleAgent):
    """Changes one unlisted attribute first, and another one later."""

    synced_attributes = ("listed",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.listed = self.early = self.late = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Change what is due."""
        self.listed += 1
        self.early += 1
        if markets[0].get_time() >= 2:
            self.late += 1
        return []


class LateSubclassAgent(LateAgent):
    """The same in another class."""


def test_each_name_of_each_class_is_warned_about_once() -> None:
    """A name that changes later is warned about then, without the earlier ones."""
    settings = make_settings({"LateAgent": 3, "LateSubclassAgent": 2}, steps=5)
    runner = make_parallel(settings, (LateAgent, LateSubclassAgent), 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        main(runner)
    texts = [str(w.message) for w in caught if str(w.message).startswith(LOST)]
    found = sorted(
        (cls, name)
        for text in texts
        for cls in ("LateAgent", "LateSubclassAgent")
        for name in ("early", "late", "listed")
        if f"{cls}" in text.replace("LateSubclassAgent", "x" if cls == "LateAgent" else cls)
        and f"'{name}'" in text
    )
    assert found == [
        ("LateAgent", "early"),
        ("LateAgent", "late"),
        ("LateSubclassAgent", "early"),
        ("LateSubclassAgent", "late"),
    ]
    assert len(texts) == 4


def test_an_unlisted_attribute_that_keeps_the_orders() -> None:
    """An agent that keeps its last orders unlisted runs as ever, with a warning."""
    settings = make_settings({"UnlistedLastOrdersAgent": 4})
    sequential: Any = run_sequential(settings, SAMPLE_CLASSES, 3, TranscriptLogger())
    with pytest.warns(UserWarning, match=f"^{LOST}.*'last_orders'"):
        parallel = run_parallel(settings, SAMPLE_CLASSES, 3, logger=TranscriptLogger())
    assert all(agent.last_orders == [] for agent in parallel.simulator.agents)
    for runner in (sequential, parallel):
        for agent in runner.simulator.agents:
            del agent.last_orders
    assert_same(sequential, parallel)


@pytest.mark.parametrize("kind", ["random", "generator", "random state"])
def test_an_own_generator(kind: str) -> None:
    """Drawing from an unlisted own generator is reported; listed, or not drawn from, it is not."""
    options = {"kind": kind}
    with pytest.warns(UserWarning, match=f"^{LOST}.*OwnGeneratorAgent.*'generator'"):
        run_sample(sample_agents.OwnGeneratorAgent, options=options)
    run_sample(sample_agents.OwnGeneratorAgent, options={**options, "draws": False})
    settings = make_settings({"OwnGeneratorAgent": 4}, options={**options, "listed": True})
    check_same_as_sequential(settings)


class AliasAgent(SampleAgent):
    """Knows its own prng by a second, unlisted name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dice = self.prng

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Draw by the second name."""
        return [limit(self, markets[0], self.dice.gauss(0.0, 3.0), is_buy=True)]


def test_a_second_name_of_the_prng() -> None:
    """The agent's prng comes back under any name, without a warning."""
    settings = make_settings({"AliasAgent": 4})
    _, parallel = check_same_as_sequential(settings, classes=(*SAMPLE_CLASSES, AliasAgent))
    assert all(agent.dice is agent.prng for agent in parallel.simulator.agents)


@pytest.mark.parametrize(
    ("target", "class_name"),
    [
        ("simulator", "Simulator"),
        ("market", "Market"),
        ("agent", "SampleAgent"),
        ("event", "TaxEvent"),
        ("session", "Session"),
    ],
)
@pytest.mark.parametrize("deletes", [False, True])
def test_changes_of_other_objects_are_lost(target: str, class_name: str, deletes: bool) -> None:
    """Assigning or deleting an attribute of another simulation object is reported, and lost."""
    settings = make_settings(
        {"MeddlingAgent": 2, "SampleAgent": 1},
        events=["Tax"],
        max_normal_orders=3,
        options={"target": target, **({"deletes": "influence"} if deletes else {})},
        steps=1,
    )
    runner = make_parallel(settings, SAMPLE_CLASSES, 3)
    setup(runner)
    simulator = runner.simulator
    victim = {
        "simulator": simulator,
        "market": simulator.markets[0],
        "agent": simulator.agents[-1],
        "event": simulator.events[0],
        "session": simulator.sessions[0],
    }[target]
    if deletes:
        victim.influence = "of main"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # of two agents of one task the second finds nothing to delete any more
        runner.simulator.normal_frequency_agents.remove(simulator.agents[1])
        runner._run()
    texts = [str(w.message) for w in caught if str(w.message).startswith(LOST)]
    assert len(texts) == 1
    assert class_name in texts[0].replace("MeddlingAgent", "")
    assert "'influence'" in texts[0]
    assert getattr(victim, "influence", None) == ("of main" if deletes else None)


def test_getters_that_write_are_not_reported() -> None:
    """Reading fundamental prices of later times generates them, and is no lost change."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*is experimental")
        run_sample(sample_agents.FutureReaderAgent)


def test_no_thread_is_left() -> None:
    """After a run there are no more threads than before."""
    before = set(threading.enumerate())
    run_sample(SampleAgent, num_parallel=3)
    assert set(threading.enumerate()) <= before
