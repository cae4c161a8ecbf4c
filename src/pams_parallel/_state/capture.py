"""From a runner to the state of its simulation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pams import Market, OrderBook
from pams.agents import Agent
from pams.runners import SequentialRunner

from .names import Names
from .plain import Describer
from .recording import RecordingLogger
from .tree import Branch, Node, State

_HISTORIES: Final = {
    "_market_prices": "market price",
    "_fundamental_prices": "fundamental price",
    "_mid_prices": "mid price",
    "_last_executed_prices": "last executed price",
    "_executed_volumes": "executed volume",
    "_executed_total_prices": "executed total price",
    "_n_buy_orders": "number of buy orders",
    "_n_sell_orders": "number of sell orders",
}
"""Attribute of a market that holds a value for every time -> what that value is called."""

_Items = Iterator[tuple[str, Node]]


def capture_state(runner: SequentialRunner) -> State:
    """Return the whole state of a runner's simulation as plain data.

    That is: the histories of all markets, all log records in order (when the runner's logger is a
    ``RecordingLogger``; the logger's attributes otherwise), order books order by order, all
    attributes of agents, markets, sessions, events and the simulator, and the states of all
    generators. Not part of it: what the runner itself holds beside its generator.

    Args:
        runner: any PAMS runner, before, between or after steps. It is only read.
    """
    names = Names(runner.simulator, runner.logger)
    items = [
        *_market_times(names),
        *_histories(names),
        *_log_records(runner),
        *_owners(names),
        ("runner: PRNG", Describer(names).node(runner._prng, "PRNG of the runner")),
    ]
    return State(Branch("state", tuple(items)))


def _markets(names: Names) -> Iterator[tuple[str, Market]]:
    for name, owner in names.owners.items():
        if isinstance(owner, Market):
            yield name, owner


def _market_times(names: Names) -> _Items:
    for _, market in _markets(names):
        yield f"market {market.name!r}: time", str(market.time)


def _histories(names: Names) -> _Items:
    """Yield the markets' histories, time by time: the first difference is the earliest."""
    histories = [
        (f"market {market.name!r}: {words}", name, getattr(market, attribute))
        for name, market in _markets(names)
        for attribute, words in _HISTORIES.items()
    ]
    describer = Describer(names)
    for time in range(max((len(values) for _, _, values in histories), default=0)):
        for words, name, values in histories:
            if time < len(values):
                path = f"{words} of {name} at time {time}"
                yield f"{words} at time {time}", describer.node(values[time], path)


def _log_records(runner: SequentialRunner) -> _Items:
    if isinstance(runner.logger, RecordingLogger):
        for number, record in enumerate(runner.logger.records):
            yield f"log record {number}", record


def _owners(names: Names) -> _Items:
    """Yield the simulation objects with their attributes: books and agents before the rest."""
    owners = sorted(names.owners.items(), key=lambda item: _rank(item[1]))
    for name, owner in owners:
        describer = Describer(names)
        if isinstance(owner, OrderBook):
            yield from _order_book(name, owner, describer)
        elif isinstance(owner, Market):
            yield f"market {owner.name!r}", describer.attributes(name, owner, skip=_HISTORIES)
        elif isinstance(owner, RecordingLogger):
            # its records are there already; what it has besides serves the one who records
            continue
        elif not name.startswith("order "):
            yield _words(name, owner), describer.attributes(name, owner)


def _order_book(name: str, book: OrderBook, describer: Describer) -> _Items:
    """Yield a book with its orders in the order of the heap's list, then its other attributes."""
    for place, order in enumerate(book.priority_queue):
        parts = describer.attributes(f"order {place} of {name}", order)
        yield f"{name}: order at place {place}", parts
    yield name, describer.attributes(name, book, skip=("priority_queue",))


def _rank(owner: object) -> int:
    if isinstance(owner, OrderBook):
        return 0
    if isinstance(owner, Agent):
        return 1
    return 2


def _words(name: str, owner: object) -> str:
    own_name = getattr(owner, "name", None)
    return name if own_name is None else f"{name} ({own_name})"
